"""Places of code: the statement that makes an iterator, and expressions that can move before it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import takewhile

from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.nodes import Comprehension, Loop, begins_in, called, flattened, given_to, names_in, root_name, start
from pipegen.migrate.scopes import ALWAYS, changed_objects
from pipegen.migrate.values import Dotted, Flow, Frame

_READING = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.expr_context,
)  # fmt: skip
"""Expressions without side effects."""
_PURE = (
    "os.path.join", "os.path.abspath", "os.path.expanduser", "pathlib.Path", "builtins.str", "builtins.int", "builtins.tuple",
    "builtins.float",
)  # fmt: skip
_READING_ARRAYS = (*_READING, ast.Tuple, ast.List, ast.Slice, ast.UnaryOp, ast.unaryop, ast.keyword)
_PURE_OF_ARRAYS = (
    "abs", "argmax", "array", "asarray", "astype", "concatenate", "copy", "expand_dims", "flatten", "float32", "ravel", "repeat", "reshape",
    "squeeze", "stack", "to_categorical", "tolist", "transpose", "uint8", "vstack",
)  # fmt: skip
"""Methods of arrays, and functions of NumPy and Keras, that return a new array."""


def of_function(frame: Frame) -> Frame:
    """Frame of the function or module around a comprehension."""
    while isinstance(frame.scope.node, Comprehension) and frame.parent is not None:
        frame = frame.parent
    return frame


def home_of(flow: Flow) -> ast.stmt | None:
    """Statement that makes an iterator, in its function or module."""
    found = _innermost(getattr(flow.frame.scope.node, "body", None), flow.node)
    return found[0] if found is not None else None


def branch_of(flow: Flow) -> list[ast.stmt] | None:
    """Block around the statement that makes an iterator, if a condition decides whether it runs."""
    found = _innermost(getattr(flow.frame.scope.node, "body", None), flow.node)
    return found[1] if found is not None and found[2] else None


def _innermost(body: object, node: ast.AST, *, perhaps: bool = False) -> tuple[ast.stmt, list[ast.stmt], bool] | None:
    """Simple statement of a node, or the loop that iterates over it; its block; and whether a condition decides if it runs."""
    statement = next((s for s in body if begins_in(node, s)), None) if isinstance(body, list) else None
    if body is None or statement is None or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match)):
        return None
    blocks = [b for name in ("body", "orelse", "finalbody") if (b := getattr(statement, name, None)) and begins_in(node, *b)]
    if blocks:
        always = isinstance(statement, Loop) and blocks[0] is statement.body
        always = always or statement is not flattened([statement])[-1]
        return _innermost(blocks[0], node, perhaps=perhaps or not always)
    iterated = isinstance(statement, ast.For) and begins_in(node, statement.iter)
    return (statement, body, perhaps) if isinstance(body, list) and (iterated or not hasattr(statement, "body")) else None


def loops_around(flow: Flow) -> list[Loop]:
    """Loops of its function around an iterator."""
    function = of_function(flow.frame).scope.node
    return [n for n in ast.walk(function) if isinstance(n, Loop) and begins_in(flow.node, *n.body)]


def up_to_function(frame: Frame) -> list[Frame]:
    """A frame and those up to its function."""
    home = of_function(frame)
    return [*takewhile(lambda f: f is not home, frame.outward), home]


def stands(evaluator: Evaluator, node: ast.expr, frame: Frame, home: ast.stmt | ast.expr) -> bool:
    """True if an expression can move before a statement: it only reads values that exist there and do not change."""

    def is_pure(call: ast.Call) -> bool:
        function = evaluator.value(call.func, frame)
        return not call.keywords and isinstance(function, Dotted) and function.name in _PURE

    return _only_reads(node, _READING, is_pure) and _is_there(evaluator, node, frame, home)


def array_stands(evaluator: Evaluator, node: ast.expr, flow: Flow, home: ast.stmt) -> bool:
    """True if an iterator's array can be read before a statement: as part of that statement, or since it exists already."""
    in_place = home_of(flow) is home
    if in_place and not any(isinstance(n, ast.NamedExpr) for n in ast.walk(home)):
        return True

    def is_pure(call: ast.Call) -> bool:
        of_file = isinstance(call.func, ast.Name) and not isinstance(evaluator.value(call.func, flow.frame), Dotted)
        return called(call) in _PURE_OF_ARRAYS and not of_file

    reads = _only_reads(node, _READING_ARRAYS, is_pure)
    return reads and _is_there(evaluator, node, flow.frame, home) and not _is_given_away(node, flow, home)


def _only_reads(node: ast.expr, kinds: tuple[type[ast.AST], ...], is_pure: Callable[[ast.Call], bool]) -> bool:
    """True if an expression has only nodes of some kinds, and calls without side effects."""
    return all(is_pure(n) if isinstance(n, ast.Call) else isinstance(n, kinds) for n in ast.walk(node))


def _is_given_away(node: ast.expr, flow: Flow, home: ast.stmt) -> bool:
    """True if one of the names is an argument of a call statement, such as `shuffle(x)`, between a statement and an iterator."""
    names = names_in(node)
    first, last = sorted((home.lineno, flow.line))
    between = [n for n in ast.walk(of_function(flow.frame).scope.node) if isinstance(n, ast.Expr) and first <= n.lineno <= last]
    calls = [n.value for n in between if isinstance(n.value, ast.Call) and getattr(n.value.func, "id", "") != "print"]
    own = {id(n) for n in ast.walk(flow.node)}
    return any(isinstance(n, ast.Name) and n.id in names and id(n) not in own for call in calls for n in ast.walk(call))


def _is_there(evaluator: Evaluator, node: ast.expr, frame: Frame, home: ast.stmt | ast.expr) -> bool:
    """True if the names and attributes of an expression have the same values before a statement that may come later."""
    names = names_in(node)
    first, last = sorted((start(home), start(node)))
    for here in up_to_function(frame):
        bindings = [b for name in names for b in here.scope.bindings.get(name, [])]
        if (bindings and here is not of_function(frame)) or any(first < b.after <= last or b.after == ALWAYS for b in bindings):
            return False
    outer = [f.scope.bindings for f in of_function(frame).outward][1:]
    if any(b.after == ALWAYS and b.kind == "other" for bindings in outer for name in names for b in bindings.get(name, [])):
        return False
    read = [n for n in ast.walk(node) if isinstance(n, ast.Attribute) and not isinstance(evaluator.value(n, frame), Dotted)]
    return not any(_is_set_between(evaluator, n, frame, home) for n in read)


def _is_set_between(evaluator: Evaluator, read: ast.Attribute, frame: Frame, home: ast.stmt | ast.expr) -> bool:
    """True if an attribute may be assigned or changed between a statement and its use, also by a method."""
    function, root = of_function(frame).scope.node, root_name(read)
    first, last = sorted((home.lineno, read.lineno))
    for n in ast.walk(function):
        if not first <= getattr(n, "lineno", 0) <= last:
            continue
        if any(isinstance(part, ast.Attribute) and part.attr == read.attr for c in changed_objects(n, {}) for part in ast.walk(c)):
            return True
        if not isinstance(n, ast.Call):
            continue
        given = [*given_to(n), *([n.func.value] if isinstance(n.func, ast.Attribute) else [])]
        if any(isinstance(g, ast.Name) and g.id == root for g in given) and _may_be_set(evaluator, read, frame, function):
            return True
    return False


def _may_be_set(evaluator: Evaluator, read: ast.Attribute, frame: Frame, function: ast.AST) -> bool:
    """True if code outside the constructor and this function may assign an attribute."""
    if evaluator.is_assigned(read.attr) or root_name(read) != "self" or frame.class_frame is None:
        return evaluator.is_assigned(read.attr)
    definition = frame.class_frame.scope.node
    found = evaluator.assignments(definition).get(read.attr, []) if isinstance(definition, ast.ClassDef) else []
    return not found or any(a.method is not function and a.method.name != "__init__" for a in found)
