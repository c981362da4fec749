"""Read, Shuffle(global) → Index(global shuffle), Read.

A shuffle of positions costs no memory, a shuffle of records holds all of them. The order is a function of (seed, epoch,
position), so nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.nodes import Plan, Shuffle


@rewrite("E0", "an order of positions needs no buffer")
def shuffle_before_read(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves the shuffle into the index."""
    shuffle = next((n for n in plan.nodes if isinstance(n, Shuffle)), None)
    if shuffle is None:
        return plan
    index = replace(plan.index, order=shuffle.order, window_bytes=shuffle.window_bytes, blocks=shuffle.blocks)
    note(f"the {shuffle.order} shuffle permutes positions and holds no examples")
    return plan.with_nodes([index, *(n for n in plan.nodes[1:] if n is not shuffle)])
