"""`rescale: {scale: 1/255}`, `normalize: {mean, std}` → one scale and one offset for each channel.

Adjacent arithmetic on floats becomes one multiply and one add. E1: the product of the constants rounds once where the
values rounded twice.
"""

from __future__ import annotations

from pipegen.ops.base import Arithmetic
from pipegen.passes.base import Note, Pass, PassContext, Placed, joined
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
        return Placed(s.Pointwise(a.feature, merge(a.arithmetic, b.arithmetic), a.refs + b.refs), first.before, second.after)

    return joined(plan, fold)


def merge(a: Arithmetic, b: Arithmetic) -> Arithmetic:
    """`b` after `a`, as one."""
    channels = max(len(a.scale), len(b.scale), len(a.order), len(b.order))

    def spread(values: tuple[float, ...]) -> tuple[float, ...]:
        return values if len(values) == channels else values * channels

    a_scale, a_offset, b_scale, b_offset = spread(a.scale), spread(a.offset), spread(b.scale), spread(b.offset)
    order = b.order or tuple(range(channels))
    scale = tuple(a_scale[order[c]] * b_scale[c] for c in range(channels))
    offset = tuple(a_offset[order[c]] * b_scale[c] + b_offset[c] for c in range(channels))
    if a.order or b.order:
        inner = a.order or tuple(range(channels))
        return Arithmetic(scale, offset, b.dtype, tuple(inner[order[c]] for c in range(channels)))
    return Arithmetic(scale, offset, b.dtype)


FOLD_CONSTANTS = Pass("fold_constants", "E1", "one multiply and one add instead of several", fold_constants)
