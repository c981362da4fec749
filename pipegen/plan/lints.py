"""Legal but unwise: findings about a recipe as a whole. What concerns one step alone is the step's own `lints`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipegen.data.shares import rows_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.acting import anchor, runs_on
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.mixing import GROUP, MixingTransform
from pipegen.ops.families.policies import Policy
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.stage import StepRef
from pipegen.ops.traits import Family
from pipegen.plan.bucketed import measuring_features, sampled_features
from pipegen.plan.caches import CacheKind, wanted_kind
from pipegen.plan.outputs import received, settled
from pipegen.plan.recipe import recipe, step_path
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, ShardIndex, WindowShuffle
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform


_LEAST = 8
"""The least side of what can be a picture; a matrix of a camera is smaller."""
_LONGEST = 4
"""The most times that a side of a picture of unknown size is longer than the other."""


def arrays_left_behind(
    spec: PipelineSpec, locate: Locate, record: ElementType, image: str, steps: Sequence[StepRef]
) -> Iterator[Diagnostic]:
    """Yields a warning for each array that may be aligned with the image, where one of the steps moves that."""
    arrays = {name: shape for name in received(settled(spec)) if name in record and (shape := _dense(spec, name, record[name]))}
    type_, sizes = record[image], []
    for ref in (ref for ref in steps if ref.step.feature in (None, image)) if arrays else ():
        sizes.append((type_.height, type_.width) if not type_.encoded else (None, None))
        if _moves(ref.step, type_):
            break
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            return
    else:
        return
    sizes = sizes[1:] if len(sizes) > 1 and record[image].encoded else sizes  # the first one enters the decoder
    for name, shape in arrays.items():
        if any(_agree(shape, size) for size in sizes):
            message = f"`{ref.step.op}` moves `{image}`, and `{name}` of the shape {list(shape)} stays as it is"
            help_ = (
                "where each place of it belongs to a pixel, leave the step out: steps move images, masks, boxes and keypoints",
                "where it does not, say so: `# pipegen: ignore[PG628]`",
            )
            yield make("PG628", message, locate(ref.path, key=True), locate(_place(spec, name), "the array", key=True), help=help_)


def _place(spec: PipelineSpec, name: str) -> tuple[str | int, ...]:
    return ("source", spec.source.op, *spec.source.described().get(name, ()))


def _dense(spec: PipelineSpec, name: str, x: FeatureType) -> tuple[int, ...]:
    """The shape of a feature of numbers that no step acts on; nothing for any other, and for those of less than two dimensions."""
    kind = kind_of(x)
    if kind.aligns or kind.ragged or kind.labels or kind.weighs or kind.valid or x.beside is not None:
        return ()
    decoder = spec.source.decoders().get(name)
    try:
        shape = (decoder.infer(x) if decoder is not None and x.encoded else x).shape
    except OpError:
        return ()
    known = tuple(side for side in shape if side is not None)
    return known if len(known) == len(shape) >= 2 else ()


def _moves(step: Transform, x: FeatureType) -> bool:
    """Tells whether a step moves what an image shows, other than by resizing the whole."""
    if isinstance(step, Policy):
        return any(_moves(part.step, x) for part in step.parts())
    traits = step.traits(x)
    return traits.family is Family.GEOMETRIC or traits.crops or traits.displaces


def _agree(shape: tuple[int, ...], size: tuple[int | None, int | None]) -> bool:
    """Tells whether an array may be of an image of a size, whose sides may be unknown; the channels come last or first."""
    sides = {shape[:2], shape[-2:]}
    plausible = (own for own in sides if min(own) >= _LEAST and max(own) <= _LONGEST * min(own))
    return any(all(side in (None, own_side) for side, own_side in zip(size, own, strict=True)) for own in plausible)


_CACHE = ("runtime", "cache")
_HELP_ORDER = ("`resize` first, and crop or turn what comes out of it", "or leave `cache` out: the other splits are cached where they fit")
_HELP_VERSION = ("`resize` first", "or give the step a `version`, and another one whenever its code gives something else")
_HELP_SKIP = ("list damaged files in `errors: {exclude: FILE}`; `pipegen validate --data=all --write-exclude FILE` writes one",)
_HELP_SERVICE = ("leave `cache` out: the other splits are cached where they fit",)


def lint_recipe(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Every lint about the order and the use of steps; `record` is the type that enters the first of them."""
    yield from _augmented_evaluation(spec, locate)
    yield from _weak_shuffle(spec, locate)
    yield from _padded(spec, locate)
    yield from _cut_groups(spec, locate)
    yield from _unused(spec, locate, record)
    yield from _walk(spec, locate, record)


def _augmented_evaluation(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    for index, step in enumerate(spec.transforms):
        others = [s for s in spec.split_names() if s != "train" and runs_on(step, s)]
        if step.random and step.when is not None and others:
            message = f"`{step.op}` is random and also runs on `{'`, `'.join(others)}`, so what is measured there is not the data itself"
            help_ = "leave `when` out: random steps run on `train` alone"
            yield make("PG507", message, locate((*step_path(index, step), "when")), help=help_)


def _weak_shuffle(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    if "train" not in spec.split_names() or not spec.source.by_class():
        return
    if spec.shuffle == "none" or isinstance(spec.shuffle, WindowShuffle):
        kind = "is not shuffled" if spec.shuffle == "none" else "is shuffled in windows only"
        message = f"the training split is stored class by class and {kind}, so that a batch holds few classes"
        help_ = write("global", "value", "{} costs no memory here", shown="shuffle: global")
        yield make("PG505", message, locate(("shuffle",)), help=help_)


def _padded(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    padded = [s for s in spec.split_names() if s != "train" and spec.batch.remainder_for(s) == "pad"]
    if padded:
        said = "is padded with examples of weight 0, which plain `metrics=` count and `weighted_metrics=` do not"
        help_ = "compile the model with `weighted_metrics=`, and use `pipe.trim` on predictions"
        yield make("PG512", f"split `{'`, `'.join(padded)}` {said}", locate(("batch", "remainder")), help=help_)


def _cut_groups(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    """Warns where each step computes examples of the batches beside it, for the sake of the groups that it shares with them."""
    mixing = [step_path(i, t) for i, t in enumerate(spec.transforms) if isinstance(t, MixingTransform) and runs_on(t, "train")]
    index, count = (spec.runtime.shard.index, spec.runtime.shard.count) if isinstance(spec.runtime.shard, ShardIndex) else (0, 1)
    first, last = rows_of(spec.batch.size, index, count)
    own = last - first
    starts = {(step * spec.batch.size + first) % GROUP for step in range(GROUP)}
    rows = max(-(-(start + own) // GROUP) * GROUP for start in starts)
    if not mixing or "train" not in spec.split_names() or not own or rows == own:
        return []
    share = "" if count == 1 else " on this host"
    message = f"batches of {own}{share} begin inside the groups of {GROUP} that are mixed, so that up to {rows} examples are made for each"
    labels = (locate(("batch", "size")), locate(mixing[0], "mixed here", key=True))
    return [make("PG513", message, *labels, help=f"a multiple of {GROUP if count == 1 else f'{GROUP} for each host'} saves that")]


def _unused(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Warns of a feature that neither reaches the model nor says where something belongs or which class an example is of."""
    record, wanted = record.padded(), received(settled(spec))
    if any(name not in record for name in wanted):
        return  # which feature was meant there is not known
    used = {*wanted, *(anchor(record, name) for name in wanted), spec.source.class_feature()}
    used.update((*sampled_features(spec), *measuring_features(spec)))
    used |= {name for test in spec.tests for name in test.features()}
    for name, path in spec.source.described().items():
        if name not in used:
            form = kind_of(record[name]).output.format(name)
            message = f"the feature `{name}` is never used: the model does not receive it"
            if kind_of(record[name]).weighs and settled(spec).y is None:
                # Weights are those of a loss, which needs a target.
                target = next((other for other in record if kind_of(record[other]).holds_classes), None)
                form = f"output: {{y: {target}, sample_weight: {name}}}" if target is not None else ""
            help_: tuple[str, ...] = ("remove it",)
            if form:
                help_ = (write(form, "spec", "name it in the output, as in {}"), "or remove it")
            yield make("PG514", message, locate(("source", spec.source.op, *path), key=True), help=help_)


def _walk(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Follow the training recipe's types and look at neighbours."""
    splits = spec.split_names()
    split = "train" if "train" in splits else splits[0]
    name, type_ = next(((name, t) for name, t in record.items() if kind_of(t).levels), ("", None))
    if type_ is None:
        return
    arithmetic: StepRef | None = None
    resized: StepRef | None = None
    steps = _with_decoder(spec, split) if type_.encoded else recipe(spec, split).steps
    yield from _vain_cache(spec, locate, type_, steps)
    yield from arrays_left_behind(spec, locate, record, name, steps)
    for ref in (ref for ref in steps if ref.step.feature in (None, name)):
        traits, here = ref.step.traits(type_), locate(ref.path, key=True)
        if traits.family is Family.GEOMETRIC and not traits.moves_pixels_only and arithmetic is not None:
            message = f"`{ref.step.op}` comes after `{arithmetic.step.op}`, so it works on floats, which is slower and gives nothing"
            yield make("PG504", message, here, locate(arithmetic.path, "floats from here", key=True), help="put it before")
            arithmetic = None
        if traits.family is Family.POINTWISE:
            arithmetic = ref
        if traits.resizes:
            if resized is not None and resized.path != ref.path:
                message = f"`{ref.step.op}` resizes what `{resized.step.op}` has already resized, which blurs and costs twice"
                yield make("PG506", message, here, locate(resized.path, "resized here", key=True))
            resized = ref
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            break


def _with_decoder(spec: PipelineSpec, split: str) -> tuple[StepRef, ...]:
    from pipegen.ops.registry import default_decoder

    steps = recipe(spec, split).steps
    if steps and isinstance(steps[0].step, DecodeTransform):
        return steps
    return StepRef(default_decoder(), "decode", ("transforms",), 0, False), *steps


def _vain_cache(spec: PipelineSpec, locate: Locate, entry: FeatureType, steps: Sequence[StepRef]) -> list[Diagnostic]:
    """Warns of a cache that the spec asks for by name and that has nothing to hold of the training split, whose images enter as `entry`."""
    if spec.runtime.cache in ("auto", "none") or "train" not in spec.split_names():
        return []
    if spec.runtime.service is not None:
        message = "the training split is not cached: workers of the tf.data service make its batches anew in every epoch, and keep nothing"
        return [make("PG518", message, locate(_CACHE), locate(("runtime", "service"), "by these", key=True), help=_HELP_SERVICE)]
    if spec.errors.skip is not None:
        message = "the training split is not cached: `errors: skip` replaces damaged records, and a cache would keep a replacement for good"
        return [make("PG518", message, locate(_CACHE), locate(("errors", "decode"), "skipped here"), help=_HELP_SKIP)]
    early = _early(entry, steps, wanted_kind(spec.runtime))
    if early is None:
        return []
    why, label, help_ = ("is random", "drawn anew in every epoch", _HELP_ORDER)
    if not early.is_random:
        why, label, help_ = ("is Python code without a `version`", "may give something else in another process", _HELP_VERSION)
    message = f"the training split is not cached: `{early.step.op}` {why} and comes before images have a fixed size"
    return [make("PG518", message, locate(_CACHE), locate(early.path, label, key=True), help=help_)]


def _early(entry: FeatureType, steps: Sequence[StepRef], kind: CacheKind | None) -> StepRef | None:
    """The first step that no cache can stand behind, where it comes before the size of images is fixed."""
    type_ = entry
    for ref in steps:
        if not type_.encoded and type_.is_static:
            return None
        if ref.is_random or (kind is not None and kind.outlives and not ref.step.lasting()):
            return ref
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            return None
    return None
