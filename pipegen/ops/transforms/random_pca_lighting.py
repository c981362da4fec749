"""Change the light of images along the principal colours of photographs."""

from __future__ import annotations

from typing import Annotated

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, check_range, checked, level_range
from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.lowering.colours import shift
from pipegen.ops.lowering.linear import normal
from pipegen.types import FeatureType

_VALUES = (0.2175, 0.0188, 0.0045)
_VECTORS = ((-0.5675, 0.7192, 0.4009), (-0.5808, -0.0045, -0.8140), (-0.5836, -0.6948, 0.4203))
"""The eigenvalues and, a row for each channel, eigenvectors of the colours of ImageNet's pixels, with values from 0 to 1."""


class RandomPcaLighting(ColourTransform):
    """Adds one colour to every pixel, drawn along the principal components of the colours of photographs (AlexNet).

    For each of the three components a number is drawn, normal of mean 0 and standard deviation `std`; the sum of the
    components, each times its number and its eigenvalue, is added to (R, G, B). So most of it is brightness, and some a
    warmer or colder light. The components are those of ImageNet, as published with most implementations.

    Source: Krizhevsky, Sutskever, Hinton, "ImageNet classification with deep convolutional neural networks" (2012), whose 0.1 is
    for values from 0 to 1: on bytes it is 25.5. (Albumentations' `FancyPCA` finds the components of each image.)
    """

    op = "random_pca_lighting"
    random = True
    min_channels = 3
    examples = (
        Example("random_pca_lighting: {std: 25.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_pca_lighting: {std: 60, probability: 0.5}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    std: Annotated[Level, checked(check_range, 0)]
    """The standard deviation of the numbers that are drawn, in the units of the incoming values; light changes by a fifth of it."""

    def idle(self) -> bool:
        return super().idle() or level_range(self.std) == (0, 0)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = level_range(self.std)[1]
        if x.interval is None or not 0 < largest * _VALUES[0] < x.interval.width / 1000:
            return ()
        message = f"`{self.op}` with `std` {largest:g} hardly changes values in {x.interval}"
        help_ = write(f"std: {largest * x.interval.width:.3g}", "arguments", "for a fraction of the range write {}")
        return (OpError("PG510", message, field="std", help=help_),)

    def num_draws(self) -> int:
        return 3

    def mixes_channels(self) -> bool:
        return False

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Names what is added to each channel: `red`, `green` and `blue`."""
        along = normal(u) * tf.convert_to_tensor(self.std, tf.float64) * tf.constant(_VALUES, tf.float64)
        added = [along[..., 0] * a + along[..., 1] * b + along[..., 2] * c for a, b, c in _VECTORS]
        return dict(zip(("red", "green", "blue"), added, strict=True))

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return shift(list(self.drawn(u).values())[:channels])
