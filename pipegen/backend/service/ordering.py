"""Puts batches that arrive in any order into the order of their steps, and says which are to be made here. It needs no TensorFlow."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.physical.position import Position

    After = Callable[[Position], Position]
    """From a position to the one behind its batch."""


class Unusable(Enum):
    """Stands for a batch that came and cannot be used."""

    DAMAGED = "damaged"
    REFUSED = "refused"


@dataclass
class Fed:
    """Counts the batches of one split that workers and this process have made.

    Attributes:
        there: Batches of workers that were handed over.
        here: Batches that were made here, for whatever reason.
        late: Batches that came when they had been made here.
        damaged: Of those made here, batches with a record that the worker could not read or decode.
        refused: Of those made here, batches of workers of another version or processor.
        waited: Seconds that were spent waiting for workers.
    """

    there: int = 0
    here: int = 0
    late: int = 0
    damaged: int = 0
    refused: int = 0
    waited: float = 0.0


class Arrivals:
    """Holds the batches of one job that have come, each until its turn.

    A thread puts them in as they come, and waits while there are `2 * window`; another one takes them out in order.

    Args:
        first: The position that is taken first.
        begin: The position that comes first. Those before are to be made here, at once.
        after: Says what follows a position.
        patience: Seconds to wait for a batch.
        window: Later batches that end the wait.
        fed: Counts.
    """

    def __init__(self, first: Position, begin: Position, after: After, patience: float, window: int, fed: Fed) -> None:
        self._begin, self._after, self._patience, self._window, self._fed = begin, after, patience, window, fed
        self._turn = threading.Condition()
        self._held: dict[Position, Any] = {}
        self._ended = False
        self._came = 0
        self._quiet_since = -1
        self._behind_since: float | None = None
        self.alone = 0
        """Batches that were taken before any had come."""
        self.next = first
        """The position that is taken next."""

    def put(self, at: Position, batch: Any) -> bool:
        """Takes in a batch, or what stands for one that cannot be used; returns whether more are wanted."""
        with self._turn:
            self._came += 1
            self._turn.notify_all()
            while not self._ended and len(self._held) >= 2 * self._window and at > self.next:
                self._turn.wait()
            if self._ended:
                return False
            if at < self.next:
                self._fed.late += 1
                self._behind_since = self._behind_since or time.monotonic()
            else:
                self._held[at] = batch
                self._behind_since = None
            self._turn.notify_all()
            return True

    def take(self) -> Any:
        """Returns the batch whose turn it is; `None` where it is to be made here.

        That is when it has not come within the patience, when `window` later ones have come, and, until another one comes, when nothing
        at all has come for as long as the patience.
        """
        with self._turn:
            begun, came = time.monotonic(), self._came
            while self._awaits(self.next) and self._came != self._quiet_since:
                later = sum(at > self.next for at in self._held)
                left = begun + self._patience - time.monotonic()
                if left <= 0 and self._came == came:
                    self._quiet_since = came
                if later >= self._window or left <= 0:
                    break
                self._turn.wait(left)
            self.alone += not self._came
            batch = self._held.pop(self.next, None)
            self.next = self._after(self.next)
            self._turn.notify_all()
            self._fed.waited += time.monotonic() - begun
        if not isinstance(batch, Unusable):
            return batch
        self._fed.damaged += batch is Unusable.DAMAGED
        self._fed.refused += batch is Unusable.REFUSED
        return None

    def _awaits(self, at: Position) -> bool:
        return at not in self._held and not self._ended and at >= self._begin

    def behind(self, seconds: float = 0.0) -> bool:
        """Returns whether all that came lately was late, for so long."""
        since = self._behind_since
        return since is not None and time.monotonic() - since >= seconds

    def wait_for_first(self) -> bool:
        """Waits until anything has come, as long as the patience; returns whether it has."""
        end = time.monotonic() + self._patience
        with self._turn:
            while not self._came and not self._ended and (left := end - time.monotonic()) > 0:
                self._turn.wait(left)
            if not self._came:
                self._quiet_since = 0
            return bool(self._came)

    @property
    def ended(self) -> bool:
        """Returns whether nothing comes any more."""
        return self._ended

    def end(self) -> None:
        """Lets whoever waits go: nothing comes any more, or nothing is wanted."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()
