"""Names the stages and kernels of a plan as traces of TensorFlow's profiler have them, and finds them again in such a name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.ops.families.custom import CustomTransform
from pipegen.plan.nodes import Kernel

if TYPE_CHECKING:
    from collections.abc import Collection

    from pipegen.plan.nodes import Plan
    from pipegen.plan.stages import Stage

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
