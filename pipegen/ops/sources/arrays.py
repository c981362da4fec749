"""`arrays`: rows of arrays, passed to `build(data=)` or read from `.npz` and `.npy` files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.columns import Column, Ragged
from pipegen.ops.fields.notes import Note, count, quoted
from pipegen.ops.fields.strings import Strings
from pipegen.ops.kinds.base import Levels, Samples, having
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import ArrayFeature, FeatureSource, aligned_images, record_type
from pipegen.ops.sources.features.items import homes_first, hop_of, item_numbers, items_apart, items_of_frames
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.ops.sources.listing.npz import arrays_of, read_array, read_member
from pipegen.ops.sources.listing.paths import find_file
from pipegen.ops.sources.listing.rows import Rows
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.types import MOST_INSTANCES, ElementType, FeatureType

_IN_MEMORY = "for arrays in memory, use `pipegen.build(spec, data={…})` without `path`"
_find = partial(find_file, what="file", help=_IN_MEMORY)


class Arrays(SelectingSource, FeatureSource):
    """Rows of arrays: images and labels from `pipegen.build(spec, data={"image": x, "label": y})`, or from files by `path`.

    Row i of each array is one example, identified by `i`. All arrays have the same number of rows. A batch of small images is one gather
    of rows; no function runs per example.
    """

    op: ClassVar[str] = "arrays"
    attributes: ClassVar[tuple[str, ...]] = ()

    features: Annotated[dict[FeatureName, ArrayFeature], Field(min_length=1)]
    """Kind and arguments of each array, by feature name: `{image: {kind: image}, label: {kind: label, classes: 10}}`."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """Path of a `.npz` file with the arrays, relative to the spec's file. By default the arrays come from `build(data=)`."""

    @field_validator("features")
    @classmethod
    def _one_image(cls, features: dict[str, ArrayFeature]) -> dict[str, ArrayFeature]:
        if not having(features, Levels, Samples):
            raise ValueError("`features` has no image or sound; add one such as `image: {kind: image}`")
        return features

    @model_validator(mode="after")
    def _one_place(self) -> Arrays:
        own = [name for name, feature in self.features.items() if feature.path is not None]
        if own and self.path is not None:
            raise ValueError(f"`path` holds every array, and `{own[0]}` has a `path` of its own; leave one of them out")
        if own and len(own) < len(self.features):
            bare = next(name for name in self.features if name not in own)
            raise ValueError(f"`features`: `{own[0]}` has a `path` and `{bare}` has none; give each array one")
        return self

    def infer(self) -> ElementType:
        """Infers the type of a row before the data is known: 8-bit RGB images of one size, unless the features say more."""
        return next(self._types())

    def possible(self) -> tuple[ElementType, ...]:
        """Lists every type that the features allow."""
        return tuple(self._types())

    def _types(self) -> Iterator[ElementType]:
        of = aligned_images(self.features)
        choices = product(*(feature.own_kind.array_types(feature) for feature in self.features.values()))
        return (record_type(dict(zip(self.features, chosen, strict=True)), of) for chosen in choices)

    def needs_data(self) -> bool:
        return self.path is None and all(feature.path is None for feature in self.features.values())

    def unpacked(self, base: Path) -> int:
        """Returns the unpacked size of the compressed arrays of a `.npz` file, by its table of contents; 0 without one."""
        try:
            members = arrays_of(_find(str(base), self.path)) if self.path is not None else {}
        except OpError:
            return 0  # reading reports the error
        wanted = [members.get(feature.key or name) for name, feature in self.features.items()]
        return sum(info.file_size for info in wanted if info is not None and info.compress_type != zipfile.ZIP_STORED)

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Inspect the arrays; see `Source.list`. Images of floats are read in full."""
        given = _given(self.features, data) if self.needs_data() else _in_files(self.features, self.path, str(base))
        return self.selected(_rows_of(self.features, given, self.labelled_by()), base)


def _in_files(features: Mapping[str, ArrayFeature], path: str | None, base: str) -> dict[str, Any]:
    """Reads the array of each feature, read-only, from a `.npz` file, or from a file each. `PG401` for a missing file, `PG406` for an
    unreadable one, `PG418` for a missing array."""
    if path is None:
        return {
            name: read_array(_find(base, str(f.path), field=f"features.{name}.path"), f"features.{name}.path")
            for name, f in features.items()
        }
    file = _find(base, path)
    members = arrays_of(file)
    found: dict[str, Any] = {}
    for name, feature in features.items():
        key = feature.key or name
        if key not in members:
            near = closest(key, members)
            help_ = f"it holds {quoted(list(members))}; choose one by `key`"
            if near:
                help_ = write(f"key: {near}", "arguments", f"is `{near}` meant? write {{}}")
            field = f"features.{name}" + (".key" if feature.key else "")
            raise OpError("PG418", f"{file!r} has no array {key!r}", field=field, help=help_)
        found[name] = read_member(file, members[key])
    return found


def _given(features: Mapping[str, ArrayFeature], data: object) -> dict[str, Any]:
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


def _rows_of(features: Mapping[str, ArrayFeature], arrays: Mapping[str, Any], label: str | None) -> Listing:
    """Lists rows of arrays as records, whose classes `label` gives. Invalid arrays are error notes, with no records."""
    found: dict[str, Column] = {}
    errors: list[OpError] = []
    events: dict[str, Ragged] = {}
    for name in homes_first(features):
        feature, place, hop = features[name], partial("row {1} of `{0}`".format, name), hop_of(name, features)
        if hop is not None and feature.home is not None and feature.home not in events:
            continue  # what it is `with` is an error already
        try:
            given = arrays[name]
            if hop is not None:
                given = events[name] = items_of_frames(name, feature, arrays.__getitem__, events.get(feature.home or ""), hop, place)
            found[name] = feature.own_kind.read_array(name, feature, given, place)
        except OpError as error:
            errors.append(error.below(f"features.{name}"))
    types = {name: column.type for name, column in found.items()}
    images = {name: column.values for name, column in found.items() if features[name].own_kind.values is not None}
    columns = {name: column.values for name, column in found.items() if name not in images}
    lengths = {name: len(column.values) for name, column in found.items()}
    if not errors and len(set(lengths.values())) > 1:
        counted = " and ".join(f"`{name}` has {count(n, 'row')}" for name, n in lengths.items())
        errors.append(OpError("PG418", f"{counted}; all arrays need the same number of rows", field="features"))
    if not errors:
        each = ((name, columns[name].lengths, x.beside, columns[x.beside].lengths) for name, x in types.items() if x.beside is not None)
        errors += filter(None, (items_apart(*one, "row {}".format) for one in each))
        errors += _unknown_instances(types, columns, images)
    if not errors:
        type_ = record_type(types, aligned_images(features))
        errors += _sizes_apart({name: type_[name] for name in images})
    staying = [column.stays for column in found.values() if column.stays is not None]
    if not errors and staying and not np.logical_and.reduce(staying).any():
        errors.append(OpError("PG402", "`ignore` leaves out every row", field="features"))
    if errors:
        return Listing("", Location.below("", (), ()), tuple(Note.of(error) for error in errors))

    n = next(iter(lengths.values()))
    columns |= {name: column.values for name, column in item_numbers(features, found).items()}
    numbers = np.flatnonzero(np.logical_and.reduce(staying)) if staying else np.arange(n)
    keys = Strings.hold(map(str, numbers.tolist()))
    return Listing(
        "",
        Location(keys, keys, np.full(len(numbers), sum(array.nbytes for array in images.values()) // n), numbers, "row"),
        tuple(note for column in found.values() for note in column.notes),
        readers={"": Rows(images)},
        columns={name: values[numbers] for name, values in columns.items()} if staying else columns,
        classes={name: column.classes for name, column in found.items() if column.classes},
        label=label,
        type=type_,
    )


def _sizes_apart(types: Mapping[str, FeatureType]) -> Iterator[OpError]:
    """Yields errors of masks or images of another size than the image that they are aligned with."""
    for name, x in types.items():
        image = types[x.of] if x.of is not None else x
        if (x.height, x.width) != (image.height, image.width):
            message = f"`{name}` has {x.height}×{x.width} pixels, but `{x.of}`, with which it is aligned, has {image.height}×{image.width}"
            yield OpError("PG419", message, help="aligned features need the same size", field=f"features.{name}")


def _unknown_instances(types: Mapping[str, FeatureType], columns: Mapping[str, Any], masks: Mapping[str, Any]) -> Iterator[OpError]:
    """Yields errors of masks of instances with unknown item numbers, and of too many items for a mask."""
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
            yield OpError("PG419", message, help=help_, field=f"features.{name}")
        elif most > MOST_INSTANCES:
            message = f"an image has {most} of `{x.instances}`; `{name}` can hold {MOST_INSTANCES}"
            yield OpError("PG419", message, help="remove the mask, or such images", field=f"features.{name}")
