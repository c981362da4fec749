"""Warns of arrays, such as a flow or a depth, that may belong to the pixels of an image and stay where they are as a step moves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.errors import OpError
from pipegen.ops.families.policies import Policy
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.traits import Family
from pipegen.plan.outputs import received, settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.ops.base import Transform
    from pipegen.plan.stages import StepRef
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType, FeatureType

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
