"""`translation` and `random_translation`."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Reach
from pipegen.ops.arguments.magnitudes import FAR, Amount, Number, needs_one
from pipegen.ops.lowering.linear import moved
from pipegen.ops.step_bases import AmountTransform, FixedTransform, GeometricTransform, UniformTransform
from pipegen.ops.traits import same_type


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
