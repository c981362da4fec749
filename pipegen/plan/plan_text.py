"""Plans as text and JSON: the types on the edges, and a line for each stage. The golden files use this."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pipegen.ops.arguments.geometry import BUCKET
from pipegen.ops.stage import Stage, step_kwargs
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Cache, Element, Emit, Index, Kernel, Node, Plan, Prefetch, Read, Send, Shard, Shuffle
from pipegen.spec.units import format_bytes
from pipegen.types import times


def render_plan(plan: Plan) -> str:
    """Renders a plan as text, ending in a newline; plans of buckets that differ in more than size come one after another."""
    if plan.buckets and not _alike(plan):
        each = zip(plan.index.buckets, plan.buckets, strict=True)
        return "".join(f"bucket {times(size)}\n" + "".join(f"  {line}\n" for line in render_plan(own).splitlines()) for size, own in each)
    lines, last = [], ""
    for number, node in enumerate(plan.nodes):
        lines.append(_node(node))
        if isinstance(node, (Element, Kernel)):
            lines.extend(f"    {text}" for text in stage_texts(plan, number))
        if isinstance(node, Read) and node.parts:
            for part, name in zip(node.parts, plan.index.names, strict=True):
                alone = [stage_text(stage) for inner in part if isinstance(inner, Element) for stage in inner.stages]
                lines.append(f"    {name}: {'; '.join(alone) or 'as it is'}")
        edge = str(node.out)
        if edge != last and edge:
            lines.append(f"  → {edge}")
        last = edge
    return "\n".join(lines) + "\n"


def _alike(plan: Plan) -> bool:
    """Tests if the plans of all buckets have the same kinds of nodes and stages."""
    kinds = [[(type(n), [*map(type, n.stages)] if isinstance(n, (Element, Kernel)) else []) for n in own.nodes] for own in plan.buckets]
    return all(own == kinds[0] for own in kinds)


def stage_texts(plan: Plan, number: int) -> list[str]:
    """The stages of a node as lines of text; with buckets, `bucket` stands for the size."""
    node = plan.nodes[number]
    if not isinstance(node, (Element, Kernel)):
        return []
    if not plan.buckets or not _alike(plan):
        return [stage_text(stage) for stage in node.stages]
    each = [own.nodes[number].stages for own in plan.buckets]  # type: ignore[union-attr]  # as they are alike
    merged = []
    for texts in ([stage_text(stage) for stage in stages] for stages in zip(*each, strict=True)):
        sizes = ((text, [f"[{', '.join(map(str, size))}]", times(size)]) for text, size in zip(texts, plan.index.buckets, strict=True))
        named = [re.sub(rf"(?<![\w.])(?:{'|'.join(map(re.escape, forms))})(?![\w.])", BUCKET, text) for text, forms in sizes]
        merged.append(texts[0] if len({*texts}) == 1 else " | ".join(dict.fromkeys(named)))
    return merged


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values; with buckets as in `render_plan`, or that of the first if they differ in more than size."""
    nodes = []
    for number, node in enumerate(plan.nodes):
        entry: dict[str, Any] = {"node": type(node).__name__.lower(), "text": _node(node), "type": _types(node)}
        if node.out.batch is not None:
            entry["batch"] = node.out.batch
        if isinstance(node, (Element, Kernel)):
            entry["stages"] = _stages_json(node.stages, stage_texts(plan, number))
        if isinstance(node, Index) and node.buckets:
            entry["buckets"] = [list(size) for size in node.buckets]
        if isinstance(node, Read) and node.parts:
            named = zip(plan.index.names, node.parts, strict=True)
            alone = {name: [stage for n in part if isinstance(n, Element) for stage in n.stages] for name, part in named}
            entry["parts"] = {name: _stages_json(stages, map(stage_text, stages)) for name, stages in alone.items()}
        nodes.append(entry)
    return {"split": plan.split, "nodes": nodes}


def _stages_json(stages: Sequence[Stage], texts: Iterable[str]) -> list[dict[str, Any]]:
    made = []
    for stage, text in zip(stages, texts, strict=True):
        steps = [
            {"op": r.step.op, "id": r.id, "path": list(r.path), "arguments": step_kwargs(r.step), "draws": [r.start, r.start + r.num_draws]}
            for r in stage.uses()
        ]
        made.append({"stage": stage.name, "text": text, "feature": stage.feature, "steps": steps})
    return made


def _types(node: Node) -> dict[str, Any]:
    return {
        name: {
            "kind": "encoded" if t.encoded else t.kind,
            "dtype": t.dtype,
            "shape": list(t.shape),
            **({"shapes": [list(shape) for shape in t.shapes]} if t.shapes else {}),
            "interval": [t.interval.low, t.interval.high] if t.interval else None,
        }
        for name, t in node.out.items()
    }


def order_text(order: str, window_bytes: int | None, *, blocks: str) -> str:
    """Describes the order of examples."""
    window = f"in windows of {format_bytes(window_bytes or 0)}"
    shuffled = f"shuffle of whole {blocks}, then {window}" if blocks else f"shuffle {window}"
    return {"stored": "stored order", "global": "global shuffle", "window": shuffled}[order]


def bucket_text(sizes: Sequence[tuple[int, ...]]) -> str:
    """Describes the sizes of batches."""
    return f"batches of one bucket each ({', '.join(map(times, sizes))})"


def mix_text(names: tuple[str, ...], *, interleaves: bool) -> str:
    """Describes the parts of a mix, with a comma behind; "" for a single source."""
    if not names:
        return ""
    return f"{' and '.join(names)} {'interleaved' if interleaves else 'in turn'}, "


def _node(node: Node) -> str:
    match node:
        case Index():
            order = order_text(node.order, node.window_bytes, blocks=node.blocks)
            shard = ", this host's block" if node.shard else ""
            draws = f", {node.num_draws} draw{'s' if node.num_draws > 1 else ''} for each example" if node.num_draws else ""
            sampled = ", sampled" if node.sampled else ""
            mix = mix_text(node.names, interleaves=node.interleaves)
            buckets = f"{bucket_text(node.buckets)}, " if node.buckets else ""
            return f"index    split {node.split}, {mix}{buckets}{order}{sampled}{shard}{draws}"
        case Read():
            return "read     rows" + (" of a whole batch" if node.out.batch is not None else "") if node.rows else "read     stored bytes"
        case Shuffle():
            windows = f"{f'whole {node.blocks}, then ' if node.blocks else ''}windows of {format_bytes(node.window_bytes or 0)}"
            return f"shuffle  {f'{node.order}, holding every example' if node.window_bytes is None else windows}"
        case Shard():
            return "shard    this host's block of each global batch"
        case Element():
            chunk = f"up to {node.chunk} examples a call" if node.chunk > 1 else "one example at a time"
            return f"element  {chunk}" + (", in parallel" if node.parallel else "")
        case Cache():
            return f"cache    {node.kind.where}, by example"
        case Batch():
            return f"batch    {node.size}, remainder {node.remainder}"
        case Kernel():
            skips = ", each example through the stages that change it" if node.rows else ""
            return (
                f"kernel   one batch{skips}" + (", compiled by XLA" if node.compiled else "") + (", in parallel" if node.parallel else "")
            )
        case Send():
            return f"send     {send_text(node)}"
        case Emit():
            return f"emit     {emit_text(node)}"
        case Prefetch():
            return "prefetch " + (f"to device {node.device}" if node.device else "finished batches")


def send_text(node: Send) -> str:
    """Describes the features that a worker sends, and their bytes, in a line."""
    unknown = [name for name in node.features if node.out[name].num_bytes is None]
    beside = f" and the bytes of {' and '.join(unknown)}, which depend on the data" if unknown else ""
    return f"{', '.join(node.features)} from a worker to the trainer: {node.num_bytes:,} bytes an example{beside}"


def emit_text(node: Emit) -> str:
    """Describes the features that the model takes, in a line."""
    parts = {"x": node.output.x, "y": node.output.y, "sample_weight": node.output.sample_weight}
    return ", ".join(f"{key} = {_features(value)}" for key, value in parts.items() if value is not None)


def _features(value: str | list[str] | dict[str, str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return "[" + ", ".join(value) + "]"


def stage_text(stage: Stage) -> str:
    """Describes a stage, as a line of a plan."""
    return f"{stage.feature}: {s.said(stage)}"
