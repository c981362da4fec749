"""The manifest of a stage of training, which may turn images otherwise than the spec does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.data.mix import MixedManifest, mixed_manifest
from pipegen.data.ownership import path_only
from pipegen.data.sides import ignores_exif, with_orientations, with_sides
from pipegen.ops.kinds.registry import kind_of
from pipegen.spec.variants import joined

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.ops.sources.listing.base import Note
    from pipegen.spec.models import PipelineSpec


def in_stage(spec: PipelineSpec, stage: PipelineSpec, manifest: Manifest) -> tuple[Manifest, tuple[Note, ...]]:
    """Turns annotations as a stage decodes their images; returns notes, too.

    Args:
        spec: The spec that the manifest was made for.
        stage: The resolved spec of the stage.
        manifest: The records.
    """
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
