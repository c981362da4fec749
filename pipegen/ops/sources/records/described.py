"""`RecordFeature`, a feature of records and its key; the base of sources of such records; errors if a key cannot hold the feature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, PrivateAttr, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError, PartError
from pipegen.ops.kinds.base import LossWeight, Numbers
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import EncodedFeature, FeatureSource, HeldKindName
from pipegen.ops.sources.features.predicate import Where, parse_predicate
from pipegen.ops.sources.listing.base import always
from pipegen.ops.sources.stores.field_types import FieldType
from pipegen.ops.sources.tables.features import InTable
from pipegen.ops.sources.tables.readings import Column, Join
from pipegen.types import BYTE_RANGE, WORD_RANGE, Interval

Key = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(ge=1)]


class RecordFeature(InTable, EncodedFeature):
    """One feature of the records, and its key; or of a joined table, and its column."""

    kind: HeldKindName
    """`image`: the bytes of an image file. `mask`: the bytes of a file with a class for each pixel of the image. `label`: a class index or
    class name. `tensor`: numbers of one `shape` and `dtype`. `weight`: a number of 0 or more that weighs the example in the loss. `boxes`:
    four numbers for each box, as lists or one after another. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden or visible,
    likewise. A `label` or `tensor` that is `with` boxes has one value for each of them. Boxes, keypoints and what is with them are read
    once for all records, and held in memory."""
    key: Key | None = None
    """Key of the feature in the record; by default its name."""
    keys: tuple[Key, Key, Key, Key] | None = None
    """For boxes, in place of `key`: the keys of their four numbers, in the order of `format`, with a list of one number per box each:
    `[bbox/xmin, bbox/ymin, bbox/xmax, bbox/ymax]`."""
    column: Column | None = None
    """Column of the joined table (`join`) that has the feature, in place of a `key`: its name, or its number from 0."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Several columns of the joined table: the numbers of a tensor; the four numbers of boxes, in the order of `format`; or x and y of each
    of the `names` of keypoints, or x, y and visibility."""
    shape: Annotated[tuple[Side, ...], Field(max_length=8)] | None = None
    """Shape of a tensor, such as `[17, 3]`; by default one number. For keypoints without `names` that are numbers one after another: `[2]`
    for x and y, `[3]` with the visibility."""

    @model_validator(mode="after")
    def _consistent(self) -> RecordFeature:
        if self.keys is not None and self.key is not None:
            raise ValueError("`keys` are four in place of the one `key`; leave one of them out")
        for name in ("key", "keys"):
            if self.joined and getattr(self, name) is not None:
                raise ValueError(f"`{name}` is in the records, and `column` in the joined table; leave one of them out")
        if self.joined and self.own_kind.pixels is not None:
            raise PartError(f"{self.own_kind.plural} cannot be in the joined table, whose rows are in another order", "column")
        return self

    def keys_of(self, name: str) -> tuple[str, ...]:
        """Returns the keys that the feature `name` is read from."""
        return self.keys or (self.key or name,)

    @property
    def joined(self) -> bool:
        """Whether it is in columns of the joined table."""
        return self.column is not None or self.columns is not None

    def key_field(self, name: str) -> str:
        """Returns the argument that errors about the key of this feature point to."""
        return f"features.{name}.key" if self.key is not None else f"features.{name}"


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

    has_rows = by_class = always(False)  # records lie in files, and a file holds records of every class
    column_names = always(None)  # short values can be read for all records
    columns_cost = always("read once from all records")

    @property
    def read_features(self) -> dict[str, RecordFeature]:
        """The features that are read with each record; others are read once for all records."""
        return {name: f for name, f in self.features.items() if not (f.own_kind.ragged or f.several or f.joined)}

    def remarks(self) -> tuple[str, ...]:
        names = " and ".join(f"`{name}`" for name in self.features if name not in self.read_features)
        held = (f"{names} of all records are read once and held in memory",) if names else ()
        needed = {column.name: "where" for column in parse_predicate(self.where).columns()} if self.where is not None else {}
        needed |= {str(self.join.own): "join"} if self.join is not None else {}
        return (*held, *(f"{name!r}, for `{argument}`, is {self.columns_cost()}" for name, argument in needed.items()))

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
    kind = feature.own_kind
    due = (kind.pixels or kind.meaning).due(held, feature.stored_shape, arrays=arrays)
    if due is None:
        return
    suits = kind.has(Numbers) and held.counts and not kind.has(LossWeight)
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
