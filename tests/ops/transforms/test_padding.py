"""Windows that lie beyond the image, and resizes to drawn sizes, against NumPy and the formulas of torchvision and detectron."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning import checked, load_spec

from pipegen.errors import OpError
from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224
from pipegen.ops.transforms.crop import CenterCrop, RandomCrop
from pipegen.ops.transforms.pad import Pad, RandomZoomOut
from pipegen.ops.transforms.resize import RandomShorterSide, Resize, ScaleJitter
from pipegen.spec.spec_hash import spec_hash
from pipegen.types import FeatureType, Interval

Array = np.ndarray[Any, Any]
FILLS: list[Any] = ["reflect", "nearest", "wrap", {"constant": 7}]


def padded(image: Array, borders: list[tuple[int, int]], fill: Any) -> Array:
    """What NumPy pads."""
    modes = {"reflect": "symmetric", "nearest": "edge", "wrap": "wrap"}
    every: Any = [*borders, (0, 0)]
    if isinstance(fill, str):
        return np.pad(image, every, mode=modes[fill])  # type: ignore[call-overload]
    return np.pad(image, every, constant_values=fill["constant"])


def noise(height: int, width: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def shown(step: Any, image: Array, u: Array) -> Array:
    import tensorflow as tf

    window = step.window(tf.constant(u, tf.float64), tf.constant(image.shape[0]), tf.constant(image.shape[1]))
    return step.cut(tf.constant(image), window).numpy()


@pytest.mark.tf
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_pad_is_that_of_numpy(fill: Any) -> None:
    image = noise(9, 14)
    none = np.zeros(0)
    for given, borders in (
        ({"padding": 3}, [(3, 3), (3, 3)]),
        ({"padding": [1, 30]}, [(1, 1), (30, 30)]),
        ({"padding": {"top": 2, "right": 5}}, [(2, 0), (0, 5)]),
        ({"size": [12, 17]}, [(1, 2), (1, 2)]),
        ({"size": [12, 17], "position": "bottom_left"}, [(3, 0), (0, 3)]),
        ({"divisor": [4, 8], "position": "top_left"}, [(0, 3), (0, 2)]),
        ({"divisor": 7}, [(2, 3), (0, 0)]),
        ({"at_least": [5, 16], "position": "top_right"}, [(0, 0), (2, 0)]),
    ):
        step = Pad.model_validate({**given, "fill": fill})
        expected = padded(image, borders, fill)
        np.testing.assert_array_equal(shown(step, image, none), expected)
        assert step.infer(FeatureType("image", "uint8", image.shape, Interval(0, 255))).shape == expected.shape


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_a_padded_crop_is_a_crop_of_the_padded_image(fill: Any) -> None:
    image, u = noise(10, 13), np.random.default_rng(2).random((40, 2))
    step = RandomCrop.model_validate({"size": [11, 12], "padding": [4, 2], "fill": fill})
    larger = padded(image, [(4, 4), (2, 2)], fill)
    for row in u:
        top, left = int(row[0] * (18 - 11 + 1)), int(row[1] * (17 - 12 + 1))
        np.testing.assert_array_equal(shown(step, image, row), larger[top : top + 11, left : left + 12])


@pytest.mark.tf
def test_what_is_padded_as_needed_holds_the_image() -> None:
    """A side that is too short lies anywhere in the window; of one that is long enough a part is shown."""
    import tensorflow as tf

    u = np.random.default_rng(3).random((3000, 2))
    step = RandomCrop(size=(12, 8), padding="as_needed")
    window = step.window(tf.constant(u), tf.constant(10), tf.constant(11)).numpy()
    assert set(map(tuple, window[:, 2:].tolist())) == {(12, 8)}
    places, counts = np.unique(window[:, 0] * 100 + window[:, 1], return_counts=True)
    assert len(places) == 3 * 4
    assert set(window[:, 0]) == {-2, -1, 0}
    assert set(window[:, 1]) == {0, 1, 2, 3}
    assert counts.min() > 180
    assert [type(part) for part in step.evaluation_form()] == [Pad, CenterCrop]


SPEC = """
source: {{arrays: {{features: {{image: {{kind: image}}, mask: {{kind: mask, ignore: 9}}, label: {{kind: label, classes: 3}}}}}}}}
splits: {{parts: {{train: 12}}}}
shuffle: none
seed: 3
transforms: {steps}
output: {{x: [image, mask], y: label, dtype: uint8}}
batch: {{size: {batch}}}
"""


def delivered(steps: str, batch: int, **runtime: str) -> tuple[Array, Array]:
    import pipegen

    rng = np.random.default_rng(5)
    data = {
        "image": rng.integers(0, 256, (12, 16, 16, 3), np.uint8), "mask": rng.integers(0, 4, (12, 16, 16, 1), np.uint8),
        "label": np.arange(12) % 3,
    }  # fmt: skip
    text: Any = SPEC.format(steps=steps, batch=batch)
    import yaml

    pipe = pipegen.build({"pipegen": 1, **yaml.safe_load(text)}, data=data, runtime=runtime)
    got = [x for x, _ in pipe.dataset("train", epoch=0)]
    return tuple(np.concatenate([np.asarray(one[i]) for one in got]) for i in (0, 1))  # type: ignore[return-value]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
def test_a_padded_crop_behind_other_geometry_copies(jit: str) -> None:
    """Behind a flip it is read by a warp of its own; its pixels are those of the flipped image, whether XLA runs it or one by one."""
    crop = "{random_crop: {size: 16, padding: 4, fill: {constant: 250}}}"
    images, masks = delivered(f"[{{random_flip: {{probability: 1}}}}, {crop}]", 6, jit=jit)
    alone = [part[:, :, ::-1] for part in delivered(f"[{crop}, {{random_flip: {{probability: 1}}}}]", 4, jit="never")]
    assert (images == 250).all(-1).any()
    assert (masks == 9).any()
    np.testing.assert_array_equal((images == 250).all(-1), masks[..., 0] == 9)
    plain, _ = delivered("[{random_flip: {probability: 1}}]", 6, jit="never")
    for image, mirrored, crop_first in zip(images, plain, alone[0], strict=True):
        larger = padded(mirrored, [(4, 4), (4, 4)], {"constant": 250})
        assert any((image == larger[i : i + 16, j : j + 16]).all() for i in range(9) for j in range(9))
        other = padded(mirrored[:, ::-1], [(4, 4), (4, 4)], {"constant": 250})
        assert any((crop_first == other[i : i + 16, j : j + 16]).all() for i in range(9) for j in range(9))


@pytest.mark.tf
def test_views_are_the_five_crops_of_torchvision() -> None:
    """Its `five_crop`: the corners, and the middle, here of images whose sides differ from the crop's by even numbers."""
    import pipegen

    images = np.stack([noise(16, 20, seed) for seed in range(4)])
    corners = {"top_left": (0, 0), "top_right": (0, 12), "bottom_left": (6, 0), "bottom_right": (6, 12)}
    views = {name: {"when": "all", "transforms": [{"corner_crop": {"size": [10, 8], "corner": name}}]} for name in corners}
    middle = {"center": {"when": "all", "transforms": [{"center_crop": {"size": [10, 8]}}]}}
    spec: Any = {
        "pipegen": 1, "source": {"arrays": {"features": {"image": {"kind": "image"}}}},
        "splits": {"parts": {"test": 4}}, "views": middle | views, "output": {"x": "image", "dtype": "uint8"}, "batch": {"size": 4},
    }  # fmt: skip
    (x,) = pipegen.build(spec, data={"image": images}, runtime={"jit": "never"}).test
    given = x if isinstance(x, dict) else x[0]
    assert list(given) == [f"image_{name}" for name in (*middle, *corners)]
    for name, (top, left) in {"center": (3, 6), **corners}.items():
        np.testing.assert_array_equal(given[f"image_{name}"], images[:, top : top + 10, left : left + 8])


def test_a_border_of_no_pixels_is_no_part_of_the_meaning() -> None:
    specs = [load_spec({"transforms": [{"random_crop": {"size": 16, **more}}]}) for more in ({}, {"padding": 0}, {"padding": [0, 0]})]
    assert len({spec_hash(spec) for spec in specs}) == 1
    four = [load_spec({"transforms": [{"random_crop": {"size": 16, "padding": p}}]}) for p in (4, [4, 4], [4, 3])]
    assert len({spec_hash(spec) for spec in [*specs, *four]}) == 3


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(OpError, match="cuts 234×234 pixels out of an image of 224×224"):
        RandomCrop(size=234, padding=4).infer(IMAGE_224)
    with pytest.raises(OpError, match="makes images of 200×224, and gets one of 224×224") as error:
        Pad(size=(200, 224)).infer(IMAGE_224)
    assert error.value.code == "PG258"
    with pytest.raises(OpError, match="cannot be filled with 300"):
        Pad(size=300, fill=ConstantFill(constant=300)).infer(IMAGE_224)
    found = checked("transforms: [{pad: {padding: 4}}]")
    assert [d.code for d in found.diagnostics.items] == ["PG201"]


@pytest.mark.tf
def test_an_image_that_has_no_room_stops_with_a_clear_message() -> None:
    import tensorflow as tf

    step = Pad(size=(20, 30))

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)] * 2, autograph=False)
    def window(height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return step.window(tf.zeros(0, tf.float64), height, width)

    assert window(17, 30).numpy().tolist() == [-1, 0, 20, 30]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the canvas of 20x30 has no room for the image"):
        window(19, 31)


@pytest.mark.tf
def test_zooming_out_is_ssds_expansion() -> None:
    """torchvision's formulas, with our numbers in place of its generator's; it never uses the last row and column that there are."""
    import tensorflow as tf

    u = np.random.default_rng(6).random((200, 4))
    step = RandomZoomOut(probability=0.7)
    height, width = 37, 90
    for row, window in zip(u, step.window(tf.constant(u), tf.constant(height), tf.constant(width)).numpy(), strict=True):
        factor = 1 + 3 * row[0] if row[3] < 0.7 else 1
        rows, columns = int(height * factor), int(width * factor)
        assert window.tolist() == [-int(row[1] * (rows - height + 1)), -int(row[2] * (columns - width + 1)), rows, columns]


@pytest.mark.tf
@pytest.mark.parametrize(("height", "width"), [(60, 41), (30, 88)])
def test_scale_jitter_is_a_resize_and_a_window(height: int, width: int) -> None:
    import tensorflow as tf

    image, fill = noise(height, width), ConstantFill(constant=9)
    step = ScaleJitter(size=(40, 50), scale=(0.3, 2.5), fill=fill)
    for row in np.random.default_rng(7).random((8, 3)):
        factor = (0.3 + 2.2 * row[0]) * min(40 / height, 50 / width)
        rows, columns = (int(np.floor(side * factor + 0.5)) for side in (height, width))
        larger = Resize(size=(rows, columns)).apply(tf.constant(image), None).numpy()
        top, left = int(row[1] * (max(rows - 40, 0) + 1)), int(row[2] * (max(columns - 50, 0) + 1))
        window = larger[top : top + 40, left : left + 50]
        expected = np.full((40, 50, 3), 9, np.uint8)
        expected[: window.shape[0], : window.shape[1]] = window
        np.testing.assert_array_equal(step.apply(tf.constant(image), tf.constant(row)), expected)


@pytest.mark.tf
def test_a_shorter_side_with_a_longest_one() -> None:
    """detectron2's `ResizeShortestEdge`, which rounds half up as well."""
    import tensorflow as tf

    rng = np.random.default_rng(8)
    for _ in range(40):
        height, width, side, most = (int(v) for v in rng.integers(1, 4000, 4))
        side, most = min(side, most), max(side, most)
        scale = min(side / min(height, width), most / max(height, width))
        rows, columns = Resize(shorter_side=side, longer_side=most)._output(ANY_IMAGE.with_(shape=(height, width, 3)))
        assert (rows, columns) == pytest.approx((max(1, height * scale), max(1, width * scale)), abs=0.5 + 1e-6)
        step = RandomShorterSide(between=(max(1, side - 1), side), longer_side=most)
        u = tf.constant([np.nextafter(1.0, 0.0)], tf.float64)
        assert [int(n) for n in step._size(u, tf.constant(height), tf.constant(width))] == [rows, columns]
        longest = Resize(longer_side=most)._output(ANY_IMAGE.with_(shape=(height, width, 3)))
        assert max(longest) == most  # type: ignore[type-var]
    drawn = RandomShorterSide(sizes=(3, 9, 5)).drawn(tf.constant(rng.random((600, 1))))["shorter_side"].numpy()
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [3, 5, 9]
    assert counts.min() > 150
