"""A store gives what the spec gives, bit for bit: pixels, labels, order, draws; and it is whole, whatever stops the work."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import pipegen
from pipegen.data.content import damaged_files
from pipegen.errors import DataError, OpError, SpecError
from pipegen.ops.sources.prepared import Pixels, Shard, StoreAbout, read_about, write_about
from pipegen.phases.compilation import collect_data
from pipegen.preparing import work

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

RUNTIME = {"cache": "none", "jit": "never", "threads": 2}
SPLITS = {"parts": {"train": 0.75, "validation": 0.25}, "stratify": "label"}
NIGHTLY = pytest.mark.nightly
TURN = {"rotation": {"degrees": 9, "exact": True}}
CROP = [{"decode": {"scaled": "never"}}, {"random_resized_crop": {"size": 16}}, "random_flip", {"rescale": {"scale": 0.00392156862745098}}]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs of several sizes, upright and lying."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for i in range(24):
        (folder / f"class {i % 3}").mkdir(exist_ok=True)
        height, width = (40 + i, 56) if i % 2 else (56, 33 + i)
        picture = Image.fromarray(rng.integers(0, 256, (height // 8, width // 8, 3), np.uint8)).resize((width, height))
        picture.save(folder / f"class {i % 3}" / f"{i}.jpg", quality=95)
    return folder


def spec(photos: Path, steps: list[Any] | None = None, **own: Any) -> dict[str, Any]:
    sections = {"source": {"image_folder": {"path": str(photos)}}, "splits": SPLITS, "seed": 5, "runtime": RUNTIME}
    return {"pipegen": 1, **sections, "transforms": CROP if steps is None else steps, "batch": {"size": 4, "remainder": "keep"}, **own}


def batches(pipe: pipegen.Pipeline, *epochs: int) -> Iterator[Any]:
    for split in pipe.splits:
        for epoch in epochs:
            for batch in pipe.dataset(split, epoch=epoch):
                yield from (part.numpy() for part in batch)


def same(original: Any, store: Path, *epochs: int) -> None:
    """A store gives the same batches as the spec that it was prepared from."""
    a, b = pipegen.build(original), pipegen.build(store, runtime=RUNTIME)
    assert a.splits == b.splits
    for split in a.splits:
        assert list(a._manifest.keys(split)) == list(b._manifest.keys(split))
        assert (a._manifest.ids(split) == b._manifest.ids(split)).all()
    for x, y in zip(batches(a, *epochs), batches(b, *epochs), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def test_it_gives_the_same(photos: Path, tmp_path: Path) -> None:
    done = pipegen.prepare(spec(photos), tmp_path / "store", verify=True)
    assert (done.steps, done.rest) == ("decode", "random_resized_crop → random_flip → rescale")
    assert (done.examples, done.verified, done.changes) == (24, 24, ())
    same(spec(photos), done.spec, 3)


@pytest.mark.nightly
def test_it_resumes_and_is_shared_out_as_any_other(photos: Path, tmp_path: Path) -> None:
    done = pipegen.prepare(spec(photos), tmp_path / "store")
    pipe = pipegen.build(done.spec, runtime=RUNTIME)
    whole = [x.numpy() for x, _ in pipe.dataset("train", epoch=1)]
    for got, wanted in zip((x.numpy() for x, _ in pipe.dataset("train", epoch=1, step=2)), whole[2:], strict=True):
        np.testing.assert_array_equal(got, wanted)
    halves = [[x.numpy() for x, _ in pipe.dataset("train", shard=(i, 2))] for i in (0, 1)]
    for first, second, both in zip(*halves, (x.numpy() for x, _ in pipe.dataset("train")), strict=True):
        np.testing.assert_array_equal(np.concatenate([first, second]), both)
    text = pipe.explain(physical=True)
    assert "python" not in text.lower()


@NIGHTLY
@pytest.mark.parametrize(
    ("steps", "at", "left"),
    [
        ([{"resize": {"size": 12}}, {"rotation": {"degrees": 9}}, {"random_rotation": {"degrees": 20}}], None, 2),
        pytest.param([{"resize": {"size": 12}}, {"rotation": {"degrees": 9}}, {"random_hue": {"degrees": 9}}], "resize", 2, marks=NIGHTLY),
        pytest.param([{"resize": {"size": 12}}, TURN, {"random_rotation": {"degrees": 20}}], None, 1, marks=NIGHTLY),
    ],
    ids=["not within a segment", "where it is said", "behind a step that stands alone"],
)
def test_where_it_is_cut(photos: Path, tmp_path: Path, steps: list[Any], at: str | None, left: int) -> None:
    original = spec(photos, steps)
    done = pipegen.prepare(original, tmp_path / "store", at=at)
    assert len(done.rest.split(" → ")) == left
    same(original, done.spec, 0)


@NIGHTLY
def test_masks_arrays_and_folds(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = {"image": rng.integers(0, 256, (12, 9, 7, 3), np.uint8), "mask": rng.integers(0, 3, (12, 9, 7), np.uint8)}
    values["label"], values["extra"] = np.arange(12) % 2, rng.random((12, 2), np.float32)
    np.savez(tmp_path / "rows.npz", **values)
    kinds = {"mask": {"kind": "mask", "classes": 3}, "extra": {"kind": "tensor"}}
    features = {name: kinds.get(name, {"kind": name}) for name in values}
    original = {
        "pipegen": 1,
        "source": {"arrays": {"path": str(tmp_path / "rows.npz"), "features": features}},
        "splits": {"folds": {"count": 3, "fold": 1}},
        "transforms": [{"random_rotation": {"degrees": 30}}],
        "output": {"x": ["image", "extra"], "y": ["mask", "label"]},
        "batch": {"size": 5, "remainder": "keep"},
        "runtime": RUNTIME,
    }
    done = pipegen.prepare(original, tmp_path / "store", verify=True)
    a, b = pipegen.build(original), pipegen.build(done.spec)
    for split in ("train", "validation"):
        for one, other in zip(a.dataset(split), b.dataset(split), strict=True):
            for x, y in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
                np.testing.assert_array_equal(x.numpy(), y.numpy())


@NIGHTLY
def test_a_changed_store_says_so(photos: Path, tmp_path: Path) -> None:
    for form in ("raw", "jpeg"):
        done = pipegen.prepare(spec(photos), tmp_path / form, format=form, shorter_side=32, verify=True)  # type: ignore[arg-type]
        assert len(done.changes) == (1 if form == "raw" else 2)
        pipe, original = pipegen.build(done.spec, runtime=RUNTIME), pipegen.build(spec(photos))
        assert list(pipe._manifest.keys("train")) == list(original._manifest.keys("train"))
        for (x, y), (v, w) in zip(pipe.dataset("train"), original.dataset("train"), strict=True):
            np.testing.assert_array_equal(y, w)
            assert np.abs(x.numpy() - v.numpy()).mean() < 0.1, "nearly the same pictures"
    about = read_about(tmp_path / "raw")
    assert about.pixels["image"].canvas[:2] == (56, 48)


def test_a_description_with_any_bit_flipped_is_damaged(tmp_path: Path) -> None:
    """But for blanks between values."""
    labels, pixels, shard = (
        {"label": ("cat", "dog")},
        {"image": Pixels("files")},
        Shard("train", 0, 2, sums={"image": 5}, bytes={"image": 7}),
    )
    write_about(tmp_path, StoreAbout("k", "of", "decode", (), {"train": 2}, labels, "label", pixels, {}, 2, (shard,)))
    about, file = read_about(tmp_path), tmp_path / "store.json"
    text, damaged = file.read_bytes(), 0
    for place, bit in itertools.product(range(len(text)), range(8)):
        file.write_bytes(text[:place] + bytes([text[place] ^ 1 << bit]) + text[place + 1 :])
        with suppress(OpError):
            assert read_about(tmp_path) == about
            damaged -= 1
        damaged += 1
    assert about.classes == labels
    assert damaged > 6 * len(text)


def test_shrinking_behind_a_fixed_size_is_refused(photos: Path, tmp_path: Path) -> None:
    steps = [{"resize": {"size": 24}}, "random_flip"]
    with pytest.raises(SpecError, match=r"(?s)PG576.*24×24.*begin with the step `- decode` and use `--at decode`"):
        pipegen.prepare(spec(photos, steps), tmp_path / "store", shorter_side=12)
    with pytest.raises(SpecError, match=r"(?s)PG576.*`--at decode`, which shrinks them before `resize`"):
        pipegen.prepare(spec(photos, ["decode", *steps]), tmp_path / "store", shorter_side=12)
    assert not (tmp_path / "store").exists()


@NIGHTLY
def test_shrinking_where_it_is_advised(photos: Path, tmp_path: Path) -> None:
    steps = ["decode", {"resize": {"size": 24}}, "random_flip"]
    done = pipegen.prepare(spec(photos, steps), tmp_path / "store", shorter_side=12, at="decode")
    assert (done.steps, done.rest) == ("decode", "resize → random_flip")
    assert next(iter(pipegen.build(done.spec, runtime=RUNTIME).dataset("train")))[0].shape == (4, 24, 24, 3)
    # Behind a step that takes images of any size, shrinking is what was asked for.
    crop = [{"resize": {"size": [30, 40]}}, {"random_crop": {"size": 8}}]
    assert pipegen.prepare(spec(photos, crop), tmp_path / "crop", shorter_side=12).steps == "decode → resize"


def test_what_stopped_goes_on_and_no_shard_is_written_twice(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "SHARD_BYTES", 1)
    write, written = work.Work.write, []

    def counted(self: work.Work, number: int, progress: Any = None) -> Any:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(number)
        return write(self, number, progress)

    original = spec(photos, [{"resize": {"size": 32}}, "random_flip"])
    with monkeypatch.context() as m:
        m.setattr(work.Work, "write", counted)
        with pytest.raises(KeyboardInterrupt):
            pipegen.prepare(original, tmp_path / "store")
    stored = {file: file.stat().st_mtime_ns for file in (tmp_path / "store" / "shards").glob("*.rows")}
    assert len(stored) == 1
    with pytest.raises(SpecError, match="PG570"):
        pipegen.build({"pipegen": 1, "source": {"prepared": _source(tmp_path / "store")}, "batch": {"size": 2}})
    with pytest.raises(FileExistsError, match="another spec"):
        pipegen.prepare(spec(photos, [{"resize": {"size": 16}}]), tmp_path / "store")
    done = pipegen.prepare(original, tmp_path / "store", verify=True)
    assert done.written == done.shards - 1 > 0
    assert all(file.stat().st_mtime_ns == at for file, at in stored.items())
    assert pipegen.prepare(original, tmp_path / "store").written == 0


def _source(folder: Path) -> dict[str, Any]:
    features = {"image": {"kind": "image", "shape": [32, 32, 3]}, "label": {"kind": "label", "dtype": "int64", "classes": 3}}
    return {"path": str(folder), "of": "0" * 64, "splits": ["train", "validation"], "features": features}


def test_damage_is_found(photos: Path, tmp_path: Path) -> None:
    done = pipegen.prepare(spec(photos), tmp_path / "store")
    (shard,) = (tmp_path / "store" / "shards").glob("image-00001.rows")
    content = bytearray(shard.read_bytes())
    content[5000] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DataError, match=r"image-00001\.rows is damaged"):
        pipegen.prepare(spec(photos), tmp_path / "store", verify=True)
    label = tmp_path / "store" / "records" / "label.npy"
    whole = label.read_bytes()
    label.write_bytes(bytes([*whole[:-8], *reversed(whole[-8:])]))
    with pytest.raises(SpecError, match=rf"PG570[^\n]*label\.npy' is damaged: its CRC-32 is {zlib.crc32(label.read_bytes()):08x}"):
        pipegen.build(done.spec)
    label.unlink()
    with pytest.raises(SpecError, match=r"PG570[^\n]*label\.npy' is damaged: it is missing"):
        pipegen.build(done.spec)
    label.write_bytes(whole)
    # Zlib by itself says what `validate --data=all` compares.
    (said,) = damaged_files(collect_data(pipegen.load(str(done.spec))))
    assert str(shard) in said
    assert f"its CRC-32 is {zlib.crc32(shard.read_bytes()):08x}" in said
    shard.write_bytes(content[:-10])
    with pytest.raises(SpecError, match="PG570"):
        pipegen.build(done.spec)
    mended = pipegen.prepare(spec(photos), tmp_path / "store", verify=True)
    assert mended.written == 1


def test_a_record_that_cannot_be_decoded_is_named(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for i, file in enumerate(sorted(photos.glob("*/*.jpg"))[:6]):
        (tmp_path / "a" / f"{i}.jpg").write_bytes(file.read_bytes()[: 100 if i == 3 else None])
    original = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(tmp_path / "a"), "labels": "none"}},
        "transforms": [{"resize": {"size": 8}}],
    }
    with pytest.raises(DataError, match=r"cannot prepare \S+/3\.jpg: "):
        pipegen.prepare({**original, "batch": {"size": 2}}, tmp_path / "store")


@pytest.mark.nightly
def test_it_survives_kill_9(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "SHARD_BYTES", 1)
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec(photos, [{"resize": {"size": 64}}, "random_flip"])))
    code = (
        "import sys, time, pipegen\nfrom pipegen.preparing import work\nwork.SHARD_BYTES = 1\nwrite = work.Work.write\n"
        "def slow(self, number, progress=None):\n    found = write(self, number, progress); time.sleep(0.2); return found\n"
        "work.Work.write = slow\npipegen.prepare(sys.argv[1], sys.argv[2])\n"
    )
    store = tmp_path / "store"
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
    same(str(file), done.spec, 0)
