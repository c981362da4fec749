"""The bucket of each record, for batches of a few sizes or lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.sampling import examples_of_epoch
from pipegen.data.shares import last_batch
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sampling_sections import LengthBuckets, nearest
from pipegen.spec import lengths
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, ShardIndex
from pipegen.spec.variants import bucketed
from pipegen.types import FeatureType, times


@dataclass(frozen=True, eq=False)
class InBuckets:
    """The bucket of each record of a split, int32 `(n,)`; the number of records of each bucket; and the records, bucket by bucket and in
    stored order within each, int64 `(n,)`."""

    of: Ints
    counts: tuple[int, ...]
    members: Ints

    @classmethod
    def by_size(cls, sizes: tuple[tuple[int, int], ...], sides: np.ndarray[Any, Any]) -> InBuckets:
        """Chooses buckets by the height and width of images, float64 `(n, 2)`; NaN counts as a square."""
        return cls.of_each(nearest(sizes, np.where(np.isfinite(sides).all(1)[:, None], sides, 1.0)), len(sizes))

    @classmethod
    def by_length(cls, spec: PipelineSpec, split: str, x: FeatureType, stored: Ints) -> InBuckets:
        """Chooses the shortest bucket that holds each example after the steps of a split, the last one for examples longer than all; `x` is
        the stored type of the feature, and `stored` has its lengths, int64 `(n,)`. An unknown length, -1, counts as the shortest,
        and so do examples that are all too short for a step."""
        buckets, name = spec.batch.buckets, lengths.bucketed_feature(spec)
        if not isinstance(buckets, LengthBuckets) or name is None:
            raise InternalError("the spec has no buckets of lengths")
        rising = np.unique(stored[stored >= 0])
        ends = [lengths.longest_that_fits(spec, split, name, x, rising.tolist(), size) for size in buckets.sizes]
        known = [len(rising) if end is None else end for end in ends]
        of = np.searchsorted(np.array(known), np.searchsorted(rising, stored), side="right")
        return cls.of_each(np.minimum(np.where(stored < 0, 0, of), len(buckets.sizes) - 1).astype(np.int32), len(buckets.sizes))

    @classmethod
    def of_each(cls, of: Ints, buckets: int) -> InBuckets:
        """Counts and sorts the records from the bucket of each, int32 `(n,)`, of a number of `buckets`."""
        counts = np.bincount(of, minlength=buckets)
        return cls(of, tuple(counts.tolist()), np.argsort(of, kind="stable").astype(np.int64))


def in_buckets(spec: PipelineSpec, manifest: Manifest, split: str) -> InBuckets | None:
    """Assigns the records of a split to buckets; `None` if its batches have one size."""
    buckets = spec.batch.buckets
    if buckets is None or not bucketed(spec, split):
        return None
    own = manifest.own(split)
    if isinstance(buckets, LengthBuckets):
        name = lengths.bucketed_feature(spec) or ""
        if name not in own.lengths:
            raise InternalError("lengths were not collected")
        x = (own.listing.type or spec.source.infer())[name]
        return InBuckets.by_length(spec, split, x, own.lengths[name][own.numbers(split)])
    if own.sides is None:
        raise InternalError("image sizes were not collected")
    return InBuckets.by_size(buckets.sizes, own.sides[own.numbers(split)])


def epoch_counts(spec: PipelineSpec, manifest: Manifest, split: str) -> tuple[int, ...]:
    """Counts the examples in an epoch of a split, or of each of its buckets, which end in a batch of their own."""
    found = in_buckets(spec, manifest, split)
    return (examples_of_epoch(spec, manifest, split),) if found is None else found.counts


def judge_buckets(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> Iterator[Diagnostic]:
    """Reports buckets with less than one batch if remainders are dropped, and last batches that hosts cannot share."""
    shard = spec.runtime.shard
    for split in manifest.splits:
        found, buckets = in_buckets(spec, manifest, split), spec.batch.buckets
        if found is not None and isinstance(shard, ShardIndex):
            wrong = (one for n in found.counts for one in last_batch(spec, split, n, shard.count, locate))
            yield from dict.fromkeys(wrong)
        drops = spec.batch.remainder_for(split) == "drop" or (split == "train" and spec.epoch != "pass")
        if found is None or buckets is None or not drops:
            continue
        size, at = spec.batch.size, locate(("batch", "buckets", "sizes"))
        thin = [(own, n) for own, n in zip(buckets.shapes, found.counts, strict=True) if 0 < n < size]
        if not any(n >= size for n in found.counts):
            message = f"no bucket of `{split}` has a batch of {size} examples, and incomplete batches are dropped: no step is left"
            yield make("PG407", message, at, help=f"lower `batch.size` to {max(found.counts)} or less, or name fewer sizes")
        elif thin:
            named = ", ".join(f"{times(own)} has {n}" for own, n in thin)
            what = "examples" if isinstance(buckets, LengthBuckets) else "images"
            message = f"in split `{split}`, {named} {what}; incomplete batches of {size} are dropped, so the model never sees these"
            help_ = f"name fewer sizes, lower `batch.size`, or keep smaller batches: `remainder: {{{split}: keep}}`"
            yield make("PG480", message, at, help=help_)


def bucket_line(spec: PipelineSpec, manifest: Manifest, split: str) -> str:
    """Lists the examples of a split in each bucket; "" without buckets."""
    found, buckets = in_buckets(spec, manifest, split), spec.batch.buckets
    if found is None or buckets is None:
        return ""
    return ", ".join(f"{count(n, 'example')} in {times(size)}" for size, n in zip(buckets.shapes, found.counts, strict=True))
