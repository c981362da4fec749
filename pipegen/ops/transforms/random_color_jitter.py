"""Change brightness, contrast, saturation and hue at random, in one step."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator, model_validator

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import (
    Magnitude,
    angle_lints,
    check_factor,
    check_magnitude,
    factor_lints,
    factor_range,
    symmetric_range,
)
from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.lowering.colours import brightness, compose, contrast, hue, saturation
from pipegen.ops.lowering.linear import radians, uniform
from pipegen.types import FeatureType

_FACTORS = ("brightness_factor", "contrast_factor", "saturation_factor")


class RandomColorJitter(ColourTransform):
    """Changes brightness, contrast, saturation and hue, in this order; each amount is drawn uniformly.

    It is the run of `random_brightness`, `random_contrast`, `random_saturation` and `random_hue`, written as one step:
    four matrices multiplied into one and clipped once at the end. So contrast pivots on the mean luma of the image that
    enters the run of colour steps, before its brightness is changed. An argument without a value changes nothing. (torchvision
    draws the order too, and clips after each of the four.)
    """

    op = "random_color_jitter"
    random = True
    factors = frozenset(_FACTORS)
    examples = (
        Example(
            "random_color_jitter: {brightness_factor: 0.4, contrast_factor: 0.4, saturation_factor: 0.4, hue_degrees: 20}",
            IMAGE_224,
            "float32[224×224×3] in [0, 255]",
        ),
        Example("random_color_jitter: {brightness_factor: [0.8, 1.5], probability: 0.8}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    brightness_factor: Magnitude = 0.0
    """What values are multiplied by, at least 0: 0.2 means from 0.8 to 1.2, a pair is the range."""
    contrast_factor: Magnitude = 0.0
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    saturation_factor: Magnitude = 0.0
    """The saturation, at least 0; 0 is gray: 0.2 means from 0.8 to 1.2, a pair is the range."""
    hue_degrees: Magnitude = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""

    @field_validator(*_FACTORS)
    @classmethod
    def _factor(cls, value: Magnitude, info: ValidationInfo) -> Magnitude:
        check_factor(value, info.field_name or "")
        return value

    @field_validator("hue_degrees")
    @classmethod
    def _degrees(cls, value: Magnitude) -> Magnitude:
        check_magnitude(value, "hue_degrees")
        return value

    @model_validator(mode="after")
    def _given(self) -> RandomColorJitter:
        if not self.model_fields_set & {*_FACTORS, "hue_degrees"}:
            raise ValueError("give at least one of `brightness_factor`, `contrast_factor`, `saturation_factor` and `hue_degrees`")
        return self

    def _ranges(self) -> tuple[tuple[float, float], ...]:
        """Of the three factors and the angle."""
        return (*(factor_range(getattr(self, name)) for name in _FACTORS), symmetric_range(self.hue_degrees))

    def _needs_colour(self) -> bool:
        return self._ranges()[2:] != ((1, 1), (0, 0))

    def infer(self, x: FeatureType) -> FeatureType:
        """float32; saturation and hue need three channels."""
        y = super().infer(x)
        if self._needs_colour() and x.channels != 3:
            field = "hue_degrees" if symmetric_range(self.hue_degrees) != (0, 0) else "saturation_factor"
            raise OpError("PG205", f"`{field}` of `{self.op}` needs 3 channels, and gets {x.channels}", field=field)
        return y

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and (self.probability == 0 or self._ranges() == (*[(1, 1)] * 3, (0, 0)))

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        odd_at = {"brightness_factor": 0.0, "contrast_factor": 0.0, "saturation_factor": None}
        found = [lint for name, low in odd_at.items() for lint in factor_lints(self.op, name, getattr(self, name), low, 5.0)]
        return (*found, *angle_lints(self.op, self.hue_degrees, most=180, why="a full turn is [-180, 180]", field="hue_degrees"))

    def uses_mean(self) -> bool:
        return factor_range(self.contrast_factor) != (1, 1)

    def mixes_channels(self) -> bool:
        return self._needs_colour()

    def num_draws(self) -> int:
        return 4

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        names = (*_FACTORS, "hue_degrees")
        return {name: uniform(u[..., i], bounds) for i, (name, bounds) in enumerate(zip(names, self._ranges(), strict=True))}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        bright, contrasting, saturated, angle = self.drawn(u).values()
        matrix = compose(brightness(bright, channels), contrast(contrasting, channels))
        if channels == 3:
            matrix = compose(compose(matrix, saturation(saturated)), hue(radians(angle)))
        return matrix
