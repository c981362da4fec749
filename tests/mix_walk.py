"""The order of a mix in plain Python, from the words of its definition: what the tables and the graph are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction


def interleave(position: int, counts: Sequence[int]) -> tuple[int, int]:
    """Finds the part at a position of an epoch, and the number of its examples before that.

    Args:
        position: From 0 up to the sum of the counts.
        counts: Examples of each part in the epoch.

    Returns:
        The number of the part, and its examples before the position.
    """
    left = sum(counts)
    for part, count in enumerate(counts):
        low, high = position * count // left if left else 0, (position + 1) * count // left if left else 0
        if high > low:
            return part, low
        position, left = position - low, left - count
    raise ValueError(f"position {position} is out of range for an epoch of {sum(counts)} examples")


class Walk:
    """Counts the examples of each part by largest remainder, and walks the parts.

    Args:
        examples: N, the examples of an epoch.
        weights: The weights of each part in each epoch; the last one stays.
    """

    def __init__(self, examples: int, weights: list[list[float]]) -> None:
        self.examples, self.weights = examples, [[Fraction(repr(w)) for w in own] for own in weights]

    def owed(self, epoch: int) -> list[Fraction]:
        """What each part is owed up to the end of an epoch, weights normalised in each."""
        total = [Fraction(0)] * len(self.weights)
        for e in range(epoch + 1):
            now = [own[min(e, len(own) - 1)] for own in self.weights]
            total = [t + self.examples * w / sum(now) for t, w in zip(total, now, strict=True)]
        return total

    def before(self, epoch: int) -> list[int]:
        """What each part has had before an epoch: what it is owed, rounded by largest remainder; the first part on a tie."""
        if epoch == 0:
            return [0] * len(self.weights)
        owed = self.owed(epoch - 1)
        found = [int(o) for o in owed]
        by_rest = sorted(range(len(owed)), key=lambda i: (found[i] - owed[i], i))
        for i in by_rest[: epoch * self.examples - sum(found)]:
            found[i] += 1
        return found

    def counts(self, epoch: int) -> list[int]:
        return [b - a for a, b in zip(self.before(epoch), self.before(epoch + 1), strict=True)]

    def parts(self, epoch: int) -> list[int]:
        """The part at each position of an epoch, before positions are permuted."""
        counts = self.counts(epoch)
        return [interleave(position, counts)[0] for position in range(self.examples)]

    def windows(self, epoch: int) -> list[Counter[int]]:
        """How many examples of each part the windows of 64 positions have, within which positions are permuted."""
        walked = self.parts(epoch)
        return [Counter(walked[at : at + 64]) for at in range(0, self.examples, 64)]
