"""Columns of every source of records: `where`, splits, groups, subsets and tests choose the records that they choose in a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_files as files
from tfds_files import prepare

from pipegen.data.collect import Collected, collect
from pipegen.ops.registry import sources
from pipegen.ops.sources.records.described import DescribedRecords
from pipegen.spec.load import load

COUNT = 14
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}
Record = dict[str, Any]
Write = Callable[[Path, list[Record]], Mapping[str, Any]]


def records(*, gaps: bool = True) -> list[Record]:
    """Records of a few patients; with `gaps`, some have no site."""
    found = []
    for i in range(COUNT):
        site = ("bern", "genf", "züri")[i % 3]
        record = {"image": files.png(i, 7 * i, 90), "label": i % 3, "number": i, "patient": 7 + i * i % 5, "age": 20 + i / 4, "site": site}
        found.append({**record, "site": None} if gaps and i % 6 == 5 else record)
    return found


def without_gaps(record: Record) -> Record:
    return {key: value for key, value in record.items() if value is not None}


def columns(held: list[Record]) -> dict[str, list[Any]]:
    return {key: [record[key] for record in held] for key in held[0]}


def write_parquet(path: Path, held: list[Record]) -> Mapping[str, Any]:
    """The table to compare with."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns(held)), path / "a.parquet")
    return {"path": str(path / "a.parquet"), "features": {**FEATURES, "image": {"kind": "image", "column": "image"}}}


def write_stream(path: Path, held: list[Record]) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table(columns(held))
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def write_arrow(path: Path, held: list[Record]) -> Mapping[str, Any]:
    write_stream(path / "a.arrow", held)
    return {"path": str(path / "a.arrow"), "features": FEATURES}


def write_huggingface(path: Path, held: list[Record]) -> Mapping[str, Any]:
    write_stream(path / "a.arrow", held)
    about = {"image": {"_type": "Image"}, **{key: {"dtype": "string", "_type": "Value"} for key in held[0] if key != "image"}}
    splits = {"train": {"name": "train", "num_examples": len(held)}}
    (path / "dataset_info.json").write_text(json.dumps({"features": about, "splits": splits}))
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}], "_split": "train"}))
    return {"path": str(path), "features": FEATURES}


def write_tfrecord(path: Path, held: list[Record]) -> Mapping[str, Any]:
    for number, some in enumerate((held[:5], held[5:])):
        files.write_tfrecord(path / f"a-{number}.tfrecord", map(without_gaps, some))
    return {"path": str(path / "a-*.tfrecord"), "features": FEATURES}


def write_array_record(path: Path, held: list[Record]) -> Mapping[str, Any]:
    pytest.importorskip("array_record")
    files.write_array_record(path / "a.array_record", map(without_gaps, held))
    return {"path": str(path / "a.array_record"), "features": FEATURES}


def write_tfds(path: Path, held: list[Record]) -> Mapping[str, Any]:
    own = [{**without_gaps(r), "age": [r["age"]]} for r in held]
    prepare(path, {"train": [own[:5], own[5:]]}, name="pets")
    return {"name": "pets", "data_dir": str(path), "features": FEATURES}


def archive(write: Callable[..., Any], ending: str) -> Write:
    def written(path: Path, held: list[Record]) -> Mapping[str, Any]:
        write(path / f"a.{ending}", [{k: str(v).encode() if k != "image" else v for k, v in without_gaps(r).items()} for r in held])
        return {"path": str(path / f"a.{ending}"), "features": FEATURES}

    return written


def write_mds(path: Path, held: list[Record]) -> Mapping[str, Any]:
    """Columns of one type each, and the site in one of JSON."""
    own = [
        {**{k: r[k] for k in ("image", "label", "number", "patient")}, "age": str(r["age"]), "about": without_gaps(about(r))} for r in held
    ]
    files.write_mds(path / "a.mds", own)
    return {"path": str(path / "a.mds"), "features": FEATURES}


def about(record: Record) -> Record:
    return {"site": record["site"]}


def write_lmdb(path: Path, held: list[Record]) -> Mapping[str, Any]:
    pytest.importorskip("lmdb")
    files.write_lmdb(path / "a.mdb", [{k: v if k == "image" else str(v).encode() for k, v in r.items()} for r in held])
    return {"path": str(path / "a.mdb"), "features": FEATURES}


def write_sqlite(path: Path, held: list[Record]) -> Mapping[str, Any]:
    files.write_sqlite(path / "a.sqlite", held)
    return {"path": str(path / "a.sqlite"), "table": "examples", "features": FEATURES}


def write_hdf5(path: Path, held: list[Record]) -> Mapping[str, Any]:
    pytest.importorskip("h5py")
    files.write_hdf5(path / "a.h5", [{**r, "site": r["site"].encode()} for r in held])
    return {"path": str(path / "a.h5"), "features": FEATURES}


def write_zarr(path: Path, held: list[Record]) -> Mapping[str, Any]:
    """Numbers alone: a text has the number of its place."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path / "a.zarr"), mode="w")
    own = columns(held)
    own["image"] = [np.full((2, 2, 3), i, np.uint8) for i in range(len(held))]
    for key, values in own.items():
        if key != "site":
            group.create_array(key, data=np.array(values))
    return {"path": str(path / "a.zarr"), "features": FEATURES}


WRITERS: dict[str, Write] = {
    "array_record": write_array_record,
    "arrow": write_arrow,
    "hdf5": write_hdf5,
    "huggingface": write_huggingface,
    "lmdb": write_lmdb,
    "mds": write_mds,
    "sqlite": write_sqlite,
    "tfds": write_tfds,
    "tfrecord": write_tfrecord,
    "webdataset": archive(files.write_tar, "tar"),
    "zip": archive(files.write_zip, "zip"),
    "zarr": write_zarr,
}
WHOLE = {"lmdb", "hdf5", "zarr"}
"""Formats in which each record has each key."""
SITE = {"mds": "about.site", "zarr": "patient"}
"""What stands for the site."""


def spec_of(source: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    return {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": [8, 8]}}], "batch": {"size": 1}, **own}


def collected(spec: dict[str, Any], base: Path | None = None) -> Collected:
    loaded = load(spec)
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics.items]
    return collect(loaded.spec, base=base)


def chosen(spec: dict[str, Any], base: Path | None = None) -> dict[str, list[int]]:
    """The numbers of the records of each split."""
    found = collected(spec, base)
    assert found.manifest is not None, [str(d.message) for d in found.diagnostics.items]
    numbers = found.manifest.listing.cells("number", "")
    return {split: [int(numbers[i]) for i in found.manifest.numbers(split)] for split in found.manifest.splits}


USES: dict[str, dict[str, Any]] = {
    "where": {"source.where": "age < 22.5 and SITE != 'genf' and SITE != '8'"},
    "where, in": {"source.where": "patient in [7, 8, 11] or not SITE == 'bern'"},
    "where, missing": {"source.where": "SITE != ''"},
    "group": {"splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "hash", "group": "patient", "seed": 3}},
    "group, ranked": {"splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "random", "group": "SITE"}},
    "folds": {"splits": {"folds": {"count": 3, "fold": 1}, "group": "patient"}},
    "stratified groups": {
        "splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "random", "group": "patient", "stratify": "label"}
    },
    "column": {"splits": {"parts": {"train": "8", "validation": "7"}, "method": {"column": "patient"}}},
    "values": {"splits": {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": ["7"]}}}},
    "values, file": {"splits": {"parts": {"train": {"patient": {"file": "train.txt"}}, "validation": {"patient": [7]}}}},
    "values, groups": {"splits": {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": ["7"]}}, "group": "patient"}},
    "subset": {"sampling": {"subset": {"where": "age >= 21 and SITE in ['bern', 'züri', '8', '11']"}}},
    "where and values": {
        "source.where": "age > 20.5",
        "splits": {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": [7]}}},
    },
    "where and group": {
        "source.where": "age > 20.5",
        "splits": {"parts": {"train": 0.6, "validation": 0.4}, "method": "random", "group": "patient"},
    },
}


def using(use: str, op: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    said = json.loads(json.dumps(USES[use]).replace("SITE", SITE.get(op, "site")))
    where = said.pop("source.where", None)
    return spec_of({op: {**arguments, **({"where": where} if where else {})}}, **said)


def test_every_source_of_records_is_tried() -> None:
    assert {name for name, source in sources().items() if issubclass(source, DescribedRecords)} == set(WRITERS)


@pytest.mark.by_day(40)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("op", WRITERS)
def test_records_are_chosen_as_in_a_table(op: str, use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = records(gaps=op not in WHOLE)
    (tmp_path / "train.txt").write_text("# patients\n8\n11\n\n")
    table = held if op not in SITE else [{**r, SITE[op]: r["site"] if op == "mds" else r["patient"]} for r in held]
    due = write_parquet(tmp_path, table)
    spec = using(use, op, WRITERS[op](tmp_path, held))
    # A column with a dot needs backticks in neither.
    expected = chosen({**spec, "source": {"parquet": {**due, **{k: v for k, v in spec["source"][op].items() if k == "where"}}}}, tmp_path)
    assert chosen(spec, tmp_path) == expected
    assert any(expected.values())
    assert use != "where" or len(expected["train"]) < COUNT
