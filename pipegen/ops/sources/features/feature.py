"""Descriptions of features in a spec: the arguments of each kind, how arrays and files hold it, and the image that it is aligned with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    Field,
    PositiveInt,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from pipegen.diagnostics.suggest import closest
from pipegen.errors import PartError
from pipegen.ops.arguments.geometry import BoxFormat, BoxRules, FixedSize, Outside, height_width
from pipegen.ops.arguments.magnitudes import Number
from pipegen.ops.arguments.timeline import EventFormat, EventRules
from pipegen.ops.families.decoder import LARGEST, rgb_code
from pipegen.ops.fields.labels import Classes, ClassName, IndexedNames, KnownClasses
from pipegen.ops.fields.notes import joined
from pipegen.ops.fields.numbers import NumberType
from pipegen.ops.kinds.base import (
    FeatureKind,
    InstanceNumber,
    Levels,
    Overlay,
    Timeline,
    having,
    held_in_memory,
    kind_named,
    kind_of,
    named_kinds,
    names_of,
)
from pipegen.ops.kinds.mask import number_name, with_numbers
from pipegen.ops.model import FeatureName, Model
from pipegen.ops.sources.listing.base import PREDICTED, Source
from pipegen.ops.transform import Transform
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    AnyKindName: TypeAlias = str
    HeldKindName: TypeAlias = str
    ColumnKindName: TypeAlias = str
    FileKindName: TypeAlias = str
else:
    AnyKindName, HeldKindName = names_of(), names_of(held_in_memory)
    ColumnKindName, FileKindName = names_of(lambda kind: kind.storage != "encoded"), names_of(lambda kind: kind.storage == "encoded")

Index = Annotated[int, Field(ge=0, le=LARGEST)]  # a class index of a mask
_AUDIO = "audio"
LATER = frozenset({"palette", "value", "absent", "interpolation", "unlabelled", "rate", "duration", "min_duration", "follows", "hop_ms"})
"""See `Model.later`."""
_Stored = Annotated[int, Field(ge=0, le=65535)] | Literal["else"]
_Colour = Annotated[str, Field(pattern=r"^(\[ *\d{1,3} *, *\d{1,3} *, *\d{1,3} *\]|#[0-9A-Fa-f]{6})$")] | Literal["else"]


class Feature(Model):
    """A feature of a record. Arguments of other kinds than its own are errors.

    Attributes:
        kind: Its kind; subclasses define the kinds.
    """

    if TYPE_CHECKING:
        kind: str

    later: ClassVar[frozenset[str]] = LATER
    of: Annotated[str, Field(min_length=1)] | None = None
    """The image that this mask, map or image is aligned with: it moves with it, and steps that change values leave it out unless they name
    it. A mask or a dense map is aligned with the only image by default; an image without `of` has draws of its own. For events: the sound
    in which they happen, by default the only one."""
    ignore: Index = 0
    """For a mask: the class index of pixels that a constant fill uncovers, such as 255 for pixels that the loss ignores. For a dense map:
    their value."""

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


class MapsPixels(Model):
    """Arguments for dense maps."""

    interpolation: Literal["nearest", "bilinear"] | None = None
    """For a dense map: how steps read it between pixels: `bilinear` (default), or the `nearest` one, which blends no values."""


class VectorMaps(MapsPixels):
    """Arguments for dense maps in arrays."""

    later: ClassVar[frozenset[str]] = LATER | {"values"}
    values: Literal["vectors"] | None = None
    """For a dense map: `vectors` to the right and down, in pixels, which turn and scale with the image; by default plain numbers."""


class KeepsBoxes(Model):
    """Arguments for keeping boxes."""

    max: PositiveInt | None = None
    """For boxes: the largest number kept of an image, largest boxes first; each image has that many places. By default as many places as
    the image with the most boxes needs."""
    min_area: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the smallest area that must remain on the image, in square pixels."""
    min_visibility: Annotated[float, Field(ge=0, le=1)] | None = None
    """For boxes: the smallest fraction of the area that a step must leave on the image, from 0 to 1."""
    min_size: Annotated[float, Field(ge=0)] | None = None
    """For boxes: the smallest width and height that must remain, in pixels."""
    empty: Literal["allow", "refuse"] | None = None
    """For boxes: whether an image may have none; `allow` by default."""

    def rules(self, form: BoxFormat | None) -> BoxRules:
        """Returns the rules for boxes stored in a format; `None` for the format that steps use."""
        return BoxRules(form, self.max, self.min_area or 0.0, self.min_visibility or 0.0, self.min_size or 0.0, self.empty or "allow")


class KeepsItems(KeepsBoxes):
    """Arguments for keeping boxes and events."""

    max: PositiveInt | None = None
    """For boxes: the largest number kept of an image, largest boxes first; each image has that many places. By default as many places as
    the image with the most boxes needs. For events likewise, longest events first."""
    min_visibility: Annotated[float, Field(ge=0, le=1)] | None = None
    """For boxes: the smallest fraction of the area that a step must leave on the image, from 0 to 1; for events of the time in the
    sound."""
    min_duration: Annotated[float, Field(ge=0)] | None = None
    """For events: the shortest time that must remain in the sound, in seconds."""
    empty: Literal["allow", "refuse"] | None = None
    """For boxes and events: whether an image, or a sound, may have none; `allow` by default."""

    def rules_of_events(self, form: EventFormat | None) -> EventRules:
        """Returns the rules for events stored in a format; `None` for the format that steps use."""
        return EventRules(form, self.max, self.min_duration or 0.0, self.min_visibility or 0.0, self.empty or "allow")


class NamesPoints(Model):
    """Arguments for names and handling of keypoints."""

    names: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None
    """For keypoints: their names, in order. Each image, or each box that they are `with`, has one of each. Without names an image has any
    number of points."""
    mirror_pairs: tuple[tuple[str, str], ...] | None = None
    """For keypoints: the names that a mirror swaps, such as `[[left_eye, right_eye]]`; `[]` for none."""
    outside: Outside | None = None
    """For keypoints: what to do with points outside of the image. `remove` (default) makes named ones absent and drops others; `keep`
    leaves them there."""


if TYPE_CHECKING:

    class Beside(Feature):
        """The argument `with`, which is a keyword in Python."""

else:
    _WITH = (
        "Boxes that have one of these each, such as a class or a set of keypoints: these are dropped, sorted and padded with them. A mask "
        "`with` boxes has at each pixel the number of a box, counted from 1, or 0."
    )
    Beside = create_model(
        "Beside",
        __base__=Feature,
        __module__=__name__,
        **{"with": (Annotated[str, Field(min_length=1)] | None, Field(None, description=_WITH))},
    )


class OfSound(Model):
    """The argument for sound that every source takes."""

    rate: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """For sound: samples a second, in Hz, such as 16000. Files of another rate are resampled to it."""


class SoundFiles(Model):
    """Arguments of a source whose files are sounds."""

    rate: Annotated[int, Field(ge=1, le=1_000_000)]
    """Frames a second, in Hz, such as 16000. A file of another rate is resampled to it, by a windowed sinc of 64 zero crossings on each
    side."""
    channels: Annotated[int, Field(ge=1, le=32)] = 1
    """Channels of the result. With 1, the mean of a file's channels; a file of one channel has it copied to all, and with any other number
    of channels a file must have as many."""
    offset: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the part to read; a file that ends before is an error."""
    duration: Annotated[float, Field(gt=0)] | None = None
    """The most seconds to read; by default up to the end. A shorter file gives fewer frames: `crop_or_pad` makes all equally long."""

    def sound_type(self) -> FeatureType:
        """Returns the type of a file."""
        return kind_named(_AUDIO).stored_type(self)

    def sound_decoder(self) -> Transform:
        """Returns the decoder of a file."""
        decoder: Transform = kind_named(_AUDIO).decoder(self)
        return decoder


class AnyKind(KeepsItems, NamesPoints, OfSound, Beside):
    """A feature of any kind: the arguments of labels, tensors, boxes, keypoints, sound and events."""

    classes: KnownClasses | None = None
    """For a label or a mask: class names in index order, in a list or in a file with one a line (`{file: classes.txt}`), or their number.
    By default those in the data; for a mask in files the largest index in `values`, plus 1. Records read every label once to find them."""
    offset: int = 0
    """For a label: the number subtracted from stored numbers to get class indices, such as 1 if they start at 1."""
    map: Annotated[dict[ClassName, ClassName], Field(min_length=1)] | None = None
    """For a label: the class meant by a stored one, such as `{pug: dog, chow: dog}`. Several with one name become one class; others stay.
    Applied before `classes` and `offset`."""
    ignore: Index | tuple[ClassName, ...] = 0  # type: ignore[assignment]  # masks have an index, labels names
    """For a label: classes (after `map`) whose examples are left out, such as `[unknown]`; for several labels, one of them is enough. For a
    mask: the class index of pixels that a constant fill uncovers, such as 255 for pixels that the loss ignores. For a dense map: their
    value."""
    unlabelled: Annotated[tuple[ClassName, ...], Field(min_length=1)] | None = None
    """For a label: stored values of examples whose class is unknown, such as `[-1]`, or `['']` for empty cells. They are the split
    `predict`, which gives `x` alone, and are in no other; `splits` divides the rest."""
    separator: Annotated[str, Field(min_length=1)] | None = None
    """For an example with any number of classes: their separator in a text; a list has one class per item. The label is then encoded as
    `multi_hot`. `with` boxes: separator of their classes in a text."""
    dtype: NumberType | None = None
    """For a tensor: `float32` (default), or `int64` for integers beyond 16,777,216, such as ids and times. By default an integer that
    float32 cannot represent is an error; with an explicit `float32` it is rounded."""
    format: BoxFormat | EventFormat | None = None
    """Format of boxes, by default `xyxy`: left, top, right and bottom edge in pixels. `xywh`: left, top, width and height. `center_xywh`:
    centre, width and height. `yxyx`: top, left, bottom and right. `rel_xyxy` and so on: the same as fractions of the image's width and
    height. Format of events, in seconds: `start_end` (default), or `start_duration`."""

    hop_ms: Annotated[float, Field(gt=0)] | None = None
    """For events that are stored as one list with a label for each frame: milliseconds from one frame to the next. A label is a class index
    or a name, and 0 or an empty text where nothing happens; or a frame has a 0 or 1 for each class. Neighbouring frames with the same label
    are one event. What is `with` them is read from a list for each frame, too."""

    @field_validator("ignore")
    @classmethod
    def _none_ignored(cls, ignore: int | tuple[ClassName, ...]) -> int | tuple[ClassName, ...]:
        return ignore or 0

    @model_validator(mode="after")
    def _ignores_what_it_has(self) -> AnyKind:
        pictured = self.own_kind.pixels is not None
        if self.ignore and pictured is isinstance(self.ignore, tuple):
            form = "one class index" if pictured else "a list of classes, such as `[unknown]`"
            raise PartError(f"`ignore` of `kind: {self.kind}` must be {form}", "ignore")
        if self.unlabelled and self.separator is not None:
            raise PartError("an example with a `separator` has any number of classes, so none is missing", "unlabelled")
        self.chosen.check(self.classes)
        apart = next((name for name in ("format", "columns", "keys") if getattr(self, name, None) is not None), None)
        if self.hop_ms is not None and apart is not None:
            raise PartError(f"with `hop_ms`, events are one list with a label for each frame; leave `{apart}` out", apart)
        self.check_format()
        return self

    def check_format(self) -> None:
        """Rejects, as `PartError`, the format of another kind."""
        geometry, form = self.own_kind.geometry, self.format
        if form is not None and form not in (known := geometry.formats if geometry is not None else ()):
            named = f"its formats are {joined(known)}" if known else "leave it out"
            raise PartError(f"`{form}` is not a format of {self.own_kind.plural}", "format", help=named)

    @property
    def several(self) -> bool:
        """Whether it is a label with any number of classes for each example."""
        return self.separator is not None and self.home is None

    @property
    def chosen(self) -> Classes:
        """The renamed and ignored classes, and the values that stand for none."""
        return Classes(self.map or {}, self.ignore if isinstance(self.ignore, tuple) else (), self.unlabelled or ())

    def told_by(self, names: tuple[str, ...]) -> dict[str, object]:
        """Returns the arguments changed by class names from the data."""
        if not self.chosen:
            return {"classes": IndexedNames(names)}
        given = {str(stored): name for stored, name in (self.map or {}).items()}
        return {"map": {i: given.get(name, name) for i, name in enumerate(names)}}

    def box_rules(self) -> BoxRules:
        """Returns the format of its boxes, and the rules for keeping them."""
        return self.rules(self.format or "xyxy")  # type: ignore[arg-type]  # of its kind

    def event_rules(self) -> EventRules:
        """Returns the format of its events, and the rules for keeping them."""
        return self.rules_of_events(self.format or "start_end")  # type: ignore[arg-type]  # of its kind


class ArrayFeature(VectorMaps, AnyKind):
    """One array of a source: its kind and origin."""

    kind: HeldKindName
    """`image`: `(n, height, width, channels)`, or `(n, height, width)` for gray; uint8, uint16, or floats, stored as float32. `mask`: the
    class index of each pixel, `(n, height, width)` or `(n, height, width, 1)`. `label`: class indices or class names, `(n,)` or `(n, 1)`.
    `tensor`: numbers of any shape `(n, ...)`, stored as `dtype`. `weight`: numbers of 0 or more, `(n,)`, that weigh the examples in the
    loss. `dense`: numbers for each pixel, `(n, height, width)` or `(n, height, width, channels)`, stored as float32. `boxes`: four numbers
    per box, a list of arrays `(items, 4)`. `keypoints`: x and y, optionally with 0, 1 or 2 for absent, hidden
    or visible: `(n, names, 2 or 3)`; with boxes, a list of arrays `(items, names, 2 or 3)`; without `names`, a list of arrays `(items, 2 or
    3)`. `events`: start and end in seconds, a list of arrays `(items, 2)`; with `hop_ms` the label of each frame, `(n, frames)`,
    `(n, frames, classes)`, or a list of arrays."""
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


class EncodedFeature(MapsPixels, Feature):
    """A feature whose pixels are stored as image files."""

    values: Annotated[dict[_Stored, Index], Field(min_length=1)] | Literal["vectors"] | None = None
    """For a mask: the class index of each value in its files, such as `{0: 0, 255: 1}`, and perhaps of all others, `{255: 1, else: 0}`; by
    default values are indices. Every index is a class, including that of `ignore`, unless `classes` sets the number. In a palette PNG
    values are palette indices. For a dense map: `vectors` to the right and down, in pixels, which turn and scale with the image; by default
    plain numbers."""
    palette: Annotated[dict[_Colour, Index], Field(min_length=1)] | None = None
    """For a mask whose classes are colours: the class index of each, red, green and blue, such as `{[128, 0, 0]: 1, [0, 0, 0]: 0}` or
    `{'#800000': 1, else: 0}`. A palette PNG has the colours of its palette."""

    channels: Annotated[int, Field(ge=1, le=32)] | None = None
    """For an image: the channels to decode to, 1 for gray, 3 for RGB, 4 for RGB and transparency; by default as in `decode`, which is 3.
    For a dense map in image files: 1 by default. For sound: 1 by default, the mean of a file's channels; a file of one channel has it
    copied to all, and with any other number of channels a file must have as many."""
    bits: Literal[8, 16] | None = None
    """For an image: the bits of a value. With 16, files give uint16 from 0 to 65535. A file of another depth is an error; by default as in
    `decode`, which is 8."""

    @field_validator("values", "palette")
    @classmethod
    def _sorted(cls, given: dict[Any, int] | str | None, info: ValidationInfo) -> dict[Any, int] | str | None:
        if not isinstance(given, dict):
            return given
        rest = {"else": given["else"]} if "else" in given else {}
        named = {key: index for key, index in given.items() if key != "else"}
        if not named:
            raise ValueError(f"`{info.field_name}` needs a value besides `else`")
        if info.field_name == "values":
            return dict(sorted(named.items())) | rest
        colours = {key: _colour(key) for key in named}
        twice = next((key for key in named if [*colours.values()].count(colours[key]) > 1), None)
        if twice is not None:
            raise ValueError(f"`palette` has the colour {colours[twice]} twice")
        return {str(colours[key]): named[key] for key in sorted(named, key=lambda key: colours[key])} | rest

    @model_validator(mode="after")
    def _decoded_in_one_way(self) -> EncodedFeature:
        if self.own_kind.pixels is not None and self.channels not in (None, 1, 3, 4):
            raise PartError(f"{self.own_kind.plural} have 1, 3 or 4 `channels`, not {self.channels}", "channels")
        if self.values is not None and self.palette is not None:
            raise ValueError("`values` is for masks of one value a pixel, and `palette` for colours; leave one of them out")
        return self

    @property
    def class_of_value(self) -> dict[int | None, int] | None:
        """The class index of each stored value of a mask, a colour as one number, and of all others under `None`; `None` if values are
        indices."""
        if self.palette is not None:
            return {None if key == "else" else rgb_code(_colour(key)): index for key, index in self.palette.items()}
        return {None if key == "else" else key: index for key, index in self.values.items()} if isinstance(self.values, dict) else None


def _colour(text: str) -> list[int]:
    """The red, green and blue of a colour in a spec."""
    found = [int(text[at : at + 2], 16) for at in (1, 3, 5)] if text.startswith("#") else [int(part) for part in text[1:-1].split(",")]
    if max(found) > 255:
        raise ValueError(f"the colour {found} has a value above 255")
    return found


def aligned_images(features: Mapping[str, Feature]) -> dict[str, str | None]:
    """Returns the image, or the sound, that each feature is aligned with, or `None`. Raises `PartError` if an `of` names none, or one that
    is aligned with another; or if a mask has several possible images."""
    found: dict[str, str | None] = {}
    for name, feature in features.items():
        kind = kind_of(feature)
        home = getattr(feature, "home", None)
        if home is not None:
            found[name] = _beside(name, home, features)
        if kind.samples is not None:
            kind.check(name, feature)
        if kind.pixels is None and kind.geometry is None:
            continue
        hosts = _hosts(kind, features)
        if feature.of is not None and feature.of not in hosts:
            raise _nowhere(name, feature.of, features, hosts)
        if kind.has(Overlay) and feature.of is None and len(hosts) > 1:
            raise PartError(f"`{name}` needs `of`: it can be aligned with {' or '.join(f'`{host}`' for host in hosts)}", name)
        if kind.has(Timeline) and not hosts:
            raise PartError(f"`{name}` needs a feature of `kind: {_AUDIO}`, in which its {kind.plural} happen", name, "kind")
        kind.check(name, feature)
        found[name] = feature.of if feature.of is not None or not kind.has(Overlay) else next(iter(hosts), None)
    for name in having(features, InstanceNumber):
        _marks(name, getattr(features[name], "home", ""), features, found)
    return found


def _hosts(kind: FeatureKind, features: Mapping[str, Feature]) -> list[str]:
    """The features that one of a kind can be aligned with: images, or sounds."""
    part = kind.overlay.lies_on if kind.overlay is not None else Levels
    return [name for name in having(features, part) if features[name].of is None]


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
        homes = "`kind: boxes`" if kind.has(InstanceNumber) else "`kind: boxes` or `kind: events`"
        help_ = f"is `{near}` meant?" if near else f"name a feature of {homes}"
        what = "is not a feature of boxes" if kind.has(InstanceNumber) else "has no items"
        raise PartError(f"`{name}` is `with: {home}`, which {what}", name, "with", help=help_)
    return home


def _nowhere(name: str, of: str, features: Mapping[str, Feature], hosts: Sequence[str]) -> PartError:
    """Describes an `of` that names no suitable image or sound, with a suggestion."""
    others = [host for host in hosts if host != name]
    further = features[of].of if of in features else None
    noun = "a sound" if kind_of(features[name]).has(Timeline) else "an image"
    if of == name:
        what = "is itself"
    elif further is not None and of in having(features, Levels):
        what = "is aligned with another image itself"
    else:
        what = f"is not {noun} of `features`"
    near = further if further in others else closest(of, others)
    if near is not None:
        help_ = f"is `{near}` meant?"
    elif others:
        help_ = f"it can be aligned with {' or '.join(f'`{image}`' for image in others)}"
    else:
        help_ = f"remove `of`, since `features` has no other {noun.split()[1]}"
    return PartError(f"`{name}` is aligned with `of: {of}`, which {what}", name, "of", help=help_)


def record_type(types: Mapping[str, FeatureType], of: Mapping[str, str | None]) -> ElementType:
    """Returns the type of a record: features on the images that they are aligned with, and the numbers of items in masks."""
    return with_numbers(ElementType(tuple((name, t.with_(of=of.get(name))) for name, t in types.items())))


def lacking(features: Mapping[str, Any], split: str) -> frozenset[str]:
    """Returns the labels that the records of a split do not have: in `predict` those with `unlabelled`."""
    unlabelled = (name for name, feature in features.items() if getattr(feature, "unlabelled", None))
    return frozenset(unlabelled if split == PREDICTED else ())


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

    def lacks(self, split: str) -> frozenset[str]:
        return lacking(self.features, split)

    def decoders(self) -> Mapping[str, Transform]:
        found = {name: kind_of(feature).decoder(feature) for name, feature in self.features.items()}
        return {name: decoder for name, decoder in found.items() if decoder is not None}
