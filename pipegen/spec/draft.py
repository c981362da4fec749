"""Keeps what is left of a spec with mistakes, so that one run also finds those that only several sections together show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from pipegen.diagnostics.diagnostic import Diagnostics, Severity
from pipegen.diagnostics.suggest import closest
from pipegen.ops.base import Transform
from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import Source
from pipegen.spec.models import PipelineSpec
from pipegen.spec.stand_in import AnyStep, UnknownStep, keeps_shape, stand_ins

_PLACE = re.compile(r"([^.\[]+)(?:\[(\d+)\])?")
_MOST_DRAFTS = 24
_HOPELESS = {"pipegen", "extends"}
"""Where a mistake leaves the whole spec in doubt."""


@dataclass(frozen=True)
class Draft:
    """A spec in which what is wrong was left out.

    Attributes:
        spec: The sections that are right, and the steps and tests, with others in place of wrong ones; defaults elsewhere.
        broken: The sections that are wrong in part or as a whole: nothing may be concluded from their defaults.
        others: The same with other steps in place of wrong ones: what is wrong in all of them is wrong whatever was meant.
        guessed: Whether nothing is known of the features of the source.
    """

    spec: PipelineSpec
    broken: frozenset[str]
    others: tuple[PipelineSpec, ...] = ()
    guessed: bool = False


def draft(raw: dict[str, Any], values: dict[str, Any], steps: list[Any], found: Diagnostics) -> Draft | None:
    """A draft of what could be read, or `None` where a mistake leaves everything in doubt.

    In `values`, the sections by name, and `steps`, `None` stands for a wrong one; `found` are the findings so far.
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
        section = place[1] if place[1] in PipelineSpec.model_fields else closest(place[1], PipelineSpec.model_fields) or "transforms"
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
    several = _steps(raw["transforms"], steps, wrong) if listed and steps else [()]
    first, *others = (PipelineSpec.model_construct(**{**kept, "transforms": chosen}) for chosen in several)
    return Draft(first, frozenset(broken), tuple(others), guessed)


def _steps(raw: list[Any], steps: list[Any], wrong: set[int]) -> list[tuple[Transform, ...]]:
    """Returns the steps, with each that may be meant in place of a wrong one, or where those are too many, an unknown one."""
    meant = [stand_ins(raw[i]) if i in wrong else (step,) for i, step in enumerate(steps)]
    for i, several in enumerate(meant):
        if len(several) > 1 and prod(map(len, meant)) > _MOST_DRAFTS:
            meant[i] = (UnknownStep(when="all") if keeps_shape(type(several[0])) else AnyStep(when="all"),)
    return list(product(*meant))


def _stand_in(source: Any) -> Source | None:
    """A source of the kind that is meant, where its arguments are wrong and its features are known all the same."""
    name = next(iter(source)) if isinstance(source, dict) and len(source) == 1 else source
    near = closest(name, sources()) if isinstance(name, str) and name not in sources() else name if isinstance(name, str) else None
    cls = sources().get(near) if near is not None else None
    open_ended = cls is None or hasattr(cls, "from_yaml") or not {"features", "parts"}.isdisjoint(cls.model_fields)
    return None if cls is None or open_ended else cls.model_construct()
