"""The flows: batches against Keras' own, the members of the iterators, and `fit`."""

from __future__ import annotations

from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipegen.compat import ImageDataGenerator, UnsupportedArgument

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(6)
X = RNG.integers(0, 256, (13, 10, 14, 3)).astype(np.uint8)
Y = RNG.normal(size=(13, 2))
WEIGHTS = RNG.uniform(size=13)
AUGMENTED = {"rotation_range": 30, "horizontal_flip": True, "rescale": 1 / 255}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNGs in two classes, one of them with a folder below."""
    root = tmp_path_factory.mktemp("drawings")
    names = [*(f"cat/{i}.png" for i in range(6)), *(f"dog/old/{i}.png" for i in range(2)), *(f"dog/{i}.png" for i in range(3))]
    for seed, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(seed, 20 + seed, 31 - seed)).save(root / name)
    return root


@pytest.fixture(scope="module")
def theirs() -> Any:
    from keras.src.legacy.preprocessing import image

    return image.ImageDataGenerator


@pytest.fixture(scope="module")
def from_arrays() -> Any:
    """An augmented, shuffled flow; tests begin with `fresh`."""
    return ImageDataGenerator(**AUGMENTED).flow(X, Y, batch_size=5, sample_weight=WEIGHTS, seed=4)


def fresh(flow: Any) -> Any:
    """A flow at the start of its first epoch."""
    flow.pipeline.seek(0, 0)
    flow.reset()
    flow.total_batches_seen = 0
    return flow


def rows_of(y: Array) -> list[int]:
    """The rows of `Y` that targets come from."""
    return [int(np.abs(Y - each).sum(1).argmin()) for each in y]


def epoch(flow: Any) -> list[Any]:
    return [next(flow) for _ in range(len(flow))]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("mode", ["categorical", "binary", "sparse", "input", None])
def test_a_folder_gives_what_keras_gives(folder: Path, theirs: Any, mode: str | None) -> None:
    asked = {"target_size": (12, 16), "class_mode": mode, "batch_size": 4, "shuffle": False}
    ours, other = (kind(rescale=1 / 255).flow_from_directory(folder, **asked) for kind in (ImageDataGenerator, theirs))
    assert len(ours) == len(other) == 3
    for mine, keras_batch in zip(epoch(ours), (other[i] for i in range(3)), strict=True):
        pairs = [(mine, keras_batch)] if mode is None else list(zip(mine, keras_batch, strict=True))
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=1e-6)
    if mode == "input":
        for part in next(iter(ours.dataset)):
            np.testing.assert_allclose(part, other[0][0], atol=1e-6)
    for name in ("n", "samples", "batch_size", "class_indices", "num_classes", "image_shape", "target_size", "color_mode", "class_mode"):
        assert getattr(ours, name) == getattr(other, name), name
    for name in ("data_format", "interpolation", "keep_aspect_ratio", "shuffle", "seed", "batch_size", "dtype", "subset"):
        assert getattr(ours, name) == getattr(other, name), name
    assert sorted(ours.filenames) == sorted(other.filenames)
    assert sorted(ours.filepaths) == sorted(str(p) for p in other.filepaths)
    assert [f.split("/")[0] for f in ours.filenames] == [{0: "cat", 1: "dog"}[c] for c in ours.classes]
    assert ours.classes.dtype == ours.labels.dtype == other.classes.dtype


@pytest.mark.parametrize("classes", [["dog", "empty", "cat"], pytest.param(["dog"], marks=pytest.mark.nightly)])
def test_binary_with_another_number_of_classes_gives_their_indices(folder: Path, theirs: Any, classes: list[str]) -> None:
    (folder / "empty").mkdir(exist_ok=True)
    Image.fromarray(picture(9, 20, 20)).save(folder / "empty" / "0.png")
    try:
        asked = {"target_size": (12, 16), "class_mode": "binary", "batch_size": 16, "shuffle": False, "classes": classes}
        other = theirs().flow_from_directory(folder, **asked)
        with pytest.warns(UserWarning, match=f"there are {len(classes)} classes, not two"):
            ours = ImageDataGenerator().flow_from_directory(folder, **asked)
        (x, y), (_, targets) = next(ours), other[0]
        assert (y.shape, y.dtype) == (targets.shape, targets.dtype)
        np.testing.assert_array_equal(y, targets)
        assert ours.class_indices == other.class_indices
        inside = next(iter(ours.dataset))
        assert inside[1].shape == (len(y), 1)
        np.testing.assert_array_equal(inside[1][:, 0], y)
        np.testing.assert_array_equal(inside[0], x)
    finally:
        (folder / "empty" / "0.png").unlink()
        (folder / "empty").rmdir()


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("images", "cast"),
    [
        (X[:3].astype(np.int64), "uint8"),
        (X[:3].astype(np.int64) * 500 - 9, "float32"),
        (X[:3] > 99, "uint8"),
        (X[:3].astype(object), "uint8"),
        ((X[:3] / 255).astype(object), "float32"),
    ],
    ids=["int64", "int64-wide", "bool", "object", "object-floats"],
)
def test_images_of_another_dtype_are_cast_with_a_remark(theirs: Any, images: Array, cast: str) -> None:
    with pytest.warns(UserWarning, match=f"the images are {images.dtype}, and are cast to {cast}"):
        ours = ImageDataGenerator().flow(images, batch_size=3, shuffle=False)
    batch, other = next(ours), theirs().flow(images, batch_size=3, shuffle=False)[0]
    assert batch.dtype == other.dtype == np.float32
    np.testing.assert_allclose(batch, other, rtol=1e-6)


@pytest.mark.nightly
def test_subsets_of_a_folder_hold_the_files_that_keras_takes(folder: Path, theirs: Any) -> None:
    asked = {"target_size": (12, 12), "batch_size": 4}
    given = {"validation_split": 0.4, "vertical_flip": True}
    for subset in ("training", "validation"):
        other = theirs(**given).flow_from_directory(folder, **asked, subset=subset)
        if subset == "training":
            ours = ImageDataGenerator(**given).flow_from_directory(folder, **asked, subset=subset)
        else:
            with pytest.warns(UserWarning, match="not augmented"):
                ours = ImageDataGenerator(**given).flow_from_directory(folder, **asked, subset=subset)
            plain = ImageDataGenerator().flow_from_directory(folder, **asked, shuffle=False)
            whole = dict(zip(plain.filenames, np.concatenate([x for x, _ in epoch(plain)]), strict=True))
            np.testing.assert_array_equal(np.concatenate([x for x, _ in epoch(ours)]), [whole[f] for f in ours.filenames])
        assert sorted(ours.filenames) == sorted(other.filenames)
        assert ours.n == other.n


def test_images_without_classes(folder: Path) -> None:
    flow = ImageDataGenerator().flow_from_directory(folder / "cat", target_size=(8, 8), classes=["."], class_mode=None)
    assert (flow.n, flow.class_indices, flow.filenames[0], flow.classes.tolist()) == (6, {".": 0}, "0.png", [0] * 6)
    assert next(flow).shape == (6, 8, 8, 3)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_arrays_give_what_keras_gives(theirs: Any, data_format: str) -> None:
    x = X.transpose(0, 3, 1, 2) if data_format == "channels_first" else X
    asked = {"batch_size": 5, "shuffle": False, "sample_weight": WEIGHTS}
    ours, other = (kind(rescale=0.5, data_format=data_format).flow(x, Y, **asked) for kind in (ImageDataGenerator, theirs))
    for mine, keras_batch in zip(epoch(ours), (other[i] for i in range(3)), strict=True):
        for a, b in zip(mine, keras_batch, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=1e-6)
    assert ours.image_shape == x.shape[1:]


@pytest.mark.parametrize("kind", ["samplewise", "featurewise"])
def test_standardised_batches_are_keras(theirs: Any, kind: str) -> None:
    given = {"rescale": 1 / 255, f"{kind}_center": True, f"{kind}_std_normalization": True}
    ours, other = (make(**given) for make in (ImageDataGenerator, theirs))
    for generator in (ours, other):
        generator.fit(X)
    flows = [generator.flow(X, batch_size=13, shuffle=False) for generator in (ours, other)]
    np.testing.assert_allclose(next(flows[0]), flows[1][0], atol=1e-5)


@pytest.mark.parametrize("data_format", [pytest.param("channels_last", marks=pytest.mark.nightly), "channels_first"])
def test_whitened_batches_are_keras(theirs: Any, data_format: str) -> None:
    rng = np.random.default_rng(5)
    seen, shown = (rng.integers(0, 256, (n, 3, 4, 3)).astype(np.uint8) for n in (300, 20))
    if data_format == "channels_first":
        seen, shown = seen.transpose(0, 3, 1, 2), shown.transpose(0, 3, 1, 2)
    given = {"rescale": 1 / 255, "zca_whitening": True, "featurewise_center": True, "data_format": data_format}
    ours, other = (make(**given) for make in (ImageDataGenerator, theirs))
    for generator in (ours, other):
        generator.fit(seen)
    mine, keras_batches = (generator.flow(shown, batch_size=20, shuffle=False) for generator in (ours, other))
    np.testing.assert_allclose(next(mine), keras_batches[0], atol=1e-4)
    np.testing.assert_allclose(next(iter(mine.dataset))[0], keras_batches[0][0], atol=1e-4)
    assert "taken from the generator" in mine.pipeline.explain("train"), "the numbers of `fit`, not of what flows"


@pytest.mark.nightly
def test_arrays_go_along() -> None:
    flow = ImageDataGenerator().flow((X, [WEIGHTS, Y]), Y[:, 0], batch_size=5, shuffle=False)
    x, y = next(flow)
    assert isinstance(x, list)
    for a, b in zip([*x, y], [X, WEIGHTS, Y, Y[:, 0]], strict=True):
        np.testing.assert_array_equal(a, b[:5])
    (image, *misc), y = next(iter(flow.dataset))
    for a, b in zip([image, *misc, y], [X, WEIGHTS, Y, Y[:, 0]], strict=True):
        np.testing.assert_array_equal(a, b[:5])


def test_the_validation_subset_is_the_first_rows_and_is_neither_shuffled_nor_augmented() -> None:
    generator = ImageDataGenerator(**{**AUGMENTED, "rescale": None}, validation_split=0.4)
    with pytest.warns(UserWarning, match="not augmented"):
        flow = generator.flow(X, Y, subset="validation", ignore_class_split=True, sample_weight=WEIGHTS)
    x, y, w = next(flow)
    for a, b in ((x, X), (y, Y), (w, WEIGHTS)):
        np.testing.assert_array_equal(a, b[:5])


@pytest.mark.nightly
def test_each_epoch_has_every_row_once_in_another_order_with_other_draws(from_arrays: Any) -> None:
    flow = fresh(from_arrays)
    first, second = epoch(flow), epoch(flow)
    orders = [[r for _, y, _ in batches for r in rows_of(y)] for batches in (first, second)]
    assert [sorted(o) for o in orders] == [list(range(13))] * 2
    assert orders[0] != orders[1]
    assert [len(y) for _, y, _ in first] == [5, 5, 3]
    assert (flow.batch_index, flow.total_batches_seen) == (0, 6)
    for _, y, w in first:
        np.testing.assert_array_equal(w, WEIGHTS[rows_of(y)])
    images = [{r: x for xs, y, _ in batches for x, r in zip(xs, rows_of(y), strict=True)} for batches in (first, second)]
    assert all(not np.array_equal(images[0][r], images[1][r]) for r in range(13))
    assert all(x.min() >= 0 and x.max() <= 1 for x in images[0].values())


def test_reset_begins_the_epoch_again(from_arrays: Any) -> None:
    flow = fresh(from_arrays)
    first = next(flow)
    assert flow.batch_index == 1
    flow.reset()
    assert flow.batch_index == 0
    for a, b in zip(first, flow.next(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_batches_by_index(from_arrays: Any) -> None:
    flow = fresh(from_arrays)
    by_index = [flow[i] for i in (1, 2)]
    batches = epoch(flow)
    for a, b in zip(by_index, batches[1:], strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="has 3"):
            flow[wrong]
    fresh(flow)
    flow.on_epoch_end()
    assert not np.array_equal(next(flow)[1], batches[0][1])


def test_loops_have_no_end(from_arrays: Any) -> None:
    flow = fresh(from_arrays)
    orders = []
    for x, _, _ in flow:
        orders.append(len(x))
        if len(orders) == 7:
            break
    assert orders == [5, 5, 3, 5, 5, 3, 5]


@pytest.mark.nightly
def test_fit_takes_the_flow_and_its_dataset(from_arrays: Any) -> None:
    import keras

    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(2)])
    model.compile("sgd", "mse", jit_compile=False)
    flow = fresh(from_arrays)
    for steps in (None, len(flow)):
        fresh(flow)
        model.fit(flow, epochs=2, steps_per_epoch=steps, verbose=0)
        assert flow.pipeline.state()["epoch"] == 2
    fresh(flow)
    model.fit(flow.dataset, epochs=2, verbose=0)
    assert flow.pipeline.state()["epoch"] == 2
    plain = ImageDataGenerator(rescale=1 / 255).flow(X, batch_size=5, shuffle=False)
    expected = model.predict(X.astype(np.float32) / 255, verbose=0)
    np.testing.assert_allclose(model.predict(plain, verbose=0), expected, atol=1e-4)


def test_equal_seeds_give_equal_batches() -> None:
    np.random.seed(8)
    first = ImageDataGenerator().flow(X, batch_size=5)
    np.random.seed(8)
    second = ImageDataGenerator().flow(X, batch_size=5)
    np.testing.assert_array_equal(next(first), next(second))


def test_arguments_that_do_not_fit_together() -> None:
    generator, split = ImageDataGenerator(), ImageDataGenerator(validation_split=0.5)
    for arguments, message in (
        ({"x": X[0]}, "4 dimensions"),
        ({"x": list(X)}, "np.stack"),
        ({"x": X, "y": Y[:3]}, r"^`x` \(images tensor\) and `y` \(labels\) .* 13 images, but `y` has 3 rows"),
        ({"x": (X, Y[:2])}, "^All of the arrays in `x` .* 13 images, but a further input has 2 rows"),
        ({"x": X, "y": Y, "sample_weight": WEIGHTS[:4]}, r"^`x` \(images tensor\) and `sample_weight` .* has 4 rows"),
        ({"x": X, "sample_weight": WEIGHTS}, "pass `y`"),
        ({"x": X, "subset": "train"}, "'training'"),
        ({"x": X, "subset": "training"}, "validation_split"),
        ({"x": X[:0]}, "images is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            generator.flow(**arguments)
    message = "^Training and validation subsets have different number of classes after the split.*ignore_class_split"
    for x in (X, (X, Y)):
        with pytest.raises(ValueError, match=message):
            split.flow(x, np.arange(13), subset="training")


def test_images_are_saved(folder: Path, tmp_path: Path) -> None:
    """Each image that is handed over, by `next` and on the way to `fit`, as Keras stretches it; names never meet."""
    generator = ImageDataGenerator(rotation_range=30, rescale=1 / 255)
    flow = generator.flow(X, Y, batch_size=5, seed=3, save_to_dir=str(tmp_path / "new" / "a"), save_prefix="aug")
    assert (flow.save_to_dir, flow.save_prefix, flow.save_format) == (str(tmp_path / "new" / "a"), "aug", "png")
    before = np.random.get_state()[1].tolist()  # type: ignore[index,union-attr]
    images, y = next(flow)
    rows = [int(np.flatnonzero((target == Y).all(1))[0]) for target in y]
    for row, image in zip(rows, images, strict=True):
        (path,) = (tmp_path / "new" / "a").glob(f"aug_{row}_*.png")
        stretched = (image - image.min()) / (image.max() - image.min()) * 255
        with Image.open(path) as saved:
            np.testing.assert_allclose(np.asarray(saved), stretched, atol=1)
    flow.reset()
    assert len(list(flow.dataset)) == 3
    assert len(list((tmp_path / "new" / "a").iterdir())) == 5 + 13
    assert np.random.get_state()[1].tolist() == before, "no seed is spent on names"  # type: ignore[index,union-attr]
    settings: dict[str, Any] = {"target_size": (8, 9), "batch_size": 4, "class_mode": None, "shuffle": False}
    files = ImageDataGenerator().flow_from_directory(folder, **settings, save_to_dir=tmp_path / "b", save_format="jpeg")
    next(files)
    next(files)
    names = sorted(p.name for p in (tmp_path / "b").iterdir())
    assert [name.split("_")[1] for name in names] == [str(i) for i in range(8)]
    with Image.open(tmp_path / "b" / names[0]) as saved:
        assert (saved.format, saved.size) == ("JPEG", (9, 8))


def test_what_flows_do_not_do(folder: Path) -> None:
    generator = ImageDataGenerator(validation_split=0.5)
    with pytest.raises(UnsupportedArgument, match="`subset`"):
        generator.flow_from_directory(folder, classes=["."], class_mode=None, subset="training")


def test_a_specs_steps_compose_keras_matrix() -> None:
    import tensorflow as tf

    from pipegen.compat.single_images import _matrix
    from pipegen.ops.lowering import linear
    from pipegen.ops.lowering.linear import multiply

    theta, tx, ty, zx, zy, height, width = (tf.constant(v, tf.float64) for v in (0.4, 3.0, -2.0, 0.8, 1.3, 40.0, 60.0))
    ours = multiply(linear.turned(theta, height, width), linear.moved(-tx, -ty))
    ours = multiply(ours, linear.magnified(1 / zx, 1 / zy, height, width))
    matrix = _matrix(np.rad2deg(0.4), 3.0, -2.0, 0, 0.8, 1.3)
    assert matrix is not None
    to_centre = np.array([[1, 0, 29.5], [0, 1, 19.5], [0, 0, 1]])
    np.testing.assert_allclose(ours, to_centre @ matrix @ np.linalg.inv(to_centre), atol=1e-9)


def test_any_function_is_called_with_each_image(tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(0, 256, (4, 8, 8, 3)).astype("float32")
    seen: list[Any] = []

    def shifted(image: Any) -> Any:
        seen.append((image.dtype.name, image.shape))
        return (image - 10) * 2

    images, _ = next(ImageDataGenerator(preprocessing_function=shifted, rescale=0.5).flow(x, np.arange(4), shuffle=False))
    np.testing.assert_allclose(images, x - 10)
    assert set(seen) == {("float32", (8, 8, 3))}
    rows = np.arange(3)[:, None, None]
    first = ImageDataGenerator(preprocessing_function=lambda image: image + rows, data_format="channels_first")
    moved = np.moveaxis(x, -1, 1)
    np.testing.assert_allclose(next(first.flow(moved, shuffle=False)), moved + rows)
    for i, image in enumerate(x.astype("uint8")):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(image).save(tmp_path / "ab"[i % 2] / f"{i}.png")
    flow = ImageDataGenerator(preprocessing_function=lambda image: image * 0 + np.random.rand()).flow_from_directory(
        tmp_path, target_size=(8, 8), batch_size=4, shuffle=False, class_mode=None
    )
    assert len(np.unique(next(flow))) == 4
    assert next(flow).max() != next(flow).max(), "what it gives is not cached: it may draw"


def test_a_spec_names_a_function_of_a_module() -> None:
    steps = ImageDataGenerator(preprocessing_function=np.sqrt).to_spec()["transforms"]
    assert steps == [{"cast": {"dtype": "float32"}}, {"python": {"function": "numpy:sqrt"}}]
    with pytest.raises(UnsupportedArgument, match="<lambda>' cannot be imported from one"):
        ImageDataGenerator(preprocessing_function=lambda image: image).to_spec()


@pytest.mark.parametrize("of", ["folders", pytest.param("tables", marks=pytest.mark.nightly)])
def test_two_flows_of_one_seed_move_alike(tmp_path: Path, of: str) -> None:
    """Photographs and their masks, as people zip them: the files have other names, endings and folders."""
    values = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3), np.uint8)
    for i, one in enumerate(values):
        for place in (f"images/all/{i}.png", f"masks/painted/{i}_mask.bmp"):
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(one).save(tmp_path / place)
    generator = ImageDataGenerator(horizontal_flip=True, width_shift_range=0.3)
    asked: dict[str, Any] = {"target_size": (12, 12), "class_mode": None, "batch_size": 5, "seed": 3}
    if of == "folders":
        photos, masks = (generator.flow_from_directory(tmp_path / folder, **asked) for folder in ("images", "masks"))
    else:
        paths = ([f"images/all/{i}.png" for i in range(5)], [f"masks/painted/{i}_mask.bmp" for i in range(5)])
        photos, masks = (generator.flow_from_dataframe({"filename": names}, tmp_path, **asked) for names in paths)
    for _ in range(2):
        batch = next(photos)
        np.testing.assert_array_equal(batch, next(masks))
    assert not np.array_equal(np.sort(batch, 0), np.sort(values.astype(np.float32), 0)), "nothing was drawn"
