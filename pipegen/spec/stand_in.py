"""What stands in for a wrong step whose kind is known, so that the steps after it are judged all the same."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pipegen.diagnostics.suggest import closest
from pipegen.ops.base import ColourTransform, GeometricTransform, PointwiseTransform, Transform
from pipegen.ops.families.curves import CurveTransform
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.policies import Policy
from pipegen.ops.registry import transforms
from pipegen.ops.traits import Family, Traits
from pipegen.spec.expect import field_type
from pipegen.spec.validate import valid

if TYPE_CHECKING:
    from pipegen.types import FeatureType

_FAMILIES: tuple[type[Transform], ...] = (GeometricTransform, ColourTransform, CurveTransform, NeighbourhoodTransform)
_TELLING = ("when", "feature", "fill")
"""The arguments that decide which values leave a step of a family that keeps the shape: where it acts, and what it puts in."""


class UnknownStep(Transform):
    """A step of which only this is known: images keep their shape. The values are in doubt after it."""

    op = "unknown"

    def infer(self, x: FeatureType) -> FeatureType:
        return x

    def traits(self, x: FeatureType) -> Traits:
        return Traits(Family.POLICY)  # the family that says nothing of values, and keeps the shape


def keeps_shape(step: type[Transform]) -> bool:
    """Whether a step's family alone says that images leave it with the shape that they entered with."""
    return _same_values(step) or issubclass(step, (PointwiseTransform, NeighbourhoodTransform, MixingTransform, FittedTransform, Policy))


def _same_values(step: type[Transform]) -> bool:
    """Whether a step's family alone says which values leave."""
    return step.infer in (f.infer for f in _FAMILIES)


def stand_in(raw: Any) -> Transform | None:
    """A right step in place of a wrong one, as plain values; `None` where the shape that leaves it cannot be told."""
    name, given = next(iter(raw.items())) if isinstance(raw, dict) and len(raw) == 1 else (raw, {})
    cls = transforms().get(name) if isinstance(name, str) else None
    if cls is None or not keeps_shape(cls) or "image" not in cls.kinds:
        return None
    given = {} if given is None else given
    if not _same_values(cls) or not isinstance(given, dict) or not _tells(cls, given):
        return UnknownStep(when="all")
    return _like(cls)(**{key: given[key] for key in ("when", "feature") if key in given})


@cache
def _like(cls: type[Transform]) -> type[Transform]:
    """A step of the same name and family that needs no arguments."""
    family = next(f for f in _FAMILIES if issubclass(cls, f))
    same = {key: getattr(cls, key) for key in ("op", "random", "min_channels") if hasattr(cls, key)}
    return cast("type[Transform]", type("StandIn", (family,), {"__module__": __name__, **same}))


def _tells(cls: type[Transform], given: dict[str, Any]) -> bool:
    """Whether what is right among the arguments says which values leave; a key that is no argument might have been meant to."""
    for key, value in given.items():
        if key not in cls.model_fields:
            if closest(key, cls.model_fields) in (None, *_TELLING):
                return False
        elif key in _TELLING and (not isinstance(value, (str, list)) or not valid(field_type(cls, key), value)):
            return False
    return True
