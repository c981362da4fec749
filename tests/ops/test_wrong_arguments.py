"""Every step with every wrong argument: `validate` has findings or a plan for each split, and no other error. No data, no TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pipegen.ops.registry import transforms
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

INF, NAN, HUGE = float("inf"), float("nan"), 10**400
NUMBERS: list[Any] = [0, -1, 1, 2, 3, 28672, 10**6, 2**31, 2**63, 2**64, HUGE, 0.5, -0.5, 1e-9, 1e38, 1e39, 1e300, NAN, INF, -INF]
TEXTS: list[Any] = ["", "x", "1GiB", "0", "1/255", "nan", "$x", "a:b", "my_pkg.mod:fn", "😀" * 50, "a\x1b[31m", "a" * 10_000]
LISTS: list[Any] = [[], [1], [0, 0], [1, 2], [2, 1], [-1, -1], [1, 2, 3], [[1, 2], [3, 4]], [None], [NAN, 1], [1e308, 1e308], [10**9] * 2]
MAPS: list[Any] = [
    {},
    {"a": 1},
    {"constant": 1},
    {"constant": NAN},
    {"constant": HUGE},
    {"linear": {"from": 0, "to": 1, "epochs": [0, 2]}},
    {"linear": {"from": 0, "to": HUGE, "epochs": [2, 0]}},
    {"linear": {"from": 1e308, "to": -1e308, "epochs": [0, 10**30]}},
    {"step": {0: 5, 30: 9}},
    {"step": {"0": HUGE}},
    {"step": {}},
    {"table": [15, 3]},
]
STEPS: list[Any] = [
    "random_flip",
    ["random_flip", "random_hue"],
    ["random_flip", {"random_hue": {"degrees": INF}}],
    [{"resize": {"size": "1GiB"}}, "random_flip"],
    [{"one_of": {"steps": ["random_flip"]}}, "random_flip"],
    [{"rand_augment": {"id": "1GiB"}}, None],
    {"random_flip": None},
]
WRONG = [None, True, False, *NUMBERS, *TEXTS, *LISTS, *MAPS, *STEPS]
SOURCES: list[Any] = [
    {"image_folder": {"path": "photos/"}},
    {"arrays": {"features": {"image": {"kind": "image", "size": 32}, "label": {"kind": "label", "classes": 3}}}},
    {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}},
]
SHARES = 8
"""Tests that share what is tried by night; several processes can run them."""
SIZED: dict[str, Any] = {"resize": {"size": 64}}


def wrong_steps() -> Iterator[Any]:
    """Each step with each argument wrong in turn, and with something else in the place of its arguments."""
    for name, op in sorted(transforms().items()):
        written = yaml.safe_load(op.examples[0].yaml)
        right = {} if isinstance(written, str) else dict(written[name])
        yield from ({name: {**right, field: value}} for field in op.model_fields for value in WRONG)
        yield from ({name: value} for value in WRONG)


def around(step: Any) -> Iterator[list[Any]]:
    """Recipes that hold a step: alone, on images of one size, behind what combines them, and as a part of a policy."""
    yield [step]
    yield [SIZED, step, "random_flip"]
    yield ["mixup", step]
    yield [SIZED, {"mixup": {"probability": 0.5}}, step]
    yield [SIZED, {"one_of": {"steps": [step, "random_flip"]}}, {"rescale": {"to": [0, 1]}}]


def judge_all(stride: int, first: int = 0) -> int:
    """Validate every `stride`-th combination from the first on; returns how many have errors."""
    splits = {"parts": {"train": 0.8, "validation": 0.2}}
    texts = ((source, steps) for step in wrong_steps() for steps in around(step) for source in SOURCES)
    wrong = 0
    for number, (source, steps) in enumerate(texts):
        if number % stride != first:
            continue
        spec = {"pipegen": 1, "source": source, "splits": splits, "transforms": steps, "output": {"encode": {"label": "one_hot"}}}
        try:
            found = inspect(spec)
        except Exception as error:
            raise AssertionError(f"{steps} on {source}") from error
        assert all(d.message for d in found.diagnostics.items)
        assert found.diagnostics.has_errors or set(found.plans) == {"train", "validation"}, f"{steps} on {source}"
        wrong += found.diagnostics.has_errors
    return wrong


def test_a_sample_of_wrong_arguments_is_judged() -> None:
    assert judge_all(stride=3989) > 50


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_every_wrong_argument_is_judged(share: int) -> None:
    """Each argument with each value, somewhere."""
    assert judge_all(stride=7 * SHARES, first=7 * share) > 10_000 / SHARES


@pytest.mark.parametrize(
    "steps",
    [
        [{"random_resized_crop": {"size": 28672}}],
        [{"random_resized_crop": {"size": [28672, 32767]}}],
        ["mixup", {"rand_augment": {"id": "1GiB"}}],
        [{"cutmix": {"when": 7}}, {"random_hue": {"degrees": "x"}}, {"mixup": {"alpha": -1}}],
        [{"random_gaussian_noise": {"std": 1_000_000}}],
    ],
)
@pytest.mark.parametrize("source", SOURCES)
def test_what_once_ended_in_a_traceback(steps: list[Any], source: Any) -> None:
    found = inspect({"pipegen": 1, "source": source, "splits": {"parts": {"train": 0.8, "validation": 0.2}}, "transforms": steps})
    assert found.diagnostics.has_errors or set(found.plans) == {"train", "validation"}
