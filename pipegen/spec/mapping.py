"""Conversion of a spec given as a Python mapping into the plain values of YAML."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Label
from pipegen.spec.compose import MAX_DEPTH
from pipegen.spec.source_map import KeyPath, Tree, format_path


def plain(value: Any, tree: Tree, out: Diagnostics, path: KeyPath = ()) -> Any:
    """Copies `value` as maps, lists and scalars; tuples become lists, paths text, array scalars numbers."""
    if len(path) > MAX_DEPTH:
        out.add(make("PG003", f"the spec is nested more than {MAX_DEPTH} levels deep", Label(None, path=format_path(path[:3]))))
        return None
    if isinstance(value, Mapping):
        result: dict[str, Any] = {}
        for key, inner in value.items():
            at = (*path, str(key))
            if not isinstance(key, str):
                tree.odd_keys[at] = f"a Python {type(key).__name__}"
            result[str(key)] = plain(inner, tree, out, at)
        return result
    if isinstance(value, (list, tuple)):
        return [plain(inner, tree, out, (*path, i)) for i, inner in enumerate(value)]
    return _scalar(value, out, path)


def _scalar(value: Any, out: Diagnostics, path: KeyPath) -> Any:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    if isinstance(value, str):
        if any("\ud800" <= c <= "\udfff" for c in value):
            message = "the text has half of a surrogate pair, which is not a character"
            out.add(make("PG001", message, Label(None, path=format_path(path))))
            return None
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    help_ = ("use maps, lists, text, numbers, booleans and `None`",)
    at = Label(None, path=format_path(path))
    out.add(make("PG104", f"`{at.path}` is a Python {type(value).__name__}, which a spec cannot hold", at, help=help_))
    return None


def endless(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    """Finds the infinities and NaNs."""
    if isinstance(value, dict):
        return [p for key, inner in value.items() for p in endless(inner, (*path, key))]
    if isinstance(value, list):
        return [p for i, inner in enumerate(value) for p in endless(inner, (*path, i))]
    return [path] if isinstance(value, float) and not math.isfinite(value) else []
