"""A training in stages that is killed once: `killed_stages.py FOLDER HOW:AT`; prints what the model remembers, if it ends."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pipes import numbered
from typing import Any

import keras
from resuming import memory

STAGES = [{"epochs": 2, "batch": 2}, {"epochs": 1, "batch": 4}, {"epochs": 2, "batch": 8}]


def die() -> None:
    """Ends this process as a power cut would: no handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


class Killer(keras.callbacks.Callback):
    """Dies behind all other callbacks, after so many batches."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        if not self.left:
            die()


def main(folder: str, how: str, at: int) -> None:
    left = [at]

    def removed(path: Any) -> None:
        left[0] -= 1
        shutil.rmtree(path)
        if how == "removed" and not left[0]:
            die()

    def replaced(source: Any, target: Any, *, replace: Any = os.replace, **places: Any) -> None:
        left[0] -= "between-stages" in f"{source}{target}"
        if how == "rename" and not left[0]:
            die()
        replace(source, target, **places)

    keras.src.callbacks.backup_and_restore.file_utils.rmtree = removed
    if how == "rename":
        os.replace = replaced
    pipe, model = numbered(8, 4, stages=STAGES), memory()
    for number, stage in enumerate(pipe.stages, 1):
        more = [Killer(at)] if how == "batch" else []
        callbacks = [keras.callbacks.BackupAndRestore(folder), stage.callback(folder), *more]
        model.fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs, callbacks=callbacks, verbose=0)
        if how == "fit" and number == at:
            die()
    print(model.remembers, int(model.optimizer.iterations), len(model.trained))


if __name__ == "__main__":
    main(sys.argv[1], *(lambda how, at: (how, int(at)))(*sys.argv[2].split(":")))
