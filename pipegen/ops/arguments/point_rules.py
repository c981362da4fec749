"""Says what keypoints are called, which of them a mirror swaps, and what becomes of those that leave their image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
