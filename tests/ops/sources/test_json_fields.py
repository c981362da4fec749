"""Fields of members that are JSON, as img2dataset and others write them: labels, weights and tensors, at any depth."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import WRITERS, png

import pipegen
from pipegen.errors import DataError, OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.records.json_fields import field_of, taken_apart

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 12
FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "key": "png"},
    "label": {"kind": "label", "key": "json.label", "classes": 3},
    "name": {"kind": "label", "key": "json.meta.name", "classes": ["a", "b"]},
    "box": {"kind": "tensor", "key": "json.boxes.0", "shape": [4]},
    "score": {"kind": "tensor", "key": "json.score"},
    "weight": {"kind": "weight", "key": "json.meta.weight"},
}


def about(i: int) -> dict[str, Any]:
    boxes = [[i, 0.5, 2, 0], [0, 0, 1, 1]]
    return {"label": i % 3, "score": i / 4, "boxes": boxes, "meta": {"name": "ab"[i % 2], "weight": 1 + i % 2}, "caption": "Größe"}


def written(folder: Path, op: str, **changes: Any) -> Path:
    every = [{**about(i), **(changes if i == COUNT - 1 else {})} for i in range(COUNT)]
    records = [{"png": png(i, i, i), "json": one if op == "mds" else json.dumps(one)} for i, one in enumerate(every)]
    return WRITERS[op](folder / f"a.{'tar' if op == 'webdataset' else op}", records)


def spec(file: Path, op: str, features: dict[str, Any] = FEATURES, **more: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {op: {"path": str(file), "features": features}},
        "splits": {"method": "random", "parts": {"train": 0.5, "validation": 0.5}},
        "transforms": [{"resize": {"size": 2}}],
        "batch": {"size": 2, "remainder": "keep"},
        **more,
    }


@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "zip", "mds"])
def test_fields_of_json_are_features(tmp_path: Path, op: str) -> None:
    output = {"x": "image", "y": ["label", "name", "box", "score"], "sample_weight": "weight"}
    pipe = pipegen.build(spec(written(tmp_path, op), op, output=output), runtime={"jit": "never"})
    seen = 0
    for split in pipe.splits:
        for x, (label, name, box, score), weight in pipe.dataset(split, epoch=0).as_numpy_iterator():
            for k, i in enumerate(x[:, 0, 0, 0].astype(int).tolist()):
                own = about(i)
                assert (int(label[k]), int(name[k]), float(weight[k])) == (
                    own["label"],
                    "ab".index(own["meta"]["name"]),
                    own["meta"]["weight"],
                )
                np.testing.assert_array_equal(box[k], np.float32(own["boxes"][0]))
                assert float(score[k]) == own["score"]
                seen += 1
    assert seen == COUNT


@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "mds"])
def test_labels_are_found_by_reading_them_once(tmp_path: Path, op: str) -> None:
    features = {"image": FEATURES["image"], "label": {"kind": "label", "key": "json.meta.name"}}
    pipe = pipegen.build(spec(written(tmp_path, op), op, features))
    assert pipe.class_names == ("a", "b")


@pytest.mark.tf
@pytest.mark.parametrize("op", ["webdataset", "mds"])
def test_a_record_that_lacks_a_field_is_named(tmp_path: Path, op: str) -> None:
    features = {"image": FEATURES["image"], "label": FEATURES["label"], "box": FEATURES["box"]}
    made = spec(written(tmp_path, op, boxes=[]), op, features, output={"x": "image", "y": "box"})
    pipe = pipegen.build(made, runtime={"jit": "never"})
    with pytest.raises(DataError, match=r"a\.\w+#11.*has no 'boxes\.0'"):
        assert [len(list(pipe.dataset(split, epoch=0))) for split in pipe.splits]


@pytest.mark.parametrize(("op", "key", "kind", "says"), [
    ("mds", "json.lable", "label", "has no 'lable', but 'label'"),
    ("mds", "json.boxes.7", "tensor", "has no 'boxes.7'"),
    ("mds", "json.meta", "tensor", "'meta' holds"),
    ("mds", "json", "label", "holds `json`"),
    ("mds", "png.a", "label", "no column 'png.a'"),
    ("mds", "json.label", "image", "is a picture"),
    ("webdataset", "json.lable", "label", "has no 'lable', but 'label', 'score', 'boxes', 'meta', 'caption'"),
    ("webdataset", "json.meta.site", "label", "has no 'meta.site', but 'name', 'weight'"),
    ("webdataset", "json.boxes.7", "tensor", "has no 'boxes.7'"),
    ("webdataset", "json.meta", "tensor", "'meta' holds"),
    ("webdataset", "xml.json.a", "label", "no member with the ending 'xml.json'"),
])  # fmt: skip
def test_a_field_that_is_not_there_is_named(tmp_path: Path, op: str, key: str, kind: str, says: str) -> None:
    features = {
        "image": FEATURES["image"],
        "other": {"kind": kind, "key": key, **({"classes": 3} if kind == "label" else {"shape": [4]} if kind == "tensor" else {})},
    }
    file = written(tmp_path, op)
    with pytest.raises(OpError) as raised:
        sources()[op].model_validate({"path": str(file), "features": features}).list(tmp_path)
    assert (raised.value.code, says in raised.value.message) == ("PG431", True)


def test_a_picture_is_no_field_of_json() -> None:
    with pytest.raises(ValueError, match="is a field of JSON, which is text or numbers"):
        sources()["webdataset"].model_validate({"path": "a.tar", "features": {"image": {"kind": "image", "key": "json.image"}}})


@pytest.mark.parametrize(("key", "member", "path"), [
    ("json", "json", ()), ("json.a", "json", ("a",)), ("meta.json.a.0", "meta.json", ("a", "0")), ("JSON.a", "JSON", ("a",)),
    ("a.json", "a.json", ()), ("seg.png", "seg.png", ()), ("jsonl.a", "jsonl.a", ()),
])  # fmt: skip
def test_a_key_is_a_member_and_a_path(key: str, member: str, path: tuple[str, ...]) -> None:
    assert taken_apart(key) == (member, path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"no", b"[]", b"3", b"null", b'{"a": null}', b'{"a": {}}', b'{"a": [[1], [1, 2]]}', b"\xff"]
)
def test_what_is_no_field_is_an_error_and_nothing_else(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        field_of(content, ("a",))
