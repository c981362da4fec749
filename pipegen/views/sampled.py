"""Examples of a split as the steps make them, for whoever looks at values: only the features that are asked for are made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.datasets.pipeline_dataset import fixed_dataset
from pipegen.data.mix.collect import mixed_manifest
from pipegen.data.mix.manifest import MixedManifest
from pipegen.data.shards.splits import RANKED
from pipegen.data.testing import pick
from pipegen.passes.drop_unused import without_unused
from pipegen.phases.compilation import optimise
from pipegen.phases.specs import BoundSpec
from pipegen.plan.nodes import Batch, Emit
from pipegen.spec.models import Output
from pipegen.types import valid_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import FittedSpec, Spec
    from pipegen.plan.nodes import Node, Plan

Array = np.ndarray[Any, Any]
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
