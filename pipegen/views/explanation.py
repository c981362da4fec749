"""Explanations of a compiled spec: the plan of each split with the types on its edges, its cost, and the work of each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.ops.families.combining import runs_on
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.item_stages import CombineItems, Move
from pipegen.ops.fields.notes import count
from pipegen.ops.traits import ANY_IMAGE
from pipegen.page import Explanation
from pipegen.phases.hosts import share_line
from pipegen.physical.decide import assumed_examples, decide_forms, extent_of
from pipegen.physical.device import sent
from pipegen.physical.nodes import Physical, Setting
from pipegen.physical.physical_text import physical_json, render_physical
from pipegen.plan.cost import Circumstances, cost_json, plan_cost, render_cost
from pipegen.plan.evaluation_plans import learning_steps
from pipegen.plan.item_planning import limits_in
from pipegen.plan.lanes import recipes
from pipegen.plan.nodes import Plan
from pipegen.plan.plan_text import plan_json, render_plan
from pipegen.spec.models import PipelineSpec, ShardIndex
from pipegen.spec.places import fetches_blocks
from pipegen.spec.source_map import format_path
from pipegen.terminal import aligned, visible

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.passes import Compiled, PassRecord


def stage_rows(spec: PipelineSpec) -> list[tuple[str, str, str]]:
    """Makes a row for each stage: its number, its epochs, and its settings."""
    rows, first = [], 0
    for number, stage in enumerate(spec.stages):
        values = [f"{name} {value}" for name, value in stage.params.items()]
        values += [f"batch {stage.batch}"] if stage.batch is not None else []
        end = first + stage.epochs
        epochs = f"epoch {first}" if stage.epochs == 1 else f"epochs {first} to {end - 1}"
        rows.append((f"stage {number}", epochs, ", ".join(values) or "as written"))
        first = end
    return rows


def stages_text(spec: PipelineSpec) -> str:
    """Writes these rows as text, with a heading; empty without stages."""
    head = "stages of training (--stage N shows one; below is the spec as written)"
    return "\n".join([head, *aligned(stage_rows(spec)), "", ""]) if spec.stages else ""


@dataclass(frozen=True)
class Known:
    """Facts about a compiled split beside its plan."""

    size: str = ""  # the number of its examples and batches, in words
    given: Circumstances | None = None  # facts about its data and the machine; without them, no cost is predicted
    visits: tuple[str, ...] | None = None  # lines on the examples in its epochs
    physical: Sequence[Physical] | None = None  # its physical plans, one for each form to show


_DEAREST = 5  # number of stages that a short explanation shows with their cost


def explain_text(
    spec: PipelineSpec,
    compiled: Mapping[str, Compiled],
    known: Mapping[str, Known] | None = None,
    *,
    before: bool = False,
    passes: bool = True,
    more: tuple[str, str, str] | None = None,
    tuned: str = "",
) -> Explanation:
    """Writes the explanation of the compiled splits as text. Physical plans that are `known` replace the plan of a split and its cost.

    `before` also shows the plan as built, `passes` what each pass did, and why. `more` is how to show another split, the passes, and
    everything, for a last line; then only the most expensive stages have a cost. `tuned` is a line on the settings of `pipegen tune`.
    """
    parts = []
    physical: Sequence[Physical] | None = None
    for split, done in compiled.items():
        own = (known or {}).get(split, Known())
        physical = own.physical
        title = f"split {split}" + (f": {own.size}" if own.size else "")
        parts.append(f"{title}\n{'─' * len(title)}\n")
        if before and done.records:
            parts.append("as written\n" + indent(render_plan(done.records[0].before), "  ") + "\n")
        if physical is not None:
            parts += map(render_physical, physical)
        else:
            parts += [render_plan(done.plan), remarks(spec, done.plan, own.visits)]
        if passes:
            parts.append("passes\n" + _passes(done) + "\n")
        if own.given is not None and physical is None:
            dearest = None if more is None else _DEAREST
            parts.append(render_cost(done.plan, plan_cost(done.plan, own.given), dearest=dearest) + f"{sent(done.plan).text()}\n")
    if tuned:
        parts.append(f"{tuned}\n")
    if share := share_line(spec.runtime):
        parts.append(f"runtime: {share}\n")
    if more is not None:
        other = [split for split in spec.split_names() if split not in compiled]
        also = [f"split{'s' if other[1:] else ''} {', '.join(other)} ({more[0]})"] if other else []
        also += [] if passes or physical is not None else [f"what each pass did ({more[1]})"]
        parts.append(f"also: {', '.join([*also, f'everything ({more[2]})'])}\n")
    return Explanation(visible("\n".join(p for p in parts if p).rstrip() + "\n"))


def remarks(spec: PipelineSpec, plan: Plan, visits: tuple[str, ...] | None = None) -> str:
    """Writes remarks that are not in a plan: the examples of an epoch, items cut, stand-ins of steps, learned numbers, Python calls.

    `visits` has the first two, if the data is known.
    """
    split = plan.split
    if visits is None:
        sampled = split == "train" and spec.samples
        visits = ("how often examples are seen depends on the data: see `pipe.explain()`",) if sampled else ()
        counted = "how many are cut depends on the data: `pipe.explain()` counts them"
        visits += tuple(f"`max: {most}` of `{name}`: {counted}" for name, most in limits_in(plan.read).items())
    cost = spec.source.columns_cost()
    columns = (f"{column!r}, for `{format_path(path)}`, is {cost}" for column, path in (spec.columns().items() if cost else ()))
    return "".join(f"  {line}\n" for line in (*spec.source.remarks(), *columns, *visits, *_of_steps(spec, split)))


def _of_steps(spec: PipelineSpec, split: str) -> Iterator[str]:
    """Yields remarks on stand-ins of steps, then on learned numbers, then on calls of Python functions."""
    chosen = {path: made for made in recipes(spec, split).values() for path in made.stand_ins}
    for path in sorted(chosen, key=str):
        forms = ", ".join(ref.step.op for ref in chosen[path].steps if ref.path == path)
        yield f"`{path[-1]}` is random and fixes the shape; here {forms} stand in for it"
    for _, step in learning_steps(spec):
        if step.fitted is not None and runs_on(step, split):
            for feature, numbers in step.fitted.numbers.items():
                found = " and ".join(f"{name} {text}" for name, text in numbers.figures(short=True).items())
                yield f"`{step.op}` of `{feature}` has {found}, {step.fitted.origin}"
    for called in spec.transforms:
        if isinstance(called, CustomTransform) and runs_on(called, split):
            yield f"`{called.op}` calls `{called.function}`, a Python function: calls do not run in parallel"


def cut_items(plan: Plan, manifest: Manifest, split: str) -> tuple[str, ...]:
    """Counts, from the listing, the items cut by `max`: a line for each feature of a split with such a limit. Reads no record."""
    parts = manifest.of(split)
    return tuple(f"{name}: {line}" if name else line for name, part in parts.items() for line in _cut(plan, part, split))


def _cut(plan: Plan, manifest: Manifest, split: str) -> Iterator[str]:
    columns = manifest.columns(split)
    # Items may leave an image before they are cut; mirrors, turns and resizing keep all.
    moves = ((ref, move.canvas) for move in plan.stages() if isinstance(move, Move) for ref in move.refs)
    each = [ref.step.traits(ANY_IMAGE.with_(shape=(*canvas, 3))) for ref, canvas in moves]
    lose = not all(traits.mirrors or traits.turns or traits.stretches for traits in each)
    combine = any(isinstance(stage, CombineItems) for stage in plan.stages())
    for name, most in limits_in(manifest.type).items() if manifest.type is not None else ():
        if name not in columns or name not in plan.read:
            continue
        items: Any = columns[name]  # a ragged column
        lengths = items.lengths
        over = lengths[lengths > most]
        said = f"`max: {most}` of `{name}`: "
        if not len(over):
            said += f"no image has more, {int(lengths.max(initial=0))} at most"
        else:
            cut, verb = int(over.sum()) - most * len(over), "has" if len(over) == 1 else "have"
            said += f"{len(over):,} of {count(len(lengths), 'image')} {verb} more, as stored: {cut:,} of all {int(lengths.sum()):,} are cut"
        said += "; fewer where steps lose some before" if len(over) and lose else ""
        yield said + ("; combined images have those of several" if combine else "")


CLASSES = "E0 keeps every bit; E1 rounds, by at most 1e-6 of the width of the value range"  # the classes of rewrites and their precision


def what_it_did(record: PassRecord) -> str:
    """Describes in a line what a pass did to a plan."""
    return "; ".join(dict.fromkeys(record.notes)) if record.notes else ("changed the plan" if record.changed else "nothing to do")


def _passes(done: Compiled) -> str:
    width = max((len(r.name) for r in done.records), default=0)
    lines = []
    for record in done.records:
        lines.append(f"  {record.name:<{width}}  {record.rewrite_class}  {what_it_did(record)}")
        if record.changed:
            lines.append(f"  {'':<{width}}      because {record.reason}")
    lines.append(f"  {CLASSES}")
    return "\n".join(lines)


def physical_plans(spec: PipelineSpec, plan: Plan, threads: int, *, every: bool) -> list[Physical]:
    """Decides the physical plans of a split without its data: the usual form, or `every` one."""
    shard = (spec.runtime.shard.index, spec.runtime.shard.count) if isinstance(spec.runtime.shard, ShardIndex) else (0, 1)
    extent = extent_of(spec, plan, assumed_examples(plan), shard)
    replaces = spec.errors.skip is not None and plan.split == "train"
    blocks = fetches_blocks(spec.source, spec.runtime)
    ahead = blocks and not spec.source.mixed()
    setting = Setting(extent, threads, spec.runtime.jit != "never", replaces, "remote files" if blocks else "", fetches=ahead)
    return decide_forms(plan, setting, every=every)


def explain_json(spec: PipelineSpec, compiled: Mapping[str, Compiled], known: Mapping[str, Known] | None = None) -> dict[str, Any]:
    """Lists the explanation as plain values; see `explain_text`."""
    splits: dict[str, dict[str, Any]] = {}
    for split, done in compiled.items():
        own = (known or {}).get(split, Known())
        splits[split] = {
            "plan": plan_json(done.plan),
            "built": plan_json(done.records[0].before) if done.records else None,
            "stand_ins": [list(p) for p in sorted({p for made in recipes(spec, split).values() for p in made.stand_ins}, key=str)],
            "passes": [
                {"name": r.name, "class": r.rewrite_class, "reason": r.reason, "changed": r.changed, "notes": list(r.notes)}
                for r in done.records
            ],
            **({"physical": [physical_json(plan) for plan in own.physical]} if own.physical is not None else {}),
            "to_device": sent(done.plan).json(),
            **({"cost": cost_json(done.plan, plan_cost(done.plan, own.given))} if own.given is not None else {}),
        }
    stages = [{"initial_epoch": stage.resolved.stretch.first, **stage.model_dump(mode="json")} for stage in spec.stages]
    return {"version": 1, "name": spec.name, **({"stages": stages} if stages else {}), "splits": splits}
