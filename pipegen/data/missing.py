"""Folders and files that a spec names and that are not there, found without reading any."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Severity
from pipegen.ops.sources.listing.wording import nearest_folder
from pipegen.spec.rebase import ADDRESS, SNAPSHOT, places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locate
    from pipegen.spec.source_map import KeyPath

_WILD = re.compile(r"[*?\[]")


def missing_data(raw: dict[str, Any], locate: Locate) -> list[Diagnostic]:
    """Returns notes on the paths of a source that lead nowhere on this machine; the spec is plain values, with absolute paths."""
    found = []
    for path, value in source_paths(raw.get("source"), ("source",)):
        parts = value.split("/")
        plain = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts))
        place = "/".join(parts[:plain]) or "/"
        try:
            if "://" in place or os.path.lexists(place) or _in_archive(place):
                continue
        except ValueError:
            continue
        what = "folder" if value.endswith("/") or not os.path.splitext(place)[1] else "file"
        message = f"there is no {what} {place!r} on this machine"
        found.append(make("PG401", message, locate(path), help=nearest_folder(place), severity=Severity.INFO))
    return found


def _in_archive(place: str) -> bool:
    """Tells whether a path leads into an archive that is there, which is not opened."""
    from pipegen.ops.sources.records.archives.archive import split_path

    return split_path(place) is not None


def source_paths(node: Any, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Returns the paths among the arguments of a source, with where they stand."""
    for holder, key, here in places(node, at):
        value = holder[key]
        if key not in (ADDRESS, SNAPSHOT):
            several = value if isinstance(value, list) else [value]
            yield from ((here, one) for one in several if isinstance(one, str) and one)
