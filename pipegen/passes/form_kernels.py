"""warp, colour, normalise → kernel(warp), kernel(colour, normalise).

Runs of batch stages are compiled together. XLA on a CPU recomputes a fused producer for every reader, so a kernel is cut
before a stage that reads a pixel of the stage before more than once:

- a matrix that mixes channels reads each channel for every output channel (even after a cheap mirror, two kernels take a
  quarter to a half of the time of one);
- a matrix around the mean reads the image twice, and so does a table of the histogram;
- a warp reads each pixel for four neighbours, and a filter for many more;
- a mirror chooses between a pixel and its counterpart;
- a combining step reads two examples, and recomputes even a mirror before it for each (three times the cost).

A colour stage that does not mix channels reads a value once and is fused: warp, brightness and arithmetic in one kernel take
0.82 of the time of two. Some stages that read once are still faster apart: a plain table after a warp (0.87 of the sum of the
parts, against 1.19 in one kernel), and colour after a mirror or an erased rectangle (two kernels take 0.8 to 0.95 of one).
"""

from __future__ import annotations

from pipegen.ops.stage import Stage
from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.nodes import Element, Kernel, Node, Plan


@rewrite("E1", "a compiled kernel passes over memory once")
def form_kernels(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Groups the kernels after the batch, and the element stages before it."""
    compiled = context.runtime.jit != "never"
    nodes: list[Node] = []
    for node in plan.nodes:
        previous = nodes[-1] if nodes else None
        if isinstance(node, Kernel):
            own = compiled and node.stages[0].compilable
            if node.rows:  # from `skip_unchanged`
                nodes.append(node)
            elif (
                isinstance(previous, Kernel)
                and not previous.rows
                and previous.compiled == own
                and not _cut(previous.stages, node.stages[0])
            ):
                nodes[-1] = Kernel(node.out, previous.stages + node.stages, own)
            else:
                nodes.append(Kernel(node.out, node.stages, own))
        elif isinstance(node, Element) and isinstance(previous, Element):
            nodes[-1] = Element(node.out, previous.stages + node.stages)
        else:
            nodes.append(node)
    count = sum(isinstance(n, Kernel) and n.compiled for n in nodes)
    if count:
        note(f"{count} kernel{'s' if count > 1 else ''} compiled by XLA")
    return plan.with_nodes(nodes)


def _cut(before: tuple[Stage, ...], stage: Stage) -> bool:
    """Tests if `stage` would make XLA recompute the stages before it."""
    same = [b for b in before if b.feature == stage.feature]
    return bool(same) if stage.leads() else stage.rereads([b for b in same if not b.cheap])
