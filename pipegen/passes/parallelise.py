"""Element, Kernel → the same, on every thread of the pipeline's own pool.

Results keep the order of their inputs, so no value depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import replace

from pipegen.passes.plan_pass import Note, PassContext, rewrite
from pipegen.plan.nodes import Element, Kernel, Plan


@rewrite("E0", "decoding and augmenting use every core")
def parallelise(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Marks element and kernel nodes as parallel."""
    if context.runtime.threads == 1:
        note("the spec asks for one thread")
        return plan
    threads = context.runtime.threads
    note("every core of this process" if threads == "auto" else f"{threads} threads")
    return plan.with_nodes([replace(n, parallel=True) if isinstance(n, (Element, Kernel)) else n for n in plan.nodes])
