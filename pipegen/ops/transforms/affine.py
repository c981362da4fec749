"""Zoom, slant, turn and move images, each by itself or all in one step, and show them in perspective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, FAR, SLANT, STEEP, TURN, Amount, Degrees, Magnitude, Number, needs_one, odd_factor
from pipegen.ops.lowering.linear import affine, cornered, magnified, moved, radians, slanted, turned, uniform, zeros_for
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UnconditionalTransform, UniformTransform
from pipegen.ops.traits import Family, Traits, same_type
from pipegen.types import FeatureType

Angle = Annotated[float, Field(ge=-89, le=89), STEEP]


class AffineTransform(AmountTransform, GeometricTransform):
    """A zoom, a shear, a rotation and a translation, as one matrix."""

    factors = frozenset({"factor"})

    _given = needs_one("degrees", "x", "y", "shear_x", "shear_y", "factor")

    def reach(self) -> Reach:
        r = self.ranges()
        return Reach.of_zoom(r["factor"]).then(Reach.of_slant(r["shear_x"], r["shear_y"])).then(Reach.of_move(r["x"], r["y"]))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        amounts = self.amounts(u)
        shear = amounts.pop("shear_x"), amounts.pop("shear_y")
        return affine(**amounts, shear=shear, height=height, width=width)


class Affine(FixedTransform, AffineTransform):
    """Magnifies, slants and turns every image about its centre, in this order, and then moves it.

    It is the run of `zoom`, `shear`, `rotation` and `translation`, written as one step, with their directions.
    """

    op = "affine"
    examples = same_type("affine: {degrees: 15, x: 0.1, factor: 1.2}", "affine: {shear_x: 10, shear_y: -5, fill: {constant: 0}}")

    degrees: Annotated[Number, TURN] = 0.0
    """The angle in degrees, counter-clockwise."""
    x: Annotated[Number, FAR] = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Annotated[Number, FAR] = 0.0
    """The distance down, as a fraction of the height."""
    shear_x: Angle = 0.0
    """The angle in degrees by which rows slide; a positive one moves the lower half to the right."""
    shear_y: Angle = 0.0
    """The angle in degrees by which columns slide, after the rows; a positive one moves the right half down."""
    factor: Annotated[Number, Field(gt=0), odd_factor(low=0.2, high=5.0, drawn=False)] = 1.0
    """The factor for both sides; above 1 magnifies."""


class RandomAffine(UniformTransform, AffineTransform):
    """Magnifies, slants and turns an image about its centre, in this order, and then moves it; each amount is drawn uniformly.

    It is the run of `random_zoom`, `random_shear`, `random_rotation` and `random_translation`, written as one step, with their
    directions. An argument without a value changes nothing.
    """

    op = "random_affine"
    examples = same_type(
        "random_affine: {degrees: 20, x: 0.1, y: 0.1, factor: 0.2}",
        "random_affine: {degrees: 10, shear_x: 10, shear_y: 5, interpolation: bicubic}",
        "random_affine: {x: [0, 0.1], factor: [0.5, 1], fill: {constant: 0}}",
    )

    degrees: Degrees = 0.0
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""
    x: Annotated[Amount, FAR] = 0.0
    """The distance to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Annotated[Amount, FAR] = 0.0
    """The distance down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""
    shear_x: Annotated[Magnitude, SLANT, STEEP] = 0.0
    """The angle in degrees, below 90, by which rows slide; a positive one moves the lower half to the right. 10 means from -10 to 10, a
    pair is the range."""
    shear_y: Annotated[Magnitude, SLANT, STEEP] = 0.0
    """The angle in degrees, below 90, by which columns slide, after the rows; a positive one moves the right half down. 10 means from
    -10 to 10, a pair is the range."""
    factor: Annotated[Magnitude, ABOVE_ZERO, odd_factor(low=0.2, high=5.0)] = 0.0
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""


class RotationTransform(AmountTransform, GeometricTransform):
    """A rotation about the centre."""

    def reach(self) -> Reach:
        return Reach()

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return turned(radians(self.amounts(u)["degrees"]), height, width)


class Rotation(FixedTransform, RotationTransform):
    """Turns every image about its centre by one angle.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "rotation"
    examples = same_type("rotation: {degrees: 90}", "rotation: {degrees: -15, fill: {constant: 0}}")

    degrees: Annotated[Number, TURN]
    """The angle in degrees, counter-clockwise."""


class RandomRotation(UniformTransform, RotationTransform):
    """Turns an image about its centre by an angle drawn uniformly.

    Positive angles turn the picture counter-clockwise as you see it. The canvas keeps its size; what turns in from
    outside is `fill`.
    """

    op = "random_rotation"
    examples = same_type("random_rotation: {degrees: 20}", "random_rotation: {degrees: [0, 90], fill: {constant: 0}}")

    degrees: Degrees
    """The angle in degrees, counter-clockwise: 20 means from -20 to 20, a pair is the range."""


class ShearTransform(AmountTransform, GeometricTransform):
    """A shear about the centre, along one axis or both."""

    if TYPE_CHECKING:  # an argument of each form, documented there
        axis: Literal["x", "y", "both"]

    def reach(self) -> Reach:
        bounds = next(iter(self.ranges().values()))
        return Reach.of_slant(*[bounds] * (2 if self.axis == "both" else 1))

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        slopes = [tf.tan(radians(degrees)) for degrees in self.amounts(u).values()]
        first, last = slopes[0], slopes[-1]
        return slanted(first if self.axis != "y" else 0.0, last if self.axis != "x" else 0.0, first, height, width)


class Shear(FixedTransform, ShearTransform):
    """Slants every image about its centre by one angle; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` slants along x first, then along y.
    """

    op = "shear"
    examples = same_type("shear: {degrees: 10}", "shear: {degrees: -5, axis: y, fill: wrap}")

    degrees: Annotated[float, Field(ge=-89, le=89), STEEP]
    """The angle in degrees, below 90."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, by the same angle."""


class RandomShear(UniformTransform, ShearTransform):
    """Slants an image about its centre by an angle drawn uniformly; areas keep their size.

    With (x, y) measured from the centre, x to the right and y down: `axis: x` moves content to
    x' = x + tan(angle) y, so that a positive angle moves the lower half to the right; `axis: y` moves it to
    y' = y + tan(angle) x; `axis: both` draws two angles and slants along x first, then along y.
    """

    op = "random_shear"
    examples = same_type("random_shear: {degrees: 10}", "random_shear: {degrees: [0, 15], axis: both}")

    degrees: Annotated[Magnitude, SLANT, STEEP]
    """The angle in degrees, below 90: 10 means from -10 to 10, a pair is the range."""
    axis: Literal["x", "y", "both"] = "x"
    """The direction in which content moves: `x` (rows slide), `y` (columns slide), or `both`, by an angle each."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        return dict.fromkeys(("degrees_x", "degrees_y") if self.axis == "both" else ("degrees",), super().ranges()["degrees"])


class TranslationTransform(AmountTransform, GeometricTransform):
    """A move by fractions of the sides."""

    keeps_axes = True

    _given = needs_one("x", "y", message="give `x` (a fraction of the width), `y` (a fraction of the height), or both")

    def reach(self) -> Reach:
        return Reach.of_move(*self.ranges().values())

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        amounts = self.amounts(u)
        return moved(amounts["x"] * width, amounts["y"] * height)


class Translation(FixedTransform, TranslationTransform):
    """Moves every picture by fractions of its sides.

    Positive `x` moves the picture to the right and positive `y` moves it down: with `x: 0.1` an image 200 pixels wide
    shows its first column at column 20.
    """

    op = "translation"
    examples = same_type("translation: {x: 0.1, y: -0.05}", "translation: {y: 0.25, fill: nearest}")

    x: Annotated[Number, FAR] = 0.0
    """The distance to the right, as a fraction of the width."""
    y: Annotated[Number, FAR] = 0.0
    """The distance down, as a fraction of the height."""


class RandomTranslation(UniformTransform, TranslationTransform):
    """Moves the picture by fractions of its sides, drawn uniformly and independently.

    Positive `x` moves the picture to the right and positive `y` moves it down: with `x: [0.1, 0.1]` an image 200
    pixels wide shows its first column at column 20.
    """

    op = "random_translation"
    examples = same_type("random_translation: {x: 0.1, y: 0.1}", "random_translation: {x: [0, 0.25], fill: nearest}")

    x: Annotated[Amount, FAR] = 0.0
    """The distance to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Annotated[Amount, FAR] = 0.0
    """The distance down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""


Factor = Annotated[Number, Field(gt=0)]
EXTREME = odd_factor(low=0.2, high=5.0, drawn=False)
EXTREMES = odd_factor(low=0.2, high=5.0)


class ZoomTransform(AmountTransform, GeometricTransform):
    """A magnification about the centre, by one factor or by one for each side."""

    keeps_axes = True
    factors = frozenset({"factor", "x", "y"})

    if TYPE_CHECKING:  # arguments of each form, documented there
        factor: Any
        x: Any
        y: Any

    @model_validator(mode="after")
    def _one_form(self) -> ZoomTransform:
        sides = self.x is not None or self.y is not None
        if (self.factor is not None) == sides:
            raise ValueError("give either `factor`, which keeps the proportions, or `x` and `y`")
        return self

    def reach(self) -> Reach:
        return Reach.of_zoom(*self.ranges().values())

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        factors = list(self.amounts(u).values())
        return magnified(factors[0], factors[-1], height, width)


class Zoom(FixedTransform, ZoomTransform):
    """Magnifies or shrinks every image about its centre by one factor; the canvas keeps its size.

    A factor of 2 shows the middle half of each side at twice its size; a factor of 0.5 shows the whole image at half
    its size, with `fill` around it. `factor` keeps the proportions; `x` and `y` give a factor for each side.
    """

    op = "zoom"
    examples = same_type("zoom: {factor: 1.25}", "zoom: {x: 1.1, y: 0.9, fill: {constant: 0}}")

    factor: Annotated[Factor | None, EXTREME] = None
    """The factor for both sides; above 1 magnifies."""
    x: Annotated[Factor | None, EXTREME] = None
    """The factor for the width alone; above 1 widens."""
    y: Annotated[Factor | None, EXTREME] = None
    """The factor for the height alone; above 1 heightens."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        across, down = (self.factor if self.factor is not None else 1.0 if side is None else side for side in (self.x, self.y))
        return {"x": (across, across), "y": (down, down)}

    def meaning(self) -> dict[str, Any]:
        (across, _), (down, _) = self.ranges().values()
        return super().meaning() | ({"factor": across, "x": None, "y": None} if across == down else {"x": across, "y": down})


class RandomZoom(UniformTransform, ZoomTransform):
    """Magnifies or shrinks an image about its centre by a factor drawn uniformly; the canvas keeps its size.

    A factor of 2 shows the middle half of each side at twice its size; a factor of 0.5 shows the whole image at half
    its size, with `fill` around it. `factor` keeps the proportions; `x` and `y` draw a factor for each side. (Keras'
    layer counts the other way: its -0.2 is the factor 1 / 0.8 here.)
    """

    op = "random_zoom"
    examples = same_type("random_zoom: {factor: 0.2}", "random_zoom: {factor: [1.0, 1.5]}", "random_zoom: {x: 0.1, y: 0.2}")

    factor: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""
    x: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for the width alone; above 1 widens: 0.2 means from 0.8 to 1.2, a pair is the range."""
    y: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for the height alone; above 1 heightens: 0.2 means from 0.8 to 1.2, a pair is the range."""

    def ranges(self) -> dict[str, tuple[float, float]]:
        found = super().ranges()
        return found if self.factor is not None else {name: found.get(name, (1.0, 1.0)) for name in ("x", "y")}

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        return values if self.factor is not None else {**values, "x": values["x"] or 0.0, "y": values["y"] or 0.0}


Corner = tuple[Number, Number]


class PerspectiveTransform(GeometricTransform):
    """A projective map that moves the corners."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.GEOMETRIC, projective=True)


class Perspective(UnconditionalTransform, PerspectiveTransform):
    """Shows every image in perspective: its corners move, and straight lines stay straight.

    A corner moves by `[x, y]`: x to the right, as a fraction of the width, and y down, as a fraction of the height. A corner without a
    value stays in its place. `fill` shows outside the picture, and in place of what would lie behind the viewer.
    """

    op = "perspective"
    examples = same_type(
        "perspective: {top_left: [0.15, 0], top_right: [-0.15, 0]}", "perspective: {bottom_right: [-0.2, -0.1], fill: {constant: 0}}"
    )

    top_left: Corner = (0.0, 0.0)
    """How far the top left corner moves, [x, y] in fractions of the sides, to the right and down."""
    top_right: Corner = (0.0, 0.0)
    """How far the top right corner moves, [x, y] in fractions of the sides, to the right and down."""
    bottom_left: Corner = (0.0, 0.0)
    """How far the bottom left corner moves, [x, y] in fractions of the sides, to the right and down."""
    bottom_right: Corner = (0.0, 0.0)
    """How far the bottom right corner moves, [x, y] in fractions of the sides, to the right and down."""

    _given = needs_one("top_left", "top_right", "bottom_left", "bottom_right")

    def _moves(self) -> tuple[Corner, ...]:
        return self.top_left, self.top_right, self.bottom_left, self.bottom_right

    @model_validator(mode="after")
    def _convex(self) -> Perspective:
        unit = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
        moved = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(unit, self._moves(), strict=True)]
        around = [moved[i] for i in (0, 1, 3, 2)]
        for (ax, ay), (bx, by), (cx, cy) in zip(around, around[1:] + around[:1], around[2:] + around[:2], strict=True):
            if (bx - ax) * (cy - by) - (by - ay) * (cx - bx) < 1e-6:
                raise ValueError("the corners no longer make a convex picture: one of them has crossed the line between two others")
        return self

    def idle(self) -> bool:
        return set(self._moves()) == {(0, 0)}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        like = zeros_for(u)
        return cornered([(like + x, like + y) for x, y in self._moves()], like, height, width)


class RandomPerspective(UniformTransform, PerspectiveTransform):
    """Shows an image in perspective: each of its corners moves by distances of its own, and straight lines stay straight.

    Eight numbers are drawn uniformly: how far the top left, top right, bottom left and bottom right corner go to the
    right (`x`) and down (`y`). `fill` shows outside the picture, and in place of what would lie behind the viewer. (Keras' layer calls the
    distance `scale`, draws up to half of it, and leaves the top left corner in place; its `factor` is the `probability` here.)
    """

    op = "random_perspective"
    draws = 8
    examples = same_type("random_perspective: {x: 0.1, y: 0.1}", "random_perspective: {x: 0.2, probability: 0.5, fill: {constant: 0}}")

    x: Amount = 0.0
    """How far each corner goes to the right, as a fraction of the width: 0.1 means from -0.1 to 0.1, a pair is the range."""
    y: Amount = 0.0
    """How far each corner goes down, as a fraction of the height: 0.1 means from -0.1 to 0.1, a pair is the range."""

    @model_validator(mode="after")
    def _convex(self) -> RandomPerspective:
        if not self.model_fields_set & {"x", "y"}:
            raise ValueError("give `x` (a fraction of the width), `y` (a fraction of the height), or both")
        if self._spread() >= 1:
            # Of three corners in a row the product of the sides is (1 - spread of x)(1 - spread of y) - spread of x · spread of y.
            raise ValueError(
                f"corners must not cross, so the ranges of `x` and `y` must span less than 1 together; they span {self._spread():g} "
                "(`x: 0.1` spans 0.2, from -0.1 to 0.1)"
            )
        return self

    def _spread(self) -> float:
        """How far the corners can move apart: at 0 all move alike, and from 1 on three of them can lie on one line."""
        return sum(high - low for low, high in self.ranges().values())

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        if self._spread() <= 0.9:
            return ()
        message = f"`{self.op}` can fold an image almost flat: its ranges span {self._spread():g}, and at 1 corners cross"
        return (OpError("PG510", message, help="common values lie between 0.05 and 0.2"),)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`x` and `y` of the top left, top right, bottom left and bottom right corner, `(..., 4)` each."""
        return {name: uniform(u[..., i::2], bounds) for i, (name, bounds) in enumerate(self.ranges().items())}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        drawn = self.drawn(u)
        corners = [(drawn["x"][..., i], drawn["y"][..., i]) for i in range(4)]
        return cornered(corners, corners[0][0], height, width)
