"""Reference images: matched histograms against scikit-image, Fourier adaptation against NumPy; paths, hashes and findings."""

from __future__ import annotations

import json
from pipes import pipeline, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.errors import SpecError
from pipegen.ops.transforms.domain_adaptation import RandomFourierAdaptation, RandomHistogramMatching
from pipegen.spec.load import load
from pipegen.spec.spec_hash import spec_hash

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("styles")
    rng = np.random.default_rng(0)
    for number in range(3):
        low, high = 20 * number, 120 + 60 * number
        Image.fromarray(rng.integers(low, high, (30, 41, 3)).astype(np.uint8)).save(made / f"{number}.png")
    return made


def images() -> Array:
    y, x = np.mgrid[:32, :44]
    rng = np.random.default_rng(1)
    return np.stack([np.clip(np.stack([3 * x + y, 200 - 4 * x, 90 + 60 * np.sin(y / (4 + i))], -1) + rng.normal(0, 9, (32, 44, 3)), 0, 255)
        for i in range(4)]).astype(np.uint8)  # fmt: skip


def drawn(step: Any, count: int) -> tuple[Array, dict[str, Array]]:
    import tensorflow as tf

    u = np.random.default_rng(6).random((count, step.num_draws()))
    return u, {name: value.numpy() for name, value in step.drawn(tf.constant(u)).items()}


def matched(step: RandomHistogramMatching, x: Array, u: Array, *, jit: bool) -> Array:
    import tensorflow as tf

    from pipegen.backend.kernels.table_kernels import histogram, look_up

    def whole(x: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return look_up(x, step.table(u, histogram(x)))

    return tf.function(whole, jit_compile=jit, autograph=False)(tf.constant(x), tf.constant(u)).numpy()


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("match", ["histogram", "moments"])
def test_histograms_are_matched_as_scikit_image_does(folder: Path, match: str, jit: bool) -> None:
    step = RandomHistogramMatching.model_validate({"references": str(folder), "match": match, "share": [0.4, 1]})
    x = images()
    u, named = drawn(step, len(x))
    done = matched(step, x, u, jit=jit)
    pictures = step.pictures(3)
    for image, mine, share, number in zip(x, done, named["share"], named["reference"], strict=True):
        theirs = pictures[number]
        if match == "histogram":
            exposure = pytest.importorskip("skimage.exposure")
            made = exposure.match_histograms(image.astype(float), theirs.astype(float), channel_axis=-1)
        else:
            mean, std = image.mean((0, 1)), image.std((0, 1))
            made = (image - mean) / std * theirs.std((0, 1)) + theirs.mean((0, 1))
        assert np.abs(mine - np.clip(image * (1 - share) + made * share, 0, 255)).max() <= 0.52


def test_low_frequencies_are_those_of_the_reference(folder: Path) -> None:
    import tensorflow as tf

    step = RandomFourierAdaptation(references=str(folder), beta=(0.03, 0.2))
    x = images()
    u, named = drawn(step, len(x))
    done = step.apply(tf.constant(x), *step.parameters(tf.constant(u), 32, 44)).numpy()
    for image, mine, beta, number in zip(x, done, named["beta"], named["reference"], strict=True):
        theirs = tf.image.resize(step.pictures(3)[number], (32, 44)).numpy().astype(float)
        border, (h, w) = int(32 * beta), image.shape[:2]
        for channel in range(3):
            own, other = (np.fft.fft2(part[..., channel].astype(float)) for part in (image, theirs))
            size, wanted = np.fft.fftshift(np.abs(own)), np.fft.fftshift(np.abs(other))
            rows, columns = slice(h // 2 - border, h // 2 + border), slice(w // 2 - border, w // 2 + border)
            size[rows, columns] = wanted[rows, columns]
            made = np.real(np.fft.ifft2(np.fft.ifftshift(size) * np.exp(1j * np.angle(own))))
            assert np.abs(mine[..., channel] - np.clip(made, 0, 255)).max() <= 0.501


def test_the_content_is_a_part_of_the_meaning_and_the_place_is_not(folder: Path, tmp_path: Path) -> None:
    import shutil

    def hashed(styles: Path) -> str:
        found = load({"pipegen": 1, "source": {"image_folder": {"path": "p"}},
            "transforms": [{"resize": {"size": 9}}, {"random_histogram_matching": {"references": str(styles)}}]}, env={})  # fmt: skip
        assert found.spec is not None
        return spec_hash(found.spec)

    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    (moved / "0.png").rename(moved / "z.png")
    assert hashed(moved) == hashed(folder)
    assert hashed(moved / "z.png") == hashed(folder / "0.png") != hashed(folder)
    Image.new("RGB", (9, 9)).save(moved / "more.png")
    assert hashed(moved) != hashed(folder)


def test_a_path_is_relative_to_the_spec_and_images_have_to_be_there(folder: Path, photo_folder: Path, tmp_path: Path) -> None:
    import shutil

    import pipegen

    (tmp_path / "spec").mkdir()
    shutil.copytree(folder, tmp_path / "spec" / "looks")
    steps = [{"resize": {"size": 24}}, {"one_of": {"steps": [{"random_histogram_matching": {"references": "looks/*.png"}}, "random_flip"]}},
        {"random_fourier_adaptation": {"references": "looks"}}]  # fmt: skip
    text = {"pipegen": 1, "source": {"image_folder": {"path": str(photo_folder)}}, "transforms": steps, "shuffle": "none"}
    (tmp_path / "spec" / "a.pipegen.yaml").write_text(json.dumps(text))
    pipe = pipegen.build(tmp_path / "spec" / "a.pipegen.yaml", runtime={"cache": "none", "jit": "never"})
    x = stream(pipe.dataset("train", epoch=0))[0]
    plain = stream(pipeline(photo_folder, transforms=[{"resize": {"size": 24}}], shuffle="none").train)[0]
    assert x.shape[1:] == plain.shape[1:] == (24, 24, 3)
    shutil.rmtree(tmp_path / "spec" / "looks")
    with pytest.raises(SpecError, match=r"finds no reference image at `.*looks/\*\.png`"):
        pipegen.build(tmp_path / "spec" / "a.pipegen.yaml")
    (tmp_path / "spec" / "looks").mkdir()
    (tmp_path / "spec" / "looks" / "x.png").write_bytes(b"no image")
    with pytest.raises(SpecError, match=r"`x\.png` of `random_histogram_matching` is not an image"):
        pipegen.build(tmp_path / "spec" / "a.pipegen.yaml")
