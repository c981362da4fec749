"""Checks arrays and makes records of them: presence, length, dtype and shape."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Strings, aligned
from pipegen.ops.sources.features.feature import aligned_images, record_type
from pipegen.ops.sources.features.items import item_numbers
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.ops.sources.listing.reader import Reader
from pipegen.types import MOST_INSTANCES, FeatureType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.fields.columns import Column, Place
    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.features.arrays import ArrayFeature
    from pipegen.ops.sources.listing.reader import Hold, Read

_HASHED_WHOLE = 2**28


class Rows(Reader):
    """A reader of array rows. Each array is held once for all splits and datasets, or stays in its mapped file if that is large for the RAM
    budget.

    Args:
        arrays: Images by feature, as NumPy arrays `(n, height, width, channels)`; everything else is in the listing.
    """

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


def list_rows(features: Mapping[str, ArrayFeature], arrays: Mapping[str, Any], label: str | None) -> Listing:
    """Lists rows of arrays as records, whose classes `label` gives; an invalid array is an error note, with no records."""
    found: dict[str, Column] = {}
    notes: list[Note] = []
    for name, feature in features.items():
        try:
            found[name] = feature.own_kind.read_array(name, feature, arrays[name], row_of(name))
        except OpError as error:
            own = error.below(f"features.{name}")
            notes.append(Note(own.code, own.message, own.help, own.field, "error"))
    types = {name: column.type for name, column in found.items()}
    images = {name: column.values for name, column in found.items() if features[name].own_kind.pixels is not None}
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
    type_ = record_type(types, aligned_images(features))
    columns |= {name: column.values for name, column in item_numbers(features, found).items()}
    notes = sizes_apart({name: type_[name] for name in images})
    if notes:
        return _nothing(notes)
    staying = [column.stays for column in found.values() if column.stays is not None]
    numbers = np.flatnonzero(np.logical_and.reduce(staying)) if staying else np.arange(n)
    if not len(numbers):
        return _nothing([Note("PG402", "`ignore` leaves out every row", field="features", severity="error")])
    keys = Strings.hold(map(str, numbers.tolist()))
    return Listing(
        "",
        Location(keys, keys, np.full(len(numbers), size), numbers, "row"),
        tuple(note for column in found.values() for note in column.notes),
        readers={"": Rows(images)},
        columns={name: values[numbers] for name, values in columns.items()} if staying else columns,
        classes={name: column.classes for name, column in found.items() if column.classes},
        label=label,
        type=type_,
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
    return Listing("", Location.below("", (), ()), tuple(notes))


def sizes_apart(types: Mapping[str, FeatureType]) -> list[Note]:
    """Reports a mask or an image of another size than the image that it is aligned with."""
    notes = []
    for name, x in types.items():
        image = types[x.of] if x.of is not None else x
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
