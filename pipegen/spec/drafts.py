"""The valid part of a spec with errors, in which placeholders stand for invalid steps, so that the rest can still be checked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache
from itertools import product
from math import prod
from typing import Any, ClassVar, cast

from pipegen.diagnostics.diagnostic import Diagnostics, Severity
from pipegen.diagnostics.suggest import closest
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.arguments.geometry import BUCKET
from pipegen.ops.data_test import DataTest
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.kinds.base import kind_of
from pipegen.ops.registry import sources, transforms
from pipegen.ops.sampling_sections import sized
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.step_bases import ColourTransform, GeometricTransform, PointwiseTransform
from pipegen.ops.traits import IMAGE_224, Family, Traits
from pipegen.ops.transform import Policy, Transform
from pipegen.spec.expect import field_type, valid, validated, words_of
from pipegen.spec.models import Output, PipelineSpec
from pipegen.types import FeatureType

_PLACE = re.compile(r"([^.\[]+)(?:\[(\d+)\])?")
_MOST_DRAFTS = 24
_HOPELESS = {"pipegen", "extends"}  # sections after whose errors nothing else can be checked


@dataclass(frozen=True)
class Draft:
    """The valid part of a spec with errors."""

    spec: PipelineSpec  # the valid sections, steps and tests, with placeholders for invalid steps; defaults elsewhere
    broken: frozenset[str]  # the sections with errors, whose defaults mean nothing
    others: tuple[PipelineSpec, ...] = ()  # the same with other placeholders: an error in all of them is one whatever was meant
    guessed: bool = False  # whether the features of the source are unknown


def draft(raw: dict[str, Any], values: dict[str, Any], steps: list[Any], found: Diagnostics) -> Draft | None:
    """Makes a draft of the valid parts; `None` if an error makes all others doubtful.

    `values` are the sections by name, `None` for invalid ones, as in `steps`; `found` are the findings so far.
    """
    broken = {name for name, value in values.items() if value is None and name not in ("name", "description")}
    wrong = {i for i, step in enumerate(steps) if step is None}
    if wrong:
        broken.add("transforms")
    listed = True
    for finding in found.items:
        if finding.severity is not Severity.ERROR:
            continue
        place = _PLACE.match(finding.labels[0].path) if finding.labels else None
        if place is None:
            return None
        section = closest(place[1], PipelineSpec.model_fields) or "transforms"
        if section == "transforms":
            listed = listed and place[1] == section and place[2] is not None
            wrong |= {int(place[2])} if place[2] else set()
        broken.add(section)
    if broken & _HOPELESS:
        return None
    source = values.get("source") or _stand_in(raw.get("source"))
    guessed = source is None
    if guessed:
        source = sources()["image_folder"].model_construct()
        broken |= {"source", "output"}
    kept = {name: value for name, value in values.items() if value is not None and name not in broken}
    kept |= {"pipegen": 1, "source": source, "tests": values.get("tests", ())}
    if "splits" in kept and source is not None:
        kept["splits"] = kept["splits"].by_default(source.split_method())
    if source is not None and "output" not in broken:
        kept["output"] = kept.get("output", Output()).by_default(source.infer())
    several = _steps(raw["transforms"], steps, wrong) if listed and steps else [()]
    first, *others = (PipelineSpec.model_construct(**{**kept, "transforms": chosen}) for chosen in several)
    return Draft(first, frozenset(broken), tuple(others), guessed)


def _steps(raw: list[Any], steps: list[Any], wrong: set[int]) -> list[tuple[Transform, ...]]:
    """All combinations of steps that may be meant by invalid ones; if too many, these become unknown steps."""
    meant = [stand_ins(raw[i]) if i in wrong else (step,) for i, step in enumerate(steps)]
    for i, several in enumerate(meant):
        if len(several) > 1 and prod(map(len, meant)) > _MOST_DRAFTS:
            meant[i] = (UnknownStep(when="all") if keeps_shape(type(several[0])) else AnyStep(when="all"),)
    return list(product(*meant))


def _stand_in(source: Any) -> Source | None:
    """A source of the kind that is meant, if its features do not depend on its invalid arguments."""
    name, given = next(iter(source.items())) if isinstance(source, dict) and len(source) == 1 else (source, None)
    near = closest(name, sources()) if isinstance(name, str) else None
    cls = sources().get(near) if near is not None else None
    if cls is None or hasattr(cls, "from_yaml") or "parts" in cls.model_fields:
        return None
    from pipegen.ops.sources.tables.selecting import JoiningSource

    adds = issubclass(cls, JoiningSource) and not (isinstance(given, dict) and "features" in given)  # and here adds none
    return cls.model_construct(**cls.assumed) if adds or "features" not in cls.model_fields else None


_FAMILIES: tuple[type[Transform], ...] = (GeometricTransform, ColourTransform, LookupTableTransform, NeighbourhoodTransform)
_MOST_WORDS = 24
_TYPO_OF_WORD = 0.75
_TYPO = 0.85  # the least similarity of a name to the one that it surely means
_TELLING = ("when", "feature", "fill")  # the arguments that decide the values after a step of a family that keeps the shape


class UnknownStep(Transform):
    """A placeholder of an invalid step: images keep their shape; their values are unknown after it."""

    op = "unknown"
    keeps_size: ClassVar[bool] = True  # whether images keep their height and width
    keeps_channels: ClassVar[bool] = True  # whether images keep their channels
    keeps_values: ClassVar[bool] = False  # whether only the shape is unknown

    def infer(self, x: FeatureType) -> FeatureType:
        return x

    def traits(self, x: FeatureType) -> Traits:
        """The traits of a family that keeps the shape, or of one that may fix it, so that no fixed size is asked for."""
        return Traits(Family.POLICY if self.keeps_size else Family.ELEMENT)


class ResizingStep(UnknownStep):
    """A placeholder of a step that changes sizes and keeps values."""

    moves = True
    keeps_size = False
    keeps_values = True


class AnyStep(UnknownStep):
    """A placeholder of a step after which only the kinds of features are known."""

    moves = True
    keeps_size = False
    keeps_channels = False


def keeps_shape(step: type[Transform]) -> bool:
    """Tests if all steps of the family keep the shape of images."""
    return _same_values(step) or issubclass(step, (PointwiseTransform, NeighbourhoodTransform, CombiningTransform, FittedTransform, Policy))


def _same_values(step: type[Transform]) -> bool:
    """Tests if the family decides the values after a step."""
    return step.infer in (f.infer for f in _FAMILIES)


def stand_ins(raw: Any) -> tuple[Transform, ...]:
    """Valid steps that an invalid one, as plain values, may mean: one, or one for each word that fits.

    An error after all of them is an error whatever is meant.
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
    """The step of a name, or of the one that it misspells."""
    if not isinstance(name, str):
        return None
    near = closest(name, transforms())
    if near is None or (near != name and (abs(len(near) - len(name)) > 1 or SequenceMatcher(None, name, near).ratio() < _TYPO)):
        return None
    return transforms()[near]


def _each_word(cls: type[Transform], given: dict[str, Any]) -> list[Transform]:
    """The step with each possible word for its only invalid argument."""
    wrong = [key for key, value in given.items() if not _fits(cls, key, value)]
    if len(wrong) != 1 or wrong[0] not in cls.model_fields or wrong[0] in ("when", "id", "feature"):
        return []
    words = words_of(field_type(cls, wrong[0]))
    value = given[wrong[0]]
    near = [word for word in words if isinstance(value, str) and SequenceMatcher(None, value, word).ratio() >= _TYPO_OF_WORD]
    if len(words) > _MOST_WORDS or (BUCKET in words and not near):  # a size in pixels is meant
        return []
    built = [step for word in (near[:1] or words) if (step := _built(cls, {**given, wrong[0]: word})) is not None]
    # A word is meant to have an effect: one that keeps the values is not meant if others change them.
    return [step for step in built if _moves_values(step)] or [*built]


def _moves_values(step: Transform) -> bool:
    try:
        return sized(step, (224, 224)).infer(IMAGE_224).interval != IMAGE_224.interval
    except OpError:
        return False


class AnyTest(DataTest):
    """A placeholder of an invalid test."""

    op = "test"


def _fits(cls: type[Transform], key: str, value: Any) -> bool:
    return key in cls.model_fields and valid(field_type(cls, key), value)


def _built(cls: type[Transform], given: dict[str, Any]) -> Transform | None:
    return validated(cls, given) if valid(cls, given) else None


@cache
def _like(cls: type[Transform]) -> type[Transform]:
    """A class of the same name and family that needs no arguments."""
    family = next(f for f in _FAMILIES if issubclass(cls, f))
    same = {key: getattr(cls, key) for key in ("op", "random", "min_channels") if hasattr(cls, key)}
    return cast("type[Transform]", type("StandIn", (family,), {"__module__": __name__, **same}))


def _tells(cls: type[Transform], given: dict[str, Any]) -> bool:
    """Tests if the valid arguments decide the values after the step; an unknown key may have been meant to."""
    for key, value in given.items():
        if key not in cls.model_fields:
            if closest(key, cls.model_fields) in (None, *_TELLING):
                return False
        elif key in _TELLING and (not isinstance(value, (str, list)) or not valid(field_type(cls, key), value)):
            return False
    return True
