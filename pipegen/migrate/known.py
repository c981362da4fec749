"""What is known of values, and what outside the code may override; operators and functions on them; the interface of the evaluator."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeGuard

from pipegen.migrate.nodes import Position
from pipegen.migrate.scopes import Assignment, Node
from pipegen.migrate.values import Const, Dotted, Flow, Frame, Generator, Instance, Local, Map, Seq, Setting, Table, Unknown, Value, plain


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


_LONGEST = 10_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


class KnownPath(str):
    """A text that is a `pathlib.Path` in the code."""

    __slots__ = ()


def combine(op: ast.operator, left: Value, right: Value, line: int) -> Value:
    """Computes `left op right` of known values."""
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(op, ast.Add) and left.is_list == right.is_list:
        return Seq((*left.items, *right.items), left.is_list)
    if isinstance(left, Map) and isinstance(right, Map) and isinstance(op, ast.BitOr):
        return Map({**left.items, **right.items})
    a, b = plain(left), plain(right)
    for side in (a, b):
        if isinstance(side, Unknown):
            return unknown(side, "it is computed at run time", line)
    if isinstance(op, ast.Div) and isinstance(a, KnownPath) and isinstance(b, str):
        return derived(KnownPath(posixpath.join(a, b)), left, right)
    if type(op) not in _OPERATORS or not _is_small(op, a, b):
        return Unknown("it is computed at run time", line)
    try:
        result = _OPERATORS[type(op)](a, b)
    except (ArithmeticError, TypeError, ValueError, KeyError, IndexError):
        return Unknown("the expression has no value", line)
    if isinstance(result, (int, float)) or (isinstance(result, str) and len(result) <= _LONGEST):
        return derived(result, left, right)
    return Unknown("it is computed at run time", line)


def _is_small(op: ast.operator, a: object, b: object) -> bool:
    if isinstance(op, ast.Pow):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e6 and abs(b) <= 64
    if isinstance(op, ast.Mod) and isinstance(a, str):
        return len(a) < _LONGEST and "*" not in a and not any(c.isdigit() for c in a) and not isinstance(b, float)
    if isinstance(op, ast.Add) and isinstance(a, str) and isinstance(b, str):
        return True
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e300 and abs(b) < 1e300


def compare(op: ast.cmpop, left: Value, right: Value, line: int) -> Value:
    """Compares by `==` or `!=`, or by `is` if one side is `None`."""
    a, b = plain(left), plain(right)
    same = isinstance(op, (ast.Eq, ast.Is))
    by_name = isinstance(op, (ast.Is, ast.IsNot))
    if not by_name and not isinstance(op, (ast.Eq, ast.NotEq)):
        return Unknown("it is computed at run time", line)
    if by_name and (a is None or b is None):
        other = left if b is None else right
        if not isinstance(other, Unknown):
            return derived((a is None and b is None) == same, left, right)
    if by_name or isinstance(a, Unknown) or isinstance(b, Unknown):
        return Unknown("it is compared at run time", line)
    return derived((a == b) == same, left, right)


def either(op: ast.boolop, sides: list[Value], line: int) -> Value:
    """Evaluates `a or b`, `a and b`: the deciding side, if it is certain."""
    for side in sides[:-1]:
        truth = truth_of(side)
        if truth is None:
            return Unknown("it is decided at run time", line)
        if truth == isinstance(op, ast.Or):
            return side
    return sides[-1]


def truth_of(value: Value) -> bool | None:
    """Truth of a value; `None` if uncertain."""
    if isinstance(value, (Generator, Flow, Local)):
        return True
    known = certain(value)
    return None if isinstance(known, Unknown) else bool(known)


def negate(op: ast.unaryop, value: Value, line: int) -> Value:
    """Evaluates `-x`, `+x`, `not x` of a known value."""
    a = plain(value)
    if isinstance(a, Unknown):
        return unknown(a, "it is computed at run time", line)
    if isinstance(op, ast.Not):
        return derived(not a, value)
    if isinstance(a, (int, float)) and isinstance(op, (ast.USub, ast.UAdd)):
        return derived(-a if isinstance(op, ast.USub) else a, value)
    return Unknown("it is computed at run time", line)


_JOINS = ("os.path.join", "posixpath.join")
_SEQUENCES = ("builtins.tuple", "builtins.list")
_PLAIN: dict[str, Callable[[Any], Any]] = {
    **{f"builtins.{f.__name__}": f for f in (int, float, bool, abs, len)},
    **dict.fromkeys(("math.ceil", "numpy.ceil"), math.ceil),
    **dict.fromkeys(("math.floor", "numpy.floor"), math.floor),
}
_TEXTS = ("os.path.normpath", "os.path.expanduser", "builtins.str")


def plain_call(name: str, values: list[Value], node: ast.Call) -> Value:
    """Evaluates a call of a plain library function on known values."""
    if name in ("copy.copy", "copy.deepcopy") and len(values) == len(node.args) == 1 and isinstance(values[0], (Map, Seq)):
        return values[0]
    unknown = Unknown(f"it is the result of `{name.removeprefix('builtins.')}`", node.lineno)
    is_path = name.startswith("pathlib.") and name.endswith("Path")
    if not is_path and name not in (*_JOINS, *_SEQUENCES, *_PLAIN, *_TEXTS):
        return unknown
    given = [plain(v) for v in values]
    bad = next((v for v in given if isinstance(v, Unknown)), None)
    if bad is not None or node.keywords or len(values) != len(node.args):
        return bad if bad is not None and bad.line else unknown
    texts, first = all(isinstance(g, str) for g in given), given[0] if len(given) == 1 else None
    if is_path and texts:
        return derived(KnownPath(posixpath.join(*given) if given else "."), *values)
    if name in _JOINS and texts and given:
        return derived(posixpath.join(*given), *values)
    if name in _TEXTS and isinstance(first, (str, int)):
        return derived(str(first), *values)
    if name in _SEQUENCES and len(values) == 1 and isinstance(values[0], Seq):
        return Seq(values[0].items, name.endswith("list"))
    try:
        return derived(_PLAIN[name](first), *values) if name in _PLAIN and len(given) == 1 else unknown
    except (TypeError, ValueError, ArithmeticError):
        return Unknown("the expression has no value", node.lineno)


def plain_method(owner: Value, name: str, values: list[Value], node: ast.Call) -> Value:
    """Evaluates a method of a known text or path."""
    text = plain(owner)
    given = [plain(v) for v in values]
    if isinstance(text, str) and name == "format" and not node.keywords and len(values) == len(node.args):
        plainly = "{:" not in text and "!" not in text and "{0:" not in text
        with suppress(ValueError, IndexError, KeyError, AttributeError):
            if plainly and all(isinstance(g, (str, int)) for g in given):
                return derived(text.format(*given), owner, *values)
    if isinstance(text, KnownPath) and name == "joinpath" and all(isinstance(g, str) for g in given) and len(values) == len(node.args):
        return derived(KnownPath(posixpath.join(text, *given)), owner, *values)
    return unknown(owner, f"it is the result of `.{name}(…)`", node.lineno)


def text_of(node: ast.JoinedStr, values: list[Value]) -> Value:
    """Evaluates an f-string from the values of its parts."""
    parts: list[str] = []
    for piece, value in zip(node.values, values, strict=True):
        inner = plain(value)
        if isinstance(inner, Unknown):
            return unknown(inner, "a part of the text is known only at run time", node.lineno)
        form = isinstance(piece, ast.FormattedValue) and (piece.format_spec is not None or piece.conversion != -1)
        if form or not isinstance(inner, (str, int)):
            return Unknown("a part of the text is formatted", node.lineno)
        parts.append(str(inner))
    return derived("".join(parts), *values)
