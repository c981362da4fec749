"""`map` and `ignore` of labels of arrays and of records: classes under other names, and records that are in no split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import example, examples, write_tfrecord
from test_mixed_shards import COUNTS, FORMS, written

import pipegen
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

ALL = [(shard, row, (shard + row) % 4) for shard, n in enumerate(COUNTS) for row in range(n)]


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.zarr.SMALL", 0)


def build(source: dict[str, Any], **own: Any) -> Any:
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8"}}
    spec |= {"batch": {"size": 3, "remainder": "keep"}, "runtime": {"jit": "never", "cache": "none"}}
    return pipegen.build(spec | own)


def seen(pipe: Any, split: str) -> list[tuple[int, int, int, str]]:
    """The shard, the row and the stored class of each example, and the class that its label names."""
    found = []
    for x, y in pipe.dataset(split):
        for pixel, label in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            found.append((*pixel, pipe.class_names[label]))
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("form", [pytest.param(form, marks=[] if form == "tfrecord" else pytest.mark.nightly) for form in FORMS])
def test_records_have_the_classes_that_are_meant(form: str, tmp_path: Path) -> None:
    """Of the stored classes 0 to 3 (of tables, their names), 0 and 1 are one, and 3 is left out."""
    source = written(tmp_path, form)
    (arguments,) = source.values()
    names = ["d0", "c1", "d2", "c3"] if form == "parquet" else [0, 1, 2, 3]
    chosen = {"map": {names[0]: "low", names[1]: "low", names[2]: "high"}, "ignore": [names[3]]}
    arguments["features"] = {"image": {"kind": "image"}, "label": {"kind": "label"} | chosen}
    pipe = build(source, splits={"parts": {"train": 0.7, "validation": 0.3}, "method": "random"})
    assert pipe.class_names == ("high", "low")
    train, others = seen(pipe, "train"), seen(pipe, "validation")
    meant = {0: "low", 1: "low", 2: "high"}
    assert sorted(train + others) == [(*record, meant[record[2]]) for record in ALL if record[2] in meant]
    assert len(train) == round(0.7 * len(train + others)), "of those that count"
    assert [pipe.class_names[label] for label in pipe.labels("validation")] == [name for *_, name in others]
    if form != "gzip":
        return
    whole = build(written(tmp_path / "w", form))
    by_key = dict(zip(whole._manifest.keys("train"), whole._manifest.ids("train").tolist(), strict=True))
    own = dict(zip(pipe._manifest.keys("train"), pipe._manifest.ids("train").tolist(), strict=True))
    assert own.items() <= by_key.items(), "a record keeps its id"


def test_stored_numbers_below_zero_and_names_can_be_left_out(tmp_path: Path) -> None:
    for name, values in (("numbers", [-1, 7, 5, -1, 5]), ("names", ["?", "cat", "dog", "?", "dog"])):
        records = [{**record, "label": value} for record, value in zip(examples(0, 5), values, strict=True)]
        path = write_tfrecord(tmp_path / name / "0.tfrecord", map(example, records))
        label: dict[str, Any] = {"kind": "label", "ignore": [values[0]]}
        label |= {"offset": 5, "classes": 3} if name == "numbers" else {"map": {"dog": "hound"}}
        source = {"tfrecord": {"path": str(path), "features": {"image": {"kind": "image"}, "label": label}}}
        pipe = build(source)
        assert pipe.num_examples("train") == 3
        assert {(row, name) for _, row, _, name in seen(pipe, "train")} == (
            {(1, "7"), (2, "5"), (4, "5")} if name == "numbers" else {(1, "cat"), (2, "hound"), (4, "hound")}
        )


@pytest.mark.parametrize("stored", [[3, 0, 1, 2, 0, 3], ["x", "a", "b", "c", "a", "x"], [b"x", b"a", b"b", b"c", b"a", b"x"]])
def test_rows_of_arrays_have_the_classes_that_are_meant(stored: list[Any]) -> None:
    names = ["a", "b", "c", "x"] if not isinstance(stored[0], int) else [0, 1, 2, 3]
    images = np.arange(6, dtype=np.uint8)[:, None, None, None] + np.zeros((6, 2, 2, 3), np.uint8)
    label = {"kind": "label", "map": {names[0]: "one", names[1]: "one"}, "ignore": [names[3]]}
    features = {"image": {"kind": "image"}, "label": label, "weight": {"kind": "weight"}}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "output": {"sample_weight": "weight", "dtype": "uint8"}}
    spec |= {"batch": {"size": 4, "remainder": "keep"}, "shuffle": "none", "runtime": {"jit": "never", "cache": "none"}}
    pipe = pipegen.build(spec, data={"image": images, "label": np.array(stored), "weight": np.arange(6.0)})
    ((x, y, w),) = list(pipe.train)
    assert x.numpy()[:, 0, 0, 0].tolist() == w.numpy().tolist() == [1, 2, 3, 4]
    assert [pipe.class_names[label] for label in y.numpy()] == ["one", "one", str(names[2]), "one"]
    assert list(pipe._manifest.keys("train")) == ["1", "2", "3", "4"], "rows keep their numbers"


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = write_tfrecord(tmp_path / "0.tfrecord", map(example, examples(0, 5)))
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"map": {0: "a"}, "classes": ["b"]}, "PG105", "source.tfrecord.features.label.map.0"),
        ({"ignore": [0, 1, 2, 3]}, "PG402", "source.tfrecord.features.label.ignore"),
        ({"map": {0: "a"}, "classes": ["a"]}, "PG420", "source.tfrecord.features.label.classes"),
        ({"ignore": 3}, "PG105", "source.tfrecord.features.label.ignore"),
    ]
    for more, code, place in cases:
        features = {"image": {"kind": "image"}, "label": {"kind": "label", **more}}
        with pytest.raises(SpecError) as told:
            build({"tfrecord": {"path": str(path), "features": features}})
        (finding,) = [d for d in told.value.diagnostics if d.severity.value == "error"]
        assert (finding.code, finding.labels[0].path) == (code, place)
