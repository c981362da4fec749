"""The id of each step, which keys its random draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from pipegen.ops.base import Transform
from pipegen.ops.testing.base import DataTest
from pipegen.spec.source_map import KeyPath


def ids_of(steps: Iterable[Transform | DataTest]) -> tuple[str, ...]:
    """The id of each step, or of each test: its own `id`, or its name and which one of that name it is.

    `random_flip` is the first flip and `random_flip#2` the second, whatever stands between them, so that inserting
    another kind of step leaves the draws alone.
    """
    seen: Counter[str] = Counter()
    ids: list[str] = []
    for step in steps:
        seen[step.op] += 1
        number = seen[step.op]
        ids.append(step.id or (step.op if number == 1 else f"{step.op}#{number}"))
    return tuple(ids)


def inner_ids(step: Transform, step_id: str) -> tuple[str, ...]:
    """The ids of the steps that stand inside a step: their own, or counted below its id, as `one_of/random_flip#2`."""
    inner = step.inner_steps()
    return tuple(s.id or f"{step_id}/{own}" for s, own in zip(inner, ids_of(inner), strict=True))


def every_id(steps: tuple[Transform, ...], ids: tuple[str, ...] = (), above: KeyPath = ()) -> list[tuple[KeyPath, str]]:
    """The id of each step and of those inside it, with the place of the step below `transforms`."""
    found: list[tuple[KeyPath, str]] = []
    for index, (step, step_id) in enumerate(zip(steps, ids or ids_of(steps), strict=True)):
        here = (*above, index, step.op)
        found.append((here, step_id))
        found += every_id(step.inner_steps(), inner_ids(step, step_id), (*here, "steps"))
    return found


def step_hash(step_id: str) -> int:
    """The 32 bits that stand for a step id in the counter of its random draws."""
    return int.from_bytes(blake2b(step_id.encode(), digest_size=4).digest(), "big")


def collisions(ids: tuple[str, ...]) -> list[tuple[int, int]]:
    """Pairs of steps, the earlier one first, that would share their random draws."""
    first: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for i, step_id in enumerate(ids):
        other = first.setdefault(step_hash(step_id), i)
        if other != i:
            found.append((other, i))
    return found
