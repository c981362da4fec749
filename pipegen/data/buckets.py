"""Puts the records of a split into buckets by the proportions of their images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.sampling.choice import examples_of_epoch
from pipegen.data.shares import last_batch
from pipegen.diagnostics.catalog import make
from pipegen.errors import InternalError
from pipegen.ops.buckets import nearest
from pipegen.ops.sources.listing.wording import count
from pipegen.spec.bucketing import bucketed
from pipegen.spec.models import ShardIndex
from pipegen.types import times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


@dataclass(frozen=True, eq=False)
class InBuckets:
    """Says which bucket each record of a split is in.

    Attributes:
        of: The bucket of each, int32 `(n,)`.
        counts: The records of each bucket.
        members: The records, bucket behind bucket and in each as they are stored, int64 `(n,)`.
    """

    of: Ints
    counts: tuple[int, ...]
    members: Ints

    @classmethod
    def by_size(cls, sizes: tuple[tuple[int, int], ...], sides: Any) -> InBuckets:
        """Chooses the bucket of each record by the height and the width of its image, float64 `(n, 2)`; NaN counts as a square."""
        of = nearest(sizes, np.where(np.isfinite(sides).all(1)[:, None], sides, 1.0))
        counts = np.bincount(of, minlength=len(sizes))
        return cls(of, tuple(counts.tolist()), np.argsort(of, kind="stable").astype(np.int64))


def in_buckets(spec: PipelineSpec, manifest: Manifest, split: str) -> InBuckets | None:
    """Returns which bucket each record of a split is in; `None` where its batches have one size."""
    if spec.batch.buckets is None or not bucketed(spec, split):
        return None
    if manifest.sides is None:
        raise InternalError("nobody has asked how large images are")
    return InBuckets.by_size(spec.batch.buckets.sizes, manifest.sides[manifest.members[split]])


def epoch_counts(spec: PipelineSpec, manifest: Manifest, split: str) -> tuple[int, ...]:
    """Counts the examples in an epoch of a split; where batches are of buckets, those of each, which end in a batch of their own."""
    found = in_buckets(spec, manifest, split)
    return (examples_of_epoch(spec, manifest, split),) if found is None else found.counts


def stored_order(spec: PipelineSpec, manifest: Manifest, split: str) -> Ints | None:
    """Returns the records of a split that is not trained on in the order that its batches have; `None` for that of the listing."""
    found = in_buckets(spec, manifest, split) if split != "train" else None
    return None if found is None else found.members


def judge_buckets(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> Iterator[Diagnostic]:
    """Yields a finding for each bucket of a split that has no whole batch, where what fills none is dropped, and what is wrong with the
    last batch of one for the hosts that the spec names."""
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
        thin = [(own, n) for own, n in zip(buckets.sizes, found.counts, strict=True) if 0 < n < size]
        if not any(n >= size for n in found.counts):
            message = f"no bucket of `{split}` has a batch of {size} examples, and what fills no batch is dropped: no step is left"
            yield make("PG407", message, at, help=f"lower `batch.size` to {max(found.counts)} or less, or name fewer sizes")
        elif thin:
            named = ", ".join(f"{times(own)} has {n}" for own, n in thin)
            message = f"of split `{split}`, {named}, and what fills no batch of {size} is dropped: a model never sees these"
            help_ = f"name fewer sizes, lower `batch.size`, or keep smaller batches: `remainder: {{{split}: keep}}`"
            yield make("PG480", message, at, help=help_)


def bucket_line(spec: PipelineSpec, manifest: Manifest, split: str) -> str:
    """Says how many examples of a split are in each bucket; nothing where there are none."""
    found, buckets = in_buckets(spec, manifest, split), spec.batch.buckets
    if found is None or buckets is None:
        return ""
    each = (f"{count(n, 'example')} in {times(size)}" for size, n in zip(buckets.sizes, found.counts, strict=True))
    return ", ".join(each)
