"""Replace parts of images: rectangles, cells of a grid, single pixels."""

from __future__ import annotations

from functools import reduce
from typing import Annotated, Literal

from pydantic import Field

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, filled
from pipegen.ops.arguments.magnitudes import Fraction, Magnitude, Span, amount_within, as_pair, check_range, checked, span_range, within
from pipegen.ops.families.neighbourhood import ByteTransform, NeighbourhoodTransform
from pipegen.ops.kinds.base import Indices, InstanceNumber, kind_of
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import logarithms, radians, uniform
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.lowering.windows import pick, place, whole_between
from pipegen.ops.step_bases import UnsignedTransform
from pipegen.ops.traits import same_type
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType

WORD = 31  # holes in a word of 32 bits; the sign bit stays unused


class DropoutTransform(NeighbourhoodTransform):
    """Replaces holes of an image by one value, and with `mask_fill` those of its masks. Boxes and labels stay as they are."""

    random = True
    starts_kernel = False
    cost = 0.3
    kinds = frozenset({"image", "mask"})

    fill: ConstantFill = ConstantFill()
    """The value in the holes: `{constant: VALUE}`, in the units of the incoming values."""
    mask_fill: Annotated[int, Field(ge=0, le=255)] | Literal["ignore"] | None = None
    """The value in the holes of the image's masks: a class index, or `ignore`, which the loss leaves out; by default masks stay."""

    def reaches(self, x: FeatureType) -> bool:
        return self.mask_fill is not None and kind_of(x).has(Indices)

    def on(self, x: FeatureType) -> Transform:
        if not kind_of(x).has(Indices) or self.mask_fill is None:
            return self
        constant = float(x.ignore if self.mask_fill == "ignore" else self.mask_fill)
        return self.model_copy(update={"fill": ConstantFill(constant=constant)})

    def infer(self, x: FeatureType) -> FeatureType:
        y = super().infer(x)
        if kind_of(x).has(Indices) and self.mask_fill is None:
            said = write("mask_fill: ignore", "arguments")
            raise OpError("PG203", f"`{self.op}` acts on a mask only with `mask_fill`", help=said)
        if kind_of(x).has(InstanceNumber) and self.mask_fill not in (0, x.ignore, "ignore"):
            said = write("mask_fill: 0", "arguments", "fill with the background: {}")
            message = f"`mask_fill: {self.mask_fill}` is the number of one of the `{x.instances}`, not a class"
            raise OpError("PG207", message, field="mask_fill", help=said)
        categories = x.classes if kind_of(x).has(Indices) else None
        if isinstance(self.mask_fill, int) and categories is not None and self.mask_fill not in (*range(categories), x.ignore):
            help_ = f"use a class index from 0 to {categories - 1}, or `ignore`"
            raise OpError("PG207", f"a mask of {categories} classes cannot be filled with {self.mask_fill}", field="mask_fill", help=help_)
        return filled(y, self.fill)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.where(self.dropped(images, *given)[..., None], tf.cast(self.fill.constant, images.dtype), images)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        """Marks the pixels that are replaced, bool `(n, height, width)`; `given` is as for `finish`."""
        raise NotImplementedError


def covered(start: tf.Tensor, length: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Marks the intervals that cover each of `size` lines: int32 `(..., size)`, one bit for each interval. They have a start and a length,
    int32 `(..., k)` with `k` at most `WORD`; 0 covers nothing."""
    line = tf.range(size)[:, None]
    inside = tf.logical_and(line >= start[..., None, :], line < (start + length)[..., None, :])
    bits = tf.bitwise.left_shift(tf.ones_like(start), tf.range(int(start.shape[-1])))
    return tf.reduce_sum(tf.where(inside, bits[..., None, :], 0), -1)


def rectangles(images: tf.Tensor, top: tf.Tensor, left: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Marks the rectangles, int32 `(n, k)`, that cover each row and each column: int32 `(n, words, height)` and `(n, words, width)`."""
    rows, columns, _ = sides(images)
    parts = [slice(first, first + WORD) for first in range(0, int(top.shape[1]), WORD)]
    lines = (top, height, rows), (left, width, columns)
    return tuple(tf.stack([covered(start[:, part], length[:, part], side) for part in parts], 1) for start, length, side in lines)


def inside(down: tf.Tensor, across: tf.Tensor) -> tf.Tensor:
    """Marks the pixels in one of the `rectangles`, bool `(n, height, width)`: one that covers their row and their column."""
    words = range(int(down.shape[1]))
    both = (tf.bitwise.bitwise_and(down[:, word][:, :, None], across[:, word][:, None, :]) for word in words)
    return tf.not_equal(reduce(tf.bitwise.bitwise_or, both), 0)


class RandomErasing(DropoutTransform):
    """Replaces a random rectangle of an image by one value: random erasing (Zhong et al. 2017), or Cutout.

    It draws an area, uniform in `area` as a fraction of the image's, and an aspect ratio (width / height), uniform in
    the logarithm of `aspect_ratio`; the rectangle is √(area · ratio) wide and √(area / ratio) high, rounded half to even
    and at least one pixel, and is placed uniformly inside the image. A side longer than the image's is cut to it.
    """

    op = "random_erasing"
    draws = 4
    examples = same_type("random_erasing: {probability: 0.5}", "random_erasing: {area: [0.1, 0.25], fill: {constant: 127}}")

    area: Annotated[Span, within(0, 1)] = (0.02, 0.33)
    """The range of the rectangle's area, as a fraction of the image's."""
    aspect_ratio: Annotated[Span, within(0.01, 100)] = (0.3, 3.3)
    """The range of the rectangle's width divided by its height."""

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The rectangle: `top`, `left`, `height` and `width`, int32 `(n,)`."""
        (place,) = self.parameters(u, shape[0], shape[1])
        return dict(zip(("top", "left", "height", "width"), tf.unstack(place, axis=-1), strict=True))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        rows, columns = tf.cast(height, tf.float64), tf.cast(width, tf.float64)
        area = uniform(u[:, 0], span_range(self.area)) * (rows * columns)
        ratio = tf.exp(uniform(u[:, 1], logarithms(span_range(self.aspect_ratio))))
        w = tf.clip_by_value(tf.cast(tf.round(tf.sqrt(area * ratio)), tf.int32), 1, width)
        h = tf.clip_by_value(tf.cast(tf.round(tf.sqrt(area / ratio)), tf.int32), 1, height)
        return (place(pick(u[:, 2], height - h), pick(u[:, 3], width - w), h, w, u),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        # In two steps: TensorFlow takes a part of what was just stacked for the part itself, and forgets a new axis.
        top, left, h, w = (part[:, None] for part in tf.unstack(given[0], num=4, axis=1))
        height, width, _ = sides(images)
        y, x = tf.range(height)[None, :], tf.range(width)[None, :]
        down, across = tf.logical_and(y >= top, y < top + h), tf.logical_and(x >= left, x < left + w)
        return tf.logical_and(down[:, :, None], across[:, None, :])


Count = Annotated[int, Field(ge=1, le=124)]


class RandomCoarseDropout(DropoutTransform):
    """Replaces several random rectangles of an image by one value: coarse dropout, which is Cutout (DeVries and Taylor 2017) with many
    holes.

    It draws the number of holes, and for each its height and width, uniform in `height` and `width` as fractions of the image's, rounded
    half to even and at least one pixel, and a place inside the image. Holes may overlap.
    """

    op = "random_coarse_dropout"
    starts_kernel = True
    phase = staticmethod(rectangles)
    pairs = frozenset({"holes"})
    examples = same_type(
        "random_coarse_dropout: {holes: [3, 8]}",
        "random_coarse_dropout: {holes: 16, height: [0.05, 0.1], width: [0.05, 0.1], fill: {constant: 127}}",
    )

    holes: Annotated[Count | tuple[Count, Count], checked(check_range)]
    """The number of holes, at most 124; a pair is the range, both ends included."""
    height: Annotated[Span, within(0, 1)] = (0.1, 0.2)
    """The range of a hole's height, as a fraction of the image's."""
    width: Annotated[Span, within(0, 1)] = (0.1, 0.2)
    """The range of a hole's width, as a fraction of the image's."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        each = sum(span_range(self.height)) / 2 * sum(span_range(self.width)) / 2
        gone = 1.0 - (1.0 - each) ** (sum(as_pair(self.holes)) / 2)
        if gone <= 0.8:
            return ()
        help_ = "use fewer `holes`, or smaller ranges of `height` and `width`, which are fractions of the image"
        return (OpError("PG510", f"`{self.op}` replaces {gone:.0%} of an image on average", field="holes", help=help_),)

    def num_draws(self) -> int:
        return 1 + 4 * as_pair(self.holes)[1]

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The holes: `top`, `left`, `height` and `width`, int32 `(n, most)`; unused ones are 0 pixels high and wide."""
        return dict(zip(("top", "left", "height", "width"), self.parameters(u, shape[0], shape[1]), strict=True))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        high = as_pair(self.holes)[1]
        own = tf.reshape(u[:, 1:], [-1, 4, high])
        there = tf.range(high)[None, :] < whole_between(u[:, :1], as_pair(self.holes))

        def length(v: tf.Tensor, bounds: tuple[float, float], side: int | tf.Tensor) -> tf.Tensor:
            return tf.clip_by_value(tf.cast(tf.round(uniform(v, bounds) * tf.cast(side, tf.float64)), tf.int32), 1, side)

        h, w = length(own[:, 0], span_range(self.height), height), length(own[:, 1], span_range(self.width), width)
        found = pick(own[:, 2], height - h), pick(own[:, 3], width - w), h, w
        return tuple(tf.where(there, part, 0) for part in found)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return inside(*given)


Cells = Annotated[int, Field(ge=1, le=WORD)]


class RandomGridDropout(DropoutTransform):
    """Replaces one rectangle in each cell of a grid by one value; its place in the cell is drawn.

    The image is divided into `cells` rows and columns of cells, whose sides differ by a pixel at most. A hole has `ratio` of the height and
    of the width of its cell, rounded down, and at least one pixel. Its place is drawn by 16 random bits (Threefry-2x32) across and 16
    down.
    """

    op = "random_grid_dropout"
    starts_kernel = True
    draws = 2
    pairs = frozenset({"cells"})
    examples = same_type("random_grid_dropout: {cells: 6}", "random_grid_dropout: {cells: [4, 8], ratio: 0.3, probability: 0.5}")

    cells: Cells | tuple[Cells, Cells]
    """The number of rows and of columns of cells, at most 31; a pair is `[rows, columns]`."""
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The sides of a hole as a fraction of those of its cell."""

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The upper left corners of the holes, row by row: `top` and `left`, int32 `(n, rows · columns)`, in pixels."""
        (top, _), (left, _) = self._holes(key_of(u), shape[0], shape[1])
        rows, columns = as_pair(self.cells)
        return {"top": tf.reshape(top, [-1, rows * columns]), "left": tf.reshape(left, [-1, rows * columns])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (key_of(u),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        down, across = given
        own = tf.gather(across, self._row_of(sides(images)[0]), axis=1)
        return tf.not_equal(tf.bitwise.bitwise_and(down[:, :, None], own), 0)

    def phase(self, images: tf.Tensor, key: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The holes of its row of cells that cover each row of pixels, int32 `(n, height)`; and the holes of each row of cells that cover
        each column of pixels, `(n, rows, width)`. A bit stands for a column of cells."""
        height, width, _ = sides(images)
        (top, tall), (left, wide) = self._holes(key, height, width)
        own = self._row_of(height)
        start, line = tf.gather(top, own, axis=1), tf.range(height)[None, :, None]
        inside = tf.logical_and(line >= start, line < start + tf.gather(tall, own)[None, :, None])
        bits = tf.bitwise.left_shift(1, tf.range(as_pair(self.cells)[1]))
        return tf.reduce_sum(tf.where(inside, bits, 0), -1), covered(left, tf.zeros_like(left) + wide, width)

    def _holes(self, key: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], ...]:
        """Down, then across: the starts of the holes, int32 `(n, rows, columns)`, and their lengths for each row or column of cells."""
        rows, columns = as_pair(self.cells)
        words = tf.cast(tf.reshape(half_words(key, 2 * rows * columns), [-1, 2, rows, columns]), tf.int32)
        found = []
        for axis, (cells, side) in enumerate(((rows, height), (columns, width))):
            edges = tf.range(cells + 1) * side // cells
            cell = edges[1:] - edges[:-1]
            hole = tf.minimum(cell, tf.maximum(1, tf.cast(tf.floor(tf.cast(cell, tf.float64) * self.ratio), tf.int32)))
            first, spare = (v if axis else v[:, None] for v in (edges[:-1], cell - hole + 1))
            found.append((first + tf.bitwise.right_shift(words[:, axis] * spare, 16), hole))
        return tuple(found)

    def _row_of(self, height: int | tf.Tensor) -> tf.Tensor:
        """The row of cells that each row of pixels belongs to, int32 `(height,)`."""
        return ((tf.range(height) + 1) * as_pair(self.cells)[0] - 1) // height


class RandomGridMask(DropoutTransform):
    """Replaces the squares of a regular grid by one value: GridMask (Chen et al. 2020).

    It draws the distance of the squares, uniform in `unit` as a fraction of the image's shorter side and rounded to pixels, the place of
    the first one, and an angle by which the grid is turned about the image's centre. The side of a square is `ratio` of that distance,
    rounded half to even and at least one pixel.
    """

    op = "random_grid_mask"
    draws = 4
    examples = same_type("random_grid_mask: {ratio: 0.5}", "random_grid_mask: {unit: [0.1, 0.3], degrees: [-45, 45], probability: 0.7}")

    unit: Annotated[Span, within(0.01, 2)] = (0.4, 1.0)
    """The range of the distance from one square to the next, as a fraction of the image's shorter side."""
    ratio: Fraction = 0.4
    """The side of a square as a fraction of that distance. (The paper's r is the rest, 0.6.)"""
    degrees: Annotated[Span, within(-360, 360)] = (0.0, 0.0)
    """The range of the angle in degrees, anticlockwise."""

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`unit` and `side` in pixels, `top` and `left` of a square of the grid before it is turned, int32 `(n,)`; and `degrees`."""
        unit, side, top, left = self._grid(u, shape[0], shape[1])
        return {"unit": unit, "side": side, "top": top, "left": left, "degrees": uniform(u[:, 3], span_range(self.degrees))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        unit, side, top, left = (tf.cast(v, tf.float64) for v in self._grid(u, height, width))
        angle = radians(uniform(u[:, 3], span_range(self.degrees)))
        cos, sin = tf.cos(angle), tf.sin(angle)
        cx, cy = (tf.cast(side_, tf.float64) / 2.0 for side_ in (width, height))
        # The middle of a pixel never lies on the edge of an unturned square, so rounding decides nothing there.
        x = cos, -sin, cx + (0.5 - cx) * cos - (0.5 - cy) * sin - left
        y = sin, cos, cy + (0.5 - cx) * sin + (0.5 - cy) * cos - top
        (ax, bx, px), (ay, by, py) = ([part / unit for part in line] for line in (x, y))
        shares = (ax, bx, px - 0.5, ay, by, py - 0.5, side / unit - 0.5)
        # Of the grid's unit, in 1/2^32, so that whole units overflow and drop out: at least -1/2 and below 1/2.
        words = [tf.bitcast(tf.cast(tf.cast(tf.round(share * 2.0**32), tf.int64) % (1 << 32), tf.uint32), tf.int32) for share in shares]
        return (tf.stack(words, -1),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        height, width, _ = sides(images)
        right, down = tf.range(width)[None, None, :], tf.range(height)[None, :, None]
        ax, bx, cx, ay, by, cy, side = (part[:, None, None] for part in tf.unstack(given[0], num=7, axis=1))
        return tf.logical_and(right * ax + (down * bx + cx) < side, right * ay + (down * by + cy) < side)

    def _grid(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The unit, the side of a square, and the place of the first one, down and across, in pixels."""
        shorter = tf.cast(tf.minimum(height, width), tf.float64)
        unit = tf.maximum(tf.cast(tf.round(uniform(u[:, 0], span_range(self.unit)) * shorter), tf.int32), 2)
        side = tf.clip_by_value(tf.cast(tf.round(tf.cast(unit, tf.float64) * self.ratio), tf.int32), 1, unit - 1)
        return unit, side, pick(u[:, 1], unit - 1), pick(u[:, 2], unit - 1)


class RandomPixelDropout(UnsignedTransform, ByteTransform):
    """Replaces a share of the pixels by one value, independently, as dead pixels of a sensor do.

    Whether a pixel is replaced depends only on the image's draws and on its place, by 16 random bits; with `per_channel`, the channels of a
    pixel are independent, too.
    """

    op = "random_pixel_dropout"
    draws = 3
    examples = same_type(
        "random_pixel_dropout: {share: 0.05}", "random_pixel_dropout: {share: [0.1, 0.2], value: 128, per_channel: true, probability: 0.5}"
    )

    share: Annotated[Magnitude, amount_within(0, 1)]
    """The share of the pixels that change, from 0 to 1: 0.05 means from 0 to 0.05, a pair is the range."""
    value: Annotated[int, Field(ge=0, le=255)] = 0
    """The value of these pixels, from 0 to 255."""
    per_channel: bool = False
    """Whether the channels of a pixel are chosen independently."""

    def weight(self) -> float:
        return 1.0 if self.per_channel else 0.5

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), tf.cast(tf.round(self.drawn(u)["share"] * 65536.0), tf.int32)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, limit = given
        height, width, channels = sides(images)
        found = tf.reshape(tf.cast(places, tf.int32), [-1, height, width, channels if self.per_channel else 1])
        return tf.where(found < limit[:, None, None, None], tf.constant(self.value, images.dtype), images)

    def phase(self, images: tf.Tensor, key: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, channels = sides(images)
        return half_words(key, height * width * (channels if self.per_channel else 1)), limit
