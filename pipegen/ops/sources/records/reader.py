"""`RecordReader`, the base of readers of records in files, and `MappedReader`, which maps shards into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any

from pipegen.errors import DataError
from pipegen.mounts import Opened, mounted
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.blocks import Window
from pipegen.ops.sources.listing.reader import Hold, Reader, Together
from pipegen.ops.sources.records.columns import LabelColumn
from pipegen.ops.sources.records.index import Indexed, InShard
from pipegen.ops.sources.shards.paths import written
from pipegen.ops.sources.stores.field_types import JSON_FIELDS


class RecordReader(Reader):
    """A reader of records that hold all of their features, in files that must not change after they were indexed.

    Args:
        source: Their source, if it describes them.
        found: The files.
        labels: The columns of labels by name.
    """

    in_place = True
    numbers: Callable[[str, Ints], Ints | None] | None = None
    """Reads a single number of every record of some files; set by the source."""

    def __init__(self, source: Any, found: Indexed, labels: Mapping[str, LabelColumn]) -> None:
        self.source, self.shards, self.index, self.types, self.label_columns = source, found.shards, found.index, found.types, labels
        self.window = Window()
        """The blocks of records that are unpacked together, if any are."""
        away = [mounted(shard.path) for shard in self.shards]
        self.away = (away[0][0], [key for _, key in filter(None, away)]) if away and away[0] is not None else None
        """The remote mount of the shards and their keys in it, if they are remote."""

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        if self.at_once > 1:
            self.window.reserve(num_bytes, ram_budget)

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        return self.source.damaged_files(self.shards) if self.source is not None else iter(())

    def file_of(self, *place: Ints) -> str:
        return self.shards[int(place[0][0])].path

    def column(self, name: str, files: Ints) -> Ints | None:
        label = self.label_columns.get(name)
        if label is not None:
            return label.records.of(label.column.values, files)
        return self.numbers(name, files) if self.numbers is not None else None

    def check(self) -> None:
        """Raises `DataError` if the size or modification time of a shard changed since it was indexed."""
        if self.away is not None:
            mount, keys = self.away
            try:
                mount.check(keys)
            except OSError as error:
                raise DataError(str(error)) from None
            return
        for shard in self.shards:
            try:
                about = os.stat(shard.path)
                when = written(shard.path, about)
            except OSError as error:
                raise DataError(f"cannot read {shard.path}: {(error.strerror or str(error)).lower()}") from None
            if about.st_size != shard.size:
                raise DataError(f"{shard.path} has {about.st_size:,} bytes, but had {shard.size:,} when it was indexed; {_AGAIN}")
            if when != shard.mtime:
                raise DataError(f"{shard.path} was written to after it was indexed; {_AGAIN}")


_AGAIN = "build the pipeline again"


class MappedReader(RecordReader):
    """A reader in the graph: shards are mapped into memory, and no Python is called. Records have indexed parts, by default those of their
    source, which decodes them."""

    def __init__(self, source: Any, found: Indexed, labels: Mapping[str, LabelColumn], parts: tuple[str, ...] = ()) -> None:
        super().__init__(source, found, labels)
        self.parts, self.verifies = parts or source.parts(), bool(getattr(source, "verify", False))  # an argument of some sources
        self.fetches, self.keeps = self.away is not None, "mapped files" if self.away is None else ""

    def verifying(self) -> MappedReader:
        """Returns a reader that also checks the checksums that reading skips."""
        made = copy(self)
        made.verifies = True
        return made

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        if self.away is not None:
            return "blocks of remote files"
        return JSON_FIELDS * any(self.types[name].path for name in self.types.keys() & features)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.fetched import FetchedRecords
        from pipegen.ops.lowering.stored_readers import MappedRecords

        self.check()
        if self.away is not None:
            return FetchedRecords(*self.away, self, hold)
        files = [(shard.path, shard.size) for shard in self.shards]
        return MappedRecords(files, self, hold)

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        """Returns the parts that features are read from: their own, or that of the whole record."""
        return tuple(dict.fromkeys(name if name in self.parts else "" for name in features))

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        found = []
        for shard, row in zip(*(numbers.tolist() for numbers in place), strict=True):
            offsets, lengths = self.index.of(shard)
            one = InShard(self.shards[shard], offsets[row : row + 1], lengths[row : row + 1])
            (content,) = self.source.contents(feature, one)
            if content is None:
                raise ValueError(f"the record has no `{feature}`")
            found.append(self.source.within(feature, content, self.types))
        return found

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        """Decodes features of one record; see `RecordSource.parse`."""
        return self.source.parse(self, features, parts, places)

    def packed(self, checks: Ints) -> bool:
        """Tells whether parts with these checks are decompressed, or compared with them; see `Members.checks`."""
        return bool(((checks != 0) if self.verifies else (checks > 0)).any())


def stretches(path: str, offsets: Iterable[int], lengths: Iterable[int]) -> Iterator[bytes]:
    """Reads stretches of a file; `OSError` if it ends within one."""
    with Opened(path) as stream:
        for offset, length in zip(offsets, lengths, strict=True):
            content = stream.pread(length, offset)
            if len(content) < length:
                raise OSError(f"{path} ends within the record")
            yield content
