"""Blur images by the mean of squares."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pipegen.lazy import tf
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.blurs import BlurTransform
from pipegen.ops.lowering.filters import BITS
from pipegen.ops.lowering.linear import choice

MOST = 15
Reach = Annotated[int, Field(ge=0, le=MOST)]


class RandomBoxBlur(BlurTransform):
    """Replaces each value by the mean of the square around it, whose reach is drawn: OpenCV's `blur`.

    The image is reflected at its border (abc|cba). Bytes are weighted by integers of 14 bits, and within a level of the true mean.
    """

    op = "random_box_blur"
    random = True
    examples = (
        Example("random_box_blur: {reach: [1, 3]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_box_blur: {reach: [0, 5], probability: 0.5}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    reach: Reach | tuple[Reach, Reach] = (1, 3)
    """How far the square reaches to each side, in whole pixels, at most 15; a pair is the range, both ends included. A reach of 1 is a
    square of 3 by 3."""

    @model_validator(mode="after")
    def _ascending(self) -> RandomBoxBlur:
        if self._reaches()[0] > self._reaches()[1]:
            raise ValueError(f"`reach` is a range [low, high], but {self._reaches()[0]} is above {self._reaches()[1]}")
        return self

    def _reaches(self) -> tuple[int, int]:
        return self.reach if isinstance(self.reach, tuple) else (self.reach, self.reach)

    def meaning(self) -> dict[str, object]:
        return super().meaning() | {"reach": list(self._reaches())}

    def idle(self) -> bool:
        return super().idle() or self._reaches()[1] == 0

    def radius(self) -> int:
        return max(self._reaches()[1], 1)

    def num_draws(self) -> int:
        return 1

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        low, high = self._reaches()
        return {"reach": low + choice(u[..., 0], high - low + 1)}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        reach = self.drawn(u)["reach"]
        distance = tf.range(1, self.radius() + 1)
        share = 1.0 / tf.cast(2 * reach + 1, tf.float64)[:, None]
        beside = tf.where(distance <= reach[:, None], share, tf.zeros_like(share))
        whole = tf.cast(tf.round(beside * float(1 << BITS)), tf.int32)
        middle = (1 << BITS) - 2 * tf.reduce_sum(whole, -1, keepdims=True)
        return tf.concat([middle, whole], -1), tf.cast(tf.concat([share, beside], -1), tf.float32)
