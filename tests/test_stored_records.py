"""Pipelines on files of records that a library reads, from the bytes to the batch: what holds for each format."""

from __future__ import annotations

import io
import json
from pipes import at
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import pipegen
from benchmarks.written_stores import WRITERS
from pipegen.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNTS = (9, 5, 8)
ALL = [(shard, row, (shard + row) % 4) for shard, n in enumerate(COUNTS) for row in range(n)]
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
LIBRARIES = {"array_record": "array_record", "lmdb": "lmdb", "arrow": "pyarrow", "hdf5": "h5py", "sqlite": "sqlite3"}


def formats(*quick: str) -> pytest.MarkDecorator:
    """Every format; those that are not `quick` by night."""
    nightly = [pytest.param(name, marks=[] if name in quick else [pytest.mark.nightly]) for name in WRITERS]
    return pytest.mark.parametrize("kind", nightly)


@pytest.fixture(autouse=True)
def library(kind: str) -> None:
    """The library of the format is there."""
    pytest.importorskip(LIBRARIES[kind])


def picture(*pixel: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (2, 2), pixel).save(stream, "PNG")  # type: ignore[arg-type]
    return stream.getvalue()


def written(folder: Path, kind: str, damaged: tuple[int, int] | None = None, counts: tuple[int, ...] = COUNTS) -> Path:
    """Files of records whose picture has one colour: the shard, the row and the class."""
    folder.mkdir(exist_ok=True)
    ending, write = WRITERS[kind]
    for shard, n in enumerate(counts):
        records = [(picture(shard, row, (shard + row) % 4), (shard + row) % 4) for row in range(n)]
        if damaged is not None and damaged[0] == shard:
            records[damaged[1]] = (b"junk", 0)
        write(folder / f"{shard}{ending}", records)
    return folder


def build(folder: Path, kind: str, features: dict[str, Any] = FEATURES, **own: Any) -> pipegen.Pipeline:
    spec = {"pipegen": 1, "source": {kind: {"path": str(folder), "features": features}}, "transforms": [{"resize": {"size": 2}}]}
    return pipegen.build(spec | {"output": {"dtype": "uint8"}, "batch": {"size": 3, "remainder": "keep"}} | own, allow_write=["/"])


def seen(batches: Any) -> list[tuple[int, ...]]:
    """The shard, the row and the class of each example, which its picture and its label agree on."""
    found = []
    for x, y in batches:
        for pixel, label in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert pixel[2] == label
            found.append(tuple(pixel))
    return found


@formats("sqlite")
def test_records_are_read_in_any_order_resumed_shared_and_split(tmp_path: Path, kind: str) -> None:
    pipe = build(written(tmp_path / "a", kind), kind, splits={"parts": {"train": 0.7, "validation": 0.3}, "stratify": "label"})
    whole, others = seen(at(pipe)), seen(pipe["validation"])
    assert sorted(whole + others) == ALL
    assert whole != sorted(whole)
    assert {label for *_, label in others} == {0, 1, 2, 3}
    assert ("records of" in str(pipe.explain(physical=True))) == (kind != "lmdb"), "values of LMDB are read without Python"
    assert seen(at(pipe, step=3)) == whole[9:]


@pytest.mark.nightly
@formats()
def test_every_step_can_be_resumed_and_hosts_take_their_shares(tmp_path: Path, kind: str) -> None:
    pipe = build(written(tmp_path / "a", kind), kind)
    whole = seen(at(pipe))
    assert sorted(whole) == ALL
    for step in range(1, len(whole) // 3 + 1):
        assert seen(at(pipe, step=step)) == whole[3 * step :]
    even = build(tmp_path / "a", kind, batch={"size": 3, "remainder": "drop"})
    shares = [seen(even.dataset("train", step=1, shard=(i, 3))) for i in range(3)]
    assert [one for batch in zip(*shares, strict=True) for one in batch] == whole[3:21]
    assert seen(at(pipe, epoch=1)) != whole


@formats()
def test_a_damaged_record_is_named(tmp_path: Path, kind: str) -> None:
    folder, ending = written(tmp_path / "d", kind, damaged=(1, 2)), WRITERS[kind][0]
    with pytest.raises(DataError, match=rf"cannot decode \S+/1\{ending}#2 \("):
        seen(build(folder, kind).dataset("train"))


@pytest.mark.nightly
@formats()
def test_another_record_takes_the_place_of_a_damaged_one(tmp_path: Path, kind: str) -> None:
    folder, ending = written(tmp_path / "d", kind, damaged=(1, 2)), WRITERS[kind][0]
    report = tmp_path / "damaged.jsonl"
    pipe = build(folder, kind, errors={"decode": {"skip": {"max_fraction": 0.2, "report": str(report)}}})
    found = seen(at(pipe))
    assert (len(found), len(set(found))) == (22, 21), "another one took its place"
    assert json.loads(report.read_text().splitlines()[1])["file"] == f"{folder}/1{ending}#2"


@pytest.mark.nightly
@formats()
def test_a_file_that_changes_is_an_error(tmp_path: Path, kind: str) -> None:
    pipe, name = build(written(tmp_path / "a", kind), kind), f"1{WRITERS[kind][0]}"
    seen(pipe["train"])
    with (tmp_path / "a" / name).open("ab") as file:
        file.write(b"more")
    with pytest.raises(DataError, match=rf"{name} has .* bytes, but had"):
        seen(pipe["train"])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["hdf5"])
def test_images_of_hdf5_can_be_arrays(tmp_path: Path, kind: str) -> None:
    import h5py

    images = np.zeros((20, 4, 5, 3), np.uint8)
    images[..., 1], images[..., 2] = np.arange(20)[:, None, None], np.arange(20)[:, None, None] % 4
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["train/x"] = images
        file["train/y"] = np.arange(20) % 4
        file["train/depth"] = images[..., 1].astype(np.float32) / 20
    features = {"image": {"kind": "image", "key": "train/x"}, "label": {"kind": "label", "key": "train/y", "classes": 4}}
    pipe = build(tmp_path / "a.h5", kind, features, transforms=[])
    assert pipe["train"].element_spec[0].shape[1:] == (4, 5, 3)
    assert sorted(seen(pipe["train"])) == [(0, row, row % 4) for row in range(20)]
    features["image"] = {"kind": "image", "key": "train/depth"}
    pipe = build(tmp_path / "a.h5", kind, features, transforms=[], output={"dtype": "float32"})
    assert pipe["train"].element_spec[0].shape[1:] == (4, 5, 1)
    for x, y in pipe["train"]:
        assert np.round(x.numpy()[:, 0, 0, 0] * 20 % 4).tolist() == y.numpy().tolist()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["hdf5", "array_record"])
def test_what_is_unpacked_together_is_read_in_windows(tmp_path: Path, kind: str) -> None:
    ending, write = WRITERS[kind]
    options: dict[str, Any] = {"chunks": (6,), "compression": "gzip"} if kind == "hdf5" else {"group": 6}
    write(tmp_path / f"0{ending}", [(picture(0, row, row % 4), row % 4) for row in range(24)], **options)
    pipe = build(tmp_path, kind)
    whole = seen(pipe["train"])
    assert sorted(whole) == [(0, row, row % 4) for row in range(24)]
    assert seen(at(pipe, epoch=0, step=5)) == seen(at(pipe, epoch=0))[15:]
    unit = "chunks" if kind == "hdf5" else "groups of records"
    assert f"shuffle of whole {unit}, then in windows of" in str(pipe.explain("train"))
