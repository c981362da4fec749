"""Emit → Emit, Prefetch.

Finished batches wait for the model, so that the next one is made while it trains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.passes.base import Pass
from pipegen.plan.nodes import Prefetch
from pipegen.spec.models import DevicePrefetch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.passes.base import PassContext
    from pipegen.plan.nodes import Plan


def prefetch_last(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Append a Prefetch."""
    wanted = context.runtime.prefetch
    if wanted == "none":
        return plan
    device = wanted.device if isinstance(wanted, DevicePrefetch) else None
    note("batches are made while the model trains" + (f", and copied to device {device}" if device else ""))
    return plan.with_nodes([*plan.nodes, Prefetch(plan.out, device)])


PREFETCH_LAST = Pass("prefetch_last", "E0", "the model finds its next batch ready", prefetch_last)
