"""Makes the relative paths of a spec absolute: each is relative to the file that it stands in. In a shared base there is nothing that a
path could be relative to: the folder of a package or of a lock holds no data."""

from __future__ import annotations

import re
from typing import Any

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
"""Arguments of sources that are paths of data."""
STEP_PATHS = frozenset({"references"})
"""Arguments of steps that are paths of files beside the spec."""
ADDRESS = "url"
"""The argument of sources that is the address of a database; one of SQLite has a path, which may be relative."""
PLACES = SOURCE_PATHS | {"snapshot", ADDRESS}
"""Arguments of sources that say where something lies, and not what it is."""
_SQLITE = re.compile(r"(?P<before>sqlite(?:\+\w+)?:///)(?P<path>[^/?][^?]*)")


def make_absolute(spec: dict[str, Any], place: Place) -> None:
    """Changes the paths in place, and reports the relative ones of shared bases."""
    for *parents, last in PATHS:
        at: Any = spec
        for key in parents:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict) and last in at:
            at[last] = _absolute(at[last], (*parents, last), place)
    if isinstance(spec.get("source"), dict):
        _sources(spec["source"], ("source",), place)
    _steps(spec.get("transforms"), ("transforms",), place)
    _steps(spec.get("views"), ("views",), place)


def _steps(node: Any, path: KeyPath, place: Place) -> None:
    """Does it with what steps take from files, wherever they stand: in a list, in edits of a base, in branches, in other steps."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if key in STEP_PATHS and isinstance(value, str):
            node[key] = _absolute(value, (*path, key), place)
        else:
            _steps(value, (*path, key), place)


def _sources(node: dict[str, Any], path: KeyPath, place: Place) -> None:
    for key, value in node.items():
        at = (*path, key)
        if isinstance(value, dict) and key == "splits" and path[:-1] == ("source", "mix", "parts"):
            if "exclude" in value:
                value["exclude"] = _absolute(value["exclude"], (*at, "exclude"), place)
        elif isinstance(value, dict):
            _sources(value, at, place)
        elif key in PLACES - {ADDRESS} and isinstance(value, list):
            node[key] = [_absolute(v, (*at, i), place) for i, v in enumerate(value)]
        elif key in PLACES - {ADDRESS}:
            node[key] = _absolute(value, at, place)
        elif key == ADDRESS and isinstance(value, str) and (file := _SQLITE.match(value)):
            node[key] = f"{file['before']}{_absolute(file['path'], at, place)}{value[file.end() :]}"


def _absolute(value: Any, path: KeyPath, place: Place) -> Any:
    if not isinstance(value, str) or not value:
        return value
    place.at(*path).add(homeless(value, path, place.locate))
    return absolute(value, place.locate.folder(path))
