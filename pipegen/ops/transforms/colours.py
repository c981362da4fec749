"""Change the colours of images: turn their hue, make them stronger or drop them, and drop, shift or shuffle channels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import (
    TURN,
    Amount,
    Degrees,
    Factor,
    Magnitude,
    Number,
    amount_within,
    as_pair,
    ascending,
    bounded,
    delta_lints,
    needs_one,
    odd_factor,
)
from pipegen.ops.families.neighbourhood import RgbTransform
from pipegen.ops.lowering.colours import ORDERS, channels, gains, gray, hue, reorder, saturation, sepia, shift, shifted, whole_shifts
from pipegen.ops.lowering.linear import radians, uniform, zeros_for
from pipegen.ops.lowering.windows import pick, whole_between
from pipegen.ops.step_bases import (
    AmountTransform,
    ColourTransform,
    FixedTransform,
    OccasionalTransform,
    UnconditionalTransform,
    UniformTransform,
)
from pipegen.ops.traits import IMAGE_224, Example, same_type, to_float32
from pipegen.types import BYTE_RANGE, FeatureType


class HueTransform(AmountTransform, ColourTransform):
    """A turn of colours about the gray axis."""

    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return hue(radians(self.amounts(u)["degrees"]))


class Hue(FixedTransform, HueTransform):
    """Turns colours about the gray axis by one angle; luma and grays stay as they are.

    With Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y): U' = U cos - V sin,
    V' = U sin + V cos, and back to RGB, which is one matrix on (R, G, B). Positive angles turn red towards yellow and
    green. (See `random_hue` for how this relates to YIQ and to HSV.)
    """

    op = "hue"
    examples = to_float32("hue: {degrees: 30}")

    degrees: Annotated[Number, TURN]
    """The angle in degrees."""


class RandomHue(UniformTransform, HueTransform):
    """Turns colours about the gray axis by an angle drawn uniformly; luma and grays stay as they are.

    In YIQ (the chroma plane of NTSC), (I, Q) is rotated by the angle. I and Q are U and V turned by 33 degrees, so
    the same rotation reads, with Y = 0.299 R + 0.587 G + 0.114 B, U = 0.492 (B - Y) and V = 0.877 (R - Y):
    U' = U cos - V sin, V' = U sin + V cos, and back to RGB. Positive angles turn red towards yellow and green.

    It is linear, so it costs nothing beside other colour steps. (`tf.image` turns the H of HSV instead, which keeps
    the largest channel rather than luma.)
    """

    op = "random_hue"
    examples = to_float32("random_hue: {degrees: 10}", "random_hue: {degrees: [-30, 30], probability: 0.8}")

    degrees: Degrees
    """The angle in degrees: 10 means from -10 to 10, a pair is the range."""


_LEVELS = amount_within(-255, 255)
_DELTAS = ("saturation_delta", "value_delta")


class RandomHsv(RgbTransform):
    """Shifts the hue, saturation and value of HSV by amounts drawn uniformly: the hue turns, the other two are added to.

    It is Albumentations' `HueSaturationValue`, with hue in degrees and not rounded to steps of 2. Grays stay gray. Where `random_hue`
    keeps luma, HSV keeps the largest of red, green and blue, so this is not a matrix: each pixel is computed in whole numbers and
    clipped. An argument without a value changes nothing.
    """

    op = "random_hsv"
    cost = 1.5
    symmetric = True
    examples = same_type(
        "random_hsv: {hue_degrees: 20, saturation_delta: 30, value_delta: 20}", "random_hsv: {saturation_delta: [-60, 0], probability: 0.5}"
    )

    hue_degrees: Degrees = 0.0
    """The angle by which hues turn, in degrees: 10 means from -10 to 10, a pair is the range."""
    saturation_delta: Annotated[Magnitude, _LEVELS] = 0.0
    """What is added to the saturation, in levels of 255: 30 means from -30 to 30, a pair is the range."""
    value_delta: Annotated[Magnitude, _LEVELS] = 0.0
    """What is added to the value, in levels of 255: 20 means from -20 to 20, a pair is the range."""

    _given = needs_one("hue_degrees", *_DELTAS)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        levels = x.with_(interval=BYTE_RANGE)
        return (*super().lints(x), *(lint for name in _DELTAS for lint in delta_lints(self.op, name, getattr(self, name), levels)))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return whole_shifts(*self.drawn(u).values())

    def phase(self, images: tf.Tensor, *shifts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return shifted(images, *(shift[:, None, None] for shift in shifts))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.cast(channels(*given), tf.uint8)


class SaturationTransform(AmountTransform, ColourTransform):
    """A change of saturation about the luma of each pixel."""

    factors = frozenset({"factor"})
    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return saturation(self.amounts(u)["factor"])


class Saturation(FixedTransform, SaturationTransform):
    """Moves every pixel away from its own gray, or towards it: y = factor · x + (1 - factor) · luma(x).

    The luma of a pixel is 0.299 R + 0.587 G + 0.114 B, as in Pillow and torchvision. As a matrix on (R, G, B):
    factor · I + (1 - factor) · L, where every row of L is (0.299, 0.587, 0.114).
    """

    op = "saturation"
    examples = to_float32("saturation: {factor: 0.5}")

    factor: Annotated[Number, bounded(0), odd_factor(low=None, high=5.0, drawn=False)]
    """The saturation, at least 0; 0 is gray, 1 changes nothing."""


class RandomSaturation(UniformTransform, SaturationTransform):
    """Moves every pixel away from its own gray, or towards it: y = factor · x + (1 - factor) · luma(x).

    The luma of a pixel is 0.299 R + 0.587 G + 0.114 B, as in Pillow and torchvision. (`tf.image` scales the S of HSV
    instead.)
    """

    op = "random_saturation"
    examples = to_float32("random_saturation: {factor: 0.3}", "random_saturation: {factor: [0.0, 1.0]}")

    factor: Annotated[Factor, odd_factor(low=None, high=5.0)]
    """The saturation, at least 0; 0 is gray: 0.3 means from 0.7 to 1.3, a pair is the range."""


class Grayscale(UnconditionalTransform, ColourTransform):
    """Replaces every pixel by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    With three channels each of them holds the luma, as a model trained on colour expects; an image of one channel is then repeated. The
    step acts on every example; for a share of them, use `random_grayscale`.
    """

    op = "grayscale"
    examples = (
        Example("grayscale", IMAGE_224, "float32[224×224×3] in [0, 255]"),
        Example("grayscale: {channels: 1}", IMAGE_224, "float32[224×224×1] in [0, 255]"),
    )

    channels: Literal[1, 3] = 3
    """Channels of the output: 3 repeats the luma."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return y.with_(shape=(x.height, x.width, self.channels))

    def is_identity(self, x: FeatureType) -> bool:
        return x.dtype == "float32" and x.channels == 1 == self.channels

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return gray(zeros_for(u), channels, self.channels)


class RandomGrayscale(OccasionalTransform, ColourTransform):
    """Replaces every pixel of a share of the images by its luma: y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    Each of the three channels holds the luma, so all images of a batch keep the shape that a model trained on colour expects. (For one
    channel, or for every example, use `grayscale`.)
    """

    op = "random_grayscale"
    min_channels = 3
    examples = to_float32("random_grayscale", "random_grayscale: {probability: 0.1}")

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return gray(zeros_for(u), 3, 3)


class SepiaTransform(ColourTransform):
    """The brown tones of old photographs."""

    min_channels = 3

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return sepia(zeros_for(u))


class Sepia(UnconditionalTransform, SepiaTransform):
    """Gives images the brown tones of old photographs, by the widely used matrix on (R, G, B) of Albumentations' `ToSepia`.

    R' = 0.393 R + 0.769 G + 0.189 B, G' = 0.349 R + 0.686 G + 0.168 B, B' = 0.272 R + 0.534 G + 0.131 B. White would leave the range of
    values, and is clipped.
    """

    op = "sepia"
    examples = to_float32("sepia")


class RandomSepia(OccasionalTransform, SepiaTransform):
    """Gives a share of the images the brown tones of old photographs, by the matrix of `sepia`."""

    op = "random_sepia"
    examples = to_float32("random_sepia", "random_sepia: {probability: 0.1}")


Count = Annotated[int, Field(ge=1, le=2)]


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

    count: Count | tuple[Count, Count] = 1
    """The number of channels that are dropped; a pair is the range, both ends included."""

    _ascending = ascending("count")

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

    delta: Amount
    """What is added, in the units of the incoming values: 30 means from -30 to 30, a pair is the range."""
    per_channel: bool = False
    """Draw an amount for each channel, instead of one for all."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return delta_lints(self.op, "delta", self.delta, x)

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

    red: Amount = 0.0
    """What is added to red, in the units of the incoming values: 20 means from -20 to 20, a pair is the range."""
    green: Amount = 0.0
    """What is added to green, as for red."""
    blue: Amount = 0.0
    """What is added to blue, as for red."""

    _given = needs_one("red", "green", "blue")

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        return tuple(lint for name in ("red", "green", "blue") for lint in delta_lints(self.op, name, getattr(self, name), x))

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        # Called with one channel, too, before `min_channels` is checked.
        return shift(list(self.drawn(u).values())[:channels])
