"""Steps that standardise: those that learn are fitted on the training split alone, once, and the same for whoever asks."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from pipes import RESIZE, SIZE, Array, picture, pipeline, sections, shared, stream
from typing import Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import DataError

pytestmark = pytest.mark.tf

LEARNS: dict[str, Any] = {"standardize": {"statistics": "featurewise"}}
STEPS: list[Any] = [RESIZE, "random_flip", {"random_brightness": {"factor": 0.5}}, LEARNS]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own; where files of what was learned will be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pipegen" / "statistics"


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="pipegen")
    return caplog


def numbers(pipe: Any) -> Any:
    """What the last step has learned of images."""
    return pipe.spec.model.transforms[-1].fitted.numbers["image"]


def plain(folder: Path, split: str, **own: Any) -> Array:
    """The images of a split as they are without augmentation, in source order."""
    own = {"transforms": [RESIZE], "shuffle": "none", "batch": {"size": 1}, **own}
    return stream(shared(folder, **own)[split])[0].astype(np.float64)


def decoded(file: str) -> Array:
    """The pixels of a file, as the language has them decoded."""
    import tensorflow as tf

    contents = tf.io.read_file(file)
    image = tf.io.decode_png(contents) if file.endswith("png") else tf.io.decode_jpeg(contents, fancy_upscaling=False)
    return np.asarray(image, np.float64)


def test_the_numbers_are_those_of_the_training_split_without_augmentation(photo_folder: Path, kept: Path) -> None:
    pipe = pipeline(photo_folder, transforms=STEPS)
    found, train = numbers(pipe), plain(photo_folder, "train")
    assert found.count == train.shape[0] * SIZE * SIZE
    np.testing.assert_allclose(found.mean, train.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(found.std, train.std((0, 1, 2)), rtol=1e-12)
    assert found.mean != pytest.approx(plain(photo_folder, "validation").mean((0, 1, 2)), rel=1e-4)

    wanted = (plain(photo_folder, "validation") - train.mean((0, 1, 2))) / (train.std((0, 1, 2)) + 1e-6)
    np.testing.assert_allclose(stream(pipe.validation)[0], wanted, rtol=0, atol=1e-5)
    files = list(pipe.files("validation")[:3])
    np.testing.assert_allclose(stream(pipe.predict_on(files).dataset)[0], wanted[:3], rtol=0, atol=1e-5)

    assert pipe.spec_hash == pipegen.load(sections(photo_folder, transforms=STEPS)).hash, "what was learned is no part of the meaning"
    said = pipe.explain("train")
    assert f"`standardize` of `image` has mean [{found.mean[0]:.6g}, " in said
    assert f"examples of split train, kept in {kept}" in said
    assert pipe.validation.element_spec[0].dtype.name == "float32"


def test_images_by_themselves_learn_nothing(photo_folder: Path, kept: Path) -> None:
    pipe = pipeline(photo_folder, {"jit": "always"}, transforms=[RESIZE, "random_flip", {"standardize": {"statistics": "samplewise"}}])
    x = plain(photo_folder, "validation")
    wanted = (x - x.mean((1, 2, 3), keepdims=True)) / (x.std((1, 2, 3), keepdims=True) + 1e-6)
    np.testing.assert_allclose(stream(pipe.validation)[0], wanted, rtol=0, atol=1e-5)
    assert not kept.exists()


def test_a_second_build_reads_what_the_first_has_measured(
    photo_folder: Path, kept: Path, told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = pipeline(photo_folder, transforms=STEPS)
    assert "`standardize` was fitted on" in told.text
    (file,) = kept.iterdir()

    def never(*_args: Any) -> None:
        raise AssertionError("it is known")

    monkeypatch.setattr("pipegen.api.fitting._measure", never)
    told.clear()
    again = pipeline(photo_folder, transforms=[*STEPS[:-1], {"random_contrast": {"factor": 0.1}}, LEARNS], seed=3)
    assert f"the numbers of `standardize` were read from {file}" in told.text
    assert numbers(again) == numbers(first)
    assert f"read from {file}" in again.explain("train")
    with pytest.raises(AssertionError, match="it is known"):
        pipeline(photo_folder, transforms=[{"resize": {"size": 20}}, LEARNS])


@pytest.mark.nightly
def test_what_comes_before_and_other_data_are_measured_anew(photo_folder: Path, kept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(photo_folder, folder)
    own: list[dict[str, Any]] = [
        {},
        {"transforms": [{"resize": {"size": 20}}, LEARNS]},
        {"splits": {"parts": {"train": 0.5, "validation": 0.5}}},
    ]
    found = [numbers(pipeline(folder, **{"transforms": STEPS, **one})) for one in own]
    from PIL import Image

    Image.fromarray(picture(4242, 30, 30)).save(folder / "rose" / "a-new-one.png")
    found.append(numbers(pipeline(folder, transforms=STEPS)))
    assert len(set(found)) == 4
    assert len(list(kept.iterdir())) == 4


@pytest.mark.nightly  # by day other files are
def test_files_of_the_same_names_and_sizes_with_other_pixels_are_measured_anew(kept: Path, tmp_path: Path) -> None:
    import os

    from PIL import Image

    import pipegen

    means = []
    for level in (10, 200):
        (tmp_path / "flat" / "a").mkdir(parents=True, exist_ok=True)
        for i in range(4):
            file = tmp_path / "flat" / "a" / f"{i}.bmp"
            Image.new("RGB", (4, 4), (level + i, level, level)).save(file)
            os.utime(file, (level, level))
        spec = {
            "pipegen": 1,
            "source": {"image_folder": {"path": str(tmp_path / "flat")}},
            "transforms": [{"resize": {"size": 4}}, {"standardize": {"statistics": "featurewise", "scale": False}}],
            "batch": {"size": 2},
        }
        disk = {"jit": "never", "cache": {"disk": str(tmp_path / "disk")}}
        means.append(float(pipegen.build(spec, runtime=disk).peek("train", 4)[0].mean()))
    np.testing.assert_allclose(means, 0, atol=1e-5)
    assert len(list((tmp_path / "disk" / "statistics").glob("*.json"))) == 2, "beside the caches that the spec names"
    assert not kept.exists() or not list(kept.glob("*.json"))


@pytest.mark.nightly  # by day images of one size, and one step that learns
def test_images_of_many_sizes_an_evaluation_form_and_two_that_learn(photo_folder: Path, kept: Path) -> None:
    only_files = pipeline(photo_folder, transforms=[LEARNS, RESIZE])
    whole = np.concatenate([decoded(file).reshape(-1, 3) for file in only_files.files("train")])
    found = only_files.spec.model.transforms[0].fitted.numbers["image"]  # type: ignore[attr-defined]
    assert found.count == len(whole)
    np.testing.assert_allclose(found.mean, whole.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, whole.std(0), rtol=1e-12)
    steps: list[Any] = [RESIZE, {"random_crop": {"size": 16}}, LEARNS, {"random_rotation": {"degrees": 5}}, LEARNS]
    twice = pipeline(photo_folder, transforms=steps)
    first, second = (twice.spec.model.transforms[i].fitted.numbers["image"] for i in (2, 4))  # type: ignore[attr-defined]
    middle = plain(photo_folder, "train")[:, 4:20, 4:20]
    np.testing.assert_allclose(first.mean, middle.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(second.mean, 0, atol=1e-5)
    np.testing.assert_allclose(second.std, 1, rtol=1e-5)


def test_arrays(kept: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (40, 9, 7, 1)).astype(np.uint8)
    y = np.arange(40) % 2
    spec = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}}},
        "splits": {"parts": {"train": 30, "validation": 10}},
        "transforms": [LEARNS],
        "shuffle": "none",
        "batch": {"size": 5},
    }
    done: list[int] = []
    pipe = pipegen.build(spec, data={"image": x, "label": y}, runtime={"jit": "never"}, progress=done.append)
    assert done[-1] == 30
    train = x[[int(f) for f in pipe.files("train")]].astype(np.float64)
    np.testing.assert_allclose(numbers(pipe).mean, train.mean(), rtol=1e-13)
    standardized = stream(pipe.train)[0]
    assert abs(standardized.mean()) < 1e-5
    assert standardized.std() == pytest.approx(1, rel=1e-5)


def test_where_nothing_can_be_kept_it_is_measured_each_time(
    photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    pipe = pipeline(photo_folder, transforms=[{"resize": {"size": 8}}, LEARNS])
    assert "cannot store what `standardize` has learned in" in told.text
    assert numbers(pipe).count > 0
    assert "kept in" not in pipe.explain("train")


def test_a_damaged_file_is_named_or_passed_over(photo_folder: Path, kept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(photo_folder, folder)
    for damaged in (folder / "rose").glob("0[0-3].jpg"):
        damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(DataError, match=r"cannot decode .*rose.0\d\.jpg \(step `decode`"):
        pipeline(folder, transforms=STEPS)
    assert not kept.exists()
    skipping = pipeline(folder, transforms=STEPS, errors={"decode": {"skip": {"max_fraction": 0.5}}})
    assert numbers(skipping).count == skipping.num_examples("train") * SIZE * SIZE


WHITENS: list[Any] = [{"resize": {"size": 6}}, "random_flip", {"rescale": {"to": [0, 1]}}, {"whiten": {"epsilon": 1e-3}}]


@pytest.mark.nightly
def test_whitening_is_fitted_on_the_training_split_and_kept(
    photo_folder: Path, kept: Path, told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = pipeline(photo_folder, {"jit": "always"}, transforms=WHITENS)
    own = {"transforms": [{"resize": {"size": 6}}]}
    train, other = (plain(photo_folder, split, **own).reshape(-1, 108) / 255 for split in ("train", "validation"))
    variances, vectors = np.linalg.eigh(np.cov(train.T, bias=True))
    matrix = (vectors / np.sqrt(np.maximum(variances, 0) + 1e-3)) @ vectors.T
    wanted = (other - train.mean(0)) @ matrix
    promised = pipe._plans["validation"].out["image"].interval
    assert promised is not None
    e1 = 1e-6 * promised.width
    np.testing.assert_allclose(stream(pipe.validation)[0].reshape(-1, 108), wanted, rtol=0, atol=e1)
    assert numbers(pipe).count == len(train)
    (file,) = kept.iterdir()
    assert file.suffix == ".npz"
    assert f"{len(train)} examples span at most {len(train) - 1} of the 108 directions of `image`" in told.text
    assert "`whiten` of `image` has matrix 108×108 and variances" in pipe.explain("train")

    monkeypatch.setattr("pipegen.api.fitting._measure", None)
    again = pipeline(
        photo_folder, {"cache": "memory"}, transforms=[*WHITENS, {"random_brightness": {"factor": 0.1}}][:4], batch={"size": 5}
    )
    assert f"the numbers of `whiten` were read from {file}" in told.text
    for _ in range(2):  # the second time from the cache, which holds whitened images
        np.testing.assert_allclose(stream(again.validation)[0].reshape(-1, 108), wanted, rtol=0, atol=e1)
    files = list(pipe.files("validation")[:3])
    np.testing.assert_allclose(stream(pipe.predict_on(files).dataset)[0].reshape(-1, 108), wanted[:3], rtol=0, atol=e1)


@pytest.mark.nightly
def test_a_cache_on_disk_holds_what_one_matrix_made(kept: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (60, 3, 3, 1)).astype(np.uint8)
    folder = tmp_path / "photos"
    from PIL import Image

    for i, image in enumerate(x):
        (folder / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[..., 0]).save(folder / "ab"[i % 2] / f"{i:02d}.png")
    steps: list[Any] = [{"decode": {"channels": 1}}, {"resize": {"size": 3}}, {"whiten": {"epsilon": 1}}]
    found = []
    for parts in ({"train": 0.5, "validation": 0.5}, {"train": 0.75, "validation": 0.25}):
        disk = {"cache": {"disk": str(tmp_path / "disk")}}
        pipe = pipeline(folder, disk, transforms=steps, splits={"parts": parts})
        found.append((pipe.files("validation"), stream(pipe.validation)[0]))
        np.testing.assert_allclose(stream(pipe.validation)[0], found[-1][1], rtol=0, atol=1e-5)
    shared_files = sorted(set(found[0][0]) & set(found[1][0]))
    assert shared_files
    one, other = (np.stack([images[list(files).index(f)] for f in shared_files]) for files, images in found)
    assert abs(one - other).max() > 1e-3, "each training split has a matrix of its own"
