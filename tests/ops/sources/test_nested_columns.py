"""Columns of lists in tables: arrays of one shape, as NumPy has them, whatever lists Arrow makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.sources.huggingface import Huggingface
from pipegen.ops.sources.table_sources import Parquet, from_memory
from pipegen.ops.sources.tables import held

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.random.default_rng(2).normal(size=(7, 2, 3)).astype(np.float32)
FEATURES: dict[str, Any] = {"label": {"kind": "label"}, "at": {"kind": "tensor", "shape": [2, 3]}}


def written(folder: Path, type_: Any, name: str = "t.parquet", values: Any = VALUES) -> str:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    cells = values.tolist() if isinstance(values, np.ndarray) else values
    table = pa.table({"label": ["ab"[i % 2] for i in range(len(cells))], "at": pa.array(cells, type_)})
    pq.write_table(table, folder / name, row_group_size=3)
    return name


def columns(source: Any, folder: Path) -> Any:
    return source.list(folder).columns["at"]


def test_lists_of_lists_are_arrays(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    for inner in (pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 3)):
        for outer in (pa.list_(inner), pa.list_(inner, 2)):
            found = columns(Parquet(path=written(tmp_path, outer), features=FEATURES), tmp_path)
            np.testing.assert_array_equal(found, VALUES)
    some = Parquet(path="t.parquet", features=FEATURES, where="label == 'a'")
    np.testing.assert_array_equal(columns(some, tmp_path), VALUES[::2])
    memory = from_memory({"label": ["a"] * 7, "at": VALUES.tolist()}, "")
    np.testing.assert_array_equal(held.read_arrays(memory, "at", (2, 3), ""), VALUES)


def test_a_data_set_of_the_hub_has_arrays(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    (tmp_path / "data").mkdir()
    type_ = pa.list_(pa.list_(pa.float32()))
    for number, part in enumerate((VALUES[:4], VALUES[4:])):
        written(tmp_path, type_, f"data/train-{number:05}-of-00002.parquet", part)
    features = {"label": {"kind": "label"}, "at": {"kind": "tensor", "key": "at", "shape": [2, 3]}}
    np.testing.assert_array_equal(columns(Huggingface.model_validate({"path": str(tmp_path), "features": features}), tmp_path), VALUES)


def test_what_is_no_such_array_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    type_ = pa.list_(pa.list_(pa.float32()))
    uneven, empty, odd = VALUES.tolist(), VALUES.tolist(), VALUES.copy()
    uneven[4], empty[5], odd[3, 1, 1] = uneven[4][:1], None, np.nan
    for values, code, words in (
        (uneven, "PG449", "the cell in row 4 of"),
        (empty, "PG449", "the cell in row 5 of"),
        (odd, "PG423", "the array in row 3 of"),
        (VALUES.reshape(7, 3, 2), "PG449", "like 6 other rows"),
    ):
        with pytest.raises(OpError, match=words) as caught:
            Parquet(path=written(tmp_path, type_, values=values), features=FEATURES).list(tmp_path)
        assert [error.code for error in caught.value.every] == [code]
    monkeypatch.setattr(held, "available_memory", lambda: 300)
    with pytest.raises(OpError, match="7 arrays of 6 numbers take") as caught:
        Parquet(path=written(tmp_path, type_), features=FEATURES).list(tmp_path)
    assert [error.code for error in caught.value.every] == ["PG410"]


@pytest.mark.tf
@pytest.mark.nightly
def test_arrays_reach_the_batch(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    import pipegen

    written(tmp_path, pa.list_(pa.list_(pa.float32(), 3), 2))
    source = {"parquet": {"path": str(tmp_path / "t.parquet"), "features": FEATURES}}
    spec = {"pipegen": 1, "source": source, "output": {"x": "at", "y": "label"}, "shuffle": "none", "batch": {"size": 7}}
    ((at, _),) = list(pipegen.build(spec).dataset("train", epoch=0).as_numpy_iterator())
    np.testing.assert_array_equal(at, VALUES)
