"""`mds`: shards of MosaicML Streaming."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.mounts import Opened
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.wording import quoted
from pipegen.ops.sources.records.hashes import INDEX, check_index, listed_hashes, wrong_hashes
from pipegen.ops.sources.records.index import LONGEST, ShardRecords
from pipegen.ops.sources.records.json_fields import JSON_FIELDS, column_and_path, field_of, list_in, optional_at
from pipegen.ops.sources.records.reader import MappedReader
from pipegen.ops.sources.records.source import RecordSource
from pipegen.ops.sources.records.stored import how_field_stored, missing_key

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pipegen.ops.sources.listing.base import Note
    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.paths import Found
    from pipegen.ops.sources.records.stored import Stored

_PICTURES = frozenset({"jpeg", "png", "bytes", "jpeg_array"})
_WHOLE = {"int": "int64"} | {name: name for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")}
_FLOATS = {name: name for name in ("float16", "float32", "float64")}
_NUMBERS = _WHOLE | _FLOATS
_TEXTS = frozenset({"str", "str_int", "str_float"})
_JSON = "json"
_ARRAY = re.compile(r"ndarray:(\w+):([\d,]+)\Z")
_WIDEST = 1 << 20
"""Bytes of the longest description of a shard's columns."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a shard: names, Streaming's encodings, and the bytes of a value if fixed."""

    names: tuple[str, ...]
    encodings: tuple[str, ...]
    sizes: tuple[int | None, ...]

    def encoding(self, name: str) -> str:
        return self.encodings[self.names.index(name)]

    def place(self, key: str) -> tuple[str, tuple[str, ...]]:
        """Returns the column of a key, and the path in it for a field of JSON (else empty)."""
        return (key, ()) if key in self.names else column_and_path(key, [name for name in self.names if self.encoding(name) == _JSON])


class Mds(RecordSource):
    """Uncompressed shards of MosaicML Streaming (MDS). They describe themselves and need no `index.json`.

    A key may name a field of a column with the encoding `json`: `about.label`, `about.boxes`. The field gives a label, a weight, a tensor,
    boxes or keypoints.

    Shards are mapped into memory and read in the graph, in any order. Columns with the encoding `pkl` are refused, since nothing is
    unpickled.
    """

    op: ClassVar[str] = "mds"
    checksums: ClassVar[str] = "those of files that `index.json` lists"
    suffixes: ClassVar[tuple[str, ...]] = (".mds",)

    def fetched_as_read(self) -> frozenset[str]:
        return frozenset({"path"})

    def parts(self) -> tuple[str, ...]:
        return tuple(self.features)

    def index_options(self) -> str:
        return str([self.key_of(name) for name in self.features])

    def index_shard(self, path: str, size: int) -> ShardRecords:
        return index_mds(path, size, [self.key_of(name) for name in self.features])

    def examine(self, shards: Sequence[Found], index: RecordIndex) -> None:
        columns = self._columns(shards, index)
        for name, feature in self.read_features.items():
            if not columns.place(self.key_of(name))[1]:
                problem = _misfit(name, feature, self.key_of(name), columns)
                if problem is not None:
                    raise problem
        self._fields(columns, shards, index)

    def _fields(self, columns: Columns, shards: Sequence[Found], index: RecordIndex) -> dict[str, tuple[tuple[str, ...], Stored]]:
        """Returns the path and storage of each feature that is a field of JSON, from the first record; `PG431` if it lacks one."""
        shard = index.first_filled
        offsets, lengths = (part[0].tolist() for part in index.of(shard))
        found = {}
        with Opened(shards[shard].path) as stream:
            for at, (name, feature) in enumerate(self.features.items()):
                column, path = columns.place(self.key_of(name))
                if path and name in self.read_features:
                    found[name] = path, how_field_stored(name, feature, column, path, stream.pread(lengths[at], offsets[at]))
        return found

    def noted(self, shards: Sequence[Found], index: RecordIndex) -> Iterator[Note]:
        """Compare the shards of each folder, and all shards with the top folder's, with an `index.json` there."""
        rows, folders = index.rows.tolist(), [os.path.dirname(shard.path) for shard in shards]
        top = os.path.commonpath(folders)
        for folder in dict.fromkeys([top, *folders]):
            own = [place for place, other in enumerate(folders) if folder in (other, top)]
            yield from check_index(folder, [shards[place] for place in own], [rows[place] for place in own])

    def _columns(self, shards: Sequence[Found], index: RecordIndex) -> Columns:
        shard = shards[index.first_filled]
        with Opened(shard.path) as stream:
            try:
                return read_columns(stream, shard.size)[0]
            except ValueError as error:  # damage since the index was made
                raise OpError("PG430", f"{shard.path!r} cannot be read: {error}", field="path") from None

    def stored_labels(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        import numpy as np

        found, encoding, path = self._cells(name, shard, offsets, lengths)
        if path:
            return [self._read(field_of, name, value, path, f"{shard.path}#{row}") for row, value in enumerate(found)]
        if encoding in _TEXTS:
            return found
        numbers: builtins.list[Any] = np.frombuffer(b"".join(found), np.dtype(_NUMBERS[encoding]).newbyteorder("<")).tolist()
        return numbers

    def stored_values(self, name: str, key: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        import numpy as np

        found, encoding, path = self._cells(name, shard, offsets, lengths, key)
        array = _ARRAY.match(encoding)
        if array is not None:
            shape = tuple(map(int, array[2].split(",")))
            return [np.frombuffer(value, np.dtype(array[1]).newbyteorder("<")).reshape(shape) for value in found]
        if encoding == "ndarray":
            raise OpError("PG431", f"`ndarray` names no shape, so `{name}` cannot be read from it; write its lists as `json`")
        return [self._read(list_in, name, value, path, f"{shard.path}#{row}") for row, value in enumerate(found)]

    def stored_cells(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        with Opened(shard.path) as stream:
            columns = read_columns(stream, shard.size)[0]
        column, path = columns.place(self.key_of(name))
        if column not in columns.names:
            return [None] * len(offsets)
        found, encoding, _ = self._cells(name, shard, offsets, lengths)
        if encoding == _JSON:
            return [self._read(optional_at, name, value, path, f"{shard.path}#{row}") for row, value in enumerate(found)]
        if encoding not in _NUMBERS and encoding not in _TEXTS:
            raise OpError("PG421", f"the column {column!r} holds `{encoding}`, not a short text or a number")
        return self.stored_labels(name, shard, offsets, lengths)

    def known_keys(self, shards: Sequence[Found], index: RecordIndex) -> Sequence[str]:
        return self._columns(shards, index).names

    def _cells(
        self, name: str, shard: Found, offsets: Ints, lengths: Ints, key: str | None = None
    ) -> tuple[builtins.list[bytes], str, tuple[str, ...]]:
        """Reads the column of a feature in a shard's records; returns it with its encoding, and the path of a key in it for JSON."""
        at = list(self.features).index(name)
        with Opened(shard.path) as stream:
            columns = read_columns(stream, shard.size)[0]
            column, path = columns.place(key or self.key_of(name))
            if column != columns.place(self.key_of(name))[0]:
                raise OpError("PG431", f"the `keys` of `{name}` must be fields of one column of JSON", field=f"features.{name}.keys")
            places = zip(offsets[:, at].tolist(), lengths[:, at].tolist(), strict=True)
            return [stream.pread(length, offset) for offset, length in places], columns.encoding(column), path

    def _read(self, read: Callable[[bytes, tuple[str, ...]], Any], name: str, value: bytes, path: tuple[str, ...], where: str) -> Any:
        try:
            return read(value, path)
        except ValueError as error:
            raise OpError("PG431", f"{where}: the column for `{name}`: {error}", field=f"features.{name}") from None

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        columns = self._columns(shards, index)
        encodings = {name: columns.encoding(columns.place(self.key_of(name))[0]) for name in self.read_features}
        return _Samples(self.features, encodings, self._fields(columns, shards, index), shards, index, self.parts(), labels)


class _Samples(MappedReader):
    """Columns of samples mapped into memory."""

    def __init__(
        self,
        features: Mapping[str, RecordFeature],
        encodings: Mapping[str, str],
        fields: Mapping[str, tuple[tuple[str, ...], Stored]],
        *about: Any,
    ) -> None:
        super().__init__(*about)
        self.features, self.encodings, self.fields = features, encodings, fields

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return super().python(features, ram_budget) or (JSON_FIELDS if any(name in self.fields for name in features) else "")

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        return field_of(content, self.fields[feature][0]) if feature in self.fields else content

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        """Compare the shards with the hashes in Streaming's `index.json`."""
        for folder in dict.fromkeys(os.path.dirname(shard.path) for shard in self.shards):
            listed = listed_hashes(os.path.join(folder, INDEX))
            for shard in self.shards:
                if os.path.dirname(shard.path) == folder:
                    yield from wrong_hashes(shard.path, listed.get(os.path.basename(shard.path), {}))

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        return tuple(features)

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import from_member, from_raw, from_text

        found = {}
        for name in features:
            feature, encoding = self.features[name], self.encodings[name]
            lookup = self.label_columns[name].lookup if name in self.label_columns else None
            array = _ARRAY.match(encoding)
            dtype = array[1] if array is not None else _NUMBERS.get(encoding, "")
            if name in self.fields:
                path, how = self.fields[name]
                found[name] = from_member(name, feature, how, parts[name], None, lookup, partial(field_of, path=path))
            elif dtype:
                found[name] = from_raw(name, feature, dtype, parts[name], lookup)
            else:
                found[name] = from_text(name, parts[name], lookup)
        return found


def _misfit(name: str, feature: RecordFeature, key: str, columns: Columns) -> OpError | None:
    """Describes how a feature does not fit the shards."""
    field = feature.key_field(name)
    if key not in columns.names:
        listed = f"the columns are {quoted(columns.names)}"
        return missing_key(f"the shards have no column {key!r}", feature, name, key, columns.names, listed)
    encoding, kind, array = columns.encoding(key), kind_of(feature), _ARRAY.match(columns.encoding(key))
    shape = tuple(map(int, array[2].split(","))) if array is not None else ()
    if kind.pictured:
        fits, due = encoding in _PICTURES, "the bytes of an image file, `jpeg`, `png` or `bytes`"
    elif kind.labels:
        fits, due = encoding in _NUMBERS or encoding in _TEXTS, "a class index or the name of a class"
    else:
        numbers = array[1] if array is not None else encoding
        fits, due = numbers in _NUMBERS, "numbers of one shape"
    if not fits:
        help_: Any = f"write the key of a field, such as `{key}.{name}`" if encoding == _JSON and not kind.pictured else None
        return OpError("PG431", f"the column {key!r} holds `{encoding}`, but `{name}` needs {due}", field=field, help=help_)
    if kind.numbers and math.prod(shape) != math.prod(feature.stored_shape):
        help_ = None if kind.weighs else write(f"shape: [{', '.join(map(str, shape))}]", "arguments", "{} is what it has")
        said = f"the column {key!r} holds arrays of shape {shape}, but the spec says {feature.stored_shape}"
        return OpError("PG431", said, field=field, help=help_)
    return None


def read_columns(stream: Opened, size: int) -> tuple[Columns, Ints]:
    """Reads a shard's description of its columns, and the offsets of its samples with the end.

    Layout as in `streaming.base.format.mds.writer`: number of samples and their offsets, uint32 each, the columns as JSON, the samples.

    Raises:
        ValueError: The file is not a shard, or its description is damaged.
    """
    import numpy as np

    head = stream.pread(4, 0)
    count = int.from_bytes(head, "little")
    if len(head) < 4 or 4 * (count + 2) > size:
        raise ValueError("it is not an MDS shard")
    starts = np.frombuffer(stream.pread(4 * (count + 1), 4), "<u4").astype(np.int64)
    begin = 4 * (count + 2)
    if not begin <= int(starts[0]) <= min(size, begin + _WIDEST):
        raise ValueError("it is not an MDS shard")
    try:
        about = json.loads(stream.pread(int(starts[0]) - begin, begin))
        columns = Columns(tuple(about["column_names"]), tuple(about["column_encodings"]), tuple(about["column_sizes"]))
        whole = len(columns.names) == len(columns.encodings) == len(columns.sizes)
        if not whole or not all(isinstance(size, (int, type(None))) for size in columns.sizes):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ValueError("its description of the columns is damaged") from None
    return columns, starts


def index_mds(path: str, size: int, keys: Sequence[str]) -> ShardRecords:
    """Finds columns in the samples of a shard; a missing column has no bytes."""
    import numpy as np

    with Opened(path) as stream:
        try:
            columns, starts = read_columns(stream, size)
        except ValueError as error:
            nothing: Ints = np.zeros((0, len(keys)), np.int64)
            return ShardRecords(nothing, nothing.astype(np.int32), f"at byte 0, record 0: {error}")
        varying = [i for i, width in enumerate(columns.sizes) if width is None]
        fixed = sum(width or 0 for width in columns.sizes)
        least = 4 * len(varying) + fixed
        ends, damage = starts[1:], ""
        wrong = (ends - starts[:-1] < least) | (ends > size)
        count = int(wrong.argmax()) if wrong.any() else len(ends)
        if wrong.any():
            what = "the shard ends within it" if ends[count] > size else "its place is damaged"
            damage = f"at byte {int(starts[count]):,}, record {count:,}: {what}"
        elif len(ends) and int(ends[-1]) != size:
            damage = f"at byte {int(ends[-1]):,}, record {count:,}: bytes follow the last record"
        begins, lengths = starts[:count], ends[:count] - starts[:count]
        widths: Ints = np.zeros((count, len(columns.sizes)), np.int64)
        for i, width in enumerate(columns.sizes):
            widths[:, i] = width or 0
        if len(varying) == 1:
            widths[:, varying[0]] = lengths - least
        elif varying:
            heads = b"".join(stream.pread(4 * len(varying), begin) for begin in begins.tolist())
            widths[:, varying] = np.frombuffer(heads, "<u4").reshape(-1, len(varying))
    apart = (widths.sum(1) + 4 * len(varying) != lengths) | (widths > LONGEST).any(1)
    if apart.any():
        count = int(apart.argmax())
        damage = f"at byte {int(begins[count]):,}, record {count:,}: the lengths of its columns do not fit into it"
    offsets = begins[:, None] + 4 * len(varying) + np.cumsum(widths, axis=1) - widths
    named = [columns.place(key)[0] for key in keys]
    chosen = [columns.names.index(name) if name in columns.names else -1 for name in named]
    picked = [(offsets[:count, at], widths[:count, at]) if at >= 0 else (begins[:count], np.full(count, -1)) for at in chosen]
    return ShardRecords(np.stack([o for o, _ in picked], 1), np.stack([w for _, w in picked], 1).astype(np.int32), damage)
