"""Goes through a split in loops that are not TensorFlow's, and notes in Python where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.backend.process.once import InTurn
from pipegen.errors import StateError
from pipegen.physical.position import Position
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline

    Handed = tuple[Any, Callable[[], None]]


@untraced
class OwnLoop:
    """One split, epoch by epoch. Of the training split the pipeline knows where it stands; of another one this object.

    Args:
        pipe: The pipeline.
        split: The split.
        share: Which share of each batch, in place of the spec's.
        sends: Whether the last kernels are left to a device.
    """

    def __init__(self, pipe: Pipeline, split: str, share: tuple[int, int] | None = None, *, sends: bool = False) -> None:
        pipe._require(split)
        self.pipe, self.split, self.share, self._sends = pipe, split, share, sends
        self._begin = self._step = 0

    def __len__(self) -> int:
        return self.pipe.steps(self.split)

    def batches(self) -> Iterator[Handed]:
        """Yields the batches of the epoch that comes next, or of what is left of it, and with each what notes that it is handed over."""
        pipe = self.pipe._at(self.split)
        if self.split == "train":
            progress = pipe._engine.train_progress()
            progress.check()
            at, note = progress.next_start(), progress.note
        else:
            at, note = Position(0, self._begin), self._note
            self._begin = 0  # an epoch that is left is begun anew
        for step, batch in enumerate(pipe._from(self.split, at, self.share, sends=self._sends), at.step):
            yield batch, partial(note, at._replace(step=step))

    def _note(self, at: Position) -> None:
        self._step = at.step + 1 if at.step + 1 < len(self) else 0

    def state(self) -> dict[str, Any]:
        """Returns where the split stands: of the training split what `pipe.state()` gives."""
        return self.pipe.state() if self.split == "train" else {"split": self.split, "step": self._step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Lets the next epoch begin where a state was taken.

        Raises:
            StateError: When the state is of another spec, other data or another split.
        """
        if self.split == "train":
            self.pipe.restore(state)
            return
        step = state.get("step")
        if state.get("split") != self.split or not isinstance(step, int) or not 0 <= step < max(len(self), 1):
            raise StateError(f"this is no state of split `{self.split}`, which has {len(self)} batches: {dict(state)}")
        self._begin = self._step = step


def ahead(batches: Iterator[Handed], send: Callable[[Any], Any]) -> Iterator[Handed]:
    """Yields batches that were sent to devices, each when the next one is on its way, too."""
    sent = None
    for batch, note in batches:
        following = send(batch), note
        if sent is not None:
            yield sent
        sent = following
    if sent is not None:
        yield sent


class HandedOver(InTurn):
    """Hands over batches one at a time, whichever threads ask, and notes each.

    Args:
        batches: The batches, with what notes each.
    """

    def __init__(self, batches: Iterator[Handed]) -> None:
        super().__init__()
        self._batches = batches

    def _take(self) -> Any:
        batch, note = next(self._batches)
        note()
        return batch
