"""`arrow`: the rows of Arrow files, memory-mapped by PyArrow, with every offset checked before use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from pipegen.diagnostics.suggest import suggested
from pipegen.lazy import np
from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.ops.sources.shards.findings import Findings
from pipegen.ops.sources.stores.base import Array, Store, Translated, byte_strings, needs, one_line
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, MissingValue, StoreError, Unsuitable, is_list, is_number

_FILE = b"ARROW1"  # first bytes of a file with a footer; a stream, as Hugging Face writes it, starts with its schema

_END, _OLD_END = b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0"
"""End-of-stream markers, now and before version 0.15."""


class ArrowTables(Store):
    """An uncompressed Arrow file or stream. Fields of structs are named `outer.inner`; images, which Hugging Face stores as bytes and path,
    by the outer name only."""

    def __init__(self, path: str) -> None:
        with needs("PyArrow", "arrow"):
            import pyarrow as pa
        with Translated(OSError, ValueError, pa.ArrowException):
            self._map = pa.memory_map(path)
            whole = self._map.read_buffer()
            self._map.seek(0)
            self._whole, self._has_footer = whole, whole[: len(_FILE)].to_pybytes() == _FILE
            reader = (pa.ipc.open_file if self._has_footer else pa.ipc.open_stream)(self._map)
            self.schema: Any = reader.schema
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if self._has_footer else reader
            self._batches = list(batches)
            for batch in self._batches:
                batch.validate()
            found = [column for field in self.schema for column in _columns(field.name, field.type, (field.name,))]
            self._columns, self._paths = {key: held for key, held, _ in found}, {key: path for key, _, path in found}
        for buffer in _buffers(self._batches[0]) if self._batches else ():
            if not whole.address <= buffer.address <= whole.address + whole.size:
                raise Unsuitable("its batches are compressed and would be unpacked into memory", "write it uncompressed, or as Parquet")
        self._starts = np.cumsum([0, *(len(batch) for batch in self._batches)])
        self.rows = int(self._starts[-1])
        self._leaves: dict[tuple[str, int], _Leaf] = {}
        for key, column in self._columns.items():  # lists have the shape of the first one
            batch = next((i for i, batch in enumerate(self._batches) if len(batch)), None)
            if column is None and batch is not None and (first := self._leaf(key, batch).shaped(0)) is not None:
                self._columns[key] = FieldType(first.dtype.name, first.shape)

    def check(self) -> Findings:
        """Follows the messages: PyArrow accepts a stream truncated between two of them."""
        start, end = _inside(self._whole) if self._has_footer else (0, self._whole.size)
        found, at, marked = _batches_in(self._whole, start, end)
        if not marked and not self._has_footer:
            message = f"after {found:,} batches and {self.rows:,} records it ends without an end-of-stream marker, as if it was truncated"
            raise StoreError(message if at == end else f"no message begins at byte {at:,}, after {found:,} batches, and {_left(end - at)}")
        if found != len(self._batches) and self._has_footer:
            raise StoreError(f"its footer lists {len(self._batches):,} batches, but it has {found:,}")
        if at < end and (not self._has_footer or any(self._whole[at:end].to_pybytes())):
            raise StoreError(f"its end is at byte {at:,}, after {found:,} batches and {self.rows:,} records, and {_left(end - at)}")
        for number, batch in enumerate(self._batches):
            places = sorted((buffer.address, buffer.size) for buffer in _buffers(batch))
            # A damaged offset would give one column the values of another.
            if any(address + size > following for (address, size), (following, _) in pairwise(places)):
                raise StoreError(f"the file is damaged: two columns of batch {number:,} overlap")
        return {}

    def columns(self) -> Mapping[str, FieldType]:
        """Returns the columns whose type can be read."""
        return {key: column for key, column in self._columns.items() if column is not None}

    def read(self, keys: Sequence[str], rows: Array) -> list[Array]:
        batches = np.searchsorted(self._starts, rows, side="right") - 1
        places = list(zip(batches.tolist(), (rows - self._starts[batches]).tolist(), strict=True))
        found, columns = [], self.columns()
        for key in keys:
            values = [self._leaf(key, batch).value(row) for batch, row in places]
            found.append(byte_strings(values) if columns[key].encoded else _stacked(values, columns[key]))
        return found

    def number_lists(self, key: str, rows: Array) -> list[Any]:
        batches = np.searchsorted(self._starts, rows, side="right") - 1
        return [
            self._leaf(key, batch).value(row) for batch, row in zip(batches.tolist(), (rows - self._starts[batches]).tolist(), strict=True)
        ]

    def whole(self, key: str) -> Iterator[Array]:
        for batch in range(len(self._batches)):
            leaf = self._leaf(key, batch)
            values = leaf.all()
            yield values if values is not None else self.read((key,), np.arange(*self._starts[batch : batch + 2]))[0]

    def cells(self, key: str) -> Iterator[Any]:
        for batch in range(len(self._batches)):
            array = self._leaf(key, batch).array
            with Translated(ValueError, said=_damaged):  # that of PyArrow
                array.validate(full=True)
            yield from array.to_pylist()

    def lists(self, key: str, *, texts: bool = False) -> Iterator[Any]:
        column, *path = [key] if key in self.schema.names else key.split(".")
        if column not in self.schema.names:
            raise StoreError(f"it has no column {column!r}; {suggested(column, self.schema.names)}")
        every = (value for batch in self._batches for value in batch.column(column).to_pylist())
        return (_field(value, path, key) for value in every)

    def _leaf(self, key: str, batch: int) -> _Leaf:
        at = key, batch
        if at not in self._leaves:
            array: Any = self._batches[batch]
            with Translated(ValueError, LookupError, said=_damaged):  # PyArrow's errors, such as for an invalid dictionary index
                for name in self._paths[key]:
                    array = array.column(name) if hasattr(array, "column") else array.field(name)
                self._leaves[at] = _Leaf(array)
        return self._leaves[at]

    def close(self) -> None:
        self._batches, self._leaves, self._whole = [], {}, None
        self._map.close()


class _Leaf:
    """The values of a column in one batch, as views of the file."""

    def __init__(self, array: Any) -> None:
        import pyarrow as pa

        kind = array.type
        if isinstance(kind, pa.BaseExtensionType):
            array, kind = array.storage, array.type.storage_type
        if pa.types.is_dictionary(kind):
            array.validate(full=True)  # decoding does not check indices and offsets
            array, kind = array.dictionary_decode(), kind.value_type
        self.array, self._size = array, len(array)
        self._missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        self._numbers: Array | None = None
        self._offsets: Array | None = None
        self._is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
        if self._is_time:
            return
        if is_number(kind):
            self._numbers = np.asarray(array.fill_null(0) if array.null_count else array)
        elif pa.types.is_fixed_size_binary(kind):
            self._offsets = np.arange(array.offset, array.offset + self._size + 1, dtype=np.int64) * kind.byte_width
            self._data = memoryview(array.buffers()[1])
        elif not pa.types.is_nested(kind):
            wide = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
            _, offsets, data = array.buffers()
            held = np.frombuffer(offsets, np.int64 if wide else np.int32) if offsets is not None else np.zeros(1, np.int64)
            self._offsets = held[array.offset : array.offset + self._size + 1]
            self._data = memoryview(data) if data is not None else memoryview(b"")

    def value(self, row: int) -> Any:
        """Returns a number, a byte string or an array."""
        if self._missing is not None and self._missing[row]:
            raise MissingValue("the record has no value here")
        if self._is_time:
            return str(self.array[row].as_py()).encode()
        if self._numbers is not None:
            return self._numbers[row]
        if self._offsets is None:
            found = self.shaped(row)
            if found is None:
                raise StoreError("the record's list is not an array of numbers")
            return found
        start, end = int(self._offsets[row]), int(self._offsets[row + 1])
        if not 0 <= start <= end <= len(self._data):
            raise StoreError(f"the file is damaged: the value has the bytes {start:,} to {end:,} of {len(self._data):,}")
        return bytes(self._data[start:end])

    def all(self) -> Array | None:
        """Returns every value, if they are numbers and none is missing."""
        return self._numbers if self._missing is None else None

    def shaped(self, row: int) -> Array | None:
        """Returns the lists of a row as an array; `None` if they differ in length, or are not numbers."""
        try:
            found: Array = np.array(self.array[row].as_py())
        except (ValueError, IndexError):
            return None
        leaf = self.array.type
        while hasattr(leaf, "value_type"):
            leaf = leaf.value_type
        return found.astype(leaf.to_pandas_dtype()) if found.size and found.dtype.kind in "iufb" and is_number(leaf) else None


def _field(value: Any, path: Sequence[str], key: str) -> list[Any]:
    """Returns the list at a path of a value: of a struct of lists, or of a list of structs."""
    for name in path:
        try:
            value = [one[name] for one in value] if isinstance(value, list) else value[name]
        except KeyError:
            known = value[0] if isinstance(value, list) else value
            raise StoreError(f"it has no field {name!r} of {key!r}; {suggested(name, known)}") from None
        except TypeError:
            raise StoreError(f"{key!r} of a record is null") from None
    if not isinstance(value, list):
        raise StoreError(f"{key!r} of a record holds {value!r:.40}, not a list")
    return value


def _buffers(batch: Any) -> list[Any]:
    return [buffer for column in batch.columns for buffer in column.buffers() if buffer is not None and buffer.size]


def _damaged(error: Exception) -> str:
    return f"the file is damaged: {one_line(error)}"


def _left(size: int) -> str:
    return f"{size:,} bytes follow it, as if a second file was appended"


def _inside(whole: Any) -> tuple[int, int]:
    """Finds the start and end of the messages in a file with a footer; writers pad the magic to 8 or 64 bytes."""
    length = int.from_bytes(whole[whole.size - len(_FILE) - 4 : whole.size - len(_FILE)], "little")
    head = whole[len(_FILE) : 64].to_pybytes()
    start = len(_FILE) + len(head) - len(head.lstrip(b"\0"))
    return start, whole.size - len(_FILE) - 4 - length


def _batches_in(whole: Any, start: int, end: int) -> tuple[int, int, bool]:
    """Counts the batches of a stream; returns the count, the end, and whether the end-of-stream marker is there."""
    import pyarrow as pa

    stream, count, at = pa.BufferReader(whole[start:end]), 0, start
    messages = pa.ipc.MessageReader.open_stream(stream)
    try:
        while True:
            count += messages.read_next_message().type == "record batch"
            at = start + stream.tell()
    except StopIteration:
        pass
    except (OSError, ValueError, pa.ArrowException) as error:  # no message is there
        raise StoreError(f"no message begins at byte {at:,}, after {count:,} batches: {one_line(error)}") from None
    marker = whole[at : at + len(_END)].to_pybytes()
    size = next((len(mark) for mark in (_END, _OLD_END) if marker.startswith(mark)), 0)
    return count, at + size, size > 0


def _columns(name: str, kind: Any, path: tuple[str, ...]) -> Iterator[tuple[str, FieldType | None, tuple[str, ...]]]:
    """Yields the columns in a field by type, and the names that lead to each; no type for lists, whose shape depends on their values."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_struct(kind):
        inner = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
        if "bytes" in inner:
            yield from _columns(name, inner["bytes"], (*path, "bytes"))
        for key, of in inner.items():
            yield from _columns(f"{name}.{key}", of, (*path, key))
    elif pa.types.is_dictionary(kind):
        yield from _columns(name, kind.value_type, path)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        yield name, FieldType(BYTES), path
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        yield name, FieldType(TEXT), path
    elif is_number(kind):
        yield name, FieldType(np.dtype(kind.to_pandas_dtype()).name), path
    elif is_list(kind):
        yield name, None, path


def _stacked(values: list[Any], stored: FieldType) -> Array:
    odd = next((value for value in values if np.shape(value) != stored.shape), None)
    if odd is not None:
        raise StoreError(f"the record's array has the shape {np.shape(odd)}, but that of the first record {stored.shape}")
    return np.array(values, stored.dtype).reshape(len(values), *stored.shape)


class Arrow(StoreSource):
    """Arrow files, such as those of a folder written by Hugging Face's `save_to_disk`. Each row is an example. Needs PyArrow:
    `pip install 'pipegen[arrow]'`.

    The key of a feature is a column, or a field of a struct: `outer.inner`. For an image that Hugging Face stored, the column's name is
    enough. Files are mapped into memory and must be uncompressed. Lists of numbers become tensors if all have the same shape.
    """

    op: ClassVar[str] = "arrow"
    suffixes: ClassVar[tuple[str, ...]] = (".arrow", ".feather")
    called: ClassVar[str] = "Arrow"
    store: ClassVar[type[Store]] = ArrowTables
    has_lists: ClassVar[bool] = True
