"""Arguments of geometric steps: sizes, fills of borders, and bounds of the distance between reading and writing. The formats of boxes, the
names of keypoints, and the rules for keeping them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from pipegen.errors import InternalError, OpError
from pipegen.frozen import dataclass
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


BoxFormat = Literal["xyxy", "yxyx", "xywh", "center_xywh", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]
"""`xyxy` is left, top, right, bottom; `yxyx` top, left, bottom, right; `xywh` left, top, width, height; `center_xywh` the centre, width and
height. In pixels, or with `rel_` in fractions of the width and the height of the image."""


@dataclass(frozen=True, slots=True)
class BoxRules:
    """The stored format of boxes, and the rules for keeping them when their image moves."""

    format: BoxFormat | None = "xyxy"
    """The stored format; steps work on `xyxy`. `None` for boxes that are `xyxy` already and lie on their image."""
    most: int | None = None  # the most boxes of one image that leave the pipeline; the largest stay. `None` for all.
    min_area: float = 0.0  # the least visible area of a box, in square pixels
    min_visibility: float = 0.0  # the least visible share of its area
    min_size: float = 0.0  # the least visible width and height, in pixels
    empty: Literal["allow", "refuse"] = "allow"  # whether a stored image may have no box


Outside = Literal["remove", "keep"]


@dataclass(frozen=True, slots=True)
class PointRules:
    """The names of keypoints, in order (none for any number of points), the place of each in its mirror image (`swaps`), the treatment of
    points that move off the image, whether each item of another feature has a set of them, and whether stored places are fractions of the
    image, from 0 at its left and upper edge to 1."""

    names: tuple[str, ...] = ()
    swaps: tuple[int, ...] = ()
    outside: Outside = "remove"
    each: bool = False
    relative: bool = False


def swapped_places(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    """The place of each name in a mirror image."""
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return tuple(names.index(other.get(name, name)) for name in names)


_SIDES = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}
_SIDE = re.compile(r"left|Left|LEFT|(?<![A-Za-z])[lL](?![A-Za-z])")


def pairs_by_name(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The pairs of names that differ by left and right, such as `left_eye` and `right_eye`, or `L-eye` and `R-eye`."""
    found = ((name, _SIDE.sub(lambda side: _SIDES[side[0]], name)) for name in names)
    return tuple((name, other) for name, other in found if other != name and other in names)
