"""table of solarization, table of equalization → one table: solarization · equalization.

A table read through a table is a table, so a chain of them costs one look-up. Exact: entries are whole numbers, and a
table that needs the histogram of an image between two steps gets it pushed through the tables before it.
"""

from __future__ import annotations

from collections.abc import Callable

from pipegen.passes.base import Pass, PassContext, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan


def fold_tables(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Merge adjacent tables on the same feature."""
    kept: list[Node | Placed] = []
    for item in unpack(plan):
        previous = kept[-1] if kept else None
        folded = _folded(previous, item) if isinstance(previous, Placed) and isinstance(item, Placed) else None
        if folded is not None:
            kept[-1] = folded
        else:
            kept.append(item)
    for item in kept:
        if isinstance(item, Placed) and isinstance(item.stage, s.LookupTable) and len(item.stage.refs) > 1:
            note(f"{len(item.stage.refs)} tables on `{item.stage.feature}` became one look-up")
    return pack(plan, kept)


def _folded(first: Placed, second: Placed) -> Placed | None:
    a, b = first.stage, second.stage
    if not (isinstance(a, s.LookupTable) and isinstance(b, s.LookupTable) and a.feature == b.feature):
        return None
    return Placed(s.LookupTable(a.feature, a.refs + b.refs, a.reads_histogram or b.reads_histogram), first.before, second.after)


FOLD_TABLES = Pass("fold_tables", "E0", "one look-up for a run of tables", fold_tables)
