"""Several Parquet files are one table: rows are known by their files, and columns inside of structs by their paths."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.data.collect import collect
from pipegen.errors import OpError, OpErrors
from pipegen.ops.sources.by_split import BySplit
from pipegen.ops.sources.huggingface import Huggingface
from pipegen.ops.sources.shards.paths import find_shards
from pipegen.ops.sources.table_sources import Parquet
from pipegen.spec.models import PipelineSpec

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.ops.sources.listing.base import Listing

SHARDS = {"train-00000-of-00002": 11, "train-00001-of-00002": 8, "test-00000-of-00001": 6}
IMAGE = {"kind": "image", "column": "photo"}
LABEL = {"kind": "label", "column": "about.breed"}


def picture(row: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4), (row, 100, 7)).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files as the Hub has them, whose rows are numbered on from file to file."""
    (tmp_path / "data").mkdir()
    at = 0
    for name, rows in SHARDS.items():
        numbers = range(at, at + rows)
        table = {
            "photo": [{"bytes": picture(row), "path": f"{row}.png"} for row in numbers],
            "about": [{"breed": "pug" if row % 3 else "beagle", "deep": {"age": row / 4}} for row in numbers],
        }
        pq.write_table(pa.table(table), tmp_path / "data" / f"{name}.parquet", row_group_size=3)
        at += rows
    return tmp_path


def listed(data: Path, path: Any, **features: Any) -> Listing:
    return Parquet.model_validate({"path": path, "features": {"image": IMAGE, "label": LABEL} | features}).list(data)


def read(listing: Listing) -> list[int]:
    """The rows that the pictures say, in the order of the records."""
    reader: Any = listing.reader()
    return [Image.open(io.BytesIO(reader.take("image", listing.location.rows[i]))).getpixel((0, 0))[0] for i in range(len(listing.keys))]  # type: ignore[index]


@pytest.mark.parametrize("path", ["data/train-*.parquet", "data/train-{00000..00001}-of-00002.parquet"])
def test_rows_of_several_files_are_one_table(data: Path, path: str) -> None:
    found = listed(data, path, age={"kind": "tensor", "column": "about.deep.age"})
    tables = [pq.read_table(data / "data" / f"{name}.parquet").to_pylist() for name in SHARDS if name.startswith("train")]
    rows = [row for table in tables for row in table]
    assert list(found.keys) == [f"{name}.parquet#{row}" for name, n in SHARDS.items() if name.startswith("train") for row in range(n)]
    assert [found.class_names[label] for label in found.labels.tolist()] == [row["about"]["breed"] for row in rows]  # type: ignore[union-attr]
    assert found.columns["age"].tolist() == [row["about"]["deep"]["age"] for row in rows]
    assert read(found) == list(range(19))
    assert found.location.paths[12] == str(data / "data" / "train-00001-of-00002.parquet#1")


def test_a_folder_and_a_list_and_bytes_by_their_own_name(data: Path) -> None:
    folder = listed(data, "data", image={"kind": "image", "column": "photo.bytes"})
    chosen = listed(data, ["data/train-00001-of-00002.parquet", "data/test-00000-of-00001.parquet"])
    assert read(folder) == [*range(19, 25), *range(19)]
    assert read(chosen) == [*range(19, 25), *range(11, 19)]
    assert set(chosen.keys) < set(folder.keys)


def test_one_file_keeps_the_keys_that_it_had(data: Path) -> None:
    found = listed(data, "data/test-00000-of-00001.parquet")
    assert list(found.keys) == [str(row) for row in range(6)]


def test_where_leaves_rows_out_and_the_others_keep_their_keys(data: Path) -> None:
    source = {"path": "data/train-*.parquet", "features": {"image": IMAGE, "label": LABEL}, "where": "`about.deep.age` >= 2.5"}
    found = Parquet.model_validate(source).list(data)
    assert read(found) == list(range(10, 19))
    assert list(found.keys)[:2] == ["train-00000-of-00002.parquet#10", "train-00001-of-00002.parquet#0"]


def test_files_of_splits_are_told_by_their_names(data: Path) -> None:
    features = {"image": IMAGE, "label": LABEL}
    parts = {
        split: Parquet.model_validate({"path": path, "features": features})
        for split, path in (("train", "data/train-*.parquet"), ("test", "data/test-00000-of-00001.parquet"))
    }
    manifest = collect(
        PipelineSpec.model_validate({"pipegen": 1, "source": BySplit(parts=parts), "batch": {"size": 2}}), base=data
    ).manifest
    assert manifest is not None
    assert {split: manifest.num_examples(split) for split in parts} == {"train": 19, "test": 6}
    assert {split: rows(manifest, split) for split in parts} == {"train": list(range(19)), "test": list(range(6))}


def rows(manifest: Manifest, split: str) -> list[int]:
    found = manifest.rows(split)
    assert found is not None
    return found.tolist()  # type: ignore[no-any-return]


def test_files_must_have_the_columns_of_the_first(data: Path) -> None:
    pq.write_table(pa.table({"photo": ["a.png"], "about": [{"breed": "pug"}]}), data / "data" / "train-00002.parquet")
    with pytest.raises((OpError, OpErrors), match=r"train-00002.*has string there") as wrong:
        listed(data, "data/train-*.parquet")
    assert wrong.value.every[0].code == "PG421"
    with pytest.raises((OpError, OpErrors), match=r"has no column 'about\.deep\.age' of the first file"):
        listed(
            data,
            "data/train-*.parquet",
            age={"kind": "tensor", "column": "about.deep.age"},
            image={"kind": "tensor", "column": "about.deep.age"},
        )


HUB = {"info": {"features": {"photo": {"_type": "Image"}, "kind": {"names": ["10", "2", "1"], "_type": "ClassLabel"}}}}


@pytest.mark.parametrize("layout", ["data/{split}-00000-of-00001.parquet", "{split}.parquet", "{split}/0000.parquet"])
def test_a_folder_of_the_hub_is_a_data_set_with_its_splits_and_classes(tmp_path: Path, layout: str) -> None:
    for split, first in (("train", 0), ("validation", 9)):
        table = pa.table({"photo": [{"bytes": picture(row), "path": None} for row in range(first, first + 6)], "kind": [0, 1, 2] * 2})
        file = tmp_path / layout.format(split=split)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.replace_schema_metadata({"huggingface": json.dumps(HUB)}), file)
    both = Huggingface(path=".", split={"train": "train", "validation": "validation"}).list(tmp_path)
    assert both.class_names == ("10", "2", "1")  # names that look like other indices are names
    assert both.labels.tolist() == [0, 1, 2] * 4  # type: ignore[union-attr]
    assert list(both.parts or ()) == ["train"] * 6 + ["validation"] * 6
    assert read(both) == [*range(6), *range(9, 15)]
    one = Huggingface(path=".", split="validation").list(tmp_path)
    assert list(one.keys) == list(both.keys)[6:]
    assert next(iter(one.keys)) == layout.format(split="validation") + "#0"
    merged = {"image": {"kind": "image"}, "label": {"kind": "label", "map": {"10": "even", "2": "even"}}}
    mapped = Huggingface.model_validate({"path": ".", "split": "train", "features": merged}).list(tmp_path)
    assert [mapped.class_names[label] for label in mapped.labels.tolist()] == ["even", "even", "1"] * 2  # type: ignore[union-attr]
    with pytest.raises(OpError, match="no split 'test'"):
        Huggingface(path=".", split="test").list(tmp_path)


@pytest.mark.tf
@pytest.mark.nightly
def test_batches_hold_what_pyarrow_reads(data: Path) -> None:
    import pipegen

    source = {"parquet": {"path": "data/train-*.parquet", "features": {"image": IMAGE, "label": LABEL}}}
    spec = {
        "pipegen": 1,
        "source": source,
        "splits": {"parts": {"train": 0.5, "validation": 0.5}},
        "batch": {"size": 2, "remainder": "keep"},
    }
    (data / "spec.pipegen.yaml").write_text(json.dumps(spec | {"transforms": [{"resize": {"size": 4}}]}))
    pipe = pipegen.build(data / "spec.pipegen.yaml")
    seen = {split: [int(image[0, 0, 0]) for images, _ in pipe[split] for image in np.asarray(images)] for split in ("train", "validation")}
    assert sorted(seen["train"] + seen["validation"]) == list(range(19))
    names = [f"{file.rpartition('/')[2]}" for file in pipe.files("validation")]
    assert seen["validation"] == [int(name.partition("#")[2]) + 11 * name.startswith("train-00001") for name in names]


def test_what_else_lies_in_the_folder_is_told_as_other_sources_tell_it(data: Path) -> None:
    """As `tfrecord` does: files of other names, hidden ones, linked folders, and shards that are compressed."""
    folder, away = data / "data", data / "away"
    away.mkdir()
    for name in ("notes.txt", ".hidden.parquet", "train-00009.parquet.gz"):
        (folder / name).write_bytes(b"x")
    (folder / "linked").symlink_to(away)
    notes = [note for note in listed(data, "data").notes if note.code in ("PG411", "PG430")]
    told = " ".join(note.message for note in notes)
    assert all(name in told for name in ("notes.txt", ".hidden.parquet", "train-00009.parquet.gz", "linked"))
    expected: list[Any] = []
    (data / "records").mkdir()
    (data / "records" / "a.tfrecord").write_bytes(b"")
    for name in ("notes.txt", ".hidden.tfrecord", "train-00009.tfrecord.gz"):
        (data / "records" / name).write_bytes(b"x")
    (data / "records" / "linked").symlink_to(away)
    find_shards(str(data), "records", (".tfrecord",), notes=expected)
    assert [(note.code, note.severity, note.field) for note in notes] == [(note.code, note.severity, note.field) for note in expected]


def test_what_lies_beside_a_joined_table_is_told_of_that_table(data: Path) -> None:
    (data / "more").mkdir()
    pq.write_table(pa.table({"breed": ["pug", "beagle"], "size": [1.0, 2.0]}), data / "more" / "a.parquet")
    (data / "more" / "notes.txt").write_text("x")
    join = {"table": {"parquet": {"path": "more"}}, "on": {"about.breed": "breed"}}
    source = Parquet.model_validate({"path": "data", "features": {"image": IMAGE, "label": LABEL}, "join": join})
    (note,) = [note for note in source.list(data).notes if note.code == "PG411"]
    assert (note.field, "notes.txt" in note.message) == ("join.table.parquet.path", True)
