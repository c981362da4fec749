"""Replace each value of some images by the median of those around it, at random."""

from __future__ import annotations

from pipegen.ops.arguments.magnitudes import Probability
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.medians import MedianTransform


class RandomMedianBlur(MedianTransform):
    """Replaces each value of a share of the images by the median of the 3 by 3 or 5 by 5 values around it, in its own channel.

    It is OpenCV's `medianBlur`, bit for bit; the edge of the image is repeated.
    """

    op = "random_median_blur"
    random = True
    examples = (
        Example("random_median_blur: {side: 3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_median_blur: {side: 5, probability: 0.2}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    probability: Probability = 0.5
    """The share of examples that the step changes."""
