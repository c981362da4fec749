"""The folder of a model's checkpoints: the state that is kept there, and what Keras' `BackupAndRestore` has written beside it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipegen.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

KERAS_FILE = "training_metadata.json"
KERAS_WEIGHTS = "latest.weights.h5"
"""What `BackupAndRestore` writes: first the weights, then the epoch."""


class Checkpoints:
    """Reads and writes the files of such a folder; without one, nothing is there and nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.file = folder / "pipegen.state.json" if folder is not None else None

    @property
    def exist(self) -> bool:
        """Returns whether a state is there."""
        return self.file is not None and self.file.exists()

    def state(self) -> dict[str, Any] | None:
        """Reads the state, if there is one.

        Raises:
            StateError: If it is damaged.
        """
        if self.file is None or not self.file.exists():
            return None
        try:
            state = json.loads(self.file.read_text())
        except ValueError as error:
            raise StateError(f"{self.file} is damaged ({error}); remove it to start anew") from None
        if not isinstance(state, dict):
            raise StateError(f"{self.file} holds no state; remove it to start anew")
        return state

    def keras(self) -> dict[str, Any]:
        """Reads what Keras has written of the run; empty where that is nothing."""
        with suppress(OSError, ValueError, TypeError):
            found = json.loads((self._folder / KERAS_FILE).read_text()) if self._folder is not None else {}
            return found if isinstance(found, dict) else {}
        return {}

    def newer(self, name: str) -> bool:
        """Returns whether a file of the folder was written after the state."""
        with suppress(OSError):
            if self._folder is not None and self.file is not None:
                return (self._folder / name).stat().st_mtime_ns > self.file.stat().st_mtime_ns
        return False

    def save(self, state: dict[str, Any], *, late: bool = False) -> None:
        """Writes the state; a late one keeps the time of the file, which says when the epoch began."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(state))
        if late and self.file.exists():
            before = self.file.stat()
            os.utime(partial, ns=(before.st_atime_ns, before.st_mtime_ns))
        partial.replace(self.file)
