"""Finds the addresses in a source, and says of each what is fetched when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from pipegen.ops.sources.listing.base import Source
from pipegen.spec.address import Address
from pipegen.spec.rebase import SOURCE_PATHS

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime

M = TypeVar("M", bound=BaseModel)
Change = Callable[[Address, "tuple[str, ...]", "Source | None"], str]
"""From an address, its key path and the source that it is an argument of, to what stands in its place."""


def replaced(source: M, change: Change) -> M | None:
    """Returns a source with something else in place of its addresses; `None` where there are none."""
    found: M | None = _inside(source, (), None, change)
    return found


def _inside(value: Any, path: tuple[str, ...], of: Source | None, change: Change) -> Any:
    if isinstance(value, BaseModel):
        of = value if isinstance(value, Source) else of
        given = {name: getattr(value, name) for name in type(value).model_fields}
        found = {name: new for name, old in given.items() if (new := _inside(old, (*path, name), of, change)) is not None}
        return value.model_copy(update=found) if found else None
    if isinstance(value, Mapping):
        changed = {key: new for key, old in value.items() if (new := _inside(old, (*path, str(key)), of, change)) is not None}
        return {**value, **changed} if changed else None
    if isinstance(value, (list, tuple)):
        items = [_inside(old, (*path, str(i)), of, change) for i, old in enumerate(value)]
        if all(item is None for item in items):
            return None
        return type(value)(old if new is None else new for old, new in zip(value, items, strict=True))
    if not isinstance(value, str) or not SOURCE_PATHS & set(path[-2:]):
        return None
    address = Address.of(value)
    return None if address is None else change(address, path, of)


def fetches_blocks(source: Source, runtime: Runtime) -> bool:
    """Returns whether records of a source lie at an address, and what they need is fetched when they are read."""
    found: list[bool] = []

    def look(address: Address, path: tuple[str, ...], of: Source | None) -> str:
        found.append(fetched(of, path, address, runtime) == "blocks")
        return address.text

    replaced(source, look)
    return any(found)


def fetched(source: Source | None, path: tuple[str, ...], address: Address, runtime: Runtime) -> Literal["blocks", "whole", "none"]:
    """Says what is fetched of an address when, as `runtime.remote_cache.fetch` does; what cannot be done is done as `auto` has it.

    Args:
        source: The source.
        path: The key path of the argument.
        address: The address.
        runtime: What is wanted.
    """
    wanted = runtime.remote_cache.fetch
    if source is None or next(name for name in reversed(path) if name in SOURCE_PATHS) not in source.fetched_as_read():
        return "whole"
    in_place = source.reads_addresses()
    if wanted == "auto":
        return "none" if address.scheme == "gs" and in_place else "blocks"
    return "blocks" if wanted == "none" and not in_place else wanted
