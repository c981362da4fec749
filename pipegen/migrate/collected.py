"""Results of a walk over a file: generators, iterators, pairs of them, and all their uses."""

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
        """Line of the use."""
        return self.node.lineno


@dataclass(eq=False)
class Use(_AnyUse):
    """One use of an iterator.

    Attributes:
        kind: `model`: an argument of `fit` or similar; `member`, `method`: of the iterator; `other`: anything else.
        name: The argument, the member or the function.
        node: The expression of the iterator.
        outer: The expression or statement that uses it: the call, the attribute, the loop.
    """

    flow: Flow


@dataclass(eq=False)
class PairUse(_AnyUse):
    """A use of two iterators joined by `zip`, in `pair`; otherwise like `Use`."""

    pair: Zipped


@dataclass(eq=False)
class ModelCall:
    """A call of `fit` or similar with iterators among its arguments, by name."""

    node: ast.Call
    method: str
    args: dict[str, ast.expr]
    frame: Frame


@dataclass
class Collected:
    """All that concerns `ImageDataGenerator` in a file."""

    evaluator: FileEvaluator
    generators: list[Generator] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    pairs: list[Zipped] = field(default_factory=list)
    """Pairs of iterators joined by `zip`."""
    pair_uses: list[PairUse] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    fits: list[tuple[Generator, ast.Call]] = field(default_factory=list)
    members: list[tuple[Generator, str, int]] = field(default_factory=list)
    assigned: list[tuple[Generator, str, int]] = field(default_factory=list)
    """Constructor arguments and statistics that the code assigns to a generator later, with their lines."""
    names: dict[int, str] = field(default_factory=dict)
    """Variable of an iterator or a generator, by the object's id."""
    statements: dict[int, tuple[ast.stmt, Frame]] = field(default_factory=dict)
    """Assignment whose whole value is the call that makes an object, by the object's id."""
    shared: set[int] = field(default_factory=set)
    """Nodes that make several objects, since their function is called several times."""
    kept: list[object] = field(default_factory=list)
    """Objects kept alive, since the ids of their nodes are stored."""
    unsure: dict[int, ast.Attribute] = field(default_factory=dict)
    """Attributes of unknown values that may be iterators, by the node's id."""

    sites: dict[int, list[tuple[ast.Call, Frame]]] = field(default_factory=dict)
    """Calls of functions of the file that return an iterator, outermost first, each with its frame, by the iterator's id."""

    def uses_of(self, flow: Flow) -> list[Use]:
        """The uses of one iterator."""
        return [u for u in self.uses if u.flow is flow]

    def served_by(self, use: Use | PairUse) -> list[Flow | Zipped]:
        """Iterators or pairs at the place of a use: several if a loop or function runs several times."""
        uses: list[Use | PairUse] = [*self.uses, *self.pair_uses]
        here = {id(thing): thing for u in uses if u.node is use.node for thing in ((u.flow if isinstance(u, Use) else u.pair),)}
        return list(here.values())

    def is_drawn_from(self, flow: Flow) -> bool:
        """True if code takes single batches from an iterator."""
        return any(u.kind in ("next", "item") or u.name in ("next", "__next__") for u in self.uses_of(flow))

    def only_drawn_from(self, flow: Flow) -> bool:
        """True if the only use of an iterator is taking batches by `next`."""
        uses = self.uses_of(flow)
        return bool(uses) and all(u.kind == "next" or (u.kind == "method" and u.name in ("next", "__next__")) for u in uses)

    def is_paired(self, flow: Flow) -> bool:
        """True if an iterator is joined with another: by `zip`, or by drawing batches side by side with the same seed."""
        if any(u.kind == "zip" for u in self.uses_of(flow)):
            return True
        others = [f for f in self.flows if f is not flow and f.frame is flow.frame and f.get("subset") == flow.get("subset")]
        beside = [f for f in others if f.get("seed") is not None and f.get("seed") == flow.get("seed")]
        return self.only_drawn_from(flow) and any(self.only_drawn_from(f) for f in beside)

    def name_of(self, thing: Flow | Generator | Zipped) -> str:
        """Variable of an object, or an empty text."""
        return self.names.get(id(thing), "")
