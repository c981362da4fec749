"""`layout: object_detection`: the keys of TensorFlow's detection records, in place of `features`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from pipes import batches
from typing import Any

import jsonschema
import numpy as np
import pytest
import record_files as files
import test_items_in_records as same
import yaml
from field_writers import CLASSES
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app
from pipegen.phases.compilation import inspect
from pipegen.spec.json_schema import json_schema

SIDES = ("xmin", "ymin", "xmax", "ymax")
WRITTEN_OUT: dict[str, dict[str, Any]] = {
    "image": {"kind": "image", "key": "image/encoded"},
    "boxes": {"kind": "boxes", "format": "rel_xyxy", "keys": [f"image/object/bbox/{side}" for side in SIDES]},
    "labels": {"kind": "label", "with": "boxes", "key": "image/object/class/label", "offset": 1},
}
OUTPUT = {"x": "image", "y": ["boxes", "labels", "boxes_valid"]}
WRITERS = {"tfrecord": files.write_tfrecord, "array_record": files.write_array_record}


def records(count: int = 12) -> list[dict[str, Any]]:
    """Records as the Object Detection API writes them; the first has no objects."""
    found = []
    for i in range(count):
        boxes = [[0.125 * k, 0.25, 0.125 * k + 0.5, 0.75] for k in range(i % 4)]
        numbers = [1 + (i + k) % 3 for k in range(i % 4)]
        sides = {f"image/object/bbox/{side}": [box[at] for box in boxes] for at, side in enumerate(SIDES)}
        texts = [CLASSES[number - 1] for number in numbers]
        classes = {"image/object/class/label": numbers, "image/object/class/text": texts, "image/object/score": [0.5] * len(boxes)}
        found.append({"image/encoded": files.png(i, 7, 9, size=(16, 16)), "image/height": 16, "image/width": 16, **sides, **classes})
    return found


def spec_of(path: Path | str, features: Mapping[str, Any] | None, op: str = "tfrecord", **own: Any) -> dict[str, Any]:
    """A spec of detection records; `features` beside the layout, which `layout` may replace."""
    source = {"path": str(path), **({"layout": "object_detection"} | own), **({"features": features} if features is not None else {})}
    return same.spec_of({op: {key: value for key, value in source.items() if value is not None}}, output=OUTPUT)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("op", WRITERS)
def test_batches_are_those_of_the_features(op: str, tmp_path: Path) -> None:
    if op == "array_record":
        pytest.importorskip("array_record")
    WRITERS[op](tmp_path / "a", records())
    specs = spec_of(tmp_path / "a", None, op), spec_of(tmp_path / "a", WRITTEN_OUT, op, layout=None)
    found, expected = (pipegen.build(spec, runtime={"jit": "never"}) for spec in specs)
    assert found.spec_hash == expected.spec_hash
    same.equal(batches(found.train), batches(expected.train))


SAME = [
    ({"labels": {"kind": "label", "classes": 3}}, {"labels": {**WRITTEN_OUT["labels"], "classes": 3}}),
    ({"boxes": {"kind": "boxes", "max": 5}}, {"boxes": {**WRITTEN_OUT["boxes"], "max": 5}}),
    (
        {"labels": {"kind": "label", "key": "image/object/class/text"}},
        {"labels": {"kind": "label", "with": "boxes", "key": "image/object/class/text"}},
    ),
    ({"labels": {"kind": "label", "offset": 0}}, {"labels": {**WRITTEN_OUT["labels"], "offset": 0}}),
    ({"boxes": {"kind": "boxes", "key": "b", "format": "xywh"}}, {"boxes": {"kind": "boxes", "key": "b", "format": "xywh"}}),
    ({"labels": {"kind": "tensor", "with": "boxes"}}, {"labels": {"kind": "tensor", "with": "boxes"}}),
    ({"score": {"kind": "tensor", "with": "boxes", "key": "image/object/score"}},) * 2,
]


@pytest.mark.parametrize(("given", "meant"), SAME)
@pytest.mark.parametrize("op", WRITERS)
def test_features_beside_it_change_or_add_single_ones(op: str, given: dict[str, Any], meant: dict[str, Any]) -> None:
    one = pipegen.load(spec_of("a", given, op))
    other = pipegen.load(spec_of("a", WRITTEN_OUT | meant, op, layout=None))
    assert dict(one.model.source.features) == dict(other.model.source.features)
    assert one.hash == other.hash


def test_a_base_and_a_child_that_changes_a_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.pipegen.yaml").write_text(yaml.safe_dump(spec_of("a", None)))
    child = {"extends": "base.pipegen.yaml", "source": {"tfrecord": {"features": {"labels": {"kind": "label", "classes": 3}}}}}
    Path("child.pipegen.yaml").write_text(yaml.safe_dump(child))
    expected = pipegen.load(spec_of("a", {"labels": {"kind": "label", "classes": 3}}))
    assert pipegen.load("child.pipegen.yaml").hash == expected.hash
    shown = CliRunner().invoke(app, ["show", "child.pipegen.yaml"], prog_name="pipegen").stdout
    assert f"# spec_hash: {expected.hash}" in shown
    Path("shown.pipegen.yaml").write_text(shown)
    assert pipegen.load("shown.pipegen.yaml").hash == expected.hash, "`show` writes the features out"


def test_parts_of_a_mix_and_of_splits_have_it(tmp_path: Path) -> None:
    parts = {name: {"tfrecord": {"path": f"{name}", "layout": "object_detection"}} for name in ("train", "validation")}
    written = {name: {"tfrecord": {"path": f"{name}", "features": WRITTEN_OUT}} for name in parts}
    mixed = [{"epoch": "longest", "parts": {name: {"source": own} for name, own in each.items()}} for each in (parts, written)]
    for word, pair in (("by_split", (parts, written)), ("mix", mixed)):
        one, other = (pipegen.load(same.spec_of({word: each}, output=OUTPUT)) for each in pair)
        assert one.hash == other.hash


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ({"features": {"boxes": {"kind": "boxes", "max": "many"}}}, "max", "is a whole number above 0, got `many`"),
        ({"features": {"boxes": {"kind": "boxes", "maximum": 3}}}, "maximum", "has no key `maximum`"),
        ({"features": {"score": {"key": "a"}}}, "score", "needs `kind`"),
        ({"features": {"score": {"kind": "tensor", "with": "box"}}}, "with", "which has no items"),
        ({"features": {"boxes": {"kind": "boxes", "key": "b", "keys": list("abcd")}}}, "- a", "are several in place of the one `key`"),
        ({"features": 3}, "features", "is a map"),
        ({"layout": "detection"}, "layout", "object_detection"),
        ({"content": "bytes"}, "content", "with `content: bytes` a record is one feature"),
        ({"layout": None}, "tfrecord", "needs `features`"),
    ],
)
def test_what_is_wrong_is_named_at_its_place(source: dict[str, Any], line: str, message: str) -> None:
    text = yaml.safe_dump(spec_of("a", source.get("features"), **{k: v for k, v in source.items() if k != "features"}), sort_keys=False)
    found = [said for said in inspect("a.pipegen.yaml", text=text).diagnostics.items if message in said.message]
    assert len(found) == 1
    assert text.splitlines()[found[0].labels[0].span.line - 1].strip().startswith(line)


def test_the_schema_of_editors_takes_it() -> None:
    check = jsonschema.Draft202012Validator(json_schema())
    assert not list(check.iter_errors(spec_of("a", None)))
    assert not list(check.iter_errors(spec_of("a", WRITTEN_OUT, layout=None)))
    assert list(check.iter_errors(spec_of("a", None, layout=None)))


@pytest.mark.by_day(1)
@pytest.mark.tf
@pytest.mark.parametrize("form", ["tfrecord", "webdataset"])
def test_prepared_shards_that_moved_without_their_description(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` finds what they hold; the boxes are those of the store."""
    monkeypatch.chdir(tmp_path)
    files.write_tfrecord(tmp_path / "a.tfrecord", records())
    named = {"labels": {"kind": "label", "classes": list(CLASSES)}}
    spec = {**spec_of("a.tfrecord", named), "transforms": [{"resize": {"size": [24, 24]}}], "shuffle": "none"}
    Path("a.pipegen.yaml").write_text(yaml.safe_dump(spec))
    assert CliRunner().invoke(app, ["prepare", "a.pipegen.yaml", "store", "--format", form], prog_name="pipegen").exit_code == 0
    (tmp_path / "moved").mkdir()
    for shard in (tmp_path / "store").glob("train-*"):
        shard.rename(tmp_path / "moved" / shard.name)
    said = CliRunner().invoke(app, ["init", "moved"], prog_name="pipegen")
    assert said.exit_code == 0, said.output
    written = yaml.safe_load(Path("moved.pipegen.yaml").read_text())
    written = {key: written[key] for key in ("pipegen", "source")} | {
        key: spec[key] for key in ("transforms", "shuffle", "output", "batch")
    }
    moved, whole = (pipegen.build(one, runtime={"jit": "never"}) for one in (written, spec))
    for (_, *found), (_, *due) in zip(batches(moved.train), batches(whole.train), strict=True):
        for one, other in zip(found, due, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4 if form == "tfrecord" else 0)
