"""Names and ids of steps as they stand in a spec, before they are checked: words, and maps with one key."""

from __future__ import annotations

from typing import Any

INNER = "steps"
"""The argument that holds the steps inside a step."""


def step_name(step: Any) -> str | None:
    """Returns the word of a step, or `None` where it is neither a word nor a map with one key."""
    if isinstance(step, dict) and len(step) == 1:
        return str(next(iter(step)))
    return step if isinstance(step, str) else None


def own_id(step: Any) -> str | None:
    """Returns the `id` that a step is given, if any."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    own = arguments.get("id") if isinstance(arguments, dict) else None
    return own if isinstance(own, str) else None


def inner_steps(step: Any) -> list[Any] | None:
    """Returns the list of steps inside a step, if it has one."""
    arguments = step.get(step_name(step)) if isinstance(step, dict) else None
    inner = arguments.get(INNER) if isinstance(arguments, dict) else None
    return inner if isinstance(inner, list) else None


def raw_ids(steps: list[Any], above: str = "") -> list[str]:
    """Returns the id of each step of a list; see `steps.ids_of`. Those inside a step stand below its id, `above`."""
    seen: dict[str, int] = {}
    ids = []
    for step in steps:
        name = step_name(step) or ""
        seen[name] = seen.get(name, 0) + 1
        ids.append(own_id(step) or f"{above}{name}{'' if seen[name] == 1 else f'#{seen[name]}'}")
    return ids


def arguments_of(steps: list[Any], index: int, name: str) -> dict[str, Any]:
    """Returns the arguments of a step, to be changed in place; a step that is a word becomes one with arguments."""
    step = steps[index]
    if not isinstance(step, dict):
        step = steps[index] = {name: {}}
    if not isinstance(step[name], dict):
        step[name] = {}
    arguments: dict[str, Any] = step[name]
    return arguments
