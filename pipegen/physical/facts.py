"""Tells where a physical plan has variables, Python and assertions, what XLA compiles, and what may run elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from pipegen.physical import nodes as p
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Read

RARELY = "rare kinds of files"


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds what a part of a physical plan needs.

    Attributes:
        variables: What it keeps in this process, between its calls.
        python: What it calls Python for.
        asserts: Whether it fails by an assertion of ours.
        compiled: Whether XLA compiles something in it, where there is XLA.
        device: Whether it may run on an accelerator: it is compiled, and works on numbers of fixed shape alone.
    """

    variables: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    asserts: bool = False
    compiled: bool = False
    device: bool = False

    @property
    def portable(self) -> bool:
        """Returns whether it runs in any process that has TensorFlow, whatever else that has; but for rare kinds of files."""
        return not self.variables and set(self.python) <= {RARELY}


def facts(part: p.Operation | p.Function | Read | Element) -> Facts:
    """Returns what a part needs: an operation, without the functions that it calls; a function, or a node that one runs."""
    match part:
        case p.Enter() if part.enters in ("variable", "queue"):
            return Facts(variables=("the position" if part.enters == "variable" else "a queue",))
        case p.Deliver() if part.notes:
            return Facts(variables=("the position",))
        case p.Index():
            return Facts(compiled=part.compiled)
        case p.Examples():
            noted = "noting damaged records" if part.guard == "replace" else ""
            return Facts(python=tuple(filter(None, (part.python, noted))), asserts=part.guard != "none")
        case p.Rows():
            return Facts(python=(part.python,) if part.python else ())
        case p.Keep() | p.Fetch():
            kept, files = ("which records are there", "the files of the cache") if part.cache.disk else ("the cache", "")
            return Facts((kept,), tuple(filter(None, (part.examples.python, files))))
        case p.Kernel():
            return Facts(("memory of earlier batches",) if part.depth else (), compiled=part.node.compiled, device=part.node.compiled)
        case Element():
            called = {ref.step.calls_python: ref.step.op for stage in part.stages for ref in stage.uses()}
            python = ((f"`{called['always']}`",) if "always" in called else ()) + ((RARELY,) if "rarely" in called else ())
            decodes = any(isinstance(stage, s.Decodes) for stage in part.stages)
            return Facts((), python, decodes, any(isinstance(stage, s.Branch) and stage.compiled for stage in part.stages))
    return Facts()


def inside(function: p.Function) -> tuple[Read | Element, ...]:
    """Returns the nodes that a function runs on single examples."""
    examples = function if isinstance(function, p.Examples) else function.examples if isinstance(function, (p.Keep, p.Fetch)) else None
    return examples.nodes if examples is not None else ()


def needs(plan: p.Physical) -> tuple[Facts, ...]:
    """Returns what each part of a plan needs."""
    parts = (*plan.operations, *plan.functions, *(node for f in plan.functions for node in inside(f)))
    return tuple(map(facts, parts))
