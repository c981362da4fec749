"""`prepared`: records that `pipegen prepare` processed and stored; the store's description, shards, table of records, and readers.

OUT/store.json              what is stored, from which spec, and the checksum of every file
OUT/records/NAME.npy        a column of all records: ids, splits, labels, sizes, numbers; for items, such as boxes, those of all records
OUT/shards/NAME-00000.rows  the pixels of a feature, a row of bytes per record
OUT/shards/NAME-00000.files encoded files, one after another; a sound is a WAV
OUT/SPLIT-00000-of-00004.tfrecord  whole records for other programs, in place of both; also `.tar` and `.array_record`
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import mmap
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import Field, model_validator

from pipegen.errors import OpError, PartError
from pipegen.files import write_whole
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.arguments.geometry import BoxRules
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.arguments.timeline import EventRules
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.kinds.base import InstanceNumber, Levels, kind_of, kinds
from pipegen.ops.kinds.mask import with_numbers
from pipegen.ops.model import FeatureName, Model
from pipegen.ops.sources.features.feature import Beside, HeldKindName, KeepsItems, NamesPoints, OfSound, VectorMaps
from pipegen.ops.sources.listing.base import Listing, Location, Parts, always
from pipegen.ops.sources.listing.blocks import TakingReader, by_block
from pipegen.ops.sources.listing.reader import Hold, Read, Reader
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import DTYPE_BYTES, INTEGER_RANGES, ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from pipegen.ops.sources.stores.base import Store

FORMAT = 1
ABOUT = "store.json"
RECORDS = "records"
SHARDS = "shards"
ARRAY_RECORD = ".array_record"  # file ending of shards whose records only a library finds
PAGE = 4096  # bytes of a page: all shards of a split but the last are multiples of it, so that they can be mapped one after another
PREPARE_AGAIN = "delete `store.json` and prepare again; complete files are kept"
_LARGEST, _BLOCK = 1 << 26, 1 << 22


@dataclass(frozen=True)
class Pixels:
    """How the pixels of a feature are stored."""

    form: Literal["rows", "files", "records"]
    """`rows`: bytes of a canvas, with the image in its upper left corner; `files`: encoded files; `records`: the same in records."""
    dtype: str = "uint8"  # the dtype of a value
    canvas: tuple[int, int, int] | tuple[()] = ()  # height, width and channels of the canvas; empty for files

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return DTYPE_BYTES[self.dtype] * math.prod(self.canvas) if self.canvas else 0


@dataclass(frozen=True)
class Shard:
    """One shard: consecutive records of one split."""

    split: str  # the split
    first: int  # number of its first record in the split
    count: int  # number of stored records
    left_out: tuple[int, ...] = ()  # numbers of damaged records that were left out
    sums: Mapping[str, int] = field(default_factory=dict)  # CRC-32 of its file by feature; of a file of whole records under `RECORDS`
    bytes: Mapping[str, int] = field(default_factory=dict)  # size of its file, likewise


@dataclass(frozen=True)
class StoreAbout:
    """The description of a store."""

    key: str  # identifies everything that determines its bytes
    of: str  # hash of the spec that it was prepared from
    steps: str  # description of the steps done in it
    changes: tuple[str, ...]  # description of differences from that spec; empty for a store that is equal bit for bit
    splits: Mapping[str, int]  # number of records of each split
    classes: Mapping[str, tuple[str, ...]]  # class names of each label
    label: str | None  # the label that gives the data its classes
    pixels: Mapping[str, Pixels]  # how the pixels of each feature are stored
    columns: Mapping[str, int]  # CRC-32 of each column of the records
    rows: int  # rows of a shard, except for the last of a split
    shards: tuple[Shard, ...]  # the shards
    suffix: str = ""  # ending of files of whole records; empty if each feature has files of its own

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.splits.values())


def shard_files(root: Path, shards: Sequence[Shard], pixels: Mapping[str, Pixels], suffix: str) -> list[dict[str, Path]]:
    """Returns the files of each shard: by feature, or whole records under `RECORDS`, named as other programs expect."""
    if not suffix:
        return [{feature: root / SHARDS / f"{feature}-{i:05d}.{own.form}" for feature, own in pixels.items()} for i in range(len(shards))]
    counts, found = Counter(shard.split for shard in shards), []
    seen: Counter[str] = Counter()
    for shard in shards:
        found.append({RECORDS: root / f"{shard.split}-{seen[shard.split]:05d}-of-{counts[shard.split]:05d}{suffix}"})
        seen[shard.split] += 1
    return found


def column_file(root: Path, name: str) -> Path:
    """Returns the file of a column of the records."""
    return root / RECORDS / f"{name}.npy"


def write_about(root: Path, about: StoreAbout) -> None:
    """Writes the description of a store atomically, with its checksum."""
    values = asdict(about)
    write_whole(root / ABOUT, json.dumps({"format": FORMAT, "sum": _sum(values), **values}, indent=1).encode())


def _sum(values: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(values, sort_keys=True).encode())


def read_about(root: Path) -> StoreAbout:
    """Reads the description of a store; `PG401` without one, `PG570` for an unfinished or invalid one."""
    file = root / ABOUT
    try:
        with open(file, "rb") as stream:
            text = stream.read(_LARGEST)
    except OSError:
        unfinished = (root / SHARDS).is_dir()
        message = f"{str(root)!r} holds an unfinished store" if unfinished else f"{str(root)!r} holds no prepared store"
        help_ = "run the same `pipegen prepare` again to continue" if unfinished else "write one with `pipegen prepare`"
        raise OpError("PG570" if unfinished else "PG401", message, field="path", help=help_) from None
    try:
        values = json.loads(text)
        if values.pop("format") != FORMAT:
            raise OpError("PG570", f"{str(file)!r} has another version", field="path", help="prepare the data again")
        if values.pop("sum") != _sum(values):
            raise ValueError("its checksum differs")
        values["pixels"] = {name: Pixels(**{**own, "canvas": tuple(own["canvas"])}) for name, own in values["pixels"].items()}
        values["shards"] = tuple(Shard(**own) for own in values["shards"])
        values["classes"] = {name: tuple(names) for name, names in values["classes"].items()}
        return StoreAbout(**{**values, "changes": tuple(values["changes"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OpError("PG570", f"{str(file)!r} is damaged", field="path", help="prepare the data again") from None


def check_files(root: Path, about: StoreAbout) -> None:
    """Raises `PG570` if a shard is missing or has another size: truncating a mapped file would end the process."""
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        for held, file in files.items():
            try:
                size = os.stat(file).st_size
            except OSError:
                size = -1
            if size != shard.bytes[held]:
                said = "is missing" if size < 0 else f"has {size:,} bytes, but had {shard.bytes[held]:,} when it was written"
                raise OpError("PG570", f"{str(file)!r} {said}", field="path", help=PREPARE_AGAIN)


def read_column(root: Path, name: str) -> Any:
    """Maps a column of the records; `PG406` if it is unreadable."""
    from pipegen.ops.sources.listing.npz import read_array

    return read_array(str(column_file(root, name)), "path")


def checksum(file: Path) -> int:
    """Computes the CRC-32 of a file."""
    found = 0
    with open(file, "rb") as stream:
        while block := stream.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def check_columns(root: Path, about: StoreAbout) -> None:
    """Raises `PG570` if columns of the records are damaged: they have places and labels, and nothing else would notice."""
    try:
        for file, problem in _damaged(_column_sums(root, about)):
            raise OpError("PG570", f"{str(file)!r} is damaged: {problem}", field="path", help=PREPARE_AGAIN)
    except OSError as error:
        raise OpError("PG570", f"{error.filename!r} cannot be read: {error.strerror}", field="path", help=PREPARE_AGAIN) from None


def damaged_files(root: Path, about: StoreAbout) -> Iterator[tuple[Path, str]]:
    """Reads every file of a store, and yields the damaged ones with their problem; `OSError` if one is unreadable."""
    yield from _damaged(_column_sums(root, about))
    for shard, files in zip(about.shards, shard_files(root, about.shards, about.pixels, about.suffix), strict=True):
        yield from _damaged({file: shard.sums[held] for held, file in files.items()})


def _column_sums(root: Path, about: StoreAbout) -> dict[Path, int]:
    return {column_file(root, name): found for name, found in about.columns.items()}


def _damaged(wanted: Mapping[Path, int]) -> Iterator[tuple[Path, str]]:
    for file, sum_ in wanted.items():
        if not file.is_file():
            yield file, "it is missing"
        elif (found := checksum(file)) != sum_:
            yield file, f"its CRC-32 is {found:08x}, but was {sum_:08x} when it was written"


@dataclass(frozen=True)
class StoredShards:
    """The files of a feature's shards, read as one array of bytes."""

    files: tuple[str, ...]  # one per shard, in order
    sizes: tuple[int, ...]  # the bytes of each
    starts: tuple[int, ...]  # the start of each in the array: multiples of a page
    row: int = 0  # bytes of a row; 0 for contents of any length
    rows: int = 0  # rows of a full shard

    @property
    def total(self) -> int:
        """The bytes from the start of the first to the end of the last."""
        return self.starts[-1] + self.sizes[-1]

    def mapped(self) -> Any:
        """Maps them as one array of bytes, padded to words of 64 bits; nothing is read before it is needed. Reserves a range of addresses
        first, and maps the files into it. Uncovered bytes are zeros."""
        held = mmap.mmap(-1, -(-self.total // PAGE) * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
        start = ctypes.addressof(ctypes.c_char.from_buffer(held))
        system = ctypes.CDLL(None, use_errno=True)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        for file, size, at in zip(self.files, self.sizes, self.starts, strict=True):
            number = os.open(file, os.O_RDONLY)
            try:
                flags = mmap.MAP_PRIVATE | _FIXED
                if size and system.mmap(start + at, size, mmap.PROT_READ, flags, number, 0) != start + at:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), file)
            finally:
                os.close(number)
        return np.frombuffer(held, np.uint8)[: -(-self.total // 8) * 8]


_FIXED = 0x10  # `MAP_FIXED`, which Python's `mmap` lacks: use the given address


def places(about: StoreAbout) -> Ints:
    """Returns the row of each record; a shard begins at a multiple of the rows of a full one, int64 `(n,)`."""
    parts: list[Ints] = [np.arange(shard.count) + number * about.rows for number, shard in enumerate(about.shards)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class StoredRows(Reader):
    """A reader of the pixels of a prepared store."""

    in_place = True

    def __init__(self, root: Path, about: StoreAbout) -> None:
        self.root, self.about, self.checksums = root, about, "those of each file of the store"
        self._open: dict[str, Read] = {}
        self._mapped: dict[str, tuple[int, Any, Any]] = {}
        self._columns: dict[str, Any] = {}

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import StoredFiles, StoredPixels

        if feature not in self._open:
            pixels, held = self.about.pixels[feature], (hold(self._shards(feature)), hold(self._by_row(feature)))
            made: Read = StoredPixels(*held, pixels.canvas, pixels.dtype) if len(pixels.canvas) == 3 else StoredFiles(*held)
            self._open.setdefault(feature, made)
        return self._open[feature]

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        (rows,) = place
        if feature not in self.about.pixels:  # a column, such as windows of series
            if feature not in self._columns:
                self._columns[feature] = self._spread(feature)
            return list(self._columns[feature][rows])
        pixels = self.about.pixels[feature]
        if feature not in self._mapped:
            shards = self._shards(feature)
            self._mapped[feature] = shards.row, shards.mapped(), self._by_row(feature)
        row, held, about = self._mapped[feature]
        if not row:
            return [held[at : at + length].tobytes() for at, length in about[rows].tolist()]
        canvases = [held[row * one : row * (one + 1)].view(np.dtype(pixels.dtype)).reshape(pixels.canvas) for one in rows.tolist()]
        return [canvas[:height, :width] for canvas, (height, width) in zip(canvases, about[rows].tolist(), strict=True)]

    def lengths(self, feature: str) -> Ints | None:
        name = f"@length.{feature}"
        found: Ints | None = self._spread(name) if name in self.about.columns else None
        return found

    def _by_row(self, feature: str) -> Any:
        """Returns the size of each canvas, or the place of each file."""
        return self._spread(f"@{'size' if len(self.about.pixels[feature].canvas) == 3 else 'place'}.{feature}")

    def _spread(self, name: str) -> Any:
        """Returns a column of the records by row; rows without records are zeros."""
        at, column = places(self.about), read_column(self.root, name)
        spread = np.zeros((int(at[-1]) + 1 if len(at) else 0, *column.shape[1:]), column.dtype)
        spread[at] = column
        return spread

    def _shards(self, feature: str) -> StoredShards:
        about, pixels = self.about, self.about.pixels[feature]
        held = RECORDS if pixels.form == "records" else feature
        files = tuple(str(own[held]) for own in shard_files(self.root, about.shards, about.pixels, about.suffix))
        sizes = tuple(shard.bytes[held] for shard in about.shards)
        if pixels.form == "rows":
            starts = tuple(i * about.rows * pixels.row for i in range(len(files)))
            return StoredShards(files, sizes, starts, pixels.row, about.rows)
        ends = accumulate((-(-size // PAGE) * PAGE for size in sizes), initial=0)
        return StoredShards(files, sizes, tuple(ends)[:-1])

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        for file, problem in damaged_files(self.root, self.about):
            yield str(file), f"{problem}; delete it and `store.json`, and prepare again"

    def digest(self, *, whole: bool = False) -> str:
        sums = [[shard.split, shard.count, dict(shard.sums)] for shard in self.about.shards]
        text = json.dumps([sums, dict(self.about.columns)], sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


ENCODED = "/encoded"  # suffix of a feature's name that makes the key of its encoded file in a `tf.Example`


class StoredMessages(TakingReader, StoredRows):
    """A reader of encoded files in `tf.Example` records, in one call into Python for all features."""

    def __init__(self, root: Path, about: StoreAbout) -> None:
        super().__init__(root, about)
        self._files = [str(own[RECORDS]) for own in shard_files(root, about.shards, about.pixels, about.suffix)]

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "records of ArrayRecord files"

    def examine(self) -> None:
        """Opens the first file; `PG440` without the library, `PG570` if it is damaged."""
        from pipegen.ops.sources.stores.base import translated

        with translated("ArrayRecord", repr(self._files[0]), "path", "PG570", PREPARE_AGAIN):
            self._store(0)

    def _store(self, shard: int) -> Store:
        from pipegen.ops.sources.array_record import ArrayRecords
        from pipegen.ops.sources.stores.base import opened

        return opened(ArrayRecords, self._files[shard])

    def take_each(self, features: Sequence[str], *place: Any) -> list[Any]:
        """Reads features of some rows: arrays `(n,)` of byte strings; `StoreError` if one is unreadable."""
        from pipegen.ops.sources.records.messages import read_key
        from pipegen.ops.sources.stores.base import byte_strings

        (rows,), each = place, self.about.rows
        (messages,) = by_block(rows // each, lambda shard, here: self._store(shard).read(("",), rows[here] % each))
        found = []
        for name in features:
            values = [read_key(message, f"{name}{ENCODED}") for message in messages]
            found.append(byte_strings([value.items[0] if value is not None and value.items else b"" for value in values]))  # type: ignore[misc]
        return found


if TYPE_CHECKING:
    StoredKindName: TypeAlias = str
else:  # windows of series also have values of time steps
    _STORED = (*get_args(HeldKindName), *(kind.along for kind in kinds() if kind.along))
    StoredKindName = Literal[_STORED]


class StoredFeature(VectorMaps, KeepsItems, NamesPoints, OfSound, Beside):
    """One feature of a store, as written by `pipegen prepare`."""

    kind: StoredKindName
    """`image`, `mask`, `audio`, `label`, `tensor`, `weight`, `boxes`, `keypoints` or `events`."""
    dtype: Literal["uint8", "uint16", "int32", "int64", "float32", "string"] = "uint8"
    """The dtype of a value; `string` for encoded files."""
    shape: tuple[int | None, ...] = ()
    """Shape of an example, or of the content of its encoded file. `null` for a side that varies between examples, and for the number of
    items."""
    range: tuple[Number, Number] | None = None
    """Lowest and highest value; by default, for pixels of integers, the range of their dtype."""
    classes: Annotated[int, Field(ge=1)] | None = None
    """For a label or a mask: the number of classes."""
    canvas: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    """For pixels: height and width of the canvas that holds each example."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """For encoded images and sounds: their channels."""
    bits: Literal[8, 16] | None = None
    """For encoded images: the bits of a value; by default 8."""
    places: Annotated[int, Field(ge=1)] | None = None
    """For boxes, keypoints and events: the number of places per example in a batch, the same as without the store."""
    absent: tuple[SplitName, ...] = ()
    """Splits whose records do not have it."""
    follows: Literal["observed", "times", "classes"] | None = None
    """For what lies on the time steps of a series, and follows when they move: what it tells of them."""
    missing: tuple[str, ...] = ()
    """For a series: the columns of which values are missing, and are NaN."""

    @property
    def in_shards(self) -> bool:
        """Whether the shards have it, as pixels or files; columns have the others."""
        return kind_of(self).pixels is not None or kind_of(self).packed

    @classmethod
    def reject_misplaced(cls, given: Mapping[str, Any]) -> None:
        """Accepts what `prepare` wrote: every feature has a dtype, a shape and so on."""

    def box_rules(self) -> BoxRules:
        """Returns the rules for keeping boxes; stored boxes already lie on their image."""
        return self.rules(None)

    def event_rules(self) -> EventRules:
        """Returns the rules for keeping events; stored events already lie in their sound."""
        return self.rules_of_events(None)

    def type(self) -> FeatureType:
        kind = kind_of(self)
        if kind.ragged:
            return kind.array_types(self)[0].with_(dtype=self.dtype, shape=self.shape, most=self.places or 0)
        usual = INTEGER_RANGES.get(self.dtype) if kind.has(Levels) else None
        interval = Interval(*self.range) if self.range is not None else usual
        found = FeatureType(kind.name, self.dtype, self.shape, interval, self.of, self.classes, ignore=self.ignore)
        found = found.with_(instances=self.home) if kind.has(InstanceNumber) else found
        found = found.with_(details=kind.details_of(self), missing=self.missing)
        if not found.encoded:
            return found
        height, width = (*self.shape, None, None)[:2]
        size = (height, width) if height is not None and width is not None else None
        return found.with_(shape=(), file_channels=self.channels, file_bits=self.bits, file_size=size)


class Changes(Model):
    """Differences between a store and the spec that it was prepared from."""

    shorter_side: Annotated[int, Field(ge=1)] | None = None
    """Images with a longer shorter side were shrunk to it by `resize` with `antialias`."""
    jpeg: Annotated[int, Field(ge=1, le=100)] | None = None
    """Images were encoded again as JPEG of this quality."""


class Prepared(SelectingSource):
    """Records stored by `pipegen prepare`, which also writes this section. Do not edit it by hand.

    Examples keep their ids, and thus their draws, and their splits. Pixels are mapped into memory and read without Python; a random crop
    reads whole batches.
    """

    op: ClassVar[str] = "prepared"

    path: Annotated[str, Field(min_length=1)]
    """Folder of the store, relative to the spec's file."""
    of: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Hash of the spec that the store was prepared from."""
    splits: Annotated[tuple[SplitName, ...], Field(min_length=1)]
    """Splits of the store."""
    features: Annotated[dict[FeatureName, StoredFeature], Field(min_length=1)]
    """Features of a record."""
    changes: Changes = Changes()
    """Differences from that spec, if any."""

    @model_validator(mode="after")
    def _beside_items(self) -> Prepared:
        for name, feature in self.features.items():
            home = self.features.get(feature.home or "")
            if feature.home is not None and (home is None or not kind_of(home).ragged or home.home is not None):
                raise PartError(f"`{name}` is `with: {feature.home}`, which has no items", "features", name, "with")
        return self

    def infer(self) -> ElementType:
        return with_numbers(ElementType(tuple((name, feature.type()) for name, feature in self.features.items())))

    def decoders(self) -> Mapping[str, Transform]:
        found = {name: kind_of(feature).decoder(feature) for name, feature in self.features.items() if feature.dtype == "string"}
        return {name: decoder for name, decoder in found.items() if decoder is not None}

    described = always({})  # the spec that it was prepared from describes the features

    def split_names(self) -> tuple[str, ...]:
        return self.splits

    def lacks(self, split: str) -> frozenset[str]:
        return frozenset(name for name, feature in self.features.items() if split in feature.absent)

    def remarks(self) -> tuple[str, ...]:
        side, quality = self.changes.shorter_side, self.changes.jpeg
        found = [] if side is None else [f"images were shrunk to a shorter side of {side} pixels before they were stored"]
        return (*found, *([] if quality is None else [f"images were encoded again as JPEG of quality {quality}"]))

    def canvases(self) -> Mapping[str, tuple[int, int]]:
        return {name: feature.canvas for name, feature in self.features.items() if feature.canvas is not None}

    has_folders = always(False)  # folders have no meaning here

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        root = Path(os.path.abspath(os.path.join(base, os.path.expanduser(self.path))))
        about = read_about(root)
        check_files(root, about)
        self._fits(root, about)
        check_columns(root, about)
        if progress is not None:
            progress(about.total)
        return self.selected(self._listed(root, about), base)

    def _fits(self, root: Path, about: StoreAbout) -> None:
        """Raises `PG571` if the arguments describe another store."""
        help_ = "use the spec that `pipegen prepare` wrote beside the store"
        if about.of != self.of:
            message = f"{str(root)!r} was prepared from another spec: {about.of[:12]}…; `of` is {self.of[:12]}…"
            raise OpError("PG571", message, field="of", help=help_)
        if tuple(about.splits) != self.splits:
            message = f"the store has the splits {', '.join(about.splits)}; `splits` lists {', '.join(self.splits)}"
            raise OpError("PG571", message, field="splits", help=help_)
        stored = {name for name in self.features if name in about.pixels}
        wanted = {name for name, feature in self.features.items() if feature.in_shards}
        types = self.infer()
        columns = {name for name in types if name not in wanted}
        columns |= {f"@count.{name}" for name, t in types.items() if kind_of(t).ragged and t.beside is None}
        canvases = {name: own.canvas[:2] for name, own in about.pixels.items() if own.canvas}
        if stored != wanted or not columns <= set(about.columns) or canvases != self.canvases():
            raise OpError("PG571", "`features` does not match the features of the store", field="features", help=help_)

    def _listed(self, root: Path, about: StoreAbout) -> Listing:
        reader = StoredRows(root, about)
        if about.suffix == ARRAY_RECORD and about.shards:
            reader = StoredMessages(root, about)
            reader.examine()
        type_ = self.infer()
        columns = {
            name: _column(root, about, name, t)
            for name, t in type_.items()
            if name not in self.features or not self.features[name].in_shards
        }
        keys = Strings(*(np.array(read_column(root, name)) for name in ("@keys", "@bounds")))
        codes: Ints = np.repeat(np.arange(len(about.splits), dtype=np.int16), list(about.splits.values()))
        return Listing(
            root=str(root),
            location=Location(keys, keys, np.array(read_column(root, "@bytes")), places(about), "row"),
            parts=Parts(tuple(about.splits), codes),
            readers={"": reader},
            in_table=True,
            columns=columns,
            classes={name: classes for name, classes in about.classes.items() if name in columns},
            label=about.label,
            ids=np.array(read_column(root, "@ids")),
            type=type_,
        )


def _column(root: Path, about: StoreAbout, name: str, t: FeatureType) -> Any:
    """Reads the stored values of a feature without pixels: a row per record, or all items with their counts (`PG570` if they differ)."""
    values = np.array(read_column(root, name))
    if not kind_of(t).ragged:
        return values
    lengths = np.array(read_column(root, f"@count.{t.beside or name}"))
    if len(lengths) != about.total or int(lengths.sum()) != len(values):
        message = f"the store in {str(root)!r} has {len(values):,} items of `{name}`; its records count {int(lengths.sum()):,}"
        raise OpError("PG570", message, field="path", help=PREPARE_AGAIN)
    return Ragged(values, lengths)
