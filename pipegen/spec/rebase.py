"""Makes the relative paths of a spec absolute: each is relative to the file that it stands in."""

from __future__ import annotations

from typing import Any

from pipegen.spec.locate import Locator
from pipegen.spec.params import absolute
from pipegen.spec.source_map import KeyPath

PATHS: tuple[KeyPath, ...] = (("errors", "exclude"), ("errors", "decode", "skip", "report"), ("runtime", "cache", "disk"))
"""Settings outside the source that are paths."""
SOURCE_PATHS = frozenset({"path", "root"})
"""Arguments of sources that are paths."""


def make_absolute(spec: dict[str, Any], locate: Locator) -> None:
    """Change the paths in place."""
    for *parents, last in PATHS:
        at: Any = spec
        for key in parents:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict) and last in at:
            at[last] = _absolute(at[last], (*parents, last), locate)
    if isinstance(spec.get("source"), dict):
        _sources(spec["source"], ("source",), locate)


def _sources(node: dict[str, Any], path: KeyPath, locate: Locator) -> None:
    for key, value in node.items():
        at = (*path, key)
        if isinstance(value, dict):
            _sources(value, at, locate)
        elif key in SOURCE_PATHS and isinstance(value, list):
            node[key] = [_absolute(v, (*at, i), locate) for i, v in enumerate(value)]
        elif key in SOURCE_PATHS:
            node[key] = _absolute(value, at, locate)


def _absolute(value: Any, path: KeyPath, locate: Locator) -> Any:
    return absolute(value, locate.folder(path)) if isinstance(value, str) and value else value
