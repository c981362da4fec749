"""Names bound in a scope, where and to what, and objects changed in place; found without running code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from pipegen.frozen import dataclass
from pipegen.migrate import nodes

Node = ast.Module | nodes.Function | ast.ClassDef | ast.Lambda | nodes.Comprehension

Kind = Literal["value", "import", "definition", "param", "changed", "other"]
Condition = tuple[ast.expr, bool]  # of a branch, with the truth that it requires
ALWAYS: nodes.Position = (1 << 29, 0)  # position of events in a function, which may run at any time
_MOST_ROUNDS = 5
Changers = Mapping[str, frozenset[str | int]]  # parameters whose objects a function changes, by name and position, for each function name

CHANGING = frozenset(
    {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "update", "setdefault", "popitem", "add", "discard"}
)
"""Methods that change their object."""
_MOST_CALLS = 3


@dataclass(frozen=True)
class Binding:
    """One place where a name gets a value."""

    name: str
    after: nodes.Position  # the position from which it holds
    kind: Kind
    """`value`: the expression in `value`, `path` into it; `import`: `dotted`; `definition`: `node`; `param`; `changed`: the object
    itself is changed in place; `other`: something that is not followed, such as a loop's target."""
    straight: bool  # true if the statement runs whenever its scope does, once and in order
    value: ast.expr | None = None  # for `changed` by a method call as a statement: the call
    path: tuple[int, ...] = ()
    dotted: str = ""
    node: ast.AST | None = None
    line: int = 0  # its line, if `after` does not have it
    conditions: tuple[Condition, ...] | None = None
    """Conditions of the branches around the statement, each with its required truth, if they alone decide whether it runs once and in
    order; else `None`."""
    key: ast.expr | None = None  # for `changed` by `name[key] = value`: the key

    @property
    def column(self) -> str | None:
        """Column changed by `name['column'] = value`, if it is a text."""
        return self.key.value if isinstance(self.key, ast.Constant) and isinstance(self.key.value, str) else None


@dataclass(eq=False)
class Scope:
    """Names of a module, function, class, lambda or comprehension."""

    node: Node
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    module_names: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)  # modules of `from MODULE import *`
    loops: list[tuple[nodes.Position, nodes.Position]] = field(default_factory=list)

    def is_once(self, at: nodes.Position) -> bool:
        """True if a position is in no loop of the scope, so that later text does not run before it."""
        return not any(first <= at <= last for first, last in self.loops)

    def add(self, binding: Binding) -> None:
        """Adds one binding."""
        self.bindings.setdefault(binding.name, []).append(binding)


def scope_of(node: Node, changers: Changers) -> Scope:
    """Scope of a node; `changers` are the functions of the file that change their arguments."""
    scope = Scope(node)
    names = [a.arg for a in nodes.parameters(node.args)] if isinstance(node, (nodes.Function, ast.Lambda)) else []
    loops = node.generators if isinstance(node, nodes.Comprehension) else []
    for name in (*names, *(name for loop in loops for name in _names(loop.target))):
        scope.add(Binding(name, (0, 0), "param", straight=True))
    if not isinstance(node, (ast.Lambda, nodes.Comprehension)):
        _Reader(scope, changers).block(node.body, straight=True)
    _share_changes(scope)
    for bindings in scope.bindings.values():
        bindings.sort(key=lambda b: b.after)
    return scope


def _share_changes(scope: Scope) -> None:
    """Adds a change under one name to every other name of the same object."""
    pairs = [
        (name, b.value.id, b.after)
        for name, bindings in scope.bindings.items()
        for b in bindings
        if b.kind == "value" and not b.path and isinstance(b.value, ast.Name) and b.value.id in scope.bindings
    ]
    for _ in range(_MOST_ROUNDS if any(b.kind == "changed" for bindings in scope.bindings.values() for b in bindings) else 0):
        more = [
            (twin, change)
            for one, other, since in pairs
            for name, twin in ((one, other), (other, one))
            for change in scope.bindings[name]
            if change.kind == "changed" and change.after > since
        ]
        fresh = {
            (twin, c.after): c for twin, c in more if not any(b.kind == "changed" and b.after == c.after for b in scope.bindings[twin])
        }
        for (twin, _after), change in fresh.items():
            scope.add(replace(change, name=twin))
        if not fresh:
            return


def _names(target: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


class _Reader:
    """Collects the bindings of one scope."""

    def __init__(self, scope: Scope, changers: Changers) -> None:
        self.scope = scope
        self.changers = changers
        self.conditions: tuple[Condition, ...] | None = ()

    def block(self, body: list[ast.stmt], *, straight: bool) -> None:
        for statement in body:
            self.statement(statement, straight)

    def statement(self, node: ast.stmt, straight: bool) -> None:
        after = nodes.end(node)
        if isinstance(node, (nodes.Function, ast.ClassDef)):
            self._bind(node.name, after, "definition", straight, node=node)
            for name, line, anew in foreign(node, self.changers):  # outer names that it rebinds, or whose objects it changes
                self.scope.add(Binding(name, ALWAYS, "other" if anew else "changed", straight=False, line=line))
            return
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in nodes.targets_of(node):
                if node.value is not None:
                    self._target(target, node.value, after, straight)
        elif isinstance(node, ast.AugAssign):
            self._other(node.target, after, straight=straight)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, after, straight)
        elif isinstance(node, ast.Global):
            self.scope.module_names.update(node.names)
        elif isinstance(node, ast.Delete):
            for target in node.targets:  # a deleted name is not read later, and its object is unchanged
                self._other(target, after, straight=straight, kind="changed")
        self._expressions(node, straight)
        self._inside(node, straight)

    def _inside(self, node: ast.stmt, straight: bool) -> None:
        if isinstance(node, nodes.Loop):
            self.scope.loops.append((nodes.start(node), nodes.end(node)))
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._other(node.target, nodes.start(node.body[0]))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._other(item.optional_vars, nodes.start(node))
        stays = straight and (isinstance(node, (ast.With, ast.AsyncWith)) or (isinstance(node, ast.If) and nodes.is_main(node.test)))
        outer = self.conditions
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                self.conditions = self._around(node, first=name == "body")
                self.block([s for s in block if isinstance(s, ast.stmt)], straight=stays and name == "body")
                self.conditions = outer
        self.conditions = None
        for handler in getattr(node, "handlers", ()):
            if handler.name:
                self._bind(handler.name, nodes.start(handler), "other", False)
            self.block(handler.body, straight=False)
        for case in getattr(node, "cases", ()):
            self._case(case, nodes.start(node))
        self.conditions = outer

    def _around(self, node: ast.stmt, *, first: bool) -> tuple[Condition, ...] | None:
        """Conditions around a block of a statement; `first` separates its body from `else`."""
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.conditions
        if not isinstance(node, ast.If) or self.conditions is None:
            return None
        return self.conditions if first and nodes.is_main(node.test) else (*self.conditions, (node.test, first))

    def _case(self, case: ast.match_case, after: nodes.Position) -> None:
        for inner in ast.walk(case.pattern):
            name = getattr(inner, "name", None) or getattr(inner, "rest", None)
            if isinstance(name, str):
                self._bind(name, after, "other", False)
        self.block(case.body, straight=False)

    def _expressions(self, node: ast.stmt, straight: bool) -> None:
        """Handles walrus targets, and calls that change an object in place, in a statement's own expressions."""
        own = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.excepthandler))]
        for inner in nodes.own_nodes(own, (ast.Lambda, ast.stmt)):
            if isinstance(inner, ast.NamedExpr):
                self._bind(inner.target.id, nodes.end(node), "other", False)
            if isinstance(inner, ast.Call):
                for name in changed_names(inner, self.changers):
                    alone = isinstance(node, ast.Expr) and node.value is inner
                    of_it = isinstance(inner.func, ast.Attribute) and getattr(inner.func.value, "id", "") == name
                    self._bind(name, nodes.end(node), "changed", straight, value=inner if alone and of_it else None)

    def _target(self, target: ast.expr, value: ast.expr, after: nodes.Position, straight: bool, path: tuple[int, ...] = ()) -> None:
        if isinstance(target, ast.Name):
            self._bind(target.id, after, "value", straight, value=value, path=path)
        elif isinstance(target, nodes.Row):
            starred = any(isinstance(t, ast.Starred) for t in target.elts)
            for i, inner in enumerate(target.elts):
                if starred:
                    self._other(inner, after)
                else:
                    self._target(inner, value, after, straight, (*path, i))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._bind(target.value.id, after, "changed", straight, value=None if path else value, key=target.slice)
        else:
            self._other(target, after, straight=straight)

    def _other(self, target: ast.expr, after: nodes.Position, *, straight: bool = False, kind: Kind = "other") -> None:
        if isinstance(target, (ast.Subscript, ast.Attribute)):
            if nodes.root_name(target) not in ("", "self"):
                self._bind(nodes.root_name(target), after, "changed", straight)
            return
        for name in _names(target):
            self._bind(name, after, kind, straight)

    def _import(self, node: ast.Import | ast.ImportFrom, after: nodes.Position, straight: bool) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                dotted = alias.name if alias.asname else alias.name.split(".")[0]
                self._bind(alias.asname or dotted, after, "import", straight, dotted=dotted)
            elif alias.name == "*":
                self.scope.stars.append(node.module or "")
            else:
                dotted = f"{'.' * node.level}{node.module or ''}.{alias.name}"
                self._bind(alias.asname or alias.name, after, "import", straight, dotted=dotted)

    def _bind(self, name: str, after: nodes.Position, kind: Kind, straight: bool, **more: Any) -> None:
        conditions = () if straight else self.conditions
        self.scope.add(Binding(name, after, kind, straight, conditions=conditions, **more))


def changed_objects(node: ast.AST, changers: Changers) -> list[ast.expr]:
    """Expressions whose objects, or parts of them, a single node changes in place."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return [node]
    if not isinstance(node, ast.Call):
        return []
    found = []
    if isinstance(node.func, ast.Attribute):
        in_place = any(k.arg == "inplace" and not (isinstance(k.value, ast.Constant) and not k.value.value) for k in node.keywords)
        found += [node.func.value] if in_place or node.func.attr in CHANGING else []
    changed = changers.get(nodes.called(node), frozenset())
    given: list[tuple[str | int | None, ast.expr]] = [*enumerate(node.args), *((k.arg, k.value) for k in node.keywords)]
    return found + [value for place, value in given if place in changed and isinstance(value, (ast.Name, ast.Attribute, ast.Subscript))]


def changed_names(node: ast.AST, changers: Changers) -> list[str]:
    """Names whose objects a single node changes in place; `self` is left to its class."""
    return [name for name in map(nodes.root_name, changed_objects(node, changers)) if name not in ("", "self")]


def changers_of(tree: ast.Module) -> Changers:
    """Functions and methods of a file that change their arguments."""
    kinds = (ast.Attribute, ast.Subscript, ast.Call)
    functions = [(n, [m for m in ast.walk(n) if isinstance(m, kinds)]) for n in ast.walk(tree) if isinstance(n, nodes.Function)]
    found: dict[str, frozenset[str | int]] = {}
    for _ in range(_MOST_CALLS):
        before = dict(found)
        for function, inner in functions:
            changed = {name for n in inner for name in changed_names(n, found)}
            names = nodes.places(function.args)
            given = {name for name in (*names, *(a.arg for a in function.args.kwonlyargs)) if name in changed}
            if given:
                found[function.name] = found.get(function.name, frozenset()) | given | {i for i, n in enumerate(names) if n in given}
        if found == before:
            break
    return found


def foreign(
    node: nodes.Function | ast.ClassDef, changers: Changers, hidden: frozenset[str] = frozenset()
) -> Iterator[tuple[str, int, bool]]:
    """Yields the effects of a function, or of a class's methods, on the names around it.

    Args:
        node: The function or the class.
        changers: The functions that change their arguments.
        hidden: Names that mean other objects here.

    Yields:
        The name, the line, and True for a new binding (`global`), False for a change in place.
    """
    declared: set[str] = set()
    aliases: dict[str, str] = {}
    own = nodes.own_nodes(node.body, nodes.DEFINITIONS)
    if isinstance(node, nodes.Function):
        declared = {name for n in own if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        pairs = nodes.defaults_of(node.args)  # other names of an object: by a default, or by an assignment
        pairs += [(t.id, n.value) for n in own if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)]
        aliases = {name: value.id for name, value in pairs if isinstance(value, ast.Name)}
        stored = {n.id for n in own if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))}
        hidden = (hidden | stored | {a.arg for a in nodes.parameters(node.args)}) - declared
    for n in own:
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)) and n.id in declared:
            yield n.id, n.lineno, True
        for name in changed_names(n, changers):
            for each in (name, aliases.get(name, "")):
                if each and each not in hidden:
                    yield each, getattr(n, "lineno", 0), False
        if isinstance(n, nodes.DEFINITIONS):
            yield from foreign(n, changers, hidden)


@dataclass(frozen=True)
class Assignment:
    """One assignment to an attribute of `self`."""

    method: nodes.Function
    value: ast.expr | None  # the assigned expression; `None` if there is no single one, and for a change in place
    straight: bool = False  # true if it is assigned whenever the method runs


def assignments_of(definition: ast.ClassDef, changers: Changers) -> dict[str, list[Assignment]]:
    """Assignments and changes of attributes of `self` in the methods of a class."""
    found: dict[str, list[Assignment]] = {}
    for method in definition.body:
        if isinstance(method, nodes.Function):
            known = {id(target): value for target, value in _pairs(method) if is_of_self(target)}
            straight = {id(n) for s in nodes.flattened(method.body) if isinstance(s, (ast.Assign, ast.AnnAssign)) for n in ast.walk(s)}
            for node in ast.walk(method):
                for name in filter(None, map(_root_attribute, changed_objects(node, changers))):
                    found.setdefault(name, []).append(Assignment(method, known.get(id(node)), id(node) in straight))
    return found


def attributes_from_outside(tree: ast.Module) -> frozenset[str]:
    """Attributes assigned on other objects than `self`, such as `trainer.size = 3`; `*` for any name."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.update(["*"] if node.attr == "__dict__" else [] if is_of_self(node) else [node.attr])
        elif isinstance(node, ast.Call):
            found.update(_set_by_call(node))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) or (isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)):
            found.update(["*"] if node.value is not None and _is_names(node.value) else [])
    return frozenset(found)


def _set_by_call(call: ast.Call) -> list[str]:
    """Attributes that a call sets by name, such as `setattr`."""
    name = nodes.called(call)
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
    while more := [c for c in classes if c not in below and c is not definition and any(nodes.name_of(b) in names for b in c.bases)]:
        below += more
        names |= {c.name for c in more}
    methods = (m.name for other in below for m in other.body if isinstance(m, nodes.Function))
    return frozenset(methods).union(*map(nodes.stored_in, below), *(assignments_of(other, {}) for other in below))


def _root_attribute(node: ast.expr) -> str:
    """Attribute of `self` at the start of a chain of attributes and subscripts; empty for other chains."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) and not is_of_self(node):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else ""


def is_of_self(target: ast.expr) -> bool:
    """True for an attribute of `self` as a whole."""
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"


def _pairs(method: nodes.Function) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets of assignments, each with its expression."""
    for node in ast.walk(method):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is None:
            continue
        for target in nodes.targets_of(node):
            yield target, value
            if isinstance(target, nodes.Row) and isinstance(value, nodes.Row):
                starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
                yield from () if starred else zip(target.elts, value.elts, strict=False)
