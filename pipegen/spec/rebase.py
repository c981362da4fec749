"""Makes the relative paths of a spec absolute: each is relative to the file that it stands in. In a shared base there is nothing that a
path could be relative to: the folder of a package or of a lock holds no data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipegen.ops.registry import sources
from pipegen.spec.bases.homeless import homeless
from pipegen.spec.locate import Place
from pipegen.spec.params import absolute
from pipegen.spec.source_map import KeyPath

PATHS: tuple[KeyPath, ...] = (
    ("errors", "exclude"),
    ("errors", "decode", "skip", "report"),
    ("runtime", "cache", "disk"),
    ("runtime", "remote_cache", "path"),
    ("splits", "exclude"),
)
"""Settings outside the source that are paths."""
SOURCE_PATHS = frozenset({"path", "root"})
"""Arguments of sources that are paths of data; a source may have others, its `places`."""
STEP_PATHS = frozenset({"references"})
"""Arguments of steps that are paths of files beside the spec."""
ADDRESS = "url"
"""The argument of sources that is the address of a database; one of SQLite has a path, which may be relative."""
SNAPSHOT = "snapshot"
"""The argument that says where the rows of a database are kept."""
PLACES = SOURCE_PATHS | {SNAPSHOT, ADDRESS}
"""Arguments of sources that say where something lies, and not what it is."""
_PARTS: KeyPath = ("source", "mix", "parts")
_SQLITE = re.compile(r"(?P<before>sqlite(?:\+\w+)?:///)(?P<path>[^/?][^?]*)")


def own_places(node: Mapping[str, Any], key: str) -> frozenset[str]:
    """Returns what the arguments under a key say of places besides `PLACES`, where the key is the name of a source."""
    return sources()[key].places if len(node) == 1 and key in sources() else frozenset()


def places(node: Any, at: KeyPath, own: frozenset[str] = frozenset()) -> Iterator[tuple[dict[str, Any], str, KeyPath]]:
    """Yields the arguments of a source, as plain values, that say where something lies: the map that holds each, its key, its key path."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            if not is_part_splits((*at, key)):
                yield from places(value, (*at, key), own_places(node, key))
        elif key in PLACES or key in own:
            yield node, key, (*at, key)


def is_part_splits(path: KeyPath) -> bool:
    """Returns whether a key path leads to the `splits` of a part of a mix, where a `path` is a regular expression."""
    return path[-1] == "splits" and path[:-2] == _PARTS


def make_absolute(spec: dict[str, Any], place: Place) -> None:
    """Changes the paths in place, and reports the relative ones of shared bases."""
    for *parents, last in settings(spec):
        at: Any = spec
        for key in parents:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict) and last in at:
            at[last] = _absolute(at[last], (*parents, last), place)
    for node, key, path in [*places(spec.get("source"), ("source",))]:
        value = node[key]
        if key == ADDRESS:
            if isinstance(value, str) and (file := _SQLITE.match(value)):
                node[key] = f"{file['before']}{_absolute(file['path'], path, place)}{value[file.end() :]}"
        elif isinstance(value, list):
            node[key] = [_absolute(v, (*path, i), place) for i, v in enumerate(value)]
        else:
            node[key] = _absolute(value, path, place)
    _steps(spec.get("transforms"), ("transforms",), place)
    _steps(spec.get("views"), ("views",), place)
    for name, part in _parts(spec).items():
        _steps(part.get("transforms") if isinstance(part, dict) else None, (*_PARTS, name, "transforms"), place)


def _steps(node: Any, path: KeyPath, place: Place) -> None:
    """Does it with what steps take from files, wherever they stand: in a list, in edits of a base, in branches, in other steps."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key in STEP_PATHS and isinstance(value, str):
            node[key] = _absolute(value, (*path, key), place)
        else:
            _steps(value, (*path, key), place)


def settings(spec: dict[str, Any]) -> Iterator[KeyPath]:
    """Yields the key paths of the settings that are paths: `PATHS`, and what each part of a mix may exclude."""
    yield from PATHS
    yield from ((*_PARTS, name, "splits", "exclude") for name in _parts(spec))


def _parts(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts of a mix by name, as they are written; none of any other source."""
    at: Any = spec
    for key in _PARTS:
        at = at.get(key) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else {}


def _absolute(value: Any, path: KeyPath, place: Place) -> Any:
    if not isinstance(value, str) or not value:
        return value
    place.at(*path).add(homeless(value, path, place.locate))
    return absolute(value, place.locate.folder(path))
