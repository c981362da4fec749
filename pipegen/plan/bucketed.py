"""The plan of a split whose batches have the sizes of buckets: one for each bucket, in which `size: bucket` is that size, joined to one.

So every step, pass and kernel sees images of one size, and a batch has the pixels that it would have if its bucket were the only one. What
all buckets have together is the index: it permutes the examples of each, and the batches of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import SpecError
from pipegen.ops.buckets import Columns, says_bucket
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.transform import Transform
from pipegen.plan.build import Builder
from pipegen.plan.mixed import Built
from pipegen.plan.nodes import Plan, Shard, Shuffle, for_buckets
from pipegen.plan.outputs import meant_feature
from pipegen.plan.recipe import step_path
from pipegen.spec.bucketing import bucketed, of_bucket
from pipegen.spec.joined import part_path
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, WindowShuffle
from pipegen.spec.source_map import KeyPath
from pipegen.types import ElementType, times


def build_plan(
    spec: PipelineSpec,
    split: str,
    locate: Locate,
    source: ElementType,
    record: ElementType | None = None,
    *,
    whole: bool = True,
    guessed: bool = False,
) -> Built:
    """Builds the plan of a split of a single source.

    Args:
        spec: The spec.
        split: The split.
        locate: Finds the places for findings.
        source: The type of a record, or of some features of it.
        record: The type of a whole record.
        whole: See `Builder.build`.
        guessed: Likewise.
    """
    if not bucketed(spec, split):
        builder = Builder(of_bucket(spec), split, locate, source, record)
        return Built(builder.build(whole=whole, guessed=guessed), builder.findings, builder.ordinary)
    sizes = spec.batch.buckets.sizes if spec.batch.buckets is not None else ()
    builders = [Builder(of_bucket(spec, number), split, locate, source, record) for number in range(len(sizes))]
    plans = [builder.build(whole=whole, guessed=guessed) for builder in builders]
    found, ordinary = _merged(builders, sizes)
    made = [_indexed(plan, sizes) for plan in plans if plan is not None]
    return Built(for_buckets(made) if len(made) == len(sizes) else None, found, ordinary)


def sound_plan(spec: PipelineSpec, split: str, locate: Locate, source: ElementType, record: ElementType | None = None) -> Plan:
    """Builds the same, which has to be right.

    Raises:
        SpecError: When there are errors.
    """
    built = build_plan(spec, split, locate, source, record)
    if built.plan is None:
        raise SpecError(built.findings)
    return built.plan


def _indexed(plan: Plan, sizes: tuple[tuple[int, int], ...]) -> Plan:
    """The plan of a bucket whose index knows the order and the share: only there can batches of several buckets be permuted."""
    shuffled = any(isinstance(n, Shuffle) for n in plan.nodes)
    shared = any(isinstance(n, Shard) for n in plan.nodes)
    index = replace(plan.index, order="global" if shuffled else "stored", shard=shared, buckets=sizes)
    return plan.with_nodes([index, *(n for n in plan.nodes[1:] if not isinstance(n, (Shuffle, Shard)))])


def _merged(builders: list[Builder], sizes: tuple[tuple[int, int], ...]) -> tuple[list[Diagnostic], set[Diagnostic]]:
    """Collects what was found in the plans of all buckets, once; what only some have says which."""
    first: dict[tuple[str, str], Diagnostic] = {}
    where: dict[tuple[str, str], list[int]] = {}
    ordinary: set[tuple[str, str]] = set()
    for number, builder in enumerate(builders):
        for finding in builder.findings:
            place = finding.code, finding.labels[0].path if finding.labels else ""
            first.setdefault(place, finding)
            if number not in where.setdefault(place, []):
                where[place].append(number)
            ordinary |= {place} if finding in builder.ordinary else set()
    for place, own in where.items():
        if len(own) < len(sizes):
            named = " and ".join(times(sizes[number]) for number in own)
            plural = "s" if len(own) > 1 else ""
            first[place] = replace(first[place], message=f"{first[place].message} (in the bucket{plural} of {named})")
    return [*first.values()], {first[place] for place in ordinary}


def _places(spec: PipelineSpec) -> Iterator[tuple[Transform, KeyPath]]:
    """The steps of a spec, behind the common ones those of views and of parts of a mix, with their places."""
    for i, step in enumerate(spec.transforms):
        yield step, step_path(i, step)
    for name, view in spec.views.items() if isinstance(spec.views, dict) else ():
        for i, step in enumerate(view.transforms):
            yield step, ("views", name, "transforms", i, step.op)
    for name, part in spec.source.mixed().items():
        for i, step in enumerate(part.transforms):
            yield step, (*part_path(name), "transforms", i, step.op)


def check_buckets(spec: PipelineSpec, locate: Locate, record: ElementType | None) -> Iterator[Diagnostic]:
    """Yields every finding about the section `batch.buckets` itself; `record` is the type of a record, `None` for a mix."""
    if spec.batch.buckets is None:
        for step, path in _places(spec):
            if says_bucket([step]):
                message = f"`{step.op}` has the size of a bucket, and `batch` has no `buckets`"
                sizes = "batch: {buckets: {sizes: [[224, 224], [192, 256], [256, 192]]}}"
                yield make("PG260", message, locate(path, key=True), help=write(sizes, "spec", "say which sizes there are, as {}"))
        return
    here = locate(("batch", "buckets"), key=True)
    if not any(bucketed(spec, split) for split in spec.split_names()):
        help_ = (write("- resize: {size: bucket, mode: crop}", "transforms", "let a step take them, as {}"), "or leave `buckets` out")
        yield make("PG260", "`batch` has `buckets`, and no step has the size of one", here, help=help_)
    yield from _beside(spec, locate)
    if record is not None:
        yield from _known_by(spec, locate, record)


def _beside(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Yields what cannot stand beside buckets, since an epoch has each example once, and a cache images of one size."""
    here = locate(("batch", "buckets"), "beside buckets", key=True)
    once = "with buckets, an epoch has each example of a split once, in batches of one bucket"
    if spec.source.mixed():
        yield make("PG261", f"{once}, and `mix` interleaves those of its parts", locate(("source",)), here, help="leave `buckets` out")
    for section in ("sampling", "order") if spec.samples else ():
        if getattr(spec, section) is not None and (section == "order" or (spec.sampling and spec.sampling.feature)):
            message = f"{once}, and `{section}` chooses others"
            yield make("PG261", message, locate((section,), key=True), here, help=f"leave `{section}` or `buckets` out")
    if isinstance(spec.shuffle, WindowShuffle):
        help_ = (write("global", "value", "use {}, which costs no memory", shown="shuffle: global"),)
        yield make("PG261", f"{once}, and windows of the stored order hold examples of several", locate(("shuffle",)), here, help=help_)
    if spec.runtime.cache not in ("auto", "none"):
        help_ = (write("auto", "value", "use {}", shown="cache: auto"),)
        message = "a cache holds images of one size, and with buckets there are several"
        yield make("PG261", message, locate(("runtime", "cache")), here, help=help_)


def _known_by(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Yields what is wrong with the features that say how large an image is."""
    buckets = spec.batch.buckets
    assert buckets is not None  # noqa: S101 - asked before
    at: KeyPath = ("batch", "buckets")
    images = [name for name, t in record.items() if kind_of(t).levels]
    if buckets.image is not None and buckets.image not in images:
        help_ = meant_feature(buckets.image, images)
        yield make("PG217", f"there is no image `{buckets.image}` whose size could decide", locate((*at, "image")), help=help_)
    for i, name in enumerate(buckets.measured.columns if isinstance(buckets.measured, Columns) else ()):
        place = locate((*at, "measured", "columns", i))
        numbers = [other for other, t in record.items() if kind_of(t).numbers and all(side == 1 for side in t.shape)]
        if name not in record:
            help_ = meant_feature(name, numbers) if numbers else "a column of a table can be one, as `kind: tensor`"
            yield make("PG217", f"there is no feature `{name}` that says how large an image is", place, help=help_)
        elif name not in numbers:
            message = f"the size of an image is one number, and `{name}` is none"
            yield make("PG262", message, place, help=f"numbers are {', '.join(f'`{n}`' for n in numbers)}" if numbers else "use `headers`")
