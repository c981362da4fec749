"""Resolves names that several statements bind, or whose object is changed or filled step by step."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.migrate.scopes import Binding
from pipegen.migrate.signatures import is_keras
from pipegen.migrate.unrolling import rounds
from pipegen.migrate.values import Const, Dotted, Flow, Frame, Generator, Local, Map, Parser, Seq, Table, Unknown, Value, Zipped, certain

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator

_UNCHANGING = (Unknown, Const, Dotted, Generator, Flow, Local, Parser, Zipped)


def imported(name: str, imports: list[Binding]) -> Value:
    """Resolves a name that several statements import, such as in `try` and `except ImportError`."""
    of_keras = [b for b in imports if is_keras(b.dotted)]
    if not of_keras:
        return Dotted(imports[-1].dotted)
    last = of_keras[-1] if all(b.straight for b in imports) else of_keras[0]
    if any(b.dotted.split(".")[-2:] != last.dotted.split(".")[-2:] for b in of_keras) and not all(b.straight for b in imports):
        return Unknown(f"`{name}` is imported from several modules", last.after[0])
    return Dotted(last.dotted)


def changed(name: str, value: Value, changes: list[Binding]) -> Value:
    """Value of a name after changes in place."""
    a_class = isinstance(value, Local) and isinstance(value.node, ast.ClassDef)
    if not changes or (isinstance(value, _UNCHANGING) and not a_class):
        return value
    if isinstance(value, Table) and all(c.column is not None for c in changes):
        columns = {c.column or "": c.line or c.after[0] for c in changes if not _to_text(c.value)}
        return replace(value, changed={**value.changed, **columns})
    return Unknown(f"`{name}` is changed in place", changes[0].line or changes[0].after[0])


def _to_text(value: ast.expr | None) -> bool:
    """True if a new column is an old one as text, which keeps its name."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    first = value.args[0] if value.args else None
    return isinstance(first, ast.Name) and first.id == "str" and value.func.attr in ("astype", "map", "apply")


def filled(evaluator: Evaluator, value: Value, changes: list[Binding], frame: Frame) -> Map | Seq | None:
    """Applies changes in place to a dict or list, in the order of the code; `None` for other values and changes."""
    if not isinstance(value, (Map, Seq)) or not changes:
        return None
    held: Map | Seq | None = value
    for change in changes:
        frames = _frames(evaluator, change, frame)
        if not frames:
            return None
        for inner in frames:
            held = _changed(evaluator, held, change, inner) if held is not None else None
    return held


def _changed(evaluator: Evaluator, held: Map | Seq, change: Binding, frame: Frame) -> Map | Seq | None:
    """Value after one change."""
    if change.value is None:
        return None
    if change.key is not None:
        key = certain(evaluator.value(change.key, frame))
        named = isinstance(held, Map) and isinstance(key, str)
        return Map({**held.items, key: evaluator.value(change.value, frame)}) if named and isinstance(held, Map) else None
    call = change.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "append" and isinstance(held, Seq) and held.is_list and len(call.args) == 1 and not call.keywords:
        return Seq((*held.items, evaluator.value(call.args[0], frame)), is_list=True)
    if call.func.attr != "update" or not isinstance(held, Map) or any(k.arg is None for k in call.keywords):
        return None
    given = [evaluator.value(a, frame) for a in call.args]
    more = {k.arg: evaluator.value(k.value, frame) for k in call.keywords if k.arg is not None}
    known = [v.items for v in given if isinstance(v, Map)]
    return Map({**held.items, **{key: v for items in known for key, v in items.items()}, **more}) if len(known) == len(given) else None


def _frames(evaluator: Evaluator, change: Binding, frame: Frame) -> list[Frame]:
    """Frames in which a statement runs: its own, or one for each round of its loop; empty if uncertain."""
    if change.straight:
        return [frame]
    if change.conditions:
        tests = [(certain(evaluator.value(test, frame)), wanted) for test, wanted in change.conditions]
        return [frame] if all(not isinstance(test, Unknown) and bool(test) == wanted for test, wanted in tests) else []
    if change.loop is None or any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(change.loop)):
        return []
    return rounds(evaluator, change.loop, frame) or []
