"""The iterators as classes: made by hand, against Keras' own, and derived from."""

from __future__ import annotations

import inspect
from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen import compat
from pipegen.compat import ImageDataGenerator, UnsupportedArgument

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)
X = RNG.integers(0, 256, (7, 6, 8, 3)).astype(np.uint8)
Y = np.arange(7.0)
SMALL: dict[str, Any] = {"target_size": (6, 8), "batch_size": 4, "shuffle": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("drawings")
    for i in range(6):
        (root / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(picture(i, 20 + i, 31 - i)).save(root / "ab"[i % 2] / f"{i}.png")
    return root


@pytest.fixture(scope="module")
def table() -> dict[str, list[str]]:
    return {"filename": [f"{'ab'[i % 2]}/{i}.png" for i in range(6)], "class": [*"abbaba"]}


@pytest.fixture(scope="module")
def keras_image() -> Any:
    from keras.src.legacy.preprocessing import image

    return image


def same(ours: Any, theirs: Any, **tolerance: float) -> None:
    """Whether two batches have the same arrays, of the same dtypes."""
    for a, b in zip(*([x if isinstance(x, tuple) else (x,)] for x in (ours, theirs)), strict=True):
        for mine, other in zip(a, b, strict=True):
            assert mine.dtype == other.dtype
            np.testing.assert_allclose(mine, other, **tolerance)


@pytest.mark.parametrize("name", ["Iterator", "NumpyArrayIterator", "DirectoryIterator", "DataFrameIterator"])
def test_the_signatures_are_keras(keras_image: Any, name: str) -> None:
    both = (inspect.signature(getattr(module, name)).parameters.values() for module in (compat, keras_image))
    ours, theirs = ([(p.name, p.default) for p in found if p.kind is not p.VAR_KEYWORD] for found in both)
    assert ours == theirs


@pytest.mark.nightly
def test_what_is_made_by_hand_is_the_flow(folder: Path, table: Any) -> None:
    generator = ImageDataGenerator(rescale=1 / 255)
    asked = {"batch_size": 4, "seed": 5}
    files = {**asked, "target_size": (6, 8)}
    pairs: list[tuple[Any, Any]] = [
        (compat.NumpyArrayIterator(X, Y, generator, shuffle=True, **asked), generator.flow(X, Y, **asked)),
        (compat.DirectoryIterator(folder, generator, **files), generator.flow_from_directory(folder, **files)),
        (compat.DataFrameIterator(table, folder, generator, **files), generator.flow_from_dataframe(table, folder, **files)),
    ]
    for made, flow in pairs:
        assert type(made) is type(flow)
        assert isinstance(made, compat.Iterator)
        assert made.image_data_generator is generator
        same(next(made), next(flow))
        assert "dataset" not in vars(made), "a second pipeline is made for those who ask"
    unshuffled = compat.NumpyArrayIterator(X, Y, None)
    np.testing.assert_array_equal(next(unshuffled)[1], Y)
    assert isinstance(unshuffled.image_data_generator, ImageDataGenerator)


def test_a_table_without_a_generator_is_keras(keras_image: Any, folder: Path, table: Any) -> None:
    pd = pytest.importorskip("pandas")
    ours, theirs = (kind(pd.DataFrame(table), str(folder), **SMALL) for kind in (compat.DataFrameIterator, keras_image.DataFrameIterator))
    same(next(ours), theirs[0], atol=1e-6)


@pytest.mark.nightly
def test_tables_keep_proportions_too(folder: Path, table: Any) -> None:
    asked = {**SMALL, "target_size": (8, 6), "keep_aspect_ratio": True, "class_mode": None}
    flow, made = ImageDataGenerator().flow_from_dataframe(table, folder, **asked), compat.DataFrameIterator(table, folder, **asked)
    of_files = compat.DirectoryIterator(folder, None, **asked)
    assert flow.keep_aspect_ratio
    by_name = dict(zip(of_files.filenames, (image for _ in range(2) for image in next(of_files)), strict=True))
    for images in (next(flow), next(made)):
        np.testing.assert_array_equal(images, [by_name[name] for name in flow.filenames[:4]])


@pytest.mark.nightly
def test_float64_is_handed_over(keras_image: Any, folder: Path) -> None:
    kinds = (ImageDataGenerator, keras_image.ImageDataGenerator)
    ours, theirs = (kind(rescale=1 / 255, dtype="float64").flow_from_directory(folder, **SMALL) for kind in kinds)
    assert ours.dtype == "float64"
    same(next(ours), theirs[0], atol=1e-6)
    same(tuple(part.numpy() for part in next(iter(ours.dataset))), theirs[0], atol=1e-6)
    flow = ImageDataGenerator(dtype=np.float64).flow(X, Y, batch_size=4, shuffle=False)
    same(next(flow), (X[:4].astype(np.float64), Y[:4]))
    assert flow.element_spec[0].dtype.name == next(iter(flow.dataset))[0].dtype.name == "float64"
    with pytest.raises(UnsupportedArgument, match=r"`dtype`: .* not float64"):
        ImageDataGenerator(dtype="float64").to_spec()


@pytest.mark.nightly
def test_format_and_dtype_take_the_place_of_the_generators() -> None:
    generator = ImageDataGenerator(zca_whitening=True, featurewise_center=True)
    few = RNG.integers(0, 256, (40, 3, 4, 3)).astype(np.uint8)
    generator.fit(few)
    last = next(generator.flow(few, batch_size=8, shuffle=False))
    first = compat.NumpyArrayIterator(few.transpose(0, 3, 1, 2), None, generator, 8, data_format="channels_first", dtype="float16")
    images = next(first)
    assert (first.data_format, first.dtype, first.image_shape, images.dtype) == ("channels_first", "float16", (3, 3, 4), np.float16)
    np.testing.assert_allclose(images.transpose(0, 2, 3, 1), last, rtol=1e-2, atol=1e-2)
    assert (generator.data_format, generator.dtype) == ("channels_last", "float32"), "the generator stays as it is"


def test_a_subclass_gives_batches_of_its_own() -> None:
    import keras

    class Doubled(compat.NumpyArrayIterator):
        def __getitem__(self, index: int) -> Any:
            x, y = super().__getitem__(index)
            return x, 2 * y + 100

        def on_epoch_end(self) -> None:
            """Does not tell the base."""

    class Old(compat.NumpyArrayIterator):
        def next(self) -> Any:
            x, y = super().next()
            return x, 2 * y + 100

    class Seen(keras.Model):
        def call(self, x: Any) -> Any:
            return keras.ops.mean(x, (1, 2, 3))

        def train_step(self, data: Any) -> dict[str, Any]:
            seen.append(np.asarray(data[1]))
            return {"loss": 0.0}

    for kind in (Doubled, Old):
        seen: list[Array] = []
        flow = kind(X, Y, ImageDataGenerator(), batch_size=4)
        model = Seen()
        model.compile(run_eagerly=True)
        model.fit(flow, epochs=2, verbose=0)
        np.testing.assert_array_equal(np.concatenate(seen), np.tile(2 * Y + 100, 2))
        assert flow.pipeline.state()["epoch"] == 2
        np.testing.assert_array_equal(next(iter(flow))[1], 2 * Y[:4] + 100)
        with pytest.raises(UnsupportedArgument, match=f"TensorFlow reads .* {kind.__name__}"):
            flow.take(1)
    flow.reset()
    np.testing.assert_array_equal(next(flow)[1], 2 * Y[:4] + 100)


def test_what_nothing_would_call_is_refused() -> None:
    class Mine(compat.NumpyArrayIterator):
        def _get_batches_of_transformed_samples(self, index_array: Array) -> Any:
            return index_array

    class Named(compat.NumpyArrayIterator):
        def first_target(self) -> Any:
            return self.y[0]  # type: ignore[index]

    class Staged(compat.NumpyArrayIterator):
        def on_epoch_end(self) -> None:
            self.stage = 1

    class Generator(ImageDataGenerator):
        def standardize(self, x: Array) -> Array:
            return x / 2

    class Wrapped(ImageDataGenerator):
        def flow(self, *args: Any, **options: Any) -> compat.NumpyArrayIterator:
            return super().flow(*args, **{**options, "batch_size": 2})

    with pytest.raises(UnsupportedArgument, match=r"Mine overrides it.*`__getitem__`"):
        Mine(X, Y, None)
    with pytest.raises(UnsupportedArgument, match=r"`standardize`: Generator overrides it.*`preprocessing_function`"):
        Generator().flow(X)
    with pytest.raises(UnsupportedArgument, match=r"`on_epoch_end`: Staged overrides it.*callback"):
        Staged(X, Y, None)
    changed = ImageDataGenerator()
    changed.standardize = lambda x: x / 2  # type: ignore[method-assign]
    with pytest.raises(UnsupportedArgument, match=r"`standardize`: the instance overrides it"):
        changed.flow(X)
    assert Named(X, Y, None).first_target() == 0
    assert len(Wrapped().flow(X, shuffle=False)) == 4


def test_other_generators_are_refused(keras_image: Any) -> None:
    with pytest.raises(TypeError, match=r"pipegen\.compat\.ImageDataGenerator, got keras"):
        compat.NumpyArrayIterator(X, Y, keras_image.ImageDataGenerator())
    with pytest.raises(AttributeError, match="no attribute 'BatchIterator'"):
        compat.BatchIterator  # noqa: B018
