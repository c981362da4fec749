"""The manifest of a source whose files hold many records: a row for each file, and for a record at most a bit a split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.shards import InShards, Names, Selected, assign_shards, bitmap_of, mix64, shard_bases, with_any
from pipegen.kept import SPLITS, kept_folder
from pipegen.ops.sources.listing.base import listed_labels, shards_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.models import PipelineSpec


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ShardedManifest(Manifest):
    """A listing of shards and its splits: `members` says for each, in the spec's order, which records of which shards it has."""

    members: Mapping[str, Selected]  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Leaves the members as they are."""

    @property
    def total(self) -> int:
        """Counts the records of the source, in whichever split."""
        return shards_of(self.listing).total

    @property
    def ignored(self) -> int:
        """Counts the records that `ignore` of a label leaves out."""
        return shards_of(self.listing).ignored

    @cached_property
    def bases(self) -> Array:
        """Computes what the ids of each shard's records are made from, uint64 `(shards,)`; see `shard_bases`."""
        return shard_bases(self.source_name, self.listing, shards_of(self.listing).rows)

    def numbers(self, split: str) -> Array:
        """Returns the numbers of a split's records among all, rising: int64 `(n,)`."""
        return self.members[split].numbers(np.arange(self.num_examples(split)))

    @cached_property
    def split_fingerprint(self) -> str:
        """Identifies the data and, where records were left out, the splits as well."""
        if not self.left_out:
            return self.fingerprint
        lines = "".join(f"{name}\n" for name in sorted(self.left_out))
        return hashlib.sha256(f"{self.fingerprint}\n{lines}".encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def every_key(self) -> Sequence[str]:
        """Names all records, made when asked for; see `keys`."""
        return Names(self._every, self.listing.keys.__getitem__)

    @property
    def every_file(self) -> Sequence[str]:
        """Names the files of all records and their rows there, made when asked for."""
        return Names(self._every, self.listing.path)

    @cached_property
    def _every(self) -> Selected:
        held = shards_of(self.listing)
        return Selected(held.rows, np.arange(len(held.rows)), offsets=held.offsets)

    @property
    def every_label(self) -> Array | None:
        """Returns the class index of each record, listed when first asked for."""
        return self._labels

    def places(self, split: str) -> tuple[Array, ...]:
        """Returns the number of the file that each record of a split lies in, as the reader knows it, and its row there."""
        shard, row = self.members[split].locate(np.arange(self.num_examples(split)))
        return shards_of(self.listing).numbers[shard], row

    def narrowed(self, split: str, places: Array) -> ShardedManifest:
        """Leaves a split those of its examples that are at some places of it, rising, at a bit for each record of the source."""
        held = self.members[split]
        mask: Array = np.zeros(self.total, bool)
        mask[held.numbers(places)] = True
        chosen = Selected(held.rows, np.unique(held.locate(places)[0]), bitmap_of(mask), held.offsets)
        members = {**self.members, split: chosen}
        return replace(self, members=members, spared=self.spared + len(held) - len(places))

    def keys(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """Names the records of a split wherever the data is mounted, in source order: `FILE#ROW`, made when asked for."""
        return Names(self.members[split], self.listing.keys.__getitem__)

    def files(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """Names the files of a split's records and their rows there, in source order, made when asked for."""
        return Names(self.members[split], self.listing.path)

    def in_shards(self, split: str) -> InShards:
        """Returns where the records of a split are."""
        return InShards(self.members[split], self.bases, shards_of(self.listing).numbers, self.listing.files())

    def blocks(self, split: str) -> Array:
        """Returns the first example of each file, or of each block of a file, int64 with the end."""
        return self.members[split].blocks(shards_of(self.listing).block_rows)

    def columns(self, split: str) -> dict[str, Array]:
        """Returns none: what a record holds is read with it."""
        return {}

    def lists(self, feature: str) -> bool:
        """Returns that it is read with the record."""
        return False

    def labels(self, split: str) -> Array | None:
        """Returns the class index of each example of a split, int64, listed when first asked for; `None` without labels."""
        return None if self._labels is None else self.members[split].gather(self._labels).astype(np.int64)

    @cached_property
    def _labels(self) -> Array | None:
        return listed_labels(self.listing)

    def ids(self, split: str) -> Array:
        """Computes the 64-bit example ids of a split, in source order, uint64. A graph computes those of its batch instead."""
        shard, row = self.members[split].locate(np.arange(self.num_examples(split)))
        return mix64(self.bases[shard] + row.astype(np.uint64))

    def mean_bytes(self, split: str | None = None) -> float:
        """Returns the mean size of a stored record in bytes, of one split or of all; 0 when there is none."""
        rows = shards_of(self.listing).rows
        files = slice(None) if split is None else self.members[split].shards
        return float(np.asarray(self.listing.sizes, np.int64)[files].sum()) / max(1, int(rows[files].sum()))


def sharded_manifest(spec: PipelineSpec, listing: Listing, name: str) -> ShardedManifest:
    """Assigns the records of shards to splits; their ids are made from `name`.

    Raises:
        OpError: As `assign_shards`; `PG414` for a shard of too many records.
    """
    folder = kept_folder(spec.runtime, SPLITS)
    manifest = ShardedManifest(
        listing, assign_shards(spec.splits, listing, spec.split_names(), name, folder), name, tuple(sorted(listing.excluded))
    )
    _ = manifest.bases  # now, since what is wrong with them is wrong with the data
    return manifest


def record_numbers(listing: Listing, names: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of some records among all, by their names; what names no record is left out."""
    wanted: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        file, mark, row = name.rpartition("#")
        if mark and row.isdecimal() and row == str(int(row)):
            wanted.setdefault(file, []).append((name, int(row)))
    shards = shards_of(listing)
    firsts = np.cumsum(shards.rows) - shards.rows
    found: dict[str, int] = {}
    for i, key in enumerate(listing.keys if wanted else ()):
        begin = 0 if shards.offsets is None else int(shards.offsets[i])
        for name, place in wanted.get(key, ()):  # a file may be listed again with another part of it
            if begin <= place < begin + int(shards.rows[i]):
                found[name] = int(firsts[i]) + place - begin
    return found


def without_records(manifest: ShardedManifest, names: Iterable[str]) -> ShardedManifest:
    """Returns the manifest without some records, which are in no split then; all others are where they were."""
    numbers = record_numbers(manifest.listing, names)
    stays: Array = np.ones(manifest.total, bool)
    stays[[*numbers.values()]] = False
    inside: Array = np.zeros(manifest.total, bool)
    for split in manifest.splits:
        inside[manifest.numbers(split)] = True
    members = {split: with_any(own.among(stays)) for split, own in manifest.members.items()}
    return replace(manifest, members=members, left_out=tuple(sorted(name for name, number in numbers.items() if inside[number])))
