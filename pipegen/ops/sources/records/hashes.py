"""Compares shards with the names, sizes and hashes in MosaicML Streaming's `index.json`."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.mounts import Opened, content_of, mounted
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import is_are, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipegen.ops.sources.records.paths import Found

_AT_ONCE = 1 << 22
_LARGEST = 1 << 28


INDEX = "index.json"


@dataclass(frozen=True)
class ListedShard:
    """A shard as listed in an index.

    Attributes:
        name: Its path, relative to the index.
        size: Its bytes, if listed.
        samples: Its records, if listed.
        hashes: Its hashes by algorithm, in hexadecimal.
        packed: Whether it was written compressed.
    """

    name: str
    size: int | None
    samples: int | None
    hashes: Mapping[str, str]
    packed: bool


def read_index(path: str) -> list[ListedShard] | None:
    """Reads the shards that an `index.json` lists; `None` without one, `ValueError` if it is damaged."""
    try:
        content = content_of(path, _LARGEST)
    except OSError:
        if mounted(path) is not None or not os.path.lexists(path):
            return None
        raise ValueError("it cannot be read") from None
    try:
        return [_listed(shard) for shard in json.loads(content)["shards"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it is incomplete, or not an index of shards") from None


def _listed(shard: Mapping[str, Any]) -> ListedShard:
    raw = shard["raw_data"]
    size, samples = raw.get("bytes"), shard.get("samples")
    hashes = {str(name): str(value) for name, value in (raw.get("hashes") or {}).items()}
    packed = shard.get("zip_data") is not None
    return ListedShard(str(raw["basename"]), None if size is None else int(size), None if samples is None else int(samples), hashes, packed)


def listed_hashes(path: str) -> dict[str, Mapping[str, str]]:
    """Reads the listed hashes of shards by name, if any."""
    try:
        return {shard.name: shard.hashes for shard in read_index(path) or ()}
    except ValueError:
        return {}


def check_index(folder: str, shards: Sequence[Found], rows: Sequence[int]) -> Iterator[Note]:
    """Compares the shards of a folder with its `index.json`.

    Args:
        folder: The folder.
        shards: Its shards that are read.
        rows: The number of records of each.

    Yields:
        `PG430` notes for a damaged index and for shards that differ from it, a `PG411` note for unlisted shards.

    Raises:
        OpError: `PG401` if listed shards are missing and the whole folder is read.
    """
    path = os.path.join(folder, INDEX)
    try:
        listed = read_index(path)
    except ValueError as error:
        help_ = "copy it again, or remove it if it is lost; missing shards are not noticed without it"
        yield Note("PG430", f"{path!r} is damaged: {error}", help_, "path", "error")
        return
    if listed is None:
        return
    own = {os.path.relpath(shard.path, folder): (shard, count) for shard, count in zip(shards, rows, strict=True)}
    known = {one.name: one for one in listed}
    missing = [name for name in known if name not in own and not os.path.exists(os.path.join(folder, name))]
    if missing and not all(shard.named for shard in shards):
        packed = any(known[name].packed for name in missing)
        message = f"{len(missing):,} of {len(listed):,} shards listed in {path!r} {is_are(len(missing))} missing: {quoted(missing)}"
        others = "or list the others in `path`"
        unpack = "they were written with `compression`; unpack them, or write them uncompressed"
        raise OpError("PG401", message, field="path", help=(unpack if packed else "copy or download the missing ones", others))
    for name, (shard, count) in own.items():
        if name in known:
            size, samples = known[name].size, known[name].samples
            if size is not None and size != shard.size:
                yield _differs(shard, f"it has {shard.size:,} bytes, but {path!r} lists {size:,}")
            elif samples is not None and samples != count:
                yield _differs(shard, f"it has {count:,} records, but {path!r} lists {samples:,}")
    beside = sorted(name for name in own if name not in known)
    if beside:
        message = f"{len(beside):,} of {len(own):,} shards {is_are(len(beside))} read but not listed in {path!r}: {quoted(beside)}"
        yield Note("PG411", message, "remove shards of an earlier run, or write the index again", "path", "warning")


def _differs(shard: Found, what: str) -> Note:
    return Note("PG430", f"{shard.path!r} is damaged: {what}", "copy or write the file again", "path", "error")


def wrong_hashes(path: str, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Hashes a file once, and yields it with its problem if a hash differs; unknown algorithms are ignored."""
    running = {name: made for name in wanted if (made := _begun(name)) is not None}
    if not running:
        return
    with Opened(path) as stream:
        while block := stream.read(_AT_ONCE):
            for one in running.values():
                one.update(block)
    for name, one in running.items():
        if one.hexdigest() != wanted[name].lower():
            yield path, f"its {name} is {one.hexdigest()}, but `index.json` lists {wanted[name]}"
            return


def _begun(name: str) -> Any:
    """Returns a hash of the standard library, or of `xxhash` if installed."""
    if name in hashlib.algorithms_available and not name.startswith("shake"):
        return hashlib.new(name, usedforsecurity=False)
    if name.startswith("xxh") and find_spec("xxhash") is not None:
        import xxhash

        return getattr(xxhash, name, lambda: None)()
    return None
