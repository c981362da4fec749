"""The manifest: the records of the data and their splits. The backend reads nothing else.

For files that hold many records each, it has a row per file, and at most a bit per record and split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.fingerprint import example_ids, fingerprint, tuple_text
from pipegen.data.shards import InShards, Selected, assign_shards, mix64, names_of, shard_bases, with_any
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import InternalError
from pipegen.frozen import dataclass
from pipegen.kept import SPLITS, kept_folder
from pipegen.ops.fields.strings import Ints, Strings, as_places, shareable
from pipegen.ops.sources.listing.base import Listing, every_value, shards_of, unlabelled_records
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class Manifest:
    """A listing and its splits."""

    listing: Listing  # the records in source order, without those that `errors.exclude` names
    members: Mapping[str, Ints]  # for each split, in the spec's order, the indices of its records, rising: whole numbers `(n,)`
    source_name: str  # the source's op; it enters the example ids
    excluded: tuple[str, ...] = ()  # the keys that `errors.exclude` left out
    by_place: bool = False  # make ids from positions in the listing, rather than from keys
    left_out: tuple[str, ...] = ()  # keys that `splits.exclude` left out: they are in the listing, but in no split
    spared: int = 0  # number of training examples that `sampling.subset` left out
    findings: tuple[Diagnostic, ...] = ()  # findings about the data that are not errors
    sides: np.ndarray[Any, Any] | None = None
    """Height and width of each record's image in pixels, float64 `(n, 2)`, NaN if unknown; `None` without buckets."""
    lengths: Mapping[str, Ints] = field(default_factory=dict)
    """By feature, the stored length of each record along the first axis, int64 `(n,)`, -1 if unknown; of those whose padding needs it."""
    too_long: int = 0  # number of examples that `longer: drop` of `batch.pad` left out

    def __post_init__(self) -> None:
        """Makes arrays of the members that tensors can share."""
        n = len(self.listing.keys)
        object.__setattr__(self, "members", {split: shareable(as_places(records, n)) for split, records in self.members.items()})

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits, in the order of the spec."""
        return tuple(self.members)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes in label order; empty without labels."""
        return self.listing.class_names

    @property
    def total(self) -> int:
        """Number of records of the data, in all splits and in none."""
        return len(self.listing.keys)

    @property
    def ignored(self) -> int:
        """Number of records that must be in no split."""
        return 0

    @property
    def unused(self) -> int:
        """Number of records that no part asks for, without those left out for other reasons."""
        gone = len(self.left_out) + self.spared + self.too_long
        return self.total - self.ignored - sum(map(len, self.members.values())) - gone

    def numbers(self, split: str) -> Ints:
        """The numbers of a split's records among all, rising: whole numbers `(n,)`."""
        return self.members[split]

    def of(self, split: str) -> Mapping[str, Manifest]:
        """The parts of a mix that have a split, by name, in their order; a single source is a part named ""."""
        return {name: part for name, part in self.by_part().items() if split in part.members}

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        return len(self.members[split])

    def epoch_examples(self, split: str) -> int:
        """Counts the examples in an epoch of a split."""
        return self.num_examples(split)

    def keys(self, split: str) -> Strings:
        """The names of a split's records (relative paths), in source order."""
        return self.listing.keys.take(self.members[split])

    @property
    def every_key(self) -> Sequence[str]:
        """The names of all records; see `keys`."""
        return self.listing.keys

    @property
    def every_label(self) -> Ints | None:
        """Class index of each record of the data, -1 for those of a split without labels; `None` without any."""
        return self.listing.labels

    def by_part(self) -> dict[str, Manifest]:
        """The manifest of each part of a mix, by name; a single source is a part named ""."""
        return {"": self}

    def own(self, split: str) -> Manifest:
        """The manifest that knows where the records of a split are: this one, unless splits are stored in different ways."""
        return self

    def narrowed(self, split: str, places: Ints, *, too_long: bool = False) -> Manifest:
        """Keeps only the examples of a split at some positions, which rise; others are of no subset, or `too_long`."""
        return self._left(split, self.members[split][places], len(places), too_long=too_long)

    def _left(self, split: str, members: Any, left: int, *, too_long: bool) -> Self:
        """Replaces the members of a split by those that are left, and counts the others."""
        gone, counted = self.num_examples(split) - left, "too_long" if too_long else "spared"
        return replace(self, members={**self.members, split: members}, **{counted: getattr(self, counted) + gone})

    def files(self, split: str, feature: str = "") -> Strings:
        """The absolute paths of a split, in source order, of a feature or of all; for rows, what messages call them."""
        return self.listing.location_of(feature).paths.take(self.members[split])

    def kind(self, split: str) -> str:
        """The kind of the location of a split's records; `several` for parts of a mix that differ."""
        return self.listing.location.kind_of(self.members[split])

    def rows(self, split: str) -> Ints | None:
        """The row of each record of a split in source order, int64; `None` if records are not read by row."""
        rows = self.listing.location.rows
        own = None if rows is None else rows[self.members[split]]
        return None if own is None or (own < 0).any() else own

    def blocks(self, split: str) -> Ints | None:
        """The first example of each block that records are read by, int64 with the end; `None` if they are read one by one."""
        starts = self.listing.reader(split).starts
        return None if starts is None else np.searchsorted(self.rows(split), starts).astype(np.int64)

    def in_shards(self, split: str) -> InShards | None:
        """The shards and rows of a split's records; `None` unless they lie many in a file."""
        return None

    @property
    def type(self) -> ElementType | None:
        """The type of a record, if the data tells more of it than the spec."""
        return self.listing.type

    @property
    def record(self) -> ElementType | Mapping[str, ElementType] | None:
        """The `type`; for a mix, of each part that has one."""
        return self.type

    def columns(self, split: str) -> dict[str, np.ndarray[Any, Any]]:
        """The features held in memory, a few numbers per record: `(n, ...)` each, for a split in source order."""
        return {name: values[self.members[split]] for name, values in self.listing.columns.items()}

    def labels(self, split: str) -> Ints | None:
        """The class index of each example of a split, int64; `None` without labels."""
        return None if self.listing.labels is None else _known(self.listing.labels[self.members[split]])

    def stored(self, split: str, feature: str) -> Ints | None:
        """A label or a single number of each example of a split, from the listing, else read once from all records; `None` without it."""
        return self.columns(split).get(feature)

    def class_weights(self, split: str, visits: np.ndarray[Any, Any] | None = None) -> dict[int, float] | None:
        """Computes balanced weights of the classes: examples / (classes × examples of the class); `None` without labels.

        With `visits`, an example counts as often as it is seen."""
        labels = self.labels(split)
        if labels is None:
            return None
        counts = np.bincount(labels, visits, minlength=len(self.class_names))
        total, present = counts.sum().item(), int((counts > 0).sum())
        return {c: total / (present * n) if n else 0.0 for c, n in enumerate(counts.tolist())}

    def ids(self, split: str) -> Ints:
        """The 64-bit example ids of a split, in source order: uint64 `(n,)`."""
        return self.all_ids[self.members[split]]

    @cached_property
    def all_ids(self) -> Ints:
        """The 64-bit id of every record: uint64 `(n,)`; raises `InternalError` if two records share an id by chance."""
        keys = self.listing.keys
        if self.by_place:
            return shareable(example_ids("place", map(str, range(len(keys)))))
        if self.listing.ids is not None:
            return shareable(self.listing.ids)
        ids = shareable(example_ids(self.source_name, keys))
        rising = ids.copy()
        rising.sort()
        twice = rising[1:][rising[1:] == rising[:-1]]
        if len(twice):
            a, b = (keys[i] for i in (ids == twice[0]).nonzero()[0][:2].tolist())
            if a == b:
                raise InternalError("a source listed one file twice")
            raise InternalError(f"two records share one 64-bit id by chance; rename one of them: {a!r} and {b!r}")
        return ids

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the data, independent of where it is mounted: relative paths and sizes of files, contents of rows."""
        return fingerprint(self.listing)

    @cached_property
    def split_fingerprint(self) -> str:
        """Hash of the data and, for a table or if records were left out, of the splits."""
        if not self.listing.in_table and not self.left_out:
            return self.fingerprint
        digest = hashlib.sha256(f"{self.fingerprint}\n{{".encode())
        for i, (split, records) in enumerate(self.members.items()):
            digest.update(f"{', ' * (i > 0)}{split!r}: ".encode())
            for block in tuple_text(records):
                digest.update(block)
        digest.update(b"}")
        return digest.hexdigest()

    def mean_bytes(self, split: str | None = None) -> float:
        """Computes the mean size of a stored record in bytes, in one split or in all; 0 without records."""
        sizes = self.listing.sizes if split is None else self.listing.sizes[self.members[split]]
        return int(sizes.sum(dtype="int64")) / len(sizes) if len(sizes) else 0.0


@dataclass(frozen=True, eq=False)
class ShardedManifest(Manifest):
    """A listing of shards and its splits, in the spec's order."""

    members: Mapping[str, Selected]  # type: ignore[assignment]
    by_column: bool = False  # whether values in the records, or in a file, decide which record is in which split

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
    def bases(self) -> Ints:
        """The upper bits of the ids of each shard's records, uint64 `(shards,)`; see `shard_bases`."""
        return shard_bases(self.source_name, self.listing, shards_of(self.listing).rows)

    def numbers(self, split: str) -> Ints:
        return self.members[split].numbers(np.arange(self.num_examples(split)))

    @cached_property
    def split_fingerprint(self) -> str:
        """Hash of the data and, if records were left out, values decide them, or series are cut by time, of the splits."""
        held = shards_of(self.listing)
        cut = self.listing.timeline is not None and held.offsets is not None
        if not self.left_out and not self.by_column and not cut:
            return self.fingerprint
        lines = "".join(f"{name}\n" for name in sorted(self.left_out))
        digest = hashlib.sha256(f"{self.fingerprint}\n{lines}".encode("utf-8", "surrogateescape"))
        if cut and held.offsets is not None:
            digest.update(held.offsets.astype("<i8").tobytes() + repr([*(self.listing.parts or ())]).encode())
        for split in self.splits if self.by_column else ():
            digest.update(f"{split}\n".encode() + self.numbers(split).astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def every_key(self) -> Sequence[str]:
        held = shards_of(self.listing)
        return names_of(Selected(held.rows, np.arange(len(held.rows)), offsets=held.offsets), self.listing.keys.__getitem__)

    @cached_property
    def every_label(self) -> Ints | None:
        label, columns = self.listing.label, self.listing.columns
        if label is None or label not in columns:
            return None if label is None else every_value(self.listing, label)
        return columns[label] if isinstance(columns[label], np.ndarray) and columns[label].ndim == 1 else None

    def narrowed(self, split: str, places: Ints, *, too_long: bool = False) -> ShardedManifest:
        held = self.members[split]
        mask: Ints = np.zeros(self.total, bool)
        mask[held.numbers(places)] = True
        return self._left(split, with_any(held.among(mask)), len(places), too_long=too_long)

    def keys(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """`FILE#ROW` of each record of a split, with the relative path, in source order."""
        return names_of(self.members[split], self.listing.keys.__getitem__)

    def files(self, split: str, feature: str = "") -> Sequence[str]:  # type: ignore[override]
        """`FILE#ROW` of each record of a split, with the absolute path, in source order."""
        return names_of(self.members[split], self.listing.location.paths.__getitem__)

    def in_shards(self, split: str) -> InShards:
        return InShards(self.members[split], self.bases, shards_of(self.listing).numbers, self.listing.location.paths)

    def blocks(self, split: str) -> Ints:
        """The first example of each file, or of each block of a file, int64 with the end."""
        return self.members[split].blocks(shards_of(self.listing).block_rows)

    def columns(self, split: str) -> dict[str, Ints]:
        if not self.listing.columns:
            return {}
        numbers = self.numbers(split)
        return {name: values[numbers] for name, values in self.listing.columns.items()}

    def labels(self, split: str) -> Ints | None:
        return None if self.every_label is None else _known(self.members[split].gather(self.every_label))

    def stored(self, split: str, feature: str) -> Ints | None:
        if feature in self.listing.columns:
            return super().stored(split, feature)
        every = every_value(self.listing, feature)
        return None if every is None else self.members[split].gather(every)

    def ids(self, split: str) -> Ints:
        """The 64-bit example ids of a split, in source order, uint64 `(n,)`. A graph computes those of its batch itself."""
        shard, row = self.members[split].locate(np.arange(self.num_examples(split)))
        return mix64(self.bases[shard] + row.astype(np.uint64))

    def mean_bytes(self, split: str | None = None) -> float:
        rows = shards_of(self.listing).rows
        files = slice(None) if split is None else self.members[split].shards
        return float(np.asarray(self.listing.sizes, np.int64)[files].sum()) / max(1, int(rows[files].sum()))


def _known(labels: Ints) -> Ints | None:
    """The class indices of a split, int64; `None` if its records have no labels."""
    return None if (labels < 0).any() else labels.astype(np.int64)


def sharded_manifest(spec: PipelineSpec, listing: Listing, name: str, splits: Sequence[str]) -> ShardedManifest:
    """Assigns the records of shards to splits, given in the order of the spec; makes their ids from `name`. Raises `OpError` as
    `assign_shards`; `PG414` for a shard of too many records."""
    folder = kept_folder(spec.runtime.cache, SPLITS)
    manifest = ShardedManifest(
        listing,
        assign_shards(spec.splits, listing, splits, name, folder, unlabelled_records(spec.source, listing)),
        name,
        tuple(sorted(listing.excluded)),
        by_column=any(path[0] == "splits" or "subset" in path for path in spec.columns().values()),
    )
    _ = manifest.bases  # computed now, so that its errors are reported with those of the data
    return manifest


def record_numbers(listing: Listing, names: Iterable[str]) -> dict[str, int]:
    """Finds records of shards by their names `FILE#ROW` and returns their numbers; skips unknown names."""
    wanted: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        file, mark, row = name.rpartition("#")
        if mark and row.isdecimal() and row == str(int(row)):
            wanted.setdefault(file, []).append((name, int(row)))
    shards = shards_of(listing)
    firsts = np.cumsum(shards.rows) - shards.rows
    found: dict[str, int] = {}
    for i, key in enumerate(listing.keys if wanted else ()):
        if shards.numbers[i] < 0:
            continue
        begin = 0 if shards.offsets is None else int(shards.offsets[i])
        for name, place in wanted.get(key, ()):  # a file may be listed again with another part of it
            if begin <= place < begin + int(shards.rows[i]):
                found[name] = int(firsts[i]) + place - begin
    return found


def without_records(manifest: ShardedManifest, names: Iterable[str]) -> ShardedManifest:
    """Removes records from their splits."""
    numbers = record_numbers(manifest.listing, names)
    stays: Ints = np.ones(manifest.total, bool)
    stays[[*numbers.values()]] = False
    inside: Ints = np.zeros(manifest.total, bool)
    for split in manifest.splits:
        inside[manifest.numbers(split)] = True
    members = {split: with_any(own.among(stays)) for split, own in manifest.members.items()}
    return replace(manifest, members=members, left_out=tuple(sorted(name for name, number in numbers.items() if inside[number])))
