"""Pipelines on prepared data sets: what TensorFlow Datasets wrote is read where it lies, split in its own words."""

from __future__ import annotations

import json
import sys
from pipes import at
from typing import TYPE_CHECKING, Any

import pytest
from record_files import examples
from tfds_files import prepare

import pipegen
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

CLASSES = ("ant", "bee", "cat", "dog")
COUNTS = (9, 5, 8)


def written(root: Path, damaged: tuple[int, int] | None = None, **own: Any) -> Path:
    shards = [examples(shard, n) for shard, n in enumerate(COUNTS)]
    if damaged is not None:
        shards[damaged[0]][damaged[1]]["image"] = b"junk"
    return prepare(root, {"train": shards, "test": [examples(9, 6)]}, classes=CLASSES, **own)


def build(root: Path, split: Any = "train", **own: Any) -> pipegen.Pipeline:
    spec: dict[str, Any] = {"pipegen": 1, "source": {"tfds": {"name": "pets", "data_dir": str(root), "split": split}}}
    spec |= {"transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8"}, "batch": {"size": 3, "remainder": "keep"}}
    return pipegen.build(spec | {"runtime": {"jit": "never", "cache": "none"}} | own, allow_write=["/"])


def seen(batches: Any) -> list[tuple[int, int]]:
    """The shard and the row of each example, with which its label agrees."""
    found: list[tuple[int, int]] = []
    for x, y in batches:
        for (shard, row, label), listed in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert label == listed == (shard + row) % 4
            found.append((shard, row))
    return found


TRAIN = [(shard, row) for shard, n in enumerate(COUNTS) for row in range(n)]


@pytest.mark.nightly
def test_a_prepared_data_set_is_read_split_and_resumed(tmp_path: Path) -> None:
    folder = written(tmp_path)
    splits = {"train": "train[:50%]", "validation": "train[50%:]", "test": "test"}
    pipe = build(tmp_path, splits)
    whole = seen(at(pipe))
    assert sorted(whole) == TRAIN[:11]
    assert whole != sorted(whole)
    assert seen(pipe["validation"]) == TRAIN[11:]
    assert seen(at(pipe, step=2)) == whole[6:]
    assert pipe.class_names == CLASSES
    assert pipe.files("validation")[0] == f"{folder}/pets-train.tfrecord-00001-of-00003#2"
    assert pipe.labels("validation").tolist() == [(shard + row) % 4 for shard, row in TRAIN[11:]]  # type: ignore[union-attr]
    assert "tensorflow_datasets" not in sys.modules
    # A record is the same in any part, and whatever part is read.
    alone = build(tmp_path, "train[50%:]", splits={"parts": {"train": 0.5, "validation": 0.5}})
    ids = {
        name: i for part in ("train", "validation") for name, i in zip(alone.files(part), alone._manifest.ids(part).tolist(), strict=True)
    }
    assert ids == dict(zip(pipe.files("validation"), pipe._manifest.ids("validation").tolist(), strict=True))
    assert sorted(seen(at(alone)) + seen(alone["validation"])) == TRAIN[11:]


@pytest.mark.nightly
def test_damage_is_named_by_file_and_record(tmp_path: Path) -> None:
    folder = written(tmp_path, damaged=(2, 5))
    with pytest.raises(DataError, match=rf"cannot decode {folder}/pets-train.tfrecord-00002-of-00003#5 \("):
        seen(build(tmp_path, "train[80%:]").dataset("train"))
    report = tmp_path / "damaged.jsonl"
    skipping = build(tmp_path, "train[50%:]", errors={"decode": {"skip": {"max_fraction": 0.1, "report": str(report)}}})
    assert len(seen(at(skipping))) == 11
    assert json.loads(report.read_text().splitlines()[1])["file"] == f"{folder}/pets-train.tfrecord-00002-of-00003#5"


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    def codes(split: Any = "train", root: Path = tmp_path, **source: Any) -> list[tuple[str, str]]:
        about = {"name": "pets", "data_dir": str(root), "split": split} | source
        spec: dict[str, Any] = {"pipegen": 1, "source": {"tfds": about}, "transforms": [{"resize": {"size": 2}}], "batch": {"size": 2}}
        spec |= {"output": {"x": next(iter(source["features"])), "y": None}} if source else {}
        with pytest.raises(SpecError) as error:
            pipegen.build(spec)
        return [(d.code, d.message) for d in error.value.diagnostics]

    folder = written(tmp_path)
    ((code, said),) = codes({"train": "train[:80%]", "validation": "train[70%:]"})
    assert (code, "both in `train` and in `validation`" in said) == ("PG448", True)
    assert codes("train+train[:2]")[0][0] == "PG448"
    assert codes("tran")[0] == ("PG447", "'pets' has no split 'tran'")
    assert codes("train[5:5]")[0][0] == "PG447"
    assert codes("train[")[0][0].startswith("PG1")
    picture = {"features": {"picture": {"kind": "image"}}}
    assert codes(**picture)[0][0] == "PG431"
    assert codes(features={"name": {"kind": "image"}})[0][1] == "'name' of 'pets' is Text, but `name` needs the bytes of an image file"
    about = json.loads((folder / "dataset_info.json").read_text())
    about["splits"][0]["shardLengths"] = ["9", "6", "7"]
    (folder / "dataset_info.json").write_text(json.dumps(about))
    assert "has 5 records, but its metadata says 6" in codes()[0][1]
    written(tmp_path / "b", file_format="parquet")
    assert "was prepared as parquet" in codes(root=tmp_path / "b")[0][1]
