"""Blur images as a lens out of focus does, by a random amount."""

from __future__ import annotations

from typing import Annotated

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.defocus import LARGEST, DefocusTransform
from pipegen.ops.lowering.linear import uniform


class RandomDefocusBlur(DefocusTransform):
    """Replaces each pixel by the mean of a disc around it whose radius is drawn uniformly, as a lens out of focus does.

    A pixel at distance d counts by radius + 1/2 - d, at least 0 and at most 1; the image is reflected at its border (abc|cba).
    Bytes are weighted by integers of 14 bits, exactly the same everywhere.
    """

    op = "random_defocus_blur"
    random = True
    examples = (
        Example("random_defocus_blur: {radius: [1, 4]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_defocus_blur: {radius: [0, 3], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    radius: Annotated[Span, checked(check_pair), checked(check_range, 0, LARGEST)]
    """The range of the disc's radius, in pixels, at most 10; 0 changes nothing."""

    def largest(self) -> float:
        return span_range(self.over_epochs().radius)[1]

    def idle(self) -> bool:
        return super().idle() or self.largest() <= 0.5

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"radius": uniform(u[..., 0], span_range(self.radius))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return self.discs(self.drawn(u)["radius"])
