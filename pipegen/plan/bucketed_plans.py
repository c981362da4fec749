"""Plans of splits with bucketed batches, and checks of the sections `batch.buckets`, `sampling` and `order`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import SpecError
from pipegen.ops.kinds.base import ExampleClass, Levels, Numbers, TimestepClass, having, kind_of, several_labels, single_values
from pipegen.ops.sampling_sections import Buckets, Columns, LengthBuckets, LengthColumn, Sampling, says_bucket
from pipegen.ops.transform import Transform
from pipegen.plan.build import ALL, Builder, Built, Given
from pipegen.plan.nodes import Plan, Shard, Shuffle, for_buckets
from pipegen.plan.outputs import meant_feature
from pipegen.plan.recipe import step_path
from pipegen.spec.expect import one_of
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, WindowShuffle
from pipegen.spec.source_map import KeyPath
from pipegen.spec.variants import bucketed, of_bucket, part_path
from pipegen.types import ElementType, times

K = TypeVar("K")


def build_plan(
    spec: PipelineSpec, split: str, locate: Locate, source: ElementType, record: ElementType | None = None, given: Given = ALL
) -> Built:
    """Builds the plan of a split of a single source; of `source`, which may have only some of the features of `record`."""
    if not bucketed(spec, split):
        return Builder(of_bucket(spec), split, locate, source, record).build(given)
    sizes = spec.batch.buckets.shapes if spec.batch.buckets is not None else ()
    builders = [Builder(of_bucket(spec, number), split, locate, source, record) for number in range(len(sizes))]
    built = [builder.build(given) for builder in builders]
    found, ordinary = _merged(built, sizes)
    made = []
    for plan in (own.plan for own in built if own.plan is not None):
        shuffled, shared = (any(isinstance(n, kind) for n in plan.nodes) for kind in (Shuffle, Shard))
        # Only the index can permute batches of several buckets.
        index = replace(plan.index, order="global" if shuffled else "stored", shard=shared, buckets=sizes)
        made.append(plan.with_nodes([index, *(n for n in plan.nodes[1:] if not isinstance(n, (Shuffle, Shard)))]))
    return Built(for_buckets(made) if len(made) == len(sizes) else None, found, ordinary)


def sound_plan(spec: PipelineSpec, split: str, locate: Locate, source: ElementType, record: ElementType | None = None) -> Plan:
    """Builds the plan of a split, see `build_plan`; raises `SpecError` if there are errors."""
    built = build_plan(spec, split, locate, source, record)
    if built.plan is None:
        raise SpecError(built.findings)
    return built.plan


def at_places(found: Iterable[tuple[K, Iterable[Diagnostic]]], apart: Collection[str] = ()) -> dict[Diagnostic, list[K]]:
    """Maps each finding to the plans that have one of its code at its place, of which the first stands for all.

    Findings with codes in `apart` have to be equal.
    """
    first: dict[tuple[str, str], Diagnostic] = {}
    where: dict[Diagnostic, list[K]] = {}
    for plan, findings in found:
        for finding in findings:
            place = finding.code, finding.labels[0].path if finding.labels else ""
            plans = where.setdefault(finding if finding.code in apart else first.setdefault(place, finding), [])
            if plan not in plans:
                plans.append(plan)
    return where


def _merged(built: list[Built], sizes: tuple[tuple[int, ...], ...]) -> tuple[list[Diagnostic], set[Diagnostic]]:
    """Merges the findings of all buckets; one that only some buckets have names these."""
    merged: dict[Diagnostic, Diagnostic] = {}
    for finding, numbers in at_places(enumerate(own.findings for own in built)).items():
        named = " and ".join(times(sizes[number]) for number in numbers)
        message = f"{finding.message} (in the bucket{'s' if len(numbers) > 1 else ''} of {named})"
        merged[finding] = replace(finding, message=message) if len(numbers) < len(sizes) else finding
    return [*merged.values()], {merged[finding] for own in built for finding in own.ordinary if finding in merged}


def _places(spec: PipelineSpec) -> Iterator[tuple[Transform, KeyPath]]:
    """Yields all steps of a spec with their places: the common ones, then those of views and of parts of a mix."""
    for i, step in enumerate(spec.transforms):
        yield step, step_path(i, step)
    for name, view in spec.views.items() if isinstance(spec.views, dict) else ():
        for i, step in enumerate(view.transforms):
            yield step, ("views", name, "transforms", i, step.op)
    for name, part in spec.source.mixed().items():
        for i, step in enumerate(part.transforms):
            yield step, (*part_path(name), "transforms", i, step.op)


def check_buckets(spec: PipelineSpec, locate: Locate, record: ElementType | None) -> Iterator[Diagnostic]:
    """Checks the section `batch.buckets`; `record` is the type of a record, `None` for a mix."""
    buckets = spec.batch.buckets
    if not isinstance(buckets, Buckets):
        for step, path in _places(spec):
            if says_bucket([step]):
                which = "" if buckets is None else " of images"
                message = f"`{step.op}` has the size of a bucket, but `batch` has no `buckets`{which}"
                sizes = "batch: {buckets: {sizes: [[224, 224], [192, 256], [256, 192]]}}"
                yield make("PG260", message, locate(path, key=True), help=write(sizes, "spec", "list the sizes, for example {}"))
    if buckets is None:
        return
    here = locate(("batch", "buckets"), key=True)
    unused = not any(bucketed(spec, split) for split in spec.split_names())
    if isinstance(buckets, LengthBuckets) and buckets.feature is not None and record is not None and buckets.feature not in record:
        message, known = f"unknown feature `{buckets.feature}`, whose length chooses the bucket", meant_feature(buckets.feature, record)
        yield make("PG217", message, locate(("batch", "buckets", "feature")), help=known)
    elif isinstance(buckets, LengthBuckets) and unused and record is not None:
        which = "no feature has" if buckets.feature is None else f"`{buckets.feature}` does not have"
        message = f"`batch` has `buckets` by length, but {which} an unknown length"
        yield make("PG260", message, here, help="leave `buckets` out: all examples have one length")
    elif unused and isinstance(buckets, Buckets):
        help_ = (write("- resize: {size: bucket, mode: crop}", "transforms", "use them in a step, such as {}"), "or leave `buckets` out")
        yield make("PG260", "`batch` has `buckets`, but no step has the size `bucket`", here, help=help_)
    yield from _bucket_conflicts(spec, locate)
    if record is not None and isinstance(buckets, Buckets):
        yield from _check_measured(buckets, locate, record)


def _bucket_conflicts(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Checks for sections that conflict with buckets: an epoch has each example once, and a cache holds examples of one size."""
    here = locate(("batch", "buckets"), "beside buckets", key=True)
    once = "with buckets, an epoch has each example of a split once, in batches of one bucket"
    if spec.source.mixed():
        yield make("PG261", f"{once}; `mix` interleaves the examples of its parts", locate(("source",)), here, help="leave `buckets` out")
    for section in ("sampling", "order") if spec.samples else ():
        if getattr(spec, section) is not None and (section == "order" or (spec.sampling and spec.sampling.feature)):
            message = f"{once}; `{section}` chooses other examples"
            yield make("PG261", message, locate((section,), key=True), here, help=f"leave `{section}` or `buckets` out")
    if isinstance(spec.shuffle, WindowShuffle):
        help_ = (write("global", "value", "use {}, which costs no memory", shown="shuffle: global"),)
        message = f"{once}; windows of the stored order mix the buckets"
        yield make("PG261", message, locate(("shuffle",)), here, help=help_)
    if spec.runtime.cache not in ("auto", "none"):
        help_ = (write("auto", "value", "use {}", shown="cache: auto"),)
        message = "a cache holds examples of one size, but buckets have several"
        yield make("PG261", message, locate(("runtime", "cache")), here, help=help_)


def _check_measured(buckets: Buckets, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Checks the features that decide the size of an image."""
    at: KeyPath = ("batch", "buckets")
    images = having(record, Levels)
    if buckets.image is not None and buckets.image not in images:
        help_ = meant_feature(buckets.image, images)
        yield make("PG217", f"unknown image `{buckets.image}`, whose size chooses the bucket", locate((*at, "image")), help=help_)
    for i, name in enumerate(buckets.measured.columns if isinstance(buckets.measured, Columns) else ()):
        place = locate((*at, "measured", "columns", i))
        numbers = single_values(record, Numbers)
        if name not in record:
            help_ = meant_feature(name, numbers) if numbers else "read the size from a column of a table, as a feature of `kind: tensor`"
            yield make("PG217", f"unknown feature `{name}`, which would hold the size of an image", place, help=help_)
        elif name not in numbers:
            message = f"`{name}` is not a single number, so it cannot be the height or width of an image"
            yield make("PG262", message, place, help=f"numbers are {', '.join(f'`{n}`' for n in numbers)}" if numbers else "use `headers`")


def deciding_features(spec: PipelineSpec) -> set[str | None]:
    """The features that `sampling` and `order` select examples by, and those with the sizes and lengths that buckets and padding need."""
    buckets, pad = spec.batch.buckets, spec.batch.pad
    sizes = buckets.measured.columns if isinstance(buckets, Buckets) and isinstance(buckets.measured, Columns) else ()
    paddings = pad.values() if isinstance(pad, dict) else [pad] if pad is not None else []
    lengths = {own.measured.column for own in paddings if isinstance(own.measured, LengthColumn)}
    return {*sizes, *lengths, spec.sampling and spec.sampling.feature, spec.order and spec.order.by}


def check_sampling(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Checks `sampling` and `order` without data; `record` is the type of a record."""
    sections = [name for name in ("sampling", "order") if getattr(spec, name) is not None]
    if not sections:
        return
    if "train" not in spec.split_names():
        message = f"`{sections[0]}` selects examples of split `train`, which does not exist"
        yield make("PG474", message, locate((sections[0],), key=True), help="leave it out: evaluation sees each example once")
        return
    yield from _conflicts(spec, locate)
    for column, path in spec.columns().items():
        advice = spec.source.lacks_column(column) if path[:2] == ("sampling", "subset") else None
        if advice is not None:
            instead = {"where": "to leave files out, use `errors: {exclude: FILE}`", "stratify": "`stratify: label` goes by the classes"}
            message = f"the source `{spec.source.op}` has no column {column!r}"
            yield make("PG472", message, locate(path), help=(*advice, instead[path[2]]))
    if spec.sampling is not None and spec.sampling.feature is not None:
        yield from _check_sampled(spec.sampling, locate, record)
    if spec.order is not None:
        yield from _check_number(spec.order.by, ("order", "by"), locate, record, "sorts examples")


def _conflicts(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    if not spec.samples:
        return
    what = "order" if spec.order is not None else "sampling"
    if spec.shuffle != "global":
        message = f"`{what}` takes examples from the whole split, but `shuffle` keeps them near where they are stored"
        help_ = write("global", "value", "use {}, which costs no memory", shown="shuffle: global")
        yield make("PG470", message, locate(("shuffle",)), locate((what,), "from the whole split", key=True), help=help_)
    if spec.order is not None and spec.sampling is not None and spec.sampling.feature is not None:
        rule = spec.sampling.feature_path()[0]
        message = f"`order` and `{rule}` both select the examples of an epoch"
        labels = (locate(("order",), key=True), locate(("sampling", rule), "selects them, too", key=True))
        yield make("PG471", message, *labels, help="leave one of them out; `subset` may stand beside `order`")


def _check_sampled(sampling: Sampling, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    name, path = str(sampling.feature), ("sampling", *sampling.feature_path())
    if sampling.weights is not None:
        yield from _check_number(name, path, locate, record, "decides how often an example is seen")
    elif name not in record:
        yield _missing(name, path, locate, having(record, ExampleClass))
    elif name not in (labels := having(record, ExampleClass)):
        along = kind_of(record[name]).has(TimestepClass)
        help_ = f"labels are {one_of(labels)}" if labels else "the source has no label; to sample by a number, use `weights: FEATURE`"
        help_ = "add a label of the whole window, `at: last`, and name that" if along and not labels else help_
        held = "has a class for each time step" if along else "is not a label"
        yield make("PG472", f"`{path[1]}` counts classes, but `{name}` {held}", locate(path), help=help_)
    elif sampling.balance is not None and several_labels(record[name]):
        message = f"`balance` needs one class for each example, but an example can have several of `{name}`"
        help_ = f"use `repeat_factor: {{feature: {name}}}`, which goes by the rarest class of an example"
        yield make("PG472", message, locate(path), help=help_)


def _check_number(name: str, path: tuple[str, ...], locate: Locate, record: ElementType, what: str) -> Iterator[Diagnostic]:
    numbers = single_values(record, Numbers)
    if name not in record:
        yield _missing(name, path, locate, numbers)
    elif name not in numbers:
        help_ = f"numbers are {one_of(numbers)}" if numbers else "a table can have a column of `kind: tensor` or `kind: weight`"
        yield make("PG472", f"one number {what}, but `{name}` is not a single number", locate(path), help=help_)


def _missing(name: str, path: tuple[str, ...], locate: Locate, known: list[str]) -> Diagnostic:
    near = closest(name, known)
    help_ = f"did you mean `{near}`?" if near else f"there is {one_of(known, 'and')}" if known else "only tables have columns beside images"
    return make("PG217", f"unknown feature `{name}`, to sample by", locate(path), help=help_)
