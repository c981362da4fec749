"""The same picture, drawn many times by a step of another library and by the steps of a spec: how far the results are apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from lowered_steps import lower, uses_of

from pipegen.diagnostics.advice import Advice
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
    """The steps that a finding about a word says, if it says exactly one thing to write, and all of its help."""
    import yaml

    step = word if given is None else {word: given}
    spec = {"pipegen": 1, "source": {"image_folder": {"path": "photos/"}}, "transforms": [{"resize": {"size": SIDE}}, step]}
    (found,) = [d for d in inspect(spec).diagnostics if d.code == "PG103"]
    advice = [line for line in found.help if isinstance(line, Advice) and line.into == "step"]
    said = "\n".join(map(str, found.help))
    if len(advice) != 1 or "nearest" in advice[0] or "example" in advice[0]:
        return None, said
    steps = yaml.safe_load(advice[0].lines)
    return [{one: {}} if isinstance(one, str) else one for one in (steps if isinstance(steps, list) else [steps])], said


def ours(steps: list[dict[str, Any]], image: Array, draws: int = DRAWS) -> Array:
    """The picture after some steps, once for each row of draws; each number is drawn once from each of as many equal parts of 0 to 1."""
    rng = np.random.default_rng(5)
    x = FeatureType("image", "uint8" if image.dtype == np.uint8 else "float32", image.shape, BYTE_RANGE if image.max() > 1 else Interval(0, 1))
    given: Any = np.repeat(image[None], draws, 0)
    for one in steps:
        ((op, arguments),) = one.items()
        step = transforms()[op].model_validate(arguments or {})
        columns = max(ref.end for ref in uses_of(step)) if uses_of(step) else 0
        parts = [(rng.permutation(draws) + rng.random(draws)) / draws for _ in range(columns + 1)]
        y = step.infer(x)
        made = lower(step, x, y, list(given), np.stack(parts, 1))
        given = np.concatenate([np.asarray(part) for part in made]) if isinstance(made, list) else np.asarray(made)
        if given.dtype != np.uint8 and y.interval is not None:
            given = np.clip(given, y.interval.low, y.interval.high)
        x = y
    return given


def distance(mine: Array, other: Array) -> tuple[float, float, float]:
    """How far means and spreads are apart, in shares of the range of values, and the least p of Kolmogorov's and Smirnov's test."""
    from scipy.stats import kstwobign

    assert mine.shape[1:] == other.shape[1:], (mine.shape, other.shape)
    width = 255.0 if max(mine.max(), other.max()) > 2 else 1.0
    a, b = (np.asarray(one, np.float64) * (255 / width) for one in (mine, other))
    mean = max(abs(a.mean() - b.mean()), *np.abs(a.mean((0, 1, 2)) - b.mean((0, 1, 2))))
    spread = max(abs(a.std() - b.std()), abs(a.mean((1, 2, 3)).std() - b.mean((1, 2, 3)).std()))
    root = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    gaps = [_gap(s, t) for s, t in zip(_figures(a).T, _figures(b).T, strict=True)]
    return mean / 255, spread / 255, float(kstwobign.sf(root * max(gaps)))


def _figures(images: Array) -> Array:
    """Numbers of each draw: the mean and spread of the image, the means of its channels, and some pixels; the border, which filters treat in ways
    of their own, is left out."""
    height, width = images.shape[1:3]
    inner = images[:, 4:-4, 4:-4]
    rows, columns = zip(*((y * height // SIDE, x * width // SIDE) for y, x in PLACES), strict=True)
    pixels = images[:, rows, columns].reshape(len(images), -1)
    return np.concatenate([inner.mean((1, 2, 3))[:, None], inner.std((1, 2, 3))[:, None], inner.mean((1, 2)), pixels], 1)


def _gap(a: Array, b: Array) -> float:
    """The largest difference of the shares of draws up to a value, where values within a level are the same."""

    def above(s: Array, t: Array) -> float:
        return float((np.arange(1, len(s) + 1) / len(s) - np.searchsorted(np.sort(t), np.sort(s) + LEVEL, side="right") / len(t)).max())

    return max(above(a, b), above(b, a), 0.0)
