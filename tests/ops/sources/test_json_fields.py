"""Fields of members and columns that are JSON, as img2dataset and others write them: labels, weights and tensors, at any depth."""

from __future__ import annotations

import gzip
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from record_files import WRITERS, png

import pipegen
from pipegen.errors import DataError, OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.stores.field_types import column_and_path, field_of, taken_apart
from pipegen.ops.sources.table_sources import DataFrame

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COUNT = 12
FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "key": "png"},
    "label": {"kind": "label", "key": "json.label", "classes": 3},
    "name": {"kind": "label", "key": "json.meta.name", "classes": ["a", "b"]},
    "box": {"kind": "tensor", "key": "json.boxes.0", "shape": [4]},
    "score": {"kind": "tensor", "key": "json.score"},
    "weight": {"kind": "weight", "key": "json.meta.weight"},
}


def about(i: int) -> dict[str, Any]:
    boxes = [[i, 0.5, 2, 0], [0, 0, 1, 1]]
    return {"label": i % 3, "score": i / 4, "boxes": boxes, "meta": {"name": "ab"[i % 2], "weight": 1 + i % 2}, "caption": "Größe"}


def written(folder: Path, op: str, **changes: Any) -> Path:
    every = [{**about(i), **(changes if i == COUNT - 1 else {})} for i in range(COUNT)]
    records = [{"png": png(i, i, i), "json": one if op == "mds" else json.dumps(one)} for i, one in enumerate(every)]
    file = folder / f"a.{'tar' if op == 'webdataset' else op}"
    WRITERS[op](file, records)
    return file


def spec(file: Path, op: str, features: dict[str, Any] = FEATURES, **more: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {op: {"path": str(file), "features": features}},
        "transforms": [{"resize": {"size": 2}}],
        "batch": {"size": 2, "remainder": "keep"},
        **more,
    }


OUTPUT = {"x": "image", "y": ["label", "name", "box", "score"], "sample_weight": "weight"}


def write_csv(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    pd.DataFrame(rows).to_csv(file, index=False)


def write_sql(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    with sqlite3.connect(file) as opened:
        pd.DataFrame(rows).to_sql("photos", opened, index=False)
    opened.close()


def write_parquet(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    pd.DataFrame(rows).to_parquet(file)


def write_jsonl(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.write_text("\n".join(map(json.dumps, rows)))


TABLES: dict[str, Any] = {"csv": write_csv, "sql": write_sql, "parquet": write_parquet, "jsonl": write_jsonl}


def of_table(folder: Path, op: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The arguments of a source that reads a table with these rows."""
    file = folder / f"a.{op}"
    TABLES[op](file, rows)
    return {"url": f"sqlite:///{file}", "query": "select * from photos"} if op == "sql" else {"path": str(file)}


@pytest.mark.by_day(2)
@pytest.mark.tf
@pytest.mark.parametrize(
    "op",
    [
        *("webdataset", "mds", "tfrecord", "csv"),
        *(pytest.param(op, marks=pytest.mark.nightly) for op in ("zip", "tfrecord.gz", "array_record", "sql", "parquet", "jsonl")),
    ],
)
def test_fields_of_json_are_features(tmp_path: Path, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where the rows of a query are kept
    if op in TABLES:
        rows = [{"file": f"{i}.png", "json": json.dumps(about(i))} for i in range(COUNT)]
        for i in range(COUNT):
            (tmp_path / f"{i}.png").write_bytes(png(i, i, i))
        features = {name: {**{k: v for k, v in f.items() if k != "key"}, "column": f["key"]} for name, f in FEATURES.items()}
        made = spec(tmp_path, op, output=OUTPUT)
        made["source"] = {
            op: of_table(tmp_path, op, rows)
            | {"features": features | {"image": {"kind": "image", "column": "file", "root": str(tmp_path)}}}
        }
    else:
        name, _, packed = op.partition(".")
        file = written(tmp_path, name)
        made = spec(file, name, output=OUTPUT)
        if packed:
            file.write_bytes(gzip.compress(file.read_bytes()))
            made["source"][name]["compression"] = "gzip"
    pipe = pipegen.build(made, runtime={"jit": "never"})
    seen = 0
    for split in pipe.splits:
        for x, (label, name, box, score), weight in pipe.dataset(split, epoch=0).as_numpy_iterator():
            for k, i in enumerate(x[:, 0, 0, 0].astype(int).tolist()):
                own = about(i)
                assert (int(label[k]), int(name[k]), float(weight[k])) == (
                    own["label"],
                    "ab".index(own["meta"]["name"]),
                    own["meta"]["weight"],
                )
                np.testing.assert_array_equal(box[k], np.float32(own["boxes"][0]))
                assert float(score[k]) == own["score"]
                seen += 1
    assert seen == COUNT


@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "mds", "tfrecord", "array_record"])
def test_labels_are_found_by_reading_them_once(tmp_path: Path, op: str) -> None:
    features = {"image": FEATURES["image"], "label": {"kind": "label", "key": "json.meta.name"}}
    pipe = pipegen.build(spec(written(tmp_path, op), op, features))
    assert pipe.class_names == ("a", "b")


@pytest.mark.parametrize("op", ["webdataset", "mds", "tfrecord"])
def test_only_what_is_json_is_read_by_python(tmp_path: Path, op: str) -> None:
    features = {name: FEATURES[name] for name in ("image", "label")}
    listing = sources()[op].model_validate({"path": str(written(tmp_path, op)), "features": features}).list(tmp_path)
    assert [listing.readers[""].python([name], 0) for name in features] == ["", "fields of JSON"]


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "mds", "tfrecord"])
def test_a_record_that_lacks_a_field_is_named(tmp_path: Path, op: str) -> None:
    features = {"image": FEATURES["image"], "label": FEATURES["label"], "box": FEATURES["box"]}
    made = spec(written(tmp_path, op, boxes=[]), op, features, output={"x": "image", "y": "box"})
    pipe = pipegen.build(made, runtime={"jit": "never"})
    with pytest.raises(DataError, match=r"a\.\w+#11.*has no 'boxes\.0'"):
        assert [len(list(pipe.dataset(split, epoch=0))) for split in pipe.splits]


@pytest.mark.parametrize(("op", "key", "kind", "says"), [
    ("mds", "json.lable", "label", "has no 'lable', but 'label'"),
    ("mds", "json.boxes.7", "tensor", "has no 'boxes.7'"),
    ("mds", "json.meta", "tensor", "'meta' holds"),
    ("mds", "json", "label", "holds `json`"),
    ("mds", "png.a", "label", "no column 'png.a'"),
    ("mds", "json.label", "image", "needs the bytes of an image file"),
    ("tfrecord", "json.lable", "label", "has no 'lable', but 'label'"),
    ("tfrecord", "json.meta", "tensor", "'meta' holds"),
    ("tfrecord", "png.a", "label", "it is not JSON"),
    ("tfrecord", "xml.a", "label", "has no key 'xml.a'"),
    ("tfrecord", "json.label", "image", "needs the bytes of an image file"),
    ("array_record", "json.boxes.7", "tensor", "has no 'boxes.7'"),
    ("webdataset", "json.lable", "label", "has no 'lable', but 'label', 'score', 'boxes', 'meta', 'caption'"),
    ("webdataset", "json.meta.site", "label", "has no 'meta.site', but 'name', 'weight'"),
    ("webdataset", "json.boxes.7", "tensor", "has no 'boxes.7'"),
    ("webdataset", "json.meta", "tensor", "'meta' holds"),
    ("webdataset", "xml.json.a", "label", "no member with the ending 'xml.json'"),
])  # fmt: skip
def test_a_field_that_is_not_there_is_named(tmp_path: Path, op: str, key: str, kind: str, says: str) -> None:
    features = {
        "image": FEATURES["image"],
        "other": {"kind": kind, "key": key, **({"classes": 3} if kind == "label" else {"shape": [4]} if kind == "tensor" else {})},
    }
    file = written(tmp_path, op)
    with pytest.raises(OpError) as raised:
        sources()[op].model_validate({"path": str(file), "features": features}).list(tmp_path)
    assert (raised.value.code, says in raised.value.message) == ("PG431", True)


def test_a_picture_is_no_field_of_json() -> None:
    with pytest.raises(ValueError, match="is a field of JSON: it must be the only key, and cannot hold a file"):
        sources()["webdataset"].model_validate({"path": "a.tar", "features": {"image": {"kind": "image", "key": "json.image"}}})


@pytest.mark.parametrize(("key", "member", "path"), [
    ("json", "json", ()), ("json.a", "json", ("a",)), ("meta.json.a.0", "meta.json", ("a", "0")), ("JSON.a", "JSON", ("a",)),
    ("a.json", "a.json", ()), ("seg.png", "seg.png", ()), ("jsonl.a", "jsonl.a", ()),
])  # fmt: skip
def test_a_key_is_a_member_and_a_path(key: str, member: str, path: tuple[str, ...]) -> None:
    assert taken_apart(key) == (member, path)


@pytest.mark.parametrize(("key", "columns", "column", "path"), [
    ("a.b.c", ["a"], "a", ("b", "c")), ("a.b.c", ["a", "a.b"], "a.b", ("c",)), ("a.b", ["b"], "a.b", ()), ("a", ["a"], "a", ()),
])  # fmt: skip
def test_the_longest_column_counts(key: str, columns: list[str], column: str, path: tuple[str, ...]) -> None:
    assert column_and_path(key, columns) == (column, path)


@pytest.mark.parametrize(("wanted", "says"), [
    ("about.n", None),
    ("about.m", "the JSON in the column 'about', row 0 of `data`: it has no 'm', but 'n', 'at'"),
    ("about.at", "'at' of the JSON in 'about', row 0 of `data`, is an object"),
    ("file.n", "no column is named 'file.n', and 'file' in row 0 of `data` has no fields: it is not JSON"),
    ("abuot.n", "`data` has no column 'abuot.n'"),
])  # fmt: skip
def test_a_field_of_a_column_is_a_column(tmp_path: Path, wanted: str, says: str | None) -> None:
    """For `where` and `join` as well; a row without the field has an empty cell."""
    own = {"file": ["a", "b", "c", "d"], "about": ['{"n": 1, "at": {"site": "x"}}', '{"at": {"site": "y"}, "n": 2}', "", '{"n": null}']}
    features = {"n": {"kind": "tensor", "column": wanted}, "site": {"kind": "label", "column": "about.at.site"}}
    source = DataFrame.model_validate({"features": features, "where": f"`{wanted}` != '' and `about.at.site` in ['x', 'y']"})
    if says is not None:
        with pytest.raises(OpError) as raised:
            source.list(tmp_path, data=own)
        assert any(says in one.message for one in raised.value.every), [one.message for one in raised.value.every]
        return
    for about in (own["about"], [json.loads(text) if text else None for text in own["about"]]):  # as text, and as a library has read it
        found = source.list(tmp_path, data=own | {"about": about})
        assert (found.columns["n"].tolist(), found.class_names, found.keys) == ([1, 2], ("x", "y"), ("0", "1"))


def test_a_joined_table_has_its_key_in_json(tmp_path: Path) -> None:
    arguments = of_table(tmp_path, "csv", [{"about": json.dumps({"id": id_, "age": age})} for id_, age in (("p", 30), ("q", 40))])
    join = {"table": {"csv": arguments}, "on": {"patient": "about.id"}}
    source = DataFrame.model_validate({"features": {"age": {"kind": "tensor", "column": "about.age"}}, "join": join})
    assert source.list(tmp_path, data={"patient": ["q", "p", "q"]}).columns["age"].tolist() == [40, 30, 40]
    with pytest.raises(OpError, match="has the key 'r'"):
        source.list(tmp_path, data={"patient": ["r"]})


@pytest.mark.parametrize(
    "content", [b"", b"{", b"no", b"[]", b"3", b"null", b'{"a": null}', b'{"a": {}}', b'{"a": [[1], [1, 2]]}', b"\xff"]
)
def test_what_is_no_field_is_an_error_and_nothing_else(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        field_of(content, ("a",))
