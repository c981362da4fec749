"""Make some channels of images black."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, ColourTransform, Example
from pipegen.ops.lowering.colours import ORDERS, gains
from pipegen.ops.lowering.linear import choice

Count = Annotated[int, Field(ge=1, le=2)]


class RandomChannelDrop(ColourTransform):
    """Sets one or two of red, green and blue to 0; every choice of as many channels is as likely as another.

    It is Albumentations' `ChannelDropout`.
    """

    op = "random_channel_drop"
    random = True
    min_channels = 3
    examples = (
        Example("random_channel_drop: {probability: 0.2}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("random_channel_drop: {count: [1, 2]}", IMAGE_224, "float32[224×224×3] in [0, 255]"),
    )

    count: Count | tuple[Count, Count] = 1
    """How many of the three channels are dropped; a pair is the range, both ends included."""

    @model_validator(mode="after")
    def _ordered(self) -> RandomChannelDrop:
        low, high = self._range()
        if low > high:
            raise ValueError(f"`count` is a range [low, high], but {low} is above {high}")
        return self

    def _range(self) -> tuple[int, int]:
        return self.count if isinstance(self.count, tuple) else (self.count, self.count)

    def num_draws(self) -> int:
        return 2

    def mixes_channels(self) -> bool:
        return False

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Says of each channel whether it is dropped: `dropped`, three truth values."""
        low, high = self._range()
        count = low + choice(u[..., 0], high - low + 1)
        rank = tf.gather(tf.constant(ORDERS), choice(u[..., 1], len(ORDERS)))
        return {"dropped": rank < count[..., None]}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stays = 1.0 - tf.cast(self.drawn(u)["dropped"], tf.float64)
        return gains(tf.unstack(stays, num=3, axis=-1)[:channels])
