"""table of solarization, table of equalization → one table: solarization · equalization.

Tables compose into a table, so a chain of them costs one look-up. Exact: entries are integers, and a table that needs the
histogram of an image gets it mapped through the tables before it.
"""

from __future__ import annotations

from pipegen.ops.families.lookup_tables import LookupTable
from pipegen.passes.plan_pass import Note, PassContext, Placed, joined, rewrite
from pipegen.plan.nodes import Plan


@rewrite("E0", "one look-up for a run of tables", in_parts=True)
def fold_tables(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merges adjacent tables on the same feature."""
    folded = joined(plan, _folded)
    for stage in folded.stages():
        if isinstance(stage, LookupTable) and len(stage.refs) > 1:
            note(f"{len(stage.refs)} tables on `{stage.feature}` became one look-up")
    return folded


def _folded(first: Placed, second: Placed) -> Placed | None:
    a, b = first.stage, second.stage
    if not (isinstance(a, LookupTable) and isinstance(b, LookupTable) and a.feature == b.feature):
        return None
    return Placed(LookupTable(a.feature, a.refs + b.refs, a.reads_histogram or b.reads_histogram), first.before, second.after)
