"""What becomes of a record that cannot be read or decoded: it is found, named, left out or replaced."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.backend.reading.records import files_of
from pipegen.errors import DataError
from pipegen.files import add_line
from pipegen.ops.lowering.graphs import called_in
from pipegen.ops.lowering.python_calls import CallFailed, numpy_function
from pipegen.types import ElementType

if TYPE_CHECKING:
    from pipegen.backend.features import Features
    from pipegen.backend.reading.records import Records
    from pipegen.ops.stage import Path
    from pipegen.spec.models import Skip


MAX_TRIES = 8
"""Records tried in the place of a damaged one."""

NO_STAND_IN = "no record of the batch could stand in for a damaged one"

WHOLE = "@whole"
"""The feature that tells whether a record could be read and decoded."""

Compute = Callable[["Features"], "Features"]
"""From `@record` and `@draws` of a record to its features."""


@dataclass
class Quarantine:
    """The damaged records of one split, as they are met.

    Attributes:
        path: Says where a record is.
        count: The records of the split.
        max_fraction: The share of the split that may be damaged.
        report: A file that collects them.
    """

    path: Callable[[int], str]
    count: int
    max_fraction: float
    report: str | None = None
    damaged: dict[int, str] = field(default_factory=dict)
    failure: DataError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, records: Records, read: ElementType, skip: Skip) -> Quarantine:
        """Returns an empty one; a record with several files that are read is in one or the other, nobody has looked in which."""
        return cls(partial(records.locate, features=files_of(read)), len(records), skip.max_fraction, skip.report)

    def add(self, record: int) -> None:
        """Note a damaged record.

        Raises:
            DataError: When more than `max_fraction` of the split is damaged.
        """
        with self._lock:
            if self.failure is not None:  # also in a later epoch, and for the other threads of this one
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
                        f"the report of damaged records {self.report!r} cannot be written: {why}; the damaged record is {path}"
                    )
                    raise self.failure from None
            limit = self.max_fraction * self.count
            if len(self.damaged) > limit:
                shown = ", ".join(sorted(self.damaged.values())[:5])
                self.failure = DataError(
                    f"{len(self.damaged)} of {self.count} records are damaged, and `errors: {{decode: {{skip: {{max_fraction: "
                    f"{self.max_fraction:g}}}}}}}` allows {int(limit)}: {shown}"
                )
                raise self.failure


def attempt(compute: Compute, record: tf.Tensor, draws: tf.Tensor, out: ElementType) -> tuple[Features, tf.Tensor]:
    """Compute a record's features, and whether that worked; on failure they are zeros."""
    nothing = {name: tf.zeros([0 if d is None else d for d in t.shape], tf.as_dtype(t.dtype)) for name, t in out.items()}
    fallback = tf.data.Dataset.from_tensors((nothing, tf.constant(False)))

    def work(known: Features) -> tuple[Features, tf.Tensor]:
        done = compute(known)
        return {name: done[name] for name in nothing}, tf.constant(True)

    with called_in(None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()):
        tried = plain_map(tf.data.Dataset.from_tensors({"@record": record, "@draws": draws}), work).ignore_errors(log_warning=False)
    features, good = tried.concatenate(fallback).take(1).get_single_element()
    return _shaped(features, out), good


def mark_damaged(compute: Compute, features: Features, out: ElementType) -> Features:
    """The features of a record, zeros where it is damaged, and in `WHOLE` whether it is whole: a bool scalar."""
    values, good = attempt(compute, features["@record"], features["@draws"], out)
    return features | values | {WHOLE: good}


def all_whole(features: Features) -> Features:
    """A batch `(n, ...)` in which each example tells of all, since they were mixed; where none tells, as it is."""
    if WHOLE not in features:
        return features
    whole = features[WHOLE]
    return features | {WHOLE: tf.fill(tf.shape(whole), tf.reduce_all(whole))}


def _shaped(features: Features, out: ElementType) -> Features:
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
    """The features of a record, or those of the next good one that may take its place.

    Args:
        compute: From `@record` and `@draws` of a record to its features.
        features: The element, with `@record`, `@draws`, `@epoch` and `@slot`.
        out: The type of what `compute` gives.
        alternates: From epoch and slot to the records to try, their cycles and the occurrences that they stand in as.
        draw: From one of each of these to its draws.
        quarantine: Where damaged records are noted.
        path: From a record to where it is.
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
        said = tf.strings.join([f"pipegen: {NO_STAND_IN} in {MAX_TRIES} tries, the last of them ", path(chosen)])
        failed = tf.debugging.Assert(found, [said])
        with tf.control_dependencies([failed] if failed is not None else []):
            return tf.identity(chosen), fresh, values

    chosen, fresh, values = tf.cond(good, lambda: (record, draws, first), search)
    fresh.set_shape(draws.shape)
    return features | {"@record": chosen, "@draws": fresh} | _shaped(values, out)


def name_damaged(compute: Compute, features: Features, out: ElementType, path: tf.Tensor, advice: str) -> Features:
    """The features of a record; a failure names its file and its number. For datasets whose iteration is not ours to watch."""
    values, good = attempt(compute, features["@record"], features["@draws"], out)
    message = tf.strings.join(["pipegen: cannot read or decode ", path, advice])
    check = tf.debugging.Assert(good, [message, features["@record"]])
    with tf.control_dependencies([check] if check is not None else []):
        return features | _shaped({name: tf.identity(value) for name, value in values.items()}, out)


Where = Callable[["Path"], str]
"""From a key path to `file:line:column`, or to the path in words."""


def advice(split: str, *, skips: bool) -> str:
    """Says what a user can do about a damaged record of a split."""
    if split == "train" and not skips:
        return "`errors: {decode: {skip: {max_fraction: 0.01}}}` would take the next good record in its place"
    return "list it in a file and set `errors: {exclude: FILE}`; `pipegen validate --data=all --write-exclude FILE` writes one"


def reason(error: Exception) -> str:
    """The first sentence of a TensorFlow error, without its node names."""
    text = getattr(error, "message", None) or str(error)
    if isinstance(error, UnicodeDecodeError) and b" [Op:" in error.object:  # TensorFlow's own message, which quotes bytes of the record
        text = error.object.decode(errors="backslashreplace")
    text = re.sub(r"\{\{[^}]*\}\}\s*", "", text)
    text = re.sub(r"\s*\[Op:[^\]]*\].*", "", text, flags=re.DOTALL)
    text = re.sub(r"^Expected .* to be true\. Summarized data: b?(['\"]?)(.*)\1$", r"\2", text, flags=re.DOTALL)
    text = re.sub(r"^.*?assertion failed:\s*", "", text, flags=re.DOTALL)
    text = text.removeprefix(f"{CallFailed.__name__}: ")
    line = next((part.strip() for part in text.splitlines() if part.strip()), "unknown error")
    return line.strip("[]'\" ").removeprefix("b'").rstrip(".")
