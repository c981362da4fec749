"""A kernel that goes from example to example gives what one that takes the batch whole gives."""

from __future__ import annotations

from pipes import batches, pipeline
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from pipegen.ops.registry import transforms
from pipegen.plan.nodes import Kernel

if TYPE_CHECKING:
    from pathlib import Path

    import pipegen

pytestmark = pytest.mark.tf

RESIZE: dict[str, Any] = {"resize": {"size": 24}}
CHAIN: list[Any] = [
    RESIZE,
    {"random_equalization": {"probability": 0.4}},
    {"random_sharpness": {"factor": 0.9, "probability": 0.5}},
    {"random_rotation": {"degrees": 20, "probability": 0.5}},
    {"random_erasing": {"probability": 0.5}},
    {"random_gaussian_blur": {"sigma": [0.1, 2], "probability": 0.3}},
    {"random_flip": {}},
]
GATED = sorted(name for name, op in transforms().items() if "probability" in op.model_fields and op.examples)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """These images are so small that the pass would leave most stages alone."""
    monkeypatch.setattr("pipegen.passes.skip_unchanged._saves", lambda _stages, _x: True)


def rows_of(pipe: pipegen.Pipeline) -> list[Kernel]:
    plan = pipe._engine.executor("train").plan
    return [node for own in plan.buckets or (plan,) for node in own.nodes if isinstance(node, Kernel) and node.rows]


def alike(made: Any, expected: Any) -> None:
    """Batches of bytes are equal to the bit, of floats up to rounding."""
    assert len(made) == len(expected) > 0
    for a, b in zip(made, expected, strict=True):
        for x, y in zip(a, b, strict=True):
            if np.asarray(x).dtype == np.uint8:
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(x, y, rtol=0, atol=2e-4)


def compare(folder: Path, steps: list[Any], least: int = 1, **sections: Any) -> int:
    """Compares both ways, and returns how many stages go from example to example."""
    pipe = pipeline(folder, {"jit": "always"}, transforms=steps, **sections)
    found = rows_of(pipe)
    count = sum(len(kernel.stages) for kernel in found)
    assert count >= least
    if not count:
        return 0
    expected = batches(pipeline(folder, {"jit": "never"}, transforms=steps, **sections).train)
    for _ in range(2):  # the second time into memory that holds the first
        alike(batches(pipe.dataset("train", epoch=0)), expected)
    return count


@pytest.mark.by_day(1)
@pytest.mark.smoke
@pytest.mark.parametrize("remainder", ["keep", "drop"])
def test_each_example_gets_what_it_gets_in_a_batch(photo_folder: Path, remainder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables, a histogram, a filter, a warp and rectangles: bytes to the bit, also in a short last batch and in kept memory."""
    monkeypatch.setattr("pipegen.backend.kernels.reuse.LARGE", 1)
    sections = {"batch": {"size": 5, "remainder": remainder}, "output": {"dtype": "uint8"}}
    assert compare(photo_folder, CHAIN, 5, **sections) == 5


@pytest.mark.by_day(1)
@pytest.mark.smoke
@pytest.mark.parametrize("policy", ["rand_augment", "trivial_augment"])
def test_a_policy_gives_each_example_what_it_gives_a_batch(photo_folder: Path, policy: str) -> None:
    assert compare(photo_folder, [RESIZE, policy], 3) >= 3


def test_what_changes_no_example_of_a_batch_is_copied(photo_folder: Path) -> None:
    steps = [RESIZE, {"random_sharpness": {"factor": 0.9, "probability": 1e-9}}]
    compare(photo_folder, steps, output={"dtype": "uint8"})


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [CHAIN, [RESIZE, {"rescale": {"to": [0, 1]}}, *CHAIN[2:]]], ids=["bytes", "floats"])
def test_a_device_computes_the_same_in_whole_batches(photo_folder: Path, steps: list[Any]) -> None:
    import tensorflow as tf

    pipe = pipeline(photo_folder, {"jit": "always"}, transforms=steps)
    assert rows_of(pipe)
    stage = pipe.device_stage("train")
    made = batches(tf.function(stage.apply)(*sent) for sent in stage.dataset(epoch=0))
    alike(made, batches(pipe.dataset("train", epoch=0)))


@pytest.mark.nightly
@pytest.mark.parametrize(
    "sections",
    [
        {"batch": {"size": 4, "remainder": "keep", "buckets": {"sizes": [[24, 32], [32, 24]]}}},
        {"views": 2},
        {"transforms": [*CHAIN, {"mixup": {"alpha": 0.3}}, CHAIN[2]], "output": {"encode": {"label": "one_hot"}}},
    ],
    ids=["buckets", "views", "between combined images"],
)
def test_beside_other_sections(photo_folder: Path, sections: dict[str, Any]) -> None:
    resize: list[Any] = [{"resize": {"size": "bucket"}}] if "buckets" in sections.get("batch", {}) else [RESIZE]
    others = {name: value for name, value in sections.items() if name != "transforms"}
    assert compare(photo_folder, sections.get("transforms", [*resize, *CHAIN[1:]]), **others)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("floats", [False, True], ids=["bytes", "floats"])
@pytest.mark.parametrize("name", GATED)
def test_any_step_that_acts_on_some_examples(name: str, floats: bool, photo_folder: Path) -> None:
    written = yaml.safe_load(transforms()[name].examples[0].yaml)
    arguments = {} if isinstance(written, str) else dict(written[name] or {})
    steps = [RESIZE, *([{"rescale": {"to": [0, 1]}}] if floats else []), {name: arguments | {"probability": 0.4}}]
    try:
        if not compare(photo_folder, steps, 0, output={"dtype": "float32"}):
            pytest.skip("its stage does not go from example to example")
    except Exception as error:
        if type(error).__name__ != "SpecError":
            raise
        pytest.skip(str(error).splitlines()[0])
