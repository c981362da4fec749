"""Augmented examples of a split: the plan that makes them, their values, and the draws in the words of the spec."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.datasets.pipeline_dataset import fixed_dataset
from pipegen.backend.index import mixing
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.index.order import START
from pipegen.data.mix import MixedManifest, mixed_manifest
from pipegen.data.shards import RANKED
from pipegen.data.testing import pick
from pipegen.ops.families.decoder import DecodeWindow
from pipegen.ops.families.fitted import StepPart
from pipegen.ops.families.items import Express
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.families.neighbourhood import Neighbourhood
from pipegen.ops.kinds.registry import kind_of, kinds
from pipegen.ops.stage import Stage
from pipegen.ops.transform import Transform
from pipegen.passes.base import Placed, pack, unpack
from pipegen.passes.drop_unused import without_unused
from pipegen.phases.compilation import optimise
from pipegen.phases.specs import BoundSpec
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Emit, Kernel, Read
from pipegen.spec.models import Output
from pipegen.types import valid_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.backend.features import Features
    from pipegen.backend.running.execute import Executor
    from pipegen.data.manifest import Manifest
    from pipegen.ops.stage import Stage, StepRef
    from pipegen.phases.specs import FittedSpec, Spec
    from pipegen.plan.nodes import Node, Plan
    from pipegen.types import ElementType, FeatureType


Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Shape = tuple[int | tf.Tensor, int | tf.Tensor, int]


class DrawnParameters:
    """Names the drawn parameters of the examples of one split.

    Args:
        executor: Draws, and runs the steps before one whose numbers depend on a size that only the file tells.
        plain: The plainest plan of the split, in which every step stands alone.
        keys: The name of each record, for the partners of examples that are mixed.
    """

    def __init__(self, executor: Executor, plain: Plan, keys: Sequence[str]) -> None:
        self._x = executor
        self._plain = plain
        self._keys = keys
        ids = {ref.id for stage in plain.stages() for use in stage.uses() for ref in _decided_by(use)}
        self._draws = tuple(ref for ref in plain.index.draws if ref.id in ids)
        """Less those of steps on an image that the model does not receive."""
        self._uses = {ref.id: _uses(plain, ref) for ref in self._draws}

    def rows(self, batch: dict[str, Array], wanted: Sequence[int]) -> list[Row]:
        """For each example of a batch, its parameters by name: `STEP.applied` where a step leaves some examples alone, and
        `STEP.PARAMETER` where it acts. Those of rows that are not wanted are left empty.

        Args:
            batch: `@epoch`, `@slot`, `@record` and `@draws`, of one epoch.
            wanted: The rows.
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
        if not uses or type(step).drawn_on is Transform.drawn_on:  # a policy, whose parts stand in the plan; or no matter of size
            return {name: value.numpy() for name, value in step.drawn(u).items()}
        alike = len({use[2].shape for use in uses}) == 1
        for node, stage, x in uses[:1] if alike else uses:
            sizes = self._sizes(node, stage, x, batch, active)
            found |= {("" if alike else f"{stage.feature}.") + name: value.numpy() for name, value in step.drawn_on(u, sizes).items()}
        if isinstance(step, MixingTransform):
            mixed = np.asarray(found["own_share"]) < 1 if "own_share" in found else step.acts(u).numpy()
            partners = zip(self._partners(step.rank(u), ref.of(MixingTransform), batch), mixed, strict=True)
            found["partner"] = [keys if takes else None for keys, takes in partners]
        return found

    def _sizes(self, node: int, stage: Stage, x: FeatureType, batch: dict[str, Array], active: Array) -> Shape:
        """The size of the images that enter a stage; int32 `(n,)` each where it is another for each example."""
        if isinstance(stage, s.Compose) and None not in stage.canvas:
            return stage.canvas[0], stage.canvas[1], x.channels or 0
        if x.height is not None and x.width is not None:
            return x.height, x.width, x.channels or 0
        several = zip(batch["@record"], batch["@draws"], active, strict=True)
        found = [self._size_of(node, stage, record, draws) if act else (1 << 15, 1 << 15) for record, draws, act in several]
        heights, widths = (tf.constant(sides, tf.int32) for sides in zip(*found, strict=True))
        return heights, widths, x.channels or 0

    def _size_of(self, node: int, stage: Stage, record: int, draws: Array) -> tuple[int, int]:
        """The size of one image where a stage gets it: the steps before are run once more."""
        features: Features = {"@record": tf.constant(record, tf.int64), "@draws": tf.constant(draws)}
        for before in self._plain.nodes[:node]:
            if isinstance(before, (Read, Element)):
                self._x.element(before, features)
        value = features[stage.feature]
        if isinstance(stage, DecodeWindow):
            value = stage.decode.step.decode(value, None)
        return int(value.shape[0]), int(value.shape[1])

    def _partners(self, rank: tf.Tensor, ref: StepRef[MixingTransform], batch: dict[str, Array]) -> list[str | list[str]]:
        """The record whose picture each example has taken its part of, or a list of several."""
        order, slots, records = self._x.order, batch["@slot"], batch["@record"]
        own = slice(0, len(slots))
        if self._x.wide is not None:  # the batch begins inside a group, whose other members are not at hand
            epoch = int(batch["@epoch"][0])
            step = order.step_at(epoch, tf.constant(slots[:1], tf.int64))[0]
            slots = mixing.widened(order, step, self._x.wide, START, epoch)[0].numpy()
            first = int(np.searchsorted(slots, batch["@slot"][0]))
            own = slice(first, first + len(records))
            found = order.found(epoch, tf.constant(slots))
            draws = self._x.draws(self._x.tensors, *found, calendar=tf.zeros_like(found.cycle) + epoch)
            ranks = ref.step.rank(own_draws(ref, draws)).numpy()
            ranks[own], known = rank.numpy(), found.record.numpy()
            known[own] = records
            rank, records = tf.constant(ranks), known
        first = mixing.partners(rank, order.member(tf.constant(slots, tf.int64)))
        named = [[self._keys[records[i]] for i in row] for row in mixing.partners_of(first, ref.step.others).numpy()[own]]
        return [row[0] if ref.step.others == 1 else row for row in named]


def _decided_by(use: StepRef) -> Iterator[StepRef]:
    """A use of a step, the policy that it is a part of, and so on."""
    ref: StepRef | None = use
    while ref is not None:
        yield ref
        ref = ref.choice.policy if ref.choice is not None else None


def _uses(plain: Plan, ref: StepRef) -> list[tuple[int, Stage, FeatureType]]:
    """Returns where a step stands in the plan: the node, the stage, and the type that enters it; once for each image that it moves."""
    found = []
    before = plain.nodes[0].out
    levels = any(kind_of(t).levels for _, t in plain.read.items())
    for number, node in enumerate(plain.nodes):
        for stage in node.stages if isinstance(node, (Element, Kernel)) else ():
            x = before[stage.feature]
            if (
                kind_of(x).pictured
                and kind_of(x).levels == levels
                and any(use.id == ref.id and use.step is ref.step for use in stage.uses())
            ):
                found.append((number, stage, x))
        before = node.out
    return found


def _plain(value: Any) -> Any:
    """A number, a truth value, a word or a list of numbers as JSON has them; `None` for an amount that is not there."""
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(plain, bytes):
        return plain.decode()
    return None if isinstance(plain, float) and math.isnan(plain) else plain


INDEX = ("@epoch", "@slot", "@record", "@draws")
"""What the index says of each example, by the names that the backend gives it."""


def finishes(stage: Stage) -> bool:
    """Returns whether a stage at the end only brings an image into the form that a model takes."""
    if isinstance(stage, Neighbourhood):
        return isinstance(stage.ref.step, StepPart)
    return stage.cheap and not isinstance(stage, Express)


def varies(split: str, plan: Plan) -> bool:
    """Returns whether the examples of a split differ from epoch to epoch: only training goes on to the next."""
    return split == "train" and bool(plan.index.draws)


def forks_of(plan: Plan) -> list[s.Fork]:
    """The stages that make views."""
    return [stage for stage in (*plan.part_stages(), *plan.stages()) if isinstance(stage, s.Fork)]


def views_of(plan: Plan, feature: str) -> tuple[str, ...]:
    """The views of a feature; itself where it has none."""
    return next((fork.names for fork in forks_of(plan) if fork.feature == feature), (feature,))


def augmented(plan: Plan, size: int | None) -> Plan:
    """The plainest plan of a split without the stages that finish an image, whose pictures are all that it hands over.

    Args:
        plan: The plainest plan, one stage a node.
        size: Batches of this many, of which the last may be smaller; `None` leaves them.
    """
    if plan.buckets:
        return plan.each(lambda own: augmented(own, size))
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
        elif isinstance(item, Batch) and size is not None:
            done.append(replace(item, out=mended(item.out), size=size, remainder="keep"))
        elif isinstance(item, Emit):
            out = mended(item.out)
            done.append(Emit(out, Output(x={name: name for name in (*pictures(out), *ragged(out))}, y=None)))
        else:
            done.append(replace(item, out=mended(item.out)))
    return pack(plan, done)


def pictures(type_: ElementType) -> tuple[str, ...]:
    """The features that can be looked at: images, then masks."""
    return tuple(name for kind in kinds() if kind.pictured for name, t in type_.items() if t.kind == kind.name)


def ragged(type_: ElementType) -> tuple[str, ...]:
    """The features that have any number of items, and what says which of those are there."""
    return tuple(name for name, t in type_.items() if kind_of(t).padded and not kind_of(t).numbers_items)


def with_index(plan: Plan) -> Plan:
    """A compiled plan that hands over as well what the index says of each example."""
    if plan.buckets:
        return plan.each(with_index)
    out = plan.emit.out
    names = {name: name for name in (*pictures(out), *ragged(out), *INDEX)}
    emit = Emit(out, Output.model_construct(x=names, y=None, sample_weight=None))
    return plan.with_nodes([emit if isinstance(node, Emit) else node for node in plan.nodes])


_RECORD = "@record"


class Sampled:
    """A sample of a split, whose examples are as the first epoch has them.

    Args:
        fitted: The spec and its data.
        split: The split.
        features: The features.
        sample: How many examples, or `all`.
    """

    def __init__(self, fitted: FittedSpec, split: str, features: Sequence[str], sample: int | Literal["all"]) -> None:
        self._features = features
        count = fitted.manifest.num_examples(split)
        places = sample_of(fitted.manifest, split, sample)
        self._most = len(places) if places is not None else count if sample == "all" else min(sample, count)
        spec, manifest = _only(fitted, split, places)
        self._numbers = manifest.numbers(split)
        self._keys = manifest.keys(split)
        spec = _plainly(spec, min(spec.model.batch.size, max(self._most, 1)))
        plain = without_unused(_handing_over(fitted.plans[split], features, spec.model.batch.size))
        size = manifest.mean_bytes(split) or None
        compiled = optimise(spec.model, plain, num_examples=manifest.num_examples(split), file_bytes=size, cache=False).plan
        engine = Engine(BoundSpec(spec, manifest, {}), {})
        self._executor = engine.executor_of(_numbered(compiled), split)

    def __len__(self) -> int:
        """Counts the examples."""
        return self._most

    def batches(self) -> Iterator[tuple[dict[str, Array], Array, list[str]]]:
        """Yields the examples, some at a time.

        Yields:
            The features, `(n, ...)` each; the numbers of the examples among all records of the data, `(n,)`; and what they are called. Of a
            feature with any number of items, places without one are masked.

        Raises:
            DataError: For a record that cannot be read, and that the spec does not skip.
        """
        left = self._most
        for batch in fixed_dataset(self._executor):
            rows = {name: value.numpy()[:left] for name, value in batch.items()}
            records = rows.pop(_RECORD)
            yield {f: _items(rows, f) for f in self._features}, self._numbers[records], [self._keys[i] for i in records.tolist()]
            left -= len(records)
            if left <= 0:
                return


def sample_of(manifest: Manifest, split: str, sample: int | Literal["all"]) -> Array | None:
    """Returns which examples of a split are in a sample, by their places in it, rising: int64 `(n,)`. Of a mix every part has one at least.

    `None` for more records than can be ranked, of which the first that come serve as a sample.
    """
    if manifest.listing.shards is not None and manifest.total > RANKED:
        return None
    more: list[Array] = []
    places, start = pick(manifest, split, sample), 0
    for part in manifest.of(split).values():
        end = start + part.num_examples(split)
        if end > start and not ((places >= start) & (places < end)).any():
            more.append(pick(part, split, 1) + start)  # the one that is the first to be in a larger sample
        start = end
    return np.union1d(places, np.concatenate(more)) if more else places


def _only(fitted: FittedSpec, split: str, places: Array | None) -> tuple[Spec, Manifest]:
    """Returns the spec and the manifest of a sample; of a mix, so that an epoch has each of its examples once."""
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
    """The spec with an epoch that has every example once, on this host alone, and that writes nothing down."""
    model = spec.model
    changes: dict[str, Any] = {
        "epoch": "pass",
        "sampling": None,
        "order": None,
        "batch": model.batch.model_copy(update={"size": batch, "remainder": "keep"}),
    }
    changes["runtime"] = model.runtime.model_copy(update={"shard": "none", "cache": "none", "prefetch": "auto"})
    skip = model.errors.skip
    if skip is not None:
        quiet = skip.model_copy(update={"max_fraction": 1.0, "report": None})
        decode = model.errors.decode.model_copy(update={"skip": quiet})  # type: ignore[union-attr]
        changes["errors"] = model.errors.model_copy(update={"decode": decode})
    return replace(spec, model=model.model_copy(update=changes))


def _handing_over(plan: Plan, features: Sequence[str], size: int) -> Plan:
    """The plainest plan of a split with smaller batches, which hands over some features by their names."""
    if plan.buckets:
        return plan.each(lambda own: _handing_over(own, features, size))
    nodes: list[Node] = []
    for node in plan.nodes:
        out = node.out.with_batch(0) if node.out.batch is not None else node.out
        if isinstance(node, Batch):
            nodes.append(replace(node, out=out, size=size, remainder="keep"))
        elif isinstance(node, Emit):
            names = [name for f in features for name in (f, valid_name(f)) if name in out]
            nodes.append(Emit(out, Output.model_construct(x={name: name for name in names}, y=None, sample_weight=None)))
        else:
            nodes.append(replace(node, out=out))
    return plan.with_nodes(nodes)


def _numbered(plan: Plan) -> Plan:
    """A compiled plan that hands over the number of each example, too."""
    if plan.buckets:
        return plan.each(_numbered)
    names = {**_map(plan.emit.output), _RECORD: _RECORD}
    emit = Emit(plan.emit.out, Output.model_construct(x=names, y=None, sample_weight=None))
    return plan.with_nodes([emit if isinstance(node, Emit) else node for node in plan.nodes])


def _map(output: Output) -> dict[str, str]:
    return output.x if isinstance(output.x, dict) else {}


def _items(rows: dict[str, Array], feature: str) -> Array:
    """Returns a feature; of a padded one, places without an item are masked."""
    valid = rows.get(valid_name(feature))
    if valid is None:
        return rows[feature]
    absent = ~valid.reshape(*valid.shape, *[1] * (rows[feature].ndim - valid.ndim))
    return np.ma.masked_array(rows[feature], np.broadcast_to(absent, rows[feature].shape))
