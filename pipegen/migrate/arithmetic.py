"""Simple arithmetic on known values, such as `1. / 255`, and paths put together from known parts."""

from __future__ import annotations

import ast
import operator
import posixpath
from collections.abc import Callable
from typing import Any

from pipegen.migrate.values import Flow, Generator, Local, Map, Seq, Unknown, Value, certain, derived, plain, unknown

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
    """A text that the code holds as a `pathlib.Path`."""

    __slots__ = ()


def combine(op: ast.operator, left: Value, right: Value, line: int) -> Value:
    """`left op right`, of known values."""
    if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(op, ast.Add) and left.is_list == right.is_list:
        return Seq((*left.items, *right.items), left.is_list)
    if isinstance(left, Map) and isinstance(right, Map) and isinstance(op, ast.BitOr):
        return Map({**left.items, **right.items})
    a, b = plain(left), plain(right)
    for side in (a, b):
        if isinstance(side, Unknown):
            return unknown(side, "it is computed at run time", line)
    if isinstance(op, ast.Div) and isinstance(a, KnownPath) and isinstance(b, str):
        return derived(KnownPath(join(a, b)), left, right)
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
    """Returns whether the result cannot be enormous."""
    if isinstance(op, ast.Pow):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e6 and abs(b) <= 64
    if isinstance(op, ast.Mod) and isinstance(a, str):
        return len(a) < _LONGEST and "*" not in a and not any(c.isdigit() for c in a) and not isinstance(b, float)
    if isinstance(op, ast.Add) and isinstance(a, str) and isinstance(b, str):
        return True
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a) < 1e300 and abs(b) < 1e300


def compare(op: ast.cmpop, left: Value, right: Value, line: int) -> Value:
    """`left == right`, `left != right`, and the same by `is` where one side is `None`."""
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
    """`a or b`, `a and b`: the side that decides, where that is certain."""
    for side in sides[:-1]:
        truth = truth_of(side)
        if truth is None:
            return Unknown("it is decided at run time", line)
        if truth == isinstance(op, ast.Or):
            return side
    return sides[-1]


def truth_of(value: Value) -> bool | None:
    """Returns whether a value counts as true; `None` where that is not certain."""
    if isinstance(value, (Generator, Flow, Local)):
        return True
    known = certain(value)
    return None if isinstance(known, Unknown) else bool(known)


def negate(op: ast.unaryop, value: Value, line: int) -> Value:
    """`-x`, `+x`, `not x` of a known value."""
    a = plain(value)
    if isinstance(a, Unknown):
        return unknown(a, "it is computed at run time", line)
    if isinstance(op, ast.Not):
        return derived(not a, value)
    if isinstance(a, (int, float)) and isinstance(op, (ast.USub, ast.UAdd)):
        return derived(-a if isinstance(op, ast.USub) else a, value)
    return Unknown("it is computed at run time", line)


def join(*parts: str) -> str:
    """`os.path.join` with forward slashes, the same wherever the tool runs."""
    return posixpath.join(*parts)
