"""Records whose features are stretches of bytes of their own: members of archives, values of a database, columns of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pipegen.errors import OpError
from pipegen.ops.sources.listing.base import always
from pipegen.ops.sources.records.index import Indexed, InShard
from pipegen.ops.sources.records.reader import MappedReader, RecordReader, stretches
from pipegen.ops.sources.records.source import RecordSource, check_field
from pipegen.ops.sources.shards.members import unpacked_member
from pipegen.ops.sources.shards.paths import Found
from pipegen.ops.sources.stores.field_types import FieldType, Form

ABSENT = -1  # the length of a missing part


class PartSource(RecordSource):
    """Files whose records have an indexed part for each feature."""

    checked: ClassVar[bool] = False
    """Whether the size and checksum of each part are known; see `Members.checks`."""
    reads: ClassVar[type[RecordReader]] = MappedReader

    fetched_as_read = always(frozenset({"path"}))

    def parts(self) -> tuple[str, ...]:
        """Returns the features, and for each its check, if there are any."""
        return (*self.features, *(map(check_of, self.features) if self.checked else ()))

    def index_options(self) -> str:
        return str([self.key_of(name) for name in self.features])

    def field_type(self, name: str, key: str, shard: Found) -> FieldType:
        """Returns the type of the values under a key, as far as it is known without them; else `BYTES`, with the path of a field of JSON.
        `PG431` without the key."""
        return FieldType()

    def absent(self, name: str, path: str) -> tuple[str, str | None]:
        """Describes a missing part of a feature in a file, and returns the help."""
        return f"column {self.key_of(name)!r}", None

    def types(self, found: Indexed) -> dict[str, FieldType]:
        first, types = found.first, {}
        for name, feature in self.read_features.items():
            key = self.key_of(name)
            held = self.field_type(name, key, first.file)
            if feature.own_kind.has_files:  # a damaged file is reported when it is read, and may be skipped
                self._check_there(name, first.file, 0, int(first.lengths[0, list(self.features).index(name)]))
            elif held.path or held == FieldType():
                held = FieldType.of_member(next(self._each(held.member, name, first)), held.path)
            check_field(name, feature, key, held, " of the first record")
            types[name] = held
        return types

    def stored(self, form: Form, name: str, key: str, records: InShard) -> Sequence[Any]:
        read = partial(self.field_type(name, key, records.file).read, form, texts=self.features[name].separator is not None)
        return list(self._each(read, name, records, optional=form == "cell"))

    def _check_there(self, name: str, shard: Found, row: int, length: int) -> None:
        if length == ABSENT:
            what, help_ = self.absent(name, shard.path)
            message = f"record {row} of {shard.path!r} has no {what} for `{name}`"
            raise OpError("PG431", message, field=self.features[name].key_field(name), help=help_)

    def contents(self, name: str, records: InShard) -> Iterator[bytes | None]:
        shard, offsets, lengths = records
        at = list(self.features).index(name)
        own = lengths[:, at].tolist()
        checks = offsets[:, len(self.features) + at].tolist() if self.checked else [0] * len(own)
        stored = stretches(shard.path, offsets[:, at].tolist(), [max(0, length) for length in own])
        for content, length, check in zip(stored, own, checks, strict=True):
            yield None if length == ABSENT else unpacked_member(content, check)

    def within(self, name: str, content: bytes | memoryview, types: Mapping[str, FieldType]) -> bytes:
        return types[name].member(bytes(content))

    def _each(self, read: Callable[[bytes], Any], name: str, records: InShard, *, optional: bool = False) -> Iterator[Any]:
        """Yields what a function of the part of a feature returns, for records of a shard; if `optional`, `None` without a part."""
        path, contents = records.file.path, self.contents(name, records)
        for row, length in enumerate(records.lengths[:, list(self.features).index(name)].tolist() if not optional else ()):
            self._check_there(name, records.file, row, length)
        for row in range(len(records.offsets)):
            try:
                content = next(contents)
            except ValueError as error:
                message = f"`{name}` of record {row} of {path!r} cannot be read: {error}"
                raise OpError("PG430", message, field=f"features.{name}") from None
            try:
                yield None if content is None else read(content)
            except ValueError as error:
                message = f"{path}#{row}, {self.key_of(name)!r}: {error}"
                raise OpError("PG431", message, field=f"features.{name}") from None

    def parse(self, reader: Any, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import from_member

        packed, found = reader.packed(reader.index.offsets[:, len(self.features) :]), {}
        for name in features:
            check = places[check_of(name)][0] if packed else None
            lookup = reader.label_columns[name].lookup if name in reader.label_columns else None
            found[name] = from_member(name, self.features[name], reader.types[name], parts[name], check, lookup, whole=reader.verifies)
        return found


def check_of(name: str) -> str:
    """Returns the part with the check of a feature."""
    return f"{name}\0check"
