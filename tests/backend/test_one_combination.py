"""One pipeline of much at once: arrays of a file, a rare filter, a policy, a mix and an override, whatever the cache.

Each has tests of its own; here they meet, and threads, functions and shards meet them.
"""

from __future__ import annotations

import threading
from collections import Counter
from pipes import batches, epoch_of, same
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pipegen
from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf

SIDE, SIZE = 8, 8
TRAIN, COUNT = 32, 48
CACHES = ("none", "memory", "disk")


@pytest.fixture(scope="module")
def pipes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pipeline]:
    """The same pipeline with every cache."""
    folder = tmp_path_factory.mktemp("combination")
    images = np.random.default_rng(5).integers(0, 256, (COUNT, SIDE + 3, SIDE + 4, 3), np.uint8)
    np.savez(folder / "rows.npz", x=images, y=np.arange(COUNT) % 3)
    return {cache: _build(folder, cache) for cache in CACHES}


def _build(folder: Path, cache: str) -> Pipeline:
    features = {"image": {"kind": "image", "key": "x"}, "label": {"kind": "label", "key": "y"}}
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"path": str(folder / "rows.npz"), "features": features}},
        "splits": {"parts": {"train": 0.5, "validation": 0.5}},
        "transforms": [
            {"resize": {"size": SIDE}},
            {"random_sharpness": {"factor": 0.8, "probability": 0.3}},
            {"rand_augment": {"num_ops": 1, "magnitude": 9}},
            {"mixup": {"alpha": 0.4}},
        ],
        "batch": {"size": SIZE},
        "output": {"encode": {"label": "one_hot"}},
    }
    overrides = {"splits.parts": {"train": 2 / 3, "validation": 1 / 3}, "transforms.rand_augment.magnitude": 12}
    where: Any = {"disk": str(folder / "cache")} if cache == "disk" else cache
    return pipegen.build(spec, overrides=overrides, runtime={"cache": where, "jit": "never"})


def _batches_of(pipe: Pipeline, epoch: int) -> list[tuple[Any, ...]]:
    pipe.seek(epoch, 0)
    return batches(pipe.train)


def kinds(batch: Any) -> tuple[bytes, ...]:
    """A batch as something to count."""
    return tuple(np.asarray(part).tobytes() for part in batch)


@pytest.mark.parametrize("cache", ["memory", pytest.param("disk", marks=pytest.mark.nightly)])
def test_every_cache_gives_the_same_bits(pipes: dict[str, Pipeline], cache: str) -> None:
    assert pipes["none"].spec.model.transforms[2].magnitude == 12
    cached = [any(isinstance(node, Cache) for node in pipe._compiled.splits["train"].plan.nodes) for pipe in pipes.values()]
    assert cached == [False, True, True]
    assert len({pipe.spec_hash for pipe in pipes.values()}) == 1
    epochs = [epoch_of(pipes["none"], epoch) for epoch in (0, 1)]
    assert epochs[0][0].shape == (TRAIN, SIDE, SIDE, 3)
    assert not np.array_equal(epochs[0][0], epochs[1][0])
    for epoch in (0, 1, 0):  # the first pass fills a cache, and later ones read it
        same(epoch_of(pipes[cache], epoch), epochs[epoch])


@pytest.mark.parametrize("cache", [*CACHES[:2], pytest.param("disk", marks=pytest.mark.nightly)])
def test_two_threads_over_one_iterator_give_each_batch_once(pipes: dict[str, Pipeline], cache: str) -> None:
    pipe = pipes[cache]
    expected = Counter(kinds(batch) for batch in _batches_of(pipes["none"], 2))
    assert len(expected) == TRAIN // SIZE
    pipe.seek(2, 0)
    iterator, taken = iter(pipe.train), list[Any]()
    threads = [threading.Thread(target=lambda: taken.extend(map(kinds, iterator))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert Counter(taken) == expected
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (3, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("cache", CACHES)
def test_two_functions_loop_over_one_dataset(pipes: dict[str, Pipeline], cache: str) -> None:
    import tensorflow as tf

    pipe = pipes[cache]

    def total() -> Any:
        found = tf.zeros([3])
        for _, y in pipe.train:
            found += tf.reduce_sum(y, axis=0)
        return found

    one, other = tf.function(total), tf.function(total)
    wanted = epoch_of(pipes["none"], 1)[1].sum(axis=0)
    for function in (one, other):
        pipe.seek(1, 0)
        np.testing.assert_allclose(function().numpy(), wanted, rtol=1e-5)
        assert pipe.state()["epoch"] == 2


@pytest.mark.nightly
@pytest.mark.parametrize("cache", CACHES)
def test_two_shares_make_up_each_batch(pipes: dict[str, Pipeline], cache: str) -> None:
    whole = _batches_of(pipes["none"], 1)
    shares = [batches(pipes[cache].dataset("train", epoch=1, shard=(i, 2))) for i in (0, 1)]
    assert [len(share) for share in shares] == [len(whole)] * 2
    for batch, *parts in zip(whole, *shares, strict=True):
        same([np.concatenate(both) for both in zip(*parts, strict=True)], batch)
