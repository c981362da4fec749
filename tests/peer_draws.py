"""The same picture, drawn many times by a step of another library and by the steps of a spec: how far the results are apart."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import numpy as np
import yaml
from lowered_steps import lower, uses_of

from pipegen.diagnostics.diagnostic import Advice
from pipegen.ops.registry import transforms
from pipegen.phases.compilation import inspect
from pipegen.types import BYTE_RANGE, FeatureType, Interval

Array = np.ndarray[Any, Any]
SIDE, DRAWS, THEIRS = 48, 200, 600
LEVEL = 1.5
"""Levels of 255 by which roundings may differ: values as near are the same to the test of Kolmogorov and Smirnov."""
PLACES = ((11, 30), (24, 23), (35, 12), (20, 9), (30, 38))
"""Pixels whose values are compared, draw by draw, away from the border."""


def picture() -> Array:
    """Waves and a little noise, as bytes; the three channels have nearly one mean, as in gray photographs, and differ in every place."""
    y, x = np.mgrid[:SIDE, :SIDE]
    waves = [120 + 75 * np.sin(x / (7 + c) + 2 * c) * np.cos(y / (9 - c) + c) + 20 * np.sin(y / 5 + c) for c in range(3)]
    image = np.stack(waves, -1) + np.random.default_rng(2).normal(0, 4, (SIDE, SIDE, 3))
    image += 122 - image.mean((0, 1))
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


def written(word: str, given: Any) -> tuple[list[dict[str, Any]] | None, str]:
    """The steps that a finding about a word says, where it says one thing to write, and nothing else; and all of its help."""
    step = word if given is None else f"{word}: {json.dumps(given)}"
    text = f"pipegen: 1\nsource: {{image_folder: {{path: photos/}}}}\ntransforms:\n  - resize: {{size: {SIDE}}}\n  - {step}\n"
    (found,) = [d for d in inspect("spec.yaml", text=text).diagnostics if d.code == "PG103"]
    said = "\n".join(map(str, found.help))
    if len(found.help) != 1 or not isinstance(found.help[0], Advice):
        assert found.fix is None, "what is not sure is not written into a spec"
        return None, said
    lines = found.help[0].lines
    assert "\n" in lines or found.fix is not None
    steps = yaml.safe_load(lines)
    return [{one: {}} if isinstance(one, str) else one for one in (steps if isinstance(steps, list) else [steps])], said


def ours(steps: list[dict[str, Any]], image: Array, draws: int = DRAWS) -> Array:
    """The picture after some steps, once for each row of draws; each number is drawn once from each of as many equal parts of 0 to 1."""
    rng = np.random.default_rng(5)
    x = FeatureType(
        "image", "uint8" if image.dtype == np.uint8 else "float32", image.shape, BYTE_RANGE if image.max() > 1 else Interval(0, 1)
    )
    given: Any = np.repeat(image[None], draws, 0)
    same = True
    for one in steps:
        ((op, arguments),) = one.items()
        step = transforms()[op].model_validate(arguments or {})
        columns = max(ref.end for ref in uses_of(step)) if uses_of(step) else 0
        same = same and not columns
        if same:
            given = given[:1]
        count = len(given)
        parts = [(rng.permutation(count) + rng.random(count)) / count for _ in range(columns + 1)]
        y = step.infer(x)
        made = lower(step, x, y, list(given), np.stack(parts, 1))
        given = np.concatenate([np.asarray(part) for part in made]) if isinstance(made, list) else np.asarray(made)
        given = np.repeat(given, draws // len(given), 0)
        if given.dtype != np.uint8 and y.interval is not None:
            given = np.clip(given, y.interval.low, y.interval.high)
        x = y
    return given


def distance(mine: Array, other: Array, level: float = LEVEL) -> tuple[float, float, float]:
    """How far means and spreads are apart, in shares of the range of values, and the least p of Kolmogorov's and Smirnov's test."""
    from scipy.stats import kstwobign

    assert mine.shape[1:] == other.shape[1:], (mine.shape, other.shape)
    width = 255.0 if max(mine.max(), other.max()) > 2 else 1.0
    a, b = (np.asarray(one, np.float64) * (255 / width) for one in (mine, other))
    mean = max(abs(a.mean() - b.mean()), *np.abs(a.mean((0, 1, 2)) - b.mean((0, 1, 2))))
    spread = max(abs(a.std() - b.std()), abs(a.mean((1, 2, 3)).std() - b.mean((1, 2, 3)).std()))
    root = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    gaps = [_gap(s, t, level) for s, t in zip(_figures(a).T, _figures(b).T, strict=True)]
    return mean / 255, spread / 255, float(kstwobign.sf(root * max(gaps)))


def _figures(images: Array) -> Array:
    """Numbers of each draw: the mean and spread of the image, the means of its channels, and some pixels.

    The border, which filters treat in ways of their own, is left out.
    """
    height, width = images.shape[1:3]
    inner = images[:, 4:-4, 4:-4]
    rows, columns = zip(*((y * height // SIDE, x * width // SIDE) for y, x in PLACES), strict=True)
    pixels = images[:, rows, columns].reshape(len(images), -1)
    return np.concatenate([inner.mean((1, 2, 3))[:, None], inner.std((1, 2, 3))[:, None], inner.mean((1, 2)), pixels], 1)


def _gap(a: Array, b: Array, level: float) -> float:
    """The largest difference of the shares of draws up to a value, where values within a level are the same."""

    def above(s: Array, t: Array) -> float:
        return float((np.arange(1, len(s) + 1) / len(s) - np.searchsorted(np.sort(t), np.sort(s) + level, side="right") / len(t)).max())

    return max(above(a, b), above(b, a), 0.0)


def torchvision() -> Any:
    """`torchvision.transforms.v2`, also where its compiled operators are for another PyTorch: no transform of images needs them."""
    import torch

    made = []
    while True:
        try:
            from torchvision.transforms import v2
        except RuntimeError as error:
            missing = re.search(r"operator (torchvision::\w+) does not exist", str(error))
            if missing is None:
                raise
            made.append(torch.library.Library("torchvision", "FRAGMENT"))
            made[-1].define(f"{missing[1].partition('::')[2]}(Tensor x) -> Tensor")
            for name in [name for name in sys.modules if name.startswith("torchvision")]:
                del sys.modules[name]
        else:
            v2.keep = made
            return v2
