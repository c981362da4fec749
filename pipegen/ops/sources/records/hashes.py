"""Compares shards with what MosaicML Streaming wrote down of them in `index.json`: which there are, their sizes and their hashes."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.mounts import Opened, content_of, mounted
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipegen.ops.sources.records.paths import Found

_AT_ONCE = 1 << 22
_LARGEST = 1 << 28


INDEX = "index.json"


@dataclass(frozen=True)
class ListedShard:
    """A shard as an index lists it.

    Attributes:
        name: Its path, relative to the index.
        size: Its bytes; `None` where the index does not say.
        samples: Its records; likewise.
        hashes: Its hashes by algorithm, in hexadecimal.
        packed: Whether it was compressed when it was written.
    """

    name: str
    size: int | None
    samples: int | None
    hashes: Mapping[str, str]
    packed: bool


def read_index(path: str) -> list[ListedShard] | None:
    """Reads which shards an `index.json` lists; `None` where there is no such file.

    Raises:
        ValueError: Where it is damaged.
    """
    try:
        content = content_of(path, _LARGEST)
    except OSError:
        if mounted(path) is not None or not os.path.lexists(path):
            return None
        raise ValueError("it cannot be read") from None
    try:
        return [_listed(shard) for shard in json.loads(content)["shards"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("it is not whole, or not an index of shards") from None


def _listed(shard: Mapping[str, Any]) -> ListedShard:
    raw = shard["raw_data"]
    size, samples = raw.get("bytes"), shard.get("samples")
    hashes = {str(name): str(value) for name, value in (raw.get("hashes") or {}).items()}
    packed = shard.get("zip_data") is not None
    return ListedShard(str(raw["basename"]), None if size is None else int(size), None if samples is None else int(samples), hashes, packed)


def listed_hashes(path: str) -> dict[str, Mapping[str, str]]:
    """Reads the hashes of shards by their names. None where there is no such list."""
    try:
        return {shard.name: shard.hashes for shard in read_index(path) or ()}
    except ValueError:
        return {}


def check_index(folder: str, shards: Sequence[Found], rows: Sequence[int]) -> Iterator[Note]:
    """Compares the shards of a folder with its `index.json`.

    Args:
        folder: The folder.
        shards: Those of its shards that are read.
        rows: The records of each.

    Yields:
        `PG430` notes for an index that is damaged and for shards that are not as it lists them, a `PG411` note for shards beside it.

    Raises:
        OpError: `PG401` where it lists shards that are not there, and the folder as a whole is read.
    """
    path = os.path.join(folder, INDEX)
    try:
        listed = read_index(path)
    except ValueError as error:
        help_ = "copy it again; where it is lost, remove it: shards describe themselves, and then nothing tells whether one is missing"
        yield Note("PG430", f"{path!r} is damaged: {error}", help_, "path", "error")
        return
    if listed is None:
        return
    own = {os.path.relpath(shard.path, folder): (shard, count) for shard, count in zip(shards, rows, strict=True)}
    known = {one.name: one for one in listed}
    missing = [name for name in known if name not in own and not os.path.exists(os.path.join(folder, name))]
    if missing and not all(shard.named for shard in shards):
        packed = any(known[name].packed for name in missing)
        verb = "is" if len(missing) == 1 else "are"
        message = f"{len(missing):,} of {len(listed):,} shards that {path!r} lists {verb} not there: {quoted(missing)}"
        others = "to read only the others, list them in `path`"
        unpack = "they were written with `compression`: unpack them, or write them without"
        raise OpError("PG401", message, field="path", help=(unpack if packed else "copy or download what is missing", others))
    for name, (shard, count) in own.items():
        if name in known:
            size, samples = known[name].size, known[name].samples
            if size is not None and size != shard.size:
                yield _differs(shard, f"it has {shard.size:,} bytes, and {path!r} says {size:,}")
            elif samples is not None and samples != count:
                yield _differs(shard, f"it has {count:,} records, and {path!r} says {samples:,}")
    beside = sorted(name for name in own if name not in known)
    if beside:
        verb = "is" if len(beside) == 1 else "are"
        message = f"{len(beside):,} of {len(own):,} shards {verb} read, and {path!r} does not list them: {quoted(beside)}"
        yield Note("PG411", message, "remove what an earlier run left, or write the index again", "path", "warning")


def _differs(shard: Found, what: str) -> Note:
    return Note("PG430", f"{shard.path!r} is damaged: {what}", "copy or write the file again", "path", "error")


def wrong_hashes(path: str, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Reads a file once, and yields it with what is wrong where a hash is another; algorithms that nothing here computes are passed over.

    Raises:
        OSError: When it cannot be read.
    """
    running = {name: made for name in wanted if (made := _begun(name)) is not None}
    if not running:
        return
    with Opened(path) as stream:
        while block := stream.read(_AT_ONCE):
            for one in running.values():
                one.update(block)
    for name, one in running.items():
        if one.hexdigest() != wanted[name].lower():
            yield path, f"its {name} is {one.hexdigest()}, and `index.json` has {wanted[name]}"
            return


def _begun(name: str) -> Any:
    """An algorithm of the standard library, or of `xxhash` where that is installed."""
    if name in hashlib.algorithms_available and not name.startswith("shake"):
        return hashlib.new(name, usedforsecurity=False)
    if name.startswith("xxh") and find_spec("xxhash") is not None:
        import xxhash

        return getattr(xxhash, name, lambda: None)()
    return None
