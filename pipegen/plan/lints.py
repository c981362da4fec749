"""Lints about the steps as a whole: valid but unwise. Lints about a single step are the step's own `lints`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipegen.data.shares import rows_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, write
from pipegen.errors import OpError
from pipegen.ops.families.combining import GROUP, CombiningTransform, anchor, runs_on
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.kinds.base import ExampleClass, Levels, LossWeight, Overlay, PixelClass, Presence, having, kind_of
from pipegen.ops.stage import StepRef
from pipegen.ops.traits import Family
from pipegen.ops.transform import Policy, Transform
from pipegen.plan.bucketed_plans import deciding_features
from pipegen.plan.nodes import CacheKind, wanted_kind
from pipegen.plan.outputs import settled
from pipegen.plan.recipe import implicit_decode, recipe, step_path
from pipegen.spec.lengths import padded_by
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec, ShardIndex, WindowShuffle, received
from pipegen.types import ElementType, FeatureType

_LEAST = 8  # the least side of an array that may be a picture; a camera matrix is smaller
_LONGEST = 4  # the largest ratio of the sides of an array that may be a picture of unknown size


def arrays_left_behind(
    spec: PipelineSpec, locate: Locate, record: ElementType, image: str, steps: Sequence[StepRef]
) -> Iterator[Diagnostic]:
    """Warns of arrays that may be aligned with the image if a step moves the image."""
    arrays = {name: shape for name in received(settled(spec)) if name in record and (shape := _dense(spec, name, record[name]))}
    sizes = []
    for ref, type_ in _entering(record[image], (ref for ref in steps if ref.step.feature in (None, image))) if arrays else ():
        sizes.append((type_.height, type_.width) if not type_.encoded else (None, None))
        if _moves(ref.step, type_):
            break
    else:
        return
    sizes = sizes[1:] if len(sizes) > 1 and record[image].encoded else sizes  # the first one enters the decoder
    for name, shape in arrays.items():
        if any(_agree(shape, size) for size in sizes):
            message = f"`{ref.step.op}` moves `{image}`, but not `{name}`, an array of shape {list(shape)}"
            help_ = (
                "if its values belong to pixels, make it `kind: dense` without `shape`: it moves with its image, and vectors turn",
                "if not, silence this warning: `# pipegen: ignore[PG628]`",
            )
            array = locate(("source", spec.source.op, *spec.source.described().get(name, ())), "the array", key=True)
            yield make("PG628", message, locate(ref.path, key=True), array, help=help_)


def _entering(type_: FeatureType, steps: Iterable[StepRef]) -> Iterator[tuple[StepRef, FeatureType]]:
    """Yields steps, each with the type that enters it, up to one that cannot run on its type."""
    for ref in steps:
        yield ref, type_
        try:
            type_ = ref.step.infer(type_)
        except OpError:
            return


def _dense(spec: PipelineSpec, name: str, x: FeatureType) -> tuple[int, ...]:
    """The shape of an array of numbers that no step acts on, if it has two or more dimensions; else `()`."""
    kind = kind_of(x)
    if kind.values is not None or kind.ragged or kind.has(ExampleClass, LossWeight, Presence) or x.beside is not None:
        return ()
    decoder = spec.source.decoders().get(name)
    try:
        shape = (decoder.infer(x) if decoder is not None and x.encoded else x).shape
    except OpError:
        return ()
    known = tuple(side for side in shape if side is not None)
    return known if len(known) == len(shape) >= 2 else ()


def _moves(step: Transform, x: FeatureType) -> bool:
    """Tests if a step moves the content of an image, other than by a resize of the whole."""
    if isinstance(step, Policy):
        return any(_moves(part.step, x) for part in step.parts())
    traits = step.traits(x)
    return traits.family is Family.GEOMETRIC or traits.crops or traits.displaces


def _agree(shape: tuple[int, ...], size: tuple[int | None, int | None]) -> bool:
    """Tests if an array, channels last or first, may belong to an image of a size; sides may be unknown."""
    sides = {shape[:2], shape[-2:]}
    plausible = (own for own in sides if min(own) >= _LEAST and max(own) <= _LONGEST * min(own))
    return any(all(side in (None, own_side) for side, own_side in zip(size, own, strict=True)) for own in plausible)


_CACHE = ("runtime", "cache")


def lint_recipe(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Yields all lints about the order and use of steps; `record` is the type of a record."""
    yield from _of_splits(spec, locate)
    yield from _cut_groups(spec, locate)
    yield from _unused(spec, locate, record)
    yield from _walk(spec, locate, record)


def _of_splits(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Warns of augmented evaluation, of a weak shuffle of the training split, and of padded batches."""
    for index, step in enumerate(spec.transforms):
        others = [s for s in spec.split_names() if s != "train" and runs_on(step, s)]
        if step.random and step.when is not None and others:
            message = f"`{step.op}` is random and also runs on `{'`, `'.join(others)}`, so evaluation there is on augmented data"
            help_ = "leave `when` out: random steps run on `train` alone"
            yield make("PG507", message, locate((*step_path(index, step), "when")), help=help_)
    weak = spec.shuffle == "none" or isinstance(spec.shuffle, WindowShuffle)
    if weak and "train" in spec.split_names() and spec.source.by_class():
        kind = "is not shuffled" if spec.shuffle == "none" else "is shuffled in windows only"
        message = f"the training split is stored class by class and {kind}, so each batch holds few classes"
        help_ = write("global", "value", "{} costs no memory here", shown="shuffle: global")
        yield make("PG505", message, locate(("shuffle",)), help=help_)
    padded = [s for s in spec.split_names() if s != "train" and spec.batch.remainder_for(s) == "pad"]
    if padded:
        said = "is padded with examples of weight 0, which plain `metrics=` count and `weighted_metrics=` do not"
        help_ = "compile the model with `weighted_metrics=`, and use `pipe.trim` on predictions"
        yield make("PG512", f"split `{'`, `'.join(padded)}` {said}", locate(("batch", "remainder")), help=help_)


def _cut_groups(spec: PipelineSpec, locate: Locate) -> list[Diagnostic]:
    """Warns of batches that cut groups of combined examples: each batch computes the examples of whole groups."""
    combining = [step_path(i, t) for i, t in enumerate(spec.transforms) if isinstance(t, CombiningTransform) and runs_on(t, "train")]
    index, count = (spec.runtime.shard.index, spec.runtime.shard.count) if isinstance(spec.runtime.shard, ShardIndex) else (0, 1)
    first, last = rows_of(spec.batch.size, index, count)
    own = last - first
    starts = {(step * spec.batch.size + first) % GROUP for step in range(GROUP)}
    rows = max(-(-(start + own) // GROUP) * GROUP for start in starts)
    if not combining or "train" not in spec.split_names() or not own or rows == own:
        return []
    share = "" if count == 1 else " on this host"
    message = f"batches of {own}{share} cut groups of {GROUP} combined examples, so up to {rows} examples are computed for each batch"
    labels = (locate(("batch", "size")), locate(combining[0], "combined here", key=True))
    return [make("PG513", message, *labels, help=f"use a multiple of {GROUP if count == 1 else f'{GROUP} for each host'}")]


def _unused(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Warns of features that neither the model nor anything else uses."""
    record = record.padded()
    wanted = [padded_by(name, record) or name for name in received(settled(spec))]
    if any(name not in record for name in wanted):
        return  # a misspelt name may mean the feature
    used = {*wanted, *(anchor(record, name) for name in wanted), spec.source.class_feature(), *deciding_features(spec)}
    used |= {name for test in spec.tests for name in test.features()}
    for name, path in spec.source.described().items():
        if name not in used:
            kind, targets = kind_of(record[name]), having(record, ExampleClass, PixelClass)
            entry = f"y: {name}" if kind.has(Overlay, ExampleClass) or kind.ragged else f"x: [image, {name}]"
            if kind.has(LossWeight):  # of use only with a target
                beside = "" if settled(spec).y is not None else next((f"y: {target}, " for target in targets), None)
                entry = f"{beside}sample_weight: {name}" if beside is not None else ""
            help_ = (write(f"output: {{{entry}}}", "spec", "name it in the output, as in {}"), "or remove it") if entry else "remove it"
            message = f"the feature `{name}` is never used: the model does not receive it"
            yield make("PG514", message, locate(("source", spec.source.op, *path), key=True), help=help_)


def _walk(spec: PipelineSpec, locate: Locate, record: ElementType) -> Iterator[Diagnostic]:
    """Infers the types along the training steps and lints neighbouring steps."""
    splits = spec.split_names()
    split = "train" if "train" in splits else splits[0]
    name, entry = next(((name, record[name]) for name in having(record, Levels)), ("", None))
    if entry is None:
        return
    arithmetic: StepRef | None = None
    resized: StepRef | None = None
    steps = recipe(spec, split).steps
    if entry.encoded and not (steps and isinstance(steps[0].step, DecodeTransform)):
        steps = implicit_decode(), *steps
    yield from _vain_cache(spec, locate, entry, steps)
    yield from arrays_left_behind(spec, locate, record, name, steps)
    for ref, type_ in _entering(entry, (ref for ref in steps if ref.step.feature in (None, name))):
        traits, here = ref.step.traits(type_), locate(ref.path, key=True)
        if ref.step.draw == "group" and not ref.is_random:
            yield make("PG515", f"`{ref.step.op}` draws no numbers that a group could share", here, help="leave `draw` out")
        if traits.family is Family.GEOMETRIC and not traits.moves_pixels_only and arithmetic is not None:
            message = f"`{ref.step.op}` comes after `{arithmetic.step.op}`, so it works on floats, which is slower and no better"
            help_ = f"move `{ref.step.op}` before `{arithmetic.step.op}`"
            yield make("PG504", message, here, locate(arithmetic.path, "floats from here", key=True), help=help_)
            arithmetic = None
        if traits.family is Family.POINTWISE:
            arithmetic = ref
        if traits.resizes and not ref.conditional:  # else others may need it, or have the size already
            if resized is not None and resized.path != ref.path:
                message = f"`{ref.step.op}` resizes the output of `{resized.step.op}`, which blurs and costs twice"
                yield make("PG506", message, here, locate(resized.path, "resized here", key=True))
            resized = ref


def _vain_cache(spec: PipelineSpec, locate: Locate, entry: FeatureType, steps: Sequence[StepRef]) -> list[Diagnostic]:
    """Warns of an explicit cache that cannot hold the training split; `entry` is the type of a stored image."""
    if spec.runtime.cache in ("auto", "none") or "train" not in spec.split_names():
        return []
    if spec.runtime.service is not None:
        message = "the training split is not cached: workers of the tf.data service compute its batches again in every epoch"
        labels = locate(_CACHE), locate(("runtime", "service"), "by these", key=True)
        return [make("PG518", message, *labels, help="leave `cache` out: the other splits are cached if they fit")]
    if spec.errors.skip is not None:
        message = "the training split is not cached: `errors: skip` replaces damaged records, and a cache would keep the replacements"
        help_ = "list damaged files in `errors: {exclude: FILE}`; `pipegen validate --data=all --write-exclude FILE` writes one"
        return [make("PG518", message, locate(_CACHE), locate(("errors", "decode"), "skipped here"), help=help_)]
    early = _early(entry, steps, wanted_kind(spec.runtime))
    if early is None:
        return []
    why, label = "is random", "drawn anew in every epoch"
    fixes = "`resize` first, then crop or rotate", "or leave `cache` out: the other splits are cached if they fit"
    if not early.is_random:
        why, label = "is Python code without a `version`", "may give other results in another process"
        fixes = "`resize` first", "or give the step a `version`, to be changed whenever its code gives other results"
    message = f"the training split is not cached: `{early.step.op}` {why} and comes before images have a fixed size"
    return [make("PG518", message, locate(_CACHE), locate(early.path, label, key=True), help=fixes)]


def _early(entry: FeatureType, steps: Sequence[StepRef], kind: CacheKind | None) -> StepRef | None:
    """The first step that cannot be cached, if it comes before the size of images is fixed."""
    for ref, type_ in _entering(entry, steps):
        if not type_.encoded and type_.is_static:
            return None
        if ref.is_random or (kind is not None and kind.outlives and not ref.step.lasting()):
            return ref
    return None
