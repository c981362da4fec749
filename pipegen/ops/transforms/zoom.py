"""`zoom` and `random_zoom`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Magnitude, Number, odd_factor
from pipegen.ops.lowering.linear import magnified, uniform
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UniformTransform
from pipegen.ops.traits import same_type

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
    layer counts the other way, and draws uniformly what it counts: its 0.2 is `factor: [0.833333, 1.25], inverse: true`.)
    """

    op = "random_zoom"
    examples = same_type("random_zoom: {factor: 0.2}", "random_zoom: {factor: [1.0, 1.5], inverse: true}", "random_zoom: {x: 0.1, y: 0.2}")

    factor: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""
    x: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for the width alone; above 1 widens: 0.2 means from 0.8 to 1.2, a pair is the range."""
    y: Annotated[Magnitude | None, ABOVE_ZERO, EXTREMES] = None
    """The factor for the height alone; above 1 heightens: 0.2 means from 0.8 to 1.2, a pair is the range."""
    inverse: bool = False
    """Draw the share of the image that is shown uniformly, which is 1 / factor, in place of the factor; the range stays."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        if not self.inverse:
            return super().drawn(u)
        bounds = {name: (1 / high, 1 / low) for name, (low, high) in self.ranges().items()}
        return {name: 1 / uniform(drawn, own) for drawn, (name, own) in zip(tf.unstack(u, axis=-1), bounds.items(), strict=False)}

    def ranges(self) -> dict[str, tuple[float, float]]:
        found = super().ranges()
        return found if self.factor is not None else {name: found.get(name, (1.0, 1.0)) for name in ("x", "y")}

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        return values if self.factor is not None else {**values, "x": values["x"] or 0.0, "y": values["y"] or 0.0}
