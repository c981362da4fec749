"""`RecordFeature`: a feature of a source's records, and its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from pipegen.ops.kinds.registry import kind_of, names_in
from pipegen.ops.sources.features.chosen_classes import ChoosesClasses
from pipegen.ops.sources.features.class_names import KnownClasses
from pipegen.ops.sources.features.items import OF_ITEMS, HasItems
from pipegen.ops.sources.features.numbers import NumberType
from pipegen.ops.sources.features.pictures import StoredPicture

if TYPE_CHECKING:
    from pipegen.types import FeatureType

    Kind = str
else:
    Kind = names_in("records")

_OF = {"channels": "images", "bits": "images", "classes": "labels and masks", "offset": "labels", "shape": "tensors", "map": "labels"}
_OF |= {"dtype": "tensors", "keys": "boxes"} | OF_ITEMS
"""The kinds that an argument belongs to."""
Key = Annotated[str, Field(min_length=1)]
Side = Annotated[int, Field(ge=1)]


class RecordFeature(ChoosesClasses, HasItems, StoredPicture):  # type: ignore[misc]  # one `ignore` for what masks and labels leave out
    """One feature of the records, and its key."""

    described_in: ClassVar[str] = "records"
    owners: ClassVar[Mapping[str, str]] = _OF

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
    classes: KnownClasses | None = None
    """Class names in index order, or their number. Without it every label is read once to find the classes; for a mask it is the largest
    index in `values`, plus 1."""
    offset: int = 0
    """Number subtracted from stored class indices, such as 1 if they start at 1."""
    shape: Annotated[tuple[Side, ...], Field(max_length=8)] | None = None
    """Shape of a tensor, such as `[17, 3]`; by default one number."""

    dtype: NumberType | None = None
    """For a tensor: `float32` (default), or `int64` for integers beyond 16,777,216, such as ids and times. By default an integer that
    float32 cannot represent is an error; with an explicit `float32` it is rounded."""

    @model_validator(mode="after")
    def _consistent(self) -> RecordFeature:
        if self.keys is not None and self.key is not None:
            raise ValueError("`keys` are four in place of the one `key`; leave one of them out")
        if "records" not in kind_of(self).arguments:
            raise ValueError(f"a {self.kind} of records cannot be `with` {self.home}")
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

    def type(self, of: str | None = None) -> FeatureType:
        """Returns the type, from the arguments alone, of a feature aligned with `of`."""
        return kind_of(self).stored_type(self, of, self.num_classes)
