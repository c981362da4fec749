"""warp, normalise → warp, Send, normalise.

Workers of the tf.data service make the batches of training, and each byte of a batch costs both processes time. Most recipes end in
floats, with four times the bytes of the image that enters the last steps. So a worker sends the batch where its bytes, and the steps that
it leaves to the trainer, cost least: mostly behind the last step that moves pixels. Batches of buckets are sent finished.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.cost import Circumstances, send_us, stage_us
from pipegen.plan.nodes import Emit, Kernel, Plan, Send
from pipegen.spec.models import received
from pipegen.types import ElementType


@rewrite("E0", "fewer bytes go from a worker to the trainer")
def place_send(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Places a Send, if workers make the batches."""
    if context.runtime.service is None or plan.split != "train":
        return plan
    nodes = list(plan.nodes)
    place = end = next(i for i, n in enumerate(nodes) if isinstance(n, Emit))
    finished = best = _sent(plan, nodes[end - 1].out, ())
    least, work, behind = send_us(finished), 0.0, list[Stage]()
    for i in range(end - 1, 0, -1):
        node, entry = nodes[i], nodes[i - 1].out
        if not isinstance(node, Kernel) or plan.index.buckets:
            break
        behind += node.stages
        work += sum(stage_us(stage, entry, node.out, Circumstances()) for stage in node.stages)
        made = _sent(plan, entry, behind)
        if work + send_us(made) < least:
            place, best, least = i, made, work + send_us(made)
    if place < end:
        note(f"sends {best.num_bytes:,} bytes an example; a finished one has {finished.num_bytes:,}")
    return plan.with_nodes([*nodes[:place], best, *nodes[place:]])


def _sent(plan: Plan, edge: ElementType, behind: Sequence[Stage]) -> Send:
    """Sends the features of an edge that stages behind it use, or that the model receives."""
    names = {name for stage in behind for name in (stage.feature, *stage.touches(), *stage.needs())} | set(received(plan.emit.output))
    return Send(edge, tuple(name for name in edge if name in names))
