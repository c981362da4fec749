"""Sizes and orientations of images, read before any is decoded."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from pipegen.data.fingerprint import fingerprint
from pipegen.data.headers import AT_ONCE, WORTH_KEEPING, kept_or_read, read_kept
from pipegen.data.manifest import Manifest
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.kept import INDEXES, keep_or_warn, kept_folder
from pipegen.memory import threads
from pipegen.mounts import content_of, mounted
from pipegen.ops.families.combining import anchor
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.fields.columns import Ragged, counted_up
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.kinds.base import Levels, Overlay, geometry_of, having, kind_of
from pipegen.ops.kinds.mask import number_name
from pipegen.ops.lowering.exif import BACK
from pipegen.ops.sampling_sections import Buckets, Columns
from pipegen.ops.sources.annotations.sizes import orientation_in, orientation_of, sides_of
from pipegen.ops.sources.listing.base import Listing
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.variants import bucketed
from pipegen.types import ElementType, FeatureType

Array = np.ndarray[Any, Any]
_FORMAT = 1


def with_sides(
    spec: PipelineSpec, manifest: Manifest, locate: Locate, progress: Callable[[int], None] | None = None
) -> tuple[Manifest, list[Diagnostic]]:
    """Adds the height and width of each image of the splits with batches of buckets; returns findings, too.

    An image whose header cannot be read counts as a square: it is an error, or replaced, when it is decoded.
    """
    every = (spec, *(stage.resolved for stage in spec.stages))
    chosen = next((s for s in every if isinstance(s.batch.buckets, Buckets)), None)
    if chosen is None or not isinstance(chosen.batch.buckets, Buckets):
        return manifest, []
    splits = [split for split in manifest.splits if any(bucketed(s, split) for s in every)]
    measured, feature = chosen.batch.buckets.measured, image_of(chosen)
    at = locate(("batch", "buckets", "measured") if measured != "auto" else ("batch", "buckets"), key=measured == "auto")
    total, known = manifest.total, manifest.listing.sides
    if isinstance(measured, Columns):
        return _by_columns(manifest, measured, splits, at)
    sides = np.full((total, 2), np.nan) if known is None or measured == "headers" else known.astype(np.float64)
    none: Array = np.zeros(0, np.int64)
    wanted = np.unique(np.concatenate([none, *(manifest.numbers(split) for split in splits)]))
    wanted = wanted[~np.isfinite(sides[wanted]).all(1)]
    if not len(wanted):
        return replace(manifest, sides=sides), []
    listing = manifest.listing
    if not listing.in_files:
        message = f"buckets need the sizes of images, and `{manifest.source_name}` knows them only after reading a record"
        help_ = ("`measured: {columns: [HEIGHT, WIDTH]}` takes the sizes from features of a table", "or give the step a size")
        return manifest, [make("PG262", message, at, help=help_)]
    files = listing.location_of(feature).paths
    began = time.perf_counter()
    key = hashlib.sha256(f"{fingerprint(listing)}\n{feature}\n{_FORMAT}".encode()).hexdigest()[:32]
    nothing: Array = np.zeros((total, 4), np.int32)
    found, from_file = kept_or_read(chosen.runtime, f"{key}.sides", files, wanted, nothing, _sides, "the sizes of images", progress)
    sides[wanted] = found[wanted][:, 2:] if ignores_exif(chosen, feature) else found[wanted][:, :2]
    sides[~(sides > 0).all(1)] = np.nan
    took = "kept from an earlier run" if from_file else f"in {time.perf_counter() - began:.1f} s"
    message = f"image sizes were read from the headers of {count(len(wanted), 'file')}, {took}"
    return replace(manifest, sides=sides), [make("PG481", message, at)]


def _sides(file: str) -> tuple[int, int, int, int] | None:
    """Height and width of an image, upright and as stored; `None` if its header cannot be read."""
    own = sides_of(file)
    return None if own is None else (*own.upright[::-1], *own.stored[::-1])


def image_of(spec: PipelineSpec) -> str:
    """The feature whose image size selects the bucket."""
    named = spec.batch.buckets.image if isinstance(spec.batch.buckets, Buckets) else None
    return named or next(iter(having(spec.source.infer(), Levels)), "image")


def _by_columns(manifest: Manifest, named: Columns, splits: Sequence[str], at: Any) -> tuple[Manifest, list[Diagnostic]]:
    columns = [manifest.listing.columns.get(name) for name in named.columns]
    lacking = next((name for name, column in zip(named.columns, columns, strict=True) if column is None), None)
    if lacking is not None:
        message = f"`{lacking}` is known only after a record is read, so it cannot choose the record's batch"
        return manifest, [make("PG262", message, at, help="put it into a column of a table, and read that with `csv` or `parquet`")]
    sides = np.stack([np.asarray(column, np.float64).reshape(manifest.total) for column in columns], 1)
    valid = ((sides > 0) & np.isfinite(sides)).all(1)
    for split in splits:
        records = manifest.numbers(split)
        wrong = records[~valid[records]]
        if len(wrong):
            record = int(wrong[0])
            height, width = sides[record].tolist()
            which = f"{len(wrong)} of {count(len(records), 'example')} of `{split}` have no valid size"
            message = f"{which}: {manifest.every_key[record]!r} has a height of {height:g} and a width of {width:g}"
            return manifest, [make("PG262", message, at, help="give the size of each image in pixels")]
    return replace(manifest, sides=sides), []


def ignores_exif(spec: PipelineSpec, feature: str) -> bool:
    """Decides if images are decoded as stored, without turning them by their EXIF orientation."""
    steps = [step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, feature)]
    return bool(steps) and getattr(steps[0], "exif", "apply") == "ignore"


_LOOKED_AT = 32  # examples to look at, of remote files and of records: if none of them is odd, the others count as sound


def with_orientations(spec: PipelineSpec, listing: Listing, progress: Callable[[int], None] | None) -> Listing:
    """Turns annotations with their images, and notes images whose annotations have an unknown orientation, and masks of unknown items.

    An image whose sides its EXIF swaps is annotated as stored, or upright: the annotated size tells which. Features in columns, such as
    boxes, are turned to lie on the image as it is decoded. The size cannot tell for an image that is square, mirrored or upside down,
    or without an annotated size: its annotations count as those of the decoded image.
    """
    if listing.by_split:
        each = {split: with_orientations(spec, own, progress) for split, own in listing.by_split.items()}
        told = chain.from_iterable(own.notes for own in each.values())
        return replace(listing, notes=(*listing.notes, *told), by_split={split: replace(own, notes=()) for split, own in each.items()})
    type_ = listing.type or spec.source.infer()
    notes: list[Note] = []
    aligned: dict[str, list[str]] = {}
    for name in having(type_, Overlay):
        image = anchor(type_, name)
        if image != name and type_[image].encoded and kind_of(type_[image]).has(Levels) and image not in listing.columns:
            aligned.setdefault(image, []).append(name)
    for image, lying in aligned.items():
        if listing.in_files:
            listing = _turned(spec, listing, image, lying, progress)
        elif any(name in listing.columns for name in lying):  # whose images have no annotated size
            found = [(called, orientation_in(content)) for called, _, content in _some_records(listing, image)]
            orientations = np.array([orientation for _, orientation in found], np.int64)
            odd = np.flatnonzero(orientations > 1)
            if len(odd):
                notes.append(_untold([called for called, _ in found], orientations, odd, lying, ignored=ignores_exif(spec, image)))
    for name, x in type_.items():
        if x.instances is not None and x.encoded and name not in listing.columns:
            notes += _unknown_instances(listing, name, x)
    return replace(listing, notes=(*listing.notes, *notes)) if notes else listing


def _some_records(listing: Listing, feature: str) -> Iterator[tuple[str, int, bytes]]:
    """Yields the places, the numbers and the contents of some records' encoded feature; those that cannot be read are reported later."""
    held, paths = listing.shards, listing.location_of(feature).paths
    total = len(listing.keys) if held is None else held.total
    used = np.arange(total) if held is None or held.kept is None else np.flatnonzero(held.kept)
    for i in used[np.unique(np.linspace(0, len(used) - 1, min(len(used), _LOOKED_AT)).astype(np.int64))].tolist():
        reader, place, name = listing.place_of(i)
        called = name if place else paths[i]
        with suppress(OSError, ValueError):
            (content,) = reader.stored(feature, *place) if place else [content_of(called)]
            if isinstance(content, bytes):
                yield called, i, content


def _unknown_instances(listing: Listing, name: str, x: FeatureType) -> list[Note]:
    """Reports a mask of instances whose pixels number items that its record does not have, if one of some records has it. A store keeps the
    numbers of its items where some were left out; pixels of those are no mistake."""
    from PIL import Image

    items: Any = listing.columns[x.instances or ""]
    numbers: Any = listing.columns.get(number_name(x.instances or ""))
    if numbers is not None and not np.array_equal(numbers.values, counted_up(items.lengths).values):
        return []
    for called, record, content in _some_records(listing, name):
        with suppress(OSError, ValueError), Image.open(io.BytesIO(content)) as picture:
            pixels = np.asarray(picture)
            highest = int(np.where(pixels == x.ignore, 0, pixels).max(initial=0))
            if highest > items.lengths[record]:
                message = f"`{name}` of {called} holds {highest}, but the image has {int(items.lengths[record])} of `{x.instances}`"
                help_ = f"a pixel must be 0, or the number of one of `{x.instances}` from 1"
                return [Note("PG419", message, help_, f"features.{name}", "error")]
    return []


def _turned(spec: PipelineSpec, listing: Listing, image: str, lying: Sequence[str], progress: Callable[[int], None] | None) -> Listing:
    files = listing.location_of(image).paths
    orientations = _orientations(spec, listing, image, files, progress)
    odd = np.flatnonzero(orientations > 1)
    if not len(odd):
        return listing
    read = [sides_of(files[i]) for i in odd.tolist()]
    stored = np.array([(0, 0) if own is None else own.stored[::-1] for own in read], np.float64)
    annotated = np.full((len(odd), 2), np.nan) if listing.sides is None else np.asarray(listing.sides, np.float64)[odd]
    swaps = (orientations[odd] >= 5) & (stored[:, 0] != stored[:, 1])
    as_stored, as_upright = swaps & (annotated == stored).all(1), swaps & (annotated == stored[:, ::-1]).all(1)
    ignored = ignores_exif(spec, image)
    which = as_upright if ignored else as_stored
    notes = []
    if which.any():
        records = odd[which]
        turn: Array = np.zeros(len(orientations), np.int64)
        turn[records] = np.array((0, *BACK))[orientations[records]] if ignored else orientations[records]
        listing = _with_columns(listing, listing.type or spec.source.infer(), lying, turn)
        example = f"such as those of {files[int(records[0])]}"
        said = f"annotations of {len(records):,} of {count(len(files), 'image')} are rotated with their image, {example}"
        drawn = "upright" if ignored else "as it is stored"
        notes.append(Note("PG660", f"{said}: their size fits the image {drawn}"))
    untold = odd[~(as_stored | as_upright)]
    if len(untold):
        notes.append(_untold(files, orientations, untold, lying, ignored=ignored))
    return replace(listing, notes=(*listing.notes, *notes))


def _with_columns(listing: Listing, type_: ElementType, lying: Sequence[str], turn: Array) -> Listing:
    """Turns items by the EXIF orientations `turn` (0 for none), and the sides of their images."""
    assert listing.sides is not None  # noqa: S101 - `turn` follows from them
    sides = np.array(listing.sides, np.float64)
    columns = dict(listing.columns)
    for name in lying:
        column = columns.get(name)
        if not isinstance(column, Ragged):
            continue  # pixels are turned when they are decoded
        values, of = np.array(column.values), np.repeat(np.arange(len(column)), column.lengths)
        for orientation in np.unique(turn[turn > 0]).tolist():
            own = np.flatnonzero(turn[of] == orientation)
            values[own] = geometry_of(type_[name].kind).turned(values[own], orientation, sides[of[own]], type_[name])
        columns[name] = Ragged(values, column.lengths)
    swapped = turn >= 5
    sides[swapped] = sides[swapped][:, ::-1]
    return replace(listing, columns=columns, sides=sides)


def _untold(files: Sequence[str], orientations: Array, untold: Array, lying: Sequence[str], *, ignored: bool) -> Note:
    names = " and ".join(f"`{name}`" for name in lying)
    one = len(untold) == 1
    which = f"{count(len(untold), 'image')} {'has' if one else 'have'} an EXIF orientation"
    example = f"such as {files[int(untold[0])]} ({int(orientations[untold[0]])})"
    taken = "on the images as they are stored" if ignored else "on the upright images"
    message = f"{which}, {example}, but no image size shows if {names} {'was' if len(lying) == 1 else 'were'} drawn so; assumed: {taken}"
    if ignored:
        return Note("PG661", message, "if they were drawn on the upright images, leave `exif: ignore` out")
    return Note("PG661", message, "if they were drawn on the stored pixels, begin with `decode: {exif: ignore}`")


def _orientations(spec: PipelineSpec, listing: Listing, image: str, files: Sequence[str], progress: Callable[[int], None] | None) -> Array:
    """Reads the EXIF orientation of each image, uint8 `(n,)`."""
    total = len(files)
    folder = kept_folder(spec.runtime.cache, INDEXES) if total >= WORTH_KEEPING else None
    bare = replace(listing, columns={}, beside={image: listing.beside[image]} if image in listing.beside else {})
    key = hashlib.sha256(f"{fingerprint(bare)}\n{image}\n{_FORMAT}".encode()).hexdigest()[:32] if folder is not None else ""
    held = read_kept(folder, f"{key}.turns", np.dtype(np.uint8), total)
    if held is not None:
        return held
    found: Array = np.ones(total, np.uint8)
    first = range(0, total, max(1, total // _LOOKED_AT)) if mounted(files[0]) is not None else range(total)
    with ThreadPoolExecutor(threads(spec.runtime)) as pool:
        _look(pool, files, first, found, progress)
        if len(first) < total and (found > 1).any():
            _look(pool, files, range(total), found, progress)
    keep_or_warn(folder, f"{key}.turns.{INDEXES}", [found.tobytes()], "the orientations of images")
    return found


def _look(pool: ThreadPoolExecutor, files: Sequence[str], which: range, found: Array, progress: Callable[[int], None] | None) -> None:
    parts = [which[at : at + AT_ONCE] for at in range(0, len(which), AT_ONCE)]
    for part, own in zip(parts, pool.map(lambda part: [orientation_of(files[i]) for i in part], parts), strict=True):
        found[list(part)] = own
        if progress is not None:
            progress(part[-1] + 1)
