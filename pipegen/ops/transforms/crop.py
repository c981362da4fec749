"""Cut windows out of images and sound, at a place or at random."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import Size, height_width
from pipegen.ops.families.crops import PaddedWindow, RandomSizedCrop, SizedCrop
from pipegen.ops.families.sounds import ANY_SOUND, SECOND, Seconds, SoundWindow, holds_frames, is_sound
from pipegen.ops.kinds.base import FeatureKind
from pipegen.ops.lowering.windows import inside, pick, place
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example
from pipegen.ops.transform import Transform
from pipegen.ops.transforms.pad import Pad, Pixels
from pipegen.types import FeatureType, Interval, times


class Crop(SizedCrop):
    """Cuts out the window at a place in pixels, the same for every image.

    An image that does not hold the window is an error, which names the file if it is found while running. `center_crop` and `corner_crop`
    choose the place by the image's size, `random_crop` draws it.
    """

    op = "crop"
    examples = (
        Example("crop: {top: 2, left: 10, size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    top: Pixels = 0
    """The window's first row, counted from 0."""
    left: Pixels = 0
    """The window's first column, counted from 0."""

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        h, w = self.output_size()
        if (x.height is not None and self.top + h > x.height) or (x.width is not None and self.left + w > x.width):
            message = f"`{self.op}` reaches to row {self.top + h} and column {self.left + w} of an image of {times(x.shape[:2])}"
            raise OpError("PG206", message, field="size", help="use a smaller window, or one further up and to the left")
        return y

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((self.top + h, self.left + w), height, width)
        return place(self.top, self.left, h, w, u)


class CenterCrop(SizedCrop):
    """Cuts a window out of the middle: top = ⌊(H - h) / 2⌋, left = ⌊(W - w) / 2⌋.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "center_crop"
    examples = (
        Example("center_crop: {size: 160}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("center_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        return place((height - h) // 2, (width - w) // 2, h, w, u)


class CornerCrop(SizedCrop):
    """Cuts a window out of one corner.

    With `center_crop` it gives the five crops of AlexNet (Krizhevsky et al. 2012), torchvision's `FiveCrop`: as branches of `views` with
    `when: all`, each is an input of its own on every split. Five more branches with a `flip` give ten crops.

    An image smaller than the window is an error, which names the file if it is found while running.
    """

    op = "corner_crop"
    examples = (
        Example("corner_crop: {size: 160, corner: top_left}", IMAGE_224, "uint8[160×160×3] in [0, 255]"),
        Example("corner_crop: {size: [180, 240], corner: bottom_right}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
    )

    corner: Literal["top_left", "top_right", "bottom_left", "bottom_right"]
    """The corner."""

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        h, w = self.output_size()
        inside((h, w), height, width)
        row, column = self.corner.split("_")
        return place(0 if row == "top" else height - h, 0 if column == "left" else width - w, h, w, u)


SMALL = FeatureType("image", "uint8", (32, 32, 3), Interval(0, 255))


class CropOrPad(SoundWindow):
    """Gives every sound one length: a longer one is cut, a shorter one is padded with silence.

    `random_crop: {seconds: LENGTH}` draws the part of a longer sound.
    """

    op = "crop_or_pad"
    examples = (
        Example("crop_or_pad: {seconds: 2}", ANY_SOUND, "float32[32000×1] in [-1, 1]"),
        Example("crop_or_pad: {seconds: 0.5, align: center}", SECOND, "float32[8000×1] in [-1, 1]"),
    )

    align: Literal["start", "center", "end"] = "start"
    """The part that is kept, and the place of a shorter sound: its `start`, so that silence follows; its `center`; or its `end`."""

    def start(self, u: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        over = frames - self.frames
        return {"start": tf.zeros_like(over), "center": tf.math.floordiv(over, 2), "end": over}[self.align]


class RandomSoundCrop(SoundWindow):
    """A `random_crop` of sound, which `owner` is."""

    op = "random_crop"
    random = True
    draws = 2  # as for images, of which sound needs one

    owner: Transform
    padded: bool

    def written(self) -> Transform:
        return self.owner

    def meaning(self) -> dict[str, Any]:
        return self.owner.meaning()

    def start(self, u: tf.Tensor, frames: tf.Tensor) -> tf.Tensor:
        over = frames - self.frames
        if not self.padded:
            holds_frames(self.frames, frames)
        first = pick(u[..., 0], tf.abs(over))
        return tf.where(over < 0, -first, first)

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """Returns `start`, where the window begins, in seconds, float64 `(...)`; below 0, it begins in silence."""
        return {"start": tf.cast(self.start(u, tf.convert_to_tensor(shape[0])), tf.float64) / self._rate}

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if not self.padded and x.shape[0] is not None and x.shape[0] < (y.shape[0] or 0):
            help_ = write("padding: as_needed", "arguments", "use a shorter crop, or write {}")
            raise OpError("PG206", f"`{self.op}` cuts {y.shape[0]} frames out of a sound of {x.shape[0]}", field="seconds", help=help_)
        return y


class RandomCrop(RandomSizedCrop, PaddedWindow):
    """Cuts out a window of fixed size; each of its (H - h + 1) · (W - w + 1) places is equally likely. Of sound, a window of `seconds`.

    `padding` puts a border around the image first, as recipes for CIFAR do (`random_crop: {size: 32, padding: 4}`); with `as_needed`, an
    image smaller than the window lies at a random place in it. The border and the window take one copy.

    On the other splits, `center_crop` of the same size replaces it, after a `pad` to at least that size if it has a `padding`; for sound
    `crop_or_pad: {seconds: LENGTH, align: center}`. With a
    `probability` below 1, nothing replaces it: images then have the size before it. An image that is smaller than the window even with its
    border is an error, which names the file if it is found while running.
    """

    op = "random_crop"
    of_some_kinds = frozenset({"seconds"})
    draws = 2
    examples = (
        Example("random_crop: {size: 200}", IMAGE_224, "uint8[200×200×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240]}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
        Example("random_crop: {size: 32, padding: 4}", SMALL, "uint8[32×32×3] in [0, 255]"),
        Example("random_crop: {size: [180, 240], padding: as_needed, fill: reflect}", ANY_IMAGE, "uint8[180×240×3] in [0, 255]"),
        Example("random_crop: {size: 32, padding: 4, probability: 0.5}", SMALL, "uint8[32×32×3] in [0, 255]"),
        Example("random_crop: {seconds: 2, padding: as_needed}", ANY_SOUND, "float32[32000×1] in [-1, 1]"),
    )

    size: Size | None = None  # type: ignore[assignment]  # sound has none
    """For images: the window's size in pixels, a square's side or [height, width]."""
    seconds: Seconds | None = None
    """For sound: the window's length, in seconds."""

    padding: Pixels | tuple[Pixels, Pixels] | Literal["as_needed"] | None = None
    """The width in pixels of a border around the image: on every side, or [above and below, left and right]; or `as_needed`, as far as the
    window is larger than the image, or longer than the sound, which then lies at a random place in silence."""

    @model_validator(mode="after")
    def _consistent(self) -> RandomCrop:
        if (self.size is None) is (self.seconds is None):
            raise ValueError("give `size` for images, or `seconds` for sound")
        if "fill" in self.model_fields_set and not self.pads():
            raise ValueError("`fill` needs `padding`")
        odd = next((name for name in ("fill", "probability") if name in self.model_fields_set and self.seconds is not None), None)
        if odd is not None or (self.seconds is not None and self.padding not in (None, "as_needed")):
            raise ValueError(f"`seconds` is for sound, which takes `padding: as_needed` alone; leave `{odd or 'padding'}` out")
        return self

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return super().acts_on(kind) or kind.name in RandomSoundCrop.kinds

    def on(self, x: FeatureType) -> Transform:
        if self.seconds is None or not is_sound(x):
            return super().on(x)
        return RandomSoundCrop(owner=self, seconds=self.seconds, padded=self.padding is not None, when=self.when, feature=self.feature).on(
            x
        )

    def infer(self, x: FeatureType) -> FeatureType:
        if self.seconds is not None or is_sound(x):
            due, what = ("seconds", "sounds") if self.seconds is None else ("size", "images")
            help_ = f"give it `{due}`, or name the `feature` that it acts on"
            raise OpError("PG203", f"`{self.op}` cuts {what} by their `{due}`", help=help_)
        return super().infer(x)

    def output_size(self) -> tuple[int, int]:
        return super().output_size() if self.size is not None else (None, None)  # type: ignore[return-value]

    def pads(self) -> bool:
        return self.padding == "as_needed" or any(self._border())

    def _border(self) -> tuple[int, int]:
        if self.padding is None or isinstance(self.padding, str):
            return 0, 0
        return height_width(self.padding)

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        if self.padding == "as_needed":
            return None, None
        height, width = (side + 2 * more if side is not None else None for side, more in zip(x.shape[:2], self._border(), strict=True))
        return height, width

    def meaning(self) -> dict[str, Any]:
        """Writes an equal border as one number."""
        rows, columns = self._border()
        border = self.padding if isinstance(self.padding, str) else rows if rows == columns else [rows, columns]
        other = "seconds" if self.seconds is None else "size"
        return {name: value for name, value in (super().meaning() | {"padding": border}).items() if name != other}

    def replacement(self) -> tuple[Transform, ...]:
        if self.size is None:
            return (CropOrPad(seconds=self.seconds or 1.0, align="center", feature=self.feature),)
        pad = (Pad(at_least=self.size, fill=self.fill, feature=self.feature),) if self.pads() else ()
        return (*pad, CenterCrop(size=self.size, feature=self.feature))

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        size, border = self.output_size(), self._border()
        if self.padding != "as_needed":
            inside(size, height, width, border)
        starts = []
        for axis, side in enumerate((height, width)):
            room = side + 2 * border[axis] - size[axis]
            first = pick(u[..., axis], tf.abs(room))
            starts.append((first if self.padding != "as_needed" else tf.where(room < 0, -first, first)) - border[axis])
        return place(starts[0], starts[1], *size, u)
