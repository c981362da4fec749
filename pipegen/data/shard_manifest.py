"""The manifest of a source whose files hold many records each: a row per file, and at most a bit per record and split."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.shards import InShards, Names, Selected, assign_shards, bitmap_of, mix64, shard_bases, with_any
from pipegen.frozen import dataclass
from pipegen.kept import SPLITS, kept_folder
from pipegen.ops.sources.listing.base import listed_labels, shards_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.models import PipelineSpec


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ShardedManifest(Manifest):
    """A listing of shards and its splits, in the spec's order."""

    members: Mapping[str, Selected]  # type: ignore[assignment]
    by_column: bool = False
    """Whether values in the records, or in a file, decide which record is in which split."""

    def __post_init__(self) -> None:
        """Keeps the members as they are."""

    @property
    def total(self) -> int:
        return shards_of(self.listing).total

    @property
    def ignored(self) -> int:
        """Number of records that `ignore` of a label leaves out."""
        return shards_of(self.listing).ignored

    @cached_property
    def bases(self) -> Array:
        """The upper bits of the ids of each shard's records, uint64 `(shards,)`; see `shard_bases`."""
        return shard_bases(self.source_name, self.listing, shards_of(self.listing).rows)

    def numbers(self, split: str) -> Array:
        return self.members[split].numbers(np.arange(self.num_examples(split)))

    @cached_property
    def split_fingerprint(self) -> str:
        """Hash of the data and, if records were left out or values decide them, of the splits."""
        if not self.left_out and not self.by_column:
            return self.fingerprint
        lines = "".join(f"{name}\n" for name in sorted(self.left_out))
        digest = hashlib.sha256(f"{self.fingerprint}\n{lines}".encode("utf-8", "surrogateescape"))
        for split in self.splits if self.by_column else ():
            digest.update(f"{split}\n".encode() + self.numbers(split).astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def every_key(self) -> Sequence[str]:
        return Names(self._every, self.listing.keys.__getitem__)

    @property
    def every_file(self) -> Sequence[str]:
        """`FILE#ROW` of each record, with the absolute path."""
        return Names(self._every, self.listing.path)

    @cached_property
    def _every(self) -> Selected:
        held = shards_of(self.listing)
        return Selected(held.rows, np.arange(len(held.rows)), offsets=held.offsets)

    @cached_property
    def every_label(self) -> Array | None:
        return listed_labels(self.listing)

    def places(self, split: str) -> tuple[Array, ...]:
        """The reader's number of the file of each record of a split, and the row in that file."""
        shard, row = self.members[split].locate(np.arange(self.num_examples(split)))
        return shards_of(self.listing).numbers[shard], row

    def narrowed(self, split: str, places: Array) -> ShardedManifest:
        held = self.members[split]
        mask: Array = np.zeros(self.total, bool)
        mask[held.numbers(places)] = True
        chosen = Selected(held.rows, np.unique(held.locate(places)[0]), bitmap_of(mask), held.offsets)
        members = {**self.members, split: chosen}
        return replace(self, members=members, spared=self.spared + len(held) - len(places))

    def keys(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """`FILE#ROW` of each record of a split, with the relative path, in source order."""
        return Names(self.members[split], self.listing.keys.__getitem__)

    def files(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """`FILE#ROW` of each record of a split, with the absolute path, in source order."""
        return Names(self.members[split], self.listing.path)

    def in_shards(self, split: str) -> InShards:
        return InShards(self.members[split], self.bases, shards_of(self.listing).numbers, self.listing.files())

    def blocks(self, split: str) -> Array:
        """The first example of each file, or of each block of a file, int64 with the end."""
        return self.members[split].blocks(shards_of(self.listing).block_rows)

    def columns(self, split: str) -> dict[str, Array]:
        if not self.listing.columns:
            return {}
        numbers = self.numbers(split)
        return {name: values[numbers] for name, values in self.listing.columns.items()}

    def lists(self, feature: str) -> bool:
        return feature in self.listing.columns

    def labels(self, split: str) -> Array | None:
        return None if self.every_label is None else self.members[split].gather(self.every_label).astype(np.int64)

    def stored(self, split: str, feature: str) -> Array | None:
        if feature in self.listing.columns:
            return super().stored(split, feature)
        every = listed_labels(self.listing, feature)
        return None if every is None else self.members[split].gather(every)

    def ids(self, split: str) -> Array:
        """The 64-bit example ids of a split, in source order, uint64 `(n,)`. A graph computes those of its batch itself."""
        shard, row = self.members[split].locate(np.arange(self.num_examples(split)))
        return mix64(self.bases[shard] + row.astype(np.uint64))

    def mean_bytes(self, split: str | None = None) -> float:
        rows = shards_of(self.listing).rows
        files = slice(None) if split is None else self.members[split].shards
        return float(np.asarray(self.listing.sizes, np.int64)[files].sum()) / max(1, int(rows[files].sum()))


def sharded_manifest(spec: PipelineSpec, listing: Listing, name: str) -> ShardedManifest:
    """Assigns the records of shards to splits; makes their ids from `name`.

    Raises:
        OpError: As `assign_shards`; `PG414` for a shard of too many records.
    """
    folder = kept_folder(spec.runtime, SPLITS)
    manifest = ShardedManifest(
        listing,
        assign_shards(spec.splits, listing, spec.split_names(), name, folder),
        name,
        tuple(sorted(listing.excluded)),
        by_column=any(path[0] == "splits" or "subset" in path for path in spec.columns().values()),
    )
    _ = manifest.bases  # computed now, so that its errors are reported with those of the data
    return manifest


def record_numbers(listing: Listing, names: Iterable[str]) -> dict[str, int]:
    """Finds records by their names `FILE#ROW` and returns their numbers; skips unknown names."""
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
    """Removes records from their splits."""
    numbers = record_numbers(manifest.listing, names)
    stays: Array = np.ones(manifest.total, bool)
    stays[[*numbers.values()]] = False
    inside: Array = np.zeros(manifest.total, bool)
    for split in manifest.splits:
        inside[manifest.numbers(split)] = True
    members = {split: with_any(own.among(stays)) for split, own in manifest.members.items()}
    return replace(manifest, members=members, left_out=tuple(sorted(name for name, number in numbers.items() if inside[number])))
