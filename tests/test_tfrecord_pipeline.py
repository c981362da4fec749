"""Pipelines on TFRecord files, from the bytes to the batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from record_files import examples, write_tfrecord

import pipegen
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
COUNTS = (9, 5, 0, 8)
ALL = [(shard, row, (shard + row) % 4) for shard, n in enumerate(COUNTS) for row in range(n)]


def written(folder: Path, damaged: tuple[int, int] | None = None) -> Path:
    for shard, n in enumerate(COUNTS):
        records = examples(shard, n)
        if damaged is not None and damaged[0] == shard:
            records[damaged[1]]["image"] = b"junk"
        write_tfrecord(folder / f"{shard}.tfrecord", records)
    return folder


def build(folder: Path, features: dict[str, Any] = FEATURES, **own: Any) -> pipegen.Pipeline:
    spec = {"pipegen": 1, "source": {"tfrecord": {"path": str(folder), "features": features}}, "transforms": [{"resize": {"size": 2}}]}
    return pipegen.build(spec | {"output": {"dtype": "uint8"}, "batch": {"size": 3, "remainder": "keep"}} | own)


def seen(batches: Any) -> list[tuple[int, ...]]:
    """The shard, the row and the class of each example, which its picture and its label agree on."""
    found = []
    for x, y in batches:
        for pixel, label in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert pixel[2] == label
            found.append(tuple(pixel))
    return found


def test_records_are_read_in_any_order_resumed_shared_and_split(tmp_path: Path) -> None:
    pipe = build(written(tmp_path), splits={"parts": {"train": 0.7, "validation": 0.3}})
    assert pipe.spec.model.splits.method == "hash"
    whole, others = seen(pipe.dataset("train")), seen(pipe["validation"])
    assert sorted(whole + others) == ALL
    assert whole != sorted(whole)
    assert seen(pipe.dataset("train", epoch=1)) != whole
    for step in (1, 4):
        assert seen(pipe.dataset("train", step=step)) == whole[3 * step :]
    assert pipe.labels("train").tolist() == [label for *_, label in sorted(whole)]  # type: ignore[union-attr]


@pytest.mark.nightly
def test_strata_read_the_labels_first(tmp_path: Path) -> None:
    stratified = build(written(tmp_path), splits={"parts": {"train": 0.5, "validation": 0.5}, "stratify": "label"})
    assert stratified.spec.model.splits.method == "random"
    assert {label for *_, label in seen(stratified["validation"])} == {0, 1, 2, 3}


@pytest.mark.nightly
def test_hosts_take_their_shares(tmp_path: Path) -> None:
    pipe = build(written(tmp_path), batch={"size": 4, "remainder": "drop"})
    whole, halves = seen(pipe.dataset("train")), [seen(pipe.dataset("train", shard=(i, 2))) for i in range(2)]
    taken = [half[2 * step : 2 * step + 2] for step in range(5) for half in halves]
    assert [record for share in taken for record in share] == whole[:20]


def test_other_features_come_along(tmp_path: Path) -> None:
    features = {
        "image": {"kind": "image"},
        "label": {"kind": "label", "key": "name", "classes": [f"class {i}" for i in range(4)]},
        "point": {"kind": "tensor", "shape": [2]},
    }
    pipe = build(written(tmp_path), features, output={"x": ["image", "point"], "dtype": "uint8"})
    for (image, point), label in pipe["train"]:
        assert image.numpy()[:, 0, 0, :2].tolist() == point.numpy().tolist()
        assert image.numpy()[:, 0, 0, 2].tolist() == label.numpy().tolist()


def test_a_damaged_record_is_named_or_skipped(tmp_path: Path) -> None:
    folder = written(tmp_path / "d", damaged=(1, 2))
    with pytest.raises(DataError, match=r"cannot decode \S+/1\.tfrecord#2 \("):
        seen(build(folder).dataset("train"))
    report = tmp_path / "damaged.jsonl"
    pipe = build(folder, errors={"decode": {"skip": {"max_fraction": 0.2, "report": str(report)}}})
    found = seen(pipe.dataset("train"))
    assert (len(found), len(set(found))) == (22, 21), "another one took its place"
    assert json.loads(report.read_text())["file"] == f"{folder}/1.tfrecord#2"


def test_a_shard_that_changes_is_an_error(tmp_path: Path) -> None:
    pipe = build(written(tmp_path))
    seen(pipe["train"])
    whole = (tmp_path / "3.tfrecord").read_bytes()
    (tmp_path / "3.tfrecord").write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"3\.tfrecord has .* bytes and had"):
        next(iter(pipe["train"]))
    with pytest.raises(SpecError, match="is damaged at byte"):
        build(tmp_path)
