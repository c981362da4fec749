"""From a spec to the manifest of its data: lists each source, leaves out excluded and missing records, assigns the splits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pipegen.data.buckets import judge_buckets
from pipegen.data.image_sides import ignores_exif, with_orientations, with_sides
from pipegen.data.lengths import with_lengths, with_longest, without_too_long
from pipegen.data.manifest import Manifest, ShardedManifest, record_numbers, sharded_manifest, without_records
from pipegen.data.mixed_manifest import MixedManifest, SplitManifests, mixed_manifest, split_manifests
from pipegen.data.named_files import (
    HEADERS,
    argument,
    below,
    claim_places,
    excluded_keys,
    finding_of,
    path_only,
    place_within,
    read_list,
    read_values,
)
from pipegen.data.remote.localise import localised
from pipegen.data.rounding import exact
from pipegen.data.sampling import with_subset
from pipegen.data.split_checks import check_splits
from pipegen.data.splits import assign
from pipegen.data.time_splits import by_time
from pipegen.data.verdict import check_assignment, far_from_asked
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Severity, write
from pipegen.errors import Attempts, OpError, OpErrors
from pipegen.frozen import dataclass
from pipegen.kept import INDEXES, kept_folder
from pipegen.memory import ram_budget
from pipegen.ops.fields.notes import LeftOut, Note
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import Levels, having
from pipegen.ops.sources.listing.base import Listing, Missing, unlabelled_records
from pipegen.ops.sources.parts.adapted import counts_classes, filled, item_classes, merge_classes
from pipegen.spec.locate import Locate
from pipegen.spec.models import Errors, MissingFraction, PipelineSpec
from pipegen.spec.source_map import format_path
from pipegen.spec.units import format_bytes
from pipegen.spec.variants import PartSource, joined, part_path, relocated_part

T = TypeVar("T")
_LIST = "or name those to leave out: `pipegen validate SPEC --data --write-exclude missing.txt`, then `errors: {exclude: missing.txt}`"


def without_missing(errors: Errors, listing: Listing) -> tuple[Listing | None, tuple[str, ...], tuple[Note, ...]]:
    """Leaves out the records that lack a file. Returns the other records, or `None` if none is left (or none of a split that has its own
    source); the keys of those that lack a file; and a note about each group of them: a warning if the spec drops them, else an error."""
    if not listing.missing:
        return listing, (), ()
    gone: Ints = np.zeros(len(listing.keys), bool)
    gone[np.concatenate([np.zeros(0, np.int64), *(group.records for group in listing.missing if group.records is not None)])] = True
    unlisted = sum(len(group.keys) for group in listing.missing if group.records is None)
    # Masks of the records of each split that has its own source.
    parts = [] if listing.parts is None else [listing.parts.codes == code for code in range(len(listing.parts.names))]
    is_left = not any(gone[own].all() for own in (slice(None), *parts) if gone[own].size)
    # The limit holds for each split with its own source, and for all records together.
    counts = [(int(gone.sum()) + unlisted, len(gone) + unlisted), *((int(gone[own].sum()), int(own.sum())) for own in parts)]
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

    def note(group: Missing) -> Note:
        n, (one, several), total = len(group.keys), group.what, len(listing.keys) + unlisted
        if group.records is not None and parts:  # only records of some splits could be in the group
            total = sum(int(own.sum()) for own in parts if own[group.records].any())
        message = group.example(0)
        if n > 1:
            message += f"; {n:,} of {total:,} {several} lack {group.lack}"
        if drops:
            message += " and are left out" if n > 1 else "; it is left out"
        help_ = group.help if drops else (*group.help, *ways_out)
        left_out = LeftOut(n, f"{one} that lacks {group.lack}", f"{several} that lack {group.lack}")
        return Note(group.code, message + why, help_, group.field, "warning" if drops else "error", (left_out,))

    notes = tuple(map(note, listing.missing))
    keys = tuple(dict.fromkeys(key for group in listing.missing for key in group.keys))
    if not is_left:
        return None, keys, notes
    left = listing.take(np.flatnonzero(~gone)) if gone.any() else listing
    return replace(left, missing=(), notes=(*listing.notes, *notes)), keys, notes


@dataclass(frozen=True)
class Collected:
    """The manifest of the data (`None` after an error) and every finding.

    `assigned` is the manifest also if the errors came after the split assignment, or are about records that lack a file:
    the other files can still be looked at.
    """

    manifest: Manifest | None
    diagnostics: Diagnostics
    assigned: Manifest | None = None
    missing: tuple[str, ...] = ()  # keys of records that lack a file
    lost: tuple[Diagnostic, ...] = ()  # findings about these
    excluded: tuple[str, ...] = ()  # keys that `errors.exclude` left out


def _list_part(
    spec: PipelineSpec,
    locate: Locate,
    base: Path,
    progress: Callable[[int], None] | None,
    data: Mapping[str, object] | None,
    diagnostics: Diagnostics,
) -> Listing | None:
    """Lists the records of a source, or of one part of a mix; for arguments see `collect`. Adds its findings to `diagnostics`."""
    try:
        local = localised(spec.source, spec.runtime)
        spec = spec.model_copy(update={"source": local.source})
        with local.errors_named():
            listing = with_orientations(spec, local.listing(_list(spec, base, progress, data)), progress)
    except OpError as error:
        diagnostics.extend(finding_of(e, locate(argument(spec, e.field))) for e in error.every)
        # The list of excluded files, the files listed so far, and the columns of `splits` are checked, too.
        diagnostics.extend(finding for section in HEADERS for finding in read_list(spec, base, locate, section)[1])
        if isinstance(error, OpErrors) and error.listing is not None:
            listing = local.listing(error.listing)
            diagnostics.extend(_chosen(spec, listing, excluded_keys(spec, {"": listing}, base, locate, "errors")[0], locate)[2])
        if isinstance(error, OpErrors) and error.cells is not None:
            tried = Attempts()
            for field, column in spec.splits.columns().items():
                tried.of(error.cells, column, field)
            diagnostics.extend(finding_of(e, locate(("splits", *(e.field or "").split(".")))) for e in tried.errors)
        return None
    found = _findings_of(spec, listing.notes, locate)
    diagnostics.extend(found)
    return None if any(finding.severity is Severity.ERROR for finding in found) else listing


def _chosen(
    spec: PipelineSpec, listing: Listing, excluded: frozenset[str], locate: Locate, *, late_files: bool = False
) -> tuple[Listing | None, tuple[str, ...], list[Diagnostic]]:
    """Leaves out the records whose keys are `excluded`, and those that lack a file.

    With `late_files`, the latter stay, and reading them is an error later. Returns the records that are left, or `None`; the keys of those
    that lack a file; and findings about these."""
    if excluded:
        listing = listing.take(np.flatnonzero(np.fromiter((key not in excluded for key in listing.keys), bool, len(listing.keys))))
        # `take` leaves the files without a record, which are known by their keys alone.
        unlisted = (g if g.records is not None else g.only(np.flatnonzero([k not in excluded for k in g.keys])) for g in listing.missing)
        by_split = {
            split: replace(own, excluded=frozenset(key for key in excluded if key.startswith(f"{split}/")))
            for split, own in listing.by_split.items()
        }
        listing = replace(listing, excluded=excluded, missing=tuple(group for group in unlisted if len(group.keys)), by_split=by_split)
    if late_files:
        return replace(listing, missing=()), (), []
    left, keys, notes = without_missing(spec.errors, listing)
    return left, keys, _findings_of(spec, notes, locate)


def _collect_part(
    spec: PipelineSpec, listing: Listing, locate: Locate, base: Path, name: str, also: frozenset[str], diagnostics: Diagnostics
) -> Manifest | None:
    """Assigns listed records to splits and checks the splits. Adds its findings to `diagnostics`.

    Ids are made from the keys and `name`, that of a part in a mix, or from the source's if it is "". `also` are keys to leave out besides
    those that `splits.exclude` names.
    """
    if name:  # a part need not fill a batch alone
        spec = spec.model_copy(update={"batch": spec.batch.model_copy(update={"size": 1, "remainder": None})})
    try:
        read_values(spec.splits, base)
        manifest = _members(spec, listing, name or spec.source.op, spec.split_names())
        far = far_from_asked(spec, manifest, locate)
        copies, findings = excluded_keys(spec, {"": listing}, base, locate, "splits", frozenset(listing.excluded))
        of_splits = (note for note in manifest.listing.notes if note not in listing.notes and note.severity != "info")
        findings += _findings_of(spec, [*of_splits], locate)
        manifest = _without(manifest, copies | also)
        try:
            manifest = with_subset(manifest, spec.sampling.subset if spec.sampling is not None else None)
        except OpError as error:
            at = ("sampling", "subset", *((error.field,) if error.field is not None else ()))
            findings.append(finding_of(error, locate(at)))
    except OpError as error:
        path = place_within(spec, error.field, "splits") if error.field is not None else ("source",)
        diagnostics.add(finding_of(error, locate(path)))
        return None
    found = [*check_assignment(spec, manifest, locate), *far, *findings]
    diagnostics.extend(found)
    is_sound = all(finding.severity is not Severity.ERROR for finding in found)
    for column, path in spec.columns().items() if listing.shards is not None and is_sound else ():
        message = f"{column!r} was read once from all {manifest.total:,} records, for `{format_path(path)}`"
        diagnostics.add(make("PG432", message, locate(path), help="it is read again if the files change"))
    return manifest


def _members(spec: PipelineSpec, listing: Listing, name: str, splits: tuple[str, ...]) -> Manifest:
    """Assigns listed records to splits; ids are made from the keys and `name`. Raises `OpError` as `assign`."""
    if listing.by_split:
        if spec.splits.group is not None:
            sharded_manifest(spec, listing, name, splits)  # refuses a group that is in several splits
        return split_manifests(listing, {split: _members(spec, own, name, (split,)) for split, own in listing.by_split.items()}, name)
    if listing.shards is not None:
        return sharded_manifest(spec, by_time(spec.splits, listing), name, splits)
    members = assign(spec.splits, listing, splits, unlabelled_records(spec.source, listing))
    return Manifest(listing, members, name, tuple(sorted(listing.excluded)))


def _without(manifest: Manifest, keys: frozenset[str]) -> Manifest:
    """Removes records from their splits, and those of shards that `errors.exclude` names."""
    listing = manifest.listing
    if isinstance(manifest, SplitManifests):
        return split_manifests(listing, {split: _without(own, keys) for split, own in manifest.parts.items()}, manifest.source_name)
    if isinstance(manifest, ShardedManifest):
        keys |= {*record_numbers(listing, listing.excluded)}
        return without_records(manifest, keys) if keys else manifest
    stays = np.fromiter((key not in keys for key in listing.keys), bool, len(listing.keys)) if keys else np.ones(0, bool)
    if stays.all():
        return manifest
    members = {split: records[stays[records]] for split, records in manifest.members.items()}
    inside: Ints = np.zeros(len(stays), bool)
    inside[np.concatenate([*manifest.members.values()])] = True
    left_out = tuple(listing.keys.take(np.flatnonzero(inside & ~stays)))
    return replace(manifest, members=members, left_out=left_out)


def _list(spec: PipelineSpec, base: Path, progress: Callable[[int], None] | None, data: Mapping[str, object] | None) -> Listing:
    """Lists the source; `method: folder` looks one level deeper for the classes. Raises `OpError` as `Source.list`; `PG410` for compressed
    arrays larger than the RAM budget, before they are unpacked."""
    if data is not None and not spec.source.needs_data():
        message = f"`build(data=)` needs a source that takes arrays, and `{spec.source.op}` reads files"
        raise OpError("PG418", message, help="leave `data` out; `arrays` without a `path` and `dataframe` take it")
    need = spec.source.unpacked(base)
    budget = ram_budget(spec.runtime) if need else 0
    if need > budget:
        message = f"the compressed arrays take {format_bytes(need)} in memory, and the RAM budget is {format_bytes(budget)}"
        help_ = "write them uncompressed, with `np.savez`: then they are read from the disk when needed"
        raise OpError("PG410", message, field="path" if "path" in type(spec.source).model_fields else None, help=help_)
    if spec.splits.method == "folder":
        folders = {split: str(folder).strip("/") for split, folder in spec.splits.parts.items()}
        return spec.source.list_parts(base, folders, progress)
    return spec.source.list(base, progress, data)


def _findings_of(spec: PipelineSpec, notes: Sequence[Note], locate: Locate) -> list[Diagnostic]:
    each = ((note, Severity(note.severity) if note.severity is not None else None) for note in notes)
    return [make(n.code, n.message, locate(argument(spec, n.field)), help=n.help or (), severity=severity) for n, severity in each]


def collect(
    spec: PipelineSpec,
    *,
    locate: Locate = path_only,
    base: Path | None = None,
    progress: Callable[[int], None] | None = None,
    data: Mapping[str, object] | None = None,
    late_files: bool = False,
) -> Collected:
    """Lists the data of a spec and assigns it to splits. Reads names and sizes, but no pixels.

    Errors of `check_splits` are returned alone. Relative paths start at `base`, by default the working directory. For the other arguments
    see `phases.compilation.collect_data`.
    """
    base = base or Path.cwd()
    diagnostics = Diagnostics([d for d in check_splits(spec, locate) if d.severity is Severity.ERROR and d.code != "PG220"])
    diagnostics.extend(claim_places(spec, locate))
    if diagnostics.has_errors:
        return Collected(None, diagnostics)
    mixed = spec.source.mixed()
    # A single source is a part named "".
    every = {name: (joined(spec, name), relocated_part(locate, spec, name)) for name in mixed} or {"": (spec, locate)}
    listings: dict[str, Listing] = {}
    seen = 0
    for name, (own, at) in every.items():
        own.source.keep_index_in(kept_folder(spec.runtime.cache, INDEXES))
        later = None if progress is None else lambda n, seen=seen: progress(seen + n)
        given: Any = data
        if mixed:
            given = data.get(name) if own.source.needs_data() and isinstance(data, Mapping) else None
        listing = _list_part(own, at, base, later, given, diagnostics)
        if listing is not None and mixed and listing.by_split:
            message = "files hold many records each in some splits and one in others, which a part of a mix cannot have"
            help_ = "make a part of each split: `by_split` with this split alone, and `weight: 0` where it is not `train`"
            diagnostics.add(make("PG210", message, at(("source",)), help=help_))
        elif listing is not None:
            listings[name] = listing
            seen += len(listing.keys)
    if len(listings) < len(every):
        return Collected(None, diagnostics)
    excluded, unlisted = excluded_keys(spec, listings, base, locate, "errors")
    diagnostics.extend(unlisted)
    missing: list[str] = []
    lost: list[Diagnostic] = []
    for name, (own, at) in every.items():
        left, keys, found = _chosen(own, listings.pop(name), _of_part(name, excluded), at, late_files=late_files)
        lost += found
        missing += [below(name, key) for key in keys]
        if left is not None:
            listings[name] = left
    diagnostics.extend(lost)
    is_whole = not unlisted and len(listings) == len(every)
    manifest = _assigned(spec, every, listings, base, locate, diagnostics, progress) if is_whole else None
    left_out = tuple(sorted(excluded))
    if manifest is not None:
        manifest = replace(manifest, findings=tuple(d for d in diagnostics.items if d.severity is not Severity.ERROR))
        left_out = manifest.excluded
    return Collected(None if diagnostics.has_errors else manifest, diagnostics, manifest, tuple(missing), tuple(lost), left_out)


def _assigned(
    spec: PipelineSpec,
    every: Mapping[str, tuple[PipelineSpec, Locate]],
    listings: dict[str, Listing],
    base: Path,
    locate: Locate,
    diagnostics: Diagnostics,
    progress: Callable[[int], None] | None,
) -> Manifest | None:
    """Assigns the records of a source, or of each part of a mix, to splits; `None` after an error. Adds its findings to `diagnostics`."""
    mixed = spec.source.mixed()
    copies: frozenset[str] = frozenset()
    if mixed:
        gone = frozenset(below(name, key) for name, listing in listings.items() for key in listing.excluded)
        copies, wrong = excluded_keys(spec, listings, base, locate, "splits", gone)
        diagnostics.extend(wrong)
        listings = _united(spec, listings, locate, diagnostics)
    parts: dict[str, Manifest] = {}
    for name, listing in listings.items():
        own, at = every[name]
        manifest = _collect_part(own, listing, at, base, name, _of_part(name, copies), diagnostics)
        if manifest is not None:
            parts[name] = manifest
    if len(parts) < len(every):
        return None
    if mixed:
        made = mixed_manifest(spec, parts)
        diagnostics.extend(_judged(spec, made, locate))
        return made
    (manifest,) = parts.values()
    if diagnostics.has_errors:
        return manifest
    manifest, further = _of_splits(manifest, lambda own: _measured(spec, own, locate, progress))
    diagnostics.extend(further)
    manifest, further = with_longest(spec, manifest, locate)
    diagnostics.extend(further)
    if manifest.too_long and not diagnostics.has_errors:
        diagnostics.extend(d for d in check_assignment(spec, manifest, locate) if d.severity is Severity.ERROR)
    if not diagnostics.has_errors:
        diagnostics.extend(judge_buckets(spec, manifest, locate))
        for stage in spec.stages:
            staged, notes = in_stage(spec, stage.resolved, manifest)
            diagnostics.extend([*_findings_of(spec, notes, locate), *judge_buckets(stage.resolved, staged, locate)])
    return manifest


def _measured(
    spec: PipelineSpec, manifest: Manifest, locate: Locate, progress: Callable[[int], None] | None
) -> tuple[Manifest, list[Diagnostic]]:
    """Adds what buckets and padding need of each record, and leaves examples out that are too long; returns findings, too."""
    manifest, of_sides = with_sides(spec, manifest, locate, progress)
    manifest, of_lengths = with_lengths(spec, manifest, locate, progress)
    manifest, too_long = without_too_long(spec, manifest, locate)
    return manifest, [*of_sides, *of_lengths, *too_long]


def _of_part(name: str, keys: frozenset[str]) -> frozenset[str]:
    """Selects the keys of one part and drops their prefix."""
    start = below(name, "")
    return frozenset(key.removeprefix(start) for key in keys if key.startswith(start))


def _united(spec: PipelineSpec, listings: Mapping[str, Listing], locate: Locate, diagnostics: Diagnostics) -> dict[str, Listing]:
    """Renumbers labels by the classes of all parts, in the order of the parts, and adds the features that parts fill in."""
    classes: dict[str, tuple[str, ...]] = {}
    for listing in listings.values():
        for name, own in listing.classes.items():
            classes[name] = tuple(dict.fromkeys((*classes.get(name, ()), *own)))
    sources, found = {name: joined(spec, name).source for name in listings}, {}
    fills = {name: source.adapting.fill if isinstance(source, PartSource) else {} for name, source in sources.items()}
    known = [{*listing.classes, *listing.columns, *fills[name]} for name, listing in listings.items()]
    mains = [listing.label for listing in listings.values() if listing.label is not None]
    label = next((main for main in mains if all(main in own for own in known)), None)  # that all parts have
    for name, listing in listings.items():
        source = sources[name]
        others = any(own != classes[of_items] for of_items, own in item_classes(listing).items())
        if others and any(counts_classes(listing, column) for column in listing.columns):
            message = f"the part `{name}` has other classes than the mix, so the class numbers in its masks would be wrong"
            diagnostics.add(make("PG462", message, locate(part_path(name)), help="name them in each part: `classes: […]`"))
            continue
        made = merge_classes(listing, classes)
        if isinstance(source, PartSource):
            try:
                made = filled(made, source.adapting, classes)
            except OpError as error:
                at = (*part_path(name), *(error.field or "").split("."))
                diagnostics.add(finding_of(error, locate(at)))
        found[name] = made if label is None else replace(made, label=label)
    return found


def _judged(spec: PipelineSpec, made: MixedManifest, locate: Locate) -> Iterator[Diagnostic]:
    """Reports splits of the mix whose epoch is empty, too long, or shorter than a batch."""
    size = spec.batch.size
    for split in made.members:
        try:
            examples = made.epoch_examples(split)
        except OpError as error:
            yield finding_of(error, locate(("source", "mix", error.field or "epoch")))
            continue
        if examples < size and spec.batch.remainder_for(split) == "drop":
            message = f"an epoch of `{split}` has {examples} examples of all parts, fewer than one batch of {size}: no step is left"
            keep = f"or keep the smaller batch: `remainder: {{{split}: keep}}`"
            labels = [locate(("batch", "size"))]
            labels += [locate(("source", "mix", "epoch"), f"{examples} examples")] if split == "train" else []
            yield make("PG407", message, *labels, help=(f"lower `batch.size` to {examples} or less", keep))


def _of_splits(manifest: Manifest, change: Callable[[Manifest], tuple[Manifest, Sequence[T]]]) -> tuple[Manifest, Sequence[T]]:
    """Changes the manifest of each split, if these are stored in different ways, else the only one; returns what was found, too."""
    if not isinstance(manifest, SplitManifests):
        return change(manifest)
    each = {split: change(own) for split, own in manifest.parts.items()}
    parts = {split: own for split, (own, _) in each.items()}
    return split_manifests(manifest.listing, parts, manifest.source_name), [one for _, found in each.values() for one in found]


def in_stage(spec: PipelineSpec, stage: PipelineSpec, manifest: Manifest) -> tuple[Manifest, tuple[Note, ...]]:
    """Makes the manifest of a stage of training, with annotations turned as it decodes their images; returns notes, too."""
    if isinstance(manifest, MixedManifest):
        each = {name: in_stage(joined(spec, name), joined(stage, name), part) for name, part in manifest.parts.items()}
        if all(own is manifest.parts[name] for name, (own, _) in each.items()):
            return manifest, ()
        made = mixed_manifest(stage, {name: own for name, (own, _) in each.items()})
        mixed = replace(manifest, listing=made.listing, parts=made.parts, sampled=made.sampled)
        return mixed, tuple(note for _, notes in each.values() for note in notes)
    if isinstance(manifest, SplitManifests):
        apart, told = _of_splits(manifest, lambda own: in_stage(spec, stage, own))
        return apart, tuple(told)
    images = having(manifest.listing.type or spec.source.infer(), Levels)
    if all(ignores_exif(spec, image) == ignores_exif(stage, image) for image in images):
        return manifest, ()
    # Annotations lie on the image as `spec` decodes it; their size says so, and the stage turns them from there.
    listing = with_orientations(stage, replace(manifest.listing, notes=()), None)
    notes = listing.notes
    own, _ = with_sides(stage, replace(manifest, listing=replace(listing, notes=manifest.listing.notes), sides=None), path_only)
    return own, notes


_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")  # names and numbers, in which two findings of one kind differ
_SHOWN = 3  # kinds of one code that have a line each; further ones are counted


def warning_lines(manifest: Manifest) -> Iterator[str]:
    """Yields a line for each kind of warning about the data: an example, and their number."""
    kinds: dict[str, dict[str, list[Diagnostic]]] = {}
    for finding in manifest.findings:
        if finding.severity is Severity.WARNING:
            kinds.setdefault(finding.code, {}).setdefault(_PARTICULAR.sub("", finding.message), []).append(finding)
    for code, of_code in kinds.items():
        for first, *others in [*of_code.values()][:_SHOWN]:
            more = f" ({len(others)} more like this)" if others else ""
            yield f"{code} {first.span or first.labels[0].path or 'the spec'}: {first.message}{more}"
        rest = sum(map(len, [*of_code.values()][_SHOWN:]))
        if rest:
            yield f"{code}: {rest} more such finding{'s' * (rest > 1)}; `pipegen validate --data` shows all"


def left_out(manifest: Manifest) -> list[str]:
    """Counts the data that is in no split, a text for each reason."""
    counted: dict[tuple[str, str], int] = {}
    for part in manifest.by_part().values():
        by_the_spec = (
            LeftOut(len(part.excluded), "excluded entry", "excluded entries"),
            LeftOut(len({*part.left_out} - {*part.excluded}), "record that `splits.exclude` names", "records that `splits.exclude` names"),
            LeftOut(part.spared, "training example that `subset` leaves out", "training examples that `subset` leaves out"),
            LeftOut(part.too_long, "example longer than `batch.pad` allows", "examples longer than `batch.pad` allows"),
            LeftOut(part.unused, "example that no part asks for", "examples that no part asks for"),
        )
        for one in chain.from_iterable((*(note.left_out for note in part.listing.notes), by_the_spec)):
            counted[one[1:]] = counted.get(one[1:], 0) + one.number
    return [str(LeftOut(number, *words)) for words, number in counted.items() if number]
