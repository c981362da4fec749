"""Turns the array that a file holds into floats: an image, or a tensor. A source says so of its features, so no spec writes it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.traits import Family, Traits

if TYPE_CHECKING:
    from typing import Literal

    import tensorflow as tf

    from pipegen.types import FeatureType

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
        from pipegen.ops.lowering.arrays import decode_array

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
