"""Readers of array files and of outlines in Python, one file at a time; outlines are drawn like the libraries of COCO and LabelMe do."""

from __future__ import annotations

import base64
import io
import json
import math
import os
import struct
import threading
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from pipegen.lazy import np, tf
from pipegen.mounts import content_of, mounted
from pipegen.ops.lowering.library import UnreadableError, call_reader


def decode_array(
    contents: tf.Tensor,
    format: str,
    options: Mapping[str, Any],
    shape: Sequence[int | None],
    dtype: str = "float32",
    *,
    empty: bool = False,
) -> tf.Tensor:
    """Calls `read_array` from a graph on a string scalar, a file's bytes."""

    def describe(error: Exception) -> str:
        return f"is not a valid {format} file: {type(error).__name__}: {error}"

    due, lacking = tuple(shape), f"files of the format `{format}` can be read only by Python, which a saved graph cannot call"
    reader = partial(read_array, format=format, options=options, shape=due, dtype=dtype, empty=empty)
    return call_reader(reader, contents, due, tf.as_dtype(dtype), describe, lacking)


def read_array(
    contents: bytes,
    format: str,
    options: Mapping[str, Any],
    shape: tuple[int | None, ...],
    dtype: str = "float32",
    *,
    empty: bool = False,
) -> Any:
    """Reads the array of a file of a `format`, by the function `read_{format}` with the `options` as arguments.

    The array has the `dtype` and the `shape`, where `None` is any side of 1 or more, with `empty` also a first one of 0, and a last side of
    1 may be missing in the file. A file that cannot be read raises `UnreadableError`, whose message continues the file's name, or on damage
    any exception of a library.
    """
    if not contents:
        raise UnreadableError("is empty")
    values = globals()[f"read_{format}"](contents, **options)
    if values.ndim == len(shape) - 1 and shape[-1] == 1:
        values = values[..., None]
    fits = len(shape) == values.ndim and all(due in (None, side) for due, side in zip(shape, values.shape, strict=True))
    if not fits or 0 in values.shape[empty:]:
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


_MAGIC = b"PIEH"  # the float 202021.25, which shows the byte order


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


def read_vectors(contents: bytes) -> Any:
    """Reads a `.flo` or a `.npy` file."""
    return read_flo(contents) if contents.startswith(_MAGIC) else read_npy(contents)


def read_npy(contents: bytes) -> Any:
    """Reads an array of numbers. Objects, which would be unpickled, other arrays, and a file that is cut short raise `UnreadableError`."""
    stream = io.BytesIO(contents)
    shape, fortran, dtype = npy_header(stream)
    if dtype.hasobject or dtype.kind not in "buif":
        raise UnreadableError(f"holds {'Python objects' if dtype.hasobject else dtype}, but numbers are expected")
    count, start = math.prod(shape), stream.tell()
    if min(shape, default=0) < 0 or len(contents) - start < count * dtype.itemsize:
        raise UnreadableError("is cut short")
    values = np.frombuffer(contents, dtype, count, start)
    return values.reshape(shape, order="F" if fortran else "C")


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Reads the header of a `.npy` file, from an object with `read`: the shape, whether the first axis runs fastest, and the dtype."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    return shape, fortran, dtype


_CUT = b"\x93NUMPY"
_OPEN = 8  # files that each thread keeps open


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


_LARGEST = 1 << 32  # most bytes of a volume, so that a small file cannot fill the memory


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


HEAD, PART = 3, 5
"""Words of 32 bits in the head of a packed image (its height, its width, its number of parts), and for each part: its object, the object's
value, whether it is below others (a crowd), the form of the part, and its number of bytes, which follow all of these."""
SHORT, LONG, COUNTS, TEXT = range(4)
"""The forms: the corners of a polygon in fifths of a pixel, of 16 or 32 bits; the lengths of runs; those as COCO's text."""
SCALE = 5  # corners are rounded to this fraction of a pixel


def read_coco(contents: bytes) -> Any:
    """Draws objects, of the result of `sources.annotations.outlines`: crowds first, then larger before smaller ones. uint8 `(height,
    width)`. The crossings of all polygons of an image are computed together, since NumPy's overhead would dominate for single ones."""
    words = np.frombuffer(contents, np.int32, len(contents) // 4)
    height, width, many = words[:HEAD].tolist()
    at = 4 * (HEAD + PART * many)
    pieces: list[_Piece | None] = [None] * many
    corners: dict[int, Any] = {}
    objects: dict[int, tuple[int, int, list[int]]] = {}
    for part, (number, value, below, form, size) in enumerate(words[HEAD : HEAD + PART * many].reshape(-1, PART).tolist()):
        own = contents[at : at + size]
        at += -size % 4 + size
        objects.setdefault(number, (value, below, []))[2].append(part)
        if form in (SHORT, LONG):
            corners[part] = np.frombuffer(own, np.int16 if form == SHORT else np.int32).reshape(-1, 2)
        else:
            pieces[part] = _Piece(0, _alternating(np.frombuffer(own, np.int32) if form == COUNTS else counts_of(own), first=False))
    for part, piece in zip(corners, _polygons([*corners.values()], height, width), strict=True):
        pieces[part] = piece
    wholes = [(_union([piece for part in own if (piece := pieces[part])]), value, below) for value, below, own in objects.values()]
    drawn = [(not below, -int(np.count_nonzero(whole.shown)), value, whole) for whole, value, below in wholes if whole is not None]
    plane = np.zeros(width * height, np.uint8)
    for *_, value, whole in sorted(drawn, key=lambda one: one[:2]):
        np.copyto(plane[whole.start : whole.start + len(whole.shown)], value, where=whole.shown)
    return np.ascontiguousarray(plane.reshape(width, height).T)


class _Piece(NamedTuple):
    """A part of an image's pixels, column by column: the first place, and a mask from there on."""

    start: int
    shown: Any


def _alternating(runs: Any, *, first: bool) -> Any:
    """Expands lengths of runs to alternating values, bool, beginning with `first`."""
    return np.repeat(np.arange(len(runs)) % 2 == (0 if first else 1), runs)


def _union(pieces: list[_Piece]) -> _Piece | None:
    if len(pieces) < 2:
        return pieces[0] if pieces else None
    start = min(piece.start for piece in pieces)
    shown: Any = np.zeros(max(piece.start + len(piece.shown) for piece in pieces) - start, bool)
    for piece in pieces:
        shown[piece.start - start :][: len(piece.shown)] |= piece.shown
    return _Piece(start, shown)


def _polygons(polygons: list[Any], height: int, width: int) -> list[_Piece | None]:
    """Fills polygons by the rule of pycocotools' `rleFrPoly`: a pixel is inside if an odd number of edges is above it in its column.

    That function walks an edge in steps of a fifth of a pixel along its longer side. A column is crossed between its third and fourth
    fifth, at the upper one of both steps. Here the crossings are computed directly, from x and y of the corners of each polygon in fifths
    of a pixel, `(n, 2)`. A polygon without pixels gives `None`.
    """
    if not polygons:
        return []
    lengths = np.array([len(corners) for corners in polygons])
    of: Any = np.repeat(np.arange(len(polygons)), lengths)
    start = np.concatenate(polygons).astype(np.int64)
    following = np.arange(1, len(of) + 1)
    following[np.cumsum(lengths) - 1] -= lengths
    end = start[following]
    sides = np.abs(end - start)
    flat = sides[:, 0] >= sides[:, 1]
    turned = np.where(flat, start[:, 0] > end[:, 0], start[:, 1] > end[:, 1])[:, None]
    start, end = np.where(turned, end, start), np.where(turned, start, end)
    moves = flat & (sides[:, 0] > 0)
    found = [_along(start[moves], end[moves], width), _across(start[~flat], end[~flat], width)]
    part = np.concatenate([of[own][edge] for own, (edge, _, _) in zip((moves, ~flat), found, strict=True)])
    column, at = (np.concatenate(both) for both in list(zip(*found, strict=True))[1:])
    # The end of a column and the start of the next are the same place.
    place = column * height + np.clip((at + SCALE // 2) // SCALE, 0, height)
    size = height * width + 1
    places = np.sort(part * size + place)
    first: Any = np.searchsorted(places, np.arange(len(polygons) + 1) * size)
    runs = np.diff(places)
    return [
        _Piece(int(places[a]) - number * size, _alternating(runs[a : b - 1], first=True)) if b > a else None
        for number, (a, b) in enumerate(pairwise(first.tolist()))
    ]


def _steps(first: Any, last: Any) -> tuple[Any, Any]:
    """Lists all columns from a first to a last one, for each edge: the edge of each column, and the column."""
    many = np.maximum(last - first + 1, 0)
    edge: Any = np.repeat(np.arange(len(many)), many)
    return edge, first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(many) - many, many)


def _along(start: Any, end: Any, width: int) -> tuple[Any, Any, Any]:
    """Finds the columns crossed by edges that are wider than high: the edge, the column, and the place in fifths of a pixel."""
    edge, column = _steps(np.maximum((start[:, 0] + 2) // SCALE, 0), np.minimum((end[:, 0] - 3) // SCALE, width - 1))
    slope = (end[:, 1] - start[:, 1]) / np.maximum(end[:, 0] - start[:, 0], 1)
    step = SCALE * column + 2 - start[edge, 0]
    one, other = (_rounded(start[edge, 1], slope[edge], at) for at in (step, step + 1))
    return edge, column, np.minimum(one, other)


def _across(start: Any, end: Any, width: int) -> tuple[Any, Any, Any]:
    """Like `_along`, for edges that are higher than wide: finds the first step after which the column changes."""
    lower, upper = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
    edge, column = _steps(np.maximum((lower + 2) // SCALE, 0), np.minimum((upper - 3) // SCALE, width - 1))
    run, rise = (end[:, 1] - start[:, 1])[edge], (end[:, 0] - start[:, 0])[edge]
    slope, begin = rise / np.maximum(run, 1), start[edge, 0]
    near = np.ceil((SCALE * column + 2.5 - begin) / slope).astype(np.int64) if len(edge) else column
    found = np.clip(near + 1, 1, run)
    for tried in (near, near - 1):
        step = np.clip(tried, 1, run)
        reached = _rounded(begin, slope, step)
        found = np.where(np.where(rise > 0, reached >= SCALE * column + 3, reached <= SCALE * column + 2), step, found)
    return edge, column, start[edge, 1] + found - 1


def _rounded(begin: Any, slope: Any, step: Any) -> Any:
    """Computes the place of an edge after some steps, rounded like C does: towards 0."""
    return np.trunc(begin + slope * step + 0.5).astype(np.int64)


def counts_of(text: bytes) -> Any:
    """Parses the lengths of runs in COCO's text: groups of five bits; from the fourth on, differences to the last but one.
    `UnreadableError` for an invalid text."""
    signs = np.frombuffer(text, np.uint8).astype(np.int64) - 48
    if not len(signs) or signs.min() < 0 or signs.max() > 63 or signs[-1] & 32:
        raise UnreadableError("is not a run-length text")
    ends = np.flatnonzero(signs & 32 == 0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts).max() > 7:
        raise UnreadableError("is not a run-length text")
    place = np.arange(len(signs)) - np.repeat(starts, ends - starts + 1)
    values = np.add.reduceat((signs & 31) << SCALE * place, starts)
    values -= np.where(signs[ends] & 16, 1 << SCALE * (ends - starts + 1), 0)
    for first in (1, 2):
        values[first::2] = np.cumsum(values[first::2])
    return values


WITHOUT_AREA = frozenset({"point", "line", "linestrip", "points"})  # shapes of LabelMe that are not drawn


def read_labelme(contents: bytes, most: int) -> Any:
    """Draws at most `most` shapes of a file in their order, each with its number, counted from 1: uint8 `(height, width)`. Points and lines
    are not drawn and not counted. `UnreadableError` for an image without a size, and for too many shapes."""
    from PIL import Image, ImageDraw

    held = json.loads(contents)
    width, height = held.get("imageWidth"), held.get("imageHeight")
    shapes = [shape for shape in held["shapes"] if shape.get("shape_type") not in WITHOUT_AREA]
    if not isinstance(width, int) or not isinstance(height, int) or width < 1 or height < 1:
        raise UnreadableError("has no size of its image, `imageWidth` and `imageHeight`")
    if len(shapes) > most:
        raise UnreadableError(f"has {len(shapes)} shapes, but a mask holds at most {most}")
    plane = Image.new("L", (width, height))
    pen = ImageDraw.Draw(plane)
    for number, shape in enumerate(shapes, 1):
        points, kind = [tuple(map(float, point)) for point in shape["points"]], shape.get("shape_type") or "polygon"
        if kind == "polygon" and len(points) > 2:
            pen.polygon(points, fill=number, outline=number)
        elif kind == "rectangle":
            (x0, y0), (x1, y1) = points[:2]
            pen.rectangle((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), fill=number, outline=number)
        elif kind == "circle":
            (x, y), on = points[:2]
            radius = math.dist((x, y), on)
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=number, outline=number)
        elif kind == "mask":
            with Image.open(io.BytesIO(base64.b64decode(shape["mask"]))) as drawn:
                plane.paste(number, (int(points[0][0]), int(points[0][1])), drawn.convert("1"))
    return np.asarray(plane)
