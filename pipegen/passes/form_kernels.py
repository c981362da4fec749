"""warp, colour, normalise → kernel(warp), kernel(colour, normalise).

Compiles runs of batch stages together. XLA on a CPU recomputes a fused producer for every reader, so a kernel is cut
before a stage that reads a pixel of the one before more than once: a matrix that mixes channels reads each of them for every
output channel (behind a mirror, which costs next to nothing, two kernels still take a quarter to a half of the time of one), a
matrix around the mean reads the image twice, a warp reads each pixel for four neighbours and a filter for many more, a table of
the histogram reads it twice, a mirror chooses between a pixel and its counterpart, and a mixing step reads two examples, of each
of which even a mirror before it is computed anew (three times the cost).

A colour stage on each channel alone reads a value once and is computed on the way: warp, brightness and arithmetic in one
kernel take 0.82 of what they take in two. Some that read once are faster apart all the same: a plain table behind a warp (0.87
of the sum of the parts, against 1.19 in one kernel), and colour behind a mirror or an erased rectangle (two kernels take 0.8 to
0.95 of one).
"""

from __future__ import annotations

from pipegen.ops.stage import Stage
from pipegen.passes.base import Note, Pass, PassContext
from pipegen.plan.nodes import Element, Kernel, Node, Plan


def form_kernels(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Group the kernels behind the batch, and the element stages before it."""
    compiled = context.runtime.jit != "never"
    nodes: list[Node] = []
    for node in plan.nodes:
        previous = nodes[-1] if nodes else None
        if isinstance(node, Kernel):
            own = compiled and node.stages[0].compilable
            if isinstance(previous, Kernel) and previous.compiled == own and not _cut(previous.stages, node.stages[0]):
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
    """Returns whether `stage` would make XLA compute what stands before it again and again."""
    same = [b for b in before if b.feature == stage.feature]
    return bool(same) if stage.leads() else stage.rereads([b for b in same if not b.cheap])


FORM_KERNELS = Pass("form_kernels", "E1", "one compiled kernel passes over memory once", form_kernels)
