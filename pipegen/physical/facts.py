"""The parts of a physical plan that need variables, Python, assertions or XLA, and so where the plan can run."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from pipegen.frozen import dataclass
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.stage import Stage
from pipegen.ops.step_bases import CropTransform
from pipegen.physical import nodes as p
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Plan, Read

RARELY = "rare kinds of files"


@dataclass(frozen=True, slots=True)
class Facts:
    """The needs of a part of a physical plan."""

    variables: tuple[str, ...] = ()  # the state that it keeps in this process, in words
    python: tuple[str, ...] = ()  # the work that it does in Python, in words
    asserts: bool = False  # whether it has an assertion of ours
    compiled: bool = False  # whether XLA compiles something in it, if available
    device: bool = False  # whether it may run on an accelerator: compiled, and on numbers of fixed shape alone

    @property
    def portable(self) -> bool:
        """Whether it runs in any process with TensorFlow, except for rare kinds of files."""
        return not self.variables and set(self.python) <= {RARELY}


def facts(part: p.Operation | p.Function | Read | Element, plan: p.Physical) -> Facts:  # noqa: C901 - a case for each node with needs
    """The needs of an operation without its functions, of a function, or of a node that a function runs."""
    # A derived plan may run elsewhere, and contains its columns.
    looked_up = ("columns of the data",) if plan.setting.columns and not plan.form.derived else ()
    match part:
        case p.Enter() if part.enters in ("variable", "queue"):
            # With combined examples, an epoch that was begun with batches of another size needs rows that a derived plan lacks.
            alike = part.enters == "variable" and plan.form.derived and any(stage.combines for stage in plan.plan.stages())
            return Facts(variables=("the position" if part.enters == "variable" else "a queue",), asserts=alike)
        case p.Receive():
            return Facts(("batches of workers",), ("putting batches in order",))
        case p.Deliver() if part.notes:
            return Facts(variables=("the position",))
        case p.Index():
            counted = ("columns of the data",) if (part.node.sampled or part.node.buckets) and not plan.form.derived else ()
            return Facts(counted or (looked_up if part.node.num_draws else ()), compiled=part.compiled)
        case p.PrefetchRemote():
            return Facts(looked_up, (plan.setting.python,))
        case p.Draw():
            return Facts(looked_up if part.draws else ())
        case p.Examples():
            replaces = part.guard == "replace"
            python = ("noting damaged records",) if replaces else ()
            return Facts(looked_up if replaces else (), python, asserts=part.guard in ("name", "replace"))
        case Read():
            setting = plan.setting
            held = (setting.held,) if setting.held and not plan.form.derived else ()
            return Facts((*looked_up, *held), (setting.python,) if setting.python else ())
        case p.Rows():
            return facts(part.node, plan)
        case p.FillCache() | p.ReadCache():
            kind = part.cache.kind
            labelled = isinstance(part, p.ReadCache) and part.cache.columns
            own = facts(part.examples, plan) if inside(part) else Facts()
            variables = dict.fromkeys((kind.variables, *(looked_up if labelled else ()), *own.variables))
            return Facts(tuple(variables), (*kind.files, *own.python), own.asserts)
        case p.Kernel() | p.Prepare():
            names = part.reuses if isinstance(part, p.Kernel) else ()
            reuses = (f"memory of earlier batches of {' and '.join(names)}",) if names else ()
            return Facts(reuses, compiled=part.node.compiled, device=part.node.compiled and isinstance(part, p.Kernel))
        case Element():
            called = {ref.step.calls_python: ref.step.op for stage in part.stages for ref in stage.uses()}
            # A served plan asserts that there are no rare kinds of files.
            rarely = "rarely" in called and plan.form.takes != "batch"
            called_for = ((f"`{called['always']}`",) if "always" in called else ()) + ((RARELY,) if rarely else ())
            # A crop of fixed size asserts that it fits.
            crops = [ref.step for st in part.stages if isinstance(st, (s.Crop, s.SometimesSized)) for ref in st.uses()]
            fits = any(isinstance(step, CropTransform) and not step.resizes() for step in crops)
            asserts = fits or any(isinstance(st, Decodes) for st in part.stages)
            return Facts((), called_for, asserts, any(isinstance(stage, s.Branch) and stage.compiled for stage in part.stages))
    return Facts()


def inside(function: p.Function) -> tuple[Read | Element, ...]:
    """The nodes that a function runs on single examples. A cache in memory has no misses when it is read."""
    match function:
        case p.Examples() | p.MapRequest():
            return function.nodes
        case p.FillCache():
            return function.examples.nodes
        case p.ReadCache() if not function.cache.kind.in_memory:
            return function.examples.nodes
    return ()


def needs(plan: p.Physical) -> tuple[Facts, ...]:
    """The needs of each part of a plan."""
    parts = (*plan.operations, *plan.functions, *(node for f in plan.functions for node in inside(f)))
    return tuple(facts(part, plan) for part in parts)


READ, CACHE, INDEX, BATCH = "read", "cache", "index", "batch"
"""The parts of a plan beside its stages and kernels."""
_OF_FUNCTIONS = {
    **dict.fromkeys(("index", "draw", "fill", "cut", "sort"), INDEX),
    **dict.fromkeys(("read", "rows"), READ),
    **dict.fromkeys(("fill_cache", "read_cache"), CACHE),
    **dict.fromkeys(
        ("join", "trim", "set_batch_size", "slice_own_rows", "prepare", "emit", "split_for_device", "send", "receive", "deliver"), BATCH
    ),
}
"""The part that each function of the physical plan belongs to, by its scope."""
_OWN = re.compile(r"(?:^|/)([a-z_]+\.\d+)(?:_\d+)?(?=[/:]|$)")
_OUTER = re.compile(r"([a-z]+(?:_[a-z]+)*)(?:_\d+)?/")
_READS = re.compile(r"(?:examples|fill_cache|read_cache)(?:_\d+)?/(?:.*/)?read(?:_\d+)?/")


def scopes(plan: Plan) -> dict[int, str]:
    """The scopes of stages and kernels, such as `decode.0` and `kernel.1`, by `id` of the object; equal for all buckets."""
    if plan.buckets:  # and the nodes that stand for all of them
        return {key: scope for own in (replace(plan, buckets=()), *plan.buckets) for key, scope in scopes(own).items()}
    found = {id(stage): f"{p.node_name(stage)}.{number}" for number, stage in enumerate(plan.stages())}
    return found | {id(node): f"kernel.{number}" for number, node in enumerate(n for n in plan.nodes if isinstance(n, Kernel))}


def called(stage: Stage) -> str:
    """The steps of a stage, as users write them: `decode`, or `python my_pkg.filters:denoise`."""
    names = [f"{r.step.op} {r.step.function}" if isinstance(r.step, CustomTransform) else r.step.op for r in stage.uses()]
    return ", ".join(dict.fromkeys(names)) or stage.says().partition(":")[0]


def scope_in(name: str, known: Collection[str]) -> str | None:
    """Finds the part of a plan that a TensorFlow operation belongs to, by its name.

    The part is a scope of a stage or kernel out of `known`, or one of `READ`, `CACHE`, `INDEX` and `BATCH`; else `None`.
    """
    own = [scope for scope in _OWN.findall(name) if scope in known]
    if own:
        return next((scope for scope in reversed(own) if not scope.startswith("kernel.")), own[-1])
    if _READS.match(name):
        return READ
    outer = _OUTER.match(name)  # the outermost scope alone: a layer of the model may have any name
    return _OF_FUNCTIONS.get(outer[1]) if outer else None
