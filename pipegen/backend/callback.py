"""Ties the epochs of a pipeline to those of Keras' `fit`, and keeps the pipeline's state beside the model's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from pipegen.errors import StateError

if TYPE_CHECKING:
    from pipegen.pipeline import Pipeline

STATE_FILE = "pipegen.state.json"
_ENDS_EPOCH = object()
"""True to Keras, and told apart from what another callback sets."""


class ResumeCallback(keras.callbacks.Callback):
    """Starts the pipeline where `fit` starts, and saves and restores its state.

    Args:
        pipe: The pipeline.
        directory: Where the state is kept: the folder of the model's checkpoints, such as `BackupAndRestore`'s. Without
            it nothing is saved, and only the epoch is taken from `fit`.
        save_freq: `"epoch"`, or a number of batches; the same as the checkpoint's.
    """

    def __init__(self, pipe: Pipeline, directory: str | os.PathLike[str] | None = None, save_freq: str | int = "epoch") -> None:
        super().__init__()
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(f'`save_freq` is "epoch" or a number of batches, got {save_freq!r}')
        self._pipe = pipe
        self._file = Path(directory) / STATE_FILE if directory is not None else None
        self._save_freq = save_freq
        self._saved: dict[str, Any] | None = None
        self._begun = False
        self._offset = 0
        self._epoch = 0
        self._last_batch = 0
        self._unsaved = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Read the saved state, if there is one."""
        self._begun = False
        self._saved = _read(self._file) if self._file is not None and self._file.exists() else None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Move the pipeline to the first epoch that `fit` runs."""
        self._epoch = epoch
        if self._begun:
            self._offset = 0
            return
        self._begun = True
        steps = self._pipe.steps("train")
        if self._saved is not None:
            self._pipe.restore(self._saved)
            done = self._absolute(self._pipe.state())
            self._offset = max(0, done - epoch * self._per_epoch())
            if self._offset >= self._per_epoch():
                self._offset = 0
                self._pipe._seek(*divmod(epoch * self._per_epoch(), steps))
            elif done < epoch * self._per_epoch():
                self._pipe._seek(*divmod(epoch * self._per_epoch(), steps))
        else:
            self._offset = 0
            self._pipe._seek(*divmod(epoch * self._per_epoch(), steps))

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Save when it is time; end an epoch that was resumed in its middle where its data ends."""
        done = self._offset + batch + 1
        if self._file is not None and self._is_due(batch):
            self._save(self._epoch * self._per_epoch() + done)
        if self._offset and done >= self._per_epoch() and not self.model.stop_training:
            self.model.stop_training = _ENDS_EPOCH

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Save the start of the next epoch, when epochs are what is saved."""
        if self.model.stop_training is _ENDS_EPOCH:  # another callback's wish to stop stays
            self.model.stop_training = False
        self._last_batch = 0
        if self._file is not None and self._save_freq == "epoch":
            self._save((epoch + 1) * self._per_epoch())

    def _is_due(self, batch: int) -> bool:
        """Whether Keras' checkpoint callbacks save now: they count on across epochs, and a state must be as old as its weights."""
        if self._save_freq == "epoch":
            return False
        self._unsaved += batch + 1 if batch <= self._last_batch else batch - self._last_batch
        self._last_batch = batch
        if self._unsaved < int(self._save_freq):
            return False
        self._unsaved = 0
        return True

    def _per_epoch(self) -> int:
        """Steps in an epoch of `fit`, which `steps_per_epoch` may make other than the pipeline's."""
        return int((self.params or {}).get("steps") or self._pipe.steps("train"))

    def _absolute(self, state: dict[str, Any]) -> int:
        return int(state["epoch"]) * self._pipe.steps("train") + int(state["step"])

    def _save(self, absolute: int) -> None:
        assert self._file is not None  # noqa: S101 - the callers have looked
        epoch, step = divmod(absolute, self._pipe.steps("train"))
        state = self._pipe._state_at(epoch, step)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_suffix(".partial")
        partial.write_text(json.dumps(state))
        partial.replace(self._file)


def _read(file: Path) -> dict[str, Any]:
    try:
        state = json.loads(file.read_text())
    except ValueError as error:
        raise StateError(f"{file} is damaged ({error}); remove it to start anew") from None
    if not isinstance(state, dict):
        raise StateError(f"{file} holds no state; remove it to start anew")
    return state
