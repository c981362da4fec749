"""The folder of a model's checkpoints: the state that is kept there, and what Keras' `BackupAndRestore` has written beside it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipegen.errors import StateError
from pipegen.log import log
from pipegen.whole_files import remove_parts, whole_file

if TYPE_CHECKING:
    from pathlib import Path

KERAS_FILE = "training_metadata.json"
KERAS_WEIGHTS = "latest.weights.h5"
"""What `BackupAndRestore` writes: first the weights, then the epoch."""
_OLDER = ".bkp"
"""How the names of the files before those end, which it keeps with `double_checkpoint=True`."""
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_END_AT = {0: 40, 1: 44, 2: 28, 3: 28}
"""Where the superblock of an HDF5 file has the file's end, by its version. The library writes it last."""


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
        return {} if self._folder is None else _metadata(self._folder / KERAS_FILE)

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
        try:
            self._write(state, late=late)
        except FileNotFoundError:  # Keras, in a process that shares the folder, has removed it meanwhile
            self._write(state, late=late)

    def _write(self, state: dict[str, Any], *, late: bool) -> None:
        assert self.file is not None  # noqa: S101 - the caller has looked
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.file) as stream:
            stream.write(json.dumps(state).encode())
            stream.flush()
            if late:
                with suppress(FileNotFoundError):
                    before = self.file.stat()
                    os.utime(stream.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))

    # What a process leaves that was killed while Keras wrote

    def mend(self, *, dated: bool) -> None:
        """Puts older weights in the place of some that cannot be read, before Keras reads them.

        Keras does so itself with `double_checkpoint=True`, for some kinds of damage, and not for damage of its record of the epoch.

        Args:
            dated: Give the older weights the time of the state, which is not older than they are.

        Raises:
            StateError: Where there are weights, and none of them can be read.
        """
        if self._folder is None or not self._folder.is_dir():
            return
        remove_parts(self._folder)
        weights, metadata = self._folder / KERAS_WEIGHTS, self._folder / KERAS_FILE
        older = _older(weights)
        why = _damage(weights) if weights.exists() else "it is not there" if older.exists() else ""
        if why and not any(file.exists() for file in (older, metadata, _older(metadata))) and self.exist:
            log.warning("%s cannot be read (%s), and is the first that was saved: the run begins anew", weights, why)
            weights.unlink()
        elif why:
            why_older = _damage(older) if older.exists() else ""
            if not older.exists() or why_older:
                raise StateError(self._lost(why, why_older))
            log.warning("%s cannot be read (%s); the run goes on from the weights before, %s", weights, why, older)
            time = self.file.stat().st_mtime_ns if dated and self.file is not None and self.file.exists() else None
            if _metadata(_older(metadata)):
                _copy(_older(metadata), metadata, time)
            else:
                metadata.unlink(missing_ok=True)
            _copy(older, weights, time)  # last: until then the next process finds the same
        elif weights.exists() and metadata.exists() and not _metadata(metadata):
            log.warning("%s is not whole, as after a stop in the middle of its write; the weights tell the position without it", metadata)
            if _metadata(_older(metadata)):
                _copy(_older(metadata), metadata, None)
            else:
                metadata.unlink()

    def _lost(self, why: str, why_older: str) -> str:
        older, files = f"{KERAS_WEIGHTS}{_OLDER}", f"{KERAS_WEIGHTS}* and {KERAS_FILE}*"
        before = f"those before, {older}, cannot be read either ({why_older})" if why_older else "there are none before them"
        return (
            f"the weights in {str(self._folder)!r} cannot be read: {KERAS_WEIGHTS} is not whole ({why}), as after a stop in the middle of "
            f"its write, and {before}. To begin a new run, remove {files} and pipegen.state.json from the folder. To go on from other "
            f"weights of this run, load them before `fit`, and remove {files}. `BackupAndRestore(…, double_checkpoint=True)` keeps the "
            "weights before"
        )


def _older(file: Path) -> Path:
    return file.with_name(f"{file.name}{_OLDER}")


def _metadata(file: Path) -> dict[str, Any]:
    """Reads Keras' record of an epoch; empty where there is none, or one that is not whole."""
    with suppress(OSError, ValueError):
        found = json.loads(file.read_text())
        return found if isinstance(found, dict) and isinstance(found.get("epoch"), int) else {}
    return {}


def _copy(file: Path, to: Path, time: int | None) -> None:
    with whole_file(to) as stream, open(file, "rb") as source:
        while block := source.read(1 << 22):
            stream.write(block)
        stream.flush()
        if time is not None:
            os.utime(stream.fileno(), ns=(time, time))


def _damage(file: Path) -> str:
    """Reads a file of weights, and describes what is wrong with it; empty where all of it can be read.

    Raises:
        StateError: Where that is no damage: this user may not read it.
    """
    import h5py

    def read(_name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            item[()]

    try:
        with h5py.File(file, "r") as stored:
            stored.visititems(read)
        with open(file, "rb") as stream:
            end, size = _end(stream.read(64)), os.fstat(stream.fileno()).st_size
        return "" if end in (None, size) else f"it has {size:,} bytes, and its header says {end:,}"
    except PermissionError as error:
        raise StateError(f"the weights {str(file)!r} cannot be read: {error.strerror}") from None
    except BlockingIOError:  # another process writes it
        return ""
    except Exception as error:  # h5py raises what it likes for damage: OSError, KeyError, RuntimeError, ValueError
        return " ".join(str(error).split())


def _end(head: bytes) -> int | None:
    """Reads from the head of an HDF5 file where it ends; `None` where the head does not say it in the usual form."""
    at = _END_AT.get(head[8]) if head.startswith(_SIGNATURE) and len(head) == 64 else None
    if at is None or head[13 if head[8] < 2 else 9] != 8:
        return None
    return int.from_bytes(head[at : at + 8], "little")
