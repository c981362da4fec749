"""Holes in images: what the steps that replace parts of an image by one value share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.diagnostics.advice import write
from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.fills import filled
from pipegen.ops.base import ConstantFill, Transform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.filters import sides
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
