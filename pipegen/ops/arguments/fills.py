"""What a step puts where the image has no pixels, and how it reads between pixels."""

from __future__ import annotations

from typing import Literal

from pipegen.errors import OpError
from pipegen.ops.arguments.schedules import Number
from pipegen.ops.model import Model
from pipegen.types import BYTE_RANGE, FeatureType, Interval


class ConstantFill(Model):
    """Fill with one value."""

    constant: Number = 0.0
    """The value, in the units of the image that enters the step."""


Fill = Literal["reflect", "nearest", "wrap"] | ConstantFill
"""What lies outside the image: `reflect` (abc|cba, the edge pixel repeated), `nearest`, `wrap`, or `{constant: VALUE}`."""

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def filled(x: FeatureType, fill: Fill) -> FeatureType:
    """The type of an image of type `x` of which some is filled.

    Raises:
        OpError: `PG207` for a constant that a byte cannot hold.
    """
    if not isinstance(fill, ConstantFill) or x.interval is None:
        return x
    value = fill.constant
    if x.dtype == "uint8" and not (0 <= value <= 255 and value == int(value)):
        raise OpError("PG207", f"a uint8 image cannot be filled with {value:g}", field="fill", help="use a whole number from 0 to 255")
    return x.with_(interval=x.interval.union(Interval(value, value)))


def interpolated(x: FeatureType, interpolation: Interpolation) -> FeatureType:
    """The type of an image of type `x` read between pixels: floats have no interval behind `bicubic`, which overshoots."""
    if interpolation != "bicubic" or x.interval is None:
        return x
    return x.with_(interval=BYTE_RANGE if x.dtype == "uint8" else None)
