"""Follows functions of the file: their defaults, the branches they take, and the `return` they end with."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipegen.migrate.nodes import DEFINITIONS, Function, defaults_of, flattened, is_main
from pipegen.migrate.values import Argument, Frame, Map, Seq, Unknown, Value, certain, plain, setting

if TYPE_CHECKING:
    from pipegen.migrate.evaluator import Evaluator


def defaults(evaluator: Evaluator, node: Function, parent: Frame) -> dict[str, Value]:
    """Defaults of a function's parameters, as values that a caller may replace; omits unknown ones."""
    found = {}
    for name, default in defaults_of(node.args):
        value = evaluator.value(default, parent)
        known = plain(value)
        if known is not None and not isinstance(known, (Unknown, dict)):
            found[name] = setting(value, f"the caller of `{shown_name(node, parent)}`")
    return found


def bind(
    evaluator: Evaluator, spec: ast.arguments, call: ast.Call, frame: Frame, home: Frame, *, method: bool = False
) -> dict[str, Value] | None:
    """Binds the arguments of a call to a function's parameters; `None` if they are unpacked from an unknown value.

    With `method`, the first parameter is the object itself and takes no argument.
    """
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][int(method) :]
    if len(spec.defaults) > len(names):
        return None
    bound: dict[str, Value] = {}
    rest: list[Value] = []
    for i, arg in enumerate(call.args):
        if isinstance(arg, ast.Starred):
            return None
        if i < len(names):
            bound[names[i]] = evaluator.value(arg, frame)
        else:
            rest.append(evaluator.value(arg, frame))
    extra: dict[str, Value] = {}
    known = {*names, *(a.arg for a in spec.kwonlyargs)}
    for keyword in call.keywords:
        value = evaluator.value(keyword.value, frame)
        if keyword.arg is None:
            if not isinstance(value, Map):
                return None
            for key, inner in value.items.items():
                (bound if key in known else extra)[key] = inner
        else:
            (bound if keyword.arg in known else extra)[keyword.arg] = value
    for name, default in defaults_of(spec):
        bound.setdefault(name, evaluator.value(default, home))
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = Map(extra)
    if spec.vararg is not None:
        bound[spec.vararg.arg] = Seq(tuple(rest))
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
    """True if a statement may end its function."""
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
