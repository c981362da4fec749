"""`Monitor`, the Keras callback that watches a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from pipegen.arguments import file_or_folder
from pipegen.observe.picture import form_of, write_picture
from pipegen.observe.run_record import Summary, curves, read_record
from pipegen.observe.watch import Inside, require
from pipegen.terminal import note_between
from pipegen.waiting import WATCHERS, Waits


class Monitor(keras.callbacks.Callback):
    """Watches `fit`: processor per core, memory, disk, network, GPUs, and how long each step waits for its batch.

    `pipegen monitor -- python train.py` does the same from outside, without a change to the code. It takes less than 1 % of one core, on
    a thread of its own. It needs the extra `pipegen[monitor]`.

    Args:
        out: The file of the record, JSON lines. A second `fit` writes `run-2.jsonl` beside `run.jsonl`.
        picture: A file to draw when training ends, or several: `.svg`, `.png`, `.pdf` or `.html`.
        every: Seconds between samples, 0.1 at least.
        live: Seconds between lines on standard error; 0 for none.

    Attributes:
        summary: The sums of the latest run; `summary.verdict()` describes in a sentence what it waited for.

    Raises:
        ImportError: If a library of the extra is missing, with the command that installs it.
        ValueError: For a picture of another format, or an interval that is too short.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] = "run.jsonl",
        picture: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        *,
        every: float = 1.0,
        live: float = 0.0,
    ) -> None:
        super().__init__()
        several = [picture] if isinstance(picture, (str, os.PathLike)) else picture
        self._out = Path(file_or_folder("out", out, "run.jsonl"))
        self._pictures = [Path(file_or_folder("picture", one, "run.svg")) for one in several]
        for path in self._pictures:
            form_of(path)
        if every < 0.1:
            raise ValueError(f"`every` is at least 0.1 seconds, got {every!r}")
        require("psutil", *(["matplotlib"] if self._pictures else []))
        self._every, self._live = every, live
        self._runs = 0
        self._inside: Inside | None = None
        self._waits: Waits | None = None
        self.summary = Summary()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begins the record."""
        self._stop()
        self._runs += 1
        self._inside = Inside(self._numbered(self._out), self._every, self._live, note_between)
        self.summary = self._inside.summary
        self._waits = Waits(self._inside.waited)
        WATCHERS.append(self._waits)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Records the beginning of an epoch."""
        if self._inside is not None:
            self._inside.mark("epoch", epoch=epoch)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Ends the record, and draws it."""
        self._stop()
        if self._pictures:
            found = curves(read_record(self._numbered(self._out)))
            for path in self._pictures:
                write_picture(found, self._numbered(path))

    def _stop(self) -> None:
        if self._inside is not None and self._waits is not None:
            WATCHERS.remove(self._waits)
            self._inside.stop()
            self._inside = None

    def _numbered(self, path: Path) -> Path:
        return path if self._runs < 2 else path.with_name(f"{path.stem}-{self._runs}{path.suffix}")
