"""The features and splits that a step acts on."""

from __future__ import annotations

from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.transform import Transform, When
from pipegen.types import ElementType


def anchor(type_: ElementType, feature: str) -> str:
    """Returns the feature that one is aligned with, if present, else itself."""
    of = type_[feature].of
    return of if of is not None and of in type_ else feature


def acted_on(step: Transform, type_: ElementType) -> tuple[str, ...]:
    """Lists the features that a step acts on, unless it names one.

    By default, features aligned with an image change only if a step moves pixels.
    """
    follows = isinstance(step, (DecodeTransform, MixingTransform))
    known = [(name, t) for name, t in type_.items() if step.acts_on(kind_of(t))]
    return tuple(name for name, t in known if follows or step.reaches(t) or anchor(type_, name) == name)


def runs_on(step: Transform, split: str) -> bool:
    """Checks that a step acts on a split: by default, random steps only on `train`, others on all."""
    when = step.when if step.when is not None else ("train" if step.random else "all")
    return named_by(when, split)


def named_by(when: When, split: str) -> bool:
    """Checks that a `when` names a split."""
    if isinstance(when, list):
        return split in when
    return when == "all" or (split == "train") == (when == "train")
