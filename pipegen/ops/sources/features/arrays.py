"""Describes the arrays of a source: what each holds, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from pipegen.ops.arguments.geometry import FixedSize, height_width
from pipegen.ops.arguments.item_rules import BoxFormat, BoxRules
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.kinds.registry import kind_of, names_in, require_own_arguments
from pipegen.ops.sources.features.chosen_classes import ChoosesClasses
from pipegen.ops.sources.features.class_names import KnownClasses
from pipegen.ops.sources.features.items import LATER, Beside, KeepsBoxes, NamesPoints
from pipegen.ops.sources.features.numbers import NumberType

if TYPE_CHECKING:
    from pipegen.types import FeatureType

    Kind = str
else:
    Kind = names_in("arrays")

FeatureName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_OF = dict.fromkeys(("classes", "offset", "map"), "labels") | dict.fromkeys(("size", "channels", "bits", "range"), "images")
_OF |= dict.fromkeys(("format", "max", "min_area", "min_visibility", "min_size", "empty"), "boxes")
_OF |= {"dtype": "tensors"}
_OF |= dict.fromkeys(("names", "mirror_pairs", "outside"), "keypoints")
"""What an argument belongs to in the first place."""


class ArrayFeature(ChoosesClasses, KeepsBoxes, NamesPoints, Beside):  # type: ignore[misc]  # one `ignore` for what masks and labels leave out
    """One array of a source: what it holds, and where it comes from."""

    _later: ClassVar[frozenset[str]] = frozenset({"map", "dtype"}) | LATER

    kind: Kind
    """`image`: `(n, height, width, channels)`, or `(n, height, width)` for gray; uint8, uint16, or floats, which are held as
    float32. `mask`: the class index of each pixel, `(n, height, width)` or `(n, height, width, 1)`. `label`: class indices or class
    names, `(n,)` or `(n, 1)`. `tensor`: numbers of any shape `(n, ...)`, held as `dtype`. `weight`: numbers of 0 or more, `(n,)`,
    which weigh the examples in the loss. `boxes`: four numbers of each, a list of arrays `(items, 4)`. `keypoints`: x and y of each, and
    perhaps 0, 1 or 2 for absent, hidden or seen: `(n, names, 2 or 3)`; with boxes, a list of arrays `(items, names, 2 or 3)`; and without
    `names` one of arrays `(items, 2 or 3)`."""
    key: Annotated[str, Field(min_length=1)] | None = None
    """The name of the array in `data=` or in the `.npz` file; by default the feature's own name."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """A `.npy` file that holds this array alone, relative to the spec's file."""
    size: FixedSize | None = None
    """The size of the images: a square's side or `[height, width]`, in pixels. Said here, it is known before the data is there."""
    channels: Annotated[int, Field(ge=1)] | None = None
    """Channels of the images. Without it they are those of the data; until that is there, images are taken for RGB."""
    bits: Literal[8, 16] | None = None
    """Bits of an integer image: 8 for uint8, 16 for uint16. Without it the data says so."""
    range: tuple[Number, Number] | None = None
    """The lowest and the highest value that images of floats can have, such as `[0, 1]`. Without it, data that lies in 0..1,
    in -1..1 or in 0..255 has that range, and any other none."""
    classes: KnownClasses | None = None
    """The names of the classes in the order of their indices, or how many there are; by default the data says so."""
    format: BoxFormat | None = None
    """For boxes: what the four numbers of one are; `xyxy` by default. `xyxy` is left, top, right and bottom edge in pixels, `xywh` left,
    top, width and height, `center_xywh` the centre, width and height, `yxyx` top, left, bottom and right; `rel_xyxy` and so on the same in
    parts of the image's width and height."""
    offset: int = 0
    """What is subtracted from the stored labels to get class indices, such as 1 where classes are counted from 1."""

    dtype: NumberType | None = None
    """For a tensor: `float32`, the default, or `int64` for whole numbers beyond 16,777,216, such as ids and times. By default a whole
    number that float32 cannot hold is an error; `float32` written out takes it rounded."""

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

    @model_validator(mode="after")
    def _of_its_kind(self) -> ArrayFeature:
        require_own_arguments(self, "arrays", _OF)
        if self.bits is not None and self.range is not None:
            raise ValueError("`range` is for images of floats, and `bits` for integers; leave one of them out")
        if self.key is not None and self.path is not None:
            raise ValueError("`key` names an array among several, and a `.npy` file holds one; leave `key` out")
        return self

    @property
    def home(self) -> str | None:
        """Returns the feature of which each item has one of these, if any."""
        found: str | None = getattr(self, "with")
        return found

    def box_rules(self) -> BoxRules:
        """Returns how its boxes are stored, and which are kept."""
        return self.rules(self.format or "xyxy")

    def possible(self) -> tuple[FeatureType, ...]:
        """The types that it can turn out to have; the first is what stands for it before the data is there."""
        return kind_of(self).array_types(self)

    def height_width(self) -> tuple[int | None, int | None]:
        """Returns the size of an image in pixels, as far as it is given."""
        return height_width(self.size) if self.size is not None else (None, None)
