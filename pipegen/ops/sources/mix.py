"""`mix`: several sources at once, each with its share of the training split."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, field_validator, model_validator

from pipegen.errors import InternalError, PartError
from pipegen.ops.arguments.magnitudes import AnySchedule, Schedule
from pipegen.ops.families.selections import InnerStep
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.model import Model
from pipegen.ops.sampling import Curriculum, Sampling, Splits
from pipegen.ops.sources.features.arrays import FeatureName
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import ElementType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SOURCE_SCHEMA = "x-pipegen-source"
"""Stands in a generated schema where any source may."""
_WORDS = ("shortest", "longest")


def _read(value: Any) -> Any:
    """A source from its form in a spec: a word, or a map with one key."""
    from pipegen.ops.registry import sources

    if isinstance(value, Source):
        return value
    name, given = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (value, {})
    cls = sources().get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"there is no source `{name}`")
    if hasattr(cls, "from_yaml"):
        return cls.from_yaml(given)
    return cls.model_validate_json(json.dumps(given), strict=True)


def _written(source: Source) -> dict[str, Any]:
    return {source.op: source.model_dump(mode="json")}


InnerSource = Annotated[Source, BeforeValidator(_read), PlainSerializer(_written), WithJsonSchema({SOURCE_SCHEMA: True})]
"""A source inside another, in the form that it has in a spec."""
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)] | AnySchedule


class Part(Model):
    """One part of a mix."""

    source: InnerSource
    """The data of the part: any source."""
    weight: Weight = 1.0
    """The share of the training split that is of this part, beside the weights of the others: they need not sum to 1. A number, or a
    schedule over the epochs, such as `{linear: {from: 0, to: 0.2, epochs: [0, 10]}}`."""
    splits: Splits = Splits()
    """The splits of the part's data, as `splits` has them for a single source; by default all of it is `train`, or `predict` without
    labels."""
    sampling: Sampling | None = None
    """How often a pass through the part has each of its examples, as `sampling` has it for a single source: by default once. The share of
    the part stays what its weight says."""
    order: Curriculum | None = None
    """Easy examples of the part first, as `order` has it for a single source: the part draws from its easiest examples, and from more of
    them as training goes on. Its share stays what its weight says."""
    transforms: tuple[InnerStep, ...] = ()
    """Steps on this part alone, before the common ones."""
    features: dict[FeatureName, FeatureName] = {}
    """Features under the name that all parts share, each with its name in the source of this part: `{image: photo}`."""
    fill: dict[FeatureName, float | str | list[float]] = {}
    """Values of features that this part lacks and another part has, the same for each example: a number, the name of a class, or a list."""

    @field_validator("weight")
    @classmethod
    def _single(cls, weight: float | Schedule) -> float | Schedule:
        if isinstance(weight, Schedule):
            if any(isinstance(value, tuple) for value in weight.given()):
                raise ValueError("a `weight` is a number in every epoch, and this schedule has a range of draws")
            if any(value < 0 for value in weight.given()):  # type: ignore[operator]
                raise ValueError("a `weight` is 0 or more in every epoch")
        return weight

    @field_validator("source")
    @classmethod
    def _plain(cls, source: Source) -> Source:
        if source.mixed():
            raise ValueError("a part of a `mix` is a plain source, and this one is a `mix` again; its parts can stand beside the others")
        return source

    @model_validator(mode="after")
    def _apart(self) -> Part:
        known = [name for name, _ in self.source.infer().items()]
        for name, own in self.features.items():
            if own not in known:
                raise PartError(f"`{self.source.op}` has no feature `{own}`: it has {', '.join(known)}", "features", name)
        if len(set(self.features.values())) < len(self.features):
            raise PartError("one feature has two names", "features")
        for name in self.fill:
            if name in self.names():
                raise PartError(f"this part has a feature `{name}`, so it cannot be filled", "fill", name)
        return self

    def names(self) -> tuple[str, ...]:
        """The features of its source under the names that they have in the mix."""
        new = {own: name for name, own in self.features.items()}
        return tuple(new.get(name, name) for name, _ in self.source.infer().items())

    def split_names(self) -> tuple[str, ...]:
        """The splits of the part, in their order."""
        own = self.source.split_names()
        if own is not None:
            return own
        names = tuple(self.splits.parts)
        if self.splits.folds is not None:
            names = ("train", "validation", *(n for n in names if n not in ("train", "validation")))
        # Boxes, masks and keypoints are learned, too.
        annotated = any(kind_of(t).needs_image for _, t in self.source.infer().items())
        return names or (("train",) if self.source.has_labels() or self.fill or annotated else ("predict",))

    def weights(self) -> tuple[float, ...]:
        """The weight in each epoch from 0 on; the last one stays."""
        if not isinstance(self.weight, Schedule):
            return (self.weight,)
        return tuple(low for low, _ in self.weight.ranges(lambda value: (value, value)))


class Mix(Source):
    """Several sources at once: each batch of the training split holds examples of all parts, in the proportion of their weights.

    An epoch has an exact number of examples of each part: shares are rounded by largest remainder, and what rounding leaves is carried over
    to the next epoch. A part that is through its examples starts over in another order, and what one epoch has not reached comes in the
    next. The other splits hold the parts one after another. Classes are united by their names, records are known as `PART/` and their key.
    """

    op: ClassVar[str] = "mix"

    epoch: Annotated[int, Field(ge=1, le=2**31)] | str
    """The length of an epoch of the training split: a count of examples, or the name of a part, which an epoch goes through once;
    `shortest` or `longest` is the part that takes the fewest or the most examples to be gone through. Weights that change count as they
    are in the end."""
    parts: Annotated[dict[SplitName, Part], Field(min_length=1)]
    """The parts by name, such as `{photos: {weight: 0.8, source: {image_folder: {path: photos/}}}, drawings: …}`."""

    @model_validator(mode="after")
    def _sound(self) -> Mix:
        for name in self.parts:
            if name in _WORDS:
                raise PartError(f"`{name}` is a word of `epoch`, so no part can have it as its name", "parts", name)
        if isinstance(self.epoch, str) and self.epoch not in (*_WORDS, *self.parts):
            known = ", ".join(f"`{word}`" for word in (*_WORDS, *self.parts))
            raise PartError(f"`epoch` is a count of examples, or one of {known}; got {self.epoch!r}", "epoch")
        weights = [part.weights() for part in self.parts.values()]
        for epoch in range(max(map(len, weights))):
            if not any(own[min(epoch, len(own) - 1)] for own in weights):
                raise PartError(f"in epoch {epoch} every part has the weight 0", "parts")
        if isinstance(self.epoch, str) and self.epoch in self.parts and not self.parts[self.epoch].weights()[-1]:
            raise PartError(f"`{self.epoch}` has the weight 0 in the end, so no epoch goes through it once", "epoch")
        return self

    def mixed(self) -> Mapping[str, Part]:
        """The parts."""
        return self.parts

    def _first(self) -> Part:
        return next(iter(self.parts.values()))

    def infer(self) -> ElementType:
        """The features that every part has, as the first part has them."""
        part = self._first()
        new = {own: name for name, own in part.features.items()}
        shared = [{*other.names(), *other.fill} for other in self.parts.values()]
        known = ((new.get(name, name), t.with_(of=new.get(t.of, t.of) if t.of else None)) for name, t in part.source.infer().items())
        return ElementType(tuple((name, t) for name, t in known if all(name in names for names in shared)))

    def has_labels(self) -> bool:
        """Returns whether a part has labels: the others have to have some, too, unless the output has no target."""
        return any(part.source.has_labels() for part in self.parts.values())

    def decoders(self) -> Mapping[str, Transform]:
        """Those of the first part."""
        part = self._first()
        new = {own: name for name, own in part.features.items()}
        return {new.get(name, name): step for name, step in part.source.decoders().items()}

    def described(self) -> Mapping[str, tuple[str, ...]]:
        """Returns none: what a part describes is said of that part."""
        return {}

    def has_rows(self) -> bool:
        """Returns whether the parts are arrays, all of them."""
        return all(part.source.has_rows() for part in self.parts.values())

    def has_folders(self) -> bool:
        """Returns whether the parts are folders, all of them."""
        return all(part.source.has_folders() for part in self.parts.values())

    def by_class(self) -> bool:
        """Returns whether records of a part are stored one class after another."""
        return any(part.source.by_class() for part in self.parts.values())

    def needs_data(self) -> bool:
        """Returns whether one of the parts does."""
        return any(part.source.needs_data() for part in self.parts.values())

    def unpacked(self, base: Path) -> int:
        """Sums what the parts take."""
        return sum(part.source.unpacked(base) for part in self.parts.values())

    def split_names(self) -> tuple[str, ...]:
        """The splits of all parts, those of the first one first."""
        return tuple(dict.fromkeys(name for part in self.parts.values() for name in part.split_names()))

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Is not called: each part is listed on its own."""
        raise InternalError("a mix is listed part by part")
