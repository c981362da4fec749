"""Uses of iterators that the edits did not reach, since they are uncertain; each is reported at its line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.interpret import Collected
from pipegen.migrate.nodes import Function, Row, called, defaults_of, given_to, name_of, own_nodes, places, root_name, targets_of
from pipegen.migrate.uses import MEMBERS, is_dropped
from pipegen.migrate.values import Flow

_OTHER_MEMBERS = {
    "filenames": 'write `{pipe}.files("{split}")`, which returns full paths',
    "image_shape": "write the shape itself",
    "batch_size": "write the number itself",
}
_MEMBERS = {**{name: f"write `{form}`" for name, form in MEMBERS.items()}, **_OTHER_MEMBERS}
_METHODS = {
    "reset": "remove it: every pass over a dataset starts at the beginning",
    "next": "make one iterator, `batches = iter(DATASET.repeat())`, and write `next(batches)`",
}
_OLD_CALLS = ("fit_generator", "evaluate_generator", "predict_generator")
_CALLS = ("fit", "evaluate", "predict")
_OF_CONTAINERS = ("items", "values", "get", "pop", "copy")  # methods of a dict or list that return its content
_KEEPING = ("iter", "list", "tuple", "dict", "zip", "enumerate", "reversed", "cycle", "chain")
"""Functions whose result contains their arguments."""
_PARTS: dict[tuple[type[ast.expr], ...], tuple[str, ...]] = {
    (ast.Subscript, ast.Starred, ast.NamedExpr, ast.Await, ast.DictComp): ("value",),
    (ast.Tuple, ast.List, ast.Set): ("elts",),
    (ast.Dict, ast.BoolOp): ("values",),
    (ast.IfExp,): ("body", "orelse"),
    (ast.ListComp, ast.SetComp, ast.GeneratorExp): ("elt",),
}
"""Parts of an expression that its value may be or contain."""
_MOST_ROUNDS = 6


@dataclass
class Leftovers:
    """Finds and reports them."""

    edits: Edits
    found: Collected
    findings: Findings
    done: list[Flow]  # the iterators that were exchanged
    pipe: str
    names: set[str] = field(default_factory=set)
    """Variables, attributes and functions that may hold or return one of them; equal names of other scopes count as the same."""
    _made: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._made = {id(f.node) for f in self.done}

    def report(self) -> None:
        """Reports each of them."""
        self._follow()
        parents = {id(n.func) for n in ast.walk(self.edits.tree) if isinstance(n, ast.Call)}
        for node in self.found.unsure.values():
            if self._carries(node.value) and not is_dropped(self.found, node):
                self._attribute(node, called=id(node) in parents)
        known = {id(call.node) for call in self.found.calls}
        for call in ast.walk(self.edits.tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and id(call) not in known:
                self._call(call, call.func.attr)

    def _attribute(self, node: ast.Attribute, *, called: bool) -> None:
        name = node.attr
        forms = _METHODS if called else _MEMBERS
        if name not in forms:
            return
        shown = self.edits.source(node.value).split("\n")[0]
        message = f"`{shown}` may be the iterator, which is a dataset now and has no `.{name}{'()' if called else ''}`"
        self.findings.add("PG615", node.lineno, message, f"if it is, {forms[name].format(pipe=self.pipe, split='…')}")

    def _call(self, call: ast.Call, name: str) -> None:
        help_ = "name the arguments, and remove `steps_per_epoch`, `validation_steps`, `workers` and the like"
        first = next(iter((*call.args, *(k.value for k in call.keywords if k.arg in ("generator", "x")))), None)
        if name in _OLD_CALLS:
            why = "its argument may be the iterator"
            if self._is_python_generator(first):
                why = "its argument is a Python generator"
                help_ = "keep `steps_per_epoch` and the like, since a generator has no length; remove `workers` and the like"
            message = f"`{name}` does not exist in Keras 3; it is not edited, since {why}"
            self.findings.add("PG615", call.lineno, message, f"write `{name.removesuffix('_generator')}`; {help_}")
        elif name in _CALLS and any(k.arg is None and self._carries(k.value) for k in call.keywords):
            message = f"`{name}` is not edited, since its unpacked arguments may contain the iterator"
            self.findings.add("PG615", call.lineno, message, help_)

    def _is_python_generator(self, node: ast.expr | None) -> bool:
        """True for a call of a generator function of the file, or a name that one is assigned to."""
        if isinstance(node, ast.Name):
            assigned = (s for s in ast.walk(self.edits.tree) if isinstance(s, ast.Assign))
            given = [s.value for s in assigned if node.id in [getattr(t, "id", "") for t in s.targets]]
            return bool(given) and all(isinstance(value, ast.Call) and self._is_python_generator(value) for value in given)
        if not isinstance(node, ast.Call):
            return False
        functions = [n for n in ast.walk(self.edits.tree) if isinstance(n, Function) and n.name == called(node)]
        return any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for f in functions for inner in own_nodes(f))

    # What may hold an iterator

    def _follow(self) -> None:
        """Finds the names by following assignments, loops, arguments and returns."""
        functions: dict[str, Function] = {n.name: n for n in ast.walk(self.edits.tree) if isinstance(n, Function)}
        for _ in range(_MOST_ROUNDS):
            before = len(self.names)
            for node in ast.walk(self.edits.tree):
                self.names.update(self._reached(node, functions))
            if len(self.names) == before:
                return

    def _reached(self, node: ast.AST, functions: dict[str, Function]) -> Iterator[str]:
        """Names to which a single node passes an iterator."""
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            for target in [node.target] if isinstance(node, ast.NamedExpr) else targets_of(node):
                yield from self._assigned(target, node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)) and self._carries(node.iter):
            yield from _stored(node.target)
        elif isinstance(node, Function):
            given = [n.value for n in ast.walk(node) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) and n.value is not None]
            if any(self._carries(value) for value in given):
                yield node.name
            yield from (name for name, default in defaults_of(node.args) if self._carries(default))
        elif isinstance(node, ast.Call) and called(node) in functions:
            parameters = zip(places(functions[called(node)].args), node.args, strict=False)
            yield from (name for name, value in parameters if self._carries(value))
            yield from (k.arg for k in node.keywords if k.arg is not None and self._carries(k.value))

    def _assigned(self, target: ast.expr, value: ast.expr) -> Iterator[str]:
        """Names of a target; for a tuple, only those whose own part is an iterator."""
        both = [e.elts if isinstance(e, Row) else [] for e in (target, value)]
        if both[0] and len(both[0]) == len(both[1]):
            for inner, part in zip(*both, strict=True):
                yield from self._assigned(inner, part)
        elif self._carries(value):
            yield from _stored(target)

    def _carries(self, node: ast.AST | None) -> bool:
        """True if an expression may be or contain one of the iterators."""
        if node is None or id(node) in self._made:
            return node is not None
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.Attribute):
            return node.attr in self.names or (node.attr not in _MEMBERS and self._carries(node.value))
        if isinstance(node, ast.Call):
            name = called(node)
            of_container = isinstance(node.func, ast.Attribute) and name in _OF_CONTAINERS and self._carries(node.func.value)
            keeps = name in _KEEPING or name[:1].isupper()  # an object of a class, such as a named tuple
            return name in self.names or of_container or (keeps and any(map(self._carries, given_to(node))))
        parts = [getattr(node, name) for kinds, names in _PARTS.items() if isinstance(node, kinds) for name in names]
        return any(map(self._carries, chain.from_iterable(part if isinstance(part, list) else [part] for part in parts)))


def _stored(target: ast.expr) -> Iterator[str]:
    """Yields the names, attributes and subscripted objects that an assignment changes."""
    if isinstance(target, Row):
        for inner in target.elts:
            yield from _stored(inner)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
    elif isinstance(target, ast.Subscript):
        yield target.value.attr if isinstance(target.value, ast.Attribute) else root_name(target)
    elif name_of(target):
        yield name_of(target)
