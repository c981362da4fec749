"""Checks arrays and makes records of them: presence, length, dtype and shape."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.arguments.geometry import height_width
from pipegen.ops.families.decoder import LARGEST
from pipegen.ops.kinds.item_number import MOST_INSTANCES, counted_up, with_numbers
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import classes_of_several, kind_of, several_labels
from pipegen.ops.sources.features.columns import as_numbers, without_fractions
from pipegen.ops.sources.features.feature import NumberType, aligned_images
from pipegen.ops.sources.listing.base import Listing, Note, main_label
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.sources.listing.strings import Strings, aligned
from pipegen.ops.sources.listing.wording import count, quoted
from pipegen.types import BYTE_RANGE, WORD_RANGE, ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.kinds.base import Column, Place
    from pipegen.ops.sources.features.arrays import ArrayFeature
    from pipegen.ops.sources.listing.reader import Hold, Read
    from pipegen.ops.sources.listing.strings import Ints

_KNOWN_RANGES = (Interval(0.0, 1.0), Interval(-1.0, 1.0), BYTE_RANGE)
_HASHED_WHOLE = 2**28
_SCANNED = 2**25


class Rows(Reader):
    """A reader of array rows. Each array is held once for all splits and datasets, or stays in its mapped file if that is large for the RAM
    budget.

    Args:
        arrays: Images by feature, as NumPy arrays `(n, height, width, channels)`; everything else is in the listing.
    """

    numbered: ClassVar[bool] = True

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self._open: dict[tuple[str, bool], Read] = {}

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import Mapped

        key = feature, self._stays(feature, ram_budget)
        if key not in self._open:
            array = self.arrays[feature]
            copies = array.dtype != object and not key[1]  # the user may change the original
            self._open.setdefault(key, (Mapped if key[1] else hold)(aligned([array]) if copies else array))
        return self._open[key]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        (rows,) = place
        return [self.arrays[feature][row] for row in rows.tolist()]

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "rows of a mapped file" if any(self._stays(name, ram_budget) for name in features if name in self.arrays) else ""

    def held_bytes(self, features: Iterable[str], ram_budget: int) -> int:
        return sum(self.arrays[name].nbytes for name in features if name in self.arrays and not self._stays(name, ram_budget))

    def _stays(self, feature: str, ram_budget: int) -> bool:
        array = self.arrays[feature]
        return isinstance(array, np.memmap) and 2 * array.nbytes > ram_budget

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the images, in hexadecimal: BLAKE2b over names, dtypes, shapes and bytes.

        For an array above 256 MiB, evenly spaced rows of that total are read, with the first and the last; all of them if `whole`.
        """
        found = hashlib.blake2b(digest_size=32)
        for name in sorted(self.arrays):
            array = self.arrays[name]
            found.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            for block in _hashed(array, whole):
                found.update(block)
        return found.hexdigest()


def _hashed(array: Any, whole: bool) -> Iterator[Any]:
    if array.nbytes <= _HASHED_WHOLE:
        yield np.ascontiguousarray(array).data.cast("B")
        return
    n = len(array)
    taken = n if whole else max(2, _HASHED_WHOLE // (array.nbytes // n))
    for i in range(taken):
        yield np.ascontiguousarray(array[i * (n - 1) // (taken - 1)]).data.cast("B")


def given_arrays(features: Mapping[str, ArrayFeature], data: object) -> dict[str, Any]:
    """Returns the array of each feature from `build(data=)`; `PG418` if one is missing."""
    wanted = {feature.key or name: name for name, feature in features.items()}
    given = "data={" + ", ".join(f'"{key}": …' for key in wanted) + "}"
    if data is None:
        raise OpError(
            "PG418",
            "`arrays` needs the arrays from `pipegen.build(data=)`, and none were passed",
            help=f"pass them: `pipegen.build(spec, {given})`",
        )
    if not isinstance(data, Mapping):
        message = f"`data` must be a map from names to arrays, not `{type(data).__name__}`"
        raise OpError("PG418", message, help=f"pass `{given}`")
    missing = [key for key in wanted if key not in data]
    if missing:
        near = closest(missing[0], [str(k) for k in data if k not in wanted])
        help_ = f"is `{near}` meant?" if near else f"`data` holds {quoted([str(k) for k in data])}" if data else "`data` is empty"
        raise OpError(
            "PG418", f"`data` has no array{'s' * (len(missing) > 1)} {quoted(missing)}", field=f"features.{wanted[missing[0]]}", help=help_
        )
    extra = [str(key) for key in data if key not in wanted]
    if extra:
        message = f"`data` has the array {quoted(extra)}, which no feature reads"
        raise OpError("PG418", message, field="features", help="add a feature of this name, or remove the array")
    return {name: data[key] for key, name in wanted.items()}


def list_rows(features: Mapping[str, ArrayFeature], arrays: Mapping[str, Any]) -> Listing:
    """Lists rows of arrays as records; an invalid array is an error note, with no records."""
    found: dict[str, Column] = {}
    notes: list[Note] = []
    for name, feature in features.items():
        try:
            found[name] = kind_of(feature).read_array(name, feature, arrays[name], row_of(name))
        except OpError as error:
            own = error.below(f"features.{name}")
            notes.append(Note(own.code, own.message, own.help, own.field, "error"))
    types = {name: column.type for name, column in found.items()}
    images = {name: column.values for name, column in found.items() if kind_of(column.type).pictured}
    columns = {name: column.values for name, column in found.items() if name not in images}
    lengths = {name: len(column.values) for name, column in found.items()}
    if not notes and len(set(lengths.values())) > 1:
        counted = " and ".join(f"`{name}` has {count(n, 'row')}" for name, n in lengths.items())
        notes.append(Note("PG418", f"{counted}; all arrays need the same number of rows", field="features", severity="error"))
    elif not notes:
        notes += _items_apart(types, columns) + unknown_instances(types, columns, images)
    if notes:
        return _nothing(notes)

    n = next(iter(lengths.values()))
    size = sum(array.nbytes for array in images.values()) // n
    of = aligned_images(features)
    type_ = with_numbers(ElementType(tuple((name, t.with_(of=of.get(name))) for name, t in types.items())))
    columns |= {name: counted_up(columns[t.beside or ""].lengths) for name, t in type_.items() if kind_of(t).numbers_items}
    notes = sizes_apart(type_)
    if notes:
        return _nothing(notes)
    label = main_label(name for name, t in types.items() if kind_of(t).labels and not several_labels(t))
    main = columns.pop(label) if label is not None else None
    staying = [column.stays for column in found.values() if column.stays is not None]
    numbers = np.flatnonzero(np.logical_and.reduce(staying)) if staying else np.arange(n)
    if not len(numbers):
        return _nothing([Note("PG402", "`ignore` leaves out every row", field="features", severity="error")])
    return Listing(
        "",
        Strings.hold(map(str, numbers.tolist())),
        main if main is None or not staying else main[numbers],
        classes_of_several(found.values()) if label is None else found[label].classes,
        np.full(len(numbers), size),
        tuple(note for column in found.values() for note in column.notes),
        readers={"": Rows(images)},
        columns={name: values[numbers] for name, values in columns.items()} if staying else columns,
        column_classes={name: column.classes for name, column in found.items() if column.classes and name != label},
        type=type_,
        rows=numbers,
    )


def _items_apart(types: Mapping[str, FeatureType], columns: Mapping[str, Any]) -> list[Note]:
    """Reports a feature with more or fewer items than the feature that it belongs to."""
    notes = []
    for name, x in types.items():
        if x.beside is None:
            continue
        own, home = columns[name].lengths, columns[x.beside].lengths
        if not np.array_equal(own, home):
            row = int(np.argmax(own != home))
            message = f"row {row} has {count(int(own[row]), 'item')} of `{name}` and {int(home[row])} of `{x.beside}`"
            notes.append(Note("PG418", message, f"each of `{x.beside}` needs one of `{name}`", f"features.{name}", "error"))
    return notes


def _nothing(notes: list[Note]) -> Listing:
    return Listing("", Strings.hold(()), None, (), np.zeros(0), tuple(notes))


def read_values(name: str, given: Any, dtype: NumberType | None = None, *, weights: bool = False) -> Any:
    """Converts numbers to float32 or int64 `(n, ...)`; weights to `(n,)`, also from `(n, 1)`. Raises `OpError`: `PG402` without rows,
    `PG418` for objects, `PG419` for invalid numbers or weights, `PG666` for an integer that float32 cannot represent."""
    array = as_array(name, given)
    if array.dtype.kind not in "biuf":
        raise OpError("PG419", f"the values of `{name}` are {array.dtype}", help="they must be numbers")
    if array.ndim == 0 or not len(array):
        raise OpError("PG402", f"the array `{name}` has no rows")

    as_is = dtype if not weights else "float32"
    values = as_numbers(np.asarray(array), as_is, partial(_unfit, row_of(name), dtype, "rows"), row_of(name), None)
    if not weights:
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.min() < 0:
        shape = f"its shape is {values.shape}" if values.ndim != 1 else f"the smallest is {values.min():g}"
        raise OpError("PG419", f"`{name}` needs one number of 0 or more per row, but {shape}")
    return values


def read_image(name: str, feature: ArrayFeature, given: Any) -> tuple[Any, FeatureType]:
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


def as_array(name: str, given: Any) -> Any:
    """Converts data to a NumPy array; `PG418` for objects."""
    try:
        array = given if isinstance(given, np.memmap) else np.asarray(given)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype == object:
        message = f"`{name}` is not an array of numbers: its items are objects, or differ in shape"
        raise OpError(
            "PG418", message, help="images of different sizes cannot be rows of one array; keep them as files, or resize them first"
        )
    return array


def check_channels(name: str, shape: Sequence[int], help_: str, field: str | None = None) -> None:
    """Raises `PG204` if the channels of images `(n, height, width, channels)` seem to come first."""
    if shape[-1] > 4 and shape[1] in (1, 3, 4):
        message = f"the channels of `{name}` seem to come first: its shape is {tuple(shape)}"
        raise OpError("PG204", message, field=field, help=help_)


def _ranked(name: str, feature: ArrayFeature, array: Any) -> Any:
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


def _interval(name: str, feature: ArrayFeature, array: Any) -> Interval | None:
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


def read_mask(name: str, feature: ArrayFeature, array: Any) -> tuple[Any, FeatureType]:
    """Converts masks to a NumPy array `(n, height, width, 1)` of uint8; returns it with the type of one.

    Args:
        name: The feature.
        feature: Its arguments.
        array: A NumPy array.

    Raises:
        OpError: `PG204` for a wrong rank, `PG402` without rows, `PG419` for an invalid dtype, size or class index.
    """
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[-1] != 1:
        message = f"the masks of `{name}` need the shape (n, height, width) or (n, height, width, 1), not {array.shape}"
        raise OpError("PG204", message, help="convert one channel per class by `numpy.argmax(masks, -1)`")
    if not array.size:
        raise OpError("PG402", f"the array `{name}` has no rows")
    if array.dtype.kind not in "bui":
        raise OpError("PG419", f"the masks of `{name}` are {array.dtype}", help="class indices must be integers; pass them as uint8")
    height, width = array.shape[1:3]
    type_ = kind_of(feature).array_types(feature)[0].with_(shape=(height, width, 1))
    if feature.size is not None and (height, width) != feature.height_width():
        raise OpError("PG419", f"the masks of `{name}` are {height}×{width} pixels", field="size")
    highest = LARGEST if type_.classes is None else type_.classes - 1
    wrong = [int(value) for value in np.unique(array) if not 0 <= value <= highest and value != feature.ignore]
    if wrong:
        message = f"`{name}` holds {wrong[0]}; class indices go from 0 to {highest}"
        raise OpError("PG419", message, field="classes" if type_.classes is not None else None)
    return array.astype(np.uint8, copy=False), type_


def sizes_apart(type_: ElementType) -> list[Note]:
    """Reports a mask or an image of another size than the image that it is aligned with."""
    notes = []
    for name, x in type_.items():
        if not kind_of(x).pictured:
            continue
        image = type_[x.of] if x.of is not None else x
        if (x.height, x.width) != (image.height, image.width):
            message = f"`{name}` has {x.height}×{x.width} pixels, but `{x.of}`, with which it is aligned, has {image.height}×{image.width}"
            notes.append(Note("PG419", message, "aligned features need the same size", f"features.{name}", "error"))
    return notes


def unknown_instances(types: Mapping[str, FeatureType], columns: Mapping[str, Any], masks: Mapping[str, Any]) -> list[Note]:
    """Reports masks of instances with unknown item numbers, and too many items for a mask."""
    notes = []
    for name, x in types.items():
        if x.instances is None:
            continue
        lengths = columns[x.instances].lengths
        mask = masks[name].reshape(len(lengths), -1)
        highest = np.where(mask == x.ignore, 0, mask).max(1) if mask.size else np.zeros(len(lengths))
        row, most = int(np.argmax(highest > lengths)), int(lengths.max(initial=0))
        if (highest > lengths).any():
            message = f"row {row} of `{name}` holds {int(highest[row])}, but the image has {int(lengths[row])} of `{x.instances}`"
            help_ = f"a pixel must be 0, or the number of one of `{x.instances}` from 1"
            notes.append(Note("PG419", message, help_, f"features.{name}", "error"))
        elif most > MOST_INSTANCES:
            message = f"an image has {most} of `{x.instances}`; `{name}` can hold {MOST_INSTANCES}"
            notes.append(Note("PG419", message, "remove the mask, or such images", f"features.{name}", "error"))
    return notes


def row_of(name: str) -> Place:
    """Returns the function that names the rows of an array."""
    return lambda row: f"row {row} of `{name}`"


def read_ragged(name: str, given: Any, shape: tuple[int, ...] | None, where: Place, dtype: NumberType | None = "float32") -> Ragged:
    """Concatenates the items of all records.

    Args:
        name: The feature, for messages.
        given: A `Ragged` column, a list or an object array of one array `(items, ...)` per record, or an array `(records, items, ...)`.
        shape: Shape of an item; `None` to take it from the data. Items without an axis may be texts; others are numbers.
        where: Names the place of a record, for messages.
        dtype: Target dtype of numbers; see `as_numbers`.

    Raises:
        OpError: `PG402` without records, `PG204` for a wrong shape, `PG419` for values that are not numbers, `PG666` for an integer that
            float32 cannot represent.
    """
    if isinstance(given, Ragged):
        rows, lengths = None, np.asarray(given.lengths, np.int64)
        values = np.asarray(given.values)
    else:
        try:
            rows = [without_fractions(_row(where(i), row, shape), dtype) for i, row in enumerate(given)]
        except TypeError:
            raise OpError(
                "PG418", f"`{name}` must be a list of arrays, not `{type(given).__name__}`", help="pass one array per image"
            ) from None
        lengths = np.array([len(row) for row in rows], np.int64)
        full = [row for row in rows if len(row)]
        inner = shape if shape is not None else (full[0].shape[1:] if full else ())
        odd = next((i for i, row in enumerate(rows) if len(row) and row.shape[1:] != inner), None)
        if odd is not None:
            message = f"{where(odd)} has the shape {rows[odd].shape}, but each item needs the shape {tuple(inner)}"
            raise OpError("PG204", message, help=_help(shape))
        values = np.concatenate(full) if full else np.zeros((0, *inner), np.float32)
    if not len(lengths):
        raise OpError("PG402", f"the array `{name}` has no rows")
    if shape == () and values.dtype.kind in "USiub":
        return Ragged(values, lengths)
    if values.dtype.kind not in "biuf":
        raise OpError("PG419", f"the values of `{name}` are {values.dtype}", help="they must be numbers")

    ends = np.cumsum(lengths)

    def whose(item: int) -> str:
        return where(int(np.searchsorted(ends, item, side="right")))

    return Ragged(as_numbers(values, dtype, partial(_unfit, whose, dtype, "items"), whose, None), lengths)


def _unfit(where: Place, dtype: NumberType | None, such: str, place: int) -> OpError:
    """Returns the error of a row, or an item, with numbers that do not fit the dtype."""
    what = "that are not 64-bit integers" if dtype == "int64" else "that are not finite numbers"
    return OpError("PG419", f"{where(place)} holds values {what}", help=f"remove such {such}")


def _row(where: str, given: Any, shape: tuple[int, ...] | None) -> Any:
    try:
        row = np.asarray(given)
    except ValueError:
        row = np.empty((), object)
    if row.dtype == object and all(isinstance(v, str) for v in row.reshape(-1).tolist()) and row.ndim == 1:
        row = row.astype(str)
    if row.dtype == object or row.ndim == 0:
        raise OpError("PG204", f"{where} is not an array of items", help=_help(shape))
    return row


def _help(shape: tuple[int, ...] | None) -> str:
    inner = "".join(f", {side}" for side in shape or ())
    return f"pass an array `(items{inner}{',' if not inner else ''})` per image; `numpy.zeros((0{inner or ','}))` has no items"
