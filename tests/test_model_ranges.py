"""`pipe.check(model)` compares the range of the images with what the model does to them first."""

from __future__ import annotations

from pipes import RESIZE, SIZE, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import ModelMismatchError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

UNIT = {"rescale": {"to": [0, 1]}}
CENTRED = {"normalize": {"preset": "mobilenet_v2"}}
IMAGENET = {"normalize": {"preset": "torch"}}
CAFFE = {"normalize": {"preset": "caffe"}}


def begins(*first: str) -> Any:
    """A model whose first layers are named."""
    import keras
    from keras import layers as kl

    made = {
        "rescaling": lambda x: kl.Rescaling(1 / 255)(x),
        "to -1..1": lambda x: kl.Rescaling(1 / 127.5, offset=-1)(x),
        "unit to -1..1": lambda x: kl.Rescaling(2.0, offset=-1)(x),
        "division": lambda x: x / 255.0,
        "lambda": lambda x: kl.Lambda(lambda v: v / 255.0)(x),
        "normalization": lambda x: kl.Normalization(mean=[123.7, 116.3, 103.5], variance=[3409.0, 3262.0, 3291.0])(x),
        "unit normalization": lambda x: kl.Normalization(mean=[0.485, 0.456, 0.406], variance=[0.0524, 0.0502, 0.0506])(x),
        "inner": lambda x: keras.Sequential([kl.RandomFlip(), kl.Rescaling(1 / 255)])(x),
        "augmentation": lambda x: kl.RandomRotation(0.1)(kl.RandomFlip()(x)),
        "padding": lambda x: kl.ZeroPadding2D(8)(x),
        "pooling": lambda x: kl.AveragePooling2D(2)(x),
        "batch normalization": lambda x: kl.BatchNormalization()(x),
        "base": lambda x: keras.Sequential([keras.Input((SIZE, SIZE, 3)), kl.Rescaling(1 / 255), kl.Conv2D(2, 3)])(x),
        "own": lambda x: Own()(x),
    }

    class Own(kl.Layer):
        def build(self, shape: Any) -> None:
            self.factor = self.add_weight(shape=(), name="factor")

        def call(self, x: Any) -> Any:
            return x * self.factor

    inputs = x = keras.Input((SIZE, SIZE, 3), name="image")
    for name in first:
        x = made[name](x)
    model = keras.Model(inputs, kl.Dense(3, "softmax", name="last")(kl.GlobalAveragePooling2D()(x)))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


FINE = [
    ([UNIT], ()), ([CENTRED], ()), ([IMAGENET], ()), ([CAFFE], ()), ([], ("rescaling",)), ([], ("to -1..1",)), ([UNIT], ("unit to -1..1",)),
    ([], ("division",)), ([], ("lambda",)), ([], ("normalization",)), ([UNIT], ("unit normalization",)), ([], ("inner",)),
    ([UNIT], ("augmentation",)), ([UNIT], ("padding",)), ([], ("batch normalization",)), ([], ("base",)), ([], ("own",)),
    ([UNIT], ("own",)),
]  # fmt: skip
TWICE = [
    ([UNIT], ("rescaling",), "rescaling"), ([UNIT], ("to -1..1",), "rescaling"), ([UNIT], ("division",), "true_divide"),
    ([UNIT], ("lambda",), "lambda"), ([UNIT], ("normalization",), "normalization"), ([UNIT], ("inner",), "rescaling"),
    ([CENTRED], ("rescaling",), "rescaling"), ([IMAGENET], ("rescaling", "padding"), "rescaling"), ([UNIT], ("base",), "rescaling"),
    ([UNIT], ("augmentation", "padding", "to -1..1", "pooling"), "rescaling"), ([UNIT], ("padding", "to -1..1", "padding"), "rescaling"),
    ([UNIT], ("rescaling", "batch normalization"), "rescaling"), ([UNIT], ("rescaling", "own"), "rescaling"),
]  # fmt: skip
UNSCALED = [([], ()), ([], ("augmentation",)), ([], ("padding", "pooling")), ([{"rescale": {"scale": 0.5}}], ())]  # fmt: skip


@pytest.mark.parametrize(("steps", "first"), FINE)
def test_a_model_that_takes_the_range_passes(photo_folder: Path, steps: list[Any], first: tuple[str, ...]) -> None:
    line = shared(photo_folder, transforms=[RESIZE, *steps]).check(begins(*first))
    assert " float32 in [" in line
    assert "unscaled" not in line


@pytest.mark.parametrize(("steps", "first", "named"), TWICE)
def test_values_that_are_scaled_twice_are_a_mismatch(photo_folder: Path, steps: list[Any], first: tuple[str, ...], named: str) -> None:
    with pytest.raises(
        ModelMismatchError, match=rf"`image` is in \[.*{named}.*scales it again: `.*` gets values in .*takes values in \[0, 255\]"
    ):
        shared(photo_folder, transforms=[RESIZE, *steps]).check(begins(*first))


@pytest.mark.parametrize(("steps", "first"), UNSCALED)
def test_values_that_nothing_scales_are_a_warning(
    photo_folder: Path, steps: list[Any], first: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "pipegen"):
        line = shared(photo_folder, transforms=[RESIZE, *steps]).check(begins(*first))
    assert "`last` of the model gets it unscaled: use `- rescale: {to: [0, 1]}`" in line
    assert [r.getMessage() for r in caplog.records] == [line]


def test_the_advice_holds(photo_folder: Path) -> None:
    assert "in [0, 255]" in shared(photo_folder, transforms=[RESIZE]).check(begins("rescaling"))
    assert "unscaled" not in shared(photo_folder, transforms=[RESIZE, UNIT]).check(begins())


def test_a_sequential_model_that_is_not_built_yet(photo_folder: Path) -> None:
    import keras
    from keras import layers as kl

    model = keras.Sequential([kl.Rescaling(1 / 255), kl.Conv2D(2, 3), kl.GlobalAveragePooling2D(), kl.Dense(3)])
    with pytest.raises(ModelMismatchError, match=r"scales it again: `conv2d.*` gets values in"):
        shared(photo_folder, transforms=[RESIZE, UNIT]).check(model)
    assert not model.weights, "the check built layers of the user"


def test_each_of_several_inputs_is_compared(photo_folder: Path) -> None:
    import keras
    from keras import layers as kl

    one, two = keras.Input((SIZE, SIZE, 3), name="one"), keras.Input((SIZE, SIZE, 3), name="two")
    both = [kl.GlobalAveragePooling2D()(kl.Conv2D(2, 3, name=f"conv_{i}")(x)) for i, x in enumerate((kl.Rescaling(1 / 255)(one), two))]
    model = keras.Model({"one": one, "two": two}, kl.Dense(3, "softmax")(kl.Concatenate()(both)))
    pipe = shared(photo_folder, transforms=[RESIZE, UNIT], output={"x": {"one": "image", "two": "image"}, "y": "label"})
    with pytest.raises(ModelMismatchError, match="`conv_0` gets values in") as raised:
        pipe.check(model)
    assert "conv_1" not in str(raised.value)


def test_layers_that_fail_hide_nothing_else(photo_folder: Path) -> None:
    import keras
    from keras import layers as kl

    class Odd(kl.Layer):
        def compute_output_shape(self, shape: Any) -> Any:
            return shape

        def call(self, x: Any) -> Any:
            if isinstance(x, np.ndarray) or hasattr(x, "numpy"):
                raise ValueError("only in graphs")
            return x

    inputs = keras.Input((SIZE, SIZE, 3), name="image")
    model = keras.Model(inputs, kl.Dense(3, "softmax")(kl.Flatten()(Odd()(inputs))))
    assert "the model fits" in shared(photo_folder, transforms=[RESIZE, UNIT]).check(model)


@pytest.mark.nightly
@pytest.mark.parametrize("app", ["MobileNetV3Small", pytest.param("EfficientNetB0", marks=pytest.mark.nightly),
                                 pytest.param("EfficientNetV2B0", marks=pytest.mark.nightly),
                                 pytest.param("ConvNeXtTiny", marks=pytest.mark.nightly)])  # fmt: skip
def test_applications_that_normalise_inside(photo_folder: Path, app: str) -> None:
    import keras

    size = {"resize": {"size": [32, 32]}}
    base = getattr(keras.applications, app)(weights=None, include_top=False, input_shape=(32, 32, 3), pooling="avg")
    whole = keras.Model(base.input, keras.layers.Dense(3, "softmax")(base.output))
    inputs = keras.Input((32, 32, 3))
    nested = keras.Model(inputs, keras.layers.Dense(3, "softmax")(base(inputs, training=False)))
    for model in (whole, nested, keras.Sequential([base, keras.layers.Dense(3, "softmax")])):
        assert "in [0, 255]" in (line := shared(photo_folder, transforms=[size]).check(model))
        assert "unscaled" not in line
        for steps in ([UNIT], [CENTRED]):
            with pytest.raises(ModelMismatchError, match=r"takes values in \[0, 255\]"):
                shared(photo_folder, transforms=[size, *steps]).check(model)


@pytest.mark.nightly
def test_applications_that_do_not(photo_folder: Path) -> None:
    import keras

    size = {"resize": {"size": [32, 32]}}
    model = keras.applications.MobileNetV2(weights=None, input_shape=(32, 32, 3), classes=3, alpha=0.35)
    assert "gets it unscaled" in shared(photo_folder, transforms=[size]).check(model)
    assert "unscaled" not in shared(photo_folder, transforms=[size, CENTRED]).check(model)
