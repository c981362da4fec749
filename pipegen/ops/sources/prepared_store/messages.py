"""A prepared store of ArrayRecord files, whose library finds records by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.ops.sources.prepared_store.layout import PREPARE_AGAIN, RECORDS, shard_files
from pipegen.ops.sources.prepared_store.rows import StoredRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.reader import Hold, Together
    from pipegen.ops.sources.prepared_store.layout import StoreAbout
    from pipegen.ops.sources.stores.base import Store

ENCODED = "/encoded"
"""Suffix of a feature's name that makes the key of its encoded file in a `tf.Example`."""


class StoredMessages(StoredRows):
    """A reader of encoded files in `tf.Example` records, in one call into Python for all features."""

    def __init__(self, root: Path, about: StoreAbout) -> None:
        super().__init__(root, about)
        self._files = [str(own[RECORDS]) for own in shard_files(root, about.shards, about.pixels, about.suffix)]

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        from pipegen.ops.lowering.stored_readers import called

        return called(self._take, dict.fromkeys(features, ("string", ())))

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "records of ArrayRecord files"

    def examine(self) -> None:
        """Opens the first file; `PG440` without the library, `PG570` if it is damaged."""
        from pipegen.ops.sources.stores.field_types import MissingLibrary, StoreError

        try:
            self._store(0)
        except MissingLibrary as error:
            raise OpError("PG440", f"ArrayRecord files need {error}", help=error.help) from None
        except StoreError as error:
            message = f"{self._files[0]!r} cannot be read: {error}"
            raise OpError("PG570", message, field="path", help=PREPARE_AGAIN) from None

    def _store(self, shard: int) -> Store:
        from pipegen.ops.sources.stores.array_records import ArrayRecords
        from pipegen.ops.sources.stores.handles import opened

        return opened(ArrayRecords, self._files[shard])

    def _take(self, names: Sequence[str], rows: Any) -> list[Any]:
        """Reads features of some rows: arrays `(n,)` of byte strings; `StoreError` if one is unreadable."""
        import numpy as np

        from pipegen.ops.sources.records.tf_example import read_key
        from pipegen.ops.sources.stores.base import byte_strings

        messages: Any = np.empty(len(rows), object)
        shards = rows // self.about.rows
        for shard in np.unique(shards):
            here = np.flatnonzero(shards == shard)
            messages[here] = self._store(int(shard)).read(("",), rows[here] % self.about.rows)[0]
        found = []
        for name in names:
            values = [read_key(message, f"{name}{ENCODED}".encode()) for message in messages]
            found.append(byte_strings([value.items[0] if value is not None and value.items else b"" for value in values]))  # type: ignore[misc]
        return found
