"""Leaves examples of the training split out, the same ones in every epoch; all other splits stay as they are."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.deal import Ranked, deal_by_class
from pipegen.data.fingerprint import split_hashes
from pipegen.data.rounding import exact
from pipegen.data.shards.ids import mix64
from pipegen.errors import OpError
from pipegen.ops.sources.reports import count

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.spec.sampling import Subset

Array = np.ndarray[Any, Any]
_TRAIN = "train"


def with_subset(manifest: Manifest, subset: Subset | None) -> Manifest:
    """Keeps the examples of the training split whose hashed ids rank first, or first within their classes.

    So a smaller subset of one seed is a part of a larger one, which holds within each class to one example where it is stratified.

    Raises:
        OpError: `PG409` where there are fewer examples than the subset asks for; `field` is relative to `sampling.subset`.
    """
    n = manifest.num_examples(_TRAIN) if _TRAIN in manifest.splits else 0
    if subset is None or not n:
        return manifest
    wanted = subset.count if subset.count is not None else int(exact(subset.fraction or 0.0) * n + exact(0.5))
    if wanted > n:
        message = f"the subset asks for {count(wanted, 'example')} of split `train`, which has {n:,}"
        raise OpError("PG409", message, field="count", help=f"ask for {n} at most, or for a `fraction`")
    if not wanted:
        message = f"the subset of {subset.fraction:g} of {count(n, 'example')} is less than one"
        raise OpError("PG404", message, field="fraction", help="ask for a larger fraction")
    chosen = np.sort(_first(manifest, wanted, subset))
    return manifest.narrowed(_TRAIN, chosen)


def _salt(seed: int) -> np.uint64:
    digest = hashlib.blake2b(seed.to_bytes(8, "big"), digest_size=8, person=b"pipegen.subset")
    return np.uint64(int.from_bytes(digest.digest(), "big"))


def _first(manifest: Manifest, wanted: int, subset: Subset) -> Array:
    """The places in the training split of so many examples."""
    hashes = mix64(manifest.ids(_TRAIN) ^ _salt(subset.seed))
    labels = manifest.labels(_TRAIN) if subset.stratify is not None else None
    if labels is None:
        return np.argpartition(hashes, wanted - 1)[:wanted]
    ranked = np.argsort(hashes, kind="stable")
    classes = split_hashes(manifest.class_names, subset.seed).argsort(kind="stable")
    return deal_by_class(Ranked(ranked, labels, classes), [wanted, len(ranked) - wanted])[0]
