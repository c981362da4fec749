"""The text and the JSON form of a plan: types on the edges, one line for each stage. The golden files hold this."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pipegen.ops.base import step_kwargs
from pipegen.ops.families.augmentation import AugmentationPart
from pipegen.ops.families.fitted import StepPart
from pipegen.ops.families.mixing import GROUP
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Prefetch, Read, Shard, Shuffle
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.plan.nodes import Node, Plan
    from pipegen.plan.stages import Stage, StepRef

_WAITING = "with numbers of split train, which `pipegen fit` finds"


def render_plan(plan: Plan) -> str:
    """The plan as text, ending in a newline."""
    lines = []
    last = ""
    for node in plan.nodes:
        lines.append(_node(node))
        if isinstance(node, (Element, Kernel)):
            lines.extend(f"    {_stage(stage)}" for stage in node.stages)
        edge = str(node.out)
        if edge != last and edge:
            lines.append(f"  → {edge}")
        last = edge
    return "\n".join(lines) + "\n"


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values."""
    nodes = []
    for node in plan.nodes:
        entry: dict[str, Any] = {"node": type(node).__name__.lower(), "text": _node(node), "type": _types(node)}
        if node.out.batch is not None:
            entry["batch"] = node.out.batch
        if isinstance(node, (Element, Kernel)):
            entry["stages"] = [
                {
                    "stage": type(stage).__name__,
                    "text": _stage(stage),
                    "feature": stage.feature,
                    "steps": [_ref_json(r) for r in s.refs(stage)],
                }
                for stage in node.stages
            ]
        nodes.append(entry)
    return {"split": plan.split, "nodes": nodes}


def _types(node: Node) -> dict[str, Any]:
    return {
        name: {
            "kind": "encoded" if t.encoded else t.kind,
            "dtype": t.dtype,
            "shape": list(t.shape),
            "interval": [t.interval.low, t.interval.high] if t.interval else None,
        }
        for name, t in node.out.items()
    }


def _ref_json(ref: StepRef) -> dict[str, Any]:
    return {
        "op": ref.step.op,
        "id": ref.id,
        "path": list(ref.path),
        "arguments": step_kwargs(ref.step),
        "draws": [ref.start, ref.start + ref.num_draws],
    }


def _node(node: Node) -> str:
    match node:
        case Index():
            order = {
                "stored": "stored order",
                "global": "global shuffle",
                "window": f"shuffle in windows of {format_bytes(node.window_bytes or 0)}",
            }[node.order]
            shard = ", this host's block" if node.shard else ""
            draws = f", {node.num_draws} draw{'s' if node.num_draws > 1 else ''} for each example" if node.num_draws else ""
            return f"index    split {node.split}, {order}{shard}{draws}"
        case Read():
            stored = any(t.encoded for _, t in node.out.items())
            return "read     stored bytes" if stored else "read     rows" + (" of a whole batch" if node.out.batch is not None else "")
        case Shuffle():
            return (
                f"shuffle  {node.order}, holding every example"
                if node.window_bytes is None
                else f"shuffle  windows of {format_bytes(node.window_bytes)}"
            )
        case Shard():
            return "shard    this host's block of each global batch"
        case Element():
            chunk = f"up to {node.chunk} examples a call" if node.chunk > 1 else "one example at a time"
            return f"element  {chunk}" + (", in parallel" if node.parallel else "")
        case Cache():
            return f"cache    {'on disk' if node.disk else 'in memory'}, by example"
        case Batch():
            return f"batch    {node.size}, remainder {node.remainder}"
        case Kernel():
            return "kernel   one batch" + (", compiled by XLA" if node.compiled else "") + (", in parallel" if node.parallel else "")
        case Emit():
            return f"emit     {_emit(node)}"
        case Prefetch():
            return "prefetch " + (f"to device {node.device}" if node.device else "finished batches")


def _emit(node: Emit) -> str:
    parts = [f"x = {_features(node.output.x)}"]
    if node.output.y is not None:
        parts.append(f"y = {_features(node.output.y)}")
    if node.output.sample_weight is not None:
        parts.append(f"sample_weight = {node.output.sample_weight}")
    return ", ".join(parts)


def _features(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return "[" + ", ".join(value) + "]"


def _use(ref: StepRef) -> str:
    arguments = ", ".join(f"{k}: {_value(v)}" for k, v in step_kwargs(ref.step).items())
    text = f"{ref.step.op}({arguments})" if arguments else ref.step.op
    if isinstance(ref.step, AugmentationPart):
        return f"{ref.step.name} of {text}"
    return f"{text} as `{ref.choice.policy.id}` chooses" if ref.choice is not None else text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_value(v)}" for k, v in value.items()) + "}"
    return str(value)


def _uses(refs: tuple[StepRef, ...]) -> str:
    return " · ".join(_use(r) for r in refs)


def _size(size: tuple[int | None, int | None]) -> str:
    return "×".join("?" if d is None else str(d) for d in size)


def _fill(fill: object) -> str:
    return fill if isinstance(fill, str) else f"constant {getattr(fill, 'constant', 0):g}"


def _stage(stage: Stage) -> str:
    return _does(stage) + (", exact" if getattr(stage, "exact", False) else "")


def _does(stage: Stage) -> str:  # noqa: C901 - one line for each stage of a closed set
    feature = stage.feature
    match stage:
        case s.Decode():
            needed = f", no smaller than {_size(stage.needed)}" if stage.needed else ""
            return f"{feature}: {_use(stage.ref)}{needed}"
        case s.DecodeWindow():
            needed = f", no smaller than {_size(stage.needed)}" if stage.needed else ""
            how = "and take" if stage.whole else "only"
            return f"{feature}: {_use(stage.decode)} {how} the window of {_use(stage.crop)}{needed}"
        case s.Apply() | s.Crop() | s.Neighbourhood():
            waiting = f"{_WAITING}: " if isinstance(stage.ref.step, StepPart) and stage.ref.step.waits() else ""
            return f"{feature}: {waiting}{_use(stage.ref)}"
        case s.Compose():
            return f"{feature}: matrix of {_use(stage.ref)}"
        case s.Resample():
            return f"{feature}: resample once, {_resampling(stage)}"
        case s.Warp():
            how = "mirror" if stage.mirrors else f"warp once, {_resampling(stage)}"
            return f"{feature}: {how}: {_uses(stage.refs)}"
        case s.ComposeColour():
            return f"{feature}: colour matrix of {_use(stage.ref)}"
        case s.ApplyColour():
            return f"{feature}: apply the colour matrix{_clip(stage)}"
        case s.Colour():
            what = "one colour matrix" if stage.mixes_channels else "one scale and offset for each channel"
            return f"{feature}: {what}{_clip(stage)}: {_uses(stage.refs)}"
        case s.LookupTable():
            what = "tables" if len(stage.refs) > 1 else "table"
            of = " of its histogram" if stage.reads_histogram else ""
            return f"{feature}: through the {what}{of}: {_uses(stage.refs)}"
        case s.Mix():
            what = "weigh the labels of" if stage.label else "mix"
            return f"{feature}: {what} two of a group of {GROUP}: {_use(stage.ref)}"
        case s.Branch():
            return f"{_stage(stage.stage)}, on those examples alone" + (", compiled by XLA" if stage.compiled else "")
        case s.Pointwise():
            return f"{feature}: {_arithmetic(stage)}"
        case s.ChannelsFirst():
            return f"{feature}: channels first"
        case s.EncodeLabel():
            return f"{feature}: {stage.encoding}"
        case s.Measure():
            return f"{feature}: the size of `{stage.like[0]}` as it is stored"
        case s.Move():
            return f"{feature}: move, to {_size(stage.size)}: {_uses(stage.refs)}"


def _resampling(stage: s.Resample | s.Warp) -> str:
    how = "in perspective, " if stage.projective else ""
    return f"{how}{stage.interpolation}, fill {_fill(stage.fill)}, to {_size(stage.size)}"


def _clip(stage: s.ApplyColour | s.Colour) -> str:
    mean = ", around the mean" if stage.uses_mean else ""
    return f", clip to {stage.clip}{mean}" if stage.clip else mean


def _arithmetic(stage: s.Pointwise) -> str:
    a = stage.arithmetic
    parts = [f"channels {list(a.order)}"] if a.order else []
    if any(map(math.isnan, a.scale)):
        parts.append(_WAITING)
    elif any(x != 1 for x in a.scale) or any(x != 0 for x in a.offset):
        parts.append(f"× {_value(list(a.scale))} + {_value(list(a.offset))}")
    parts.append(f"as {a.dtype}")
    steps = f": {_uses(stage.refs)}" if stage.refs else ""
    return ", ".join(parts) + steps
