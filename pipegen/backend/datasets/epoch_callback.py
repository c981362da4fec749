"""Keras callbacks that align a pipeline's epochs with those of `fit` and find the position of restored weights."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras

from pipegen.backend.datasets.owner import Owner, OwnerInStage, OwnerOfStages
from pipegen.errors import StateError
from pipegen.files import remove_parts, whole_place
from pipegen.phases.state import KERAS_FILE, KERAS_WEIGHTS, KEY, UNCOUNTED, Checkpoints, Place, Record, Timeline, batch_sizes
from pipegen.physical.extent import Position
from pipegen.private.keras import initial_epoch, optimizer_runs, set_initial_epoch
from pipegen.waiting import EpochRate, Waiting

_ENDS_EPOCH = object()  # a true value of `stop_training` that is not the one another callback sets


class ResumeCallback(keras.callbacks.Callback):
    """A callback that starts the pipeline where `fit` or the restored weights are, and reports how long `fit` waits for data.

    After each epoch, Keras' logs have `wait_share`, the share of the training steps' time spent waiting for batches, and
    `examples_per_second`. A distribution strategy fetches batches itself, so both are left out.

    Args:
        pipe: The pipeline.
        directory: Folder of the model's checkpoints, such as `BackupAndRestore`'s, for the record of the run. Without it nothing is
            stored, and the epoch is `fit`'s.
    """

    _pipegen_counts_epochs = True  # marks a callback that tells the datasets of `fit` the epoch

    def __init__(self, pipe: Owner, directory: Path | None = None) -> None:
        super().__init__()
        self._pipe, self._spec = pipe, pipe.spec.model
        self._kept = Checkpoints(directory)
        self._saved: dict[str, Any] | None = None
        self._record: Record | None = None
        self._rate = EpochRate(Waiting())
        self._offset = 0  # batches of this epoch that were done before the run was resumed
        self._was_short = False  # whether the previous epoch was resumed in its middle
        self._executions = 0
        """Runs of the model in this epoch. Keras' versions number batches differently with several steps per execution."""

    # What Keras calls

    def set_model(self, model: Any) -> None:
        """Checks that the weights in the folder can be read: Keras calls this before any callback restores them. Raises `StateError` if the
        folder holds weights, none of which can be read."""
        super().set_model(model)
        self._saved = self._kept.state()
        earlier = self._earlier()
        self._kept.mend(dated=earlier is not None and not earlier[1].has_inner_save)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts `fit` at the epoch of the restored weights: Keras' callback knows only the epoch it saved in, which may be over."""
        self._record, self._offset, self._was_short = None, 0, False
        self._rate = EpochRate(self._pipe._engine.executor("train").waiting)
        self._saved = self._kept.state()
        with suppress(StateError):  # a callback behind this one may still restore the weights
            place, certain = self._find()
            if place is not None and certain:
                set_initial_epoch(self.model, place.epoch)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Moves the pipeline to the first batch that `fit` takes."""
        self._executions = 0
        if self._record is None:
            self._begin(epoch)
        else:
            self._offset = 0
        self._rate.start()

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Checks that data is left for the epoch after a resumed one."""
        if batch == 0:
            self._check_iterator()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Ends a resumed epoch with its data."""
        self._rate.step()
        self._executions += 1
        record = self._begun()
        if self._executions == 1:  # finds out if the optimizer counts, and if the batch is the pipeline's
            seen = record.verified(self._iterations() - record.iterations, 1) if record.counts is None else record
            seen = self._unless_behind(seen, record.batches + 1)
            if seen.counts is False:
                seen = replace(seen, has_inner_save=self._kept.newer(KERAS_WEIGHTS))
            if seen != record:
                self._record = record = seen
                self._save(late=True)
        if self._offset and self._offset + self._executions * record.execution >= record.per_epoch and not self.model.stop_training:
            self.model.stop_training = _ENDS_EPOCH

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Saves the start of the next epoch, and reports the wait of this one."""
        if logs is not None:
            logs.update(self._rate.logs())
        if self.model.stop_training is _ENDS_EPOCH:  # another callback's wish to stop stays
            self.model.stop_training = False
        if not self._executions:
            self._check_iterator()
        self._was_short = self._offset > 0
        record, now, done = self._begun(), self._iterations(), 0
        if self._executions:
            record = record.verified(now - record.iterations, self._executions)
            done = now - record.iterations if record.counts else record.per_epoch - self._offset
        record = record.moved(epoch + 1, record.batches + done, now)
        self._record = self._unless_behind(record, record.batches)
        self._save()

    def _check_iterator(self) -> None:
        """Checks that Keras does not continue with the finished iterator of a resumed epoch. Raises `StateError` if it does."""
        if self._was_short and self._pipe.train._pipegen.is_over():
            raise StateError(
                "with `steps_per_epoch`, Keras continues after a resumed epoch with an iterator of `pipe.train` that is at its end: leave "
                "out `steps_per_epoch`, or pass `pipe.train.repeat()`"
            )

    def _unless_behind(self, record: Record, batches: int) -> Record:
        """Marks the record as uncounted if the pipeline has handed over fewer batches: `fit` trains on other data, or on a part of it."""
        progress = self._pipe._engine.train_progress()
        if record.counts is False or self._batches(progress.position()) >= batches:
            return record
        return replace(record, counts=False, batches=self._batches(progress.next_start()))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Marks the run as finished: the next one begins at the epoch of `fit`."""
        set_initial_epoch(self.model, None)
        if self._record is not None and self._kept.exist:  # Keras may have removed the folder
            self._record = replace(self._record, finished=True)
            self._save()

    # Where the weights are

    def _begin(self, epoch: int) -> None:
        """Starts the pipeline and the record of the run. Raises `StateError` if the position of restored weights is unknown, or is not
        where `fit` begins."""
        place, certain = self._find()
        set_initial_epoch(self.model, None)  # `fit` has read it; otherwise the next `fit` would, too
        if place is not None and place.epoch != epoch:
            if certain:
                raise StateError(self._disagreement(place, epoch))
            place = None
        per_epoch, now = self._per_epoch(), self._iterations()
        where = place or Place(epoch, 0, self._fitted.batches(epoch, 0))
        self._offset = where.done
        if where.at is not None:
            self._pipe._seek(where.at)
        else:
            self._pipe.seek(*self._timeline.at(where.batches))
        at = self._pipe._engine.train_progress().next_start()
        since = at.epoch, at.origin, at.shift, self._pipe._extent_at(at.epoch).missing(at)
        execution = int(getattr(self.model, "steps_per_execution", None) or 1)
        record = Record(epoch, self._batches(at), now, self._steps(), per_epoch, execution, since=since)
        earlier = self._earlier()
        if place is not None and earlier is not None and (earlier[1].steps, self._sizes(earlier[0])) == (record.steps, self._sizes()):
            record = replace(record, epochs=earlier[1].epochs, counts=earlier[1].counts)
        self._record = record.with_epoch(epoch, now - where.done)
        self._save()

    def _find(self) -> tuple[Place | None, bool]:
        """Finds the position of the weights, and if `fit` must begin there; `None` for a new run. Raises `StateError` if weights were
        restored whose position cannot be found."""
        now, told = self._iterations(), self._kept.keras().get("epoch", initial_epoch(self.model))
        told = None if told is None else int(told)  # the epoch that weights were restored for; `None` if Keras has restored none
        earlier = self._earlier()
        if earlier is None:
            return self._find_unrecorded(now, told)
        state, record = earlier
        if record.counts is False:
            return self._find_uncounted(state, record, now, told)
        if now <= record.begin and told is None:
            return None, False
        if now == record.begin and record.counts is None and self._kept.newer(KERAS_FILE):
            return self._find_uncounted(state, replace(record, counts=False), now, told)
        place = self._now(state, record, record.find(now))
        if told is not None and told > place.epoch:
            raise StateError(self._disagreement(place, told))
        return place, not (record.finished and now == record.iterations)

    def _find_uncounted(self, state: dict[str, Any], record: Record, now: int, told: int | None) -> tuple[Place | None, bool]:
        """Like `_find`, if the optimizer's count can only confirm the end of the last epoch."""
        if told is None and now <= record.begin:
            return None, False
        place = record.find(now)
        if told is None:
            return self._now(state, record, place), not record.finished
        newer = self._kept.newer(KERAS_WEIGHTS)
        if newer or (record.epoch, 0) != (told, self._kept.keras().get("batch", 0)):
            raise StateError(f"the weights are not those of the last end of an epoch in {self._kept.file}, and {UNCOUNTED}")
        return self._now(state, record, Place(told, 0, place.batches)), True

    def _find_unrecorded(self, now: int, told: int | None) -> tuple[Place | None, bool]:
        """Like `_find`, without a record: the count of an optimizer that has trained nothing else is that of the run's batches."""
        if self._saved is not None:  # a `pipe.state()` that the user put there
            at = self._pipe._position_of(self._saved)
            done = self._batches(at)
            # the optimizer's count is that of all batches, if they had one size
            if now in (-1, 0, done, self._resized(self._saved).batches(self._saved["epoch"], self._saved["step"])):
                return Place(*self._fitted.at(done), done, at), told is not None
        if told is None:
            if self._saved is not None:
                raise StateError(
                    f"{self._kept.file} is a state after {done} batches, but the model's optimizer has run {now} times; load the weights "
                    "of that state, or remove the file"
                )
            return None, False
        done = max(now, 0)
        place = Place(*self._fitted.at(done), done)
        if told != place.epoch and (told, place.done) != (place.epoch - 1, 0):
            raise StateError(f"{self._disagreement(place, told)}; pass a folder to `pipe.callback`, which keeps a record of the run there")
        return place, True

    def _now(self, state: dict[str, Any], record: Record, place: Place) -> Place:
        """Converts a place of the saved run to this run, whose batch size may differ."""
        epoch, done = self._resized(state).at(place.batches)
        at, size = record.located(epoch, done), self._sizes(state)[self._timeline.stage(epoch)]
        position = self._pipe._position_of({**state, **at._asdict(), "examples": at.origin + at.step * size})
        if self._sizes(state) == self._sizes():
            return Place(place.epoch, place.done, self._batches(position), position)
        if done == place.done and self._per_epoch() == self._steps():
            missing = self._pipe._extent_at(position.epoch).missing(position)
            return Place(place.epoch + position.epoch - epoch, position.step + missing, self._batches(position), position)
        new = self._sizes()[self._timeline.stage(position.epoch)]
        return Place(place.epoch, -(-place.done * size // new), self._batches(position), position)

    def _disagreement(self, place: Place, epoch: int) -> str:
        at = f"step {place.done} of epoch {place.epoch}"
        return (
            f"the optimizer has run {self._iterations()} times, which is {at} with {self._per_epoch()} steps an epoch, but `fit` begins "
            f"with epoch {epoch}: put `pipe.callback` after `BackupAndRestore` in `callbacks`, or pass `initial_epoch={place.epoch}`; to "
            "start a new run, build a new model and empty the folder of the checkpoints"
        )

    # The evidence

    def _earlier(self) -> tuple[dict[str, Any], Record] | None:
        """The saved state and its record."""
        if self._saved is None or KEY not in self._saved:
            return None
        return self._saved, Record.from_json(self._saved[KEY])

    def _iterations(self) -> int:
        """Counts the runs of the optimizer: one a batch, even while it accumulates gradients; -1 without an optimizer."""
        counter = optimizer_runs(getattr(self.model, "optimizer", None))
        return -1 if counter is None else int(keras.ops.convert_to_numpy(counter))

    def _begun(self) -> Record:
        assert self._record is not None  # noqa: S101 - set by `on_epoch_begin`
        return self._record

    def _steps(self) -> int:
        return self._pipe.steps("train")

    def _per_epoch(self) -> int:
        """Steps in an epoch of `fit`: with `steps_per_epoch`, not the pipeline's."""
        return int((self.params or {}).get("steps") or self._steps())

    def _state_of(self, record: Record) -> dict[str, Any]:
        """Returns the state at a record, together with the record."""
        return {**self._pipe._state_at(record.located(*self._timeline.at(record.batches))), KEY: record.to_json()}

    # Epochs and batches

    @property
    def _timeline(self) -> Timeline:
        """The epochs of the pipeline."""
        return Timeline.endless(self._steps())

    @property
    def _fitted(self) -> Timeline:
        """The epochs of `fit`: with `steps_per_epoch`, not the pipeline's."""
        return Timeline.endless(self._per_epoch())

    def _resized(self, state: dict[str, Any]) -> Timeline:
        """Returns the epochs of this pipeline with the batch sizes of a state."""
        extents = [self._pipe._extent_at(epoch) for epoch in self._timeline.firsts[:-1]]
        return self._timeline.of_sizes(extents, self._sizes(state))

    def _batches(self, at: Position) -> int:
        """Counts the batches of the pipeline before a position; a shorter epoch counts as a full one."""
        return self._timeline.batches(at.epoch, at.step) + self._pipe._extent_at(at.epoch).missing(at)

    def _sizes(self, state: dict[str, Any] | None = None) -> tuple[int, ...]:
        """Returns the batch size of the pipeline, or of a state: one for each stage."""
        return batch_sizes(self._spec, state)

    def _save(self, *, late: bool = False) -> None:
        if self._kept.file is not None:
            record = self._begun()
            self._kept.save(self._state_of(record), late=late)


class StageCallback(ResumeCallback):
    """A `ResumeCallback` for training in stages, which carries the checkpoint from one stage to the next.

    `BackupAndRestore` removes its folder when `fit` ends and restores its content when the next `fit` begins. So before the end of a `fit`
    with stages to follow, the checkpoint is moved aside, with the current weights and the first epoch of the next stage; afterwards it is
    moved back. If the process is killed in between, the next one finds the moved checkpoint.

    `stage` is that of `fit`, by default the one of its last epoch; `directory` is as for `ResumeCallback`.
    """

    _pipe: OwnerInStage

    def __init__(self, whole: OwnerOfStages, stage: OwnerInStage | None, directory: Path | None = None) -> None:
        super().__init__(stage if stage is not None else whole.current, directory)
        self._whole, self._stage, self._folder, self._spec = whole, stage, directory, whole.spec.model
        self._come_back()

    # What Keras calls

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Finds the stage; if the restored weights are past it, `fit` has nothing to do."""
        self._pipe = self._stage if self._stage is not None else self._whole.stages[self._timeline.stage(self._last() - 1)]
        super().on_train_begin(logs)
        with suppress(StateError):  # raised when an epoch begins
            place, certain = self._find()
            if place is not None and certain and place.epoch >= self._last():
                self._whole._seek(place.at or Position(*self._timeline.at(place.batches)))
                self._put_aside(None)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Checks that the epochs of `fit` are those of this stage. Raises `StateError` if they are not."""
        stage = self._pipe
        first = self._timeline.firsts[stage.index]
        if not first <= epoch < stage.epochs:
            raise StateError(
                f"epoch {epoch} is not in stage {stage.index}, which has epochs {first} to {stage.epochs - 1}: "
                "`fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs)`"
            )
        if self._per_epoch() != self._steps():
            raise StateError(
                f"an epoch of `fit` has {self._per_epoch()} steps, but an epoch of stage {stage.index} has {self._steps()}: "
                "leave out `steps_per_epoch`"
            )
        super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Moves the checkpoint aside if `fit` is about to end and stages follow."""
        super().on_epoch_end(epoch, logs)
        if epoch + 1 >= self._last() or self.model.stop_training:
            self._put_aside(self._ended(epoch + 1))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Ends the stage, even if `fit` stopped early, and moves the checkpoint back."""
        set_initial_epoch(self.model, None)
        record = self._record
        if record is None:  # no epoch was begun
            self._come_back()
            return
        ended = self._ended(record.epoch)
        if ended >= self._timeline.end:
            super().on_train_end(logs)
            return
        if ended != record.epoch:
            self._whole.seek(ended)
            self._record = record.moved(ended, self._batches(Position(ended)), self._iterations())
        self._put_aside(ended)
        self._come_back()
        if self._kept.exist:
            self._save()

    # The checkpoint between two stages

    def _put_aside(self, epoch: int | None) -> None:
        """Copies the checkpoint, with the current weights and the epoch to continue with, or for `None` unchanged."""
        if self._folder is None or (epoch is not None and epoch >= self._timeline.end):
            return
        aside, older = _beside(self._folder)
        here = self._folder if (self._folder / KERAS_FILE).exists() else aside
        if not (here / KERAS_FILE).exists():
            return  # Keras keeps no checkpoint here
        remove_parts(aside.parent)
        with whole_place(aside, older=older) as made:
            shutil.copytree(here, made)
            if epoch is not None:
                self.model.save_weights(made / KERAS_WEIGHTS, overwrite=True)
                (made / KERAS_FILE).write_text(json.dumps({"epoch": epoch, "batch": 0}))
                if self._record is not None:
                    record = self._record.moved(epoch, self._batches(Position(epoch)), self._iterations())
                    Checkpoints(made).save(self._state_of(record))

    def _come_back(self) -> None:
        """Moves the checkpoint back."""
        if self._folder is None:
            return
        aside, older = _beside(self._folder)
        if aside.exists():
            shutil.rmtree(older, ignore_errors=True)
        elif older.exists():
            aside = older
        else:
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        aside.replace(self._folder)

    # Epochs and batches: epochs of `fit` are those of the pipeline, whose stages differ in batches.

    def _last(self) -> int:
        """One past the last epoch of `fit`."""
        return int((self.params or {}).get("epochs") or self._pipe.epochs)

    def _ended(self, epoch: int) -> int:
        """The epoch to continue with after `fit` has ended before `epoch`: that of the next stage if `fit` was to end this one."""
        return self._pipe.epochs if self._last() >= self._pipe.epochs else epoch

    @property
    def _timeline(self) -> Timeline:
        return self._whole.timeline

    _fitted = _timeline


def _beside(folder: Path) -> tuple[Path, Path]:
    """Names the folder that holds the checkpoint while Keras removes its own, and that of the checkpoint before."""
    return folder.with_name(f"{folder.name}.between-stages"), folder.with_name(f"{folder.name}.between-stages.older")
