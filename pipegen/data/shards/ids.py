"""Ids of records that lie in shards: a bijection of the shard's hash and the row, worked out wherever they are needed and never held.

The mix is the finalizer of SplitMix64 with Stafford's "Mix13" constants (Steele, Lea, Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014): shifts with exclusive or, and odd multiplications, each of which can be undone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.fingerprint import example_ids
from pipegen.errors import InternalError, OpError

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.base import Listing

Array = np.ndarray[Any, Any]

ROW_BITS = 24
"""Bits of an id's origin that number the row; the other 40 are the shard's."""
MIX_SHIFTS = (30, 27, 31)
MIX_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix64(value: Array) -> Array:
    """Mixes 64 bits, a bijection in which every bit of the result depends on every bit given: uint64 of any shape."""
    for shift, factor in zip(MIX_SHIFTS, MIX_FACTORS, strict=False):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return value ^ (value >> np.uint64(MIX_SHIFTS[-1]))


def shard_bases(source_name: str, listing: Listing, rows: Array) -> Array:
    """Computes what the rows of each shard are numbered from: 40 bits of its key's hash in front of 24 zeros, uint64 `(n,)`.

    Raises:
        OpError: `PG414` for a shard with more than 2^24 records.
        InternalError: If two shards share those bits, which only chance could bring about.
    """
    largest = int(np.argmax(rows)) if len(rows) else 0
    if len(rows) and rows[largest] > 1 << ROW_BITS:
        message = f"{listing.keys[largest]!r} holds {int(rows[largest]):,} records, and a file may hold {1 << ROW_BITS:,}"
        raise OpError("PG414", message, help="write the data as several files")
    bases = example_ids(source_name, listing.keys) >> np.uint64(ROW_BITS) << np.uint64(ROW_BITS)
    order = np.argsort(bases, kind="stable")
    same = np.flatnonzero(bases[order[1:]] == bases[order[:-1]])
    pairs = ((listing.keys[int(order[i])], listing.keys[int(order[i + 1])]) for i in same)  # of one file, parts may be listed
    first, second = next(((a, b) for a, b in pairs if a != b), ("", ""))
    if first != second:
        raise InternalError(f"two files of records share 40 bits of their hashes by chance; rename one of them: {first!r} and {second!r}")
    return bases


def split_salt(seed: int) -> np.uint64:
    """Computes what is mixed into ids that decide on splits, which so depend on the split seed and are independent of all draws."""
    digest = hashlib.blake2b(seed.to_bytes(8, "big"), digest_size=8, person=b"pipegen.split")
    return np.uint64(int.from_bytes(digest.digest(), "big"))
