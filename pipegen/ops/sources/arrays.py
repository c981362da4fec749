"""`arrays`: records that are rows of arrays, handed to `build(data=)` or read from `.npz` and `.npy` files."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.arguments.sizes import Size, height_width
from pipegen.ops.kinds.registry import kind_of, names_in
from pipegen.ops.sources.base import Listing, Source
from pipegen.ops.sources.pictures import Picture, lives_on
from pipegen.types import ElementType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.types import FeatureType

    Kind = str
else:
    Kind = names_in("arrays")

FeatureName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_OF_IMAGES = ("size", "channels", "bits", "range")
_OF_LABELS = ("classes", "offset")


class ArrayFeature(Picture):
    """One array of a source: what it holds, and where it comes from."""

    kind: Kind
    """`image`: `(n, height, width, channels)`, or `(n, height, width)` for gray; uint8, uint16, or floats, which are held as
    float32. `mask`: the class index of each pixel, `(n, height, width)` or `(n, height, width, 1)`. `label`: class indices or class
    names, `(n,)` or `(n, 1)`. `tensor`: numbers of any shape `(n, ...)`, held as float32. `weight`: numbers of 0 or more, `(n,)`,
    which weigh the examples in the loss."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """The name of the array in `data=` or in the `.npz` file; by default the feature's own name."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """A `.npy` file that holds this array alone, relative to the spec's file."""
    size: Size | None = None
    """The size of the images: a square's side or `[height, width]`, in pixels. Said here, it is known before the data is there."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """Channels of the images. Without it they are those of the data; until that is there, images are taken for RGB."""
    bits: Literal[8, 16] | None = None
    """Bits of an integer image: 8 for uint8, 16 for uint16. Without it the data says so."""
    range: tuple[Number, Number] | None = None
    """The lowest and the highest value that images of floats can have, such as `[0, 1]`. Without it, data that lies in 0..1,
    in -1..1 or in 0..255 has that range, and any other none."""
    classes: Annotated[int, Field(ge=1)] | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The names of the classes in the order of their indices, or how many there are; by default the data says so."""
    offset: int = 0
    """What is subtracted from the stored labels to get class indices, such as 1 where classes are counted from 1."""

    @field_validator("size")
    @classmethod
    def _one_form(cls, size: int | tuple[int, int] | None) -> int | tuple[int, int] | None:
        return size[0] if isinstance(size, tuple) and size[0] == size[1] else size

    @field_validator("range")
    @classmethod
    def _rises(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends is not None and not ends[0] < ends[1]:
            raise ValueError(f"`range` is the lowest and the highest value, got [{ends[0]:g}, {ends[1]:g}]")
        return ends

    @field_validator("classes")
    @classmethod
    def _distinct(cls, names: int | tuple[str, ...] | None) -> int | tuple[str, ...] | None:
        twice = next((n for n in names if names.count(n) > 1), None) if isinstance(names, tuple) else None
        if twice is not None:
            raise ValueError(f"the class {twice!r} is listed twice")
        return names

    @model_validator(mode="after")
    def _of_its_kind(self) -> ArrayFeature:
        foreign = tuple(name for name in (*_OF_LABELS, *_OF_IMAGES) if not kind_of(self).takes("arrays", name))
        given = next((name for name in foreign if getattr(self, name) not in (None, 0)), None)
        if given is not None:
            other = "labels" if given in _OF_LABELS else "images"
            raise ValueError(f"`{given}` belongs to {other}, and this is `kind: {self.kind}`")
        if self.bits is not None and self.range is not None:
            raise ValueError("`range` is for images of floats, and `bits` for integers; leave one of them out")
        if self.key is not None and self.path is not None:
            raise ValueError("`key` names an array among several, and a `.npy` file holds one; leave `key` out")
        return self

    def possible(self) -> tuple[FeatureType, ...]:
        """The types that it can turn out to have; the first is what stands for it before the data is there."""
        return kind_of(self).array_types(self)

    @property
    def num_classes(self) -> int | None:
        """Returns the number of classes, as far as it is given."""
        return len(self.classes) if isinstance(self.classes, tuple) else self.classes

    def height_width(self) -> tuple[int | None, int | None]:
        """Returns the size of an image in pixels, as far as it is given."""
        return height_width(self.size) if self.size is not None else (None, None)


class Arrays(Source):
    """Rows of arrays: images and labels from `pipegen.build(spec, data={"image": x, "label": y})`, or from files by `path`.

    Row number i of each array is one example, known as `i`. All arrays have as many rows. Small images never pass through a
    function of single examples: a batch is one gather of rows.
    """

    op: ClassVar[str] = "arrays"

    features: Annotated[dict[FeatureName, ArrayFeature], Field(min_length=1)]
    """What each array holds, by the name of the feature: `{image: {kind: image}, label: {kind: label, classes: 10}}`."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """A `.npz` file that holds the arrays, relative to the spec's file. Without it they come from `build(data=)`."""

    @field_validator("features")
    @classmethod
    def _one_image(cls, features: dict[str, ArrayFeature]) -> dict[str, ArrayFeature]:
        if not any(kind_of(feature).levels for feature in features.values()):
            raise ValueError("`features` names no image; such as `image: {kind: image}`")
        lives_on(features)
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
        """Infers the type of a row before the data is there: 8-bit RGB images of one size, unless more is said."""
        return self.possible()[0]

    def possible(self) -> tuple[ElementType, ...]:
        """Every type that the features leave open."""
        names, of = tuple(self.features), lives_on(self.features)
        choices = product(*([t.with_(of=of.get(n)) for t in feature.possible()] for n, feature in self.features.items()))
        return tuple(ElementType(tuple(zip(names, chosen, strict=True))) for chosen in choices)

    def has_labels(self) -> bool:
        """Returns whether one of the features is a label."""
        return any(kind_of(feature).labels for feature in self.features.values())

    def has_rows(self) -> bool:
        """Always."""
        return True

    def needs_data(self) -> bool:
        """Returns whether no file is named."""
        return self.path is None and all(feature.path is None for feature in self.features.values())

    def unpacked(self, base: Path) -> int:
        """Sums the bytes that the compressed arrays of a `.npz` file take."""
        from pipegen.ops.sources.npz import packed_bytes

        return packed_bytes(self.features, self.path, str(base)) if self.path is not None else 0

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Look at the arrays; see `Source.list`. Every value of images of floats is read once."""
        from pipegen.ops.sources.npz import read_files
        from pipegen.ops.sources.rows import given_arrays, list_rows

        if self.needs_data():
            return list_rows(self.features, given_arrays(self.features, data))
        return list_rows(self.features, read_files(self.features, self.path, str(base)))
