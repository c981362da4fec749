"""Emit → Emit, Prefetch.

Batches are made while the model trains. Two finished ones absorb variations in time; one is enough for large batches, which
vary less and beside which parallel kernels have finished ones, and on a device.
"""

from __future__ import annotations

from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.cost import example_bytes
from pipegen.plan.nodes import Plan, Prefetch
from pipegen.spec.models import DevicePrefetch

LARGE = 16 << 20  # bytes from which on a batch is large


@rewrite("E0", "the model finds its next batch ready")
def prefetch_last(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Appends a Prefetch."""
    wanted = context.runtime.prefetch
    if wanted == "none":
        return plan
    device = wanted.device if isinstance(wanted, DevicePrefetch) else None
    note("batches are made while the model trains" + (f", and copied to device {device}" if device else ""))
    large = example_bytes(plan.out) * plan.batch.size > LARGE
    usual = 1 if device or large else 2
    return plan.with_nodes([*plan.nodes, Prefetch(plan.out, device, wanted if isinstance(wanted, int) else usual)])
