"""Unrolls comprehensions and loops over literal values, such as `("train", "val")`: one frame for each round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipegen.migrate.nodes import Comprehension, Loop, Row, called, names_in, targets_of
from pipegen.migrate.values import Const, Frame, Map, Seq, Unknown, Value, Zipped, certain, origins_of, told

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator

_MOST_ROUNDS = 12


def comprehension(evaluator: Evaluator, node: Comprehension, frame: Frame) -> Value:
    """Evaluates a comprehension; a generator expression counts as a list, since it can be unpacked like one."""
    unknown = Unknown("it is computed at run time", node.lineno)
    if isinstance(node, ast.SetComp):
        return unknown
    source = evaluator.value(node.generators[0].iter, frame)
    if isinstance(source, Zipped):
        return source if isinstance(node, ast.GeneratorExp) and hands_on(node, node.generators[0]) else unknown
    frames = rounds(evaluator, node, frame)
    if frames is None:
        return unknown
    if not isinstance(node, ast.DictComp):
        return Seq(tuple(evaluator.value(node.elt, inner) for inner in frames), is_list=True)
    keys = [certain(evaluator.value(node.key, inner)) for inner in frames]
    if not all(isinstance(key, str) for key in keys):
        return Unknown("a key is not a known text", node.lineno)
    return Map({key: evaluator.value(node.value, inner) for key, inner in zip(keys, frames, strict=True)})


def hands_on(node: ast.GeneratorExp | ast.For, loop: ast.comprehension | ast.For) -> bool:
    """True if code only passes on each pair of a `zip`: `(pair for pair in …)` or `for x, y in …: yield x, y`."""
    if isinstance(node, ast.GeneratorExp):
        only = len(node.generators) == 1 and not node.generators[0].ifs and not node.generators[0].is_async
        given: ast.expr | None = node.elt if only else None
    else:
        statement = node.body[0] if len(node.body) == 1 and not node.orelse else None
        yielded = statement.value if isinstance(statement, ast.Expr) else None
        given = yielded.value if isinstance(yielded, ast.Yield) else None
    target, names = loop.target, _names(given)
    return names is not None and names == _names(target) and isinstance(given, ast.Name) == isinstance(target, ast.Name)


def passing_loop(statement: ast.stmt) -> ast.For | None:
    """The loop at the end of a function that yields each pair as it is, also if repeated endlessly."""
    endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    if isinstance(statement, ast.While) and endless and len(statement.body) == 1 and not statement.orelse:
        statement = statement.body[0]
    return statement if isinstance(statement, ast.For) and hands_on(statement, statement) else None


def handed_on(evaluator: Evaluator, body: list[ast.stmt], frame: Frame) -> Zipped | None:
    """The `zip` whose pairs a function yields unchanged, if that is all it does."""
    loop = passing_loop(body[-1])
    if loop is None or sum(isinstance(n, (ast.Yield, ast.YieldFrom)) for s in body for n in ast.walk(s)) != 1:
        return None
    value = evaluator.value(loop.iter, frame)
    return value if isinstance(value, Zipped) else None


def _names(node: ast.expr | None) -> list[str] | None:
    """Names of a name, or of a tuple of two different names."""
    if isinstance(node, ast.Name):
        return [node.id]
    if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
        return None
    names = [e.id for e in node.elts if isinstance(e, ast.Name)]
    return names if len(set(names)) == 2 else None


def rounds(evaluator: Evaluator, node: Comprehension | ast.For, frame: Frame) -> list[Frame] | None:
    """A frame for each round of a comprehension or loop; `None` if its iterable is unknown."""
    key = (id(node), id(frame))
    if id(node) in evaluator.whole:
        return None
    if key not in evaluator.rounds:
        evaluator.rounds[key] = _rounds(evaluator, node, frame)
    return evaluator.rounds[key]


def first_round(evaluator: Evaluator, node: ast.For, frame: Frame) -> dict[str, Value]:
    """Known variables of a loop in its first round, as values that other rounds replace."""
    items = _items(evaluator, node.iter, frame)
    bound = _bound(node.target, items[0]) if items else None
    return told(bound or {}, f"a round of the loop in line {node.lineno}")


def _rounds(evaluator: Evaluator, node: Comprehension | ast.For, frame: Frame) -> list[Frame] | None:
    if isinstance(node, ast.For):
        target, over = node.target, node.iter
    else:
        generator = node.generators[0]
        if len(node.generators) > 1 or generator.ifs or generator.is_async:
            return None
        target, over = generator.target, generator.iter
    items = _items(evaluator, over, frame)
    if items is None or not 0 < len(items) <= _MOST_ROUNDS:
        return None
    bound = [_bound(target, item) for item in items]
    if any(b is None for b in bound):
        return None
    return [evaluator.inner_frame(node, frame, args) for args in bound if args is not None]


def _items(evaluator: Evaluator, node: ast.expr, frame: Frame) -> list[Value] | None:
    if isinstance(node, ast.Call) and not node.keywords and not any(isinstance(a, ast.Starred) for a in node.args):
        called = _by_call(evaluator, node, frame)
        if called is not None:
            return called
    value = evaluator.value(node, frame)
    if isinstance(value, Map):
        return [Const(key) for key in value.items]
    as_many = isinstance(node, Row) or not origins_of(value)  # an option may have more values than its default
    return list(value.items) if isinstance(value, Seq) and as_many else None


def _by_call(evaluator: Evaluator, node: ast.Call, frame: Frame) -> list[Value] | None:
    """Items of a dict's `items()` and similar, of `enumerate`, `zip` and `range`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys", "values") and not node.args:
        owner = evaluator.value(node.func.value, frame)
        if not isinstance(owner, Map):
            return None
        pairs: Iterator[tuple[str, Value]] = iter(owner.items.items())
        kind = node.func.attr
        return [Const(key) if kind == "keys" else value if kind == "values" else Seq((Const(key), value)) for key, value in pairs]
    name = getattr(evaluator.value(node.func, frame), "name", "")
    if name == "builtins.enumerate" and len(node.args) == 1:
        inner = _items(evaluator, node.args[0], frame)
        return None if inner is None else [Seq((Const(i), item)) for i, item in enumerate(inner)]
    if name == "builtins.zip" and node.args:
        parts = [_items(evaluator, a, frame) for a in node.args]
        known = [p for p in parts if p is not None]
        return [Seq(items) for items in zip(*known, strict=False)] if len(known) == len(parts) else None
    if name == "builtins.range" and len(node.args) == 1:
        count = certain(evaluator.value(node.args[0], frame))
        return [Const(i) for i in range(count)] if isinstance(count, int) and 0 < count <= _MOST_ROUNDS else None
    return None


def _bound(target: ast.expr, item: Value) -> dict[str, Value] | None:
    """Variables of a loop's target in one round."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, Row) or not isinstance(item, Seq) or len(item.items) != len(target.elts):
        return None
    found: dict[str, Value] = {}
    for inner, value in zip(target.elts, item.items, strict=True):
        bound = _bound(inner, value)
        if bound is None:
            return None
        found.update(bound)
    return found


def makes_several(node: ast.For, calls: frozenset[str]) -> bool:
    """True if each round of a loop makes its own object with one of these functions or methods, and none ends the loop."""
    inside = [n for statement in node.body for n in ast.walk(statement)]
    if (
        any(isinstance(n, (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)) for n in inside)
        or getattr(getattr(node.iter, "func", None), "id", "") == "range"
    ):
        return False
    made = names_in(node.target)
    for _ in range(3):
        for n in inside:
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None and names_in(n.value) & made:
                made |= names_in(*targets_of(n))
    return any(isinstance(n, ast.Call) and called(n) in calls and names_in(n) & made for n in inside)


def reached(evaluator: Evaluator, body: list[ast.stmt], frame: Frame, calls: frozenset[str]) -> tuple[list[ast.AST], bool] | None:
    """Code that runs in one round of a loop: of a branch its condition and the taken side, and nothing after `continue`.

    Returns:
        The statements and conditions, and True if the round ends with them. `None` if the taken side of a branch is unknown and the branch
        may end the round or call one of the functions or methods of `calls`.
    """
    found: list[ast.AST] = []
    for statement in body:
        if isinstance(statement, ast.Continue):
            return found, True
        if not _branches(statement, calls):
            found.append(statement)
            continue
        test = certain(evaluator.value(statement.test, frame)) if isinstance(statement, ast.If) else Unknown("it is not a branch")
        if not isinstance(statement, ast.If) or isinstance(test, Unknown):
            return None
        inner = reached(evaluator, statement.body if test else statement.orelse, frame, calls)
        if inner is None:
            return None
        found += [statement.test, *inner[0]]
        if inner[1]:
            return found, True
    return found, False


def _branches(statement: ast.stmt, calls: frozenset[str]) -> bool:
    """True if a statement may end the round, or call one of these functions or methods; inner loops do not count."""
    if _continues(statement):
        return True
    branches = [] if isinstance(statement, ast.For) else [n for n in ast.walk(statement) if isinstance(n, ast.If)]
    return any(isinstance(n, ast.Call) and called(n) in calls for branch in branches for n in ast.walk(branch))


def _continues(node: ast.AST) -> bool:
    """True if a statement may continue the loop around it."""
    if isinstance(node, Loop):
        return any(map(_continues, node.orelse))
    return isinstance(node, ast.Continue) or any(map(_continues, ast.iter_child_nodes(node)))
