"""Look-up of kinds: the file `ops/kinds/NAME.py` holds the kind `NAME`, and perhaps others."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from pipegen.errors import InternalError
from pipegen.ops.kinds.base import FeatureKind, Geometry
from pipegen.types import FeatureType

_PACKAGE = "pipegen.ops.kinds"
_OTHERS = frozenset({"base", "ragged", "registry"})


class Kinded(Protocol):
    """An object with the name of a kind: the type of a feature, or its description in a spec."""

    @property
    def kind(self) -> str: ...


@cache
def kind_named(name: str) -> FeatureKind:
    """Returns a kind by its name: from the file of that name, else from the file that has it beside others."""
    found = _in_file(name) if find_spec(f"{_PACKAGE}.{name}") is not None else {}
    found = found if name in found else {kind.name: kind for kind in kinds()}
    if name not in found:
        raise InternalError(f"no file in ops/kinds has the kind `{name}`")
    return found[name]


@cache
def _in_file(stem: str) -> dict[str, FeatureKind]:
    """Returns the kinds of a file."""
    module = importlib.import_module(f"{_PACKAGE}.{stem}")
    found = (v for v in vars(module).values() if isinstance(v, type) and issubclass(v, FeatureKind) and v.__module__ == module.__name__)
    return {kind.name: kind() for kind in found}


def kind_of(x: Kinded) -> FeatureKind:
    """Returns the kind of a feature, or the kind for each item if it is `with` another feature."""
    kind = kind_named(x.kind)
    return kind_named(kind.each) if kind.each and getattr(x, "home", None) is not None else kind


def geometry_of(kind: str) -> Geometry:
    """Returns what moves the items of a kind that follows its image."""
    found = kind_named(kind).geometry
    if found is None:
        raise InternalError(f"the kind `{kind}` follows no image")
    return found


@cache
def kinds() -> tuple[FeatureKind, ...]:
    """Lists all kinds, those with pixels first."""
    package = importlib.import_module(_PACKAGE)
    stems = [info.name for info in pkgutil.iter_modules(package.__path__) if info.name not in _OTHERS]
    return tuple(sorted((kind for stem in stems for kind in _in_file(stem).values()), key=lambda kind: (not kind.pictured, kind.name)))


def named_kinds() -> tuple[FeatureKind, ...]:
    """Lists the kinds that a spec can name; kinds for each item are named by that of the whole, others come from the pipeline."""
    of_items = {kind.each for kind in kinds()}
    return tuple(kind for kind in kinds() if kind.name not in of_items and not (kind.valid or kind.numbers_items))


def names_of(fits: Callable[[FeatureKind], bool] = bool) -> Any:
    """Returns the names of the kinds that fit, by default of all, as an annotation."""
    return Literal[tuple(kind.name for kind in named_kinds() if fits(kind))]


def held_in_memory(kind: FeatureKind) -> bool:
    """Checks that a kind can be read from arrays; others are read from a file each."""
    return type(kind).read_array is not FeatureKind.read_array


def several_labels(x: FeatureType) -> bool:
    """Checks for a label with any number of classes: 1 for each class of the example, before it is encoded."""
    return x.dtype == "uint8" and kind_of(x).labels
