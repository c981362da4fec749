"""A run that is killed, or comes to its end and prints what the model remembers.

Where it dies is a word and a number: behind a `batch`, in a `validation`; between the weights and the epoch of a save (`torn`), or behind
both (`saved`); and within a write, at the n-th moment of it: of the weights (`weights`), of Keras' record of the epoch (`epoch`), of the
copies that it keeps with `double_checkpoint` (`copies`), and of our state (`state`). `2.5` is the fifth moment of the second save.
"""

from __future__ import annotations

import builtins
import os
import signal
from pathlib import Path
from pipes import numbered
from typing import Any

import h5py
import keras
from keras.src.callbacks.backup_and_restore import file_utils
from resuming import memory

EPOCHS = 6


def die() -> None:
    """Ends this process as a power cut would: no handler, no `finally`, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)


class Moments:
    """Counts the moments of a write, and dies at one of them; until it is told to, it counts nothing."""

    left, armed = 0, False

    @classmethod
    def pass_one(cls) -> None:
        cls.left -= cls.armed
        if cls.armed and not cls.left:
            die()

    @classmethod
    def around(cls, of: Any, *names: str) -> None:
        """Makes two moments of each call: before it and behind it."""
        for name in names:
            setattr(of, name, cls.passing(getattr(of, name)))

    @classmethod
    def passing(cls, original: Any) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            cls.pass_one()
            result = original(*args, **options)
            cls.pass_one()
            return result

        return called


def copied_in_parts(source: str, target: str) -> None:
    content = Path(source).read_bytes()
    for end in (0, len(content) // 2, len(content)):
        Path(target).write_bytes(content[:end])
        Moments.pass_one()


open_any = os.open


def opened(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    """Makes two moments of a new file, and none of others that are opened."""
    call = Moments.passing(open_any) if flags & os.O_EXCL else open_any
    number: int = call(path, flags, mode, dir_fd=dir_fd)
    return number


class Halves:
    """A file that is written in two halves."""

    def __init__(self, path: str, mode: str = "r") -> None:
        self.file = builtins.open(path, mode)  # noqa: SIM115 - closed where the block ends
        Moments.pass_one()

    def __enter__(self) -> Halves:
        return self

    def __exit__(self, *about: object) -> None:
        self.file.close()
        Moments.pass_one()

    def read(self) -> str:
        return self.file.read()

    def write(self, text: str) -> None:
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            self.file.write(part)
            self.file.flush()
            Moments.pass_one()


def make_moments(how: str) -> None:
    """Lets a write have the moments that it can be cut at."""
    if how == "weights":
        Moments.around(h5py.Group, "__setitem__", "create_dataset", "create_group")
        Moments.around(h5py.File, "__init__", "close")
    elif how == "epoch":
        file_utils.File = Halves
    elif how == "copies":
        file_utils.copy = copied_in_parts
    elif how == "state":  # each of its writes, and not one at a save
        Moments.armed = True
        Moments.around(os, "replace", "fsync")
        os.open = opened


class Backup(keras.callbacks.BackupAndRestore):
    """Dies at a save, or within one."""

    how, left = "", 0

    def _save_model(self) -> None:
        self.left -= 1
        if self.left == 0 and self.how == "torn":
            self.model.save_weights(filepath=self._weights_path, overwrite=True)
            die()
        Moments.armed = Moments.armed or (self.left == 0 and self.how in ("weights", "epoch", "copies"))
        super()._save_model()
        Moments.armed = self.how == "state"
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


def main(folder: str, save_freq: str, how: str, at: str, double: str = "") -> None:
    pipe = numbered(8, 4)
    backup = Backup(folder, save_freq=save_freq if save_freq == "epoch" else int(save_freq), double_checkpoint=bool(double))
    save, _, moment = at.partition(".")
    backup.how = Killer.how = how
    backup.left = Killer.left = int(save)
    ours = pipe.callback(folder)
    Moments.left = int(moment or save)
    make_moments(how)
    model = memory()
    model.fit(pipe.train, validation_data=pipe.validation, epochs=EPOCHS, verbose=0, callbacks=[backup, ours, Killer()])
    print(model.remembers, int(model.optimizer.iterations), len(model.trained))


def shared(folder: str) -> None:
    """A run whose weights are saved elsewhere, in a folder that others use as well."""
    pipe, model = numbered(8, 4), memory()
    model.fit(pipe.train, epochs=EPOCHS, verbose=0, callbacks=[pipe.callback(folder)])
    print(model.remembers, len(model.trained))
