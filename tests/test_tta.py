"""Test-time augmentation: rows of one example stand behind one another, are the same each time, and merge to one row a file."""

from __future__ import annotations

from pipes import SIZE, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

RECIPE = [
    {"random_resized_crop": {"size": SIZE}}, "random_flip", {"random_brightness": {"factor": 0.5}}, {"normalize": {"preset": "tf"}},
]  # fmt: skip


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return shared(photo_folder, transforms=RECIPE)


@pytest.fixture(scope="module")
def plain(pipe: Any) -> Any:
    return stream(pipe.validation)


@pytest.mark.nightly
def test_views_given_as_steps(pipe: Any, plain: Any, photo_folder: Path) -> None:
    crop = {"replace": {"random_resized_crop": [{"resize": {"size": SIZE}}]}}
    views = {"as it is": [], "mirrored": "flip", "stretched": crop, "dark": [{"brightness": {"factor": 0.5}}, "flip"]}
    ds = pipe.tta("validation", views)
    x, y = stream(ds)
    assert ds.views == 4
    assert len(x) == 4 * 11
    assert max(len(batch[0]) for batch in ds) <= 8, "as many rows as a batch has"
    assert len(ds) == int(ds.cardinality()) == 6
    rows, labels = x.reshape(11, 4, *x.shape[1:]), y.reshape(11, 4)
    np.testing.assert_array_equal(rows[:, 0], plain[0])
    np.testing.assert_array_equal(rows[:, 1], plain[0][:, :, ::-1], "in front of the arithmetic, which a mirror does not mind")
    other = shared(photo_folder, transforms=[{"resize": {"size": SIZE}}, {"normalize": {"preset": "tf"}}])
    np.testing.assert_array_equal(rows[:, 2], stream(other.validation)[0])
    np.testing.assert_allclose(rows[:, 3], (plain[0][:, :, ::-1] + 1) / 2 - 1, atol=0.01)
    np.testing.assert_array_equal(labels, plain[1][:, None].repeat(4, 1))
    same(stream(ds), (x, y))
    scores = np.random.default_rng(0).random((44, 3)).astype(np.float32)
    np.testing.assert_allclose(pipe.merge(scores, ds), scores.reshape(11, 4, 3).mean(1), rtol=1e-6)


@pytest.mark.nightly
def test_a_number_of_views_draws_the_random_steps_of_training(pipe: Any, plain: Any) -> None:
    ds = pipe.tta("validation", 2, examples=5)
    x, _ = stream(ds)
    rows = x.reshape(11, 2, *x.shape[1:])
    assert not np.array_equal(rows[:, 0], rows[:, 1])
    assert not np.array_equal(rows[:, 0], plain[0])


@pytest.mark.nightly
def test_files_are_predicted_on_in_views(pipe: Any, plain: Any) -> None:
    files = list(pipe.files("validation"))
    found = pipe.predict_on(files, views=["flip", []])
    assert found.files == tuple(files)
    got = stream(found.dataset)[0].reshape(11, 2, *plain[0].shape[1:])
    np.testing.assert_array_equal(got[:, 1], plain[0])
    np.testing.assert_array_equal(got[:, 0], plain[0][:, :, ::-1])


@pytest.mark.nightly  # by day the same views are made again
def test_how_many_examples_are_made_at_a_time_changes_no_view(pipe: Any) -> None:
    same(*(stream(pipe.tta("validation", 3, examples=count)) for count in (5, 2)))


def test_ways_to_merge(pipe: Any) -> None:
    rows = np.array([[0.6, 0.4], [0.2, 0.8], [0.9, 0.1], [0.6, 0.4]], np.float32)
    np.testing.assert_allclose(pipe.merge(rows, 2), [[0.4, 0.6], [0.75, 0.25]])
    np.testing.assert_allclose(pipe.merge(rows, 2, how="vote"), [[0.5, 0.5], [1, 0]])
    np.testing.assert_allclose(pipe.merge(rows, 2, how="max"), [[0.6, 0.8], [0.9, 0.4]])
    mean = np.sqrt([[0.12, 0.32], [0.54, 0.04]])
    np.testing.assert_allclose(
        pipe.merge({"a": [rows]}, ["flip", []], how="geometric")["a"][0], mean / mean.sum(1, keepdims=True), rtol=1e-6
    )
    np.testing.assert_allclose(pipe.merge(np.array([0.2, 0.9], np.float32), 2, how="vote"), [0.5])
    with pytest.raises(ValueError, match="4 rows of predictions are not a multiple of 3 views"):
        pipe.merge(rows, 3)
    with pytest.raises(ValueError, match="`how` is one of mean"):
        pipe.merge(rows, 2, how="median")
    with pytest.raises(TypeError, match="a row for each view"):
        pipe.merge("scores", 2)


def test_what_is_wrong_with_views(pipe: Any) -> None:
    with pytest.raises(ValueError, match="order, and `train` is shuffled"):
        pipe.tta("train", 2)
    with pytest.raises(KeyError, match="there is no split"):
        pipe.tta("valid", 2)
    with pytest.raises(SpecError, match="did you mean `flip`"):
        pipe.tta("validation", [[], "flipp"])
    with pytest.raises(ValueError, match="rows of a batch have one shape"):
        pipe.tta("validation", [[], {"resize": {"size": 8}}])
    with pytest.raises(ValueError, match="a view edits 'center_crop', but the steps are random_resized_crop"):
        pipe.tta("validation", [{"remove": ["center_crop"]}])
    for wrong in ("flip", None, [], 0, 1.5):
        with pytest.raises((TypeError, ValueError)):
            pipe.tta("validation", wrong)


@pytest.mark.nightly
def test_padded_batches_and_a_model(photo_folder: Path) -> None:
    import keras

    pipe = pipeline(photo_folder, transforms=[*RECIPE, {"mixup": {}}], batch={"size": 8, "remainder": {"validation": "pad"}},
        output={"encode": {"label": "one_hot"}})  # fmt: skip
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "categorical_crossentropy")
    ds = pipe.tta("validation", 3)
    assert np.isfinite(model.evaluate(ds, verbose=0))
    scores = pipe.trim("validation", pipe.merge(model.predict(ds, verbose=0), ds))
    assert scores.shape == (11, 3)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)
