"""Images: levels of gray or of colours."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.arguments.geometry import height_width
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import as_array, check_channels
from pipegen.ops.kinds.base import FeatureKind, Levels
from pipegen.ops.lowering.pictures import encode_image, levels
from pipegen.ops.transform import Transform
from pipegen.types import BYTE_RANGE, WORD_RANGE, FeatureType, Interval

_UNIT = Interval(0.0, 1.0)
_KNOWN_RANGES = (_UNIT, Interval(-1.0, 1.0), BYTE_RANGE)
_SCANNED = 2**25  # bytes of images whose values are compared at once


class ImageLevels(Levels):
    """Levels that are shown from black to white."""

    def shown(self, value: Any, x: FeatureType) -> Any:
        return levels(value, x.interval)

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        return encode_image(self.shown(value, x), form, quality)


class Image(FeatureKind):
    """A photograph, or other levels."""

    name = "image"
    plural = "images"
    arguments = ("of", "root", "ending", "size", "channels", "bits", "range", "format", "columns")
    storage = "encoded"
    pixels = ImageLevels()

    def stored_type(self, feature: Any) -> FeatureType:
        if getattr(feature, "size", None) is None:
            return FeatureType("image", "string", (), file_channels=feature.channels, file_bits=feature.bits)
        dtype, interval = ("uint8", BYTE_RANGE) if feature.bits != 16 else ("uint16", WORD_RANGE)
        return FeatureType("image", dtype, feature.pixels, interval, uniform=True)

    def check(self, name: str, feature: Any) -> None:
        given = next((argument for argument in ("channels", "bits") if getattr(feature, argument, None) is not None), None)
        if given is not None and getattr(feature, "format", None) is not None:
            raise PartError(f"`{given}` is for image files, but `{name}` has a `format`", name, given)
        if getattr(feature, "format", None) == "flo":
            message = f"`{name}` is an image, but flips would not change the vectors of a flow"
            raise PartError(message, name, "format", help="use `kind: dense` with `values: vectors`, which turns them")
        if getattr(feature, "format", None) == "nifti":
            message = f"the number of channels of the volume `{name}` is unknown"
            raise PartError(message, name, "format", help="`{nifti: {slices: N}}` reads N slices, and `{nifti: {slice: 0}}` one")

    def decoder(self, feature: Any) -> Transform | None:
        return feature.array_decoder() if getattr(feature, "format", None) is not None else None

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        values: list[tuple[str, Interval | None]] = [("uint8", BYTE_RANGE), ("uint16", WORD_RANGE)]
        values += [("float32", _UNIT), ("float32", BYTE_RANGE), ("float32", None)]
        if feature.range is not None:
            values = [("float32", Interval(*feature.range))]
        elif feature.bits is not None:
            values = values[:1] if feature.bits == 8 else values[1:2]
        channels = (3, 1, 4) if feature.channels is None else (feature.channels,)
        size = feature.height_width()
        return tuple(FeatureType("image", d, (*size, c), i, uniform=True) for (d, i), c in product(values, channels))

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        return Column(*read_image(name, feature, given))


def read_image(name: str, feature: Any, given: Any) -> tuple[Any, FeatureType]:
    """Converts images to a NumPy array `(n, height, width, channels)` of uint8, uint16 or float32; returns it with the type of one. Raises
    `OpError`: `PG204` for a wrong rank, `PG402` without rows, `PG418` for objects, `PG419` for a dtype, size or values that do not fit the
    feature."""
    array = _ranked(name, feature, as_array(name, given))
    if not len(array):
        raise OpError("PG402", f"the array `{name}` has no rows")
    if 0 in array.shape:
        raise OpError("PG419", f"the images of `{name}` have no pixels: the array's shape is {array.shape}")
    array = _held(name, array)
    _, height, width, channels = array.shape
    if feature.channels is not None and channels != feature.channels:
        raise OpError("PG419", f"the images of `{name}` have {count(channels, 'channel')}, not {feature.channels}", field="channels")
    if feature.size is not None and (height, width) != height_width(feature.size):
        raise OpError("PG419", f"the images of `{name}` are {height}×{width} pixels", field="size")
    return array, FeatureType("image", str(array.dtype), (height, width, channels), _interval(name, feature, array))


def _ranked(name: str, feature: Any, array: Any) -> Any:
    """Returns images as `(n, height, width, channels)`, adding the channel axis of gray ones."""
    shape = array.shape
    if array.ndim == 4:
        if feature.channels is None:
            check_channels(name, shape, "pass `np.moveaxis(x, 1, -1)`, or set `channels`")
        return array
    if array.ndim == 3 and not (shape[-1] in (1, 3, 4) and shape[0] > 4):
        return array[..., None]
    if array.ndim == 3:
        raise OpError(
            "PG204",
            f"`{name}` looks like one image: its shape is {shape}",
            help="for one image, pass `x[None]`; for rows of gray images, `x[..., None]`",
        )
    side = int(shape[1] ** 0.5) if array.ndim == 2 else 0
    help_ = f"such as `x.reshape(-1, {side}, {side}, 1)`" if side and side * side == shape[1] else None
    raise OpError("PG204", f"the images of `{name}` need the shape (n, height, width, channels), not {shape}", help=help_)


def _held(name: str, array: Any) -> Any:
    """Converts an array to the dtype of the pipeline: uint8 and uint16 stay, floats become float32."""
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        with np.errstate(all="ignore"):  # overflow becomes infinite, which is reported with its row
            return array.astype(np.float32, copy=False)
    if array.dtype.kind == "u" and array.dtype.itemsize <= 2:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    help_ = "images must be uint8, uint16 or floats"
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        fits = next((t for t, top in (("uint8", 255), ("uint16", 65535)) if low >= 0 and high <= top), None)
        help_ = f"its values lie in {low}..{high}" + (f', so pass `x.astype("{fits}")`' if fits else f"; {help_}")
    elif array.dtype.kind == "b":
        help_ = 'pass `x.astype("uint8") * 255`'
    raise OpError("PG419", f"the images of `{name}` are {array.dtype}", help=help_)


def _interval(name: str, feature: Any, array: Any) -> Interval | None:
    """Returns the range of values: from the dtype or the feature, else guessed from the values."""
    if array.dtype.kind == "u":
        bits = 8 * array.dtype.itemsize
        if feature.range is not None:
            raise OpError(
                "PG419", f"the images of `{name}` are {array.dtype}, which has a range of its own", field="range", help="remove `range`"
            )
        if feature.bits not in (None, bits):
            raise OpError("PG419", f"the images of `{name}` have {bits} bits", field="bits")
        return BYTE_RANGE if bits == 8 else WORD_RANGE
    if feature.bits is not None:
        help_ = "remove `bits`, which is for integers"
        raise OpError("PG419", f"the images of `{name}` are floats", field="bits", help=help_)
    low, high = _extremes(name, array)
    if feature.range is None:
        return next((known for known in _KNOWN_RANGES if known.low <= low and high <= known.high), None)
    declared = Interval(*feature.range)
    if not declared.contains(Interval(low, high)):
        raise OpError("PG419", f"the values of `{name}` range from {low:g} to {high:g}, beyond {declared}", field="range")
    return declared


def _extremes(name: str, array: Any) -> tuple[float, float]:
    """Finds the smallest and largest value, a block of rows at a time."""
    step = max(1, _SCANNED // max(1, array.nbytes // len(array)))
    low, high = np.inf, -np.inf
    for start in range(0, len(array), step):
        block = array[start : start + step]
        least, most = float(block.min()), float(block.max())
        if not (np.isfinite(least) and np.isfinite(most)):
            row = start + int(np.argmax(~np.isfinite(block).reshape(len(block), -1).all(1)))
            raise OpError(
                "PG419",
                f"row {row} of `{name}` holds values that are not finite numbers",
                help="NaN or infinity in an image would ruin the training",
            )
        low, high = min(low, least), max(high, most)
    return low, high
