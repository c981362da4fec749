"""A run that is killed, or comes to its end and prints what the model remembers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from pipes import numbered
from typing import Any

import keras
from resuming import memory

EPOCHS = 6


def die() -> None:
    """Ends this process as a power cut would: no handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


class Backup(keras.callbacks.BackupAndRestore):
    """Dies at a save: between the weights and the epoch (`torn`), or behind both (`saved`)."""

    how, left = "", 0

    def _save_model(self) -> None:
        self.left -= 1
        if self.left == 0 and self.how == "torn":
            self.model.save_weights(filepath=self._weights_path, overwrite=True)
            die()
        super()._save_model()
        if self.left == 0 and self.how == "saved":
            die()


class Killer(keras.callbacks.Callback):
    """Dies behind all other callbacks: after so many batches (`batch`), or in the next validation (`validation`)."""

    how, left = "", 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if self.left == 0 and self.how == "batch":
            die()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.left <= 0 and self.how == "validation":
            die()


def main(folder: str, save_freq: str, how: str, at: str) -> None:
    pipe = numbered(8, 4)
    backup = Backup(folder, save_freq=save_freq if save_freq == "epoch" else int(save_freq))
    backup.how = Killer.how = how
    backup.left = Killer.left = int(at)
    ours = pipe.callback(folder)
    if how == "state":  # between the write of the new file and its taking the place of the old one
        original, left = Path.replace, [int(at)]

        def replace(self: Path, target: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                die()
            return original(self, target)

        Path.replace = replace  # type: ignore[method-assign]
    model = memory()
    model.fit(pipe.train, validation_data=pipe.validation, epochs=EPOCHS, verbose=0, callbacks=[backup, ours, Killer()])
    print(model.remembers, int(model.optimizer.iterations), len(model.trained))
