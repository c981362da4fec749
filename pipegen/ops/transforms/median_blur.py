"""Replace each value by the median of those around it."""

from __future__ import annotations

from typing import ClassVar

from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.medians import MedianTransform


class MedianBlur(MedianTransform):
    """Replaces each value by the median of the 3 by 3 or 5 by 5 values around it, in its own channel.

    It is OpenCV's `medianBlur`, bit for bit; the edge of the image is repeated.
    """

    op = "median_blur"
    examples = (
        Example("median_blur: {side: 3}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("median_blur: {side: 5}", IMAGE_224.with_(dtype="float32"), "float32[224×224×3] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example
