"""`.train` under the rule of LANGUAGE §7: an iterator starts the first epoch whose last batch has not been handed over."""

from __future__ import annotations

from pipes import FLIPPED, batches, epoch_of, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.fixture
def pipe(photo_folder: Path) -> Any:
    """At the start of epoch 0, with 4 steps an epoch."""
    made = shared(photo_folder, transforms=FLIPPED)
    made.seek(0, 0)
    return made


@pytest.fixture(scope="module")
def epochs(photo_folder: Path) -> list[tuple[Any, ...]]:
    """What each epoch holds, sought out one by one; `test_fixed_datasets_keep_no_state` has the same from elsewhere."""
    made = shared(photo_folder, transforms=FLIPPED)
    found = [epoch_of(made, e) for e in range(3)]
    assert len({images.tobytes() for images, _ in found}) == 3, "or a test could not tell them apart"
    return found


@pytest.mark.smoke
def test_each_pass_is_the_next_epoch(pipe: Any, epochs: Any) -> None:
    for number, expected in enumerate(epochs):
        assert (pipe.state()["epoch"], pipe.state()["step"]) == (number, 0)
        same(stream(pipe.train), expected)


def test_the_length_is_known(pipe: Any) -> None:
    import tensorflow as tf

    assert len(pipe.train) == int(pipe.train.cardinality()) == pipe.steps("train") == 4
    assert len(pipe.validation) == int(pipe.validation.cardinality()) == pipe.steps("validation") == 2
    assert int(tf.data.experimental.cardinality(pipe.train)) == 4
    assert len(pipe.train.map(lambda x, y: x)) == 4
    assert len(pipe.train.take(3)) == 3
    assert len(pipe.dataset("train", epoch=9, step=1)) == 3
    assert pipe.train is pipe.train
    assert isinstance(pipe.train, tf.data.Dataset)


@pytest.mark.smoke
@pytest.mark.parametrize("seen", [pytest.param(1, marks=pytest.mark.nightly), 3])
def test_an_abandoned_pass_is_repeated(pipe: Any, epochs: Any, seen: int) -> None:
    for expected in epochs[:2]:
        it = iter(pipe.train)
        for _ in range(seen):
            next(it)
        same(stream(pipe.train), expected)


def test_the_last_batch_makes_the_epoch_not_what_is_asked_behind_it(pipe: Any, epochs: Any) -> None:
    """Keras never asks for the batch behind the last."""
    for expected in epochs:
        it = iter(pipe.train)
        got = [next(it) for _ in range(4)]
        same(stream(got), expected)


def test_an_iterator_that_lags_behind_moves_nothing_back(pipe: Any, epochs: Any) -> None:
    early, other = iter(pipe.train), iter(pipe.train)
    next(early)
    for _ in range(4):
        next(other)
    same(stream(pipe.train), epochs[1])
    list(early)
    assert (pipe.state()["epoch"], pipe.state()["step"]) == (2, 0)
    same(stream(pipe.train), epochs[2])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Notes the iterators that TensorFlow makes from here on."""
    import tensorflow as tf

    found: list[Any] = []
    original = tf.raw_ops.MakeIterator

    def noted(dataset: Any, iterator: Any) -> Any:
        found.append(dataset)
        return original(dataset=dataset, iterator=iterator)

    monkeypatch.setattr(tf.raw_ops, "MakeIterator", noted)
    return found


def test_one_iterator_of_tensorflow_serves_pass_after_pass(photo_folder: Path, epochs: Any, made: list[Any]) -> None:
    """Making one is dear; so the fourth and fifth pass are no slower to begin than a batch."""
    pipe = pipeline(photo_folder, transforms=FLIPPED)
    for expected in epochs:
        same(stream(pipe.train), expected)
    train = len(made)
    for _ in range(2):
        list(pipe.validation)
    assert (train, len(made)) == (1, 2)
    pipe.seek(0, 3)
    assert [len(y) for _, y in pipe.train] == [8], "a kept one begins where the pipeline was moved to"
    pipe.seek(2, 0)
    same(stream(pipe.train), epochs[2])
    assert len(made) == 2


def test_two_passes_at_a_time_have_an_iterator_each(photo_folder: Path, made: list[Any]) -> None:
    pipe = pipeline(photo_folder, transforms=FLIPPED)
    fixed = pipe.dataset("train", epoch=1, step=2)
    expected = [images for images, _ in batches(fixed)]
    assert len(expected) == 2
    for (one, _), (other, _), images in zip(fixed, fixed, expected, strict=True):
        np.testing.assert_array_equal(one, images)
        np.testing.assert_array_equal(other, images)
    assert len(made) == 2, "the first pass's, and one more"
    np.testing.assert_array_equal(next(iter(fixed))[0], expected[0])


def test_an_iterator_that_has_ended_stays_at_its_end(pipe: Any) -> None:
    it = iter(pipe.train)
    assert len(list(it)) == 4
    assert len(list(pipe.train)) == 4
    assert list(it) == []
    with pytest.raises(StopIteration):
        it.get_next()


@pytest.mark.smoke
def test_repeat_runs_on_through_the_epochs(pipe: Any, epochs: Any) -> None:
    served = stream(pipe.train.repeat(3))
    same(served, [np.concatenate(parts) for parts in zip(*epochs, strict=True)])
    assert pipe.state()["epoch"] == 3


def test_an_endless_repeat_does_too(pipe: Any, epochs: Any) -> None:
    it = iter(pipe.train.repeat())
    served = stream([next(it) for _ in range(9)])
    same([p[:32] for p in served], epochs[0])
    same([p[32:64] for p in served], epochs[1])
    same([p[64:] for p in served], [p[:8] for p in epochs[2]])


def test_derived_datasets_obey_the_rule(pipe: Any, epochs: Any) -> None:
    mapped = pipe.train.map(lambda x, y: (x + 1, y))
    for expected in epochs[:2]:
        images, labels = stream(mapped)
        same((images - 1, labels), expected)
    assert pipe.state()["epoch"] == 2
    pipe.seek(1, 2)  # `class_weight`, strategies and `.map` all derive a dataset, and the first pass after a resume is shorter
    for expected in ([p[16:] for p in epochs[1]], epochs[2]):
        images, labels = stream(mapped)
        same((images - 1, labels), expected)
    pipe.seek(2, 0)
    part = pipe.train.take(2)
    for _ in range(2):
        same(stream(part), [p[:16] for p in epochs[2]])
    assert pipe.state()["epoch"] == 2


def test_enumerate_zip_and_a_loop_in_a_graph(pipe: Any, epochs: Any) -> None:
    import tensorflow as tf

    assert [int(i) for i, _ in pipe.train.enumerate()] == [0, 1, 2, 3]

    @tf.function
    def total() -> tf.Tensor:
        acc = tf.zeros([], tf.int64)
        for _, labels in pipe.train:
            acc += tf.reduce_sum(labels)
        return acc

    assert int(total()) == epochs[1][1].sum()
    assert int(total()) == epochs[2][1].sum()


def test_peek_moves_nothing(pipe: Any, epochs: Any) -> None:
    images, labels = pipe.peek("train", 11)
    assert isinstance(images, np.ndarray)
    same((images, labels), [p[:11] for p in epochs[0]])
    same(pipe.peek("train", 1), [p[:1] for p in epochs[0]])
    assert pipe.state()["epoch"] == pipe.state()["step"] == 0
    it = iter(pipe.train)
    next(it)
    same(pipe.peek("train", 3), [p[8:11] for p in epochs[0]])
    same(next(it), [p[8:16] for p in epochs[0]])


def test_peek_goes_on_into_the_next_epoch_but_ends_with_an_evaluation_split(pipe: Any, epochs: Any) -> None:
    pipe.seek(1, 3)
    same(pipe.peek("train", 12)[0][None], [np.concatenate([epochs[1][0][24:], epochs[2][0][:4]])])
    images, labels = pipe.peek("validation", 1000)
    assert len(images) == pipe.num_examples("validation")
    np.testing.assert_array_equal(labels, pipe.labels("validation"))
    with pytest.raises(ValueError, match="at least 1"):
        pipe.peek("train", 0)


def test_fixed_datasets_keep_no_state(pipe: Any, epochs: Any) -> None:
    ds = pipe.dataset("train", epoch=1)
    for _ in range(2):
        same(stream(ds), epochs[1])
    assert pipe.state()["epoch"] == 0


@pytest.mark.parametrize(("epoch", "step"), [(0, 5), (-1, 0), (0, -1)])
def test_a_place_that_is_none_is_refused(pipe: Any, epoch: int, step: int) -> None:
    with pytest.raises(ValueError, match="4 steps"):
        pipe.dataset("train", epoch=epoch, step=step)


@pytest.mark.nightly  # by day a derived dataset is there before the resume
def test_a_resumed_pass_may_be_derived_from(pipe: Any, epochs: Any) -> None:
    pipe.seek(1, 2)
    mapped = pipe.train.map(lambda x, y: (x, y))
    same(stream(mapped), [p[16:] for p in epochs[1]])
    same(stream(mapped), epochs[2])


def test_numpy_batches_obey_the_rule(pipe: Any, epochs: Any) -> None:
    arrays = pipe.numpy("train")
    assert len(arrays) == 4
    for expected in epochs[:2]:
        got = list(arrays)
        assert all(type(a) is np.ndarray for batch in got for a in batch)
        same(stream(got), expected)


def test_an_unknown_split_names_those_there_are(pipe: Any) -> None:
    for ask in (lambda: pipe["valid"], lambda: pipe.test, lambda: pipe.files("x"), lambda: pipe.steps("x"), lambda: pipe.dataset("x")):
        with pytest.raises(KeyError, match="the splits are train, validation"):
            ask()
    assert "train" in pipe
    assert "test" not in pipe
    assert pipe.splits == ("train", "validation")


def test_batches_have_the_spec_that_is_told(pipe: Any) -> None:
    import tensorflow as tf

    for split in pipe.splits:
        for batch in pipe[split]:
            tf.nest.map_structure(lambda spec, t: spec.is_compatible_with(t) or pytest.fail(str(spec)), pipe[split].element_spec, batch)
    assert pipe.element_spec[0].shape == (8, 24, 24, 3)
    assert len(batches(pipe.train)) == 4
