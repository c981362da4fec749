"""`array_record`: ArrayRecord files of `tf.Example` messages, which their library finds by number."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipegen.ops.sources.prepared_store.layout import ARRAY_RECORD, RECORDS
from pipegen.ops.sources.stores.base import MissingLibrary
from pipegen.preparing.formats.base import ShardFormat
from pipegen.preparing.formats.messages import message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipegen.preparing.formats.base import Add, Record

_OPTIONS = "group_size:1,uncompressed"
"""A record is found without its neighbours; encoded images do not become smaller."""
_AROUND = 128
"""About so many bytes the format adds to a record: the header of its chunk, and its place in the index."""


class Format(ShardFormat):
    """Writes messages by the library of the same name."""

    suffix: ClassVar[str] = ARRAY_RECORD

    @classmethod
    def check(cls) -> None:
        try:
            import array_record.python.array_record_module  # noqa: F401
        except ImportError as error:
            raise MissingLibrary("`array_record`", "array-record", error) from None

    @contextmanager
    def writer(self, files: Mapping[str, Path]) -> Iterator[Add]:
        """Open a file. Of images in it only the lengths are known, as they are not read by their places."""
        from array_record.python.array_record_module import ArrayRecordWriter

        try:
            stream = ArrayRecordWriter(str(files[RECORDS]), _OPTIONS)

            def add(record: Record) -> dict[str, tuple[int, int]]:
                stream.write(message_of(record, self.described))
                return {f"@place.{name}": (0, len(record.values[name])) for name in self.described.pixels}

            yield add
            stream.close()
        except RuntimeError as error:  # which the library raises for whatever the system refuses
            raise OSError(str(error).splitlines()[0]) from None

    def num_bytes(self, record: Record) -> int:
        return len(message_of(record, self.described)) + _AROUND

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        from pipegen.ops.sources.stores.array_records import ArrayRecords

        stored = ArrayRecords(str(files[RECORDS]))
        try:
            return all(
                row < stored.rows and stored.read(("",), np.array([row]))[0][0] == message_of(record, self.described)
                for row, record in enumerate(records)
            )
        finally:
            stored.close()
