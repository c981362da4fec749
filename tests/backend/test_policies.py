"""Policies and schedules in running pipelines: the same numbers whatever the runtime, and the epoch where it belongs."""

from __future__ import annotations

from pipes import epoch_of, pipeline
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
RESIZE = {"resize": {"size": 20}}
POLICY: list[Any] = [
    RESIZE,
    "random_flip",
    {"rand_augment": {"num_ops": 1, "magnitude": {"linear": {"from": 0, "to": 30, "epochs": [0, 2]}}}},
    {"one_of": {"steps": [{"random_rotation": {"degrees": {"step": {0: 0, 2: 40}}}}, {"random_hue": {"degrees": 30}}]}},
]
E1 = 1e-6 * 255


def stream(pipe: Pipeline, epoch: int = 2, step: int = 0) -> Array:
    """The images of an epoch, from one step on."""
    return epoch_of(pipe, epoch, step)[0]


def fixed(pipe: Pipeline, epoch: int = 2, **more: Any) -> Array:
    """The same from a dataset that keeps no state, which is traced anew."""
    return np.concatenate([np.asarray(x) for x, _ in pipe.dataset("train", epoch=epoch, **more)])


@pytest.fixture(scope="module")
def plain(photo_folder: Path) -> Pipeline:
    return pipeline(photo_folder, transforms=POLICY)


@pytest.fixture(scope="module")
def images(plain: Pipeline) -> Array:
    return stream(plain)


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [[RESIZE, POLICY[-1]], POLICY], ids=["one_of", "all"])
def test_the_same_with_xla(photo_folder: Path, steps: list[Any]) -> None:
    plain, compiled = (stream(pipeline(photo_folder, {"jit": jit}, transforms=steps)) for jit in ("never", "always"))
    assert np.abs(compiled - plain).max() <= E1


@pytest.mark.nightly  # by day those of colours and of geometry are
def test_the_same_at_every_batch_size(photo_folder: Path, images: Array) -> None:
    small = stream(pipeline(photo_folder, transforms=POLICY, batch={"size": 4}))
    assert np.abs(small[: len(images)] - images).max() <= E1


@pytest.mark.nightly  # by day those of combined examples and of colours are
def test_the_same_for_every_share(plain: Pipeline, images: Array) -> None:
    share = fixed(plain, shard=(1, 2))
    half = images.reshape(-1, 8, *images.shape[1:])[:, 4:].reshape(share.shape)
    assert np.abs(share - half).max() <= E1


@pytest.mark.nightly
def test_resumed_in_the_middle(plain: Pipeline, images: Array) -> None:
    np.testing.assert_array_equal(stream(plain, step=2), images[16:])


@pytest.mark.nightly
def test_a_schedule_goes_by_the_epoch(photo_folder: Path, plain: Pipeline) -> None:
    """An epoch of a scheduled pipeline is that epoch of one that has the strengths of then, and no draw moves."""
    then = [RESIZE, "random_flip", {"rand_augment": {"num_ops": 1, "magnitude": 15}},
            {"one_of": {"steps": [{"random_rotation": {"degrees": 0}}, {"random_hue": {"degrees": 30}}]}}]  # fmt: skip
    np.testing.assert_array_equal(stream(plain, epoch=1), stream(pipeline(photo_folder, transforms=then), epoch=1))


def test_epochs_of_a_number_of_steps_count_as_such(photo_folder: Path) -> None:
    """With `epoch: {steps}`, two epochs are one pass over the data, and a schedule goes by epochs."""
    turn = {"random_rotation": {"degrees": {"table": [0, 90]}, "probability": 1}}
    pipe = pipeline(photo_folder, transforms=[RESIZE, turn], epoch={"steps": 2})
    still = pipeline(photo_folder, transforms=[RESIZE], epoch={"steps": 2})
    np.testing.assert_array_equal(stream(pipe, epoch=0), stream(still, epoch=0).astype(np.float32))
    assert np.abs(stream(pipe, epoch=1) - stream(still, epoch=1)).max() > 9


def test_training_runs_through_the_schedule(photo_folder: Path) -> None:
    """Each pass over `.train` is the next epoch."""
    pipe = pipeline(photo_folder, transforms=[RESIZE, {"random_rotation": {"degrees": {"table": [0, 90]}}}])
    passes = [np.concatenate([np.asarray(x) for x, _ in pipe.train]) for _ in range(2)]
    np.testing.assert_array_equal(passes[0], stream(pipe, epoch=0))
    np.testing.assert_array_equal(passes[1], fixed(pipe, epoch=1))
