"""Checks the sections that say which examples an epoch has, against the splits, the shuffle and the features of a spec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.diagnostics.suggest import closest
from pipegen.ops.buckets import Columns
from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.words import one_of
from pipegen.types import ElementType, FeatureType


def sampled_features(spec: PipelineSpec) -> tuple[str, ...]:
    """Returns the features that say which examples an epoch has."""
    sampling = (spec.sampling.feature,) if spec.sampling is not None else ()
    ordered = (spec.order.by,) if spec.order is not None else ()
    return tuple(name for name in (*sampling, *ordered) if name is not None)


def measuring_features(spec: PipelineSpec) -> tuple[str, ...]:
    """Returns the features that say how large images are, so that these have a bucket."""
    buckets = spec.batch.buckets
    return buckets.measured.columns if buckets is not None and isinstance(buckets.measured, Columns) else ()


def check_sampling(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Every finding about `sampling` and `order` that needs no data; `record` is the type of a record."""
    sections = [name for name in ("sampling", "order") if getattr(spec, name) is not None]
    if not sections:
        return
    if "train" not in spec.split_names():
        message = f"`{sections[0]}` says which examples of split `train` an epoch has, and there is no split `train`"
        yield make("PG474", message, locate((sections[0],), key=True), help="evaluation sees each example once: leave it out")
        return
    yield from _conflicts(spec, locate)
    subset = spec.sampling.subset if spec.sampling is not None else None
    if subset is not None and subset.where is not None and not spec.source.has_columns():
        message = f"`where` compares columns of a table, and `{spec.source.op}` is none"
        yield make("PG472", message, locate(("sampling", "subset", "where")), help="with files, `errors: {exclude: FILE}` leaves some out")
    if spec.sampling is not None and spec.sampling.feature is not None:
        yield from _sampled(spec, locate, record)
    if spec.order is not None:
        yield from _number(spec.order.by, ("order", "by"), locate, record, "sorts examples")


def _conflicts(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    if not spec.samples:
        return
    what = "order" if spec.order is not None else "sampling"
    if spec.shuffle != "global":
        message = f"`{what}` takes examples from the whole split, and `shuffle` keeps them near where they are stored"
        help_ = write("global", "value", "use {}, which costs no memory", shown="shuffle: global")
        yield make("PG470", message, locate(("shuffle",)), locate((what,), "from the whole split", key=True), help=help_)
    if spec.order is not None and spec.sampling is not None and spec.sampling.feature is not None:
        rule = spec.sampling.feature_path()[0]
        message = f"`order` and `{rule}` both say which examples an epoch has"
        labels = (locate(("order",), key=True), locate(("sampling", rule), "says so too", key=True))
        yield make("PG471", message, *labels, help="leave one of them out; `subset` may stand beside `order`")


def _sampled(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    sampling = spec.sampling
    assert sampling is not None  # noqa: S101 - asked before
    name, path = str(sampling.feature), ("sampling", *sampling.feature_path())
    if sampling.weights is not None:
        yield from _number(name, path, locate, record, "says how often an example is seen")
    elif name not in record:
        yield _missing(name, path, locate, record, lambda t: kind_of(t).labels)
    elif not kind_of(record[name]).labels:
        labels = [other for other, t in record.items() if kind_of(t).labels]
        help_ = f"labels are {one_of(labels)}" if labels else "the source has no label; `weights: FEATURE` goes by a number"
        yield make("PG472", f"`{path[1]}` counts classes, and `{name}` is no label", locate(path), help=help_)
    elif sampling.balance is not None and several_labels(record[name]):
        message = f"`balance` gives each example to one class, and an example can have several of `{name}`"
        help_ = f"`repeat_factor: {{feature: {name}}}` goes by the rarest class of an example"
        yield make("PG472", message, locate(path), help=help_)


def _number(name: str, path: tuple[str, ...], locate: Locate, record: ElementType, what: str) -> Iterator[Diagnostic]:
    if name not in record:
        yield _missing(name, path, locate, record, _is_number)
    elif not _is_number(record[name]):
        numbers = [other for other, t in record.items() if _is_number(t)]
        help_ = f"numbers are {one_of(numbers)}" if numbers else "a table can have a column of `kind: tensor` or `kind: weight`"
        yield make("PG472", f"one number {what}, and `{name}` is none", locate(path), help=help_)


def _is_number(t: FeatureType) -> bool:
    return kind_of(t).numbers and all(d is not None for d in t.shape) and prod(d or 0 for d in t.shape) == 1


def _missing(name: str, path: tuple[str, ...], locate: Locate, record: ElementType, fits: Callable[[FeatureType], bool]) -> Diagnostic:
    known = [other for other, t in record.items() if fits(t)]
    near = closest(name, known)
    help_ = (
        f"did you mean `{near}`?" if near else f"there is {one_of(known, 'and')}" if known else "only tables have columns beside the images"
    )
    return make("PG217", f"there is no feature `{name}` to sample by", locate(path), help=help_)
