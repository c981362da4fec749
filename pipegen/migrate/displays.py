"""Comprehensions and loops that make only iterators of one group, and can be written out.

A comprehension becomes `[pipe.train, pipe.validation]`; a call in a loop over `name` becomes `{"train": pipe.train, …}[name]`.
"""

from __future__ import annotations

import ast
from typing import cast

from pipegen.frozen import dataclass
from pipegen.migrate.collected import Collected
from pipegen.migrate.groups import Group
from pipegen.migrate.nodes import Comprehension
from pipegen.migrate.values import Flow, certain, plain


@dataclass(frozen=True)
class Display:
    """One comprehension, or one call in a loop.

    Attributes:
        node: The comprehension, or the loop.
        element: The call in it that makes each iterator.
        flows: The iterators, in order.
        keys: Their keys in a dict; for a loop, the values of its variable.
        name: The variable of a loop.
        is_tuple: True for a call that returns a tuple.
    """

    node: Comprehension | ast.For | ast.Call
    element: ast.expr
    flows: tuple[Flow, ...]
    keys: tuple[str | int, ...] | None
    name: str = ""
    is_tuple: bool = False


def displays_of(found: Collected, group: Group, left_out: list[Flow]) -> list[Display]:
    """Comprehensions that make only iterators of a group, each one a split of its own."""
    displays: dict[int, Display] = {}
    for flow in () if group.masks else group.parts.values():
        node, display = flow.frame.scope.node, None
        if isinstance(node, Comprehension):
            display = _display(found, node, flow)
        elif isinstance(node, ast.For):
            display = _in_loop(found, node, flow)
        if display is not None and all(f in group.parts.values() and f not in left_out for f in display.flows):
            displays.setdefault(id(display.element), display)
    return list(displays.values())


def _in_loop(found: Collected, node: ast.For, flow: Flow) -> Display | None:
    """A call in a loop of its function whose rounds a loop variable tells apart."""
    flows = tuple(f for f in found.flows if f.node is flow.node)
    frames = found.evaluator.rounds.get((id(node), id(flow.frame.parent)))
    if frames is None or any(f.frame not in frames for f in flows):
        return None
    for name in (n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)):
        keys = tuple(certain(f.frame.args.get(name)) for f in flows)
        known = all(isinstance(key, (str, int)) for key in keys)
        if known and len(set(keys)) == len(keys) and len(flow.frame.scope.bindings.get(name, [])) == 1:
            return Display(node, flow.node, flows, keys, name)
    return None


def _display(found: Collected, node: Comprehension, flow: Flow) -> Display | None:
    frames = found.evaluator.rounds.get((id(node), id(flow.frame.parent)))
    if frames is None or isinstance(node, ast.SetComp):
        return None
    element = node.value if isinstance(node, ast.DictComp) else node.elt
    flows = tuple(found.evaluator.value(element, frame) for frame in frames)
    made = [f for f in found.flows if f.node is element]
    if not all(isinstance(f, Flow) and f.node is element for f in flows) or len(made) != len(flows):
        return None
    keys = tuple(plain(found.evaluator.value(node.key, frame)) for frame in frames) if isinstance(node, ast.DictComp) else None
    return Display(node, element, cast("tuple[Flow, ...]", flows), keys)
