"""From a spec and its data to the epochs of a sampled split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from pipegen.data.sampling.easiest import easiest_first
from pipegen.data.sampling.epochs import Repeats
from pipegen.data.sampling.factors import balanced, repeated, weighted
from pipegen.errors import InternalError, OpError
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.data.sampling.epochs import Epochs
    from pipegen.ops.sampling import Sampling
    from pipegen.spec.models import PipelineSpec

Array = np.ndarray[Any, Any]
_found: WeakKeyDictionary[Manifest, dict[str, Epochs]] = WeakKeyDictionary()
_TRAIN = "train"


def examples_of_epoch(spec: PipelineSpec, manifest: Manifest, split: str) -> int:
    """Counts the examples in one pass over a split, or in an epoch where it is sampled.

    Raises:
        OpError: As `epochs_of`.
    """
    return epochs_of(spec, manifest).size if spec.samples and split == _TRAIN else manifest.epoch_examples(split)


def epochs_of(spec: PipelineSpec, manifest: Manifest) -> Epochs:
    """Returns the epochs of the training split of a spec that samples; for one manifest they are worked out once.

    Raises:
        OpError: `PG472` where the data does not have the feature, or its numbers cannot be used. `field` is the whole path.
    """
    known = _found.setdefault(manifest, {})
    # A new size of the batch makes an epoch of so many steps longer.
    size = manifest.num_examples(_TRAIN) if spec.epoch == "pass" else spec.epoch.steps * spec.batch.size
    key = repr((spec.seed, spec.sampling and spec.sampling.meaning(), spec.order and (spec.order.meaning(), size)))
    if key not in known:
        known[key] = _ordered(spec.order, manifest, size, spec.seed) if spec.order is not None else _repeated(spec, manifest)
    return known[key]


def class_weights(spec: PipelineSpec, manifest: Manifest) -> dict[int, float] | None:
    """Balanced weights of the training classes, whose examples count as often as they are seen; `None` without labels.

    Raises:
        OpError: As `epochs_of`.
    """
    epochs = epochs_of(spec, manifest) if spec.samples else None
    labels = manifest.labels(_TRAIN)
    if labels is None or not isinstance(epochs, Repeats):
        return manifest.class_weights(_TRAIN)
    counts = np.bincount(labels, weights=epochs.each(len(labels)), minlength=len(manifest.class_names))
    total, present = float(counts.sum()), int((counts > 0).sum())
    return {c: total / (present * n) if n else 0.0 for c, n in enumerate(counts.tolist())}


def _repeated(spec: PipelineSpec, manifest: Manifest) -> Epochs:
    sampling = spec.sampling
    if sampling is None:
        raise InternalError("a spec that samples nothing was asked for its epochs")
    if sampling.repeat_factor is not None:
        return repeated(_labels(spec, manifest, sampling), sampling.repeat_factor.threshold, spec.seed)
    if sampling.balanced is not None:
        return balanced(_labels(spec, manifest, sampling), sampling.balanced[1], spec.seed)
    path = ("sampling", *sampling.feature_path())
    weights = _numbers(manifest, str(sampling.weights), path)
    wrong = int((~(weights >= 0) | np.isinf(weights)).sum())
    if wrong or not weights.any():
        said = f"{count(wrong, 'example')} of split `train` have no number of 0 or more" if wrong else "all numbers of split `train` are 0"
        raise OpError(
            "PG472", f"`weights: {sampling.weights}`: {said}", field=".".join(path), help="an example of weight 2 is seen twice as often"
        )
    return weighted(weights, spec.seed)


def _ordered(order: Any, manifest: Manifest, size: int, seed: int) -> Epochs:
    by = order.by
    difficulty = _numbers(manifest, by, ("order", "by"))
    wrong = int((~np.isfinite(difficulty)).sum())
    if wrong:
        message = f"`by: {by}`: {count(wrong, 'example')} of split `train` have no finite number"
        raise OpError("PG472", message, field="order.by", help="give each example a number, or leave such examples out")
    ids = manifest.ids(_TRAIN)
    return easiest_first(difficulty if order.rising else -difficulty, ids, order.shares(), size, seed)


def _labels(spec: PipelineSpec, manifest: Manifest, sampling: Sampling) -> Array:
    """The classes of the training split's examples: `(n,)`, or `(n, classes)` where an example can have several."""
    name = str(sampling.feature)
    labels = manifest.labels(_TRAIN) if name == spec.source.class_feature() else manifest.columns(_TRAIN).get(name)
    if labels is None:
        raise _unknown(manifest, name, ("sampling", *sampling.feature_path()))
    return np.asarray(labels)


def _numbers(manifest: Manifest, name: str, path: tuple[str, ...]) -> Array:
    """The number of each example of the training split: float64 `(n,)`."""
    values = manifest.columns(_TRAIN).get(name)
    if values is None:
        raise _unknown(manifest, name, path)
    return np.asarray(values, np.float64).reshape(len(values))


def _unknown(manifest: Manifest, name: str, path: tuple[str, ...]) -> OpError:
    """Says that a feature is not known before records are read."""
    message = f"`{name}` of `{manifest.source_name}` is not known before a record is read, and would decide which one is"
    return OpError("PG472", message, field=".".join(path), help="put it into a column of a table, and read that with `csv` or `parquet`")
