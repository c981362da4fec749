"""Turn image files into pixels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import model_validator

from pipegen.errors import OpError
from pipegen.ops.families.decoder import DecodeTransform, format_of
from pipegen.ops.lowering.formats import odd_form
from pipegen.ops.traits import Example, Family, Traits
from pipegen.types import BYTE_RANGE, WORD_RANGE, FeatureType

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.ops.lowering.decoding import Found, Survey, WindowOf

FILE = FeatureType("image", "string", ())
_BITS, _CHANNELS = 8, 3


class Decode(DecodeTransform):
    """Decodes a JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM or PBM file, whichever its content says it is; and where their libraries are
    installed, HEIC, AVIF and JPEG XL.

    It comes first and need not be written; write it to change its arguments. A picture has the pixels that Pillow reads, bit for bit
    but for JPEG (below), or it is refused. Of an animation or of several pages the first one is taken, on its whole canvas, and CMYK
    becomes RGB; an animated WebP is refused. Without `channels: 4`, transparency is dropped: a pixel shows the colour that is stored,
    whether it can be seen or not. What TensorFlow would read otherwise, such as a transparent GIF, a packed BMP or, before
    TensorFlow 2.21, WebP, is read by Pillow, one file at a time in Python.

    A JPEG, PNG, WebP, TIFF or AVIF image is turned upright as its EXIF orientation says, or without one its XMP; HEIC and JPEG XL always
    are. `exif: ignore` leaves all others as they are stored.

    A value has 8 bits unless `bits: 16` is given here or for the feature, and a file of another depth is an error: nothing is cut
    down or spread silently. 16 bits can be read from PNG, TIFF, PGM and PPM, and come out as uint16 from 0 to 65535.
    TensorFlow has no decoder for TIFF and PPM and its kin: Pillow reads them, and tifffile (`pip install 'pipegen[tiff]'`)
    16-bit TIFF of several channels, one file at a time in Python, which is many times slower than PNG. So are HEIC, AVIF and JPEG XL of 8
    bits, by Pillow's plugins: `pip install 'pipegen[heif]'`, `'pipegen[avif]'` (a Pillow of today) and `'pipegen[jxl]'`.

    JPEG is decoded with the fast integer transform and plain upsampling of chroma, the quicker way; values differ from
    Pillow's by a level on average, by more at edges of strong colour. With `scaled: auto`, a JPEG that the next step would
    shrink is decoded at 1/2, 1/4 or 1/8 of its size, by as much as leaves both sides (of the image, or of a random
    crop's window) no smaller than that step needs; sides are rounded up, and a window grows to whole pixels.

    `jpeg: accurate` gives the pixels that Pillow, and so Keras, reads: the slow integer transform with smooth upsampling of chroma, at
    full size and never a window alone. It is for parity, with `resize: {method: {pillow: FILTER}}`, and takes several times as long.
    `jpeg: tensorflow` gives the pixels of `tf.io.decode_image`, which `keras.utils.image_dataset_from_directory` reads: the fast
    transform with smooth upsampling of chroma, at full size, too.
    """

    op = "decode"
    examples = (
        Example("decode", FILE, "uint8[?×?×3] in [0, 255]"),
        Example("decode: {channels: 1, exif: ignore}", FILE, "uint8[?×?×1] in [0, 255]"),
        Example("decode: {scaled: never}", FILE, "uint8[?×?×3] in [0, 255]"),
        Example("decode: {jpeg: accurate, exif: ignore}", FILE, "uint8[?×?×3] in [0, 255]"),
        Example("decode: {jpeg: tensorflow, exif: ignore}", FILE, "uint8[?×?×3] in [0, 255]"),
        Example("decode: {channels: 1, bits: 16}", FILE, "uint16[?×?×1] in [0, 65535]"),
    )

    exif: Literal["apply", "ignore"] = "apply"
    """Whether an image is turned upright as its EXIF orientation says: `apply` or `ignore`."""
    jpeg: Literal["fast", "accurate", "tensorflow"] = "fast"
    """How a JPEG is decoded: `fast`, or at full size `accurate` as Pillow does it, or as `tensorflow` does it by default."""
    scaled: Literal["auto", "never"] = "auto"
    """Whether a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, as far as the next step allows: `auto` or `never`."""
    channels: Literal[1, 3, 4] | None = None
    """Channels of the output: 1 for luma, 3 for RGB, 4 for RGB and transparency (the highest value where a file has none); by default
    what the source says, else 3."""
    bits: Literal[8, 16] | None = None
    """Bits of a value, in the files and in the output; by default what the source says, else 8."""

    @model_validator(mode="after")
    def _consistent(self) -> Decode:
        if self._whole and self.scaled == "auto" and "scaled" in self.model_fields_set:
            raise ValueError(f"`jpeg: {self.jpeg}` decodes at full size, so leave `scaled` out")
        return self

    def meaning(self) -> dict[str, Any]:
        """All but `fast` decode at full size, whatever `scaled` is; `fast` is not named, as specs are older than the choice."""
        said = super().meaning()
        return said | {"scaled": "never"} if self._whole else {key: value for key, value in said.items() if key != "jpeg"}

    def plainest(self, x: FeatureType) -> Decode:
        unsaid = self.model_copy(update={"channels": None, "bits": None}).on(x)
        said = self.on(x)
        return self.model_copy(
            update={
                "channels": None if said._channels == unsaid._channels else self.channels,
                "bits": None if said._bits == unsaid._bits else self.bits,
            }
        )

    def infer(self, x: FeatureType) -> FeatureType:
        if not x.encoded:
            raise OpError("PG215", f"`decode` reads files, and this {x.kind} is decoded already", help="make it the first step, once")
        for name, value in _said(x).items():
            own = getattr(self, name)
            if None not in (own, value) and own != value:
                message = f"`decode` says `{name}: {own}`, and the feature `{name}: {value}`"
                raise OpError("PG229", message, field=name, help="say it once: for the feature, or here")
        step = self.on(x)
        dtype, interval = ("uint8", BYTE_RANGE) if step._bits == _BITS else ("uint16", WORD_RANGE)
        return x.decoded(step._channels, dtype=dtype, interval=interval)

    def on(self, x: FeatureType) -> Decode:
        """The step for files of type `x`: what their source says of them fills in what the step leaves open."""
        open_ = {name: value for name, value in _said(x).items() if getattr(self, name) is None and value is not None}
        return self.model_copy(update=open_) if open_ else self

    def traits(self, x: FeatureType) -> Traits:
        plain = self.on(x)._bits == _BITS and not self._whole
        return Traits(Family.ELEMENT, decodes=True, decodes_windows=plain, decodes_scaled=plain and self.scaled == "auto")

    @property
    def _channels(self) -> int:
        return self.channels or _CHANNELS

    @property
    def _bits(self) -> int:
        return self.bits or _BITS

    @property
    def _whole(self) -> bool:
        return self.jpeg != "fast"

    def _need(self, need: tuple[int, int] | None) -> tuple[int, int] | None:
        return need if self.scaled == "auto" and not self._whole else None

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode, decode_deep
        from pipegen.ops.lowering.graphs import once

        if self._bits != _BITS:
            return once(decode_deep, contents, channels=self._channels, exif=self.exif)
        return once(decode, contents, channels=self._channels, exif=self.exif, need=self._need(need), jpeg=self.jpeg)

    def read_by_python(self, content: bytes) -> str | None:
        found = format_of(content)
        if found not in ("GIF", "BMP"):
            return found
        if self._bits != _BITS:
            return None  # there is none of so many
        return found if self._channels == 4 else odd_form(content)

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import stored_size

        return stored_size(contents, exif=self.exif, bits=self._bits)

    def fitted(self, image: tf.Tensor, contents: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.exif import as_decoded

        return as_decoded(image, contents, self.stored_size(contents), upright=self.exif == "apply")

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import cut_out, decode_window

        if self._bits != _BITS:
            return cut_out(self.decode(contents), window)
        given = contents, window, self._channels
        return decode_window(*given, exif=self.exif, need=self._need(need), whole=whole, jpeg=self.jpeg)

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> Survey | None:
        from pipegen.ops.lowering.decoding import survey

        return None if self._bits != _BITS else survey(contents, need=self._need(need), window=window)

    def decode_surveyed(
        self,
        contents: tf.Tensor,
        found: Found,
        need: tuple[int, int] | None = None,
        window: WindowOf | None = None,
        *,
        whole: bool = False,
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode, decode_surveyed, decode_window
        from pipegen.ops.lowering.graphs import once

        told: dict[str, Any] = {"exif": self.exif, "need": self._need(need), "jpeg": self.jpeg, "rare": True}
        if window is None:
            alone = partial(once, decode, contents, channels=self._channels, **told)
        else:
            alone = partial(decode_window, contents, window, self._channels, whole=whole, **told)
        return decode_surveyed(contents, found, alone, self._channels, need=told["need"], whole=whole, jpeg=self.jpeg)


def _said(x: FeatureType) -> dict[str, int | None]:
    """Returns what the source says of files of type `x`, by argument."""
    return {"channels": x.file_channels, "bits": x.file_bits}
