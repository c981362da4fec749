"""Hypothesis strategies: whole recipes out of the registry, right by construction or dropped.

A new step takes part as soon as it has a worked example.
"""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import assume
from hypothesis import strategies as st
from planning import checked

from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.registry import transforms
from pipegen.ops.step_bases import CropTransform, GeometricTransform

SIDE = 24
"""Images are this small in tests."""
_FILLS: list[Any] = ["reflect", "nearest", "wrap", {"constant": 0}, {"constant": 200}]


def _step(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: _small(arguments, 3 * SIDE if name == "pad" else SIDE)}


def _small(arguments: dict[str, Any], side: int) -> dict[str, Any]:
    """The arguments with sizes that suit a small image."""
    small = dict(arguments)
    for key in ("size", "shorter_side", "at_least"):
        if key in small:
            small[key] = [side - 4, side] if isinstance(small[key], list) else side
    if "sizes" in small or "between" in small:
        small = {"sizes": [SIDE, SIDE + 4]}
    if "longer_side" in small:
        small["longer_side"] = 2 * SIDE
    if isinstance(small.get("shape"), list):  # a function gives what it gives
        small["shape"] = [None, None, small["shape"][2]]
    return small


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """One step, from a worked example, with some common arguments changed."""
    op = draw(st.sampled_from([t for t in transforms().values() if not issubclass(t, DecodeTransform)]))
    written = yaml.safe_load(draw(st.sampled_from(op.examples)).yaml)
    name, arguments = (written, {}) if isinstance(written, str) else next(iter(written.items()))
    arguments = dict(arguments)
    of_sound = name == "random_crop" and "seconds" in arguments  # which takes none
    if "probability" in op.model_fields and not of_sound and draw(st.booleans()):
        arguments["probability"] = draw(st.sampled_from([0, 0.3, 1]))
    if issubclass(op, GeometricTransform):
        if draw(st.booleans()):
            arguments["fill"] = draw(st.sampled_from(_FILLS))
        if draw(st.booleans()):
            arguments["interpolation"] = draw(st.sampled_from(["nearest", "bicubic"]))
        if draw(st.integers(0, 4)) == 0:
            arguments["exact"] = True
    if issubclass(op, CropTransform) and "area" in op.model_fields and "rows" not in arguments and draw(st.booleans()):
        arguments["area"] = [0.3, 0.9]
    return _step(name, arguments)


@st.composite
def recipes(draw: st.DrawFn) -> str:
    """A spec as YAML whose training split compiles."""
    chosen = draw(st.lists(steps(), min_size=1, max_size=6))
    fix = {"resize": {"size": draw(st.sampled_from([SIDE, [SIDE, SIDE + 8]]))}}
    at = draw(st.integers(0, min(1, len(chosen))))
    spec: dict[str, Any] = {"transforms": [*chosen[:at], fix, *chosen[at:]]}
    if draw(st.booleans()):
        spec["batch"] = {"size": draw(st.sampled_from([3, 4])), "remainder": draw(st.sampled_from(["drop", "keep", "pad"]))}
    if draw(st.booleans()):
        spec["output"] = {"channels": draw(st.sampled_from(["first", "last"]))}
    if any(issubclass(transforms()[next(iter(step))], CombiningTransform) for step in chosen):
        spec["output"] = {**spec.get("output", {}), "encode": {"label": "one_hot"}}
    text = yaml.safe_dump(spec)
    while "train" not in checked(text, classes=3).plans and spec["transforms"]:
        spec["transforms"] = spec["transforms"][:-1]  # drop steps from the end until the types agree
        text = yaml.safe_dump(spec)
    assume(spec["transforms"])
    return text
