"""Read, Shard → Index(this host's block), Read.

A host then reads only its own examples. The block is a range of positions of the global batch, so the examples stay the same.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.nodes import Plan, Shard, Shuffle


@rewrite("E0", "a host reads only its own examples")
def shard_before_read(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Moves the shard into the index, unless a shuffle is in between."""
    shard = next((n for n in plan.nodes if isinstance(n, Shard)), None)
    if shard is None or any(isinstance(n, Shuffle) for n in plan.nodes):
        return plan
    note("a host reads only its own block")
    return plan.with_nodes([replace(plan.index, shard=True), *(n for n in plan.nodes[1:] if n is not shard)])
