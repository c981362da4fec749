"""Holds what a walk over a file finds: generators, iterators, pairs of them, and every use of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from pipegen.migrate.evaluate import FileEvaluator
from pipegen.migrate.values import Flow, Frame, Generator, Zipped

UseKind = Literal["model", "member", "method", "len", "next", "item", "loop", "zip", "other"]


@dataclass(eq=False)
class _AnyUse:
    kind: UseKind
    name: str
    node: ast.expr
    outer: ast.AST
    frame: Frame

    @property
    def line(self) -> int:
        """Returns where it stands."""
        return self.node.lineno


@dataclass(eq=False)
class Use(_AnyUse):
    """One use of an iterator.

    Attributes:
        kind: `model`: an argument of `fit` and its kin; `member`, `method`: of the iterator; `other`: anything else.
        name: The argument, the member or the function.
        node: The expression that is the iterator.
        outer: What is made of it: the call, the attribute, the loop.
    """

    flow: Flow


@dataclass(eq=False)
class PairUse(_AnyUse):
    """One use of two iterators that `zip` joins, which are `pair`; the rest as in `Use`."""

    pair: Zipped


@dataclass(eq=False)
class ModelCall:
    """A call of `fit` or its kin with an iterator among its arguments, which stand here by name."""

    node: ast.Call
    method: str
    args: dict[str, ast.expr]
    frame: Frame


@dataclass
class Collected:
    """Holds what a file has to do with `ImageDataGenerator`."""

    evaluator: FileEvaluator
    generators: list[Generator] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    pairs: list[Zipped] = field(default_factory=list)
    """Iterators that `zip` joins, two by two."""
    pair_uses: list[PairUse] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    fits: list[tuple[Generator, ast.Call]] = field(default_factory=list)
    members: list[tuple[Generator, str, int]] = field(default_factory=list)
    assigned: list[tuple[Generator, str, int]] = field(default_factory=list)
    """Arguments of the constructor, and statistics, that the code assigns to the generator later, with the lines."""
    names: dict[int, str] = field(default_factory=dict)
    """The variable that holds an iterator or a generator, by the id of the object."""
    statements: dict[int, tuple[ast.stmt, Frame]] = field(default_factory=dict)
    """The assignment whose whole value is a call that makes an object, by the id of the object."""
    shared: set[int] = field(default_factory=set)
    """Nodes that are several objects, since their function is called several times."""
    kept: list[object] = field(default_factory=list)
    """What has to stay in memory, since the ids of its nodes are remembered."""
    unsure: dict[int, ast.Attribute] = field(default_factory=dict)
    """Attributes of what is not known, and may be an iterator, by the id of the node."""

    sites: dict[int, list[tuple[ast.Call, Frame]]] = field(default_factory=dict)
    """The calls of functions of the file that give an iterator, the outermost first, each with its frame, by the id of the iterator."""

    def uses_of(self, flow: Flow) -> list[Use]:
        """The uses of one iterator."""
        return [u for u in self.uses if u.flow is flow]

    def served_by(self, use: Use | PairUse) -> list[Flow | Zipped]:
        """The iterators, or the pairs, that the place of a use has: several where a loop or a function runs several times."""
        uses: list[Use | PairUse] = [*self.uses, *self.pair_uses]
        here = {id(thing): thing for u in uses if u.node is use.node for thing in ((u.flow if isinstance(u, Use) else u.pair),)}
        return list(here.values())

    def is_drawn_from(self, flow: Flow) -> bool:
        """Returns whether code takes single batches from an iterator."""
        return any(u.kind in ("next", "item") or u.name in ("next", "__next__") for u in self.uses_of(flow))

    def only_drawn_from(self, flow: Flow) -> bool:
        """Returns whether all that is done with an iterator is to take batches from it with `next`."""
        uses = self.uses_of(flow)
        return bool(uses) and all(u.kind == "next" or (u.kind == "method" and u.name in ("next", "__next__")) for u in uses)

    def is_paired(self, flow: Flow) -> bool:
        """Returns whether it is joined with another iterator: by `zip`, or by batches that are drawn side by side with the same seed."""
        if any(u.kind == "zip" for u in self.uses_of(flow)):
            return True
        others = [f for f in self.flows if f is not flow and f.frame is flow.frame and f.get("subset") == flow.get("subset")]
        beside = [f for f in others if f.get("seed") is not None and f.get("seed") == flow.get("seed")]
        return self.only_drawn_from(flow) and any(self.only_drawn_from(f) for f in beside)

    def name_of(self, thing: Flow | Generator | Zipped) -> str:
        """The variable that holds it, or an empty text."""
        return self.names.get(id(thing), "")
