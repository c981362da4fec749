"""Pipelines on files of records that are mapped into memory, from the bytes to the batch."""

from __future__ import annotations

import json
from pipes import at
from typing import TYPE_CHECKING, Any

import pytest
from record_files import WRITERS, examples
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
SUFFIX = {"tfrecord": "tfrecord", "webdataset": "tar", "zip": "zip", "deflated": "zip", "mds": "mds"}
COUNTS = (9, 5, 8)
ALL = [(shard, row, (shard + row) % 4) for shard, n in enumerate(COUNTS) for row in range(n)]
FORMATS = [pytest.param(form, marks=() if form == "tfrecord" else pytest.mark.nightly) for form in SUFFIX]


def written(folder: Path, form: str = "tfrecord", damaged: tuple[int, int] | None = None) -> Path:
    for shard, n in enumerate(COUNTS):
        records = examples(shard, n)
        if damaged is not None and damaged[0] == shard:
            records[damaged[1]]["image"] = b"junk"
        own = {"deflated": True} if form == "deflated" else {}
        WRITERS[_source(form)](folder / f"{shard}.{SUFFIX[form]}", records, **own)
    return folder


def _source(form: str) -> str:
    return "zip" if form == "deflated" else form


def build(folder: Path, features: dict[str, Any] = FEATURES, form: str = "tfrecord", **own: Any) -> pipegen.Pipeline:
    source = {_source(form): {"path": str(folder), "features": features}}
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "output": {"dtype": "uint8"}}
    return pipegen.build(spec | {"batch": {"size": 3, "remainder": "keep"}, "runtime": {"cache": "none"}} | own, allow_write=["/"])


def seen(batches: Any) -> list[tuple[int, ...]]:
    """The shard, the row and the class of each example, which its picture and its label agree on."""
    found = []
    for x, y in batches:
        for pixel, label in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert pixel[2] == label
            found.append(tuple(pixel))
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_records_are_read_in_any_order_resumed_and_split(tmp_path: Path, form: str) -> None:
    pipe = build(written(tmp_path, form), form=form, splits={"parts": {"train": 0.7, "validation": 0.3}})
    assert pipe.spec.model.splits.method == "hash"
    whole, others = seen(at(pipe)), seen(pipe["validation"])
    assert sorted(whole + others) == ALL
    assert whole != sorted(whole)
    for step in range(-(-len(whole) // 3)) if form != "tfrecord" else (3,):
        assert seen(at(pipe, step=step)) == whole[3 * step :]
    assert pipe.labels("train").tolist() == [label for *_, label in sorted(whole)]  # type: ignore[union-attr]


@pytest.mark.nightly
@pytest.mark.parametrize("form", SUFFIX)
def test_strata_read_the_labels_first(tmp_path: Path, form: str) -> None:
    stratified = build(written(tmp_path, form), form=form, splits={"parts": {"train": 0.5, "validation": 0.5}, "stratify": "label"})
    assert stratified.spec.model.splits.method == "random"
    assert {label for *_, label in seen(stratified["validation"])} == {0, 1, 2, 3}


@pytest.mark.nightly
@pytest.mark.parametrize("form", SUFFIX)
def test_hosts_take_their_shares(tmp_path: Path, form: str) -> None:
    pipe = build(written(tmp_path, form), form=form, batch={"size": 4, "remainder": "drop"})
    whole, halves = seen(at(pipe)), [seen(pipe.dataset("train", shard=(i, 2))) for i in range(2)]
    taken = [half[2 * step : 2 * step + 2] for step in range(5) for half in halves]
    assert [record for share in taken for record in share] == whole[:20]


@pytest.mark.nightly
@pytest.mark.parametrize("form", SUFFIX)
@pytest.mark.parametrize("cache", ["none", "memory", "disk"])
def test_other_features_come_along_and_caches_keep_labels(tmp_path: Path, form: str, cache: str) -> None:
    features = {
        "image": {"kind": "image"},
        "label": {"kind": "label", "key": "name", "classes": [f"class {i}" for i in range(4)]},
        "point": {"kind": "tensor", "shape": [2]},
    }
    runtime = {"runtime": {"cache": {"disk": str(tmp_path / "c")} if cache == "disk" else cache}}
    pipe = build(written(tmp_path / "d", form), features, form, output={"x": ["image", "point"], "dtype": "uint8"}, **runtime)
    for epoch in range(2):
        count = 0
        for (image, point), label in pipe.dataset("train", epoch=epoch):
            assert image.numpy()[:, 0, 0, :2].tolist() == point.numpy().tolist()
            assert image.numpy()[:, 0, 0, 2].tolist() == label.numpy().tolist()
            count += len(label)
        assert count == len(ALL)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_a_damaged_record_is_named_or_skipped(tmp_path: Path, form: str) -> None:
    folder = written(tmp_path / "d", form, damaged=(1, 2))
    with pytest.raises(DataError, match=rf"cannot decode \S+/1\.{SUFFIX[form]}#2 \("):
        seen(build(folder, form=form).dataset("train"))
    report = tmp_path / "damaged.jsonl"
    pipe = build(folder, form=form, errors={"decode": {"skip": {"max_fraction": 0.2, "report": str(report)}}})
    found = seen(at(pipe))
    assert (len(found), len(set(found))) == (22, 21), "another one took its place"
    assert json.loads(report.read_text().splitlines()[1])["file"] == f"{folder}/1.{SUFFIX[form]}#2"


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["webdataset", "deflated"])
def test_a_record_without_one_of_its_members_is_named(tmp_path: Path, form: str) -> None:
    records = examples(0, 6)
    del records[3]["image"]
    WRITERS[_source(form)](tmp_path / f"a.{SUFFIX[form]}", records)
    with pytest.raises(DataError, match=r"#3: it has no `image`"):
        seen(build(tmp_path, form=form).dataset("train"))


def test_a_shard_that_changes_is_an_error(tmp_path: Path) -> None:
    pipe = build(written(tmp_path))
    assert len(next(iter(pipe["train"]))[1]) == 3
    whole = (tmp_path / "2.tfrecord").read_bytes()
    (tmp_path / "2.tfrecord").write_bytes(whole[:-100])
    with pytest.raises(DataError, match=r"2\.tfrecord has .* bytes, but had"):
        next(iter(pipe["train"]))
    with pytest.raises(SpecError, match="is damaged at byte"):
        build(tmp_path)


@pytest.mark.nightly
def test_checksums_of_records_are_compared_where_that_is_asked_for(tmp_path: Path) -> None:
    folder = written(tmp_path / "d")
    path = folder / "1.tfrecord"
    content = bytearray(path.read_bytes())
    content[content.index(b"class 2")] ^= 1  # of record 1, in a key that the pipeline does not read
    path.write_bytes(content)
    assert len(seen(build(folder).dataset("train"))) == len(ALL)
    plain = {"pipegen": 1, "transforms": [{"resize": {"size": 2}}], "batch": {"size": 3, "remainder": "keep"}}
    sources = [{"tfrecord": {"path": str(folder), "features": FEATURES, "verify": verify}} for verify in (False, True)]
    unverified, verified = (pipegen.build(plain | {"source": source}) for source in sources)
    assert unverified.spec_hash == verified.spec_hash
    with pytest.raises(DataError, match=r"cannot read \S+/1\.tfrecord#1: corrupted record"):
        list(verified.dataset("train"))
    spec = tmp_path / "a.pipegen.yaml"
    spec.write_text(json.dumps(plain | {"source": sources[0]}))
    result = CliRunner().invoke(app, ["validate", str(spec), "--data=all"], prog_name="pipegen")
    assert result.exit_code == 1
    assert "1.tfrecord#1: corrupted record" in result.output


@pytest.mark.nightly
@pytest.mark.parametrize("form", SUFFIX)
def test_what_is_derived_maps_the_files_itself(tmp_path: Path, form: str) -> None:
    pipe = build(written(tmp_path, form), form=form)
    derived = pipe.dataset("train").map(lambda x, y: (x, y))
    assert seen(derived) == seen(at(pipe))
    text = pipe.explain(physical=True, all=True) if form == "tfrecord" else pipe.explain(physical=True)
    assert "mapped files" in str(text)


@pytest.mark.nightly
def test_a_shard_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert len(seen(build(folder).dataset("train"))) == len(ALL)
    path = folder / "1.tfrecord"
    size = path.stat().st_size
    WRITERS["tfrecord"](
        path, [{**record, "image": examples(7, row + 1)[row]["image"]} for row, record in enumerate(examples(1, COUNTS[1]))]
    )
    assert path.stat().st_size == size, "TensorFlow takes a file of one name and size for the same"
    pixels = [x.numpy()[:, 0, 0, 0].tolist() for x, _ in build(folder).dataset("train")]
    assert sorted(value for batch in pixels for value in batch) == [0] * COUNTS[0] + [2] * COUNTS[2] + [7] * COUNTS[1]


@pytest.mark.tf
@pytest.mark.nightly
def test_tensorflow_has_nothing_to_say_about_names_in_the_graph(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    WRITERS["webdataset"](tmp_path / "a.tar", examples(0, 12))
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
    spec = {
        "pipegen": 1,
        "source": {"webdataset": {"path": str(tmp_path / "*.tar"), "features": features}},
        "transforms": [{"resize": {"size": 24}}, "random_flip"],
        "batch": {"size": 4},
    }
    pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})
    with caplog.at_level("WARNING", logger="tensorflow"):
        for _ in pipe.dataset("train", epoch=0).take(1):
            pass
    assert [record.getMessage() for record in caplog.records if record.name == "tensorflow"] == []
