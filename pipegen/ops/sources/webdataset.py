"""`webdataset` and `zip`: records of tar and ZIP archives, members grouped by name: `0001.jpg` and `0001.cls` are one record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.fields.notes import quoted
from pipegen.ops.fields.strings import Ints, Strings, taken_bytes
from pipegen.ops.sources.folders.scan import JUNK, is_junk
from pipegen.ops.sources.records.index import LONGEST, Indexed, InShard, RecordIndex, ShardRecords
from pipegen.ops.sources.records.parts import ABSENT, PartSource
from pipegen.ops.sources.records.source import RecordFeature, RecordSource
from pipegen.ops.sources.shards.findings import tallied
from pipegen.ops.sources.shards.members import Members
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.shards.tar_headers import tar_members
from pipegen.ops.sources.shards.zip_directory import zip_members
from pipegen.ops.sources.stores.field_types import FieldType, Form, taken_apart

NAME = "__key__"  # the column with the names of records, as WebDataset calls it

_DOT, _SLASH = ord("."), ord("/")
_AT_ONCE = 1 << 15  # names compared at once


class GroupedSource(PartSource):
    """Archives whose members are grouped by name: up to the first dot it names the record, then the key."""

    adjacent: ClassVar[bool]
    """Whether only consecutive members form a record."""

    @staticmethod
    def members(path: str, size: int) -> tuple[Members, str]:
        """Lists the files of an archive, and describes damage after them."""
        raise NotImplementedError

    @field_validator("features")
    @classmethod
    def _sound_keys(cls, features: dict[str, RecordFeature]) -> dict[str, RecordFeature]:
        taken: dict[str, str] = {}
        for name, feature in features.items():
            if len({taken_apart(one)[0] for one in feature.keys_of(name)}) > 1:
                raise ValueError(f"the `keys` of `{name}` must be fields of one JSON member, such as `json.xmin` and `json.ymin`")
            several = feature.keys_of(name)[0].split(";")
            if any(taken_apart(one)[1] for one in several) and (len(several) > 1 or feature.own_kind.has_files):
                raise ValueError(f"the key of `{name}` is a field of JSON: it must be the only key, and cannot hold a file")
            for one in several:
                if not one or one.startswith("."):
                    raise ValueError(
                        f"the key of `{name}` must be the ending of a member without its dot, such as `jpg`, or several: `jpg;png`"
                    )
                if taken.setdefault(one.lower(), name) != name:
                    raise ValueError(f"`{name}` and `{taken[one.lower()]}` both have the key `{one}`")
        return features

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Groups members to records, ordered by their first members; see `RecordSource.index_shard`."""
        members, damage = self.members(path, size)
        names = MemberNames(members.names)
        rows = names.runs() if self.adjacent else names.groups()
        keys: dict[str, int] = {}
        alike: dict[int, int] = {}  # features that share a member with another
        for i, name in enumerate(self.features):
            for one in self.key_of(name).split(";"):
                first = keys.setdefault(taken_apart(one)[0].lower(), i)
                if first != i:
                    alike[i] = first
        wanted = names.columns(keys)
        chosen = np.flatnonzero(wanted >= 0)
        findings = tallied([*members.seen, *_beside(members.names, names, rows, wanted, keys)])
        rows, wanted, at = rows[chosen], wanted[chosen], names.places[chosen]
        width = len(self.features)
        odd: Ints = np.ones(len(at), bool)
        odd[np.unique(rows * width + wanted, return_index=True)[1]] = False
        large = members.lengths[at] > LONGEST
        odd |= large
        if odd.any():
            count = int(odd.argmax())
            problem = f"has more than {LONGEST:,} bytes" if large[count] else "is a duplicate"
            where = f"at byte {int(members.offsets[at[count]]):,}, record {int(rows[count]):,}"
            damage = damage or f"{where}: {members.names[int(at[count])]!r} {problem}"
            rows, wanted, at = rows[:count], wanted[:count], at[:count]
        kept, row = np.unique(rows, return_inverse=True)
        offsets: Ints = np.zeros((len(kept), len(self.parts())), np.int64)
        lengths: Ints = offsets.astype(np.int32)
        lengths[:, :width] = ABSENT
        offsets[row, wanted], lengths[row, wanted] = members.offsets[at], members.lengths[at]
        if members.checks is not None:
            offsets[row, width + wanted] = members.checks[at]
        for i, first in alike.items():
            offsets[:, i], lengths[:, i] = offsets[:, first], lengths[:, first]
            if self.checked:
                offsets[:, width + i] = offsets[:, width + first]
        return ShardRecords(offsets, lengths, damage, findings=findings)

    def with_key(self, found: Indexed, key: str) -> tuple[RecordSource, Indexed, str]:
        return (self, found, NAME) if key == NAME else super().with_key(found, key)

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        """Reads values, or the names of records, which are those of their members up to the first dot; see `RecordSource.stored`."""
        if form != "cell" or key != NAME:
            return super().stored(form, name, key, records)
        shard, offsets, lengths = records
        members, _ = self.members(shard.path, shard.size)
        name_at = dict(zip(members.offsets.tolist()[::-1], list(members.names)[::-1], strict=True))
        firsts = offsets[range(len(offsets)), (lengths[:, : len(self.features)] != ABSENT).argmax(1)]
        paths = (name_at.get(offset, "").rpartition("/") for offset in firsts.tolist())
        return [f"{folder}{slash}{file.partition('.')[0]}" for folder, slash, file in paths]

    def field_type(self, name: str, key: str, shard: Found) -> FieldType:
        return FieldType(path=taken_apart(key.split(";")[0])[1])

    def known_keys(self, found: Indexed) -> Sequence[str]:
        return self._endings(found.first.file.path)

    def same_records(self, index: RecordIndex, own: RecordIndex) -> RecordIndex:
        """Leaves out the records that have none of the features, but only the added key."""
        features = own.lengths.shape[1] // (1 + self.checked)
        used: Ints = (index.lengths[:, :features] != ABSENT).any(1)
        if int(used.sum()) != int(own.first[-1]):
            raise OpError("PG430", "an archive changed while it was read", field="path", help="build the pipeline again")
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(used)])[index.first]
        return replace(index, first=first, offsets=index.offsets[used], lengths=index.lengths[used])

    def _endings(self, path: str) -> list[str]:
        """Returns the endings of the first members of an archive."""
        members, _ = self.members(path, os.path.getsize(path))
        return sorted({one.rpartition("/")[2].partition(".")[2] for one in members.names[:1000]})

    def absent(self, name: str, path: str) -> tuple[str, str | None]:
        endings = self._endings(path)
        due = ";".join(taken_apart(one)[0] for one in self.key_of(name).split(";"))
        return f"member with the ending {due!r}", f"the archive has members that end in {quoted(endings)}"


class WebDataset(GroupedSource):
    """Tar archives in the WebDataset layout. Consecutive members whose names agree up to the first dot form a record; the rest of the name
    is the key. `0001.jpg` and `0001.cls` are `jpg` and `cls` of one record.

    A key may name a field of a JSON member: `json.label`, `json.meta.site`, `json.boxes`. The field gives a label, a weight, a
    tensor, boxes or keypoints.

    Archives are mapped into memory and read in the graph, in any order. Indexing checks the checksums of all headers; the format has none
    for the contents.
    """

    op: ClassVar[str] = "webdataset"
    suffixes: ClassVar[tuple[str, ...]] = (".tar",)
    adjacent: ClassVar[bool] = True
    checksums: ClassVar[str] = "those of headers, since the format has no others"
    members = staticmethod(tar_members)


class Zip(GroupedSource):
    """ZIP archives. Members of one folder whose names agree up to the first dot form a record; the rest of the name is the key.
    `a/0001.jpg` and `a/0001.txt` are `jpg` and `txt` of one record.

    Archives are mapped into memory and read in the graph, in any order. Deflated members are inflated there and their checksums checked.
    Those of stored members are checked by `pipegen validate --data=all`, or with `verify`.
    """

    op: ClassVar[str] = "zip"
    adjacent: ClassVar[bool] = False
    checked: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = (".zip",)
    checksums: ClassVar[str] = "those of each member"
    members = staticmethod(zip_members)

    verify: bool = False
    """Whether reading checks the checksums of stored members, too."""


def _beside(members: Strings, names: MemberNames, rows: Ints, wanted: Ints, keys: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yields the members, and the first member of each record, that no feature uses; see `findings`. `rows` has the record of each of
    `names`, `wanted` its feature or -1."""
    for place in np.delete(np.arange(len(members)), names.places).tolist():
        parts = members[place].split("/")
        yield ("system" if parts[-1].startswith(".") or any(map(is_junk, parts)) else "unnamed"), members[place]
    records = int(rows.max(initial=-1)) + 1
    used = np.bincount(rows[wanted >= 0], minlength=records) > 0
    if not used.all():
        first = np.unique(rows, return_index=True)[1]
        dotted = np.bincount(rows[names.columns(keys, last=True) >= 0], minlength=records) > 0
        for record in np.flatnonzero(~used).tolist():
            yield ("dotted" if dotted[record] else "keyless"), members[int(names.places[first[record]])]


class MemberNames:
    """The members with a stem (up to the first dot after the last slash) and a key (after that dot). `places` are their indices among all
    members, without system folders; int64 `(n,)`."""

    def __init__(self, names: Strings) -> None:
        names = names.packed()
        bounds: Ints = names.bounds.astype(np.int64)
        self._blob = names.blob[: int(bounds[-1])]
        starts, ends = bounds[:-1], bounds[1:]
        slashes = np.concatenate([[-1], np.flatnonzero(self._blob == _SLASH)])
        dots: Ints = np.append(np.flatnonzero(self._blob == _DOT), len(self._blob))
        begins = np.maximum(starts, slashes[np.searchsorted(slashes, ends) - 1] + 1)
        dot = dots[np.searchsorted(dots, begins)]
        self._last = dots[np.searchsorted(dots, ends) - 1]
        named = (dot > begins) & (dot < ends)
        content = self._blob.tobytes().lower()
        if any(junk.encode() in content for junk in JUNK):  # in few archives
            named &= ~np.array([any(map(is_junk, name.split("/"))) for name in names], bool)
        self.places = np.flatnonzero(named)
        self._starts, self._dots, self._ends = starts[self.places], dot[self.places], ends[self.places]
        self._last = self._last[self.places]

    def runs(self) -> Ints:
        """Numbers the members from 0; consecutive ones with one stem share a number: int64 `(n,)`."""
        lengths = self._dots - self._starts
        changes: Ints = np.zeros(len(lengths), np.int64)
        for at in range(1, len(lengths), _AT_ONCE):
            stop = min(at + _AT_ONCE, len(lengths))
            changes[at:stop] = 1
            alike: Ints = at + np.flatnonzero(lengths[at:stop] == lengths[at - 1 : stop - 1])
            own, before = (taken_bytes(self._blob, self._starts[alike - back], lengths[alike]) for back in (0, 1))
            if len(alike):
                changes[alike] = np.logical_or.reduceat(own != before, np.cumsum(lengths[alike]) - lengths[alike])
        return changes.cumsum()

    def groups(self) -> Ints:
        """Numbers the members by stem, in order of first appearance: int64 `(n,)`."""
        runs, content = self.runs(), self._blob.tobytes()
        first = np.flatnonzero(np.diff(runs, prepend=-1))
        stems = [content[start:dot] for start, dot in zip(self._starts[first].tolist(), self._dots[first].tolist(), strict=True)]
        numbers = {stem: number for number, stem in enumerate(dict.fromkeys(stems))}
        return runs if len(numbers) == len(stems) else np.array([numbers[stem] for stem in stems], np.int64)[runs]

    def columns(self, keys: Mapping[str, int], *, last: bool = False) -> Ints:
        """Returns the number of each member's key, int64 `(n,)`, or -1; ignores case. With `last`, the key starts after the last dot."""
        dots = self._last if last else self._dots
        lengths = self._ends - dots - 1
        found: Ints = np.full(len(lengths), -1, np.int64)
        for key, number in keys.items():
            wanted = np.frombuffer(key.encode().lower(), np.uint8)
            fitting = np.flatnonzero(lengths == len(wanted))
            for at in range(0, len(fitting), _AT_ONCE):
                some = fitting[at : at + _AT_ONCE]
                own = taken_bytes(self._blob, dots[some] + 1, lengths[some]).reshape(len(some), -1)
                own = np.where((own >= ord("A")) & (own <= ord("Z")), own | 32, own)
                found[some[(own == wanted).all(1)]] = number
        return found
