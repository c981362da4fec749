"""Finds the ops: each file of `ops/sources`, `ops/transforms` and `ops/datatests` holds the op of its name; folders there hold none.

Discovery is an import side effect on purpose: adding an op is adding a file. A file is imported when its op is
first looked up, since a spec uses a few of them and `pipegen validate` should not wait for the rest.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from typing import Any, TypeVar

from pydantic import ValidationError

from pipegen.errors import InternalError
from pipegen.ops.base import Transform
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.testing.base import DataTest

_T = TypeVar("_T", Transform, Source, DataTest)
_DECODER = "decode"


def _modules(package: str) -> list[str]:
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return sorted(info.name for info in found if not info.ispkg)


def _ops_in(module: str, base: type[_T]) -> dict[str, type[_T]]:
    """The ops that a module defines, by name."""
    values = vars(importlib.import_module(module)).values()
    own = [v for v in values if isinstance(v, type) and issubclass(v, base) and v.__module__ == module and "op" in vars(v)]
    return {v.op: v for v in own}


class _Files(MutableMapping[str, type[_T]]):
    """The ops of a folder by name; looking one up imports its file. One that lies elsewhere can be added.

    Args:
        package: The folder.
        base: What its ops derive from.
    """

    def __init__(self, package: str, base: type[_T]) -> None:
        self._package = package
        self._base: type[_T] = base
        self._names: dict[str, None] = dict.fromkeys(_modules(package))
        self._found: dict[str, type[_T]] = {}

    def __getitem__(self, name: str) -> type[_T]:
        if name not in self._found:
            if name not in self._names:
                raise KeyError(name)
            found = _ops_in(f"{self._package}.{name}", self._base)
            if list(found) != [name]:
                folder = self._package.removeprefix("pipegen.").replace(".", "/")
                raise InternalError(f"{folder}/{name}.py must define `{name}` and no other, and defines {sorted(found)}")
            self._found[name] = found[name]
        return self._found[name]

    def __setitem__(self, name: str, op: type[_T]) -> None:
        self._names[name], self._found[name] = None, op

    def __delitem__(self, name: str) -> None:
        del self._names[name], self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def transforms() -> Mapping[str, type[Transform]]:
    """Every step by its name in a spec, sorted."""
    return _Files("pipegen.ops.transforms", Transform)


@cache
def datatests() -> Mapping[str, type[DataTest]]:
    """Every test of data by its name in a spec, sorted."""
    return _Files("pipegen.ops.datatests", DataTest)


@cache
def sources() -> Mapping[str, type[Source]]:
    """Every source by its name in a spec, sorted."""
    return _Files("pipegen.ops.sources", Source)


def goes_bare(cls: type[Any]) -> bool:
    """Tells whether an op can go without arguments: a rule over several, such as "give `size` or `shorter_side`", counts too."""
    try:
        cls()
    except ValidationError:
        return False
    return True


@cache
def default_decoder() -> Transform:
    """The step that decodes where a spec does not write one, with its defaults."""
    return transforms()[_DECODER]()
