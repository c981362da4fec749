"""The record of a run of Keras' `fit`: which batch each count of the optimizer's iterations stands for.

The weights that a run is resumed with say how often the optimizer has run. Within a run that count and the pipeline's batches go up
together, so one pair of them finds the position of any weights of the run, whenever those were saved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pipegen.errors import StateError
from pipegen.physical.position import Position

KEY = "fit"
"""Where the record stands in a state file."""
UNCOUNTED = (
    "the optimizer of this model does not count the batches of `pipe.train` one by one (there are several optimizers, steps were skipped, "
    "`train_step` is the model's own, or `fit` has other data), so only the ends of epochs can be found again: save with "
    '`save_freq="epoch"`, and put `pipe.callback` behind the callback that saves; to begin a new run, remove the '
    "state file"
)


@dataclass(frozen=True)
class Place:
    """Says where `fit` goes on: its epoch, how many batches of that are done, how many of the pipeline, over all of its epochs, and the
    position of the pipeline, where that does not follow from their number."""

    epoch: int
    done: int
    batches: int
    at: Position | None = None


@dataclass(frozen=True)
class Record:
    """Holds what is known of a run.

    Attributes:
        epoch: An epoch of `fit`.
        batches: Batches of the pipeline that were done when it began, or was resumed.
        iterations: The optimizer's count then; -1 where the model has no optimizer that counts.
        steps: Batches in an epoch of the pipeline.
        per_epoch: Steps in an epoch of `fit`, as Keras has it.
        execution: Keras' `steps_per_execution`.
        counts: Whether the optimizer was seen to count batches one by one; `None` before the first batch.
        finished: Whether `fit` came to its end.
        epochs: `(epoch, iterations at its begin, length)` of an epoch of `fit`, and of those that follow at that length, up to the next
            entry; the length is `None` while it is not known. Keras makes epochs longer than it says where `steps_per_execution` does
            not divide them.
        since: An epoch of the pipeline, the origin and the shift that it has, since it was begun with batches of another size, and how many
            steps fewer than others it has for that. It is counted as if those had been done.
        has_inner_save: Whether Keras has saved behind the first batch of `epoch`, where the optimizer does not count: its own record takes
            such weights for those of the epoch's begin.
    """

    epoch: int
    batches: int
    iterations: int
    steps: int
    per_epoch: int
    execution: int = 1
    counts: bool | None = None
    finished: bool = False
    epochs: tuple[tuple[int, int, int | None], ...] = field(default=())
    since: tuple[int, int, int, int] = (0, 0, 0, 0)
    has_inner_save: bool = False

    @property
    def begin(self) -> int:
        """The count when the run began."""
        return self.epochs[0][1]

    def with_epoch(self, epoch: int, iterations: int) -> Record:
        """Returns the record with an epoch of `fit` that begins at a count."""
        known = tuple(entry for entry in self.epochs if entry[0] <= epoch and entry[1] <= iterations)
        if known:
            first, at, length = known[-1]
            if length is None and epoch == first + 1:
                return replace(self, epochs=(*known[:-1], (first, at, iterations - at)))
            if at + (epoch - first) * (length or 0) == iterations:
                return replace(self, epochs=known)
        return replace(self, epochs=(*known, (epoch, iterations, None)))

    def moved(self, epoch: int, batches: int, iterations: int) -> Record:
        """Returns the record of the same run where an epoch begins."""
        return replace(self, epoch=epoch, batches=batches, iterations=iterations, has_inner_save=False).with_epoch(epoch, iterations)

    def verified(self, ran: int, executions: int) -> Record:
        """Returns the record, which knows from now on whether the optimizer counts batches: its count has gone up by `ran`.

        Keras has run the model `executions` times, each for `execution` batches, or for fewer at the end of the data.
        """
        most = executions * self.execution
        return replace(self, counts=self.counts is not False and most - self.execution < ran <= most)

    def find(self, iterations: int) -> Place:
        """Returns the place of weights of this run, which came with this count.

        Raises:
            StateError: When they cannot be of this run, or their place cannot be known.
        """
        ran = iterations - self.iterations
        if self.counts is False:
            if ran:
                raise StateError(UNCOUNTED)
            return Place(self.epoch, 0, self.batches)
        if self.counts is None and ran not in (0, min(self.execution, self.per_epoch), self.execution):
            raise StateError(UNCOUNTED)
        known = [entry for entry in self.epochs if entry[1] <= iterations]
        if not known:
            raise StateError(f"the weights are older ({iterations} optimizer steps) than the run ({self.begin} at its begin)")
        epoch, at, length = known[-1]
        done = iterations - at
        if length:
            epoch, done = epoch + done // length, done % length
        elif done >= self.per_epoch:
            if done > -(-self.per_epoch // self.execution) * self.execution:
                raise StateError(
                    f"the weights have seen {done} batches since epoch {epoch} of the saved run began, which has {self.per_epoch}: they "
                    "are of another run"
                )
            epoch, done = epoch + 1, 0
        return Place(epoch, done, self.batches + ran)

    def located(self, epoch: int, step: int) -> Position:
        """Returns the position of a step of the pipeline, as epochs that all have their steps would count it."""
        begun, origin, shift, missing = self.since
        return Position(epoch, step - missing, origin, shift) if epoch == begun else Position(epoch, step, 0, shift)

    def to_json(self) -> dict[str, Any]:
        """Returns what a state file holds."""
        return {**self.__dict__, "epochs": [list(entry) for entry in self.epochs], "since": list(self.since)}

    @classmethod
    def from_json(cls, found: Any) -> Record:
        """Reads what `to_json` gave.

        Raises:
            StateError: For anything else.
        """
        try:
            epochs = tuple((int(e), int(i), None if n is None else int(n)) for e, i, n in found["epochs"])
            numbers = {name: int(found[name]) for name in ("epoch", "batches", "iterations", "steps", "per_epoch", "execution")}
            begun, origin, shift, missing = (int(n) for n in found.get("since", (0, 0, 0, 0)))
            if not epochs or min(numbers["steps"], numbers["per_epoch"], numbers["execution"]) < 1:
                raise ValueError("it has no epochs")
            since = begun, origin, shift, missing
            finished, inner = bool(found["finished"]), bool(found.get("has_inner_save"))
            return cls(**numbers, counts=found["counts"], finished=finished, epochs=epochs, since=since, has_inner_save=inner)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the record of `fit` in the state is damaged ({error}); remove the file to start anew") from None
