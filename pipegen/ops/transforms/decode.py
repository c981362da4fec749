"""Decode image files."""

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


class Decode(DecodeTransform):
    """Decodes a JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM or PBM file, recognised by its content; and HEIC, AVIF and JPEG XL if their
    libraries are installed.

    It is always the first step; write it only to change its arguments. An image has the pixels that Pillow reads, bit for bit except for
    JPEG (below), or it is refused. Animations and multi-page files give their first image, on its whole canvas, and CMYK becomes RGB; an
    animated WebP is refused. Without `channels: 4`, transparency is dropped: a pixel shows its stored colour, even where it is transparent.
    Pillow reads files that TensorFlow would read differently, such as a transparent GIF, a packed BMP or, before TensorFlow 2.21, WebP: one
    file at a time in Python.

    A JPEG, PNG, WebP, TIFF or AVIF image is turned upright by its EXIF orientation, or if it has none by its XMP; HEIC and JPEG XL always
    are. `exif: ignore` leaves all others as they are stored.

    A value has 8 bits unless `bits: 16` is given here or for the feature, and a file of another depth is an error: values are never
    converted silently. PNG, TIFF, PGM and PPM can have 16 bits, which give uint16 from 0 to 65535. TensorFlow has no decoder for TIFF, PPM,
    PGM and PBM: Pillow reads them, and tifffile (`pip install 'pipegen[tiff]'`) reads 16-bit TIFF of several channels, one file at a time
    in Python, which is many times slower than PNG. So are HEIC, AVIF and JPEG XL of 8 bits, by plugins of Pillow: `pip install
    'pipegen[heif]'`, `'pipegen[avif]'` (a recent Pillow) and `'pipegen[jxl]'`.

    JPEG is decoded with the fast integer transform and plain upsampling of chroma, which is quick; values differ from Pillow's by one level
    on average, and by more at edges of strong colour. With `scaled: auto`, a JPEG that the next step would shrink is decoded at 1/2, 1/4 or
    1/8 of its size: the smallest whose sides (of the image, or of the window of a random crop) are no smaller than that step needs. Sides
    are rounded up, and a window grows to whole pixels.

    `jpeg: accurate` gives the pixels that Pillow reads, and with it Keras' `load_img`: the slow integer transform with smooth upsampling of
    chroma, at full size and never a window alone. It is for parity, with `resize: {method: {pillow: FILTER}}`, and takes several times as
    long.
    `jpeg: tensorflow` gives the pixels of `tf.io.decode_image`, which `keras.utils.image_dataset_from_directory` reads: the fast transform
    with smooth upsampling of chroma, also at full size.
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
    """Whether an image is turned upright by its EXIF orientation: `apply` or `ignore`."""
    jpeg: Literal["fast", "accurate", "tensorflow"] = "fast"
    """How a JPEG is decoded: `fast`, or at full size like Pillow (`accurate`) or like TensorFlow's default (`tensorflow`)."""
    scaled: Literal["auto", "never"] = "auto"
    """Whether a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size, as far as the next step allows: `auto` or `never`."""
    channels: Literal[1, 3, 4] | None = None
    """Channels of the output: 1 for luma, 3 for RGB, 4 for RGB and transparency (opaque where a file has none); by default those of the
    source, else 3."""
    bits: Literal[8, 16] | None = None
    """Bits of a value, in the files and in the output; by default those of the source, else 8."""

    @model_validator(mode="after")
    def _consistent(self) -> Decode:
        if self.jpeg != "fast" and self.scaled == "auto" and "scaled" in self.model_fields_set:
            raise ValueError(f"`jpeg: {self.jpeg}` decodes at full size, so leave `scaled` out")
        return self

    def meaning(self) -> dict[str, Any]:
        """Counts `scaled` only with `jpeg: fast`: the others decode at full size."""
        return super().meaning() | ({"scaled": "never"} if self.jpeg != "fast" else {})

    def plainest(self, x: FeatureType) -> Decode:
        said, unsaid = self.on(x), self.model_copy(update={"channels": None, "bits": None}).on(x)
        same = {"channels": (said.channels or 3) == (unsaid.channels or 3), "bits": (said.bits or 8) == (unsaid.bits or 8)}
        return self.model_copy(update={name: None for name, equal in same.items() if equal})

    def infer(self, x: FeatureType) -> FeatureType:
        if not x.encoded:
            raise OpError("PG215", f"`decode` reads files, and this {x.kind} is decoded already", help="make it the first step, once")
        for name, value in _said(x).items():
            own = getattr(self, name)
            if None not in (own, value) and own != value:
                message = f"`decode` says `{name}: {own}`, and the feature `{name}: {value}`"
                raise OpError("PG229", message, field=name, help="say it once: for the feature, or here")
        step = self.on(x)
        dtype, interval = ("uint16", WORD_RANGE) if step.bits == 16 else ("uint8", BYTE_RANGE)
        return x.decoded(step.channels or 3, dtype=dtype, interval=interval)

    def on(self, x: FeatureType) -> Decode:
        """The step for files of type `x`, with the source's `channels` and `bits` where it has none of its own."""
        open_ = {name: value for name, value in _said(x).items() if getattr(self, name) is None and value is not None}
        return self.model_copy(update=open_) if open_ else self

    def traits(self, x: FeatureType) -> Traits:
        plain = self.on(x).bits != 16 and self.jpeg == "fast"
        return Traits(Family.ELEMENT, decodes=True, decodes_windows=plain, decodes_scaled=plain and self.scaled == "auto")

    def _need(self, need: tuple[int, int] | None) -> tuple[int, int] | None:
        return need if self.scaled == "auto" and self.jpeg == "fast" else None

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode, decode_deep
        from pipegen.ops.lowering.graphs import once

        if self.bits == 16:
            return once(decode_deep, contents, channels=self.channels or 3, exif=self.exif)
        return once(decode, contents, channels=self.channels or 3, exif=self.exif, need=self._need(need), jpeg=self.jpeg)

    def read_by_python(self, content: bytes) -> str | None:
        found = format_of(content)
        if found not in ("GIF", "BMP"):
            return found
        if self.bits == 16:
            return None  # these formats have no 16 bits
        return found if self.channels == 4 else odd_form(content)

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import stored_size

        return stored_size(contents, exif=self.exif, bits=self.bits or 8)

    def fitted(self, image: tf.Tensor, contents: tf.Tensor) -> tf.Tensor:
        from pipegen.ops.lowering.exif import as_decoded

        return as_decoded(image, contents, self.stored_size(contents), upright=self.exif == "apply")

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import cut_out, decode_window

        if self.bits == 16:
            return cut_out(self.decode(contents), window)
        given = contents, window, self.channels or 3
        return decode_window(*given, exif=self.exif, need=self._need(need), whole=whole, jpeg=self.jpeg)

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> Survey | None:
        from pipegen.ops.lowering.decoding import survey

        return None if self.bits == 16 else survey(contents, need=self._need(need), window=window)

    def decode_surveyed(
        self, contents: tf.Tensor, found: Found, need: tuple[int, int] | None = None, window: WindowOf | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode, decode_surveyed, decode_window
        from pipegen.ops.lowering.graphs import once

        told: dict[str, Any] = {"exif": self.exif, "need": self._need(need), "jpeg": self.jpeg, "rare": True}
        if window is None:
            alone = partial(once, decode, contents, channels=self.channels or 3, **told)
        else:
            alone = partial(decode_window, contents, window, self.channels or 3, whole=whole, **told)
        return decode_surveyed(contents, found, alone, self.channels or 3, need=told["need"], whole=whole, jpeg=self.jpeg)


def _said(x: FeatureType) -> dict[str, int | None]:
    """The arguments that the source gives for files of type `x`."""
    return {"channels": x.file_channels, "bits": x.file_bits}
