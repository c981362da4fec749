"""The base of sources whose records a library reads in Python, by number: one call for the records of a chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.labels import label_texts
from pipegen.ops.fields.numbers import changed_whole, check_channels
from pipegen.ops.fields.strings import Ints
from pipegen.ops.kinds.base import ExampleClass, Levels, LossWeight, Numbers
from pipegen.ops.sources.listing.base import always
from pipegen.ops.sources.listing.blocks import Block, TakingReader, by_block
from pipegen.ops.sources.records.columns import LabelColumn
from pipegen.ops.sources.records.index import Indexed, InShard, ShardRecords, counted
from pipegen.ops.sources.records.reader import RecordReader
from pipegen.ops.sources.records.source import RecordSource, check_field, check_pickled, missing_key
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.stores.base import Store, byte_strings, opened, translated
from pipegen.ops.sources.stores.field_types import (
    FieldType,
    Form,
    MissingLibrary,
    MissingValue,
    StoreError,
    Unsuitable,
    column_and_path,
    optional_at,
)
from pipegen.types import PIXEL_RANGES, ElementType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Samples


class StoreReader(TakingReader, RecordReader):
    """Records read by a library: one call into Python reads all features of all requested records, `at_once` of which are unpacked
    together. Each process opens files by path."""

    source: StoreSource

    def __init__(self, source: StoreSource, found: Indexed, labels: Mapping[str, LabelColumn]) -> None:
        super().__init__(source, found, labels)
        self.type, self.at_once = source.infer().replace(**source.found_types(self.types)), source.first(found).at_once
        self.called = source.unit

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return self.source.read_by_python()

    def taken_types(self, features: Iterable[str]) -> Mapping[str, tuple[str, tuple[int | None, ...]]]:
        return {name: (t.dtype, t.shape) for name, t in self.type.items()}

    def take_each(self, features: Sequence[str], *place: Any) -> list[Any]:
        """Reads features of records, by numbers of files and rows in them, int64 `(n,)`: an array `(n, ...)` for each, of its dtype; byte
        strings as objects. `StoreError` if a record cannot be read."""
        whole = [name for name in features if not self.types[name].samples]
        found = dict(zip(whole, self.values(tuple(self.source.key_of(name) for name in whole), *place), strict=True)) if whole else {}
        return [self._finished(name, found[name]) if name in found else self._files_of(name, *place) for name in features]

    def _files_of(self, name: str, shards: Any, rows: Any) -> Any:
        """Reads lists of samples of records as the bytes of files of them."""
        feature = self.source.features[name]
        samples, key = cast("Samples", feature.own_kind.samples), self.source.key_of(name)

        def files(store: Store, rows: Any) -> list[Any]:
            try:
                return [byte_strings([samples.file_of_list(one, feature) for one in store.number_lists(key, rows)])]
            except StoreError:
                raise
            except ValueError as error:
                raise StoreError(f"`{name}` is no sound: {error}") from None

        return by_block(shards, lambda shard, here: self._read(shard, (key,), rows[here], files))[0]

    def values(self, keys: Sequence[str], shards: Any, rows: Any) -> list[Any]:
        """Reads stored values of records by key; see `take_each`."""
        return by_block(shards, lambda shard, here: self._read(shard, keys, rows[here]))

    def _read(self, shard: int, keys: Sequence[str], rows: Any, read: Callable[[Store, Any], list[Any]] | None = None) -> list[Any]:
        """Reads stored values of records of a file by keys, or as `read` does."""
        store = self.source.opened(self.shards[shard])
        columns = store.columns()
        missing = next((key for key in keys if key not in columns), None)
        if missing is not None:
            raise StoreError(f"the file lacks the key {missing!r} of the first one")
        try:
            if read is not None:
                return read(store, rows)
            if self.at_once > 1:
                return [self._unpacked(shard, store, key, rows) for key in keys]
            return store.read(keys, rows)
        except StoreError:
            raise
        except Exception as error:  # a library's own class, which TensorFlow may take for a signal
            raise StoreError(f"{type(error).__name__}: {error}") from error

    def _unpacked(self, shard: int, store: Store, key: str, rows: Any) -> Any:
        """Reads records that are unpacked together; the window caches their blocks."""

        def load(block: int, _: str) -> Block:
            first = block * self.at_once
            return Block(*store.read((key,), np.arange(first, min(first + self.at_once, store.rows))))

        held = partial(self.window.get, feature=f"{shard}/{key}", load=load)
        return by_block(rows // self.at_once, lambda block, here: [held(block).take(rows[here] % self.at_once)])[0]

    def _finished(self, name: str, values: Any) -> Any:
        """Converts stored values to those of the graph."""
        feature, held = self.source.features[name], self.type[name]
        kind = feature.own_kind
        if kind.has(ExampleClass):
            return self._class_indices(name, values)
        if held.encoded:
            return values
        if values.dtype == object:
            raise StoreError(f"`{name}` holds bytes, but numbers in the first file")
        stored = values
        other = kind.has(Numbers) and math.prod(values.shape[1:]) != math.prod(feature.stored_shape)
        with np.errstate(all="ignore"):
            values = np.ascontiguousarray(values, held.dtype).reshape(len(values), *(values.shape[1:] if other else held.shape))
        if kind.has(Numbers) and not kind.has(LossWeight):
            self._check_whole(name, stored, values)
        if kind.has(LossWeight) and not (values >= 0).all():
            raise StoreError(f"the weight `{name}` is {values[~(values >= 0)][0]:g}; weights must be 0 or more")
        return values

    def _check_whole(self, name: str, stored: Any, values: Any) -> None:
        """Raises `StoreError` if the conversion changed a whole number."""
        if values.dtype.kind == "i":
            lost = values.astype(stored.dtype) != stored if stored.dtype.kind == "f" else (values < 0) & (stored > 0)
            said = "which is not a 64-bit integer, as `dtype: int64` needs"
        else:
            unchecked = stored.dtype.kind not in "iu" or self.source.features[name].dtype is not None or not stored.size
            lost = None if unchecked else changed_whole(stored, values)
            said = "which float32 would round; use `dtype: int64`"
        if lost is not None and lost.any():
            raise StoreError(f"`{name}` holds {stored[lost][0]}, {said}")

    def _class_indices(self, name: str, values: Any) -> Any:
        lookup = self.label_columns[name].lookup
        values = values.reshape(len(values))
        if values.dtype == object or lookup.by_text is not None or values.dtype.kind == "b":
            texts = label_texts(values)
            found = [lookup.find(text) for text in texts]
            if None in found:
                raise StoreError(f"`{name}` is {texts[found.index(None)]!r}, which is not a class")
            return np.array(found, np.int64)
        if values.dtype.kind == "f" and not (np.floor(values) == values).all():
            raise StoreError(f"`{name}` is {values[np.floor(values) != values][0]:g}; class indices must be integers")
        wrong = (values < lookup.offset) | (values >= lookup.size + lookup.offset)
        if wrong.any():
            raise StoreError(f"`{name}` is {int(values[wrong][0])}; the classes are {lookup.offset} to {lookup.size - 1 + lookup.offset}")
        found = values.astype(np.int64) - lookup.offset
        return found if lookup.table is None else lookup.table[found]


class StoreSource(RecordSource):
    """Files whose records a library reads. A subclass for each format names the store that reads a file."""

    called: ClassVar[str]
    """The name of the format."""
    store: ClassVar[type[Store]]
    """The class that reads a file of it."""
    unit: ClassVar[str] = "groups of records"
    """The word for records that are unpacked together."""
    reads: ClassVar[type[StoreReader]] = StoreReader
    arrays: ClassVar[bool] = False
    """Whether images may be arrays."""
    has_lists: ClassVar[bool] = False
    """Whether records may have lists of numbers of any length, see `Store.number_lists`."""

    def read_by_python(self) -> str:
        return f"records of {self.called} files"

    def store_arguments(self) -> tuple[Hashable, ...]:
        """Returns the store's arguments after the path."""
        return ()

    parts = always(tuple[str, ...]())  # the library finds records by number

    def index_options(self) -> str:
        return "\0".join(map(repr, self.store_arguments()))

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Count the records of a file, and check that it is complete; `PG440` without the library, `PG441` if it must be read whole."""
        store: Store | None = None
        try:
            store = self.store(path, *self.store_arguments())
            return counted(store.rows, findings=store.check())
        except Unsuitable as error:
            raise OpError("PG441", f"{path!r} cannot be read record by record: {error}", field=error.field, help=error.help) from None
        except MissingLibrary as error:
            raise error.diagnosed(self.called) from None
        except StoreError as error:
            return counted(0, f"({error})")
        finally:
            if store is not None:
                store.close()

    def opened(self, shard: Found) -> Store:
        """Opens a file."""
        return opened(self.store, shard.path, (shard.size, shard.mtime), *self.store_arguments())

    def first(self, found: Indexed) -> Store:
        """Returns the store of the first file with a record; `PG440` if the index was kept but the library is gone."""
        shard = found.first.file
        with translated(self.called, repr(shard.path), "path", "PG430"):
            store = self.opened(shard)
            store.check_beside()
            return store

    def types(self, found: Indexed) -> dict[str, FieldType]:
        store = self.first(found)
        columns = dict(store.columns())
        for name, feature in self.read_features.items():
            key = self.key_of(name)
            if key not in columns:
                raise missing_key("the first file", feature, name, key, list(columns), none="nothing in it can be read")
            samples = feature.own_kind.samples
            if self.has_lists and samples is not None and samples.lists(columns[key]):
                columns[key] = FieldType(samples=columns[key].dtype)
            check_field(name, feature, key, columns[key], arrays=self.arrays)
            if feature.own_kind.has(Levels) and len(shape := columns[key].shape) == 3:
                check_channels(name, (found.total, *shape), "store `np.moveaxis(x, 1, -1)`", f"features.{name}")
            for value in (
                _first_value(store, key) if feature.own_kind.has_files and columns[key].is_content and not columns[key].samples else ()
            ):
                check_pickled(name, value)
        return {name: columns[self.key_of(name)] for name in self.read_features}

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        shard = records.file
        if form == "label":
            return [value[0] if isinstance(value, list) else value for value in self.column(name, key, shard)]
        what, code = (f"`{name}`", "PG431") if form == "list" else (repr(key), "PG430")
        with translated(self.called, f"{what} of {shard.path!r}", None, code):
            store = self.opened(shard)
            if form == "list":
                return list(store.lists(key, texts=self.features[name].separator is not None))
            columns = store.columns()
            column, path = (key, ()) if key in columns else column_and_path(key, [c for c, held in columns.items() if held.encoded])
            if column not in columns:
                return [None] * store.rows
            return [optional_at(value, path) if path and value else value for value in store.cells(column)]

    def known_keys(self, found: Indexed) -> Sequence[str]:
        return list(self.first(found).columns())

    def first_label(self, name: str, found: Indexed) -> Any:
        """Read the label of the first record, `None` if it cannot be read."""
        return next(iter(_first_value(self.first(found), self.key_of(name))), None)

    def column(self, name: str, key: str, shard: Found) -> Iterator[Any]:
        """Yields the values of a key for every record of a file; `PG431` if the file has no such key."""
        with translated(self.called, f"the labels of {shard.path!r}", f"features.{name}"):
            store = self.opened(shard)
            if key not in store.columns():
                raise StoreError(f"the file lacks the key {key!r} of the first one")
            try:
                for values in store.whole(key):
                    yield from values.tolist()
            except MissingValue as error:
                row = next(row for row, value in enumerate(store.cells(key)) if value is None)
                message = f"the label of {shard.path}#{row} is missing: {error}"
                raise OpError("PG420", message, field=f"features.{name}", help="remove records without a label") from None

    def record_bytes(self, found: Indexed) -> Ints:
        """Returns the size of the files, or of the arrays unpacked from them if larger."""
        sizes = super().record_bytes(found)
        store = self.first(found)
        if store.at_once == 1:
            return sizes
        columns = store.columns()
        held = (columns[key] for key in {self.key_of(name) for name in self.features} if key in columns and not columns[key].encoded)
        each = sum(np.dtype(stored.dtype).itemsize * math.prod(stored.shape) for stored in held)
        return np.maximum(sizes, found.index.rows * each)


def _first_value(store: Store, key: str) -> list[Any]:
    """Reads the value of the first record, as a list of one number or byte string; empty if it cannot be read, which reading it reports."""
    try:
        return store.read((key,), np.zeros(1, np.int64))[0].ravel()[:1].tolist()
    except StoreError:
        return []


class ArrayStoreSource(StoreSource):
    """Files of arrays. The key of a feature is an array; images are the bytes of image files, or arrays."""

    arrays: ClassVar[bool] = True

    def store_arguments(self) -> tuple[Hashable, ...]:
        return tuple(dict.fromkeys(self.key_of(name) for name in self.features))

    def possible(self) -> tuple[ElementType, ...]:
        """Lists types with images and maps as the bytes of files, and as arrays."""
        encoded = self.infer()
        pictured = {name: pixels for name, f in self.features.items() if (pixels := f.own_kind.pixels) is not None and pixels.also}
        found = [encoded]
        for dtype, channels in product(PIXEL_RANGES, (3, 1, 4)):
            sizes = {name: (None, None, channels if isinstance(pixels, Levels) else None) for name, pixels in pictured.items()}
            arrays = {name: pixels.of_array(encoded[name], dtype, sizes[name]) for name, pixels in pictured.items()}
            found.append(encoded.replace(**arrays))
        return tuple(found) if pictured else (encoded,)
