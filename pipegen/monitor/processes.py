"""Adds up what a process and its descendants have used, from `/proc`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATE, _PARENT, _USER, _CHILDREN_SYSTEM, _RSS = 0, 1, 11, 14, 21
"""Places of fields in `/proc/PID/stat`, counted behind the name of the program."""


@dataclass(frozen=True, slots=True)
class Used:
    """Holds what a tree of processes has used.

    Attributes:
        processes: How many there are.
        cpu_s: Seconds of processor time so far, those of descendants that have ended included.
        rss: Bytes in memory now; what several of them share counts for each.
        read: Bytes read from storage so far, ended descendants included; `None` where the system does not say.
        written: Bytes written to storage so far, likewise.
    """

    processes: int
    cpu_s: float
    rss: int
    read: int | None
    written: int | None


class Tree:
    """Follows a process and its descendants.

    A process that is waited for hands its counters on to the one that waited, so the sum over those that live never loses any.

    Args:
        pid: The process.
        proc: Where `/proc` is.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._pid = pid
        self._proc = str(proc)
        # The kernel may be built without this file; then the parents of all processes are looked up.
        own = os.getpid()
        self._lists_children = os.path.exists(f"{self._proc}/{own}/task/{own}/children")

    def used(self) -> Used:
        """Returns what they have used so far."""
        count, ticks, pages = 0, 0, 0
        read: int | None = 0
        written: int | None = 0
        for pid in self._pids():
            fields = self._stat(pid)
            if fields is None:  # has just ended
                continue
            count += 1
            ticks += sum(int(field) for field in fields[_USER : _CHILDREN_SYSTEM + 1])
            pages += int(fields[_RSS])
            if read is not None and written is not None:
                moved = self._moved(pid)
                read, written = (None, None) if moved is None else (read + moved[0], written + moved[1])
        return Used(count, ticks / _TICK, pages * _PAGE, read, written)

    def _pids(self) -> list[int]:
        found = [self._pid]
        below = self._children if self._lists_children else self._by_parent().get
        for pid in found:  # grows on the way
            found += below(pid) or []
        return found

    def _children(self, pid: int) -> list[int]:
        try:
            threads = os.listdir(f"{self._proc}/{pid}/task")
        except OSError:
            return []
        return [int(child) for thread in threads for child in self._text(f"{pid}/task/{thread}/children").split()]

    def _by_parent(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):
            fields = self._stat(int(name)) if name.isdigit() else None
            if fields is not None:
                found.setdefault(int(fields[_PARENT]), []).append(int(name))
        return found

    def _stat(self, pid: int) -> list[bytes] | None:
        fields = self._text(f"{pid}/stat").rpartition(b")")[2].split()
        return fields if len(fields) > _RSS else None

    def _moved(self, pid: int) -> tuple[int, int] | None:
        text = self._text(f"{pid}/io")
        pairs = dict(line.split(b": ") for line in text.splitlines() if b": " in line)
        if b"read_bytes" in pairs and b"write_bytes" in pairs:
            return int(pairs[b"read_bytes"]), int(pairs[b"write_bytes"])
        # One that has ended and is not waited for yet tells nothing; of another user's, nobody is told.
        state = self._stat(pid)
        return (0, 0) if state is None or state[_STATE] == b"Z" else None

    def _text(self, name: str) -> bytes:
        try:
            file = os.open(f"{self._proc}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.read(file, 1 << 16)
        except OSError:
            return b""
        finally:
            os.close(file)
