"""What geometric steps take: sizes, what fills borders, and how far they read from where they write."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from pipegen.errors import InternalError, OpError
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.model import Model
from pipegen.types import INTEGER_RANGES, FeatureType, Interval

Side = Annotated[int, Field(ge=1, le=32767)]
"""A side of an image in pixels."""
FixedSize = Side | tuple[Side, Side]
"""A square's side or `[height, width]`, in pixels."""
Size = FixedSize | Literal["bucket"]
"""The same; or `bucket`, the size of whichever bucket of `batch.buckets` an image is in."""
BUCKET: Literal["bucket"] = "bucket"


def height_width(size: int | tuple[int, int] | Literal["bucket"]) -> tuple[int, int]:
    """`(height, width)` of a `Size`, in pixels; which bucket it is has to be known by then."""
    if isinstance(size, str):
        raise InternalError("a step is asked for its size, and nobody has said which bucket it works for")
    return (size, size) if isinstance(size, int) else (size[0], size[1])


class ConstantFill(Model):
    """Fill with one value."""

    constant: Number = 0.0
    """The value, in the units of the image that enters the step. An image aligned with it is filled with the same value, so that any
    but 0 needs both to have one range; a mask is filled with its `ignore`."""


Fill = Literal["reflect", "nearest", "wrap"] | ConstantFill
"""What lies outside the image: `reflect` (abc|cba, the edge pixel repeated), `nearest`, `wrap`, or `{constant: VALUE}`."""

Interpolation = Literal["nearest", "bilinear", "bicubic"]


def filled(x: FeatureType, fill: Fill) -> FeatureType:
    """The type of an image of type `x` of which some is filled; `PG207` for a constant that the dtype cannot hold."""
    if not isinstance(fill, ConstantFill) or x.interval is None:
        return x
    require_holds(x, fill.constant, "filled")
    return x.with_(interval=x.interval.union(Interval(fill.constant, fill.constant)))


def require_holds(x: FeatureType, value: float, done: str) -> None:
    """Rejects, as `PG207`, a constant that the dtype of an image of type `x` cannot hold; `done` is what is done with it: `filled`."""
    whole = INTEGER_RANGES.get(x.dtype)
    if whole is not None and not (whole.low <= value <= whole.high and value == int(value)):
        help_ = f"use a whole number from 0 to {whole.high:.0f}"
        raise OpError("PG207", f"a {x.dtype} image cannot be {done} with {value:g}", field="fill", help=help_)


def interpolated(x: FeatureType, interpolation: Interpolation) -> FeatureType:
    """The type of an image of type `x` read between pixels: floats have no interval behind `bicubic`, which overshoots."""
    if interpolation != "bicubic" or x.interval is None:
        return x
    return x.with_(interval=INTEGER_RANGES.get(x.dtype))


Bounds: TypeAlias = "tuple[float, float]"


class Reach(NamedTuple):
    """Bounds the matrices of a step, from output to input positions.

    Attributes:
        scale: By how much, at most, they lengthen the distance from the centre of the canvas; at least 1, since a step may not act.
        shift: How far, at most, they move a position beside that, in sides of the canvas.
    """

    scale: float = 1.0
    shift: float = 0.0

    def then(self, other: Reach) -> Reach:
        """Bounds the product of both, in either order."""
        return Reach(self.scale * other.scale, self.shift * other.scale + other.shift * self.scale)

    @classmethod
    def of_move(cls, *fractions: Bounds) -> Reach:
        """Bounds what moves by fractions of the sides in these ranges."""
        return cls(1.0, math.hypot(*map(_most, fractions)))

    @classmethod
    def of_zoom(cls, *factors: Bounds) -> Reach:
        """Bounds what magnifies by factors in these ranges, one for each side or for both."""
        least = min(low for low, _ in factors)
        return cls(math.inf if least <= 0 else max(1.0, 1.0 / least))

    @classmethod
    def of_slant(cls, *degrees: Bounds) -> Reach:
        """Bounds what slants by angles in these ranges, along one axis after another."""
        return cls(math.prod(1.0 + math.tan(math.radians(_most(angle))) for angle in degrees))


def stays_within(reaches: Iterable[Reach | None], scale: float, sides: float) -> bool:
    """Returns whether no product of such matrices lengthens a distance `scale` times, or leads `sides` sides away from the canvas.

    Args:
        reaches: Of the steps; nothing is known of one that is None.
        scale: Must not be reached.
        sides: Must not be reached by any position of the output, in sides of the canvas.
    """
    whole = Reach()
    for reach in reaches:
        if reach is None:
            return False
        whole = whole.then(reach)
    # The output lies on the canvas, so that its corners are at most 1 / √2 sides from the centre, and that half a side from a corner.
    return whole.scale < scale and whole.scale + whole.shift + 1.0 < sides


def _most(bounds: Bounds) -> float:
    return max(map(abs, bounds))
