"""Replace parts of images: rectangles, cells of a grid, single pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.geometry import ConstantFill, filled
from pipegen.ops.arguments.magnitudes import Fraction, Magnitude, Span, check_magnitude, check_pair, check_range, checked, span_range
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.uniform import ByteTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import logarithms, radians, uniform
from pipegen.ops.lowering.random import half_words, key_of
from pipegen.ops.lowering.windows import pick, place
from pipegen.ops.traits import same_type
from pipegen.ops.transform import Transform
from pipegen.types import FeatureType

WORD = 31
"""Holes in a word of 32 bits, whose sign is not used."""

MOST_GONE = 0.8
"""The share of an image that holes may take without a warning."""


class DropoutTransform(NeighbourhoodTransform):
    """Replaces holes of an image by one value, and of its mask where that is asked for. Boxes and labels stay as they are."""

    random = True
    starts_kernel = False
    kinds = frozenset({"image", "mask"})

    fill: ConstantFill = ConstantFill()
    """What is put there: `{constant: VALUE}`, in the units of the values that enter."""
    mask_fill: Annotated[int, Field(ge=0, le=255)] | Literal["ignore"] | None = None
    """What is put there in the masks of the image: a class index, or `ignore`, which the loss leaves out; by default they stay."""

    def reaches(self, x: FeatureType) -> bool:
        return self.mask_fill is not None and kind_of(x).categorical

    def on(self, x: FeatureType) -> Transform:
        if not kind_of(x).categorical or self.mask_fill is None:
            return self
        constant = float(x.ignore if self.mask_fill == "ignore" else self.mask_fill)
        return self.model_copy(update={"fill": ConstantFill(constant=constant)})

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type; the constant widens the interval."""
        y = super().infer(x)
        if kind_of(x).categorical:
            self._check_class(x)
        return filled(y, self.fill)

    def weight(self) -> float:
        return 0.3

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return tf.where(self.dropped(images, *given)[..., None], tf.cast(self.fill.constant, images.dtype), images)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        """Returns which pixels are replaced, bool `(n, height, width)`; `given` is what `finish` takes."""
        raise NotImplementedError

    def _check_class(self, x: FeatureType) -> None:
        if self.mask_fill is None:
            said = write("mask_fill: ignore", "arguments")
            raise OpError("PG203", f"`{self.op}` acts on a mask only where `mask_fill` says what is put there", help=said)
        if kind_of(x).marks_items and self.mask_fill not in (0, x.ignore, "ignore"):
            said = write("mask_fill: 0", "arguments", "fill with the background: {}")
            message = f"`mask_fill: {self.mask_fill}` is the number of one of the `{x.instances}`, not a class"
            raise OpError("PG207", message, field="mask_fill", help=said)
        if isinstance(self.mask_fill, int) and x.classes is not None and self.mask_fill not in (*range(x.classes), x.ignore):
            help_ = f"use a class index from 0 to {x.classes - 1}, or `ignore`"
            raise OpError("PG207", f"a mask of {x.classes} classes cannot be filled with {self.mask_fill}", field="mask_fill", help=help_)


def covered(start: tf.Tensor, length: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Says of each line by which of some intervals it is covered: int32 `(..., size)`, a bit for each.

    Args:
        start: int32 `(..., k)`: where each begins, with `k` at most `WORD`.
        length: int32, likewise; 0 covers nothing.
        size: How many lines there are.
    """
    line = tf.range(size)[:, None]
    inside = tf.logical_and(line >= start[..., None, :], line < (start + length)[..., None, :])
    bits = tf.bitwise.left_shift(tf.ones_like(start), tf.range(int(start.shape[-1])))
    return tf.reduce_sum(tf.where(inside, bits[..., None, :], 0), -1)


def rectangles(images: tf.Tensor, top: tf.Tensor, left: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Says which of some rectangles, int32 `(n, k)`, cover each row and each column: int32 `(n, words, height)` and `(n, words, width)`."""
    rows, columns, _ = sides(images)
    count = int(top.shape[1])
    down, across = [], []
    for first in range(0, count, WORD):
        part = slice(first, min(first + WORD, count))
        down.append(covered(top[:, part], height[:, part], rows))
        across.append(covered(left[:, part], width[:, part], columns))
    return tf.stack(down, 1), tf.stack(across, 1)


def inside(down: tf.Tensor, across: tf.Tensor) -> tf.Tensor:
    """Returns which pixels lie in one of the `rectangles`, bool `(n, height, width)`: those whose row and column one covers."""
    found = None
    for word in range(int(down.shape[1])):
        both = tf.bitwise.bitwise_and(down[:, word][:, :, None], across[:, word][:, None, :])
        found = both if found is None else tf.bitwise.bitwise_or(found, both)
    return tf.not_equal(found, 0)


class RandomErasing(DropoutTransform):
    """Replaces a random rectangle of an image by one value: random erasing (Zhong et al. 2017), or Cutout.

    It draws an area, uniform in `area` as a fraction of the image's, and an aspect ratio (width / height), uniform in
    the logarithm of `aspect_ratio`; the rectangle is √(area · ratio) wide and √(area / ratio) high, rounded half to even
    and at least one pixel, and is placed uniformly inside the image. A side longer than the image's is cut to it.
    """

    op = "random_erasing"
    examples = same_type("random_erasing: {probability: 0.5}", "random_erasing: {area: [0.1, 0.25], fill: {constant: 127}}")

    area: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.02, 0.33)
    """The range of the rectangle's area, as a fraction of the image's."""
    aspect_ratio: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 100)] = (0.3, 3.3)
    """The range of the rectangle's width divided by its height."""

    def num_draws(self) -> int:
        return 4

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
    """Replaces several random rectangles of an image by one value: coarse dropout, which is Cutout (DeVries and Taylor 2017) with
    many holes.

    It draws how many holes there are, and for each its height and width, uniform in `height` and `width` as fractions of
    the image's, rounded half to even and at least one pixel, and a place inside the image. Holes may overlap.
    """

    op = "random_coarse_dropout"
    starts_kernel = True
    examples = same_type(
        "random_coarse_dropout: {holes: [3, 8]}",
        "random_coarse_dropout: {holes: 16, height: [0.05, 0.1], width: [0.05, 0.1], fill: {constant: 127}}",
    )

    holes: Count | tuple[Count, Count]
    """How many holes an image gets, at most 124; a pair is the range, both ends included."""
    height: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.1, 0.2)
    """The range of a hole's height, as a fraction of the image's."""
    width: Annotated[Span, checked(check_pair), checked(check_range, 0, 1)] = (0.1, 0.2)
    """The range of a hole's width, as a fraction of the image's."""

    @model_validator(mode="after")
    def _forward(self) -> RandomCoarseDropout:
        low, high = self._range()
        if low > high:
            raise ValueError(f"`holes` is a range [low, high], but {low} is above {high}")
        return self

    def _range(self) -> tuple[int, int]:
        return self.holes if isinstance(self.holes, tuple) else (self.holes, self.holes)

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        each = sum(span_range(self.height)) / 2 * sum(span_range(self.width)) / 2
        gone = 1.0 - (1.0 - each) ** (sum(self._range()) / 2)
        if gone <= MOST_GONE:
            return ()
        help_ = "use fewer `holes`, or smaller ranges of `height` and `width`, which are fractions of the image"
        return (OpError("PG510", f"`{self.op}` replaces {gone:.0%} of an image on average", field="holes", help=help_),)

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"holes": list(self._range())}

    def num_draws(self) -> int:
        return 1 + 4 * self._range()[1]

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The holes: `top`, `left`, `height` and `width`, int32 `(n, most)`; one that an image does not have is 0 pixels high and wide."""
        return dict(zip(("top", "left", "height", "width"), self.parameters(u, shape[0], shape[1]), strict=True))

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        low, high = self._range()
        own = tf.reshape(u[:, 1:], [-1, 4, high])
        there = tf.range(high)[None, :] <= low - 1 + pick(u[:, :1], high - low)

        def length(v: tf.Tensor, bounds: tuple[float, float], side: int | tf.Tensor) -> tf.Tensor:
            return tf.clip_by_value(tf.cast(tf.round(uniform(v, bounds) * tf.cast(side, tf.float64)), tf.int32), 1, side)

        h, w = length(own[:, 0], span_range(self.height), height), length(own[:, 1], span_range(self.width), width)
        found = pick(own[:, 2], height - h), pick(own[:, 3], width - w), h, w
        return tuple(tf.where(there, part, 0) for part in found)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (rectangles,)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return inside(*given)


Cells = Annotated[int, Field(ge=1, le=WORD)]


class RandomGridDropout(DropoutTransform):
    """Replaces one rectangle in each cell of a grid by one value, at a place in its cell that is drawn for each.

    The image is cut into `cells` rows and columns of cells, which differ by a pixel at most. A hole has `ratio` of the
    height and of the width of its cell, rounded down, and at least one pixel. Its place is drawn by 16 random bits
    (Threefry-2x32) across and 16 down.
    """

    op = "random_grid_dropout"
    starts_kernel = True
    examples = same_type("random_grid_dropout: {cells: 6}", "random_grid_dropout: {cells: [4, 8], ratio: 0.3, probability: 0.5}")

    cells: Cells | tuple[Cells, Cells]
    """How many rows and columns of cells there are, at most 31; a pair is `[rows, columns]`."""
    ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The sides of a hole as a fraction of those of its cell."""

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"cells": list(self._grid())}

    def num_draws(self) -> int:
        return 2

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """The upper left corners of the holes, row by row: `top` and `left`, int32 `(n, rows · columns)`, in pixels."""
        (top, _), (left, _) = self._holes(key_of(u), shape[0], shape[1])
        rows, columns = self._grid()
        return {"top": tf.reshape(top, [-1, rows * columns]), "left": tf.reshape(left, [-1, rows * columns])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (key_of(u),)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._lines,)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        down, across = given
        own = tf.gather(across, self._row_of(sides(images)[0]), axis=1)
        return tf.not_equal(tf.bitwise.bitwise_and(down[:, :, None], own), 0)

    def _lines(self, images: tf.Tensor, key: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Of each row of pixels, which holes of its row of cells cover it, int32 `(n, height)`; and of each column of pixels, which holes
        of every row of cells: `(n, rows, width)`. A bit stands for a column of cells."""
        height, width, _ = sides(images)
        (top, tall), (left, wide) = self._holes(key, height, width)
        own = self._row_of(height)
        start, line = tf.gather(top, own, axis=1), tf.range(height)[None, :, None]
        inside = tf.logical_and(line >= start, line < start + tf.gather(tall, own)[None, :, None])
        bits = tf.bitwise.left_shift(1, tf.range(self._grid()[1]))
        return tf.reduce_sum(tf.where(inside, bits, 0), -1), covered(left, tf.zeros_like(left) + wide, width)

    def _holes(self, key: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], ...]:
        """The places of the holes, int32 `(n, rows, columns)`, and how long they are, of each row or column of cells: down, then across."""
        rows, columns = self._grid()
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
        return ((tf.range(height) + 1) * self._grid()[0] - 1) // height

    def _grid(self) -> tuple[int, int]:
        return self.cells if isinstance(self.cells, tuple) else (self.cells, self.cells)


_TURN = 4294967296.0
"""A position is kept as a share of the grid's unit, in 1/2^32: whole units drop out by themselves."""


class RandomGridMask(DropoutTransform):
    """Replaces the squares of a regular grid by one value: GridMask (Chen et al. 2020).

    It draws how far apart the squares are, uniform in `unit` as a fraction of the image's shorter side and rounded to
    pixels, where the first one begins, and an angle by which the grid is turned about the image's centre. A square's
    side is `ratio` of that distance, rounded half to even and at least one pixel.
    """

    op = "random_grid_mask"
    examples = same_type("random_grid_mask: {ratio: 0.5}", "random_grid_mask: {unit: [0.1, 0.3], degrees: [-45, 45], probability: 0.7}")

    unit: Annotated[Span, checked(check_pair), checked(check_range, 0.01, 2)] = (0.4, 1.0)
    """The range of the distance from one square to the next, as a fraction of the image's shorter side."""
    ratio: Fraction = 0.4
    """The side of a square as a fraction of that distance. (In the paper, r is what is kept of it: 0.6.)"""
    degrees: Annotated[Span, checked(check_pair), checked(check_range, -360, 360)] = (0.0, 0.0)
    """The range of the angle in degrees, anticlockwise."""

    def num_draws(self) -> int:
        return 4

    def drawn_on(self, u: tf.Tensor, shape: tuple[int | tf.Tensor, int | tf.Tensor, int]) -> dict[str, tf.Tensor]:
        """`unit` and `side` in pixels, `top` and `left` of a square of the grid before it is turned, int32 `(n,)`; and `degrees`."""
        unit, side, top, left = self._grid(u, shape[0], shape[1])
        return {"unit": unit, "side": side, "top": top, "left": left, "degrees": uniform(u[:, 3], span_range(self.degrees))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        unit, side, top, left = (tf.cast(v, tf.float64) for v in self._grid(u, height, width))
        angle = radians(uniform(u[:, 3], span_range(self.degrees)))
        cos, sin = tf.cos(angle), tf.sin(angle)
        cx, cy = (tf.cast(side_, tf.float64) / 2.0 for side_ in (width, height))
        # A pixel's middle is never on the edge of a square that is not turned, so that rounding decides nothing.
        x = cos, -sin, cx + (0.5 - cx) * cos - (0.5 - cy) * sin - left
        y = sin, cos, cy + (0.5 - cx) * sin + (0.5 - cy) * cos - top
        (ax, bx, px), (ay, by, py) = ([part / unit for part in line] for line in (x, y))
        return (tf.stack([_word(share) for share in (ax, bx, px - 0.5, ay, by, py - 0.5, side / unit - 0.5)], -1),)

    def dropped(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        height, width, _ = sides(images)
        right, down = tf.range(width)[None, None, :], tf.range(height)[None, :, None]
        ax, bx, cx, ay, by, cy, side = (part[:, None, None] for part in tf.unstack(given[0], num=7, axis=1))
        return tf.logical_and(right * ax + (down * bx + cx) < side, right * ay + (down * by + cy) < side)

    def _grid(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The unit, a square's side, and where the first one begins, down and across, in pixels."""
        shorter = tf.cast(tf.minimum(height, width), tf.float64)
        unit = tf.maximum(tf.cast(tf.round(uniform(u[:, 0], span_range(self.unit)) * shorter), tf.int32), 2)
        side = tf.clip_by_value(tf.cast(tf.round(tf.cast(unit, tf.float64) * self.ratio), tf.int32), 1, unit - 1)
        return unit, side, pick(u[:, 1], unit - 1), pick(u[:, 2], unit - 1)


def _word(share: tf.Tensor) -> tf.Tensor:
    """A share of a unit, less whole ones, as an int32 in 1/2^32: at least -1/2 and below 1/2."""
    return tf.bitcast(tf.cast(tf.cast(tf.round(share * _TURN), tf.int64) % (1 << 32), tf.uint32), tf.int32)


class RandomPixelDropout(ByteTransform):
    """Puts one value in the place of a share of the pixels, each by itself, as dead pixels of a sensor have it.

    Whether a pixel is among them is a function of the image's draws and of its place alone, of 16 random bits; with `per_channel` each
    channel of a pixel decides for itself.
    """

    op = "random_pixel_dropout"
    examples = same_type(
        "random_pixel_dropout: {share: 0.05}", "random_pixel_dropout: {share: [0.1, 0.2], value: 128, per_channel: true, probability: 0.5}"
    )

    share: Annotated[Magnitude, checked(check_magnitude, 0, 1)]
    """The share of the pixels that change, from 0 to 1: 0.05 means from 0 to 0.05, a pair is the range."""
    value: Annotated[int, Field(ge=0, le=255)] = 0
    """What they become, from 0 to 255."""
    per_channel: bool = False
    """Whether the channels of a pixel are chosen apart."""

    def weight(self) -> float:
        return 1.0 if self.per_channel else 0.5

    def num_draws(self) -> int:
        return 3

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"share": tf.abs(super().drawn(u)["share"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return key_of(u[:, 1:3]), tf.cast(tf.round(self.drawn(u)["share"] * 65536.0), tf.int32)

    def phases(self) -> tuple[Callable[..., tuple[tf.Tensor, ...]], ...]:
        return (self._draw,)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        places, limit = given
        height, width, channels = sides(images)
        found = tf.reshape(tf.cast(places, tf.int32), [-1, height, width, channels if self.per_channel else 1])
        return tf.where(found < limit[:, None, None, None], tf.constant(self.value, images.dtype), images)

    def _draw(self, images: tf.Tensor, key: tf.Tensor, limit: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, channels = sides(images)
        return half_words(key, height * width * (channels if self.per_channel else 1)), limit
