"""`pipe.layer()`: the evaluation steps on batches inside a model, and the datasets that leave them out."""

from __future__ import annotations

from pathlib import Path
from pipes import RESIZE, SIZE, pipeline, shared, stream
from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import ModelMismatchError, SpecError

pytestmark = pytest.mark.tf

RECIPE = [RESIZE, "random_flip", {"random_brightness": {"factor": 0.2}}, {"standardize": {"statistics": "featurewise"}}]


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return shared(photo_folder, transforms=RECIPE)


def model_with(layer: Any, dtype: str = "float32") -> Any:
    import keras

    keras.utils.set_random_seed(1)
    kl = keras.layers
    made = keras.Sequential(
        [keras.Input((SIZE, SIZE, 3), dtype=dtype), layer, kl.AveragePooling2D(4), kl.Flatten(), kl.Dense(3, "softmax")]
    )
    made.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    return made


@pytest.fixture(scope="module")
def model(pipe: Any) -> Any:
    return model_with(pipe.layer())


@pytest.mark.nightly
@pytest.mark.parametrize(("split", "epoch"), [("train", 1), ("validation", 0)])
def test_the_dataset_and_the_layer_give_what_the_pipeline_gives(pipe: Any, split: str, epoch: int) -> None:
    whole = stream(pipe.dataset(split, epoch=epoch))
    images, *others = stream(pipe.dataset(split, epoch=epoch, stages="element"))
    assert images.dtype == np.float32, "a random step on colours makes floats of the training split, so every split gives floats"
    assert images.max() > 100
    np.testing.assert_array_equal(pipe.layer()(images), whole[0])
    np.testing.assert_array_equal(others[0], whole[1])
    later = stream(pipe.dataset(split, epoch=epoch, step=1, stages="element"))
    np.testing.assert_array_equal(later[0], images[8:])


def test_a_model_with_the_layer_is_trained_saved_and_loaded(pipe: Any, model: Any, tmp_path: Path) -> None:
    import keras

    model.fit(pipe.dataset("train", stages="element"), validation_data=pipe.dataset("validation", stages="element"), verbose=0)
    model.save(tmp_path / "flowers.keras")
    again = keras.models.load_model(tmp_path / "flowers.keras", custom_objects={"EvaluationLayer": pipegen.EvaluationLayer})
    images = stream(pipe.dataset("validation", stages="element"))[0]
    np.testing.assert_array_equal(again.predict(images, verbose=0), model.predict(images, verbose=0))
    assert str(next(iter(pipe.files("train")))) not in str(again.get_config()), "nothing of the data is in the file"
    assert "fits" in pipe.check(again, stages="element")


@pytest.mark.nightly
def test_a_model_with_the_layer_is_served(pipe: Any, model: Any) -> None:
    plain = model_with_own(model)
    files = list(pipe.files("validation"))
    scores = plain.predict(pipe.predict_on(files).dataset, verbose=0)
    np.testing.assert_allclose(pipe.serving_fn(model)([Path(f).read_bytes() for f in files]), scores, rtol=0, atol=1e-5)


def model_with_own(model: Any) -> Any:
    """The same model without the layer."""
    import keras

    return keras.Sequential([keras.Input((SIZE, SIZE, 3)), *model.layers[1:]])


def test_check_refuses_steps_that_are_done_twice_or_not_at_all(pipe: Any, model: Any, photo_folder: Path) -> None:
    with pytest.raises(
        ModelMismatchError, match=r"does `standardize` in its layer.*has done so already: feed it `pipe.dataset\('train', stages=\"el"
    ):
        pipe.check(model)
    assert "fits" in pipe.check(model, stages="element")
    with pytest.raises(ModelMismatchError, match="takes uint8, and the pipeline gives float32"):
        pipe.check(model_with(pipe.layer(), "uint8"), stages="element")
    plain = model_with_own(model)
    plain.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    with pytest.raises(ModelMismatchError, match=r"leave `standardize` to a layer.*use `pipe.layer\(\)` behind its input"):
        pipe.check(plain, stages="element")
    assert "fits" in pipe.check(plain)
    other = shared(photo_folder, transforms=[RESIZE, "random_flip", {"normalize": {"preset": "tf"}}])
    with pytest.raises(ModelMismatchError, match=r"made by another spec, and does `standardize`; this spec leaves `normalize` to it"):
        other.check(model, stages="element")
    with pytest.raises(ValueError, match="`stages` is 'all' or 'element', got 'batch'"):
        pipe.dataset("train", stages="batch")


@pytest.mark.nightly
def test_bytes_stay_bytes_without_random_colours(photo_folder: Path) -> None:
    pipe = shared(photo_folder, transforms=[RESIZE, "random_flip", {"normalize": {"preset": "tf"}}])
    for split in ("train", "validation"):
        images = stream(pipe.dataset(split, stages="element"))[0]
        assert images.dtype == np.uint8
        np.testing.assert_array_equal(pipe.layer()(images.astype(np.float32)), stream(pipe.dataset(split))[0])


@pytest.mark.nightly
def test_random_steps_among_those_of_the_layer_are_a_finding(photo_folder: Path) -> None:
    mixed = pipeline(photo_folder, transforms=[RESIZE, {"rescale": {"to": [0, 1]}}, {"random_brightness": {"factor": 0.2}}])
    with pytest.raises(SpecError, match=r"PG544.*`random_brightness` of split `train` is among the layer's steps"):
        mixed.dataset("train", stages="element")
    drawn = pipeline(photo_folder, transforms=[RESIZE, {"random_flip": {"when": "all"}}])
    with pytest.raises(SpecError, match="PG540"):
        drawn.layer()


@pytest.mark.nightly
def test_arrays_and_two_inputs() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 10, 12, 3)).astype(np.uint8)
    source = {"arrays": {"features": {"image": {"kind": "image"}, "row": {"kind": "tensor"}, "y": {"kind": "tensor"}}}}
    data = {split: {"image": images, "row": np.arange(12.0), "y": np.arange(12.0)} for split in ("train", "validation")}
    steps = [{"rotation": {"degrees": 15}}, {"normalize": {"preset": "torch"}}]
    spec = {"pipegen": 1, "source": {"by_split": dict.fromkeys(data, source)}, "transforms": steps, "batch": {"size": 4}}
    pipe = pipegen.build(spec | {"output": {"x": {"a": "image", "b": "row"}, "y": "y"}}, data=data, runtime={"jit": "never"})
    for (whole, _), (x, _) in zip(pipe.dataset("train"), pipe.dataset("train", stages="element"), strict=True):
        assert x["a"].dtype == "uint8"
        done = pipe.layer()(x)
        np.testing.assert_array_equal(done["a"], whole["a"])
        np.testing.assert_array_equal(done["b"], whole["b"])
