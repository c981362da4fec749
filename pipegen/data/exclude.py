"""Reads the files of records to leave out: relative paths, one a line; `#` starts a comment line."""

from __future__ import annotations

import errno
import os
import re
from itertools import chain
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.files import read_regular
from pipegen.ops.sources.listing.wording import close_names, count, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec

_LARGEST = 2**26
"""Bytes of a list."""
EXCLUDE_HEADER = "# Files that cannot be read, for `errors: {exclude: FILE}`. Written by `pipegen validate --data --write-exclude`."
"""The first line of a list that pipegen wrote."""
COPIES_HEADER = "# Copies of records of other splits, for `splits: {exclude: FILE}`. Written by `pipegen report --write-exclude`."
"""Likewise."""
SECTIONS = ("errors", "splits")
"""The sections with an `exclude`: before records are assigned to splits, and after."""
_ROW = re.compile(r"#\d+$")


def excluded_keys(
    spec: PipelineSpec,
    listings: Mapping[str, Listing],
    base: Path,
    locate: Locate,
    section: str = "errors",
    gone: frozenset[str] = frozenset(),
) -> tuple[frozenset[str], list[Diagnostic]]:
    """Returns the keys that the `exclude` of a section names, and a `PG413` finding when the file or an entry is no good.

    Args:
        spec: The spec.
        listings: The records: of a mix those of each part by its name, below which their keys stand, else those of the source under the
            empty name. In `splits`, records that lie many in a file are known as `FILE#ROW`.
        base: What the spec's paths are relative to.
        locate: Finds the places that findings point at.
        section: `errors` or `splits`.
        gone: Entries that name nothing any more, with which nothing is wrong.
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
    message = f"{count(len(unknown), 'entry', 'entries')} of {path!r} {'is' if len(unknown) == 1 else 'are'} no record"
    if not _is_list(lines, entries, listings.values()):
        # Whoever wrote the spec may have named any file of this machine, and whoever reads the finding may be they.
        at = next(i for i, line in enumerate(lines, 1) if line.strip() == unknown[0].strip())
        help_ = f"the first is line {at}; the file does not look like a list of records, so its lines are not shown"
        return keys, [make("PG413", message, locate((section, "exclude")), help=help_)]
    help_ = _likely(unknown[0], listings, section)
    return keys, [make("PG413", f"{message}: {quoted(unknown)}", locate((section, "exclude")), help=help_)]


def below(part: str, key: str) -> str:
    """Returns the key of a record of a part of a mix as the mix has it; of any other source, the key."""
    return f"{part}/{key}" if part else key


def _known(listing: Listing, part: str, asked: Iterable[str], section: str) -> set[str]:
    """Returns those of some texts that are keys of a listing, as it has them itself."""
    start = below(part, "")
    own = {text.removeprefix(start) for text in asked if text.startswith(start)}
    if section == "splits" and listing.shards is not None:
        from pipegen.data.shard_manifest import record_numbers

        return {*record_numbers(listing, own)}
    named = chain(listing.keys, *(group.keys for group in listing.missing if group.records is None))
    return {key for key in named if key in own} if own else set()


def read_list(spec: PipelineSpec, base: Path, locate: Locate, section: str = "errors") -> tuple[list[str], list[Diagnostic]]:
    """Returns the lines of a section's list, or the finding that it cannot be read; its entries are not looked at."""
    named = getattr(spec, section).exclude
    if named is None:
        return [], []
    path = str(base / named)
    try:
        content = read_regular(path, _LARGEST + 1)
        if len(content) > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST // 2**20} MiB")
        return content.decode("utf-8-sig", "surrogateescape").replace("\r\n", "\n").split("\n"), []
    except (OSError, ValueError) as error:
        message = f"the list of excluded files {path!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        help_ = f"`{'pipegen validate --data' if section == 'errors' else 'pipegen report'}` writes one; or leave `exclude` out"
        return [], [make("PG413", message, locate((section, "exclude")), help=help_)]


def _is_list(lines: list[str], entries: Iterable[str], listings: Iterable[Listing]) -> bool:
    """Returns whether a file is a list of records: it says that pipegen wrote it, or every entry ends as some record does."""
    if lines[0] in (EXCLUDE_HEADER, COPIES_HEADER):
        return True
    endings = {os.path.splitext(key)[1].lower() for listing in listings for key in listing.keys}
    return all(os.path.splitext(_ROW.sub("", entry))[1].lower() in endings - {""} and entry.isprintable() for entry in entries)


def _likely(entry: str, listings: Mapping[str, Listing], section: str) -> str:
    """Guesses what an entry that is no key was meant to be."""
    row = _ROW.search(entry) if section == "splits" else None
    plain = (entry if row is None else entry[: row.start()]).replace("\\", "/").removeprefix("./")
    every = [below(part, key) for part, listing in listings.items() for key in listing.keys]
    inside = plain
    for listing in listings.values():
        inside = inside.removeprefix(listing.root.rstrip("/") + "/")
    ends = [key for key in every if key == inside or key.endswith(f"/{inside}")]
    if not ends:
        name = inside.rpartition("/")[2]
        ends = close_names(inside, [key for key in every if key.rpartition("/")[2].casefold() == name.casefold()][:50])
    many = section == "splits" and any(listing.shards is not None for listing in listings.values())
    expected = "entries are relative paths" + (" with the number of a record behind them" if many else "")
    expected += f" such as {every[0] + '#0' * many!r}" if every else ""
    if not ends or (many and ends[0] == inside):
        return expected
    return f"{expected}; is {ends[0] + (row[0] if row is not None else '')!r} meant?"
