"""Hashes that identify data wherever it is mounted: of examples, of a split's order, of a whole listing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from operator import itemgetter

import numpy as np

from pipegen.ops.fields.strings import Ints, Strings, encode
from pipegen.ops.sources.listing.base import Listing

_BLOCK = 1 << 14  # numbers written as text at a time


def example_ids(source_name: str, keys: Iterable[str]) -> Ints:
    """Hashes the source's op and the records' relative paths to 64-bit example ids, the keys of all random draws: uint64 `(n,)`."""
    return _hashes(keys, encode(source_name) + b"\x00", person=b"pipegen.example")


def split_hashes(keys: Iterable[str], seed: int) -> Ints:
    """Hashes keys with a split seed: uint64 `(n,)`."""
    return _hashes(keys, b"", salt=seed.to_bytes(8, "big"), person=b"pipegen.split")


def _hashes(keys: Iterable[str], before: bytes, *, person: bytes, salt: bytes = b"") -> Ints:
    start = hashlib.blake2b(before, digest_size=8, person=person, salt=salt)
    digests = bytearray()
    for block in Strings.hold(keys).blocks():
        for key in block:
            state = start.copy()
            state.update(key)
            digests += state.digest()
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def fingerprint(listing: Listing) -> str:
    """Hashes the sorted relative paths and sizes of the records, and the contents of rows and tables: SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    for block in _covered(listing):
        digest.update(block)
    return digest.hexdigest()


def _covered(listing: Listing) -> Iterator[bytes]:
    rows = listing.location.kind == "row"
    # Some splits may be of rows, others of files and members, which have no digest.
    digests = [(split, reader.digest()) for split, reader in listing.readers.items()] if rows or listing.location.kinds is not None else []
    if rows or any(digest for _, digest in digests):
        yield "\n".join(f"{split} {digest}" for split, digest in digests).encode() + b"\n"
    if rows:
        yield from _classes(listing)
    if listing.in_table:  # the order of the records is the table's, not that of their names
        yield from _classes(listing)
        yield from (b"\n".join(block) + b"\n" for block in listing.keys.blocks())
        yield b"" if len(listing.keys) else b"\n"
    given = [(name, values) for name, values in listing.columns.items() if values is not listing.labels]  # which follow from the keys
    for name, values in sorted(given, key=itemgetter(0)):
        yield encode(f"{name} {values.dtype} {values.shape} {listing.classes.get(name)}\n")
        yield values.tobytes()
    order = listing.keys.order()
    for name, files in sorted(listing.beside.items()):
        yield encode(f"{name}\n")
        yield from _lines(order, files.sizes, listing.keys, files.keys)
    if listing.shards is not None:
        yield from _lines(order, listing.shards.rows, listing.keys, listing.shards.digests)
    yield from _lines(order, listing.sizes, listing.keys)


def _classes(listing: Listing) -> Iterator[bytes]:
    yield encode(f"{listing.class_names}\n")
    yield from [b"None"] if listing.labels is None else tuple_text(listing.labels)
    yield b"\n"


def tuple_text(values: Ints) -> Iterator[bytes]:
    """Yields whole numbers as Python writes a tuple of them, a block at a time."""
    yield b"("
    for at in range(0, len(values), _BLOCK):
        yield (", " * (at > 0) + ", ".join(map(str, values[at : at + _BLOCK].tolist()))).encode()
    yield b",)" if len(values) == 1 else b")"


def _lines(order: Ints | None, sizes: Ints, *columns: Strings) -> Iterator[bytes]:
    """Yields a line for each record, a block at a time: the columns' texts and the size."""
    if order is not None:
        columns, sizes = tuple(column.take(order) for column in columns), sizes[order]
    at = 0
    for blocks in zip(*(column.blocks() for column in columns), strict=True):
        names = blocks[0] if len(blocks) == 1 else map(b"\0".join, zip(*blocks, strict=True))
        some = sizes[at : at + len(blocks[0])].tolist()
        yield b"".join([b"%b\0%d\n" % line for line in zip(names, some, strict=True)])
        at += len(some)
