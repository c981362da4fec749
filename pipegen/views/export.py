"""Augmented examples as image or sound files, and a table of what was drawn for each."""

from __future__ import annotations

import errno
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.running.damaged_record import explain_failure
from pipegen.backend.running.walk import batches_of, handed_over
from pipegen.files import write_whole
from pipegen.frozen import dataclass
from pipegen.memory import threads
from pipegen.ops.families.combining import GROUP
from pipegen.ops.kinds.base import ExampleClass, InstanceNumber, Levels, Presence, Values, having, kind_of, several_labels
from pipegen.ops.lowering.pictures import mapped_range
from pipegen.passes.drop_unused import without_unused
from pipegen.phases.compilation import read_once
from pipegen.physical.extent import Position
from pipegen.physical.nodes import EXPORTED
from pipegen.plan.nodes import Plan
from pipegen.types import ElementType
from pipegen.views import drawn

Array = np.ndarray[Any, Any]
Batch = dict[str, Array]

TABLE = "metadata.jsonl"
"""The table, with a JSON object a line, since examples have different draws; `datasets` reads a folder of images with this file."""
_NAME_LENGTH = 60
_SUFFIXES = {"png": "png", "jpeg": "jpg"}


@dataclass(frozen=True)
class Wanted:
    """The arguments of `Pipeline.export`."""

    folder: Path
    examples: int | None = 32
    draws: int = 1
    epoch: int = 0
    form: Literal["png", "jpeg"] = "png"
    quality: int = 95
    prefix: str = ""
    overwrite: bool = False


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    folder: Path  # the folder
    table: Path  # the file with a line for each example
    files: tuple[str, ...]  # the names of the images or sounds, in the order of the table, without masks
    epochs: int = 1  # the number of epochs of the versions; one without random steps
    missing: int = 0
    """The number of chosen examples that an epoch lacks: damaged ones, which are replaced, and those of a dropped last batch."""
    scaled: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Images whose values are not levels from 0 to 255, with the values mapped to black and white: the possible range or, if that is
    unknown, the range of the last image. The table has it for each image."""
    left_out: int = 0  # the number of requested examples that no epoch of training has; each epoch here lacks them, too
    why: str = ""  # the setting of the spec that leaves them out; "" if there are none


def export(engine: Engine, plain: Plan, wanted: Wanted, progress: Callable[[int], None]) -> Exported:
    """Writes augmented examples of the split of an unoptimised plan; for the arguments and the errors see `Pipeline.export`."""
    record, plain = plain.read, without_unused(plain)
    _check(wanted, plain, engine)
    source = _Source(engine, plain, record, wanted)
    wanted.folder.mkdir(parents=True, exist_ok=True)
    table = wanted.folder / TABLE
    files: list[str] = []
    with table.open("w", encoding="utf-8") as lines, ThreadPoolExecutor(threads(engine.spec.runtime)) as pool:
        for batch, rows in source.batches():
            named = source.describe(batch, rows)
            for own, line in zip(pool.map(source.encode, repeat(batch), rows, named), named, strict=True):
                for name, contents in own.items():
                    write_whole(wanted.folder / name, contents, durable=False)  # syncing is slow; after a power cut, export again
                lines.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
                lines.flush()
                files.append(line["file_name"])
            progress(len(files))
    left_out, why = source.left_out()
    return Exported(wanted.folder, table, tuple(files), len(source.slots), source.missing, source.scaled, left_out, why)


class _Source:
    """The augmented examples to export."""

    def __init__(self, engine: Engine, plain: Plan, record: ElementType, wanted: Wanted) -> None:
        self.engine = engine
        self.record = record
        self.split = plain.split
        self.wanted = wanted
        real = engine.executor(self.split, (0, 1))
        # With `epoch: {steps: N}`, buckets or replaced damaged records, the examples depend on the batch size, so it must stay.
        keeps_batch = real.damage.quarantine is not None or real.order.epoch_steps is not None or bool(plain.buckets)
        self.plain = plain.each(lambda own: drawn.augmented(own, None if keeps_batch else GROUP))
        self.order = real.order
        compiled = read_once(engine.spec, self.plain, engine.manifest)
        self.executor = engine.executor_of(drawn.with_index(compiled), self.split, quarantine=real.damage.quarantine)
        self.keys = engine.manifest.keys(self.split)
        held, labels = engine.manifest.columns(self.split), having(record, ExampleClass)
        read = {name: engine.manifest.stored(self.split, name) for name in labels if name not in held}  # from the records
        lacking = engine.spec.source.lacks(self.split)
        dense = {n: values for n, values in (held | read).items() if values is not None and n in record and n not in lacking}
        self.columns = {name: values for name, values in dense.items() if kind_of(record[name]).storage == "dense"}
        arrays = [name for name in drawn.beside(self.plain.out) if kind_of(self.plain.out[name]).storage == "encoded"]
        self.types = {name: self.plain.out[name] for name in (*drawn.pictures(self.plain.out), *arrays)}
        self.items = [name for name, t in self.plain.out.items() if kind_of(t).ragged and not kind_of(t).has(InstanceNumber)]
        told = {*self.columns, *self.types, *self.items}
        self.computed = [n for n in drawn.beside(self.plain.out) if n not in told and not kind_of(self.plain.out[n]).has(Presence)]
        self.parameters = drawn.DrawnParameters(self.executor, self.plain, self.keys)
        self.missing = 0
        self.scaled: dict[str, tuple[float, float]] = {}

    @cached_property
    def _slots_of_an_epoch(self) -> int:
        return len(self.order.delivered(self.wanted.epoch))

    @property
    def whole(self) -> bool:
        """True if all of each epoch is wanted."""
        return self.wanted.examples is None or self.wanted.examples >= self._slots_of_an_epoch

    def left_out(self) -> tuple[int, str]:
        """Counts the requested examples that no epoch of training has; returns also the setting that leaves them out."""
        order = self.order
        asked = order.num_examples if self.wanted.examples is None else min(self.wanted.examples, order.num_examples)
        beyond = max(asked - self._slots_of_an_epoch, 0)
        why = "epoch.steps" if order.epoch_steps is not None else "batch.remainder"
        return beyond, why if beyond else ""

    @cached_property
    def slots(self) -> dict[int, set[int]]:
        """The slots of each epoch to export."""
        epochs = range(self.wanted.epoch, self.wanted.epoch + (self.wanted.draws if drawn.varies(self.split, self.plain) else 1))
        if self.whole:
            return {epoch: {slot for slot, _ in self._records(epoch)} for epoch in epochs}
        first = self._records(self.wanted.epoch)[: self.wanted.examples]
        chosen = {self.wanted.epoch: {slot for slot, _ in first}}
        for epoch in epochs[1:]:
            places = {record: slot for slot, record in reversed(self._records(epoch))}
            chosen[epoch] = {places[record] for _, record in first if record in places}
            self.missing += sum(record not in places for _, record in first)
        return chosen

    def _records(self, epoch: int) -> list[tuple[int, int]]:
        """Slots of an epoch in the order of its batches, with their records."""
        slots = self.order.delivered(epoch)
        return list(zip(slots.numpy().tolist(), self.order.found(epoch, slots).record.numpy().tolist(), strict=True))

    def batches(self) -> Iterator[tuple[Batch, list[int]]]:
        """Yields the batches with wanted examples, and their rows."""
        order = self.executor.order
        steps_of = {epoch: order.step_at(epoch, tf.constant(sorted(slots), tf.int64)).numpy() for epoch, slots in self.slots.items()}
        wanted = sorted({(epoch, step) for epoch, found in steps_of.items() for step in found.tolist()})
        steps: Array = np.array(wanted, np.int64).reshape(-1, 2)
        data = batches_of(self.executor, tf.data.Dataset.from_tensor_slices((steps[:, 0], steps[:, 1])), EXPORTED)
        walk = iter(handed_over(self.executor, data, EXPORTED))
        for epoch, step in wanted:
            try:
                batch = {name: value.numpy() for name, value in next(walk)[2].items()}
            except tf.errors.OpError as error:
                raise explain_failure(self.executor, error, Position(epoch, step)) from None
            rows = [i for i, slot in enumerate(batch["@slot"].tolist()) if slot in self.slots[epoch]]
            quarantine = self.executor.damage.quarantine
            if not self.whole and quarantine is not None and quarantine.damaged:
                # Without examples that replace damaged ones; in a whole epoch they stay, since the model sees them.
                meant = self.order.found(int(batch["@epoch"][0]), tf.constant(batch["@slot"])).record.numpy()
                kept = [i for i in rows if batch["@record"][i] == meant[i]]
                self.missing, rows = self.missing + len(rows) - len(kept), kept
            yield batch, rows

    def describe(self, batch: Batch, rows: list[int]) -> list[dict[str, Any]]:
        """Makes the line of the table for each row."""
        found = []
        parameters = self.parameters.rows(batch, rows)
        for i in rows:
            record, epoch, slot = (int(batch[name][i]) for name in ("@record", "@epoch", "@slot"))
            line = self._files(record, epoch, slot)
            line |= {"source": self.keys[record], "split": self.split, "epoch": epoch, "position": slot}
            for name, value in self._beside(record).items():
                line[name if name not in line else f"feature.{name}"] = value
            for name, t in self.types.items():
                bounds = mapped_range(batch[name][i], t.interval) if kind_of(t).has(Levels) else None
                if bounds is not None:
                    line[f"{name}_scaled_from"] = self.scaled[name] = bounds
            for name in self.items:
                line[name] = self._told(name, batch[name][i][batch[self.plain.out.valid(name)][i]])
            for name in self.computed:
                line[name] = self._told(name, batch[name][i])
            found.append(line | {"parameters": parameters[i]})
        return found

    def _told(self, name: str, values: Array) -> Any:
        """Converts items, or other values, for the table, with classes by name, and without numbers that JSON does not know."""
        t, views = self.plain.out[name], {view: fork.feature for fork in drawn.forks_of(self.plain) for view in fork.names}
        classes = self.engine.manifest.listing.classes.get(views.get(name, name), ())
        if t.classes is not None and values.dtype.kind in "iu":
            return _each(values.tolist(), lambda number: classes[number] if number < len(classes) else number)
        if kind_of(t).ragged and (geometry := kind_of(t).geometry) is not None:
            return geometry.described(values, t)
        return _each(values.tolist(), lambda number: number if math.isfinite(number) else None)

    def _files(self, record: int, epoch: int, slot: int) -> dict[str, Any]:
        """Names the files of an example: `file_name`, and `FEATURE_file_name` for further pictures."""
        kind = self.engine.manifest.kind(self.split)
        stem = self.keys[record] if kind != "row" else f"row-{self.keys[record]}"
        stem = re.sub(r"[^\w.-]+", "-", os.path.splitext(stem)[0])[-_NAME_LENGTH:].lstrip("-.")
        digits = len(str(max(len(self.keys), self.order.slots, self.order.steps * self.order.batch) - 1))
        name = f"{self.wanted.prefix}{stem}-e{epoch:03d}-p{slot:0{digits}d}"
        found = {}
        for i, (feature, t) in enumerate(self.types.items()):
            suffix = _SUFFIXES[self.wanted.form] if kind_of(t).has(Levels) else (kind_of(t).values or Values()).ending(t)
            found[f"{feature}_file_name" if i else "file_name"] = f"{name}-{feature}.{suffix}" if i else f"{name}.{suffix}"
        return found

    def _beside(self, record: int) -> dict[str, Any]:
        """Collects the other data of a record: classes by name, and numbers."""
        manifest, found = self.engine.manifest, {}
        for name, t in self.record.items():
            if name in self.columns:
                classes = manifest.listing.classes.get(name, ()) if kind_of(t).has(ExampleClass) else ()
                found[name] = _named(np.asarray(self.columns[name][record]), classes, several=several_labels(t))
        return found

    def encode(self, batch: Batch, row: int, line: dict[str, Any]) -> dict[str, bytes]:
        """Encodes the files of one example, by name."""
        found = {}
        for i, (name, t) in enumerate(self.types.items()):
            file, values = line["file_name" if i == 0 else f"{name}_file_name"], kind_of(t).values or Values()
            found[file] = values.encode(batch[name][row], t, self.wanted.form, self.wanted.quality)
        return found


def _each(values: Any, change: Callable[[Any], Any]) -> Any:
    """Changes each value of nested lists."""
    return [_each(one, change) for one in values] if isinstance(values, list) else change(values)


def _named(value: Array, classes: tuple[str, ...], *, several: bool) -> Any:
    """Converts a class index to its name, several to a list; leaves other numbers."""
    if several:
        return [classes[i] if i < len(classes) else i for i in np.flatnonzero(value).tolist()]
    plain = value.tolist()
    return classes[plain] if isinstance(plain, int) and plain < len(classes) else plain


def _check(wanted: Wanted, plain: Plan, engine: Engine) -> None:
    if wanted.form not in ("png", "jpeg"):
        raise ValueError(f"`form` is `png` or `jpeg`, got {wanted.form!r}")
    if os.path.basename(wanted.prefix) != wanted.prefix:
        raise ValueError(f"`prefix` must not contain a folder, got {wanted.prefix!r}")
    if not drawn.pictures(plain.out):
        raise ValueError("export writes images or sounds, but the model receives none")
    listing = engine.manifest.listing
    is_inside = wanted.folder.resolve().is_relative_to(Path(listing.root).resolve())
    if listing.location.paths[0] == f"{listing.root}/{listing.keys[0]}" and not listing.in_table and is_inside:
        raise ValueError(f"{wanted.folder} is inside {listing.root}, so its images would become part of the data; use another folder")
    if not wanted.overwrite and wanted.folder.is_dir() and any(wanted.folder.iterdir()):
        raise FileExistsError(errno.EEXIST, "the folder is not empty", str(wanted.folder))
