"""`Feature`, the base of descriptions of features in a spec: the arguments of their kinds, and the image that they are aligned with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from pipegen.diagnostics.suggest import closest
from pipegen.errors import PartError
from pipegen.ops.families.decoder import LARGEST
from pipegen.ops.fields.notes import joined
from pipegen.ops.kinds.base import InstanceNumber, Levels, Overlay, having, held_in_memory, kind_named, kind_of, named_kinds, names_of
from pipegen.ops.kinds.mask import number_name, with_numbers
from pipegen.ops.model import FeatureName, Model
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.transform import Transform
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from typing import TypeAlias

    from pipegen.ops.kinds.base import FeatureKind

    AnyKindName: TypeAlias = str
    HeldKindName: TypeAlias = str
    FileKindName: TypeAlias = str
else:
    AnyKindName, HeldKindName, FileKindName = names_of(), names_of(held_in_memory), names_of(lambda kind: kind.storage == "encoded")

Index = Annotated[int, Field(ge=0, le=LARGEST)]  # a class index of a mask
_Stored = Annotated[int, Field(ge=0, le=65535)]


class Feature(Model):
    """A feature of a record. Arguments of other kinds than its own are errors.

    Attributes:
        kind: Its kind; subclasses define the kinds.
    """

    if TYPE_CHECKING:
        kind: str

    of: Annotated[str, Field(min_length=1)] | None = None
    """The image that this mask or image is aligned with: it moves with it, and steps that change values leave it out unless they name it. A
    mask is aligned with the only image by default; an image without `of` has draws of its own."""
    ignore: Index = 0
    """For a mask: the class index of pixels that a constant fill uncovers, such as 255 for pixels that the loss ignores."""

    @classmethod
    def reject_misplaced(cls, given: Mapping[str, Any]) -> None:
        kinds = [kind for kind in named_kinds() if kind.name in get_args(cls.model_fields["kind"].annotation)]
        kind = next((kind for kind in kinds if kind.name == given.get("kind")), None)
        if kind is None:
            return
        each = kind_named(kind.each) if kind.each and given.get("with") is not None else kind
        for name in cls.model_fields:
            if name in each.arguments or given.get(name) in (None, 0):
                continue
            if name in kind.arguments:
                raise ValueError(f"`{name}` is for {kind.plural} of whole examples, and this is `with: {given['with']}`")
            owners = [other.plural for other in kinds if name in other.arguments]
            if owners:
                raise ValueError(f"`{name}` belongs to {joined(owners)}, and this is `kind: {kind.name}`")

    @model_validator(mode="after")
    def _of_its_kind(self) -> Feature:
        self.reject_misplaced({name: getattr(self, name) for name in type(self).model_fields})
        return self

    @property
    def num_classes(self) -> int | None:
        """The number of classes, if given."""
        classes: int | tuple[str, ...] | None = getattr(self, "classes", None)
        return len(classes) if isinstance(classes, tuple) else classes

    @property
    def home(self) -> str | None:
        """The feature with one of these per item, if any."""
        return getattr(self, "with", None)

    @property
    def own_kind(self) -> FeatureKind:
        """Its kind; that of each item if it is `with` another feature."""
        return kind_of(self)

    def type(self) -> FeatureType:
        """Returns the type, from the arguments alone."""
        return self.own_kind.stored_type(self)


class EncodedFeature(Feature):
    """A feature whose pixels are stored as image files."""

    values: Annotated[dict[_Stored, Index], Field(min_length=1)] | None = None
    """For a mask: the class index of each value in its files, such as `{0: 0, 255: 1}`; by default values are indices. Every index is a
    class, including that of `ignore`, unless `classes` sets the number. In a palette PNG values are palette indices."""

    channels: Literal[1, 3, 4] | None = None
    """For an image: the channels to decode to, 1 for gray, 3 for RGB, 4 for RGB and transparency; by default as in `decode`, which is 3."""
    bits: Literal[8, 16] | None = None
    """For an image: the bits of a value. With 16, files give uint16 from 0 to 65535. A file of another depth is an error; by default as in
    `decode`, which is 8."""

    @field_validator("values")
    @classmethod
    def _sorted(cls, values: dict[int, int] | None) -> dict[int, int] | None:
        return values and dict(sorted(values.items()))


def aligned_images(features: Mapping[str, Feature]) -> dict[str, str | None]:
    """Returns the image that each feature is aligned with, or `None`. Raises `PartError` if an `of` names no image, or one that is aligned
    with another; or a mask has several possible images."""
    images = [name for name in having(features, Levels) if features[name].of is None]
    found: dict[str, str | None] = {}
    for name, feature in features.items():
        kind = kind_of(feature)
        home = getattr(feature, "home", None)
        if home is not None:
            found[name] = _beside(name, home, features)
        if kind.pixels is None and kind.geometry is None:
            continue
        if feature.of is not None and feature.of not in images:
            raise _nowhere(name, feature.of, features, images)
        if kind.has(Overlay) and feature.of is None and len(images) > 1:
            raise PartError(f"`{name}` needs `of`: it can be aligned with {' or '.join(f'`{image}`' for image in images)}", name)
        kind.check(name, feature)
        found[name] = feature.of if feature.of is not None or not kind.has(Overlay) else next(iter(images), None)
    for name in having(features, InstanceNumber):
        _marks(name, getattr(features[name], "home", ""), features, found)
    return found


def _marks(name: str, home: str, features: Mapping[str, Feature], of: Mapping[str, str | None]) -> None:
    """Checks that a mask of instances and its boxes share an image, and that the name of their numbers is free."""
    if of[name] != of[home]:
        raise PartError(f"`{name}` is aligned with `{of[name]}`, but its `{home}` with `{of[home]}`", name, "of")
    number = number_name(home)
    if number in features:
        message = f"`{number}` is reserved for the numbers of `{home}` in `{name}`"
        raise PartError(message, number, help="rename the feature")


def _beside(name: str, home: str, features: Mapping[str, Feature]) -> str:
    """Returns the feature with the items that another one belongs to."""
    ragged = [other for other, f in features.items() if kind_of(f).ragged and getattr(f, "home", None) is None]
    kind = kind_of(features[name])
    if kind.has(InstanceNumber):
        ragged = [other for other in ragged if kind_of(features[other]).guides("boxes")]
    if not kind.ragged and not kind.has(InstanceNumber):
        raise PartError(f"`with` is for labels, tensors, keypoints and masks of boxes, but `{name}` is `kind: {kind.name}`", name, "with")
    if home not in ragged:
        near = closest(home, ragged)
        help_ = f"is `{near}` meant?" if near else "name a feature of `kind: boxes`"
        what = "is not a feature of boxes" if kind.has(InstanceNumber) else "has no items"
        raise PartError(f"`{name}` is `with: {home}`, which {what}", name, "with", help=help_)
    return home


def _nowhere(name: str, of: str, features: Mapping[str, Feature], images: Sequence[str]) -> PartError:
    """Describes an `of` that names no suitable image, with a suggestion."""
    others = [image for image in images if image != name]
    further = features[of].of if of in features else None
    if of == name:
        what = "is itself"
    elif further is not None and of in having(features, Levels):
        what = "is aligned with another image itself"
    else:
        what = "is not an image of `features`"
    near = further if further in others else closest(of, others)
    if near is not None:
        help_ = f"is `{near}` meant?"
    elif others:
        help_ = f"it can be aligned with {' or '.join(f'`{image}`' for image in others)}"
    else:
        help_ = "remove `of`, since `features` has no other image"
    return PartError(f"`{name}` is aligned with `of: {of}`, which {what}", name, "of", help=help_)


def record_type(types: Mapping[str, FeatureType], of: Mapping[str, str | None]) -> ElementType:
    """Returns the type of a record: features on the images that they are aligned with, and the numbers of items in masks."""
    return with_numbers(ElementType(tuple((name, t.with_(of=of.get(name))) for name, t in types.items())))


class FeatureSource(Source):
    """A source that the argument `features` describes; each source declares it."""

    if TYPE_CHECKING:
        features: dict[FeatureName, Any]

    @field_validator("features", check_fields=False)
    @classmethod
    def _live_on_images(cls, features: dict[str, Any]) -> dict[str, Any]:
        aligned_images(features)
        return features

    def infer(self) -> ElementType:
        return record_type({name: feature.type() for name, feature in self.features.items()}, aligned_images(self.features))

    def decoders(self) -> Mapping[str, Transform]:
        found = {name: kind_of(feature).decoder(feature) for name, feature in self.features.items()}
        return {name: decoder for name, decoder in found.items() if decoder is not None}
