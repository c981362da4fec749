"""Finds records that lie many in a file by their names, `FILE#ROW`, and takes them out of the splits that they are in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.shards.splits import with_any
from pipegen.ops.sources.listing.shards import shards_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.data.shards.manifest import ShardedManifest
    from pipegen.ops.sources.listing.base import Listing

Array = np.ndarray[Any, Any]


def record_numbers(listing: Listing, names: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of some records among all, by their names; what names no record is left out."""
    wanted: dict[str, list[tuple[str, int]]] = {}
    for name in names:
        file, mark, row = name.rpartition("#")
        if mark and row.isdecimal() and row == str(int(row)):
            wanted.setdefault(file, []).append((name, int(row)))
    shards = shards_of(listing)
    firsts = np.cumsum(shards.rows) - shards.rows
    found: dict[str, int] = {}
    for i, key in enumerate(listing.keys if wanted else ()):
        begin = 0 if shards.offsets is None else int(shards.offsets[i])
        for name, place in wanted.get(key, ()):  # a file may be listed again with another part of it
            if begin <= place < begin + int(shards.rows[i]):
                found[name] = int(firsts[i]) + place - begin
    return found


def without_records(manifest: ShardedManifest, names: Iterable[str]) -> ShardedManifest:
    """Returns the manifest without some records, which are in no split then; all others are where they were."""
    numbers = record_numbers(manifest.listing, names)
    stays: Array = np.ones(manifest.total, bool)
    stays[[*numbers.values()]] = False
    inside: Array = np.zeros(manifest.total, bool)
    for split in manifest.splits:
        inside[manifest.numbers(split)] = True
    members = {split: with_any(own.among(stays)) for split, own in manifest.members.items()}
    return replace(manifest, members=members, left_out=tuple(sorted(name for name, number in numbers.items() if inside[number])))
