"""Comprehensions that make nothing but the iterators of one group, and can be written out: `[pipe.train, pipe.validation]`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pipegen.migrate.scopes import COMPREHENSIONS, Comprehension
from pipegen.migrate.values import Flow, plain

if TYPE_CHECKING:
    from pipegen.migrate.groups import Group
    from pipegen.migrate.interpret import Collected


@dataclass(frozen=True)
class Display:
    """One comprehension.

    Attributes:
        node: The comprehension.
        element: The call in it that makes each iterator.
        flows: The iterators, in order.
        keys: Their keys, of a dict.
    """

    node: Comprehension
    element: ast.expr
    flows: tuple[Flow, ...]
    keys: tuple[str, ...] | None


def displays_of(found: Collected, group: Group, left_out: list[Flow]) -> list[Display]:
    """The comprehensions that make iterators of a group, where each of them makes no others and is a split of its own."""
    displays: dict[int, Display] = {}
    for flow in () if group.masks else group.parts.values():
        node = flow.frame.scope.node
        if isinstance(node, COMPREHENSIONS) and flow.frame.parent is not None and id(node) not in displays:
            display = _display(found, node, flow)
            if display is not None and all(f in group.parts.values() and f not in left_out for f in display.flows):
                displays[id(node)] = display
    return list(displays.values())


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
