"""Arguments of the constructor and of the flows, each by itself: against Keras' class where it is to be the same."""

from __future__ import annotations

from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator, UnsupportedArgument

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels"), pytest.mark.filterwarnings("ignore::UserWarning")]

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(9)
X = RNG.integers(0, 256, (11, 8, 8, 3)).astype(np.uint8)
SMALL: dict[str, Any] = {"target_size": (12, 16), "batch_size": 5, "class_mode": None, "shuffle": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("drawings")
    for i in range(10):
        (root / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(picture(i, 20 + i, 31 - i)).save(root / "ab"[i % 2] / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    return {"filename": [f"{'ab'[i % 2]}/{i}.png" for i in range(10)]}


@pytest.fixture(scope="module")
def theirs() -> Any:
    from keras.src.legacy.preprocessing import image

    return image.ImageDataGenerator


def whole(flow: Any) -> Array:
    """One epoch, by `next`."""
    return np.concatenate([next(flow) for _ in range(len(flow))])


def of_keras(flow: Any) -> Array:
    return np.concatenate([flow[i] for i in range(len(flow))])


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0])
def test_zca_epsilon_is_keras_in_arrays_and_flows(theirs: Any, epsilon: float) -> None:
    x = RNG.integers(0, 256, (200, 3, 3, 3)).astype(np.uint8)
    ours, other = (
        kind(zca_whitening=True, featurewise_center=True, zca_epsilon=epsilon, rescale=1 / 255) for kind in (ImageDataGenerator, theirs)
    )
    for generator in (ours, other):
        generator.fit(x)
    image = x[0].astype(np.float32)
    np.testing.assert_allclose(ours.standardize(image.copy()), other.standardize(image.copy()), atol=1e-4)
    flows = [generator.flow(x, batch_size=20, shuffle=False) for generator in (ours, other)]
    np.testing.assert_allclose(next(flows[0]), flows[1][0], atol=1e-4)


def test_images_that_are_too_large_are_not_whitened() -> None:
    with pytest.raises(ValueError, match=r"`zca_whitening` of 16,875 values .* at most 16,384"):
        ImageDataGenerator(zca_whitening=True).fit(np.zeros((2, 75, 75, 3), np.float32))


def test_a_batch_is_standardised_image_by_image(theirs: Any) -> None:
    given = {"samplewise_center": True, "samplewise_std_normalization": True, "rescale": 1 / 255}
    batch = RNG.uniform(0, 255, (4, 6, 5, 3)).astype(np.float32)
    each = np.stack([theirs(**given).standardize(image.copy()) for image in batch])
    np.testing.assert_allclose(ImageDataGenerator(**given).standardize(batch.copy()), each, atol=1e-5)


def test_channel_shift_in_a_flow_is_not_clipped_to_the_image() -> None:
    """Keras clips to the range of the image at hand, so that an even one never changes; a flow clips to what an image can hold."""
    even = np.full((1000, 4, 4, 3), 100, np.uint8)
    shifted = whole(ImageDataGenerator(channel_shift_range=150.0).flow(even, batch_size=250))
    assert (shifted == shifted[:, :1, :1, :1]).all(), "one amount for the whole image"
    assert (shifted.min(), shifted.max()) == (0, pytest.approx(250, abs=5))


def test_a_constant_border_blends() -> None:
    """A pixel between the image and the constant is a mean of both in a flow; Keras puts the constant there at once."""
    generator = ImageDataGenerator(width_shift_range=2.5, fill_mode="constant", cval=200.0)
    flow = generator.flow(np.zeros((40, 8, 8, 1), np.uint8), batch_size=40)
    values = next(flow)
    assert (values.min(), values.max()) == (0, 200)
    columns = values[:, 0, :, 0]
    between = ((columns > 0) & (columns < 200)).sum(1)
    assert set(between.tolist()) <= {0, 1}
    assert between.sum() > 20


@pytest.mark.parametrize("dtype", ["float16", "uint8"])
def test_dtypes_are_keras(theirs: Any, dtype: str) -> None:
    ours, other = (kind(dtype=dtype, horizontal_flip=False).flow(X, batch_size=11, shuffle=False) for kind in (ImageDataGenerator, theirs))
    mine, keras_batch = next(ours), other[0]
    assert mine.dtype == keras_batch.dtype == dtype
    np.testing.assert_array_equal(mine, keras_batch)


def test_bfloat16_is_float32_with_fewer_bits() -> None:
    batch = next(ImageDataGenerator(dtype="bfloat16", rescale=1 / 255).flow(X, batch_size=11, shuffle=False))
    assert batch.dtype.name == "bfloat16"
    np.testing.assert_allclose(batch.astype(np.float32), X / np.float32(255), rtol=2**-8)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["arrays", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("folder", "table"))])
def test_a_seed_says_it_all(folder: Path, table: Any, kind: str) -> None:
    """Order and draws; without it they come from NumPy's global stream, which nothing else touches."""
    generator = ImageDataGenerator(horizontal_flip=True)

    def made(**options: Any) -> Array:
        if kind == "arrays":
            return whole(generator.flow(X, batch_size=5, **options))
        asked = {**SMALL, "shuffle": True, **options}
        if kind == "folder":
            return whole(generator.flow_from_directory(folder, **asked))
        return whole(generator.flow_from_dataframe(table, folder, **asked))

    np.random.seed(1)
    first = made(seed=7)
    np.random.seed(2)
    np.testing.assert_array_equal(made(seed=7), first)
    assert not np.array_equal(made(seed=8), first)
    np.random.seed(3)
    unseeded = made()
    np.random.seed(3)
    np.testing.assert_array_equal(made(), unseeded)
    assert not np.array_equal(made(), unseeded)


@pytest.mark.nightly
def test_tables_are_read_as_keras_reads_them(folder: Path, table: Any, theirs: Any) -> None:
    """Another column of paths, gray pictures, and a map in place of a DataFrame."""
    pd = pytest.importorskip("pandas")
    renamed = {"picture": table["filename"]}
    asked = {**SMALL, "x_col": "picture", "color_mode": "grayscale"}
    other = of_keras(theirs().flow_from_dataframe(pd.DataFrame(renamed), str(folder), **asked))
    for given in (pd.DataFrame(renamed), renamed):
        ours = ImageDataGenerator().flow_from_dataframe(given, folder, **asked)
        np.testing.assert_allclose(whole(ours), other, atol=1)
        assert ours.image_shape == (12, 16, 1)


@pytest.mark.nightly
def test_the_validation_rows_of_a_table_are_keras(folder: Path, table: Any, theirs: Any) -> None:
    pd = pytest.importorskip("pandas")
    given = {"validation_split": 0.3, "rescale": 1 / 255}
    ours, other = (
        kind(**given).flow_from_dataframe(pd.DataFrame(table), str(folder), **{**SMALL, "shuffle": True}, subset="validation")
        for kind in (ImageDataGenerator, theirs)
    )
    assert ours.filenames == other.filenames == table["filename"][:3]
    stored = theirs(**given).flow_from_dataframe(pd.DataFrame(table), str(folder), **SMALL, subset="validation")
    np.testing.assert_allclose(whole(ours), of_keras(stored), atol=1e-6)


def test_images_of_a_table_are_saved(folder: Path, table: Any, tmp_path: Path) -> None:
    flow = ImageDataGenerator().flow_from_dataframe(table, folder, **SMALL, save_to_dir=tmp_path, save_prefix="t", save_format="bmp")
    images = whole(flow)
    assert sorted(int(p.name.split("_")[1]) for p in tmp_path.glob("t_*.bmp")) == list(range(10))
    (path,) = tmp_path.glob("t_4_*.bmp")
    stretched = (images[4] - images[4].min()) / np.ptp(images[4]) * 255
    with Image.open(path) as saved:
        np.testing.assert_allclose(np.asarray(saved), stretched, atol=1)


def test_transparency_is_not_made_brighter() -> None:
    """As with Pillow, which Keras asks."""
    x = np.full((30, 6, 6, 4), 100, np.uint8)
    images = whole(ImageDataGenerator(brightness_range=(0.2, 1.8)).flow(x, batch_size=10))
    np.testing.assert_array_equal(images[..., 3], 100)
    np.testing.assert_array_equal(images[..., 0], images[..., 2])
    assert images[..., 0].min() < 50
    assert images[..., 0].max() > 150
    with pytest.raises(UnsupportedArgument, match="`brightness_range`: a spec cannot change the brightness of 2 channels"):
        ImageDataGenerator(brightness_range=(0.5, 1.5)).flow(x[..., :2])


@pytest.mark.nightly
def test_proportions_are_kept_as_by_keras(folder: Path, theirs: Any) -> None:
    asked = {**SMALL, "target_size": (12, 12), "keep_aspect_ratio": True, "interpolation": "bilinear"}
    ours, other = (kind().flow_from_directory(folder, **asked) for kind in (ImageDataGenerator, theirs))
    stretched = ImageDataGenerator().flow_from_directory(folder, **{**asked, "keep_aspect_ratio": False})
    mine = whole(ours)
    np.testing.assert_array_equal(mine, of_keras(other))
    assert (mine != whole(stretched)).any()


def test_a_wrong_keyword_names_the_class_that_people_know() -> None:
    with pytest.raises(TypeError, match=r"^ImageDataGenerator\.__init__\(\) got an unexpected keyword argument 'rotation'"):
        ImageDataGenerator(rotation=3)  # type: ignore[call-arg]
