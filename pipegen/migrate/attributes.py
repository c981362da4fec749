"""Finds what a class assigns to the attributes of `self`, and what other code assigns to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pipegen.migrate.mutation import CHANGING, Changers, Function, changed_objects
from pipegen.migrate.scopes import flattened


@dataclass(frozen=True)
class Assignment:
    """One assignment to an attribute of `self`.

    Attributes:
        method: Where.
        value: What is assigned; `None` where that is not one expression, and for an object that is changed in place.
        straight: Whether it is assigned whenever the method runs.
    """

    method: Function
    value: ast.expr | None
    straight: bool = False


def assignments_of(definition: ast.ClassDef, changers: Changers) -> dict[str, list[Assignment]]:
    """Returns what the methods of a class assign to each attribute of `self`, or change in it."""
    found: dict[str, list[Assignment]] = {}
    for method in definition.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            known = {id(target): value for target, value in _pairs(method) if _is_plain(target)}
            straight = {id(n) for s in flattened(method.body) if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in ast.walk(s)}
            for node in ast.walk(method):
                for name in _stored(node, changers):
                    found.setdefault(name, []).append(Assignment(method, known.get(id(node)), id(node) in straight))
    return found


def attributes_from_outside(tree: ast.Module) -> frozenset[str]:
    """The names of attributes that are assigned to something other than `self`, such as `trainer.size = 3`; `*` for any name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            found.update(["*"] if node.attr == "__dict__" else [] if of_self else [node.attr])
        elif isinstance(node, ast.Call):
            found.update(_set_by_call(node))
        elif _lets_names_change(node):
            found.add("*")
    return frozenset(found)


def _lets_names_change(node: ast.AST) -> bool:
    """Returns whether a node changes an object's own dict of attributes, or gives it a name by which other code may."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load) and _is_names(node.value)
    return isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and _is_names(node.value)


def _set_by_call(call: ast.Call) -> list[str]:
    """The attributes that a call sets by their names as texts."""
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in ("setattr", "delattr", "__setattr__", "__delattr__"):
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return texts[:1] or ["*"]
    changes = isinstance(call.func, ast.Attribute) and name in CHANGING and _is_names(call.func.value)
    return ["*"] if changes else []


def _is_names(node: ast.expr) -> bool:
    """Returns whether an expression is an object's own dict of attributes, other than that of an object made on the spot."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and len(node.args) == 1:
        return not isinstance(node.args[0], ast.Call)
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def given_below(definition: ast.ClassDef, classes: list[ast.ClassDef]) -> frozenset[str]:
    """The attributes and methods that the classes derived from this one, and from those, may give another value.

    Args:
        definition: The class.
        classes: Every class of the file.
    """
    below: list[ast.ClassDef] = []
    names = {definition.name}
    while True:
        more = [c for c in classes if c not in below and c is not definition and any(_base_name(b) in names for b in c.bases)]
        if not more:
            break
        below += more
        names |= {c.name for c in more}
    found: set[str] = set()
    for other in below:
        found.update(n.id for n in ast.walk(other) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        found.update(m.name for m in other.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)))
        found.update(assignments_of(other, {}))
    return frozenset(found)


def _base_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _stored(node: ast.AST, changers: Changers) -> list[str]:
    """The attributes of `self` that a single node assigns or changes."""
    return [name for changed in changed_objects(node, changers) if (name := _of_self(changed))]


def _of_self(node: ast.expr) -> str:
    """The attribute of `self` that a chain of attributes and subscripts begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return ""


def _is_plain(target: ast.expr) -> bool:
    """Returns whether a target is an attribute of `self` as a whole."""
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _pairs(method: Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of assignments, each with the expression that it gets."""
    for node in ast.walk(method):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        for target in targets:
            yield target, value
            if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
                yield from () if starred else zip(target.elts, value.elts, strict=False)
