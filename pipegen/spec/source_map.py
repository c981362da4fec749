"""The places of keys and values of a spec, in whichever file they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipegen.diagnostics.diagnostic import Span

KeyPath = tuple[str | int, ...]  # keys and list positions from the top, such as `("transforms", 2, "random_flip", "probability")`
LONGEST_KEY = 1000  # the most characters of a key; the limit of YAML is 1,024


def format_path(path: KeyPath) -> str:
    """A key path as text: `transforms[2].random_flip.probability`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


ABSENT = object()  # the placeholder of a missing value


def lookup(value: Any, path: KeyPath, default: Any = None) -> Any:
    """The value at `path`, or the default if there is none."""
    try:
        for part in path:
            value = value[part]
    except (KeyError, IndexError, TypeError):
        return default
    return value


def scalars(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yields the scalars in plain values, with their paths."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from scalars(inner, (*path, key))
    else:
        yield path, value


def with_texts(value: Any, change: Callable[[str, KeyPath], Any], path: KeyPath = ()) -> Any:
    """Copies plain values, with the result of `change` in place of each text."""
    if isinstance(value, dict):
        return {key: with_texts(inner, change, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_texts(inner, change, (*path, i)) for i, inner in enumerate(value)]
    return change(value, path) if isinstance(value, str) else value


@dataclass(slots=True)
class SourceMap:
    """The spans of values by their paths (the document's is empty), and those of keys by the paths of their values."""

    values: dict[KeyPath, Span] = field(default_factory=dict)
    keys: dict[KeyPath, Span] = field(default_factory=dict)

    def known(self, path: Iterable[str | int]) -> KeyPath:
        """`path` without parts that have no place, such as a missing argument or the tags of pydantic's unions."""
        at: KeyPath = ()
        for part in path:
            if (*at, part) in self.values:
                at = (*at, part)
        return at

    def replace(self, paths: Collection[KeyPath], other: SourceMap | None = None) -> None:
        """Removes all spans at and below `paths`, and adds those of another map."""
        for spans, others in ((self.values, other.values if other else {}), (self.keys, other.keys if other else {})):
            for path in [p for p in spans if any(p[:n] in paths for n in range(len(p) + 1))]:
                del spans[path]
            spans.update(others)


@dataclass(slots=True)
class Tree:
    """A spec as plain values, with its places."""

    value: dict[str, Any]  # maps, lists and scalars; keys are always text
    spans: SourceMap = field(default_factory=SourceMap)  # the places of keys and values; empty for a spec without a file
    odd_keys: dict[KeyPath, str] = field(default_factory=dict)  # keys that YAML does not read as text, with what it reads them as
    partial: bool = False  # whether a base file could not be read, so that a missing key is not an error
