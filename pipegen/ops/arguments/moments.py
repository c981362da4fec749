"""Mean and spread of many values, gathered in one pass and put together in any order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Moments:
    """What is known of the values of each channel.

    Attributes:
        count: How many values each channel has.
        mean: Their mean, for each channel.
        squares: The sum of the squares of their distances from it.
    """

    count: int
    mean: tuple[float, ...]
    squares: tuple[float, ...]

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel: the root of the mean square."""
        return tuple(math.sqrt(s / self.count) for s in self.squares)

    @classmethod
    def of(cls, parts: Iterable[Moments]) -> Moments:
        """The moments of the values of all parts, which have the same channels.

        With the mean m of all, each part adds its own squares and count · (its mean - m)² (Chan, Golub and LeVeque 1983).
        No square of a large value is ever subtracted from another, and each sum is rounded once, so that it matters
        neither how the values were parted nor how many there are.

        Raises:
            ValueError: When there is no part.
        """
        parts = tuple(parts)
        if not parts:
            raise ValueError("there are no values to take the mean of")
        count = sum(p.count for p in parts)
        mean, squares = [], []
        for c in range(len(parts[0].mean)):
            first = parts[0].mean[c]  # distances from it are exact where the parts are alike
            middle = first + math.fsum(p.count * (p.mean[c] - first) for p in parts) / count
            mean.append(middle)
            squares.append(math.fsum([p.squares[c] for p in parts] + [p.count * (p.mean[c] - middle) ** 2 for p in parts]))
        return cls(count, tuple(mean), tuple(squares))


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a step has learned from the training split.

    Attributes:
        moments: Of each feature that it acts on.
        examples: How many examples they come from.
        origin: Where the numbers were taken from, in words.
    """

    moments: Mapping[str, Moments]
    examples: int
    origin: str = field(default="", compare=False)
