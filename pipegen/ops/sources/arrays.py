"""`arrays`: rows of arrays, passed to `build(data=)` or read from `.npz` and `.npy` files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.ops.arguments.geometry import FixedSize, height_width
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.kinds.item_number import with_numbers
from pipegen.ops.kinds.registry import held_in_memory, kind_of, names_of
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.any_kind import AnyKind
from pipegen.ops.sources.features.feature import aligned_images
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.types import ElementType

if TYPE_CHECKING:

    Kind = str
else:
    Kind = names_of(held_in_memory)


class ArrayFeature(AnyKind):
    """One array of a source: its kind and origin."""

    kind: Kind
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


class Arrays(Source):
    """Rows of arrays: images and labels from `pipegen.build(spec, data={"image": x, "label": y})`, or from files by `path`.

    Row i of each array is one example, identified by `i`. All arrays have the same number of rows. A batch of small images is one gather
    of rows; no function runs per example.
    """

    op: ClassVar[str] = "arrays"

    features: Annotated[dict[FeatureName, ArrayFeature], Field(min_length=1)]
    """Kind and arguments of each array, by feature name: `{image: {kind: image}, label: {kind: label, classes: 10}}`."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """Path of a `.npz` file with the arrays, relative to the spec's file. By default the arrays come from `build(data=)`."""

    @field_validator("features")
    @classmethod
    def _one_image(cls, features: dict[str, ArrayFeature]) -> dict[str, ArrayFeature]:
        if not any(kind_of(feature).levels for feature in features.values()):
            raise ValueError("`features` has no image; add one such as `image: {kind: image}`")
        aligned_images(features)
        return features

    @model_validator(mode="after")
    def _one_place(self) -> Arrays:
        own = [name for name, feature in self.features.items() if feature.path is not None]
        if own and self.path is not None:
            raise ValueError(f"`path` holds every array, and `{own[0]}` has a `path` of its own; leave one of them out")
        if own and len(own) < len(self.features):
            bare = next(name for name in self.features if name not in own)
            raise ValueError(f"`features`: `{own[0]}` has a `path` and `{bare}` has none; give each array one")
        return self

    def infer(self) -> ElementType:
        """Infers the type of a row before the data is known: 8-bit RGB images of one size, unless the features say more."""
        return self.possible()[0]

    def possible(self) -> tuple[ElementType, ...]:
        """Lists every type that the features allow."""
        names, of = tuple(self.features), aligned_images(self.features)
        choices = product(*([t.with_(of=of.get(n)) for t in kind_of(feature).array_types(feature)] for n, feature in self.features.items()))
        return tuple(with_numbers(ElementType(tuple(zip(names, chosen, strict=True)))) for chosen in choices)

    def needs_data(self) -> bool:
        return self.path is None and all(feature.path is None for feature in self.features.values())

    def unpacked(self, base: Path) -> int:
        from pipegen.ops.sources.array_rows.npz import packed_bytes

        return packed_bytes(self.features, self.path, str(base)) if self.path is not None else 0

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Inspect the arrays; see `Source.list`. Images of floats are read in full."""
        from pipegen.ops.sources.array_rows.npz import read_files
        from pipegen.ops.sources.array_rows.rows import given_arrays, list_rows

        if self.needs_data():
            return list_rows(self.features, given_arrays(self.features, data))
        return list_rows(self.features, read_files(self.features, self.path, str(base)))
