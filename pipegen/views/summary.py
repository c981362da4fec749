"""A pipeline in a few lines, as text and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.backend.datasets.batch_type import describe, leaves, parts
from pipegen.data.left_out import left_out
from pipegen.data.sampling.choice import examples_of_epoch
from pipegen.notebook import box, folded, preformatted, table
from pipegen.phases.hosts import share_line
from pipegen.phases.machine import circumstances
from pipegen.phases.specs import step_texts
from pipegen.views.cut_items import cut_items
from pipegen.views.explanation import explain_text
from pipegen.views.model_check import fitting_loss, targets_of
from pipegen.views.stages import stage_rows
from pipegen.views.visits import visits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.datasets.engine import Engine
    from pipegen.data.manifest import Manifest
    from pipegen.notebook import Explanation
    from pipegen.page import Page
    from pipegen.passes import Compiled
    from pipegen.phases.specs import CompiledSpec
    from pipegen.physical.nodes import Physical
    from pipegen.plan.nodes import Plan

_MOST_CLASSES = 10


def summary(pipe: Pipeline, main: Plan) -> str:
    """Returns its splits, what a model receives, the classes and a loss that fits; `main` is the plan of the training split."""
    model = pipe.spec.model
    lines = [f"Pipeline {model.name or 'unnamed'} ({pipe.spec_hash[:12]})"]
    lines += [f"  {s}: {_examples(pipe, s)}, {_batches(pipe.steps(s))} of {model.batch.size}" for s in pipe]
    lines += [f"  {', '.join(row)}" for row in stage_rows(model)]
    lines += [f"  {name}: {describe(part)}" for name, part in parts(pipe.element_spec)]
    lines += [f"  {classes}" for classes in _classes(pipe)]
    lines += [f"  left out: {', '.join(gone)}"] if (gone := left_out(pipe._manifest)) else []
    loss = fitting_loss(main.emit.output, targets_of(main))
    if loss is not None:
        lines.append(f"  loss: {loss}")
    if "train" in pipe:  # also what Keras shows of a pipeline that `fit` was given whole
        lines.append(f"  fit: model.fit(pipe.train{', validation_data=pipe.validation' if 'validation' in pipe else ''})")
    lines += [f"  {share}"] if (share := share_line(model.runtime)) else []
    return "\n".join(lines)


def summary_html(pipe: Pipeline, main: Plan) -> str:
    """Returns the same as HTML for notebooks, and the steps below."""
    model = pipe.spec.model
    splits = [(s, f"{pipe.num_examples(s):,}", f"{pipe.steps(s):,} of {model.batch.size}") for s in pipe]
    facts = [row for name, part in parts(pipe.element_spec) for row in leaves(name, part)]
    facts += [text.partition(": ")[::2] for text in _classes(pipe)]
    facts += [("left out", gone) for gone in left_out(pipe._manifest)]
    loss = fitting_loss(main.emit.output, targets_of(main))
    if loss is not None:
        facts.append(("loss", str(loss)))
    steps = step_texts(model)
    return box(
        f"Pipeline {model.name or 'unnamed'}",
        pipe.spec_hash[:12],
        table(("split", "examples", "batches"), splits),
        table((), facts),
        folded(f"{len(steps)} step{'s' if len(steps) != 1 else ''}", preformatted("\n".join(steps))) if steps else "",
    )


def explained(
    pipe: Pipeline,
    compiled: dict[str, Compiled],
    manifest: Manifest,
    *,
    passes: bool,
    whole: bool,
    before: bool,
    physical: dict[str, list[Physical]] | None,
) -> Explanation:
    """Explains compiled splits of a pipeline as `Pipeline.explain` does; `manifest` is of its data."""
    from pipegen.memory import available_cores

    model, cores = pipe.spec.model, available_cores()
    counts = {s: f"{_examples(pipe, s)}, {pipe.steps(s):,} steps" for s in compiled}
    given = {s: circumstances(model, cores, examples=pipe.num_examples(s), file_bytes=manifest.mean_bytes(s)) for s in compiled}
    said = f"runtime: {pipe.spec.tuned.says}" if pipe.spec.tuned is not None else ""
    more = None if whole else ("explain(NAME)", "explain(passes=True)", "explain(all=True)")
    seen = {s: (*visits(model, manifest, s), *cut_items(done.plan, manifest, s)) for s, done in compiled.items()}
    return explain_text(
        model, compiled, before=before, passes=passes, counts=counts, given=given, more=more, physical=physical, tuned=said, visits=seen
    )


def explained_html(bound: CompiledSpec, engine: Engine, splits: Sequence[str], *, pictures: bool, physical: bool) -> Page:
    """Explains splits of a compiled spec as a page; for the arguments see `Pipeline.explain_html`."""
    from pipegen.memory import available_cores
    from pipegen.physical.decide import decide_forms
    from pipegen.views.edges import shown_along
    from pipegen.views.plan_page import plan_page

    model, manifest, cores = bound.spec.model, bound.manifest, available_cores()
    executors = {s: engine.executor(s) for s in splits}
    given = {s: circumstances(model, cores, examples=manifest.num_examples(s), file_bytes=manifest.mean_bytes(s)) for s in splits}
    return plan_page(
        model,
        bound.spec.hash,
        {s: bound.splits[s] for s in splits},
        given,
        counts={s: f"{manifest.num_examples(s):,} examples, {_batches(x.steps)} of {model.batch.size}" for s, x in executors.items()},
        visits={s: (*visits(model, manifest, s), *cut_items(bound.splits[s].plan, manifest, s)) for s in splits},
        shown={s: shown_along(engine, s) for s in splits} if pictures else None,
        physical={s: decide_forms(x.plan, x.setting, every=False) for s, x in executors.items()} if physical else None,
    )


def _examples(pipe: Pipeline, split: str) -> str:
    """Counts the examples of a split, and of an epoch where that has others."""
    there, seen = pipe.num_examples(split), examples_of_epoch(pipe.spec.model, pipe._manifest, split)
    return f"{there:,} examples" + (f", {seen:,} in an epoch" if seen != there else "")


def _batches(number: int) -> str:
    return f"{number:,} {'batch' if number == 1 else 'batches'}"


def _classes(pipe: Pipeline) -> Iterator[str]:
    names = pipe.class_names
    if names:
        yield f"{len(names)} classes: {', '.join(names[:_MOST_CLASSES])}{' …' if len(names) > _MOST_CLASSES else ''}"
