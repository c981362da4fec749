"""`flow_from_dataframe`: every class mode against Keras' own, the rows that are kept, and what is refused."""

from __future__ import annotations

from pathlib import Path
from pipes import picture
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import pipegen
from pipegen.compat import ImageDataGenerator

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("plain_kernels")]

pd = pytest.importorskip("pandas")
N = 9
ASKED = {"target_size": (12, 16), "batch_size": 4, "shuffle": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("drawings")
    for seed in range(N):
        Image.fromarray(picture(seed, 20 + seed, 31 - seed)).save(root / f"{seed}.png")
    return root


@pytest.fixture(scope="module")
def table() -> Any:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "filename": [f"{i}.png" for i in reversed(range(N))],
            "class": ["b", "a", "b", "a", "b", "a", "a", "b", "a"],
            "many": [["b", "c"], ["a"], ["c"], ["a", "c"], ["b"], ["a"], ["a", "b"], ["b"], ["c"]],
            "height": rng.normal(size=N),
            "depth": rng.normal(size=N),
            "weight": rng.uniform(size=N),
        }
    )


@pytest.fixture(scope="module")
def theirs() -> Any:
    from keras.src.legacy.preprocessing import image

    return image.ImageDataGenerator


MODES: list[dict[str, Any]] = [
    {"class_mode": "categorical"},
    {"class_mode": "categorical", "y_col": "many", "classes": ["c", "a"]},
    {"class_mode": "binary"},
    {"class_mode": "binary", "classes": ["b", "a", "b"]},
    {"class_mode": "sparse", "classes": ["b"]},
    {"class_mode": "raw", "y_col": ["height", "depth"], "weight_col": "weight"},
    {"class_mode": "multi_output", "y_col": ["height", "depth"]},
    {"class_mode": "input"},
    {"class_mode": None},
]


def flat(batch: Any) -> list[Any]:
    """The arrays of a batch, one after the other."""
    return [a for part in batch for a in flat(part)] if isinstance(batch, (tuple, list)) else [np.asarray(batch)]


BY_NIGHT = ({"class_mode": "categorical"}, {"class_mode": "binary"}, {"class_mode": "input"}, {"class_mode": None})
"""Of tables as of folders, whose flows are compared by day; those that are left say which columns and classes are read."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=[pytest.mark.nightly] * (mode in BY_NIGHT)) for mode in MODES],
    ids=lambda m: "-".join(str(v) for v in m.values()),
)
def test_a_table_gives_what_keras_gives(folder: Path, table: Any, theirs: Any, mode: dict[str, Any]) -> None:
    ours, other = (kind(rescale=1 / 255).flow_from_dataframe(table, folder, **mode, **ASKED) for kind in (ImageDataGenerator, theirs))
    assert len(ours) == len(other)
    for mine, keras_batch in zip((next(ours) for _ in range(len(ours))), (other[i] for i in range(len(other))), strict=True):
        for a, b in zip(flat(mine), flat(keras_batch), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=1e-6)
    if mode["class_mode"] in ("multi_output", "input"):
        for a, b in zip(flat(next(iter(ours.dataset))), flat(other[0]), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    names = ["n", "samples", "filenames", "filepaths", "class_mode", "image_shape"]
    names += ["class_indices", "classes", "labels"] if mode["class_mode"] in ("categorical", "binary", "sparse") else []
    for name in names:
        assert list(_plain(getattr(ours, name))) == list(_plain(getattr(other, name))), name


def _plain(value: Any) -> list[str]:
    """A value in a form that does not depend on whether a row is written as a list."""
    if isinstance(value, dict):
        return [f"{k}: {v}" for k, v in value.items()]
    return [str(v[0] if isinstance(v, list) and len(v) == 1 else v) for v in value] if isinstance(value, (list, tuple)) else [str(value)]


def test_subsets_are_the_rows_that_keras_takes(folder: Path, table: Any, theirs: Any) -> None:
    kinds = [kind(validation_split=0.4) for kind in (ImageDataGenerator, theirs)]
    ours, other = (kind.flow_from_dataframe(table, folder, class_mode=None, subset="training", **ASKED) for kind in kinds)
    assert ours.filenames == other.filenames
    np.testing.assert_allclose(next(ours), other[0], atol=1e-3)


def test_rows_without_a_file_are_left_out_with_a_warning(folder: Path, table: Any) -> None:
    odd = table.assign(filename=["gone.png", "notes.txt", *table["filename"][2:]])
    with pytest.warns(UserWarning, match=r"2 of 9 rows .*'gone\.png'"):
        flow = ImageDataGenerator().flow_from_dataframe(odd, folder, class_mode="raw", y_col="height", **ASKED)
    assert flow.filenames == list(table["filename"][2:])
    np.testing.assert_array_equal(flow.labels, table["height"][2:])


EMPTY: list[tuple[dict[str, Any], str]] = [
    *(({**mode, "weight_col": "weight"} if mode["class_mode"] else mode, "no rows") for mode in MODES if mode.get("classes") is None),
    ({"class_mode": "categorical"}, "no files"),
    ({"class_mode": "sparse", "classes": ["z"]}, "no classes"),
    ({"class_mode": None, "subset": "validation"}, "no rows"),
    ({"class_mode": "raw", "y_col": "height", "subset": "validation"}, "one row"),
    ({"class_mode": None, "validate_filenames": False, "color_mode": "grayscale"}, "no rows"),
]


@pytest.mark.parametrize(("mode", "lacking"), [case for case in EMPTY if case[0]["class_mode"] != "binary"], ids=str)
def test_a_table_that_leaves_no_row_is_an_empty_iterator_and_a_warning(
    folder: Path, table: Any, theirs: Any, mode: dict[str, Any], lacking: str
) -> None:
    rows = table.iloc[:0] if lacking == "no rows" else table.iloc[:1] if lacking == "one row" else table
    rows = rows.assign(filename=[f"no{i}.png" for i in range(N)]) if lacking == "no files" else rows
    asked = {**mode, **ASKED, **({"validate_filenames": False} if lacking == "no rows" else {})}  # else Keras raises KeyError
    other = theirs(validation_split=0.4).flow_from_dataframe(rows, folder, **asked)
    with pytest.warns(UserWarning, match="the iterator is empty, since all rows of the table were dropped"):
        ours = ImageDataGenerator(validation_split=0.4).flow_from_dataframe(rows, folder, **{**mode, **ASKED})
    assert (len(ours), ours.n, ours.samples, ours.filenames, ours.filepaths) == (len(other), other.n, other.samples, [], [])
    assert (len(ours), ours.image_shape) == (0, other.image_shape)
    assert getattr(ours, "class_indices", None) == getattr(other, "class_indices", None)
    assert list(ours) == list(ours.dataset) == []
    assert int(ours.cardinality()) == 0
    with pytest.raises(StopIteration):
        next(ours)
    with pytest.raises(ValueError, match="an epoch has 0"):
        ours[0]
    ours.reset()
    ours.on_epoch_end()
    assert ours.index_array.tolist() == []


@pytest.mark.nightly
def test_classes_are_those_of_the_rows_that_are_left(folder: Path, table: Any, theirs: Any) -> None:
    gone = table.assign(filename=["no.png" if name == "a" else file for name, file in zip(table["class"], table["filename"], strict=True)])
    for mode in ("categorical", "sparse", "binary"):
        with pytest.warns(UserWarning, match="5 of 9 rows"):
            ours = ImageDataGenerator().flow_from_dataframe(gone, folder, class_mode=mode, **ASKED)
        other = theirs().flow_from_dataframe(gone, folder, class_mode=mode, **ASKED)
        assert (ours.class_indices, ours.classes) == (other.class_indices, list(other.classes)) == ({"b": 0}, [0] * 4)
        np.testing.assert_array_equal(next(ours)[1], other[0][1])


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_an_empty_iterator_gives_batches_of_the_kind_that_others_give(folder: Path, table: Any, every: int) -> None:
    """Of all that a model is told of batches, their number alone is different."""
    made = ImageDataGenerator(data_format="channels_first", dtype="float64")
    for mode in [mode for mode in MODES if mode["class_mode"] != "binary" and not mode.get("classes")][::every]:
        with pytest.warns(UserWarning, match="the iterator is empty"):
            empty = made.flow_from_dataframe(table.iloc[:0], folder, **mode, **ASKED)
        full = made.flow_from_dataframe(table, folder, **mode, **ASKED)
        shapes = [[(spec.dtype, spec.shape.rank) for spec in tf.nest.flatten(it.element_spec)] for it in (empty, full)]
        assert shapes[0] == shapes[1], mode
        assert empty.image_shape == full.image_shape


def test_without_a_look_at_the_files_a_missing_one_waits_until_it_is_read(folder: Path, table: Any, theirs: Any, tmp_path: Path) -> None:
    late = table.assign(filename=[*table["filename"][:5], str(tmp_path / "late.png"), *table["filename"][6:]])
    asked = {**ASKED, "class_mode": "sparse", "validate_filenames": False}
    ours, other = (kind().flow_from_dataframe(late, folder, **asked) for kind in (ImageDataGenerator, theirs))
    assert (len(ours), ours.n, ours.filenames, ours.class_indices) == (len(other), other.n, other.filenames, other.class_indices)
    assert next(ours)[0].shape == other[0][0].shape
    with pytest.raises(pipegen.DataError, match=r"late\.png"):
        next(ours)
    with pytest.raises(FileNotFoundError):
        other[1]
    Image.fromarray(picture(1, 20, 31)).save(tmp_path / "late.png")
    np.testing.assert_array_equal(ours[1][0], other[1][0])
    nothing = late.iloc[:2].assign(filename=["no.png", "none.png"])
    assert len(ImageDataGenerator().flow_from_dataframe(nothing, folder, color_mode="grayscale", **asked)) == 1


@pytest.mark.nightly
def test_augmented_rows_keep_their_targets(folder: Path, table: Any) -> None:
    generator = ImageDataGenerator(horizontal_flip=True)
    asked = {"class_mode": "raw", "y_col": "height", "weight_col": "weight", "target_size": (8, 8), "batch_size": N}
    flow = generator.flow_from_dataframe(table, folder, **asked)
    _, y, w = next(flow)
    order = [int(np.abs(table["height"] - v).argmin()) for v in y]
    assert sorted(order) == list(range(N))
    assert order != list(range(N))
    np.testing.assert_allclose(w, table["weight"].to_numpy()[order], rtol=1e-6)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"class_mode": "others"}, ValueError, "class_mode"),
    ({"class_mode": "binary", "classes": ["a"]}, ValueError, "two classes"),
    ({"class_mode": "sparse", "y_col": "many"}, TypeError, "'many' must contain text"),
    ({"class_mode": "categorical", "y_col": "height"}, TypeError, "'height' must contain text, or lists"),
    ({"class_mode": "multi_output", "y_col": "height"}, TypeError, "list of columns"),
    ({"x_col": "height"}, TypeError, "paths as text"),
    ({"class_mode": None, "weight_col": "weight"}, ValueError, "class_mode"),
    ({"weight_col": "class"}, TypeError, "weights as numbers"),
    ({"shaffle": True}, TypeError, "shaffle"),
]


def test_targets_may_be_arrays(folder: Path, table: Any) -> None:
    shapes = np.arange(N * 4.0).reshape(N, 2, 2)
    rows = table.assign(shape=list(shapes), pair=[[i, -i] for i in range(N)])
    it = ImageDataGenerator().flow_from_dataframe(rows, folder, y_col=["height", "shape"], class_mode="multi_output", **ASKED)
    _, (height, shape) = next(it)
    np.testing.assert_array_equal(height, table["height"][:4])
    np.testing.assert_array_equal(shape, shapes[:4])
    raw = ImageDataGenerator().flow_from_dataframe(rows, folder, y_col="pair", class_mode="raw", **ASKED)
    np.testing.assert_array_equal(next(raw)[1], [[0, 0], [1, -1], [2, -2], [3, -3]])
    uneven = table.assign(shape=[np.zeros(1 + i % 2) for i in range(N)])
    with pytest.raises(TypeError, match="of one shape"):
        ImageDataGenerator().flow_from_dataframe(uneven, folder, y_col="shape", class_mode="raw", **ASKED)


@pytest.mark.parametrize(("arguments", "kind", "message"), REFUSED, ids=lambda a: "-".join(a) if isinstance(a, dict) else "")
def test_what_is_refused(folder: Path, table: Any, arguments: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        ImageDataGenerator().flow_from_dataframe(table, folder, **arguments)


def test_old_words_warn(folder: Path, table: Any) -> None:
    """Keywords that have had no effect for years, and a class mode's old name."""
    asked = {"y_col": "height", **ASKED}
    for old in ("has_ext", "sort", "drop_duplicates"):
        with pytest.warns(DeprecationWarning, match=f"`{old}` has no effect") as caught:
            flow = ImageDataGenerator().flow_from_dataframe(table, folder, class_mode="raw", **{old: False}, **asked)
        assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="'raw'"):
        other = ImageDataGenerator().flow_from_dataframe(table, folder, class_mode="other", **asked)
    for a, b in zip(next(flow), next(other), strict=True):
        np.testing.assert_array_equal(a, b)
    assert other.class_mode == "raw"
