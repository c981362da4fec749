"""`TableFeature`: a feature of a table's rows, and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from pipegen.ops.kinds.registry import kind_of, names_in
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
"""The kinds that an argument belongs to."""


class TableFeature(ChoosesClasses, FileFeature):  # type: ignore[misc]  # one `ignore` for what masks and labels leave out
    """One feature of a table's rows, and its column."""

    described_in: ClassVar[str] = "table"
    owners: ClassVar[Mapping[str, str]] = _OF

    in_rows: ClassVar[bool] = True

    kind: Kind
    """`image`: paths of image files. `mask`: paths of files with a class for each pixel of the image. `label`: class names, or class
    indices as integers. `tensor`: numbers of one `dtype`. `weight`: a number of 0 or more that weighs the example in the loss. `array`:
    paths of files with numbers of one `shape`."""
    column: Column | None = None
    """Name of the column in the header, or its number from 0; by default the feature's name. `about.label` is the field `label` of JSON in
    the column `about`."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """Columns of a tensor, stacked into one vector in this order."""
    root: Annotated[str, Field(min_length=1)] | None = None
    """Folder that image paths are relative to, itself relative to the spec's file; by default the table's folder, and for a table in memory
    the spec's."""
    ending: Annotated[str, Field(min_length=2, pattern=r"^\.")] | None = None
    """Ending added to paths without it, such as `.jpg` if a column holds ids."""
    classes: KnownClasses | None = None
    """Class names in index order, or their number; by default as in the data, and for a mask the largest index in `values`, plus 1."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """Separator of the classes of an example with any number of them; the label is then encoded as `multi_hot`."""
    offset: int = 0
    """Number subtracted from integers to get class indices, such as 1 if they start at 1."""

    dtype: NumberType | None = None
    """For a tensor: `float32` (default), or `int64` for integers beyond 16,777,216, such as ids and times. By default an integer that
    float32 cannot represent is an error; with an explicit `float32` it is rounded."""

    @model_validator(mode="after")
    def _consistent(self) -> TableFeature:
        if self.column is not None and self.columns is not None:
            raise ValueError("`column` names one column and `columns` several; leave one of them out")
        if self.columns is not None and self.shape is not None:
            raise ValueError("`columns` have one number each, but `shape` is for arrays in one column; leave one of them out")
        return self

    def column_of(self, name: str) -> str | int:
        """Returns the column of the feature `name`: its own argument, else its name."""
        return name if self.column is None else self.column

    @property
    def several(self) -> bool:
        return self.separator is not None

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return self.shape or ((len(self.columns),) if self.columns is not None else ())

    def type(self, of: str | None = None) -> FeatureType:
        """Returns the type, from the arguments alone, of a feature aligned with `of`."""
        return kind_of(self).stored_type(self, of, self.num_classes)
