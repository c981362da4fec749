"""Turn image files into pixels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pipegen.errors import OpError
from pipegen.ops.base import Example
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.types import BYTE_RANGE, FeatureType

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.lowering.decoding import WindowOf

FILE = FeatureType("encoded", "string", ())


class Decode(DecodeTransform):
    """Decodes a JPEG, PNG, GIF, BMP or WebP file, whichever its content says it is, to 8-bit pixels.

    It comes first and need not be written; write it to change its arguments. Transparency is dropped, CMYK becomes
    RGB, and of an animation the first frame is taken. WebP needs a TensorFlow that reads it. A 16-bit PNG is an error
    rather than cut to 8 bits.

    JPEG is decoded with the fast integer transform and plain upsampling of chroma, the quicker way; values differ from
    Pillow's by a level on average, by more at edges of strong colour. With `scaled: auto`, a JPEG that the next step would
    shrink is decoded at 1/2, 1/4 or 1/8 of its size, by as much as leaves both sides (of the image, or of a random
    crop's window) no smaller than that step needs; sides are rounded up, and a window grows to whole pixels.
    """

    op = "decode"
    examples = (
        Example("decode", FILE, "uint8[?×?×3] in [0, 255]"),
        Example("decode: {channels: 1, exif: ignore}", FILE, "uint8[?×?×1] in [0, 255]"),
        Example("decode: {scaled: never}", FILE, "uint8[?×?×3] in [0, 255]"),
    )

    exif: Literal["apply", "ignore"] = "apply"
    """Whether a JPEG is turned upright as its EXIF orientation says: `apply` or `ignore`."""
    scaled: Literal["auto", "never"] = "auto"
    """Whether a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, as far as the next step allows: `auto` or `never`."""
    channels: Literal[1, 3] = 3
    """Channels of the output: 3 for RGB, 1 for luma."""

    def infer(self, x: FeatureType) -> FeatureType:
        if x.kind != "encoded":
            raise OpError("PG215", f"`decode` reads files, and this {x.kind} is decoded already", help="make it the first step, once")
        return x.with_(kind="image", dtype="uint8", shape=(None, None, self.channels), interval=BYTE_RANGE)

    def _need(self, need: tuple[int, int] | None) -> tuple[int, int] | None:
        return need if self.scaled == "auto" else None

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode

        return decode(contents, self.channels, exif=self.exif, need=self._need(need))

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.sizes import stored_size

        return stored_size(contents, exif=self.exif)

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode_window

        return decode_window(contents, window, self.channels, exif=self.exif, need=self._need(need), whole=whole)

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import survey

        return survey(contents, exif=self.exif, need=self._need(need), window=window)

    def decode_surveyed(
        self,
        contents: tf.Tensor,
        found: tf.Tensor,
        need: tuple[int, int] | None = None,
        window: WindowOf | None = None,
        *,
        whole: bool = False,
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode_surveyed

        alone = partial(super().decode_surveyed, contents, found, need, window, whole=whole)
        return decode_surveyed(contents, found, alone, self.channels, whole=whole, scales=self._need(need) is not None)
