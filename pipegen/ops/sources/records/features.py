"""`RecordFeature`: a feature of a source's records, and its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from pipegen.errors import PartError
from pipegen.ops.kinds.registry import held_in_memory, kind_of, names_of
from pipegen.ops.sources.features.feature import EncodedFeature
from pipegen.ops.sources.tables.features import Column, InTable

if TYPE_CHECKING:
    Kind = str
else:
    Kind = names_of(held_in_memory)

Key = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(ge=1)]


class RecordFeature(InTable, EncodedFeature):
    """One feature of the records, and its key; or of a joined table, and its column."""

    kind: Kind
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
        if self.joined and kind_of(self).pictured:
            raise PartError(f"{kind_of(self).plural} cannot be in the joined table, whose rows are in another order", "column")
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
