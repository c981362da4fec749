"""Describes a feature of a table's rows, and the columns that hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from pipegen.ops.kinds.registry import kind_of, names_in, require_own_arguments
from pipegen.ops.sources.features.chosen_classes import ChoosesClasses
from pipegen.ops.sources.features.class_names import KnownClasses
from pipegen.ops.sources.features.file_formats import FileFeature
from pipegen.ops.sources.features.numbers import NumberType

if TYPE_CHECKING:
    from pipegen.types import FeatureType

    Kind = str
else:
    Kind = names_in("table")

Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]
_OF = {
    "root": "files", "ending": "files", "channels": "images", "bits": "images", "classes": "labels", "offset": "labels",
    "separator": "labels", "columns": "tensors", "dtype": "tensors", "map": "labels",
}  # fmt: skip
"""What an argument belongs to in the first place."""


class TableFeature(ChoosesClasses, FileFeature):  # type: ignore[misc]  # one `ignore` for what masks and labels leave out
    """One feature of a table's rows: what it is, and the column that it stands in."""

    _later: ClassVar[frozenset[str]] = frozenset({"ending", "format", "map", "shape", "dtype"})
    in_rows: ClassVar[bool] = True

    kind: Kind
    """`image`: the column holds paths of image files. `mask`: paths of files that hold a class for each pixel of the image. `label`:
    it holds class names, or class indices as whole numbers. `tensor`: numbers, of one `dtype`. `weight`: a number of 0 or more, which
    weighs the example in the loss. `array`: paths of files that hold numbers of one `shape`."""
    column: Column | None = None
    """The name of the column in the header, or its number from 0; by default the feature's own name. `about.label` is the field `label` of
    cells that hold JSON."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """The columns of a tensor, stacked into one vector in this order."""
    root: Annotated[str, Field(min_length=1)] | None = None
    """The folder that the image paths are relative to, itself relative to the spec's file; by default the table's
    folder, and for a table in memory the spec's."""
    ending: Annotated[str, Field(min_length=2, pattern=r"^\.")] | None = None
    """What the paths lack at their end, such as `.jpg` where a column holds ids; a path that ends so already stays as it is."""
    classes: KnownClasses | None = None
    """The names of the classes in the order of their indices, or how many there are; by default the data says so, and of a mask the
    largest index in `values`."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """What stands between the classes of an example that has several, or none; the label is then encoded as `multi_hot`."""
    offset: int = 0
    """What is subtracted from whole numbers to get class indices, such as 1 where classes are counted from 1."""

    dtype: NumberType | None = None
    """For a tensor: `float32`, the default, or `int64` for whole numbers beyond 16,777,216, such as ids and times. By default a whole
    number that float32 cannot hold is an error; `float32` written out takes it rounded."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> TableFeature:
        require_own_arguments(self, "table", _OF)
        if self.column is not None and self.columns is not None:
            raise ValueError("`column` names one column and `columns` several; leave one of them out")
        if self.columns is not None and self.shape is not None:
            raise ValueError("`columns` are one number each, and `shape` is that of arrays in one column; leave one of them out")
        return self

    @property
    def several(self) -> bool:
        """Returns whether an example has any number of labels."""
        return self.separator is not None

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Returns the shape of a tensor."""
        return self.shape or ((len(self.columns),) if self.columns is not None else ())

    def type(self, of: str | None = None) -> FeatureType:
        """Returns the type, from the arguments alone, of a feature that is aligned with `of`."""
        return kind_of(self).stored_type(self, of, self.num_classes)
