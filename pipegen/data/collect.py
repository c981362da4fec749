"""From a spec to the manifest of its data: lists the source, leaves out what is excluded, deals out the splits, checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.check import check_splits
from pipegen.data.exclude import SECTIONS, excluded_keys, read_list
from pipegen.data.manifest import Manifest
from pipegen.data.places import argument, path_only
from pipegen.data.sampling.subset import with_subset
from pipegen.data.splits import assign, wrong_columns
from pipegen.data.verdict import judge
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Severity
from pipegen.errors import OpError, OpErrors
from pipegen.kept import INDEXES, kept_folder
from pipegen.memory import ram_budget
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.base import Listing
    from pipegen.ops.sources.strings import Ints
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


@dataclass(frozen=True)
class Collected:
    """Holds what is known about the data: the manifest, or `None` when an error stands in the way, and every finding.

    `assigned` is the manifest also when the errors came after the split assignment, for a closer look at the files.
    """

    manifest: Manifest | None
    diagnostics: Diagnostics
    assigned: Manifest | None = None


def collect(
    spec: PipelineSpec,
    *,
    locate: Locate = path_only,
    base: Path | None = None,
    progress: Callable[[int], None] | None = None,
    data: Mapping[str, object] | None = None,
) -> Collected:
    """List the data of a spec and deal it out to splits. Names and sizes are read, no pixels.

    Args:
        spec: The spec; where `check_splits` finds its splits in error, those findings come back alone.
        locate: Finds the places that findings point at.
        base: What relative paths are relative to; the working directory by default.
        progress: Called with the number of files seen so far, now and then.
        data: The arrays of a source that takes them from Python.
    """
    base = base or Path.cwd()
    spec.source.keep_index_in(kept_folder(spec.runtime, INDEXES))
    diagnostics = Diagnostics([d for d in check_splits(spec, locate) if d.severity is Severity.ERROR and d.code != "PG220"])
    if diagnostics.has_errors:
        return Collected(None, diagnostics)
    try:
        listing = _list(spec, base, progress, data)
    except OpError as error:
        diagnostics.extend(make(e.code, e.message, locate(argument(spec, e.field)), help=e.help or ()) for e in error.every)
        diagnostics.extend(_beside(spec, error, base, locate))
        return Collected(None, diagnostics)
    diagnostics.extend(_notes(spec, listing, locate))
    excluded, findings = excluded_keys(spec, listing, base, locate)
    diagnostics.extend(findings)
    if excluded:
        listing = listing.take(np.flatnonzero(np.fromiter((key not in excluded for key in listing.keys), bool, len(listing.keys))))
    if diagnostics.has_errors:
        return Collected(None, diagnostics)
    try:
        manifest = _dealt(spec, listing, excluded)
        manifest, findings = _without_copies(spec, manifest, base, locate, excluded)
        manifest, further = _narrowed(spec, manifest, locate)
    except OpError as error:
        path = ("splits", *error.field.split(".")) if error.field is not None else ("source",)
        diagnostics.add(make(error.code, error.message, locate(path), help=error.help or ()))
        return Collected(None, diagnostics)
    diagnostics.extend([*judge(spec, manifest, locate), *findings, *further])
    return Collected(None if diagnostics.has_errors else manifest, diagnostics, manifest)


def _dealt(spec: PipelineSpec, listing: Listing, excluded: Iterable[str]) -> Manifest:
    """The records with their splits.

    Raises:
        OpError: As `assign`.
    """
    if listing.shards is not None:
        from pipegen.data.shards.manifest import sharded_manifest

        return sharded_manifest(spec, listing, tuple(sorted(excluded)))
    return Manifest(listing, assign(spec.splits, listing, spec.split_names()), spec.source.op, tuple(sorted(excluded)))


def _without_copies(
    spec: PipelineSpec, manifest: Manifest, base: Path, locate: Locate, gone: frozenset[str]
) -> tuple[Manifest, list[Diagnostic]]:
    """The manifest without the records that `splits.exclude` names, and what is wrong with the list; all others are where they were."""
    listing = manifest.listing
    keys, findings = excluded_keys(spec, listing, base, locate, "splits", gone)
    if not keys:
        return manifest, findings
    if listing.shards is not None:
        message = f"`splits.exclude` leaves out single records, and those of `{spec.source.op}` lie many in a file"
        return manifest, [make("PG413", message, locate(("splits", "exclude")), help="`errors: {exclude: FILE}` leaves out whole files")]
    stays = np.fromiter((key not in keys for key in listing.keys), bool, len(listing.keys))
    members = {split: records[stays[records]] for split, records in manifest.members.items()}
    inside: Ints = np.zeros(len(stays), bool)
    inside[np.concatenate([*manifest.members.values()])] = True
    left_out = tuple(listing.keys.take(np.flatnonzero(inside & ~stays)))
    return replace(manifest, members=members, left_out=left_out), findings


def _narrowed(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> tuple[Manifest, list[Diagnostic]]:
    """The manifest with the examples of the training split that the spec trains on, and what stands in the way."""
    try:
        return with_subset(manifest, spec.sampling.subset if spec.sampling is not None else None), []
    except OpError as error:
        at = ("sampling", "subset", *((error.field,) if error.field is not None else ()))
        return manifest, [make(error.code, error.message, locate(at), help=error.help or ())]


def _list(spec: PipelineSpec, base: Path, progress: Callable[[int], None] | None, data: Mapping[str, object] | None) -> Listing:
    """The listing of the source; `method: folder` looks one level deeper for the classes.

    Raises:
        OpError: As `Source.list`.
    """
    if data is not None and not spec.source.needs_data():
        message = f"`build(data=)` was given arrays, and the source `{spec.source.op}` reads files"
        raise OpError("PG418", message, help="leave `data` out; `arrays` without a `path` and `dataframe` take it")
    _refuse_bombs(spec, base)
    if spec.splits.method == "folder":
        folders = {split: str(folder).strip("/") for split, folder in spec.splits.parts.items()}
        return spec.source.list_parts(base, folders, progress)
    return spec.source.list(base, progress, data)


def _refuse_bombs(spec: PipelineSpec, base: Path) -> None:
    """Checks that what has to be unpacked fits the RAM budget, before it is unpacked.

    Raises:
        OpError: `PG410`.
    """
    need = spec.source.unpacked(base)
    budget = ram_budget(spec.runtime) if need else 0
    if need > budget:
        message = f"the compressed arrays take {format_bytes(need)} in memory, and the RAM budget is {format_bytes(budget)}"
        help_ = "`np.savez` writes them uncompressed: then they are read from the disk as they are needed"
        raise OpError("PG410", message, field="path" if "path" in type(spec.source).model_fields else None, help=help_)


def _beside(spec: PipelineSpec, error: OpError, base: Path, where: Locate) -> list[Diagnostic]:
    """Reports what is wrong with the list of excluded files and the columns that splits name, though the records could not be listed."""
    found = [finding for section in SECTIONS for finding in read_list(spec, base, where, section)[1]]
    if isinstance(error, OpErrors) and error.cells is not None:
        wrong = wrong_columns(spec.splits, error.cells)
        found += [make(e.code, e.message, where(("splits", *(e.field or "").split("."))), help=e.help or ()) for e in wrong]
    return found


def _notes(spec: PipelineSpec, listing: Listing, locate: Locate) -> list[Diagnostic]:
    return [
        make(
            note.code,
            note.message,
            locate(argument(spec, note.field)),
            help=note.help or (),
            severity=Severity(note.severity) if note.severity is not None else None,
        )
        for note in listing.notes
    ]
