"""Describes the sizes of which a batch has one: each image goes to the bucket whose proportions are nearest to its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, field_validator

from pipegen.ops.arguments.geometry import BUCKET, Side, Size
from pipegen.ops.arguments.magnitudes import has_type
from pipegen.ops.model import Model
from pipegen.ops.transform import Transform

M = TypeVar("M", bound=Model)
FeatureName = Annotated[str, Field(min_length=1)]


class Columns(Model):
    """Takes the size of each image from features of its record."""

    columns: tuple[FeatureName, FeatureName]
    """The features that hold the height and the width in pixels, in this order: each one number, of `kind: tensor`."""


class Buckets(Model):
    """Lets each batch have one of a few sizes, so that images are hardly cropped and a model is compiled a few times.

    A step whose `size` is `bucket` brings each image to the size of its bucket.
    """

    sizes: Annotated[tuple[tuple[Side, Side], ...], Field(min_length=2, max_length=64)]
    """The sizes, `[height, width]` each. An image goes to the one whose proportions are nearest to its own; of several with the same
    proportions, to the largest that is no larger than the image, or to the smallest."""
    image: FeatureName | None = None
    """The image whose size decides; by default the only one, or the first."""
    measured: Literal["auto", "headers"] | Columns = "auto"
    """Where the sizes of images come from, before any is decoded: `headers` reads the first bytes of every file, and keeps what it finds;
    `{columns: [HEIGHT, WIDTH]}` are features of a table. `auto` asks the annotations, and headers for what they do not say."""

    @field_validator("sizes")
    @classmethod
    def _distinct(cls, sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        twice = next((size for i, size in enumerate(sizes) if size in sizes[:i]), None)
        if twice is not None:
            raise ValueError(f"[{twice[0]}, {twice[1]}] stands there twice, and a bucket is a size")
        return sizes


def says_bucket(steps: Iterable[Transform]) -> bool:
    """Returns whether a step has the size of a bucket."""
    return any(sized(step, (1, 1)) is not step for step in steps)


def sized(step: M, size: tuple[int, int]) -> M:
    """Returns a step with the size of one bucket in place of the word; the same object where it has no such size."""
    changes: dict[str, Any] = {}
    for name, field in type(step).model_fields.items():
        value = getattr(step, name)
        new = size if isinstance(value, str) and value == BUCKET and has_type(field, Size) else _inside(value, size)
        if new is not value:
            changes[name] = new
    return step.model_copy(update=changes) if changes else step


def _inside(value: Any, size: tuple[int, int]) -> Any:
    """An argument, with the steps in it sized."""
    if isinstance(value, Model):
        return sized(value, size)
    if isinstance(value, (tuple, list)):
        new = [_inside(one, size) for one in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else type(value)(new)
    return value


def nearest(sizes: tuple[tuple[int, int], ...], sides: Any) -> Any:
    """Returns the bucket of each image: int32 `(n,)`, from heights and widths in pixels, float64 `(n, 2)`.

    Proportions are compared as logarithms, so that 2:1 is as far from a square as 1:2.
    """
    import numpy as np

    wanted = np.array([math.log(height / width) for height, width in sizes])
    areas = np.array([height * width for height, width in sizes], np.float64)
    own = np.log(sides[:, 0] / sides[:, 1])
    apart = np.round(np.abs(own[:, None] - wanted), 9)  # sizes of the same proportions tie
    near = apart == apart.min(1, keepdims=True)
    fits = near & (areas <= (sides[:, 0] * sides[:, 1])[:, None])
    largest = np.where(fits, areas, -1.0).argmax(1)
    smallest = np.where(near, areas, np.inf).argmin(1)
    return np.where(fits.any(1), largest, smallest).astype(np.int32)
