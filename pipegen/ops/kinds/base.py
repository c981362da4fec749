"""`FeatureKind`, the base of all kinds of features, their parts, and their look-up.

A kind has `PixelValues` or items with a `Geometry` if it lies on an image, or `Samples` along time, else `None`, and a `Meaning`.
"""

from __future__ import annotations

import importlib
import io
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from pipegen.errors import InternalError, OpError
from pipegen.lazy import np, tf
from pipegen.ops.traits import Family, Traits
from pipegen.types import PIXEL_RANGES, ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.ops.fields.columns import Column, Place

    Size = tuple[int | tf.Tensor, int | tf.Tensor]
    Items = tuple[tf.Tensor, tf.Tensor]
    """Items `(n, most, ...)`, and a mask of those to keep, which are still on the image: bool `(n, most)`."""


SUBPIXELS = 256.0  # places of moved items are rounded to this fraction of a pixel, so that the last bit of a matrix makes no difference
HORIZON = 1e-6  # least third coordinate of a visible point
FAR = 1e7  # largest coordinate of a place, in pixels: a perspective can put a point at infinity


class Values:
    """What the values are that steps change with draws of their own, or with those of an image: pixels, or samples."""

    suffix: ClassVar[str] = "npy"  # the usual ending of a file in an export
    file: ClassVar[str]  # what holds them in a record
    listed: ClassVar[Literal["images", "sounds"]] = "images"  # the files that a folder of them is listed for
    axes: ClassVar[int]  # the axes of an array of them, that of the channels included
    also: ClassVar[str] = ""  # what a record may hold besides that file, where arrays are read

    def of_array(self, x: FeatureType, dtype: str, shape: tuple[int | None, ...]) -> FeatureType:
        """Returns the type of values that a record holds as an array, where files would be of type `x`, with unknown sides as
        `None`; `OpError` for a wrong shape."""
        raise NotImplementedError

    def due(self, held: Any, shape: tuple[int, ...], *, arrays: bool) -> str | None:
        """Describes what a record must hold; see `Meaning.due`."""
        fits = self.also and arrays and self.fits(held)
        return None if held.is_content or fits else f"the bytes of {self.file}{self.also * arrays}"

    def fits(self, held: Any) -> bool:
        """Checks that an array of a `FieldType` holds such values."""
        raise NotImplementedError

    def ending(self, x: FeatureType) -> str:
        """Returns the ending of a file in an export, without a dot; levels have that of their format."""
        return self.suffix

    def shown(self, value: Any, x: FeatureType) -> Any:
        """Draws a value alone: uint8 `(height, width, channels)`."""
        raise NotImplementedError

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        """Encodes a value for its file in an export: levels in a format, others with the `ending`, by default as NumPy does."""
        stream = io.BytesIO()
        np.save(stream, value)
        return stream.getvalue()


class PixelValues(Values):
    """What the values of the pixels of a kind are."""

    file = "an image file"
    axes = 3

    def interpolation(self, x: FeatureType) -> Literal["nearest", "bilinear"] | None:
        """Returns how steps read between pixels, and fill with `ignore` in place of a constant; `None` if they decide."""
        return None

    def turns(self, x: FeatureType) -> bool:
        """Checks for vectors, which turn and scale with their image: to the right and down, in pixels."""
        return False

    def of_array(self, x: FeatureType, dtype: str, shape: tuple[int | None, ...]) -> FeatureType:
        return FeatureType(x.kind, dtype, shape, PIXEL_RANGES[dtype], x.of, uniform=True)

    def fits(self, held: Any) -> bool:
        return held.dtype in PIXEL_RANGES and len(held.shape) in (2, 3)


class Levels(PixelValues):
    """Levels, which can be blended. Other features can be aligned with them."""

    also = ", or an array of uint8, uint16 or float32"


class Overlay:
    """What a kind draws on the image, or the sound, that it is always aligned with, by default the only one."""

    lies_on: ClassVar[type[Values]] = Levels  # the values that it can be aligned with
    guide: ClassVar[Literal["", "boxes", "points", "pixels"]] = ""
    """What crops can choose their window by: items as `boxes`, or as `points`, which are boxes of one pixel, or a mask's `pixels`; "" if
    none. Points that are pasted over can be dropped without a mask of them."""

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        """Draws a feature on its image, uint8 `(height, width, channels)`: pixels, or items without padding; `names` has their classes, if
        known."""
        return image


class Indices(PixelValues, Overlay):
    """Indices of classes or of items, which cannot be blended."""

    guide = "pixels"
    suffix = "png"

    def interpolation(self, x: FeatureType) -> Literal["nearest", "bilinear"] | None:
        return "nearest"


class Samples(Values):
    """What the values of a kind along time are, `(length, channels)`, or `(steps, bands, channels)` once a step made spectra."""

    axes = 2
    packed: ClassVar[bool] = False
    """Whether a store of `pipegen prepare` has a file for each example, which `pack` makes, or else rows."""

    def pack(self, value: tf.Tensor, x: FeatureType) -> tf.Tensor:
        """Encodes a decoded value of type `x` in a graph, for a store: a string scalar, which the decoder of the kind reads with the same
        bits."""
        raise NotImplementedError

    def pack_list(self, name: str, values: tf.Tensor, feature: Any) -> tf.Tensor:
        """Encodes samples that a record holds as a list of numbers, int64 or float32 `(n,)`, as a file of them, a string scalar, for a
        kind that is stored in files. Fails, with the feature's name, for numbers that are none."""
        raise NotImplementedError

    def lists(self, held: Any) -> bool:
        """Checks that values of a `FieldType` are lists that `file_of_list` takes."""
        return False

    def file_of_list(self, values: Sequence[Any], feature: Any) -> bytes:
        """As `pack_list`, without TensorFlow; `ValueError` for numbers that are none."""
        raise NotImplementedError

    def assumed_length(self, x: FeatureType) -> int:
        """Returns a usual length along time, for estimates of the cost where it is unknown."""
        return 1000


class Placement(Overlay):
    """How the items of a ragged kind lie on an image or a sound: their formats, and which of them stay."""

    formats: ClassVar[tuple[str, ...]] = ()  # the output formats of the items; the first is the one that steps work on

    def prepared_type(self, x: FeatureType) -> FeatureType | None:
        """Returns the type of items after `prepare`; `None` if they are already in the format that steps work on."""
        return None

    def to_format(self, items: tf.Tensor, form: str, size: tuple[int, int] | None) -> tf.Tensor:
        """Converts items to one of the `formats`, on an image of a height and width in pixels."""
        raise NotImplementedError

    def joins(self, x: FeatureType) -> bool:
        """Checks that items of a type can be joined with those of another example that is combined with theirs."""
        return False

    def limit(self, x: FeatureType) -> int | None:
        """Returns the number of items in a batch, padding included; `None` if it is as large as needed."""
        return None

    def weight(self, items: tf.Tensor) -> tf.Tensor:
        """Returns the priority of each item if there are too many, float32 `(n, most)`; by default all are equal."""
        return tf.zeros(tf.shape(items)[:2], tf.float32)

    def described(self, items: Any, x: FeatureType) -> Any:
        """Converts the items of an example for the table of an export."""
        return items.tolist()


class Timeline(Placement):
    """What happens to the items of a ragged kind when their sound is cut, shifted or played at another speed.

    Items of a batch are `(n, most, ...)`, times are seconds from the start of the sound, float64 `(n,)`; values of padding do not matter.
    Items are drawn in shares of the sound.
    """

    def prepare(self, items: tf.Tensor, offset: float, length: tf.Tensor, details: Any) -> Items:
        """Converts stored items, in seconds of a file, to the format that steps work on, for a sound that begins at `offset` of the file
        and has a length."""
        raise NotImplementedError

    def earlier(self, items: Any, seconds: Any, x: FeatureType) -> Any:
        """Moves stored items, a NumPy array `(items, ...)` of a type, to earlier times: by `seconds` each, float64 `(items,)`."""
        raise NotImplementedError

    def ends(self, items: Any, x: FeatureType) -> Any:
        """Returns when stored items, a NumPy array `(items, ...)` of a type, end, in seconds of the file: float64 `(items,)`."""
        raise NotImplementedError

    def move(self, items: tf.Tensor, factor: tf.Tensor, start: tf.Tensor, length: tf.Tensor, details: Any) -> Items:
        """Moves items with their sound, to one of a `length` that has at `t` what was at `factor * t + start`."""
        raise NotImplementedError


class Geometry(Placement):
    """What happens to the items of a ragged kind when their image is moved, cut or combined.

    Methods that run in a graph take the items of a batch, `(n, most, ...)`, and the details of their type; values of padding do not matter.
    Sizes are heights and widths in pixels.
    """

    def turned(self, items: Any, orientation: int, sides: Any, x: FeatureType) -> Any:
        """Moves items from a stored image to the upright one.

        Args:
            items: A NumPy array `(items, ...)`.
            orientation: The EXIF orientation of their images, 2 to 8.
            sides: Height and width of each item's stored image in pixels, float64 `(items, 2)`.
            x: Their type.
        """
        raise NotImplementedError

    def follows(self, traits: Traits) -> bool:
        """Checks that items can move like their image: by a matrix or, if there is a `displace`, by a displacement field."""
        by_field = type(self).displace is not Geometry.displace and traits.displaces
        return by_field or traits.family is Family.GEOMETRIC or traits.crops or traits.resizes

    def prepare(self, items: tf.Tensor, size: Size, details: Any) -> Items:
        """Converts stored items on an image of a `size` to the format that steps work on, for a type that has a `prepared_type`."""
        raise NotImplementedError

    def guide_boxes(self, items: tf.Tensor, there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the boxes that crops choose their window by, for items with a `guide`: left, top, right and bottom edge of each in
        pixels, float64 `(n, k, 4)`. Padding is false in `there`, bool `(n, most)`, and in the second result, bool `(n, k)`."""
        raise NotImplementedError

    def clip(self, items: tf.Tensor, window: tf.Tensor, shift: tf.Tensor, details: Any, *, outside: bool) -> Items:
        """Shifts items with their image, and clips them to its visible part in a combined image.

        Args:
            items: The items.
            window: float64 `(n, 4)`: top, left, bottom and right edge, in pixels.
            shift: float64 `(n, 2)`: rows and columns.
            details: Their details.
            outside: Whether the visible part is outside the window.
        """
        raise NotImplementedError

    def clip_covered(self, items: tf.Tensor, edges: tf.Tensor, moved: tf.Tensor, share: tf.Tensor, details: Any) -> Items:
        """Clips items, whose pixels a mask has, to the part that pasted items leave visible.

        Args:
            items: The items.
            edges: Left, top, right and bottom edge of the visible pixels of each, float64 `(n, most, 4)`.
            moved: True for edges that differ from before, bool `(n, most, 4)`.
            share: The visible share of its pixels, float64 `(n, most)`.
            details: Their details.
        """
        raise NotImplementedError

    def drop_hidden(self, items: tf.Tensor, hidden: Callable[[tf.Tensor], tf.Tensor], details: Any) -> Items:
        """Drops items that are pasted over, for a kind whose `guide` is points: `hidden` is true for these, given x and y, float64
        `(n, ..., 2)`, with pixel centres at integers."""
        raise NotImplementedError

    def move(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> Items:
        """Moves items with their image, from a size `before` to one `after`. The matrix, float64 `(n, 3, 3)`, leads from pixel coordinates
        before to those after; see `GeometricTransform.matrix`. The third coordinate of the result is above 0 for visible points."""
        raise NotImplementedError

    def move_affinely(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> Items:
        """Moves items by matrices whose last row is `(0, 0, w)`, which a kind may do faster than `move`."""
        return self.move(items, matrix, before, after, details)

    def displace(self, items: tf.Tensor, shown: Callable[[tf.Tensor], tf.Tensor], size: Size, details: Any) -> Items:
        """Moves items with an image that is displaced by a field: `shown` leads from points of the input to their places in the output, x
        and y, float64 `(n, k, 2)`, with pixel centres at integers."""
        raise NotImplementedError


class Meaning:
    """What the values of a kind mean for readers, losses, outputs and tests of the data. Kinds without a subclass are plain values."""

    holds: ClassVar[str] = "no numbers"  # words for the values

    def single(self, x: FeatureType) -> bool:
        """Checks that an example has one value, as a cell of a table has."""
        return False

    def due(self, held: Any, shape: tuple[int, ...], *, arrays: bool) -> str | None:
        """Describes what a record must hold, if it holds a `FieldType` that a value of a `shape` cannot be built from; `arrays` allows
        pixels as arrays."""
        if held.counts and math.prod(held.shape) == math.prod(shape):
            return None
        return f"numbers of shape {list(shape)}" if shape else "one number"

    def filled(self, name: str, x: FeatureType, value: Any, classes: tuple[str, ...]) -> Any:
        """Converts the `value` that a spec gives the feature `name` of all examples to an array; `PG463` if it does not fit."""
        help_ = "only labels, tensors and weights can be filled; remove other features from `output`"
        raise OpError("PG463", f"`{name}` cannot be filled: it holds {kind_of(x).plural}", field=f"fill.{name}", help=help_)


class ExampleClass(Meaning):
    """The class index of an example, or its classes."""

    holds = "class indices"

    def single(self, x: FeatureType) -> bool:
        return x.dtype != "uint8"

    def due(self, held: Any, shape: tuple[int, ...], *, arrays: bool) -> str | None:
        return None if held.dtype and math.prod(held.shape) == 1 else "one class index or class name"

    def filled(self, name: str, x: FeatureType, value: Any, classes: tuple[str, ...]) -> Any:
        if not self.single(x):
            return super().filled(name, x, value, classes)
        if isinstance(value, str):
            if value not in classes:
                message = f"invalid class {value!r} for `{name}`"
                raise OpError("PG463", message, field=f"fill.{name}", help=f"the classes are {', '.join(classes)}")
            value = classes.index(value)
        if not isinstance(value, (int, float)) or value != int(value) or not 0 <= value < max(1, x.classes or len(classes) or 2**31):
            message = f"invalid value {value!r} for the label `{name}`"
            raise OpError("PG463", message, field=f"fill.{name}", help="write a class name, or its index from 0")
        return np.array(value, np.int64)


class ItemClass(Meaning):
    """The class index of each item of another feature."""


class PixelClass(Meaning):
    """The class index of each pixel."""


class Numbers(Meaning):
    """Plain numbers of an example, on which no step acts."""

    holds = "numbers"

    def single(self, x: FeatureType) -> bool:
        return all(side == 1 for side in x.shape)

    def filled(self, name: str, x: FeatureType, value: Any, classes: tuple[str, ...]) -> Any:
        if isinstance(value, str):
            return super().filled(name, x, value, classes)
        row, dtype = np.asarray(value), np.dtype(x.dtype)
        if row.dtype.kind not in "biuf" or (not np.array_equal(row.astype(dtype), row) and x.dtype == "int64"):
            message = f"`{name}` holds {x.dtype}, but the value is {value!r}"
            raise OpError("PG463", message, field=f"fill.{name}", help="write integers, such as 0")
        if row.ndim == 0 or row.shape == x.shape:
            return np.broadcast_to(row.astype(dtype), tuple(d or 0 for d in x.shape))
        message = f"`{name}` has {x.shape[0] if x.shape else 1} numbers per example, but `fill` has {row.size}"
        raise OpError("PG463", message, field=f"fill.{name}", help="write one number for all of them, or a list of that length")


class LossWeight(Numbers):
    """The weight of an example in the loss."""


class Presence(Meaning):
    """True for each item of another feature, false for padding."""


class TimestepClass(PixelClass):
    """The class index of each time step of a series."""


class InstanceNumber(Meaning):
    """The number of the item that each pixel of a mask belongs to, or of each item, which only such masks read."""


class FeatureKind:
    """One kind of feature. The look-up finds subclasses by their `name`."""

    name: ClassVar[str]  # the name in a spec
    plural: ClassVar[str]  # the plural, for messages
    arguments: ClassVar[tuple[str, ...]] = ()
    """Its arguments that not every kind has; a source has those that say how it stores the feature."""
    storage: ClassVar[Literal["encoded", "dense", "ragged", "made"]] = "dense"
    """How an example is stored: `encoded` in its own file or row of an array; `dense` if all examples have the same shape, which are
    perhaps held in memory for all records; `ragged` with any number of items; or not, but `made` of another feature."""
    pixels: ClassVar[PixelValues | None] = None
    samples: ClassVar[Samples | None] = None
    geometry: ClassVar[Placement | None] = None  # how its items follow their image or their sound
    meaning: ClassVar[Meaning] = Meaning()  # what its values mean
    numbers: ClassVar[int] = 0  # of an item whose numbers may be stored apart, in as many columns or keys of lists; 0 if they cannot
    each: ClassVar[str] = ""  # the kind for one value an item of another feature, such as the class of each box; "" if there is none
    along: ClassVar[str] = ""  # the kind for one value a time step of a window; "" if there is none
    details: ClassVar[type[Any] | None] = None  # the class of the details of its types, of plain values, if they are written down
    rules_of: ClassVar[str] = ""  # the kind whose steps have a rule for it; its own by default

    @property
    def ragged(self) -> bool:
        """Whether an example has any number of items."""
        return self.storage == "ragged"

    @property
    def values(self) -> Values | None:
        """Its pixels or samples."""
        return self.pixels or self.samples

    @property
    def has_files(self) -> bool:
        """Whether its values may be the bytes of a file in a record, and not only numbers."""
        return self.values is not None and self.storage == "encoded"

    @property
    def packed(self) -> bool:
        """Whether a store of `pipegen prepare` has a file for each example, which `Samples.pack` makes."""
        return self.samples is not None and self.samples.packed

    @property
    def overlay(self) -> Overlay | None:
        """What it draws on its image."""
        return self.geometry or (self.pixels if isinstance(self.pixels, Overlay) else None)

    def guides(self, *forms: str) -> bool:
        """Checks that crops can choose their window by it, in one of these forms; see `Overlay.guide`."""
        return self.overlay is not None and self.overlay.guide in forms

    def has(self, *parts: type) -> bool:
        """Checks that it has such pixels or samples, such a geometry, or such a meaning."""
        return isinstance(self.values, parts) or isinstance(self.geometry, parts) or isinstance(self.meaning, parts)

    def check(self, name: str, feature: Any) -> None:
        """Rejects contradictory arguments with a `PartError` that names the feature and the argument."""

    def stored_type(self, feature: Any) -> FeatureType:
        """Infers the type in a file or in columns of a table from the arguments alone; by default the first type of a row of an array."""
        return self.array_types(feature)[0]

    def shape_of(self, stored: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of values that are stored as numbers of a shape."""
        return stored

    def decoder(self, feature: Any) -> Any:
        """Returns the `Transform` that decodes its files, or `None` if a step of the spec does."""
        return None

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        """Returns the possible types of a row of an array; the first is assumed before the data is known."""
        raise NotImplementedError

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        """Reads an array with a row for each record, which `place` names in messages; `OpError` if it does not match the feature's
        arguments."""
        raise NotImplementedError

    def details_of(self, feature: Any) -> Any:
        """Returns the details of the type of a feature with pixels."""
        return None

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        """Returns the shape of an item of an example whose numbers are stored one after another.

        Args:
            feature: Its arguments.
            numbers: How many there are.
            items: The number of items of the feature that it is `with`, if any.

        Raises:
            ValueError: They cannot be divided into items.
        """
        return ()

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        """Returns the arguments of a source that set the kind's own details of a type, without defaults."""
        return {}


_PACKAGE = "pipegen.ops.kinds"


class Kinded(Protocol):
    """An object with the name of a kind: the type of a feature, or its description in a spec."""

    @property
    def kind(self) -> str: ...


@cache
def kind_named(name: str) -> FeatureKind:
    """Returns a kind by its name."""
    return {kind.name: kind for kind in kinds()}[name]


def kind_of(x: Kinded) -> FeatureKind:
    """Returns the kind of a feature, or the kind for each item if it is `with` another feature."""
    kind = kind_named(x.kind)
    return kind_named(kind.each) if kind.each and getattr(x, "home", None) is not None else kind


def item_type(kind: str, home: str, dtype: str, shape: tuple[int | None, ...] = (), classes: int | None = None) -> FeatureType:
    """Returns the type of a kind with a value for each item of the feature `home`."""
    return FeatureType(kind, dtype, (None, *shape), of=home, classes=classes, most=0, beside=home)


def geometry_of(kind: str) -> Geometry:
    """Returns what moves the items of a kind that follows its image."""
    found = kind_named(kind).geometry
    if not isinstance(found, Geometry):
        raise InternalError(f"the kind `{kind}` follows no image")
    return found


def timeline_of(kind: str) -> Timeline:
    """Returns what moves the items of a kind that happen in a sound."""
    found = kind_named(kind).geometry
    if not isinstance(found, Timeline):
        raise InternalError(f"the items of kind `{kind}` happen in no sound")
    return found


def placement_of(kind: str) -> Placement:
    """Returns how the items of a kind lie on an image or a sound."""
    found = kind_named(kind).geometry
    if found is None:
        raise InternalError(f"the items of kind `{kind}` lie on nothing")
    return found


@cache
def kinds() -> tuple[FeatureKind, ...]:
    """Lists all kinds, those with pixels first, and of these images; then those with samples."""
    package = importlib.import_module(_PACKAGE)
    stems = [info.name for info in pkgutil.iter_modules(package.__path__) if info.name != "base"]
    every = {value for stem in stems for value in vars(importlib.import_module(f"{_PACKAGE}.{stem}")).values() if isinstance(value, type)}
    found = (kind() for kind in every if issubclass(kind, FeatureKind) and hasattr(kind, "name"))
    return tuple(sorted(found, key=lambda kind: (kind.pixels is None, kind.samples is None, not kind.has(Levels), kind.name)))


def named_kinds() -> tuple[FeatureKind, ...]:
    """Lists the kinds that a spec can name; kinds for each item are named by that of the whole, others are not in files or arrays."""
    of_items = {kind.each for kind in kinds()}
    return tuple(kind for kind in kinds() if kind.name not in of_items and (kind.storage == "encoded" or held_in_memory(kind)))


def names_of(fits: Callable[[FeatureKind], bool] = bool) -> Any:
    """Returns the names of the kinds that fit, by default of all, as an annotation."""
    return Literal[tuple(kind.name for kind in named_kinds() if fits(kind))]


def held_in_memory(kind: FeatureKind) -> bool:
    """Checks that a kind can be read from arrays; others are read from a file each."""
    return type(kind).read_array is not FeatureKind.read_array


def several_labels(x: FeatureType) -> bool:
    """Checks for a label with any number of classes: 1 for each class of the example, before it is encoded."""
    return x.dtype == "uint8" and kind_of(x).has(ExampleClass)


def turns(x: FeatureType) -> bool:
    """Checks for a decoded map of vectors, which turn and scale with their image."""
    return not x.encoded and (pixels := kind_of(x).pixels) is not None and pixels.turns(x)


def single_values(type_: ElementType, *parts: type) -> list[str]:
    """Lists the features of which an example has one value, with such a meaning."""
    return [name for name in having(type_, *parts) if kind_of(type_[name]).meaning.single(type_[name])]


def called(features: Iterable[Kinded]) -> str:
    """The word for examples with these features, after the first one with pixels, else with samples: `images`, `sounds`, `examples`."""
    found = [kind for kind in map(kind_of, features) if kind.values is not None]
    first = next((kind for kind in found if kind.has(Levels)), found[0] if found else None)
    return first.plural if first is not None else "examples"


def having(features: ElementType | Mapping[str, Kinded], *parts: type) -> list[str]:
    """Lists the features whose kind has such pixels or geometry, or such a meaning."""
    return [name for name, feature in features.items() if kind_of(feature).has(*parts)]
