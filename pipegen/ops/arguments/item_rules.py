"""The formats of boxes, the names of keypoints, and the rules for keeping them."""

from __future__ import annotations

import re
from typing import Literal

from pipegen.frozen import dataclass

BoxFormat = Literal["xyxy", "yxyx", "xywh", "center_xywh", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh"]
"""`xyxy` is left, top, right, bottom; `yxyx` top, left, bottom, right; `xywh` left, top, width, height; `center_xywh` the centre, width and
height. In pixels, or with `rel_` in fractions of the width and the height of the image."""


@dataclass(frozen=True, slots=True)
class BoxRules:
    """The stored format of boxes, and the rules for keeping them when their image moves."""

    format: BoxFormat | None = "xyxy"
    """The stored format; steps work on `xyxy`. `None` for boxes that are `xyxy` already and lie on their image."""
    most: int | None = None  # the most boxes of one image that leave the pipeline; the largest stay. `None` for all.
    min_area: float = 0.0  # the least visible area of a box, in square pixels
    min_visibility: float = 0.0  # the least visible share of its area
    min_size: float = 0.0  # the least visible width and height, in pixels
    empty: Literal["allow", "refuse"] = "allow"  # whether a stored image may have no box


Outside = Literal["remove", "keep"]


@dataclass(frozen=True, slots=True)
class PointRules:
    """The names of keypoints, in order (none for any number of points), the place of each in its mirror image (`swaps`), the treatment of
    points that move off the image, whether each item of another feature has a set of them, and whether stored places are fractions of the
    image, from 0 at its left and upper edge to 1."""

    names: tuple[str, ...] = ()
    swaps: tuple[int, ...] = ()
    outside: Outside = "remove"
    each: bool = False
    relative: bool = False


def swapped_places(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    """The place of each name in a mirror image."""
    other = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    return tuple(names.index(other.get(name, name)) for name in names)


_SIDES = {"left": "right", "Left": "Right", "LEFT": "RIGHT", "l": "r", "L": "R"}
_SIDE = re.compile(r"left|Left|LEFT|(?<![A-Za-z])[lL](?![A-Za-z])")


def pairs_by_name(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The pairs of names that differ by left and right, such as `left_eye` and `right_eye`, or `L-eye` and `R-eye`."""
    found = ((name, _SIDE.sub(lambda side: _SIDES[side[0]], name)) for name in names)
    return tuple((name, other) for name, other in found if other != name and other in names)
