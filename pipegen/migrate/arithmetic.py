"""Evaluates plain functions and operators on known values, such as `1. / 255`, and joins paths of known parts."""

from __future__ import annotations

import ast
import math
import operator
import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pipegen.migrate.known import certain, derived, unknown
from pipegen.migrate.values import Flow, Generator, Local, Map, Seq, Unknown, Value, plain

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
    if type(op) not in _OPERATORS or not _small(op, a, b):
        return Unknown("it is computed at run time", line)
    try:
        result = _OPERATORS[type(op)](a, b)
    except (ArithmeticError, TypeError, ValueError, KeyError, IndexError):
        return Unknown("the expression has no value", line)
    if isinstance(result, (int, float)) or (isinstance(result, str) and len(result) <= _LONGEST):
        return derived(result, left, right)
    return Unknown("it is computed at run time", line)


def _small(op: ast.operator, a: object, b: object) -> bool:
    """True if the result cannot be huge."""
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
