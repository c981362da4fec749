"""Takes the waits that the watched processes tell, through a named pipe: nothing grows on the disk, and no process ever waits for it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress

from pipegen.waiting import VARIABLE, Wait

_ROOM = 1 << 20
_SET_ROOM = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class WaitPipe:
    """Makes the pipe, and reads it without waiting."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="pipegen-monitor-")
        self._path = os.path.join(self._folder, "waits")
        os.mkfifo(self._path, 0o600)
        # Open for both, so that it does not come to its end between two processes that write.
        self._file = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.fcntl(self._file, _SET_ROOM, _ROOM)
        self._rest = b""

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of a process that is to write into the pipe."""
        return {**given, VARIABLE: self._path}

    def read(self) -> list[Wait]:
        """Returns what was told since the last time."""
        chunks = [self._rest]
        with suppress(BlockingIOError):
            while chunk := os.read(self._file, _ROOM):
                chunks.append(chunk)
        *lines, self._rest = b"".join(chunks).split(b"\n")
        return [told for line in lines if (told := _parsed(line)) is not None]

    def close(self) -> None:
        """Removes the pipe; who still writes is told that nobody reads."""
        os.close(self._file)
        shutil.rmtree(self._folder, ignore_errors=True)


def _parsed(line: bytes) -> Wait | None:
    parts = line.decode(errors="replace").split(" ", 4)
    try:
        pid, *times, split = parts
        ended, seconds, step_seconds = map(float, times)
        return Wait(int(pid), ended, seconds, step_seconds, split)
    except ValueError:  # of another version of pipegen
        return None
