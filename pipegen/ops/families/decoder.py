"""The family of decoders: steps that make pixels out of a file's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pipegen.ops.base import ElementTransform
from pipegen.ops.lowering.library import plugin_format
from pipegen.ops.stage import Stage, StepRef, use, weight_ns
from pipegen.ops.traits import Family, Traits
from pipegen.types import times

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.base import CropTransform
    from pipegen.ops.kinds.base import FeatureKind
    from pipegen.ops.lowering.decoding import Found, Survey, WindowOf
    from pipegen.types import FeatureType

_DECODE_NS = 14.5
"""A stored byte, decoded."""
_WINDOW_SHARE = 0.78
"""What decoding a window alone costs, of the whole image."""
_WINDOW_US = 60.0
"""Finding the window."""
CROP_NS = 0.5
"""A value of a window, copied."""


HEAD = 64
"""Bytes from which the format of a file shows."""
_MAGIC = ((b"II*\0", "TIFF"), (b"MM\0*", "TIFF"), (b"II+\0", "TIFF"), (b"MM\0+", "TIFF"), (b"GIF8", "GIF"), (b"BM", "BMP"))


def format_of(head: bytes) -> str | None:
    """Names the format of a file of which these are the first bytes, if it is one that TensorFlow does not, or not always, decode."""
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PPM, PGM or PBM"
    return plugin_format(head) or next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def needs_whole(head: bytes) -> bool:
    """Returns whether it takes a whole file that begins so to tell how it is read."""
    return format_of(head) in ("GIF", "BMP")


class DecodeTransform(ElementTransform):
    """A file's bytes become an image. It can decode a window alone, or at a fraction of the size."""

    family: ClassVar[str] = "decode"
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "rarely"

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return kind.storage == "encoded"

    @classmethod
    def known_kinds(cls) -> list[str]:
        return ["encoded"]

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True, decodes_windows=True, decodes_scaled=True)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """Decode the whole image.

        Args:
            contents: string scalar: a file's bytes.
            need: What the next step's `needed_size` says: where the step's arguments allow it, the image may come back
                at a fraction of its size whose sides are no smaller.

        Returns:
            Pixels `(height, width, channels)` of the dtype that `infer` says.
        """
        raise NotImplementedError

    def read_by_python(self, content: bytes) -> str | None:
        """Names the format of a file that TensorFlow has no decoder for, or would read otherwise; `None` for all others.

        Args:
            content: The file; its first `HEAD` bytes will do, unless `needs_whole` says otherwise.
        """
        return None

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        """The height and width of what `decode` gives without `need`, in pixels: int32 `(2,)`."""
        import tensorflow as tf

        return tf.shape(self.decode(contents))[:2]

    def fitted(self, image: tf.Tensor, contents: tf.Tensor) -> tf.Tensor:
        """Turns pixels that lie on the image of a file as `decode` turns it, where their size says that they lie the other way."""
        return image

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        """Decode one window of the image.

        Args:
            contents: string scalar: a file's bytes.
            window: From the height and width of what `decode` gives without `need`, int32 scalars in pixels, to the
                window in it: int32 `(4,)`: top, left, height, width.
            need: The crop's `needed_size`: the window may come back at a fraction of its size, no smaller than this.
            whole: Decode the whole image first and cut the window out: the same pixels, slower. It is what the step
                means; decoding the window alone is the rewrite.

        Returns:
            Pixels `(height, width, channels)` of the dtype that `infer` says.
        """
        raise NotImplementedError

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> Survey | None:
        """Finds out what decoding needs to know of several files, for all of them at once.

        Args:
            contents: string scalars: the bytes of `n` files.
            need: As for `decode` and `decode_window`.
            window: As for `decode_window`, but of sizes `(n,)`, and with windows `(n, 4)`.

        Returns:
            What `decode_surveyed` is told. Nothing, unless a decoder says otherwise.
        """
        return None

    def decode_surveyed(
        self,
        contents: tf.Tensor,
        found: Found,
        need: tuple[int, int] | None = None,
        window: WindowOf | None = None,
        *,
        whole: bool = False,
    ) -> tf.Tensor:
        """Decodes a file of which a survey says `found`, as `decode` or with a window `decode_window` does."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Decode(Stage):
    """Bytes to pixels.

    Attributes:
        needed: The least height and width that the next step can use without loss, or `None`.
        like: The image that it is aligned with, whose file is not decoded yet, and what decodes that: both have to be of one size.
    """

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[DecodeTransform]
    needed: tuple[int, int] | None
    like: tuple[str, StepRef[DecodeTransform]] | None = None

    @property
    def decode(self) -> StepRef[DecodeTransform]:
        """The use of the decoder, by the name that it has in `DecodeWindow`."""
        return self.ref

    def says(self) -> str:
        return use(self.ref) + _needed(self)

    def decode_us(self, file_bytes: float) -> float:
        return file_bytes * _DECODE_NS / 1e3


@dataclass(frozen=True, slots=True)
class DecodeWindow(Stage):
    """Bytes to the pixels of a crop window, and the crop's finish.

    A window that will be resized may be decoded at a smaller scale, which depends on the window; so decode and crop mean
    something only together. `whole` decodes the whole image at that scale and slices; otherwise the window alone.
    """

    one_example: ClassVar[bool] = True

    feature: str
    decode: StepRef[DecodeTransform]
    crop: StepRef[CropTransform]
    needed: tuple[int, int] | None
    whole: bool = False

    def uses(self) -> tuple[StepRef, ...]:
        return (self.decode, self.crop)

    def says(self) -> str:
        return f"{use(self.decode)} {'and take' if self.whole else 'only'} the window of {use(self.crop)}{_needed(self)}"

    def ns(self, x: FeatureType) -> float:
        return weight_ns(self.crop, CROP_NS, x)

    def decode_us(self, file_bytes: float) -> float:
        return _WINDOW_US + file_bytes * _DECODE_NS / 1e3 * (1.0 if self.whole else _WINDOW_SHARE)


Decodes = (Decode, DecodeWindow)
"""The stages that turn bytes into pixels."""


def _needed(stage: Decode | DecodeWindow) -> str:
    return f", no smaller than {times(stage.needed)}" if stage.needed else ""
