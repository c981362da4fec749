"""Finds what a name is that several statements bind, or whose object they change."""

from __future__ import annotations

import ast
from dataclasses import replace

from pipegen.migrate.scopes import Binding
from pipegen.migrate.values import Const, Dotted, Flow, Generator, Local, Parser, Table, Unknown, Value, Zipped

_ROOTS = ("keras", "tensorflow", "tf_keras", "keras_preprocessing", "tensorflow_core")
_UNCHANGING = (Unknown, Const, Dotted, Generator, Flow, Local, Parser, Zipped)


def is_keras(name: str) -> bool:
    """Returns whether a full name belongs to Keras in any of its packages."""
    return name.split(".")[0] in _ROOTS


def imported(name: str, imports: list[Binding]) -> Value:
    """Returns what a name is that several statements import, such as those of `try` and `except ImportError`."""
    of_keras = [b for b in imports if is_keras(b.dotted)]
    if not of_keras:
        return Dotted(imports[-1].dotted)
    last = of_keras[-1] if all(b.straight for b in imports) else of_keras[0]
    if any(b.dotted.split(".")[-2:] != last.dotted.split(".")[-2:] for b in of_keras) and not all(b.straight for b in imports):
        return Unknown(f"`{name}` is imported from several modules", last.after[0])
    return Dotted(last.dotted)


def changed(name: str, value: Value, changes: list[Binding]) -> Value:
    """A value after it was changed in place."""
    a_class = isinstance(value, Local) and isinstance(value.node, ast.ClassDef)
    if not changes or (isinstance(value, _UNCHANGING) and not a_class):
        return value
    if isinstance(value, Table) and all(c.column is not None for c in changes):
        columns = {c.column or "": c.line or c.after[0] for c in changes if not _to_text(c.value)}
        return replace(value, changed={**value.changed, **columns})
    return Unknown(f"`{name}` is changed in place", changes[0].line or changes[0].after[0])


def _to_text(value: ast.expr | None) -> bool:
    """Returns whether a new column is an old one as text, which changes no name."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    first = value.args[0] if value.args else None
    return isinstance(first, ast.Name) and first.id == "str" and value.func.attr in ("astype", "map", "apply")
