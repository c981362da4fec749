"""Dicts and lists that the code fills bit by bit, in a row of statements or in a loop over what is written down."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.scopes import Binding
from pipegen.migrate.unrolling import rounds
from pipegen.migrate.values import Frame, Map, Seq, Unknown, Value, certain

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator


def filled(evaluator: Evaluator, value: Value, changes: list[Binding], frame: Frame) -> Map | Seq | None:
    """A dict or a list after changes in place, in the order of the code; `None` for others, and for other changes."""
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
    """Returns what is held after one change."""
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
    """Returns where a statement runs: in the frame itself, or in each round of its loop; nowhere that is certain in other cases."""
    if change.straight:
        return [frame]
    if change.conditions:
        tests = [(certain(evaluator.value(test, frame)), wanted) for test, wanted in change.conditions]
        return [frame] if all(not isinstance(test, Unknown) and bool(test) == wanted for test, wanted in tests) else []
    if change.loop is None or any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(change.loop)):
        return []
    return rounds(evaluator, change.loop, frame) or []
