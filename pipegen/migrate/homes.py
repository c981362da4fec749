"""Where code stands: the statement that makes an iterator, and what may be moved to before it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.mutation import changed_objects, root_name
from pipegen.migrate.scopes import ALWAYS, COMPREHENSIONS, end, flattened, start
from pipegen.migrate.values import Dotted

if TYPE_CHECKING:
    from pipegen.migrate.evaluate import Evaluator
    from pipegen.migrate.values import Flow, Frame

_READING = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.expr_context,
)  # fmt: skip
"""Expressions that change nothing, whenever they are evaluated."""
_PURE = ("os.path.join", "os.path.abspath", "os.path.expanduser", "pathlib.Path", "builtins.str", "builtins.int")
_READING_ARRAYS = (*_READING, ast.Tuple, ast.List, ast.Slice, ast.UnaryOp, ast.unaryop, ast.keyword)
_PURE_OF_ARRAYS = (
    "abs", "argmax", "array", "asarray", "astype", "concatenate", "copy", "expand_dims", "flatten", "float32", "ravel", "repeat", "reshape",
    "squeeze", "stack", "to_categorical", "tolist", "transpose", "uint8", "vstack",
)  # fmt: skip
"""Methods of arrays, and functions of NumPy and Keras, that make a new array of what they are given."""


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
    return _is_there(evaluator, node, frame, home)


def array_stands(evaluator: Evaluator, node: ast.expr, flow: Flow, home: ast.stmt) -> bool:
    """Whether an array of an iterator may be read before a statement: as a part of that statement, or since it is there already."""
    in_place = flow.frame is of_function(flow.frame) and home_of(flow) is home
    if in_place and not any(isinstance(n, ast.NamedExpr) for n in ast.walk(home)):
        return True
    for n in ast.walk(node):
        if isinstance(n, ast.Call):
            if getattr(n.func, "attr", getattr(n.func, "id", "")) not in _PURE_OF_ARRAYS or _is_of_file(evaluator, n.func, flow.frame):
                return False
        elif not isinstance(n, _READING_ARRAYS):
            return False
    return _is_there(evaluator, node, flow.frame, home) and not _is_given_away(node, flow, home)


def _is_of_file(evaluator: Evaluator, function: ast.expr, frame: Frame) -> bool:
    """Whether a function called by its name alone is none that was imported."""
    return isinstance(function, ast.Name) and not isinstance(evaluator.value(function, frame), Dotted)


def _is_given_away(node: ast.expr, flow: Flow, home: ast.stmt) -> bool:
    """Whether a call as a statement of its own, such as `shuffle(x)`, has one of the names between a statement and an iterator."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    between = [n for n in ast.walk(of_function(flow.frame).scope.node) if isinstance(n, ast.Expr) and home.lineno <= n.lineno <= flow.line]
    calls = [n.value for n in between if isinstance(n.value, ast.Call) and getattr(n.value.func, "id", "") != "print"]
    return any(isinstance(n, ast.Name) and n.id in names for call in calls for n in ast.walk(call))


def _is_there(evaluator: Evaluator, node: ast.expr, frame: Frame, home: ast.stmt) -> bool:
    """Whether the names and attributes that an expression reads are the same before a statement."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    for around in _around(frame):
        bindings = [b for name in names for b in around.scope.bindings.get(name, [])]
        if (bindings and around is not of_function(frame)) or any(b.after[0] >= home.lineno for b in bindings):
            return False
    outer = of_function(frame).parent
    while outer is not None:
        if any(b.after == ALWAYS and b.kind == "other" for name in names for b in outer.scope.bindings.get(name, [])):
            return False
        outer = outer.parent
    read = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and not isinstance(evaluator.value(n, frame), Dotted)]
    return not any(_is_set_between(evaluator, n, frame, home) for n in read)


def _is_set_between(evaluator: Evaluator, read: ast.Attribute, frame: Frame, home: ast.stmt) -> bool:
    """Whether an attribute is assigned or changed, or may be by a method, from a statement on to where it is read."""
    function, root = of_function(frame).scope.node, root_name(read)
    for n in ast.walk(function):
        if not home.lineno <= getattr(n, "lineno", 0) <= read.lineno:
            continue
        if any(isinstance(part, ast.Attribute) and part.attr == read.attr for c in changed_objects(n, {}) for part in ast.walk(c)):
            return True
        if not isinstance(n, ast.Call):
            continue
        owner = n.func.value if isinstance(n.func, ast.Attribute) else None
        given = [*n.args, *(k.value for k in n.keywords), *([owner] if owner is not None else [])]
        if any(isinstance(g, ast.Name) and g.id == root for g in given) and _may_be_set(evaluator, read, frame, function):
            return True
    return False


def _may_be_set(evaluator: Evaluator, read: ast.Attribute, frame: Frame, function: ast.AST) -> bool:
    """Whether other code than a constructor, and than this function, may assign an attribute."""
    if evaluator.is_assigned(read.attr) or root_name(read) != "self" or frame.class_frame is None:
        return evaluator.is_assigned(read.attr)
    definition = frame.class_frame.scope.node
    found = evaluator.assignments(definition).get(read.attr, []) if isinstance(definition, ast.ClassDef) else []
    return not found or any(a.method is not function and a.method.name != "__init__" for a in found)


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
