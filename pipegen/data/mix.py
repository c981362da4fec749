"""A mix: its parts listed one by one, their classes united, and how many examples of each an epoch has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.epochs import Easiest, Repeats
from pipegen.data.exclude import below, excluded_keys
from pipegen.data.manifest import Manifest
from pipegen.data.mix_counts import epoch_examples, mixture, part_seed
from pipegen.data.one_source import Collected, chosen, collect_part, collected, list_part
from pipegen.data.sampling import epochs_of, paced
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.errors import OpError
from pipegen.kept import INDEXES, kept_folder
from pipegen.ops.kinds.packed import counts_classes
from pipegen.ops.sources.listing.base import Files, Listing
from pipegen.ops.sources.listing.shards import Shards
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.parts.adapted import filled, merge_classes
from pipegen.spec.variants import PartSource, joined, part_path, relocated_part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.data.epochs import Epochs, Paced
    from pipegen.data.mix_counts import Mixture
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.mix import Mix
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType


@dataclass(frozen=True, eq=False)
class MixedManifest(Manifest):
    """The records of a mix, part by part.

    Attributes:
        parts: The manifest of each part, by name.
        source: The mix.
        sampled: Of parts whose training split is sampled: which examples it has, were it alone.
    """

    parts: Mapping[str, Manifest] = None  # type: ignore[assignment]
    source: Mix = None  # type: ignore[assignment]
    sampled: Mapping[str, Epochs] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leaves the members as they are."""

    def of(self, split: str) -> dict[str, Manifest]:
        """The parts that have a split, in their order."""
        return {name: part for name, part in self.parts.items() if split in part.members}

    def mixture(self, split: str) -> Mixture | None:
        """The counts of each part in each epoch of the training split; `None` for the other splits, which are not mixed."""
        return self._mixture if split == "train" else None

    @cached_property
    def _mixture(self) -> Mixture:
        own = {name: self.source.parts[name].weights() for name in self.of("train")}
        passes = {name: epochs.size for name, epochs in self.sampled.items()}
        sizes = {name: passes.get(name, part.num_examples("train")) for name, part in self.of("train").items()}
        examples = epoch_examples(self.source.epoch, sizes, {name: weights[-1] for name, weights in own.items()})
        return mixture(examples, [*own.values()])

    @cached_property
    def passes(self) -> dict[str, Repeats | Paced]:
        """Finds which examples the passes through each sampled part have."""
        places = {name: place for place, name in enumerate(self.of("train"))}
        return {
            name: paced(epochs, lambda epoch, place=places[name]: self._mixture.before(epoch)[place])  # type: ignore[misc]
            if isinstance(epochs, Easiest)
            else epochs
            for name, epochs in self.sampled.items()
        }

    def epoch_examples(self, split: str) -> int:
        """Counts the examples in an epoch of a split."""
        return self._mixture.examples if split == "train" else self.num_examples(split)

    @property
    def total(self) -> int:
        """Counts the records of all parts, in whichever split."""
        return sum(part.total for part in self.parts.values())

    @cached_property
    def _firsts(self) -> dict[str, int]:
        """The number of each part's first record among all."""
        sizes = [part.total for part in self.parts.values()]
        return dict(zip(self.parts, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    def numbers(self, split: str) -> Ints:
        """Returns the numbers of a split's records among all, rising: int64 `(n,)`."""
        return np.concatenate([np.asarray(part.numbers(split), np.int64) + self._firsts[name] for name, part in self.of(split).items()])

    @property
    def every_key(self) -> Sequence[str]:
        """Names all records, part by part; see `keys`."""
        return _Several([_Below(f"{name}/", part.every_key) for name, part in self.parts.items()])

    @property
    def every_label(self) -> Ints | None:
        """The class index of each record among the classes of all parts, or `None` where a part has no labels."""
        each = [part.every_label for part in self.parts.values()]
        known = [labels for labels in each if labels is not None]
        return np.concatenate(known) if len(known) == len(each) and known else None

    def by_part(self) -> dict[str, Manifest]:
        """Returns the manifest of each part."""
        return dict(self.parts)

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split, of all parts."""
        return sum(part.num_examples(split) for part in self.of(split).values())

    def keys(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """Names the records of a split, part by part: `PART/` and the key there."""
        return _Several([_Below(f"{name}/", part.keys(split)) for name, part in self.of(split).items()])

    def files(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """Names the files of the records of a split, part by part; of rows, the part and the row."""
        return _Several([_named(name, part, part.files(split)) for name, part in self.of(split).items()])

    def rows(self, split: str) -> Ints | None:
        """Returns none: which row a record is, its part says."""
        return None

    def in_shards(self, split: str) -> None:
        """Returns none: where a record is, its part says."""

    @property
    def record(self) -> dict[str, ElementType]:
        """The type of a record of each part, where the data says more of it than the spec."""
        return {name: part.type for name, part in self.parts.items() if part.type is not None}

    def columns(self, split: str) -> dict[str, np.ndarray[Any, Any]]:
        """Features of which each record holds a few numbers, as far as all parts have them: `(n, ...)` each, part by part."""
        each = [part.columns(split) for part in self.of(split).values()]
        shared = [name for name in (each[0] if each else {}) if all(name in own for own in each)]
        found = {}
        for name in shared:
            values = [own[name] for own in each]
            if all(isinstance(v, np.ndarray) and v.shape[1:] == values[0].shape[1:] for v in values):
                found[name] = np.concatenate(values)
        return found

    def beside(self, split: str) -> dict[str, Strings]:
        """Returns the other files of the records, as far as all parts have them: by feature, the absolute paths, part by part."""
        each = [part.beside(split) for part in self.of(split).values()]
        return {name: Strings.join([own[name] for own in each]) for name in (each[0] if each else {}) if all(name in own for own in each)}

    def labels(self, split: str) -> Ints | None:
        """The class index of each example of a split among the classes of all parts, int64, or `None` where a part has no labels."""
        each = [part.labels(split) for part in self.of(split).values()]
        known = [labels for labels in each if labels is not None]
        return np.concatenate(known) if len(known) == len(each) and known else None

    def class_weights(self, split: str) -> dict[int, float] | None:
        """Balanced weights of the classes; in training, parts count by their final shares and examples as often as they are seen."""
        made = self.mixture(split)
        if made is None:
            return super().class_weights(split)
        seen = np.zeros(len(self.class_names))
        for share, (name, part) in zip(made.shares, self.of(split).items(), strict=True):
            labels = part.labels(split)
            if labels is None:
                return None
            if len(labels):
                epochs = self.sampled.get(name)
                often = epochs.each(len(labels)) if isinstance(epochs, Repeats) else np.ones(len(labels))
                seen += share / made.unit * np.bincount(labels, often, minlength=len(seen)) / often.sum()
        present = int((seen > 0).sum())
        return {c: 1 / (present * n) if n else 0.0 for c, n in enumerate(seen.tolist())}

    def ids(self, split: str) -> Ints:
        """The 64-bit example ids of a split, part by part: those of a part are made from its name and the records' keys."""
        return np.concatenate([part.ids(split) for part in self.of(split).values()])

    @cached_property
    def all_ids(self) -> Ints:
        """The 64-bit id of every record: uint64 `(n,)`."""
        return np.concatenate([part.all_ids for part in self.parts.values()])

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the data of all parts, and which part each is."""
        return _digest({name: part.fingerprint for name, part in self.parts.items()})

    @cached_property
    def split_fingerprint(self) -> str:
        """Identifies the data of all parts and, where that is needed, their splits."""
        return _digest({name: part.split_fingerprint for name, part in self.parts.items()})

    def mean_bytes(self, split: str | None = None) -> float:
        """The mean size of a stored record in bytes, of one split or of all; 0 when there is none."""
        parts = [part for part in self.parts.values() if split is None or split in part.members]
        counts = [part.total if split is None else part.num_examples(split) for part in parts]
        total = sum(part.mean_bytes(split) * n for part, n in zip(parts, counts, strict=True))
        return total / sum(counts) if sum(counts) else 0.0


def _digest(parts: Mapping[str, str]) -> str:
    digest = hashlib.sha256(b"mix\n")
    for name, one in parts.items():
        digest.update(f"{name} {one}\n".encode())
    return digest.hexdigest()


class _Below(Sequence[str]):
    """Texts, each with one in front of it."""

    def __init__(self, before: str, texts: Sequence[str]) -> None:
        self._before, self._texts = before, texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, i: int | slice) -> Any:
        return [self._before + text for text in self._texts[i]] if isinstance(i, slice) else self._before + self._texts[i]


class _Several(Sequence[str]):
    """Several sequences one after another."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        part = int(np.searchsorted(self._ends, i, side="right"))
        return self._parts[part][i - (int(self._ends[part - 1]) if part else 0)]

    def order(self) -> None:
        """Says that nothing has to be sorted: parts come in their order, and records in that of their part."""

    def take(self, places: Ints) -> list[str]:
        """Those at some places."""
        return [self[int(i)] for i in places]


def _named(name: str, part: Manifest, files: Sequence[str]) -> Sequence[str]:
    """Files as they are; rows below the name of their part."""
    return _Below(f"{name}/", files) if part.listing.numbered else files


def collect_mixed(
    spec: PipelineSpec,
    diagnostics: Diagnostics,
    locate: Locate,
    base: Path,
    progress: Callable[[int], None] | None,
    data: Mapping[str, object] | None,
    *,
    late_files: bool,
) -> Collected:
    """Lists the data of every part, unites their classes, and assigns the records of each to its splits; see `collect`.

    Findings come to the `diagnostics` that are there.
    """
    listings: dict[str, Listing] = {}
    seen = 0
    for name in spec.source.mixed():
        own, at = joined(spec, name), relocated_part(locate, spec, name)
        own.source.keep_index_in(kept_folder(spec.runtime, INDEXES))
        listing, findings = list_part(own, at, base, _after(seen, progress), _data_of(name, own, data))
        diagnostics.extend(findings)
        if listing is not None:
            listings[name] = listing
            seen += len(listing.keys)
    if len(listings) < len(spec.source.mixed()):
        return Collected(None, diagnostics)
    excluded, unlisted = excluded_keys(spec, listings, base, locate)
    diagnostics.extend(unlisted)
    missing: list[str] = []
    lost: list[Diagnostic] = []
    for name in [*listings]:
        own, at = joined(spec, name), relocated_part(locate, spec, name)
        left, keys, found = chosen(own, listings[name], _of_part(name, excluded), at, late_files=late_files)
        lost += found
        missing += [below(name, key) for key in keys]
        if left is None:
            del listings[name]
        else:
            listings[name] = left
    diagnostics.extend(lost)
    if unlisted or len(listings) < len(spec.source.mixed()):
        return Collected(None, diagnostics, missing=tuple(missing), lost=tuple(lost), excluded=tuple(sorted(excluded)))
    parts: dict[str, Manifest] = {}
    gone = frozenset(below(name, key) for name, listing in listings.items() for key in listing.excluded)
    copies, wrong = excluded_keys(spec, listings, base, locate, "splits", gone)
    diagnostics.extend(wrong)
    for name, listing in _united(spec, listings, locate, diagnostics).items():
        own, at = joined(spec, name), relocated_part(locate, spec, name)
        manifest, findings = collect_part(_of_single_examples(own), listing, at, base, name, _of_part(name, copies))
        diagnostics.extend(findings)
        if manifest is not None:
            parts[name] = manifest
    if len(parts) < len(listings):
        return Collected(None, diagnostics, missing=tuple(missing), lost=tuple(lost), excluded=tuple(sorted(excluded)))
    made = mixed_manifest(spec, parts)
    diagnostics.extend(_judged(spec, made, locate))
    return collected(made, diagnostics, missing, lost)


def _of_part(name: str, keys: frozenset[str]) -> frozenset[str]:
    """The keys of one part, as it has them itself."""
    return frozenset(key.removeprefix(f"{name}/") for key in keys if key.startswith(f"{name}/"))


def _of_single_examples(spec: PipelineSpec) -> PipelineSpec:
    """The spec of a part, which need not fill a batch alone."""
    return spec.model_copy(update={"batch": spec.batch.model_copy(update={"size": 1, "remainder": None})})


def mixed_manifest(spec: PipelineSpec, parts: Mapping[str, Manifest]) -> MixedManifest:
    """The manifest of a mix from those of its parts."""
    source: Any = spec.source
    listing = _listing({name: part.listing for name, part in parts.items()})
    firsts = np.cumsum([0, *(part.total for part in parts.values())])
    members: dict[str, Any] = {}
    for split in spec.split_names():
        own = [
            np.asarray(part.numbers(split), np.int64) + first
            for part, first in zip(parts.values(), firsts, strict=False)
            if split in part.members
        ]
        members[split] = np.concatenate(own) if own else np.zeros(0, np.int64)
    excluded = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.excluded)
    left_out = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.left_out)
    return MixedManifest(listing, members, "mix", excluded, left_out=left_out, parts=parts, source=source, sampled=_sampled(spec, parts))


def _sampled(spec: PipelineSpec, parts: Mapping[str, Manifest]) -> dict[str, Any]:
    """Finds which examples a pass through each sampled part has; each part is gone through in an order of its own."""
    seeded = ((name, joined(spec, name).model_copy(update={"seed": part_seed(spec.seed, name)})) for name in parts)
    return {name: epochs_of(own, parts[name]) for name, own in seeded if own.samples and "train" in parts[name].members}


def _after(seen: int, progress: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda n: progress(seen + n)


def _data_of(name: str, spec: PipelineSpec, data: Mapping[str, object] | None) -> Any:
    """Takes the part of `data` that one part of the mix reads."""
    if data is None or not spec.source.needs_data():
        return None
    return data.get(name) if isinstance(data, Mapping) else None


def _united(spec: PipelineSpec, listings: Mapping[str, Listing], locate: Locate, diagnostics: Diagnostics) -> dict[str, Listing]:
    """The listings with labels that count the classes of all parts, in the order in which these have them, and what is filled."""
    classes = tuple(dict.fromkeys(name for listing in listings.values() for name in listing.class_names))
    columns: dict[str, tuple[str, ...]] = {}
    for listing in listings.values():
        for name, own in listing.column_classes.items():
            columns[name] = tuple(dict.fromkeys((*columns.get(name, ()), *own)))
    found = {}
    for name, listing in listings.items():
        source = joined(spec, name).source
        if any(counts_classes(listing, column) for column in listing.columns) and listing.column_classes != columns:
            message = f"the part `{name}` has other classes than the mix, by which the pixels of its mask count"
            diagnostics.add(make("PG462", message, locate(part_path(name)), help="name them in each part: `classes: […]`"))
            continue
        made = merge_classes(listing, classes, columns, source.class_feature())
        if isinstance(source, PartSource):
            try:
                made = filled(made, source.adapting, columns)
            except OpError as error:
                at = (*part_path(name), *(error.field or "").split("."))
                diagnostics.add(make(error.code, error.message, locate(at), help=error.help or ()))
        found[name] = made
    return _as_long(found)


def _as_long(listings: Mapping[str, Listing]) -> dict[str, Listing]:
    """The listings with as many places for the items of a ragged feature in each as the part needs that has the most."""
    types = [listing.type for listing in listings.values() if listing.type is not None]
    most: dict[str, int] = {}
    for name, t in (item for type_ in types for item in type_.items()):
        if t.most is not None:
            most[name] = max(most.get(name, 0), t.most)
    found = dict(listings)
    for part, listing in listings.items() if most else ():
        if listing.type is not None:
            longer = {name: t.with_(most=most[name]) for name, t in listing.type.items() if name in most}
            found[part] = replace(listing, type=listing.type.replace(**longer))
    return found


def _listing(parts: Mapping[str, Listing]) -> Listing:
    """Joins the listings of the parts into one: its keys are those of the parts below their names."""
    every = tuple(parts.values())
    first = every[0]
    keys = Strings.join([listing.keys.below(f"{name}/") for name, listing in parts.items()])
    labels = [listing.labels for listing in every]
    sharded = any(listing.shards is not None for listing in every)
    known = [own for own in labels if own is not None]
    beside = {
        name: [listing.beside[name] for listing in every] for name in first.beside if all(name in listing.beside for listing in every)
    }
    return Listing(
        first.root,
        keys,
        np.concatenate(known) if len(known) == len(labels) and not sharded else None,
        first.class_names,
        np.concatenate([np.asarray(listing.sizes, np.int64) for listing in every]),
        paths=Strings.join([_paths(name, listing) for name, listing in parts.items()]),
        readers={name: listing.reader() for name, listing in parts.items()},
        in_table=any(listing.in_table for listing in every),
        column_classes=first.column_classes,
        beside={
            name: Files(Strings.join([f.keys for f in own]), Strings.join([f.paths for f in own]), np.concatenate([f.sizes for f in own]))
            for name, own in beside.items()
        },
        shards=_shards(every) if sharded else None,
    )


def _paths(name: str, listing: Listing) -> Strings:
    return listing.keys.below(f"{name}/") if listing.numbered else listing.files()


def _shards(every: Sequence[Listing]) -> Shards:
    """The files of all parts as shards; one that holds a single record has one row."""
    made = [
        listing.shards
        if listing.shards is not None
        else Shards(np.ones(len(listing.keys), np.int64), np.arange(len(listing.keys)), Strings.hold([""] * len(listing.keys)))
        for listing in every
    ]
    rows, numbers = np.concatenate([s.rows for s in made]), np.concatenate([s.numbers for s in made])
    return Shards(rows, numbers, Strings.join([s.digests for s in made]))


def _judged(spec: PipelineSpec, made: MixedManifest, locate: Locate) -> Diagnostics:
    """Finds splits of the mix with an epoch of no or too many examples, or that fill no batch."""
    found, size = Diagnostics(), spec.batch.size
    for split in made.members:
        try:
            examples = made.epoch_examples(split)
        except OpError as error:
            found.add(make(error.code, error.message, locate(("source", "mix", error.field or "epoch")), help=error.help or ()))
            continue
        if examples < size and spec.batch.remainder_for(split) == "drop":
            message = f"an epoch of `{split}` has {examples} examples of all parts, fewer than one batch of {size}: no step is left"
            keep = f"or keep the smaller batch: `remainder: {{{split}: keep}}`"
            labels = [locate(("batch", "size"))]
            labels += [locate(("source", "mix", "epoch"), f"{examples} examples")] if split == "train" else []
            found.add(make("PG407", message, *labels, help=(f"lower `batch.size` to {examples} or less", keep)))
    return found
