"""Mean and spread of many values, gathered in one pass and put together in any order."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Moments:
    """Holds what is known of the values of each channel.

    Attributes:
        count: How many values each channel has.
        mean: Their mean, for each channel.
        squares: The sum of the squares of their distances from it.
    """

    suffix: ClassVar[str] = "json"

    count: int
    mean: tuple[float, ...]
    squares: tuple[float, ...]

    @property
    def std(self) -> tuple[float, ...]:
        """The standard deviation of each channel: the root of the mean square."""
        return tuple(math.sqrt(s / self.count) for s in self.squares)

    @classmethod
    def of(cls, parts: Iterable[Moments]) -> Moments:
        """The moments of the values of all parts, which have the same channels; `ValueError` where there is no part.

        With the mean m of all, each part adds its own squares and count · (its mean - m)² (Chan, Golub and LeVeque 1983).
        No square of a large value is ever subtracted from another, and each sum is rounded once, so that it matters
        neither how the values were parted nor how many there are.
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

    def figures(self) -> dict[str, str]:
        """The mean and the standard deviation."""
        return {name: f"[{', '.join(f'{v:.6g}' for v in values)}]" for name, values in (("mean", self.mean), ("std", self.std))}

    def as_json(self) -> dict[str, Any]:
        """Returns the count of the values, their mean and their standard deviation."""
        return {"values": self.count, "mean": list(self.mean), "std": list(self.std)}

    def doubts(self, op: str, feature: str) -> tuple[str, ...]:
        """Channels of one value."""
        flat = (c for c, squares in enumerate(self.squares) if squares == 0)
        return tuple(
            f"channel {c} of `{feature}` has the one value {self.mean[c]:g} all over split train, so `{op}` divides it by nothing"
            for c in flat
        )

    def to_bytes(self, about: Mapping[str, Any]) -> bytes:
        """JSON."""
        return json.dumps({**about, "count": self.count, "mean": self.mean, "squares": self.squares}, indent=2).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple[dict[str, Any], Moments]:
        """See `Statistics`."""
        values: dict[str, Any] = json.loads(content)
        moments = cls(int(values.pop("count")), tuple(map(float, values.pop("mean"))), tuple(map(float, values.pop("squares"))))
        whole = moments.count > 0 and len(moments.mean) == len(moments.squares) > 0
        sound = all(map(math.isfinite, moments.mean)) and all(math.isfinite(s) and s >= 0 for s in moments.squares)
        if not whole or not sound:
            raise ValueError("these are no moments")
        return values, moments
