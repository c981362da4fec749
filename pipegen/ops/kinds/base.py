"""Defines what a kind of feature says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pipegen.lazy import tf
from pipegen.ops.traits import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.ops.traits import Traits
    from pipegen.types import FeatureType

    Size = tuple[int | tf.Tensor, int | tf.Tensor]


@dataclass(frozen=True, slots=True)
class Column:
    """Holds what was read of a feature for every record.

    Attributes:
        values: An array with a row for each record.
        type: The type of a row.
        classes: Of a label, its classes.
        stays: Where some records are left out: which are not, bool `(n,)`.
        notes: What was odd.
    """

    values: Any
    type: FeatureType
    classes: tuple[str, ...] = ()
    stays: Any = None
    notes: tuple[Any, ...] = ()


class FeatureKind:
    """One kind of feature. The registry finds subclasses by their `name`.

    Class attributes:
        name: The name in a spec.
        plural: Several of them, for messages.
        arguments: Of each source that can give one (`arrays`, `files`, `table`, `records`), the arguments that not every kind has.
        picture_arguments: Those of them that belong to this kind alone among what has pixels.
        storage: How an example's is stored: `encoded` in a file of its own, unless it is a row of an array; `dense`, where every
            example has the same shape; or `ragged`, where it has any number of items.
        pictured: Whether it has pixels.
        levels: Whether its pixels are levels, which can be blended; other features can be aligned with it.
        categorical: Whether its pixels are class indices, which cannot be blended.
        labels: Whether it says of which class an example is, or of which classes.
        numbers_items: Whether it says by which number a mask of instances knows each item of another feature; nobody else reads it.
        counts: What has one of its classes, an `example` or an `item` of it; empty where there are none to be counted.
        numbers: Whether it is plain numbers that no step acts on.
        weighs: Whether these weigh the example in the loss.
        lives: Whether it is always aligned with an image, on which it is drawn: with the only one by default.
        valid: Whether it says which items of another feature are there.
        output: How an output names it.
        each: The kind of it where each item of another feature has one, such as the class of each box; empty where there is none.
        formats: The forms that an output can have its items in, by name; the first is the one that steps work on.
        bends: Whether `bend` can move its items along a field.
        leads: What crops get to choose their window by: its items as `boxes`, or as `points`, which are boxes of one pixel, or a mask's
            `pixels`; empty where they cannot.
        points: Whether its items are points, so that `beneath` can tell which of them are pasted over although no mask has their pixels.
        rules_of: The kind whose steps have a rule for it; its own by default.
        marks_items: Whether its pixels have the numbers of items of another feature.
    """

    name: ClassVar[str]
    plural: ClassVar[str]
    arguments: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    picture_arguments: ClassVar[tuple[str, ...]] = ()
    storage: ClassVar[Literal["encoded", "dense", "ragged"]] = "dense"
    pictured: ClassVar[bool] = False
    levels: ClassVar[bool] = False
    categorical: ClassVar[bool] = False
    labels: ClassVar[bool] = False
    counts: ClassVar[Literal["", "example", "item"]] = ""
    numbers: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    lives: ClassVar[bool] = False
    valid: ClassVar[bool] = False
    numbers_items: ClassVar[bool] = False
    output: ClassVar[str] = "output: {{x: [image, {}]}}"
    each: ClassVar[str] = ""
    formats: ClassVar[tuple[str, ...]] = ()
    leads: ClassVar[Literal["", "boxes", "points", "pixels"]] = ""
    bends: ClassVar[bool] = False
    points: ClassVar[bool] = False
    rules_of: ClassVar[str] = ""
    marks_items: ClassVar[bool] = False

    @property
    def indexed(self) -> bool:
        """Returns whether it is held in memory for every record, beside the index of the records, so that nothing is read for it."""
        return self.labels or self.numbers

    @property
    def ragged(self) -> bool:
        """Returns whether an example has any number of items."""
        return self.storage == "ragged"

    @property
    def padded(self) -> bool:
        """Returns whether an example of a batch has places for items, of which not all need hold one."""
        return self.ragged or self.valid

    @property
    def holds_classes(self) -> bool:
        """Returns whether it holds class indices, of an example or of each pixel."""
        return self.labels or (self.categorical and not self.marks_items)

    @property
    def aligns(self) -> bool:
        """Returns whether it can be aligned with an image, and so is moved with it."""
        return self.pictured or self.lives

    def turned(self, items: Any, orientation: int, sides: Any, x: FeatureType) -> Any:
        """Turns items that lie on a stored image to lie on the upright one, of a kind that `lives` and is ragged.

        Args:
            items: A NumPy array `(items, ...)`.
            orientation: The EXIF orientation of their images, 2 to 8.
            sides: Height and width of the stored image of each in pixels, float64 `(items, 2)`.
            x: Their type.
        """
        raise NotImplementedError

    def takes(self, source: str, argument: str) -> bool:
        """Returns whether an argument describes it in a source."""
        return argument in self.arguments.get(source, ())

    def check(self, name: str, feature: Any) -> None:
        """Rejects arguments that contradict each other, by a `PartError` that names the feature and the argument."""

    def stored_type(self, feature: Any, of: str | None, classes: int | None) -> FeatureType:
        """Returns the type of one in a file, aligned with `of`, or in columns of a table, from the arguments alone."""
        raise NotImplementedError

    def decoder(self, feature: Any, classes: int | None) -> Any:
        """Returns the `Transform` that decodes its files, or `None` where a step of the spec does."""
        return None

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        """Returns the types that a row of an array can turn out to have; the first stands for it before the data is there."""
        raise NotImplementedError

    def read_array(self, name: str, feature: Any, given: Any) -> Column:
        """Looks at an array, a row for each record; `OpError` where it does not hold what the feature says."""
        raise NotImplementedError

    def follows(self, traits: Traits) -> bool:
        """Returns whether items of its can be moved as a step moves its image: by a matrix, or along a field if it `bends`, unless a kind
        says otherwise."""
        return traits.family is Family.GEOMETRIC or traits.crops or traits.resizes or (self.bends and traits.displaces)

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        """Returns the arguments by which a source says what nobody but the kind reads of such a type: those that are not the default."""
        return {}

    def enters(self, x: FeatureType) -> bool:
        """Returns whether `enter` has to bring items of such a type into the form that steps work on."""
        return False

    def entered(self, x: FeatureType) -> FeatureType:
        """Returns the type of items that `enter` has brought into this form."""
        return x

    def enter(self, items: tf.Tensor, size: Size, details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Brings items as they are stored into the form that steps work on, where a type `enters`.

        Args:
            items: `(n, most, ...)`; what those hold that are not there does not matter.
            size: Height and width of the image, in pixels: int32 scalars.
            details: Those of the type.

        Returns:
            The items, and which of them are kept: bool `(n, most)`.
        """
        raise NotImplementedError

    def around(self, items: tf.Tensor, there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the boxes that crops choose their window by, for a kind of items that `leads`.

        Args:
            items: `(n, most, ...)`.
            there: Which of them there are, bool `(n, most)`.

        Returns:
            Left, top, right and bottom edge of each box in pixels, float64 `(n, k, 4)`, and which of them there are, bool `(n, k)`.
        """
        raise NotImplementedError

    def express(self, items: tf.Tensor, form: str, size: tuple[int, int]) -> tf.Tensor:
        """Returns items in one of the `formats`, on an image of that height and width in pixels."""
        raise NotImplementedError

    def limit(self, x: FeatureType) -> int | None:
        """Returns how many places for items leave the pipeline; `None` where it is as many as come of it."""
        return None

    def joins(self, x: FeatureType) -> bool:
        """Returns whether items of such a type can stand beside those of another example, in a mixed image; `within` cuts them to what is
        seen."""
        return False

    def weight(self, items: tf.Tensor) -> tf.Tensor:
        """Returns how much each item matters where there are too many, float32 `(n, most)`: by default all alike."""
        return tf.zeros(tf.shape(items)[:2], tf.float32)

    def within(self, items: tf.Tensor, window: tf.Tensor, shift: tf.Tensor, details: Any, *, outside: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Shifts items with their image, and cuts them to what is seen of it where others are laid beside or upon it.

        Args:
            items: `(n, most, ...)`.
            window: float64 `(n, 4)`: top, left, bottom and right edge, in pixels.
            shift: float64 `(n, 2)`: rows and columns.
            details: Those of the type.
            outside: Whether what lies outside the window is what is seen.

        Returns:
            The items, and which of them are kept: bool `(n, most)`.
        """
        raise NotImplementedError

    def covered(self, items: tf.Tensor, edges: tf.Tensor, moved: tf.Tensor, share: tf.Tensor, details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts items of which a mask tells the pixels to what others that are pasted upon them leave to be seen.

        Args:
            items: `(n, most, ...)`.
            edges: Left, top, right and bottom edge of the pixels that are left of each, float64 `(n, most, 4)`.
            moved: Which of these edges lie elsewhere than before, bool `(n, most, 4)`.
            share: The share of its pixels that is left, float64 `(n, most)`.
            details: Those of the type.

        Returns:
            The items, and which of them are kept: bool `(n, most)`.
        """
        raise NotImplementedError

    def beneath(self, items: tf.Tensor, hidden: Callable[[tf.Tensor], tf.Tensor], details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Takes away what is pasted over, of a kind that has `points`.

        Args:
            items: `(n, most, ...)`.
            hidden: Says of points, x and y, float64 `(n, ..., 2)`, pixel centres at whole numbers, whether something is pasted there.
            details: Those of the type.

        Returns:
            The items, and which of them are kept: bool `(n, most)`.
        """
        raise NotImplementedError

    def move(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Moves items with their image.

        Args:
            items: `(n, most, ...)`; what those hold that are not there does not matter.
            matrix: float64 `(n, 3, 3)`, from pixel coordinates before to those after; see `GeometricTransform.matrix`. The last entry of
                what it makes of `(x, y, 1)` is above 0 for points that the image can show.
            before: Height and width of the image that enters, in pixels.
            after: The same of the image that leaves.
            details: Those of the type.

        Returns:
            The items, and which of them are still on the image: bool `(n, most)`.
        """
        raise NotImplementedError

    def move_affinely(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Does what `move` does for matrices whose last row is `(0, 0, w)`, of which most are: a kind may do that sooner."""
        return self.move(items, matrix, before, after, details)

    def bend(self, items: tf.Tensor, shown: Callable[[tf.Tensor], tf.Tensor], size: Size, details: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Moves items with an image whose pixels are each read at a distance of their own, for a kind that `bends`.

        Args:
            items: `(n, most, ...)`; what those hold that are not there does not matter.
            shown: Says where points of the image that enters are shown: from x and y, float64 `(n, k, 2)`, pixel centres at whole
                numbers, to such.
            size: Height and width of the image, in pixels.
            details: Those of the type.

        Returns:
            The items, and which of them are still on the image: bool `(n, most)`.
        """
        raise NotImplementedError

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        """Returns the image, uint8 `(height, width, channels)`, with what is aligned with it drawn on it: the pixels of a mask, or
        the items that there are; `names` has the class of each where that is known."""
        return image

    def described(self, items: Any, x: FeatureType) -> Any:
        """Returns the items of an example as the table of an export has them."""
        return items.tolist()

    def check_items(self, items: Any, details: Any, name: str, place: Callable[[int], str]) -> Any:
        """Looks at a ragged column; returns it with what belongs to its form mended.

        Args:
            items: A `Ragged` column.
            details: Those of the type.
            name: The feature, for messages.
            place: Says where a record stands, for messages.

        Raises:
            OpError: Where the items are none of this kind.
        """
        return items

    def file_form(self, form: Literal["png", "jpeg"]) -> Literal["png", "jpeg"]:
        """Returns the format of its files in an export that writes images as `form`."""
        return "png"

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        """Returns the bytes of its file in an export, in the format that `file_form` says."""
        raise NotImplementedError
