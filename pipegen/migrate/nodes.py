"""Helpers for nodes of a syntax tree: positions and names."""

from __future__ import annotations

import ast
from collections.abc import Sequence

Position = tuple[int, int]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
Loop = ast.For | ast.AsyncFor | ast.While
Row = ast.Tuple | ast.List
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def start(node: ast.AST) -> Position:
    """Position where a node begins."""
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def end(node: ast.AST) -> Position:
    """Position where a node ends."""
    return (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)


def begins_in(node: ast.AST, *block: ast.AST) -> bool:
    """True if a node begins between the start of the first and the end of the last of some nodes."""
    return start(block[0]) <= start(node) <= end(block[-1])


def lies_in(node: ast.AST, around: ast.AST) -> bool:
    """True if a node is inside another."""
    return start(around) <= start(node) and end(node) <= end(around)


def name_of(node: ast.AST | None) -> str:
    """Name of a variable, or of an attribute without its owner; empty for other nodes."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def called(call: ast.AST | None) -> str:
    """Name of the called function or method."""
    return name_of(getattr(call, "func", None))


def root_name(node: ast.AST) -> str:
    """Name at the start of a chain of attributes and subscripts, such as `a` of `a["b"].c`; empty for other chains."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def names_in(*nodes: ast.AST) -> set[str]:
    """Names of variables in some nodes."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def stored_in(node: ast.AST) -> set[str]:
    """Names of variables assigned in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def targets_of(node: ast.AST) -> list[ast.expr]:
    """Targets of an assignment; empty for other nodes."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def given_to(call: ast.Call) -> list[ast.expr]:
    """Arguments of a call, positional and named."""
    return [*call.args, *(k.value for k in call.keywords)]


def parameters(args: ast.arguments) -> list[ast.arg]:
    """Every parameter; those of `*` and `**` last."""
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a is not None)]


def places(args: ast.arguments) -> list[str]:
    """Positional parameters, without `self` and `cls`."""
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def defaults_of(args: ast.arguments) -> list[tuple[str, ast.expr]]:
    """Parameters with a default, each with the default."""
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    pairs = [*zip(names[len(names) - len(args.defaults) :], args.defaults, strict=True)]
    return pairs + [(a.arg, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]


def own_nodes(body: Sequence[ast.AST], within: tuple[type[ast.AST], ...] = (*DEFINITIONS, ast.Lambda)) -> list[ast.AST]:
    """Nodes of a function's body, without those of functions and classes inside it."""
    found: list[ast.AST] = []
    todo = list(body)
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, within):
            todo += ast.iter_child_nodes(node)
    return found


def flattened(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that run whenever the body does; unpacks `with` blocks and `if __name__ == "__main__"`."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        if isinstance(statement, (ast.With, ast.AsyncWith)) or (isinstance(statement, ast.If) and is_main(statement.test)):
            found += flattened(statement.body)
    return found


def is_main(test: ast.expr) -> bool:
    """True for the condition `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


def is_undecorated(node: Function) -> bool:
    """True if a call of a function only runs its body."""
    return all(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)


def ends(statement: ast.AST) -> bool:
    """True if a statement may end a call."""
    if isinstance(statement, DEFINITIONS):
        return False
    inner = (n for n in ast.iter_child_nodes(statement) if isinstance(n, (ast.stmt, ast.ExceptHandler, ast.match_case)))
    return isinstance(statement, ast.Return) or any(map(ends, inner))


def hands_on(node: ast.GeneratorExp | ast.For) -> bool:
    """True if code only passes on each pair of a `zip`: `(pair for pair in …)` or `for x, y in …: yield x, y`."""
    loop = node.generators[0] if isinstance(node, ast.GeneratorExp) else node
    if isinstance(node, ast.GeneratorExp):
        only = len(node.generators) == 1 and not node.generators[0].ifs and not node.generators[0].is_async
        given: ast.expr | None = node.elt if only else None
    else:
        statement = node.body[0] if len(node.body) == 1 and not node.orelse else None
        yielded = statement.value if isinstance(statement, ast.Expr) else None
        given = yielded.value if isinstance(yielded, ast.Yield) else None
    target = loop.target
    parts = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else [target]
    named = all(isinstance(part, ast.Name) for part in parts) and len(names_in(target)) == len(parts)
    return given is not None and named and ast.unparse(given) == ast.unparse(target)


def passing_loop(statement: ast.stmt) -> ast.For | None:
    """The loop at the end of a function that yields each pair as it is, also if repeated endlessly."""
    endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    if isinstance(statement, ast.While) and endless and len(statement.body) == 1 and not statement.orelse:
        statement = statement.body[0]
    return statement if isinstance(statement, ast.For) and hands_on(statement) else None
