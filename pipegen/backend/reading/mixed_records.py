"""The records of one split of a mix: those of each part, one part after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
import tensorflow as tf

from pipegen.backend.features import Features, last_begun
from pipegen.backend.reading.split_records import Records, RecordTensors, records_from
from pipegen.data.manifest import Manifest
from pipegen.data.mixed_manifest import MixedManifest, Several
from pipegen.data.rounding import Mixture
from pipegen.data.sampling import Paced, Repeats
from pipegen.data.shards import OnAccess
from pipegen.frozen import dataclass
from pipegen.ops.sources.listing.reader import Reader
from pipegen.plan.nodes import Plan
from pipegen.spec.models import Runtime
from pipegen.types import ElementType


@dataclass(frozen=True)
class MixedRecords(Records):
    """The records of the parts of a mix, one part after another."""

    names: tuple[str, ...] = ()  # the names of the parts
    parts: tuple[Records, ...] = ()  # the records of each part
    reads: tuple[ElementType, ...] = ()  # the type that is read of each part
    mixture: Mixture | None = None  # the number of records of each part in an epoch; `None` if each record comes once
    sampled: Mapping[str, Repeats | Paced] = field(default_factory=dict)  # the sampled examples of a pass, for parts that are sampled

    @property
    def epoch_examples(self) -> int:
        """Number of examples of an epoch."""
        return len(self) if self.mixture is None else self.mixture.examples

    def plain_files(self, read: ElementType) -> frozenset[str]:
        return frozenset.intersection(*(part.plain_files(own) for part, own in zip(self.parts, self.reads, strict=True)))

    def firsts(self) -> list[int]:
        """Returns the first record of each part, with the end."""
        return [int(n) for n in np.cumsum([0, *map(len, self.parts)])]

    def located(self, record: int) -> tuple[int, int]:
        """Returns the part of a record, and its number there."""
        part = int(np.searchsorted(self.firsts()[1:], record, side="right"))
        return part, record - self.firsts()[part]

    def locate(self, record: int, features: Iterable[str] = ()) -> str:
        """Names the place of a record; for a row, with its part."""
        part, own = self.located(record)
        known = self.parts[part]
        where = known.locate(own, [name for name in features if name in self.reads[part]])
        return where if known.in_paths else f"{self.names[part]}/{where}"

    def files(self, read: ElementType) -> list[Sequence[str]]:
        """Returns the files of the records that are read, one sequence for each column; "" if a record has fewer files."""
        each = [part.files(own) for part, own in zip(self.parts, self.reads, strict=True)]
        none = [OnAccess(len(part), lambda _: "") for part in self.parts]
        columns = range(max(map(len, each), default=0))
        return [Several([files[i] if i < len(files) else own for files, own in zip(each, none, strict=True)]) for i in columns]


class _Readers(Reader):
    """The readers of all parts, as one."""

    def __init__(self, parts: Sequence[Records]) -> None:
        self._parts = parts

    def check(self) -> None:
        for part in self._parts:
            part.reader.check()

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        said = [part.reader.python(part.features, ram_budget) for part in self._parts]
        return " and ".join(dict.fromkeys(text for text in said if text))


class MixedTensors(RecordTensors):
    """`MixedRecords` in the graph: each part has its own tensors."""

    def __init__(self, records: MixedRecords) -> None:
        self.parts = [RecordTensors(part) for part in records.parts]
        self._firsts = records.firsts()
        self._names = records.names
        self._rows = [not part.in_paths for part in records.parts]

    def part_of(self, record: tf.Tensor) -> tf.Tensor:
        """Finds the part of each record: int64, like `record`."""
        return last_begun(tf.constant(self._firsts, tf.int64), record)

    def located(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the part of each record, and its number there: int64, like `record`."""
        part = self.part_of(record)
        return part, record - tf.gather(tf.constant(self._firsts, tf.int64), part)

    def of_part(self, record: tf.Tensor, read: Callable[[int, tf.Tensor], list[tf.Tensor]]) -> list[tf.Tensor]:
        """Reads one record by its part: `read` takes the number of the part and that of the record there."""
        part, own = self.located(record)
        branches = [lambda i=i: read(i, own) for i in range(len(self.parts))]
        found: list[tf.Tensor] = branches[0]() if len(branches) == 1 else tf.switch_case(tf.cast(part, tf.int32), branches)
        return found

    def read(self, record: tf.Tensor, out: ElementType) -> Features:
        """Reads the stored features of one record, or, if all are listed in columns, of records `(n,)`."""
        found: Features = {}
        if record.shape.rank:
            for tensors, here, own in self._each_part(record):
                for name, value in tensors.read(own, out).items():
                    mask = tf.reshape(here, tf.concat([tf.shape(here), tf.ones([tf.rank(value) - 1], tf.int32)], 0))
                    found[name] = tf.where(mask, value, found[name]) if name in found else value
            return found

        def one(part: int, own: tf.Tensor) -> list[tf.Tensor]:
            read = self.parts[part].read(own, out)
            return [read[name] for name in out]

        for (name, t), value in zip(out.items(), self.of_part(record, one), strict=True):
            value.set_shape(t.shape)
            found[name] = value
        return found

    def read_each(self, records: tf.Tensor, out: ElementType, count: int) -> dict[str, list[tf.Tensor]]:
        """Reads the stored features of `count` records as lists of tensors."""
        with tf.name_scope("read"):
            each = [self.read(record, out) for record in tf.unstack(records, num=count)]
        return {name: [values[name] for values in each] for name, _ in out.items()}

    def _each_part(self, record: tf.Tensor) -> Iterator[tuple[RecordTensors, tf.Tensor, tf.Tensor]]:
        """Yields each part that has records, which of the records `(n,)` are of it, and their numbers there; 0 for the others."""
        part, own = self.located(record)
        for i, tensors in enumerate(self.parts):
            if self._firsts[i] != self._firsts[i + 1]:
                here = tf.equal(part, i)
                yield tensors, here, tf.where(here, own, 0)

    def words(self, record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        low = high = tf.zeros(tf.shape(record), tf.uint32)
        for tensors, here, own in self._each_part(record):
            words = tensors.words(own)
            low, high = tf.where(here, words[0], low), tf.where(here, words[1], high)
        return low, high

    def path(self, record: tf.Tensor, features: Iterable[str] = ()) -> tf.Tensor:
        def one(part: int, own: tf.Tensor) -> list[tf.Tensor]:
            found = self.parts[part].path(own, features)
            return [tf.strings.join([f"{self._names[part]}/", found]) if self._rows[part] else found]

        return self.of_part(record, one)[0]


def records_of_plan(manifest: Manifest, split: str, plan: Plan, runtime: Runtime) -> Records:
    """Makes the records of one split for a plan."""
    if not isinstance(manifest, MixedManifest):
        return records_from(manifest.own(split), split, plan.read, runtime)
    parts = manifest.of(split)
    reads = plan.part_reads(len(parts))
    records = tuple(records_from(part, split, read, runtime) for part, read in zip(parts.values(), reads, strict=True))
    mixture = manifest.mixture if plan.index.interleaves else None
    return MixedRecords(
        manifest.files(split),
        (),
        None,
        manifest.mean_bytes(split),
        _Readers(records),
        names=tuple(parts),
        parts=records,
        reads=reads,
        mixture=mixture,
        sampled=manifest.passes if mixture is not None else {},
    )
