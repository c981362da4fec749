"""What follows `image_dataset_from_directory` becomes part of the pipeline where it is proved to mean the same; else it runs as it is."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers
from PIL import Image

import pipegen
from pipegen.compat import DirectoryDataset, UnsupportedArgument, image_dataset_from_directory
from pipegen.compat.recognised import NotProved, recognised

pytestmark = pytest.mark.tf

X, Y = tf.TensorSpec([None, 32, 40, 3], tf.float32), tf.TensorSpec([None], tf.int32)
SCALE = tf.constant(1 / 255)
SCALING = layers.Rescaling(1 / 255)
BRIGHTER = layers.RandomBrightness(0.2)
CONTRAST = layers.RandomContrast([0.3, 0.1])
OF_UNIT = [layers.RandomBrightness(0.2, value_range=(0, 1)), layers.RandomGrayscale(0.3)]
HUE_OF_UNIT = layers.RandomHue(0.1, value_range=(0, 1))
SMALL: dict[str, Any] = {"image_size": (32, 40), "batch_size": 4, "seed": 3, "verbose": False}
FLIP, TURN, ZOOM = (
    {"random_flip": {}},
    {"random_rotation": {"degrees": 36}},
    {"random_zoom": {"factor": [0.909091, 1.111111], "inverse": True}},
)


AUGMENT = keras.Sequential([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1), layers.RandomZoom(0.1)])


class Inverted(layers.RandomFlip):
    """A layer of the user's own, which Keras would take for its base."""

    def call(self, inputs: Any, training: bool = True) -> Any:
        return super().call(255.0 - inputs, training=training)


def of_functional() -> Any:
    inputs = keras.Input([32, 40, 3])
    model = keras.Model(inputs, layers.RandomRotation(0.1)(layers.RandomFlip("horizontal")(inputs)))
    return lambda x, y: (model(x, training=True), y)


def in_a_loop() -> Any:
    several = [layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)]

    def function(x: Any, y: Any) -> Any:
        for layer in several:
            x = layer(x)
        return x, y

    return function


def of_one_layer(layer: Any, **options: Any) -> Any:
    return lambda x, y: (layer(x, **options), y)


def chosen_by_tensorflow() -> Any:
    def function(x: Any, y: Any) -> Any:
        if tf.random.uniform([]) < 0.5:
            x = AUGMENT(x, training=True)
        return x, y

    return function


def printing(x: Any, y: Any) -> Any:
    tf.print(tf.shape(x))
    return x / 255.0, y


def through_attributes(x: Any, y: Any) -> Any:
    return keras.applications.mobilenet_v2.preprocess_input(x), y


PROVED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "a Sequential": (lambda: lambda x, y: (AUGMENT(x, training=True), y), [FLIP, TURN, ZOOM]),
    "without training": (lambda: lambda x, y: (AUGMENT(x), y), [FLIP, TURN, ZOOM]),
    "in inference": (lambda: lambda x, y: (AUGMENT(x, training=False), y), []),
    "a functional model": (of_functional, [FLIP, TURN]),
    "a loop": (in_a_loop, [FLIP, TURN]),
    "scaled before": (
        lambda: lambda x, y: (AUGMENT(tf.cast(x, tf.float32) / 255.0), y),
        [{"rescale": {"scale": 1 / 255}}, FLIP, TURN, ZOOM],
    ),
    "a captured number": (lambda: lambda x, y: (x * SCALE, y), [{"rescale": {"scale": float(np.float32(1 / 255))}}]),
    "two operations": (lambda: lambda x, y: (x / 127.5 - 1.0, y), [{"rescale": {"scale": 1 / 127.5, "offset": -1.0}}]),
    "preprocess_input": (lambda: through_attributes, [{"rescale": {"scale": 1 / 127.5, "offset": -1.0}}]),
    "a Rescaling": (lambda: of_one_layer(layers.Rescaling(1 / 255)), [{"rescale": {"scale": 1 / 255}}]),
    "a Resizing": (lambda: of_one_layer(layers.Resizing(20, 24)), [{"resize": {"size": [20, 24]}}]),
    "tf.image.resize": (lambda: lambda x, y: (tf.image.resize(x, (20, 24)), y), [{"resize": {"size": [20, 24]}}]),
    "a CenterCrop": (lambda: of_one_layer(layers.CenterCrop(20, 24)), [{"center_crop": {"size": [20, 24]}}]),
    "a Normalization": (
        lambda: of_one_layer(layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 9, 16])),
        [{"normalize": {"mean": [1, 2, 3], "std": [2, 3, 4]}}],
    ),
    "a RandomTranslation": (lambda: of_one_layer(layers.RandomTranslation(0.1, 0.2)), [{"random_translation": {"x": 0.2, "y": 0.1}}]),
    "scaled twice": (lambda: lambda x, y: (SCALING(SCALING(x)), y), [{"rescale": {"scale": 1 / 255**2}}]),
    "scaled elsewhere": (
        lambda: lambda x, y: (SCALING(layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 9, 16])(x)), y),
        [{"normalize": {"mean": [1, 2, 3], "std": [2, 3, 4]}}, {"rescale": {"scale": 1 / 255}}],
    ),
    "colours": (
        lambda: lambda x, y: (CONTRAST(BRIGHTER(x)), y),
        [{"random_brightness": {"delta": 51}}, {"random_contrast": {"factor": [0.9, 1.3], "pivot": "channel"}}],
    ),
    "colours from 0 to 1": (
        lambda: lambda x, y: (OF_UNIT[1](OF_UNIT[0](x / 255.0)), y),
        [{"rescale": {"scale": 1 / 255}}, {"random_brightness": {"delta": 0.2}}, {"random_grayscale": {"probability": 0.3}}],
    ),
    "an inversion": (lambda: lambda x, y: (255.0 - x, y), [{"rescale": {"scale": -1.0, "offset": 255.0}}]),
    "nothing": (lambda: lambda x, y: (x, y), []),
}
"""What a function is proved to do."""
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a layer of the user's": (lambda: of_one_layer(Inverted("horizontal")), "has side effects or a state"),
    "chance of Python": (lambda: lambda x, y: (AUGMENT(x) if random.random() < 0.5 else x, y), "two traces of it differ"),
    "chance of TensorFlow": (chosen_by_tensorflow, "`RandomUniform` has side effects"),
    "noise": (lambda: lambda x, y: (x + tf.random.normal(tf.shape(x)), y), "has side effects"),
    "tf.image's chance": (lambda: lambda x, y: (tf.image.random_flip_left_right(x), y), "has side effects"),
    "a print": (lambda: printing, "`PrintV2` has side effects"),
    "a call of Python": (lambda: lambda x, y: (tf.numpy_function(lambda a: a[:, ::-1], [x], tf.float32), y), "has side effects"),
    "a product with the label": (lambda: lambda x, y: (x * tf.cast(y[0], tf.float32), y), "images first and a constant second"),
    "a quotient": (lambda: lambda x, y: (255.0 / (x + 1.0), y), "images first and a constant second"),
    "other labels": (lambda: lambda x, y: (x, y + 1), "several constants|labels are changed"),
    "images as labels": (lambda: lambda x, y: (x, x), "in another place"),
    "two views": (lambda: lambda x, y: ((x, x), y), "another structure"),
    "images alone": (lambda: lambda x, y: x, "another structure"),
    "bytes": (lambda: lambda x, y: (tf.cast(x, tf.uint8), y), "images become uint8"),
    "zero": (lambda: lambda x, y: (x * 0.0, y), "leaves nothing of the image"),
    "each channel": (lambda: lambda x, y: (x / tf.constant([1.0, 2, 3]), y), "several constants"),
    "another range": (
        lambda: of_one_layer(layers.RandomBrightness(0.2, value_range=(0, 1))),
        "`value_range`: values are between 0 and 255",
    ),
    "a range that was": (lambda: lambda x, y: (BRIGHTER(SCALING(x)), y), "`value_range`: values are between 0 and 1"),
    "an unknown range": (
        lambda: lambda x, y: (BRIGHTER(layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 9, 16])(x)), y),
        "`value_range`: values are normalised",
    ),
    "a table behind a scale": (lambda: lambda x, y: (HUE_OF_UNIT(x / 255.0), y), "rounds to whole numbers"),
    "sharpness": (lambda: of_one_layer(layers.RandomSharpness(0.2)), "`RandomSharpness` is not one of the layers"),
    "channels first": (lambda: of_one_layer(layers.RandomFlip("horizontal", data_format="channels_first")), "channels come first"),
    "whole pixels": (lambda: of_one_layer(layers.Resizing(20, 24, crop_to_aspect_ratio=True)), "by whole pixels"),
    "the nearest pixel": (lambda: of_one_layer(layers.Resizing(20, 24, interpolation="nearest")), "other than `bilinear`"),
    "a wider filter": (lambda: of_one_layer(layers.Resizing(20, 24, interpolation="bicubic")), "other than `bilinear`"),
    "a zoom by nearest": (lambda: of_one_layer(layers.RandomZoom(0.1, interpolation="nearest")), "other than `bilinear`"),
    "a fill at the seam": (
        lambda: of_one_layer(layers.RandomTranslation(0.1, 0.1, fill_mode="wrap")),
        "`fill_mode='wrap'` gives other pixels",
    ),
    "another fill": (lambda: of_one_layer(layers.RandomRotation(0.1, fill_mode="wrap")), "`fill_mode='wrap'` gives other pixels"),
    "classes first": (lambda: lambda x, y: (x, tf.one_hot(y, 3, axis=0)), "`OneHot` is not known"),
    "one more dimension": (lambda: lambda x, y: (x - tf.ones([1, 1, 1, 1, 1]), y), "adds a dimension"),
    "several scales": (lambda: of_one_layer(layers.Rescaling([1.0, 2.0, 3.0])), "several numbers"),
    "a random crop in inference": (
        lambda: of_one_layer(layers.RandomCrop(20, 24), training=False),
        "`RandomCrop` is not one of the layers",
    ),
    "an adapted Normalization": (lambda: of_one_layer(layers.Normalization()), "cannot be traced|numbers"),
    "an error": (lambda: lambda x, y: (x.missing, y), "cannot be traced: AttributeError"),
    "off values": (lambda: lambda x, y: (x, tf.one_hot(y, 3, on_value=0.9, off_value=0.1)), "otherwise than by 0 and 1"),
}


@pytest.mark.by_day(5)
@pytest.mark.parametrize("style", PROVED)
def test_what_is_proved(style: str) -> None:
    make, steps = PROVED[style]
    found = [{op: arguments} for step in recognised(make(), (X, Y), (0, 255)).steps for op, arguments in step.items()]
    assert [[*step] for step in found] == [[*step] for step in steps]
    for one, other in zip(found, steps, strict=True):
        ((_, own),), ((_, due),) = one.items(), other.items()
        assert own == pytest.approx(due) if all(isinstance(value, float) for value in due.values()) else own == due


@pytest.mark.by_day(6)
@pytest.mark.parametrize("style", REFUSED)
def test_what_is_not_proved(style: str) -> None:
    make, why = REFUSED[style]
    random.seed(3)
    with pytest.raises(NotProved, match=why):
        recognised(make(), (X, Y), (0, 255))


def test_a_layer_that_is_not_built_can_be_used_afterwards(photos: str) -> None:
    """Where the proof fails, by the map that runs as it is; and outside."""
    layer = layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 9, 16])
    plain = image_dataset_from_directory(photos, shuffle=False, **SMALL)
    clipped = plain.map(lambda x, y: (tf.clip_by_value(layer(x), -1, 1), y))
    assert not isinstance(clipped, DirectoryDataset)
    (x, _), (image, _) = next(iter(clipped)), next(iter(plain))
    np.testing.assert_allclose(x, np.clip(layer(image), -1, 1))


def test_layers_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where tracing fails, and in other threads meanwhile."""
    kept = {name: vars(getattr(layers, name)).get("call") for name in ("RandomFlip", "Rescaling", "Resizing")}
    recognised(lambda x, y: (layers.Rescaling(2.0)(x), y), (X, Y), None)
    with pytest.raises(NotProved):
        recognised(lambda x, y: (x.missing, y), (X, Y), None)
    assert kept == {name: vars(getattr(layers, name)).get("call") for name in kept}
    np.testing.assert_array_equal(layers.Rescaling(2.0)(np.ones([1, 2, 2, 3])), np.full([1, 2, 2, 3], 2.0))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> str:
    root, draws = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for i in range(14):
        folder = root / "abc"[i % 3]
        folder.mkdir(exist_ok=True)
        smooth = Image.fromarray(draws.integers(0, 256, (6, 7, 3), np.uint8)).resize((52, 44), Image.Resampling.BICUBIC)
        smooth.save(folder / f"{i:02}.png")
    return str(root)


def flat(dataset: Any) -> list[Any]:
    return [[part.numpy() for part in tf.nest.flatten(element)] for element in dataset]


FIXED: dict[str, Callable[[Any, Any], Any]] = {
    "scaled": lambda x, y: (layers.Rescaling(1 / 255)(x), y),
    "inverted": lambda x, y: (255.0 - x, y),
    "arithmetic": lambda x, y: ((x - 3.0) * 2.0 + 1.0, y),
    "resized": lambda x, y: (layers.Resizing(20, 24)(x) / 255.0, tf.one_hot(y, 3)),
    "cut": lambda x, y: (layers.CenterCrop(20, 24)(x), y),
    "normalised": lambda x, y: (layers.Normalization(mean=[1.0, 2, 3], variance=[4.0, 9, 16])(x), y),
    "in inference": lambda x, y: (AUGMENT(x, training=False), y),
}


@pytest.mark.nightly
@pytest.mark.parametrize("style", FIXED)
@pytest.mark.parametrize("subset", ["training", "validation"])
def test_a_fixed_map_gives_what_keras_gives(style: str, subset: str, photos: str) -> None:
    plain = image_dataset_from_directory(photos, validation_split=0.4, subset=subset, **SMALL)
    mapped = plain.map(FIXED[style])
    assert isinstance(mapped, DirectoryDataset)
    due = [[part.numpy() for part in FIXED[style](*batch)] for batch in plain.prefetch(1)]
    found = flat(mapped)
    assert [(t.shape[1:], t.dtype) for t in mapped.element_spec] == [(part.shape[1:], part.dtype) for part in found[0]]
    for parts, others in zip(found, due, strict=True):
        assert [part.dtype for part in parts] == [other.dtype for other in others]
        np.testing.assert_allclose(parts[0], others[0], atol=1.01 / 255 if style == "resized" else 1e-3, rtol=1e-5)
        np.testing.assert_array_equal(parts[1], others[1])


def test_each_layer_resamples_if_so_asked(photos: str) -> None:
    train = image_dataset_from_directory(photos, exact=True, **SMALL).map(lambda x, y: (AUGMENT(x, training=True), y))
    steps = {op: arguments for step in train.spec()["transforms"] for op, arguments in step.items()}
    assert [op for op, arguments in steps.items() if "exact" in arguments] == ["random_rotation", "random_zoom"]


def test_parts_of_shuffled_files_are_told(photos: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pipegen"):
        image_dataset_from_directory(photos, shuffle=False, **SMALL).skip(1)
        assert "mix their parts" not in caplog.text
        image_dataset_from_directory(photos, **SMALL).skip(1)
    assert "mix their parts in each epoch" in caplog.text


@pytest.mark.nightly
def test_random_layers_change_each_image_in_each_epoch(photos: str) -> None:
    """In validation, too, where Keras' layers are called with `training=True`."""
    for subset in ("training", "validation"):
        plain = image_dataset_from_directory(photos, validation_split=0.4, subset=subset, shuffle=False, **SMALL)
        mapped = plain.map(lambda x, y: (AUGMENT(x, training=True), y), num_parallel_calls=tf.data.AUTOTUNE)
        assert isinstance(mapped, DirectoryDataset)
        epochs = [np.concatenate([x for x, _ in flat(mapped)]) for _ in range(2)]
        still = np.concatenate([x for x, _ in flat(plain)])
        assert np.abs(epochs[0] - still).mean((1, 2, 3)).min() > 0.1
        if subset == "training":
            assert np.abs(epochs[0] - epochs[1]).mean((1, 2, 3)).min() > 0.1
        assert mapped.file_paths == plain.file_paths


def test_what_is_not_proved_runs_as_it_is(photos: str, caplog: pytest.LogCaptureFixture) -> None:
    plain = image_dataset_from_directory(photos, shuffle=False, **SMALL)
    with caplog.at_level(logging.WARNING, "pipegen"):
        mapped = plain.map(lambda x, y: (tf.reverse(x, [1]), y + 1)).map(lambda x, y: (x, y))
    assert not isinstance(mapped, DirectoryDataset)
    assert len([r for r in caplog.records if "run as they are, on top of the pipeline: the operation `ReverseV2`" in r.getMessage()]) == 1
    for (x, y), (u, v) in zip(flat(plain), flat(mapped), strict=True):
        np.testing.assert_array_equal(x[:, ::-1], u)
        np.testing.assert_array_equal(y + 1, v)


def test_a_step_that_a_spec_refuses_runs_as_it_is(photos: str, caplog: pytest.LogCaptureFixture) -> None:
    """Keras enlarges an image that is smaller than its crop."""
    plain = image_dataset_from_directory(photos, shuffle=False, **SMALL)
    crop = layers.CenterCrop(50, 60)
    with caplog.at_level(logging.WARNING, "pipegen"):
        cut = plain.map(lambda x, y: (crop(x), y))
    assert "pipegen refuses the step" in caplog.text
    assert next(iter(cut))[0].shape == (4, 50, 60, 3)


ENDS: dict[str, Callable[[Any], Any]] = {
    "taken": lambda data: data.take(2),
    "skipped": lambda data: data.skip(1),
    "both": lambda data: data.skip(1).take(1),
    "all": lambda data: data.take(-1),
    "more than there are": lambda data: data.take(99),
    "none": lambda data: data.take(0),
    "skipped too far": lambda data: data.skip(99),
    "repeated": lambda data: data.repeat(2),
    "without an end": lambda data: data.repeat().take(9),
    "a part repeated": lambda data: data.skip(1).repeat(3).take(4),
    "batched again": lambda data: data.unbatch().repeat(2).batch(5),
    "taken apart": lambda data: data.unbatch().skip(3).batch(4).take(2),
    "cached": lambda data: data.repeat(2).cache(),
}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("subset", ["training", "validation"])
def test_parts_and_repetitions_are_those_of_tensorflow(end: str, subset: str, photos: str) -> None:
    """With the steps of a map behind them, too."""
    plain = image_dataset_from_directory(photos, validation_split=0.6, subset=subset, shuffle=False, **{**SMALL, "batch_size": 2})
    made = ENDS[end](plain)
    due = flat(ENDS[end](tf.data.Dataset.from_generator(lambda: iter(plain), output_signature=plain.element_spec)))
    mapped = flat(made.map(lambda x, y: (x / 255.0, y)))
    found = flat(made)
    assert len(found) == len(due) == len(mapped)
    for one, other, scaled in zip(found, due, mapped, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_allclose(scaled[0] * 255, other[0], atol=1e-3)
    assert isinstance(made, DirectoryDataset) == (
        end not in ("none", "skipped too far", "without an end", "a part repeated", "batched again", "cached")
    )
    if isinstance(made, DirectoryDataset):
        assert len(made) == int(tf.data.experimental.cardinality(made)) == len(found)


def test_repetitions_of_training_have_epochs_of_their_own(photos: str) -> None:
    train = image_dataset_from_directory(photos, **SMALL).repeat()
    assert int(train.cardinality()) == tf.data.INFINITE_CARDINALITY
    with pytest.raises(TypeError, match="infinite"):
        len(train)
    labels = [np.concatenate([y for _, y in epoch]) for epoch in np.array_split(np.array(flat(train.take(8)), object), 2)]
    assert sorted(labels[0]) == sorted(labels[1])
    images = [np.concatenate([x for x, _ in epoch]).sum((1, 2, 3)) for epoch in np.array_split(np.array(flat(train.take(8)), object), 2)]
    assert sorted(images[0]) == sorted(images[1])
    assert [*images[0]] != [*images[1]]


def test_a_part_has_no_spec(photos: str) -> None:
    with pytest.raises(UnsupportedArgument, match="a spec has no part of a split"):
        image_dataset_from_directory(photos, shuffle=False, **SMALL).take(1).spec()


def test_the_usual_chain_is_one_pipeline_with_a_spec(photos: str, capsys: pytest.CaptureFixture[str]) -> None:
    train = image_dataset_from_directory(photos, validation_split=0.3, subset="training", **{**SMALL, "verbose": True})
    train = train.cache().map(lambda x, y: (AUGMENT(x, training=True), y)).shuffle(1000).prefetch(tf.data.AUTOTUNE)
    assert isinstance(train, DirectoryDataset)
    assert "`map` became `random_flip`, `random_rotation`, `random_zoom`" in capsys.readouterr().out
    pipe = pipegen.build(train.spec())
    for parts, others in zip(flat(train), flat(pipe.train), strict=True):
        for part, other in zip(parts, others, strict=True):
            np.testing.assert_array_equal(part, other)
    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert len(model.fit(train, epochs=2, verbose=0).history["loss"]) == 2


def test_a_cache_behind_random_layers_keeps_their_draws_as_in_keras(photos: str, caplog: pytest.LogCaptureFixture) -> None:
    plain = image_dataset_from_directory(photos, shuffle=False, **SMALL)
    with caplog.at_level(logging.WARNING, "pipegen"):
        kept = plain.map(lambda x, y: (AUGMENT(x, training=True), y)).cache()
    assert "keeps what they drew in the first epoch" in caplog.text
    for one, other in zip(flat(kept), flat(kept), strict=True):
        np.testing.assert_array_equal(one[0], other[0])


@pytest.mark.nightly
def test_a_cache_with_a_name_is_a_folder(photos: str, tmp_path: Path) -> None:
    plain = image_dataset_from_directory(photos, shuffle=False, **SMALL)
    kept = plain.cache(str(tmp_path / "kept"))
    for _ in range(2):
        for one, other in zip(flat(plain), flat(kept), strict=True):
            np.testing.assert_array_equal(one[0], other[0])
    assert any((tmp_path / "kept").iterdir())


@pytest.mark.nightly
@pytest.mark.parametrize("drop", [True, False])
def test_batches_made_and_taken_apart(drop: bool, photos: str) -> None:
    plain = image_dataset_from_directory(photos, shuffle=False, **{**SMALL, "batch_size": None})
    batched = plain.map(lambda x, y: (x / 255.0, y)).batch(4, drop_remainder=drop)
    assert isinstance(batched, DirectoryDataset)
    assert batched.element_spec[0].shape == (4 if drop else None, 32, 40, 3)
    assert len(batched) == len(flat(batched)) == (3 if drop else 4)
    singles = batched.unbatch()
    assert isinstance(singles, DirectoryDataset)
    assert len(singles) == len(flat(singles)) == (12 if drop else 14)
    for one, other in zip(flat(singles), flat(plain), strict=False):
        np.testing.assert_allclose(one[0] * 255, other[0], atol=1e-3)


def test_lengths_are_known_to_tensorflow(photos: str) -> None:
    """Tutorials divide a validation subset by them."""
    validation = image_dataset_from_directory(photos, validation_split=0.9, subset="validation", **{**SMALL, "batch_size": 2})
    batches = int(tf.data.experimental.cardinality(validation))
    assert batches == len(validation) == 6
    assert [len(flat(part)) for part in (validation.take(batches // 5), validation.skip(batches // 5))] == [1, 5]
    assert int(tf.data.experimental.cardinality(validation.take(2))) == 2


def test_dropped_images_stay_dropped(photos: str) -> None:
    singles = image_dataset_from_directory(photos, shuffle=False, **{**SMALL, "batch_size": None})
    assert [len(x) for x, _ in flat(singles.batch(4, drop_remainder=True).unbatch().batch(5))] == [5, 5, 2]


def test_images_alone_in_a_tuple_stay_in_it(photos: str) -> None:
    plain = image_dataset_from_directory(photos, shuffle=False, label_mode=None, **SMALL)
    assert isinstance(plain.map(lambda x: (x / 255.0,)).element_spec, tuple)
    assert isinstance(plain.map(lambda x: x / 255.0), DirectoryDataset)


def test_two_threads_leave_the_layers_as_they_are() -> None:
    """The second waits until the first has restored them, so that none restores what the other has replaced."""
    kept, begun, inside, left = vars(layers.Rescaling)["call"], *(threading.Event() for _ in range(3))

    def first(x: Any, y: Any) -> Any:
        if not begun.is_set():
            begun.set()
            inside.wait(1)  # in vain
        return SCALING(x), y

    def second(x: Any, y: Any) -> Any:
        inside.set()
        left.wait(2)
        return SCALING(x), y

    thread = threading.Thread(target=lambda: (begun.wait(60), recognised(second, (X, Y), None)))
    thread.start()
    recognised(first, (X, Y), None)
    left.set()
    thread.join(60)
    assert vars(layers.Rescaling)["call"] is kept


def test_an_order_that_is_drawn_once_is_told(photos: str, caplog: pytest.LogCaptureFixture) -> None:
    train = image_dataset_from_directory(photos, validation_split=0.3, subset="training", **SMALL)
    with caplog.at_level(logging.WARNING, "pipegen"):
        train.shuffle(100, reshuffle_each_iteration=False)
    assert "has no effect: each epoch has a new order" in caplog.text


@pytest.mark.nightly
def test_take_and_skip_divide_a_validation_subset(photos: str) -> None:
    validation = image_dataset_from_directory(photos, validation_split=0.6, subset="validation", **SMALL)
    whole = flat(validation)
    for _ in range(2):
        parts = [*flat(validation.take(1)), *flat(validation.skip(1))]
        for one, other in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
