"""Iterators that functions of the file make and return: the call of the function stands for its iterator.

`train = make("a", True); val = make("b", False)` becomes `train = pipe.train; val = pipe.validation`. `make` is removed with its last call.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import cast

from pipegen.migrate import values as v
from pipegen.migrate.groups import Group
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected
from pipegen.migrate.nodes import Function, called, targets_of

_HARMLESS = ("print", "info", "debug", "fit")  # calls that a function may make as statements, and that may be dropped
_READING = ("os.path.", "os.getenv", "os.environ.", "pandas.", "numpy.", "math.", "pathlib.", "builtins.")
"""Libraries whose functions compute values from their arguments."""
_CALLER = "the caller of `"  # beginning of the origin of a value that a function of the file receives
_PASSED = ("directory", "dataframe", "target_size", "batch_size", "seed")  # arguments that the call of `build` may pass


def at_calls(found: Collected, group: Group) -> tuple[Group, list[Function]] | None:
    """The group with calls of functions in place of its iterators, and these functions.

    `None` if that could change the meaning: a function does or returns something else, too, or an argument is known only at run time.
    """
    parts: dict[str, v.Flow] = {}
    makers: list[Function] = []
    for split, flow in group.parts.items():
        sites = found.sites.get(id(flow), [])
        inner = [*(of_function(frame) for _, frame in sites[1:]), of_function(flow.frame)]
        used_inside = any(of_function(u.frame) in inner for u in found.uses_of(flow))
        if group.pairs or not sites or used_inside or found.evaluator.value(*sites[0]) is not flow:
            return None
        args = {name: replace(a, value=_without_callers(a.value)) for name, a in flow.args.items()}
        if flow.method == "flow" or "**" in args or any(name in args and _varies(args[name].value) for name in _PASSED):
            return None
        if not all(_only_makes(found, frame) for frame in inner):
            return None
        node, frame = sites[0]
        parts[split] = replace(flow, args=args, node=node, frame=frame)
        makers += [cast("Function", f.scope.node) for f in inner if f.scope.node not in makers]
    return replace(group, parts=parts), makers


def exchange(found: Collected, old: Group, new: Group) -> None:
    """Puts the iterators of one group in place of those of another in the results."""
    others = {id(old.parts[split]): flow for split, flow in new.parts.items()}
    found.flows = [others.get(id(f), f) for f in found.flows]
    found.uses = [replace(u, of=others.get(id(u.of), u.of)) for u in found.uses]
    found.names.update({id(flow): found.names[key] for key, flow in others.items() if key in found.names})


def _varies(value: v.Value) -> bool:
    known = v.Const(value.path) if isinstance(value, v.Table) else value
    return isinstance(v.plain(known), v.Unknown) or bool(v.origins_of(value))


def _without_callers(value: v.Value) -> v.Value:
    """A value without the origins that are calls of functions of the file, since the actual calls count."""
    if isinstance(value, v.Seq):
        return v.Seq(tuple(map(_without_callers, value.items)), value.is_list)
    if not isinstance(value, v.Const):
        return value
    return replace(value, origins=tuple(origin for origin in value.origins if not origin.startswith(_CALLER)))


def _only_makes(found: Collected, frame: v.Frame) -> bool:
    """True if nothing of a function's work is needed except its return value."""
    node = frame.scope.node
    return isinstance(node, Function) and all(_is_missed_by_none(found, statement, frame) for statement in node.body)


def _is_missed_by_none(found: Collected, statement: ast.stmt, frame: v.Frame) -> bool:
    if isinstance(statement, ast.If):
        blocks = (*statement.body, *statement.orelse)
        return _only_reads(found, statement.test, frame) and all(_is_missed_by_none(found, s, frame) for s in blocks)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        parts = (n for t in targets_of(statement) for n in ast.walk(t))
        changes = any(isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, ast.Store) for n in parts)
        return not changes and (statement.value is None or _only_reads(found, statement.value, frame))
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or called(statement.value) in _HARMLESS
    if isinstance(statement, ast.Return):
        return statement.value is None or _only_reads(found, statement.value, frame)
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass, ast.Assert, ast.Raise))


def _only_reads(found: Collected, node: ast.expr, frame: v.Frame) -> bool:
    """True if the calls in an expression only make generators and iterators, or compute values from their arguments."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        made, function = found.evaluator.value(call, frame), found.evaluator.value(call.func, frame)
        reads = isinstance(function, v.Dotted) and function.name.startswith(_READING)
        if not reads and not isinstance(made, (v.Flow, v.Generator)):
            return False
    return True


def unused(tree: ast.Module, makers: list[Function], calls: list[ast.Call]) -> list[Function]:
    """Functions that are no longer mentioned once some calls are gone."""
    methods = {id(m) for n in ast.walk(tree) if isinstance(n, ast.ClassDef) for m in n.body}
    by_text = any(isinstance(n, ast.Name) and n.id in ("getattr", "globals", "eval") for n in ast.walk(tree))
    gone = list(makers)
    while True:
        inside = {id(n) for root in (*gone, *calls) for n in ast.walk(root)}
        left = [n for n in ast.walk(tree) if id(n) not in inside]
        texts = {n.value for n in left if by_text and isinstance(n, ast.Constant) and isinstance(n.value, str)}
        attributes = texts | {n.attr for n in left if isinstance(n, ast.Attribute)}
        names = texts | {n.id for n in left if isinstance(n, ast.Name)}
        kept = [f for f in gone if f.name not in (attributes if id(f) in methods else names)]
        if len(kept) == len(gone):
            return gone
        gone = kept
