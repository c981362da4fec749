"""Mutants of a module: copies with one small mistake each, such as `<` for `<=`, a condition negated, a number one larger.

Texts are left alone: what messages say is held by golden files. So are annotations, decorators, and what only type checkers read.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Pow: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One mistake: where it is, what stood there, and what stands there now."""

    path: Path
    line: int
    column: int
    before: str
    after: str
    scope: str
    lines: frozenset[int]
    """Lines that a test has to run to notice."""
    start: int
    """Bytes before it in its module."""
    alike: int
    """The same mistakes before it in its scope."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column + 1}: `{_short(self.before)}` -> `{_short(self.after)}`"

    def text(self, right: str) -> str:
        """The whole module with the mistake, out of what it is without."""
        raw, before = right.encode(), self.before.encode()
        assert raw[self.start :].startswith(before)
        return (raw[: self.start] + self.after.encode() + raw[self.start + len(before) :]).decode()

    def rank(self, seed: int) -> str:
        """A place in the order of a sample, which changes elsewhere in the code leave as it is."""
        told = f"{seed}|{self.path}|{self.scope}|{self.before}|{self.after}|{self.alike}"
        return hashlib.sha256(told.encode()).hexdigest()


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a module; its path is relative to the root."""
    raw = (root / path).read_bytes()
    rows = [0]
    for row in raw.splitlines(keepends=True):
        rows.append(rows[-1] + len(row))
    tree = ast.parse(raw)
    found = []
    alike: Counter[tuple[str, str, str]] = Counter()
    for spot in _spots(tree, [], "", None):
        node = spot.node
        for after in _changes(node, spot.parent):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            start = rows[node.lineno - 1] + node.col_offset
            before = raw[start : rows[node.end_lineno - 1] + node.end_col_offset].decode()
            lost = "\n" * before.count("\n")  # so that the lines below keep their numbers
            written = f"({after}{lost})" if lost and isinstance(node, ast.expr) else f"{after}{lost}"
            same = (spot.scope, before, written)
            found.append(Mutant(path, node.lineno, node.col_offset, before, written, spot.scope, _lines(tree, spot), start, alike[same]))
            alike[same] += 1
    return found


@dataclass(frozen=True)
class _Spot:
    """A node that may be changed, with what is around it."""

    node: ast.expr | ast.stmt
    parent: ast.AST
    statement: ast.stmt
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    scope: str


def _spots(parent: ast.AST, within: list[ast.stmt], scope: str, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Iterator[_Spot]:
    for child in ast.iter_child_nodes(parent):
        if _left_alone(child, parent):
            continue
        around = [*within, child] if isinstance(child, ast.stmt) else within
        if isinstance(child, (ast.expr, ast.stmt)):
            yield _Spot(child, parent, around[-1], function, scope)
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _spots(child, around, f"{scope}.{child.name}", child)
        elif isinstance(child, ast.ClassDef):
            yield from _spots(child, around, f"{scope}.{child.name}", function)
        else:
            yield from _spots(child, around, scope, function)


def _left_alone(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a mistake here is none: decorators, annotations, texts, `strict=True` of a `zip`, and what only type checkers read."""
    if isinstance(node, (ast.JoinedStr, ast.arg)) or node in getattr(parent, "decorator_list", ()):
        return True
    if node in (getattr(parent, "annotation", None), getattr(parent, "returns", None)):
        return True
    if isinstance(node, ast.keyword):
        return node.arg == "strict" or isinstance(parent, ast.ClassDef)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    return isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)


def _changes(node: ast.expr | ast.stmt, parent: ast.AST) -> Iterator[str]:
    """What may stand in place of a node."""
    match node:
        case ast.Compare(ops=[operator]):
            yield _with(node, ops=[_COMPARISONS[type(operator)]()])
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                yield _with(node, ops=[*operators[:place], _COMPARISONS[type(operator)](), *operators[place + 1 :]])
        case ast.BoolOp(op=operator):
            yield f"({_with(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({ast.unparse(operand)})"
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _is_text(node.left):
            yield f"({_with(node, op=_ARITHMETIC[type(operator)]())})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int() | float() as number):
            yield repr(number + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return None"
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Break():
            yield "continue"
        case ast.Continue():
            yield "break"
        case _:
            pass
    if isinstance(node, ast.expr) and node is getattr(parent, "test", None) and isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        yield f"(not {ast.unparse(node)})"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _with(node: ast.expr, **changed: object) -> str:
    fields = {name: value for name, value in ast.iter_fields(node)}
    return ast.unparse(ast.fix_missing_locations(type(node)(**{**fields, **changed})))


def _lines(tree: ast.Module, spot: _Spot) -> frozenset[int]:
    """Lines that run where the change counts: its own, or for what runs once at import the lines that use it."""
    own = frozenset(range(spot.node.lineno, (spot.node.end_lineno or spot.node.lineno) + 1)) | {spot.statement.lineno}
    if spot.function is None:
        return _uses(tree, spot.statement)
    if spot.statement is spot.function:  # a default of an argument
        return _inside(spot.function)
    return own


def _inside(node: ast.AST) -> frozenset[int]:
    """Lines of the statements of all functions below a node."""
    return frozenset(
        line
        for function in ast.walk(node)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in function.body
        for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    )


def _uses(tree: ast.Module, statement: ast.stmt) -> frozenset[int]:
    """Lines of functions that name what a statement assigns; where none does, the lines of all functions."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    inside = _inside(tree)
    uses = {
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr in names)
    }
    return frozenset(uses & inside) or inside


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:77]}..."
