"""From a spec to the manifest of its data: lists the source, leaves out excluded and missing records, assigns the splits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.data.exclude import excluded_keys
from pipegen.data.image_sides import ignores_exif, judge_buckets, with_orientations, with_sides
from pipegen.data.mixed_manifest import MixedManifest, collect_mixed, mixed_manifest
from pipegen.data.one_source import Collected, chosen, collect_part, collected, findings_of, list_part
from pipegen.data.ownership import claim_places, path_only
from pipegen.data.split_checks import check_splits
from pipegen.diagnostics.diagnostic import Diagnostics, Severity
from pipegen.kept import INDEXES, kept_folder
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.base import LeftOut
from pipegen.spec.variants import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.listing.base import Note
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


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
    if spec.source.mixed():
        return collect_mixed(spec, diagnostics, locate, base, progress, data, late_files=late_files)
    spec.source.keep_index_in(kept_folder(spec.runtime, INDEXES))
    listing, findings = list_part(spec, locate, base, progress, data)
    diagnostics.extend(findings)
    if listing is None:
        return Collected(None, diagnostics)
    excluded, unlisted = excluded_keys(spec, {"": listing}, base, locate)
    diagnostics.extend(unlisted)
    listing, missing, lost = chosen(spec, listing, excluded, locate, late_files=late_files)
    diagnostics.extend(lost)
    if unlisted or listing is None:
        return Collected(None, diagnostics, missing=missing, lost=tuple(lost), excluded=tuple(sorted(excluded)))
    manifest, findings = collect_part(spec, listing, locate, base)
    diagnostics.extend(findings)
    if manifest is not None and not diagnostics.has_errors:
        manifest, further = with_sides(spec, manifest, locate, progress)
        diagnostics.extend(further)
        if not diagnostics.has_errors:
            diagnostics.extend(judge_buckets(spec, manifest, locate))
            for stage in spec.stages:
                own, notes = in_stage(spec, stage.resolved, manifest)
                diagnostics.extend([*findings_of(spec, notes, locate), *judge_buckets(stage.resolved, own, locate)])
    return collected(manifest, diagnostics, missing, lost)


def in_stage(spec: PipelineSpec, stage: PipelineSpec, manifest: Manifest) -> tuple[Manifest, tuple[Note, ...]]:
    """Makes the manifest of a stage of training, with annotations turned as it decodes their images; returns notes, too."""
    if isinstance(manifest, MixedManifest):
        each = {name: in_stage(joined(spec, name), joined(stage, name), part) for name, part in manifest.parts.items()}
        if all(own is manifest.parts[name] for name, (own, _) in each.items()):
            return manifest, ()
        made = mixed_manifest(stage, {name: own for name, (own, _) in each.items()})
        mixed = replace(manifest, listing=made.listing, parts=made.parts, sampled=made.sampled)
        return mixed, tuple(note for _, notes in each.values() for note in notes)
    images = [name for name, t in (manifest.listing.type or spec.source.infer()).items() if kind_of(t).levels]
    if all(ignores_exif(spec, image) == ignores_exif(stage, image) for image in images):
        return manifest, ()
    # Annotations lie on the image as `spec` decodes it; their size says so, and the stage turns them from there.
    listing = with_orientations(stage, replace(manifest.listing, notes=()), None)
    notes = listing.notes
    own, _ = with_sides(stage, replace(manifest, listing=replace(listing, notes=manifest.listing.notes), sides=None), path_only)
    return own, notes


_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d+")
"""Names and numbers, in which two findings of one kind differ."""
_SHOWN = 3
"""Kinds of one code that have a line each; further ones are counted."""


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
        for one in (*(one for note in part.listing.notes for one in note.left_out), *_by_the_spec(part)):
            counted[one[1:]] = counted.get(one[1:], 0) + one.number
    return [str(LeftOut(number, *words)) for words, number in counted.items() if number]


def _by_the_spec(part: Manifest) -> Iterator[LeftOut]:
    yield LeftOut(len(part.excluded), "excluded entry", "excluded entries")
    yield LeftOut(len(part.left_out), "record that `splits.exclude` names", "records that `splits.exclude` names")
    yield LeftOut(part.spared, "training example that `subset` leaves out", "training examples that `subset` leaves out")
    yield LeftOut(part.unused, "example that no part asks for", "examples that no part asks for")
