"""Splits the names of an archive's members into record and key, for the bytes of all names at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.sources.folders.scan import JUNK, is_junk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.listing.strings import Ints, Strings

_DOT, _SLASH = ord("."), ord("/")
_JUNK_BYTES = tuple(name.encode() for name in JUNK)
_AT_ONCE = 1 << 15
"""Names compared at once."""


def is_hidden(path: str) -> bool:
    """Tells whether a member is hidden, or lies in a system folder."""
    parts = path.split("/")
    return parts[-1].startswith(".") or any(map(is_junk, parts))


def _of_system(names: Strings, blob: Ints) -> Ints:
    """Tells which names lead through a system folder; most archives have none."""
    import numpy as np

    found: Ints = np.zeros(len(names), bool)
    content = blob.tobytes().lower()
    if any(junk in content for junk in _JUNK_BYTES):
        found[:] = [any(map(is_junk, name.split("/"))) for name in names]
    return found


class MemberNames:
    """The members with a stem (up to the first dot after the last slash) and a key (after that dot).

    Args:
        names: The names of all members.

    Attributes:
        places: The indices of those members, without system folders; int64 `(n,)`.
    """

    def __init__(self, names: Strings) -> None:
        import numpy as np

        names = names.packed()
        bounds: Ints = names.bounds.astype(np.int64)
        self._blob = names.blob[: int(bounds[-1])]
        starts, ends = bounds[:-1], bounds[1:]
        slashes = np.concatenate([[-1], np.flatnonzero(self._blob == _SLASH)])
        dots: Ints = np.append(np.flatnonzero(self._blob == _DOT), len(self._blob))
        begins = np.maximum(starts, slashes[np.searchsorted(slashes, ends) - 1] + 1)
        dot = dots[np.searchsorted(dots, begins)]
        self._last = dots[np.searchsorted(dots, ends) - 1]
        self.places = np.flatnonzero((dot > begins) & (dot < ends) & ~_of_system(names, self._blob))
        self._starts, self._dots, self._ends = starts[self.places], dot[self.places], ends[self.places]
        self._last = self._last[self.places]

    def runs(self) -> Ints:
        """Numbers the members from 0; consecutive ones with one stem share a number: int64 `(n,)`."""
        import numpy as np

        lengths = self._dots - self._starts
        changes: Ints = np.zeros(len(lengths), np.int64)
        for at in range(1, len(lengths), _AT_ONCE):
            stop = min(at + _AT_ONCE, len(lengths))
            changes[at:stop] = 1
            alike: Ints = at + np.flatnonzero(lengths[at:stop] == lengths[at - 1 : stop - 1])
            own, before = self._taken(self._starts[alike], lengths[alike]), self._taken(self._starts[alike - 1], lengths[alike])
            if len(alike):
                changes[alike] = np.logical_or.reduceat(own != before, np.cumsum(lengths[alike]) - lengths[alike])
        return changes.cumsum()

    def groups(self) -> Ints:
        """Numbers the members by stem, in order of first appearance: int64 `(n,)`."""
        import numpy as np

        runs, content = self.runs(), self._blob.tobytes()
        seen: dict[bytes, int] = {}
        first = np.flatnonzero(np.diff(runs, prepend=-1))
        stems = zip(self._starts[first].tolist(), self._dots[first].tolist(), strict=True)
        numbers = [seen.setdefault(content[start:dot], len(seen)) for start, dot in stems]
        return np.array(numbers, np.int64)[runs]

    def columns(self, keys: Mapping[str, int], *, last: bool = False) -> Ints:
        """Returns the number of each member's key, int64 `(n,)`, or -1; ignores ASCII case. With `last`, the key starts after the last
        dot."""
        import numpy as np

        dots = self._last if last else self._dots
        lengths = self._ends - dots - 1
        found: Ints = np.full(len(lengths), -1, np.int64)
        for key, number in keys.items():
            wanted = np.frombuffer(key.encode().lower(), np.uint8)
            fitting = np.flatnonzero(lengths == len(wanted))
            for at in range(0, len(fitting), _AT_ONCE):
                some = fitting[at : at + _AT_ONCE]
                own = self._taken(dots[some] + 1, lengths[some]).reshape(len(some), -1)
                own = np.where((own >= ord("A")) & (own <= ord("Z")), own | 32, own)
                found[some[(own == wanted).all(1)]] = number
        return found

    def _taken(self, starts: Ints, lengths: Ints) -> Ints:
        """Returns the bytes of some stretches, concatenated."""
        import numpy as np

        ends = lengths.cumsum()
        return self._blob[np.repeat(starts - (ends - lengths), lengths) + np.arange(int(lengths.sum()))]
