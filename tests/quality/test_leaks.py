"""What two splits share is found, whatever was done to the copy, and what only looks alike is not called a copy."""

from __future__ import annotations

import io
import os
import tarfile
import wave
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps
from quality_pictures import encoded, manifest_of, photos, put, spec_of

from benchmarks.leaks import EDITS
from pipegen.quality import leaks as leaks_module
from pipegen.quality.leaks import Leaks, find_leaks
from pipegen.quality.looks import SEEN, UNREADABLE, look_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.spec.models import Runtime


def all_leaks(manifest: Manifest, runtime: Runtime, splits: Sequence[str] = (), *, near: bool = True) -> Leaks:
    return find_leaks(manifest, look_at(manifest, runtime), splits or manifest.splits, runtime, near=near)


ORIGINALS = {"cut 3 %": 0, "half size": 4, "JPEG, quality 50": 6, "brighter 1.3": 2, "gray": 3, "mirrored": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve photographs for the validation, six for the training, and there copies of six of the first, each edited otherwise."""
    pictures = photos(240)
    files = {f"validation/a/{i}.jpg": encoded(picture, quality=95) for i, picture in enumerate(pictures[:12])}
    files |= {f"train/a/{i}.jpg": encoded(picture, quality=95) for i, picture in enumerate(pictures[12:], 12)}
    files |= {f"train/b/{name}.jpg": encoded(EDITS[name](pictures[i])) for name, i in ORIGINALS.items()}
    files |= {"validation/b/x.jpg": encoded(pictures[0], quality=80), "train/b/same.jpg": files["validation/a/7.jpg"]}
    files |= {"train/a/flat.png": encoded(Image.new("RGB", (40, 30), "gray"), "PNG")}
    files |= {"validation/a/flat.png": encoded(Image.new("RGB", (41, 30), "gray"), "PNG"), "validation/a/bad.jpg": b"\xff\xd8\xff"}
    return put(tmp_path_factory.mktemp("leaks") / "data", files)


@pytest.fixture(scope="module")
def manifest(folder: Path) -> Manifest:
    return manifest_of(spec_of(folder))


@pytest.fixture(scope="module")
def found(folder: Path, manifest: Manifest) -> Leaks:
    return all_leaks(manifest, spec_of(folder).runtime)


def test_every_copy_is_found_with_its_original(found: Leaks) -> None:
    pairs = {(p.key, p.other_key): p for p in found.pairs}
    assert pairs["train/b/same.jpg", "validation/a/7.jpg"].same
    for name, i in ORIGINALS.items():
        pair = pairs[f"train/b/{name}.jpg", f"validation/a/{i}.jpg"]
        assert pair.severity == ("error" if pair.distance <= 4 else "warning")
        assert pair.mirrored == (name == "mirrored")
    assert {p.split for p in found.pairs} == {"train"}
    assert found.to_exclude() == sorted(f"train/b/{name}.jpg" for name in [*EDITS, "same"])


def test_nothing_else_is_called_a_copy(found: Leaks) -> None:
    assert len([p for p in found.pairs if p.severity != "info"]) == len(EDITS) + 2, "one original stands twice in the validation"
    assert (found.looked_at, found.unreadable, found.left_out) == (28, 1, 0)


def test_without_near_only_the_same_content_counts(folder: Path, manifest: Manifest) -> None:
    assert [p.key for p in all_leaks(manifest, spec_of(folder).runtime, near=False).pairs] == ["train/b/same.jpg"]


def test_one_split_alone_has_no_leaks(folder: Path, manifest: Manifest) -> None:
    alone = all_leaks(manifest, spec_of(folder).runtime, ["train"])
    assert not alone.pairs
    assert alone.looked_at == 14


def test_a_second_look_reads_no_file_that_stayed(folder: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = spec_of(folder).runtime
    before = look_at(manifest, runtime)
    read: list[str] = []
    real = leaks_module.Pictures.read

    def reading(self: leaks_module.Pictures, record: int) -> object:
        read.append(self.keys[record])
        return real(self, record)

    monkeypatch.setattr(leaks_module.Pictures, "read", reading)
    again = look_at(manifest, runtime)
    assert read == ["validation/a/bad.jpg"], "what could not be read is tried again"
    assert again.tobytes() == before.tobytes()
    os.utime(folder / "train/a/13.jpg", ns=(0, 1))
    look_at(manifest, runtime)
    assert sorted(read[1:]) == ["train/a/13.jpg", "validation/a/bad.jpg"]


def test_a_kept_file_that_is_cut_is_not_trusted(tmp_path: Path) -> None:
    data = put(
        tmp_path / "data", {f"{s}/a/{i}.png": encoded(p, "PNG") for s in ("train", "validation") for i, p in enumerate(photos(60)[:2])}
    )
    spec = spec_of(data)
    before = look_at(manifest_of(spec), spec.runtime)
    (kept,) = (tmp_path / "cache" / "looks").iterdir()
    kept.write_bytes(kept.read_bytes()[:-5])
    assert look_at(manifest_of(spec), spec.runtime).tobytes() == before.tobytes()


def test_an_interrupted_look_keeps_what_it_has_seen(tmp_path: Path) -> None:
    files = {f"{s}/a/{i}.png": encoded(p, "PNG") for s in ("train", "validation") for i, p in enumerate(photos(40))}
    spec = spec_of(put(tmp_path / "data", files))

    def stop(done: int) -> None:
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        look_at(manifest_of(spec), spec.runtime, progress=stop)
    done: list[int] = []
    assert (look_at(manifest_of(spec), spec.runtime, progress=done.append)["state"] == SEEN).all()
    assert done[0] >= 16


@pytest.mark.parametrize("kind", ["csv", "rows", "by_split"])
def test_records_of_every_kind_of_source_are_compared(kind: str, tmp_path: Path) -> None:
    pictures = [picture.resize((48, 48)) for picture in photos(96)[:8]]
    copied = [*pictures[:4], ImageOps.mirror(pictures[5])]
    splits = {"method": {"column": "part"}, "parts": {"train": "t", "validation": "v"}}
    if kind == "csv":
        put(tmp_path, {f"{i}.png": encoded(p, "PNG") for i, p in enumerate([*pictures, ImageOps.mirror(pictures[5])])})
        rows = [f"{i}.png,{'tv'[i >= 4]},x" for i in range(8)] + ["8.png,t,y"]
        (tmp_path / "all.csv").write_text("\n".join(["file,part,class", *rows]) + "\n")
        features = {"image": {"kind": "image", "column": "file"}, "label": {"kind": "label", "column": "class"}}
        source: dict[str, object] = {"csv": {"path": str(tmp_path / "all.csv"), "features": features}}
    elif kind == "rows":
        arrays = np.stack([np.asarray(p) for p in [*pictures[4:], *copied]])
        np.savez(tmp_path / "v.npz", image=arrays[:4], label=np.zeros(4, int))
        np.savez(tmp_path / "t.npz", image=arrays[4:], label=np.zeros(5, int))
        source = {"by_split": {s: {"arrays": {"path": str(tmp_path / f"{s[0]}.npz"), **_FEATURES}} for s in ("train", "validation")}}
    else:
        put(tmp_path, {f"v/a/{i}.png": encoded(p, "PNG") for i, p in enumerate(pictures[4:])})
        put(tmp_path, {f"t/a/{i}.png": encoded(p, "PNG") for i, p in enumerate(copied)})
        source = {"by_split": {s: {"image_folder": {"path": str(tmp_path / s[0])}} for s in ("train", "validation")}}
    spec = spec_of(tmp_path / "data", source=source, splits=splits if kind == "csv" else {})
    (pair,) = all_leaks(manifest_of(spec), spec.runtime).pairs
    assert (pair.split, pair.other_split, pair.severity, pair.mirrored) == ("train", "validation", "error", True)
    assert (pair.key, pair.other_key) == {
        "csv": ("8.png", "5.png"),
        "rows": ("train/4", "validation/1"),
        "by_split": ("train/a/4.png", "validation/a/1.png"),
    }[kind]


_FEATURES = {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}


def test_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    data = put(tmp_path / "data", {"train/a/0.png": b"no picture", "validation/a/0.png": encoded(photos(30)[0], "PNG")})
    spec = spec_of(data)
    found = all_leaks(manifest_of(spec), spec.runtime)
    assert (found.looked_at, found.unreadable, found.pairs) == (1, 1, ())
    assert look_at(manifest_of(spec), spec.runtime)["state"].tolist() == [UNREADABLE, SEEN]


def _wav(samples: np.ndarray) -> bytes:
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setparams((1, 2, 8000, len(samples), "NONE", ""))
        sound.writeframes(samples.tobytes())
    return written.getvalue()


@pytest.mark.parametrize("form", ["files", "webdataset", "parquet"])
def test_sounds_are_compared_by_their_bytes(form: str, tmp_path: Path) -> None:
    levels = np.random.default_rng(0).integers(-99, 99, (6, 80)).astype("<i2")
    sounds = [_wav(levels[i % 6]) for i in range(12)]
    features: dict[str, object] = {"a": {"kind": "audio", "rate": 8000}}
    if form == "files":
        put(tmp_path / "data", {f"x/{i:02}.wav": sound for i, sound in enumerate(sounds)})
        source: dict[str, object] = {"audio_folder": {"path": str(tmp_path / "data"), "rate": 8000}}
    elif form == "webdataset":
        with tarfile.open(tmp_path / "data.tar", "w") as archive:
            for i, sound in enumerate(sounds):
                member = tarfile.TarInfo(f"{i:02}.wav")
                member.size = len(sound)
                archive.addfile(member, io.BytesIO(sound))
        features["a"] = {"kind": "audio", "key": "wav", "rate": 8000}
        source = {"webdataset": {"path": str(tmp_path / "data.tar"), "features": features}}
    else:
        pq.write_table(pa.table({"a": sounds}), tmp_path / "data.parquet")
        features["a"] = {"kind": "audio", "column": "a", "rate": 8000}
        source = {"parquet": {"path": str(tmp_path / "data.parquet"), "features": features}}
    halves = {"parts": {"train": 0.5, "validation": 0.5}}
    spec = spec_of(tmp_path / "data", source=source, splits=halves, transforms=[{"crop_or_pad": {"seconds": 0.01}}])
    found = all_leaks(manifest_of(spec), spec.runtime)
    assert {(pair.same, pair.severity) for pair in found.pairs} == {(True, "error")}
    assert (found.looked_at, found.bytes_only) == (0, 12)
    assert found.compared == "the bytes of 12 records"
    (tmp_path / "copies.txt").write_text("\n".join(found.to_exclude()))
    left = spec.model_copy(update={"splits": spec.splits.model_copy(update={"exclude": str(tmp_path / "copies.txt")})})
    assert not all_leaks(manifest_of(left), left.runtime).pairs


def test_copies_of_a_copy_all_go(tmp_path: Path) -> None:
    picture = photos(200)[0]
    copy = encoded(picture, quality=40)
    files = {"validation/a/0.jpg": encoded(picture, quality=90), "train/a/0.jpg": copy, "train/b/1.jpg": copy, "train/b/2.jpg": copy}
    spec = spec_of(put(tmp_path / "data", files))
    assert all_leaks(manifest_of(spec), spec.runtime).to_exclude() == ["train/a/0.jpg", "train/b/1.jpg", "train/b/2.jpg"]


@pytest.mark.nightly
def test_every_frame_of_a_film_is_found(tmp_path: Path) -> None:
    rng, frame = np.random.default_rng(0), np.asarray(photos(64)[0], np.float32)
    frames = [Image.fromarray(np.clip(frame + rng.normal(0, 2, frame.shape), 0, 255).astype(np.uint8)) for _ in range(90)]
    spec = spec_of(
        put(tmp_path / "data", {f"{'validation' if i % 3 else 'train'}/a/{i}.png": encoded(f, "PNG") for i, f in enumerate(frames)})
    )
    found = all_leaks(manifest_of(spec), spec.runtime)
    assert len(found.to_exclude()) == 30
    assert len({p.other_key for p in found.pairs}) == 60
    assert (len(found.pairs) < 30 * 60, found.left_out) == (True, 0), "not every pair, but of each frame some"


@pytest.mark.nightly
def test_more_candidates_than_there_is_room_for_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks_module, "MOST", 2)
    picture = photos(200)[0]
    files = {f"{s}/a/{i}.jpg": encoded(picture, quality=30 + 7 * i + k) for k, s in enumerate(("train", "validation")) for i in range(4)}
    spec = spec_of(put(tmp_path / "data", files))
    found = all_leaks(manifest_of(spec), spec.runtime)
    assert len(found.pairs) == 2
    assert found.left_out >= 14
