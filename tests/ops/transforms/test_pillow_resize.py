"""`resize: {method: {pillow: FILTER}}` against Pillow itself, bit for bit, whichever version of it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

from pipegen.ops.traits import ANY_IMAGE, FLOAT_224
from pipegen.ops.transforms.resize import PillowMethod, Resize

Array = np.ndarray[Any, Any]

FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
SIZES = ((20, 30), (90, 31), (21, 111), (100, 120), (1, 1), (61, 45))
"""Smaller, larger, each along one side alone, and the image's own: which pass comes first depends on that."""


def picture(*channels: int) -> Array:
    """Noise between the extremes, 61 by 45, where filters overshoot."""
    return np.random.default_rng(3).choice(np.array([0, 0, 90, 255, 255], np.uint8), (61, 45, *channels))


INSTALLED = tuple(map(int, PIL.__version__.split(".")[:2]))


def by_pillow(image: Array, size: tuple[int, int], name: str, **options: Any) -> Array:
    """What the installed Pillow gives, in the shape of ours."""
    done = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).resize(size[::-1], Image.Resampling[name.upper()], **options)
    return np.asarray(done).reshape(*size, image.shape[-1])


def pass_by_pass(image: Array, size: tuple[int, int], name: str, *, columns_first: bool) -> Array:
    """What every Pillow gives where the passes are called one by one, so that it has no order to choose."""
    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    picture = picture.convert("RGBa") if picture.mode == "RGBA" else picture  # as `resize` does around both passes
    for height, width in ((size[0], image.shape[1]) if columns_first else (image.shape[0], size[1]), size):
        picture = picture.resize((width, height), Image.Resampling[name.upper()])
    return np.asarray(picture.convert("RGBA") if picture.mode == "RGBa" else picture).reshape(*size, image.shape[-1])


def as_installed(name: str) -> PillowMethod:
    """A filter as the installed Pillow computes it."""
    earlier = INSTALLED < (13,) and name != "nearest"
    return PillowMethod.model_validate({"pillow": {"filter": name, "before": 13} if earlier else name})


def ours(image: Array, step: Resize) -> Array:
    """What the step gives."""
    import tensorflow as tf

    done: Array = step.apply(tf.constant(image), tf.zeros([0])).numpy()
    return done


@pytest.mark.by_day(6)
@pytest.mark.tf
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_bytes_are_pillow_s(name: str, channels: int) -> None:
    image = picture(channels)
    for size in SIZES:
        np.testing.assert_array_equal(ours(image, Resize(size=size, method=as_installed(name))), by_pillow(image, size, name))


@pytest.mark.tf
@pytest.mark.parametrize("channels", [3, 4])
def test_a_spec_says_which_pass_comes_first(channels: int) -> None:
    """Whichever Pillow is installed: an image that loses many more rows than columns is where versions differ."""
    image, size = picture(channels), (20, 30)
    ways = {}
    for name, method in {"lanczos": {"pillow": "lanczos"}, "earlier": {"pillow": {"filter": "lanczos", "before": 13}}}.items():
        ways[name] = ours(image, Resize.model_validate({"size": size, "method": method}))
        np.testing.assert_array_equal(ways[name], pass_by_pass(image, size, "lanczos", columns_first=name == "lanczos"))
    assert (ways["lanczos"] != ways["earlier"]).any()


@pytest.mark.tf
@pytest.mark.parametrize("name", FILTERS)
def test_a_crop_is_cut_before(name: str) -> None:
    """The largest part of the proportions, in whole pixels; filters read beyond it, as Pillow's do."""
    image = picture(3)
    for size, box in {(20, 30): (0, 15, 45, 45), (30, 10): (12, 0, 32, 61), (61, 45): (0, 0, 45, 61)}.items():
        step = Resize(size=size, mode="crop", method=as_installed(name))
        np.testing.assert_array_equal(ours(image, step), by_pillow(image, size, name, box=box))


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_other_values_are_pillow_s(dtype: str) -> None:
    image = (picture(1) * (257.0 if dtype == "uint16" else 1 / 255)).astype(dtype)
    wraps = dtype == "uint16" and INSTALLED < (12, 3)  # where a filter overshoots
    for name in (*FILTERS[:4], *(() if wraps else FILTERS[4:])):
        for size in ((20, 30), (90, 31)):
            expected = np.asarray(Image.fromarray(image[..., 0]).resize(size[::-1], Image.Resampling[name.upper()]))
            got = ours(image, Resize(size=size, method=as_installed(name)))
            assert got.dtype == dtype
            np.testing.assert_allclose(got[..., 0], expected, rtol=0, atol=1 if dtype == "uint16" else 1e-6)  # a tie of sums


@pytest.mark.tf
def test_shorter_side_and_pad() -> None:
    image, method = picture(3), as_installed("bicubic")
    np.testing.assert_array_equal(ours(image, Resize(shorter_side=30, method=method)), by_pillow(image, (41, 30), "bicubic"))
    padded = ours(image, Resize(size=(61, 61), mode="pad", method=method))
    np.testing.assert_array_equal(padded[:, 8:53], image)


def test_what_it_is() -> None:
    step = Resize.model_validate({"size": 20, "method": {"pillow": "lanczos"}})
    assert step.infer(ANY_IMAGE).shape == (20, 20, 3)
    assert step.infer(FLOAT_224).interval is None, "it has negative weights"
    assert step.traits(ANY_IMAGE).weight > Resize(size=20, antialias=True).traits(ANY_IMAGE).weight
    assert step.lints(ANY_IMAGE.with_(shape=(200, 200, 3))) == (), "its filters widen by themselves"
    mask = ANY_IMAGE.with_(kind="mask", shape=(None, None, 1))
    assert step.on(mask).method == "nearest"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"no effect with `method: \{pillow: lanczos\}`"):
        Resize(size=20, method=PillowMethod(pillow="lanczos"), antialias=True)


def test_earlier_versions_are_of_the_meaning_and_leave_others_alone() -> None:
    plain, earlier = ({"size": 20, "method": {"pillow": said}} for said in ("lanczos", {"filter": "lanczos", "before": 13}))
    meant = [Resize.model_validate(given).meaning()["method"] for given in (plain, earlier)]
    assert meant == [plain["method"], earlier["method"]]
    assert str(Resize.model_validate(earlier).method) == "{pillow: {filter: lanczos, before: 13}}"
    for wrong in ({"filter": "lanczos"}, {"filter": "lanczos", "before": 12}, {"filter": "nearest", "before": 13}):
        with pytest.raises(ValueError, match="pillow"):
            Resize.model_validate({"size": 20, "method": {"pillow": wrong}})
