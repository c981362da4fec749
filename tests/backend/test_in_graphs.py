"""A dataset is looped over inside `tf.function` as often as one likes: nothing that it keeps belongs to one function's graph."""

from __future__ import annotations

from pipes import numbered
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.tf

SUM = sum(range(32))
KINDS: dict[str, Callable[[Any], Any]] = {
    "train": lambda pipe: pipe.train,
    "fixed": lambda pipe: pipe.dataset("train", epoch=1),
    "map": lambda pipe: pipe.train.map(lambda x, y: (x, y)),
    "take": lambda pipe: pipe.train.take(16),
    "repeat": lambda pipe: pipe.train.repeat(1),
    "numpy": lambda pipe: pipe.numpy("train"),
    "enumerate": lambda pipe: pipe.train.enumerate().map(lambda _, batch: batch),
}


@pytest.fixture
def pipe() -> Any:
    """One that nobody has used: what is kept is made by whoever comes first."""
    return numbered()


def total_of(dataset: Callable[[], Any]) -> Any:
    """Returns a new `tf.function` that sums the rows of a pass."""
    import tensorflow as tf

    @tf.function
    def total(factor: Any) -> Any:
        found = tf.zeros([])
        for _, y in dataset():
            found += tf.reduce_sum(y)
        return found * tf.cast(factor, tf.float32)

    return total


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "kind",
    [k if k in ("train", "fixed") else pytest.param(k, marks=pytest.mark.nightly) for k in KINDS],  # by day others are built inside
)
def test_one_dataset_in_several_functions_and_outside(pipe: Any, kind: str) -> None:
    """First where it is asked for inside, then one object in two functions, one of them traced again, and in eager loops."""
    assert float(total_of(lambda: KINDS[kind](pipe))(1)) == SUM
    dataset = KINDS[kind](pipe)
    one, other = total_of(lambda: dataset), total_of(lambda: dataset)
    assert [float(one(1)), float(other(1)), float(one(2.0))] == [SUM, SUM, 2 * SUM]
    assert sum(float(np.sum(y)) for _, y in dataset) == SUM
    assert sum(float(np.sum(y)) for _, y in dataset.map(lambda x, y: (x, y))) == SUM
    assert float(one(1)) == SUM
    if kind != "fixed":
        assert pipe.state()["epoch"] == 7


def test_an_eager_loop_first(pipe: Any) -> None:
    assert len(list(pipe.train)) == 16
    assert float(total_of(lambda: pipe.train)(1)) == SUM
    assert float(total_of(lambda: pipe.validation)(1)) == sum(range(1000, 1012))
    assert float(total_of(lambda: pipe.validation)(1)) == sum(range(1000, 1012))


def test_a_function_in_a_function_and_a_loop_in_a_loop(pipe: Any) -> None:
    import tensorflow as tf

    inner = total_of(lambda: pipe.train)

    @tf.function
    def outer(again: Any) -> Any:
        found = inner(1)
        if again:
            found += inner(2)
        for _ in pipe.validation.take(2):
            for _, y in pipe.dataset("train"):
                found += tf.reduce_sum(y)
        return found

    assert float(outer(tf.constant(False))) == 3 * SUM
    assert float(outer(tf.constant(True))) == 5 * SUM
    assert float(total_of(lambda: pipe.train)(1)) == SUM


def test_datasets_of_tensorflow_are_built_on_it_inside(pipe: Any) -> None:
    import tensorflow as tf

    @tf.function
    def total(times: Any) -> Any:
        both = tf.data.Dataset.zip((pipe.train.repeat(times), tf.data.Dataset.range(100))).map(lambda batch, _: batch[1])
        nested = tf.data.Dataset.range(2).flat_map(lambda _: pipe.train.map(lambda x, y: y))
        return both.concatenate(nested).reduce(0.0, lambda found, y: found + tf.reduce_sum(y))

    assert [float(total(tf.constant(1, tf.int64))), float(total(tf.constant(2, tf.int64)))] == [3 * SUM, 4 * SUM]
    assert float(total_of(lambda: pipe.train)(1)) == SUM


def test_a_loop_in_a_strategy_s_run(pipe: Any) -> None:
    import tensorflow as tf

    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    one, other = total_of(lambda: pipe.train), total_of(lambda: pipe.train)
    assert [float(strategy.run(f, (1,))) for f in (one, other, one)] == [SUM] * 3
    with strategy.scope():
        assert float(total_of(lambda: pipe.train)(1)) == SUM
    assert len(list(pipe.train)) == 16
    assert all(type(v.handle).__name__ == "EagerTensor" for v in (pipe._engine.progress.start, pipe._engine.progress.delivered))


def test_a_flow_in_two_functions() -> None:
    from pipegen.compat import ImageDataGenerator

    flow = ImageDataGenerator().flow(np.zeros((32, 4, 4, 1), np.uint8), np.arange(32.0, dtype=np.float32), batch_size=2, seed=1)
    assert [float(total_of(lambda: flow)(1)) for _ in range(2)] == [SUM, SUM]
    assert [float(total_of(lambda: flow.dataset)(1)) for _ in range(2)] == [SUM, SUM]
    assert sum(float(np.sum(y)) for _, y in flow.dataset) == SUM


def test_predictions_are_asked_for_inside(pipe: Any) -> None:
    import tensorflow as tf

    @tf.function
    def count() -> Any:
        return pipe.predict_on(np.zeros((5, 2, 2, 1), np.uint8)).dataset.reduce(0, lambda n, x: n + tf.shape(x)[0])

    assert int(count()) == int(count()) == 5


@pytest.mark.parametrize("kind", ["train", "map", pytest.param("repeat", marks=pytest.mark.nightly)])
def test_an_iterator_is_taken_inside(pipe: Any, kind: str) -> None:
    import tensorflow as tf

    @tf.function
    def step(batches: Any) -> Any:
        return tf.reduce_sum(next(batches)[1])

    for epoch in range(2):
        iterator = iter(KINDS[kind](pipe))
        assert sum(float(step(iterator)) for _ in range(16)) == SUM
        with pytest.raises(tf.errors.OutOfRangeError):
            step(iterator)
        assert next(iterator, None) is None
        assert pipe.state()["epoch"] == epoch + 1


def test_an_iterator_that_has_begun_outside_is_refused_inside(pipe: Any) -> None:
    import tensorflow as tf

    iterator = iter(pipe.train)
    next(iterator)
    with pytest.raises(RuntimeError, match="make a new one with `iter`"):
        tf.function(lambda: next(iterator), autograph=False)()
    assert len(list(iterator)) == 15
