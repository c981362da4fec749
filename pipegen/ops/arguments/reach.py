"""Bounds how far geometric steps read from where they write, by what their arguments allow and whatever is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

Bounds: TypeAlias = "tuple[float, float]"


class Reach(NamedTuple):
    """Bounds the matrices of a step, from output to input positions.

    Attributes:
        scale: By how much, at most, they lengthen the distance from the centre of the canvas; at least 1, since a step may not act.
        shift: How far, at most, they move a position beside that, in sides of the canvas.
    """

    scale: float = 1.0
    shift: float = 0.0

    def then(self, other: Reach) -> Reach:
        """Bounds the product of both, in either order."""
        return Reach(self.scale * other.scale, self.shift * other.scale + other.shift * self.scale)

    @classmethod
    def of_move(cls, *fractions: Bounds) -> Reach:
        """Bounds what moves by fractions of the sides in these ranges."""
        return cls(1.0, math.hypot(*map(_most, fractions)))

    @classmethod
    def of_zoom(cls, *factors: Bounds) -> Reach:
        """Bounds what magnifies by factors in these ranges, one for each side or for both."""
        least = min(low for low, _ in factors)
        return cls(math.inf if least <= 0 else max(1.0, 1.0 / least))

    @classmethod
    def of_slant(cls, *degrees: Bounds) -> Reach:
        """Bounds what slants by angles in these ranges, along one axis after another."""
        return cls(math.prod(1.0 + math.tan(math.radians(_most(angle))) for angle in degrees))


def stays_within(reaches: Iterable[Reach | None], scale: float, sides: float) -> bool:
    """Returns whether no product of such matrices lengthens a distance `scale` times, or leads `sides` sides away from the canvas.

    Args:
        reaches: Of the steps; nothing is known of one that is None.
        scale: Must not be reached.
        sides: Must not be reached by any position of the output, in sides of the canvas.
    """
    whole = Reach()
    for reach in reaches:
        if reach is None:
            return False
        whole = whole.then(reach)
    # The output lies on the canvas, so that its corners are at most 1 / √2 sides from the centre, and that half a side from a corner.
    return whole.scale < scale and whole.scale + whole.shift + 1.0 < sides


def _most(bounds: Bounds) -> float:
    return max(map(abs, bounds))
