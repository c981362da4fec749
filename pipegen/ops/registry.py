"""Finds the ops: every module of `ops/sources` and `ops/transforms` is imported, and its op class registered by name.

Discovery is an import side effect on purpose: adding an op is adding a file.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TypeVar

from pipegen.errors import InternalError
from pipegen.ops.base import Transform
from pipegen.ops.sources.base import Source

_T = TypeVar("_T")


def _discover(package: str, base: type[_T]) -> dict[str, type[_T]]:
    found: dict[str, type[_T]] = {}
    path = importlib.import_module(package).__path__
    for info in sorted(pkgutil.iter_modules(path), key=lambda m: m.name):
        module = importlib.import_module(f"{package}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__ and "op" in vars(value):
                name: str = value.op  # type: ignore[attr-defined]
                if name in found:
                    raise InternalError(f"two ops are named {name!r}: {found[name].__module__} and {value.__module__}")
                found[name] = value
    return found


@cache
def transforms() -> dict[str, type[Transform]]:
    """Every step by its name in a spec, sorted."""
    return dict(sorted(_discover("pipegen.ops.transforms", Transform).items()))


@cache
def sources() -> dict[str, type[Source]]:
    """Every source by its name in a spec, sorted."""
    return dict(sorted(_discover("pipegen.ops.sources", Source).items()))


@cache
def default_decoder() -> Transform:
    """The step that decodes where a spec does not write one, with its defaults."""
    from pipegen.types import FeatureType

    encoded = FeatureType("encoded", "string", ())
    for step in transforms().values():
        if not step.random and all(not f.is_required() for f in step.model_fields.values()):
            instance = step()
            if instance.traits(encoded).decodes:
                return instance
    raise InternalError("no step decodes")
