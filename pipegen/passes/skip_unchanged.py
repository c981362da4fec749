"""kernel(sharpness for 1 example in 14), kernel(warp for half) → kernel(sharpness, warp; each example through those that change it).

In a batch every example pays for a stage, since a kernel computes both sides of a choice. Neighbouring stages of which some change
only some of the examples become one compiled kernel that goes from example to example, and through the stages that change it alone.
An example is copied in, copied out, and copied once for each stage; the pass compares that with what is saved.
"""

from __future__ import annotations

from itertools import groupby
from math import prod

from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, Placed, rewrite, unpack
from pipegen.plan.nodes import Kernel, Node, Plan
from pipegen.types import FeatureType

_COPY_NS = 0.08  # a byte, copied while it is in the processor's cache
_EXAMPLE_NS, _STAGE_NS = 1000.0, 1000.0  # one turn of the loop over the examples, and one of that over the stages


@rewrite("E1", "examples do not pay for stages that leave them as they are")
def skip_unchanged(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Joins stages after the batch, so that each example runs those that change it."""
    if context.runtime.jit == "never":
        return plan
    nodes: list[Node] = []
    for feature, group in groupby(zip(plan.nodes, unpack(plan), strict=True), key=lambda pair: _loops(*pair)):
        own = list(group)
        if feature is not None:
            placed = [item for _, item in own if isinstance(item, Placed)]
            first, last = _span([item.stage for item in placed])
            if first < last and _saves([item.stage for item in placed[first:last]], placed[first].before[feature]):
                stages = tuple(item.stage for item in placed[first:last])
                ids = [f"`{id_}`" for id_ in dict.fromkeys(ref.id for stage in stages for ref in stage.uses())]
                note(f"each example runs only those of {' and '.join(ids)} that change it")
                made = Kernel(placed[last - 1].after, stages, compiled=True, rows=True)
                own = [*own[:first], (made, made), *own[last:]]
        nodes += [node for node, _ in own]
    return plan.with_nodes(nodes)


def _loops(node: Node, item: Node | Placed) -> str | None:
    """Returns the feature of a stage that computes each example on its own and keeps its type; `None` for others."""
    if not isinstance(node, Kernel) or not isinstance(item, Placed):
        return None
    stage = item.stage
    if not stage.compilable or stage.combines or stage.from_memory or stage.cheap:
        return None
    x, y = item.before[stage.feature], item.after[stage.feature]
    return stage.feature if (x.dtype, x.shape) == (y.dtype, y.shape) else None


def _span(stages: list[Stage]) -> tuple[int, int]:
    """Finds the first stage and the end of the last one that change only some examples."""
    some = [i for i, stage in enumerate(stages) if stage.share < 1]
    return (some[0], some[-1] + 1) if some else (0, 0)


def _saves(stages: list[Stage], x: FeatureType) -> bool:
    """Tests if the work that is saved costs more than the loops and the copies."""
    values = prod(side or 1 for side in x.shape)
    turns = sum(stage.share for stage in stages)
    saved = sum((1 - stage.share) * stage.ns(x) for stage in stages) * values
    return saved > _EXAMPLE_NS + _STAGE_NS * turns + (2 + turns) * _COPY_NS * (x.num_bytes or values)
