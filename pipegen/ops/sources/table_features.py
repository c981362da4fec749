"""Describes a feature of a table's rows, and the columns that hold it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipegen.ops.sources.pictures import StoredPicture, encoded
from pipegen.types import FeatureType, Interval

Column = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]
_OF = {
    "root": ("image", "mask"),
    "channels": ("image",),
    "bits": ("image",),
    "classes": ("label", "mask"),
    "offset": ("label",),
    "separator": ("label",),
    "columns": ("tensor",),
}
"""The kinds that an argument belongs to."""
_WHAT = {"image": "images", "label": "labels", "tensor": "tensors"}


class TableFeature(StoredPicture):
    """One feature of a table's rows: what it is, and the column that it stands in."""

    kind: Literal["image", "mask", "label", "tensor", "weight"]
    """`image`: the column holds paths of image files. `mask`: paths of files that hold a class for each pixel of the image. `label`:
    it holds class names, or class indices as whole numbers. `tensor`: numbers, as float32. `weight`: a number of 0 or more, which
    weighs the example in the loss."""
    column: Column | None = None
    """The name of the column in the header, or its number from 0; by default the feature's own name."""
    columns: Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """The columns of a tensor, stacked into one vector in this order."""
    root: Annotated[str, Field(min_length=1)] | None = None
    """The folder that the image paths are relative to, itself relative to the spec's file; by default the table's
    folder, and for a table in memory the spec's."""
    classes: Annotated[int, Field(ge=1)] | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The names of the classes in the order of their indices, or how many there are; by default the data says so, and of a mask the
    largest index in `values`."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """What stands between the classes of an example that has several, or none; the label is then encoded as `multi_hot`."""
    offset: int = 0
    """What is subtracted from whole numbers to get class indices, such as 1 where classes are counted from 1."""

    @model_validator(mode="after")
    def _of_its_kind(self) -> TableFeature:
        given = next((name for name, kinds in _OF.items() if self.kind not in kinds and getattr(self, name) not in (None, 0)), None)
        if given is not None:
            raise ValueError(f"`{given}` belongs to {_WHAT[_OF[given][0]]}, and this is `kind: {self.kind}`")
        if self.column is not None and self.columns is not None:
            raise ValueError("`column` names one column and `columns` several; leave one of them out")
        if isinstance(self.classes, tuple) and len(set(self.classes)) < len(self.classes):
            twice = next(name for name in self.classes if self.classes.count(name) > 1)
            raise ValueError(f"the class {twice!r} is listed twice")
        return self

    @property
    def several(self) -> bool:
        """Returns whether an example has any number of labels."""
        return self.separator is not None

    @property
    def num_classes(self) -> int | None:
        """Returns the number of classes, as far as it is given."""
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes

    def type(self, of: str | None = None) -> FeatureType:
        """Returns the type, from the arguments alone, of a feature that is aligned with `of`."""
        if self.kind in ("image", "mask"):
            return encoded(self.kind, of, self, self.num_classes)
        if self.kind == "label":
            return label_type(self.num_classes, several=self.several)
        shape = (len(self.columns),) if self.columns is not None else ()
        return FeatureType(self.kind, "float32", shape)


def label_type(classes: int | None, *, several: bool) -> FeatureType:
    """The type of a label: a class index, or where an example has any number of labels, 1 for each class that it has."""
    if several:
        return FeatureType("label", "uint8", (classes,), Interval(0.0, 1.0), classes=classes)
    return FeatureType("label", "int64", (), classes=classes)
