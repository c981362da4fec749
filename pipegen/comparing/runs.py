"""Runs of arithmetic that several steps say in one spec and other steps in the other: `fold_constants` makes the same constants of both."""

from __future__ import annotations

from typing import Any

from pipegen.comparing.changes import Change
from pipegen.spec.effects import ARITHMETIC, LONGEST_RUN, Effect
from pipegen.spec.scalars import flow

_FLOATS = ("float32", "float16", "bfloat16")
_WITH_STEPS_OF_THEIR_OWN = ("views", "stages", "inner")
"""Sections whose steps act on what the run leaves."""
_SAID = "the same float32 constants; the spec hash is another, so that a saved position does not go over"


def fold_runs(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[Change]]:
    """Returns two meanings with the arithmetic that ends their steps as one step, where it comes to the same, and a line about it.

    It is folded only where the values between are float32 and nothing rounds the result to whole numbers afterwards; see `fold_constants`.
    """
    runs = [_last_run(side) for side in (a, b)]
    if not all(runs) or any(name in side for side in (a, b) for name in _WITH_STEPS_OF_THEIR_OWN):
        return a, b, []
    if [a["effects"][i] for i in runs[0]] == [b["effects"][i] for i in runs[1]]:
        return a, b, []
    whole = [_whole(side["effects"], run) for side, run in zip((a, b), runs, strict=True)]
    if whole[0] is None or whole[0] != whole[1]:
        return a, b, []
    old, new = (
        ", ".join(f"{op}: {_said(said)}" for op, said, _ in (side["transforms"][i] for i in run))
        for side, run in zip((a, b), runs, strict=True)
    )
    path = ("transforms", runs[1][0], b["transforms"][runs[1][0]][0])
    one = b["transforms"][runs[1][-1]]
    folded = [
        {**side, "transforms": [*_without(side["transforms"], run), one], "effects": [*_without(side["effects"], run), whole[0]]}
        for side, run in zip((a, b), runs, strict=True)
    ]
    return folded[0], folded[1], [Change("nothing", path, f"{old} → {new}", _SAID)]


def _last_run(side: dict[str, Any]) -> list[int]:
    """Returns the places of the steps of arithmetic at the end of the steps, of one reach; none where what leaves is rounded."""
    if "effects" not in side or side["output"].get("dtype") not in (None, *_FLOATS):
        return []
    found: list[int] = []
    effects: list[Effect | None] = side["effects"]
    for place in range(len(effects) - 1, -1, -1):
        effect = effects[place]
        if effect is None:
            continue
        if effect[0] != ARITHMETIC or (found and _reach(effect) != _reach(effects[found[0]])):
            break
        found.insert(0, place)
    return found


def _reach(effect: Effect | None) -> tuple[Any, list[str]]:
    return (effect[1]["when"], sorted(effect[1]["features"])) if effect is not None else (None, [])


def _whole(effects: list[Effect | None], run: list[int]) -> Effect | None:
    """Returns the effect of a run as one step; `None` where it is not folded to one."""
    steps = [effect for effect in (effects[place] for place in run) if effect is not None]
    features: dict[str, list[Any]] = {}
    for name, constants in steps[-1][1]["features"].items():
        *folded, ends = constants
        if not len(run) <= len(folded) <= LONGEST_RUN:
            return None
        between = [step[1]["features"][name][0][2] for step in steps[:-1]]
        last = folded[len(run) - 1]
        if any(dtype != "float32" for dtype in between) or last[2] not in _FLOATS:
            return None
        features[name] = [_by_channel(last), ends]
    return [ARITHMETIC, {"when": steps[-1][1]["when"], "features": features}, None, False]


def _by_channel(constants: list[Any]) -> list[Any]:
    """Returns constants with one number for all channels where these have the same."""
    scale, offset, dtype, order = constants
    return [scale[:1] if len(set(scale)) == 1 else scale, offset[:1] if len(set(offset)) == 1 else offset, dtype, order]


def _without(listed: list[Any], run: list[int]) -> list[Any]:
    return [one for place, one in enumerate(listed) if place not in run]


def _said(arguments: dict[str, Any]) -> str:
    return flow({name: value for name, value in arguments.items() if value is not None})
