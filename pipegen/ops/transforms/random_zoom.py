"""Magnify or shrink images by a random factor."""

from __future__ import annotations

from typing import Any

from pydantic import field_validator, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Magnitude, check_factor, factor_lints, factor_range
from pipegen.ops.base import IMAGE_224, Example, GeometricTransform
from pipegen.ops.lowering.affine import magnified
from pipegen.ops.lowering.linear import uniform
from pipegen.types import FeatureType


class RandomZoom(GeometricTransform):
    """Magnifies or shrinks an image about its centre by a factor drawn uniformly; the canvas keeps its size.

    A factor of 2 shows the middle half of each side at twice its size; a factor of 0.5 shows the whole image at half
    its size, with `fill` around it. `factor` keeps the proportions; `x` and `y` draw a factor for each side. (Keras'
    layer counts the other way: its -0.2 is the factor 1 / 0.8 here.)
    """

    op = "random_zoom"
    random = True
    factors = frozenset({"factor", "x", "y"})
    examples = (
        Example("random_zoom: {factor: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_zoom: {factor: [1.0, 1.5]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_zoom: {x: 0.1, y: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    factor: Magnitude | None = None
    """The factor for both sides; above 1 magnifies: 0.2 means from 0.8 to 1.2, a pair is the range."""
    x: Magnitude | None = None
    """The factor for the width alone; above 1 widens: 0.2 means from 0.8 to 1.2, a pair is the range."""
    y: Magnitude | None = None
    """The factor for the height alone; above 1 heightens: 0.2 means from 0.8 to 1.2, a pair is the range."""

    @field_validator("factor")
    @classmethod
    def _factor(cls, value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
        if value is not None:
            check_factor(value, "factor", exclusive=True)
        return value

    @field_validator("x")
    @classmethod
    def _x(cls, value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
        if value is not None:
            check_factor(value, "x", exclusive=True)
        return value

    @field_validator("y")
    @classmethod
    def _y(cls, value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
        if value is not None:
            check_factor(value, "y", exclusive=True)
        return value

    @model_validator(mode="after")
    def _one_form(self) -> RandomZoom:
        sides = self.x is not None or self.y is not None
        if (self.factor is not None) == sides:
            raise ValueError("give either `factor`, which keeps the proportions, or `x` and `y`")
        return self

    def _ranges(self) -> tuple[tuple[float, float], ...]:
        given = (self.factor,) if self.factor is not None else (self.x, self.y)
        return tuple((1.0, 1.0) if m is None else factor_range(m) for m in given)

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        return values if self.factor is not None else {**values, "x": values["x"] or 0.0, "y": values["y"] or 0.0}

    def is_identity(self, x: FeatureType) -> bool:
        return self.probability == 0 or all(r == (1, 1) for r in self._ranges())

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        given = (("factor", self.factor), ("x", self.x), ("y", self.y))
        return tuple(lint for name, m in given if m is not None for lint in factor_lints(self.op, name, m, 0.2, 5.0))

    def num_draws(self) -> int:
        return len(self._ranges())

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        names = ("factor",) if self.factor is not None else ("x", "y")
        return {name: uniform(u[..., i], bounds) for i, (name, bounds) in enumerate(zip(names, self._ranges(), strict=True))}

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        factors = list(self.drawn(u).values())
        return magnified(factors[0], factors[-1], height, width)
