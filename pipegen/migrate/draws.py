"""Batches that code takes one by one: one iterator continues through all of them, as in Keras."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from pipegen.migrate.edits import Edits
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.nodes import Comprehension, Function, Loop, begins_in, lies_in, names_in, start, stored_in, targets_of
from pipegen.migrate.values import Flow, Frame

ENDLESS = ".repeat().as_numpy_iterator()"  # turns a split into endless batches
_NEXT = ("next", "__next__")


def is_next(use: Use) -> bool:
    """True for `next(it)` and `it.next()`."""
    return use.kind == "next" or (use.kind == "method" and use.name in _NEXT)


def is_first(use: Use) -> bool:
    """True for `it[0]`."""
    outer = use.outer
    return use.kind == "item" and isinstance(outer, ast.Subscript) and isinstance(outer.slice, ast.Constant) and outer.slice.value == 0


def going_on(found: Collected, flow: Flow) -> list[Use]:
    """Uses that must share one iterator, since each takes a further batch or new draws."""
    uses = found.uses_of(flow)
    nexts = [u for u in uses if is_next(u)]
    once = all(u.frame is flow.frame and u.frame.scope.is_once((u.line, 0)) for u in nexts[:1])
    single = len({id(u.node) for u in nexts}) == 1 and once
    return [*(() if single else nexts), *(u for u in uses if is_first(u) and _is_drawn_anew(found, u))]


def goes_on(found: Collected, flow: Flow, replaced: frozenset[str]) -> bool:
    """True if an iterator can become endless batches: code only takes batches and `replaced` members from it."""
    drawn = going_on(found, flow)
    others = [u for u in found.uses_of(flow) if not any(u is d for d in drawn)]
    return bool(drawn) and all(
        (u.kind == "member" and u.name in replaced) or (u.kind == "method" and u.name in ("reset", "on_epoch_end")) or u.kind == "len"
        for u in others
    )


def region_of(use: Use) -> ast.AST | None:
    """Innermost comprehension, loop or function that runs a use several times; `None` if it runs once."""
    if isinstance(use.frame.scope.node, Comprehension):
        return use.frame.scope.node
    if use.node is use.flow.node:
        return max(loops_around(use.flow), key=start, default=None)
    function = of_function(use.frame).scope.node
    loops = [n for n in ast.walk(function) if isinstance(n, Loop) and begins_in(use.node, *n.body)]
    loops = [n for n in loops if of_function(use.flow.frame) is not of_function(use.frame) or not lies_in(use.flow.node, n)]
    return max(loops, key=start, default=None) or (function if function is not of_function(use.flow.frame).scope.node else None)


def _is_drawn_anew(found: Collected, use: Use) -> bool:
    """True if `it[0]` has new draws each time it runs: no other part of the same batch has to match in its round."""
    region = region_of(use)
    if region is None:
        return False
    others = {id(u.node) for u in found.uses_of(use.flow) if is_first(u) and lies_in(u.node, region)}
    if not isinstance(region, Loop) and len(others) > 1:
        return False
    targets = [region.target] if isinstance(region, (ast.For, ast.AsyncFor)) else []
    targets += [g.target for g in region.generators] if isinstance(region, Comprehension) else []
    names = names_in(*targets)
    body = [region] if not isinstance(region, Loop) else region.body
    return not any(
        isinstance(n, ast.Subscript) and _begins(n, use.outer) and names & names_in(n.slice) for part in body for n in ast.walk(part)
    )


def _begins(node: ast.expr, chain: ast.AST) -> bool:
    """True if an expression is a chain of subscripts, attributes and calls that begins with a node."""
    while node is not chain:
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return False
    return True


@dataclass
class Draws:
    """Makes the continuing iterators beside datasets."""

    edits: Edits
    found: Collected
    names_of_calls: list[str] = field(default_factory=list)  # iterators that replace calls
    _names: dict[str, str] = field(default_factory=dict)
    _placed: set[tuple[str, int]] = field(default_factory=set)
    _rounds: dict[tuple[str, int], str] = field(default_factory=dict)

    def new_name(self, wanted: str) -> str:
        """A name that is not used in the code."""
        made = (*self._names.values(), *self._rounds.values(), *self.names_of_calls)
        taken = {*re.findall(r"\w+", self.edits.text), *(name.removeprefix("self.") for name in made)}
        return next(n for n in (wanted, *(f"{wanted}{i}" for i in range(2, len(taken) + 3))) if n not in taken)

    def iterator(self, use: Use, dataset: str) -> str | None:
        """Variable of the iterator for a use, created at its dataset if there is a place."""
        target = ast.unparse(use.node)
        place = self._place(use, target)
        if place is None or not isinstance(use.node, (ast.Name, ast.Attribute)):
            return None
        if target not in self._names:
            name = self.new_name("batches")
            self._names[target] = f"self.{name}" if isinstance(use.node, ast.Attribute) else name
        name = self._names[target]
        if (name, id(place)) not in self._placed:
            self._placed.add((name, id(place)))
            text = f"{name} = {dataset}{ENDLESS}"
            if isinstance(place, Function):
                first = place.body[0]
                documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(place.body) > 1
                self.edits.before(place.body[1] if documented else first, text)
            else:
                self.edits.after(place, text)
        return name

    def of_round(self, use: Use, iterator: str) -> str:
        """Expression for a use of `it[0]`: the next batch, shared by uses of the same round."""
        region = region_of(use)
        shared = [u for u in self.found.uses_of(use.flow) if is_first(u) and region is not None and region_of(u) is region]
        if len({id(u.node) for u in shared}) < 2 or not isinstance(region, Loop):
            return f"next({iterator})"
        key = (iterator, id(region))
        if key not in self._rounds:
            self._rounds[key] = self.new_name("batch")
            self.edits.before(region.body[0], f"{self._rounds[key]} = next({iterator})")
        return self._rounds[key]

    def _place(self, use: Use, target: str) -> ast.stmt | None:
        """The statement that assigns the iterator of a use, or the function that receives it."""
        statement, frame = self.found.statements.get(id(use.flow), (None, use.flow.frame))
        assigned = statement is not None and target == ast.unparse(targets_of(statement)[0])
        if isinstance(use.node, ast.Attribute):
            inside = use.frame.class_frame is not None and use.frame.class_frame is frame.class_frame
            return statement if assigned and inside and target.startswith("self.") else None
        if not isinstance(use.node, ast.Name):
            return None
        around = _binding_frame(use.node.id, use.frame)
        if around is None:
            return None
        if assigned and of_function(frame) is around and use.node.id not in around.scope.module_names:
            return statement
        bindings = around.scope.bindings[use.node.id]
        node = around.scope.node
        given = len(bindings) == 1 and bindings[0].kind == "param"
        return node if given and isinstance(node, Function) else None


def _binding_frame(name: str, frame: Frame) -> Frame | None:
    """Frame of the function or module that binds a name read in a frame."""
    for here in frame.outward:
        if name in here.scope.module_names:
            return None
        if name in here.scope.bindings and here is of_function(here):
            return here
    return None


def loops_around(flow: Flow) -> list[ast.stmt]:
    """Loops of its function around an iterator, outermost first, up to one that changes its inputs."""
    function = of_function(flow.frame).scope.node
    loops = [n for n in ast.walk(function) if isinstance(n, Loop) and begins_in(flow.node, *n.body)]
    read = names_in(*(a.node for a in (*flow.args.values(), *getattr(flow.generator, "args", {}).values())))
    return sorted((loop for loop in loops if not stored_in(loop) & read), key=start)
