"""`rescale: {scale: 1/255}`, `normalize: {mean, std}` → one scale and one offset for each channel.

Adjacent arithmetic on floats becomes one multiply and one add. E1: the product of the constants rounds once where the
values rounded twice.
"""

from __future__ import annotations

from collections.abc import Callable

from pipegen.ops.base import Arithmetic
from pipegen.passes.base import Pass, PassContext, Placed, pack, unpack
from pipegen.plan import stages as s
from pipegen.plan.nodes import Node, Plan
from pipegen.types import FLOATING


def fold_constants(plan: Plan, context: PassContext, note: Callable[[str], None]) -> Plan:
    """Merge adjacent arithmetic whose value in between is float32."""
    kept: list[Node | Placed] = []
    for item in unpack(plan):
        previous = kept[-1] if kept else None
        if isinstance(item, Placed) and isinstance(previous, Placed) and _mergeable(previous, item):
            first, second = previous.stage, item.stage
            assert isinstance(first, s.Pointwise) and isinstance(second, s.Pointwise)  # noqa: S101, PT018
            merged = s.Pointwise(first.feature, merge(first.arithmetic, second.arithmetic), first.refs + second.refs)
            note(f"two steps of arithmetic on `{first.feature}` became one")
            kept[-1] = Placed(merged, previous.before, item.after)
        else:
            kept.append(item)
    return pack(plan, kept)


def _mergeable(a: Placed, b: Placed) -> bool:
    if not (isinstance(a.stage, s.Pointwise) and isinstance(b.stage, s.Pointwise) and a.stage.feature == b.stage.feature):
        return False
    if a.stage.exact:
        return False  # what is rounded to whole numbers later would show that the values round once and not twice
    between, out = a.stage.arithmetic.dtype, b.stage.arithmetic.dtype
    return between == "float32" and out in FLOATING


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
