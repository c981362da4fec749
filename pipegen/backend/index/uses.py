"""Evaluates a use of a step for each example: its own draws, its schedules, and whether it acts at all."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import tensorflow as tf

from pipegen.ops.families.policies import Policy

if TYPE_CHECKING:
    from pipegen.ops.base import Transform
    from pipegen.plan.stages import StepRef

F = TypeVar("F", bound="Transform")


def own_draws(ref: StepRef, draws: tf.Tensor) -> tf.Tensor:
    """The numbers of one step, without its gate: `(..., num_draws)`."""
    return draws[..., ref.start : ref.start + ref.step.num_draws()]


def step_of(ref: StepRef[F], draws: tf.Tensor) -> F:
    """The step, its schedules read at the epoch, which is the last number of every example's vector where there are any.

    A batch is of one epoch, so the first example speaks for all.
    """
    return ref.step.at(tf.reshape(draws[..., -1], [-1])[0]) if ref.step.schedules() else ref.step


def acts(ref: StepRef, draws: tf.Tensor) -> tf.Tensor:
    """Returns whether a conditional step acts on each example: bool `(...)`."""
    reasons = []
    if ref.gated:
        share: tf.Tensor | float = getattr(step_of(ref, draws), "probability", 1.0)
        reasons.append(draws[..., ref.start + ref.step.num_draws()] < share)
    if ref.choice is not None:
        policy = ref.choice.policy
        if policy.conditional:
            reasons.append(acts(policy, draws))
        if ref.choice.number is not None:
            reasons.append(step_of(policy.of(Policy), draws).chosen(own_draws(policy, draws), ref.choice.number))
    return reduce(tf.logical_and, reasons)
