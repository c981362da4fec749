"""Columns of every source of records: `where`, splits, groups, subsets and tests choose the records that they choose in a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from pipes import batches
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import record_files as files
from tfds_files import prepare
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app
from pipegen.data.collect import Collected, collect, left_out
from pipegen.data.sampling import epochs_of
from pipegen.ops.fields.labels import Values
from pipegen.ops.registry import sources
from pipegen.ops.sources.records.columns import RecordCells, kept
from pipegen.ops.sources.records.source import DescribedRecords
from pipegen.spec.load import load
from pipegen.spec.spec_hash import canonical

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


def write_csv(path: Path, held: list[Record]) -> Mapping[str, Any]:
    """A table to compare with, whose records are read one by one."""
    for record in held:
        (path / f"{record['number']}.png").write_bytes(record["image"])
    rows = [[f"{r['number']}.png", *(str(v) for k, v in r.items() if k != "image")] for r in held]
    (path / "a.csv").write_text("\n".join(map(",".join, [list(held[0]), *rows])))
    return {"path": str(path / "a.csv"), "features": FEATURES}


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
    "strata": {"splits": {"parts": {"train": 9, "validation": 5}, "method": "random", "stratify": {"column": "SITE"}, "group": "patient"}},
    "strata, folds": {"splits": {"folds": {"count": 2, "fold": 0}, "stratify": {"column": "SITE"}, "group": "patient"}},
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
    site = "label" if op == "zarr" and use in ("strata", "strata, folds") else SITE.get(op, "site")  # else a stratum is one group
    said = json.loads(json.dumps(USES[use]).replace("SITE", site))
    where = said.pop("source.where", None)
    return spec_of({op: {**arguments, **({"where": where} if where else {})}}, **said)


def test_every_source_of_records_is_tried() -> None:
    assert {name for name, source in sources().items() if issubclass(source, DescribedRecords)} == set(WRITERS)


@pytest.mark.by_day(20)
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


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("op", [op for op in WRITERS if op != "zarr"])  # whose images are numbers
def test_a_damaged_record_is_left_out_by_the_list_that_validate_writes(
    op: str, mixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = records(gaps=op not in WHOLE)
    held[8]["image"] = held[8]["image"][:60]
    source = {op: dict(WRITERS[op](tmp_path, held))}
    splits = {"parts": {"train": 0.7, "validation": 0.3}, "method": "hash", "seed": 1}
    spec = spec_of(source, splits=splits)
    if mixed:
        del spec["splits"]
        spec["source"] = {"mix": {"epoch": "a", "parts": {name: {"source": source, "splits": splits, "weight": 1} for name in "ab"}}}
    Path("s.yaml").write_text(json.dumps(spec))
    validate = ["validate", "s.yaml", "--data=all", "--write-exclude", "out.txt"]
    found = CliRunner().invoke(app, validate)
    assert found.exit_code == 1, found.output
    assert "PG406" in found.output
    listed = [line for line in Path("out.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(listed) == 1 + mixed
    Path("s.yaml").write_text(json.dumps({**spec, "errors": {"exclude": "out.txt"}}))
    for _ in range(2):  # the list keeps what it names
        again = CliRunner().invoke(app, validate)
        assert again.exit_code == 0, again.output
        assert [line for line in Path("out.txt").read_text().splitlines() if not line.startswith("#")] == listed
    pipe = pipegen.build("s.yaml")
    assert sum(map(pipe.num_examples, pipe.splits)) == (COUNT - 1) * (1 + mixed)
    assert sum(len(images(pipe, split)) for split in pipe.splits if split != "train" or not mixed) > 0
    told = [line for line in left_out(collected({**spec, "errors": {"exclude": "out.txt"}}, tmp_path).manifest) if "exclude" in line]
    assert told == ["2 excluded entries" if mixed else "1 excluded entry"]


def images(pipe: Any, split: str) -> list[tuple[int, ...]]:
    """The colour of each image of a split, which tells its record."""
    return [tuple(np.asarray(image)[0, 0].round().astype(int).tolist()) for batch in batches(pipe[split]) for image in batch[0]]


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("op", ["tfrecord", "webdataset", "arrow", "hdf5"])
def test_batches_are_those_of_the_chosen_records(op: str, tmp_path: Path) -> None:
    held = records(gaps=False)
    source = {op: {**WRITERS[op](tmp_path, held), "where": "age >= 21 and patient != 11"}}
    splits = {"parts": {"train": {"patient": [7]}, "validation": {"patient": [8]}}}
    pipe = pipegen.build(spec_of(source, splits=splits, shuffle="none"), runtime={"jit": "never"})
    for split, patient in (("train", 7), ("validation", 8)):
        due = [(r["number"], 7 * r["number"], 90) for r in held if r["patient"] == patient and r["age"] >= 21]
        assert images(pipe, split) == due
    assert "'patient', for `splits.parts.train`, is read once from all records" in str(pipe.explain())
    assert "'age', for `where`, is read once from all records" in str(pipe.explain())


def test_what_was_read_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    seen: list[int] = []
    spec = using("where and values", "tfrecord", write_tfrecord(tmp_path, records()))
    model = load(spec).spec
    assert model is not None
    first = collect(model, progress=seen.append)
    assert COUNT in seen, "the records are counted while they are read"
    notes = [d.message for d in first.diagnostics.items if d.code == "PG432"]
    assert notes == [
        "`where` keeps 11 of 14 records; the values that it compares were read once for all",
        "'patient' was read once from all 14 records, for `splits.parts.train`",
    ]
    expected = chosen(spec)
    monkeypatch.setattr(RecordCells, "_read_all", None)
    assert {split: first.manifest.numbers(split).tolist() for split in first.manifest.splits} == expected
    for file in (tmp_path / "home").rglob("*-cells.*"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(TypeError):
        chosen(spec)


def test_a_kept_column_with_any_bit_flipped_is_read_again(tmp_path: Path) -> None:
    found: Any = SimpleNamespace(folder=tmp_path, total=3)
    due = Values.of_texts(["cat", "dog", "cat"])
    kept(found, "kept", "it", Values, lambda: due)
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    whole = file.read_bytes()
    for bit in range(0, 8 * len(whole), 3):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        read = kept(found, file.name, "it", Values, lambda: due)
        assert [read.texts[code] for code in read.codes.tolist()] == ["cat", "dog", "cat"], bit


def test_labels_of_two_types_are_told_by_the_record_whatever_where_keeps(tmp_path: Path) -> None:
    held = [{**r, "label": r["number"] % 3 if r["number"] < 9 else "cat"} for r in records()]
    files.write_tfrecord(tmp_path / "a.tfrecord", map(without_gaps, held))
    source = {"path": str(tmp_path / "a.tfrecord"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}
    for more in ({}, {"where": "number > 10"}):
        (found,) = [d for d in collected(spec_of({"tfrecord": {**source, **more}})).diagnostics.items if d.code == "PG431"]
        assert f"the label of {tmp_path / 'a.tfrecord'}#9 is b'cat', but the first one is 0" in found.message


def test_classes_are_those_of_the_records_that_stay(tmp_path: Path) -> None:
    """As in a table; also where `map` and `ignore` change them."""
    held = [{**r, "label": "abcd"[i % 4]} for i, r in enumerate(records())]
    own = {"path": str(tmp_path / "a.tfrecord"), "where": "label != 'c'"}
    files.write_tfrecord(tmp_path / "a.tfrecord", map(without_gaps, held))
    write_parquet(tmp_path, held)
    for label in ({"kind": "label"}, {"kind": "label", "ignore": ["a"], "map": {"b": "bee"}}):
        features = {"image": {"kind": "image"}, "label": label}
        found = collected(spec_of({"tfrecord": {**own, "features": features}})).manifest
        table = collected(spec_of({"parquet": {**own, "path": str(tmp_path / "a.parquet"), "features": features}})).manifest
        assert found is not None
        assert table is not None
        assert found.class_names == table.class_names == (("a", "b", "d") if "map" not in label else ("bee", "d"))
        assert found.labels("train").tolist() == table.labels("train").tolist()


def test_parts_of_files_of_other_splits(tmp_path: Path) -> None:
    """The splits of the data set, of which some have a part of a file; each has its own records."""
    source = {"tfds": {**write_tfds(tmp_path, records()), "split": {"train": "train[2:9]", "validation": "train[9:]"}}}
    subset = {"sampling": {"subset": {"where": "patient == 8"}}}
    due = {"train": [i for i in range(2, 9) if i * i % 5 == 1], "validation": list(range(9, COUNT))}
    assert chosen(spec_of(source, **subset)) == due
    where = {"tfds": {**source["tfds"], "where": "number in [3, 4, 10, 13, 0]"}}
    assert chosen(spec_of(where)) == {"train": [3, 4], "validation": [10, 13]}
    leak = collected(spec_of(source, splits={"group": "patient"}))
    assert [d.message for d in leak.diagnostics.items if d.code == "PG302"]
    assert chosen(spec_of(source, splits={"group": "number"})) == {"train": list(range(2, 9)), "validation": list(range(9, COUNT))}


def test_splits_with_sources_of_their_own(tmp_path: Path) -> None:
    for name, some in (("one", records()[:8]), ("two", records()[8:])):
        (tmp_path / name).mkdir()
        files.write_tfrecord(tmp_path / name / "a.tfrecord", map(without_gaps, some))
    parts = {
        name: {"tfrecord": {"path": str(tmp_path / of / "a.tfrecord"), "features": FEATURES}}
        for name, of in (("train", "one"), ("validation", "two"))
    }
    parts["validation"]["tfrecord"]["where"] = "number != 12"
    expected = {"train": [1, 4, 6], "validation": [8, 9, 10, 11, 13]}
    assert chosen(spec_of({"by_split": parts}, sampling={"subset": {"where": "patient == 8"}})) == expected


def test_parts_of_a_mix(tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_text("7\n")
    splits = {"parts": {"train": {"patient": [8]}, "validation": {"patient": {"file": str(tmp_path / "val.txt")}}}}
    part = {"source": {"tfrecord": {**write_tfrecord(tmp_path, records()), "where": "number < 10"}}, "splits": splits}
    found = collected(spec_of({"mix": {"epoch": "longest", "parts": {"a": part, "b": part}}})).manifest
    assert found is not None
    for own in found.by_part().values():
        assert own.numbers("train").tolist() == [1, 4, 6, 9]
        assert own.numbers("validation").tolist() == [0, 5]


def test_records_in_parquet_files_of_hugging_face(tmp_path: Path) -> None:
    write_parquet(tmp_path, records())
    (tmp_path / "data").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "data" / "train-00000-of-00001.parquet")
    source = {"huggingface": {"path": str(tmp_path), "features": FEATURES, "where": "age < 21"}}
    splits = {"parts": {"train": {"patient": [8]}, "validation": {"patient": [7]}}}
    assert chosen(spec_of(source, splits=splits)) == {"train": [1], "validation": [0]}


def test_excluded_records_and_files(tmp_path: Path) -> None:
    source = {"tfrecord": {**write_tfrecord(tmp_path, records()), "where": "number != 4"}}
    splits = {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": [7]}}}
    (tmp_path / "files.txt").write_text("a-0.tfrecord\n")
    assert chosen(spec_of(source, splits=splits, errors={"exclude": str(tmp_path / "files.txt")}))["train"] == [6, 7, 8, 9, 11, 12, 13]
    (tmp_path / "records.txt").write_text("a-0.tfrecord#1\na-1.tfrecord#0\n")
    found = chosen(spec_of(source, splits={**splits, "exclude": str(tmp_path / "records.txt")}))
    assert found == {"train": [2, 3, 6, 7, 8, 9, 11, 12, 13], "validation": [0, 10]}


@pytest.mark.parametrize("write", ["tar", "zip"])
def test_records_with_the_added_key_alone_are_none(write: str, tmp_path: Path) -> None:
    held = [
        {"jpg": r["image"], "cls": r["label"], "json": json.dumps({"meta": {"site": r["site"], "n": i}})} for i, r in enumerate(records())
    ]
    held = [{**r, "note": b"x"} if i % 2 else r for i, r in enumerate(held)]
    held[4:4] = [{"note": b"alone"}, {"json": b'{"meta": {"n": 77}}'}]
    del held[2]["json"]
    getattr(files, f"write_{write}")(tmp_path / f"a.{write}", held)
    features = {"image": {"kind": "image", "key": "jpg"}, "label": {"kind": "label", "key": "cls", "classes": 3}}
    op = {"tar": "webdataset", "zip": "zip"}[write]
    spec = spec_of({op: {"path": str(tmp_path / f"a.{write}"), "features": features, "where": "note == 'x' or json.meta.n == '8'"}})
    found = collected(spec)
    assert found.manifest is not None, [d.message for d in found.diagnostics.items]
    assert found.manifest.numbers("train").tolist() == [1, 3, 5, 7, 8, 9, 11, 13]
    assert found.manifest.listing.cells("json.meta.n", "")[:4] == ("0", "1", "", "3")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a key that none has": ({"source.where": "agee > 3"}, "no record of .* has the key 'agee'"),
    "a text as a number": (
        {"source.where": "site > 3"},
        r"a-0.tfrecord#0 has 'bern' in the column `site`; `where` compares it with numbers",
    ),
    "no record left": ({"source.where": "age > 300"}, "none of the 14 records of .* matches `where`"),
    "an image": ({"source.where": "image == 'x'"}, "'image' of the records .* holds .* bytes .*, which is not text"),
    "a number of a column": ({"splits": {"parts": {"train": 0.5, "validation": 0.5}, "group": 3}}, "no record of .* has the key '3'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case: str, tmp_path: Path) -> None:
    said, message = dict(WRONG[case][0]), WRONG[case][1]
    where = said.pop("source.where", None)
    found = collected(spec_of({"tfrecord": {**write_tfrecord(tmp_path, records()), **({"where": where} if where else {})}}, **said))
    assert found.manifest is None
    assert re.search(message, found.diagnostics.items[0].message), found.diagnostics.items[0].message


def test_records_of_bytes_have_no_columns(tmp_path: Path) -> None:
    files.write_tfrecord(tmp_path / "a.tfrecord", [r["image"] for r in records()])
    source = {"path": str(tmp_path / "a.tfrecord"), "content": "bytes", "features": {"image": {"kind": "image"}}}
    assert "a record has no keys to compare" in str(load(spec_of({"tfrecord": {**source, "where": "a == 1"}})).diagnostics.items)
    found = collected(spec_of({"tfrecord": source}, splits={"parts": {"train": 0.5, "validation": 0.5}, "group": "a"}))
    assert [d.code for d in found.diagnostics.items] == ["PG302"]


def test_a_list_in_a_file_is_part_of_the_data_not_of_the_hash(tmp_path: Path) -> None:
    """Paths change no hash; the records that a file chooses change the fingerprint of the splits, which locks and saved positions have."""
    source = {"tfrecord": write_tfrecord(tmp_path, records())}
    found = []
    for name, lines in (("a.txt", "8\n11\n"), ("b.txt", "11\n8\n"), ("c.txt", "8\n")):
        (tmp_path / name).write_text(lines)
        spec = spec_of(source, splits={"parts": {"train": {"patient": {"file": str(tmp_path / name)}}, "validation": {"patient": [7]}}})
        manifest = collected(spec).manifest
        assert manifest is not None
        model = load(spec).spec
        assert model is not None
        found.append((canonical(model), manifest.split_fingerprint, manifest.fingerprint))
    assert found[0] == found[1]
    assert found[0][0] == found[2][0]
    assert found[0][1] != found[2][1]
    assert found[0][2] == found[2][2]


@pytest.mark.parametrize("op", ["tfrecord", "sqlite"])
def test_data_tests_read_columns(op: str, tmp_path: Path) -> None:
    tests = [
        {"accepted": {"key": "site", "values": ["bern", "genf", "züri"]}},
        {"present": "site"},
        {"unique": "number"},
        {"disjoint": "patient"},
        {"range": {"column": "age", "within": [20, 22]}},
    ]
    splits = {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": [7]}}}
    held = records()
    write_parquet(tmp_path, held)
    seen = []
    for own in ({op: WRITERS[op](tmp_path, held)}, {"parquet": {"path": str(tmp_path / "a.parquet"), "features": FEATURES}}):
        results = pipegen.test(spec_of(own, splits=splits, tests=tests))
        seen.append([(result.id, result.status, result.seen) for result in results.results])
    assert seen[0] == seen[1]
    assert [status for _, status, _ in seen[0]] == ["passed", "failed", "passed", "passed", "failed"]


@pytest.mark.tf
@pytest.mark.parametrize("fetch", ["blocks", "whole"])
@pytest.mark.parametrize("op", ["tfrecord", pytest.param("webdataset", marks=pytest.mark.nightly)])
def test_columns_of_remote_files(op: str, fetch: str, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    (tmp_path / "here").mkdir()
    source = WRITERS[op](tmp_path / "here", records())
    for file in (tmp_path / "here").iterdir():
        fsspec.filesystem("memory").pipe_file(f"/columns-{op}-{fetch}/{file.name}", file.read_bytes())
    name = "a-*.tfrecord" if op == "tfrecord" else "a.tar"
    splits = {"parts": {"train": {"patient": [8, 11]}, "validation": {"patient": [7]}}}
    spec = spec_of({op: {**source, "path": f"memory://columns-{op}-{fetch}/{name}", "where": "age > 20"}}, splits=splits, shuffle="none")
    runtime = {"jit": "never", "cache": "none", "remote_cache": {"path": str(tmp_path / "cache"), "fetch": fetch}}
    pipe = pipegen.build({**spec, "runtime": runtime}, allow_write=[str(tmp_path)])
    assert [number for number, _, _ in images(pipe, "validation")] == [5, 10]


SAMPLED: dict[str, dict[str, Any]] = {
    "weights": {"sampling": {"weights": "age"}},
    "balance": {"sampling": {"balance": "site"}},
    "rare": {"sampling": {"repeat_factor": {"feature": "site", "threshold": 0.5}}},
    "order": {"order": {"by": "number", "from": "high", "pace": 0.5}},
}


@pytest.mark.by_day(8)
@pytest.mark.parametrize("sampled", SAMPLED)
@pytest.mark.parametrize("op", ["tfrecord", "array_record", "arrow", "webdataset", "mds", "lmdb", "sqlite", "tfds"])
def test_labels_and_numbers_of_records_sample_as_those_of_tables(op: str, sampled: str, tmp_path: Path) -> None:
    held = records(gaps=False)
    more = {"site": {"kind": "label"}, "age": {"kind": "weight"}, "number": {"kind": "tensor", "dtype": "int64"}}
    if op == "mds":
        more["site"]["key"], more["age"] = "about.site", {"kind": "weight", "key": "patient"}
    where = {"where": "patient != 11"}
    source = WRITERS[op](tmp_path, held)
    found = []
    for name, own in ((op, source), ("csv", write_csv(tmp_path, held))):
        features = {**own["features"], **more}
        if name == "csv":
            features = {k: {("column" if key == "key" else key): v for key, v in f.items()} for k, f in features.items()}
            features["site"] = {"kind": "label"}
        spec = load(spec_of({name: {**own, "features": features, **where}}, **SAMPLED[sampled])).spec
        assert spec is not None
        manifest = collect(spec).manifest
        assert manifest is not None, [d.message for d in collect(spec).diagnostics.items]
        epochs = epochs_of(spec, manifest)
        found.append({key: value for key, value in vars(epochs).items() if not key.startswith("_")})
    for key, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][key], err_msg=key)


def test_a_number_that_is_none_is_named_with_its_record(tmp_path: Path) -> None:
    held = [{**r, "age": "old"} if r["number"] == 6 else r for r in records()]
    features = {**FEATURES, "age": {"kind": "weight"}}
    found = collected(spec_of({"tfrecord": {**write_tfrecord(tmp_path, held), "features": features}}, sampling={"weights": "age"}))
    assert [d.code for d in found.diagnostics.items] == ["PG423"]
    assert "a-1.tfrecord#1" in found.diagnostics.items[0].message


@pytest.mark.parametrize("op", ["tfrecord", "csv"])
def test_the_values_of_a_column_have_their_shares(op: str, tmp_path: Path) -> None:
    held = records(gaps=False)
    source = {op: (write_csv if op == "csv" else WRITERS[op])(tmp_path, held)}
    parts = {"parts": {"train": 8, "validation": 6}, "method": "random"}
    found = chosen(spec_of(source, splits={**parts, "stratify": {"column": "patient"}}))
    assert sorted(sum(held[i]["patient"] == 8 for i in own) for own in found.values()) == [2, 3]
    assert sorted(sum(held[i]["patient"] == 11 for i in own) for own in found.values()) == [3, 3]
    by_label = chosen(spec_of(source, splits={**parts, "stratify": "label"}))
    assert by_label == chosen(spec_of(source, splits={**parts, "stratify": {"column": "label"}}))
    subset = chosen(spec_of(source, sampling={"subset": {"count": 7, "stratify": {"column": "patient"}}}))["train"]
    assert [sum(held[i]["patient"] == patient for i in subset) for patient in (7, 8, 11)] in ([1, 3, 3], [2, 2, 3])
    by_label = chosen(spec_of(source, sampling={"subset": {"count": 7, "stratify": "label"}}))
    assert by_label == chosen(spec_of(source, sampling={"subset": {"count": 7, "stratify": {"column": "label"}}}))


def test_a_folder_lacks_a_column_to_stratify_by(tmp_path: Path) -> None:
    for i, record in enumerate(records()):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        (tmp_path / "ab"[i % 2] / f"{i}.png").write_bytes(record["image"])
    source = {"image_folder": {"path": str(tmp_path)}}
    found = collected(spec_of(source, splits={"parts": {"train": 0.5, "validation": 0.5}, "stratify": {"column": "site"}}))
    assert [(d.code, d.message) for d in found.diagnostics.items] == [("PG302", "`image_folder` has no column 'site'")]
    with pytest.raises(pipegen.SpecError, match="the source `image_folder` has no column 'site'"):
        pipegen.build(spec_of(source, sampling={"subset": {"count": 2, "stratify": {"column": "site"}}}))


def test_columns_of_a_table_without_a_header_are_numbers(tmp_path: Path) -> None:
    write_csv(tmp_path, records(gaps=False))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    (tmp_path / "bare.csv").write_text("\n".join(lines[1:]))
    features = {"image": {"kind": "image", "column": 0}, "label": {"kind": "label", "column": 1}}
    source = {"csv": {"path": str(tmp_path / "bare.csv"), "header": False, "features": features}}
    splits = {"parts": {"train": {"3": [8, 11]}, "validation": {"3": [7]}}}
    found = collected(spec_of(source, splits=splits, sampling={"subset": {"where": "`4` >= 21"}})).manifest
    assert found is not None
    assert [found.keys(split)[0] for split in ("train", "validation")] == ["4.png", "0.png"]
    assert found.num_examples("validation") == 3


def test_a_column_whose_name_has_dots(tmp_path: Path) -> None:
    source = {"mds": write_mds(tmp_path, records())}
    splits = {"parts": {"train": {"about.site": ["bern"]}, "validation": {"about.site": ["genf"]}}}
    assert chosen(spec_of(source, splits=splits)) == {"train": [0, 3, 6, 9, 12], "validation": [1, 4, 7, 10, 13]}
    splits["parts"]["train"]["about.site"] = ["basel"]
    found = collected(spec_of(source, splits=splits))
    assert [(d.code, d.labels[0].path) for d in found.diagnostics.items] == [("PG404", "splits.parts.train")]


@pytest.mark.parametrize("op", WRITERS)
def test_a_key_that_no_record_has_is_named_where_it_is_asked_for(op: str, tmp_path: Path) -> None:
    source = {op: {**WRITERS[op](tmp_path, records(gaps=op not in WHOLE)), "where": "agee > 3"}}
    (found,) = (d for d in collected(spec_of(source)).diagnostics.items if d.severity == "error")
    assert (found.code, found.labels[0].path) == ("PG442" if op == "lmdb" else "PG421", f"source.{op}.where")
    assert found.help == ("did you mean 'age'?",) or (op == "lmdb" and "its keys are 'age-000000'" in found.help[0])
