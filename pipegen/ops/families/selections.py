"""Policies over steps that a user writes, and the order of their families."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from pipegen.lazy import tf
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.stage import step_kwargs
from pipegen.ops.step_bases import ColourTransform, GeometricTransform
from pipegen.ops.transform import Part, Policy, Transform


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
    """A policy over steps that the user writes. The choice is independent of the draws of the steps."""

    steps: Annotated[tuple[InnerStep, ...], Field(min_length=2)]
    """The steps to choose from, written as they are in `transforms`."""

    @model_validator(mode="after")
    def _plain(self) -> Selection:
        for step in self.steps:
            problem = self.refuses(step)
            if problem is not None:
                raise ValueError(problem[0])
        return self

    @classmethod
    def refuses(cls, step: Transform) -> tuple[str, str] | None:
        """The reason why a step cannot be an inner step, and what helps; `None` if it can."""
        if rank(step) == len(_ORDER):
            return f"`{cls.op}` cannot hold `{step.op}`", "it holds geometry, colour, tables and filters, which keep the shape of an image"
        for argument in ("when", "feature"):
            if getattr(step, argument) is not None:
                return f"`{argument}` of `{step.op}` is decided by the `{cls.op}` around it", f"`{argument}` goes beside `steps`"
        return None

    def inner_steps(self) -> tuple[Transform, ...]:
        return self.steps

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
        """The steps, acting on the policy's `feature`."""
        return [step if self.feature is None else step.model_copy(update={"feature": self.feature}) for step in self.steps]

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"steps": [[step.op, step.meaning(), step.id] for step in self.steps]}


def rank(step: Transform) -> int:
    """The place of a step's family within a policy; the parts of an inner policy come first."""
    if isinstance(step, Policy):
        return 0
    return next((i for i, family in enumerate(_ORDER) if isinstance(step, family)), len(_ORDER))
