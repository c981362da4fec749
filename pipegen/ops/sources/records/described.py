"""The base of sources whose records hold each feature under a key, and the errors if what a key holds cannot be the feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import FeatureSource
from pipegen.ops.sources.features.predicate import Where, parse_predicate
from pipegen.ops.sources.records.features import RecordFeature
from pipegen.ops.sources.stores.field_types import BYTES, NUMERAL, FieldType
from pipegen.ops.sources.tables.join import Join
from pipegen.types import BYTE_RANGE, WORD_RANGE, Interval


class DescribedRecords(FeatureSource):
    """Records in files of many, described by the argument `features`, which each source declares."""

    if TYPE_CHECKING:
        features: dict[FeatureName, RecordFeature]

    where: Where | None = None
    """Records that are examples: a comparison of short values in them, such as `age >= 18 and site in ['a', 'b']`, with `and`, `or`, `not`,
    brackets and `in`; a name is a key of the records. Put texts in quotes, and keys that are not plain words in backticks. These values are
    read once for all records. Records keep the ids that they have without it."""
    join: Join | None = None
    """A table whose columns are added to the records with the same key, for features with a `column`, for `where` and for splits:
    `{table: {csv: {path: labels.csv}}, on: {id: file}}`. In `webdataset` and `zip`, `__key__` is the name of a record."""

    _folder: Path | None = PrivateAttr(default=None)
    """Folder of the index."""

    @model_validator(mode="after")
    def _in_one_place(self) -> DescribedRecords:
        for name, feature in self.features.items():
            if feature.joined and self.join is None:
                raise PartError(
                    f"`{name}` has a `column`, which needs a joined table",
                    "features",
                    name,
                    help="a joined table is `join: {table: …, on: …}`; a key of the records is `key`",
                )
            home = self.features.get(feature.home or "", feature)
            if home.joined is not feature.joined:
                places = [
                    f"`{one}` in the {'joined table' if f.joined else 'records'}" for one, f in ((name, feature), (feature.home, home))
                ]
                raise PartError(f"`{name}` is `with: {feature.home}`, but {' and '.join(places)}", "features", name, "with")
        if all(feature.joined for feature in self.features.values()):
            raise PartError("all features are in the joined table, and none in the records", "features")
        return self

    def has_rows(self) -> bool:
        """Returns False: records lie in files."""
        return False

    def by_class(self) -> bool:
        """Returns False: a file holds records of every class."""
        return False

    @property
    def read_features(self) -> dict[str, RecordFeature]:
        """The features that are read with each record; others are read once for all records."""
        return {name: f for name, f in self.features.items() if not (kind_of(f).ragged or f.several or f.joined)}

    def remarks(self) -> tuple[str, ...]:
        names = " and ".join(f"`{name}`" for name in self.features if name not in self.read_features)
        held = (f"{names} of all records are read once and held in memory",) if names else ()
        needed = {column.name: "where" for column in parse_predicate(self.where).columns()} if self.where is not None else {}
        needed |= {str(self.join.own): "join"} if self.join is not None else {}
        return (*held, *(f"{name!r}, for `{argument}`, is {self.columns_cost()}" for name, argument in needed.items()))

    def has_columns(self) -> bool:
        """Returns True: short values can be read for all records."""
        return True

    def columns_cost(self) -> str:
        return "read once from all records"

    def split_method(self) -> Literal["random", "hash"]:
        """Returns `hash`, which does not depend on the order of records."""
        return "hash"

    def keep_index_in(self, folder: Path | None) -> None:
        self._folder = folder


_PICKLED = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # first bytes of pickled objects, by protocol version
PIXELS: dict[str, Interval | None] = {"uint8": BYTE_RANGE, "uint16": WORD_RANGE, "float32": None}
"""Dtypes of images that are arrays, with the interval of their values."""


def check_field(name: str, feature: RecordFeature, key: str, held: FieldType, where: str = "", *, arrays: bool = False) -> None:
    """Raises `PG431` if a feature cannot be built from the values of a key, of the type `held`. `where` says which records have it, after
    the key in messages; with `arrays`, images may be arrays."""
    kind, wanted = kind_of(feature), feature.stored_shape
    numbers = held.numeric or held.dtype == NUMERAL
    if kind.pictured:
        arrays = arrays and kind.levels
        fits = (held.dtype == BYTES and not held.shape and not held.path) or (arrays and held.dtype in PIXELS and len(held.shape) in (2, 3))
        due = "the bytes of an image file" + ", or an array of uint8, uint16 or float32" * arrays
    elif kind.labels:
        fits, due = bool(held.dtype) and math.prod(held.shape) == 1, "one class index or class name"
    else:
        fits = numbers and math.prod(held.shape) == math.prod(wanted)
        due = f"numbers of shape {list(wanted)}" if wanted else "one number"
    if fits:
        return
    suits = kind.numbers and numbers and not kind.weighs
    help_ = write(f"shape: {list(held.shape)}", "arguments", "{} keeps them as they are") if suits else None
    raise OpError("PG431", f"{key!r}{where} holds {held}, but `{name}` needs {due}", field=feature.key_field(name), help=help_)


def missing_key(message: str, feature: RecordFeature, name: str, key: str, known: Sequence[str], listed: str) -> OpError:
    """Returns the error for a key that records lack, which suggests a known one."""
    near = closest(key, known)
    help_ = listed if near is None else (write(f"key: {near}", "arguments", "is {} meant?"), listed)
    return OpError("PG431", message, field=feature.key_field(name), help=help_)


def check_pickled(name: str, value: bytes) -> None:
    """Raises `PG431` if an image is a pickled object."""
    if value.startswith(_PICKLED) and value.endswith(b"."):
        message = f"`{name}` of the first record is a pickled object; unpickling is refused, since it could run foreign code"
        raise OpError("PG431", message, field=f"features.{name}", help="store the bytes of image files instead")
