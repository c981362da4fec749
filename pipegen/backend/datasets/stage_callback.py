"""Ties the epochs of a training in stages to those of Keras' `fit`, which is called once for each stage."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.backend.datasets.callback import ResumeCallback
from pipegen.errors import StateError
from pipegen.phases.checkpoints import KERAS_FILE, KERAS_WEIGHTS, Checkpoints
from pipegen.phases.run_record import Place
from pipegen.phases.state import saved_sizes
from pipegen.physical.position import Position
from pipegen.whole_files import remove_parts, whole_place

if TYPE_CHECKING:
    import os

    from pipegen.api.stages import Stage, StagedPipeline

_ASIDE = ".between-stages"
"""What the name of the folder ends in that holds the checkpoint while Keras removes its own."""


class StageCallback(ResumeCallback):
    """Does what `ResumeCallback` does in each stage, and carries the checkpoint over from one to the next.

    `BackupAndRestore` removes its folder when `fit` ends, and restores whatever is there when the next one begins. So the checkpoint is put
    aside before the end of a `fit` with stages to follow, with the weights as they are and the epoch that the next stage begins with, and
    comes back behind it. Where a process is killed in between, the next one finds it aside.

    Args:
        whole: The pipeline.
        stage: The stage that `fit` is called for; by default the one that has the last of its epochs.
        directory: As for `ResumeCallback`.
        save_freq: Without effect.
    """

    _pipe: Stage

    def __init__(
        self, whole: StagedPipeline, stage: Stage | None, directory: str | os.PathLike[str] | None = None, save_freq: str | int = "epoch"
    ) -> None:
        super().__init__(stage if stage is not None else whole.current, directory, save_freq)
        self._whole, self._stage = whole, stage
        self._folder = Path(directory) if directory is not None else None
        self._aside = None if self._folder is None else self._folder.with_name(self._folder.name + _ASIDE)
        self._older = None if self._aside is None else self._aside.with_name(self._aside.name + ".older")
        self._come_back()

    # What Keras calls

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Finds out which stage this is, and leaves `fit` nothing to do where the restored weights are past it."""
        self._pipe = self._stage if self._stage is not None else self._whole.stages[self._whole.timeline.stage(self._last() - 1)]
        super().on_train_begin(logs)
        with suppress(StateError):  # as above: said when an epoch begins
            place, certain = self._find()
            if place is not None and certain and place.epoch >= self._last():
                self._whole._seek(place.at or Position(*self._whole.timeline.at(place.batches)))
                self._put_aside(None)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Checks that `fit` is over whole epochs of this stage.

        Raises:
            StateError: Where it is not.
        """
        stage = self._pipe
        first = self._whole.timeline.firsts[stage.index]
        if not first <= epoch < stage.epochs:
            raise StateError(
                f"epoch {epoch} is not in stage {stage.index}, which has epochs {first} to {stage.epochs - 1}: "
                "`fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs)`"
            )
        if self._per_epoch() != self._steps():
            raise StateError(
                f"an epoch of `fit` has {self._per_epoch()} steps, and one of stage {stage.index} has {self._steps()}: "
                "leave out `steps_per_epoch`"
            )
        super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Puts the checkpoint aside where `fit` is about to end, and stages follow."""
        super().on_epoch_end(epoch, logs)
        if epoch + 1 >= self._last() or self.model.stop_training:
            self._put_aside(self._ended(epoch + 1))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Ends the stage, whether all its epochs were needed or not, and puts the checkpoint back."""
        self.model._initial_epoch = None
        record = self._record
        if record is None:  # there was nothing to do
            self._come_back()
            return
        ended = self._ended(record.epoch)
        if ended >= self._whole.timeline.end:
            super().on_train_end(logs)
            return
        if ended != record.epoch:
            self._whole.seek(ended)
            self._record = record.moved(ended, self._batches(Position(ended)), self._iterations())
        self._put_aside(ended)
        self._come_back()
        if self._kept.exist:  # without a checkpoint of Keras it has stayed where it is
            self._save()

    # What is kept between two stages

    def _put_aside(self, epoch: int | None) -> None:
        """Copies the checkpoint, with the weights as they are now and the epoch to go on with, or for `None` as it is."""
        if self._folder is None or self._aside is None or (epoch is not None and epoch >= self._whole.timeline.end):
            return
        here = self._folder if (self._folder / KERAS_FILE).exists() else self._aside
        if not (here / KERAS_FILE).exists():
            return  # Keras keeps no checkpoint here
        remove_parts(self._aside.parent)
        with whole_place(self._aside, older=self._older) as made:
            shutil.copytree(here, made)
            if epoch is not None:
                self.model.save_weights(made / KERAS_WEIGHTS, overwrite=True)
                (made / KERAS_FILE).write_text(json.dumps({"epoch": epoch, "batch": 0}))
                if self._record is not None:
                    record = self._record.moved(epoch, self._batches(Position(epoch)), self._iterations())
                    Checkpoints(made).save(self._state_of(record))

    def _come_back(self) -> None:
        """Puts the checkpoint back in its place."""
        if self._aside is None or self._older is None or self._folder is None:
            return
        aside = self._aside if self._aside.exists() else self._older
        if aside.exists():
            if aside is self._aside:
                shutil.rmtree(self._older, ignore_errors=True)
            shutil.rmtree(self._folder, ignore_errors=True)
            aside.replace(self._folder)

    # Epochs of `fit` are those of the pipeline, and have as many batches as their stage says.

    def _last(self) -> int:
        """The epoch that `fit` ends before."""
        return int((self.params or {}).get("epochs") or self._pipe.epochs)

    def _ended(self, epoch: int) -> int:
        """The epoch to go on with once `fit` has ended before `epoch`: that of the next stage, if it was to end this one."""
        return self._pipe.epochs if self._last() >= self._pipe.epochs else epoch

    def _batches(self, at: Position) -> int:
        return self._whole.timeline.batches(at.epoch, at.step) + self._whole._extent_at(at.epoch).missing(at)

    def _divided(self, batches: int, steps: int, state: dict[str, Any] | None = None) -> tuple[int, int]:
        timeline = self._whole.timeline
        return timeline.at(batches) if state is None else timeline.of_sizes(self._whole.extents, self._sizes(state)).at(batches)

    def _sizes(self, state: dict[str, Any] | None = None) -> tuple[int, ...]:
        model = self._whole.spec.model
        return tuple(stage.resolved.batch.size for stage in model.stages) if state is None else saved_sizes(state, model)

    def _stage_of(self, epoch: int) -> int:
        return self._whole.timeline.stage(epoch)

    def _has_whole_epochs(self) -> bool:
        return True

    def _counted_as_saved(self, state: dict[str, Any]) -> int:
        return self._whole.timeline.of_sizes(self._whole.extents, self._sizes(state)).batches(state["epoch"], state["step"])

    def _counted(self, batches: int) -> Place:
        return Place(*self._whole.timeline.at(batches), batches)

    def _begin_of(self, epoch: int) -> Place:
        return Place(epoch, 0, self._batches(Position(epoch)))
