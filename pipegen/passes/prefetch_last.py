"""Emit → Emit, Prefetch.

Finished batches wait for the model, so that the next one is made while it trains. Two of them even out what takes longer now
and then; of large ones, and on a device, one is enough: the more examples a batch has, the less batches differ.
"""

from __future__ import annotations

from pipegen.passes.base import Note, Pass, PassContext
from pipegen.plan.cost import example_bytes
from pipegen.plan.nodes import Plan, Prefetch
from pipegen.spec.models import DevicePrefetch

LARGE = 64 << 20
"""Bytes of a batch that is large."""


def prefetch_last(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Append a Prefetch."""
    wanted = context.runtime.prefetch
    if wanted == "none":
        return plan
    device = wanted.device if isinstance(wanted, DevicePrefetch) else None
    note("batches are made while the model trains" + (f", and copied to device {device}" if device else ""))
    large = example_bytes(plan.out) * plan.batch.size > LARGE
    usual = 1 if device or large else 2
    return plan.with_nodes([*plan.nodes, Prefetch(plan.out, device, wanted if isinstance(wanted, int) else usual)])


PREFETCH_LAST = Pass("prefetch_last", "E0", "the model finds its next batch ready", prefetch_last)
