"""The family of decoders: steps that turn the bytes of a file into pixels."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, Literal

from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.kinds.base import FeatureKind
from pipegen.ops.lowering.library import plugin_format
from pipegen.ops.stage import OneStep, Stage, StepRef, use, weight_ns
from pipegen.ops.step_bases import CropTransform, ElementTransform
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType, Interval, times

if TYPE_CHECKING:
    from pipegen.mounts import Opened
    from pipegen.ops.lowering.decoding import Found, Survey, WindowOf


CROP_NS = 0.5  # nanoseconds to copy a value of a window


HEAD = 64  # the number of first bytes that identify the format of a file
_MAGIC = ((b"II*\0", "TIFF"), (b"MM\0*", "TIFF"), (b"II+\0", "TIFF"), (b"MM\0+", "TIFF"), (b"GIF8", "GIF"), (b"BM", "BMP"))


def format_of(head: bytes) -> str | None:
    """The format of a file with these first bytes, if TensorFlow cannot, or not always, decode it."""
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PPM, PGM or PBM"
    return plugin_format(head) or next((name for magic, name in _MAGIC if head.startswith(magic)), None)


def needs_whole(head: bytes) -> bool:
    """Whether the decoder of a file that begins so depends on its whole content."""
    return format_of(head) in ("GIF", "BMP")


class DecodeTransform(ElementTransform):
    """Decodes the bytes of a file to an image. It can decode a window alone, or at a fraction of the size."""

    op: ClassVar[str] = "decode"
    family: ClassVar[str] = "decode"
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "rarely"
    names_unread: ClassVar[bool] = False  # whether a saved graph of it says itself which formats it does not read
    ns_per_byte: ClassVar[float] = 14.5  # nanoseconds to decode a stored byte
    in_graph: ClassVar[str] = "gray PNG for masks, else PNG or JPEG"  # formats that a graph decodes without Python, for advice
    turnable: ClassVar[bool] = True  # whether pixels aligned with a file's image are right once they are turned like it

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return kind.storage == "encoded"

    @classmethod
    def known_kinds(cls) -> list[str]:
        return ["encoded"]

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """Decodes the whole image of a file, a string scalar, to pixels `(height, width, channels)` of the dtype that `infer` gives.

        With `need`, the next step's `needed_size`, the image may come back at a fraction of its size whose sides are no smaller, if the
        arguments allow it.
        """
        raise NotImplementedError

    def read_by_python(self, content: bytes) -> str | None:
        """The format of a file that TensorFlow cannot decode, or would decode differently; `None` for all others. Its first `HEAD` bytes
        suffice, unless it `needs_whole`."""
        return None

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        """The height and width of the image that `decode` gives without `need`, in pixels: int32 `(2,)`."""
        return tf.shape(self.decode(contents))[:2]

    def stored_length(self, file: Opened) -> int | None:
        """Returns the length along the first axis of what `decode` gives, by the header of an opened file alone; `None` if the header does
        not tell. On damage raises any exception of the reader."""
        return None

    def fitted(self, image: tf.Tensor, contents: tf.Tensor) -> tf.Tensor:
        """Turns pixels that belong to a file's image like `decode` turns the image, if their size shows that they are not turned yet."""
        return image

    def decode_window(
        self, contents: tf.Tensor, window: WindowOf, need: tuple[int, int] | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        """Decodes one window of the image, like `decode`.

        `window` maps the height and width of the image that `decode` gives without `need`, int32 scalars in pixels, to the window in it:
        int32 `(4,)`: top, left, height, width. With `need`, the crop's `needed_size`, the window may come back at a fraction of its size,
        no smaller than this. With `whole`, the whole image is decoded and the window cut out: the same pixels, slower. This is the meaning
        of the step; decoding the window alone is the rewrite.
        """
        raise NotImplementedError

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> Survey | None:
        """Surveys the bytes of `n` files for `decode_surveyed`, before they are decoded; `None` by default. The arguments are as for
        `decode` and `decode_window`, but `window` maps sizes `(n,)` to windows `(n, 4)`."""
        return None

    def decode_surveyed(
        self, contents: tf.Tensor, found: Found, need: tuple[int, int] | None = None, window: WindowOf | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        """Decodes a surveyed file like `decode`, or with a window like `decode_window`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Decode(OneStep[DecodeTransform]):
    """Bytes to pixels. `needed` is the least height and width that the next step can use without loss, or `None`; `like` the image that it
    is aligned with, if that is not decoded yet, and its decoder: both need the same size."""

    one_example: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.0

    needed: tuple[int, int] | None
    like: tuple[str, StepRef[DecodeTransform]] | None = None

    @property
    def decode(self) -> StepRef[DecodeTransform]:
        """The use of the decoder, by its name in `DecodeWindow`."""
        return self.ref

    def says(self) -> str:
        return use(self.ref) + _needed(self)

    def decode_us(self, file_bytes: float) -> float:
        return file_bytes * self.ref.step.ns_per_byte / 1e3


@dataclass(frozen=True, slots=True)
class DecodeWindow(Stage):
    """Bytes to the pixels of a crop window, and the crop's finish.

    A window that will be resized may be decoded at a smaller scale, which depends on the window, so decode and crop belong together.
    `whole` decodes the whole image at that scale and slices it; otherwise the window alone is decoded.
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
        alone = 1.0 if self.whole else 0.78  # the cost of decoding a window, relative to the whole image
        return 60.0 + file_bytes * self.decode.step.ns_per_byte / 1e3 * alone  # 60 to find the window


Decodes = (Decode, DecodeWindow)  # the stages that turn bytes into pixels


def _needed(stage: Decode | DecodeWindow) -> str:
    return f", no smaller than {times(stage.needed)}" if stage.needed else ""


_LIBRARIES = {"nifti": ("nibabel", "nibabel"), "dicom": ("pydicom", "pydicom"), "geotiff": ("rasterio", "rasterio")}
"""The library that reads a format: its module and its name. NumPy reads the other formats."""


class ArrayDecoder(DecodeTransform):
    """Decodes a file's array to float32 of one shape, as it is stored; an image has `(height, width, channels)`."""

    dtype: ClassVar[str] = "float32"
    empty: ClassVar[bool] = False  # whether the first axis may have the length 0

    format: str
    """The format: `npy`, `flo`, `nifti`, `dicom` or `geotiff`."""
    shape: tuple[int | None, ...]
    """The shape of the array, with `None` for an unknown side; a last side of 1 may be missing in the file."""
    options: tuple[tuple[str, str | int | tuple[int, ...] | None], ...] = ()
    """The further arguments of the format's reader, by name."""

    def infer(self, x: FeatureType) -> FeatureType:
        return x.with_(dtype="float32", shape=self.shape, interval=None, file_channels=None, file_bits=None)

    def read_by_python(self, content: bytes) -> str | None:
        return f"array ({self.format})"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.array_formats import decode_array

        return decode_array(contents, self.format, dict(self.options), self.shape, self.dtype, empty=self.empty)

    def stored_length(self, file: Opened) -> int | None:
        from pipegen.ops.lowering.array_formats import npy_header

        shape = npy_header(file)[0] if self.format == "npy" else ()
        return shape[0] if shape else None

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        return tf.constant(self.shape[:2]) if None not in self.shape[:2] else super().stored_size(contents)


class NumbersDecoder(ArrayDecoder):
    """Decodes a file's array of numbers that are no pixels; its length along the first axis may vary from file to file."""

    empty = True


class SoundDecoder(DecodeTransform):
    """Decodes a sound file to float32 `(frames, channels)` of one rate; a file of another rate is resampled by a windowed sinc."""

    names_unread = True
    in_graph = "WAV"
    ns_per_byte: ClassVar[float] = 2.0
    turnable = False

    rate: int
    """Frames a second of the result, in Hz."""
    channels: int = 1
    """Channels of the result: with 1, the mean of the file's; a file of one channel has it copied to all."""
    offset: float = 0.0
    """Seconds of the file before the first frame."""
    duration: float | None = None
    """The most seconds of the file; by default up to its end."""

    def infer(self, x: FeatureType) -> FeatureType:
        return x.with_(dtype="float32", shape=(None, self.channels), interval=None, file_channels=None)

    def read_by_python(self, content: bytes) -> str | None:
        from pipegen.ops.lowering.sounds import read_by_library

        return read_by_library(content[:HEAD])

    def stored_length(self, file: Opened) -> int | None:
        from pipegen.ops.lowering.sounds import stored_frames

        return stored_frames(file, self.rate, self.offset, self.duration)

    def survey(self, contents: list[tf.Tensor], need: tuple[int, int] | None = None, window: WindowOf | None = None) -> Survey | None:
        from pipegen.ops.lowering.sounds import survey

        return survey(contents, self.offset, self.duration)

    def decode_surveyed(
        self, contents: tf.Tensor, found: Found, need: tuple[int, int] | None = None, window: WindowOf | None = None, *, whole: bool = False
    ) -> tf.Tensor:
        from pipegen.ops.lowering.sounds import decode_surveyed

        return decode_surveyed(contents, found, self.rate, self.channels, self.decode)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.graphs import once
        from pipegen.ops.lowering.sounds import decode_sound

        return once(decode_sound, contents, rate=self.rate, channels=self.channels, offset=self.offset, duration=self.duration)


def missing_library(format: str) -> tuple[str, str] | None:
    """The library that a format needs and that is not installed, with the command that installs it; `None` where none is missing."""
    module, library = _LIBRARIES.get(format, ("", ""))
    if not module or find_spec(module) is not None:
        return None
    return library, f"pip install 'pipegen[{format}]'"


def rgb_code(colour: Sequence[int]) -> int:
    """A colour as one number, red in the highest byte."""
    return colour[0] << 16 | colour[1] << 8 | colour[2]


LARGEST = 255  # the largest class index of a mask: it has to fit a byte


class MaskDecoder(DecodeTransform):
    """Decodes a mask's file to the class index of each pixel: the stored value, or the one that `values` maps it to."""

    values: tuple[tuple[int | None, int], ...] | None = None
    """Pairs of a stored value, `None` for all others, and its class index; `None` for stored values that are class indices."""
    allowed: tuple[int, ...] | None = None
    """The possible class indices; `None` for any."""
    palette: bool = False
    """Whether the stored values are colours; see `rgb_code`."""

    def infer(self, x: FeatureType) -> FeatureType:
        indices = [index for _, index in self.values or ()] or self.allowed or (LARGEST,)
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, float(max(*indices, x.ignore))))

    def read_by_python(self, content: bytes) -> str | None:
        in_graph = content.startswith(b"\x89PNG") and (self.palette or content[25:26] == b"\0")
        return None if in_graph else format_of(content) or "a PNG of palette indices or colours, or another format than PNG"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode_mask  # imports all formats, which checking a spec does not need

        return decode_mask(contents, self.values or tuple((index, index) for index in self.allowed or ()) or None, palette=self.palette)


class MapDecoder(DecodeTransform):
    """Decodes an image file to float32, as a dense map."""

    channels: int = 1
    """The number of channels."""
    bits: int = 8
    """The bits of a value, 8 or 16."""

    def infer(self, x: FeatureType) -> FeatureType:
        return x.decoded(self.channels, dtype="float32", interval=None)

    def read_by_python(self, content: bytes) -> str | None:
        return format_of(content)

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.decoding import decode, decode_deep  # imports all formats, which checking a spec does not need

        read = decode_deep if self.bits == 16 else decode
        return tf.cast(read(contents, channels=self.channels, exif="ignore"), tf.float32)


class VectorDecoder(ArrayDecoder):
    """Decodes a file's array of vectors, `(height, width, 2)`; by default a `.flo` or `.npy` file, recognised by its content."""

    turnable = False
    format: str = "vectors"
    shape: tuple[int | None, ...] = (None, None, 2)


class OutlineDecoder(ArrayDecoder):
    """Decodes an annotation file to a mask of instances: each pixel has the number of the last shape drawn over it."""

    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    dtype = "uint8"
    shape: tuple[int | None, ...] = (None, None, 1)

    def infer(self, x: FeatureType) -> FeatureType:
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, 255.0))

    def read_by_python(self, content: bytes) -> str | None:
        return f"outlines ({self.format})"
