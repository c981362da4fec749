"""The examples of an epoch of the training split: how often each is seen, and in which order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pipegen.data.fingerprint import split_hashes
from pipegen.data.manifest import Manifest
from pipegen.data.rounding import exact
from pipegen.data.shards import cumulative, mix64, seed_salt
from pipegen.data.splits import Ranked, deal_by_class, numbered
from pipegen.errors import InternalError, OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.strings import as_places, shareable
from pipegen.ops.sampling_sections import ByColumn, Subset
from pipegen.ops.sources.features.predicate import parse_predicate
from pipegen.spec.models import PipelineSpec

Array = np.ndarray[Any, Any]

BITS = 16
UNIT = 1 << BITS  # units in one visit of an example


def settled(units: Array, examples: int) -> Array:
    """Adjusts the units of groups as little as possible, so that they sum to whole `examples`: int64 `(groups,)`.

    Each group stays between its value rounded down and rounded up to whole visits, so that whole values stay. The difference (less
    than a visit if `examples` is the rounded sum) is spread over the others in proportion to their room.
    """
    missing = examples * UNIT - int(units.sum())
    if not missing:
        return units
    low = units >> BITS << BITS
    high = low + UNIT * (units > low)
    while True:
        ends, amount = np.cumsum(high - units if missing > 0 else units - low), abs(missing)
        if ends[-1] >= amount:
            break
        low, high = np.maximum(low - UNIT, 0), high + UNIT  # only for weights, if thousands are almost whole
    # `ends * amount // total` in two parts, since the product can be longer than 63 bits.
    high, rest = np.divmod(ends * (amount >> BITS), int(ends[-1]))
    spread = np.diff((high << BITS) + ((rest << BITS) + ends * (amount & UNIT - 1)) // int(ends[-1]), prepend=0)
    return units + int(np.sign(missing)) * spread


GOLDEN = 40503  # 2¹⁶ over the golden ratio, odd: its multiples modulo 2¹⁶ meet every value once, and spread evenly from the first on


@dataclass(frozen=True, eq=False)
class Repeats:
    """Epochs that repeat each example a set number of times, on average over epochs.

    The groups lie one behind the other on a line, with the `bounds` in units of 2⁻¹⁶ visits. Slot s of an epoch is the group at s
    visits, plus a phase that changes from epoch to epoch, so that a group of t visits has ⌊t⌋ or ⌈t⌉ slots. These slots walk the
    group's records in a fixed order and continue in the next epoch, so that each of n records is seen ⌊t/n⌋ or ⌈t/n⌉ times."""

    bounds: Array  # the beginning of each group, and the end of the last, in units: int64 `(groups + 1,)`, rising from 0 to whole visits
    sizes: Array | None  # the records of each group: int64 `(groups,)`; `None` if each is one record, in source order
    members: Array | None  # the records of all groups, group by group; `None` if they are stored so
    seed: int  # the spec's seed

    @property
    def size(self) -> int:
        """Number of examples of an epoch."""
        return int(self.bounds[-1]) >> BITS

    @cached_property
    def firsts(self) -> Array | None:
        """Position of each group's first record among the members: int64 `(groups,)`."""
        return None if self.sizes is None else np.cumsum(self.sizes) - self.sizes

    @cached_property
    def phase(self) -> int:
        """Phase of epoch 0, in units."""
        return int.from_bytes(hashlib.blake2b(f"pipegen sampling {self.seed}".encode(), digest_size=2).digest(), "big")

    @property
    def visits(self) -> Array:
        """Mean visits of a record of each group in an epoch: float64 `(groups,)`."""
        length = np.diff(self.bounds) / UNIT
        return length if self.sizes is None else length / np.maximum(self.sizes, 1)

    def each(self, records: int) -> Array:
        """Computes the mean visits of each record in an epoch: float64 `(records,)`."""
        if self.sizes is None:
            return self.visits
        found: Array = np.empty(records)
        found[slice(None) if self.members is None else self.members] = np.repeat(self.visits, self.sizes)
        return found


@dataclass(frozen=True, eq=False)
class Easiest:
    """Epochs of `size` examples from the easiest records: of k records, each is seen ⌊size/k⌋ or ⌈size/k⌉ times.

    `members` are all records, the easiest first; `counts` the k of each epoch from 0 on, int64, whose last one holds for all later epochs.
    """

    size: int
    members: Array
    counts: Array
    seed: int


@dataclass(frozen=True, eq=False)
class Paced:
    """Passes of a part of a mix through its easiest records.

    A stretch is a run of epochs that draw from the same number of records, pass after pass. Of m examples in a stretch of k records,
    each record is ⌊m/k⌋ or ⌈m/k⌉. A pass that the end of a stretch cuts short does not continue."""

    size: int  # number of records of the part, which count as one pass through it
    members: Array  # all records, the easiest first
    begins: Array  # examples of the part before each stretch, from 0 on: int64 `(stretches,)`
    counts: Array  # records that each stretch draws from: int64, like `begins`
    passes: Array  # number of the first pass of each stretch: int64, like `begins`
    seed: int  # the part's seed


Epochs = Repeats | Easiest


_SLACK = 1e-9  # tolerance for rounding a share up to whole examples, so that 0.1 of 30 is 3


def easiest_first(difficulty: Array, ids: Array, shares: Sequence[float], size: int, seed: int) -> Easiest:
    """Draws each epoch from the ⌈share · n⌉ easiest of n examples, with that epoch's share (Bengio et al. 2009).

    The lowest of the numbers `difficulty`, `(n,)`, is the easiest; ties are broken by id, uint64 `(n,)`, which is random. `shares` has the
    share of each epoch from 0 on, above 0 and at most 1; the last one holds for all later epochs. An epoch has `size` examples.
    """
    n = len(difficulty)
    members = shareable(as_places(np.lexsort((ids, difficulty)), n))
    counts = [min(max(math.ceil(share * n - _SLACK * n), 1), n) for share in shares]
    return Easiest(size, members, np.array(counts, np.int64), seed)


def paced(easiest: Easiest, before: Callable[[int], int]) -> Paced:
    """Makes a part of a mix go through its easiest records; `before` counts the examples of the part in all epochs before one."""
    firsts = np.flatnonzero(np.diff(easiest.counts, prepend=0))
    begins = np.array([before(epoch) for epoch in firsts.tolist()], np.int64)
    counts = easiest.counts[firsts]
    passes = np.cumsum([0, *(-(-np.diff(begins) // counts[:-1]))], dtype=np.int64)
    return Paced(len(easiest.members), easiest.members, begins, counts, passes, easiest.seed)


def repeated(labels: Array, threshold: float, seed: int) -> Repeats:
    """Repeats examples of rare classes (Gupta, Dollár and Girshick 2019, LVIS, section 3.5).

    A class in a share f of the examples is repeated r = max(1, √(threshold / f)) times, rounded to 2⁻¹⁶.
    An example takes the largest r of its classes. An epoch has the rounded sum of all r. Labels are class indices `(n,)`, or multi-hot
    `(n, classes)`.
    """
    n = len(labels)

    def factors(counts: Array) -> Array:
        most = np.sqrt(threshold * n / np.maximum(counts, 1))
        return np.rint(np.maximum(most, 1.0) * UNIT).astype(np.int64)

    if labels.ndim == 1:
        return _by_group(labels, lambda sizes: sizes * factors(sizes), None, seed)
    counts = labels.sum(0, dtype=np.int64)
    rarest = np.argsort(np.where(counts > 0, counts, n + 1), kind="stable")
    # An example belongs to its rarest class; those without a class form a group behind all others.
    has: Array = labels[:, rarest].astype(bool)
    group = np.where(has.any(1), rarest[has.argmax(1)], len(counts))
    each: Array = np.append(factors(counts), UNIT)
    return _by_group(group, lambda sizes: sizes * each[: len(sizes)], None, seed)


def balanced(labels: Array, power: float, seed: int, *, longest: bool = False) -> Repeats:
    """Balances classes: their shares of an epoch are proportional to size^(1 - `power`). The length of an epoch stays, or is such that each
    example of the largest class is seen once (`longest`).

    Labels are class indices `(n,)`; a power of 0 changes nothing, and 1 makes the classes equal.
    """

    def units(sizes: Array) -> Array:
        shares = np.where(sizes > 0, np.maximum(sizes, 1) ** (1.0 - power), 0.0)
        scale = float(sizes.max()) ** power if longest else len(labels) / math.fsum(shares)
        return np.rint(shares * scale * UNIT).astype(np.int64)

    return _by_group(labels, units, None if longest else len(labels), seed)


def weighted(weights: Array, seed: int) -> Repeats:
    """Repeats examples in proportion to their weights `(n,)`, which are not all 0; the length of an epoch stays."""
    n = len(weights)
    values: Array = weights.astype(np.float64)
    units = np.rint(values * (n / math.fsum(values)) * UNIT).astype(np.int64)
    return Repeats(shareable(cumulative(settled(units, n))), None, None, seed)


def _by_group(group: Array, units: Callable[[Array], Array], examples: int | None, seed: int) -> Repeats:
    """Repeats the records of numbered groups; `units` computes the lengths of groups from their sizes."""
    sizes = np.bincount(group).astype(np.int64)
    wanted = units(sizes)
    count = (int(wanted.sum()) + UNIT // 2) >> BITS if examples is None else examples
    stored = bool((group[1:] >= group[:-1]).all())
    # NumPy sorts 16-bit numbers in linear time.
    order = np.argsort(group.astype(np.uint16) if len(sizes) <= UNIT else group, kind="stable")
    members = None if stored else shareable(as_places(order, len(group)))
    return Repeats(shareable(cumulative(settled(wanted, count))), sizes, members, seed)


_found: WeakKeyDictionary[Manifest, dict[str, Epochs]] = WeakKeyDictionary()
_TRAIN = "train"


def examples_of_epoch(spec: PipelineSpec, manifest: Manifest, split: str) -> int:
    """Counts the examples of an epoch of a split; raises `OpError` as `epochs_of`."""
    return epochs_of(spec, manifest).size if spec.samples and split == _TRAIN else manifest.epoch_examples(split)


def epochs_of(spec: PipelineSpec, manifest: Manifest) -> Epochs:
    """Computes the epochs of the training split of a spec that samples; caches them by manifest. Raises `OpError`: `PG472` if the data
    lacks the feature, or its numbers cannot be used. `field` is the whole path."""
    known = _found.setdefault(manifest, {})
    # A larger batch makes an epoch of a given number of steps longer.
    size = manifest.num_examples(_TRAIN) if spec.epoch == "pass" else spec.epoch.steps * spec.batch.size
    key = repr((spec.seed, spec.sampling and spec.sampling.meaning(), spec.order and (spec.order.meaning(), size)))
    if key not in known:
        known[key] = _repeated(spec, manifest) if spec.order is None else _ordered(spec.order, manifest, size, spec.seed)
    return known[key]


def class_weights(spec: PipelineSpec, manifest: Manifest) -> dict[int, float] | None:
    """Computes balanced weights of the training classes; counts an example as often as it is seen. `None` without labels. Raises `OpError`
    as `epochs_of`."""
    epochs = epochs_of(spec, manifest) if spec.samples else None
    return manifest.class_weights(_TRAIN, epochs.each(manifest.num_examples(_TRAIN)) if isinstance(epochs, Repeats) else None)


def _repeated(spec: PipelineSpec, manifest: Manifest) -> Epochs:
    sampling = spec.sampling
    if sampling is None:
        raise InternalError("epochs of a spec without `sampling` and `order`")
    path = ("sampling", *sampling.feature_path())
    if sampling.repeat_factor is not None:
        return repeated(_stored(manifest, str(sampling.feature), path), sampling.repeat_factor.threshold, spec.seed)
    if sampling.balanced is not None:
        labels = _stored(manifest, str(sampling.feature), path)
        return balanced(labels, sampling.balanced[1], spec.seed, longest=sampling.epoch == "longest")
    weights = _numbers(manifest, str(sampling.weights), path)
    wrong = int((~(weights >= 0) | np.isinf(weights)).sum())
    if wrong or not weights.any():
        said = f"{count(wrong, 'example')} of split `train` need a number of 0 or more" if wrong else "all numbers of split `train` are 0"
        raise OpError(
            "PG472", f"`weights: {sampling.weights}`: {said}", field=".".join(path), help="an example of weight 2 is seen twice as often"
        )
    return weighted(weights, spec.seed)


def _ordered(order: Any, manifest: Manifest, size: int, seed: int) -> Epochs:
    difficulty = _numbers(manifest, order.by, ("order", "by"))
    wrong = int((~np.isfinite(difficulty)).sum())
    if wrong:
        message = f"`by: {order.by}`: {count(wrong, 'example')} of split `train` need a finite number"
        raise OpError("PG472", message, field="order.by", help="give each example a number, or leave such examples out")
    return easiest_first(difficulty if order.rising else -difficulty, manifest.ids(_TRAIN), order.shares(), size, seed)


def _numbers(manifest: Manifest, name: str, path: tuple[str, ...]) -> Array:
    """The values of a feature of the training examples: float64 `(n,)`."""
    values = _stored(manifest, name, path)
    return values.astype(np.float64).reshape(len(values))


def _stored(manifest: Manifest, name: str, path: tuple[str, ...]) -> Array:
    """The values of a feature of the training examples, or their classes: `(n,)`, or multi-hot `(n, classes)`."""
    values = manifest.stored(_TRAIN, name)
    if values is None:
        message = f"`{name}` of `{manifest.source_name}` is known only after a record is read, so it cannot select records"
        raise OpError("PG472", message, field=".".join(path), help="put it into a column of a table, and read that with `csv` or `parquet`")
    return np.asarray(values)


def with_subset(manifest: Manifest, subset: Subset | None) -> Manifest:
    """Keeps the training examples that a predicate selects, and of those the ones whose hashed ids rank first (within their classes).

    So a smaller subset of one seed is a part of a larger one; a stratified one is so in each class, to within one example. Raises
    `OpError`: `PG409` for a subset larger than the split, `PG404` for an empty one, `PG421` and `PG452` for columns that are missing or
    cannot be compared. `field` is relative to `sampling.subset`."""
    n = manifest.num_examples(_TRAIN) if _TRAIN in manifest.splits else 0
    if subset is None or not n:
        return manifest
    if subset.where is not None:
        try:
            chosen = parse_predicate(subset.where).select(_Columns(manifest).cells, range(n))
        except OpError as error:
            raise error.at("where") from None
        if not chosen:
            raise OpError("PG404", f"`where: {subset.where}` matches no example of split `train`", field="where")
        manifest = manifest.narrowed(_TRAIN, np.array(chosen, np.int64))
        n = len(chosen)
    if subset.count is None and subset.fraction is None:
        return manifest
    wanted = subset.count if subset.count is not None else int(exact(subset.fraction or 0.0) * n + exact(0.5))
    if wanted > n:
        message = f"the subset asks for {count(wanted, 'example')} of split `train`, which has {n:,}"
        raise OpError("PG409", message, field="count", help=f"ask for {n} at most, or for a `fraction`")
    if not wanted:
        message = f"the subset of {subset.fraction:g} of {count(n, 'example')} is less than one"
        raise OpError("PG404", message, field="fraction", help="ask for a larger fraction")
    return manifest.narrowed(_TRAIN, np.sort(_first(manifest, wanted, subset)))


class _Columns:
    """The columns of a table, as predicates read them: a row is an example's position in the training split."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._keys = manifest.keys(_TRAIN)
        self._numbers = manifest.own(_TRAIN).numbers(_TRAIN)
        self._read: dict[str, Sequence[str]] = {}

    def cells(self, column: str, rows: Sequence[int]) -> tuple[list[str], Callable[[int], str]]:
        """Reads the texts of these rows, in their order; also returns a function that names a row's example."""
        if column not in self._read:
            self._read[column] = read_column(self._manifest, column, "where")
        cells = self._read[column]
        return [cells[number] for number in self._numbers[list(rows)].tolist()], lambda row: f"the example {self._keys[row]!r}"


def read_column(manifest: Manifest, column: str | int, field: str) -> Sequence[str]:
    """Reads a column of all records, where those of the training split are, for an argument of `subset`; `PG472` without columns."""
    cells = manifest.own(_TRAIN).listing.cells
    if cells is None:
        raise OpError("PG472", f"`{field}` goes by a column, and `{manifest.source_name}` has none", field=field)
    return cells(column, field)


def _first(manifest: Manifest, wanted: int, subset: Subset) -> Array:
    """The positions in the training split of `wanted` examples."""
    hashes = mix64(manifest.ids(_TRAIN) ^ seed_salt(subset.seed, b"pipegen.subset"))
    labels, names = manifest.labels(_TRAIN) if subset.stratify == "label" else None, manifest.class_names
    if isinstance(subset.stratify, ByColumn):
        cells = read_column(manifest, subset.stratify.column, "stratify")
        names, labels = numbered([cells[number] for number in manifest.own(_TRAIN).numbers(_TRAIN).tolist()], len(hashes))
    if labels is None:
        return np.argpartition(hashes, wanted - 1)[:wanted]
    ranked = np.argsort(hashes, kind="stable")
    classes = split_hashes(names, subset.seed).argsort(kind="stable")
    return deal_by_class(Ranked(ranked, labels, classes), [wanted, len(ranked) - wanted])[0]
