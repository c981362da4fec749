"""Follows functions and loops of the file: defaults, branches, the `return` at the end, and a frame for each round over literal values."""

from __future__ import annotations

import ast

from pipegen.migrate.known import Evaluator, certain, origins_of, setting, told
from pipegen.migrate.nodes import (
    DEFINITIONS,
    Comprehension,
    Function,
    Loop,
    Row,
    called,
    defaults_of,
    flattened,
    is_main,
    names_in,
    targets_of,
)
from pipegen.migrate.values import Argument, Const, Frame, Map, Seq, Unknown, Value, Zipped, plain


def defaults(evaluator: Evaluator, node: Function, parent: Frame) -> dict[str, Value]:
    """Defaults of a function's parameters, as values that a caller may replace; omits unknown ones."""
    values = {name: evaluator.value(default, parent) for name, default in defaults_of(node.args)}
    known = {name: value for name, value in values.items() if not isinstance(plain(value), (Unknown, dict, type(None)))}
    return {name: setting(value, f"the caller of `{shown_name(node, parent)}`") for name, value in known.items()}


def bind(
    evaluator: Evaluator, spec: ast.arguments, call: ast.Call, frame: Frame, home: Frame, *, method: bool = False
) -> dict[str, Value] | None:
    """Binds the arguments of a call to a function's parameters; `None` if they are unpacked from an unknown value.

    With `method`, the first parameter is the object itself and takes no argument.
    """
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][int(method) :]
    if len(spec.defaults) > len(names) or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    given = [evaluator.value(arg, frame) for arg in call.args]
    bound = dict(zip(names, given, strict=False))
    extra: dict[str, Value] = {}
    known = {*names, *(a.arg for a in spec.kwonlyargs)}
    for keyword in call.keywords:
        value = evaluator.value(keyword.value, frame)
        if keyword.arg is None and not isinstance(value, Map):
            return None
        unpacked = value.items if keyword.arg is None and isinstance(value, Map) else {keyword.arg or "": value}
        for key, inner in unpacked.items():
            (bound if key in known else extra)[key] = inner
    for name, default in defaults_of(spec):
        bound.setdefault(name, evaluator.value(default, home))
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = Map(extra)
    if spec.vararg is not None:
        bound[spec.vararg.arg] = Seq(tuple(given[len(names) :]))
    return bound


def shown_name(node: Function, parent: Frame) -> str:
    """Name of a function for its callers: the class, for a constructor."""
    around = parent.scope.node
    return around.name if node.name == "__init__" and isinstance(around, ast.ClassDef) else node.name


def is_undecorated(node: Function) -> bool:
    """True if a call of a function only runs its body."""
    return all(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def taken_side(evaluator: Evaluator, statement: ast.stmt, frame: Frame) -> list[ast.stmt] | None:
    """Statements of the branch that runs in a frame; `None` for other statements, and if uncertain."""
    if not isinstance(statement, ast.If):
        return None
    test = certain(evaluator.value(statement.test, frame))
    return None if isinstance(test, Unknown) else statement.body if test else statement.orelse


def returned_last(evaluator: Evaluator, body: list[ast.stmt], frame: Frame) -> ast.Return | None:
    """The `return` that ends a call, if it is certain which one."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return statement
        if isinstance(statement, (ast.With, ast.AsyncWith)) or (isinstance(statement, ast.If) and is_main(statement.test)):
            continue  # its content is followed
        taken = taken_side(evaluator, statement, frame)
        if taken is not None:
            found = returned_last(evaluator, flattened(taken), frame)
            if found is not None:
                return found
            if any(_ends(s) for s in taken):
                return None
        elif _ends(statement):
            return None
    return None


def _ends(statement: ast.AST) -> bool:
    if isinstance(statement, DEFINITIONS):
        return False
    inner = (n for n in ast.iter_child_nodes(statement) if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case)))
    return isinstance(statement, ast.Return) or any(map(_ends, inner))


def arguments(
    evaluator: Evaluator, node: ast.Call, frame: Frame, names: tuple[str, ...]
) -> tuple[dict[str, Argument], tuple[tuple[str, int], ...]]:
    """Arguments of a call by name, and names that are not in the signature.

    Arguments unpacked from an unknown value are under `**`.
    """
    found: dict[str, Argument] = {}
    wrong: list[tuple[str, int]] = []
    for i, arg in enumerate(node.args):
        if isinstance(arg, ast.Starred):
            found["**"] = Argument("**", Unknown("arguments are unpacked from an unknown value", arg.lineno), arg)
            break
        if i < len(names):
            found[names[i]] = Argument(names[i], evaluator.value(arg, frame), arg, positional=True)
    for keyword in node.keywords:
        value = evaluator.value(keyword.value, frame)
        if keyword.arg is not None:
            pairs = [(keyword.arg, value)]
        elif isinstance(value, Map):
            pairs = list(value.items.items())
        else:
            reason = value if isinstance(value, Unknown) else Unknown("it is not a dict", keyword.value.lineno)
            found["**"] = Argument("**", reason, keyword.value)
            continue
        for name, inner in pairs:
            if name in names:
                found[name] = Argument(name, inner, keyword.value, unpacked=keyword.arg is None)
            else:
                wrong.append((name, keyword.value.lineno))
    return found, tuple(wrong)


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
    return None if None in bound else [evaluator.inner_frame(node, frame, args or {}) for args in bound]


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
        if node.func.attr == "items":
            return [Seq((Const(key), value)) for key, value in owner.items.items()]
        return [Const(key) for key in owner.items] if node.func.attr == "keys" else list(owner.items.values())
    name = getattr(evaluator.value(node.func, frame), "name", "")
    if name == "builtins.enumerate" and len(node.args) == 1:
        inner = _items(evaluator, node.args[0], frame)
        return None if inner is None else [Seq((Const(i), item)) for i, item in enumerate(inner)]
    if name == "builtins.zip" and node.args:
        parts = [_items(evaluator, a, frame) for a in node.args]
        return None if None in parts else [Seq(items) for items in zip(*(p or [] for p in parts), strict=False)]
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
    parts = [_bound(inner, value) for inner, value in zip(target.elts, item.items, strict=True)]
    return None if None in parts else {name: value for part in parts for name, value in (part or {}).items()}


def makes_several(node: ast.For, calls: frozenset[str]) -> bool:
    """True if each round of a loop makes its own object with one of these functions or methods, and none ends the loop."""
    inside = [n for statement in node.body for n in ast.walk(statement)]
    ends = any(isinstance(n, (ast.Break, ast.Return, ast.Yield, ast.YieldFrom)) for n in inside)
    if ends or getattr(getattr(node.iter, "func", None), "id", "") == "range":
        return False
    made = names_in(node.target)
    for _ in range(3):
        for n in inside:
            if isinstance(n, (ast.Assign, ast.AnnAssign)) and n.value is not None and names_in(n.value) & made:
                made |= names_in(*targets_of(n))
    return any(isinstance(n, ast.Call) and called(n) in calls and names_in(n) & made for n in inside)


def reached(evaluator: Evaluator, body: list[ast.stmt], frame: Frame, calls: frozenset[str]) -> tuple[list[ast.AST], bool] | None:
    """Code that runs in one round of a loop: of a branch its condition and the taken side, and nothing after `continue`. Returns the
    statements and conditions, and True if the round ends with them. `None` if the taken side of a branch is unknown and the branch may end
    the round or call one of the functions or methods of `calls`."""
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
    if isinstance(node, Loop):
        return any(map(_continues, node.orelse))
    return isinstance(node, ast.Continue) or any(map(_continues, ast.iter_child_nodes(node)))
