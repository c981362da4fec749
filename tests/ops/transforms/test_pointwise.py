"""Rescale, normalize and cast: the arithmetic, and presets against Keras itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.arguments.arithmetic import PRESETS
from pipegen.ops.step_bases import PointwiseTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.normalize import Normalize
from pipegen.ops.transforms.rescale import Cast, Rescale
from pipegen.types import FeatureType, Interval

UNIT = FeatureType("image", "float32", (4, 4, 3), Interval(0, 1))
DEEP = FeatureType("image", "uint16", (4, 4, 1), Interval(0, 65535))
GRAY = IMAGE_224.with_(shape=(224, 224, 1))
CENTRED = FeatureType("image", "float32", (4, 4, 3), Interval(-2.1, 2.6))


def compute(step: PointwiseTransform, x: FeatureType, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`values[order] * scale + offset`, in float64."""
    arithmetic = step.arithmetic(x)
    ordered = values[..., list(arithmetic.order)] if arithmetic.order else values
    return ordered * np.array(arithmetic.scale) + np.array(arithmetic.offset)


@pytest.mark.parametrize(("x", "to"), [(IMAGE_224, (0, 1)), (IMAGE_224, (-1, 1)), (DEEP, (0, 1)), (CENTRED, (0, 255))])
def test_rescale_maps_the_known_range(x: FeatureType, to: tuple[float, float]) -> None:
    step = Rescale(to=to)
    assert x.interval is not None
    np.testing.assert_allclose(compute(step, x, np.array([x.interval.low, x.interval.high])), to, atol=1e-12)
    assert step.infer(x).interval == Interval(*to)
    assert step.infer(x).dtype == "float32"


def test_rescale_by_a_factor() -> None:
    step = Rescale(scale=1 / 127.5, offset=-1)
    np.testing.assert_allclose(compute(step, IMAGE_224, np.array([0, 51, 255])), [-1, -0.6, 1])
    assert step.infer(IMAGE_224).interval == Interval(-1, 1)
    assert Rescale(offset=-10).infer(IMAGE_224).interval == Interval(-10, 245)


def test_rescaling_twice_is_an_error_and_to_the_same_range_is_nothing() -> None:
    with pytest.raises(OpError) as caught:
        Rescale(scale=1 / 255).infer(UNIT)
    assert caught.value.code == "PG213"
    assert Rescale(to=(0, 1)).is_identity(UNIT)
    with pytest.raises(OpError, match="not known"):
        Rescale(to=(0, 1)).infer(IMAGE_224.with_(interval=None))


def test_normalize_with_moments() -> None:
    step = Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    values = np.random.default_rng(0).random((5, 3))
    expected = (values - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(compute(step, UNIT, values), expected, atol=1e-12)
    single = Normalize(mean=0.5, std=(0.1, 0.2, 0.4))
    np.testing.assert_allclose(compute(single, UNIT, values), (values - 0.5) / [0.1, 0.2, 0.4], atol=1e-12)
    assert Normalize(mean=(0.5,), std=(2.0,)).infer(GRAY.with_(interval=Interval(0, 1))).interval == Interval(-0.25, 0.25)


@pytest.mark.parametrize(("step", "x", "code"), [
    (Normalize(preset="resnet50"), UNIT, "PG213"),
    (Normalize(preset="efficientnet"), UNIT, "PG213"),
    (Normalize(preset="tf"), CENTRED, "PG213"),
    (Normalize(preset="tf"), CENTRED.with_(interval=None, centred=True), "PG213"),  # behind a mean that is yet to be learned
    (Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)), IMAGE_224, "PG213"),
    (Normalize(mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4)), UNIT, "PG213"),
    (Normalize(preset="vgg16"), GRAY, "PG205"),
    (Normalize(mean=(1.0, 2.0), std=3.0), IMAGE_224, "PG205"),
    (Cast(dtype="uint8"), UNIT, "PG208"),
    (Cast(dtype="uint8"), CENTRED, "PG208"),
])  # fmt: skip
def test_wrong_units_are_errors(step: PointwiseTransform, x: FeatureType, code: str) -> None:
    with pytest.raises(OpError) as caught:
        step.infer(x)
    assert caught.value.code == code


@pytest.mark.parametrize(("step", "text"), [
    (lambda: Rescale(), "either `to`"),
    (lambda: Rescale(to=(0, 1), scale=2.0), "either `to`"),
    (lambda: Rescale(to=(1, 0)), "is above"),
    (lambda: Rescale(scale=0.0), "every pixel the same"),
    (lambda: Normalize(), "either `preset`"),
    (lambda: Normalize(preset="tf", mean=1.0), "either `preset`"),
    (lambda: Normalize(std=(1.0, 0.0, 1.0)), "above 0"),
    (lambda: Normalize(mean=(1.0, 2.0), std=(1.0, 2.0, 3.0)), "2 and 3 channels"),
    (lambda: Normalize.model_validate({"preset": "resnet51"}), "resnet50"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step()


def test_cast() -> None:
    assert Cast(dtype="float16").infer(IMAGE_224).dtype == "float16"
    assert Cast(dtype="uint8").is_identity(IMAGE_224)
    assert not Cast(dtype="float32").is_identity(IMAGE_224)


def applications() -> list[str]:
    """The modules of `keras.applications` that preprocess."""
    import keras

    modules = {n: getattr(keras.applications, n) for n in dir(keras.applications) if not n.startswith("_")}
    return sorted(n for n, m in modules.items() if type(m).__name__ == "module" and hasattr(m, "preprocess_input"))


@pytest.mark.tf
def test_presets_are_keras_s() -> None:
    import keras

    found = applications()
    assert len(found) > 12
    newer = set(PRESETS) - {"tf", "torch", "caffe"} - set(found)
    assert not newer, "these are no modules of keras.applications"
    values = np.random.default_rng(0).uniform(0, 255, (2, 5, 7, 3))
    for name in found:
        if name == "imagenet_utils":
            continue
        expected = getattr(keras.applications, name).preprocess_input(values.copy(), data_format="channels_last")
        step = Normalize.model_validate({"preset": name})
        np.testing.assert_allclose(compute(step, IMAGE_224, values), expected, rtol=1e-6, atol=1e-4, err_msg=name)


@pytest.mark.tf
@pytest.mark.parametrize("mode", ["tf", "torch", "caffe"])
def test_modes_are_keras_s(mode: Any) -> None:
    import keras

    values = np.random.default_rng(1).uniform(0, 255, (2, 5, 7, 3))
    expected = keras.applications.imagenet_utils.preprocess_input(values.copy(), mode=mode, data_format="channels_last")
    step = Normalize(preset=mode)
    np.testing.assert_allclose(compute(step, IMAGE_224, values), expected, rtol=1e-6, atol=1e-4)
    interval = step.infer(IMAGE_224).interval
    assert interval is not None
    assert interval.low <= expected.min()
    assert expected.max() <= interval.high
