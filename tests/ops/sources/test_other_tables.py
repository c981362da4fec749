"""JSON lines and Excel sheets say what a table of text with the same cells says."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipegen.data.fingerprint import fingerprint
from pipegen.errors import OpError
from pipegen.ops.sources.table_sources import Csv, Excel, JsonLines

if TYPE_CHECKING:
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {"file": "a.jpg", "breed": "cat", "size": 1.5, "n": 1},
    {"file": "b.jpg", "breed": "dog", "size": -2, "n": 0},
    {"file": "a.jpg", "breed": "cat", "size": 3e-7, "n": 2},
]
FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "column": "file"},
    "label": {"kind": "label", "column": "breed"},
    "size": {"kind": "tensor"},
    "n": {"kind": "label"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"x")
    return tmp_path


def lines(folder: Path, *rows: Any, name: str = "t.jsonl") -> str:
    (folder / name).write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return name


def plain(folder: Path) -> Any:
    text = "file,breed,size,n\n" + "".join(f"{r['file']},{r['breed']},{r['size']},{r['n']}\n" for r in ROWS)
    (folder / "t.csv").write_text(text)
    return Csv(path="t.csv", features=FEATURES).list(folder)


def refusal(source: Any, folder: Path) -> OpError:
    with pytest.raises(OpError) as caught:
        source.list(folder)
    return caught.value


def test_json_lines_are_rows(folder: Path) -> None:
    listing = JsonLines(path=lines(folder, *ROWS, "", "  "), features=FEATURES).list(folder)
    assert fingerprint(listing) == fingerprint(plain(folder))
    assert listing.location.paths[2] == f"{folder}/a.jpg"


def test_nested_keys_have_dots_and_lists_hold_several_labels(tmp_path: Path) -> None:
    rows = [{"meta": {"site": {"name": "x"}, "age": 3}, "tags": ["sea", "sky"]}, {"tags": [], "meta": {"age": None, "site": {"name": "y"}}}]
    features: dict[str, Any] = {"site": {"kind": "label", "column": "meta.site.name"}, "tags": {"kind": "label", "separator": ";"}}
    listing = JsonLines(path=lines(tmp_path, *rows), features=features).list(tmp_path)
    assert listing.class_names == ("x", "y")
    np.testing.assert_array_equal(listing.columns["tags"], [[1, 1], [0, 0]])
    old = JsonLines(path="t.jsonl", features=features, where="meta.age != '' and meta.age > 2").list(tmp_path)
    assert old.keys == ("0",)
    wrong = JsonLines(path="t.jsonl", features={"age": {"kind": "tensor", "column": "meta.age"}})
    assert refusal(wrong, tmp_path).message.startswith(f"{tmp_path}/t.jsonl:2 has an empty cell")


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (['{"n": 1}', '{"n": }'], "t.jsonl:2:7 is not JSON: Expecting value"),
        (["[1, 2]"], "t.jsonl:1 holds a list, not an object"),
        (['{"a.b": 1, "a": {"b": 2}}'], "has two values for 'a.b'"),
        (['{"n": ' + "[" * 100_000], "t.jsonl:1"),
        (['{"n": ' + "9" * 5000 + "}"], "t.jsonl:1 cannot be read as JSON"),
        ([], "has no rows"),
        (['{"m": 1}'], "has no column 'n'"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, rows: list[str], says: str) -> None:
    assert says in refusal(JsonLines(path=lines(tmp_path, *rows), features={"n": {"kind": "tensor"}}), tmp_path).message


def test_json_lines_are_utf8(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b'{"n": "\xe9"}')
    assert "is not UTF-8: byte 7 is 0xe9" in refusal(JsonLines(path="t.jsonl", features={"n": {"kind": "label"}}), tmp_path).message


def test_compressed_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}'))
    error = refusal(JsonLines(path="t.jsonl.gz", features={"n": {"kind": "label"}}), tmp_path)
    assert "is compressed by gzip" in error.message


def sheet(folder: Path, name: str = "t.xlsx") -> str:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "empty"
    page = book.create_sheet("dogs")
    for row in (["file", "breed", "size", "n"], *(list(r.values()) for r in ROWS[:2]), [], list(ROWS[2].values())):
        page.append(row)
    book.save(folder / name)
    return name


def test_a_sheet_is_a_table(folder: Path) -> None:
    source = Excel(path=sheet(folder), sheet="dogs", features=FEATURES)
    assert fingerprint(source.list(folder)) == fingerprint(plain(folder))
    numbers = Excel(path="t.xlsx", sheet=1, features={"n": {"kind": "tensor"}}, where="n > 0").list(folder)
    assert numbers.keys == ("0", "2")
    assert numbers.location.paths[1] == f"{folder}/t.xlsx, sheet 'dogs', row 5"
    bare = Excel(path="t.xlsx", sheet=1, header=False, features={"x": {"kind": "label", "column": 1}}).list(folder)
    assert bare.class_names == ("breed", "cat", "dog")


def test_what_is_wrong_with_a_sheet(folder: Path) -> None:
    missing = refusal(Excel(path=sheet(folder), sheet="dgos", features=FEATURES), folder)
    assert (missing.code, missing.field, missing.help) == ("PG421", "sheet", "is 'dogs' meant?")
    assert "its sheets are 'empty', 'dogs'" in str(refusal(Excel(path="t.xlsx", sheet=7, features=FEATURES), folder).help)
    assert refusal(Excel(path="t.xlsx", features=FEATURES), folder).code == "PG402"
    (folder / "bad.xlsx").write_bytes((folder / "t.xlsx").read_bytes()[:300])
    assert "cannot be read as a sheet" in refusal(Excel(path="bad.xlsx", features=FEATURES), folder).message


def test_a_missing_library_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    (folder / "t.xlsx").write_bytes(b"")
    wrong = refusal(Excel(path="t.xlsx", features=FEATURES), folder)
    assert (wrong.code, wrong.field) == ("PG421", "path")
    assert "pipegen[excel]" in str(wrong.help)


def test_they_can_be_joined(folder: Path) -> None:
    lines(folder, {"who": {"name": "cat"}, "legs": 4}, {"who": {"name": "dog"}, "legs": 3}, name="facts.jsonl")
    features: dict[str, Any] = {"legs": {"kind": "tensor"}}
    join = {"table": {"jsonl": {"path": "facts.jsonl"}}, "on": {"breed": "who.name"}}
    listing = JsonLines(path=lines(folder, *ROWS), features=features, join=join).list(folder)
    np.testing.assert_array_equal(listing.columns["legs"], [4, 3, 4])
