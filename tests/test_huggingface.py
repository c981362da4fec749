"""Data sets that Hugging Face's library saved: folders with splits and without, and what their metadata says."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import pipegen
from benchmarks.written_stores import write_arrow
from pipegen.errors import OpError
from pipegen.ops.sources.huggingface import Huggingface

NAMES = ["daisy", "rose", "tulip"]
FEATURES = {"image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"}}


def picture(split: int, row: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (2, 2), (split, row, row % 3)).save(stream, "PNG")
    return stream.getvalue()


def saved(folder: Path, number: int, rows: int, files: int = 1, split: str = "train") -> None:
    """A split as `save_to_disk` writes it."""
    folder.mkdir(parents=True)
    names = [f"data-{i:05}-of-{files:05}.arrow" for i in range(files)]
    each = -(-rows // files)
    for i, name in enumerate(names):
        write_arrow(folder / name, [(picture(number, row), row % 3) for row in range(i * each, min(rows, (i + 1) * each))], 4)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], "_split": split}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES, "splits": {split: {"num_examples": rows}}}))


def with_splits(folder: Path) -> Path:
    saved(folder / "train", 0, 20, 3)
    saved(folder / "test", 1, 7, split="test")
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    return folder


def listed(**arguments: Any) -> Any:
    return Huggingface.model_validate(arguments).list(Path())


def test_classes_and_splits_come_from_the_metadata(tmp_path: Path) -> None:
    listing = listed(path=str(with_splits(tmp_path / "a")), split={"train": "train", "validation": "test"})
    assert listing.class_names == tuple(NAMES)
    assert listing.shards.rows.tolist() == [7, 7, 7, 6]
    assert [*listing.parts] == ["validation", "train", "train", "train"], "files are in the order of their paths"
    assert listing.notes == ()
    saved(tmp_path / "alone", 0, 5)
    assert listed(path=str(tmp_path / "alone")).shards.total == 5


def test_columns_of_other_names_are_found_by_what_they_hold(tmp_path: Path) -> None:
    saved(tmp_path / "a", 0, 5)
    about = {"img": {"_type": "Image"}, "fine": {"names": NAMES, "_type": "ClassLabel"}, "coarse": {"_type": "Value", "dtype": "int64"}}
    (tmp_path / "a" / "dataset_info.json").write_text(json.dumps({"features": about}))
    with pytest.raises(OpError, match="the first file has no key 'img'"):  # the metadata is made up, and the file is not
        listed(path=str(tmp_path / "a"))
    with pytest.raises(OpError, match="has no column 'colour'"):
        listed(path=str(tmp_path / "a"), features={"image": {"kind": "image", "key": "colour"}})


def test_a_prepared_data_set_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    for name, rows in (("pets-train-00000-of-00002", 4), ("pets-train-00001-of-00002", 3), ("pets-test", 2)):
        write_arrow(tmp_path / f"{name}.arrow", [(picture(0, row), row % 3) for row in range(rows)])
    counts = {"train": {"num_examples": 7}, "test": {"num_examples": 2}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES, "splits": counts}))
    assert listed(path=str(tmp_path)).shards.rows.tolist() == [4, 3]
    assert listed(path=str(tmp_path), split="test").shards.rows.tolist() == [2]
    counts["train"]["num_examples"] = 8
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": FEATURES, "splits": counts}))
    with pytest.raises(OpError, match=r"the split 'train' of .* has 7 records, but its metadata says 8"):
        listed(path=str(tmp_path))


def test_what_is_no_data_set_is_told(tmp_path: Path) -> None:
    with_splits(tmp_path / "sets" / "pets")
    with pytest.raises(OpError, match="not a dataset written by `save_to_disk`") as error:
        listed(path=str(tmp_path / "sets"))
    assert error.value.help == "use 'pets' in it"
    with pytest.raises(OpError, match="has no split 'tests'") as error:
        listed(path=str(tmp_path / "sets" / "pets"), split="tests")
    assert error.value.help == "is 'test' meant?"
    with pytest.raises(OpError, match="is in several splits"):
        listed(path=str(tmp_path / "sets" / "pets"), split={"train": "train", "validation": "train"})
    (tmp_path / "hub" / "data").mkdir(parents=True)
    (tmp_path / "hub" / "data" / "train-00000-of-00001.parquet").write_bytes(b"")
    with pytest.raises(OpError, match="cannot be read: Parquet"):
        listed(path=str(tmp_path / "hub"))
    (tmp_path / "sets" / "pets" / "train" / "state.json").write_text('{"_data_files": [{"filename": "../../../secret.arrow"}]}')
    with pytest.raises(OpError, match="names no files beside it"):
        listed(path=str(tmp_path / "sets" / "pets"))


@pytest.mark.tf
@pytest.mark.nightly
def test_it_is_read_to_the_batch(tmp_path: Path) -> None:
    source = {"huggingface": {"path": str(with_splits(tmp_path / "a")), "split": {"train": "train", "validation": "test"}}}
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8"}}
    pipe = pipegen.build(spec | {"batch": {"size": 3, "remainder": "keep"}})
    assert list(pipe.class_names) == NAMES
    found = sorted(tuple(pixel) for x, _ in pipe["train"] for pixel in x.numpy()[:, 0, 0].tolist())
    assert found == [(0, row, row % 3) for row in range(20)]
    assert sorted(row for x, _ in pipe["validation"] for row in x.numpy()[:, 0, 0, 1].tolist()) == list(range(7))
