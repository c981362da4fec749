"""Colour steps against plain NumPy, Pillow and the YIQ matrix of the standard."""

from __future__ import annotations

from functools import reduce
from typing import Any, Literal

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from pipegen.errors import OpError
from pipegen.ops.step_bases import ColourTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.brightness import Brightness, RandomBrightness
from pipegen.ops.transforms.channels import RandomChannelShift
from pipegen.ops.transforms.color_jitter import RandomColorJitter
from pipegen.ops.transforms.contrast import Contrast, RandomContrast
from pipegen.ops.transforms.grayscale import Grayscale, RandomGrayscale
from pipegen.ops.transforms.hue import Hue, RandomHue
from pipegen.ops.transforms.saturation import RandomSaturation, Saturation
from pipegen.types import BYTE_RANGE, FeatureType, Interval

LUMA = np.array([0.299, 0.587, 0.114])
YIQ = np.array([[0.299, 0.587, 0.114], [0.595716, -0.274453, -0.321263], [0.211456, -0.522591, 0.311135]])

Array = np.ndarray[Any, Any]
Pivot = Literal["luma", "channel"]


def photo() -> Array:
    """A smooth gradient with some noise, uint8."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:24, :40]
    ramp = np.stack([5 * x + y, 3 * y + 2 * x, 200 - 4 * x], axis=-1)
    return np.clip(ramp + rng.integers(0, 40, ramp.shape), 0, 255).astype(np.uint8)


def apply(step: ColourTransform, image: Array, *u: float) -> Array:
    """`y = A x + b + m * mean`, clipped to 0..255."""
    import tensorflow as tf

    assert len(u) == step.num_draws()
    a, b, m = (t.numpy() for t in step.matrix(tf.constant(u, tf.float64), image.shape[-1]))
    assert a.dtype == b.dtype == m.dtype == np.float64
    assert step.uses_mean() or not m.any()
    mean = (image @ LUMA).mean() if image.shape[-1] == 3 else image.mean()
    return np.clip(image @ a.T + b + m * mean, 0, 255)


def enhanced(enhancer: Any, image: Array, factor: float) -> Array:
    """What Pillow makes of it."""
    return np.asarray(enhancer(Image.fromarray(image)).enhance(factor)).astype(float)


@pytest.mark.tf
@pytest.mark.parametrize("factor", [0.0, 0.6, 1.0, 1.4])
def test_brightness_contrast_and_saturation_are_pillow_s(factor: float) -> None:
    image = photo()
    given = (factor, factor)
    # Pillow rounds the mean and the gray to whole levels and truncates the result.
    for step, enhancer in (
        (RandomBrightness(factor=given), ImageEnhance.Brightness),
        (RandomContrast(factor=given), ImageEnhance.Contrast),
        (RandomSaturation(factor=given), ImageEnhance.Color),
    ):
        np.testing.assert_allclose(apply(step, image, 0.5), enhanced(enhancer, image, factor), atol=1.5)


@pytest.mark.tf
def test_formulas() -> None:
    image = photo()
    factor = 0.8 + 0.4 * 0.25
    gray = (image @ LUMA)[..., None]
    np.testing.assert_allclose(apply(RandomBrightness(factor=0.2), image, 0.25), image * factor, atol=1e-9)
    np.testing.assert_allclose(apply(RandomContrast(factor=0.2), image, 0.25), image * factor + (1 - factor) * gray.mean(), atol=1e-9)
    np.testing.assert_allclose(apply(RandomSaturation(factor=0.2), image, 0.25), image * factor + (1 - factor) * gray, atol=1e-9)


@pytest.mark.tf
@pytest.mark.parametrize("degrees", [-90.0, -10.0, 0.0, 33.0, 120.0])
def test_hue_turns_the_chroma_of_yiq(degrees: float) -> None:
    image = 100 + photo() / 10.0  # nothing is clipped
    angle = np.radians(-degrees)  # (Q, I) runs the other way round than (U, V)
    cos, sin = np.cos(angle), np.sin(angle)
    turn = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
    expected = image @ (np.linalg.inv(YIQ) @ turn @ YIQ).T
    np.testing.assert_allclose(apply(RandomHue(degrees=(degrees, degrees)), image, 0.5), expected, atol=0.05)


@pytest.mark.tf
def test_hue_keeps_luma_and_gray_and_turns_red_towards_yellow() -> None:
    image = 100 + photo() / 10.0
    turned = apply(RandomHue(degrees=(50, 50)), image, 0.0)
    np.testing.assert_allclose(turned @ LUMA, image @ LUMA, atol=1e-9)
    gray = np.full((1, 1, 3), 77.0)
    np.testing.assert_allclose(apply(RandomHue(degrees=(50, 50)), gray, 0.0), gray, atol=1e-9)
    red, green, blue = apply(RandomHue(degrees=(30, 30)), np.array([[[150.0, 100.0, 100.0]]]), 0.0)[0, 0]
    assert red > green > blue


@pytest.mark.tf
def test_grayscale() -> None:
    image = photo()
    gray = (image @ LUMA)[..., None]
    np.testing.assert_allclose(apply(Grayscale(), image), np.repeat(gray, 3, axis=-1), atol=1e-9)
    np.testing.assert_allclose(apply(Grayscale(channels=1), image), gray, atol=1e-9)
    np.testing.assert_allclose(apply(Grayscale(), image[..., :1]), np.repeat(image[..., :1], 3, axis=-1), atol=1e-9)


@pytest.mark.tf
def test_random_grayscale_is_grayscale_of_three_channels() -> None:
    np.testing.assert_array_equal(apply(RandomGrayscale(), photo()), apply(Grayscale(), photo()))
    assert RandomGrayscale().infer(IMAGE_224).shape == IMAGE_224.shape


@pytest.mark.tf
@pytest.mark.parametrize(("step", "random"), [
    (Brightness(factor=1.7), RandomBrightness(factor=(1.7, 1.7))), (Contrast(factor=0.3), RandomContrast(factor=(0.3, 0.3))),
    (Saturation(factor=2), RandomSaturation(factor=(2, 2))), (Hue(degrees=-40), RandomHue(degrees=(-40, -40))),
], ids=str)  # fmt: skip
def test_a_deterministic_form_is_the_random_one_without_the_draw(step: ColourTransform, random: ColourTransform) -> None:
    np.testing.assert_array_equal(apply(step, photo()), apply(random, photo(), 0.5))
    assert step.uses_mean() == random.uses_mean()
    assert step.infer(IMAGE_224) == random.infer(IMAGE_224)


@pytest.mark.tf
def test_color_jitter_is_the_run_of_its_parts() -> None:
    """Brightness, contrast about the mean of what entered, saturation, hue; clipped once at the end."""
    image = photo()
    step = RandomColorJitter(brightness_factor=0.4, contrast_factor=(0.5, 2), saturation_factor=0.8, hue_degrees=40)
    bright, contrasting, saturated, angle = 0.6 + 0.8 * 0.9, 0.5 + 1.5 * 0.7, 0.2 + 1.6 * 0.4, np.radians(-40 + 80 * 0.3)
    x = image * bright
    x = x * contrasting + (1 - contrasting) * (image @ LUMA).mean()
    gray = (x @ LUMA)[..., None]
    x = x * saturated + (1 - saturated) * gray
    turn = np.array([[1, 0, 0], [0, np.cos(angle), np.sin(angle)], [0, -np.sin(angle), np.cos(angle)]])
    x = x @ (np.linalg.inv(YIQ) @ turn @ YIQ).T
    np.testing.assert_allclose(apply(step, image, 0.9, 0.7, 0.4, 0.3), np.clip(x, 0, 255), atol=0.2)
    alone = apply(RandomColorJitter(brightness_factor=0.4), image[..., :1], 0.9, 0.7, 0.4, 0.3)
    np.testing.assert_allclose(alone, np.clip(image[..., :1] * bright, 0, 255), atol=1e-9)


@pytest.mark.tf
def test_channel_shift_is_the_one_of_image_data_generator() -> None:
    """On an image with a 0 and a 255 in it; Keras clips others to their own extremes."""
    from keras.src.legacy.preprocessing.image import apply_channel_shift

    image = photo()
    image[0, 0], image[0, 1] = 0, 255
    expected = apply_channel_shift(image.astype(float), -30 + 60 * 0.8, channel_axis=2)
    np.testing.assert_allclose(apply(RandomChannelShift(delta=30), image, 0.8), expected, atol=1e-9)
    each = apply(RandomChannelShift(delta=30, per_channel=True), image, 0.8, 0.1, 0.5)
    np.testing.assert_allclose(each, np.clip(image + np.array([18.0, -24.0, 0.0]), 0, 255), atol=1e-9)


@pytest.mark.tf
@pytest.mark.parametrize(
    "step",
    [
        RandomBrightness(factor=0.2),
        RandomContrast(factor=0.2),
        RandomSaturation(factor=0.2),
        RandomHue(degrees=9),
        Grayscale(),
        RandomGrayscale(),
        RandomColorJitter(contrast_factor=0.5, hue_degrees=9),
        RandomChannelShift(delta=9, per_channel=True),
        Brightness(factor=2),
        Contrast(factor=2),
        Saturation(factor=2),
        Hue(degrees=9),
    ],
    ids=str,
)
def test_any_leading_axes(step: ColourTransform) -> None:
    import tensorflow as tf

    u = np.random.default_rng(2).random((2, 3, step.num_draws()))
    a, b, m = step.matrix(tf.constant(u), 3)
    assert (a.shape, b.shape, m.shape) == ((2, 3, 3, 3), (2, 3, 3), (2, 3, 3))
    alone = step.matrix(tf.constant(u[1, 2]), 3)
    for stacked, single in zip((a, b, m), alone, strict=True):
        np.testing.assert_array_equal(stacked[1, 2].numpy(), single.numpy())


@pytest.mark.parametrize(("step", "mixes"), [
    (RandomBrightness(factor=0.2), False), (Brightness(factor=2), False), (RandomContrast(factor=0.2), False), (Contrast(factor=2), False),
    (RandomChannelShift(delta=9, per_channel=True), False), (RandomColorJitter(brightness_factor=0.2, contrast_factor=0.3), False),
    (RandomColorJitter(brightness_factor=0.2, saturation_factor=0.3), True), (RandomColorJitter(hue_degrees=[0, 3]), True),
    (RandomHue(degrees=9), True), (RandomSaturation(factor=0.2), True), (Grayscale(), True), (RandomGrayscale(), True),
], ids=str)  # fmt: skip
def test_which_steps_mix_channels(step: ColourTransform, mixes: bool) -> None:
    assert step.mixes_channels() == mixes


@pytest.mark.tf
@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_about_each_channel_is_tensorflow_s(channels: int) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.colour import apply_colour

    images = np.stack([photo(), photo()[::-1]])[..., :channels]
    matrix = tuple(part[None] for part in Contrast(factor=1.3, pivot="channel").matrix(tf.zeros([0], tf.float64), channels))
    found = apply_colour(tf.constant(images), matrix, BYTE_RANGE, uses_mean=True, mixes_channels=False)
    expected = tf.clip_by_value(tf.image.adjust_contrast(images.astype(np.float32), 1.3), 0, 255)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.tf
@pytest.mark.parametrize("pivot", ["luma", "channel"])
@pytest.mark.parametrize("then", ["luma", "channel"])
def test_contrasts_about_both_means_in_one_run(pivot: Pivot, then: Pivot) -> None:
    """The mean luma is that of the image that enters the run, the mean of a channel that of what enters the step."""
    import tensorflow as tf

    from pipegen.backend.kernels.colour import apply_colour
    from pipegen.ops.lowering.colours import compose

    images = photo()[None].astype(float) / 3 + 60  # so that nothing is clipped
    no: Any = tf.zeros([0], tf.float64)
    steps = [Brightness(delta=11), Contrast(factor=1.2, pivot=pivot), Saturation(factor=0.6), Contrast(factor=0.8, pivot=then)]
    expected, luma = images, (images @ LUMA).mean()
    for step in steps:
        a, b, m = (part.numpy() for part in step.matrix(no, 3))
        mean = luma if m.ndim == 1 else expected.mean((0, 1, 2))
        expected = expected @ a.T + b + (m * mean if m.ndim == 1 else m @ mean)
    matrix = tuple(part[None] for part in reduce(compose, (step.matrix(no, 3) for step in steps)))
    np.testing.assert_allclose(apply_colour(tf.constant(images), matrix, None, uses_mean=True), expected, atol=1e-3)


@pytest.mark.tf
@pytest.mark.parametrize(("channels", "dtype"), [
    (1, "uint8"), (3, "float32"),
    pytest.param(3, "uint8", marks=pytest.mark.nightly), pytest.param(1, "float32", marks=pytest.mark.nightly),
])  # fmt: skip
def test_what_mixes_no_channels_multiplies_by_the_diagonal(channels: int, dtype: str) -> None:
    """As NumPy computes it, as the whole matrix gives it, and the same in XLA."""
    import tensorflow as tf

    from pipegen.backend.kernels.colour import apply_colour

    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (4, 12, 20, channels)).astype(dtype)
    gain, offset, pivot = rng.uniform(0.5, 1.5, (4, channels)), rng.uniform(-30, 30, (4, channels)), rng.uniform(-0.5, 0.5, (4, channels))
    gain[0], offset[0], pivot[0] = 1, 0, 0
    matrix = tuple(tf.constant(v, tf.float32) for v in (gain[:, :, None] * np.eye(channels), offset, pivot))
    luma = (images @ LUMA if channels == 3 else images[..., 0]).mean((1, 2))
    for uses_mean in (False, True):
        moved = offset + uses_mean * pivot * luma[:, None]
        expected = np.clip(images * gain[:, None, None] + moved[:, None, None], 0, 255)

        def diagonal(x: tf.Tensor, mean: bool = uses_mean) -> tf.Tensor:
            return apply_colour(x, matrix, BYTE_RANGE, uses_mean=mean, mixes_channels=False)

        found = [diagonal(tf.constant(images)), tf.function(diagonal, jit_compile=True, autograph=False)(tf.constant(images))]
        found.append(apply_colour(tf.constant(images), matrix, BYTE_RANGE, uses_mean=uses_mean))
        for done in found:
            assert done.dtype == tf.float32
            np.testing.assert_allclose(done.numpy(), expected, rtol=0, atol=1e-6 * 255)
            np.testing.assert_array_equal(done[0].numpy(), images[0], err_msg="one that nothing happens to keeps its values")


def test_one_channel_has_brightness_and_no_hue() -> None:
    gray = FeatureType("image", "uint8", (8, 8, 1), Interval(0, 255))
    assert RandomBrightness(factor=0.2).infer(gray).channels == 1
    assert RandomColorJitter(contrast_factor=0.2).infer(gray).channels == 1
    colourful = (RandomColorJitter(brightness_factor=0.2, hue_degrees=3), RandomColorJitter(saturation_factor=0.2), RandomGrayscale())
    for step in (RandomHue(degrees=10), RandomSaturation(factor=0.2), Hue(degrees=10), Saturation(factor=2), *colourful):
        with pytest.raises(OpError, match="needs 3 channels") as caught:
            step.infer(gray)
        assert caught.value.code == "PG205"


@pytest.mark.parametrize("step", [RandomBrightness(factor=(0.25, 1.25)), Brightness(factor=0.75)], ids=lambda step: step.op)
def test_brightness_leaves_transparency_alone(step: Any) -> None:
    """As Pillow does."""
    image = np.concatenate([photo(), 255 - photo()[..., :1]], -1)
    u = (0.5,) * step.num_draws()
    expected = np.asarray(ImageEnhance.Brightness(Image.fromarray(image)).enhance(0.75))
    np.testing.assert_allclose(apply(step, image, *u), expected, atol=1)
    np.testing.assert_array_equal(apply(step, image, *u)[..., 3], image[..., 3])
    transparent = FeatureType("image", "uint8", (24, 40, 4), Interval(0, 255))
    assert step.infer(transparent).channels == 4
    with pytest.raises(OpError, match="works on 1, 3 or 4 channels, and gets 2"):
        step.infer(transparent.with_(shape=(8, 8, 2)))


def test_after_normalize_is_an_error() -> None:
    with pytest.raises(OpError) as caught:
        RandomBrightness(factor=0.2).infer(FeatureType("image", "float32", (8, 8, 3), Interval(-1, 1)))
    assert caught.value.code == "PG214"
    with pytest.raises(OpError, match=r"gets standardised values$"):
        RandomBrightness(factor=0.2).infer(FeatureType("image", "float32", (8, 8, 3), centred=True))


@pytest.mark.parametrize(
    "learns", ["standardize: {statistics: featurewise}", "whiten: {}", "standardize: {statistics: featurewise, scale: false}"]
)
@pytest.mark.parametrize(("between", "findings"), [("", ["PG214"]), ("rescale: {scale: 2}", ["PG214"]), ("rescale: {offset: 3}", [])])
def test_what_a_build_would_refuse_is_an_error_before_the_mean_is_known(learns: str, between: str, findings: list[str]) -> None:
    from planning import checked

    steps = ["resize: {size: 8}", learns, *([between] if between else []), "brightness: {factor: 1.2}"]
    found = checked(f"{{transforms: [{', '.join(f'{{{step}}}' for step in steps)}]}}")
    assert [d.code for d in found.diagnostics] == findings


def test_grayscale_has_no_probability() -> None:
    with pytest.raises(ValueError, match="probability"):
        Grayscale.model_validate({"probability": 0.5})
    assert Grayscale().probability == 1


@pytest.mark.parametrize(("step", "text"), [
    (lambda: RandomBrightness(factor=(1.2, 0.8)), "is above"),
    (lambda: RandomBrightness(factor=(-0.5, 1)), "at least 0"),
    (lambda: RandomContrast(factor=1.5), r"means the range \[-0.5, 2.5\]"),
    (lambda: RandomSaturation(factor=-0.5), r"`factor: m` means \[1 - m, 1 \+ m\]"),
    (lambda: RandomHue(degrees=(5, -5)), "is above"),
    (lambda: RandomColorJitter(), "give at least one of"),
    (lambda: RandomColorJitter(contrast_factor=1.2), r"`contrast_factor: 1.2` means the range \[-0.2, 2.2\]"),
    (lambda: RandomChannelShift(delta=-3), r"`delta` is a magnitude"),
    (lambda: Brightness(factor=-1), "at least 0"),
])  # fmt: skip
def test_wrong_arguments_are_rejected(step: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        step()


@pytest.mark.parametrize(("step", "codes"), [
    (RandomBrightness(factor=1), ["PG510"]), (RandomContrast(factor=(0.5, 9)), ["PG510"]), (RandomSaturation(factor=1), []),
    (RandomColorJitter(brightness_factor=1, hue_degrees=0.3), ["PG510", "PG503"]), (Contrast(factor=0), ["PG510"]),
    (Hue(degrees=400), ["PG510"]), (RandomChannelShift(delta=300), ["PG510"]), (RandomChannelShift(delta=0.2), ["PG510"]),
    (RandomChannelShift(delta=9), []), (Saturation(factor=0), []),
    (RandomHue(degrees=0.1), ["PG503"]), (RandomHue(degrees=200), ["PG510"]), (RandomHue(degrees=0), []),
])  # fmt: skip
def test_lints(step: ColourTransform, codes: list[str]) -> None:
    assert [lint.code for lint in step.lints(IMAGE_224)] == codes


def test_an_identity_keeps_the_dtype() -> None:
    floats = IMAGE_224.with_(dtype="float32")
    jitter, shift = RandomColorJitter(hue_degrees=0), RandomChannelShift(delta=0)
    fixed = (Brightness(factor=1), Contrast(factor=1), Saturation(factor=1), Hue(degrees=0))
    random = (RandomBrightness(factor=0), RandomContrast(factor=0.5, probability=0), RandomSaturation(factor=0), RandomHue(degrees=0))
    for step in (*random, *fixed, jitter, shift, RandomGrayscale(probability=0)):
        assert step.is_identity(floats)
        assert not step.is_identity(IMAGE_224), "it makes floats"


@pytest.mark.parametrize("height", [1, 7, 8, 9, 63, 65, 130, 257, 700])
def test_the_mean_luma_of_bytes_is_exact_at_any_height(height: int) -> None:
    """Blocks of lines are added in 16 bits, so white images come closest to an overflow."""
    import tensorflow as tf

    from pipegen.backend.kernels.colour import mean_luma
    from pipegen.backend.process.traced_functions import compiled

    images = np.random.default_rng(height).integers(0, 256, (2, height, 5, 3), np.uint8)
    images[1] = 255
    found = compiled(mean_luma)(tf.constant(images)).numpy()
    exact = images.astype(np.int64).sum((1, 2)) @ np.array([299, 587, 114]) / (1000 * height * 5)
    np.testing.assert_allclose(found, exact, rtol=1e-7)
    np.testing.assert_array_equal(found, mean_luma(tf.constant(images)).numpy())
