"""Reads short stretches of a file in rising order, with what follows them where they lie close together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.mounts import Opened

_LEAST, _MOST = 1 << 12, 1 << 18
"""Bytes of a call: where large contents lie between the stretches, and where small ones do."""


class Ahead:
    """Reads a file at rising places: the headers of records. It is not mapped, so that one that is cut meanwhile is no signal.

    Args:
        file: The file.
    """

    def __init__(self, file: Opened) -> None:
        self._file, self._end, self._ahead = file, 0, _LEAST

    def block(self, at: int) -> bytes:
        """Returns what begins at a place: 4 KiB, or more where the last block ended shortly before; less where the file ends."""
        self._ahead = min(2 * self._ahead, _MOST) if at - self._end <= _LEAST else _LEAST
        found = self._file.pread(self._ahead, at)
        self._end = at + len(found)
        return found
