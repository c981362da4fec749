"""Put the channels of images into a random order."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.lowering.colours import ORDERS, reorder
from pipegen.ops.lowering.linear import choice


class RandomChannelShuffle(ColourTransform):
    """Puts red, green and blue into another order; each of the six, the one that was among them, is as likely as another."""

    op = "random_channel_shuffle"
    random = True
    min_channels = 3
    examples = (
        Example("random_channel_shuffle", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_channel_shuffle: {probability: 0.3}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Names the channel that each comes from: `order`, three numbers."""
        return {"order": tf.gather(tf.constant(ORDERS), choice(u[..., 0], len(ORDERS)))}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return reorder(choice(u[..., 0], len(ORDERS)))
