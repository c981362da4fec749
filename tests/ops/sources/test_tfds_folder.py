"""Prepared data sets are found, and their splits cut, as TensorFlow Datasets does; what it gives was written down from version 4.9.10."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.errors import OpError
from pipegen.ops.sources.tfds import Prepared, class_names, find_prepared, parse_split, read_prepared

TENSOR = "tensorflow_datasets.core.features.tensor_feature.Tensor"
INFO = {
    "fileFormat": "tfrecord",
    "name": "pets",
    "version": "1.2.0",
    "splits": [
        {"name": "train", "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}", "shardLengths": ["34", "35", "34"]},
        {"name": "test", "shardLengths": ["6", "5", "6"]},
    ],
}
FEATURES = {
    "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    "featuresDict": {
        "features": {
            "image": {"image": {"dtype": "uint8", "shape": {"dimensions": ["-1", "-1", "3"]}}},
            "label": {"classLabel": {"numClasses": "3"}},
            "inner": {"featuresDict": {"features": {"deep": {"image": {"dtype": "uint8"}}}}},
            "objects": {"sequence": {"feature": {"featuresDict": {"features": {"kind": {"classLabel": {"numClasses": "5"}}}}}}},
        }
    },
}


def described(root: Path, version: str = "1.2.0", config: str = "", **info: Any) -> Path:
    """A folder with the metadata of a data set."""
    folder = root / "pets" / config / version
    folder.mkdir(parents=True)
    (folder / "dataset_info.json").write_text(json.dumps(INFO | {"version": version} | info))
    (folder / "features.json").write_text(json.dumps(FEATURES))
    (folder / "label.labels.txt").write_text("cat\ndog\nowl")
    return folder


@pytest.mark.parametrize(
    ("split", "pieces"),
    [
        ("train", [("train", 0, 0, 34), ("train", 1, 0, 35), ("train", 2, 0, 34)]),
        ("train[:80%]", [("train", 0, 0, 34), ("train", 1, 0, 35), ("train", 2, 0, 13)]),
        ("train[80%:]", [("train", 2, 13, 21)]),
        ("train[10:20]", [("train", 0, 10, 10)]),
        ("train[-5:]", [("train", 2, 29, 5)]),
        ("train[:1shard]", [("train", 0, 0, 34)]),
        ("train[1shard:2shard]", [("train", 1, 0, 35)]),
        ("train[-1shard]", [("train", 2, 0, 34)]),
        ("train[:10%]+train[20%:]", [("train", 0, 0, 10), ("train", 0, 21, 13), ("train", 1, 0, 35), ("train", 2, 0, 34)]),
        ("all", [("train", i, 0, n) for i, n in enumerate((34, 35, 34))] + [("test", i, 0, n) for i, n in enumerate((6, 5, 6))]),
        ("test + train[33%:66%]", [("test", i, 0, n) for i, n in enumerate((6, 5, 6))] + [("train", 1, 0, 34)]),
        ("train[:12.5%]", [("train", 0, 0, 13)]),
        ("train[10:50%]", [("train", 0, 10, 24), ("train", 1, 0, 18)]),
        ("train[50:50]", []),
    ],
)
def test_splits_are_cut_as_the_library_does(split: str, pieces: list[tuple[Any, ...]], tmp_path: Path) -> None:
    described(tmp_path)
    assert list(find_prepared("", str(tmp_path), "pets").pieces(parse_split(split))) == pieces


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.lists(st.integers(0, 100), min_size=1, max_size=4))
def test_percentages_part_a_split(rows: list[int], cuts: list[int]) -> None:
    about = Prepared("", "a", "tfrecord", {"train": tuple(rows)}, {"train": ""}, {})
    bounds = [0, *sorted(cuts), 100]
    text = "+".join(f"train[{a}%:{b}%]" for a, b in pairwise(bounds))
    found = [(shard, first + i) for _, shard, first, count in about.pieces(parse_split(text)) for i in range(count)]
    assert found == [(shard, row) for shard, n in enumerate(rows) for row in range(n)]


@pytest.mark.parametrize(
    "text",
    ["", "train[", "train[]", "train[:]", "train[5]", "train[1:2:3]", "train[1.5:]", "train[:101%]", "train[1%:2shard]", "all[:5]", "a b"],
)
def test_what_is_no_split(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid split|exceeds|has no parts"):
        parse_split(text)


def test_the_newest_version_and_the_only_configuration_are_taken(tmp_path: Path) -> None:
    described(tmp_path)
    described(tmp_path, "1.10.0")
    found = find_prepared(str(tmp_path), ".", "pets")
    assert found.folder.endswith("/pets/1.10.0")
    assert found.shard("train", 1) == "pets-train.tfrecord-00001-of-00003"
    assert find_prepared("", str(tmp_path), "pets:1.2.0").folder.endswith("/pets/1.2.0")
    assert find_prepared("", str(tmp_path), "pets:1.*.*").folder.endswith("/pets/1.10.0")
    assert dict(found.features).keys() == {"image", "label", "inner/deep", "objects/kind"}
    assert class_names(found, "label") == ("cat", "dog", "owl")
    assert class_names(found, "objects/kind") == ("0", "1", "2", "3", "4")
    assert class_names(found, "image") == ()
    described(tmp_path / "b", config="large")
    assert find_prepared("", str(tmp_path / "b"), "pets").folder.endswith("pets/large/1.2.0")
    described(tmp_path / "b", config="small")
    assert find_prepared("", str(tmp_path / "b"), "pets/small").folder.endswith("pets/small/1.2.0")
    with pytest.raises(OpError, match="several configurations") as error:
        find_prepared("", str(tmp_path / "b"), "pets")
    assert error.value.help == "use one of 'pets/large', 'pets/small'"


TEMPLATE = '{"splits": [{"name": "train", "shardLengths": ["3"], "filepathTemplate": "{DATASET}-{SPNIT}"}]}'
"""A field of a name of which a letter is another."""


@pytest.mark.parametrize("listed", [b"cat\n", b"cat\ndog\nfox\n", b"c\xe4t\ndog\n"])
def test_a_list_of_classes_that_does_not_fit_is_told(tmp_path: Path, listed: bytes) -> None:
    prepared = replace(read_prepared(str(described(tmp_path))), features={"label": {"classLabel": {"numClasses": "2"}}})
    Path(prepared.folder, "label.labels.txt").write_bytes(b"cat\ndog\n")
    assert class_names(prepared, "label") == ("cat", "dog")
    Path(prepared.folder, "label.labels.txt").write_bytes(listed)
    with pytest.raises(OpError, match=r"classes|UTF-8") as error:
        class_names(prepared, "label")
    assert error.value.code == "PG447"


def test_what_is_not_there(tmp_path: Path) -> None:
    folder = described(tmp_path)

    def refusal(name: str = "pets", where: str = ".") -> tuple[str, str]:
        with pytest.raises(OpError) as error:
            find_prepared(str(tmp_path), where, name)
        return error.value.code, error.value.message

    assert refusal("pet")[0] == refusal("pets:2.0.0")[0] == refusal("pets/a")[0] == refusal(where="nowhere")[0] == "PG401"
    assert refusal("a b")[0] == "PG447"
    with pytest.raises(OpError, match="has no split 'tain'"):
        list(find_prepared("", str(tmp_path), "pets").pieces(parse_split("tain")))
    with pytest.raises(OpError, match="has 103 records, but 200 are requested"):
        list(find_prepared("", str(tmp_path), "pets").pieces(parse_split("train[:200]")))
    for damaged in ("[1]", "{", '{"splits": [{"name": "train", "shardLengths": ["x"]}]}', '{"splits": 5}', TEMPLATE):
        (folder / "dataset_info.json").write_text(damaged)
        assert refusal()[0] == "PG447"
    (folder / "dataset_info.json").unlink()
    assert "is missing" in refusal()[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cat\ndog", "lists 2 classes, but features.json says 3"),
        (b"cat\ndog\nowl\nfox", "lists 4 classes, but features.json says 3"),
        (b"", "lists 0 classes"),
        (b"cat\nd\0g\nowl", "it lists the class 'd\\x00g'"),
        (b"cat\n\xe4og\nowl", "cannot be read: 'utf-8'"),
    ],
)
def test_a_list_of_classes_that_is_damaged_is_told(content: bytes, said: str, tmp_path: Path) -> None:
    """The numbers of the classes would be taken for their names otherwise."""
    folder = described(tmp_path)
    (folder / "label.labels.txt").write_bytes(content)
    prepared = find_prepared(".", str(tmp_path), "pets")
    with pytest.raises(OpError, match=re.escape(said)) as error:
        class_names(prepared, "label")
    assert error.value.code == "PG447"
    (folder / "label.labels.txt").unlink()
    assert class_names(prepared, "label") == ("0", "1", "2")


@pytest.mark.parametrize(
    ("name", "template"),
    [("pets", "{DATASET}-{SPNIT}.x"), ("pets", "{DATASET-{SPLIT}.x"), ("p{ts", "{DATASET}-{SPLIT}"), ("pe\0s", "{DATASET}-{SPLIT}")],
)
def test_names_of_files_that_cannot_be_are_told(name: str, template: str, tmp_path: Path) -> None:
    folder = described(tmp_path)
    about = json.loads((folder / "dataset_info.json").read_text())
    about |= {"name": name, "splits": [{**split, "filepathTemplate": template} for split in about["splits"]]}
    (folder / "dataset_info.json").write_text(json.dumps(about))
    with pytest.raises(OpError) as error:
        find_prepared(".", str(tmp_path), "pets")
    assert error.value.code == "PG447"
