"""Handling of records that cannot be read or decoded: they are detected, named, dropped or replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.process.traced_functions import plain_map
from pipegen.backend.reading.split_records import Records, files_of
from pipegen.errors import DataError
from pipegen.files import add_line
from pipegen.ops.lowering.graphs import graph_around, meanwhile
from pipegen.ops.lowering.python_calls import numpy_function
from pipegen.ops.stage import Path
from pipegen.spec.models import Skip
from pipegen.types import ElementType

MAX_TRIES = 8  # records tried in place of a damaged one

NO_STAND_IN = "no record of the batch could replace a damaged one"

WHOLE = "@whole"  # the feature that is true if a record could be read and decoded
GOOD = "@good"  # the same, in place of the features of a record that is only tried

Compute = Callable[[Features], Features]  # a function from `@record` and `@draws` of a record to its features


@dataclass
class Quarantine:
    """The damaged records of one split found so far."""

    path: Callable[[int], str]  # names the place of a record
    count: int  # number of records of the split
    max_fraction: float  # the share of the split that may be damaged
    report: str | None = None  # a file to which they are written
    damaged: dict[int, str] = field(default_factory=dict)
    failure: DataError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, records: Records, read: ElementType, skip: Skip) -> Quarantine:
        """Makes an empty one. The damage of a record with several files may be in any of them."""
        return cls(partial(records.locate, features=files_of(read)), len(records), skip.max_fraction, skip.report)

    def add(self, record: int) -> None:
        """Adds a damaged record. Raises `DataError` if more than `max_fraction` of the split is damaged, or the report cannot be
        written."""
        with self._lock:
            if self.failure is not None:  # in later epochs and in other threads, too
                raise self.failure
            if record in self.damaged:
                return
            path = self.path(record)
            self.damaged[record] = path
            if self.report is not None:
                try:
                    add_line(self.report, {"file": path, "record": record})
                except OSError as error:
                    why = (error.strerror or str(error)).lower()
                    self.failure = DataError(
                        f"cannot write the report of damaged records {self.report!r}: {why}; the damaged record is {path}"
                    )
                    raise self.failure from None
            limit = self.max_fraction * self.count
            if len(self.damaged) > limit:
                shown = ", ".join(sorted(self.damaged.values())[:5])
                self.failure = DataError(
                    f"{len(self.damaged)} of {self.count} records are damaged, but `errors: {{decode: {{skip: {{max_fraction: "
                    f"{self.max_fraction:g}}}}}}}` allows {int(limit)}: {shown}"
                )
                raise self.failure


def attempt(compute: Compute, record: tf.Tensor, draws: tf.Tensor, out: ElementType) -> tuple[Features, tf.Tensor]:
    """Computes a record's features and a success flag; on failure the features are zeros."""
    features, good = tried(compute, {"@record": record, "@draws": draws}, nothing(out))
    return shaped(features, out), good


def nothing(out: ElementType) -> Features:
    """Makes zeros in place of the features of a record."""
    return {name: tf.zeros([0 if d is None else d for d in t.shape], tf.as_dtype(t.dtype)) for name, t in out.items()}


def tried(compute: Compute, known: Features, nothing: Features) -> tuple[Features, tf.Tensor]:
    """Computes the features in `nothing` from those that are known, and a success flag; on failure the features are `nothing`."""
    fallback = tf.data.Dataset.from_tensors((nothing, tf.constant(False)))

    def work(known: Features) -> tuple[Features, tf.Tensor]:
        done = compute(known)
        return {name: done[name] for name in nothing}, tf.constant(True)

    with meanwhile(graph_around, None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()):
        done = plain_map(tf.data.Dataset.from_tensors(known), work).ignore_errors(log_warning=False)
    features, good = done.concatenate(fallback).take(1).get_single_element()
    return features, good


def mark_damaged(compute: Compute, features: Features, out: ElementType) -> Features:
    """Computes the features of a record, zeros if it is damaged, and `WHOLE`, a bool scalar."""
    values, good = attempt(compute, features["@record"], features["@draws"], out)
    return features | values | {WHOLE: good}


def all_whole(features: Features) -> Features:
    """Marks all examples of a batch `(n, ...)` as damaged if one is, since they were combined."""
    if WHOLE not in features:
        return features
    whole = features[WHOLE]
    return features | {WHOLE: tf.fill(tf.shape(whole), tf.reduce_all(whole))}


def shaped(features: Features, out: ElementType) -> Features:
    """Sets the static shapes of features."""
    for name, t in out.items():
        features[name].set_shape(t.shape)
    return features


def replace_damaged(
    compute: Compute,
    features: Features,
    out: ElementType,
    alternates: Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]],
    draw: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    quarantine: Quarantine,
    path: Callable[[tf.Tensor], tf.Tensor],
) -> Features:
    """Computes the features of a record, of type `out`, or those of the next good record that may replace it.

    `alternates` gives, from epoch and slot, the records to try, their cycles and their occurrences as replacements; `draw` the draws of a
    record, a cycle and an occurrence; `path` the name of a record's place.
    """
    record, draws = features["@record"], features["@draws"]
    first, good = attempt(compute, record, draws, out)

    def add(damaged: Any) -> tuple[()]:
        quarantine.add(int(damaged))
        return ()

    def note(damaged: tf.Tensor) -> tf.Operation:
        return numpy_function(add, [damaged], [])

    def search() -> tuple[tf.Tensor, tf.Tensor, Features]:
        records, cycles, occurrences = alternates(features["@epoch"], features["@slot"])
        with tf.control_dependencies([note(record)]):
            start = tf.constant(0)

        def unfinished(i: tf.Tensor, found: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
            return tf.logical_and(i < MAX_TRIES, tf.logical_not(found))

        def body(i: tf.Tensor, *_: Any) -> tuple[Any, ...]:
            candidate = records[i]
            fresh = draw(candidate, cycles[i], occurrences[i])
            values, worked = attempt(compute, candidate, fresh, out)
            recorded = tf.cond(worked, tf.no_op, lambda: tf.group(note(candidate)))
            with tf.control_dependencies([recorded]):
                return i + 1, worked, candidate, fresh, values

        _, found, chosen, fresh, values = tf.while_loop(unfinished, body, (start, tf.constant(False), record, draws, first))
        message = tf.strings.join([f"pipegen: {NO_STAND_IN} in {MAX_TRIES} tries, the last of them ", path(chosen)])
        failed = tf.debugging.Assert(found, [message])
        with tf.control_dependencies([failed] if failed is not None else []):
            return tf.identity(chosen), fresh, values

    chosen, fresh, values = tf.cond(good, lambda: (record, draws, first), search)
    fresh.set_shape(draws.shape)
    return features | {"@record": chosen, "@draws": fresh} | shaped(values, out)


def name_damaged(compute: Compute, features: Features, out: ElementType, path: tf.Tensor, advice: str) -> Features:
    """Computes the features of a record; a failure names its file and number. For derived datasets, whose errors are not explained."""
    values, good = attempt(compute, features["@record"], features["@draws"], out)
    message = tf.strings.join(["pipegen: cannot read or decode ", path, advice])
    check = tf.debugging.Assert(good, [message, features["@record"]])
    with tf.control_dependencies([check] if check is not None else []):
        return features | shaped({name: tf.identity(value) for name, value in values.items()}, out)


@dataclass(frozen=True)
class Treatment:
    """What happens to damaged records."""

    quarantine: Quarantine | None  # their list, if they are replaced
    where: Callable[[Path], str]  # from the key path of a step to `file:line:column`, or to the path in words, for the message
    advice: str  # what a user can do


def advice(split: str, *, skips: bool) -> str:
    """Describes what a user can do about a damaged record of a split."""
    if split == "train" and not skips:
        return "`errors: {decode: {skip: {max_fraction: 0.01}}}` would replace it by the next good record"
    return "list it in a file and set `errors: {exclude: FILE}`; `pipegen validate --data=all --write-exclude FILE` writes one"
