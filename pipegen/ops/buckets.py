"""Buckets: a batch has one of a few sizes; each image goes to the bucket whose aspect ratio is nearest to its own."""

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
    """Image sizes from features of the record."""

    columns: tuple[FeatureName, FeatureName]
    """The features with the height and the width in pixels, in this order: each a number of `kind: tensor`."""


class Buckets(Model):
    """Batches of a few sizes, so that images are cropped little and a model is compiled only a few times.

    A step whose `size` is `bucket` resizes or crops each image to the size of its bucket.
    """

    sizes: Annotated[tuple[tuple[Side, Side], ...], Field(min_length=2, max_length=64)]
    """The sizes, `[height, width]` each. An image goes to the one whose aspect ratio is nearest to its own; of several with the same
    aspect ratio, to the largest that is not larger than the image, or else to the smallest."""
    image: FeatureName | None = None
    """The image whose size decides; by default the only one, or the first."""
    measured: Literal["auto", "headers"] | Columns = "auto"
    """The source of image sizes, before any is decoded: `headers` reads the first bytes of every file, and stores the result;
    `{columns: [HEIGHT, WIDTH]}` are features of a table. `auto` uses the annotations, and headers for missing sizes."""

    @field_validator("sizes")
    @classmethod
    def _distinct(cls, sizes: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        twice = next((size for i, size in enumerate(sizes) if size in sizes[:i]), None)
        if twice is not None:
            raise ValueError(f"duplicate bucket size [{twice[0]}, {twice[1]}]")
        return sizes


def says_bucket(steps: Iterable[Transform]) -> bool:
    """Checks for a step with `size: bucket`."""
    return any(sized(step, (1, 1)) is not step for step in steps)


def sized(step: M, size: tuple[int, int]) -> M:
    """Replaces `size: bucket` in a step by the size of a bucket; returns the same object if there is none."""
    changes: dict[str, Any] = {}
    for name, field in type(step).model_fields.items():
        value = getattr(step, name)
        new = size if isinstance(value, str) and value == BUCKET and has_type(field, Size) else _inside(value, size)
        if new is not value:
            changes[name] = new
    return step.model_copy(update=changes) if changes else step


def _inside(value: Any, size: tuple[int, int]) -> Any:
    """Replaces `size: bucket` in the steps within an argument."""
    if isinstance(value, Model):
        return sized(value, size)
    if isinstance(value, (tuple, list)):
        new = [_inside(one, size) for one in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else type(value)(new)
    return value


def nearest(sizes: tuple[tuple[int, int], ...], sides: Any) -> Any:
    """Finds the bucket of each image: int32 `(n,)`, from heights and widths in pixels, float64 `(n, 2)`.

    Aspect ratios are compared as logarithms, so that 2:1 is as far from a square as 1:2.
    """
    import numpy as np

    wanted = np.array([math.log(height / width) for height, width in sizes])
    areas = np.array([height * width for height, width in sizes], np.float64)
    own = np.log(sides[:, 0] / sides[:, 1])
    apart = np.round(np.abs(own[:, None] - wanted), 9)  # sizes of the same aspect ratio tie
    near = apart == apart.min(1, keepdims=True)
    fits = near & (areas <= (sides[:, 0] * sides[:, 1])[:, None])
    largest = np.where(fits, areas, -1.0).argmax(1)
    smallest = np.where(near, areas, np.inf).argmin(1)
    return np.where(fits.any(1), largest, smallest).astype(np.int32)
