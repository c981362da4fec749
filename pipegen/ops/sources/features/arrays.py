"""`ArrayFeature`: one array of a source, its kind and origin."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.ops.arguments.geometry import FixedSize, height_width
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.sources.features.any_kind import AnyKind
from pipegen.ops.sources.features.feature import HeldKindName


class ArrayFeature(AnyKind):
    """One array of a source: its kind and origin."""

    kind: HeldKindName
    """`image`: `(n, height, width, channels)`, or `(n, height, width)` for gray; uint8, uint16, or floats, stored as float32. `mask`: the
    class index of each pixel, `(n, height, width)` or `(n, height, width, 1)`. `label`: class indices or class names, `(n,)` or `(n, 1)`.
    `tensor`: numbers of any shape `(n, ...)`, stored as `dtype`. `weight`: numbers of 0 or more, `(n,)`, that weigh the examples in the
    loss. `boxes`: four numbers per box, a list of arrays `(items, 4)`. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden
    or visible: `(n, names, 2 or 3)`; with boxes, a list of arrays `(items, names, 2 or 3)`; without `names`, a list of arrays `(items, 2 or
    3)`."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """Name of the array in `data=` or in the `.npz` file; by default the feature's name."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """A `.npy` file with only this array, relative to the spec's file."""
    size: FixedSize | None = None
    """Size of the images: the side of a square, or `[height, width]`, in pixels. Needed only to know it before the data."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """Channels of the images; by default those of the data. Before the data is known, RGB is assumed."""
    bits: Literal[8, 16] | None = None
    """Bits of an integer image: 8 for uint8, 16 for uint16. By default as in the data."""
    range: tuple[Number, Number] | None = None
    """Lowest and highest possible value of images of floats, such as `[0, 1]`. By default the range is 0..1, -1..1 or 0..255 if the data
    fits it, else none."""

    @field_validator("size")
    @classmethod
    def _one_form(cls, size: int | tuple[int, int] | None) -> int | tuple[int, int] | None:
        return size[0] if isinstance(size, tuple) and size[0] == size[1] else size

    @field_validator("range")
    @classmethod
    def _rises(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends is not None and not ends[0] < ends[1]:
            raise ValueError(f"`range` must be the lowest and the highest value; got [{ends[0]:g}, {ends[1]:g}]")
        return ends

    @model_validator(mode="after")
    def _consistent(self) -> ArrayFeature:
        if self.bits is not None and self.range is not None:
            raise ValueError("`range` is for images of floats, and `bits` for integers; leave one of them out")
        if self.key is not None and self.path is not None:
            raise ValueError("`key` names one of several arrays, but a `.npy` file holds one; leave `key` out")
        return self

    def height_width(self) -> tuple[int | None, int | None]:
        """Returns the size of an image in pixels, if given."""
        return height_width(self.size) if self.size is not None else (None, None)
