"""A first spec for files of records and archives: their source, and their keys of images and labels."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.folder_survey import sample_of_bytes, sample_of_records
from pipegen.cli.init.guessed_columns import IMAGE, KINDS, LABEL_KEYS, SOUND, Values, chosen_among, held_in, label_among, last_of, told_by
from pipegen.cli.init.guessed_items import Features, boxed, boxes_among, by_layout, features_of, fields_of, keys_read, listed, with_classes
from pipegen.cli.init.sound_specs import sample_of_sounds, sounds_of_records, spec_of_sounds
from pipegen.cli.init.spec import Written, about_sample, beside, block, output_of, parts_of, relative, spec_of
from pipegen.data.rounding import spread
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.mounts import Opened
from pipegen.ops.registry import sources
from pipegen.ops.sources.array_record import ArrayRecords
from pipegen.ops.sources.folders.scan import IMAGE_EXTENSIONS, is_hidden
from pipegen.ops.sources.listing.base import Listing, every_value, shards_of
from pipegen.ops.sources.mds import index_mds, read_columns
from pipegen.ops.sources.records.archives import Archive, open_archive
from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.ops.sources.records.index import InShard
from pipegen.ops.sources.records.messages import read_example
from pipegen.ops.sources.records.source import RecordSource
from pipegen.ops.sources.shards.members import Members
from pipegen.ops.sources.shards.paths import Found, find_shards
from pipegen.ops.sources.shards.tar_headers import tar_members
from pipegen.ops.sources.shards.zip_directory import zip_members
from pipegen.ops.sources.stores.base import Store
from pipegen.ops.sources.stores.field_types import BYTES, JSON
from pipegen.ops.sources.stores.sqlite_rows import SqliteRows
from pipegen.ops.sources.tables.table import Table
from pipegen.ops.sources.tfrecord import MAGIC, TFRecord, masked_crc32c
from pipegen.spec.compose import flow

if TYPE_CHECKING:
    from pipegen.cli.init.guessed_items import Lists


_DIGITS = re.compile(rb"(\d+)(?!.*\d)")
_FIRST = 50  # number of keys of a database, of records of a file, or of images in an archive, to examine

Held = tuple[dict[str, str], set[str], dict[str, Any]]
"""Content of each key, in words; keys that may be labels; further arguments of the source."""


def _of_examples(records: Sequence[bytes], options: dict[str, Any]) -> Held:
    """Examines records: an encoded image or sound, or a `tf.Example` each."""
    if (what := held_in(records[0])) is not None:
        return {KINDS[what]: what}, set(), {**options, "content": "bytes"}
    held: dict[str, str] = {}
    whole: set[str] = set()
    examples = [read_example(record) for record in records]
    for key in dict.fromkeys(key for example in examples for key in example):
        values = [example[key] for example in examples if key in example]
        lengths, first = {len(value.items) for value in values}, next((value for value in values if value.items), values[0])
        held[key] = f"{len(first.items) if len(lengths) == 1 else 'lists'} of type {first.held}"
        if lengths == {1} and (what := held_in(first.items[0])) is not None:
            held[key] = what
        elif lengths == {1} and len(values) == len(examples) and first.held in ("int", "bytes"):
            whole.add(key)
            _add_fields(key, first.items[0], held, whole)
    return held, whole, options


def _add_fields(key: str, content: Any, held: dict[str, str], whole: set[str]) -> None:
    """Adds the fields of JSON to what a record holds; single values may be labels."""
    for path, value in fields_of(key, content):
        if path != key:
            held[path] = "a field of JSON"
            whole |= {path} if type(value) in (int, str) else set()


def _sqlite(path: str) -> Held:
    """Examines the tables of an SQLite file; chooses the first with an image, else with a sound."""
    try:
        with _opened(path) as opened:
            tables = _table_names(opened)
    except sqlite3.Error as error:
        raise ValueError(str(error)) from None
    looked = [(*_of_columns(SqliteRows(path, table)), {"table": table} if len(tables) > 1 else {}) for table in tables]
    first = (found for what in (IMAGE, SOUND) for found in looked if what in found[0].values())
    return next(first, ({}, set(), {}) if not looked else looked[0])


def _opened(file: str) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True))


def _table_names(opened: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in opened.execute(query).fetchall()]


def _lmdb(path: str) -> Held:
    """Examines the first keys of an LMDB environment: keys that differ only in their last number belong to one feature."""
    from pipegen.ops.sources.stores.base import Extents
    from pipegen.ops.sources.stores.lmdb_keys import list_values

    values, file = list_values(path), Extents(path)
    held: dict[str, str] = {}
    whole = set()
    for place, key in enumerate(values.keys):
        pattern = _DIGITS.sub(b"*", key, count=1).decode("utf-8", "backslashreplace")
        if pattern in held or pattern.count("*") != 1:
            continue
        content = file.extent(int(values.offsets[place]), int(values.lengths[place]))
        held[pattern] = held_in(content) or f"{len(content):,} bytes"
        if content.strip().lstrip(b"-").isdigit() or content.strip().isalpha():
            whole.add(pattern)
        _add_fields(pattern, content, held, whole)
        if len(held) == _FIRST:
            break
    return held, whole, {}


def _of_columns(store: Store) -> tuple[dict[str, str], set[str]]:
    held: dict[str, str] = {}
    whole: set[str] = set()
    with closing(store):
        for key, column in store.columns().items():
            held[key] = f"{column.dtype} {list(column.shape)}" if column.shape else column.dtype
            if column.dtype == BYTES and store.rows:
                content = store.read((key,), np.zeros(1, np.int64))[0][0]
                held[key] = held_in(content) or held[key]
                _add_fields(key, content, held, whole)
            elif column.dtype in ("uint8", "uint16") and (len(column.shape) == 2 or tuple(column.shape)[2:] in ((1,), (3,))):
                held[key] = IMAGE
            if not column.shape and held[key] not in KINDS and not column.dtype.startswith("float"):
                whole.add(key)
    return held, whole


_LEAST = 2


def first_archive(path: str, spec_folder: str) -> Written | None:
    """Writes the spec of an archive with a folder whose sub-folders are classes of images, or of sounds; `None` for any other content."""
    try:
        whole = open_archive(path)
        names = [name.split("/") for name in _visible(whole)] if whole is not None else []
        folders = {"/".join(parts[:-1]) for parts in names}
        held = {told_by(parts[-1]) for parts in names}
        what = held.pop() if len(held) == 1 else None
        inner = os.path.commonpath(folders) if folders else ""
        archive = open_archive(f"{path}/{inner}") if what is not None and len(folders) >= _LEAST else None
    except OpError:
        return None  # read as an archive of records, it raises the error
    found = _visible(archive) if archive is not None else []
    if archive is None or not all("/" in name for name in found):
        return None
    examined = [found[i] for i in spread(len(found), _FIRST)]
    contents = [archive.read(archive.numbers[name]) for name in examined]
    classes = {name.split("/")[0] for name in found}
    place = relative(path, spec_folder).rstrip("/") + (f"/{archive.inner}" if archive.inner else "")
    summary, splits = f"{len(found):,} {what}s in {len(classes):,} classes, in an archive", parts_of(stratified=True)
    if what == SOUND:
        heard = sample_of_sounds(examined, contents)
        source = [f"source: {flow({'audio_folder': {'path': place, 'rate': heard.rate}})}"]
        return spec_of_sounds(summary, heard.comments(), source, len(found), heard, splits=splits, labelled=True)
    sample = sample_of_bytes(contents)
    return spec_of(
        summary,
        [],
        [f"source: {flow({'image_folder': {'path': place}})}"],
        len(found),
        most=32,
        splits=splits,
        sample=sample,
        steps=["maybe flip", "rescale"],
    )


def _visible(archive: Archive) -> list[str]:
    return [name for name in archive.numbers if not any(map(is_hidden, name.split("/")))]


_OF_SPLIT = re.compile(r"(train|validation|val|test)-\d+-of-\d+\b")
_SPLITS = {"val": "validation"}
_TEXTS = ("cls", "class", "label", "id", "index", "txt", "text")  # endings of members of archives that may be labels
_MOST_TRIED = 8  # maximal number of keys of which all values are read, to find labels without a usual name
_SHOWN = 12


def first_records(asked: Shards, spec_folder: str) -> Written:
    """Writes the spec of files of records; raises `CannotRun` if they cannot be read, or have neither images nor sounds."""
    path, op = asked.path, asked.op
    try:
        _, shards = find_shards(os.getcwd(), os.path.abspath(path), cast("type[RecordSource]", sources()[op]).suffixes)
        archived = first_archive(shards[0].path, spec_folder) if len(shards) == 1 and op in ("zip", "webdataset") else None
        if archived is not None:
            return archived
        shard = next((shard for shard in shards if shard.size), shards[0])
        held, whole, own = _look(op, shard, asked.options)
        features, remarks = _chosen(partial(listed, op, {"path": shard.path, **own}, ""), held, whole)
        read, named = keys_read(features), {what for what, kind in KINDS.items() if kind in features}  # others of these are in the remarks
        others = [f"{json.dumps(key)} ({what})" for key, what in sorted(held.items()) if key not in read and what not in named]
        if not features:
            raise CannotRun(f"{path}: the first record has no image and no sound; it has {', '.join(others) or 'no features'}")
        features, listing = with_classes(partial(listed, op, {"path": os.path.abspath(path), **own}, ""), features, list(held))
    except (OpError, OSError, ValueError) as error:
        raise CannotRun(f"{path}: {error.message if isinstance(error, OpError) else error}") from None
    count, output, sample, heard = shards_of(listing).total, output_of(features), None, None
    remarks += [note.message for note in listing.notes if note.severity == "error"]
    if "label" in features:
        features["label"] |= _classes(listing)
    if "audio" in features:
        heard = sounds_of_records(listing, count)
        features["audio"] |= {"rate": heard.rate}
    else:
        sample = sample_of_records(listing, count)
    layout, features = by_layout(op, features)
    own = {**own, **layout}
    splits = _splits(shards)
    source = ["source:", *(["  by_split:"] if splits else block(op, {"path": beside(path, spec_folder), **own}, features))]
    for split, pattern in splits.items():
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        place = {"path": beside(os.path.join(folder, pattern), spec_folder)}
        source += [f"    {split}:", *block(op, place | own, features, indent=" " * 6)]
    summary = f"{count:,} records in {len(shards):,} {'file' if len(shards) == 1 else 'files'}"
    remarks += [f"The records also have {', '.join(others[:_SHOWN])}"] if others else []
    parts = "" if splits else parts_of(op, count)
    if heard is not None:
        return spec_of_sounds(summary, heard.comments() + remarks, source, count, heard, splits=parts, labelled="label" in features)
    about = [*(about_sample(sample) if sample is not None else []), *remarks]
    return spec_of(summary, about, source, count, most=32, splits=parts, sample=sample, output=output)


def _splits(shards: Sequence[Found]) -> dict[str, str]:
    """Finds the file pattern of each split, if all files are named like `SPLIT-00000-of-00004` and `train` is among them."""
    named = [_OF_SPLIT.match(shard.key) for shard in shards]
    found = {match[1]: f"{match[1]}-*{os.path.splitext(shard.key)[1]}" for match, shard in zip(named, shards, strict=True) if match}
    if None in named or "train" not in found or len(found) < 2:
        return {}
    return {_SPLITS.get(name, name): found[name] for name in sorted(found, key=("train", "val", "validation", "test").index)}


def _classes(listing: Listing) -> dict[str, Any]:
    """Arguments for the classes of the labels: their names, or their number and the first index."""
    names = listing.class_names
    if not all(re.fullmatch(r"\d+", name) for name in names):
        return {"classes": list(names)}
    labels = every_value(listing, "label")
    from_one = labels is not None and len(labels) and int(labels.min()) == 1
    return {"classes": len(names) - 1, "offset": 1} if from_one else {"classes": len(names)}


def _look(op: str, shard: Found, options: dict[str, Any]) -> Held:
    """Examines the first record of a shard; `options` are arguments of the source."""
    if op in ("sqlite", "lmdb"):
        return (_sqlite if op == "sqlite" else _lmdb)(shard.path)
    if op in ("arrow", "hdf5"):
        return (*_of_columns(cast("type[StoreSource]", sources()[op]).store(shard.path)), {})
    if op == "array_record":
        store = ArrayRecords(shard.path)
        return _of_examples(list(map(bytes, store.read(("",), np.arange(min(store.rows, _FIRST)))[0])), {})
    if op == "tfrecord":
        about = {"path": shard.path, "content": "bytes", "features": {"image": {"kind": "image"}}}
        source = TFRecord.model_validate(about | options)
        index = source.index_shard(shard.path, shard.size)
        if not len(index.offsets):
            raise ValueError(index.damage or "the file holds no record")
        first = InShard(shard, index.offsets[:_FIRST], index.lengths[:_FIRST])
        return _of_examples([*map(bytes, source.contents("", first))], options)
    if op == "mds":
        with Opened(shard.path) as stream:
            columns, _ = read_columns(stream, shard.size)
            index = index_mds(shard.path, shard.size, list(columns))
            places = zip(index.lengths[:_FIRST].tolist(), index.offsets[:_FIRST].tolist(), strict=True)
            samples = [list(map(stream.pread, *place)) for place in places]
        held = {name: column.encoding for name, column in columns.items()}
        whole = {name for name, how in held.items() if how == "int" or how.startswith(("int", "uint")) or how == "str"}
        for name, contents in zip(columns, zip(*samples, strict=True), strict=False):
            if held[name] in ("jpeg", "png", "bytes"):
                held[name] = IMAGE if held[name] != "bytes" else held_in(contents[0]) or held[name]
            for content in contents if held[name] == "json" else ():
                _add_fields(name, content, held, whole)
        return held, whole, {}
    members, damage = (tar_members if op == "webdataset" else zip_members)(shard.path, shard.size)
    if not members:
        raise ValueError(damage or "the archive is empty")
    return (*_members(members, shard.path), {})


def _members(members: Members, file: str) -> tuple[dict[str, str], set[str]]:
    """Examines the members of the first record, and the fields of JSON of further ones."""
    stems: dict[tuple[str, str], None] = {}
    held: dict[str, str] = {}
    whole: set[str] = set()
    for place, path in enumerate(members.names):
        folder, _, name = path.rpartition("/")
        own, dot, key = name.partition(".")
        if not dot or not own or name.startswith("."):
            continue
        stems[folder, own] = None
        if len(stems) > _FIRST:
            break
        if len(stems) == 1:
            held[key] = told_by(f"record.{key}") or key.rpartition(".")[2]
            if key.lower() in LABEL_KEYS or held[key].lower() in _TEXTS:
                whole.add(key)
        if held.get(key, "").lower() == JSON and members.sizes[place] == members.lengths[place]:
            with Opened(file) as stream:
                _add_fields(key, stream.pread(int(members.lengths[place]), int(members.offsets[place])), held, whole)
    return held, whole


def _chosen(lists: Lists, held: Mapping[str, str], whole: set[str]) -> tuple[Features, list[str]]:
    """Chooses the features, with comments on the choice; `lists` lists the records of a shard with some features."""
    what = next((one for one in (IMAGE, SOUND) if one in held.values()), None)
    if what is None:
        return {}, []
    keys = [key for key, own in held.items() if own == what]
    keys = [key for key in keys if key.rpartition(".")[0] not in keys]  # not the bytes inside a struct that is an image
    chosen, remarks = chosen_among(keys, what=what)
    features = features_of(chosen, None, what=what)
    others = [key for key in held if key not in keys]
    boxes, doubts = boxed(lists, features, others) if what == IMAGE else ({}, [])
    near = {*boxes_among(others, "keys")[1]} if boxes else set()
    likely = [key for key in held if key in whole - near]
    usual = [key for key in likely if last_of(key) in LABEL_KEYS]
    seen = {} if len(usual) == 1 else dict(_counted(lists, features, key) for key in (usual or likely)[:_MOST_TRIED])
    label, more = label_among(seen, usual) if usual or not boxes else (None, [])
    return features_of(chosen, label, what=what) | boxes, [*remarks, *more, *doubts]


def _counted(lists: Lists, features: Features, key: str) -> tuple[str, Values]:
    try:
        listing = lists(features | {"label": {"kind": "label", "key": key}})
        labels = every_value(listing, "label")
    except (OpError, OSError, ValueError):
        return key, Values(0, 0, named=False)
    named = not all(name.isdigit() for name in listing.class_names)
    return key, Values(0 if labels is None else len(np.unique(labels)), shards_of(listing).total, named)


ENDINGS = {
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".tfrec": "tfrecord", ".tar": "webdataset", ".zip": "zip", ".mds": "mds",
    ".array_record": "array_record", ".arrayrecord": "array_record", ".arrow": "arrow", ".feather": "arrow", ".h5": "hdf5", ".hdf5": "hdf5",
    ".hdf": "hdf5", ".lmdb": "lmdb", ".mdb": "lmdb", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite",
}  # fmt: skip
"""Source by the ending of a file."""
_UNNAMED = {"*-of-*": re.compile(r"-\d+-of-\d+\Z"), "*.gz": re.compile(r"\.gz\Z", re.IGNORECASE)}
"""Other names of TFRecord files: glob patterns, and regular expressions for the same names."""


@dataclass(frozen=True)
class Shards:
    """Files of records, and the source that reads them: `path` is a file, a folder or a pattern of files; `first` is a file."""

    op: str
    path: str
    first: str

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments of the source."""
        if self.op != "tfrecord" or not os.path.isfile(self.first):
            return {}
        with open(self.first, "rb") as stream:
            return {"compression": "gzip"} if stream.read(len(MAGIC)) == MAGIC else {}


def shards_in(path: str) -> Shards | None:
    """Finds the source of a file, or of a folder with files of one source and no images; `None` for anything else."""
    if not os.path.isdir(path):
        op = ENDINGS.get(_ending(path))
        named = any(told.search(path) for told in _UNNAMED.values())
        return Shards(op, path, path) if op is not None else _unnamed([path], path) if named else None
    names = sorted(entry.name for entry in os.scandir(path) if entry.is_file() and not entry.name.startswith("."))
    if any(_ending(name).lstrip(".") in IMAGE_EXTENSIONS for name in names):
        return None
    found = {op: os.path.join(path, name) for name in reversed(names) if (op := ENDINGS.get(_ending(name)))}
    if found:
        op, first = next(iter(found.items()))
        return Shards(op, path, first) if len(found) == 1 else None
    for pattern, told in _UNNAMED.items():
        of_pattern = [os.path.join(path, name) for name in names if told.search(name)]
        if of_pattern and (unnamed := _unnamed(of_pattern, os.path.join(path, pattern))) is not None:
            return unnamed
    return None


def _ending(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _unnamed(files: Sequence[str], path: str) -> Shards | None:
    """Checks if the first file that is not empty begins with the length of a TFRecord's record and its checksum."""
    import zlib

    first = next((file for file in files if os.path.getsize(file)), None)
    if first is None:
        return None
    shards = Shards("tfrecord", path, first)
    opened: Any = gzip.open if shards.options else open
    try:
        with opened(first, "rb") as stream:
            head = stream.read(12)
    except (OSError, EOFError, zlib.error):
        return None
    is_head = len(head) == 12 and int(masked_crc32c(np.frombuffer(head[:8], np.uint8)[None])[0]) == int.from_bytes(head[8:], "little")
    return shards if is_head else None


def database_tables(file: str) -> Iterator[tuple[str, Table]]:
    """Yields a query for each table of an SQLite file, and its rows. Skips tables of bytes, and those that cannot be read."""
    whole = os.path.abspath(file)
    with suppress(sqlite3.Error), _opened(whole) as opened:  # read as records, it raises the error
        for name in _table_names(opened):
            quoted = '"' + name.replace('"', '""') + '"'
            reads = f"select * from {quoted} order by rowid"  # noqa: S608 - the name is the file's own, and quoted
            try:
                found = opened.execute(reads)
            except sqlite3.OperationalError:
                continue  # a table without row numbers has no order
            names = tuple(column[0] for column in found.description)
            first = found.fetchone()
            if first is None or any(isinstance(value, bytes) for value in first):
                continue
            columns = tuple(zip(first, *found, strict=True))
            about = f"the table {name!r}", whole, os.path.dirname(whole), names, len(names), len(columns[0])
            yield reads, Table.of(*about, columns.__getitem__)
