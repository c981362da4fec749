"""Element-wise arithmetic as a value: what `rescale`, `normalize` and `cast` come down to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pipegen.types import BYTE_RANGE, FeatureType, Interval


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Element-wise arithmetic on the last axis.

    Attributes:
        scale: One factor for each output channel, or a single one for all.
        offset: Likewise, added after.
        order: Which input channel each output channel reads; empty for as it is.
        dtype: The output's dtype; an integer rounds half to even and clips to its range.
    """

    scale: tuple[float, ...]
    offset: tuple[float, ...]
    dtype: str
    order: tuple[int, ...] = ()

    def infer(self, x: FeatureType) -> FeatureType:
        """The output type."""
        interval = x.interval
        if interval is not None:
            interval = reduce(Interval.union, [interval.affine(s, o) for s, o in zip(self.scale, self.offset, strict=True)])
        if self.dtype == "uint8":
            interval = Interval(*(float(min(max(round(v), 0), 255)) for v in (interval.low, interval.high))) if interval else BYTE_RANGE
        return x.with_(dtype=self.dtype, interval=interval, centred=x.centred and not any(self.offset))

    def is_identity(self, x: FeatureType) -> bool:
        """Returns whether nothing changes on an input of type `x`."""
        plain = all(s == 1 for s in self.scale) and all(o == 0 for o in self.offset)
        return plain and self.dtype == x.dtype and self.order in ((), tuple(range(len(self.order))))

    def then(self, other: Arithmetic) -> Arithmetic:
        """Returns this and another one after it, as one; constants are multiplied in float64."""
        channels = max(len(self.scale), len(other.scale), len(self.order), len(other.order))

        def spread(values: tuple[float, ...]) -> tuple[float, ...]:
            return values if len(values) == channels else values * channels

        a_scale, a_offset, b_scale, b_offset = (spread(v) for v in (self.scale, self.offset, other.scale, other.offset))
        order = other.order or tuple(range(channels))
        scale = tuple(a_scale[order[c]] * b_scale[c] for c in range(channels))
        offset = tuple(a_offset[order[c]] * b_scale[c] + b_offset[c] for c in range(channels))
        if self.order or other.order:
            inner = self.order or tuple(range(channels))
            return Arithmetic(scale, offset, other.dtype, tuple(inner[order[c]] for c in range(channels)))
        return Arithmetic(scale, offset, other.dtype)
