"""The manifest of a mix: one for each of its parts, with ids of their own, and what their union comes to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.mix.counts import epoch_examples, mixture
from pipegen.data.sampling.easiest import paced
from pipegen.data.sampling.epochs import Easiest, Repeats
from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from pipegen.data.mix.counts import Mixture
    from pipegen.data.sampling.epochs import Epochs, Paced
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.mix import Mix
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
