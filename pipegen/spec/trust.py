"""Checks that a spec is safe data: its addresses load no code, it sends no secrets, and it writes only to permitted folders.

A spec may come from a stranger. Values that come as a whole from the caller, by `params=`, `--set`, `overrides=` or the
environment, are trusted; but not the environment for files to write, as the spec chooses the variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.ops.registry import sources
from pipegen.spec.allowed import Allowed
from pipegen.spec.expect import one_of
from pipegen.spec.locate import Place
from pipegen.spec.places import ADDRESS, KNOWN, PLACES, SNAPSHOT, Address, names_server, own_places, places
from pipegen.spec.source_map import KeyPath, format_path, lookup, scalars
from pipegen.terminal import masked_address

REPORT: KeyPath = ("errors", "decode", "skip", "report")  # the setting that names a file to write; that of sources is `SNAPSHOT`


def check_trust(raw: Mapping[str, Any], place: Place, base: Path, allowed: Allowed, env: Mapping[str, str]) -> None:
    """Reports values of a resolved spec, of which `base` is the folder, that need a permission of the caller."""
    if allowed.everything:
        return
    refused = {name for name in env if name not in allowed.env}
    given = [*places(raw.get("source"), ("source",))]
    for node, key, path in given:
        value = node[key]
        for at, one in enumerate(value) if isinstance(value, list) else [(None, value)]:
            where = path if at is None else (*path, at)
            if isinstance(one, str) and not place.locate.is_callers(where):
                _database(one, where, place, refused) if key == ADDRESS else _files(one, where, place)
    _sent(raw, place)
    written = [(REPORT, lookup(raw, REPORT)), *((path, node[key]) for node, key, path in given if key == SNAPSHOT)]
    for path, file in written:
        if isinstance(file, str):
            _check_written(path, file, place, base, allowed)


def _database(value: str, path: KeyPath, place: Place, env: Set[str]) -> None:
    from pipegen.ops.sources.tables.sql_address import allowed_arguments, password_variable, unsafe

    variable = password_variable(value)
    if variable in env:
        message = f"the driver of `{path[-1]}` sends the password in `{variable}` to the server that the spec names"
        help_ = (
            f"take the address from the caller: `{path[-1]}: $address`",
            f"or allow the variable: `--allow-env {variable}`, `build(…, allow_env=[{variable!r}])`",
        )
        place.at(*path).add(make("PG673", message, place.locate.label(path), help=help_))
    for wrong in unsafe(value):
        known = allowed_arguments(value)
        listed = [f"the address of this driver may have {one_of(known, 'and')}"] if known else []
        message = f"`{path[-1]}` {masked_address(wrong)}; with that a driver could load code or read files"
        _refuse(message, path, place, *listed, _way_out("url"))


def _files(value: str, path: KeyPath, place: Place) -> None:
    address = Address.of(value)
    if "://" not in value or (address is None and value.lower().startswith("file://") and "::" not in value):
        return
    if address is None or "::" in value:
        message = f"{masked_address(value)!r} is a chain of addresses, or not an address"
        _refuse(message, path, place, f"write one address; {_way_out('path')}")
    elif address.scheme not in KNOWN:
        listed = f"allowed are {one_of([f'{scheme}://' for scheme in sorted(KNOWN)], 'and')}"
        _refuse(f"a spec may not have an address of the kind `{address.scheme}://`", path, place, listed, _way_out("path"))


def _refuse(message: str, path: KeyPath, place: Place, *help_: str) -> None:
    place.at(*path).add(make("PG670", message, place.locate.label(path), help=help_))


def _way_out(key: str) -> str:
    kind = "str" if key == "url" else "path"
    return (
        f"to use any address, take it from the caller: `params: {{data: {{type: {kind}, env: DATA_URL}}}}` and `{key}: $data`, or `--set`"
    )


def _sent(raw: Mapping[str, Any], place: Place) -> None:
    """Reports values of the environment that are sent to a server that the spec names."""
    locate = place.locate
    tainted = {path for path, filled in locate.filled.items() if any(each.value.env for each in filled)}
    if not tainted:
        return
    asked, reported = dict[KeyPath, KeyPath](), set[KeyPath]()
    for path, value in scalars(raw):
        if path[0] in ("params", "stages", "extends") or not isinstance(value, str) or not names_server(value) or locate.is_callers(path):
            continue
        if path in tainted and not locate.is_param(path):
            _report_sent(path, path, place)
            reported.add(path)
        if path[0] == "source":
            asked.setdefault(_source_of(path), path)
    for path in sorted(tainted - reported, key=str):
        address = asked.get(_source_of(path)) if path[0] == "source" else None
        *_, key = (part for part in path if isinstance(part, str))
        of = str(_source_of(path)[-1])
        is_own_place = locate.is_param(path) and (key in PLACES or key in own_places({of: None}, of))
        if address is not None and not is_own_place and any(each.value.env and each.value.is_text for each in locate.filled[path]):
            _report_sent(path, address, place)


def _report_sent(path: KeyPath, address: KeyPath, place: Place) -> None:
    variable, key = place.locate.from_env(path), address[-1] if isinstance(address[-1], str) else address[-2]
    message = f"`{format_path(path)}` sends the environment variable `{variable}` to a server that the spec names"
    help_ = (
        f"take the whole address from the environment: `{key}: $address`",
        f"or pass the value by `--set` or `params=`; or allow the variable: `--allow-env {variable}`, `build(…, allow_env=[{variable!r}])`",
    )
    labels = [place.locate.label(path), *([place.locate.label(address, "the server")] if address != path else [])]
    place.at(*path).add(make("PG673", message, *labels, help=help_))


def _source_of(path: KeyPath) -> KeyPath:
    """The key path of the innermost source around a value."""
    return next((path[:n] for n in range(len(path) - 1, 0, -1) if path[n - 1] in sources()), path[:1])


def _check_written(path: KeyPath, file: str, place: Place, base: Path, allowed: Allowed) -> None:
    locate = place.locate
    if locate.is_callers(path) and not locate.from_env(path):
        return
    own = [] if locate.in_shared_base(path) else [str(locate.folder(path))]
    if "://" not in file and lies_below(file, [str(base), str(Path.cwd()), *own, *allowed.write]):
        return
    folder = os.path.dirname(file)
    message = f"`{format_path(path)}` names {file!r}, outside of the spec's folder and the working directory"
    help_ = (
        f"name a file below one of them, such as `{path[-1]}: {os.path.basename(file) or 'damaged.jsonl'}`",
        f"or allow the folder: `pipegen.build(…, allow_write=[{folder!r}])`, or `--allow-write {folder}` on the command line",
    )
    place.at(*path).add(make("PG671", message, locate.label(path), help=help_))


def lies_below(file: str, folders: list[str]) -> bool:
    """Tests if a file is below one of these folders, with all links resolved."""
    try:
        real = os.path.realpath(file)
    except ValueError:  # an invalid file name
        return False
    return any(real.startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)
