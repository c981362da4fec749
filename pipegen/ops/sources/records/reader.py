"""Reads records: what readers of every format have in common, and the reader of shards that are mapped into memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.mounts import Opened, mounted
from pipegen.ops.sources.listing.base import main_label
from pipegen.ops.sources.listing.reader import Reader
from pipegen.ops.sources.records.paths import written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.paths import Found


class RecordReader(Reader):
    """Reads records that hold all of their features.

    Args:
        shards: The files, which must stay what they were when they were indexed.
        labels: The column of each label.
    """

    in_place = True

    def __init__(self, shards: Sequence[Found], labels: Mapping[str, LabelColumn]) -> None:
        self.shards, self.label_columns = shards, labels
        found = [mounted(shard.path) for shard in shards]
        self.away = (found[0][0], [key for _, key in filter(None, found)]) if found and found[0] is not None else None
        """What reads the shards, and their keys there, where they lie on another machine."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        """Returns what reads one feature by itself."""
        from pipegen.ops.lowering.mapped import alone

        return alone(self.open_together((feature,), ram_budget, hold), feature)

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        """Returns what reads several features of records in one go."""
        raise NotImplementedError

    def labels(self, files: Ints) -> Ints | None:
        """Lists the class of every record of shards."""
        main = main_label(self.label_columns)
        return None if main is None else self.label_columns[main].of(files)

    def check(self) -> None:
        """Compares the size and the time of writing of each shard with those that were indexed.

        Raises:
            DataError: When a shard has changed, or is gone.
        """
        for shard in self.shards if self.away is None else ():
            try:
                about = os.stat(shard.path)
                when = written(shard.path, about)
            except OSError as error:
                raise DataError(f"cannot read {shard.path}: {(error.strerror or str(error)).lower()}") from None
            if about.st_size != shard.size:
                raise DataError(f"{shard.path} has {about.st_size:,} bytes and had {shard.size:,} when it was indexed; {_AGAIN}")
            if when != shard.mtime:
                raise DataError(f"{shard.path} was written to after it was indexed; {_AGAIN}")
        if self.away is not None:
            mount, keys = self.away
            try:
                mount.check(keys)
            except OSError as error:
                raise DataError(str(error)) from None


BLOCKS = "blocks of files of other machines"
"""What Python is called for where files are fetched as they are read, in words."""
_AGAIN = "build the pipeline again"


class MappedReader(RecordReader):
    """Reads records where they lie, in the graph: shards are mapped into memory, and no Python is called.

    A format derives from it and says in `parse` what becomes of the bytes of a record.

    Args:
        shards: The files.
        index: Where the parts of each record are.
        parts: Their names.
        labels: The column of each label.
    """

    def __init__(self, shards: Sequence[Found], index: RecordIndex, parts: Sequence[str], labels: Mapping[str, LabelColumn]) -> None:
        super().__init__(shards, labels)
        self.index, self.parts = index, tuple(parts)
        self.fetches = self.away is not None

    def keeps(self) -> tuple[str, bool]:
        return ("mapped files", False) if self.away is None else ("", False)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        """Says what is fetched."""
        return BLOCKS if self.away is not None else ""

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.fetched import FetchedRecords
        from pipegen.ops.lowering.mapped import MappedRecords

        self.check()
        if self.away is not None:
            return FetchedRecords(*self.away, self.index, self.parts, hold, self.parts_of, self.parse)
        files = [(shard.path, shard.size) for shard in self.shards]
        return MappedRecords(files, self.index, self.parts, hold, self.parts_of, self.parse)

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        """Returns the parts that features are read from; by default all."""
        return self.parts

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        """Return what lies there of each record."""
        shards, rows = place
        (part,) = self.parts_of((feature,))
        at = self.parts.index(part)
        found = []
        for shard, number in zip(shards.tolist(), (self.index.first[shards] + rows).tolist(), strict=True):
            offset, length = int(self.index.offsets[number, at]), int(self.index.lengths[number, at])
            if length < 0:
                raise ValueError(f"the record has no `{feature}`")
            with Opened(self.shards[shard].path) as stream:
                content = stream.pread(length, offset)
            if len(content) < length:
                raise OSError(f"{self.shards[shard].path} ends within the record")
            found.append(self.unpacked(feature, content, number))
        return found

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        """Returns a feature out of the bytes of the part of a record that holds it; `number` is that of the record in the index."""
        return content

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        """Returns features of one record, as TensorFlow ops: encoded ones as a string scalar, a label as an int64 class index, anything
        else as float32 of its shape.

        Args:
            features: Those that are wanted.
            parts: The parts that they are read from, string scalars.
            places: The offset and the length of every part, int64 scalars.
        """
        raise NotImplementedError
