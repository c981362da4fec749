"""Shards of whole records: the spec beside them gives what the original does, and other programs read them without pipegen."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from test_prepare import RUNTIME, same, spec

import pipegen
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf
NIGHTLY = pytest.mark.nightly
FORMATS = ["tfrecord", *(pytest.param(form, marks=NIGHTLY) for form in ("webdataset", "array_record"))]
SUFFIXES = {"tfrecord": ".tfrecord", "webdataset": ".tar", "array_record": ".array_record"}


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PNG files, whose pixels any program reads alike, in two classes."""
    folder = tmp_path_factory.mktemp("drawings")
    rng = np.random.default_rng(0)
    for i in range(12):
        (folder / "ab"[i % 2]).mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (9 + i, 14, 3), np.uint8)).save(folder / "ab"[i % 2] / f"{i}.png")
    return folder


def tfrecords(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("train-*.tfrecord")):
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
            yield from_example(record)


def array_records(folder: Path) -> Iterator[dict[str, Any]]:
    from array_record.python.array_record_module import ArrayRecordReader

    for file in sorted(folder.glob("train-*.array_record")):
        reader = ArrayRecordReader(str(file))
        for i in range(reader.num_records()):
            yield from_example(reader.read([i])[0])


def from_example(record: bytes) -> dict[str, Any]:
    keys = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/format": tf.io.FixedLenFeature([], tf.string),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/width": tf.io.FixedLenFeature([], tf.int64),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/text": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
    }
    held = {name: value.numpy() for name, value in tf.io.parse_single_example(record, keys).items()}
    assert held["image/format"] == b"png"
    size = int(held["image/height"]), int(held["image/width"])
    return {
        "name": held["image/filename"].decode(), "image": held["image/encoded"], "size": size,
        "label": int(held["image/class/label"]), "class": held["image/class/text"].decode(),
    }  # fmt: skip


def tars(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("train-*.tar")):
        with tarfile.open(file) as archive:
            records: dict[str, dict[str, bytes]] = {}
            for member in archive:
                stem, _, key = member.name.partition(".")
                stream = archive.extractfile(member)
                assert stream is not None
                records.setdefault(stem, {})[key] = stream.read()
        for record in records.values():
            about = json.loads(record["json"])
            assert about["label"] == int(record["cls"])
            size = about["height"], about["width"]
            yield {"name": about["filename"], "image": record["png"], "size": size, "label": about["label"], "class": about["label_text"]}


READ = {"tfrecord": tfrecords, "array_record": array_records, "webdataset": tars}


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMATS)
def test_any_program_reads_them(drawings: Path, tmp_path: Path, form: str) -> None:
    """What other readers find in the shards are the files that were prepared, with their classes."""
    original = spec(drawings, ["decode", {"random_resized_crop": {"size": 8}}, "random_flip"])
    done = pipegen.prepare(original, tmp_path, format=form, verify=True)  # type: ignore[arg-type]
    assert (done.changes, done.verified, done.reordered) == ((), 12, False)
    found = list(READ[form](tmp_path))
    assert [record["name"] for record in found] == list(pipegen.build(original)._manifest.keys("train"))
    for record in found:
        assert record["image"] == (drawings / record["name"]).read_bytes(), "files that are only decoded are kept"
        with Image.open(drawings / record["name"]) as wanted:
            assert record["size"] == (wanted.height, wanted.width)
        assert record["class"] == Path(record["name"]).parent.name == "ab"[record["label"]]
    same(original, done.spec, 2)


@NIGHTLY
@pytest.mark.parametrize("form", ["tfrecord", "webdataset", "array_record"])
def test_files_are_kept_whatever_they_are(tmp_path: Path, form: str) -> None:
    """JPEGs, one of them to be turned upright, one large enough to be decoded at a fraction, and a GIF are stored byte for byte."""
    folder = tmp_path / "photos" / "a"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(6):
        picture = Image.fromarray(rng.integers(0, 256, (6 + i, 5, 3), np.uint8)).resize((40 + 60 * (i == 3), 30 + 60 * (i == 3)))
        exif = Image.Exif()
        exif[0x0112] = 6 if i == 1 else 1
        picture.save(folder / (f"{i}.gif" if i == 5 else f"{i}.jpg"), **({} if i == 5 else {"exif": exif, "quality": 60}))
    steps = [{"decode": {"scaled": "auto"}}, {"random_resized_crop": {"size": 12}}, "random_flip"]
    original = {key: value for key, value in spec(folder.parent, steps).items() if key != "splits"}
    done = pipegen.prepare(original, tmp_path / "store", format=form, verify=True)  # type: ignore[arg-type]
    assert (done.changes, done.steps, done.rest) == ((), "reading", "decode → random_resized_crop → random_flip")
    stored = b"".join(file.read_bytes() for file in sorted((tmp_path / "store").glob(f"train-*{SUFFIXES[form]}")))
    assert all(file.read_bytes() in stored for file in folder.iterdir())
    same(original, done.spec, 0, 1)
    changed = pipegen.prepare(original, tmp_path / "small", format=form, shorter_side=20)  # type: ignore[arg-type]
    assert len(changed.changes) == 2


@pytest.mark.by_day(1)
@pytest.mark.parametrize("form", ["tfrecord", "webdataset", "array_record"])
def test_without_tensorflow_the_stored_files_are_the_same(drawings: Path, tmp_path: Path, form: str) -> None:
    """Reports and looks at images read them so."""
    done = pipegen.prepare(spec(drawings, ["decode", {"random_resized_crop": {"size": 8}}]), tmp_path, format=form)  # type: ignore[arg-type]
    listing = pipegen.build(done.spec)._manifest.listing
    found = listing.reader().stored("image", listing.location.rows[::-1])
    assert [bytes(one) for one in found] == [(drawings / key).read_bytes() for key in list(listing.keys)[::-1]]


@NIGHTLY
@pytest.mark.parametrize("form", ["tfrecord", "webdataset", "array_record"])
def test_our_own_sources_read_them_as_any_records(drawings: Path, tmp_path: Path, form: str) -> None:
    original = spec(drawings, [{"resize": {"size": 8}}])
    pipegen.prepare(original, tmp_path, format=form, encoding="png")  # type: ignore[arg-type]
    keys = ("png", "cls") if form == "webdataset" else ("image/encoded", "image/class/label")
    features = {"image": {"kind": "image", "key": keys[0]}, "label": {"kind": "label", "key": keys[1], "classes": 2}}
    parts = {split: {form: {"path": str(tmp_path / f"{split}-*"), "features": features}} for split in ("train", "validation")}
    plain = {"pipegen": 1, "source": {"by_split": parts}, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 4}, "runtime": RUNTIME}
    a, b = pipegen.build(original), pipegen.build(plain)
    for x, y in zip(a.dataset("validation"), b.dataset("validation"), strict=True):
        np.testing.assert_array_equal(x[0], y[0])
        np.testing.assert_array_equal(x[1], y[1])


@NIGHTLY
@pytest.mark.parametrize("form", ["raw", "jpeg", "tfrecord", "webdataset", "array_record"])
def test_every_kind_of_feature(tmp_path: Path, form: str) -> None:
    """Images of 8 and 16 bits, a mask, numbers, a weight and a label, at a size that is known or not; a JPEG of smooth images is near."""
    rng = np.random.default_rng(1)
    ramp = np.linspace(0, 200, 16, dtype=np.uint8)[None, :, None, None] + np.arange(12, dtype=np.uint8)[:, None, None, None]
    values = {"image": np.broadcast_to(ramp, (12, 16, 16, 3)).copy(), "deep": rng.integers(0, 65536, (12, 8, 8, 1), np.uint16)}
    values |= {"mask": rng.integers(0, 3, (12, 16, 16), np.uint8), "extra": rng.random((12, 2), np.float32)}
    values |= {"label": np.arange(12) % 2, "much": rng.random(12, np.float32)}
    np.savez(tmp_path / "rows.npz", **values)
    kinds: dict[str, Any] = {"mask": {"kind": "mask", "classes": 3, "of": "image"}, "extra": {"kind": "tensor"}}
    kinds |= {"much": {"kind": "weight"}, "deep": {"kind": "image"}}
    original = {
        "pipegen": 1,
        "source": {"arrays": {"path": str(tmp_path / "rows.npz"), "features": {name: kinds.get(name, {"kind": name}) for name in values}}},
        "splits": {"folds": {"count": 3, "fold": 1}},
        "transforms": [{"random_rotation": {"degrees": 30}}, "random_flip"],
        "output": {"x": ["image", "extra", "deep"], "y": ["mask", "label"], "sample_weight": "much"},
        "batch": {"size": 5, "remainder": "keep"},
        "runtime": RUNTIME,
    }
    exact = {} if form in ("raw", "jpeg") else {"encoding": "png"}
    done = pipegen.prepare(original, tmp_path / "store", format=form, verify=True, **exact)  # type: ignore[arg-type]
    a, b = pipegen.build(original), pipegen.build(done.spec)
    for split in ("train", "validation"):
        for one, other in zip(a.dataset(split), b.dataset(split), strict=True):
            for i, (x, y) in enumerate(zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True)):
                assert (x.dtype, x.shape) == (y.dtype, y.shape)
                if form == "jpeg" and i == 0:
                    assert np.abs(x.numpy().astype(float) - y.numpy()).mean() < 12
                else:
                    np.testing.assert_array_equal(x.numpy(), y.numpy())


@NIGHTLY
@pytest.mark.parametrize("form", ["jpeg", "tfrecord", "array_record"])
def test_encoded_images_of_one_size_make_batches(drawings: Path, tmp_path: Path, form: str) -> None:
    original = spec(drawings, [{"resize": {"size": 16}}, "random_flip"])
    done = pipegen.prepare(original, tmp_path, format=form)  # type: ignore[arg-type]
    assert pipegen.build(done.spec, runtime=RUNTIME).peek("train", 3)[0].shape == (3, 16, 16, 3)


@NIGHTLY
def test_a_subset_and_several_labels(drawings: Path, tmp_path: Path) -> None:
    """A subset is done once, and the tests of a table are left to the table."""
    rows = [f"{f.relative_to(drawings)},{'a b' if i % 2 else 'b c'},{i / 2}" for i, f in enumerate(sorted(drawings.glob("*/*.png")))]
    (tmp_path / "t.csv").write_text("\n".join(["file,tags,age", *rows]) + "\n")
    features = {"image": {"kind": "image", "column": "file", "root": str(drawings)}, "tags": {"kind": "label", "separator": " "}}
    source = {"csv": {"path": str(tmp_path / "t.csv"), "features": features | {"age": {"kind": "tensor", "columns": ["age"]}}}}
    original = spec(
        drawings,
        [{"resize": {"size": 8}}, "random_flip"],
        source=source,
        splits={"parts": {"train": 0.75, "validation": 0.25}},
        sampling={"subset": {"where": "age > 1"}},
        tests=[{"unique": {"key": "file"}}, {"examples": {"min": 1}}],
        output={"x": ["image", "age"], "y": "tags"},
    )
    done = pipegen.prepare(original, tmp_path / "store", format="webdataset", encoding="png")
    text = done.spec.read_text()
    assert "subset" not in text
    assert "unique" not in text
    assert "examples" in text
    a, b = pipegen.build(original), pipegen.build(done.spec, runtime=RUNTIME)
    for one, other in zip(a.dataset("train", epoch=1), b.dataset("train", epoch=1), strict=True):
        for x, y in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
            np.testing.assert_array_equal(x.numpy(), y.numpy())
    first = json.loads(next(iter_member(next((tmp_path / "store").glob("train-*.tar")), ".json")))
    assert first["tags_text"] in (["a", "b"], ["b", "c"])


def iter_member(file: Path, ending: str) -> Iterator[bytes]:
    with tarfile.open(file) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if member.name.endswith(ending) and stream is not None:
                yield stream.read()


@NIGHTLY
@pytest.mark.parametrize("form", ["raw", "tfrecord"])
def test_damaged_records(drawings: Path, tmp_path: Path, form: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Under `skip` they are left out of the training split, and the others keep their ids; `raise` names the first."""
    original = spec(drawings, ["decode", {"random_resized_crop": {"size": 8}}])
    whole = pipegen.build(original)._manifest
    wrong = {whole.keys("train")[i] for i in (0, 4)}
    for file in drawings.glob("*/*.png"):
        (tmp_path / "data" / file.parent.name).mkdir(parents=True, exist_ok=True)
        name = str(file.relative_to(drawings))
        (tmp_path / "data" / name).write_bytes(file.read_bytes()[: 60 if name in wrong else None])
    damaged = spec(tmp_path / "data", original["transforms"])
    with pytest.raises(DataError, match=r"cannot prepare \S+\.png: .*errors: \{exclude"):
        pipegen.prepare(damaged, tmp_path / "raise", format=form)
    skipping = damaged | {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}}
    done = pipegen.prepare(skipping, tmp_path / "skip", format=form, verify=True)
    assert (done.left_out, done.examples, done.verified, done.reordered) == (2, 10, 10, True)
    assert sum(" is left out: " in record.message for record in caplog.records) == 2
    kept = pipegen.build(done.spec, runtime=RUNTIME)._manifest
    assert set(whole.keys("train")) - set(kept.keys("train")) == wrong
    ids = dict(zip(whole.keys("train"), whole.ids("train"), strict=True))
    assert all(ids[name] == own for name, own in zip(kept.keys("train"), kept.ids("train"), strict=True))
    with pytest.raises(DataError, match="2 records of the training split are damaged"):
        pipegen.prepare(damaged | {"errors": {"decode": {"skip": {}}}}, tmp_path / "few", format=form)


@NIGHTLY
@pytest.mark.parametrize("form", ["tfrecord", "webdataset", "array_record"])
def test_damage_is_found(drawings: Path, tmp_path: Path, form: Any) -> None:
    original = spec(drawings, [{"resize": {"size": 8}}])
    done = pipegen.prepare(original, tmp_path, format=form)
    (shard,) = tmp_path.glob(f"train-*{SUFFIXES[form]}")
    content = bytearray(shard.read_bytes())
    content[1200] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DataError, match=f"{shard.name} is damaged"):
        pipegen.prepare(original, tmp_path, format=form, verify=True)
    shard.write_bytes(content[:-10])
    with pytest.raises(SpecError, match="PG570"):
        pipegen.build(done.spec)
    assert pipegen.prepare(original, tmp_path, format=form, verify=True).written == 1


@NIGHTLY
def test_records_that_are_read_by_blocks_are_shuffled_in_a_store(drawings: Path, tmp_path: Path) -> None:
    """The same images with the same draws, in another order, which is said."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    files = sorted(drawings.glob("*/*.png"))
    table = {"image": [f.read_bytes() for f in files], "label": [f.parent.name for f in files]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=3)
    features = {"image": {"kind": "image", "column": "image"}, "label": {"kind": "label", "column": "label"}}
    original = spec(
        drawings,
        ["decode", {"random_resized_crop": {"size": 8}}],
        source={"parquet": {"path": str(tmp_path / "a.parquet"), "features": features}},
    )
    done = pipegen.prepare(original, tmp_path / "store")
    assert done.reordered
    a, b = (pipegen.build(one, runtime=RUNTIME) for one in (original, done.spec))
    seen = [sorted(x.tobytes() for batch, _ in p.dataset("train", epoch=1) for x in batch.numpy()) for p in (a, b)]
    assert seen[0] == seen[1]


def test_what_goes_together_is_checked_first(drawings: Path, tmp_path: Path) -> None:
    original = spec(drawings, [{"resize": {"size": 8}}])
    for wrong, about in (
        ({"encoding": "png"}, "whole records"),
        ({"format": "tfrecord", "encoding": "gif"}, "`encoding` is one of jpeg, png, original"),
        ({"format": "csv"}, "`format` is one of"),
        ({"beam_options": ["--x"]}, "need the runner `beam`"),
        ({"runner": "spark"}, "`runner` is one of"),
    ):
        with pytest.raises(ValueError, match=about):
            pipegen.prepare(original, tmp_path / "store", **wrong)
    for address in ("gs://bucket/store", "s3://bucket/store", "file:///store"):
        with pytest.raises(ValueError, match=f"{address} is an address"):
            pipegen.prepare(original, address)
    assert not (tmp_path / "store").exists()


@NIGHTLY
def test_without_beam_the_extra_is_named(drawings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(SpecError, match=r"PG575(.|\n)*pip install 'pipegen\[beam\]'"):
        pipegen.prepare(spec(drawings, [{"resize": {"size": 8}}]), tmp_path / "store", runner="beam")
    assert not (tmp_path / "store").exists()


@NIGHTLY
@pytest.mark.parametrize("form", ["raw", "tfrecord", "array_record"])
@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_workers_of_beam_write_the_same_bytes(drawings: Path, tmp_path: Path, form: Any, mode: str) -> None:
    pytest.importorskip("apache_beam")
    parts = {"parts": {"train": 0.5, "validation": 0.25, "test": 0.25}}
    original = spec(drawings, ["decode", {"random_resized_crop": {"size": 8}}], splits=parts)
    pipegen.prepare(original, tmp_path / "local", format=form)
    flags = ["--direct_num_workers=2", f"--direct_running_mode={mode}"]
    done = pipegen.prepare(original, tmp_path / "beam", format=form, runner="beam", beam_options=flags, verify=True)
    assert (done.shards, done.written, done.verified) == (3, 3, 12)
    files = [
        sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file()) for root in (tmp_path / "local", tmp_path / "beam")
    ]
    assert files[0] == files[1]
    for file in files[0]:
        assert (tmp_path / "local" / file).read_bytes() == (tmp_path / "beam" / file).read_bytes(), file
    if form == "raw":
        same(original, done.spec, 0)


@NIGHTLY
def test_a_worker_of_beam_names_a_damaged_record(drawings: Path, tmp_path: Path) -> None:
    pytest.importorskip("apache_beam")
    for i, file in enumerate(sorted(drawings.glob("*/*.png"))):
        (tmp_path / "data" / file.parent.name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / file.parent.name / file.name).write_bytes(file.read_bytes()[: 60 if i == 3 else None])
    damaged = spec(tmp_path / "data", ["decode", {"random_resized_crop": {"size": 8}}])
    with pytest.raises(DataError, match=r"cannot prepare \S+\.png: "):
        pipegen.prepare(damaged, tmp_path / "store", format="tfrecord", runner="beam", beam_options=["--direct_num_workers=1"])
