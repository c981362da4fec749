"""`mds`: shards of MosaicML Streaming."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.mounts import Opened, content_of, mounted
from pipegen.ops.fields.notes import Note, is_are, quoted
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.records.index import LONGEST, Indexed, InShard, ShardRecords, counted
from pipegen.ops.sources.records.parts import PartSource
from pipegen.ops.sources.records.source import missing_key
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.stores.field_types import BYTES, TEXT, FieldType, Form, column_and_path, optional_at

_PICTURES = frozenset({"jpeg", "png", "bytes", "jpeg_array"})
_NUMBERS = {"int": "int64"} | {
    name: name for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
}
_TEXTS = frozenset({"str", "str_int", "str_float"})
_JSON = "json"
_ARRAY = re.compile(r"ndarray:(\w+):([\d,]+)\Z")
_WIDEST = 1 << 20  # bytes of the longest description of a shard's columns
_INDEX, _LONGEST = "index.json", 1 << 28
"""The list of a folder's shards, with their sizes and hashes, and its largest size."""
_HASHED = 1 << 22  # bytes hashed at once


class Column(NamedTuple):
    """A column of a shard: Streaming's encoding, and the bytes of a value if fixed."""

    encoding: str
    size: int | None

    @property
    def type(self) -> FieldType:
        """The type of its values, which are little-endian numbers if it is numeric."""
        called = f"`{self.encoding}`"
        if self.encoding in _PICTURES or self.encoding in _TEXTS:
            return FieldType(BYTES if self.encoding in _PICTURES else TEXT, called=called)
        array = _ARRAY.match(self.encoding)
        dtype, sides = (array[1], array[2].split(",")) if array is not None else (self.encoding, [])
        return FieldType(_NUMBERS.get(dtype, ""), tuple(map(int, sides)), called="" if dtype in _NUMBERS else called)


def _place(columns: Mapping[str, Column], key: str) -> tuple[str, tuple[str, ...]]:
    """Returns the column of a key, and the path in it for a field of JSON (else empty)."""
    return (key, ()) if key in columns else column_and_path(key, [name for name, one in columns.items() if one.encoding == _JSON])


class Mds(PartSource):
    """Uncompressed shards of MosaicML Streaming (MDS). They describe themselves and need no `index.json`.

    A key may name a field of a column with the encoding `json`: `about.label`, `about.boxes`. The field gives a label, a weight, a tensor,
    boxes or keypoints.

    Shards are mapped into memory and read in the graph, in any order. Columns with the encoding `pkl` are refused, since nothing is
    unpickled.
    """

    op: ClassVar[str] = "mds"
    checksums: ClassVar[str] = "those of files that `index.json` lists"
    suffixes: ClassVar[tuple[str, ...]] = (".mds",)

    def index_shard(self, path: str, size: int) -> ShardRecords:
        return index_mds(path, size, [self.key_of(name) for name in self.features])

    def _columns(self, shard: Found) -> dict[str, Column]:
        with Opened(shard.path) as stream:
            try:
                return read_columns(stream, shard.size)[0]
            except ValueError as error:  # damage since the index was made
                raise OpError("PG430", f"{shard.path!r} cannot be read: {error}", field="path") from None

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        if form != "cell":
            return super().stored(form, name, key, records)
        columns = self._columns(records.file)
        column, path = _place(columns, key)
        if column not in columns:
            return [None] * len(records.offsets)
        held, encoding = columns[column].type, columns[column].encoding
        if encoding == _JSON and not path:
            return list(self._each(partial(optional_at, path=()), name, records))
        if encoding != _JSON and (held.shape or not (held.numeric or held.dtype == TEXT)):
            raise OpError("PG421", f"the column {column!r} holds `{encoding}`, not a short text or a number")
        return super().stored(form, name, key, records)

    def known_keys(self, found: Indexed) -> Sequence[str]:
        return list(self._columns(found.first.file))

    def field_type(self, name: str, key: str, shard: Found) -> FieldType:
        columns = self._columns(shard)
        column, path = _place(columns, key)
        if column != _place(columns, self.key_of(name))[0]:
            raise OpError("PG431", f"the `keys` of `{name}` must be fields of one column of JSON", field=f"features.{name}.keys")
        if column not in columns:
            raise missing_key(repr(shard.path), self.features[name], name, key, list(columns), "column", "the")
        return FieldType(path=path) if path else columns[column].type

    def damaged_files(self, shards: Sequence[Found]) -> Iterator[tuple[str, str]]:
        """Compare the shards with the hashes in Streaming's `index.json`."""
        for folder in dict.fromkeys(os.path.dirname(shard.path) for shard in shards):
            listed = dict[str, _Listed]()
            with suppress(ValueError):
                listed = _read_index(os.path.join(folder, _INDEX)) or {}
            for shard in shards:
                name = os.path.basename(shard.path)
                if os.path.dirname(shard.path) == folder and name in listed:
                    yield from _wrong_hashes(shard.path, listed[name].hashes)

    def noted(self, found: Indexed) -> Iterator[Note]:
        """Compare the shards of each folder, and all shards with the top folder's, with an `index.json` there."""
        shards, rows = found.shards, found.index.rows.tolist()
        folders = [os.path.dirname(shard.path) for shard in shards]
        top = os.path.commonpath(folders)
        for folder in dict.fromkeys([top, *folders]):
            own = [place for place, other in enumerate(folders) if folder in (other, top)]
            yield from _check_index(folder, [shards[place] for place in own], [rows[place] for place in own])


def read_columns(stream: Opened, size: int) -> tuple[dict[str, Column], Ints]:
    """Reads a shard's description of its columns, and the offsets of its samples with the end.

    Layout as in `streaming.base.format.mds.writer`: number of samples and their offsets, uint32 each, the columns as JSON, the samples.
    Raises `ValueError` if the file is not a shard, or its description is damaged."""
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
        names, encodings, sizes = (tuple(about[f"column_{what}"]) for what in ("names", "encodings", "sizes"))
        columns = {name: Column(*how) for name, *how in zip(names, encodings, sizes, strict=True)}
        if len(columns) < len(names) or not all(isinstance(size, (int, type(None))) for size in sizes):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise ValueError("its description of the columns is damaged") from None
    return columns, starts


def index_mds(path: str, size: int, keys: Sequence[str]) -> ShardRecords:
    """Finds columns in the samples of a shard; a missing column has no bytes."""
    with Opened(path) as stream:
        try:
            columns, starts = read_columns(stream, size)
        except ValueError as error:
            return counted(0, f"at byte 0, record 0: {error}", parts=len(keys))
        varying = [i for i, one in enumerate(columns.values()) if one.size is None]
        fixed = [one.size or 0 for one in columns.values()]
        least = 4 * len(varying) + sum(fixed)
        ends, damage = starts[1:], ""
        wrong = (ends - starts[:-1] < least) | (ends > size)
        count = int(wrong.argmax()) if wrong.any() else len(ends)
        if wrong.any():
            what = "the shard ends within it" if ends[count] > size else "its place is damaged"
            damage = f"at byte {int(starts[count]):,}, record {count:,}: {what}"
        elif len(ends) and int(ends[-1]) != size:
            damage = f"at byte {int(ends[-1]):,}, record {count:,}: bytes follow the last record"
        begins, lengths = starts[:count], ends[:count] - starts[:count]
        widths: Ints = np.tile(np.array(fixed, np.int64), (count, 1))
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
    names = list(columns)
    chosen = [names.index(name) if name in columns else -1 for name, _ in (_place(columns, key) for key in keys)]
    picked = [(offsets[:count, at], widths[:count, at]) if at >= 0 else (begins[:count], np.full(count, -1)) for at in chosen]
    return ShardRecords(np.stack([o for o, _ in picked], 1), np.stack([w for _, w in picked], 1).astype(np.int32), damage)


class _Listed(NamedTuple):
    """A shard as listed in an `index.json`: its bytes and records, if listed; its hashes by algorithm, in hexadecimal; whether it was
    written compressed."""

    size: int | None
    samples: int | None
    hashes: Mapping[str, str]
    packed: bool


def _read_index(path: str) -> dict[str, _Listed] | None:
    """Reads the shards that an `index.json` lists, by their paths relative to it; `None` without one, `ValueError` if it is damaged."""
    try:
        content = content_of(path, _LONGEST)
    except OSError:
        if mounted(path) is not None or not os.path.lexists(path):
            return None
        raise ValueError("it cannot be read") from None
    found = {}
    try:
        for shard in json.loads(content)["shards"]:
            raw = shard["raw_data"]
            size, samples = (None if said is None else int(said) for said in (raw.get("bytes"), shard.get("samples")))
            hashes = {str(name): str(value) for name, value in (raw.get("hashes") or {}).items()}
            found[str(raw["basename"])] = _Listed(size, samples, hashes, packed=shard.get("zip_data") is not None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it is incomplete, or not an index of shards") from None
    return found


def _check_index(folder: str, shards: Sequence[Found], rows: Sequence[int]) -> Iterator[Note]:
    """Compares the shards of a folder, and the number of records of each, with its `index.json`: notes `PG430` for damage and differences,
    `PG411` for unlisted shards; `PG401` if listed shards are missing and the whole folder is read."""
    path = os.path.join(folder, _INDEX)
    try:
        listed = _read_index(path)
    except ValueError as error:
        help_ = "copy it again, or remove it if it is lost; missing shards are not noticed without it"
        yield Note("PG430", f"{path!r} is damaged: {error}", help_, "path", "error")
        return
    if listed is None:
        return
    own = {os.path.relpath(shard.path, folder): (shard, count) for shard, count in zip(shards, rows, strict=True)}
    missing = [name for name in listed if name not in own and not os.path.exists(os.path.join(folder, name))]
    if missing and not all(shard.named for shard in shards):
        packed = any(listed[name].packed for name in missing)
        message = f"{len(missing):,} of {len(listed):,} shards listed in {path!r} {is_are(len(missing))} missing: {quoted(missing)}"
        unpack = "they were written with `compression`; unpack them, or write them uncompressed"
        others = "or list the others in `path`"
        raise OpError("PG401", message, field="path", help=(unpack if packed else "copy or download the missing ones", others))
    for name, (shard, count) in own.items():
        if name in listed:
            size, samples = listed[name].size, listed[name].samples
            wrong = ""
            if size is not None and size != shard.size:
                wrong = f"it has {shard.size:,} bytes, but {path!r} lists {size:,}"
            elif samples is not None and samples != count:
                wrong = f"it has {count:,} records, but {path!r} lists {samples:,}"
            if wrong:
                yield Note("PG430", f"{shard.path!r} is damaged: {wrong}", "copy or write the file again", "path", "error")
    beside = sorted(name for name in own if name not in listed)
    if beside:
        message = f"{len(beside):,} of {len(own):,} shards {is_are(len(beside))} read but not listed in {path!r}: {quoted(beside)}"
        yield Note("PG411", message, "remove shards of an earlier run, or write the index again", "path", "warning")


def _wrong_hashes(path: str, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Hashes a file once, and yields it with its problem if a hash differs; unknown algorithms are ignored."""
    running = {name: made for name in wanted if (made := _begun(name)) is not None}
    if not running:
        return
    with Opened(path) as stream:
        while block := stream.read(_HASHED):
            for one in running.values():
                one.update(block)
    for name, one in running.items():
        if one.hexdigest() != wanted[name].lower():
            yield path, f"its {name} is {one.hexdigest()}, but `index.json` lists {wanted[name]}"
            return


def _begun(name: str) -> Any:
    """Returns a hash of the standard library, or of `xxhash` if installed."""
    if name in hashlib.algorithms_available and not name.startswith("shake"):
        return hashlib.new(name, usedforsecurity=False)
    if name.startswith("xxh") and find_spec("xxhash") is not None:
        import xxhash

        return getattr(xxhash, name, lambda: None)()
    return None
