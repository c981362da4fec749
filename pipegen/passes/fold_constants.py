"""`rescale: {scale: 1/255}`, `normalize: {mean, std}` → one scale and one offset for each channel.

Adjacent arithmetic on floats becomes one multiply and one add. E1: values are rounded once, not twice.
"""

from __future__ import annotations

from pipegen.passes.plan_pass import Note, PassContext, Placed, joined, rewrite
from pipegen.plan import stages as s
from pipegen.plan.nodes import Plan
from pipegen.types import FLOATING


@rewrite("E1", "one multiply and one add instead of several", in_parts=True)
def fold_constants(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merges adjacent arithmetic with a float32 value in between."""

    def fold(first: Placed, second: Placed) -> Placed | None:
        a, b = first.stage, second.stage
        if not (isinstance(a, s.Pointwise) and isinstance(b, s.Pointwise) and a.feature == b.feature):
            return None
        # Values that are rounded to integers later would show the difference in rounding.
        if a.exact or a.arithmetic.dtype != "float32" or b.arithmetic.dtype not in FLOATING:
            return None
        note(f"two steps of arithmetic on `{a.feature}` became one")
        return Placed(s.Pointwise(a.feature, a.arithmetic.then(b.arithmetic), a.refs + b.refs), first.before, second.after)

    return joined(plan, fold)
