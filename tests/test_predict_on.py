"""`predict_on`: the spec's evaluation steps on unlabelled data, one row for each file, in order; and `trim`."""

from __future__ import annotations

from pipes import RESIZE, SIZE, batches, picture, pipeline, same, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

RECIPE = [{"random_resized_crop": {"size": SIZE}}, "random_flip", {"normalize": {"preset": "tf"}}]


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return shared(photo_folder, transforms=RECIPE)


@pytest.fixture(scope="module")
def images(pipe: Any) -> Any:
    """The validation split, which takes the same steps."""
    return stream(pipe.validation)[0]


@pytest.mark.smoke
def test_files_give_their_rows_in_order(pipe: Any, images: Any) -> None:
    files = pipe.files("validation")
    found = pipe.predict_on(list(files))
    assert found.files == files
    assert len(found) == len(files) == 11
    assert len(found.dataset) == 2
    same(stream(found.dataset), [images])
    turned = pipe.predict_on(list(reversed(files)))
    assert turned.files == files[::-1]
    same(stream(turned.dataset), [images[::-1]])


def test_a_folder_is_listed_in_order_whatever_its_layout(pipe: Any, photo_folder: Path, tmp_path: Path) -> None:
    import shutil

    flat = tmp_path / "new"
    (flat / "inner").mkdir(parents=True)
    for i, file in enumerate(pipe.files("validation")):
        shutil.copy(file, (flat / "inner" if i % 2 else flat) / f"{10 - i:02d}.jpg")
    (flat / "notes.txt").write_text("not an image")
    found = pipe.predict_on(flat)
    assert len(found.files) == 11
    assert list(found.files) == sorted(found.files)
    assert len(stream(found.dataset)[0]) == 11
    same(stream(found.dataset), stream(pipe.predict_on(list(found.files)).dataset))


@pytest.mark.nightly
def test_one_file_and_a_repeated_file(pipe: Any, images: Any) -> None:
    file = pipe.files("validation")[2]
    same(stream(pipe.predict_on(file).dataset), [images[2:3]])
    same(stream(pipe.predict_on([file, file]).dataset), [images[[2, 2]]])


@pytest.mark.nightly
def test_arrays_are_taken_like_files(photo_folder: Path) -> None:
    pipe = shared(photo_folder, transforms=[RESIZE])
    shots = [picture(i, 40 + i, 60) for i in range(5)]
    found = pipe.predict_on(shots)
    assert found.files == ("0", "1", "2", "3", "4")
    rows = stream(found.dataset)[0]
    assert rows.shape == (5, SIZE, SIZE, 3)
    same([stream(pipe.predict_on(shots[3:4]).dataset)[0]], [rows[3:4]])
    exact = np.stack([picture(i, SIZE, SIZE) for i in range(3)])
    same(stream(pipe.predict_on(exact).dataset), [exact.astype(np.float32)])
    gray = exact[..., :1]
    same(stream(pipe.predict_on(gray).dataset), [np.repeat(gray, 3, -1).astype(np.float32)])


def test_rows_of_model_predict(pipe: Any) -> None:
    import keras

    inputs = keras.Input((SIZE, SIZE, 3))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(inputs))
    found = pipe.predict_on(list(pipe.files("train")))
    rows = model.predict(found.dataset, verbose=0)
    assert len(rows) == len(found.files) == pipe.num_examples("train")


@pytest.mark.parametrize(("wanted", "words"), [
    ([], "the list is empty"),
    (["nowhere.jpg"], "1 of 1 files do not exist: nowhere.jpg"),
    ("no/such/folder", "no/such/folder"),
])  # fmt: skip
def test_nothing_to_predict_on_is_a_finding(pipe: Any, wanted: Any, words: str) -> None:
    with pytest.raises(SpecError, match="error") as caught:
        pipe.predict_on(wanted)
    assert words in str(caught.value)


def test_an_empty_folder_is_a_finding(pipe: Any, tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        pipe.predict_on(tmp_path)


@pytest.mark.parametrize(
    "array", [np.zeros((2, 8, 8, 3), np.float32), np.zeros((8, 8, 3), np.uint8)[None, None], np.zeros((2, 8, 8, 4), np.uint8)]
)
def test_arrays_that_are_no_images_are_refused(pipe: Any, array: Any) -> None:
    with pytest.raises(TypeError, match="uint8 images"):
        pipe.predict_on(array)


@pytest.mark.parametrize("wanted", [None, 3, b"x", {"image": "a.jpg"}, iter([])])
def test_what_is_neither_files_nor_arrays_is_refused(pipe: Any, wanted: Any) -> None:
    with pytest.raises(TypeError, match="predict_on takes a folder, a file"):
        pipe.predict_on(wanted)


def test_one_image_is_not_taken_for_several(pipe: Any) -> None:
    with pytest.raises(TypeError, match="wrap it in a list"):
        pipe.predict_on(picture(1, 30, 40))
    assert len(pipe.predict_on([picture(1, 30, 40)])) == 1


def test_a_damaged_file_is_named(pipe: Any, tmp_path: Path) -> None:
    import shutil

    files = [shutil.copy(f, tmp_path / f"{i}.jpg") for i, f in enumerate(pipe.files("validation"))]
    files[4].write_bytes(files[4].read_bytes()[:300])
    with pytest.raises(DataError) as caught:
        batches(pipe.predict_on([str(f) for f in files]).dataset)
    line = str(caught.value).splitlines()[0]
    assert str(files[4]) in line
    assert "(step `decode`, transforms" in line
    assert line.endswith("; leave it out of the list")
    assert "exclude" not in line
    with pytest.raises(DataError, match="leave it out of the list") as derived:
        batches(pipe.predict_on([str(f) for f in files]).dataset.take(3))
    assert str(files[4]) in str(derived.value).splitlines()[0]


@pytest.mark.smoke
def test_a_spec_without_labels_predicts_its_own_folder(photo_folder: Path) -> None:
    pipe = pipeline(
        photo_folder, source={"image_folder": {"path": str(photo_folder), "labels": "none"}}, splits={"parts": {}}, transforms=[RESIZE]
    )
    assert pipe.splits == ("predict",)
    assert pipe.class_names == ()
    assert pipe.labels("predict") is None
    assert pipe.class_weights is None
    (rows,) = stream(pipe["predict"])
    assert len(rows) == len(pipe.files("predict")) == 43
    assert list(pipe.files("predict")) == sorted(pipe.files("predict"))
    same(stream(pipe.predict_on(str(photo_folder)).dataset), [rows])


def test_trim_removes_what_pad_added(photo_folder: Path) -> None:
    import keras

    pipe = shared(photo_folder, transforms=[RESIZE], batch={"size": 8, "remainder": "pad"})
    inputs = keras.Input((SIZE, SIZE, 3))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(inputs))
    padded = model.predict(pipe.validation, verbose=0)
    assert len(padded) == 16
    rows = pipe.trim("validation", padded)
    plain = shared(photo_folder, transforms=[RESIZE])
    np.testing.assert_allclose(rows, model.predict(plain.validation, verbose=0), rtol=1e-6)


def test_trim_keeps_the_structure_of_several_outputs(pipe: Any) -> None:
    rows = np.arange(16)
    first, second = pipe.trim("validation", [rows, rows[:, None]])
    assert (first.shape, second.shape) == ((11,), (11, 1))
    assert pipe.trim("validation", {"a": rows})["a"].shape == (11,)


def test_pad_weighs_repeats_with_0(photo_folder: Path) -> None:
    pipe = shared(photo_folder, transforms=[RESIZE], batch={"size": 8, "remainder": "pad"})
    images, labels, weights = stream(pipe.validation)
    assert images.shape[0] == 16
    assert weights.dtype == np.float32
    np.testing.assert_array_equal(weights, [1.0] * 11 + [0.0] * 5)
    same((images[11:], labels[11:]), (images[:5], labels[:5]))
    assert pipe.validation.element_spec[0].shape[0] == 8, "a static batch is what padding is for"


def test_padded_losses_and_weighted_metrics_are_exact(photo_folder: Path) -> None:
    import keras

    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [keras.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Rescaling(1 / 255), keras.layers.Dense(3, "softmax")]
    )
    model.compile("sgd", "sparse_categorical_crossentropy", weighted_metrics=["accuracy"], jit_compile=False)
    plain = model.evaluate(shared(photo_folder, transforms=[RESIZE]).validation, verbose=0)
    padded = model.evaluate(shared(photo_folder, transforms=[RESIZE], batch={"size": 8, "remainder": "pad"}).validation, verbose=0)
    assert padded[1] == pytest.approx(plain[1])
