"""The passes in the order they run, with the reason for each place."""

from __future__ import annotations

from pipegen.passes.batch_early import BATCH_EARLY
from pipegen.passes.branch_rare import BRANCH_RARE
from pipegen.passes.chunk_elements import CHUNK_ELEMENTS
from pipegen.passes.crop_batches import CROP_BATCHES
from pipegen.passes.defer_cast import DEFER_CAST
from pipegen.passes.drop_identities import DROP_IDENTITIES
from pipegen.passes.drop_unused import DROP_UNUSED
from pipegen.passes.fold_constants import FOLD_CONSTANTS
from pipegen.passes.fold_tables import FOLD_TABLES
from pipegen.passes.form_kernels import FORM_KERNELS
from pipegen.passes.fuse_colour import FUSE_COLOUR
from pipegen.passes.fuse_decode_crop import FUSE_DECODE_CROP
from pipegen.passes.fuse_geometry import FUSE_GEOMETRY
from pipegen.passes.parallelise import PARALLELISE
from pipegen.passes.place_cache import PLACE_CACHE
from pipegen.passes.plan_pass import Compiled, Pass, PassContext, PassRecord, run_passes
from pipegen.passes.prefetch_last import PREFETCH_LAST
from pipegen.passes.shard_before_read import SHARD_BEFORE_READ
from pipegen.passes.share_views import SHARE_VIEWS
from pipegen.passes.shuffle_before_read import SHUFFLE_BEFORE_READ

PASSES: tuple[Pass, ...] = (
    DROP_UNUSED,  # first, so that later passes have less to do
    DROP_IDENTITIES,
    SHARE_VIEWS,  # before steps are fused, while the plans of views are still equal
    SHUFFLE_BEFORE_READ,  # the order of indices costs nothing
    SHARD_BEFORE_READ,  # after the shuffle, whose blocks it takes
    FUSE_DECODE_CROP,  # while decode and crop still stand side by side
    FUSE_GEOMETRY,  # closes segments, so that they can move as one
    FUSE_COLOUR,
    FOLD_TABLES,
    DEFER_CAST,  # needs whole segments, to see which only move pixels
    FOLD_CONSTANTS,  # after identities are gone and casts deferred, which brings arithmetic together
    CROP_BATCHES,  # right before BATCH_EARLY, which can then move the batch before the crop
    BATCH_EARLY,  # after the casts, so that bytes are stacked and not floats
    PLACE_CACHE,  # needs the place where examples get a fixed shape
    BRANCH_RARE,  # after the cache, which would keep what it moves before the batch; while nodes have one stage
    FORM_KERNELS,  # groups stages; no later pass looks between them
    CHUNK_ELEMENTS,  # after all that moves or splits element stages
    PARALLELISE,
    PREFETCH_LAST,
)

__all__ = ["PASSES", "Compiled", "Pass", "PassContext", "PassRecord", "run_passes"]
