"""Stands in for a wrong step whose kind is known, so that the steps after it are judged all the same."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import cache
from typing import Any, ClassVar, cast

from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import BUCKET
from pipegen.ops.base import ColourTransform, GeometricTransform, PointwiseTransform, Transform
from pipegen.ops.buckets import sized
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.policies import Policy
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.registry import transforms
from pipegen.ops.testing.base import DataTest
from pipegen.ops.traits import IMAGE_224, Family, Traits
from pipegen.spec.expect import field_type, valid, validated, words_of
from pipegen.types import FeatureType

_FAMILIES: tuple[type[Transform], ...] = (GeometricTransform, ColourTransform, LookupTableTransform, NeighbourhoodTransform)
_MOST_WORDS = 24
_TYPO_OF_WORD = 0.75
_TYPO = 0.85
"""How alike a name is to the one that it is surely meant to be."""
_TELLING = ("when", "feature", "fill")
"""The arguments that decide which values leave a step of a family that keeps the shape: where it acts, and what it puts in."""


class UnknownStep(Transform):
    """A step of which only this is known: images keep their shape. The values are in doubt after it.

    Class attributes:
        keeps_size: Whether images keep their height and width.
        keeps_channels: Whether images keep their channels.
        keeps_values: Whether nothing but the shape is in doubt.
    """

    op = "unknown"
    keeps_size: ClassVar[bool] = True
    keeps_channels: ClassVar[bool] = True
    keeps_values: ClassVar[bool] = False

    def infer(self, x: FeatureType) -> FeatureType:
        return x

    def traits(self, x: FeatureType) -> Traits:
        """Of a family that keeps the shape, or of the one that may fix it, so that nothing is asked for that the step might do."""
        return Traits(Family.POLICY if self.keeps_size else Family.ELEMENT)


class ResizingStep(UnknownStep):
    """A step of which only this is known: images leave it with other sizes, and with the values that they had."""

    moves = True
    keeps_size = False
    keeps_values = True


class AnyStep(UnknownStep):
    """A step of which nothing is known but that features keep their kind."""

    moves = True
    keeps_size = False
    keeps_channels = False


def keeps_shape(step: type[Transform]) -> bool:
    """Returns whether a step's family alone says that images leave it with the shape that they entered with."""
    return _same_values(step) or issubclass(step, (PointwiseTransform, NeighbourhoodTransform, MixingTransform, FittedTransform, Policy))


def _same_values(step: type[Transform]) -> bool:
    """Returns whether a step's family alone says which values leave."""
    return step.infer in (f.infer for f in _FAMILIES)


def stand_ins(raw: Any) -> tuple[Transform, ...]:
    """Returns right steps in place of a wrong one, as plain values: one, or where any of a few words is right, one for each.

    What is wrong behind every one of them is wrong whatever is meant here.
    """
    name, given = next(iter(raw.items())) if isinstance(raw, dict) and len(raw) == 1 else (raw, {})
    given = {} if given is None else given
    cls = _class(name)
    if cls is None:
        return (AnyStep(when="all"),)
    if isinstance(given, dict):
        meant: list[Transform | None] = [_built(cls, given)] if name != cls.op else [*_each_word(cls, given)]
        if cls.only_sizes:
            meant = meant or [_built(cls, {key: value for key, value in given.items() if _fits(cls, key, value)})]
        found = tuple(step for step in meant if step is not None)
        if found:
            return found
    if cls.only_sizes:
        return (ResizingStep(when="all"),)
    if not keeps_shape(cls) or not cls.acts_on(kind_of(IMAGE_224)):
        return (AnyStep(when="all"),)
    if not _same_values(cls) or not isinstance(given, dict) or not _tells(cls, given):
        return (UnknownStep(when="all"),)
    return (_like(cls)(**{key: given[key] for key in ("when", "feature") if key in given}),)


def _class(name: Any) -> type[Transform] | None:
    """Returns the step of a name, or of the one that it is a slip of."""
    if not isinstance(name, str):
        return None
    near = name if name in transforms() else closest(name, transforms())
    if near is None or (near != name and (abs(len(near) - len(name)) > 1 or SequenceMatcher(None, name, near).ratio() < _TYPO)):
        return None
    return transforms()[near]


def _each_word(cls: type[Transform], given: dict[str, Any]) -> list[Transform]:
    """Returns the step with each word that its only wrong argument takes."""
    wrong = [key for key, value in given.items() if not _fits(cls, key, value)]
    if len(wrong) != 1 or wrong[0] not in cls.model_fields or wrong[0] in ("when", "id", "feature"):
        return []
    words = words_of(field_type(cls, wrong[0]))
    value = given[wrong[0]]
    near = [word for word in words if isinstance(value, str) and SequenceMatcher(None, value, word).ratio() >= _TYPO_OF_WORD]
    if len(words) > _MOST_WORDS or (BUCKET in words and not near):  # a size in pixels is meant
        return []
    built = [step for word in (near[:1] or words) if (step := _built(cls, {**given, wrong[0]: word})) is not None]
    # Who names a word wants it to do something: one that leaves the values alone is not meant where others do not.
    return [step for step in built if _moves_values(step)] or [*built]


def _moves_values(step: Transform) -> bool:
    try:
        return sized(step, (224, 224)).infer(IMAGE_224).interval != IMAGE_224.interval
    except OpError:
        return False


class AnyTest(DataTest):
    """Stands for a test that is wrong: nothing may be concluded from it."""

    op = "test"


def _fits(cls: type[Transform], key: str, value: Any) -> bool:
    return key in cls.model_fields and valid(field_type(cls, key), value)


def _built(cls: type[Transform], given: dict[str, Any]) -> Transform | None:
    return validated(cls, given) if valid(cls, given) else None


@cache
def _like(cls: type[Transform]) -> type[Transform]:
    """A step of the same name and family that needs no arguments."""
    family = next(f for f in _FAMILIES if issubclass(cls, f))
    same = {key: getattr(cls, key) for key in ("op", "random", "min_channels") if hasattr(cls, key)}
    return cast("type[Transform]", type("StandIn", (family,), {"__module__": __name__, **same}))


def _tells(cls: type[Transform], given: dict[str, Any]) -> bool:
    """Returns whether what is right among the arguments says which values leave; a key that is no argument might have been meant to."""
    for key, value in given.items():
        if key not in cls.model_fields:
            if closest(key, cls.model_fields) in (None, *_TELLING):
                return False
        elif key in _TELLING and (not isinstance(value, (str, list)) or not valid(field_type(cls, key), value)):
            return False
    return True
