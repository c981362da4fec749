"""Hashes that identify data wherever it is mounted: of one example, of a split's order, of a whole listing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.ops.sources.base import Listing


def encode(key: str) -> bytes:
    """The bytes of a key: UTF-8, and different for different keys even where a file's name is not valid UTF-8."""
    return key.encode("utf-8", "surrogatepass")


def example_id(source_name: str, key: str) -> int:
    """The 64-bit id of an example, which keys all its random draws.

    Args:
        source_name: The source's op.
        key: The record's relative path.
    """
    digest = hashlib.blake2b(encode(source_name) + b"\x00" + encode(key), digest_size=8, person=b"pipegen.example")
    return int.from_bytes(digest.digest(), "big")


def split_hashes(keys: Iterable[str], seed: int) -> list[int]:
    """64-bit hashes of keys under a split seed."""
    salt = seed.to_bytes(8, "big")
    blake2b = hashlib.blake2b
    return [int.from_bytes(blake2b(encode(key), digest_size=8, salt=salt, person=b"pipegen.split").digest(), "big") for key in keys]


def fingerprint(listing: Listing) -> str:
    """SHA-256, in hexadecimal, over the sorted relative paths and sizes of the records; also over what rows and tables hold."""
    digest = hashlib.sha256()
    if listing.rows is not None:
        digest.update("\n".join(f"{split} {rows.digest()}" for split, rows in listing.rows.items()).encode())
        digest.update(f"\n{listing.class_names}\n{listing.labels}\n".encode())
    if listing.in_table:  # here the order of the records is what the table says, and not that of their names
        digest.update(encode(f"{listing.class_names}\n{listing.labels}\n" + "\n".join(listing.keys) + "\n"))
    for name, values in sorted(listing.columns.items()):
        digest.update(encode(f"{name} {values.dtype} {values.shape} {listing.column_classes.get(name)}\n") + values.tobytes())
    for name, files in sorted(listing.beside.items()):
        pairs = zip(listing.keys, files.keys, files.sizes, strict=True)
        digest.update(encode(f"{name}\n" + "".join(f"{key}\0{other}\0{size}\n" for key, other, size in sorted(pairs))))
    if listing.shards is not None:
        held = zip(listing.keys, listing.shards.rows.tolist(), listing.shards.digests, strict=True)
        digest.update(encode("".join(f"{key}\0{rows}\0{of}\n" for key, rows, of in sorted(held))))
    for key, size in sorted(zip(listing.keys, listing.sizes, strict=True)):
        digest.update(encode(key) + b"\x00%d\n" % size)
    return digest.hexdigest()
