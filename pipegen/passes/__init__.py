"""The passes in the order they run, with the reason for each place."""

from __future__ import annotations

from pipegen.passes import (
    batch_early,
    branch_rare,
    chunk_elements,
    crop_batches,
    defer_cast,
    drop_identities,
    drop_unused,
    fold_constants,
    fold_tables,
    form_kernels,
    fuse_colour,
    fuse_decode_crop,
    fuse_geometry,
    parallelise,
    place_cache,
    place_send,
    prefetch_last,
    shard_before_read,
    share_views,
    shuffle_before_read,
    skip_unchanged,
)
from pipegen.passes.plan_pass import Compiled, Pass, PassContext, PassRecord, run_passes

PASSES: tuple[Pass, ...] = (
    drop_unused.drop_unused,  # first, so that later passes have less to do
    drop_identities.drop_identities,
    share_views.share_views,  # before steps are fused, while the plans of views are still equal
    shuffle_before_read.shuffle_before_read,  # the order of indices costs nothing
    shard_before_read.shard_before_read,  # after the shuffle, whose blocks it takes
    fuse_decode_crop.fuse_decode_crop,  # while decode and crop still stand side by side
    fuse_geometry.fuse_geometry,  # closes segments, so that they can move as one
    fuse_colour.fuse_colour,
    fold_tables.fold_tables,
    defer_cast.defer_cast,  # needs whole segments, to see which only move pixels
    fold_constants.fold_constants,  # after identities are gone and casts deferred, which brings arithmetic together
    crop_batches.crop_batches,  # right before `batch_early`, which can then move the batch before the crop
    batch_early.batch_early,  # after the casts, so that bytes are stacked and not floats
    place_cache.place_cache,  # needs the place where examples get a fixed shape
    branch_rare.branch_rare,  # after the cache, which would keep what it moves before the batch; while nodes have one stage
    place_send.place_send,  # while nodes have one stage and its types; no kernel crosses it
    skip_unchanged.skip_unchanged,  # after what XLA cannot compile has moved before the batch
    form_kernels.form_kernels,  # groups stages; no later pass looks between them
    chunk_elements.chunk_elements,  # after all that moves or splits element stages
    parallelise.parallelise,
    prefetch_last.prefetch_last,
)

__all__ = ["PASSES", "Compiled", "Pass", "PassContext", "PassRecord", "run_passes"]
