"""Planning for features of unknown length: the stages that pad them, and checks of the section `batch.pad`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.lengths import MarkLength, MeasureLength, PadLength
from pipegen.ops.kinds.base import Numbers, Samples, kind_of, single_values
from pipegen.ops.sampling_sections import LengthBuckets, LengthColumn, Padding
from pipegen.ops.stage import Stage
from pipegen.plan import timeline_planning as timeline
from pipegen.plan.assembly import Findings
from pipegen.plan.outputs import meant_feature
from pipegen.spec import lengths
from pipegen.spec.expect import one_of
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.source_map import KeyPath
from pipegen.types import INTEGER_RANGES, ElementType, FeatureType, Interval, length_name, times, valid_name

Emitted = tuple[Stage, dict[str, FeatureType]]  # a stage, with the types of the features that it changes


def padded(
    spec: PipelineSpec, record: ElementType, type_: ElementType, home: Callable[[str], str], findings: Findings
) -> Iterator[Emitted]:
    """Yields the stages that pad features, whose types before the batch are `type_`. Features that cannot be padded are findings, and
    poisoned. `home` returns the feature of a record that a feature is a view of."""
    for name, x in type_.items():
        of = home(name)
        if name in findings.poisoned or not lengths.is_padded(spec, name, of, x):
            continue
        padding = lengths.padding_of(spec, of)
        wrong = (
            unpadded(spec, record, of, x, findings.locate)
            if padding is None
            else _unfit(name, x, padding, lengths.pad_path(spec, of), findings.locate)
        )
        if wrong is not None or padding is None:
            findings.found += [wrong] if wrong is not None else []
            findings.poisoned.add(name)
            continue
        to = lengths.room(spec, record, of, padding)
        length, mask, interval = length_name(name), valid_name(name), Interval(padding.value, padding.value)
        yield MeasureLength(length, name, to), {length: FeatureType("length", "int32", ())}
        interval = interval if x.interval is None else x.interval.union(interval)
        y = x.with_(
            shape=(to, *x.shape[1:]), uniform=x.uniform or to is None, interval=None if x.interval is None else interval, longest=None
        )
        listed = of == lengths.bucketed_feature(spec)
        if padding.longer == "cut":
            yield from ((stage, {}) for stage in timeline.cut(type_, name, to))
        yield PadLength(name, to, padding.value, padding.longer, listed), {name: y}
        yield MarkLength(mask, length, to), {mask: FeatureType("valid", "bool", (to,), uniform=to is None)}


def unpadded(spec: PipelineSpec, record: ElementType, name: str, x: FeatureType, locate: Locate) -> Diagnostic:
    """The error of a feature of unknown length that is to be stacked, and that `batch.pad` does not pad."""
    elsewhere = {lengths.length_after(spec, split, name, record[name], None) for split in spec.split_names()} - {None}
    pad, to = "{to: longest}", "pad them to the longest one: {}"
    if len(elsewhere) == 1:
        pad, to = f"{{to: {elsewhere.pop()}, longer: cut}}", "pad or cut them to the length of the other splits: {}"
    pad = pad if spec.batch.pad is None else f"{{{name}: {pad}}}"
    message = f"`{name}` has no fixed length ({times(x.shape)}), so its examples cannot be stacked into a batch"
    help_: tuple[str, ...] = (
        write(f"batch: {{pad: {pad}}}", "spec", to),
        "or to a fixed length, `to: 16000`, where `longer: cut` shortens longer ones and `longer: drop` leaves them out",
    )
    if kind_of(x).has(Samples) and len(x.shape) == 2:
        step = "or add {} or another step that fixes the length, before those that make spectra"
        help_ = (*help_, write("- crop_or_pad: {seconds: 1}", "transforms", step))
    if late := _fixed_late(spec, x):
        help_ = (late,)
    path = spec.source.described().get(name)
    return make("PG263", message, locate(("batch",) if path is None else ("source", spec.source.op, *path), key=True), help=help_)


def _fixed_late(spec: PipelineSpec, x: FeatureType) -> str | None:
    """The help for features of type `x` whose length a step fixes, but only after one that combines examples; `None` if no step does."""
    combining = next((i for i, step in enumerate(spec.transforms) if isinstance(step, CombiningTransform)), len(spec.transforms))
    for step in spec.transforms[combining + 1 :]:
        with suppress(OpError):
            if step.acts_on(kind_of(x)) and step.on(x).infer(x).shape[0] is not None:
                return f"move `{step.op}` before `{spec.transforms[combining].op}`, which needs examples of one length"
    return None


def _unfit(name: str, x: FeatureType, padding: Padding, at: KeyPath, locate: Locate) -> Diagnostic | None:
    """The error of a padding that does not fit its feature, if any."""
    if None in x.shape[1:]:
        message = f"`{name}` is {times(x.shape)}: padding goes along the first axis, and another one varies, too"
        return make("PG264", message, locate(at, key=True), help="use a step that fixes the other sides")
    whole = x.dtype in INTEGER_RANGES or x.dtype.startswith("int")
    limits = INTEGER_RANGES.get(x.dtype, Interval(-(2.0**31), 2.0**31 - 1))
    value = padding.value
    if whole and (value != int(value) or not limits.low <= value <= limits.high):
        message = f"`{name}` holds {x.dtype}, which cannot be padded with {value:g}"
        return make("PG264", message, locate((*at, "value")), help="use a whole number that it can hold, such as 0")
    if x.shape[0] is not None and isinstance(padding.to, int) and x.shape[0] > padding.to and padding.longer != "cut":
        message = f"every example of `{name}` has a length of {x.shape[0]}, but the room is {padding.to}"
        return make("PG264", message, locate((*at, "to")), help=write(str(x.shape[0]), "value", "make it at least {}"))
    return None


def check_padding(spec: PipelineSpec, locate: Locate, record: ElementType | None) -> Iterator[Diagnostic]:
    """Checks the section `batch.pad`; `record` is the type of a record, `None` for a mix."""
    pad = spec.batch.pad
    if record is None:
        if pad is not None:
            yield from _of_mix(spec, locate)
        return
    able = [name for name in record if any(any(lengths.types_after(spec, split, name, record[name])) for split in spec.split_names())]
    varying = [name for name in able if any(lengths.varies_on(spec, split, name) for split in spec.split_names())]
    for name in pad if isinstance(pad, dict) else ():
        at = locate(("batch", "pad", name), key=True)
        if name not in record:
            yield make("PG217", f"unknown feature `{name}`, to be padded", at, help=meant_feature(name, record))
        elif name not in able:
            help_ = f"features with a length are {one_of(able, 'and')}" if able else "leave `pad` out"
            yield make("PG264", f"`{name}` cannot be padded: it has no length of its own", at, help=help_)
    padded_ = able if isinstance(pad, dict) else varying
    if isinstance(pad, Padding) and not padded_:
        message = "`batch` has `pad`, but no feature has an unknown length"
        yield make(
            "PG264", message, locate(("batch", "pad"), key=True), help="leave `pad` out, or name the feature to pad: `pad: {NAME: {to: N}}`"
        )
    for name in padded_:
        yield from _check_feature(spec, name, record, locate)


def _check_feature(spec: PipelineSpec, name: str, record: ElementType, locate: Locate) -> Iterator[Diagnostic]:
    """Checks the padding of a feature that has a length, if there is one for it."""
    padding, pad, path = lengths.padding_of(spec, name), spec.batch.pad, lengths.pad_path(spec, name)
    if padding is None:
        return
    yield from _reserved(spec, name, record, locate)
    if (apart := lengths.padded_apart(spec, name, record[name])) is not None:
        step, mixing, plain = apart
        message = f"`{name}` is padded before `{step.op}` in `{mixing}`, and after all steps in `{plain}`, where its length is another one"
        yield make("PG264", message, locate(path, key=True), help=f"fix its length before `{step.op}`, such as by `crop_or_pad`")
    if isinstance(padding.measured, LengthColumn):
        yield from _check_column(padding.measured.column, (*path, "measured", "column"), locate, record)
    given = pad.get(name) if isinstance(pad, dict) else pad
    lengths_of_buckets = isinstance(spec.batch.buckets, LengthBuckets)
    if given is not None and given.to == "bucket" and not lengths_of_buckets:
        message = f"`{name}` is padded to the length of a bucket, but `batch` has no `buckets` of lengths"
        help_ = write("batch: {buckets: {by: length, sizes: [100, 200, 400]}}", "spec", "list them, for example {}")
        yield make("PG264", message, locate((*path, "to")), help=help_)
    if given is not None and isinstance(given.to, int) and lengths_of_buckets and name == lengths.bucketed_feature(spec):
        message = f"`{name}` is padded to the length of its bucket, and `to` sets another one"
        at = locate((*path, "to"), key=True)
        yield make("PG264", message, at, locate(("batch", "buckets", "sizes")), help="leave `to` out, or `buckets`")


def _of_mix(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Finds paddings of a mix that need lengths, which are listed for a single source only."""
    paddings = spec.batch.pad.items() if isinstance(spec.batch.pad, dict) else [("", spec.batch.pad)]
    for name, padding in paddings:
        at: KeyPath = ("batch", "pad", name) if name else ("batch", "pad")
        if padding is not None and (padding.to == "longest" or padding.longer == "drop"):
            key = "to" if padding.to == "longest" else "longer"
            message = f"`{key}: {getattr(padding, key)}` needs the length of every example, and a `mix` does not list them"
            help_ = "write the length: `to: 16000`" if key == "to" else write("cut", "value", "use {}, or `error`")
            yield make("PG265", message, locate((*at, key) if key in padding.model_fields_set else at, key=True), help=help_)


def _reserved(spec: PipelineSpec, name: str, record: ElementType, locate: Locate) -> Iterator[Diagnostic]:
    for made in (length_name(name), valid_name(name)):
        if made in record:
            message = f"`{made}` is a feature of the source, but the padding of `{name}` makes one of that name"
            path = spec.source.described().get(made)
            at = ("source", spec.source.op, *path) if path is not None else ("source",)
            yield make("PG264", message, locate(at, key=True), help=f"rename the feature, such as to `stored_{made}`")


def _check_column(column: str, at: KeyPath, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Checks the feature that holds lengths."""
    numbers = single_values(record, Numbers)
    if column not in record:
        near = closest(column, numbers)
        help_ = f"did you mean `{near}`?" if near else "describe the column as a feature of `kind: tensor`"
        yield make("PG217", f"unknown feature `{column}`, which would hold lengths", locate(at), help=help_)
    elif column not in numbers:
        message = f"`{column}` is not a single number, so it cannot be a length"
        yield make(
            "PG265",
            message,
            locate(at),
            help=f"numbers are {one_of(numbers, 'and')}" if numbers else "leave `measured` out: headers tell lengths, too",
        )
