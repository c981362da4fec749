"""What is known of values: equality, certainty, and what outside the code may override them; the interface of the evaluator."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

from pipegen.migrate.nodes import Position
from pipegen.migrate.scopes import Assignment, Node
from pipegen.migrate.values import Const, Dotted, Frame, Instance, Local, Map, Seq, Setting, Table, Unknown, Value, plain


def origins_of(*values: Value | None) -> tuple[str, ...]:
    """What may override some values, each once."""
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, (Setting, Table)):
            found.update(dict.fromkeys(value.origins))
        elif isinstance(value, (Seq, Map)):
            inner = value.items if isinstance(value, Seq) else value.items.values()
            found.update(dict.fromkeys(origins_of(*inner)))
    return tuple(found)


def setting(value: Value, origin: str) -> Value:
    """A default that something outside the code may override."""
    if isinstance(value, Seq):
        return Seq(tuple(setting(item, origin) for item in value.items), value.is_list)
    return Setting(plain(value), tuple(dict.fromkeys((*origins_of(value), origin))))


def told(values: dict[str, Value], origin: str) -> dict[str, Value]:
    """The plain values, each as a default that something outside the code may override."""
    return {name: setting(v, origin) for name, v in values.items() if isinstance(plain(v), (int, float, str, list, tuple))}


def derived(value: Any, *sources: Value) -> Const:
    """A plain value computed from others; a `Setting` if one of them is."""
    origins = origins_of(*sources)
    return Setting(value, origins) if origins else Const(value)


def picked(value: Value, by: Value) -> Value | None:
    """A value chosen by another one that may be overridden; `None` if it is not a plain value."""
    if isinstance(value, Const):
        return derived(value.value, value, by)
    if isinstance(value, (Seq, Map)):
        items = value.items.values() if isinstance(value, Map) else value.items
        found = [picked(item, by) for item in items]
        known = [item for item in found if item is not None]
        if len(known) == len(found):
            return Map(dict(zip(value.items, known, strict=True))) if isinstance(value, Map) else Seq(tuple(known), value.is_list)
    return None


def unknown(value: object, reason: str, line: int) -> Unknown:
    """The value itself if it is unknown with a line; else a new unknown value for a reason."""
    return value if isinstance(value, Unknown) and value.line else Unknown(reason, line)


def reason_of(value: object) -> str:
    """Reason why a value is unknown, to follow a colon."""
    return value.reason if isinstance(value, Unknown) and value.reason else "it is computed at run time"


def is_number(value: object) -> TypeGuard[float]:
    """True for a number that is not a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def certain(value: Value | None) -> Any:
    """Python value that nothing outside the code changes; else an `Unknown`."""
    return Unknown(f"{origins_of(value)[0]} can change it") if origins_of(value) else plain(value)


def same(a: Value, b: Value) -> bool:
    """True if two values are known to be equal, whatever is set outside the code."""
    if a is b:
        return True
    left, right = plain(a), plain(b)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return isinstance(a, Dotted) and isinstance(b, Dotted) and a.name == b.name
    return type(left) is type(right) and bool(left == right) and set(origins_of(a)) == set(origins_of(b))


class Declared(Protocol):
    """Values that a program gets from outside: options, flags and environment; see `Outside`."""

    def option(self, name: str, line: int, *, fixed: bool = False) -> Value: ...

    def flag(self, name: str, line: int) -> Value: ...

    def environment(self, name: Value, default: Value, line: int) -> Value: ...


class Evaluator(Protocol):
    """Evaluates expressions of one parsed file; see `FileEvaluator`."""

    whole: frozenset[int]
    module: Frame
    calls: Counter[str]
    called: dict[int, Frame]
    objects: dict[int, list[Instance]]
    rounds: dict[tuple[int, int], list[Frame] | None]

    @property
    def assignments(self) -> Callable[[ast.ClassDef], dict[str, list[Assignment]]]: ...

    @property
    def given_below(self) -> Callable[[ast.ClassDef], frozenset[str]]: ...

    @property
    def outside(self) -> Declared: ...

    def is_assigned(self, name: str) -> bool: ...

    def frame(
        self, node: Node, parent: Frame, args: dict[str, Value], *, call: ast.AST | None = None, caller: Frame | None = None
    ) -> Frame: ...

    def inner_frame(self, node: Node, parent: Frame, args: dict[str, Value]) -> Frame: ...

    def value(self, node: ast.expr, frame: Frame) -> Value: ...

    def name(self, name: str, at: Position, frame: Frame, *, inside: bool = True) -> Value: ...

    def returned(self, function: Local, call: ast.Call, frame: Frame) -> tuple[Frame | None, Value]: ...

    def is_too_deep(self, node: ast.AST, frame: Frame) -> bool: ...
