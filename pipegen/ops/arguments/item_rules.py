"""The formats of boxes, the names of keypoints, and which of them are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BoxFormat = Literal["xyxy", "yxyx", "xywh", "center_xywh", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]
"""`xyxy` is left, top, right, bottom; `yxyx` top, left, bottom, right; `xywh` left, top, width, height; `center_xywh` the centre, width and
height. In pixels, and with `rel_` in parts of the width and the height of the image."""


@dataclass(frozen=True, slots=True)
class BoxRules:
    """Says how boxes are stored, and which are kept when their image is moved.

    Attributes:
        format: The format of those stored; steps work on `xyxy`. `None` for those that are so already, and are on their image.
        most: The most boxes that leave the pipeline for one image; the largest stay. `None` for all.
        min_area: The least area of what is left of a box on the image, in square pixels.
        min_visibility: The least share of its area that is left on the image.
        min_size: The least width and height of what is left, in pixels.
        empty: Whether a stored image may have no box.
    """

    format: BoxFormat | None = "xyxy"
    most: int | None = None
    min_area: float = 0.0
    min_visibility: float = 0.0
    min_size: float = 0.0
    empty: Literal["allow", "refuse"] = "allow"


Outside = Literal["remove", "keep"]


@dataclass(frozen=True, slots=True)
class PointRules:
    """Holds what the kind knows of keypoints.

    Attributes:
        names: What they are called, in their order; none for any number of points.
        swaps: The place of each in its mirror image.
        outside: What becomes of those that are no longer on the image.
        each: Whether there is a set of them for each item of another feature.
    """

    names: tuple[str, ...] = ()
    swaps: tuple[int, ...] = ()
    outside: Outside = "remove"
    each: bool = False


def swapped_places(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    """Returns the place of each name in a mirror image."""
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return tuple(names.index(other.get(name, name)) for name in names)
