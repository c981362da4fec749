"""Finds the floats that are computed exactly: those that a later stage rounds to whole numbers.

A table, or a cast to bytes, turns a difference in the last bit into a whole level, and a table of the histogram turns that into a
difference of the whole image. So what enters such a stage has to have the same bits in XLA and out of it, at every batch size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Node
from pipegen.types import FLOATING, ElementType


def marked(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Returns the nodes, of one stage each, in which every stage says whether its floats are rounded later."""
    exact: dict[int, Node] = {place: replace(node, stages=(replace(stage, exact=True),)) for place, node, stage in _meant(nodes)}
    return tuple(exact.get(place, node) for place, node in enumerate(nodes))


def unmarked(nodes: Sequence[Node]) -> list[s.Stage]:
    """Returns the stages, in nodes of one stage each, that do not say that their floats are rounded later."""
    return [stage for _, _, stage in _meant(nodes) if not stage.exact]


def _meant(nodes: Sequence[Node]) -> Iterator[tuple[int, Element | Kernel, s.Computes]]:
    """Yields the stages that compute floats which are rounded later, or that round them, with their nodes and the places of those; the
    last one first."""
    rounded: set[str] = set()
    for place in range(len(nodes) - 1, 0, -1):
        node = nodes[place]
        if not isinstance(node, (Element, Kernel)):
            continue
        (stage,) = node.stages
        feature = stage.feature
        if isinstance(stage, s.Fork):
            rounded |= {feature} if rounded & {*stage.names} else set()
            continue
        before, after = _dtype(nodes[place - 1].out, feature), _dtype(node.out, feature)
        if before in FLOATING and after not in FLOATING:
            rounded.add(feature)
        computing = stage.stage if isinstance(stage, s.Branch) else stage
        if feature in rounded and isinstance(computing, s.Computes):
            yield place, node, computing
        if before not in FLOATING:
            rounded.discard(feature)


def _dtype(edge: ElementType, feature: str) -> str | None:
    known = edge.get(feature)
    return None if known is None else known.dtype
