"""The functions and the class against Keras' own, with the same draws."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen import compat

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)
SQUARE = RNG.uniform(0, 255, (18, 18, 3)).astype(np.float32)
WIDE = RNG.uniform(0, 255, (12, 20, 3)).astype(np.float32)
LAST = {"row_axis": 0, "col_axis": 1, "channel_axis": 2}


@pytest.fixture(scope="module")
def keras_image() -> Any:
    from keras.src.legacy.preprocessing import image

    return image


def both(keras_image: Any, name: str, *args: Any, seed: int = 5, ours: dict[str, Any] | None = None, **kwargs: Any) -> tuple[Array, Array]:
    """What our function gives, and Keras' with the same global stream."""
    found = []
    for module, own in ((compat, ours or {}), (keras_image, {})):
        np.random.seed(seed)
        found.append(getattr(module, name)(*args, **kwargs, **own))
    return found[0], found[1]


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("random_rotation", (40,)),
    ("random_shear", (30,)),
    ("random_zoom", ((0.6, 1.5),)),
    ("random_zoom", ((1, 1),)),
]


@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.parametrize("mode", ["nearest", "constant", "reflect", "wrap"])
def test_square_images_move_as_in_keras(keras_image: Any, name: str, args: tuple[Any, ...], mode: str) -> None:
    ours, theirs = both(keras_image, name, SQUARE, *args, **LAST, fill_mode=mode, cval=3.0, interpolation_order=1)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert ours.dtype == theirs.dtype


@pytest.mark.parametrize(("name", "args"), [*CALLS, ("random_shift", (0.3, 0.2))])
def test_keras3_geometry_is_keras_bug_for_bug(keras_image: Any, name: str, args: tuple[Any, ...]) -> None:
    ours, theirs = both(keras_image, name, WIDE, *args, **LAST, ours={"geometry": "keras3"})
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    first, theirs = both(keras_image, name, WIDE.transpose(2, 0, 1), *args, ours={"geometry": "keras3"})
    np.testing.assert_allclose(first, theirs, atol=1e-3)


def test_everything_at_once_and_every_order(keras_image: Any) -> None:
    for order in range(6):
        kwargs = {"theta": 20, "tx": 2.0, "ty": -3.0, "shear": 15, "zx": 0.8, "zy": 1.2, **LAST, "order": order}
        ours, theirs = both(keras_image, "apply_affine_transform", SQUARE, **kwargs)
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_colour_is_as_in_keras(keras_image: Any) -> None:
    for axis in (0, 2):
        np.testing.assert_array_equal(*both(keras_image, "random_channel_shift", SQUARE, 60.0, axis))
    np.testing.assert_array_equal(*both(keras_image, "random_brightness", SQUARE, (0.3, 1.8)))
    for x in (SQUARE, SQUARE / 60 - 1, SQUARE * 9, SQUARE[..., :1]):
        np.testing.assert_allclose(*both(keras_image, "random_brightness", x, (0.3, 1.8), False, ours={"through_bytes": True}), rtol=1e-6)


def test_brightness_of_bytes_is_keras_before_it_cuts_off_fractions(keras_image: Any) -> None:
    x = RNG.integers(0, 256, (16, 16, 3)).astype(np.float32)
    for factor in (0.0, 0.37, 1.0, 1.83, 5.0):
        ours, theirs = both(keras_image, "apply_brightness_shift", x, factor, False)
        assert ((theirs <= ours + 1e-3) & (ours < theirs + 1)).all()


def test_pictures_are_as_in_keras(keras_image: Any, tmp_path: Path) -> None:
    import keras

    for x in (SQUARE, SQUARE / 255, np.full((3, 4, 3), 2.0), SQUARE[..., :1] * 9, RNG.uniform(0, 1, (5, 6, 4))):
        for scale in (True, False):
            ours, theirs = compat.array_to_img(x, scale=scale), keras.utils.array_to_img(x, scale=scale)
            assert ours.mode == theirs.mode
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    path = tmp_path / "a.png"
    Image.fromarray(RNG.integers(0, 256, (31, 44, 3)).astype(np.uint8)).save(path)
    for mode in ("rgb", "rgba", "grayscale"):
        for method in ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos"):
            for keep in (False, True):
                given = {"color_mode": mode, "target_size": (16, 12), "interpolation": method, "keep_aspect_ratio": keep}
                ours, theirs = (f(path, **given) for f in (compat.load_img, keras.utils.load_img))
                np.testing.assert_array_equal(compat.img_to_array(ours), keras.utils.img_to_array(theirs))


GENERATORS: list[dict[str, Any]] = [
    {},
    {"rotation_range": 30, "zoom_range": 0.3, "shear_range": 12.0, "horizontal_flip": True, "vertical_flip": True},
    {"rotation_range": 10, "zoom_range": [0.5, 1.5], "channel_shift_range": 40.0, "brightness_range": (0.4, 1.6), "fill_mode": "reflect"},
    {"width_shift_range": 0.2, "height_shift_range": 0.1},
    {"width_shift_range": 4, "height_shift_range": 3.5},
    {"width_shift_range": [-3, 5], "height_shift_range": [0.1, 0.2], "interpolation_order": 0, "fill_mode": "constant", "cval": 9.0},
    {"width_shift_range": -2, "horizontal_flip": True},
]


@pytest.mark.parametrize("arguments", GENERATORS, ids=lambda a: "-".join(a) or "none")
def test_equal_seeds_draw_what_keras_draws(keras_image: Any, arguments: dict[str, Any]) -> None:
    theirs = keras_image.ImageDataGenerator(**arguments)
    documented, same = (compat.ImageDataGenerator(**arguments, geometry=g) for g in ("documented", "keras3"))
    for seed in range(8):
        expected = theirs.get_random_transform(WIDE.shape, seed)
        assert same.get_random_transform(WIDE.shape, seed) == expected
        expected["tx"], expected["ty"] = expected["ty"], expected["tx"]
        assert documented.get_random_transform(WIDE.shape, seed) == expected
        ours = same.random_transform(WIDE, seed)
        np.testing.assert_allclose(ours, theirs.random_transform(WIDE, seed), atol=1.01 if "brightness_range" in arguments else 1e-3)
        assert ours.shape == WIDE.shape


def test_a_seed_leaves_the_global_stream_alone() -> None:
    generator = compat.ImageDataGenerator(rotation_range=10)
    np.random.seed(1)
    expected = np.random.uniform()
    np.random.seed(1)
    generator.get_random_transform((8, 8, 3), seed=3)
    assert np.random.uniform() == expected


STATISTICS: list[dict[str, Any]] = [
    {"featurewise_center": True, "featurewise_std_normalization": True, "rescale": 1 / 255},
    {"samplewise_center": True, "samplewise_std_normalization": True},
    {"zca_whitening": True, "featurewise_center": True, "rescale": 1 / 255},
    {"featurewise_center": True, "preprocessing_function": lambda x: x + 1},
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("arguments", STATISTICS, ids=lambda a: "-".join(a))
def test_statistics_are_keras(keras_image: Any, arguments: dict[str, Any]) -> None:
    x = RNG.uniform(0, 255, (60, 4, 5, 3)).astype(np.float32)
    ours, theirs = compat.ImageDataGenerator(**arguments), keras_image.ImageDataGenerator(**arguments)
    for generator in (ours, theirs):
        generator.fit(x)
    for name in ("mean", "std"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5)
    for image in x[:5]:
        np.testing.assert_allclose(ours.standardize(image.copy()), theirs.standardize(image.copy()), atol=2e-3)


def test_augmented_statistics_are_keras_where_nothing_depends_on_the_units(keras_image: Any) -> None:
    x = RNG.uniform(0, 255, (6, 10, 10, 3)).astype(np.float32)
    given = {"featurewise_center": True, "featurewise_std_normalization": True, "rotation_range": 40, "rescale": 0.5}
    ours, theirs = compat.ImageDataGenerator(**given), keras_image.ImageDataGenerator(**given)
    for generator in (ours, theirs):
        generator.fit(x, augment=True, rounds=2, seed=9)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-5)
    np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-4)


BAD: list[dict[str, Any]] = [
    {"zoom_range": (1, 2, 3)},
    {"zoom_range": ("a", "b")},
    {"brightness_range": 0.5},
    {"brightness_range": (1,)},
    {"validation_split": 1.0},
    {"validation_split": -0.5},
    {"data_format": "channels"},
]


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_what_keras_rejects_is_rejected(keras_image: Any, arguments: dict[str, Any]) -> None:
    for kind in (compat.ImageDataGenerator, keras_image.ImageDataGenerator):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            kind(**arguments)


@pytest.mark.parametrize("argument", ["zca_whitening", "featurewise_std_normalization", "samplewise_std_normalization"])
def test_what_one_argument_switches_on_is_as_in_keras(keras_image: Any, argument: str) -> None:
    states = []
    for kind in (compat.ImageDataGenerator, keras_image.ImageDataGenerator):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            generator = kind(**{argument: True}, **({"featurewise_std_normalization": True} if argument == "zca_whitening" else {}))
        names = ("featurewise_center", "samplewise_center", "featurewise_std_normalization", "samplewise_std_normalization")
        states.append(([getattr(generator, name) for name in names], bool(caught)))
    assert states[0] == states[1]


def test_helpers_are_keras(keras_image: Any) -> None:
    import keras

    for axis in range(3):
        np.testing.assert_array_equal(compat.flip_axis(WIDE, axis), keras_image.flip_axis(WIDE, axis))
    matrix = RNG.normal(size=(3, 3))
    about = [module.transform_matrix_offset_center(matrix, 12, 21) for module in (compat, keras_image)]
    np.testing.assert_allclose(*about, atol=1e-9)
    for x in (WIDE, np.stack([WIDE, WIDE])):
        for method in ("bilinear", "nearest"):
            ours, theirs = (f(x, (6, 7), interpolation=method) for f in (compat.smart_resize, keras.preprocessing.image.smart_resize))
            assert isinstance(ours, np.ndarray)
            np.testing.assert_array_equal(ours, theirs)


def test_the_signature_is_keras(keras_image: Any) -> None:
    import inspect

    ours, theirs = compat.ImageDataGenerator, keras_image.ImageDataGenerator
    for name in ("__init__", "flow", "flow_from_directory", "fit", "standardize", "get_random_transform", "apply_transform"):
        mine, other = (inspect.signature(getattr(kind, name)).parameters for kind in (ours, theirs))
        assert [(p.name, p.default) for p in mine.values() if p.kind is not p.KEYWORD_ONLY] == [(p.name, p.default) for p in other.values()]
