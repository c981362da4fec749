"""`FeatureKind`, the base of all kinds of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.lazy import tf
from pipegen.ops.traits import Family, Traits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.fields.columns import Column, Place
    from pipegen.types import FeatureType

    Size = tuple[int | tf.Tensor, int | tf.Tensor]
    Items = tuple[tf.Tensor, tf.Tensor]
    """Items `(n, most, ...)`, and a mask of those to keep, which are still on the image: bool `(n, most)`."""


SUBPIXELS = 256.0  # places of moved items are rounded to this fraction of a pixel, so that the last bit of a matrix makes no difference
HORIZON = 1e-6  # least third coordinate of a visible point
FAR = 1e7  # largest coordinate of a place, in pixels: a perspective can put a point at infinity


class Geometry:
    """What happens to the items of a ragged kind when their image is moved, cut or combined.

    Methods that run in a graph take the items of a batch, `(n, most, ...)`, and the details of their type; values of padding do not matter.
    Sizes are heights and widths in pixels.
    """

    formats: ClassVar[tuple[str, ...]] = ()  # the output formats of the items; the first is the one that steps work on

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

    def prepared_type(self, x: FeatureType) -> FeatureType | None:
        """Returns the type of items after `prepare`; `None` if they are already in the format that steps work on."""
        return None

    def prepare(self, items: tf.Tensor, size: Size, details: Any) -> Items:
        """Converts stored items on an image of a `size` to the format that steps work on, for a type that has a `prepared_type`."""
        raise NotImplementedError

    def guide_boxes(self, items: tf.Tensor, there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the boxes that crops choose their window by, for items with a `crop_guide`: left, top, right and bottom edge of each in
        pixels, float64 `(n, k, 4)`. Padding is false in `there`, bool `(n, most)`, and in the second result, bool `(n, k)`."""
        raise NotImplementedError

    def to_format(self, items: tf.Tensor, form: str, size: tuple[int, int]) -> tf.Tensor:
        """Converts items to one of the `formats`, on an image of a height and width in pixels."""
        raise NotImplementedError

    def joins(self, x: FeatureType) -> bool:
        """Checks that items of a type can be joined with those of another example, in a combined image; `clip` cuts them to their visible
        part."""
        return False

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
        """Drops items that are pasted over, for a kind whose `crop_guide` is points: `hidden` is true for these, given x and y, float64
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


class FeatureKind:
    """One kind of feature. The registry finds subclasses by their `name`."""

    name: ClassVar[str]  # the name in a spec
    plural: ClassVar[str]  # the plural, for messages
    arguments: ClassVar[tuple[str, ...]] = ()
    """Its arguments that not every kind has; a source has those that say how it stores the feature."""
    storage: ClassVar[Literal["encoded", "dense", "ragged"]] = "dense"
    """How an example is stored: `encoded` in its own file or row of an array; `dense` if all examples have the same shape; or `ragged` with
    any number of items."""
    pictured: ClassVar[bool] = False  # whether it has pixels
    levels: ClassVar[bool] = False  # whether its pixels are levels, which can be blended; other features can be aligned with it
    categorical: ClassVar[bool] = False  # whether its pixels are class indices, which cannot be blended
    labels: ClassVar[bool] = False  # whether it is the class of an example, or its classes
    counts: ClassVar[Literal["", "example", "item"]] = ""
    """The unit that has one of its classes, an `example` or an `item`; "" if there are no classes to count."""
    numbers: ClassVar[bool] = False  # whether it is plain numbers that no step acts on
    weighs: ClassVar[bool] = False  # whether these numbers weigh the example in the loss
    geometry: ClassVar[Geometry | None] = None  # how its items follow their image; `None` if it has no items that do
    valid: ClassVar[bool] = False  # whether it is a mask of the items of another feature
    numbers_items: ClassVar[bool] = False  # whether it is the number of each item in a mask of instances; only such masks read it
    output: ClassVar[str] = "output: {{x: [image, {}]}}"  # how an output names it
    each: ClassVar[str] = ""  # the kind for one value an item of another feature, such as the class of each box; "" if there is none
    crop_guide: ClassVar[Literal["", "boxes", "points", "pixels"]] = ""
    """What crops can choose their window by: its items as `boxes`, or as `points`, which are boxes of one pixel, or a mask's `pixels`; ""
    if none. Points that are pasted over can be dropped without a mask of them."""
    rules_of: ClassVar[str] = ""  # the kind whose steps have a rule for it; its own by default
    marks_items: ClassVar[bool] = False  # whether its pixels are the numbers of items of another feature

    @property
    def indexed(self) -> bool:
        """Whether it is held in memory for all records, so that it is not read with each."""
        return self.labels or self.numbers

    @property
    def ragged(self) -> bool:
        """Whether an example has any number of items."""
        return self.storage == "ragged"

    @property
    def padded(self) -> bool:
        """Whether an example of a batch is padded with empty items."""
        return self.ragged or self.valid

    @property
    def holds_classes(self) -> bool:
        """Whether it holds class indices, of an example or of each pixel."""
        return self.labels or (self.categorical and not self.marks_items)

    @property
    def needs_image(self) -> bool:
        """Whether it is always aligned with an image, by default the only one, and drawn on it."""
        return self.categorical or self.geometry is not None

    @property
    def aligns(self) -> bool:
        """Whether it can be aligned with an image, and so moves with it."""
        return self.pictured or self.needs_image

    def check(self, name: str, feature: Any) -> None:
        """Rejects contradictory arguments with a `PartError` that names the feature and the argument."""

    def stored_type(self, feature: Any) -> FeatureType:
        """Infers the type in a file or in columns of a table from the arguments alone; by default the first type of a row of an array."""
        return self.array_types(feature)[0]

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

    def limit(self, x: FeatureType) -> int | None:
        """Returns the number of items in a batch, padding included; `None` if it is as large as needed."""
        return None

    def weight(self, items: tf.Tensor) -> tf.Tensor:
        """Returns the priority of each item if there are too many, float32 `(n, most)`; by default all are equal."""
        return tf.zeros(tf.shape(items)[:2], tf.float32)

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        """Draws a feature on its image, uint8 `(height, width, channels)`: a mask, or items without padding; `names` has their classes, if
        known."""
        return image

    def described(self, items: Any, x: FeatureType) -> Any:
        """Converts the items of an example for the table of an export."""
        return items.tolist()

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        """Encodes a value for its file in an export: levels in a format, others as PNG."""
        raise NotImplementedError
