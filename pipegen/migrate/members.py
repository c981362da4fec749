"""Evaluates attributes of modules, `self`, objects and the command line; finds the assignments to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from pipegen.migrate.calling import is_undecorated
from pipegen.migrate.known import Evaluator, told, unknown
from pipegen.migrate.nodes import Function, Row, called, flattened, name_of, names_in, parameters, stored_in, targets_of
from pipegen.migrate.scopes import CHANGING, Assignment, Changers, changed_objects
from pipegen.migrate.values import Const, Dotted, Flow, Frame, Instance, Local, Options, Record, Table, Unknown, Value

_LATE = (1 << 30, 0)
_SPECIAL = ("__getattr__", "__getattribute__", "__setattr__", "__new__", "__slots__")
"""Methods that make attributes differ from what is assigned."""


def attribute(evaluator: Evaluator, node: ast.Attribute, frame: Frame) -> Value:
    """Evaluates `owner.name`."""
    if _is_of_self(node) and frame.class_frame is not None:
        return _of_self(evaluator, node, frame)
    owner = evaluator.value(node.value, frame)
    if isinstance(owner, Dotted):
        if owner.name.split(".")[-2:] != ["flags", "FLAGS"]:
            return Dotted(f"{owner.name}.{node.attr}")
        flag = evaluator.outside.flag(node.attr, node.lineno)
        return Unknown(f"the flag `{node.attr}` is assigned", node.lineno) if evaluator.is_assigned(node.attr) else flag
    if isinstance(owner, Flow) and node.attr == "batch_size":
        return owner.args["batch_size"].value if "batch_size" in owner.args else Const(32)
    if isinstance(owner, Local) and isinstance(owner.node, ast.ClassDef):
        if evaluator.is_assigned(node.attr):
            return Unknown(f"`.{node.attr}` is assigned elsewhere too", node.lineno)
        return of_class(evaluator, owner, node.attr, node.lineno)
    if isinstance(owner, Table) and node.attr in ("iloc", "loc"):
        return Unknown("its rows are selected by code", node.lineno)
    if isinstance(owner, (Options, Record, Instance)):
        return _of_object(evaluator, owner, node)
    return unknown(owner, f"`.{node.attr}` is known only at run time", node.lineno)


def of_class(evaluator: Evaluator, owner: Local, name: str, line: int) -> Value:
    """Evaluates a name in the body of a class, or of its base in the file."""
    definition = cast("ast.ClassDef", owner.node)
    inner = evaluator.frame(definition, owner.frame, {})
    if name in inner.scope.bindings:
        return evaluator.name(name, _LATE, inner)
    for base in definition.bases:
        above = evaluator.value(base, owner.frame)
        if isinstance(above, Dotted) and above.name == "builtins.object":
            continue
        known = isinstance(above, Local) and isinstance(above.node, ast.ClassDef) and above.node is not definition
        if len(definition.bases) > 1 or not known:
            return Unknown(f"`{name}` may come from a base class of `{definition.name}`", line)
        return of_class(evaluator, cast("Local", above), name, line)
    return Unknown(f"`{name}` is not assigned in `{definition.name}`", line)


def is_plain_class(evaluator: Evaluator, of: Local) -> bool:
    """True if the attributes of a class's objects are just the assigned ones."""
    definition = cast("ast.ClassDef", of.node)
    if definition.decorator_list or definition.keywords:
        return False
    names = {m.name for m in definition.body if isinstance(m, Function)}
    names |= set(evaluator.frame(definition, of.frame, {}).scope.bindings)
    if names & set(_SPECIAL):
        return False
    bases = [evaluator.value(base, of.frame) for base in definition.bases]
    if all(isinstance(b, Dotted) and b.name == "builtins.object" for b in bases):
        return True
    single = bases[0] if len(bases) == 1 else None
    derived = isinstance(single, Local) and isinstance(single.node, ast.ClassDef) and single.node is not definition
    return derived and "__init__" in names and is_plain_class(evaluator, cast("Local", single))


def _of_object(evaluator: Evaluator, owner: Options | Record | Instance, node: ast.Attribute) -> Value:
    """Attribute of a command line's namespace, a record or an object of the file, assigned by its constructor or its class."""
    name, line = node.attr, node.lineno
    if evaluator.is_assigned(name):
        return Unknown(f"`.{name}` is assigned elsewhere too", line)
    if isinstance(owner, Options):
        return Unknown("it is a dict", line) if owner.as_map else evaluator.outside.option(name, line, fixed=owner.fixed)
    if isinstance(owner, Record):
        return owner.items.get(name, Unknown(f"`.{name}` is known only at run time", line))
    definition = cast("ast.ClassDef", owner.of.node)
    found = evaluator.assignments(definition).get(name, [])
    if any(name in evaluator.assignments(above) for above in _classes_above(evaluator, owner.of)):
        return Unknown(f"`.{name}` is assigned by a base class of `{definition.name}`", line)
    if not found:
        return _bound(of_class(evaluator, owner.of, name, line), owner)
    if len(found) > 1 or found[0].value is None or not _by_constructor(found[0]) or owner.made is None:
        return Unknown(f"`.{name}` is assigned in `{definition.name}` in a way that is not followed", line)
    return evaluator.value(found[0].value, owner.made)


def _classes_above(evaluator: Evaluator, of: Local) -> list[ast.ClassDef]:
    found: list[ast.ClassDef] = []
    todo = [of]
    while todo and len(found) < 20:
        here = todo.pop()
        above = [evaluator.value(base, here.frame) for base in cast("ast.ClassDef", here.node).bases]
        classes = [a for a in above if isinstance(a, Local) and isinstance(a.node, ast.ClassDef)]
        found += [cast("ast.ClassDef", c.node) for c in classes]
        todo += classes
    return found


def _by_constructor(assignment: Assignment) -> bool:
    """True if every object has the attribute from its start."""
    return assignment.method.name == "__init__" and assignment.straight


def _bound(value: Value, owner: Value) -> Value:
    """A class attribute as its object returns it: a function becomes a method, a property its value."""
    if not isinstance(value, Local) or not isinstance(value.node, Function):
        return value
    decorators = [d.id if isinstance(d, ast.Name) else "" for d in value.node.decorator_list]
    if decorators == ["property"]:
        return Unknown(f"`.{value.node.name}` is a property", value.node.lineno)
    return value if decorators and is_undecorated(value.node) else replace(value, bound=owner)


def _receiver(evaluator: Evaluator, node: ast.Attribute, frame: Frame, of: Frame) -> Instance | None:
    """The object `self`: the one that the method is called on, or the only one of its class in the file."""
    known = evaluator.value(node.value, frame)
    if isinstance(known, Instance):
        return known if known.of.node is of.scope.node else None
    made = evaluator.objects.get(id(of.scope.node), [])
    return made[0] if len(made) == 1 else None


def _of_self(evaluator: Evaluator, node: ast.Attribute, frame: Frame) -> Value:
    """Evaluates `self.name`, if the class assigns it only once."""
    inner = cast("Frame", frame.class_frame)
    definition = cast("ast.ClassDef", inner.scope.node)
    name, line = node.attr, node.lineno
    found = evaluator.assignments(definition).get(name, [])
    if evaluator.is_assigned(name) or name in evaluator.given_below(definition):
        return Unknown(f"`self.{name}` is assigned elsewhere too", line)
    if not found:
        owner = evaluator.value(node.value, frame)
        return _bound(of_class(evaluator, Local(definition, cast("Frame", inner.parent)), name, line), owner)
    if len(found) > 1 or found[0].value is None:
        how = f"{len(found)} times" if len(found) > 1 else "in a way that is not followed"
        return Unknown(f"`self.{name}` is assigned {how}", line)
    home = found[0].method
    above = _classes_above(evaluator, Local(definition, cast("Frame", inner.parent)))
    bound = {b.id for d in above for b in ast.walk(d) if isinstance(b, ast.Name)}
    if any(name in evaluator.assignments(d) for d in above):
        return Unknown(f"`self.{name}` is also assigned by a base class of `{definition.name}`", line)
    if (name in bound or name in inner.scope.bindings) and (not _by_constructor(found[0]) or frame.scope.node is home):
        return Unknown(f"`self.{name}` has one value in the class and another in `{home.name}`", line)
    if frame.scope.node is home:
        return evaluator.value(found[0].value, frame)
    receiver = _receiver(evaluator, node, frame, inner)
    if receiver is None or receiver.made is None or receiver.made.scope.node is not home:
        called = evaluator.called.get(id(home)) if evaluator.calls[home.name] == 1 else None
        return evaluator.value(found[0].value, called or evaluator.frame(home, inner, {}))
    value = evaluator.value(found[0].value, receiver.made)
    given = names_in(found[0].value) & {a.arg for a in parameters(home.args)}
    return told({name: value}, f"the caller of `{definition.name}`").get(name, value) if given else value


def assignments_of(definition: ast.ClassDef, changers: Changers) -> dict[str, list[Assignment]]:
    """Assignments and changes of attributes of `self` in the methods of a class."""
    found: dict[str, list[Assignment]] = {}
    for method in definition.body:
        if isinstance(method, Function):
            known = {id(target): value for target, value in _pairs(method) if _is_of_self(target)}
            straight = {id(n) for s in flattened(method.body) if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in ast.walk(s)}
            for node in ast.walk(method):
                for name in filter(None, map(_root_attribute, changed_objects(node, changers))):
                    found.setdefault(name, []).append(Assignment(method, known.get(id(node)), id(node) in straight))
    return found


def attributes_from_outside(tree: ast.Module) -> frozenset[str]:
    """Attributes assigned on other objects than `self`, such as `trainer.size = 3`; `*` for any name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.update(["*"] if node.attr == "__dict__" else [] if _is_of_self(node) else [node.attr])
        elif isinstance(node, ast.Call):
            found.update(_set_by_call(node))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) or (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)):
            found.update(["*"] if node.value is not None and _is_names(node.value) else [])
    return frozenset(found)


def _set_by_call(call: ast.Call) -> list[str]:
    """Attributes that a call sets by name, such as `setattr`."""
    name = called(call)
    if name in ("setattr", "delattr", "__setattr__", "__delattr__"):
        texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        return texts[:1] or ["*"]
    return ["*"] if isinstance(call.func, ast.Attribute) and name in CHANGING and _is_names(call.func.value) else []


def _is_names(node: ast.expr) -> bool:
    """True for an object's `__dict__`, except that of an object made on the spot."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and len(node.args) == 1:
        return not isinstance(node.args[0], ast.Call)
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def given_below(definition: ast.ClassDef, classes: list[ast.ClassDef]) -> frozenset[str]:
    """Attributes and methods that classes of the file derived from this one may override."""
    below: list[ast.ClassDef] = []
    names = {definition.name}
    while more := [c for c in classes if c not in below and c is not definition and any(name_of(b) in names for b in c.bases)]:
        below += more
        names |= {c.name for c in more}
    methods = (m.name for other in below for m in other.body if isinstance(m, Function))
    return frozenset(methods).union(*map(stored_in, below), *(assignments_of(other, {}) for other in below))


def _root_attribute(node: ast.expr) -> str:
    """Attribute of `self` at the start of a chain of attributes and subscripts; empty for other chains."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) and not _is_of_self(node):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_of_self(target: ast.expr) -> bool:
    """True for an attribute of `self` as a whole."""
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _pairs(method: Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of assignments, each with its expression."""
    for node in ast.walk(method):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None:
            continue
        for target in targets_of(node):
            yield target, value
            if isinstance(target, Row) and isinstance(value, Row):
                starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
                yield from () if starred else zip(target.elts, value.elts, strict=False)
