"""Arguments of geometric steps: sizes, fills of borders, and bounds of the distance between reading and writing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from pipegen.errors import InternalError, OpError
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.model import Model
from pipegen.types import INTEGER_RANGES, FeatureType, Interval

Side = Annotated[int, Field(ge=1, le=32767)]  # a side of an image in pixels
FixedSize = Side | tuple[Side, Side]  # a square's side or `[height, width]`, in pixels
Size = FixedSize | Literal["bucket"]  # the same; or `bucket`, the size of the image's bucket of `batch.buckets`
BUCKET: Literal["bucket"] = "bucket"


def height_width(size: int | tuple[int, int] | Literal["bucket"]) -> tuple[int, int]:
    """`(height, width)` of a `Size`, in pixels, once the bucket is bound."""
    if isinstance(size, str):
        raise InternalError("the size of a step was asked for before its bucket is bound")
    return (size, size) if isinstance(size, int) else (size[0], size[1])


class ConstantFill(Model):
    """Fill with one value."""

    constant: Number = 0.0
    """The value, in the units of the incoming values. An image aligned with it is filled with the same value, so a value other than 0 needs
    the same range of both; a mask is filled with its `ignore`."""


Fill = Literal["reflect", "nearest", "wrap"] | ConstantFill
"""The fill outside the image: `reflect` (abc|cba, with the edge pixel repeated), `nearest`, `wrap`, or `{constant: VALUE}`."""

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def filled(x: FeatureType, fill: Fill) -> FeatureType:
    """The type of an image of type `x` with filled parts; `PG207` for a constant that the dtype cannot hold."""
    if not isinstance(fill, ConstantFill) or x.interval is None:
        return x
    require_holds(x, fill.constant, "filled")
    return x.with_(interval=x.interval.union(Interval(fill.constant, fill.constant)))


def require_holds(x: FeatureType, value: float, done: str) -> None:
    """Rejects, as `PG207`, a constant that the dtype of an image of type `x` cannot hold; `done` is its use, such as `filled`."""
    whole = INTEGER_RANGES.get(x.dtype)
    if whole is not None and not (whole.low <= value <= whole.high and value == int(value)):
        help_ = f"use a whole number from 0 to {whole.high:.0f}"
        raise OpError("PG207", f"a {x.dtype} image cannot be {done} with {value:g}", field="fill", help=help_)


OVERSHOOTS: frozenset[str] = frozenset({"bicubic", "lanczos", "lanczos3", "lanczos5", "mitchellcubic"})
"""Interpolations, methods of `resize` and filters of Pillow with negative weights: results can exceed the range of the input."""


def interpolated(x: FeatureType, interpolation: str) -> FeatureType:
    """The type of an image of type `x` read between pixels; floats have no interval after an interpolation that `OVERSHOOTS`."""
    if interpolation not in OVERSHOOTS or x.interval is None:
        return x
    return x.with_(interval=INTEGER_RANGES.get(x.dtype))


Bounds: TypeAlias = "tuple[float, float]"


class Reach(NamedTuple):
    """Bounds of the matrices of a step, from output to input positions: the greatest factor on the distance from the centre of the canvas
    (at least 1, since a step may not act), and the greatest further distance, in sides of the canvas."""

    scale: float = 1.0
    shift: float = 0.0

    def then(self, other: Reach) -> Reach:
        """The bounds of the product of both, in either order."""
        return Reach(self.scale * other.scale, self.shift * other.scale + other.shift * self.scale)

    @classmethod
    def of_move(cls, *fractions: Bounds) -> Reach:
        """The bounds of moves by fractions of the sides in these ranges."""
        return cls(1.0, math.hypot(*map(_most, fractions)))

    @classmethod
    def of_zoom(cls, *factors: Bounds) -> Reach:
        """The bounds of magnifications by factors in these ranges, one for each side or for both."""
        least = min(low for low, _ in factors)
        return cls(math.inf if least <= 0 else max(1.0, 1.0 / least))

    @classmethod
    def of_slant(cls, *degrees: Bounds) -> Reach:
        """The bounds of shears by angles in these ranges, along one axis after another."""
        return cls(math.prod(1.0 + math.tan(math.radians(_most(angle))) for angle in degrees))


def stays_within(reaches: Iterable[Reach | None], scale: float, sides: float) -> bool:
    """Whether no product of matrices, bounded by the `reaches` of steps (None if unknown), lengthens a distance `scale` times, or leads
    `sides` sides away from the canvas."""
    whole = Reach()
    for reach in reaches:
        if reach is None:
            return False
        whole = whole.then(reach)
    # The corners of the output are at most 1 / √2 sides from the centre of the canvas, and that is half a side from its edges.
    return whole.scale < scale and whole.scale + whole.shift + 1.0 < sides


def _most(bounds: Bounds) -> float:
    return max(map(abs, bounds))
