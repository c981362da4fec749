"""Says which features of an example a step acts on."""

from __future__ import annotations

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.transform import Transform, When
from pipegen.types import ElementType


def anchor(type_: ElementType, feature: str) -> str:
    """Returns the feature that one is aligned with; itself where it is aligned with none of those present."""
    of = type_[feature].of
    return of if of is not None and of in type_ else feature


def acted_on(step: Transform, type_: ElementType) -> tuple[str, ...]:
    """Returns the features that a step acts on, unless it names one.

    What is aligned with an image moves with it and keeps its values: steps that move nothing leave it alone, unless they say otherwise.
    """
    follows = isinstance(step, (DecodeTransform, MixingTransform))
    known = [(name, t) for name, t in type_.items() if step.acts_on(kind_of(t))]
    return tuple(name for name, t in known if follows or step.reaches(t) or anchor(type_, name) == name)


def runs_on(step: Transform, split: str) -> bool:
    """Returns whether a step acts on a split: random steps on `train` alone unless `when` says otherwise."""
    when = step.when if step.when is not None else ("train" if step.random else "all")
    return named_by(when, split)


def named_by(when: When, split: str) -> bool:
    """Returns whether a `when` names a split."""
    if isinstance(when, list):
        return split in when
    return when == "all" or (split == "train") == (when == "train")
