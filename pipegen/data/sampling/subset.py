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
from pipegen.ops.sources.listing.wording import count
from pipegen.ops.sources.tables.predicate_syntax import parse_predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.data.manifest import Manifest
    from pipegen.ops.sampling import Subset

Array = np.ndarray[Any, Any]
_TRAIN = "train"


def with_subset(manifest: Manifest, subset: Subset | None) -> Manifest:
    """Keeps the examples of the training split that a predicate selects, and of those the ones whose hashed ids rank first, or first
    within their classes.

    So a smaller subset of one seed is a part of a larger one, which holds within each class to one example where it is stratified.

    Raises:
        OpError: `PG409` where there are fewer examples than the subset asks for, `PG404` where it has none, `PG421` and `PG452` for columns
            that are not there, or cannot be compared. `field` is relative to `sampling.subset`.
    """
    n = manifest.num_examples(_TRAIN) if _TRAIN in manifest.splits else 0
    if subset is None or not n:
        return manifest
    if subset.where is not None:
        manifest = manifest.narrowed(_TRAIN, _selected(manifest, subset.where))
        n = manifest.num_examples(_TRAIN)
    if subset.count is None and subset.fraction is None:
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


def _selected(manifest: Manifest, where: str) -> Array:
    """The places in the training split of the examples that a predicate selects, rising."""
    columns = _Columns(manifest)
    try:
        chosen = parse_predicate(where).select(columns, range(manifest.num_examples(_TRAIN)))
    except OpError as error:
        raise OpError(error.code, error.message, field="where", help=error.help) from None
    if not chosen:
        raise OpError("PG404", f"no example of split `train` is as `where: {where}` says", field="where")
    return np.array(chosen, np.int64)


class _Columns:
    """The columns of a table, as predicates read them: a row is an example's place in the training split."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._keys = manifest.keys(_TRAIN)
        self._numbers = manifest.numbers(_TRAIN)
        self._read: dict[str, Sequence[str]] = {}

    def cells(self, column: str, rows: Sequence[int]) -> tuple[list[str], Callable[[int], str]]:
        """Returns the texts of these rows, in their order, and from a row to what its example is called."""
        if column not in self._read:
            read = self._manifest.listing.cells
            if read is None:
                raise OpError("PG472", "`where` compares columns of a table, and the source has none", field="where")
            self._read[column] = read(column, "where")
        cells = self._read[column]
        return [cells[number] for number in self._numbers[list(rows)].tolist()], lambda row: f"the example {self._keys[row]!r}"


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
