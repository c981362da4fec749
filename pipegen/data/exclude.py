"""Reads the file of records to leave out: relative paths, one a line; `#` starts a comment line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.ops.sources.reports import close_names, count, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.data.places import Locate
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.base import Listing
    from pipegen.spec.models import PipelineSpec

_FIELD = ("errors", "exclude")


def excluded_keys(spec: PipelineSpec, listing: Listing, base: Path, locate: Locate) -> tuple[frozenset[str], list[Diagnostic]]:
    """The keys that `errors.exclude` names, and a `PG413` finding when the file or an entry is no good."""
    if spec.errors.exclude is None:
        return frozenset(), []
    path = str(base / spec.errors.exclude)
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError as error:
        message = f"the list of excluded files {path!r} cannot be read: {error.strerror or error}"
        return frozenset(), [make("PG413", message, locate(_FIELD), help="`pipegen validate --data` writes one; or leave `exclude` out")]
    known = set(listing.keys)
    stripped = (line if line in known else line.strip() for line in lines if not line.startswith("#"))
    entries = dict.fromkeys(line for line in stripped if line)
    unknown = [entry for entry in entries if entry not in known]
    keys = frozenset(entry for entry in entries if entry in known)
    if not unknown:
        return keys, []
    message = f"{count(len(unknown), 'entry', 'entries')} of {path!r} {'is' if len(unknown) == 1 else 'are'} no record: {quoted(unknown)}"
    return keys, [make("PG413", message, locate(_FIELD), help=_likely(unknown[0], listing))]


def _likely(entry: str, listing: Listing) -> str:
    """What was probably meant by an entry that is no key."""
    plain = entry.replace("\\", "/").removeprefix("./")
    inside = plain.removeprefix(listing.root.rstrip("/") + "/")
    ends = [key for key in listing.keys if key == inside or key.endswith(f"/{inside}")]
    if not ends:
        name = inside.rpartition("/")[2]
        ends = close_names(inside, [key for key in listing.keys if key.rpartition("/")[2].casefold() == name.casefold()][:50])
    expected = f"entries are relative paths such as {listing.keys[0]!r}" if listing.keys else "entries are relative paths"
    return f"{expected}; is {ends[0]!r} meant?" if ends else expected
