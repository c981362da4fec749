"""Describes the shards of a source: files that hold many records each, at one row of a few columns a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from pipegen.ops.sources.base import Listing


@dataclass(frozen=True, eq=False)
class Shards:
    """Says of each file of a listing, in its order, which records it holds.

    Attributes:
        rows: How many: int64 `(files,)`.
        digests: What identifies the content of each file, as far as the source has looked: a hash, or when it was written.
        labels: Lists the class of every record, int32 `(records,)`, where a source has labels: asked for only where something depends on
            them before records are read.
        read: Reads a feature of records as TensorFlow ops, from its name and the shards and rows, int64 of one shape `(...)` which is `()`
            for what is encoded: `(..., *shape)`.
        by_block: Whether reading one record takes as long as all those around it, so that an order must not jump about.
    """

    rows: np.ndarray[Any, Any]
    digests: tuple[str, ...]
    read: Callable[[str, Any, Any], Any]
    labels: Callable[[], np.ndarray[Any, Any]] | None = None
    by_block: bool = False

    @property
    def total(self) -> int:
        """Counts the records."""
        return int(self.rows.sum())


def shards_of(listing: Listing) -> Shards:
    """What the files of a listing hold, which are known to hold many records each."""
    if listing.shards is None:
        raise InternalError("records were looked for in shards, and each is a file of its own")
    return listing.shards
