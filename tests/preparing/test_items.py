"""A store holds what an image has any number of, such as boxes and keypoints: it gives what the spec gives, places and all."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import yaml
from PIL import Image
from test_boxed_sources import NAMES, write

import pipegen
from pipegen.errors import DataError, SpecError
from pipegen.preparing import work

pytestmark = pytest.mark.tf

RUNTIME = {"cache": "none", "jit": "never", "threads": 2}
NIGHTLY = pytest.mark.nightly
FORMATS = ("raw", "jpeg", "tfrecord", "webdataset", "array_record")
OF_RECORDS = FORMATS[2:]
POINTS = ("nose", "left", "right")
COUNT = 9
DECODE = {"decode": {"scaled": "never"}}
BLACK = {"degrees": 20, "fill": {"constant": 0}}
CROP = [DECODE, {"random_resized_crop": {"size": 32}}, "random_flip"]
RESIZED = [{"resize": {"size": [40, 48]}}, "random_flip", {"random_rotation": BLACK}]


def drawn(folder: Path, op: str) -> dict[str, Any]:
    """Photos with none to three boxes on each, as files of annotations; with masks where these can have some."""
    source = write(folder, op)
    if op == "labelme":
        source[op]["masks"] = "instances"
    if op == "coco":
        content = json.loads((folder / "boxes.json").read_text())
        for i, own in enumerate(content["annotations"]):
            own["iscrowd"] = i % 2
            x, y, width, height = own["bbox"]
            own["segmentation"] = [[x, y, x + width, y, x + width / 2, y + height]]
        (folder / "boxes.json").write_text(json.dumps(content))
        source[op]["masks"] = "instances"
    if op == "voc":
        (folder / "SegmentationObject").mkdir()
        for i in range(10):
            with Image.open(folder / "JPEGImages" / f"{i}.png") as photo:
                mask = np.zeros(photo.size[::-1], np.uint8)
            for k in range(i % 4):
                mask[8 * (i % 3) : 40, 8 * k : 8 * k + 24] = k + 1
            picture = Image.fromarray(mask, "P")
            picture.putpalette([value for k in range(256) for value in (k, k, k)])
            picture.save(folder / "SegmentationObject" / f"{i}.png")
        source[op]["masks"] = "instances"
    return source


def rows(folder: Path) -> dict[str, Any]:
    """Rows of arrays with every kind of items: boxes in parts of the image, some of them too small or beside it, with labels, scores of two
    numbers, keypoints and a mask; a named set of keypoints of the image, and any number of points without a name."""
    rng = np.random.default_rng(4)
    counts = [0, 3, 1, 0, 2, 4, 1, 2, 3]
    corners = [np.sort(rng.random((n, 2, 2)), 1).reshape(n, 4) * 1.3 for n in counts]
    masks = np.zeros((COUNT, 24, 36), np.uint8)
    for mask, n in zip(masks, counts, strict=True):
        for k in range(n):
            mask[4 * k : 4 * k + 6, 5 * k : 5 * k + 9] = k + 1

    def points(*shape: int) -> Any:
        places = rng.random((*shape, 2)) * [36, 24]
        return np.concatenate([places, rng.integers(0, 3, (*shape, 1))], -1).astype(np.float32)

    values = {
        "image": rng.integers(0, 256, (COUNT, 24, 36, 3), np.uint8),
        "things": ragged([c.astype(np.float32) for c in corners]),
        "what": ragged([rng.integers(0, 3, n) for n in counts]),
        "scores": ragged([rng.random((n, 2), np.float32) for n in counts]),
        "bodies": ragged([points(n, len(POINTS)) for n in counts]),
        "face": points(COUNT, len(POINTS)),
        "spots": ragged([points(n) for n in counts[::-1]]),
        "shown": masks,
    }
    named = {"names": list(POINTS), "mirror_pairs": [["left", "right"]]}
    features = {
        "image": {"kind": "image"},
        "things": {"kind": "boxes", "format": "rel_xyxy", "min_area": 20, "min_visibility": 0.3, "max": 3},
        "what": {"kind": "label", "classes": list(NAMES), "with": "things"},
        "scores": {"kind": "tensor", "with": "things"},
        "bodies": {"kind": "keypoints", "with": "things", **named},
        "face": {"kind": "keypoints", "outside": "keep", **named},
        "spots": {"kind": "keypoints"},
        "shown": {"kind": "mask", "with": "things", "ignore": 255},
    }
    return {"source": {"arrays": {"features": features}}, "data": values}


def ragged(given: list[Any]) -> Any:
    found = np.empty(len(given), object)
    found[:] = given
    return found


OUTPUTS = {
    "coco": {"boxes": "boxes", "there": "boxes_valid", "labels": "labels", "crowd": "crowd", "mask": "mask"},
    "voc": {"boxes": "boxes", "there": "boxes_valid", "labels": "labels", "mask": "mask"},
    "yolo": {"boxes": "boxes", "there": "boxes_valid", "labels": "labels"},
    "labelme": {"boxes": "boxes", "there": "boxes_valid", "labels": "labels", "mask": "mask"},
    "arrays": {
        "things": "things", "there": "things_valid", "what": "what", "scores": "scores", "bodies": "bodies", "face": "face",
        "spots": "spots", "found": "spots_valid", "shown": "shown",
    },
}  # fmt: skip


def spec(source: dict[str, Any], steps: list[Any], **own: Any) -> dict[str, Any]:
    op = next(iter(source))
    sections = {"source": source, "splits": {"parts": {"train": 0.7, "validation": 0.3}}, "seed": 3, "runtime": RUNTIME}
    output = {"x": "image", "y": OUTPUTS[op]}
    return {"pipegen": 1, **sections, "transforms": steps, "batch": {"size": 4, "remainder": "keep"}, "output": output, **own}


def equal(a: pipegen.Pipeline, b: pipegen.Pipeline, *epochs: int, lossy: bool = False) -> None:
    """Two pipelines give the same batches; of images a JPEG is near."""
    assert (a.splits, a.class_names) == (b.splits, b.class_names)
    for split in a.splits:
        assert list(a._manifest.keys(split)) == list(b._manifest.keys(split))
        assert (a._manifest.ids(split) == b._manifest.ids(split)).all()
        assert a.num_examples(split) == b.num_examples(split)
        for epoch in epochs:
            for (x, y), (v, w) in zip(a.dataset(split, epoch=epoch), b.dataset(split, epoch=epoch), strict=True):
                assert (x.dtype, x.shape) == (v.dtype, v.shape)
                if lossy:
                    assert np.abs(x.numpy() - v.numpy()).mean() < 40
                else:
                    np.testing.assert_array_equal(x, v)
                assert y.keys() == w.keys()
                for name, value in y.items():
                    assert (value.dtype, value.shape) == (w[name].dtype, w[name].shape), name
                    np.testing.assert_array_equal(value, w[name], err_msg=name)


def prepared(original: dict[str, Any], store: Path, form: str, data: Any = None, **how: Any) -> pipegen.Prepared:
    """Prepares with what keeps every bit, where the format can."""
    kept = (
        {} if form in ("raw", "jpeg") or how.get("shorter_side") else {"encoding": "original" if original["transforms"] == CROP else "png"}
    )
    if data is not None:
        kept = {} if form in ("raw", "jpeg") else {"encoding": "png"}
    return pipegen.prepare(original, store, format=form, verify=True, data=data, **kept, **how)  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("op", "form", "epochs", "splits"),
    [
        ("coco", "raw", [2], {"train": 10}),  # by day images without items are validated on, too
        *(
            pytest.param(op, form, [0, 2], {"train": 0.7, "validation": 0.3}, marks=NIGHTLY)
            for op in ("coco", "voc", "yolo", "labelme")
            for form in FORMATS
        ),
    ],
)
@pytest.mark.parametrize("steps", [CROP, pytest.param(RESIZED, marks=NIGHTLY)], ids=["crop", "resized"])
def test_annotated_images(op: str, form: str, epochs: list[int], splits: dict[str, Any], steps: list[Any], tmp_path: Path) -> None:
    original = spec(drawn(tmp_path / "data", op), steps, splits={"parts": splits})
    done = prepared(original, tmp_path / "store", form)
    assert done.verified == done.examples > 0
    assert len(done.changes) == (form == "jpeg")
    equal(pipegen.build(original), pipegen.build(done.spec, runtime=RUNTIME), *epochs, lossy=form == "jpeg")


@pytest.mark.parametrize(
    ("form", "epochs", "splits"),
    [
        pytest.param("raw", [1], {"parts": {"train": COUNT}}, marks=NIGHTLY),
        *(pytest.param(form, [0, 1], {"parts": {"train": 0.7, "validation": 0.3}}, marks=NIGHTLY) for form in FORMATS),
        pytest.param("jpeg", [1], {"parts": {"train": COUNT}}),
    ],
)
def test_arrays_with_every_kind_of_items(form: str, epochs: list[int], splits: dict[str, Any], tmp_path: Path) -> None:
    given = rows(tmp_path)
    steps = [
        {"rotation": {"degrees": 9, "exact": True, "fill": {"constant": 0}}},
        "random_flip",
        {"random_translation": {"x": 0.3, "fill": {"constant": 0}}},
    ]
    original = spec(given["source"], steps, splits=splits)
    done = prepared(original, tmp_path / "store", form, given["data"])
    assert done.rest == "random_flip → random_translation"
    a, b = pipegen.build(original, data=given["data"]), pipegen.build(done.spec, runtime=RUNTIME)
    assert a.element_spec == b.element_spec
    equal(a, b, *epochs, lossy=form == "jpeg")


@NIGHTLY
def test_a_cut_behind_nothing_but_reading_keeps_rules(tmp_path: Path) -> None:
    """Boxes that are too small, or beside their image, are left out in the store; those that become so are later."""
    given = rows(tmp_path)
    original = spec(given["source"], ["random_flip", {"random_resized_crop": {"size": 16}}])
    done = prepared(original, tmp_path / "store", "raw", given["data"])
    assert done.steps == "reading"
    equal(pipegen.build(original, data=given["data"]), pipegen.build(done.spec, runtime=RUNTIME), 0, 1, 2)


@NIGHTLY
@pytest.mark.parametrize(
    ("op", "form"), [("coco", "raw"), ("labelme", "raw"), ("yolo", "jpeg"), ("coco", "tfrecord"), ("voc", "array_record")]
)
def test_items_are_shrunk_as_the_step_does(op: str, form: str, tmp_path: Path) -> None:
    """`--shorter-side` gives what `resize` gives; an image that is small enough is left as it is, and so are its boxes."""
    source = drawn(tmp_path / "data", op)
    original = spec(source, [DECODE, {"random_resized_crop": {"size": 24}}])
    done = prepared(original, tmp_path / "store", form, shorter_side=32)
    resized = spec(source, [DECODE, {"resize": {"shorter_side": 32, "antialias": True}}, {"random_resized_crop": {"size": 24}}])
    equal(pipegen.build(resized), pipegen.build(done.spec, runtime=RUNTIME), 0, 1, lossy=form != "raw")
    if form == "raw":
        large = pipegen.prepare(original, tmp_path / "large", shorter_side=1000)
        equal(pipegen.build(original), pipegen.build(large.spec, runtime=RUNTIME), 0)


@NIGHTLY
def test_resume_shares_caches_and_views(tmp_path: Path) -> None:
    original = spec(drawn(tmp_path / "data", "labelme"), RESIZED)
    done = prepared(original, tmp_path / "store", "raw")
    plain = pipegen.build(done.spec, runtime=RUNTIME)
    whole = [tf.nest.flatten(batch) for batch in plain.dataset("train", epoch=1)]
    for got, wanted in zip(plain.dataset("train", epoch=1, step=1), whole[1:], strict=True):
        for x, y in zip(tf.nest.flatten(got), wanted, strict=True):
            np.testing.assert_array_equal(x, y)
    halves = [[tf.nest.flatten(b) for b in plain.dataset("train", epoch=1, shard=(i, 2))] for i in (0, 1)]
    for first, second, both in zip(*halves, whole, strict=True):
        for x, y, z in zip(first, second, both, strict=True):
            np.testing.assert_array_equal(np.concatenate([x, y]), z)
    for cache in ("memory", {"disk": str(tmp_path / "kept")}, "auto"):
        equal(pipegen.build(original), pipegen.build(done.spec, runtime={**RUNTIME, "cache": cache}), 0, 1)
    sheets = [np.asarray(pipe.preview("train", rows=3, draws=1)) for pipe in (plain, pipegen.build(original))]
    drawn_ones = [sheet[:, sheet.shape[1] // 2 :] for sheet in sheets]  # beside what is stored, which is behind the resize
    np.testing.assert_array_equal(*drawn_ones)
    assert len(np.unique(drawn_ones[0])) > 10


@NIGHTLY
@pytest.mark.parametrize("form", ["raw", "tfrecord"])
def test_workers_of_beam_write_the_same_bytes(tmp_path: Path, form: str) -> None:
    pytest.importorskip("apache_beam")
    original = spec(drawn(tmp_path / "data", "coco"), CROP)
    prepared(original, tmp_path / "local", form)
    done = prepared(original, tmp_path / "beam", form, runner="beam", beam_options=["--direct_num_workers=2"])
    assert done.verified == done.examples
    files = [sorted(f.relative_to(at) for f in at.rglob("*") if f.is_file()) for at in (tmp_path / "local", tmp_path / "beam")]
    assert files[0] == files[1]
    for file in files[0]:
        assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "beam" / file).read_bytes(), file


@NIGHTLY
def test_it_survives_kill_9(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of which some have not one box: whatever is there is kept, and the rest is written."""
    monkeypatch.setattr(work, "SHARD_BYTES", 1)
    original = spec(drawn(tmp_path / "data", "coco"), [{"resize": {"size": [64, 64]}}, "random_flip"])
    file, store = tmp_path / "spec.json", tmp_path / "store"
    file.write_text(json.dumps(original))
    code = (
        "import sys, time, pipegen\nfrom pipegen.preparing import work\nwork.SHARD_BYTES = 1\nwrite = work.Work.write\n"
        "def slow(self, number, progress=None):\n    found = write(self, number, progress); time.sleep(0.2); return found\n"
        "work.Work.write = slow\npipegen.prepare(sys.argv[1], sys.argv[2])\n"
    )
    for _ in range(3):
        running = subprocess.Popen([sys.executable, "-c", code, str(file), str(store)], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        before = len(list((store / "shards").glob("*.json"))) if store.exists() else 0
        limit = time.monotonic() + 60
        while time.monotonic() < limit and running.poll() is None and len(list((store / "shards").glob("*.json"))) <= before:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait(timeout=30)
    done = pipegen.prepare(str(file), store, verify=True)
    assert done.written < done.shards
    equal(pipegen.build(str(file)), pipegen.build(done.spec, runtime=RUNTIME), 0, 1)


@pytest.mark.nightly  # by day damaged rows are
def test_damaged_boxes_are_found(tmp_path: Path) -> None:
    original = spec(drawn(tmp_path / "data", "coco"), CROP)
    done = prepared(original, tmp_path / "store", "raw")
    boxes = tmp_path / "store" / "records" / "boxes.npy"
    whole = boxes.read_bytes()
    boxes.write_bytes(whole[:-4] + b"\0\0\x20\x41")
    with pytest.raises(DataError, match=r"boxes\.npy is damaged"):
        prepared(original, tmp_path / "store", "raw")
    np.save(boxes, np.load(io.BytesIO(whole))[:-1])
    with pytest.raises(SpecError, match=r"PG570.*boxes\.npy. is damaged"):
        pipegen.build(done.spec)


@NIGHTLY
@pytest.mark.parametrize("form", OF_RECORDS)
def test_any_program_reads_boxes(form: str, tmp_path: Path) -> None:
    """Boxes, their classes and whether they are crowds stand in each record, by the keys of their formats."""
    original = spec(drawn(tmp_path / "data", "coco"), CROP, splits={"parts": {"train": 9, "validation": 1}}, shuffle="none")
    prepared(original, tmp_path / "store", form)
    pipe = pipegen.build({**original, "transforms": [{"resize": {"size": 64}}], "batch": {"size": 9}})
    (_, wanted), *_ = pipe.dataset("train")
    found = list(records(tmp_path / "store", form))
    assert len(found) == 9
    for i, (size, boxes, labels, names, crowd) in enumerate(found):
        there = wanted["there"][i].numpy()
        scale = np.array([64 / size[1], 64 / size[0]] * 2)
        np.testing.assert_allclose(boxes * scale, wanted["boxes"][i].numpy()[there], atol=1 / 64)
        assert labels == wanted["labels"][i].numpy()[there].tolist()
        assert names == [NAMES[label] for label in labels]
        assert crowd == wanted["crowd"][i].numpy()[there].tolist()


def records(store: Path, form: str) -> Any:
    """The size, the boxes in pixels, the classes, their names and the crowds of each record."""
    (file,) = store.glob("train-*")
    if form == "webdataset":
        held: dict[str, dict[str, bytes]] = {}
        with tarfile.open(file) as archive:
            for member in archive:
                stem, _, key = member.name.partition(".")
                held.setdefault(stem, {})[key] = archive.extractfile(member).read()  # type: ignore[union-attr]
        for own in held.values():
            about = json.loads(own["json"])
            boxes, labels, crowd = (np.load(io.BytesIO(own[f"{name}.npy"])) for name in ("boxes", "labels", "crowd"))
            yield (about["height"], about["width"]), boxes, labels.tolist(), about["labels_text"], crowd.tolist()
        return
    if form == "tfrecord":
        messages = [record.numpy() for record in tf.data.TFRecordDataset(str(file))]
    else:
        from array_record.python.array_record_module import ArrayRecordReader

        reader = ArrayRecordReader(str(file))
        messages = [reader.read([i])[0] for i in range(reader.num_records())]
    for message in messages:
        own = tf.train.Example.FromString(message).features.feature
        size = own["image/height"].int64_list.value[0], own["image/width"].int64_list.value[0]
        edges = [np.array(own[f"image/object/bbox/{side}"].float_list.value) for side in ("xmin", "ymin", "xmax", "ymax")]
        boxes = np.stack(edges, -1) * np.array([size[1], size[0]] * 2)
        np.testing.assert_allclose(np.array(own["boxes"].float_list.value).reshape(-1, 4), boxes, atol=1e-3)
        labels = list(own["labels"].int64_list.value)
        assert [i - 1 for i in own["image/object/class/label"].int64_list.value] == labels
        names = [text.decode() for text in own["image/object/class/text"].bytes_list.value]
        yield size, boxes, labels, names, [float(v) for v in own["image/object/is_crowd"].int64_list.value]


def part(done: pipegen.Prepared) -> dict[str, Any]:
    """A store as a part of a mix."""
    source = yaml.safe_load(Path(done.spec).read_text())["source"]
    source["prepared"]["path"] = str(Path(done.spec).parent)
    return {"weight": 1, "source": source}


def mixed(parts: dict[str, Any]) -> dict[str, Any]:
    output = {"x": "image", "y": {name: name for name in ("boxes", "boxes_valid", "labels", "mask")}}
    return {
        "pipegen": 1, "source": {"mix": {"epoch": 12, "parts": parts}}, "transforms": ["random_flip", {"copy_paste": {"objects": 0.7}}],
        "batch": {"size": 4}, "output": output, "runtime": RUNTIME,
    }  # fmt: skip


@NIGHTLY
def test_stores_and_annotations_are_parts_of_one_mix(tmp_path: Path) -> None:
    """Whose items are stored in other forms, and of which one has more than the other; objects are pasted across them."""
    resize = {"resize": {"size": [40, 48]}}
    few = spec(drawn(tmp_path / "few", "coco"), [resize, "random_flip"])
    few["source"]["coco"]["classes"] = [*NAMES]
    done = prepared(few, tmp_path / "store", "raw")
    annotated = {"weight": 1, "source": drawn(tmp_path / "drawn", "labelme"), "transforms": [resize], "splits": {"parts": {"train": 7}}}
    given = mixed({"a": part(done), "b": annotated})
    pipe = pipegen.build(given)
    whole = [tf.nest.flatten(batch) for batch in pipe.dataset("train", epoch=1)]
    assert len(whole) == 3
    for got, wanted in zip(pipe.dataset("train", epoch=1, step=1), whole[1:], strict=True):
        for x, y in zip(tf.nest.flatten(got), wanted, strict=True):
            np.testing.assert_array_equal(x, y)
    cached = pipegen.build(given, runtime={"cache": {"disk": str(tmp_path / "cache")}})
    for _ in range(2):
        for got, wanted in zip(cached.dataset("train", epoch=1), whole, strict=True):
            for x, y in zip(tf.nest.flatten(got), wanted, strict=True):
                np.testing.assert_array_equal(x, y)


@NIGHTLY
def test_pasted_instances_of_a_store_are_cached_on_disk_and_shared_by_threads(tmp_path: Path) -> None:
    original = spec(drawn(tmp_path / "data", "coco"), [{"resize": {"size": [40, 48]}}, "random_flip", {"copy_paste": {"objects": 0.7}}])
    done = prepared(original, tmp_path / "store", "raw")
    pipe = pipegen.build(done.spec, runtime={**RUNTIME, "cache": {"disk": str(tmp_path / "cache")}})
    equal(pipegen.build(original), pipe, 1)

    def bytes_of(batch: Any) -> bytes:
        return b"".join(np.asarray(part).tobytes() for part in tf.nest.flatten(batch))

    wanted = sorted(map(bytes_of, pipegen.build(original).dataset("train", epoch=2)))
    pipe.seek(2)
    iterator, taken = iter(pipe.train), list[bytes]()
    threads = [threading.Thread(target=lambda: taken.extend(map(bytes_of, iterator))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(taken) == wanted


@NIGHTLY
def test_replicas_share_a_store_with_items(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, tensorflow as tf\n"
        "cpu = tf.config.list_physical_devices('CPU')[0]\n"
        "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)\n"
        "import pipegen\n"
        "pipe = pipegen.build(sys.argv[1])\n"
        "strategy = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])\n"
        "wanted = [tf.nest.flatten(batch) for batch in pipe.dataset('train', epoch=0)]\n"
        "found = [tf.nest.flatten(batch) for batch in pipe.distribute(strategy)]\n"
        "assert len(found) == len(wanted) > 0\n"
        "for batch, due in zip(found, wanted):\n"
        "    for part, value in zip(batch, due):\n"
        "        joined = np.concatenate([np.asarray(own) for own in strategy.experimental_local_results(part)])\n"
        "        np.testing.assert_array_equal(joined, value)\n"
    )
    original = spec(drawn(tmp_path / "data", "voc"), RESIZED, batch={"size": 4, "remainder": {"train": "drop"}})
    done = prepared(original, tmp_path / "store", "raw")
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    ended = subprocess.run([sys.executable, "-c", code, str(done.spec)], env=env, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
