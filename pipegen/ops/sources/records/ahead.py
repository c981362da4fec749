"""Reads headers in a file at rising offsets, with read-ahead if they lie close together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.mounts import Opened

_LEAST, _MOST = 1 << 12, 1 << 18
"""Bytes per read: if large contents lie between the headers, and if small ones do."""


class Ahead:
    """A file read at rising offsets. It is not mapped: a file truncated meanwhile would raise a signal."""

    def __init__(self, file: Opened) -> None:
        self._file, self._end, self._ahead = file, 0, _LEAST

    def block(self, at: int) -> bytes:
        """Reads at an offset: 4 KiB, or more if the last block ended shortly before; less at the end of the file."""
        self._ahead = min(2 * self._ahead, _MOST) if at - self._end <= _LEAST else _LEAST
        found = self._file.pread(self._ahead, at)
        self._end = at + len(found)
        return found
