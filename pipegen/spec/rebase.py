"""Relative paths of a spec, made absolute from the folder of the file that they are in.

A shared base cannot have relative paths: the folder of a package or of a lock holds no data.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.ops.registry import sources
from pipegen.spec.compose import flow
from pipegen.spec.locate import Locator, Place
from pipegen.spec.source_map import KeyPath, format_path, lookup, scalars

_PATHS = ("errors.exclude", "errors.decode.skip.report", "runtime.cache.disk", "runtime.remote_cache.path", "splits.exclude")
PATHS: tuple[KeyPath, ...] = tuple(tuple(path.split(".")) for path in _PATHS)  # settings outside the source that are paths
SOURCE_PATHS = frozenset({"path", "root"})  # arguments of sources that are paths of data; a source may have others, its `places`
STEP_PATHS = frozenset({"references"})  # arguments of steps that are paths of files beside the spec
ADDRESS = "url"  # the argument of sources that is the address of a database; that of SQLite has a path, which may be relative
SNAPSHOT = "snapshot"  # the argument that is the file for the rows of a database
PLACES = SOURCE_PATHS | {SNAPSHOT, ADDRESS}  # arguments of sources that are the place of data, not its content
_PARTS: KeyPath = ("source", "mix", "parts")
_SQLITE = re.compile(r"(?P<before>sqlite(?:\+\w+)?:///)(?P<path>[^/?][^?]*)")


def own_places(node: Mapping[str, Any], key: str) -> frozenset[str]:
    """The arguments besides `PLACES` that are places, if `key` is the name of a source."""
    return sources()[key].places if len(node) == 1 and key in sources() else frozenset()


def places(node: Any, at: KeyPath, own: frozenset[str] = frozenset()) -> Iterator[tuple[dict[str, Any], str, KeyPath]]:
    """Yields the arguments of a source that are places: the map that holds each, its key, its key path."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            if key != "splits" or at[:-1] != _PARTS:  # a `path` of the `splits` of a part is a regular expression
                yield from places(value, (*at, key), own_places(node, key))
        elif key in PLACES or key in own:
            yield node, key, (*at, key)


def make_absolute(spec: dict[str, Any], place: Place) -> None:
    """Makes paths absolute, in place, and reports relative ones of shared bases."""
    for *parents, last in settings(spec):
        at = lookup(spec, tuple(parents))
        if isinstance(at, dict) and last in at:
            at[last] = _absolute(at[last], (*parents, last), place)
    for node, key, path in [*places(spec.get("source"), ("source",))]:
        value = node[key]
        if key == ADDRESS:
            if isinstance(value, str) and (file := _SQLITE.match(value)):
                node[key] = f"{file['before']}{_absolute(file['path'], path, place)}{value[file.end() :]}"
        elif isinstance(value, list):
            node[key] = [_absolute(v, (*path, i), place) for i, v in enumerate(value)]
        else:
            node[key] = _absolute(value, path, place)
    # The paths of steps: in lists, in edits of a base, in branches, inside other steps.
    for *above, key in (("transforms",), ("views",), *((*_PARTS, name, "transforms") for name in _parts(spec))):
        holder = lookup(spec, tuple(above))
        for path, value in [*scalars(holder.get(key), (*above, key))] if isinstance(holder, dict) else ():
            if path[-1] in STEP_PATHS and isinstance(value, str):
                lookup(spec, path[:-1])[path[-1]] = _absolute(value, path, place)


def settings(spec: dict[str, Any]) -> Iterator[KeyPath]:
    """Yields the key paths of settings that are paths: `PATHS`, the `exclude` of each part of a mix, and files of values of splits."""
    yield from PATHS
    every: list[KeyPath] = [("splits",), *((*_PARTS, name, "splits") for name in _parts(spec))]
    yield from ((*at, "exclude") for at in every[1:])
    for at in every:
        parts = lookup(spec, (*at, "parts"))
        for name, part in parts.items() if isinstance(parts, dict) else ():
            for column, values in part.items() if isinstance(part, dict) else ():
                if isinstance(values, dict):
                    yield (*at, "parts", name, column, "file")


def _parts(spec: dict[str, Any]) -> dict[str, Any]:
    """The parts of a mix by name, as written; none for another source."""
    parts = lookup(spec, _PARTS)
    return parts if isinstance(parts, dict) else {}


def _absolute(value: Any, path: KeyPath, place: Place) -> Any:
    if not isinstance(value, str) or not value:
        return value
    place.at(*path).add(homeless(value, path, place.locate))
    return absolute(value, place.locate.folder(path))


def absolute(path: str, folder: Path) -> str:
    """`path` from `folder`, with `~` expanded; addresses such as `gs://` stay."""
    return path if "://" in path else os.path.abspath(os.path.join(folder, os.path.expanduser(path)))


def homeless(value: str, path: KeyPath, locate: Locator) -> Diagnostic | None:
    """The finding about a relative path in a shared base; `None` for other paths."""
    if "://" in value or os.path.isabs(os.path.expanduser(value)) or not locate.in_shared_base(path):
        return None
    said: Any = value
    for key in reversed(path):
        said = [said] if isinstance(key, int) else {key: said}
    help_: list[str] = [write(flow(said)[1:-1], "spec", "set the path in the spec that extends the base: {}")]
    if path[0] == "params":
        help_.append("or, in the base, leave the default out, so that each spec that extends it sets the path of its data")
    else:
        help_.append("or, in the base, declare `params: {data: {type: path}}` without a default, and use `$data` here")
    message = f"`{format_path(path)}` is the relative path `{value}` in a shared base, which has no folder of data"
    return make("PG114", message, locate.label(path), help=tuple(help_))
