"""`rescale: {scale: 1/255}`, `normalize: {mean, std}` → one scale and one offset for each channel.

Adjacent arithmetic on floats becomes one multiply and one add. E1: the product of the constants rounds once where the
values rounded twice.
"""

from __future__ import annotations

from pipegen.passes.base import Note, Pass, PassContext, Placed, in_parts, joined
from pipegen.plan import stages as s
from pipegen.plan.nodes import Plan
from pipegen.types import FLOATING


def fold_constants(plan: Plan, context: PassContext, note: Note) -> Plan:
    """Merge adjacent arithmetic whose value in between is float32."""

    def fold(first: Placed, second: Placed) -> Placed | None:
        a, b = first.stage, second.stage
        if not (isinstance(a, s.Pointwise) and isinstance(b, s.Pointwise) and a.feature == b.feature):
            return None
        # What is rounded to whole numbers later would show that the values round once and not twice.
        if a.exact or a.arithmetic.dtype != "float32" or b.arithmetic.dtype not in FLOATING:
            return None
        note(f"two steps of arithmetic on `{a.feature}` became one")
        return Placed(s.Pointwise(a.feature, a.arithmetic.then(b.arithmetic), a.refs + b.refs), first.before, second.after)

    return joined(plan, fold)


FOLD_CONSTANTS = Pass("fold_constants", "E1", "one multiply and one add instead of several", in_parts(fold_constants))
