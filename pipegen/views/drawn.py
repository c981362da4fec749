"""Augmented examples of a split: the plan that makes them, their values, and their drawn parameters by name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from PIL import Image

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.datasets.pipeline_dataset import fixed_dataset
from pipegen.backend.features import Features
from pipegen.backend.index import combined_groups
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.index.order import START
from pipegen.backend.running.execute import Executor
from pipegen.data.manifest import Manifest
from pipegen.data.mixed_manifest import MixedManifest, mixed_manifest
from pipegen.data.shards import RANKED
from pipegen.data.testing import pick
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.decoder import DecodeWindow
from pipegen.ops.families.fitted import StepPart
from pipegen.ops.families.item_stages import Express
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.kinds.base import Indices, InstanceNumber, Levels, Samples, having, kind_of, kinds
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.transform import Transform
from pipegen.passes.drop_unused import without_unused
from pipegen.passes.plan_pass import Placed, pack, unpack
from pipegen.phases.compilation import read_once
from pipegen.phases.specs import BoundSpec, FittedSpec, Spec
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Emit, Kernel, Node, Plan, Read
from pipegen.plan.recipe import decided_by
from pipegen.spec.models import Output, names
from pipegen.types import ElementType, FeatureType, valid_name

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Shape = tuple[int | tf.Tensor, int | tf.Tensor, int]


class DrawnParameters:
    """The drawn parameters of the examples of one split, by name.

    The executor draws, and runs the earlier steps of the unoptimised plan if parameters depend on a size that is only in the file. The keys
    of the records name the partners of combined examples.
    """

    def __init__(self, executor: Executor, plain: Plan, keys: Sequence[str]) -> None:
        self._x = executor
        self._plain = plain
        self._keys = keys
        ids = {ref.id for stage in plain.stages() for use in stage.uses() for ref in decided_by(use)}
        self._draws = tuple(ref for ref in plain.index.draws if ref.id in ids)
        """Without those of steps on an image that the model does not receive."""
        self._uses = {ref.id: _uses(plain, ref) for ref in self._draws}

    def rows(self, batch: dict[str, Array], wanted: Sequence[int]) -> list[Row]:
        """Lists the parameters of each example of a batch by name.

        `STEP.applied` tells if a step acts, for steps that skip some examples; `STEP.PARAMETER` is a parameter of a step that acts. The
        batch has `@epoch`, `@slot`, `@record` and `@draws`, of one epoch. Rows that are not wanted stay empty.
        """
        found: list[Row] = [{} for _ in batch["@record"]]
        draws, asked = tf.constant(batch["@draws"]), np.isin(np.arange(len(found)), wanted)
        for ref in self._draws:
            active = asked
            if ref.conditional:
                active = acts(ref, draws).numpy() & asked
                for i in wanted:
                    found[i][f"{ref.id}.applied"] = bool(active[i])
            for name, values in self._named(ref, draws, batch, active).items():
                for row, value, act in zip(found, values, active, strict=True):
                    plain = _plain(value)
                    if act and plain is not None:
                        row[f"{ref.id}.{name}"] = plain
        return found

    def _named(self, ref: StepRef, draws: tf.Tensor, batch: dict[str, Array], active: Array) -> dict[str, Sequence[Any]]:
        u, step = own_draws(ref, draws), step_of(ref, draws)
        uses = self._uses[ref.id]
        found: dict[str, Sequence[Any]] = {}
        if not uses or type(step).drawn_on is Transform.drawn_on:  # a policy, whose parts are in the plan; or independent of the size
            return {name: value.numpy() for name, value in step.drawn(u).items()}
        alike = len({use[2].shape for use in uses}) == 1
        for node, stage, x in uses[:1] if alike else uses:
            sizes = self._sizes(node, stage, x, batch, active)
            found |= {("" if alike else f"{stage.feature}.") + name: value.numpy() for name, value in step.drawn_on(u, sizes).items()}
        if isinstance(step, CombiningTransform):
            combined = np.asarray(found["own_share"]) < 1 if "own_share" in found else step.acts(u).numpy()
            partners = zip(self._partners(step.rank(u), ref.of(CombiningTransform), batch), combined, strict=True)
            found["partner"] = [keys if takes else None for keys, takes in partners]
        return found

    def _sizes(self, node: int, stage: Stage, x: FeatureType, batch: dict[str, Array], active: Array) -> Shape:
        """Size of the images that enter a stage; int32 `(n,)` each if it differs between examples."""
        if isinstance(stage, s.Compose) and None not in stage.canvas:
            return stage.canvas[0], stage.canvas[1], x.channels or 0
        height, width = (*x.shape, None, None)[:2]
        if height is not None and width is not None:
            return height, width, x.channels or 0
        several = zip(batch["@record"], batch["@draws"], active, strict=True)
        found = [(1 << 15, 1 << 15)] * len(active)
        for row, (record, draws, act) in enumerate(several):
            if act:  # runs the steps before the stage
                features: Features = {"@record": tf.constant(record, tf.int64), "@draws": tf.constant(draws)}
                for before in self._plain.nodes[:node]:
                    if isinstance(before, (Read, Element)):
                        self._x.element(before, features)
                value = features[stage.feature]
                value = stage.decode.step.decode(value, None) if isinstance(stage, DecodeWindow) else value
                found[row] = int(value.shape[0]), int(value.shape[1])
        heights, widths = (tf.constant(sides, tf.int32) for sides in zip(*found, strict=True))
        return heights, widths, x.channels or 0

    def _partners(self, rank: tf.Tensor, ref: StepRef[CombiningTransform], batch: dict[str, Array]) -> list[str | list[str]]:
        """Record that each example was combined with, or a list of several."""
        order, slots, records = self._x.order, batch["@slot"], batch["@record"]
        own = slice(0, len(slots))
        if self._x.wide is not None:  # the batch begins inside a group, whose other members are missing
            epoch = int(batch["@epoch"][0])
            step = order.step_at(epoch, tf.constant(slots[:1], tf.int64))[0]
            slots = combined_groups.widened(order, step, self._x.wide, START, epoch)[0].numpy()
            first = int(np.searchsorted(slots, batch["@slot"][0]))
            own = slice(first, first + len(records))
            found = order.found(epoch, tf.constant(slots))
            group = order.group(tf.constant(slots, tf.int64))
            draws = self._x.draws(self._x.tensors, *found, calendar=tf.zeros_like(found.cycle) + epoch, group=group)
            ranks = ref.step.rank(own_draws(ref, draws)).numpy()
            ranks[own], known = rank.numpy(), found.record.numpy()
            known[own] = records
            rank, records = tf.constant(ranks), known
        first = combined_groups.partners(rank, order.member(tf.constant(slots, tf.int64)))
        named = [[self._keys[records[i]] for i in row] for row in combined_groups.partners_of(first, ref.step.others).numpy()[own]]
        return [row[0] if ref.step.others == 1 else row for row in named]


def _uses(plain: Plan, ref: StepRef) -> list[tuple[int, Stage, FeatureType]]:
    """Finds a step in the plan: the node, the stage, and its input type, for each image or sound that it acts on."""
    found = []
    before = plain.nodes[0].out
    wanted = next((part for part in (Levels, Indices) if having(plain.read, part)), Samples)
    for number, node in enumerate(plain.nodes):
        for stage in node.stages if isinstance(node, (Element, Kernel)) else ():
            x = before.get(stage.feature)
            if x is not None and kind_of(x).has(wanted) and any(use.id == ref.id and use.step is ref.step for use in stage.uses()):
                found.append((number, stage, x))
        before = node.out
    return found


def _plain(value: Any) -> Any:
    """Converts a value to one of JSON; `None` for NaN, which marks a missing amount."""
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(plain, bytes):
        return plain.decode()
    return None if isinstance(plain, float) and math.isnan(plain) else plain


INDEX = ("@epoch", "@slot", "@record", "@draws")  # entries of the index for each example, by their names in the backend


def finishes(stage: Stage) -> bool:
    """Checks if a closing stage only converts an image to the form that a model takes."""
    if isinstance(stage, Neighbourhood):
        return isinstance(stage.ref.step, StepPart)
    return stage.cheap and not isinstance(stage, Express)


def varies(split: str, plan: Plan) -> bool:
    """Checks if the examples of a split differ between epochs, which only those of `train` do."""
    return split == "train" and bool(plan.index.draws)


def forks_of(plan: Plan) -> list[s.Fork]:
    """Finds the stages that make views."""
    return [stage for stage in (*plan.part_stages(), *plan.stages()) if isinstance(stage, s.Fork)]


def views_of(plan: Plan, feature: str) -> tuple[str, ...]:
    """Lists the views of a feature; the feature itself if it has none."""
    return next((fork.names for fork in forks_of(plan) if fork.feature == feature), (feature,))


def augmented(plan: Plan, size: int | None) -> Plan:
    """Removes from an unoptimised plan the stages that finish an image; it then outputs every feature.

    `size` is the batch size, with a smaller last batch; `None` leaves it.
    """
    items = unpack(plan)
    last = {item.stage.feature: i for i, item in enumerate(items) if isinstance(item, Placed) and not finishes(item.stage)}
    kept: dict[str, FeatureType] = {}

    def mended(type_: ElementType) -> ElementType:
        mended_ = type_.replace(**{name: t for name, t in kept.items() if name in type_})
        return mended_ if size is None or type_.batch is None else mended_.with_batch(0)

    done: list[Node | Placed] = []
    for i, item in enumerate(items):
        if isinstance(item, Placed):
            feature = item.stage.feature
            if finishes(item.stage) and i > last.get(feature, -1):
                kept |= {name: item.before[name] for name in item.stage.touches() if name not in kept}
            else:
                done.append(Placed(item.stage, mended(item.before), mended(item.after)))
        else:
            out = mended(item.out)
            done.append(_changed(item, out, size, (*pictures(out), *beside(out))))
    return pack(plan, done)


def pictures(type_: ElementType) -> tuple[str, ...]:
    """Lists the features that can be shown as pictures: images, then masks, then sounds."""
    return tuple(name for kind in kinds() if kind.values is not None for name, t in type_.items() if t.kind == kind.name)


def picture_of(image: Array, side: int, *, enlarges: bool = False) -> Image.Image:
    """Makes an RGB picture of an image, uint8 `(height, width, channels)`, of at most `side` pixels a side; with `enlarges` of as many."""
    pixels = image[..., :3] if image.shape[-1] >= 3 else image[..., 0]
    shown = Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")
    scale = side / max(shown.size)
    if scale >= 1 and not enlarges:
        return shown
    size = (max(1, round(shown.width * scale)), max(1, round(shown.height * scale)))
    return shown.resize(size, Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC)


def beside(type_: ElementType) -> tuple[str, ...]:
    """Lists the features that are not shown as pictures, without numbers of items that only masks of instances read."""
    return tuple(name for name, t in type_.items() if kind_of(t).values is None and not kind_of(t).has(InstanceNumber))


def with_index(plan: Plan) -> Plan:
    """Adds the entries of the index to the output of a compiled plan."""
    return plan.each(lambda own: _emitting(own, (*pictures(own.emit.out), *beside(own.emit.out), *INDEX)))


def _emitting(plan: Plan, features: Iterable[str]) -> Plan:
    """Replaces the output of a compiled plan by a map of features."""
    return plan.with_nodes([_changed(node, node.out, None, features) if isinstance(node, Emit) else node for node in plan.nodes])


def _changed(node: Node, out: ElementType, size: int | None, features: Iterable[str]) -> Node:
    """Changes the type of a node, the size of batches, and the output of a plan to a map of features."""
    if isinstance(node, Batch) and size is not None:
        return replace(node, out=out, size=size, remainder="keep")
    if isinstance(node, Emit):
        return Emit(out, Output.model_construct(x={name: name for name in features}, y=None, sample_weight=None))
    return replace(node, out=out)


class Sampled:
    """Some features of a sample of a split, or of `all`, with the examples of the first epoch."""

    def __init__(self, fitted: FittedSpec, split: str, features: Sequence[str], sample: int | Literal["all"]) -> None:
        self._features = features
        count = fitted.manifest.num_examples(split)
        places = sample_of(fitted.manifest, split, sample)
        self._most = len(places) if places is not None else count if sample == "all" else min(sample, count)
        spec, manifest = _only(fitted, split, places)
        self._numbers = manifest.numbers(split)
        self._keys = manifest.keys(split)
        spec = _plainly(spec, min(spec.model.batch.size, max(self._most, 1)))
        plain = without_unused(fitted.plans[split].each(lambda own: _handing_over(own, features, spec.model.batch.size)))
        engine = Engine(BoundSpec(spec, manifest, {}), {})
        emitted = read_once(spec.model, plain, manifest).each(lambda own: _emitting(own, (*names(own.emit.output.x), "@record")))
        self._executor = engine.executor_of(emitted, split)

    def __len__(self) -> int:
        return self._most

    def batches(self) -> Iterator[tuple[dict[str, Array], Array, list[str]]]:
        """Yields the features of some examples at a time, `(n, ...)` each; their numbers among all records of the data, `(n,)`; and their
        names.

        In features with any number of items, padding is masked. A record that cannot be read raises `DataError`, unless the spec skips it.
        """
        left = self._most
        for batch in fixed_dataset(self._executor):
            rows = {name: value.numpy()[:left] for name, value in batch.items()}
            records = rows.pop("@record")
            for name, valid in ((name, rows.get(valid_name(name))) for name in self._features):
                if valid is not None:
                    absent = ~valid.reshape(*valid.shape, *[1] * (rows[name].ndim - valid.ndim))
                    rows[name] = np.ma.masked_array(rows[name], np.broadcast_to(absent, rows[name].shape))
            yield {f: rows[f] for f in self._features}, self._numbers[records], [self._keys[i] for i in records.tolist()]
            left -= len(records)
            if left <= 0:
                return


def sample_of(manifest: Manifest, split: str, sample: int | Literal["all"]) -> Array | None:
    """Chooses the examples of a sample, as ascending places in the split: int64 `(n,)`. In a mix, every part has at least one.

    `None` if there are too many records to rank; the first ones then serve as the sample.
    """
    if manifest.own(split).listing.shards is not None and manifest.total > RANKED:
        return None
    more: list[Array] = []
    places, start = pick(manifest, split, sample), 0
    for part in manifest.of(split).values():
        end = start + part.num_examples(split)
        if end > start and not ((places >= start) & (places < end)).any():
            more.append(pick(part, split, 1) + start)  # the one that a larger sample would add first
        start = end
    return np.union1d(places, np.concatenate(more)) if more else places


def _only(fitted: FittedSpec, split: str, places: Array | None) -> tuple[Spec, Manifest]:
    """Narrows the spec and the manifest to a sample; in a mix, an epoch then has each of its examples once."""
    spec, manifest = fitted.spec, fitted.manifest
    if places is None:
        return spec, manifest
    if not isinstance(manifest, MixedManifest):
        return spec, manifest.narrowed(split, places)
    parts, mix, start = dict(manifest.parts), spec.model.source, 0
    weighed = dict(mix.mixed())
    for name, part in manifest.of(split).items():
        end = start + part.num_examples(split)
        own = places[(places >= start) & (places < end)] - start
        parts[name], start = part.narrowed(split, own), end
        weighed[name] = weighed[name].model_copy(update={"weight": float(len(own)), "sampling": None, "order": None})
    if split == "train":
        mix = mix.model_copy(update={"epoch": len(places), "parts": weighed})
    model = spec.model.model_copy(update={"source": mix})
    return replace(spec, model=model), mixed_manifest(model, parts)


def _plainly(spec: Spec, batch: int) -> Spec:
    """Simplifies a spec: an epoch has every example once, on this host alone, and nothing is written to disk."""
    model = spec.model
    changes: dict[str, Any] = {"epoch": "pass", "sampling": None, "order": None}
    changes["batch"] = model.batch.model_copy(update={"size": batch, "remainder": "keep"})
    changes["runtime"] = model.runtime.model_copy(update={"shard": "none", "cache": "none", "prefetch": "auto"})
    skip = model.errors.skip
    if skip is not None:
        quiet = skip.model_copy(update={"max_fraction": 1.0, "report": None})
        decode = model.errors.decode.model_copy(update={"skip": quiet})  # type: ignore[union-attr]
        changes["errors"] = model.errors.model_copy(update={"decode": decode})
    return replace(spec, model=model.model_copy(update=changes))


def _handing_over(plan: Plan, features: Sequence[str], size: int) -> Plan:
    """Changes the batch size of an unoptimised plan, and its output to a map of some features."""
    wanted = [name for f in features for name in (f, valid_name(f))]
    outs = [node.out.with_batch(0) if node.out.batch is not None else node.out for node in plan.nodes]
    each = zip(plan.nodes, outs, strict=True)
    return plan.with_nodes([_changed(node, out, size, [name for name in wanted if name in out]) for node, out in each])
