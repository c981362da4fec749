"""Waiting is measured where it happens, in `__next__`, and comes with Keras' logs."""

from __future__ import annotations

import time
from dataclasses import replace
from pipes import numbered
from typing import Any

import numpy as np
import pytest

from pipegen.waiting import WATCHERS, EpochRate, Waiting, num_rows

pytestmark = pytest.mark.tf

NAP = 0.02
"""Seconds that making a batch takes."""


@pytest.fixture(scope="module")
def pipe() -> Any:
    """16 training batches of 2."""
    return numbered()


@pytest.fixture
def slow(pipe: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, each batch of which takes a while to come."""
    from pipegen.backend.datasets.pipeline_dataset import BareIterator

    taken = BareIterator.__next__

    def late(self: BareIterator) -> Any:
        time.sleep(NAP)
        return taken(self)

    monkeypatch.setattr(BareIterator, "__next__", late)
    pipe.seek(0, 0)
    return pipe


def counted(pipe: Any, split: str = "train") -> Waiting:
    return pipe._engine.executor(split).waiting  # type: ignore[no-any-return]


def model(execution: int = 1, nap: float = 0.0) -> Any:
    """A model whose step takes at least so many seconds."""
    import keras
    import tensorflow as tf

    class Slow(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            def wait(values: Any) -> Any:
                time.sleep(nap)
                return values

            return tf.ensure_shape(tf.numpy_function(wait, [x], tf.float32), x.shape) if nap else x

    keras.utils.set_random_seed(1)
    inputs = keras.Input((2, 2, 1))
    made = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Flatten()(Slow()(inputs))))
    made.compile("sgd", "mse", steps_per_execution=execution, jit_compile=False)
    return made


def test_batches_examples_and_seconds_are_counted(slow: Any) -> None:
    waiting = counted(slow)
    before, seen = replace(waiting), []
    WATCHERS.append(seen.append)
    try:
        list(slow.train)
    finally:
        WATCHERS.remove(seen.append)
    assert seen == [waiting] * 16
    taken = waiting.since(before)
    assert (taken.batches, taken.examples) == (16, 32)
    assert 16 * NAP <= taken.seconds < 16 * NAP + 3


@pytest.mark.parametrize("derive", ["repeat", "map", "take", "numpy"])
def test_what_is_derived_counts_once(pipe: Any, derive: str) -> None:
    before = counted(pipe).batches
    pipe.seek(0, 0)
    made = {
        "repeat": lambda: pipe.train.repeat(1),
        "map": lambda: pipe.train.map(lambda x, y: (x, y)),
        "take": lambda: pipe.train.take(16),
        "numpy": lambda: pipe.numpy("train"),
    }[derive]()
    assert len(list(made)) == 16
    assert counted(pipe).batches - before == 16


def test_what_a_function_is_traced_with_is_no_batch(pipe: Any) -> None:
    import tensorflow as tf

    before = counted(pipe, "validation").batches

    @tf.function
    def total() -> Any:
        found = tf.constant(0.0)
        for _, y in pipe.dataset("validation"):
            found += tf.reduce_sum(y)
        return found

    assert float(total()) == sum(range(1000, 1012))
    assert counted(pipe, "validation").batches == before


class Clock:
    """Counts an epoch's training steps with its own clock, from outside."""

    def __init__(self, waiting: Waiting) -> None:
        import keras

        clock = self
        self.share = self.rate = 0.0

        class Callback(keras.callbacks.Callback):
            def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
                clock.begin, clock.before = time.perf_counter(), replace(waiting)

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
                seconds, taken = time.perf_counter() - clock.begin, waiting.since(clock.before)
                clock.share, clock.rate = taken.seconds / seconds, taken.examples / seconds

        self.callback = Callback()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("execution", [1, 4])
def test_keras_logs_have_the_share_and_the_rate(slow: Any, execution: int) -> None:
    clock = Clock(counted(slow))
    callbacks = [slow.callback(), clock.callback]
    history = model(execution).fit(slow.train, validation_data=slow.validation, epochs=2, callbacks=callbacks, verbose=0).history
    share, rate = history["wait_share"][1], history["examples_per_second"][1]
    assert len(history["wait_share"]) == 2
    assert share == pytest.approx(clock.share, rel=0.3)
    assert rate == pytest.approx(clock.rate, rel=0.3)
    assert 15 * NAP * clock.rate / 32 <= share <= 1, "each batch is waited for, however long the rest takes"


def test_a_slow_model_waits_for_little(pipe: Any) -> None:
    pipe.seek(0, 0)
    clock = Clock(counted(pipe))
    history = model(nap=NAP).fit(pipe.train, epochs=2, callbacks=[pipe.callback(), clock.callback], verbose=0).history
    share, rate = history["wait_share"][1], history["examples_per_second"][1]
    assert share == pytest.approx(clock.share, rel=0.3)
    assert rate < 2 / NAP
    assert share <= 1 - NAP * rate / 2 * 0.9, "the time that the model takes is none of waiting"


def test_under_a_strategy_nothing_is_said(pipe: Any) -> None:
    import tensorflow as tf

    pipe.seek(0, 0)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        made = model()
    history = made.fit(pipe.train, epochs=1, callbacks=[pipe.callback()], verbose=0).history
    assert set(history) == {"loss"}


def test_nothing_seen_is_no_figure_and_rows_are_found_in_any_batch() -> None:
    rate = EpochRate(Waiting())
    rate.step()
    assert rate.logs() == {}
    x = np.zeros((3, 2))
    assert [num_rows(batch) for batch in (x, (x, 1), {"a": (x,)}, ({"b": x}, 0), np.float32(1))] == [3, 3, 3, 3, 1]
