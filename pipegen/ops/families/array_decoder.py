"""Decoders of arrays, masks and outlines. Sources name them for their features; they are not steps of a spec."""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar, Literal

from pipegen.lazy import tf
from pipegen.ops.families.decoder import DecodeTransform, format_of
from pipegen.types import FeatureType, Interval

_LIBRARIES = {"nifti": ("nibabel", "nibabel"), "dicom": ("pydicom", "pydicom"), "geotiff": ("rasterio", "rasterio")}
"""The library that reads a format: its module and its name. NumPy reads the other formats."""


class ArrayDecoder(DecodeTransform):
    """Decodes a file's array to float32 of one shape, as it is stored; an image has `(height, width, channels)`."""

    op: ClassVar[str] = "decode"
    dtype: ClassVar[str] = "float32"
    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "rarely"

    format: str
    """The format: `npy`, `flo`, `nifti`, `dicom` or `geotiff`."""
    shape: tuple[int | None, ...]
    """The shape of the array, with `None` for an unknown side; a last side of 1 may be missing in the file."""
    options: tuple[tuple[str, str | int | tuple[int, ...] | None], ...] = ()
    """The further arguments of the format's reader, by name."""

    def infer(self, x: FeatureType) -> FeatureType:
        """float32 of the shape."""
        return x.with_(dtype="float32", shape=self.shape, interval=None, file_channels=None, file_bits=None)

    def read_by_python(self, content: bytes) -> str | None:
        return f"array ({self.format})"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.array_formats import decode_array

        return decode_array(contents, self.format, dict(self.options), self.shape, self.dtype)

    def stored_size(self, contents: tf.Tensor) -> tf.Tensor:
        import tensorflow as tf

        return tf.constant(self.shape[:2]) if None not in self.shape[:2] else super().stored_size(contents)


def missing_library(format: str) -> tuple[str, str] | None:
    """The library that a format needs and that is not installed, with the command that installs it; `None` where none is missing."""
    module, library = _LIBRARIES.get(format, ("", ""))
    if not module or find_spec(module) is not None:
        return None
    return library, f"pip install 'pipegen[{format}]'"


LARGEST = 255
"""The largest class index of a mask: it has to fit a byte."""


class MaskDecoder(DecodeTransform):
    """Decodes a mask's file to the class index of each pixel: the stored value, or the one that `values` maps it to."""

    op: ClassVar[str] = "decode"

    values: tuple[tuple[int, int], ...] | None = None
    """Pairs of a stored value and its class index; `None` for stored values that are class indices."""
    allowed: tuple[int, ...] | None = None
    """The possible class indices; `None` for any."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        indices = [index for _, index in self.values or ()] or self.allowed or (LARGEST,)
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, float(max(*indices, x.ignore))))

    def read_by_python(self, content: bytes) -> str | None:
        gray = content.startswith(b"\x89PNG") and content[25:26] == b"\0"
        return None if gray else format_of(content) or "a PNG of palette indices or colours, or another format than PNG"

    def decode(self, contents: tf.Tensor, need: tuple[int, int] | None = None) -> tf.Tensor:
        from pipegen.ops.lowering.mask_decoding import decode_mask  # imports all formats, which checking a spec does not need

        return decode_mask(contents, self.values or tuple((index, index) for index in self.allowed or ()) or None)


class OutlineDecoder(ArrayDecoder):
    """Decodes an annotation file to a mask of instances: each pixel has the number of the last shape drawn over it."""

    calls_python: ClassVar[Literal["never", "rarely", "always"]] = "always"

    dtype = "uint8"
    shape: tuple[int | None, ...] = (None, None, 1)

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 `(height, width, 1)`."""
        return x.decoded(1, dtype="uint8", interval=Interval(0.0, 255.0))

    def read_by_python(self, content: bytes) -> str | None:
        return f"outlines ({self.format})"
