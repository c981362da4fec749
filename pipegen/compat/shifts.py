"""Shifts in the words of the spec language: a range to draw from, or single distances to choose among."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pipegen.compat.draws import is_choice
from pipegen.compat.refusals import UnsupportedArgument

if TYPE_CHECKING:
    from pipegen.compat.arguments import Arguments

_MOST = 64
"""Distances up to which each is a step of its own: they are all compiled."""


def shift_steps(generator: Arguments, size: tuple[int, int] | None, reading: dict[str, Any]) -> list[Any]:
    """The steps of `width_shift_range` and `height_shift_range`.

    Args:
        generator: The generator.
        size: (height, width) of the images, where it is known.
        reading: `fill` and `interpolation`.

    Raises:
        UnsupportedArgument: For a shift that no spec expresses.
    """
    height, width = size if size is not None else (None, None)
    shifts = {
        "y": ("height_shift_range", generator.height_shift_range, height),
        "x": ("width_shift_range", generator.width_shift_range, width),
    }
    if generator.geometry == "keras3":
        shifts = {"x": shifts["y"], "y": shifts["x"]}
    steps: list[Any] = []
    ranges = {}
    for axis in ("x", "y"):
        argument, given, side = shifts[axis]
        if not is_given(given):
            continue
        if is_choice(given):
            steps += _choice(argument, axis, given, side, reading)
        else:
            ranges[axis] = _fraction(argument, float(given), side)
    return [{"random_translation": {**ranges, **reading}}, *steps] if ranges else steps


def is_given(given: Any) -> bool:
    """Returns whether a number is not 0, or one of a list is not."""
    import numpy as np

    return bool(np.any(given))


def _fraction(argument: str, distance: float, side: int | None) -> float:
    """The most of a range, as a fraction of the side."""
    if distance < 1:
        return abs(distance)
    return distance / _side(argument, f"{distance:g} pixels are", side)


def _side(argument: str, what: str, side: int | None) -> int:
    if side is None:
        raise UnsupportedArgument(argument, f"{what} a fraction that depends on the size", "give `target_size`")
    return side


def _choice(argument: str, axis: str, given: Any, side: int | None, reading: dict[str, Any]) -> list[Any]:
    """One of single distances, either way: whole numbers below one, or the items of a list."""
    import numpy as np

    values = range(int(given)) if isinstance(given, (int, np.integer)) else [float(v) for v in given]
    chances = Counter(sign * value for value in values for sign in (1, -1))
    if set(chances) == {0}:
        return []  # such as below 1
    if len(chances) > 2 * _MOST:
        help_ = f"write the range as a float: {float(max(values)):g}"
        raise UnsupportedArgument(argument, f"a spec would have a step for each of its {len(chances)} distances", help_)
    unit = 1 if max(values) < 1 else _side(argument, "pixels are", side)
    distances = sorted(chances)
    steps = [{"translation": {axis: distance / unit, **reading}} for distance in distances]
    return [{"one_of": {"steps": steps, "weights": [chances[distance] for distance in distances]}}]
