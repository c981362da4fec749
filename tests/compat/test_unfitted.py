"""A generator that was to be fitted and was not: its flows do without, as Keras' do, and say what to do."""

from __future__ import annotations

import warnings
from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

RNG = np.random.default_rng(2)
X = RNG.integers(0, 256, (6, 4, 5, 3)).astype(np.uint8)
WHOLE: dict[str, Any] = {"featurewise_center": True, "featurewise_std_normalization": True, "rescale": 1 / 255}


@pytest.fixture(scope="module")
def theirs() -> Any:
    from keras.src.legacy.preprocessing import image

    return image.ImageDataGenerator


@pytest.mark.parametrize("asked", [{"featurewise_center": True}, WHOLE, {"zca_whitening": True, "featurewise_center": True}], ids="-".join)
def test_a_flow_does_without_as_keras_does(theirs: Any, asked: dict[str, Any]) -> None:
    needing = [name for name in asked if name != "rescale"]
    with pytest.warns(UserWarning, match="the generator is not fitted") as caught:
        flow = ImageDataGenerator(**asked).flow(X, batch_size=6, shuffle=False)
    said = [w for w in caught if w.category is UserWarning]  # whatever garbage is freed meanwhile may warn too
    assert sorted(str(w.message).split("`")[1] for w in said) == sorted(needing)
    assert all(w.filename == __file__ for w in said)
    assert "call `fit` with training images, or set `.mean`" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = theirs(**asked).flow(X, batch_size=6, shuffle=False)[0]
    np.testing.assert_allclose(next(flow), other, atol=1e-6)
    assert all(getattr(flow.image_data_generator, name) for name in needing), "the generator stays as it is"


@pytest.mark.nightly
def test_what_is_there_has_its_effect() -> None:
    """Each of the three by itself: a mean that was set by hand, a matrix without a mean."""
    centred = ImageDataGenerator(**WHOLE)
    centred.mean = np.array([0.25, 0.5, 0.75])
    with pytest.warns(UserWarning, match="`featurewise_std_normalization` has no effect"):
        flow = centred.flow(X, batch_size=6, shuffle=False)
    np.testing.assert_allclose(next(flow), X / 255 - [0.25, 0.5, 0.75], atol=1e-6)
    centred.mean = 0.5
    with pytest.warns(UserWarning, match="`featurewise_std_normalization` has no effect"):
        np.testing.assert_allclose(next(centred.flow(X, batch_size=6, shuffle=False)), X / 255 - 0.5, atol=1e-6)
    for data_format in ("channels_last", "channels_first"):
        x = X if data_format == "channels_last" else X.transpose(0, 3, 1, 2)
        whitening = ImageDataGenerator(zca_whitening=True, featurewise_center=True, data_format=data_format)
        whitening.zca_whitening_matrix = RNG.normal(size=(60, 60))
        with pytest.warns(UserWarning, match="`featurewise_center` has no effect"):
            batch = next(whitening.flow(x, batch_size=6, shuffle=False))
        expected = x.reshape(6, -1).astype(np.float64) @ whitening.zca_whitening_matrix
        np.testing.assert_allclose(batch.reshape(6, -1), expected, rtol=1e-4, atol=1e-2)


@pytest.mark.nightly
def test_folders_and_tables_do_without_too(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for i in range(3):
        Image.fromarray(picture(i, 12, 12)).save(tmp_path / "a" / f"{i}.png")
    asked: dict[str, Any] = {"target_size": (12, 12), "class_mode": None, "batch_size": 3, "shuffle": False}
    plain = next(ImageDataGenerator().flow_from_directory(tmp_path, **asked))
    with pytest.warns(UserWarning, match="`featurewise_center` has no effect"):
        folder = ImageDataGenerator(featurewise_center=True).flow_from_directory(tmp_path, **asked)
    with pytest.warns(UserWarning, match="`featurewise_center` has no effect"):
        table = ImageDataGenerator(featurewise_center=True).flow_from_dataframe({"filename": folder.filenames}, tmp_path, **asked)
    np.testing.assert_array_equal(next(folder), plain)
    np.testing.assert_array_equal(next(table), plain)


def test_a_late_fit_says_that_it_comes_too_late() -> None:
    generator = ImageDataGenerator(featurewise_center=True)
    with pytest.warns(UserWarning, match="no effect"):
        flow = generator.flow(X, batch_size=6, shuffle=False)
    with pytest.warns(UserWarning, match="a flow of this generator was made before `fit`"):
        generator.fit(X)
    np.testing.assert_array_equal(next(flow), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generator.fit(X)
        fitted = generator.flow(X, batch_size=6, shuffle=False)
    np.testing.assert_allclose(next(fitted).mean((0, 1, 2)), 0, atol=1e-4)
