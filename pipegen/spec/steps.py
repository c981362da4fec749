"""Names and ids of steps, which key their random draws, and reserved words of the language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

from pipegen.ops.data_test import DataTest
from pipegen.ops.transform import Transform
from pipegen.spec.source_map import KeyPath


def ids_of(steps: Iterable[Transform | DataTest]) -> tuple[str, ...]:
    """The ids of steps or tests: their own `id`, or their name with a count per name.

    `random_flip` is the first flip and `random_flip#2` the second, whatever is between them, so that inserting another kind of
    step keeps the draws.
    """
    return tuple(_counted((step.op, step.id) for step in steps))


def _counted(named: Iterable[tuple[str, str | None]], above: str = "") -> Iterator[str]:
    """Yields the ids of steps with these names and their own ids."""
    seen: Counter[str] = Counter()
    for name, own in named:
        seen[name] += 1
        yield own or f"{above}{name}{'' if seen[name] == 1 else f'#{seen[name]}'}"


def inner_ids(step: Transform, step_id: str) -> tuple[str, ...]:
    """The ids of the steps inside a step: their own, or counted below its id, as `one_of/random_flip#2`."""
    inner = step.inner_steps()
    return tuple(s.id or f"{step_id}/{own}" for s, own in zip(inner, ids_of(inner), strict=True))


def every_id(steps: tuple[Transform, ...], ids: tuple[str, ...] = (), above: KeyPath = ()) -> list[tuple[KeyPath, str]]:
    """The ids of steps and of those inside them, with their paths below `transforms`."""
    found: list[tuple[KeyPath, str]] = []
    for index, (step, step_id) in enumerate(zip(steps, ids or ids_of(steps), strict=True)):
        here = (*above, index, step.op)
        found.append((here, step_id))
        found += every_id(step.inner_steps(), inner_ids(step, step_id), (*here, "steps"))
    return found


def step_hash(step_id: str) -> int:
    """The 32-bit hash of a step id in the counter of its random draws."""
    return int.from_bytes(blake2b(step_id.encode(), digest_size=4).digest(), "big")


def collisions(ids: tuple[str, ...]) -> list[tuple[int, int]]:
    """The pairs of steps that would share their random draws, the earlier one first."""
    first: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    for i, step_id in enumerate(ids):
        other = first.setdefault(step_hash(step_id), i)
        if other != i:
            found.append((other, i))
    return found


INNER = "steps"  # the argument that holds the steps inside a step


def step_name(step: Any) -> str | None:
    """The word of a step; `None` if it is neither a word nor a map with one key."""
    if isinstance(step, dict) and len(step) == 1:
        return str(next(iter(step)))
    return step if isinstance(step, str) else None


def own_id(step: Any) -> str | None:
    """The `id` argument of a step, if any."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    own = arguments.get("id") if isinstance(arguments, dict) else None
    return own if isinstance(own, str) else None


def inner_steps(step: Any) -> list[Any] | None:
    """The list of steps inside a step, if it has one."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    inner = arguments.get(INNER) if isinstance(arguments, dict) else None
    return inner if isinstance(inner, list) else None


def raw_ids(steps: list[Any], above: str = "") -> list[str]:
    """The ids of steps as plain values, see `ids_of`; those inside a step begin with its id, `above`."""
    return [*_counted(((step_name(step) or "", own_id(step)) for step in steps), above)]


def arguments_of(steps: list[Any], index: int, name: str) -> dict[str, Any]:
    """The arguments of a step, to be changed in place; a word becomes a step with arguments."""
    step = steps[index]
    if not isinstance(step, dict):
        step = steps[index] = {name: {}}
    if not isinstance(step[name], dict):
        step[name] = {}
    arguments: dict[str, Any] = step[name]
    return arguments


SOURCES = frozenset({"audio_folder", "text"})  # reserved sources
SOURCE_KEYS = frozenset({"features", "of", "bits"})  # arguments that describe features one by one
FEATURE_KEYS = frozenset({"columns", "separator", "values", "channels", "bits"})
"""Arguments of one feature, where the source does not know them."""
KINDS = frozenset({"text", "audio"})  # reserved kinds of features
