"""DataFrames and Parquet files say what a table of text with the same cells says."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data.fingerprint import fingerprint
from pipegen.errors import OpError
from pipegen.ops.fields.labels import text_of
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.table_sources import Csv, DataFrame, Parquet

# PyArrow of today asks for a newer NumPy than TensorFlow 2.16 takes, and says so only when it is imported.
pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.listing.base import Listing

COLUMNS: dict[str, list[Any]] = {
    "file": ["a.jpg", "b.jpg", "a.jpg"],
    "breed": ["cat", "dog", "cat"],
    "grade": [3, 1, 2],
    "size": [1.5, -2.0, 3e-7],
    "tags": ["x;y", None, "y"],
}
FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "column": "file"},
    "label": {"kind": "label", "column": "breed"},
    "grade": {"kind": "label", "offset": 1},
    "size": {"kind": "tensor"},
    "tags": {"kind": "label", "separator": ";"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def alike(a: Listing, b: Listing) -> None:
    assert (a.keys, tuple(a.labels), a.class_names, tuple(a.sizes), a.classes) == (
        b.keys,
        tuple(b.labels),
        b.class_names,
        tuple(b.sizes),
        b.classes,
    )
    assert [a.location.paths[i] for i in range(len(a.keys))] == [b.location.paths[i] for i in range(len(b.keys))]
    assert a.columns.keys() == b.columns.keys()
    for name, values in a.columns.items():
        np.testing.assert_array_equal(values, b.columns[name])
    assert fingerprint(a) == fingerprint(b)


def test_whatever_holds_the_table_says_the_same(folder: Path) -> None:
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    expected = Csv(path="t.csv", features=FEATURES).list(folder)
    assert tuple(expected.labels) == (0, 1, 0)
    np.testing.assert_array_equal(expected.columns["grade"], [2, 0, 1])
    alike(Parquet(path="t.parquet", features=FEATURES).list(folder), expected)
    lists = COLUMNS | {"tags": [["x", "y"], [], {"y"}]}
    typed = frame.astype({"grade": "Int64", "size": "float32", "breed": "category"})
    for data in (frame, COLUMNS, typed, pa.table(COLUMNS), lists, {name: np.array(c, object) for name, c in lists.items()}):
        alike(DataFrame(features=FEATURES).list(folder, data=data), expected)  # type: ignore[arg-type]


@given(st.one_of(st.integers(-(2**40), 2**40), st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_a_number_keeps_its_value(value: float) -> None:
    assert float(text_of(value)) == value
    assert float(text_of(np.float64(value))) == value
    assert "." not in text_of(float(round(value)))


MISSING = [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), np.ma.masked, Decimal("NaN"), "", "  "]


@pytest.mark.parametrize("value", MISSING)
def test_what_is_missing_is_no_text(value: Any) -> None:
    assert text_of(value) == ""


@pytest.mark.parametrize(
    ("data", "code", "says"),
    [
        (None, "PG418", "none was passed"),
        ([1, 2], "PG418", "`data` is not a table but a list"),
        (COLUMNS | {"grade": [1]}, "PG418", "differ in length"),
        (COLUMNS | {"size": 5}, "PG418", "the column 'size' of `data` is of type int"),
        (COLUMNS | {"size": (i for i in range(3))}, "PG418", "the column 'size' of `data` is of type generator"),
        (COLUMNS | {"size": [[1], [2], [3]]}, "PG423", "row 0 of `data` holds a list; it needs one number"),
        (COLUMNS | {"size": [1, None, 2]}, "PG423", "row 1 of `data` has an empty cell"),
        (COLUMNS | {"breed": [["cat"], ["dog"], ["cat"]]}, "PG420", "row 0 of `data` holds a list"),
        (pd.DataFrame(COLUMNS).rename(columns={"size": "sizes"}), "PG421", "the DataFrame has no column 'size'"),
        (pd.DataFrame(COLUMNS).head(0), "PG402", "the DataFrame has no rows"),
    ],
)
def test_what_is_wrong_with_a_table_in_memory(folder: Path, data: Any, code: str, says: str) -> None:
    with pytest.raises(OpError) as caught:
        DataFrame(features=FEATURES).list(folder, data=data)
    assert caught.value.code == code
    assert says in caught.value.message


def test_a_row_of_a_table_in_memory_whose_file_does_not_exist(folder: Path) -> None:
    listing = DataFrame(features=FEATURES).list(folder, data=pd.DataFrame(COLUMNS | {"file": ["a.jpg", "c.jpg", "b.jpg"]}))
    (missing,) = listing.missing
    assert (missing.code, list(missing.keys), "row 1 of the DataFrame names" in missing.example(0)) == ("PG401", ["c.jpg"], True)


def test_what_is_wrong_with_a_parquet_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal() -> OpError:
        with pytest.raises(OpError) as caught:
            Parquet(path="t.parquet", features=FEATURES).list(folder)
        return caught.value

    assert refusal().code == "PG401"
    (folder / "t.parquet").write_bytes(b"no table at all")
    assert "cannot be read as Parquet" in refusal().message
    pq.write_table(pa.table({name: column for name, column in COLUMNS.items() if name != "tags"}), folder / "t.parquet")
    assert "no column 'tags'" in refusal().message
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    assert "pip install 'pipegen[parquet]'" in (refusal().help or "")


def test_of_columns_with_one_name_the_number_says_which(folder: Path) -> None:
    table = pa.Table.from_arrays([pa.array([9, 9]), pa.array([1, 2])], names=["a", "a"])
    pq.write_table(table, folder / "t.parquet")
    features: dict[str, Any] = {"v": {"kind": "tensor", "column": 1}}
    frame = pd.DataFrame([[9, 1], [9, 2]], columns=["a", "a"])
    found = [Parquet(path="t.parquet", features=features).list(folder)]
    found += [DataFrame(features=features).list(folder, data=data) for data in (table, frame)]  # type: ignore[arg-type]
    for listing in found:
        np.testing.assert_array_equal(listing.columns["v"], [1, 2])


def test_truth_and_sets_of_several_types() -> None:
    assert [text_of(True), text_of(np.False_)] == ["True", "False"], "as a table of text has them"
    assert text_of({1, "cat"}) == text_of({"cat", 1})
    assert json.loads(text_of({"n": 1, "at": date(2024, 1, 5)})) == {"n": 1, "at": "2024-01-05"}, "as databases give JSON"


def test_each_split_has_a_table_of_its_own(folder: Path) -> None:
    source = BySplit.from_yaml({split: {"dataframe": {"features": FEATURES}} for split in ("train", "test")})
    frame = pd.DataFrame(COLUMNS)
    found = source.list(folder, data={"train": frame, "test": frame.head(1)})
    assert found.keys == ("train/a.jpg", "train/b.jpg", "train/a.jpg#2", "test/a.jpg")
    with pytest.raises(OpError, match="`data` has nothing for this split"):
        source.list(folder, data={"training": frame})


@pytest.mark.tf
def test_a_pipeline_on_a_frame(tmp_path: Path) -> None:
    import pipegen

    frame = pd.DataFrame({"a": range(12), "b": [i / 2 for i in range(12)], "kind": list("xyz") * 4})
    features = {"a": {"kind": "tensor"}, "b": {"kind": "tensor"}, "label": {"kind": "label", "column": "kind"}}
    spec = {
        "pipegen": 1,
        "source": {"dataframe": {"features": features}},
        "splits": {"parts": {"train": 0.5, "validation": 0.5}, "stratify": "label"},
        "batch": {"size": 3},
        "output": {"x": ["a", "b"], "y": "label"},
    }
    pipe = pipegen.build(spec, data=frame)
    assert pipe.class_names == ("x", "y", "z")
    for (a, b), y in pipe.train:
        np.testing.assert_array_equal(a / 2, b)
        np.testing.assert_array_equal(a.numpy().astype(int) % 3, y)
    assert sorted(np.concatenate([x[0] for x, _ in [*pipe.train, *pipe.validation]])) == list(range(12))
