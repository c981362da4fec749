"""Features that live on another one: a mask or a depth map moves with its image, and images that live on none draw for themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipegen.ops.base import PICTURES
from pipegen.ops.families.decoder import DecodeTransform

if TYPE_CHECKING:
    from pipegen.ops.base import Transform
    from pipegen.plan.stages import StepRef
    from pipegen.types import ElementType


def anchor(type_: ElementType, feature: str) -> str:
    """The feature that one lives on; itself where it lives on none of those that are there."""
    of = type_[feature].of
    return of if of is not None and of in type_ else feature


def anchors(type_: ElementType) -> tuple[str, ...]:
    """The features that draw for themselves, in order."""
    return tuple(name for name, t in type_.items() if t.pictured and anchor(type_, name) == name)


def in_order(type_: ElementType) -> tuple[str, ...]:
    """Every feature, those that live on another one first: its file is still at hand then."""
    return tuple(sorted((name for name, _ in type_.items()), key=lambda name: anchor(type_, name) == name))


def acted_on(step: Transform, type_: ElementType) -> tuple[str, ...]:
    """The features that a step acts on, unless it names one.

    What lives on an image is moved with it, and keeps its values: steps that have no rule for masks, and so move nothing, leave it alone.
    """
    if isinstance(step, DecodeTransform):
        return tuple(name for name, t in type_.items() if t.pictured)
    moves = step.kinds >= PICTURES
    return tuple(name for name, t in type_.items() if t.decoded_kind in step.kinds and (moves or anchor(type_, name) == name))


def own_draws(ref: StepRef, number: int, width: int, name: str) -> StepRef:
    """The use of a step on an image that draws for itself.

    Args:
        ref: The use on the first such image.
        number: Which one it is, from 0.
        width: How many numbers the steps draw for each.
        name: Its name, which then keys the draws beside the step's.
    """
    if not number:
        return ref
    choice = ref.choice and replace(ref.choice, policy=own_draws(ref.choice.policy, number, width, name))
    return replace(ref, start=ref.start + number * width, id=f"{ref.id}@{name}", choice=choice)
