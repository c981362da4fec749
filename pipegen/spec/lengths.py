"""Features of unknown length: which of them a split pads, to what length, and how long an example is after its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipegen.errors import OpError
from pipegen.ops.families.combining import CombiningTransform, on_split
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.registry import default_decoder
from pipegen.ops.sampling_sections import LengthBuckets, Padding
from pipegen.ops.transform import LONG, Transform
from pipegen.spec.models import PipelineSpec, names, received
from pipegen.spec.source_map import KeyPath
from pipegen.types import ElementType, FeatureType, length_name, valid_name


def paddable(x: FeatureType) -> bool:
    """Tests if a feature may be padded along its first axis: it has a file or an entry for each example, and lies on no image."""
    kind = kind_of(x)
    return kind.storage == "encoded" and kind.pixels is None


def has_length(x: FeatureType) -> bool:
    """Tests if a feature may be padded, and is decoded."""
    return paddable(x) and not x.encoded and len(x.shape) > 0


def varies(x: FeatureType) -> bool:
    """Tests if the examples of a feature differ in their length along the first axis."""
    return has_length(x) and x.shape[0] is None and not x.uniform


def padding_of(spec: PipelineSpec, name: str) -> Padding | None:
    """The padding of a feature of unknown length, if the spec has one for it; to the longest bucket, where it has the length of buckets."""
    pad, buckets = spec.batch.pad, spec.batch.buckets
    found = pad.get(name) if isinstance(pad, dict) else pad
    in_bucket = name == bucketed_feature(spec) or (found is not None and found.to == "bucket")
    if isinstance(buckets, LengthBuckets) and in_bucket:
        return (found or Padding()).model_copy(update={"to": buckets.sizes[-1]})
    return found


def uncut(spec: PipelineSpec) -> Padding | dict[str, Padding] | None:
    """The section `batch.pad` with an error for a bucketed feature that is longer than its bucket, since its listed length is wrong."""
    pad, name = spec.batch.pad, bucketed_feature(spec)
    found = pad.get(name or "") if isinstance(pad, dict) else pad
    if found is None or found.longer != "cut" or name is None:
        return pad
    own = found.model_copy(update={"longer": "error"})
    return {**pad, name: own} if isinstance(pad, dict) else own


def is_padded(spec: PipelineSpec, name: str, of: str, x: FeatureType) -> bool:
    """Tests if a feature of type `x` before the batch, a view of the feature `of` of a record, is padded: its length varies, or the spec
    names `of`, or the length or mask of the view."""
    if varies(x):
        return True
    asked = not {length_name(name), valid_name(name)}.isdisjoint(received(spec.output))
    named = isinstance(spec.batch.pad, dict) and of in spec.batch.pad
    return has_length(x) and (named or (asked and padding_of(spec, of) is not None))


def padded_by(name: str, type_: ElementType) -> str | None:
    """The feature whose padding would make the feature `name`, if `type_` does not have it."""
    of = (own for own, x in type_.items() if name in (length_name(own), valid_name(own)) and paddable(x))
    return None if name in type_ else next(of, None)


def bucketed_feature(spec: PipelineSpec) -> str | None:
    """The feature whose length selects the bucket: the one that the spec names, else the first that a model receives and whose length
    varies on some split."""
    buckets = spec.batch.buckets
    if not isinstance(buckets, LengthBuckets):
        return None
    if buckets.feature is not None:
        return buckets.feature
    record = spec.source.infer()
    wanted = dict.fromkeys((*names(spec.output.x), *record))
    return next((name for name in wanted if name in record and any(varies_on(spec, split, name) for split in spec.split_names())), None)


def varies_on(spec: PipelineSpec, split: str, name: str) -> bool:
    """Tests if the examples of a split differ in the length of a feature, or of a view of it, where they are stacked."""
    record = spec.source.infer()
    return name in record and any(y is not None and varies(y) for y in types_after(spec, split, name, record[name]))


def types_after(spec: PipelineSpec, split: str, name: str, x: FeatureType, length: int | None = None) -> list[FeatureType | None]:
    """The types of each branch of views of a feature after the steps of a split, up to one that combines examples, where they are padded;
    or of an example whose stored form, once decoded, has this length; `None` if a step cannot run."""
    return [_type_after(spec, steps, split, name, x, length) for steps in _branches(spec)]


def _branches(spec: PipelineSpec) -> list[tuple[Transform, ...]]:
    """The steps of each branch of views."""
    branches = [view.transforms for view in spec.views.values()] if isinstance(spec.views, dict) else [()]
    return [(*spec.transforms, *steps) for steps in branches]


def padded_apart(spec: PipelineSpec, name: str, x: FeatureType) -> tuple[CombiningTransform, str, str] | None:
    """A step that combines examples, a split that pads a feature before it, and one without it that pads after later steps, which change
    the length: a number of elements is then not the same in both. `None` if that is nowhere so."""
    for steps in _branches(spec):
        first = {s: next((t for t in steps if isinstance(t, CombiningTransform) and on_split(t, s)), None) for s in spec.split_names()}
        mixing, plain = (next((s for s, step in first.items() if (step is None) is none), None) for none in (False, True))
        if mixing is None or plain is None or (step := first[mixing]) is None:
            continue
        before, after = (_type_after(spec, steps, mixing, name, x, LONG, whole=whole) for whole in (False, True))
        if before is not None and after is not None and before.shape != after.shape:
            return step, mixing, plain
    return None


def _type_after(
    spec: PipelineSpec, steps: Sequence[Transform], split: str, name: str, x: FeatureType, length: int | None, *, whole: bool = False
) -> FeatureType | None:
    """The type of a feature where its examples are padded, or after the `whole` of the steps; see `types_after`."""
    try:
        if x.encoded:
            written = (step for step in spec.transforms if isinstance(step, DecodeTransform) and step.feature in (None, name))
            x = (spec.source.decoders().get(name) or next(written, default_decoder())).infer(x)
        if not has_length(x):
            return None
        if length is not None and x.shape[0] is None:
            x = x.with_(shape=(length, *x.shape[1:]))
        for step in steps:
            if not whole and isinstance(step, CombiningTransform) and on_split(step, split):
                return x  # examples are padded before they are combined
            if isinstance(step, (DecodeTransform, CombiningTransform)) or step.feature not in (None, name) or not step.acts_on(kind_of(x)):
                continue
            for form in on_split(step, split):
                x = form.on(x).infer(x)
    except (OpError, NotImplementedError):
        return None
    return x


def length_after(spec: PipelineSpec, split: str, name: str, x: FeatureType, length: int | None) -> int | None:
    """The length of an example after the steps of a split, from its stored length (`None` if unknown); `None` if that does not tell, or
    views differ in it."""
    found = {None if y is None else y.shape[0] for y in types_after(spec, split, name, x, length)}
    return found.pop() if len(found) == 1 else None


def room(spec: PipelineSpec, record: ElementType, name: str, padding: Padding) -> int | None:
    """The length that a feature is padded to; `None` if that is of the longest example, and lengths are not listed yet, or a step changes
    them in a way that the length before does not tell."""
    if isinstance(padding.to, int):
        return padding.to
    found = [length_after(spec, split, name, record[name], record[name].longest) for split in spec.split_names()]
    known = [length for length in found if length is not None]
    return max(1, *known) if known and len(known) == len(found) else None


def with_longest(record: ElementType, known: ElementType | None) -> ElementType:
    """Adds the largest lengths of `known`, the type of a record as the data shows it, to the type of a record."""
    shown = {name: t.longest for name, t in known.items() if t.longest is not None} if known is not None else {}
    return record.replace(**{name: record[name].with_(longest=longest) for name, longest in shown.items() if name in record})


def longest_that_fits(spec: PipelineSpec, split: str, name: str, x: FeatureType, lengths: Sequence[int], room: int) -> int | None:
    """The number of stored lengths, rising, that the steps of a split leave no longer than `room`; `None` if they do not tell.

    A step must not make a longer example shorter than a shorter one: so the place is found by bisection. An example that is too short for
    a step counts as one that fits; it is an error once it is read."""
    low, high = 0, len(lengths)
    if high and length_after(spec, split, name, x, lengths[-1]) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        length = length_after(spec, split, name, x, lengths[middle])
        low, high = (middle + 1, high) if length is None or length <= room else (low, middle)
    return low


def pad_path(spec: PipelineSpec, name: str) -> KeyPath:
    """The key path of the padding of a feature."""
    if spec.batch.pad is None:
        return ("batch", "buckets")
    return ("batch", "pad", name) if isinstance(spec.batch.pad, dict) else ("batch", "pad")


def listed(spec: PipelineSpec) -> Iterator[str]:
    """Yields the features whose lengths have to be known before any example is read."""
    record = spec.source.infer()
    for name in record:
        padding = padding_of(spec, name)
        needs = padding is not None and (padding.to == "longest" or padding.longer == "drop" or name == bucketed_feature(spec))
        if needs and any(varies_on(spec, split, name) for split in spec.split_names()):
            yield name
