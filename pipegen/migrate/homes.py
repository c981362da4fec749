"""Places of code: the statement that makes an iterator, and expressions that can move before it."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from itertools import takewhile

from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.nodes import Comprehension, Function, Loop, begins_in, called, flattened, given_to, names_in, root_name, start
from pipegen.migrate.scopes import ALWAYS, changed_objects
from pipegen.migrate.values import Dotted, Flow, Frame, certain

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
    """Frame of the function or module around a comprehension or an unrolled loop."""
    while isinstance(frame.scope.node, (Comprehension, ast.For)) and frame.parent is not None:
        frame = frame.parent
    return frame


def home_of(flow: Flow) -> ast.stmt | None:
    """Statement that makes an iterator, if it runs whenever its scope does, or in each round of a loop.

    A comprehension is a part of its statement. An unrolled loop directly in its function is the statement itself.
    """
    body = getattr(of_function(flow.frame).scope.node, "body", None)
    if not isinstance(body, list):
        return None
    loops = [frame for frame in up_to_function(flow.frame) if isinstance(frame.scope.node, ast.For)]
    if loops:
        loop = loops[0].scope.node
        return loop if len(loops) == 1 and isinstance(loop, ast.For) and loop in flattened(body) else None
    found = _innermost(body, flow.node)
    return found[0] if found is not None else None


def branch_of(flow: Flow) -> list[ast.stmt] | None:
    """Block around the statement that makes an iterator, if a condition decides whether it runs."""
    if any(isinstance(frame.scope.node, ast.For) for frame in up_to_function(flow.frame)):
        return None
    found = _innermost(getattr(of_function(flow.frame).scope.node, "body", []), flow.node)
    return found[1] if found is not None and found[2] else None


def _innermost(body: list[ast.stmt], node: ast.AST, *, perhaps: bool = False) -> tuple[ast.stmt, list[ast.stmt], bool] | None:
    """Simple statement of a node, or the loop that iterates over it; its block; and whether a condition decides if it runs."""
    statement = next((s for s in body if begins_in(node, s)), None)
    if statement is None or isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match)):
        return None
    blocks = [b for name in ("body", "orelse", "finalbody") if (b := getattr(statement, name, None)) and begins_in(node, *b)]
    if blocks:
        always = isinstance(statement, Loop) and blocks[0] is statement.body
        always = always or statement is not flattened([statement])[-1]
        return _innermost(blocks[0], node, perhaps=perhaps or not always)
    iterated = isinstance(statement, ast.For) and begins_in(node, statement.iter)
    return (statement, body, perhaps) if iterated or not hasattr(statement, "body") else None


def loop_around(flow: Flow) -> ast.stmt | None:
    """Innermost loop of its function around an iterator."""
    loops = [n for n in ast.walk(of_function(flow.frame).scope.node) if isinstance(n, Loop)]
    return max((n for n in loops if begins_in(flow.node, n.body[0], n)), key=start, default=None)


def constants(evaluator: Evaluator, node: ast.expr, frame: Frame) -> dict[int, str]:
    """Loop variables in an expression that are known texts or numbers, by node id."""
    found = {}
    for name in (n for n in ast.walk(node) if isinstance(n, ast.Name)):
        around = next((f for f in up_to_function(frame) if name.id in f.scope.bindings), None)
        known = certain(evaluator.value(name, frame)) if around is not None and around is not of_function(frame) else None
        if isinstance(known, (str, int)) and around is not None and all(b.kind == "param" for b in around.scope.bindings[name.id]):
            found[id(name)] = json.dumps(known, ensure_ascii=False) if isinstance(known, str) else repr(known)
    return found


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
    in_place = flow.frame is of_function(flow.frame) and home_of(flow) is home
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


def late_home(flows: list[Flow]) -> ast.stmt | None:
    """Statement of the last iterator, if the earlier ones can wait for it: their names are not read in between."""
    homes = [home_of(flow) for flow in flows]
    last = max((h for h in homes if h is not None), key=lambda h: h.lineno, default=None)
    if last is None or None in homes or len({id(h) for h in homes}) < 2 or len({id(loop_around(flow)) for flow in flows}) > 1:
        return None
    return last if all(home is last or _can_wait(flow, home, last) for flow, home in zip(flows, homes, strict=True)) else None


def waiting_name(flow: Flow) -> str | None:
    """Name of an iterator, if a statement only assigns it."""
    home = home_of(flow)
    if not isinstance(home, ast.Assign) or home.value is not flow.node or len(home.targets) != 1:
        return None
    return home.targets[0].id if isinstance(home.targets[0], ast.Name) else None


def _can_wait(flow: Flow, home: ast.stmt | None, last: ast.stmt) -> bool:
    function, name = of_function(flow.frame).scope.node, waiting_name(flow)
    if home is None or name is None:
        return False
    inner = [n for n in ast.walk(function) if isinstance(n, (Function, ast.Lambda)) and n is not function]
    if name in names_in(last, *inner):  # a call in between may read it
        return False
    read = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    bound = any(home.lineno < b.after[0] <= (last.end_lineno or 0) for b in flow.frame.scope.bindings.get(name, []))
    return not bound and not any((home.end_lineno or 0) < n.lineno < last.lineno for n in read)


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
    fixed = constants(evaluator, node, frame)
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in fixed]
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
