"""Where code stands: the statement that makes an iterator, and what may be moved to before it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.scopes import COMPREHENSIONS, end, flattened, start
from pipegen.migrate.values import Dotted

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator
    from pipegen.migrate.values import Flow, Frame

_READING = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.expr_context,
)  # fmt: skip
"""Expressions that change nothing, whenever they are evaluated."""
_PURE = ("os.path.join", "os.path.abspath", "os.path.expanduser", "pathlib.Path", "builtins.str", "builtins.int")


def of_function(frame: Frame) -> Frame:
    """The frame of the function or the module that a comprehension or an unrolled loop stands in."""
    while isinstance(frame.scope.node, (*COMPREHENSIONS, ast.For)) and frame.parent is not None:
        frame = frame.parent
    return frame


def home_of(flow: Flow) -> ast.stmt | None:
    """The statement that an iterator is made in, where it runs whenever its scope does; a comprehension is a part of its statement."""
    if any(isinstance(frame.scope.node, ast.For) for frame in _around(flow.frame)):
        return None
    body = getattr(of_function(flow.frame).scope.node, "body", None)
    if not isinstance(body, list):
        return None
    at = start(flow.node)
    inside = [s for s in flattened(body) if start(s) <= at <= end(s) and not isinstance(s, (ast.With, ast.AsyncWith, ast.If))]
    found = inside[-1] if inside else None
    compound = isinstance(found, (ast.For, ast.While, ast.Try, ast.FunctionDef, ast.ClassDef))
    return None if compound else found


def _around(frame: Frame) -> list[Frame]:
    """A frame and those between it and its function."""
    found = [frame]
    while frame is not of_function(frame) and frame.parent is not None:
        frame = frame.parent
        found.append(frame)
    return found


def stands(evaluator: Evaluator, node: ast.expr, frame: Frame, home: ast.stmt) -> bool:
    """Whether an expression of a frame may be moved to before a statement: it only reads what is there already."""
    for n in ast.walk(node):
        if isinstance(n, ast.Call):
            function = evaluator.value(n.func, frame)
            if n.keywords or not isinstance(function, Dotted) or function.name not in _PURE:
                return False
        elif not isinstance(n, _READING):
            return False
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    for around in _around(frame):
        bindings = [b for name in names for b in around.scope.bindings.get(name, [])]
        if (bindings and around is not of_function(frame)) or any(b.after[0] >= home.lineno for b in bindings):
            return False
    return True


def is_read_elsewhere(evaluator: Evaluator, statement: ast.stmt, frame: Frame, known: frozenset[int]) -> bool:
    """Whether other code reads the variable that a statement assigns, than the nodes with these ids."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    whole = evaluator.module.scope.node
    same: list[ast.Name | ast.Attribute]
    if isinstance(target, ast.Name):
        around = whole if target.id in frame.scope.module_names else of_function(frame).scope.node
        same = [n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == target.id]
    elif isinstance(target, ast.Attribute):
        same = [n for n in ast.walk(whole) if isinstance(n, ast.Attribute) and n.attr == target.attr]
    else:
        return True
    augmented = {id(n.target) for n in ast.walk(whole) if isinstance(n, ast.AugAssign)}
    return any(id(n) not in known and (not isinstance(n.ctx, ast.Store) or id(n) in augmented) for n in same)
