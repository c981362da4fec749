"""Says where in the epochs of a split something stands, and what that becomes where batches change their size."""

from __future__ import annotations

from typing import NamedTuple


class Position(NamedTuple):
    """A place between two batches.

    A slot of an epoch is a place in its order. Where all batches have been of one size, step `k` begins at slot `k` times that; where the
    epoch was begun with others, at `origin` more. The next epoch begins at slot 0 again.

    Attributes:
        epoch: The epoch.
        step: Its step.
        origin: The slot of the epoch that its step 0 begins at, or would: less than a batch. With `epoch: {steps: N}`, whose epochs are N
            steps whatever their size, it may be any number.
        shift: With `epoch: {steps: N}`, which goes on through the order: how many places later a batch stands there than if all before
            it had been of this size. It stays.
    """

    epoch: int
    step: int = 0
    origin: int = 0
    shift: int = 0

    def begin(self, epoch: int) -> Position:
        """Returns the begin of another epoch."""
        return Position(epoch, 0, 0, self.shift)


FIRST = Position(0)
"""The begin of a training."""
