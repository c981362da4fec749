"""Dicts that the code fills key by key, in a row of statements or in a loop over what is written down."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.unrolling import rounds
from pipegen.migrate.values import Frame, Map, Unknown, Value, certain

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator
    from pipegen.migrate.scopes import Binding


def filled(evaluator: Evaluator, value: Value, changes: list[Binding], frame: Frame) -> Map | None:
    """A dict after changes in place, in the order of the code; `None` for what is no dict, or changed in another way."""
    if not isinstance(value, Map) or not changes:
        return None
    items = dict(value.items)
    for change in changes:
        if change.key is None or change.value is None or len(frames := _frames(evaluator, change, frame)) == 0:
            return None
        for inner in frames:
            key = certain(evaluator.value(change.key, inner))
            if not isinstance(key, str):
                return None
            items[key] = evaluator.value(change.value, inner)
    return Map(items)


def _frames(evaluator: Evaluator, change: Binding, frame: Frame) -> list[Frame]:
    """Where a statement runs: in the frame itself, or in each round of its loop; nowhere that is certain in other cases."""
    if change.straight:
        return [frame]
    if change.conditions:
        tests = [(certain(evaluator.value(test, frame)), wanted) for test, wanted in change.conditions]
        return [frame] if all(not isinstance(test, Unknown) and bool(test) == wanted for test, wanted in tests) else []
    if change.loop is None or any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(change.loop)):
        return []
    return rounds(evaluator, change.loop, frame) or []
