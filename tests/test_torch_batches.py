"""`pipe.torch` gives PyTorch what `pipe.train` gives TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import RESIZE, pipeline
from typing import Any

import numpy as np
import pytest

from pipegen.errors import StateError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return pipeline(photo_folder, transforms=[RESIZE, "random_flip"])


def arrays(batches: Any) -> list[Any]:
    return [(np.asarray(x), np.asarray(y)) for x, y in batches]


def check_same(given: list[Any], expected: list[Any]) -> None:
    assert len(given) == len(expected)
    for (x, y), (image, label) in zip(given, expected, strict=True):
        np.testing.assert_array_equal(x, image)
        np.testing.assert_array_equal(y, label)


def test_a_loader_gives_the_batches_of_each_epoch(pipe: Any) -> None:
    loader = torch.utils.data.DataLoader(pipe.torch("train"), batch_size=None, num_workers=0)
    pipe.seek(0)
    for epoch in range(2):
        assert pipe.state()["epoch"] == epoch
        check_same(arrays(loader), arrays(pipe.dataset("train", epoch=epoch)))
    assert len(loader) == pipe.steps("train")
    held = [batch for batch, _ in zip(loader, range(3), strict=False)]
    assert all(isinstance(part, torch.Tensor) for batch in held for part in batch)
    check_same(arrays(held), arrays(pipe.dataset("train", epoch=2))[:3])
    held[0][0].zero_()  # which is nobody else's
    check_same(arrays(pipe.torch("validation")), arrays(pipe.dataset("validation")))


def test_a_state_goes_on_at_the_next_batch(pipe: Any) -> None:
    expected = arrays(pipe.dataset("train", epoch=1))
    pipe.seek(1)
    batches = pipe.torch("train")
    iterator = iter(batches)
    next(iterator)
    state = json.loads(json.dumps(batches.state_dict()))
    assert state == pipe.state()
    assert state["step"] == 1
    pipe.seek(5)
    batches.load_state_dict(state)
    check_same(arrays(batches), expected[1:])
    validation = pipe.torch("validation")
    next(iter(validation))
    after = validation.state_dict()
    check_same(arrays(validation), arrays(pipe.dataset("validation")))
    validation.load_state_dict(after)
    check_same(arrays(validation), arrays(pipe.dataset("validation"))[1:])
    with pytest.raises(StateError, match="not a state of split `validation`"):
        validation.load_state_dict(state)


def test_torchdata_saves_and_restores_where_it_stands(pipe: Any) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    pipe.seek(0)
    loader = stateful(pipe.torch("train"), batch_size=None, num_workers=0)
    iterator = iter(loader)
    first = next(iterator)
    state = loader.state_dict()
    pipe.seek(3)
    again = stateful(pipe.torch("train"), batch_size=None, num_workers=0)
    again.load_state_dict(state)
    check_same(arrays([first, *again]), arrays(pipe.dataset("train", epoch=0)))
    check_same(arrays(again), arrays(pipe.dataset("train", epoch=1)))


def test_large_tensors_take_over_the_memory_of_a_batch() -> None:
    from pipegen.backend.datasets.torch_batches import tensors

    tf = pytest.importorskip("tensorflow")
    with tf.device("CPU:0"):
        batch = tf.random.uniform([1 << 20])
    place = np.asarray(memoryview(batch)).__array_interface__["data"][0]
    assert tensors(batch).data_ptr() == place


def test_what_torch_cannot_take_is_said(pipe: Any, photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.backend.datasets.torch_batches import tensors

    tf = pytest.importorskip("tensorflow")
    half = tensors({"a": tf.constant([1.5, -2], tf.bfloat16), "b": tf.constant([True])})
    assert half["a"].dtype == torch.bfloat16
    assert half["a"].tolist() == [1.5, -2]
    with pytest.raises(TypeError, match="no string tensors"):
        tensors(tf.constant(["a"]))
    monkeypatch.setattr("pipegen.backend.datasets.torch_batches.get_worker_info", lambda: object())
    with pytest.raises(RuntimeError, match="num_workers=0"):
        iter(pipe.torch("train"))
