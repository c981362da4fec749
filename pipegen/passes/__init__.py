"""The passes in the order they run, with the reason for each place."""

from __future__ import annotations

from pipegen.passes.dropping import drop_identities, drop_unused, share_views
from pipegen.passes.fusing import fold_constants, fold_tables, fuse_colour, fuse_decode_crop, fuse_geometry
from pipegen.passes.moving import batch_early, branch_rare, crop_batches, defer_cast, shard_before_read, shuffle_before_read
from pipegen.passes.plan_pass import Compiled, Pass, PassContext, PassRecord, run_passes
from pipegen.passes.scheduling import chunk_elements, form_kernels, parallelise, place_cache, prefetch_last

PASSES: tuple[Pass, ...] = (
    drop_unused,  # first, so that later passes have less to do
    drop_identities,
    share_views,  # before steps are fused, while the plans of views are still equal
    shuffle_before_read,  # the order of indices costs nothing
    shard_before_read,  # after the shuffle, whose blocks it takes
    fuse_decode_crop,  # while decode and crop still stand side by side
    fuse_geometry,  # closes segments, so that they can move as one
    fuse_colour,
    fold_tables,
    defer_cast,  # needs whole segments, to see which only move pixels
    fold_constants,  # after identities are gone and casts deferred, which brings arithmetic together
    crop_batches,  # right before `batch_early`, which can then move the batch before the crop
    batch_early,  # after the casts, so that bytes are stacked and not floats
    place_cache,  # needs the place where examples get a fixed shape
    branch_rare,  # after the cache, which would keep what it moves before the batch; while nodes have one stage
    form_kernels,  # groups stages; no later pass looks between them
    chunk_elements,  # after all that moves or splits element stages
    parallelise,
    prefetch_last,
)

__all__ = ["PASSES", "Compiled", "Pass", "PassContext", "PassRecord", "run_passes"]
