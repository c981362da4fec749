"""Policies over steps that a user writes, and the order of their families."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import most
from pipegen.ops.families.crops import ItemCrop, sizes_differ
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.stage import step_kwargs
from pipegen.ops.step_bases import ColourTransform, GeometricTransform
from pipegen.ops.transform import Part, Policy, Transform, require_same_shape
from pipegen.types import FeatureType


def _read(value: Any) -> Transform:
    from pipegen.ops.registry import read_inner, transforms

    return read_inner(value, Transform, transforms(), "there is no step")


def _written(step: Transform) -> dict[str, Any] | str:
    arguments = step_kwargs(step)
    return {step.op: arguments} if arguments else step.op


STEP_SCHEMA = "x-pipegen-step"  # the placeholder for any step in a generated schema

InnerStep = Annotated[Transform, BeforeValidator(_read), PlainSerializer(_written), WithJsonSchema({STEP_SCHEMA: True})]
"""A step inside another, as written in a spec."""

_ORDER: tuple[type[Transform] | tuple[type[Transform], ...], ...] = (
    (LookupTableTransform, NeighbourhoodTransform),
    GeometricTransform,
    ColourTransform,
)


class Selection(Policy):
    """A policy over steps that the user writes. The choice is independent of the draws of the steps.

    Crops and resizes come first, then tables and filters, geometry, and colour. All images have to leave it with one size."""

    steps: Annotated[tuple[InnerStep, ...], Field(min_length=2)]
    """The steps to choose from, written as they are in `transforms`."""

    @model_validator(mode="after")
    def _plain(self) -> Selection:
        for step in self.steps:
            problem = self.refuses(step)
            if problem is not None:
                raise ValueError(problem[0])
        guided = [step.op for step in self.steps if isinstance(step, ItemCrop)]
        if len(guided) > 1:
            raise ValueError(f"`{self.op}` holds one crop that chooses its window by boxes, keypoints or masks, not {len(guided)}")
        return self

    @classmethod
    def refuses(cls, step: Transform) -> tuple[str, str] | None:
        """The reason why a step cannot be an inner step, and what helps; `None` if it can."""
        if rank(step) == len(_ORDER):
            return f"`{cls.op}` cannot hold `{step.op}`", "it holds crops, resizes, geometry, colour, tables and filters"
        guided = next((inner.op for inner in step.inner_steps() if isinstance(inner, ItemCrop)), None)
        if guided is not None:
            return f"`{cls.op}` cannot hold `{guided}` inside `{step.op}`", f"`{guided}` can be a step of the outer `{cls.op}`"
        for argument in ("when", "feature", "draw"):
            if getattr(step, argument) not in (None, "example"):
                return f"`{argument}` of `{step.op}` is decided by the `{cls.op}` around it", f"`{argument}` goes beside `steps`"
        return None

    def inner_steps(self) -> tuple[Transform, ...]:
        return self.steps

    def infer(self, x: FeatureType) -> FeatureType:
        y = x
        for part in self.parts():
            z = part.step.infer(y)
            if not changes_size(part.step):
                require_same_shape(part.step, y, z)
            y = z.with_(shape=x.shape)
        return y.with_(shape=self.shape_after(x))

    def shape_after(self, x: FeatureType) -> tuple[int | None, ...]:
        ends: dict[tuple[int | None, ...], Transform | None] = {}
        for step in self.steps if most(self.probability) else ():
            shape = step.shape_after(x) if isinstance(step, Policy) else step.on(x).infer(x).shape if step.only_sizes else x.shape
            ends.setdefault(shape, step)
            if step.only_sizes and step.is_gated():
                ends.setdefault(x.shape, None)
        if self.is_gated() or not self.picks_one() or not ends:
            ends.setdefault(x.shape, None)
        if len(ends) > 1:
            raise sizes_differ(self, ends, x)
        return next(iter(ends))

    def evaluation_form(self) -> tuple[Transform, ...]:
        """Where each example gets one of several crops and resizes: the first of them, or the steps that replace it."""
        if self.is_gated() or not self.picks_one() or not all(map(changes_size, self.steps)):
            return ()
        forms = (step.evaluation_form() if step.random else (step,) for step in self.own_steps())
        return next((form for form in forms if form), ())

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """Whether each step is chosen, by the step's name; the second one of a name is `NAME#2`."""
        found: dict[str, tf.Tensor] = {}
        for number, step in enumerate(self.steps):
            before = sum(other.op == step.op for other in self.steps[:number])
            found[f"{step.op}#{before + 1}" if before else step.op] = self.chosen(u, number)
        return found

    def parts(self) -> tuple[Part, ...]:
        found = [Part(step, number, number) for number, step in enumerate(self.own_steps())]
        return tuple(sorted(found, key=lambda part: rank(part.step)))

    def own_steps(self) -> list[Transform]:
        """The steps, acting on the policy's `feature`, with its `draw`."""
        given = {"feature": self.feature, "draw": self.draw}
        return [step if given == {"feature": None, "draw": "example"} else step.model_copy(update=given) for step in self.steps]

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"steps": [[step.op, step.meaning(), step.id] for step in self.steps]}


def rank(step: Transform) -> int:
    """The place of a step's family within a policy: crops and resizes come first, and the parts of an inner policy next."""
    if step.only_sizes:
        return -2 if isinstance(step, ItemCrop) else -1
    if isinstance(step, Policy):
        return 0
    return next((i for i, family in enumerate(_ORDER) if isinstance(step, family)), len(_ORDER))


def changes_size(step: Transform) -> bool:
    """Checks whether a step, or a step inside it, changes the size of images."""
    return step.only_sizes or any(map(changes_size, step.inner_steps()))
