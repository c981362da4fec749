"""`lmdb` and `sqlite`: the values of LMDB environments, read in place, and the rows of tables in SQLite files."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from pipegen.errors import OpError, PartError
from pipegen.lazy import np
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.base import always
from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.ops.sources.records.index import Indexed, ShardRecords, counted
from pipegen.ops.sources.records.parts import PartSource
from pipegen.ops.sources.records.reader import stretches
from pipegen.ops.sources.records.source import RecordFeature, check_pickled
from pipegen.ops.sources.shards.findings import tallied
from pipegen.ops.sources.stores.base import Store
from pipegen.ops.sources.stores.field_types import FieldType, MissingLibrary, StoreError
from pipegen.ops.sources.stores.sqlite_rows import SqliteRows

ANY = "*"


class Lmdb(PartSource):
    """LMDB environments, each a folder with a `data.mdb` or a file. The values whose keys match the patterns of the features with the same
    text for `*` form an example.

    The `key` of a feature is a pattern with one `*`, such as `image-*` and `label-*`. By default it is the feature's name, a dash and `*`.
    With `key: '*'` each key of the environment is an example with one feature. Images are the bytes of image files, labels and single
    numbers are text, and other numbers are `.npy` files. Values are never unpickled.

    The library `lmdb` lists the keys once: `pip install 'pipegen[lmdb]'`. It runs in a process of its own, since a damaged file can crash
    it. Values are then read in the graph at their places in the file, without the library.
    """

    op: ClassVar[str] = "lmdb"
    suffixes: ClassVar[tuple[str, ...]] = (".mdb", ".lmdb")
    fetched_as_read = always(frozenset[str]())  # the library needs whole files

    @field_validator("features")
    @classmethod
    def _patterns(cls, features: dict[str, RecordFeature]) -> dict[str, RecordFeature]:
        for name, feature in features.items():
            if feature.keys is not None:
                raise PartError(f"a value of a database is one list, so `{name}` has one `key`", name, "keys")
            if feature.key is not None and feature.key.count(ANY) != 1:
                raise PartError(f"the key of `{name}` needs exactly one `*`, got {feature.key!r}", name, "key")
        return features

    def key_of(self, name: str) -> str:
        return self.features[name].key or f"{name}-{ANY}"

    def key_of_column(self, column: str) -> str:
        return column if ANY in column else f"{column}-{ANY}"

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """List the keys and group them into records; `PG440` without LMDB, `PG442` if no key matches or values are missing."""
        from pipegen.ops.sources.stores.lmdb_keys import list_values

        try:
            values = list_values(path)
        except MissingLibrary as error:
            raise error.diagnosed("LMDB") from None
        except StoreError as error:
            return counted(0, f"({error})", parts=len(self.features))
        rows = self._matched(path, values.keys)
        unused: Ints = np.ones(len(values.keys), bool)
        unused[rows] = False
        findings = tallied(("unmatched", values.keys[i].decode("utf-8", "backslashreplace")) for i in np.flatnonzero(unused).tolist())
        return ShardRecords(values.offsets[rows], values.lengths[rows].astype(np.int32), findings=findings)

    def _matched(self, path: str, keys: Sequence[bytes]) -> Ints:
        """Returns the places of the keys of each record, int64 `(n, features)`, sorted by the text that `*` matched."""
        found = {name: self._own(name, keys) for name in self.features}
        for name, own in found.items():
            if not own and keys:
                shown = quoted([key.decode("utf-8", "backslashreplace") for key in keys])
                message = f"no key of {path!r} matches {self.key_of(name)!r}"
                raise OpError("PG442", message, field=self.features[name].key_field(name), help=f"its keys are {shown}")
        every = sorted(dict.fromkeys(chain.from_iterable(found.values())))  # most are sorted already
        for name, own in found.items():
            lacking = [record for record in every if record not in own] if len(own) < len(every) else []
            if lacking:
                key = self.key_of(name).replace(ANY, lacking[0].decode("utf-8", "backslashreplace"))
                message = f"{path!r} has no `{name}` for {count(len(lacking), 'record')} of {len(every):,}, such as {key!r}"
                help_ = "each record needs a value of every feature"
                raise OpError("PG442", message, field=self.features[name].key_field(name), help=help_)
        return np.array([[*map(own.__getitem__, every)] for own in found.values()], np.int64).T

    def _own(self, name: str, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Maps the text that `*` matched to the place of the key, for the keys of a feature's pattern."""
        before, after = (part.encode() for part in self.key_of(name).split(ANY))
        shortest = len(before) + len(after)
        return {
            key[len(before) : len(key) - len(after)]: place
            for place, key in enumerate(keys)
            if len(key) >= shortest and key.startswith(before) and key.endswith(after)
        }

    def types(self, found: Indexed) -> dict[str, FieldType]:
        shard, offsets, lengths = found.first
        for name, *place in zip(self.features, offsets.T.tolist(), lengths.T.tolist(), strict=True):
            if self.features[name].own_kind.has_files:
                check_pickled(name, *stretches(shard.path, *place))
        return super().types(found)


class Sqlite(StoreSource):
    """SQLite files: each row of a table is an example, and the key of a feature is a column.

    A column of images is a `BLOB` of the bytes of image files; one of several numbers is a `BLOB` of `.npy` files. Rows are read in the
    order of their `rowid`, which views and tables made `WITHOUT ROWID` lack. Files are opened read-only, and no code stored in them runs.
    """

    op: ClassVar[str] = "sqlite"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")
    called: ClassVar[str] = "SQLite"
    store: ClassVar[type[Store]] = SqliteRows

    table: Annotated[str, Field(min_length=1)] | None = None
    """Name of the table; by default the only one."""

    def store_arguments(self) -> tuple[Hashable, ...]:
        return (self.table,)
