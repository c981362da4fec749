"""Compares hashes of whole shards with those that MosaicML Streaming wrote down beside them."""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pipegen.mounts import Opened, content_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AT_ONCE = 1 << 22
_LARGEST = 1 << 28


def listed_hashes(path: str) -> dict[str, dict[str, str]]:
    """Reads the hashes of shards by their names: of each by the algorithm, in hexadecimal. None where there is no such list."""
    try:
        shards = [shard["raw_data"] for shard in json.loads(content_of(path, _LARGEST))["shards"]]
        return {str(shard["basename"]): {str(name): str(value) for name, value in shard["hashes"].items()} for shard in shards}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


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
