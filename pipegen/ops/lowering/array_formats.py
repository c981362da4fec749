"""Readers of array files in Python, one file at a time."""

from __future__ import annotations

import io
import math
import os
import struct
import threading
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import Any

from pipegen.lazy import np, tf
from pipegen.mounts import content_of, mounted
from pipegen.ops.lowering.graphs import target
from pipegen.ops.lowering.library import UnreadableError, call_reader


def decode_array(
    contents: tf.Tensor, format: str, options: Mapping[str, Any], shape: Sequence[int | None], dtype: str = "float32"
) -> tf.Tensor:
    """Calls `read_array` from a graph on a string scalar, a file's bytes; fails in a saved graph, which has no Python."""
    if target() != "process":
        message = [f"files of the format `{format}` can be read only by Python, which a saved graph cannot call"]
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[message])]):
            return tf.ensure_shape(tf.zeros([side or 0 for side in shape], tf.as_dtype(dtype)), shape)

    def describe(error: Exception) -> str:
        return f"is not a valid {format} file: {type(error).__name__}: {error}"

    due = tuple(shape)
    return call_reader(lambda content: read_array(content, format, options, due, dtype), contents, due, tf.as_dtype(dtype), describe)


def read_array(contents: bytes, format: str, options: Mapping[str, Any], shape: tuple[int | None, ...], dtype: str = "float32") -> Any:
    """Reads the array of a file of a `format`, by the function `read_{format}` with the `options` as arguments.

    The array has the `dtype` and the `shape`, where `None` is any side, and a last side of 1 may be missing in the file. A file that cannot
    be read raises `UnreadableError`, whose message continues the file's name, or on damage any exception of a library.
    """
    if not contents:
        raise UnreadableError("is empty")
    module = "outline_masks" if format in ("coco", "labelme") else "array_formats"
    values = getattr(import_module(f"pipegen.ops.lowering.{module}"), f"read_{format}")(contents, **options)
    if values.ndim == len(shape) - 1 and shape[-1] == 1:
        values = values[..., None]
    fits = len(shape) == values.ndim and all(due in (None, side) for due, side in zip(shape, values.shape, strict=True))
    if not fits or 0 in values.shape:
        have, due = _shown(values.shape), _shown(shape)
        raise UnreadableError(f"holds an array of shape {have}, but {due} is expected")
    with np.errstate(all="ignore"):  # numbers that float32 cannot hold become infinite
        return values.astype(dtype, copy=False)


def _shown(shape: Sequence[int | None]) -> str:
    return f"[{', '.join('any' if side is None else str(int(side)) for side in shape)}]"


def read_dicom(contents: bytes, values: str) -> Any:
    """Reads the image of a DICOM file: `stored` values, or `rescaled` by the modality's slope, intercept or table, such as to Hounsfield
    units (DICOM PS3.3, C.11.1); `UnreadableError` for a file without exactly one image of one channel."""
    import pydicom
    from pydicom.pixels.processing import apply_modality_lut

    data = pydicom.dcmread(io.BytesIO(contents))
    if "PixelData" not in data and "FloatPixelData" not in data and "DoubleFloatPixelData" not in data:
        raise UnreadableError("is a DICOM file without an image, or one that is cut short")
    if int(data.get("NumberOfFrames") or 1) != 1:
        raise UnreadableError(f"is a DICOM file of {data.NumberOfFrames} images, but one is expected")
    if int(data.get("SamplesPerPixel") or 1) != 1:
        raise UnreadableError(f"is a DICOM file of {data.SamplesPerPixel} samples a pixel, but one is expected")
    pixels = data.pixel_array
    return np.asarray(apply_modality_lut(pixels, data) if values == "rescaled" else pixels)


_MAGIC = b"PIEH"
"""The float 202021.25, which shows the byte order."""


def read_flo(contents: bytes) -> Any:
    """Reads the flow in pixels, to the right and down: float32 `(height, width, 2)`; `UnreadableError` for an invalid file."""
    if contents[:4] != _MAGIC or len(contents) < 12:
        raise UnreadableError("is not a `.flo` file: it does not begin with `PIEH`")
    width, height = struct.unpack("<ii", contents[4:12])
    if width < 1 or height < 1:
        raise UnreadableError(f"is a `.flo` file of {height}×{width} pixels")
    if len(contents) - 12 != 8 * width * height:
        raise UnreadableError(f"is a `.flo` file of {height}×{width} pixels, but holds {len(contents) - 12:,} bytes of them")
    return np.frombuffer(contents, "<f4", 2 * width * height, 12).reshape(height, width, 2)


def read_npy(contents: bytes) -> Any:
    """Reads an array of numbers. Objects, which would be unpickled, other arrays, and a file that is cut short raise `UnreadableError`."""
    stream = io.BytesIO(contents)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    if dtype.hasobject or dtype.kind not in "buif":
        raise UnreadableError(f"holds {'Python objects' if dtype.hasobject else dtype}, but numbers are expected")
    count, start = math.prod(shape), stream.tell()
    if min(shape, default=0) < 0 or len(contents) - start < count * dtype.itemsize:
        raise UnreadableError("is cut short")
    values = np.frombuffer(contents, dtype, count, start)
    return values.reshape(shape, order="F" if fortran else "C")


_CUT = b"\x93NUMPY"
_OPEN = 8
"""Files that each thread keeps open."""


def read_geotiff(contents: bytes, bands: Sequence[int], window: Sequence[int] | None = None) -> Any:
    """Reads bands as stored, counted from 1 as in GDAL; from a window in `.npy` form, as `cut` makes it, all of it.

    `window` is the first row and column, and height and width, in pixels; by default all. Blocks outside are not decoded. A missing band,
    and a window that ends outside, raise `UnreadableError`.
    """
    import rasterio

    if contents.startswith(_CUT):
        return read_npy(contents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about images without a georeference
        with rasterio.MemoryFile(contents) as memory, memory.open(driver="GTiff") as raster:
            return _read(raster, bands, window)


class Rasters(threading.local):
    """Open files of a thread: GDAL's must not be shared among threads."""

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, Any] = OrderedDict()

    def cut(self, path: str, stamp: tuple[int, int], bands: Sequence[int], window: Sequence[int]) -> Any:
        """Reads bands of a window of a file, as `read_geotiff`; blocks outside are neither read nor decoded, but a remote file is read as a
        whole. By its `stamp`, size and modification time, a replaced file is opened again."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if mounted(path) is not None:
                return read_geotiff(content_of(path), bands, window)
            key = (os.getpid(), path, stamp)  # a forked process needs its own handles
            if key not in self._open:
                import rasterio

                with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"):  # which would search for sidecar files
                    self._open[key] = rasterio.open(path, driver="GTiff", sharing=False)
            self._open.move_to_end(key)
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
            return _read(self._open[key], bands, window)


def _read(raster: Any, bands: Sequence[int], window: Sequence[int] | None) -> Any:
    from rasterio.windows import Window

    missing = [band for band in bands if band > raster.count]
    if missing:
        raise UnreadableError(f"has {raster.count} bands, but band {missing[0]} is wanted")
    if window is None:
        return np.moveaxis(raster.read(list(bands)), 0, -1)
    top, left, height, width = window
    if top + height > raster.height or left + width > raster.width:
        size = f"{raster.height}×{raster.width}"
        raise UnreadableError(f"has {size} pixels, but the window from row {top} and column {left} ends outside")
    return np.moveaxis(raster.read(list(bands), window=Window(left, top, width, height)), 0, -1)


_LARGEST = 1 << 32
"""Most bytes of a volume, so that a small file cannot fill the memory."""


def read_nifti(contents: bytes, index: int | None = None) -> Any:
    """Reads a volume as stored, of a `.nii` or a `.nii.gz` file, first axis first, with the slope and the intercept of its header; or the
    slice `index` along the third axis. Another number of axes, a missing slice, and a file that is cut short raise `UnreadableError`."""
    import nibabel as nib

    if contents[:2] == b"\x1f\x8b":
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        contents = unpacking.decompress(contents, _LARGEST)
        if not unpacking.eof:
            raise UnreadableError("is a compressed volume that is cut short, or larger than 4 GiB")
    kind = nib.Nifti2Image if contents[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c") else nib.Nifti1Image
    image = kind.from_bytes(contents)
    shape = image.shape
    if len(shape) < 2 or any(side != 1 for side in shape[3:]):
        raise UnreadableError(f"is a volume of shape {tuple(shape)}, but three axes are expected")
    if index is None:
        return np.asarray(image.dataobj).reshape(*shape[:2], -1)
    depth = shape[2] if len(shape) > 2 else 1
    if index >= depth:
        raise UnreadableError(f"has {depth} slices, counted from 0, but slice {index} is wanted")
    place = (slice(None), slice(None), index, *(0 for _ in shape[3:]))[: len(shape)]
    return np.asarray(image.dataobj[place])
