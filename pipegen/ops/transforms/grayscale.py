"""Drop the colour of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pipegen.ops.base import IMAGE_224, ColourTransform, Example

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.types import FeatureType


class Grayscale(ColourTransform):
    """Replaces every pixel by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    With three channels each of them holds the luma, which is what a model trained on colour expects; an image of one
    channel is then repeated. It happens to every example; for a share of them, use
    `random_saturation: {factor: [0, 0], probability: 0.2}`.
    """

    op = "grayscale"
    examples = (
        Example("grayscale", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("grayscale: {channels: 1}", IMAGE_224, "float32[224×224×1] in [0, 255]"),
    )

    probability: ClassVar[float] = 1.0  # type: ignore[misc]  # takes the argument away: it happens to every example

    channels: Literal[1, 3] = 3
    """Channels of the output: 3 repeats the luma."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return y.with_(shape=(x.height, x.width, self.channels))

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and x.channels == 1 == self.channels

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        import tensorflow as tf

        from pipegen.ops.linear import LUMA, stack, zeros

        like = tf.zeros(tf.shape(u)[:-1], tf.float64)
        like.set_shape(u.shape[:-1])
        weights = LUMA if channels == 3 else (1.0,)
        return stack([weights] * self.channels, like), zeros(self.channels, like), zeros(self.channels, like)
