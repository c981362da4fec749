"""The files and folders that a spec names: claims on them, missing ones, lists of records to leave out, and the places of findings.

A list is a file of relative paths, one a line; `#` starts a comment line.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label, Severity
from pipegen.errors import OpError
from pipegen.files import is_foreign, read_regular
from pipegen.kept import ForeignFolderError, claim
from pipegen.lazy import np
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.listing.paths import close_names, nearest_folder
from pipegen.spec.locate import Locate
from pipegen.spec.models import DiskCache, PipelineSpec
from pipegen.spec.places import ADDRESS, SNAPSHOT, addresses_in, places
from pipegen.spec.source_map import KeyPath, format_path
from pipegen.spec.trust import REPORT


def claim_places(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Marks the folders of a spec's caches as pipegen's; yields a finding for each that holds something else."""
    folders: list[tuple[tuple[str, ...], str]] = []
    if isinstance(spec.runtime.cache, DiskCache):
        folders.append((("runtime", "cache", "disk"), spec.runtime.cache.disk))
    if spec.runtime.remote_cache.path is not None and addresses_in(spec.source):
        folders.append((("runtime", "remote_cache", "path"), spec.runtime.remote_cache.path))
    for path, folder in folders:
        try:
            claim(Path(folder))
        except ForeignFolderError as foreign:
            message = f"{folder!r} is not a folder of pipegen: it holds {foreign}"
            help_ = "name a folder that does not exist yet, or an empty one; pipegen writes to it and deletes from it"
            yield make("PG674", message, locate(path), help=help_)
    skip = spec.errors.skip
    if skip is not None and skip.report is not None and is_foreign(skip.report):
        message = f"{skip.report!r} exists, and is not a report of damaged records"
        help_ = "name a file that does not exist yet: pipegen adds only to reports that it began"
        yield make("PG674", message, locate(REPORT), help=help_)
    elif skip is not None and skip.report is not None:
        above = next(folder for folder in Path(skip.report).absolute().parents if folder.exists())
        if not above.is_dir():
            message = f"{skip.report!r} cannot be written: {str(above)!r} is not a folder"
            yield make("PG674", message, locate(REPORT), help="name a file below a folder")


def path_only(path: tuple[str | int, ...], text: str = "", *, key: bool = False) -> Label:  # noqa: ARG001
    """Makes a label of a key path alone, without a place in a file."""
    return Label(None, text, format_path(path))


def argument(spec: PipelineSpec, field: str | None) -> tuple[str | int, ...]:
    """The key path of an argument of the source; `field` is dotted if it is nested, and `parts.SPLIT` lies in `splits`."""
    if field is not None and field.startswith("parts.") and spec.splits.method == "folder":
        return ("splits", *field.split("."))
    return ("source", spec.source.op, *(field.split(".") if field else ()))


def place_within(spec: PipelineSpec, field: str, section: str = "") -> tuple[str | int, ...]:
    """The key path of an error's `field`: in a feature of the source, else in the section."""
    if field.startswith("features."):
        return argument(spec, field)
    return (*filter(None, [section]), *field.split("."))


def finding_of(error: OpError, label: Label) -> Diagnostic:
    """Turns an error into a finding."""
    return make(error.code, error.message, label, help=error.lines)


_WILD = re.compile(r"[*?\[]")


def missing_data(raw: dict[str, Any], locate: Locate) -> list[Diagnostic]:
    """Reports paths of a source that do not exist on this machine; `raw` is the spec as plain values, with absolute paths."""
    found = []
    for path, value in source_paths(raw.get("source"), ("source",)):
        parts = value.split("/")
        plain = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts))
        place = "/".join(parts[:plain]) or "/"
        try:
            if "://" in place or os.path.lexists(place):
                continue
            from pipegen.ops.sources.records.archives import split_path  # not loaded if nothing is missing

            if split_path(place) is not None:  # a place in an archive
                continue
        except ValueError:
            continue
        what = "folder" if value.endswith("/") or not os.path.splitext(place)[1] else "file"
        message = f"there is no {what} {place!r} on this machine"
        found.append(make("PG401", message, locate(path), help=nearest_folder(place), severity=Severity.INFO))
    return found


def source_paths(node: Any, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yields the paths among the arguments of a source, with their places."""
    for holder, key, here in places(node, at):
        value = holder[key]
        if key not in (ADDRESS, SNAPSHOT):
            several = value if isinstance(value, list) else [value]
            yield from ((here, one) for one in several if isinstance(one, str) and one)


_LARGEST = 2**26  # the most bytes of a list
HEADERS = {
    "errors": "# Files that cannot be read, for `errors: {exclude: FILE}`. Written by `pipegen validate --data --write-exclude`.",
    "splits": "# Copies of records of other splits, for `splits: {exclude: FILE}`. Written by `pipegen report --write-exclude`.",
}
"""The first lines of lists that pipegen wrote: those of `errors` apply before the split assignment, those of `splits` after it."""
_ROW = re.compile(r"#\d+$")


def excluded_keys(
    spec: PipelineSpec, listings: Mapping[str, Listing], base: Path, locate: Locate, section: str, gone: frozenset[str] = frozenset()
) -> tuple[frozenset[str], list[Diagnostic]]:
    """Reads the keys that the `exclude` of a section names; reports an unreadable file or unknown entries as `PG413`.

    `listings` has the records of each part of a mix by name (keys are `PART/KEY` then), or of a single source by "". Records that lie many
    in a file are `FILE#ROW`; `errors` may also name a whole file. Unknown entries that are `gone` are fine: they were left out before.
    """
    path = str(base / (getattr(spec, section).exclude or ""))
    lines, unreadable = read_list(spec, base, locate, section)
    if not lines:
        return frozenset(), unreadable
    asked = {text for line in lines for text in (line, line.strip())}
    known = {below(part, key) for part, own in listings.items() for key in _known(own, part, asked, section)}
    stripped = (line if line in known else line.strip() for line in lines if not line.startswith("#"))
    entries = dict.fromkeys(line for line in stripped if line)
    unknown = [entry for entry in entries if entry not in known and entry not in gone]
    keys = frozenset(entry for entry in entries if entry in known)
    if not unknown:
        return keys, []
    message = f"{count(len(unknown), 'entry', 'entries')} of {path!r} {'is not a record' if len(unknown) == 1 else 'are not records'}"
    endings = {os.path.splitext(key)[1].lower() for listing in listings.values() for key in listing.keys} - {""}
    of_records = all(os.path.splitext(_ROW.sub("", entry))[1].lower() in endings and entry.isprintable() for entry in entries)
    if not of_records and lines[0] not in HEADERS.values():
        # The spec may name any file of this machine, and its author may read this finding: the file's lines stay secret.
        at = next(i for i, line in enumerate(lines, 1) if line.strip() == unknown[0].strip())
        help_ = f"the first is line {at}; the file does not look like a list of records, so its lines are not shown"
        return keys, [make("PG413", message, locate((section, "exclude")), help=help_)]
    help_ = _likely(unknown[0], listings, section)
    return keys, [make("PG413", f"{message}: {quoted(unknown)}", locate((section, "exclude")), help=help_)]


def below(part: str, key: str) -> str:
    """Prefixes the key of a record with its part of a mix, if it has one."""
    return f"{part}/{key}" if part else key


def _known(listing: Listing, part: str, asked: Iterable[str], section: str) -> set[str]:
    """Selects the texts that are keys of a listing, without the prefix of the part."""
    start = below(part, "")
    own = {text.removeprefix(start) for text in asked if text.startswith(start)}
    rows: set[str] = set()
    if listing.shards is not None:
        from pipegen.data.manifest import record_numbers

        rows = {*record_numbers(listing, own)}
        if section == "splits":
            return rows | {key for key in listing.keys.take(np.flatnonzero(listing.shards.numbers < 0)) if key in own}
    named = chain(listing.keys, *(group.keys for group in listing.missing if group.records is None))
    return rows | {key for key in named if key in own} if own else set()


def read_list(spec: PipelineSpec, base: Path, locate: Locate, section: str) -> tuple[list[str], list[Diagnostic]]:
    """Reads the lines of a section's list without checking them; reports an unreadable file."""
    named = getattr(spec, section).exclude
    if named is None:
        return [], []
    path = str(base / named)
    try:
        return read_lines(path), []
    except ValueError as error:
        message = f"the list of excluded files {path!r} cannot be read: {error}"
        help_ = f"`{'pipegen validate --data' if section == 'errors' else 'pipegen report'}` writes one; or leave `exclude` out"
        return [], [make("PG413", message, locate((section, "exclude")), help=help_)]


def read_lines(path: str) -> list[str]:
    """Reads the lines of a list; `ValueError` if it cannot be read."""
    try:
        content = read_regular(path, _LARGEST + 1)
        if len(content) > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST // 2**20} MiB")
    except (OSError, ValueError) as error:
        raise ValueError(getattr(error, "strerror", None) or str(error)) from None
    return content.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n")


def read_values(splits: Splits, base: Path) -> None:
    """Reads the files that list the values of parts. Raises `OpError`: `PG578` for a file that cannot be read or lists nothing, `PG301` for
    a value that two parts list. `field` is relative to `splits`."""
    for name, listed in splits.files.items():
        path = str(base / listed.file)
        field = f"parts.{name}"
        try:
            listed.take(read_lines(path))
        except ValueError as error:
            message = f"the values of `{name}` in {path!r} cannot be read: {error}"
            raise OpError("PG578", message, field=field, help="write a file with one value of the column in each line") from None
        if not listed.values:
            raise OpError("PG578", f"{path!r} lists no value, so `{name}` would be empty", field=field, help="write one value in each line")
    found = splits.shared_value() if splits.files else None
    if found is not None:
        value, first, second = found
        # The spec may name any file of this machine, and its author may read this finding: the file's lines stay secret.
        said = repr(value) if second not in splits.files else f"value {splits.values()[second].index(value) + 1} of its file"
        message = f"`{second}` lists {said}, and so does `{first}`"
        raise OpError("PG301", message, field=f"parts.{second}", help="a record is in one part: list each value once")


def _likely(entry: str, listings: Mapping[str, Listing], section: str) -> str:
    """Suggests a key for an unknown entry."""
    by_row = section == "splits" or _ROW.search(entry) is not None
    files = {below(part, key) for part, listing in listings.items() for key in (_of_many(listing) if by_row else ())}
    row = _ROW.search(entry) if files else None
    plain = (entry if row is None else entry[: row.start()]).replace("\\", "/").removeprefix("./")
    every = [below(part, key) for part, listing in listings.items() for key in listing.keys]
    every.sort(key=lambda key: key not in files)
    inside = plain
    for listing in listings.values():
        inside = inside.removeprefix(listing.root.rstrip("/") + "/")
    ends = [key for key in every if key == inside or key.endswith(f"/{inside}")]
    if not ends:
        name = inside.rpartition("/")[2]
        ends = close_names(inside, [key for key in every if key.rpartition("/")[2].casefold() == name.casefold()][:50])
    expected = "entries are relative paths" + (" with the number of a record behind them" if files else "")
    expected += f" such as {every[0] + '#0' * bool(files)!r}" if every else ""
    if not ends or (ends[0] in files and ends[0] == inside):
        return expected
    return f"{expected}; is {ends[0] + (row[0] if row is not None and ends[0] in files else '')!r} meant?"


def _of_many(listing: Listing) -> Iterable[str]:
    """The keys of files that hold many records each."""
    return listing.keys.take(np.flatnonzero(listing.shards.numbers >= 0)) if listing.shards is not None else ()
