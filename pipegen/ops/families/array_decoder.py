"""Turns files of arrays, masks and outlines into values. A source says so of its features, so no step of a spec does."""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar, Literal

from pipegen.lazy import tf
from pipegen.ops.families.decoder import DecodeTransform, format_of
from pipegen.ops.traits import Family, Traits
from pipegen.types import FeatureType, Interval

_LIBRARIES = {"nifti": ("nibabel", "nibabel"), "dicom": ("pydicom", "pydicom"), "geotiff": ("rasterio", "rasterio")}
"""What reads a format: the module, and what people call it. NumPy reads the others."""


class ArrayDecoder(DecodeTransform):
    """A file's array becomes float32 of one shape, as it is stored; that of an image is `(height, width, channels)`."""

    op: ClassVar[str] = "decode"
    dtype: ClassVar[str] = "float32"
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "rarely"

    format: str
    """The format: `npy`, `flo`, `nifti`, `dicom` or `geotiff`."""
    shape: tuple[int | None, ...]
    """The shape of the array, with `None` where a side is not known; a last side of 1 may be missing in the file."""
    options: tuple[tuple[str, str | int | tuple[int, ...] | None], ...] = ()
    """The further arguments of the format's reader, by name."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True)

    def infer(self, x: FeatureType) -> FeatureType:
        """float32 of the shape."""
        return x.with_(dtype="float32", shape=self.shape, interval=None, file_channels=None, file_bits=None)

    def read_by_python(self, content: bytes) -> str | None:
        return f"array ({self.format})"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """float32 of the shape; see `lowering.arrays.decode_array`."""
        from pipegen.ops.lowering.array_formats import decode_array

        return decode_array(contents, self.format, dict(self.options), self.shape, self.dtype)

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return tf.constant(self.shape[:2]) if None not in self.shape[:2] else super().stored_size(contents)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)


def missing_library(format: str) -> tuple[str, str] | None:
    """Names the library that reads a format and is not here, and says how to install it; `None` where nothing is missing."""
    module, library = _LIBRARIES.get(format, ("", ""))
    if not module or find_spec(module) is not None:
        return None
    return library, f"pip install 'pipegen[{format}]'"


LARGEST = 255
"""The largest class index of a mask, which is held in a byte."""


class MaskDecoder(DecodeTransform):
    """A mask's file becomes the class index of each pixel: the stored value, or what `values` makes of it."""

    op: ClassVar[str] = "decode"

    values: tuple[tuple[int, int], ...] | None = None
    """Pairs of a stored value and its class index; `None` takes the stored values for class indices."""
    allowed: tuple[int, ...] | None = None
    """The class indices that there can be; `None` for any."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, decodes=True)

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        indices = [index for _, index in self.values or ()] or self.allowed or (LARGEST,)
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, float(max(*indices, x.ignore))))

    def read_by_python(self, content: bytes) -> str | None:
        gray = content.startswith(b"\x89PNG") and content[25:26] == b"\0"
        return None if gray else format_of(content) or "a PNG of palette indices or colours, or another format than PNG"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        """uint8 `(height, width, 1)`; see `lowering.masks.decode_mask`."""
        from pipegen.ops.lowering.masks import decode_mask  # with all formats, which checking a spec does without

        return decode_mask(contents, self.values or tuple((index, index) for index in self.allowed or ()) or None)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return self.decode(image)


class OutlineDecoder(ArrayDecoder):
    """An annotation file becomes a mask of instances: the number of the shape that is drawn last at each pixel."""

    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    dtype = "uint8"
    shape: tuple[int | None, ...] = (None, None, 1)

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, 255.0))

    def read_by_python(self, content: bytes) -> str | None:
        return f"outlines ({self.format})"
