"""The manifest: the records of the data and the split that each belongs to. The backend reads nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipegen.data.fingerprint import example_id, fingerprint
from pipegen.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from pipegen.data.shards.selected import InShards
    from pipegen.ops.sources.base import Listing
    from pipegen.ops.sources.rows import Rows
    from pipegen.types import ElementType


@dataclass(frozen=True)
class Manifest:
    """A listing and its splits.

    Attributes:
        listing: The records in source order, less what `errors.exclude` lists.
        members: For each split, in the spec's order, the indices of its records, rising.
        source_name: The source's op; it enters the example ids.
        excluded: The keys that `errors.exclude` left out.
        by_place: Whether an example's id is that of its place in the listing, rather than of its key.
    """

    listing: Listing
    members: Mapping[str, tuple[int, ...]]
    source_name: str
    excluded: tuple[str, ...] = ()
    by_place: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits, in the order that the spec names them."""
        return tuple(self.members)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes in label order; empty without labels."""
        return self.listing.class_names

    @property
    def total(self) -> int:
        """Counts the records of the data, in whichever split."""
        return len(self.listing.keys)

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        return len(self.members[split])

    def keys(self, split: str) -> tuple[str, ...]:
        """The relative paths of a split, in source order."""
        return tuple(self.listing.keys[i] for i in self.members[split])

    def files(self, split: str) -> tuple[str, ...]:
        """The absolute paths of a split, in source order; of rows, their numbers as text."""
        return tuple(self.listing.path(i) for i in self.members[split])

    def rows(self, split: str) -> tuple[Rows, tuple[int, ...]] | None:
        """For records that are rows of arrays: those arrays, and the row of each record of a split in source order."""
        if self.listing.rows is None:
            return None
        arrays = self.listing.rows.get(split) or self.listing.rows[""]
        return arrays, tuple(int(key.rpartition("/")[2]) for key in self.keys(split))

    def in_shards(self, split: str) -> InShards | None:
        """For records that lie many in a file: where those of a split are; else `None`."""
        return None

    @property
    def type(self) -> ElementType | None:
        """The type of a record, where the data says more of it than the spec."""
        return next(iter(self.listing.rows.values())).type if self.listing.rows else self.listing.type

    def columns(self, split: str) -> dict[str, np.ndarray[Any, Any]]:
        """Features of which each record holds a few numbers: `(n, ...)` each, of a split in source order."""
        members = list(self.members[split])
        return {name: values[members] for name, values in self.listing.columns.items()}

    def beside(self, split: str) -> dict[str, tuple[str, ...]]:
        """Returns the other files of a split's records, where they have several: by feature, the absolute paths, in source order."""
        return {name: files.of(self.members[split]).paths for name, files in self.listing.beside.items()}

    def labels(self, split: str) -> tuple[int, ...] | None:
        """The class index of each example of a split, or `None` without labels."""
        labels = self.listing.labels
        return None if labels is None else tuple(labels[i] for i in self.members[split])

    def class_weights(self, split: str) -> dict[int, float] | None:
        """Balanced weights of the classes of a split: examples / (classes × examples of the class); `None` without labels."""
        labels = self.labels(split)
        if labels is None:
            return None
        counts = {c: 0 for c in range(len(self.class_names))}
        for label in labels:
            counts[label] += 1
        present = sum(1 for n in counts.values() if n)
        return {c: len(labels) / (present * n) if n else 0.0 for c, n in counts.items()}

    def ids(self, split: str) -> tuple[int, ...]:
        """The 64-bit example ids of a split, in source order."""
        return tuple(self.all_ids[i] for i in self.members[split])

    @cached_property
    def all_ids(self) -> tuple[int, ...]:
        """The 64-bit id of every record.

        Raises:
            InternalError: If two records share an id, which only chance could bring about.
        """
        if self.by_place:
            return tuple(example_id("place", str(i)) for i in range(len(self.listing.keys)))
        ids = tuple(example_id(self.source_name, key) for key in self.listing.keys)
        if len(set(ids)) < len(ids):
            first: dict[int, str] = {}
            for value, key in zip(ids, self.listing.keys, strict=True):
                if first.setdefault(value, key) != key:
                    raise InternalError(f"two records share one 64-bit id by chance; rename one of them: {first[value]!r} and {key!r}")
            raise InternalError("a source listed one file twice")
        return ids

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the data wherever it is mounted: files by relative paths and sizes, rows by what they hold."""
        return fingerprint(self.listing)

    @cached_property
    def split_fingerprint(self) -> str:
        """Identifies the data and, where a table's cells can say which split a row is in, the splits as well."""
        if not self.listing.in_table:
            return self.fingerprint
        return hashlib.sha256(f"{self.fingerprint}\n{dict(self.members)}".encode()).hexdigest()

    def mean_bytes(self, split: str | None = None) -> float:
        """The mean size of a stored record in bytes, of one split or of all; 0 when there is none."""
        sizes = self.listing.sizes if split is None else [self.listing.sizes[i] for i in self.members[split]]
        return sum(sizes) / len(sizes) if sizes else 0.0
