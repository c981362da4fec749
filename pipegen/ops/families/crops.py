"""The families of crops: windows chosen by items of the image, windows beyond the image, and windows of whole batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar

from pipegen.diagnostics.diagnostic import Advice, write
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, Fill, Reach, Size, filled, height_width
from pipegen.ops.arguments.magnitudes import Probability, least
from pipegen.ops.kinds.base import kind_named
from pipegen.ops.lowering.windows import cut, place
from pipegen.ops.stage import Stage, StepRef, use, uses
from pipegen.ops.step_bases import CropTransform, GeometricTransform, require_image
from pipegen.ops.traits import Family, Traits
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType, times, valid_name


class SizedCrop(CropTransform):
    """A window of a given size."""

    size: Size
    """The window's size in pixels: a square's side, or [height, width]."""

    def output_size(self) -> tuple[int, int]:
        return height_width(self.size)


class RandomSizedCrop(SizedCrop):
    """A random window of a given size, for all examples or for some."""

    random = True

    probability: Probability = 1.0
    """The share of examples that the step changes. With less than 1, images must have the `size` before the step, and on the other splits
    nothing replaces it."""

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return x if self.idle() else super().infer(x)

    def evaluation_form(self) -> tuple[Transform, ...]:
        return () if least(self.probability) < 1 else self.replacement()

    def replacement(self) -> tuple[Transform, ...]:
        """Lists the steps that stand for it on the other splits, if it acts on all examples."""
        raise NotImplementedError

    def meaning(self) -> dict[str, Any]:
        return {name: value for name, value in super().meaning().items() if name != "probability" or value != 1.0}


class ItemCrop(CropTransform):
    """A window that is chosen by the items or the mask of an image."""

    random = True
    led_by: ClassVar[tuple[str, ...]] = ("boxes",)
    """The forms of items that can guide it (`Overlay.guide`); it takes the first that an image has."""
    without_items: ClassVar[tuple[str, str]] = ("random_crop", "its windows lie anywhere")
    """For images without items, the step that serves better, and what this one does, in words."""

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.ELEMENT, crops=True, chosen=True)

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        return self.drawn(u)  # the window depends on the items, too

    def leader(self) -> str | None:
        """The feature that the user names as its guide, or `None`."""
        return None

    def choose(self, u: tf.Tensor, items: tf.Tensor, there: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Chooses the windows of images of one size, int32 scalars in pixels, from draws float64 `(n, num_draws)`: int32 `(n, 4)`: top,
        left, height and width, inside the image; and whether each item may stay, bool `(n, most)`.

        Items are boxes: their left, top, right and bottom edges in pixels, float64 `(n, most, 4)`, and whether each is `there`, bool `(n,
        most)`.
        """
        raise NotImplementedError

    def choose_by_pixels(self, u: tf.Tensor, classes: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
        """Chooses the windows of images, as `choose`, by the class index of each pixel of their masks, int32 `(n, height, width)`, and
        whether it is `there`: of a class that is not ignored, bool of that shape."""
        raise NotImplementedError


class WholeOrItemCrop(ItemCrop):
    """A window of any size; the whole image where it has no items."""

    without_items = ("random_resized_crop", "it leaves every image whole")
    handles_probability = True

    probability: Probability = 1.0
    """The share of examples that the step changes."""

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        return x if self.idle() else super().infer(x)

    def window(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return place(0, 0, height, width, u)


@dataclass(frozen=True, slots=True)
class ChooseWindow(Stage):
    """Chooses the window of a crop by the items or the mask of an image, before these and the image are cut to it.

    `kind` is that of the guiding feature, `canvas` the height and width of the image in pixels, `ignore` the value of mask pixels without a
    class, and `home` the feature that the items belong to, if any, such as the boxes of keypoints.
    """

    one_example: ClassVar[bool] = True
    compilable: ClassVar[bool] = False
    ns_per_value: ClassVar[float] = 0.0

    feature: str
    ref: StepRef[ItemCrop]
    canvas: tuple[int | None, int | None]
    kind: str = "boxes"
    ignore: int = 255
    home: str | None = None

    def touches(self) -> tuple[str, ...]:
        return (self.feature, valid_name(self.home or self.feature)) if self.by_items() else (self.feature,)

    def by_items(self) -> bool:
        """Whether items guide the choice, and not pixels."""
        return kind_named(self.kind).ragged

    def ns(self, x: FeatureType) -> float:
        return 0.0 if self.by_items() else 1.0  # for each pixel of a mask that is searched

    def says(self) -> str:
        return f"choose the window: {use(self.ref)}"


def window_name(ref: StepRef) -> str:
    """The name of the window of a use of a step. It holds the op, since a step without draws has the same `start` as the next one."""
    return f"@window/{ref.start}/{ref.step.op}"


@dataclass(frozen=True, slots=True)
class CanvasCrop(Stage):
    """A window of each image of a batch, resized to one size. Images differ in size, and each lies in a corner of its canvas. Later steps
    that only mirror axes (`mirrors`) are done by reading the pixels, too. `canvas` and `size`, that of the output, are height and width in
    pixels."""

    ns_per_value: ClassVar[float] = 0.9
    from_memory: ClassVar[bool] = True

    feature: str
    ref: StepRef[CropTransform]
    canvas: tuple[int, int]
    channels: int
    size: tuple[int, int]
    mirrors: tuple[StepRef[GeometricTransform], ...] = field(default=())

    def uses(self) -> tuple[StepRef, ...]:
        return (self.ref, *self.mirrors)

    def says(self) -> str:
        mirrored = f", and mirror: {uses(self.mirrors)}" if self.mirrors else ""
        return f"crop and resize a whole batch: {use(self.ref)}{mirrored}"

    def leads(self) -> bool:
        return True


def size_name(feature: str) -> str:
    """The name of the heights and widths of a feature's images on canvases."""
    return f"@size/{feature}"


def store_name(feature: str) -> str:
    """The name of the memory that stores a feature's images, as 64-bit words."""
    return f"@store/{feature}"


def place_name(feature: str) -> str:
    """The name of the offsets of a feature's images in that memory, in bytes."""
    return f"@place/{feature}"


class PaddedWindow(CropTransform):
    """A window that can extend beyond the image, where `fill` shows; masks show their `ignore` in place of a constant."""

    fill: Fill = ConstantFill()
    """The border around the image: `{constant: VALUE}` in the units of the incoming values, `reflect`, `nearest` or `wrap`."""

    def pads(self) -> bool:
        """Whether the window can extend beyond the image."""
        return True

    def room(self, x: FeatureType) -> tuple[int | None, int | None]:
        return (None, None) if self.pads() else super().room(x)

    def reach(self) -> Reach | None:
        return None if self.pads() else super().reach()

    def is_identity(self, x: FeatureType) -> bool:
        return not self.pads() and super().is_identity(x)

    def traits(self, x: FeatureType) -> Traits:
        traits = super().traits(x)
        return replace(traits, pads=True, moves_pixels_only=not isinstance(self.fill, ConstantFill)) if self.pads() else traits

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        return filled(y, self.fill) if self.pads() else y

    def cut(self, image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
        return cut(image, window, self.fill if self.pads() else None)


def sizes_differ(step: Transform, ends: Mapping[tuple[int | None, ...], Transform | None], x: FeatureType) -> OpError:
    """The error of a step that leaves images of type `x` with several sizes: the shapes, each with the step that makes it, or `None`."""
    said = []
    for shape, one in ends.items():
        how = "" if one is step else f" after `{one.op}`" if one is not None else " where it changes nothing"
        said.append(f"{times(shape[:2])}{how}")
    (shape, *others) = [shape for shape in ends if shape != x.shape]
    maker = ends[shape]
    help_: str | Advice = "give all of its steps one size"
    if not others and None not in shape:
        size = str(shape[0]) if shape[0] == shape[1] else f"[{shape[0]}, {shape[1]}]"
        help_ = write(f"resize: {{size: {size}}}", "before", "put {} before it")
    if not others and isinstance(maker, CropTransform) and not maker.resizes() and None not in x.shape:
        help_ = f"`random_resized_crop` resizes its window to the size of the image, {times(x.shape[:2])}"
    return OpError("PG226", f"`{step.op}` leaves images at {', and at '.join(said)}; they need one size", help=help_)
