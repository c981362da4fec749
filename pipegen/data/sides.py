"""Finds out how large images are before any is decoded: by annotations, by columns of a table, or by the headers of files."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.fingerprint import fingerprint
from pipegen.diagnostics.catalog import make
from pipegen.kept import INDEXES, keep, kept_folder, open_kept
from pipegen.log import log
from pipegen.memory import threads
from pipegen.ops.buckets import Columns
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.listing.wording import count
from pipegen.spec.bucketing import bucketed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec

Array = np.ndarray[Any, Any]
_FORMAT = 1
_WORTH_KEEPING = 1000
"""Files whose headers take long enough to read that what they say is kept."""
_AT_ONCE = 256
"""Files between two reports of progress."""


def with_sides(
    spec: PipelineSpec, manifest: Manifest, locate: Locate, progress: Callable[[int], None] | None = None
) -> tuple[Manifest, list[Diagnostic]]:
    """The manifest with the height and the width of each image of a split that has batches of buckets, and what is to be said about that.

    An image whose header cannot be read counts as a square: it is an error, or replaced, when it is decoded.
    """
    chosen = next((s for s in (spec, *(stage.resolved for stage in spec.stages)) if s.batch.buckets is not None), None)
    if chosen is None or chosen.batch.buckets is None:
        return manifest, []
    splits = [split for split in manifest.splits if any(bucketed(s, split) for s in (spec, *(stage.resolved for stage in spec.stages)))]
    measured, feature = chosen.batch.buckets.measured, image_of(chosen)
    at = locate(("batch", "buckets", "measured") if measured != "auto" else ("batch", "buckets"), key=measured == "auto")
    total, known = len(manifest.listing.keys), manifest.listing.sides
    if isinstance(measured, Columns):
        return _by_columns(manifest, measured, splits, at)
    sides = np.full((total, 2), np.nan) if known is None or measured == "headers" else known.astype(np.float64)
    wanted = np.unique(np.concatenate([manifest.members[split] for split in splits])) if splits else np.zeros(0, np.int64)
    wanted = wanted[~np.isfinite(sides[wanted]).all(1)]
    if not len(wanted):
        return replace(manifest, sides=sides), []
    listing = manifest.listing
    if listing.shards is not None or not listing.in_files or listing.numbered:
        message = f"`{manifest.source_name}` does not say how large an image is before it is read, and buckets go by that"
        help_ = ("`measured: {columns: [HEIGHT, WIDTH]}` takes the sizes from features of a table", "or give the step a size")
        return manifest, [make("PG262", message, at, help=help_)]
    files = listing.beside[feature].paths if feature in listing.beside else listing.files()
    began = time.perf_counter()
    key = hashlib.sha256(f"{fingerprint(listing)}\n{feature}\n{_FORMAT}".encode()).hexdigest()[:32]
    found, from_file = _kept_or_read(chosen, key, files, wanted, total, progress)
    ignored = ignores_exif(chosen, feature)
    sides[wanted] = found[wanted][:, 2:] if ignored else found[wanted][:, :2]
    sides[~(sides > 0).all(1)] = np.nan
    took = "was kept of an earlier run" if from_file else f"took {time.perf_counter() - began:.1f} s"
    message = f"the headers of {count(len(wanted), 'file')} say how large images are, which {took}"
    return replace(manifest, sides=sides), [make("PG481", message, at)]


def image_of(spec: PipelineSpec) -> str:
    """Returns the image whose size decides on the bucket."""
    named = spec.batch.buckets.image if spec.batch.buckets is not None else None
    return named or next((name for name, t in spec.source.infer().items() if kind_of(t).levels), "image")


def _by_columns(manifest: Manifest, named: Columns, splits: Sequence[str], at: Any) -> tuple[Manifest, list[Diagnostic]]:
    columns = [manifest.listing.columns.get(name) for name in named.columns]
    lacking = next((name for name, column in zip(named.columns, columns, strict=True) if column is None), None)
    if lacking is not None:
        message = f"`{lacking}` is not known before a record is read, and is to say which batch it is in"
        return manifest, [make("PG262", message, at, help="put it into a column of a table, and read that with `csv` or `parquet`")]
    sides = np.stack([np.asarray(column, np.float64).reshape(len(manifest.listing.keys)) for column in columns], 1)
    for split in splits:
        wrong = np.flatnonzero(~((sides[manifest.members[split]] > 0) & np.isfinite(sides[manifest.members[split]])).all(1))
        if len(wrong):
            record = int(manifest.members[split][wrong[0]])
            height, width = sides[record].tolist()
            message = f"{manifest.listing.keys[record]!r} has a height of {height:g} and a width of {width:g}; so it is with {len(wrong)}"
            help_ = "give the pixels of each image"
            return manifest, [make("PG262", f"{message} of {count(len(manifest.members[split]), 'example')} of `{split}`", at, help=help_)]
    return replace(manifest, sides=sides), []


def ignores_exif(spec: PipelineSpec, feature: str) -> bool:
    """Returns whether images are decoded as they are stored, and not turned as their EXIF says."""
    steps = [step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, feature)]
    return bool(steps) and getattr(steps[0], "exif", "apply") == "ignore"


def _kept_or_read(
    spec: PipelineSpec, key: str, files: Sequence[str], wanted: Array, total: int, progress: Callable[[int], None] | None
) -> tuple[Array, bool]:
    """Height and width of files, upright and as stored, int32 `(total, 4)`, 0 where unknown; and whether they were kept."""
    folder, name = kept_folder(spec.runtime, INDEXES), f"{key}.sides.{INDEXES}"
    found: Array = np.zeros((total, 4), np.int32)
    if folder is not None and len(wanted) >= _WORTH_KEEPING:
        try:
            with open_kept(folder, name) as stream:
                held = np.frombuffer(stream.read(), np.int32).reshape(total, 4)
            if held[wanted].any(1).all():
                return held, True
        except (OSError, ValueError):
            pass
    with ThreadPoolExecutor(threads(spec.runtime)) as pool:
        for begin in range(0, len(wanted), _AT_ONCE):
            some = wanted[begin : begin + _AT_ONCE]
            each = pool.map(sides_of, (files[i] for i in some.tolist()))
            found[some] = [(0, 0, 0, 0) if own is None else (*own.upright[::-1], *own.stored[::-1]) for own in each]
            if progress is not None:
                progress(begin + len(some))
    if folder is not None and len(wanted) >= _WORTH_KEEPING:
        try:
            keep(folder, name, [found.tobytes()])
        except OSError as error:
            log.warning("the sizes of images cannot be kept in %s: %s", folder, (error.strerror or str(error)).lower())
    return found, False
