"""Drop, shift and shuffle the channels of images."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import ADDED, Amount, as_pair, check_range, checked, needs_one
from pipegen.ops.lowering.colours import ORDERS, gains, reorder, shift
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.windows import pick, whole_between
from pipegen.ops.step_bases import ColourTransform, UniformTransform
from pipegen.ops.traits import to_float32

Count = Annotated[int, Field(ge=1, le=2)]
Shift = Annotated[Amount, ADDED]


class RandomChannelDrop(ColourTransform):
    """Sets one or two of red, green and blue to 0; all choices of channels are equally likely.

    It is Albumentations' `ChannelDropout`.
    """

    op = "random_channel_drop"
    random = True
    min_channels = 3
    draws = 2
    separate = True
    examples = to_float32("random_channel_drop: {probability: 0.2}", "random_channel_drop: {count: [1, 2]}")

    count: Annotated[Count | tuple[Count, Count], checked(check_range)] = 1
    """The number of channels that are dropped; a pair is the range, both ends included."""

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`dropped`: whether each of the three channels is dropped."""
        count = whole_between(u[..., 0], as_pair(self.count))
        rank = tf.gather(tf.constant(ORDERS), pick(u[..., 1], len(ORDERS) - 1))
        return {"dropped": rank < count[..., None]}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        stays = 1.0 - tf.cast(self.drawn(u)["dropped"], tf.float64)
        return gains(tf.unstack(stays, num=3, axis=-1)[:channels])


class RandomChannelShift(UniformTransform, ColourTransform):
    """Adds an amount drawn uniformly to every value of an image: y = x + delta, the same for all channels or one for each.

    By default it is the `channel_shift_range` of Keras' `ImageDataGenerator`: one amount for the whole image. Keras clips to the least and
    the greatest value of the image at hand; here the run of colour steps is clipped to the values that any image can have, so bright images
    get brighter, too. With `per_channel: true` each channel gets an amount of its own, which tints the image.
    """

    op = "random_channel_shift"
    separate = True
    examples = to_float32("random_channel_shift: {delta: 30}", "random_channel_shift: {delta: [0, 20], per_channel: true}")

    delta: Shift
    """What is added, in the units of the incoming values: 30 means from -30 to 30, a pair is the range."""
    per_channel: bool = False
    """Draw an amount for each channel, instead of one for all."""

    def num_draws(self) -> int:
        return 3 if self.per_channel else 1

    def takes(self, channels: int) -> bool:
        """Any number of channels with one amount for all; gray and RGB with an amount for each."""
        return not self.per_channel or super().takes(channels)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        amounts = uniform(u, self.ranges()["delta"])
        return {"delta": amounts if self.per_channel else amounts[..., 0]}

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        delta = self.drawn(u)["delta"]
        return {"delta": delta[..., : shape[2]] if self.per_channel else delta}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        delta = self.drawn(u)["delta"]
        return shift([delta[..., c] if self.per_channel else delta for c in range(channels)])


class RandomChannelShuffle(ColourTransform):
    """Puts red, green and blue into a random order; all six orders are equally likely, the original one among them."""

    op = "random_channel_shuffle"
    random = True
    min_channels = 3
    draws = 1
    examples = to_float32("random_channel_shuffle", "random_channel_shuffle: {probability: 0.3}")

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`order`: the number of the channel that each of the three comes from."""
        return {"order": tf.gather(tf.constant(ORDERS), pick(u[..., 0], len(ORDERS) - 1))}

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return reorder(pick(u[..., 0], len(ORDERS) - 1))


class RandomRgbShift(UniformTransform, ColourTransform):
    """Adds an amount drawn uniformly to each of red, green and blue, from a range for each: y = x + amount.

    It is Albumentations' `RGBShift`. A channel without a range stays as it is. (`random_channel_shift` has one range for all channels.)
    """

    op = "random_rgb_shift"
    min_channels = 3
    separate = True
    examples = to_float32("random_rgb_shift: {red: 20, green: 10, blue: 20}", "random_rgb_shift: {blue: [-40, 0], probability: 0.5}")

    red: Shift = 0.0
    """What is added to red, in the units of the incoming values: 20 means from -20 to 20, a pair is the range."""
    green: Shift = 0.0
    """What is added to green, as for red."""
    blue: Shift = 0.0
    """What is added to blue, as for red."""

    _given = needs_one("red", "green", "blue")

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        # Called with one channel, too, before `min_channels` is checked.
        return shift(list(self.drawn(u).values())[:channels])
