"""Puts the uses of steps into the words of a plan's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.ops.base import Transform
    from pipegen.ops.stage import StepRef

WAITING = "with numbers of split train, which `pipegen fit` finds"


def step_kwargs(step: Transform) -> dict[str, Any]:
    """The arguments of a step that differ from their defaults, for printing."""
    step = step.written()
    changed = step.model_dump(exclude_defaults=True, mode="json")
    whole = step.model_dump(mode="json")
    return {name: whole[name] for name in changed}  # a nested map keeps its defaults, or `{constant: 0}` would print as `{}`


def use(ref: StepRef) -> str:
    """A use of a step with its arguments, and whose part it is."""
    arguments = ", ".join(f"{k}: {value(v)}" for k, v in step_kwargs(ref.step).items())
    text = f"{ref.step.op}({arguments})" if arguments else ref.step.op
    if ref.step.part is not None:
        return f"{ref.step.part} of {text}"
    return f"{text} as `{ref.choice.policy.id}` chooses" if ref.choice is not None else text


def uses(refs: Sequence[StepRef]) -> str:
    """Several uses, in their order."""
    return " · ".join(map(use, refs))


def fitted_use(ref: StepRef) -> str:
    """A use of a step, which may still wait for numbers."""
    return f"{WAITING}: {use(ref)}" if ref.step.waits() else use(ref)


def value(given: Any) -> str:
    """A plain value as a spec has it."""
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, float):
        return f"{given:g}"
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(map(value, given)) + "]"
    if isinstance(given, dict):
        return "{" + ", ".join(f"{k}: {value(v)}" for k, v in given.items()) + "}"
    return str(given)
