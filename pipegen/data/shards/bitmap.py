"""A set of records at one bit each, with a directory that counts: which is the n-th member, and how many come before a record."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BLOCK = 4096
"""Records that one entry of the directory counts; its 8 bytes add 1.6 % to the bits."""
_BYTES = BLOCK // 8
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1).astype(np.uint8)


class Bitmap:
    """A set of records.

    Attributes:
        bits: uint8 `(blocks, 512)`, the first record in the lowest bit.
        before: int64 `(blocks + 1,)`: members before each block, and of all at the end.
    """

    def __init__(self, bits: Array, before: Array) -> None:
        self.bits = bits
        self.before = before

    def __len__(self) -> int:
        return int(self.before[-1])

    def select(self, member: Array) -> Array:
        """Finds the records that are the given members, counted from 0: int64 `(n,)` each."""
        block = np.searchsorted(self.before, member, side="right") - 1
        counted = np.cumsum(self._unpacked(block), axis=1, dtype=np.int16)
        found: Array = block * BLOCK + (counted <= (member - self.before[block])[:, None]).sum(1)
        return found

    def rank(self, record: Array) -> Array:
        """Counts the members before each record: int64 `(n,)` each; a record may be one past the last."""
        block = np.minimum(record // BLOCK, len(self.bits) - 1)
        earlier = np.arange(BLOCK) < (record - block * BLOCK)[:, None]
        found: Array = self.before[block] + (self._unpacked(block) & earlier).sum(1, dtype=np.int64)
        return found

    def _unpacked(self, block: Array) -> Array:
        return np.unpackbits(self.bits[block], axis=1, bitorder="little")


class BitmapWriter:
    """Makes the bitmap of `size` records out of consecutive masks, of which all but the last hold whole blocks."""

    def __init__(self, size: int) -> None:
        blocks = max(1, -(-size // BLOCK))
        self._bits: Array = np.zeros((blocks, _BYTES), np.uint8)
        self._before: Array = np.zeros(blocks + 1, np.int64)
        self._block = 0

    def add(self, mask: Array) -> None:
        """Append the next records: bool `(n,)`, whether each is a member."""
        count = -(-len(mask) // BLOCK)
        here = slice(self._block, self._block + count)
        packed = np.packbits(mask, bitorder="little")
        self._bits[here].reshape(-1)[: len(packed)] = packed
        self._before[1:][here] = _ONES[self._bits[here]].sum(1, dtype=np.int64)
        self._block += count

    def done(self) -> Bitmap:
        """Returns the bitmap, all counted."""
        return Bitmap(self._bits, np.cumsum(self._before))


def bitmap_of(mask: Array) -> Bitmap:
    """Makes the bitmap of a whole mask: bool `(n,)`."""
    writer = BitmapWriter(len(mask))
    writer.add(mask)
    return writer.done()
