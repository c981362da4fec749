"""Summaries of a pipeline, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.pipeline_dataset import PipelineDataset, describe, leaves, parts
from pipegen.backend.running.execute import Executor
from pipegen.data.buckets import bucket_line
from pipegen.data.collect import left_out
from pipegen.data.manifest import Manifest
from pipegen.data.mixed_manifest import MixedManifest
from pipegen.data.sampling import Easiest, Epochs, Repeats, epochs_of, examples_of_epoch
from pipegen.data.shares import window_bytes
from pipegen.memory import available_cores
from pipegen.ops.fields.notes import count
from pipegen.page import Explanation, Page, box, notebook_folded, notebook_table, preformatted
from pipegen.phases.hosts import share_line
from pipegen.phases.machine_settings import circumstances
from pipegen.phases.specs import CompiledSpec, step_texts
from pipegen.physical.decide import decide_forms
from pipegen.physical.extent import Position
from pipegen.plan.nodes import Plan
from pipegen.plan.plan_text import order_text
from pipegen.spec.models import PipelineSpec
from pipegen.spec.variants import joined
from pipegen.views.explanation import Known, cut_items, explain_text, stage_rows
from pipegen.views.model_check import fitting_loss, targets_of

if TYPE_CHECKING:
    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.owner import Owner


def visits(spec: PipelineSpec, manifest: Manifest, split: str) -> tuple[str, ...]:
    """Writes lines on the examples in a split's epochs; none if each is seen once."""
    buckets = bucket_line(spec, manifest, split)
    if split != "train" or buckets:
        return (f"batches are of one bucket each: {buckets}",) if buckets else ()
    if isinstance(manifest, MixedManifest):
        return tuple(f"{name}: {line}" for name in manifest.of(split) for line in _of_part(spec, manifest, name))
    epochs = epochs_of(spec, manifest) if spec.samples else None
    drawn = (epochs.size, epochs.size) if epochs is not None else (0, 0)
    return tuple(_said_of(spec, manifest, epochs, "epoch", drawn))


def _of_part(spec: PipelineSpec, mix: MixedManifest, name: str) -> Iterator[str]:
    reader = mix.parts[name].listing.reader("train")
    if reader.at_once > 1 and spec.shuffle != "none":  # a part that is read block by block; the plan shows the order of the others
        asked = None if spec.shuffle == "global" else spec.shuffle.window
        yield order_text("window", window_bytes(asked, mix.parts[name], "train"), blocks=reader.called)
    made, place = mix.mixture, list(mix.of("train")).index(name)
    drawn = made.counts(0)[place], made.examples * made.shares[place] / made.unit
    yield from _said_of(joined(spec, name), mix.parts[name], mix.sampled.get(name), "pass", drawn)


def _said_of(spec: PipelineSpec, manifest: Manifest, epochs: Epochs | None, each: str, drawn: tuple[float, float]) -> Iterator[str]:
    """Yields lines on one source; `drawn` are its numbers of examples in epoch 0 and in a late epoch."""
    if manifest.spared:
        left = manifest.num_examples("train")
        yield f"the subset has {left:,} of {left + manifest.spared:,} examples, the same in every {each}"
    if epochs is not None:
        yield from _easiest(epochs, *drawn) if isinstance(epochs, Easiest) else _repeats(spec, manifest, epochs, each)
        if manifest.own("train").listing.shards is not None:
            yield f"the labels of all {manifest.total:,} records were read for this, once for each process"


def _easiest(epochs: Easiest, begun: float, late: float) -> Iterator[str]:
    n, counts = len(epochs.members), epochs.counts
    first, last = int(counts[0]), int(counts[-1])
    yield f"epoch 0 draws {begun:,} examples from the {first:,} easiest of {n:,}: each is seen {_often(begun / first)}"
    if last != first:
        settled, which = int(np.flatnonzero(counts != last)[-1]) + 1, "all" if last == n else f"the {last:,} easiest"
        yield f"from epoch {settled} on it draws from {which}: each is seen {_often(late / last)}"


def _repeats(spec: PipelineSpec, manifest: Manifest, epochs: Repeats, each: str) -> Iterator[str]:
    often = epochs.visits
    yield f"{'an' if each == 'epoch' else 'a'} {each} has {epochs.size:,} examples, drawn from {manifest.num_examples('train'):,}"
    if epochs.sizes is None:
        yield f"the rarest example is seen {_often(float(often.min()), each)}, the commonest {_often(float(often.max()), each)}"
        return
    feature = spec.sampling.feature if spec.sampling is not None else None
    names = manifest.listing.classes.get(str(feature), ())
    there = np.flatnonzero(epochs.sizes)
    for what, place in (("rarest", np.argmin), ("commonest", np.argmax)):
        at = int(there[place(epochs.sizes[there])])
        called = f"`{names[at]}`" if at < len(names) else "none at all"
        seen = _often(float(often[at]), each)
        yield f"an example of the {what} class, {called} ({count(int(epochs.sizes[at]), 'example')}), is seen {seen}"


def _often(times: float, each: str = "epoch") -> str:
    """Formats a mean number of times per epoch."""
    if 0 < times < 0.5:
        return f"once in {1 / times:,.3g} {each}{'es' if each == 'pass' else 's'}"
    an = f"{'an' if each == 'epoch' else 'a'} {each}"
    return "never" if times == 0 else f"once {an}" if times == 1 else f"{times:,.3g} times {an}"


_MOST_CLASSES = 10


def summary(pipe: Owner, main: Plan) -> str:
    """Writes the splits, the inputs of a model, the classes and a fitting loss; `main` is the plan of the training split."""
    model = pipe.spec.model
    lines = [f"Pipeline {model.name or 'unnamed'} ({pipe.spec_hash[:12]})"]
    lines += [f"  {s}: {_examples(pipe, s)}, {_batches(pipe.steps(s))} of {model.batch.size}" for s in pipe]
    lines += [f"  {', '.join(row)}" for row in stage_rows(model)]
    lines += [f"  {name}: {describe(part)}" for name, part in parts(pipe.element_spec)]
    lines += [f"  {len(pipe.class_names)} classes: {_classes(pipe)}"] if pipe.class_names else []
    lines += [f"  left out: {', '.join(gone)}"] if (gone := left_out(pipe._manifest)) else []
    loss = fitting_loss(main.emit.output, targets_of(main))
    lines += [f"  loss: {loss}"] if loss is not None else []
    if "train" in pipe:  # Keras shows this text if `fit` gets the whole pipeline
        lines.append(f"  fit: model.fit(pipe.train{', validation_data=pipe.validation' if 'validation' in pipe else ''})")
    lines += [f"  {share}"] if (share := share_line(model.runtime)) else []
    return "\n".join(lines)


def summary_html(pipe: Owner, main: Plan) -> str:
    """Writes the same as HTML for notebooks, with the steps."""
    model = pipe.spec.model
    splits = [(s, f"{pipe.num_examples(s):,}", f"{pipe.steps(s):,} of {model.batch.size}") for s in pipe]
    facts = [row for name, part in parts(pipe.element_spec) for row in leaves(name, part)]
    facts += [(f"{len(pipe.class_names)} classes", _classes(pipe))] if pipe.class_names else []
    facts += [("left out", gone) for gone in left_out(pipe._manifest)]
    loss = fitting_loss(main.emit.output, targets_of(main))
    facts += [("loss", loss)] if loss is not None else []
    steps = step_texts(model)
    return box(
        f"Pipeline {model.name or 'unnamed'}",
        pipe.spec_hash[:12],
        notebook_table(("split", "examples", "batches"), splits),
        notebook_table((), facts),
        notebook_folded(f"{len(steps)} step{'s' if len(steps) != 1 else ''}", preformatted("\n".join(steps))) if steps else "",
    )


def explained(
    pipe: Owner, bound: CompiledSpec, splits: Sequence[str], *, passes: bool, whole: bool, before: bool, physical: bool
) -> Explanation:
    """Explains splits of a pipeline; for the arguments see `Pipeline.explain`."""
    sizes = {s: f"{_examples(pipe, s)}, {pipe.steps(s):,} steps" for s in splits}
    return explain_text(
        pipe.spec.model,
        {s: bound.splits[s] for s in splits},
        _known(bound, pipe._engine, sizes, physical=physical, every=whole),
        before=before,
        passes=passes or whole,
        more=None if whole else ("explain(NAME)", "explain(passes=True)", "explain(all=True)"),
        tuned=f"runtime: {pipe.spec.tuned.says}" if pipe.spec.tuned is not None else "",
    )


def explained_html(bound: CompiledSpec, engine: Engine, splits: Sequence[str], *, pictures: bool, physical: bool) -> Page:
    """Explains splits of a compiled spec as a page; for the arguments see `Pipeline.explain_html`."""
    from pipegen.views.edges import shown_along
    from pipegen.views.plan_page import plan_page

    model, steps = bound.spec.model, {s: _batches(engine.executor(s).steps) for s in splits}
    sizes = {s: f"{bound.manifest.num_examples(s):,} examples, {steps[s]} of {model.batch.size}" for s in splits}
    known = _known(bound, engine, sizes, physical=physical, every=False)
    shown = {s: shown_along(engine, s) for s in splits} if pictures else None
    return plan_page(model, bound.spec.hash, {s: bound.splits[s] for s in splits}, known, shown)


def _known(bound: CompiledSpec, engine: Engine, sizes: Mapping[str, str], *, physical: bool, every: bool) -> dict[str, Known]:
    """Collects facts about splits; `sizes` describes the size of each in words."""
    model, manifest, cores = bound.spec.model, bound.manifest, available_cores()
    found = {}
    for split, size in sizes.items():
        given = circumstances(model, cores, examples=manifest.num_examples(split), file_bytes=manifest.mean_bytes(split))
        seen = (*visits(model, manifest, split), *cut_items(bound.splits[split].plan, manifest, split))
        x = engine.executor(split) if physical else None
        found[split] = Known(size, given, seen, decide_forms(x.plan, x.setting, every=every) if x is not None else None)
    return found


def _examples(pipe: Owner, split: str) -> str:
    """Counts the examples of a split and, if different, of an epoch."""
    there, seen = pipe.num_examples(split), examples_of_epoch(pipe.spec.model, pipe._manifest, split)
    return f"{there:,} examples" + (f", {seen:,} in an epoch" if seen != there else "")


def _batches(number: int) -> str:
    return f"{number:,} {'batch' if number == 1 else 'batches'}"


def _classes(pipe: Owner) -> str:
    names = pipe.class_names
    return f"{', '.join(names[:_MOST_CLASSES])}{' …' if len(names) > _MOST_CLASSES else ''}"


def peek(executor: Executor, dataset: Callable[[Position], PipelineDataset], at: Position, n: int) -> Any:
    """Reads the next `n` examples as NumPy arrays; fewer at the end of a split other than `train`.

    `dataset` makes the rest of an epoch from a position on.
    """
    batches: list[Any] = []
    seen = 0
    while seen < n:
        before = seen
        for batch in dataset(at):
            batches.append(tf.nest.map_structure(lambda t: t.numpy(), batch))
            seen += len(tf.nest.flatten(batches[-1])[0])
            if seen >= n:
                break
        at = at.begin(at.epoch + 1)
        if seen == before or executor.plan.split != "train":
            break
    return tf.nest.map_structure(lambda *parts: np.concatenate(_padded(parts))[:n], *batches)


def _padded(parts: Sequence[Any]) -> Sequence[Any]:
    """Pads batches with zeros at the end to one shape, if their lengths or image sizes differ."""
    if len({part.shape[1:] for part in parts}) == 1:
        return parts
    most = [max(sides) for sides in zip(*(part.shape[1:] for part in parts), strict=True)]
    return [np.pad(part, [(0, 0), *((0, side - own) for side, own in zip(most, part.shape[1:], strict=True))]) for part in parts]
