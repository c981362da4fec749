"""Batches by their numbers, in any order, and iterators that several threads share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.backend.datasets import pipeline_dataset, requested
from pipegen.compat import ImageDataGenerator

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

X = np.random.default_rng(1).integers(0, 256, (23, 8, 8, 3)).astype(np.uint8)
Y = np.arange(23)


def flow_of(**options: Any) -> Any:
    return ImageDataGenerator(horizontal_flip=True).flow(X, Y, batch_size=3, seed=5, **options)


@cache
def expected() -> list[Any]:
    """The batches of the first epoch, in turn."""
    flow = flow_of()
    return [next(flow) for _ in range(len(flow))]


def same(batches: dict[int, Any], wanted: list[Any]) -> None:
    for i, batch in batches.items():
        for a, b in zip(batch, wanted[i], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
def test_any_order_gives_the_same_batches() -> None:
    flow, wanted = flow_of(), expected()
    for order in (range(8), range(7, -1, -1), [3, 3, 4, 5, 1, 7, 0, 1, 2, 3, 6]):
        same({i: flow[i] for i in order}, wanted)
    same({0: next(flow), 5: flow[5], 1: next(flow), 4: flow[4]}, wanted)
    flow.on_epoch_end()
    later = [flow[i][1] for i in range(8)]
    assert sorted(np.concatenate(later)) == list(range(23))
    assert not np.array_equal(later[0], wanted[0][1])


def test_a_jump_makes_no_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = flow_of()
    flow[0]
    for module in (pipeline_dataset, requested):
        monkeypatch.setattr(module, "batches_of", lambda *_: pytest.fail("a dataset was made"))
    for i in (5, 2, 3, 4, 7):
        flow[i]


def test_threads_share_an_iterator() -> None:
    flow, wanted = flow_of(), expected()
    order = np.random.default_rng(0).permutation(np.tile(np.arange(8), 4))
    with ThreadPoolExecutor(4) as pool:
        batches = list(pool.map(flow.__getitem__, order.tolist()))
    for i, batch in zip(order, batches, strict=True):
        same({int(i): batch}, wanted)
    with ThreadPoolExecutor(4) as pool:
        given = [f.result()[1] for f in [pool.submit(flow.next) for _ in range(8)]]
    assert sorted(np.concatenate(given)) == list(range(23))
    assert flow.total_batches_seen == 8


def test_an_iterator_that_goes_leaves_no_thread_waiting() -> None:
    flow = flow_of()
    flow[4]
    flow[5]
    gone = threading.Event()
    held = [flow]
    del flow

    def drop() -> None:
        held.clear()
        gone.set()

    threading.Thread(target=drop, daemon=True).start()
    assert gone.wait(30)


def test_damage_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    for i in range(8):
        Image.fromarray(picture(i, 12, 12)).save(tmp_path / f"{i}.png")
    (tmp_path / "3.png").write_bytes((tmp_path / "3.png").read_bytes()[:60])
    asked: dict[str, Any] = {"target_size": (12, 12), "class_mode": None, "batch_size": 2, "shuffle": False}
    flow = ImageDataGenerator().flow_from_dataframe({"filename": [f"{i}.png" for i in range(8)]}, tmp_path, **asked)
    images = [np.asarray(Image.open(tmp_path / f"{i}.png")) if i != 3 else None for i in range(8)]
    np.testing.assert_array_equal(flow[0], images[:2])
    for _ in range(2):
        with pytest.raises(pipegen.PipegenError, match=r"3\.png"):
            flow[1]
    for i in (2, 3, 0):
        np.testing.assert_array_equal(flow[i], images[2 * i : 2 * i + 2])


@pytest.mark.nightly
def test_a_sequence_of_ones_own_reads_it_out_of_order() -> None:
    """The class that people wrote around a flow, for two inputs; `fit` shuffles its batches."""
    import keras

    class Both(keras.utils.PyDataset):
        def __init__(self, flow: Any) -> None:
            super().__init__(workers=3)
            self.flow = flow

        def __len__(self) -> int:
            return len(self.flow)

        def __getitem__(self, index: int) -> Any:
            x, y = self.flow[index]
            seen.append(y)
            return x, y[:, None]

        def on_epoch_end(self) -> None:
            self.flow.on_epoch_end()

    seen: list[Any] = []
    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(Both(flow_of()), epochs=2, verbose=0)
    assert set(np.concatenate(seen)) == set(range(23))
