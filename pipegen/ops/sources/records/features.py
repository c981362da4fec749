"""`RecordFeature`: a feature of a source's records, and its key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from pipegen.ops.kinds.registry import held_in_memory, names_of
from pipegen.ops.sources.features.any_kind import AnyKind
from pipegen.ops.sources.features.feature import EncodedFeature

if TYPE_CHECKING:
    Kind = str
else:
    Kind = names_of(held_in_memory)

Key = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(ge=1)]


class RecordFeature(AnyKind, EncodedFeature):
    """One feature of the records, and its key."""

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
    shape: Annotated[tuple[Side, ...], Field(max_length=8)] | None = None
    """Shape of a tensor, such as `[17, 3]`; by default one number. For keypoints without `names` that are numbers one after another: `[2]`
    for x and y, `[3]` with the visibility."""

    @model_validator(mode="after")
    def _consistent(self) -> RecordFeature:
        if self.keys is not None and self.key is not None:
            raise ValueError("`keys` are four in place of the one `key`; leave one of them out")
        return self

    def keys_of(self, name: str) -> tuple[str, ...]:
        """Returns the keys that the feature `name` is read from."""
        return self.keys or (self.key or name,)

    @property
    def several(self) -> bool:
        return False

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return self.shape or ()

    def key_field(self, name: str) -> str:
        """Returns the argument that errors about the key of this feature point to."""
        return f"features.{name}.key" if self.key is not None else f"features.{name}"
