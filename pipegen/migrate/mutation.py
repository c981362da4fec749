"""Finds the objects that code changes in place: by an assignment to a part of them, by a method, or in a function that gets them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pipegen.migrate.nodes import DEFINITIONS, Function, called, defaults_of, own_nodes, parameters, places, root_name

Changers = Mapping[str, frozenset[str | int]]
"""For the name of a function: its parameters whose objects it changes, by name and by place."""

CHANGING = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add", "discard"}
)
"""Methods that change what they belong to."""
_MOST_ROUNDS = 3


def changed_objects(node: ast.AST, changers: Changers) -> list[ast.expr]:
    """The expressions whose objects, or parts of them, a single node changes in place."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return [node]
    return [*_by_method(node), *_by_function(node, changers)] if isinstance(node, ast.Call) else []


def changed_names(node: ast.AST, changers: Changers) -> list[str]:
    """The names whose objects a single node changes in place; `self` is left to its class."""
    return [name for name in map(root_name, changed_objects(node, changers)) if name not in ("", "self")]


def _by_method(call: ast.Call) -> list[ast.expr]:
    if not isinstance(call.func, ast.Attribute):
        return []
    in_place = any(k.arg == "inplace" and not (isinstance(k.value, ast.Constant) and not k.value.value) for k in call.keywords)
    return [call.func.value] if in_place or call.func.attr in CHANGING else []


def _by_function(call: ast.Call, changers: Changers) -> list[ast.expr]:
    changed = changers.get(called(call), frozenset())
    given: list[tuple[str | int | None, ast.expr]] = [*enumerate(call.args), *((k.arg, k.value) for k in call.keywords)]
    return [value for place, value in given if place in changed and isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))]


def changers_of(tree: ast.Module) -> Changers:
    """The functions and methods of a file that change what they are given."""
    kinds = (ast.Attribute, ast.Subscript, ast.Call)
    functions = [(n, [inner for inner in ast.walk(n) if isinstance(inner, kinds)]) for n in ast.walk(tree) if isinstance(n, Function)]
    found: dict[str, frozenset[str | int]] = {}
    for _ in range(_MOST_ROUNDS):
        before = dict(found)
        for function, nodes in functions:
            changed = {name for n in nodes for name in changed_names(n, found)}
            names = places(function.args)
            given = {name for name in (*names, *(a.arg for a in function.args.kwonlyargs)) if name in changed}
            if given:
                found[function.name] = found.get(function.name, frozenset()) | given | {i for i, n in enumerate(names) if n in given}
        if found == before:
            break
    return found


def foreign(node: ast.AST, changers: Changers, hidden: frozenset[str] = frozenset()) -> Iterator[tuple[str, int, bool]]:
    """Yields what a function, or the methods of a class, do to the names around it.

    Args:
        node: The function or the class.
        changers: The functions that change what they are given.
        hidden: Names that are others here.

    Yields:
        The name, the line, and whether it is bound anew (`global`) rather than changed in place.
    """
    declared: set[str] = set()
    aliases: dict[str, str] = {}
    own = own_nodes(node, DEFINITIONS)
    if isinstance(node, Function):
        declared = {name for n in own if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        aliases = _aliases(node, own)
        stored = {n.id for n in own if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))}
        hidden = (hidden | stored | {a.arg for a in parameters(node.args)}) - declared
    for n in own:
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)) and n.id in declared:
            yield n.id, n.lineno, True
        for name in changed_names(n, changers):
            for each in (name, aliases.get(name, "")):
                if each and each not in hidden:
                    yield each, getattr(n, "lineno", 0), False
        if isinstance(n, DEFINITIONS):
            yield from foreign(n, changers, hidden)


def _aliases(function: Function, own: list[ast.AST]) -> dict[str, str]:
    """Names of a function that stand for another name: by an assignment, or as the default of a parameter."""
    pairs: list[tuple[str, ast.expr]] = defaults_of(function.args)
    pairs += [(t.id, n.value) for n in own if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
    return {name: value.id for name, value in pairs if isinstance(value, ast.Name)}
