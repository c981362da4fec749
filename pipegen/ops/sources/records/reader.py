"""`RecordReader`, the base of readers of records in files, and `MappedReader`, which maps shards into memory."""

from __future__ import annotations

import os
from copy import copy
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.mounts import Opened, mounted
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.sources.shards.paths import written
from pipegen.ops.sources.stores.field_types import JSON_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.fields.strings import Ints
    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.records.index import Indexed
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.stores.field_types import FieldType


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
        self.source, self.shards, self.index, self.label_columns = source, found.shards, found.index, labels
        self.types: Mapping[str, FieldType] = source.types(found) if source is not None else {}
        """The types of the features that are read with each record."""
        away = [mounted(shard.path) for shard in self.shards]
        self.away = (away[0][0], [key for _, key in filter(None, away)]) if away and away[0] is not None else None
        """The remote mount of the shards and their keys in it, if they are remote."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.stored_readers import alone

        return alone(self.open_together((feature,), ram_budget, hold), feature)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        raise NotImplementedError

    def file_of(self, *place: Ints) -> str:
        return self.shards[int(place[0][0])].path

    def column(self, name: str, files: Ints) -> Ints | None:
        label = self.label_columns.get(name)
        if label is not None:
            return label.of(files)
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
    source, whose bytes subclasses decode in `parse`."""

    def __init__(self, source: Any, found: Indexed, labels: Mapping[str, LabelColumn], parts: tuple[str, ...] = ()) -> None:
        super().__init__(source, found, labels)
        self.parts, self.verifies = parts or source.parts(), bool(getattr(source, "verify", False))  # an argument of some sources
        self.fetches = self.away is not None

    def verifying(self) -> MappedReader:
        """Returns a reader that also checks the checksums that reading skips."""
        made = copy(self)
        made.verifies = True
        return made

    def keeps(self) -> tuple[str, bool]:
        return ("mapped files", False) if self.away is None else ("", False)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        if self.away is not None:
            return "blocks of remote files"
        return JSON_FIELDS * any(self.types[name].path for name in self.types.keys() & features)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.fetched import FetchedRecords
        from pipegen.ops.lowering.stored_readers import MappedRecords

        self.check()
        if self.away is not None:
            return FetchedRecords(*self.away, self.index, self.parts, hold, self.parts_of, self.parse)
        files = [(shard.path, shard.size) for shard in self.shards]
        return MappedRecords(files, self.index, self.parts, hold, self.parts_of, self.parse)

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        """Returns the parts that features are read from; by default all."""
        return self.parts

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        shards, rows = place
        (part,) = self.parts_of((feature,))
        at = self.parts.index(part)
        found = []
        for shard, number in zip(shards.tolist(), (self.index.first[shards] + rows).tolist(), strict=True):
            offset, length = int(self.index.offsets[number, at]), int(self.index.lengths[number, at])
            if length < 0:
                raise ValueError(f"the record has no `{feature}`")
            (content,) = stretches(self.shards[shard].path, [offset], [length])
            found.append(self.unpacked(feature, content, number))
        return found

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        """Extracts a feature from the part of a record that holds it; `number` is the record's number in the index."""
        return content

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        """Decodes features of one record with TensorFlow ops: encoded ones as a string scalar, a label as an int64 class index, others as
        float32 of their shape.

        Args:
            features: The requested features.
            parts: The parts that they are read from, string scalars.
            places: Offset and length of every part, int64 scalars.
        """
        raise NotImplementedError


def stretches(path: str, offsets: Iterable[int], lengths: Iterable[int]) -> Iterator[bytes]:
    """Reads stretches of a file; `OSError` if it ends within one."""
    with Opened(path) as stream:
        for offset, length in zip(offsets, lengths, strict=True):
            content = stream.pread(length, offset)
            if len(content) < length:
                raise OSError(f"{path} ends within the record")
            yield content
