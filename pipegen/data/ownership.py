"""The folders and files that a spec names: claims on them, missing ones, and the places of findings about them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Label, Severity
from pipegen.files import is_foreign
from pipegen.kept import ForeignFolderError, claim
from pipegen.ops.sources.listing.wording import nearest_folder
from pipegen.spec.addresses import addresses_in
from pipegen.spec.models import DiskCache
from pipegen.spec.rebase import ADDRESS, SNAPSHOT, places
from pipegen.spec.source_map import format_path
from pipegen.spec.trust import REPORT

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.errors import OpError
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.source_map import KeyPath


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
    from pipegen.ops.sources.records.archives.archive import split_path

    found = []
    for path, value in source_paths(raw.get("source"), ("source",)):
        parts = value.split("/")
        plain = next((i for i, part in enumerate(parts) if _WILD.search(part)), len(parts))
        place = "/".join(parts[:plain]) or "/"
        try:
            if "://" in place or os.path.lexists(place) or split_path(place) is not None:  # a place in an archive
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
