"""Checks the split assignment: empty parts, missing classes, unused data, no full batch, empty files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pipegen.data.manifest import Manifest
from pipegen.data.named_files import finding_of, place_within
from pipegen.data.sampling import examples_of_epoch
from pipegen.data.shares import judge_windows, last_batch
from pipegen.data.split_checks import listed, per_cent
from pipegen.data.splits import count_groups
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Severity, write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.data_test import ClassCounts
from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.sources.listing.base import PREDICTED
from pipegen.spec.locate import Locate
from pipegen.spec.models import Epoch, PipelineSpec, ShardIndex
from pipegen.spec.source_map import KeyPath, format_path
from pipegen.spec.variants import bucketed

_MOST_COMPARED = 1000  # values of a column that an unknown one is compared with


def check_assignment(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    """Checks the splits of a manifest."""
    found: list[Diagnostic] = []
    for split in manifest.splits:
        n = manifest.num_examples(split)
        if n == 0:
            found.append(_empty_part(spec, manifest, split, locate))
            continue
        found += _missing_classes(spec, manifest, split, locate)
        endless = split == "train" and isinstance(spec.epoch, Epoch)
        if split == "train" and spec.samples:
            of_stages = [_sampled(stage.resolved, manifest, locate)[1] for stage in spec.stages]
            n, wrong = _sampled(spec, manifest, locate)
            if any(of_stages) or wrong is not None:
                found += dict.fromkeys(problem for problem in (wrong, *of_stages) if problem is not None)
                continue
        short = next((batch for batch in _batches(spec, manifest, split, n) if batch[0] < batch[2]), None)
        found += _shared_out(spec, manifest, split, n, locate)
        if short is not None and spec.batch.remainder_for(split) == "drop" and not endless:
            lacking, place, size = short
            have = f"`{split}` has {count(lacking, 'example')}, fewer than one batch of {size}"
            keep = f"or keep the smaller batch: `remainder: {{{split}: keep}}`"
            help_ = (f"lower `{format_path(place)}` to {lacking} or less", keep, f"or give `{split}` more data")
            labels = locate(place), locate(place_of(spec, split), f"{lacking} examples")
            found.append(make("PG407", f"{have}, and what fills no batch is dropped: no step is left", *labels, help=help_))
    return [
        *found,
        *_unused(spec, manifest, locate),
        *_unknown_values(spec, manifest, locate),
        *_empty_files(spec, manifest, locate),
        *judge_windows(spec, manifest, locate),
    ]


def _shared_out(spec: PipelineSpec, manifest: Manifest, split: str, n: int, locate: Locate) -> Iterator[Diagnostic]:
    """Checks that the hosts of the spec can share the last batch of a split; reports only the first stage with a problem."""
    shard = spec.runtime.shard
    if not isinstance(shard, ShardIndex):
        return
    each = ((stage.resolved, examples_of_epoch(stage.resolved, manifest, split)) for stage in spec.stages)
    for model, examples in each if split == "train" and spec.stages else [(spec, n)]:
        if bucketed(model, split):  # each bucket has a last batch, but image sizes are not known yet
            continue
        found = list(last_batch(model, split, examples, shard.count, locate))
        if found:
            yield from found
            return


def _sampled(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> tuple[int, Diagnostic | None]:
    """Counts the examples of a sampled epoch of the training split, or reports why they cannot be chosen."""
    section = "order" if spec.order is not None else "sampling"
    at_once = manifest.listing.reader("train").at_once
    if at_once > 1:
        message = f"`{section}` selects single records, but `{spec.source.op}` reads {at_once:,} at a time"
        help_ = "convert the data to files whose records are read one by one, or leave the section out"
        return 0, make("PG470", message, locate((section,), key=True), locate(("source",), "read many at a time"), help=help_)
    try:
        return examples_of_epoch(spec, manifest, "train"), None
    except OpError as error:
        return 0, finding_of(error, locate(place_within(spec, error.field or section)))


def _batches(spec: PipelineSpec, manifest: Manifest, split: str, n: int) -> Iterator[tuple[int, KeyPath, int]]:
    """Yields the examples of an epoch, and the size of its batches with its place in the spec; for each stage, if there are any."""
    if split != "train" or not spec.stages:
        yield n, ("batch", "size"), spec.batch.size
    for number, stage in enumerate(spec.stages):
        place = ("stages", number, "batch") if stage.batch is not None else ("batch", "size")
        yield examples_of_epoch(stage.resolved, manifest, split), place, stage.resolved.batch.size


def place_of(spec: PipelineSpec, split: str) -> tuple[str | int, ...]:
    """The key path of a split's definition."""
    if spec.source.split_names() is not None:
        return ("source", spec.source.op, split)
    if split in spec.splits.parts:
        return ("splits", "parts", split)
    return ("splits", "folds") if spec.splits.folds is not None else ("source",)


def far_from_asked(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    """Warns of parts that are off from their fraction by more than 5 per cent of all records, and by 2 records or more.

    Call it before records are removed from splits.
    """
    unlabelled = manifest.num_examples(PREDICTED) if spec.source.lacks(PREDICTED) else 0
    total = manifest.total - manifest.ignored - unlabelled
    fractions = {name: size for name, size in spec.splits.parts.items() if isinstance(size, float) and name in manifest.members}
    off = {name: abs(len(manifest.members[name]) - size * total) for name, size in fractions.items()}
    far = [name for name, by in off.items() if by > 0.05 * total and by >= 2 and spec.splits.by_time is None]
    if not far or any(not len(records) for records in manifest.members.values()):  # an empty part is an error already
        return []
    shown = ", ".join(f"`{name}` {len(manifest.members[name]):,} ({len(manifest.members[name]) / total:.0%})" for name in fractions)
    asked = " and ".join(f"{size:g}" for size in fractions.values())
    why = ""
    help_: str = write("splits: {method: random}", "spec", "use {}, whose sizes are exact", shown="method: random")
    if spec.splits.group is not None:
        why, help_ = "groups stay whole, and ", "more and smaller groups come closer to the fractions"
    elif spec.splits.method == "hash":
        why = "with `method: hash` sizes hold on average only, and "
    elif spec.splits.method == "keras":
        why = "Keras rounds down in each class, and "
    message = f"{why}the parts are far from {asked} of {count(total, 'example')}: {shown}"
    return [make("PG627", message, locate(place_of(spec, far[0])), help=help_)]


def _empty_part(spec: PipelineSpec, manifest: Manifest, split: str, locate: Locate) -> Diagnostic:
    n = manifest.total
    size = spec.splits.parts.get(split)
    asked = f"there are {count(n, 'example')} in all"
    if isinstance(size, float) and size * n < 1:
        asked = f"{size:g} of {count(n, 'example')} is less than one"
    help_ = "give the part a larger share, or add data"
    if split == PREDICTED and spec.source.lacks(PREDICTED):
        asked, help_ = "every example has a label", "name the values that stand for none in `unlabelled`, or remove it"
    elif spec.splits.by_time is not None:
        span = manifest.listing.timeline.span if manifest.listing.timeline is not None else 0
        asked, help_ = f"no window, which takes {count(span, 'row')}, fits into it", "give the part more rows, or use a shorter window"
    elif spec.splits.group is not None:
        groups = count(count_groups(spec.splits, manifest.listing), "group")
        asked = f"there are {count(n, 'example')} in {groups}, which stay whole" if n else asked
        help_ = "give the part a larger share, or make the groups smaller"
    elif spec.splits.method == "keras":
        asked = "Keras rounds down in each class, here to 0"
    elif spec.splits.method == "hash":
        asked += "; with `method: hash` sizes hold on average only"
        help_ = "use `method: random`, whose sizes are exact, or add data"
    elif spec.splits.folds is not None:
        asked = f"{count(n, 'example')} cannot make {spec.splits.folds.count} folds"
    return make("PG404", f"`{split}` would be empty: {asked}", locate(place_of(spec, split)), help=help_)


def _missing_classes(spec: PipelineSpec, manifest: Manifest, split: str, locate: Locate) -> list[Diagnostic]:
    labels = (
        manifest.labels(split) if manifest.listing.shards is None and manifest.own(split) is manifest else None
    )  # else they are read with the records
    if labels is None:
        return []
    have, anywhere = (set(np.unique(some).tolist()) for some in (labels, manifest.every_label))
    missing = [name for i, name in enumerate(manifest.class_names) if i in anywhere - have]
    if not missing:
        return []
    help_ = "`stratify: label` gives every part its share of each class"
    if spec.splits.stratify == "label":
        help_ = "such a class has too few examples for every part to get one"
    elif spec.source.split_names() is not None or spec.splits.method != "random":
        help_ = "metrics of this split say nothing about such a class"
    message = f"`{split}` has no example of {count(len(missing), 'class', 'classes')}: {quoted(missing)}"
    return [make("PG405", message, locate(place_of(spec, split)), help=help_)]


def _unused(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    unused, total = manifest.unused, manifest.total - manifest.ignored
    if not unused:
        return []
    message = f"the parts leave {unused} of {count(total, 'example')} unused"
    help_: str = "let the fractions sum to 1 to use all the data"
    counts = {name: size for name, size in spec.splits.parts.items() if isinstance(size, int)}
    if spec.splits.column is not None:
        message += f": their cells in the column {spec.splits.column!r} name no part"
        help_ = "add a part for each value that is to be used"
    elif spec.splits.method == "folder":
        help_ = "add a part for each folder that is to be used"
    elif counts:
        message += f": {listed(counts)} are counts of examples"
        help_ = "for shares of the data write fractions such as 0.8, or raise the counts"
        if sum(counts.values()) == 100:
            help_ = per_cent(counts)
    severity = Severity.WARNING if 2 * unused > total or sum(counts.values()) == 100 else None
    return [make("PG411", message, locate(("splits", "parts")), help=help_, severity=severity)]


def _unknown_values(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> Iterator[Diagnostic]:
    """Reports values of parts that no record has; the lines of a file stay secret."""
    splits, cells = spec.splits, manifest.listing.cells
    if splits.column is None or cells is None:
        return
    there = set(cells(splits.column, splits.column_field))
    for name, values in splits.values().items():
        unknown = [i for i, value in enumerate(values) if value not in there]
        if not unknown:
            continue
        file = splits.files.get(name)
        shown = f"{count(len(unknown), 'value')} of {file.file!r}, first number {unknown[0] + 1}" if file is not None else ""
        message = f"`{name}` lists {shown or quoted([values[i] for i in unknown])}, which no record has in the column {splits.column!r}"
        near = None if file is not None else closest(values[unknown[0]], sorted(there)[:_MOST_COMPARED])
        help_ = f"is {near!r} meant?" if near is not None else f"the column holds {quoted(sorted(there))}"
        yield make("PG629", message, locate(place_of(spec, name)), help=help_)


def _empty_files(spec: PipelineSpec, manifest: Manifest, locate: Locate) -> list[Diagnostic]:
    """Reports files of 0 bytes, which would stop the first epoch that reads them, unless training skips them."""
    empty: list[str] = []
    for split in manifest.splits:
        own = manifest.own(split)
        if own.listing.shards is None and (split != "train" or spec.errors.skip is None):
            records = own.members[split]
            for files in (own.listing.location, *own.listing.beside.values()):
                empty += files.keys.take(records[files.sizes[records] == 0])
    empty.sort()
    if not empty:
        return []
    message = f"{count(len(empty), 'file')} of 0 bytes cannot be decoded: {quoted(empty)}"
    help_ = "remove them, or list them in `errors: {exclude: FILE}`; in training `errors: {decode: {skip: {}}}` skips them"
    return [make("PG406", message, locate(("source",)), help=help_)]


def class_counts(manifest: Manifest, split: str, feature: str | None, *, main: bool, read: bool = False) -> ClassCounts | None:
    """Counts the classes of a label; `None` if it is not in the listing, and not in the records if these may be `read`. The main label is
    the one that gives the data its classes."""
    name = feature or ""
    names = manifest.listing.classes.get(name, manifest.class_names)
    each: list[Any] = [part.columns(split).get(name) for part in manifest.of(split).values()]
    items = [column.values for column in each if isinstance(column, Ragged)]
    if items:
        values = np.concatenate(items).astype(np.int64)
        return ClassCounts(names, np.bincount(values, minlength=len(names)).tolist(), len(values), "item")
    held = manifest.columns(split).get(name)
    if held is None and main:
        held = manifest.labels(split)
    if held is None and read:
        held = manifest.stored(split, name)
    if held is None or (held.ndim == 1 and (held < 0).any()):  # a split without labels
        return None
    if held.ndim == 2 and held.dtype == np.uint8:  # 1 for each class of an example
        return ClassCounts(names, held.sum(0, dtype=np.int64).tolist(), len(held))
    counts = np.bincount(held.ravel(), minlength=len(names)).tolist()
    return ClassCounts(names, counts, held.size, "example" if held.ndim == 1 else "time step")


def shown_label(manifest: Manifest) -> str | None:
    """The default label of the data: `None` for that of whole examples, else the first in the listing."""
    if any(manifest.labels(split) is not None for split in manifest.splits):
        return None
    return next(iter(manifest.listing.classes), None)
