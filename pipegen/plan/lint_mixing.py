"""A finding about batches that begin inside a mix group."""

from __future__ import annotations

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.families.mixing import GROUP, MixingTransform
from pipegen.plan.recipe import runs_on, step_path
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, ShardIndex


def lint_mixing(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    """Warns where each step computes examples of the batches beside it, for the sake of the groups that it shares with them."""
    mixing = [step_path(i, t) for i, t in enumerate(spec.transforms) if isinstance(t, MixingTransform) and runs_on(t, "train")]
    index, count = (spec.runtime.shard.index, spec.runtime.shard.count) if isinstance(spec.runtime.shard, ShardIndex) else (0, 1)
    own = spec.batch.size // count
    starts = {(step * spec.batch.size + index * own) % GROUP for step in range(GROUP)}
    rows = max(-(-(start + own) // GROUP) * GROUP for start in starts)
    if not mixing or "train" not in spec.split_names() or not own or rows == own:
        return []
    share = "" if count == 1 else " on this host"
    message = f"batches of {own}{share} begin inside the groups of {GROUP} that are mixed, so that up to {rows} examples are made for each"
    labels = (locate(("batch", "size")), locate(mixing[0], "mixed here", key=True))
    return [make("PG513", message, *labels, help=f"a multiple of {GROUP if count == 1 else f'{GROUP} for each host'} saves that")]
