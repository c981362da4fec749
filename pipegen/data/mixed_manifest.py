"""Manifests made of others: of a mix, from those of its parts, and of splits that are stored in different ways."""

from __future__ import annotations

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.rounding import Mixture, epoch_examples, mixture, part_seed
from pipegen.data.sampling import Easiest, Epochs, Paced, Repeats, epochs_of, paced
from pipegen.data.shards import OnAccess
from pipegen.frozen import dataclass
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.base import Listing, Location, Parts
from pipegen.spec.models import PipelineSpec
from pipegen.spec.variants import joined
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.ops.sources.mix import Mix


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class JoinedManifest(Manifest):
    """The records of several manifests, one after another."""

    parts: Mapping[str, Manifest] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Keeps the members as they are."""

    def by_part(self) -> dict[str, Manifest]:
        return dict(self.parts)

    @property
    def total(self) -> int:
        return sum(part.total for part in self.parts.values())

    @property
    def ignored(self) -> int:
        return sum(part.ignored for part in self.parts.values())

    @property
    def every_label(self) -> Ints | None:
        """Class index of each record among the classes of all parts; `None` if a part has no labels."""
        return _all_or_none([part.every_label for part in self.parts.values()])

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the data of all parts, and of their names."""
        return self._digest({name: part.fingerprint for name, part in self.parts.items()})

    @cached_property
    def split_fingerprint(self) -> str:
        return self._digest({name: part.split_fingerprint for name, part in self.parts.items()})

    def _digest(self, parts: Mapping[str, str]) -> str:
        lines = "".join(f"{name} {one}\n" for name, one in parts.items())
        return hashlib.sha256(f"{self.source_name}\n{lines}".encode()).hexdigest()

    def mean_bytes(self, split: str | None = None) -> float:
        parts = [part for part in self.parts.values() if split is None or split in part.members]
        counts = [part.total if split is None else part.num_examples(split) for part in parts]
        total = sum(part.mean_bytes(split) * n for part, n in zip(parts, counts, strict=True))
        return total / sum(counts) if sum(counts) else 0.0


def _of_split(name: str) -> Callable[..., Any]:
    """Makes a method that asks the manifest of a split."""
    return lambda manifest, split, *args: getattr(manifest.own(split), name)(split, *args)


@dataclass(frozen=True, eq=False)
class SplitManifests(JoinedManifest):
    """Splits that are stored in different ways: `parts` has the manifest of each."""

    def own(self, split: str) -> Manifest:
        return self.parts[split]

    def of(self, split: str) -> Mapping[str, Manifest]:
        return {"": self.own(split)}

    def narrowed(self, split: str, places: Ints, *, too_long: bool = False) -> SplitManifests:
        narrowed = self.own(split).narrowed(split, places, too_long=too_long)
        return split_manifests(self.listing, {**self.parts, split: narrowed}, self.source_name)

    @property
    def every_key(self) -> Sequence[str]:
        return Several([part.every_key for part in self.parts.values()])

    def numbers(self, split: str) -> Ints:
        before = itertools.takewhile(split.__ne__, self.parts)
        return self.own(split).numbers(split).astype(np.int64) + sum(self.parts[name].total for name in before)

    keys, files, kind, rows, blocks, in_shards, columns, labels, stored, ids = map(
        _of_split, ("keys", "files", "kind", "rows", "blocks", "in_shards", "columns", "labels", "stored", "ids")
    )


def split_manifests(listing: Listing, parts: Mapping[str, Manifest], name: str) -> SplitManifests:
    """Joins the manifests of splits, with the listing of all."""
    every = parts.values()
    excluded, left_out = (tuple(key for part in every for key in getattr(part, which)) for which in ("excluded", "left_out"))
    members = {split: part.members[split] for split, part in parts.items()}
    spared, too_long = sum(part.spared for part in every), sum(part.too_long for part in every)
    return SplitManifests(listing, members, name, excluded, left_out=left_out, spared=spared, too_long=too_long, parts=parts)


@dataclass(frozen=True, eq=False)
class MixedManifest(JoinedManifest):
    """The records of a mix, part by part.

    `parts` has the manifest of each part, and `sampled` the epochs of each part with a sampled training split, as if it were alone.
    """

    source: Mix = None  # type: ignore[assignment]
    sampled: Mapping[str, Epochs] = field(default_factory=dict)

    @cached_property
    def mixture(self) -> Mixture:
        """Counts of each part in each epoch of the training split; the other splits are not mixed."""
        own = {name: self.source.parts[name].weights() for name in self.of("train")}
        passes = {name: epochs.size for name, epochs in self.sampled.items()}
        sizes = {name: passes.get(name, part.num_examples("train")) for name, part in self.of("train").items()}
        examples = epoch_examples(self.source.epoch, sizes, {name: weights[-1] for name, weights in own.items()})
        return mixture(examples, [*own.values()])

    @cached_property
    def passes(self) -> dict[str, Repeats | Paced]:
        """The examples of the passes through each sampled part."""
        places = {name: place for place, name in enumerate(self.of("train"))}
        return {
            name: paced(epochs, lambda epoch, place=places[name]: self.mixture.before(epoch)[place])  # type: ignore[misc]
            if isinstance(epochs, Easiest)
            else epochs
            for name, epochs in self.sampled.items()
        }

    def epoch_examples(self, split: str) -> int:
        return self.mixture.examples if split == "train" else self.num_examples(split)

    @property
    def every_key(self) -> Sequence[str]:
        return Several([_below(f"{name}/", part.every_key) for name, part in self.parts.items()])

    def keys(self, split: str) -> Sequence[str]:  # type: ignore[override]
        """`PART/KEY` of each record of a split, part by part."""
        return Several([_below(f"{name}/", part.keys(split)) for name, part in self.of(split).items()])

    def files(self, split: str, feature: str = "") -> Sequence[str]:  # type: ignore[override]
        """Files of the records of a split, part by part; for rows, `PART/ROW`."""
        own = [(name, part, part.files(split, feature)) for name, part in self.of(split).items()]
        return Several([_below(f"{name}/", files) if part.kind(split) == "row" else files for name, part, files in own])

    def kind(self, split: str) -> str:
        return self.listing.location.kind

    @property
    def record(self) -> dict[str, ElementType]:
        return {name: part.type for name, part in self.parts.items() if part.type is not None}

    def columns(self, split: str) -> dict[str, np.ndarray[Any, Any]]:
        """Columns of the features that all parts have in one shape: `(n, ...)` each, part by part."""
        found = {}
        for name, values in _shared([part.columns(split) for part in self.of(split).values()]).items():
            if all(isinstance(v, np.ndarray) and v.shape[1:] == values[0].shape[1:] for v in values):
                found[name] = np.concatenate(values)
        return found

    def labels(self, split: str) -> Ints | None:
        """Class index of each example of a split among the classes of all parts, int64; `None` if a part has no labels."""
        parts = self.of(split).values()
        return _all_or_none([part.labels(split) if part.listing.label == self.listing.label else None for part in parts])

    def stored(self, split: str, feature: str) -> Ints | None:
        return _all_or_none([part.stored(split, feature) for part in self.of(split).values()])

    def class_weights(self, split: str, visits: np.ndarray[Any, Any] | None = None) -> dict[int, float] | None:
        """Computes balanced weights of the classes; in training, counts parts by their final shares and examples as often as seen."""
        if split != "train":
            return super().class_weights(split, visits)
        seen = np.zeros(len(self.class_names))
        for share, (name, part) in zip(self.mixture.shares, self.of(split).items(), strict=True):
            labels = part.labels(split)
            if labels is None:
                return None
            if len(labels):
                epochs = self.sampled.get(name)
                often = epochs.each(len(labels)) if isinstance(epochs, Repeats) else np.ones(len(labels))
                seen += share / self.mixture.unit * np.bincount(labels, often, minlength=len(seen)) / often.sum()
        present = int((seen > 0).sum())
        return {c: 1 / (present * n) if n else 0.0 for c, n in enumerate(seen.tolist())}

    def ids(self, split: str) -> Ints:
        """The 64-bit example ids of a split, part by part; they are made from the part's name and the records' keys."""
        return np.concatenate([part.ids(split) for part in self.of(split).values()])


def _all_or_none(each: Sequence[Ints | None]) -> Ints | None:
    """Concatenates the labels of parts; `None` if a part has none."""
    known = [labels for labels in each if labels is not None]
    return np.concatenate(known) if known and len(known) == len(each) else None


def _shared(each: Sequence[Mapping[str, T]]) -> dict[str, list[T]]:
    """Collects the values of the keys that all mappings have."""
    return {name: [own[name] for own in each] for name in (each[0] if each else ()) if all(name in own for own in each)}


def _below(before: str, texts: Sequence[str]) -> OnAccess:
    """Texts with a common prefix."""
    return OnAccess(len(texts), lambda i: before + texts[i])


class Several(OnAccess):
    """A concatenation of sequences."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        ends = [*accumulate(map(len, parts))]

        def text(i: int) -> str:
            part = bisect_right(ends, i)
            return parts[part][i - (ends[part - 1] if part else 0)]

        super().__init__(ends[-1] if ends else 0, text)

    def order(self) -> None:
        """Returns `None`: the sequence counts as sorted."""

    def take(self, places: Ints) -> list[str]:
        """The texts at some positions."""
        return [self[int(i)] for i in places]


def mixed_manifest(spec: PipelineSpec, parts: Mapping[str, Manifest]) -> MixedManifest:
    """Joins the manifests of the parts of a mix."""
    source: Any = spec.source
    listing = _listing({name: part.listing for name, part in parts.items()})
    firsts = np.cumsum([0, *(part.total for part in parts.values())])
    pairs = [*zip(parts.values(), firsts, strict=False)]
    members = {
        split: np.concatenate([firsts[:0], *(part.numbers(split).astype(np.int64) + n for part, n in pairs if split in part.members)])
        for split in spec.split_names()
    }
    excluded = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.excluded)
    left_out = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.left_out)
    # Each sampled part has a seed of its own.
    seeded = ((name, joined(spec, name).model_copy(update={"seed": part_seed(spec.seed, name)})) for name in parts)
    sampled = {name: epochs_of(own, parts[name]) for name, own in seeded if own.samples and "train" in parts[name].members}
    return MixedManifest(listing, members, "mix", excluded, left_out=left_out, parts=parts, source=source, sampled=sampled)


def _listing(parts: Mapping[str, Listing]) -> Listing:
    """Joins the listings of the parts; prefixes keys with `PART/`. The shards are those of one part, and tell only that there are some."""
    every = tuple(parts.values())
    first = next((listing for listing in every if listing.label is not None), every[0])

    def named(name: str, own: Location) -> Location:
        paths = own.paths.below(f"{name}/") if own.kind == "row" else own.paths
        return replace(own, keys=own.keys.below(f"{name}/"), paths=paths)

    return Listing(
        every[0].root,
        Location.join([named(name, listing.location) for name, listing in parts.items()]),
        parts=Parts(tuple(parts), np.repeat(np.arange(len(every), dtype=np.int16), [len(listing.keys) for listing in every])),
        readers={name: listing.reader() for name, listing in parts.items()},
        in_table=any(listing.in_table for listing in every),
        classes=first.classes,
        label=first.label,
        beside={name: Location.join(own) for name, own in _shared([listing.beside for listing in every]).items()},
        shards=next((listing.shards for listing in every if listing.shards is not None), None),
    )
