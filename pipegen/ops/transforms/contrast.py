"""`contrast`, `auto_contrast` and their random forms."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Factor, Number, bounded, odd_factor
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.lowering.colours import auto_contrasted, contrast, contrast_by_channel
from pipegen.ops.step_bases import (
    AmountTransform,
    ColourTransform,
    FixedTransform,
    OccasionalTransform,
    UnconditionalTransform,
    UniformTransform,
)
from pipegen.ops.traits import same_type, to_float32


class ContrastTransform(AmountTransform, ColourTransform):
    """A change of contrast about a mean."""

    separate = True
    factors = frozenset({"factor"})

    pivot: Literal["luma", "channel"] = "luma"
    """The mean: `luma` is the mean luma of the image, so that gray stays gray; `channel` is the mean of each channel, as in Keras' layer
    and `tf.image.adjust_contrast`."""

    def uses_mean(self) -> bool:
        return True

    def meaning(self) -> dict[str, Any]:
        values = super().meaning()
        return values if self.pivot != "luma" else {name: value for name, value in values.items() if name != "pivot"}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        about = contrast if self.pivot == "luma" else contrast_by_channel
        return about(self.amounts(u)["factor"], channels)


class Contrast(FixedTransform, ContrastTransform):
    """Moves every value away from the image's mean, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision; with `pivot: channel` it is that of each channel that enters the step.
    """

    op = "contrast"
    examples = to_float32("contrast: {factor: 1.5}")

    factor: Annotated[Number, bounded(0), odd_factor(low=0.0, high=5.0, drawn=False)]
    """The contrast, at least 0; 0 is a plain gray, 1 changes nothing."""


class RandomContrast(UniformTransform, ContrastTransform):
    """Moves every value away from the image's mean, or towards it: y = factor · x + (1 - factor) · mean.

    `mean` is the mean luma (0.299 R + 0.587 G + 0.114 B) of the image that enters the run of colour steps, as in
    Pillow and torchvision; with `pivot: channel` it is that of each channel that enters the step.
    """

    op = "random_contrast"
    examples = to_float32("random_contrast: {factor: 0.2}", "random_contrast: {factor: [0.5, 1.5], pivot: channel}")

    factor: Annotated[Factor, odd_factor(low=0.0, high=5.0)]
    """The contrast, at least 0; 0 is a plain gray: 0.2 means from 0.8 to 1.2, a pair is the range."""


class AutoContrastTransform(LookupTableTransform):
    """The table that stretches each channel over the whole range."""

    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        return auto_contrasted(histogram)

    def from_extremes(self, u: tf.Tensor) -> bool:
        return True


class AutoContrast(UnconditionalTransform, AutoContrastTransform):
    """Stretches each channel in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "auto_contrast"
    examples = same_type("auto_contrast")


class RandomAutoContrast(OccasionalTransform, AutoContrastTransform):
    """Stretches each channel of a share of the images in a straight line, so that its least value becomes 0 and its greatest 255.

    It is Pillow's `autocontrast` without a cutoff, bit for bit. A channel of one value stays as it is.
    """

    op = "random_auto_contrast"
    examples = same_type("random_auto_contrast", "random_auto_contrast: {probability: 0.2}")
