"""Describes the parts that do the work of a policy, or of another step, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.ops.base import Transform


@dataclass(frozen=True, slots=True)
class Part:
    """A step that does a part of a policy's work.

    Attributes:
        step: The step. It reads the policy's draws, unless it is `inner`.
        choice: Which of the policy's choices decides for each example whether it acts; `None` where it acts whenever the
            policy does.
        inner: Which of the policy's `inner_steps` it is; such a step has draws of its own.
    """

    step: Transform
    choice: int | None = None
    inner: int | None = None
