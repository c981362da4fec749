"""`mix`: several sources at once, each with a share of the training split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, field_validator, model_validator

from pipegen.errors import PartError
from pipegen.ops.arguments.magnitudes import AnySchedule, Schedule
from pipegen.ops.families.selections import InnerStep
from pipegen.ops.kinds.base import Overlay, having
from pipegen.ops.model import FeatureName, Model
from pipegen.ops.sampling_sections import Curriculum, Sampling, Splits
from pipegen.ops.sources.listing.base import PREDICTED, Source, always, of_each
from pipegen.ops.transform import SplitName, Transform
from pipegen.types import ElementType

SOURCE_SCHEMA = "x-pipegen-source"  # marker in a generated schema where any source may stand
_WORDS = ("shortest", "longest")


def _read(value: Any) -> Source:
    from pipegen.ops.registry import read_inner, sources

    return read_inner(value, Source, sources(), "unknown source")


def written(source: Source) -> dict[str, Any]:
    """Returns a source as it is written in a spec."""
    return {source.op: source.model_dump(mode="json")}


InnerSource = Annotated[Source, BeforeValidator(_read), PlainSerializer(written), WithJsonSchema({SOURCE_SCHEMA: True})]
"""A source inside another, as written in a spec."""
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)] | AnySchedule


class Part(Model):
    """One part of a mix."""

    source: InnerSource
    """Data of the part: any source."""
    weight: Weight = 1.0
    """Share of the training split, relative to the weights of the other parts (they need not sum to 1). A number, or a schedule over the
    epochs, such as `{linear: {from: 0, to: 0.2, epochs: [0, 10]}}`."""
    splits: Splits = Splits()
    """Splits of the part's data, as in `splits` for a single source. By default all of it is `train`, or `predict` if it has no labels."""
    sampling: Sampling | None = None
    """How often a pass through the part repeats each of its examples, as in `sampling` for a single source; by default once. The part's
    share still follows its weight."""
    order: Curriculum | None = None
    """Easy examples first, as in `order` for a single source: the part draws from its easiest examples, and from more of them as training
    goes on. The part's share still follows its weight."""
    transforms: tuple[InnerStep, ...] = ()
    """Steps for this part only, before the common ones."""
    features: dict[FeatureName, FeatureName] = {}
    """Features renamed to the name that all parts share, each with its name in this part's source: `{image: photo}`."""
    fill: dict[FeatureName, float | str | list[float]] = {}
    """Constant values of features that other parts have and this one lacks: a number, a class name, or a list."""

    @field_validator("weight")
    @classmethod
    def _single(cls, weight: float | Schedule) -> float | Schedule:
        if isinstance(weight, Schedule):
            if any(isinstance(value, tuple) for value in weight.given()):
                raise ValueError("a `weight` is one number in each epoch; this schedule has a random range")
            if any(value < 0 for value in weight.given()):  # type: ignore[operator]
                raise ValueError("a `weight` must be 0 or more in every epoch")
        return weight

    @field_validator("source")
    @classmethod
    def _plain(cls, source: Source) -> Source:
        if source.mixed():
            raise ValueError("a `mix` cannot hold another `mix`; list its parts beside the others")
        if source.split_names() is None and source.lacks(PREDICTED):
            raise ValueError("`unlabelled` is not for a part of a `mix`; leave such examples out by `ignore`")
        return source

    @model_validator(mode="after")
    def _apart(self) -> Part:
        known = [name for name, _ in self.source.infer().items()]
        for name, own in self.features.items():
            if own not in known:
                raise PartError(f"`{self.source.op}` has no feature `{own}`: it has {', '.join(known)}", "features", name)
        if len(set(self.features.values())) < len(self.features):
            raise PartError("two names stand for the same feature", "features")
        for name in self.fill:
            if name in self.names():
                raise PartError(f"this part has a feature `{name}`; only missing features can be filled", "fill", name)
        return self

    def names(self) -> tuple[str, ...]:
        """Lists the features of its source under their names in the mix."""
        new = {own: name for name, own in self.features.items()}
        return tuple(new.get(name, name) for name, _ in self.source.infer().items())

    def split_names(self) -> tuple[str, ...]:
        """Lists the splits of the part, in order."""
        annotated = bool(having(self.source.infer(), Overlay))  # boxes, masks and keypoints are targets, too
        learns = self.source.has_labels() or bool(self.fill) or annotated
        own = self.source.split_names()
        return self.splits.names(learns=learns) if own is None else own

    def weights(self) -> tuple[float, ...]:
        """Lists the weight of each epoch from 0; the last one continues."""
        if not isinstance(self.weight, Schedule):
            return (self.weight,)
        return tuple(low for low, _ in self.weight.ranges(lambda value: (value, value)))


class Mix(Source):
    """Several sources at once: each training batch holds examples of all parts, in proportion to their weights.

    Each epoch has an exact number of examples of each part: shares are rounded by largest remainder, and the remainder is carried over to
    the next epoch. A part that is exhausted starts over in another order; examples that one epoch did not reach come in the next. The other
    splits hold one part after another. Classes are merged by name. The key of a record is `PART/` and its own key.
    """

    op: ClassVar[str] = "mix"

    epoch: Annotated[int, Field(ge=1, le=2**31)] | str
    """Length of a training epoch: a number of examples, or the name of a part that an epoch reads once. `shortest` and `longest` are the
    parts that need the fewest and the most examples to be read once. Scheduled weights count with their last value."""
    parts: Annotated[dict[SplitName, Part], Field(min_length=1)]
    """Parts by name, such as `{photos: {weight: 0.8, source: {image_folder: {path: photos/}}}, drawings: …}`."""

    @model_validator(mode="after")
    def _sound(self) -> Mix:
        for name in self.parts:
            if name in _WORDS:
                raise PartError(f"a part cannot be named `{name}`, which has a meaning in `epoch`", "parts", name)
        if isinstance(self.epoch, str) and self.epoch not in (*_WORDS, *self.parts):
            known = ", ".join(f"`{word}`" for word in (*_WORDS, *self.parts))
            raise PartError(f"invalid `epoch` {self.epoch!r}; use a number of examples, or one of {known}", "epoch")
        weights = [part.weights() for part in self.parts.values()]
        for epoch in range(max(map(len, weights))):
            if not any(own[min(epoch, len(own) - 1)] for own in weights):
                raise PartError(f"in epoch {epoch} every part has the weight 0", "parts")
        if isinstance(self.epoch, str) and self.epoch in self.parts and not self.parts[self.epoch].weights()[-1]:
            raise PartError(f"`{self.epoch}` ends with the weight 0, so no epoch can read it once", "epoch")
        return self

    def mixed(self) -> Mapping[str, Part]:
        return self.parts

    def _first(self) -> tuple[Part, dict[str, str]]:
        """Returns the first part, and the names in the mix of its renamed features."""
        part = next(iter(self.parts.values()))
        return part, {own: name for name, own in part.features.items()}

    def infer(self) -> ElementType:
        """Infers the features that every part has, with the types of the first part."""
        part, new = self._first()
        shared = [{*other.names(), *other.fill} for other in self.parts.values()]
        known = ((new.get(name, name), t.with_(of=new.get(t.of, t.of) if t.of else None)) for name, t in part.source.infer().items())
        return ElementType(tuple((name, t) for name, t in known if all(name in names for names in shared)))

    def decoders(self) -> Mapping[str, Transform]:
        part, new = self._first()
        return {new.get(name, name): step for name, step in part.source.decoders().items()}

    described = always({})

    def inner(self) -> Iterable[Source]:
        return (part.source for part in self.parts.values())

    has_rows, has_folders = of_each(all, "has_rows"), of_each(all, "has_folders")

    def lacks(self, split: str) -> frozenset[str]:
        return frozenset().union(*(source.lacks(split) for source in self.inner()))

    has_labels = of_each(any, "has_labels")  # then all parts need some, unless the output has no target
    by_class, needs_data = of_each(any, "by_class"), of_each(any, "needs_data")
    unpacked = of_each(sum, "unpacked")

    def split_names(self) -> tuple[str, ...]:
        """Lists the splits of all parts, those of the first part first."""
        return tuple(dict.fromkeys(name for part in self.parts.values() for name in part.split_names()))
