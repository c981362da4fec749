"""The base of archives whose members are grouped by name: `0001.jpg` and `0001.cls` are one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import field_validator

from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.listing.wording import quoted
from pipegen.ops.sources.records.features import RecordFeature
from pipegen.ops.sources.records.findings import tallied
from pipegen.ops.sources.records.index import LONGEST, RecordIndex, ShardRecords
from pipegen.ops.sources.records.json_fields import field_of, list_in, optional_at, taken_apart
from pipegen.ops.sources.records.member_names import MemberNames, is_hidden
from pipegen.ops.sources.records.source import RecordSource
from pipegen.ops.sources.records.stored import Stored, how_stored
from pipegen.ops.sources.records.stored_reader import StoredReader, check_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.strings import Ints, Strings
    from pipegen.ops.sources.records.labels import LabelColumn
    from pipegen.ops.sources.records.members import Members
    from pipegen.ops.sources.records.paths import Found

ABSENT = -1
"""The length of a missing member."""


class GroupedSource(RecordSource):
    """Archives whose members are grouped by name: up to the first dot it names the record, then the key."""

    checked: ClassVar[bool] = True
    """Whether archives record the size and checksum of each member; see `Members.checks`."""

    @field_validator("features")
    @classmethod
    def _sound_keys(cls, features: dict[str, RecordFeature]) -> dict[str, RecordFeature]:
        taken: dict[str, str] = {}
        for name, feature in features.items():
            if len({taken_apart(one)[0] for one in feature.keys_of(name)}) > 1:
                raise ValueError(f"the `keys` of `{name}` must be fields of one JSON member, such as `json.xmin` and `json.ymin`")
            several = feature.keys_of(name)[0].split(";")
            if any(taken_apart(one)[1] for one in several) and (len(several) > 1 or kind_of(feature).pictured):
                raise ValueError(f"the key of `{name}` is a field of JSON: it must be the only key, and cannot hold an image")
            for one in several:
                if not one or one.startswith("."):
                    raise ValueError(
                        f"the key of `{name}` must be the ending of a member without its dot, such as `jpg`, or several: `jpg;png`"
                    )
                if taken.setdefault(one.lower(), name) != name:
                    raise ValueError(f"`{name}` and `{taken[one.lower()]}` both have the key `{one}`")
        return features

    def fetched_as_read(self) -> frozenset[str]:
        return frozenset({"path"})

    def parts(self) -> tuple[str, ...]:
        """Returns the features, and for each its check, if archives have any."""
        return (*self.features, *(map(check_of, self.features) if self.checked else ()))

    def index_options(self) -> str:
        return str([self.key_of(name) for name in self.features])

    def grouped(self, members: Members, damage: str, *, adjacent: bool) -> ShardRecords:
        """Groups members to records, ordered by their first members.

        Args:
            members: The files of an archive.
            damage: Damage after them.
            adjacent: Whether only consecutive members form a record.
        """
        import numpy as np

        names = MemberNames(members.names)
        rows = names.runs() if adjacent else names.groups()
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
        count, problem = _sound(rows * width + wanted, members.lengths[at])
        if count < len(at):
            where = f"at byte {int(members.offsets[at[count]]):,}, record {int(rows[count]):,}"
            damage = damage or f"{where}: {members.names[int(at[count])]!r} {problem}"
            rows, wanted, at = rows[:count], wanted[:count], at[:count]
        kept, row = np.unique(rows, return_inverse=True)
        offsets: Ints = np.zeros((len(kept), len(self.parts())), np.int64)
        lengths: Ints = np.zeros((len(kept), len(self.parts())), np.int32)
        lengths[:, :width] = ABSENT
        offsets[row, wanted], lengths[row, wanted] = members.offsets[at], members.lengths[at]
        if members.checks is not None:
            offsets[row, width + wanted] = members.checks[at]
        for i, first in alike.items():
            offsets[:, i], lengths[:, i] = offsets[:, first], lengths[:, first]
            if self.checked:
                offsets[:, width + i] = offsets[:, width + first]
        return ShardRecords(offsets, lengths, damage, findings=findings)

    def examine(self, shards: Sequence[Found], index: RecordIndex) -> None:
        self.stored(shards, index)

    def stored(self, shards: Sequence[Found], index: RecordIndex) -> dict[str, Stored]:
        """Finds how each feature is stored from the first record; `PG431` if one does not fit, `PG430` if it is damaged."""
        shard = index.first_filled
        offsets, lengths = (part[0].tolist() for part in index.of(shard))
        found = {}
        with Opened(shards[shard].path) as stream:
            for i, (name, feature) in enumerate(self.features.items()):
                if name not in self.read_features:
                    continue
                field = feature.key_field(name)
                if lengths[i] == ABSENT:
                    ending = ";".join(taken_apart(one)[0] for one in self.key_of(name).split(";"))
                    message = f"record 0 of {shards[shard].path!r} has no member with the ending {ending!r}"
                    keys = self.keys_in(shards[shard].path)
                    raise OpError("PG431", message, field=field, help=f"the archive has members that end in {quoted(keys)}")
                content = b""  # a damaged image is reported when it is read, and may be skipped
                if not kind_of(feature).pictured:
                    check = offsets[len(self.features) + i] if self.checked else 0
                    try:
                        content = self.unpacked_member(stream.pread(lengths[i], offsets[i]), check)
                    except ValueError as error:
                        message = f"`{name}` of record 0 of {shards[shard].path!r} cannot be read: {error}"
                        raise OpError("PG430", message, field=field) from None
                    try:
                        content = self._field(name, content)
                    except ValueError as error:
                        message = f"record 0 of {shards[shard].path!r}: the member of `{name}`: {error}"
                        raise OpError("PG431", message, field=field) from None
                found[name] = how_stored(name, feature, content, field)
        return found

    def path_of(self, name: str) -> tuple[str, ...]:
        """Returns the path of a feature within a JSON member; empty for the whole member."""
        return taken_apart(self.key_of(name).split(";")[0])[1]

    def _field(self, name: str, content: bytes) -> bytes:
        path = self.path_of(name)
        return field_of(content, path) if path else content

    def keys_in(self, path: str) -> list[str]:
        """Lists the endings of an archive's members, for messages."""
        raise NotImplementedError

    def unpacked_member(self, content: bytes, check: int) -> bytes:
        """Decompresses a member; `ValueError` if it is damaged."""
        return content

    def stored_labels(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        return self._each(partial(self._field, name), name, shard, offsets, lengths)

    def stored_cells(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        path = self.path_of(name)
        return self._each(lambda content: optional_at(content, path) if path else content, name, shard, offsets, lengths, optional=True)

    def known_keys(self, shards: Sequence[Found], index: RecordIndex) -> Sequence[str]:
        return self.keys_in(shards[index.first_filled].path)

    def same_records(self, index: RecordIndex, own: RecordIndex) -> RecordIndex:
        """Leaves out the records that have none of the features, but only the added key."""
        import numpy as np

        features = own.lengths.shape[1] // (1 + self.checked)
        used: Ints = (index.lengths[:, :features] != ABSENT).any(1)
        if int(used.sum()) != int(own.first[-1]):
            raise OpError("PG430", "an archive changed while it was read", field="path", help="build the pipeline again")
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(used)])[index.first]
        return replace(index, first=first, offsets=index.offsets[used], lengths=index.lengths[used])

    def stored_values(self, name: str, key: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        return self._each(partial(list_in, path=taken_apart(key.split(";")[0])[1]), name, shard, offsets, lengths)

    def _each(
        self, read: Callable[[bytes], Any], name: str, shard: Found, offsets: Ints, lengths: Ints, *, optional: bool = False
    ) -> list[Any]:
        """Calls a function with the member of a feature in each record; with `optional`, returns `None` for records without it."""
        at = list(self.features).index(name)
        checks = offsets[:, len(self.features) + at].tolist() if self.checked else [0] * len(offsets)
        places = zip(offsets[:, at].tolist(), lengths[:, at].tolist(), checks, strict=True)
        found: list[Any] = []
        with Opened(shard.path) as stream:
            for row, (offset, length, check) in enumerate(places):
                if length == ABSENT and optional:
                    found.append(None)
                    continue
                if length == ABSENT:
                    message = f"{shard.path}#{row} lacks the member {self.key_of(name)!r} of `{name}`"
                    raise OpError("PG431", message, field=f"features.{name}")
                content = self.unpacked_member(stream.pread(length, offset), check)
                try:
                    found.append(read(content))
                except ValueError as error:
                    message = f"{shard.path}#{row}: the member of `{name}`: {error}"
                    raise OpError("PG431", message, field=f"features.{name}") from None
        return found

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        paths = {name: path for name in self.read_features if (path := self.path_of(name))}
        return StoredReader(self.features, self.stored(shards, index), shards, index, self.parts(), labels, paths=paths)


def _beside(members: Strings, names: MemberNames, rows: Ints, wanted: Ints, keys: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yields the members, and the first member of each record, that no feature uses; see `findings`.

    Args:
        members: The names of all members.
        names: Those with a key, parsed.
        rows: The record of each of these.
        wanted: The feature of each, or -1.
        keys: The keys of the features.
    """
    import numpy as np

    there: Ints = np.zeros(len(members), bool)
    there[names.places] = True
    for place in np.flatnonzero(~there).tolist():
        yield ("system" if is_hidden(members[place]) else "unnamed"), members[place]
    first, whose = np.unique(rows, return_index=True)[1], np.unique(rows, return_inverse=True)[1]
    used: Ints = np.zeros(len(first), bool)
    used[whose[wanted >= 0]] = True
    if not used.all():
        dotted: Ints = np.zeros(len(first), bool)
        dotted[whose[names.columns(keys, last=True) >= 0]] = True
        for record in np.flatnonzero(~used).tolist():
            yield ("dotted" if dotted[record] else "keyless"), members[int(names.places[first[record]])]


def _sound(slots: Ints, lengths: Ints) -> tuple[int, str]:
    """Counts the members before the first duplicate or oversized one, and describes that one."""
    import numpy as np

    again: Ints = np.ones(len(slots), bool)
    again[np.unique(slots, return_index=True)[1]] = False
    wrong = again | (lengths > LONGEST)
    if not wrong.any():
        return len(slots), ""
    first = int(wrong.argmax())
    return first, f"has more than {LONGEST:,} bytes" if lengths[first] > LONGEST else "is a duplicate"
