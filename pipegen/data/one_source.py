"""The records of one source: lists them, leaves out excluded ones, assigns splits, checks. A mix has several sources."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.exclude import SECTIONS, excluded_keys, read_list, read_values
from pipegen.data.image_sides import with_orientations
from pipegen.data.manifest import Manifest
from pipegen.data.ownership import argument, finding_of, place_within
from pipegen.data.remote.localise import localised
from pipegen.data.rounding import exact
from pipegen.data.sampling import with_subset
from pipegen.data.splits import assign, wrong_columns
from pipegen.data.verdict import check_assignment, far_from_asked
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Severity, write
from pipegen.errors import OpError, OpErrors
from pipegen.frozen import dataclass
from pipegen.memory import ram_budget
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.spec.models import MissingFraction
from pipegen.spec.source_map import format_path
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import Errors, PipelineSpec


_LIST = "or name those to leave out: `pipegen validate SPEC --data --write-exclude missing.txt`, then `errors: {exclude: missing.txt}`"


def without_missing(errors: Errors, listing: Listing) -> tuple[Listing | None, tuple[str, ...], tuple[Note, ...]]:
    """Leaves out the records that lack a file.

    Returns:
        The other records, or `None` if none is left (or none of a split that has its own source); the keys of those that lack a file;
        and a note about each group of them: a warning if the spec drops them, else an error.
    """
    if not listing.missing:
        return listing, (), ()
    gone: Ints = np.zeros(len(listing.keys), bool)
    for group in listing.missing:
        if group.records is not None:
            gone[group.records] = True
    unlisted = sum(len(group.keys) for group in listing.missing if group.records is None)
    is_left = not any(gone[own].all() for own in (slice(None), *_parts(listing)) if gone[own].size)
    # The limit holds for each split with its own source, and for all records together.
    counts = [(int(gone.sum()) + unlisted, len(gone) + unlisted), *((int(gone[own].sum()), int(own.sum())) for own in _parts(listing))]
    over = [(lost, total) for lost, total in counts if lost > exact(errors.most_missing) * total]
    drops = is_left and not over
    why = ""
    if isinstance(errors.missing, MissingFraction) and is_left and over:
        lost, total = over[-1]
        why = f"; {lost:,} of {total:,} is more than `max_fraction: {errors.missing.max_fraction:g}` allows"
    if errors.missing != "raise" and not is_left:
        none = "no record" if gone.all() else "no record of a split"
        why = f"; leaving them out, as `errors.missing` asks, would leave {none}"
    ways_out = (write("errors: {missing: drop}", "spec", "or leave them out, with a warning: {}"), _LIST) if is_left else ()
    notes = tuple(_note(group, _total(group, listing, unlisted), why, drops=drops, ways_out=ways_out) for group in listing.missing)
    keys = tuple(dict.fromkeys(key for group in listing.missing for key in group.keys))
    if not is_left:
        return None, keys, notes
    left = listing.take(np.flatnonzero(~gone)) if gone.any() else listing
    return replace(left, missing=(), notes=(*listing.notes, *notes)), keys, notes


def _parts(listing: Listing) -> list[Ints]:
    """Masks of the records of each split that has its own source, bool `(n,)`; empty if one source has all."""
    return [] if listing.parts is None else [listing.parts.codes == code for code in range(len(listing.parts.names))]


def _total(group: Missing, listing: Listing, unlisted: int) -> int:
    """Counts the records that could be in a group: those of its splits if each has its own source, else all."""
    if group.records is None or listing.parts is None:
        return len(listing.keys) + unlisted
    return sum(int(own.sum()) for own in _parts(listing) if own[group.records].any())


def _note(group: Missing, total: int, why: str, *, drops: bool, ways_out: tuple[str, ...]) -> Note:
    n, (one, several) = len(group.keys), group.what
    message = group.example(0)
    if n > 1:
        message += f"; {n:,} of {total:,} {several} lack {group.lack}"
    if drops:
        message += " and are left out" if n > 1 else "; it is left out"
    help_ = group.help if drops else (*group.help, *ways_out)
    left_out = LeftOut(n, f"{one} that lacks {group.lack}", f"{several} that lack {group.lack}")
    return Note(group.code, message + why, help_, group.field, "warning" if drops else "error", (left_out,))


@dataclass(frozen=True)
class Collected:
    """The manifest of the data (`None` after an error) and every finding.

    `assigned` is the manifest also if the errors came after the split assignment, or are about records that lack a file:
    the other files can still be looked at.
    """

    manifest: Manifest | None
    diagnostics: Diagnostics
    assigned: Manifest | None = None
    missing: tuple[str, ...] = ()
    """Keys of records that lack a file."""
    lost: tuple[Diagnostic, ...] = ()
    """Findings about these."""
    excluded: tuple[str, ...] = ()
    """Keys that `errors.exclude` left out."""


def collected(manifest: Manifest | None, diagnostics: Diagnostics, missing: Sequence[str], lost: Sequence[Diagnostic]) -> Collected:
    """Puts the results together; the manifest keeps the findings that are not errors."""
    if manifest is not None:
        manifest = replace(manifest, findings=tuple(d for d in diagnostics.items if d.severity is not Severity.ERROR))
    left_out = manifest.excluded if manifest is not None else ()
    return Collected(None if diagnostics.has_errors else manifest, diagnostics, manifest, tuple(missing), tuple(lost), left_out)


def list_part(
    spec: PipelineSpec, locate: Locate, base: Path, progress: Callable[[int], None] | None, data: Mapping[str, object] | None
) -> tuple[Listing | None, Diagnostics]:
    """Lists the records of a source, or of one part of a mix; for arguments see `collect`."""
    diagnostics = Diagnostics()
    try:
        local = localised(spec.source, spec.runtime)
        spec = spec.model_copy(update={"source": local.source})
        with local.errors_named():
            listing = with_orientations(spec, local.listing(_list(spec, base, progress, data)), progress)
    except OpError as error:
        diagnostics.extend(finding_of(e, locate(argument(spec, e.field))) for e in error.every)
        listed = error.listing if isinstance(error, OpErrors) else None
        diagnostics.extend(_beside(spec, error, None if listed is None else local.listing(listed), base, locate))
        return None, diagnostics
    diagnostics.extend(findings_of(spec, listing.notes, locate))
    return (None if diagnostics.has_errors else listing), diagnostics


def chosen(
    spec: PipelineSpec, listing: Listing, excluded: frozenset[str], locate: Locate, *, late_files: bool = False
) -> tuple[Listing | None, tuple[str, ...], list[Diagnostic]]:
    """Leaves out the records whose keys are `excluded`, and those that lack a file.

    With `late_files`, the latter stay, and reading them is an error later.

    Returns:
        The records that are left, or `None`; the keys of those that lack a file; and findings about these.
    """
    if excluded:
        listing = listing.take(np.flatnonzero(np.fromiter((key not in excluded for key in listing.keys), bool, len(listing.keys))))
        missing = tuple(group for group in (_not_excluded(each, excluded) for each in listing.missing) if len(group.keys))
        listing = replace(listing, excluded=excluded, missing=missing)
    if late_files:
        return replace(listing, missing=()), (), []
    left, keys, notes = without_missing(spec.errors, listing)
    return left, keys, findings_of(spec, notes, locate)


def _not_excluded(group: Missing, excluded: frozenset[str]) -> Missing:
    """Drops the excluded keys of a group of files without a record; records are dropped from the listing instead."""
    return group if group.records is not None else group.only(np.flatnonzero([key not in excluded for key in group.keys]))


def collect_part(
    spec: PipelineSpec, listing: Listing, locate: Locate, base: Path, name: str | None = None, also: frozenset[str] = frozenset()
) -> tuple[Manifest | None, Diagnostics]:
    """Assigns listed records to splits and checks the splits.

    Ids are made from `name`, that of a part in a mix and by default the source's, and the keys. `also` are keys to leave out besides those
    that `splits.exclude` names.
    """
    diagnostics = Diagnostics()
    try:
        read_values(spec.splits, base)
        manifest = _dealt(spec, listing, name or spec.source.op)
        far = far_from_asked(spec, manifest, locate)
        manifest, findings = _without_copies(spec, manifest, base, locate, also)
        manifest, further = _narrowed(spec, manifest, locate)
    except OpError as error:
        path = place_within(spec, error.field, "splits") if error.field is not None else ("source",)
        diagnostics.add(finding_of(error, locate(path)))
        return None, diagnostics
    diagnostics.extend([*check_assignment(spec, manifest, locate), *far, *findings, *further])
    if listing.shards is not None and not diagnostics.has_errors:
        diagnostics.extend(_read(manifest, column, path, locate) for column, path in spec.columns().items())
    return manifest, diagnostics


def _read(manifest: Manifest, column: str, path: tuple[str, ...], locate: Locate) -> Diagnostic:
    """Reports that a column of records had to be read."""
    message = f"{column!r} was read once from all {manifest.total:,} records, for `{format_path(path)}`"
    return make("PG432", message, locate(path), help="it is read again if the files change")


def _dealt(spec: PipelineSpec, listing: Listing, name: str) -> Manifest:
    if listing.shards is not None:
        from pipegen.data.shard_manifest import sharded_manifest

        return sharded_manifest(spec, listing, name)
    return Manifest(listing, assign(spec.splits, listing, spec.split_names()), name, tuple(sorted(listing.excluded)))


def _without_copies(
    spec: PipelineSpec, manifest: Manifest, base: Path, locate: Locate, also: frozenset[str]
) -> tuple[Manifest, list[Diagnostic]]:
    """Removes the records of `splits.exclude` and `also` from their splits; returns the findings about the list, too."""
    listing = manifest.listing
    keys, findings = excluded_keys(spec, {"": listing}, base, locate, "splits", frozenset(listing.excluded))
    keys |= also
    if not keys:
        return manifest, findings
    if listing.shards is not None:
        from pipegen.data.shard_manifest import ShardedManifest, without_records

        assert isinstance(manifest, ShardedManifest)  # noqa: S101 - as `_dealt` makes it
        return without_records(manifest, keys), findings
    stays = np.fromiter((key not in keys for key in listing.keys), bool, len(listing.keys))
    members = {split: records[stays[records]] for split, records in manifest.members.items()}
    inside: Ints = np.zeros(len(stays), bool)
    inside[np.concatenate([*manifest.members.values()])] = True
    left_out = tuple(listing.keys.take(np.flatnonzero(inside & ~stays)))
    return replace(manifest, members=members, left_out=left_out), findings


def _narrowed(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> tuple[Manifest, list[Diagnostic]]:
    """Applies `sampling.subset` to the training split."""
    try:
        return with_subset(manifest, spec.sampling.subset if spec.sampling is not None else None), []
    except OpError as error:
        at = ("sampling", "subset", *((error.field,) if error.field is not None else ()))
        return manifest, [finding_of(error, locate(at))]


def _list(spec: PipelineSpec, base: Path, progress: Callable[[int], None] | None, data: Mapping[str, object] | None) -> Listing:
    """Lists the source; `method: folder` looks one level deeper for the classes.

    Raises:
        OpError: As `Source.list`.
    """
    if data is not None and not spec.source.needs_data():
        message = f"`build(data=)` needs a source that takes arrays, and `{spec.source.op}` reads files"
        raise OpError("PG418", message, help="leave `data` out; `arrays` without a `path` and `dataframe` take it")
    _check_unpacked_size(spec, base)
    if spec.splits.method == "folder":
        folders = {split: str(folder).strip("/") for split, folder in spec.splits.parts.items()}
        return spec.source.list_parts(base, folders, progress)
    return spec.source.list(base, progress, data)


def _check_unpacked_size(spec: PipelineSpec, base: Path) -> None:
    """Checks that compressed arrays fit the RAM budget, before they are unpacked.

    Raises:
        OpError: `PG410`.
    """
    need = spec.source.unpacked(base)
    budget = ram_budget(spec.runtime) if need else 0
    if need > budget:
        message = f"the compressed arrays take {format_bytes(need)} in memory, and the RAM budget is {format_bytes(budget)}"
        help_ = "write them uncompressed, with `np.savez`: then they are read from the disk when needed"
        raise OpError("PG410", message, field="path" if "path" in type(spec.source).model_fields else None, help=help_)


def _beside(spec: PipelineSpec, error: OpError, listed: Listing | None, base: Path, where: Locate) -> list[Diagnostic]:
    """After an error of the listing, also checks the list of excluded files, the files listed so far, and the columns of `splits`."""
    found = [finding for section in SECTIONS for finding in read_list(spec, base, where, section)[1]]
    if listed is not None:
        found += chosen(spec, listed, excluded_keys(spec, {"": listed}, base, where)[0], where)[2]
    if isinstance(error, OpErrors) and error.cells is not None:
        wrong = wrong_columns(spec.splits, error.cells)
        found += [finding_of(e, where(("splits", *(e.field or "").split(".")))) for e in wrong]
    return found


def findings_of(spec: PipelineSpec, notes: Sequence[Note], locate: Locate) -> list[Diagnostic]:
    """Turns notes of a listing into findings."""
    found = []
    for note in notes:
        severity = Severity(note.severity) if note.severity is not None else None
        found.append(make(note.code, note.message, locate(argument(spec, note.field)), help=note.help or (), severity=severity))
    return found
