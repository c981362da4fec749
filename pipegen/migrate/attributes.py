"""What a class assigns to the attributes of `self`, and what other code assigns to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pipegen.migrate.mutation import Changers, Function, changed_objects


@dataclass(frozen=True)
class Assignment:
    """One assignment to an attribute of `self`.

    Attributes:
        method: Where.
        value: What is assigned; `None` where that is not one expression, and for an object that is changed in place.
    """

    method: Function
    value: ast.expr | None


def assignments_of(definition: ast.ClassDef, changers: Changers) -> dict[str, list[Assignment]]:
    """What the methods of a class assign to each attribute of `self`, or change in it."""
    found: dict[str, list[Assignment]] = {}
    for method in definition.body:
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            known = {id(target): value for target, value in _pairs(method) if _is_plain(target)}
            for node in ast.walk(method):
                for name in _stored(node, changers):
                    found.setdefault(name, []).append(Assignment(method, known.get(id(node))))
    return found


def attributes_from_outside(tree: ast.Module) -> frozenset[str]:
    """The names of attributes that are assigned to something other than `self`, such as `trainer.size = 3`."""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, (ast.Store, ast.Del))
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    )


def overridden(definition: ast.ClassDef, name: str, tree: ast.Module) -> bool:
    """Whether a class of the file that is derived from this one gives the attribute another value."""
    for other in tree.body:
        if isinstance(other, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id == definition.name for b in other.bases):
            stored = {n.id for n in ast.walk(other) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            if name in stored or name in assignments_of(other, {}):
                return True
    return False


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
    """Whether a target is an attribute of `self` as a whole."""
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
