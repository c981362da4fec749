"""One rule for labels: the same column of values has the same classes and labels, or the same finding, in every source that stores it."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from record_files import WRITERS, png, write_array_record, write_lmdb, write_mds, write_tar, write_tfrecord, write_zip

import pipegen
from pipegen.errors import DataError, OpError, OpErrors, SpecError
from pipegen.ops.fields.labels import label_texts
from pipegen.ops.fields.numbers import check_cells, whole_number
from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import every_value
from pipegen.ops.sources.records.source import RecordSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAN = math.nan
DAY, NOON = datetime(2024, 1, 5), datetime(2024, 1, 5, 12)
N = [str(i) for i in range(11)]
NAMED = (("cat", "dog"), [0, 1, 0])
"""For each column: what is stored of each record, and its classes and labels, or the finding."""
COLUMNS: dict[str, tuple[list[Any], Any]] = {
    "whole numbers": ([0, 2, 10], (N, [0, 2, 10])),
    "texts of whole numbers": (["0", "2", "10"], (N, [0, 2, 10])),
    "whole floats": ([0.0, 2.0, 10.0], (N, [0, 2, 10])),
    "texts of whole floats": (["0.0", "2.0", "10.0"], (N, [0, 2, 10])),
    "texts with zeros behind the point": (["0.00", "2.000", "10.0"], (N, [0, 2, 10])),
    "texts with blanks around": ([" 0", "2 ", "\t10\n"], (N, [0, 2, 10])),
    "fractions": ([0.5, 1.5, 0.5], "PG420"),
    "texts of fractions": (["0.5", "1.5", "2"], "PG420"),
    "an infinite number": ([1.0, math.inf, 2.0], "PG420"),
    "truth values": ([True, False, True], (["False", "True"], [1, 0, 1])),
    "one truth value": ([True, True, True], (["False", "True"], [1, 1, 1])),
    "texts of truth values": (["True", "False", "True"], (["False", "True"], [1, 0, 1])),
    "other texts of truth values": (["true", "false", "true"], (["false", "true"], [1, 0, 1])),
    "names": (["cat", "dog", "cat"], NAMED),
    "bytes": ([b"cat", b"dog", b"cat"], NAMED),
    "bytes of numbers": ([b"0", b"2", b"10"], (N, [0, 2, 10])),
    "bytes that are not text": ([b"\xff\xfe", b"\xff\xfd", b"cat"], "PG420"),
    "letters beyond ASCII": (["été", "hiver", "été"], (["hiver", "été"], [1, 0, 1])),
    "dates": ([date(2024, 1, 5), date(2023, 1, 5), date(2024, 1, 5)], (["2023-01-05", "2024-01-05"], [1, 0, 1])),
    "times at midnight": ([DAY, DAY.replace(year=2023), DAY], (["2023-01-05", "2024-01-05"], [1, 0, 1])),
    "times": ([DAY, NOON, DAY], (["2024-01-05 00:00:00", "2024-01-05 12:00:00"], [0, 1, 0])),
    "a number among names": (["1", "cat", "dog"], (["1", "cat", "dog"], [0, 1, 2])),
    "a name among numbers": (["cat", "1", "dog"], (["1", "cat", "dog"], [1, 0, 2])),
    "a stored number among names": ([1, "cat", "dog"], (["1", "cat", "dog"], [0, 1, 2])),
    "a stored float among names": ([2.0, "cat", "dog"], (["2.0", "cat", "dog"], [0, 1, 2])),
    "leading zeros": (["007", "008", "007"], (["007", "008"], [0, 1, 0])),
    "leading zeros beside none": (["007", "7", "10"], (["007", "10", "7"], [0, 2, 1])),
    "a point of a name": (["1.0", "1.5", "beta"], (["1.0", "1.5", "beta"], [0, 1, 2])),
    "superscripts": (["²", "³", "²"], (["²", "³"], [0, 1, 0])),
    "digits of other scripts": (["٣", "٤", "٣"], (["٣", "٤"], [0, 1, 0])),
    "plus signs": (["+1", "+2", "+1"], (["+1", "+2"], [0, 1, 0])),
    "exponents": (["1e3", "2e3", "1e3"], (["1e3", "2e3"], [0, 1, 0])),
    "separators of thousands": (["1,000", "2,000", "1,000"], (["1,000", "2,000"], [0, 1, 0])),
    "underscores": (["1_000", "2_000", "1_000"], (["1_000", "2_000"], [0, 1, 0])),
    "hexadecimal": (["0x1", "0x2", "0x1"], (["0x1", "0x2"], [0, 1, 0])),
    "an empty text": (["cat", "", "dog"], "PG420"),
    "a blank text": (["cat", "  ", "dog"], "PG420"),
    "a missing text": (["cat", None, "dog"], "PG420"),
    "a missing number": ([0, None, 10], "PG420"),
    "not a number": ([0.0, NAN, 10.0], "PG420"),
    "a text of not a number": (["0.0", "nan", "10.0"], "PG420"),
    "a text for nothing": (["1", "None", "2"], "PG420"),
    "not a number among names": (["cat", "nan", "cat"], (["cat", "nan"], [0, 1, 0])),
    "negative": ([-1, 0, 1], "PG420"),
    "texts of negatives": (["-1", "0", "1"], "PG420"),
    "beyond int32": ([0, 2**31, 1], "PG420"),
    "beyond int64": ([0, 2**63, 1], "PG420"),
    "texts beyond int64": (["0", str(10**30), "1"], "PG420"),
    "lists as Python writes them": (["['cat', 'dog']", "['dog']", "['cat']"], "PG420"),
    "lists as JSON writes them": (['["cat", "dog"]', '["dog"]', '["cat"]'], "PG420"),
    "lists as NumPy writes them": (["['cat' 'dog']", "['dog']", "['cat']"], "PG420"),
    "lists without quotes": (["[cat, dog]", "[dog]", "[]"], "PG420"),
    "lists of numbers": (["[1, 2]", "[2]", "[1]"], "PG420"),
    "tuples": (["('cat', 'dog')", "('dog',)", "('cat',)"], "PG420"),
    "sets": (["{'cat', 'dog'}", "{'dog'}", "{'cat'}"], "PG420"),
    "names in brackets": (["(none)", "(other)", "(none)"], (["(none)", "(other)"], [0, 1, 0])),
}
TWINS = {
    "case": ["Cat", "cat", "dog"],
    "truth": ["True", "TRUE", "False"],
    "blanks": ["red car", "red  car", "dog"],
    "Unicode": ["\u00e9t\u00e9", "e\u0301te\u0301", "dog"],
    "one number": ["1", "1.0", "0"],
    "one number among names": ["1", "1.0", "dog"],
}
ORDER = {"as text": ["1", "10", "2", "a"], "exponents": ["1e3", "2e2", "1e3"]}
TWINS_OF_NUMBERS = {"zeros": ["007", "7", "10"], "a sign": ["+7", "7", "10"], "an exponent": ["1e3", "1000", "2"]}
GAPS = {"years": ["2019", "2021", "2020"], "from 1": ["1", "2", "3"], "a hole": ["0", "3", "1"], "floats": ["5.0", "2.0", "7.0"]}
IN_ORDER = {"names": ["cat", "dog", "eel"], "indices": ["0", "1", "2"], "one number": ["1", "cat", "dog"]}


class CannotHold(Exception):
    """A format has no such values."""


def text(values: list[Any]) -> list[str]:
    """As pandas writes a column to CSV."""
    if any(isinstance(value, bytes) for value in values):
        return [value.decode("utf-8", "surrogateescape") for value in values]
    return [value if isinstance(value, str) else written for value, written in zip(values, label_texts(values), strict=True)]


def content(values: list[Any]) -> list[bytes]:
    return [written.encode("utf-8", "surrogateescape") for written in text(values)]


def of_one_type(values: list[Any], *types: type) -> None:
    kinds = {type(value) for value in values}
    if len(kinds) > 1 or not kinds <= set(types):
        raise CannotHold


def records(values: list[Any]) -> list[dict[str, Any]]:
    return [{"image": png(1, 2, 3), "label": value} for value in values]


def write_csv(folder: Path, values: list[Any]) -> dict[str, Any]:
    import csv

    if any("\n" in written for written in text(values)):
        raise CannotHold
    try:
        with open(folder / "t.csv", "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([["label"], *([value] for value in text(values))])
    except UnicodeEncodeError:
        raise CannotHold from None
    return {"path": "t.csv"}


def write_jsonl(folder: Path, values: list[Any]) -> dict[str, Any]:
    if any(isinstance(value, (bytes, date)) for value in values):
        raise CannotHold
    (folder / "t.jsonl").write_text("".join(json.dumps({"label": value}) + "\n" for value in values))
    return {"path": "t.jsonl"}


def arrow_table(values: list[Any]) -> Any:
    import pyarrow as pa

    try:
        return pa.table({"image": [png(1, 2, 3)] * len(values), "label": values})
    except (pa.ArrowException, OverflowError):
        raise CannotHold from None


def write_parquet(folder: Path, values: list[Any]) -> dict[str, Any]:
    import pyarrow.parquet as pq

    pq.write_table(arrow_table(values), folder / "t.parquet")
    return {"path": "t.parquet"}


def write_arrow(folder: Path, values: list[Any]) -> dict[str, Any]:
    import pyarrow as pa

    table = arrow_table(values)
    with pa.OSFile(str(folder / "t.arrow"), "wb") as stream, pa.ipc.new_file(stream, table.schema) as out:
        out.write_table(table)
    return {"path": "t.arrow"}


def write_huggingface(folder: Path, values: list[Any]) -> dict[str, Any]:
    import pyarrow.parquet as pq

    (folder / "hub" / "data").mkdir(parents=True)
    pq.write_table(arrow_table(values), folder / "hub" / "data" / "train-00000-of-00001.parquet")
    return {"path": "hub"}


def write_excel(folder: Path, values: list[Any]) -> dict[str, Any]:
    import openpyxl

    book = openpyxl.Workbook()
    for row, value in enumerate(("label", *values)):
        if isinstance(value, (bytes, float)) or (isinstance(value, int) and abs(value) > 2**53):
            raise CannotHold
        book.active.append([value, f"row {row}"])
    book.save(folder / "t.xlsx")
    return {"path": "t.xlsx"}


def write_sqlite(folder: Path, values: list[Any]) -> dict[str, Any]:
    of_one_type([value for value in values if value is not None], int, float, str, bytes)
    if any(value != value or (isinstance(value, int) and value >= 2**63) for value in values):
        raise CannotHold
    kind = {int: "INTEGER", float: "REAL", str: "TEXT", bytes: "BLOB"}[type(values[0])]
    with sqlite3.connect(folder / "t.sqlite") as opened:
        opened.execute(f"CREATE TABLE t (image BLOB, label {kind})")
        opened.executemany("INSERT INTO t VALUES (?, ?)", [(png(1, 2, 3), value) for value in values])
    opened.close()
    return {"path": "t.sqlite"}


def write_sql(folder: Path, values: list[Any]) -> dict[str, Any]:
    pytest.importorskip("sqlalchemy")
    write_sqlite(folder, values)
    return {"url": "sqlite:///t.sqlite", "query": "SELECT label FROM t ORDER BY rowid"}


def numpy_column(values: list[Any], *kinds: str) -> Any:
    found = np.array([np.datetime64(value) for value in values]) if all(isinstance(value, date) for value in values) else np.array(values)
    mixed = len({type(value) for value in values}) > 1
    if found.dtype.kind not in kinds or mixed:
        raise CannotHold
    return found


def write_npz(folder: Path, values: list[Any]) -> dict[str, Any]:
    np.savez(folder / "t.npz", image=np.zeros((len(values), 2, 2, 3), np.uint8), label=numpy_column(values, *"biufUSM"))
    return {"path": "t.npz"}


def write_hdf5(folder: Path, values: list[Any]) -> dict[str, Any]:
    import h5py

    with h5py.File(folder / "t.h5", "w") as file:
        if all(isinstance(value, str) for value in values):
            file.create_dataset("label", data=values, dtype=h5py.string_dtype())
        else:
            file["label"] = numpy_column(values, *"biufS")
        held = file.create_dataset("image", (len(values),), h5py.vlen_dtype(np.uint8))
        for row in range(len(values)):
            held[row] = np.frombuffer(png(1, 2, 3), np.uint8)
    return {"path": "t.h5"}


def write_zarr(folder: Path, values: list[Any]) -> dict[str, Any]:
    import zarr

    group = zarr.open_group(folder / "t.zarr", mode="w")
    group["image"] = np.ones((len(values), 2, 2, 3), np.uint8)  # Zarr writes no chunks of zeros
    if all(isinstance(value, str) for value in values):
        if zarr.__version__ < "3":
            raise CannotHold
        group.create_array("label", shape=(len(values),), dtype=str)[:] = np.array(values, object)
    else:
        group["label"] = numpy_column(values, *"biuf")
    return {"path": "t.zarr"}


def write_messages(writer: Callable[..., Any], name: str) -> Callable[[Path, list[Any]], dict[str, Any]]:
    def write(folder: Path, values: list[Any]) -> dict[str, Any]:
        of_one_type(values, int, float, str, bytes)
        if any(isinstance(value, int) and value >= 2**63 for value in values):
            raise CannotHold
        writer(folder / name, records(values))
        return {"path": name}

    return write


def write_columns(folder: Path, values: list[Any]) -> dict[str, Any]:
    of_one_type(values, int, str)
    if any(isinstance(value, int) and value >= 2**63 for value in values):
        raise CannotHold
    write_mds(folder / "t.mds", records(values))
    return {"path": "t.mds"}


def write_members(writer: Callable[..., Any], name: str) -> Callable[[Path, list[Any]], dict[str, Any]]:
    def write(folder: Path, values: list[Any]) -> dict[str, Any]:
        writer(folder / name, records(content(values)))
        return {"path": name}

    return write


def write_frame(folder: Path, values: list[Any]) -> dict[str, Any]:
    return {"data": {"label": values}}


def write_pandas(folder: Path, values: list[Any]) -> dict[str, Any]:
    import pandas as pd

    if any(type(value) is date for value in values):
        raise CannotHold
    frame = pd.DataFrame({"label": values})
    if {type(value) for value in values} == {int, type(None)}:
        frame = pd.DataFrame({"label": pd.array(values, "Int64")})
    return {"data": frame}


def write_memory(folder: Path, values: list[Any]) -> dict[str, Any]:
    return {"data": {"image": np.zeros((len(values), 2, 2, 3), np.uint8), "label": values}}


def write_loose(folder: Path, values: list[Any]) -> dict[str, Any]:
    return write_memory(folder, np.array(values, object))  # type: ignore[arg-type]


FORMS: dict[str, tuple[str, Callable[[Path, list[Any]], dict[str, Any]]]] = {
    "csv": ("csv", write_csv),
    "jsonl": ("jsonl", write_jsonl),
    "parquet": ("parquet", write_parquet),
    "excel": ("excel", write_excel),
    "sql": ("sql", write_sql),
    "dataframe": ("dataframe", write_frame),
    "pandas": ("dataframe", write_pandas),
    "arrays": ("arrays", write_memory),
    "arrays of objects": ("arrays", write_loose),
    "npz": ("arrays", write_npz),
    "arrow": ("arrow", write_arrow),
    "huggingface": ("huggingface", write_huggingface),
    "sqlite": ("sqlite", write_sqlite),
    "hdf5": ("hdf5", write_hdf5),
    "zarr": ("zarr", write_zarr),
    "tfrecord": ("tfrecord", write_messages(write_tfrecord, "t.tfrecord")),
    "array_record": ("array_record", write_messages(write_array_record, "t.array_record")),
    "mds": ("mds", write_columns),
    "lmdb": ("lmdb", write_members(write_lmdb, "t.mdb")),
    "webdataset": ("webdataset", write_members(write_tar, "t.tar")),
    "zip": ("zip", write_members(write_zip, "t.zip")),
}
WITHOUT = frozenset(
    {"audio_folder", "by_split", "coco", "files", "image_folder", "labelme", "mix", "prepared", "series", "tfds", "voc", "yolo"}
)
"""Sources without a stored value for each record: their classes are folders or listed, or their records are those of another source, or
windows of rows."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a database answered is kept in the working directory, and is read as long as it is there."""
    monkeypatch.chdir(tmp_path)


def test_every_source_with_labels_has_a_form() -> None:
    assert {source for source, _ in FORMS.values()} == set(sources()) - WITHOUT
    assert set(WRITERS) - {"tfds"} <= set(FORMS)


def listed(form: str, folder: Path, values: list[Any], **label: Any) -> Any:
    """The classes, the labels and the codes of what is odd; or the code of an error."""
    op, write = FORMS[form]
    arguments = write(folder, values)
    data = arguments.pop("data", None)
    cls = sources()[op]
    with_images = op == "arrays" or issubclass(cls, RecordSource)
    features = ({"image": {"kind": "image"}} if with_images else {}) | {"label": {"kind": "label"} | label}
    source = cls(features=features, **arguments)
    try:
        listing = source.list(folder, None, data)
    except (OpError, OpErrors) as error:
        return getattr(error, "errors", [error])[0].code
    errors = [note.code for note in listing.notes if note.severity == "error"]
    if errors:
        return errors[0]
    labels = listing.labels
    if labels is None:
        labels = every_value(listing, "label")
    codes = {note.code for note in listing.notes} - {"PG432", "PG455"}
    return listing.class_names, np.asarray(labels).tolist(), codes


BY_DAY = [pytest.param(form, marks=pytest.mark.nightly if form == "lmdb" else ()) for form in FORMS]
"""LMDB lists its keys in a process for each file."""


@pytest.mark.by_day(8)
@pytest.mark.parametrize("form", BY_DAY)
def test_a_column_means_the_same_in_every_source(form: str, tmp_path: Path) -> None:
    held = 0
    for number, (name, (values, expected)) in enumerate(COLUMNS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            found = listed(form, folder, values)
        except CannotHold:
            continue
        held += 1
        assert (found if isinstance(found, str) else (list(found[0]), found[1])) == (
            expected if isinstance(expected, str) else (list(expected[0]), expected[1])
        ), f"{name} in {form}"
    assert held >= 30


@pytest.mark.by_day(5)
@pytest.mark.parametrize("form", BY_DAY)
def test_classes_that_are_odd_are_found_in_every_source(form: str, tmp_path: Path) -> None:
    both = {"PG664", "PG665"}
    cases = [(TWINS, {"PG665"}), (ORDER, {"PG664"}), (TWINS_OF_NUMBERS, both), (GAPS, {"PG668"}), (IN_ORDER, set())]
    for number, (values, codes) in enumerate((values, codes) for group, codes in cases for values in group.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert listed(form, folder, values)[2] == codes, values
        if codes:
            (tmp_path / f"{number}-listed").mkdir()
            classes = [*dict.fromkeys(value.removesuffix(".0") if "dog" not in values else value for value in values)]
            assert listed(form, tmp_path / f"{number}-listed", values, classes=classes)[2] == set(), "the spec says that they are two"


@pytest.mark.parametrize("values", GAPS.values(), ids=GAPS)
def test_classes_without_a_record_are_found_and_each_advice_works(values: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["label", *values, *values]))

    def notes(**label: Any) -> list[Any]:
        listing = sources()["csv"](path="t.csv", features={"label": {"kind": "label"} | label}).list(tmp_path)
        assert set(listing.labels.tolist()) <= set(range(len(listing.class_names)))
        return [note for note in listing.notes if note.code == "PG668"]

    (note,) = notes()
    numbers = sorted({int(float(value)) for value in values})
    empty = [str(i) for i in range(numbers[-1]) if i not in numbers]
    assert note.severity is None, "a warning"
    assert f"{len(empty):,} of these {numbers[-1] + 1:,} classes" in note.message
    assert repr(empty[0]) in note.message
    written = [re.search("`((offset|classes): .*?)`", line) for line in note.help]
    advice = [yaml.safe_load(found[1]) for found in written if found is not None]
    assert len(advice) == (3 if numbers[-1] - numbers[0] == len(numbers) - 1 else 2)
    assert not any(notes(**arguments) for arguments in advice)


def test_a_split_that_lacks_classes_of_the_training_split_has_no_gap(tmp_path: Path) -> None:
    for split, values in {"train": "0 1 2", "test": "0 2"}.items():
        (tmp_path / f"{split}.csv").write_text("\n".join(["label", *values.split()]))
    parts = {split: {"csv": {"path": f"{split}.csv", "features": {"label": {"kind": "label"}}}} for split in ("train", "test")}
    assert "PG668" not in {note.code for note in sources()["by_split"].model_validate(parts).list(tmp_path).notes}


READ_BY_DAY = ("texts of whole floats", "a number among names", "times at midnight")


def build(form: str, folder: Path, values: list[Any], feature: dict[str, Any], name: str = "label", **own: Any) -> Any:
    op, write = FORMS[form]
    arguments = write(folder, values)
    data = arguments.pop("data", None)
    for key in ("path", "url"):
        if key in arguments:
            arguments[key] = arguments[key].replace("sqlite:///", f"sqlite:///{folder}/") if key == "url" else str(folder / arguments[key])
    with_images = op == "arrays" or issubclass(sources()[op], RecordSource)
    features: dict[str, Any] = {"image": {"kind": "image"}} if with_images else {}
    features["label"] = feature
    spec: dict[str, Any] = {"pipegen": 1, "source": {op: {"features": features, **arguments}}, "batch": {"size": 2, "remainder": "keep"}}
    spec |= {"transforms": [{"resize": {"size": 2}}] if with_images else [], "shuffle": "none", "splits": {"parts": {"train": 3}}}
    spec |= {"output": {"x": ["image", "label"]} if with_images else {"x": "label"}, "runtime": {"jit": "never", "cache": "none"}}
    return pipegen.build(spec | own, **({} if data is None else {"data": data}))


def column(batch: Any) -> Any:
    """The labels of a batch: the last of its parts, whatever holds them."""
    while isinstance(batch, (tuple, dict)):
        batch = batch["label"] if isinstance(batch, dict) else batch[-1]
    return batch


def read(pipe: Any) -> list[Any]:
    found: list[Any] = np.concatenate([column(batch) for batch in pipe.numpy(pipe.splits[0])]).tolist()
    return found


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize(
    ("form", "names"), [("webdataset", READ_BY_DAY), *(pytest.param(form, (*COLUMNS,), marks=pytest.mark.nightly) for form in FORMS)]
)
def test_what_is_listed_is_read(form: str, names: tuple[str, ...], tmp_path: Path) -> None:
    held = 0
    for name in names:
        values, expected = COLUMNS[name]
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        try:
            if isinstance(expected, str):
                continue
            pipe = build(form, folder, values, {"kind": "label"})
        except CannotHold:
            continue
        held += 1
        assert read(pipe) == expected[1], name
    assert held >= (3 if names == READ_BY_DAY else 4)


@pytest.mark.tf
@pytest.mark.by_day(2)
@pytest.mark.parametrize("form", ["webdataset", "sqlite", "tfrecord"])
@pytest.mark.parametrize(
    ("values", "classes", "said"),
    [
        (["1", "cat", "2"], 3, "`label` is cat"),
        (["cat", "1", "dog"], ["cat", "dog"], "`label` is '1'"),
        (["1", "007", "2"], 8, "`label` is 007"),
        (["1", "0.5", "2"], 8, "`label` is 0.5"),
        (["1", "²", "2"], 8, r"`label` is \xc2\xb2"),
    ],
)
def test_a_record_that_does_not_fit_the_classes_of_the_spec_is_named(
    form: str, values: list[str], classes: Any, said: str, tmp_path: Path
) -> None:
    pipe = build(form, tmp_path, values, {"kind": "label", "classes": classes})
    with pytest.raises(DataError, match="#1") as caught:
        read(pipe)
    assert said.replace("'", "") in str(caught.value).replace("'", "").replace("²", r"\xc2\xb2"), "TensorFlow writes bytes"


BIG = [16777217, 2**53 + 1, -(2**60) - 1]
WHOLE = sorted(set(FORMS) - {"excel", "arrays of objects"})
"""Excel holds numbers as floats of 64 bits, and an array of objects is no tensor."""


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("form", [pytest.param(f, marks=() if f == "tfrecord" else pytest.mark.nightly) for f in WHOLE])
def test_whole_numbers_of_tensors_stay_what_they_are(form: str, tmp_path: Path) -> None:
    folders = iter(range(9))

    def written(feature: dict[str, Any], **own: Any) -> Any:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return build(form, folder, BIG, feature, **own)

    for cache in ("none", "memory", {"disk": str(tmp_path / "cache")}):
        pipe = written({"kind": "tensor", "dtype": "int64"}, runtime={"jit": "never", "cache": cache})
        for _ in range(2):
            assert np.ravel(read(pipe)).tolist() == BIG, cache
        assert {column(batch).dtype for batch in pipe.numpy(pipe.splits[0])} == {np.dtype(np.int64)}
    rounded = np.ravel(read(written({"kind": "tensor", "dtype": "float32"}))).tolist()
    assert rounded == np.array(BIG, np.float32).tolist()
    with pytest.raises((SpecError, DataError)) as caught:
        read(written({"kind": "tensor"}))
    assert all(said in str(caught.value) for said in ("16777217", "dtype: int64"))


def test_whole_numbers_of_columns_are_checked_where_they_are_listed() -> None:
    place = "row {}".format
    for cells, first in ((["1", "16777217"], 1), (["16777217.0", "2"], 0), (["1", str(2**70 + 1)], 1)):
        with pytest.raises(OpError, match=f"row {first} holds") as caught:
            check_cells(cells, place, "features.x")
        assert caught.value.code == "PG666"
    for cells in (["1", "16777216"], ["16777217", "0.5"], [str(2**70)], ["-16777216.0"]):
        check_cells(cells, place, "features.x")
    for cell in ("0.5", "1e3", " ", "nan", str(2**63), "1_000", "²"):
        with pytest.raises(ValueError, match=re.escape(cell)):
            whole_number(cell)
    assert [whole_number(cell) for cell in ("20240105123", "-5.0", "+7", "007", str(-(2**63)))] == [20240105123, -5, 7, 7, -(2**63)]


@pytest.mark.parametrize("shape", [None, [2]])
@pytest.mark.parametrize("form", ["dataframe", "parquet", "arrays"])
def test_arrays_of_whole_numbers_keep_every_digit(form: str, shape: Any, tmp_path: Path) -> None:
    values: list[Any] = [2**53 + 1, 5, 7] if shape is None else [[2**53 + 1, 5], [7, 8], [9, 10]]
    feature: dict[str, Any] = {"kind": "tensor", "dtype": "int64"} | ({"shape": shape} if shape and form != "arrays" else {})
    features: dict[str, Any] = {"x": feature}
    if form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
        found = sources()["parquet"](path="t.parquet", features=features).list(tmp_path).columns["x"]
    elif form == "arrays":
        features["image"] = {"kind": "image"}
        data = {"x": values, "image": np.zeros((3, 2, 2, 3), np.uint8)}
        found = sources()["arrays"](features=features).list(tmp_path, None, data).columns["x"]
    else:
        found = sources()["dataframe"](features=features).list(tmp_path, None, {"x": values}).columns["x"]
    assert (found.dtype, found.tolist()) == (np.int64, values)


def test_integers_that_pandas_wrote_beside_an_empty_cell_are_indices(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label\n0.0\n2.0\n\n10.0\n".replace("\n\n", '\n""\n'))
    found = sources()["csv"](path="t.csv", features={"label": {"kind": "label"}}, where="label != ''").list(tmp_path)
    assert (found.class_names, found.labels.tolist()) == (tuple(N), [0, 2, 10])


@pytest.mark.parametrize("cell", ["['cat', 'dog']", '["cat", "dog"]', "('cat', 'dog')", "{'cat', 'dog'}", "[cat, dog]"])
def test_lists_that_were_written_as_text_are_not_split(cell: str, tmp_path: Path) -> None:
    other = cell[0] + cell[1:-1].partition(", ")[0] + cell[-1]
    features = {"tags": {"kind": "label", "separator": ","}}
    with pytest.raises(OpErrors, match="a list written as text"):
        sources()["dataframe"](features=features).list(tmp_path, None, {"tags": [cell, other, ""]})
    found = sources()["dataframe"](features=features).list(tmp_path, None, {"tags": [["cat", "dog"], ["dog"], []]})
    assert found.class_names == ("cat", "dog")


def test_of_json_a_field_is_the_label(tmp_path: Path) -> None:
    """The advice for a column of objects, followed, works."""
    data = {"about": ['{"label": "cat", "n": 1}', '{"label": "dog", "n": 2}']}

    def listed(column: str) -> Any:
        return sources()["dataframe"](features={"label": {"kind": "label", "column": column}}).list(tmp_path, None, data)

    with pytest.raises(OpErrors, match="an object written as text") as raised:
        listed("about")
    assert "`about.label`" in str(raised.value.every[0].help)
    assert listed("about.label").class_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("folders", "severity"),
    [(["1", "2", "10", "11", "100"], "warning"), (["1", "2", "3"], "info"), (["0", "1", "2"], None), (["00", "01"], None), (["cat"], None)],
)
def test_class_folders_that_are_numbers_keep_the_order_of_text(folders: list[str], severity: str | None, tmp_path: Path) -> None:
    for name in folders:
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / "a.png").write_bytes(png(1, 2, 3))
    found = sources()["image_folder"](path="d").list(tmp_path)
    assert found.class_names == tuple(sorted(folders))
    assert [note.severity or "warning" for note in found.notes if note.code == "PG664"] == ([severity] if severity else [])
    listed = sources()["image_folder"](path="d", classes=tuple(folders)).list(tmp_path)
    assert (listed.class_names, listed.notes) == (tuple(folders), ())


@pytest.mark.parametrize(
    ("stored", "classes", "offset", "labels"),
    [
        (["0", "2", "10"], ["0", "2", "10"], 0, [0, 1, 2]),
        ([0, 2, 10], ["0", "2", "10"], 0, [0, 1, 2]),
        ([0.0, 2.0, 10.0], ["0", "2", "10"], 0, [0, 1, 2]),
        ([1, 0, 1], ["cat", "dog"], 0, [1, 0, 1]),
        (["1.0", "0.0", "1.0"], ["cat", "dog"], 0, [1, 0, 1]),
        ([2, 1, 2], ["cat", "dog"], 1, [1, 0, 1]),
        ([3, 1, 2], ["0", "1", "2"], 1, [2, 0, 1]),
        ([True, False, True], 2, 0, [1, 0, 1]),
        ([True, False, True], ["no", "yes"], 0, [1, 0, 1]),
        (["0.5", "1.5", "0.5"], ["0.5", "1.5"], 0, [0, 1, 0]),
        (["2.0", "0.0", "10.0"], ["0.0", "10.0", "2.0"], 0, [2, 0, 1]),
        (["cat", "1", "dog"], ["cat", "dog"], 0, "PG420"),
        ([0, 1, 2], ["0", "2", "10"], 0, "PG420"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "parquet", "arrays"])
def test_the_classes_of_the_spec_mean_the_same_in_every_source(
    form: str, stored: list[Any], classes: Any, offset: int, labels: Any, tmp_path: Path
) -> None:
    found = listed(form, tmp_path, stored, classes=classes, offset=offset)
    assert (found if isinstance(found, str) else found[1]) == labels
