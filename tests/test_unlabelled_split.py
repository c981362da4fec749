"""A split called `predict` whose records have no labels, beside splits that have some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import field_writers as fields
import numpy as np
import pytest
from PIL import Image

import pipegen
from pipegen.errors import SpecError
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from pathlib import Path

STEPS = [{"resize": {"size": 8}}, "random_flip"]
BY = {"batch": {"size": 4, "remainder": "keep"}, "runtime": {"jit": "never", "cache": "none"}}


def write(folder: Path, count: int, classes: tuple[str, ...]) -> None:
    for i in range(count):
        path = folder / classes[i % len(classes)] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (10 * i, 50, len(folder.name))).save(path)


def folders(root: Path) -> dict[str, Any]:
    write(root / "train", 8, ("cat", "dog"))
    write(root / "test", 6, ("",))
    train = {"image_folder": {"path": str(root / "train")}}
    return {"train": train, "predict": {"image_folder": {"path": str(root / "test"), "labels": "none"}}}


def tables(root: Path) -> dict[str, Any]:
    folders(root)
    rows = "\n".join(f"train/{'cat' if i % 2 == 0 else 'dog'}/{i}.png,{'cat' if i % 2 == 0 else 'dog'},{i + 1}" for i in range(8))
    (root / "train.csv").write_text(f"file,breed,trust\n{rows}\n")
    (root / "test.csv").write_text("file\n" + "\n".join(f"test/{i}.png" for i in range(6)) + "\n")
    image = {"kind": "image", "column": "file"}
    whole = {"image": image, "label": {"kind": "label", "column": "breed"}, "trust": {"kind": "weight"}}
    return {
        "predict": {"csv": {"path": str(root / "test.csv"), "features": {"image": image}}},
        "train": {"csv": {"path": str(root / "train.csv"), "features": whole}},
    }


def records(root: Path) -> dict[str, Any]:
    tf = pytest.importorskip("tensorflow")
    folders(root)
    for split, count in (("train", 8), ("test", 6)):
        with tf.io.TFRecordWriter(str(root / f"{split}.tfrecord")) as writer:
            for i in range(count):
                path = root / split / (("cat", "dog")[i % 2] if split == "train" else "") / f"{i}.png"
                held = {"image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[path.read_bytes()]))}
                if split == "train":
                    held["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i % 2]))
                writer.write(tf.train.Example(features=tf.train.Features(feature=held)).SerializeToString())
    image = {"kind": "image"}
    return {
        "train": {
            "tfrecord": {"path": str(root / "train.tfrecord"), "features": {"image": image, "label": {"kind": "label", "classes": 2}}}
        },
        "predict": {"tfrecord": {"path": str(root / "test.tfrecord"), "features": {"image": image}}},
    }


def mixed_forms(root: Path) -> dict[str, Any]:
    return {**records(root), "predict": folders(root)["predict"]}


@pytest.mark.tf
@pytest.mark.parametrize("form", [tables, *(pytest.param(form, marks=pytest.mark.nightly) for form in (folders, records, mixed_forms))])
def test_predict_gives_its_images_alone(tmp_path: Path, form: Any) -> None:
    parts = form(tmp_path)
    weight = {"output": {"x": "image", "y": "label", "sample_weight": "trust", "encode": {"label": "one_hot"}}} if form is tables else {}
    pipe = pipegen.build({"pipegen": 1, "source": {"by_split": parts}, "transforms": STEPS} | BY | weight)
    given = np.concatenate([x.numpy() for x in pipe["predict"]])
    (op, arguments), *_ = parts["predict"].items()
    alone = pipegen.build({"pipegen": 1, "source": {op: arguments}, "transforms": STEPS, "output": {"x": "image"}} | BY)
    np.testing.assert_array_equal(given, np.concatenate([x.numpy() for x in alone["predict"]]))
    assert pipe.labels("predict") is None
    assert len(pipe.files("predict")) == 6
    assert sorted(pipe.labels("train").tolist()) == [0] * 4 + [1] * 4
    first = next(iter(pipe.train))
    assert len(first) == (3 if weight else 2)
    of_train = pipegen.build({"pipegen": 1, "source": {"by_split": {"train": parts["train"]}}, "transforms": STEPS} | BY | weight)
    for one, other in zip(pipe.dataset("train", epoch=0), of_train.dataset("train", epoch=0), strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.nightly
@pytest.mark.tf
def test_it_is_looked_at_and_weighed_like_others(tmp_path: Path) -> None:
    source = {"by_split": folders(tmp_path)}
    spec = {
        "pipegen": 1,
        "source": source,
        "transforms": [{"resize": {"size": 8}}],
        "tests": [{"examples": {"split": "predict", "min": 6}}],
    } | BY
    assert not inspect(spec).diagnostics.has_errors
    pipe = pipegen.build(spec)
    assert pipe.class_weights == {0: 1.0, 1: 1.0}
    assert "cat" in str(pipe)
    assert pipe.explain("predict")


@pytest.mark.nightly
@pytest.mark.tf
def test_a_store_and_an_export_have_no_labels_of_it(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"pipegen": 1, "source": {"by_split": folders(tmp_path)}, "transforms": STEPS} | BY
    pipe = pipegen.build(spec)
    pipegen.prepare(spec, tmp_path / "store")
    stored = pipegen.build(tmp_path / "store" / "prepared.pipegen.yaml", runtime={"jit": "never"})
    for split in ("train", "predict"):
        for one, other in zip(pipe.dataset(split), stored.dataset(split), strict=True):
            for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (one, other)), strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    pipe.export(tmp_path / "out", split="predict")
    assert '"label"' not in (tmp_path / "out" / "metadata.jsonl").read_text()


@pytest.mark.parametrize("other", ["validation", "test"])
def test_other_splits_need_labels(tmp_path: Path, other: str) -> None:
    parts = folders(tmp_path)
    with pytest.raises(SpecError) as raised:
        pipegen.build({"pipegen": 1, "source": {"by_split": {"train": parts["train"], other: parts["predict"]}}, "transforms": STEPS})
    assert "one called `predict` may be without labels" in str(raised.value)


def test_several_labels_are_needed_everywhere(tmp_path: Path) -> None:
    parts = tables(tmp_path)
    parts["train"]["csv"]["features"]["label"]["separator"] = ","
    del parts["train"]["csv"]["features"]["trust"]
    found = inspect({"pipegen": 1, "source": {"by_split": parts}, "transforms": STEPS}).diagnostics
    assert any("`train` has a feature `label` and `predict` has none" in d.message for d in found)


UNKNOWN = (1, 5, 6)
"""The records of `unknown` without a label."""
BY_NUMBER = {*fields.FULL, "tfds"}
"""Sources whose labels are class indices."""


def unknown(op: str, path: Path) -> tuple[dict[str, Any], Any]:
    """Records of a source, of which some have a label that stands for none."""
    path.mkdir()
    held = [record | {"label": "nobody"} if i in UNKNOWN else record for i, record in enumerate(fields.records(2))]
    wanted = {"image": fields.KINDS["image"], "label": fields.KINDS["label"] | {"unlabelled": [-1 if op in BY_NUMBER else "nobody"]}}
    source, data = fields.WRITERS[op](path, held, wanted)
    return {"pipegen": 1, "source": {op: source}, "transforms": [{"resize": {"size": 16}}]} | BY, data


def seen(dataset: Any) -> list[bytes]:
    """The images of a dataset, as bytes, in order."""
    return [image.tobytes() for batch in dataset for image in (batch[0] if isinstance(batch, tuple) else batch).numpy()]


PARTS = {"none": {}, "random": {"train": 0.5, "validation": 0.5}, "hash": {"train": 0.5, "validation": 0.5}}


@pytest.mark.tf
@pytest.mark.by_day(3)
@pytest.mark.parametrize("method", [*PARTS])
@pytest.mark.parametrize("op", [*fields.WRITERS])
def test_records_without_a_label_are_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str, method: str) -> None:
    """The same from every source, whatever divides the others: each record is in one split, and none of `predict` has a label."""
    monkeypatch.chdir(tmp_path)
    spec, data = unknown(op, tmp_path / "data")
    parts = {"splits": {"parts": PARTS[method], "method": method}} if PARTS[method] else {}
    pipe = pipegen.build(spec | parts, data=data)
    images = [pixels.astype(np.float32).tobytes() for pixels in fields.as_arrays(fields.records(2), ["image"])["image"]]
    predicted = seen(pipe["predict"])
    assert sorted(predicted) == sorted(images[i] for i in UNKNOWN)
    assert seen(pipe["predict"]) == predicted
    assert pipe.labels("predict") is None
    assert pipe.class_names == fields.CLASSES
    others = [name for name in pipe.splits if name != "predict"]
    assert set(others) == {*PARTS[method]} or others == ["train"]
    labelled = {}
    for name in others:
        for batch in pipe.dataset(name):
            labelled |= {image.tobytes(): pipe.class_names[label] for image, label in zip(*(part.numpy() for part in batch), strict=True)}
    assert labelled == {image: fields.CLASSES[i % 3] for i, image in enumerate(images) if i not in UNKNOWN}


@pytest.mark.tf
@pytest.mark.nightly
@pytest.mark.parametrize("op", ["tfrecord", "csv", "arrays"])
def test_they_are_kept_shared_and_resumed_like_others(tmp_path: Path, op: str) -> None:
    spec, data = unknown(op, tmp_path / "data")
    plain = seen(pipegen.build(spec, data=data)["predict"])
    for cache in ("memory", {"disk": str(tmp_path / "cache")}):
        pipe = pipegen.build(spec, data=data, runtime={"cache": cache}, allow_write=[str(tmp_path)])
        assert len(seen(pipe.dataset("train"))) == fields.COUNT - len(UNKNOWN)  # whose cache also holds labels, of records
        assert seen(pipe["predict"]) == seen(pipe["predict"]) == plain
    assert sorted(seen(pipe.dataset("predict", shard=(0, 2))) + seen(pipe.dataset("predict", shard=(1, 2)))) == sorted(plain)
    if data is None:
        pipegen.prepare(spec, tmp_path / "store")
        assert seen(pipegen.build(tmp_path / "store" / "prepared.pipegen.yaml")["predict"]) == plain
    pipe.export(tmp_path / "out", split="predict")
    assert '"label"' not in (tmp_path / "out" / "metadata.jsonl").read_text()


@pytest.mark.tf
def test_predict_without_weights_gives_its_images_alone(tmp_path: Path) -> None:
    parts = tables(tmp_path)
    train = parts["train"]["csv"]
    own = {name: feature for name, feature in train["features"].items() if name != "trust"}
    source = {"by_split": {"train": parts["train"], "predict": {"csv": train | {"features": own}}}}
    pipe = pipegen.build({"pipegen": 1, "source": source, "transforms": STEPS, "output": {"sample_weight": "trust"}} | BY)
    assert len(next(iter(pipe.train))) == 3
    assert not isinstance(next(iter(pipe["predict"])), tuple)


def test_what_predict_lacks_is_not_an_input(tmp_path: Path) -> None:
    parts = tables(tmp_path)
    said = "`label` has no values in the split `predict`, so it cannot be an input"
    assert said in refused({"pipegen": 1, "source": {"by_split": parts}, "transforms": STEPS, "output": {"x": ["image", "label"]}})
    train = parts["train"]["csv"]
    train["features"]["label"] |= {"unlabelled": ["dog"]}
    spec = {"pipegen": 1, "source": {"csv": train}, "transforms": STEPS, "output": {"x": ["image", "label"], "y": "trust"}}
    assert said in refused(spec)


@pytest.mark.tf
@pytest.mark.parametrize("labels", ["none", "folder"])
def test_labels_of_a_joined_table_may_be_missing(tmp_path: Path, labels: str) -> None:
    write(tmp_path / "photos", 6, ("cat", "dog"))
    paths = [f"{'cat' if i % 2 == 0 else 'dog'}/{i}.png" for i in range(6)]
    rows = "\n".join(f"{path},{'' if i > 3 else 'ab'[i // 2]}" for i, path in enumerate(paths))
    (tmp_path / "t.csv").write_text(f"file,breed\n{rows}\n")
    features = {"breed": {"kind": "label", "unlabelled": [""]}}
    join = {"table": {"csv": {"path": str(tmp_path / "t.csv")}}, "on": {"path": "file"}}
    source = {"path": str(tmp_path / "photos"), "labels": labels, "join": join, "features": features}
    pipe = pipegen.build({"pipegen": 1, "source": {"image_folder": source}, "transforms": STEPS, "output": {"y": "breed"}} | BY)
    assert {file.rpartition("photos/")[2] for file in pipe.files("predict")} == set(paths[4:])
    assert sorted(label for _, batch in pipe.dataset("train") for label in batch.numpy().tolist()) == [0, 0, 1, 1]
    assert all(not isinstance(batch, tuple) for batch in pipe["predict"])


def refused(spec: dict[str, Any], **data: Any) -> str:
    with pytest.raises(SpecError) as raised:
        pipegen.build(spec, **data)
    return str(raised.value)


def test_a_part_of_labelled_records_takes_none_without(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y,part\n1,a,p\n2,,p\n3,b,q\n4,,q\n5,a,p\n")
    features = {"x": {"kind": "tensor"}, "y": {"kind": "label", "unlabelled": [""]}}
    spec = {"pipegen": 1, "source": {"csv": {"path": str(tmp_path / "t.csv"), "features": features}}, "output": {"x": "x", "y": "y"}}
    by_value = {"train": {"part": ["p"]}, "validation": {"part": ["q"]}}
    assert f"1 record of `train` has no label, such as {tmp_path}/t.csv:3" in refused(spec | {"splits": {"parts": by_value}})
    assert "so `parts` cannot set its size" in refused(spec | {"splits": {"parts": {"train": 0.5, "predict": 0.5}}})
    (tmp_path / "t.csv").write_text("x,y,part\n1,a,p\n2,b,p\n")
    assert "`predict` would be empty: every example has a label" in refused(spec)
    (tmp_path / "t.csv").write_text("x,y,part\n1,,p\n2,,p\n")
    assert "`unlabelled` takes all 2 labels of `y`" in refused(spec)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ({"unlabelled": ["-1"], "map": {"-1": "x"}}, "stands for no class, and so has `map`"),
        ({"unlabelled": ["none"], "map": {"?": "none"}}, "`unlabelled` takes stored values: '?'"),
        ({"unlabelled": ["x"], "ignore": ["x"]}, "stands for no class, and so has `ignore`"),
        ({"unlabelled": ["x"], "classes": ["x", "y"]}, "stands for no class, and so has `classes`"),
        ({"unlabelled": [""], "separator": ";"}, "any number of classes, so none is missing"),
        ({"kind": "tensor", "unlabelled": [""]}, "unlabelled` belongs to labels"),
    ],
)
def test_values_that_stand_for_no_class_stand_for_nothing_else(label: dict[str, Any], said: str) -> None:
    spec = {"pipegen": 1, "source": {"csv": {"path": "t.csv", "features": {"x": {"kind": "tensor"}, "y": {"kind": "label"} | label}}}}
    assert said in refused(spec | {"output": {"x": "x"}})


@pytest.mark.parametrize("within", ["mix", "by_split"])
def test_sources_with_splits_of_their_own_say_what_to_write(within: str) -> None:
    part = {"csv": {"path": "t.csv", "features": {"x": {"kind": "tensor"}, "y": {"kind": "label", "unlabelled": [""]}}}}
    inner = {"epoch": 4, "parts": {"a": {"weight": 1, "source": part}}} if within == "mix" else {"train": part}
    assert "`unlabelled`" in refused({"pipegen": 1, "source": {within: inner}, "output": {"x": "x", "y": "y"}})
