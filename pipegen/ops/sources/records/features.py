"""Describes a feature of the records of a source, and the key that holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from pipegen.ops.kinds.registry import kind_of, names_in, require_own_arguments
from pipegen.ops.sources.features.chosen_classes import ChoosesClasses
from pipegen.ops.sources.features.class_names import KnownClasses
from pipegen.ops.sources.features.numbers import NumberType
from pipegen.ops.sources.features.pictures import StoredPicture

if TYPE_CHECKING:
    from pipegen.types import FeatureType

    Kind = str
else:
    Kind = names_in("records")

_OF = {"channels": "images", "bits": "images", "classes": "labels and masks", "offset": "labels", "shape": "tensors", "map": "labels"}
_OF |= {"dtype": "tensors"}
"""What an argument belongs to in the first place."""
Side = Annotated[int, Field(ge=1)]


class RecordFeature(ChoosesClasses, StoredPicture):  # type: ignore[misc]  # one `ignore` for what masks and labels leave out
    """One feature of the records: what it is, and the key that holds it."""

    _later: ClassVar[frozenset[str]] = frozenset({"map", "dtype"})

    kind: Kind
    """`image`: the bytes of an image file. `mask`: the bytes of a file that holds a class for each pixel of the image. `label`: a class
    index or the name of a class. `tensor`: numbers of one `shape` and `dtype`. `weight`: a number of 0 or more, which weighs the example
    in the loss."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """The key of the record that holds it; by default the feature's own name."""
    classes: KnownClasses | None = None
    """The names of the classes in the order of their indices, or how many there are. Without it every label is read once to find them; of
    a mask, the largest index in `values` says so."""
    offset: int = 0
    """What is subtracted from stored class indices, such as 1 where classes are counted from 1."""
    shape: Annotated[tuple[Side, ...], Field(max_length=8)] | None = None
    """The shape of a tensor, such as `[17, 3]`; by default it is one number."""

    dtype: NumberType | None = None
    """For a tensor: `float32`, the default, or `int64` for whole numbers beyond 16,777,216, such as ids and times. By default a whole
    number that float32 cannot hold is an error; `float32` written out takes it rounded."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> RecordFeature:
        require_own_arguments(self, "records", _OF)
        return self

    @property
    def several(self) -> bool:
        """Returns whether an example has any number of labels."""
        return False

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Returns the shape of a tensor."""
        return self.shape or ()

    def type(self, of: str | None = None) -> FeatureType:
        """Returns the type, from the arguments alone, of a feature that is aligned with `of`."""
        return kind_of(self).stored_type(self, of, self.num_classes)
