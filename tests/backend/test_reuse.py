"""Memory that is used again: the same values as ever, and nobody's batch changes under them."""

from __future__ import annotations

from pipes import RESIZE, close, pipeline, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

SHAPE = (4, 3)
DEPTH = 3
STEPS: list[Any] = [RESIZE, "random_flip", {"normalize": {"preset": "tf"}}]
"""A kernel that gives floats, and is soon compiled."""
KEEP = {"size": 8, "remainder": "keep"}


def address(tensor: Any) -> int:
    return int(np.frombuffer(memoryview(tensor), np.float32).__array_interface__["data"][0])


@pytest.fixture(scope="module")
def places() -> Callable[[int, float], list[Any]]:
    """A kernel with a large result and two small ones, all of the value that it is called with."""
    import tensorflow as tf

    from pipegen.backend.kernels import reuse

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reuse, "LARGE", 48)
        made = reuse.Places(
            lambda _into, x: [x[:1] * 2, tf.zeros(SHAPE) + x[0], x[:1] * 3],
            [tf.TensorSpec([1], tf.float32), tf.TensorSpec(SHAPE, tf.float32), tf.TensorSpec([1], tf.float32)],
            DEPTH,
        )
    run = tf.function(lambda number, value: made(number, tf.fill([2], value)), autograph=False)
    return lambda number, value: run(tf.constant(number, tf.int64), tf.constant(value, tf.float32))


def test_large_and_small_results_come_in_order(places: Callable[[int, float], list[Any]]) -> None:
    double, large, triple = places(1, 5.0)
    assert (double.numpy().tolist(), triple.numpy().tolist()) == ([10.0], [15.0])
    np.testing.assert_array_equal(large, np.full(SHAPE, 5.0, np.float32))


def test_memory_that_nobody_holds_is_written_again(places: Callable[[int, float], list[Any]]) -> None:
    import tensorflow as tf

    places(2, 0.0)
    seen, ballast = [], []
    for value in range(4):
        large = places(2, value)[1]
        seen.append(address(large))
        del large
        ballast.append(tf.random.uniform(SHAPE))  # takes the block, if it was given back
    assert len(set(seen)) == 1


def test_a_result_that_somebody_holds_stays_as_it_is(places: Callable[[int, float], list[Any]]) -> None:
    held = [places(number, float(number))[1] for number in range(4 * DEPTH)]
    assert len({address(t) for t in held}) == len(held)
    for number, tensor in enumerate(held):
        np.testing.assert_array_equal(tensor, np.full(SHAPE, number, np.float32))


@pytest.mark.timeout(60)
def test_kernels_one_behind_another_never_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels import reuse

    monkeypatch.setattr(reuse, "LARGE", 48)
    spec = [tf.TensorSpec(SHAPE, tf.float32)]
    chain = [reuse.Places(lambda _into, x: [x + 1.0], spec, DEPTH) for _ in range(5)]

    def whole(number: Any) -> Any:
        x = tf.fill(SHAPE, tf.cast(number, tf.float32))
        for places in chain:
            (x,) = places(number, x)
        return x

    made = tf.data.Dataset.range(20).map(whole, num_parallel_calls=2, deterministic=True)
    assert [x[0, 0] for x in made.as_numpy_iterator()] == [n + 5.0 for n in range(20)]


@pytest.fixture(scope="module")
def fresh(photo_folder: Path) -> list[Any]:
    """Two epochs of a pipeline whose batches are too small for places of their own."""
    train = pipeline(photo_folder, {"jit": "always"}, transforms=STEPS, batch=KEEP).train
    return [stream(train) for _ in range(2)]


def joined(batches: Iterable[Any]) -> tuple[Any, ...]:
    """Batches as arrays of an epoch, read only now."""
    return tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))


@pytest.fixture(scope="module")
def everything_is_large() -> Iterator[list[Any]]:
    """Results of any size are put into places; each kernel that has some is noted."""
    from pipegen.backend.kernels import chain as kernels
    from pipegen.backend.kernels import reuse

    made: list[Any] = []

    def places(*args: Any) -> Any:
        made.append(reuse.Places(*args))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reuse, "LARGE", 1)
        patch.setattr(kernels, "Places", places)
        yield made


@pytest.fixture(scope="module")
def pipe(photo_folder: Path, fresh: list[Any], everything_is_large: list[Any]) -> Pipeline:
    """The same with places for all of them."""
    return pipeline(photo_folder, {"jit": "always"}, transforms=STEPS, batch=KEEP)


def test_batches_that_are_kept_hold_what_they_held(pipe: Pipeline, fresh: list[Any], everything_is_large: list[Any]) -> None:
    kept = [list(pipe.train) for _ in range(2)]
    assert everything_is_large
    for epoch, expected in zip(kept, fresh, strict=True):
        close(joined(epoch), expected)


def test_two_iterators_at_a_time_do_not_mix(pipe: Pipeline, fresh: list[Any], everything_is_large: list[Any]) -> None:
    dataset = pipe.dataset("train", epoch=0)
    first, second = zip(*zip(dataset, dataset, strict=True), strict=True)
    assert everything_is_large
    for got in (first, second):
        close(joined(got), fresh[0])


@pytest.mark.parametrize(("first", "size", "batch"), [(0, 8, 8), (8, 8, 16), (24, 8, 32), (-4, 16, 8)])
def test_the_places_are_taken_in_turn_whatever_the_share(first: int, size: int, batch: int) -> None:
    """A whole batch, the second half of one, the last quarter of one, and one that is widened to whole combined groups."""
    import tensorflow as tf

    from pipegen.backend.kernels.reuse import Reuse

    reuse = Reuse(DEPTH, batch)
    assert [int(reuse.number(tf.range(first, first + size) + step * batch)) for step in range(5)] == list(range(5))


def test_what_is_derived_holds_no_variables(pipe: Pipeline, everything_is_large: list[Any]) -> None:
    """A dataset that another process or device runs can only have what is written in its graph."""
    dataset = pipe.dataset("train", epoch=0)
    before = len(everything_is_large)
    assert before
    assert len(list(dataset.map(lambda x, y: x))) == len(dataset)
    assert len(everything_is_large) == before
