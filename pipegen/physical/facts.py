"""Tells where a physical plan has variables, Python and assertions, what XLA compiles, and what may run elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.kinds.registry import kind_of
from pipegen.physical import nodes as p
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Read

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipegen.ops.stage import Stage
    from pipegen.plan.nodes import Plan


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


def facts(part: p.Operation | p.Function | Read | Element, plan: p.Physical) -> Facts:
    """Returns what a part of a plan needs: an operation, without the functions that it calls; a function, or a node that one runs."""
    # What is derived may run elsewhere, and holds its columns itself.
    looked_up = ("columns of the data",) if plan.setting.columns and not plan.form.derived else ()
    match part:
        case p.Enter() if part.enters in ("variable", "queue"):
            # An epoch that was begun with batches of another size has other rows beside its own, where examples are mixed.
            alike = part.enters == "variable" and plan.form.derived and any(isinstance(f, p.Index) and f.grouped for f in plan.functions)
            return Facts(variables=("the position" if part.enters == "variable" else "a queue",), asserts=alike)
        case p.Deliver() if part.notes:
            return Facts(variables=("the position",))
        case p.Index():
            counted = ("columns of the data",) if (part.sampled or part.buckets) and not plan.form.derived else ()
            return Facts(counted or (looked_up if part.draws else ()), compiled=part.compiled)
        case p.Ahead():
            return Facts(looked_up, (plan.setting.python,))
        case p.Draw():
            return Facts(looked_up if part.draws else ())
        case p.Examples():
            replaces = part.guard == "replace"
            python = ("noting damaged records",) if replaces else ()
            return Facts(looked_up if replaces else (), python, asserts=part.guard in ("name", "replace"))
        case Read():
            setting = plan.setting
            held = (setting.held,) if setting.held and (setting.held_elsewhere or not plan.form.derived) else ()
            return Facts((*looked_up, *held), (setting.python,) if setting.python else ())
        case p.Rows():
            return facts(part.node, plan)
        case p.Keep() | p.Fetch():
            kind = part.cache.kind
            labelled = isinstance(part, p.Fetch) and any(kind_of(t).indexed for _, t in part.cache.out.items())
            own = facts(part.examples, plan) if inside(part) else Facts()
            variables = dict.fromkeys((kind.variables, *(looked_up if labelled else ()), *own.variables))
            return Facts(tuple(variables), (*kind.files, *own.python), own.asserts)
        case p.Kernel() | p.Prepare():
            names = part.reuses if isinstance(part, p.Kernel) else ()
            reuses = (f"memory of earlier batches of {' and '.join(names)}",) if names else ()
            return Facts(reuses, compiled=part.node.compiled, device=part.node.compiled and isinstance(part, p.Kernel))
        case Element():
            called = {ref.step.calls_python: ref.step.op for stage in part.stages for ref in stage.uses()}
            # What is served reads no rare kinds of files: an assertion says so.
            rarely = "rarely" in called and plan.form.takes != "batch"
            called_for = ((f"`{called['always']}`",) if "always" in called else ()) + ((RARELY,) if rarely else ())
            # A window of fixed size does not fit into every image.
            asserts = any(isinstance(st, Decodes) or (isinstance(st, s.Crop) and not st.ref.step.resizes()) for st in part.stages)
            return Facts((), called_for, asserts, any(isinstance(stage, s.Branch) and stage.compiled for stage in part.stages))
    return Facts()


def inside(function: p.Function) -> tuple[Read | Element, ...]:
    """Returns the nodes that a function runs on single examples. What memory has kept is always there, and not computed again."""
    match function:
        case p.Examples() | p.Each():
            return function.nodes
        case p.Keep() | p.Fetch() if isinstance(function, p.Keep) or not function.cache.kind.in_memory:
            return function.examples.nodes
    return ()


def needs(plan: p.Physical) -> tuple[Facts, ...]:
    """Returns what each part of a plan needs."""
    parts = (*plan.operations, *plan.functions, *(node for f in plan.functions for node in inside(f)))
    return tuple(facts(part, plan) for part in parts)


READ, CACHE, INDEX, BATCH = "read", "cache", "index", "batch"
"""What a plan has beside its stages and kernels."""
_OF_FUNCTIONS = {
    **dict.fromkeys(("index", "draw", "fill", "cut", "sort"), INDEX),
    **dict.fromkeys(("read", "rows"), READ),
    **dict.fromkeys(("keep", "fetch"), CACHE),
    **dict.fromkeys(("join", "trim", "settle", "own", "prepare", "emit", "send", "deliver"), BATCH),
}
"""By the scope of a function of the physical plan, what it is a part of."""
_OWN = re.compile(r"(?:^|/)([a-z_]+\.\d+)(?:_\d+)?(?=[/:]|$)")
_OUTER = re.compile(r"([a-z]+)(?:_\d+)?/")
_READS = re.compile(r"(?:examples|keep|fetch)(?:_\d+)?/(?:.*/)?read(?:_\d+)?/")


def scopes(plan: Plan) -> dict[int, str]:
    """Returns the scope of each stage and of each kernel of a plan, by its `id`: such as `decode.0`, and `kernel.1`. Those of all buckets
    have the same ones."""
    if plan.buckets:  # and the nodes that stand for all of them
        return {key: scope for own in (replace(plan, buckets=()), *plan.buckets) for key, scope in scopes(own).items()}
    found = {id(stage): f"{_word(stage)}.{number}" for number, stage in enumerate(plan.stages())}
    return found | {id(node): f"kernel.{number}" for number, node in enumerate(n for n in plan.nodes if isinstance(n, Kernel))}


def called(stage: Stage) -> str:
    """Names a stage by its steps, as users know them: `decode`, or `python my_pkg.filters:denoise`."""
    names = [f"{r.step.op} {r.step.function}" if isinstance(r.step, CustomTransform) else r.step.op for r in stage.uses()]
    return ", ".join(dict.fromkeys(names)) or stage.says().partition(":")[0]


def scope_in(name: str, known: Collection[str]) -> str | None:
    """Returns which part of a plan an operation of this name belongs to: one of the `known` scopes of its stages and kernels, or `READ` and
    its like; `None` for any other."""
    own = [scope for scope in _OWN.findall(name) if scope in known]
    if own:
        return next((scope for scope in reversed(own) if not scope.startswith("kernel.")), own[-1])
    if _READS.match(name):
        return READ
    outer = _OUTER.match(name)  # the outermost scope alone: a layer of the model may be called anything
    return _OF_FUNCTIONS.get(outer[1]) if outer else None


def _word(stage: Stage) -> str:
    """Returns a stage's class in the letters of a scope: `decode_window`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(stage).__name__).lower()
