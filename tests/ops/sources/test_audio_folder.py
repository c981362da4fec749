"""`audio_folder`, and sound from other sources: the same samples everywhere, pieces of files, damage, and what a listing says."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import record_files
from pydantic import ValidationError
from sound_files import RATE, decoded, encoded, noise, with_sizes

import pipegen
from pipegen.errors import DataError, OpError, OpErrors
from pipegen.ops.registry import sources
from pipegen.ops.sources.class_folders import AudioFolder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FRAMES = 1600


def sound(row: int, format: str = "WAV", subtype: str = "PCM_16", channels: int = 1) -> bytes:
    return encoded(noise(FRAMES, channels, seed=row), format=format, subtype=subtype)


FEATURES: dict[str, Any] = {"audio": {"kind": "audio", "rate": RATE}, "label": {"kind": "label"}}
FORMS = [
    ("wav", "WAV", "PCM_16"),
    ("wav", "WAV", "PCM_24"),
    ("wav", "WAV", "FLOAT"),
    ("flac", "FLAC", "PCM_16"),
    ("aiff", "AIFF", "PCM_16"),
]
"""Endings and codings of files of the same samples, as far as 16 bits hold them."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten sounds of two classes, in several formats."""
    monkeypatch.chdir(tmp_path)
    for row in range(10):
        ending, format, subtype = FORMS[row % len(FORMS)]
        path = tmp_path / "words" / ("go", "stop")[row % 2] / f"{row}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sound(row, format, subtype))
    return tmp_path


def spec(source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": source,
        "splits": {"parts": {"train": 10}},
        "shuffle": "none",
        "transforms": [{"crop_or_pad": {"seconds": 0.1}}],
        "batch": {"size": 5},
        **more,
    }


def seen(source: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    """The sounds and the labels of an epoch, in order."""
    batches = [(x.numpy(), y.numpy()) for x, y in pipegen.build(spec(source, **more)).dataset("train", epoch=0)]
    return tuple(np.concatenate(each) for each in zip(*batches, strict=True))


def test_classes_formats_and_order(folder: Path) -> None:
    listing = AudioFolder(path="words", rate=RATE).list(folder)
    assert listing.class_names == ("go", "stop")
    assert [key.split("/")[1].split(".")[0] for key in listing.keys] == ["0", "2", "4", "6", "8", "1", "3", "5", "7", "9"]
    (folder / "words" / "go" / "notes.txt").write_text("x")
    (folder / "words" / "go" / "cover.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "words" / "go" / "sound").write_bytes(sound(3))
    (folder / "words" / "go" / "unlike").write_bytes(b"text")
    (folder / "words" / "go" / "new.m4a").write_bytes(b"\0\0\0\x18ftypM4A ")
    listing = AudioFolder(path="words", rate=RATE).list(folder)
    assert "go/sound" in listing.keys, "a sound without an ending is recognised by its content"
    said = "\n".join(note.message for note in listing.notes)
    assert "3 files that are not a sound (1 .jpg, 1 .txt, 1 no extension)" in said
    assert "MP4 cannot be decoded; 1 file of that format: 'go/new.m4a'" in said


def test_what_is_said_of_a_folder_without_sounds(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(OpError, match=r"no sound below .*: 1 file, none of them a sound \(1 \.png\)") as caught:
        AudioFolder(path=str(tmp_path), rate=RATE).list(tmp_path)
    assert caught.value.code == "PG402"
    assert "WAV, FLAC, Ogg Vorbis" in str(caught.value.lines)
    (tmp_path / "x.wav").write_bytes(sound(0))
    with pytest.raises(OpError, match=r"1 sound directly in .* but none in its 1 sub-folder") as caught:
        AudioFolder(path=str(tmp_path), rate=RATE).list(tmp_path)


def test_without_the_library_other_formats_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.ops.sources.folders import scan

    monkeypatch.setattr("pipegen.ops.lowering.sounds.find_spec", lambda name: None)
    scan.sounds.cache_clear()
    try:
        listing = AudioFolder(path="words", rate=RATE).list(folder)
    finally:
        scan.sounds.cache_clear()
    assert all(key.endswith(".wav") for key in listing.keys)
    notes = [note for note in listing.notes if note.code == "PG414"]
    assert [note.message.split(";")[0] for note in notes] == ["AIFF cannot be decoded", "FLAC cannot be decoded"]
    assert notes[0].help is not None
    assert "pip install 'pipegen[audio]'" in notes[0].help


def test_the_rate_is_required_and_arguments_are_checked() -> None:
    for given, says in (
        ({}, "rate"),
        ({"rate": 0}, "rate"),
        ({"rate": RATE, "offset": -1}, "offset"),
        ({"rate": RATE, "duration": 0}, "duration"),
        ({"rate": RATE, "channels": 0}, "channels"),
    ):
        with pytest.raises(ValidationError, match=says):
            AudioFolder(path="x", **given)


@pytest.mark.tf
def test_samples_are_those_of_soundfile_in_every_format(folder: Path) -> None:
    x, y = seen({"audio_folder": {"path": "words", "rate": RATE}})
    keys = AudioFolder(path="words", rate=RATE).list(folder).keys
    np.testing.assert_array_equal(x, [decoded((folder / "words" / key).read_bytes()) for key in keys])
    assert y.tolist() == [0] * 5 + [1] * 5


@pytest.mark.tf
def test_pieces_channels_and_rates(folder: Path) -> None:
    source = {"path": "words", "rate": RATE, "channels": 2, "offset": 0.025, "duration": 0.05}
    x, _ = seen({"audio_folder": source}, transforms=[{"crop_or_pad": {"seconds": 0.05}}])
    keys = AudioFolder(path="words", rate=RATE).list(folder).keys
    due = np.stack([decoded((folder / "words" / key).read_bytes())[400:1200] for key in keys])
    np.testing.assert_array_equal(x, np.repeat(due, 2, axis=2))
    x, _ = seen({"audio_folder": {"path": "words", "rate": 8000}})
    assert x.shape == (10, 800, 1)


@pytest.mark.tf
def test_an_archive_is_read_in_place(folder: Path) -> None:
    with zipfile.ZipFile("words.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((folder / "words").rglob("*.*")):
            archive.write(path, path.relative_to(folder))
    of_files = seen({"audio_folder": {"path": "words", "rate": RATE}})
    for got, due in zip(seen({"audio_folder": {"path": "words.zip/words", "rate": RATE}}), of_files, strict=True):
        np.testing.assert_array_equal(got, due)


def _rows(folder: Path) -> list[tuple[str, bytes, int]]:
    """Key, content and class of each sound, in the order of `audio_folder`."""
    listing = AudioFolder(path="words", rate=RATE).list(folder)
    return [(key, (folder / "words" / key).read_bytes(), int(label)) for key, label in zip(listing.keys, listing.labels, strict=True)]


def _csv(folder: Path) -> dict[str, Any]:
    lines = [f"words/{key},{('go', 'stop')[label]}" for key, _, label in _rows(folder)]
    (folder / "words.csv").write_text("\n".join(["audio,label", *lines]))
    return {"csv": {"path": "words.csv", "features": FEATURES}}


def _files(folder: Path) -> dict[str, Any]:
    (folder / "labels.csv").write_text("\n".join(["path,label", *(f"{key},{('go', 'stop')[label]}" for key, _, label in _rows(folder))]))
    audio = {"kind": "audio", "path": "words", "rate": RATE}
    join = {"table": {"csv": {"path": "labels.csv"}}, "on": "path"}
    return {"files": {"features": {"audio": audio, "label": {"kind": "label"}}, "join": join}}


def _records(op: str, ending: str) -> Callable[[Path], dict[str, Any]]:
    """What writes a file of many records, and the source that reads it."""

    def write(folder: Path) -> dict[str, Any]:
        if op in ("lmdb", "array_record", "hdf5"):
            pytest.importorskip({"hdf5": "h5py"}.get(op, op))
        record_files.WRITERS[op](folder / f"words.{ending}", [{"audio": content, "label": label} for _, content, label in _rows(folder)])
        more = {"table": "examples"} if op == "sqlite" else {}
        return {op: {"path": f"words.{ending}", "features": FEATURES, **more}}

    return write


def _parquet(folder: Path, *, struct: bool = False) -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = _rows(folder)
    column: list[Any] = [{"bytes": content, "path": key} if struct else content for key, content, _ in rows]
    table = pa.table({"audio": column, "label": [("go", "stop")[label] for *_, label in rows]})
    pq.write_table(table, "words.parquet", row_group_size=4)
    return {"parquet": {"path": "words.parquet", "features": FEATURES}}


def _huggingface(folder: Path) -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = _rows(folder)
    table = pa.table({"sound": [{"bytes": content, "path": key} for key, content, _ in rows], "label": [label for *_, label in rows]})
    about = {
        "sound": {"sampling_rate": RATE, "_type": "Audio"},
        "label": {"names": ["go", "stop"], "_type": "ClassLabel"},
    }
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": about}})})
    (folder / "hub" / "data").mkdir(parents=True)
    pq.write_table(table, folder / "hub" / "data" / "train-00000-of-00001.parquet")
    return {"huggingface": {"path": "hub", "features": FEATURES}}


def _arrays_in_hdf5(folder: Path) -> dict[str, Any]:
    h5py = pytest.importorskip("h5py")
    rows = _rows(folder)
    with h5py.File("words.h5", "w") as file:
        file["audio"] = np.stack([decoded(content)[:, 0] for _, content, _ in rows])
        file["label"] = [label for *_, label in rows]
    return {"hdf5": {"path": "words.h5", "features": FEATURES}}


def _npz(folder: Path) -> dict[str, Any]:
    rows = _rows(folder)
    np.savez("words.npz", audio=np.stack([decoded(content) for _, content, _ in rows]), label=[label for *_, label in rows])
    return {"arrays": {"path": "words.npz", "features": FEATURES}}


RECORDS = {
    "tfrecord": "tfrecord",
    "webdataset": "tar",
    "zip": "zip",
    "mds": "mds",
    "array_record": "array_record",
    "sqlite": "sqlite",
    "lmdb": "lmdb",
    "hdf5": "h5",
}
"""Endings of files of many records, by the source."""
WRITERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "csv": _csv,
    "files": _files,
    **{op: _records(op, ending) for op, ending in RECORDS.items()},
    "parquet": _parquet,
    "parquet, structs": lambda folder: _parquet(folder, struct=True),
    "huggingface": _huggingface,
    "hdf5, arrays": _arrays_in_hdf5,
    "arrays": _npz,
}


@pytest.mark.by_day(6)
@pytest.mark.tf
@pytest.mark.parametrize("name", WRITERS)
def test_every_source_gives_the_samples_of_files(name: str, folder: Path) -> None:
    due = seen({"audio_folder": {"path": "words", "rate": RATE}})
    got = seen(WRITERS[name](folder))
    np.testing.assert_array_equal(got[0], due[0])
    assert got[1].tolist() == due[1].tolist()


def _segments(folder: Path, format: str, lines: list[str]) -> dict[str, Any]:
    for row in (0, 1):
        (folder / f"{row}.{format.lower()}").write_bytes(sound(row, format))
    (folder / "calls.csv").write_text("\n".join(["file,start,length,call", *lines]))
    audio = {"kind": "audio", "column": "file", "rate": RATE, "offset": "start", "duration": "length"}
    return {"csv": {"path": "calls.csv", "features": {"audio": audio, "label": {"kind": "label", "column": "call"}}}}


@pytest.mark.tf
@pytest.mark.parametrize("format", ["WAV", "FLAC"])
def test_each_row_of_a_table_has_a_segment_of_its_own(format: str, folder: Path) -> None:
    places = [(i % 2, 0.005 * i, 0.03 + 0.001 * i) for i in range(9)]
    lines = [f"{row}.{format.lower()},{start:.4f},{length:.4f},{'ab'[row]}" for row, start, length in places]
    source = _segments(folder, format, [*lines, f"1.{format.lower()},0.05,,b"])
    x, _ = seen(source)
    for got, (row, start, length) in zip(x, [*places, (1, 0.05, 1.0)], strict=True):
        whole = decoded(sound(row, format))
        due = whole[round(start * RATE) :][: round(length * RATE)]
        np.testing.assert_array_equal(got[: len(due)], due)
        assert not got[len(due) :].any()


def test_what_is_wrong_with_a_segment_is_said(folder: Path) -> None:
    for cell, says in (
        ("x,1", "holds 'x', but `offset` needs a number of seconds, 0 or more"),
        ("-1,1", "holds '-1', but `offset`"),
        ("nan,1", "holds 'nan', but `offset`"),
        (",1", "holds '', but `offset`"),
        ("0,0", "holds '0', but `duration` needs a number of seconds above 0, or an empty cell"),
        ("0,inf", "holds 'inf', but `duration`"),
    ):
        source = _segments(folder, "WAV", [f"0.wav,{cell},a", "1.wav,0,1,b"])
        with pytest.raises(OpErrors, match=says) as caught:
            sources()["csv"].model_validate(source["csv"]).list(folder)
        argument = "duration" if "duration" in says else "offset"
        assert [(e.code, e.field) for e in caught.value.every] == [("PG423", f"features.audio.{argument}")]
    source["csv"]["features"]["audio"]["offset"] = "begin"
    with pytest.raises(OpErrors, match="no column 'begin'"):
        sources()["csv"].model_validate(source["csv"]).list(folder)
    audio = {"kind": "audio", "path": "*.wav", "rate": RATE, "offset": "start"}
    with pytest.raises(ValidationError, match="`offset` by columns needs a table"):
        sources()["files"].model_validate({"features": {"audio": audio}})
    with pytest.raises(ValidationError, match="the `offset` of labels is an integer"):
        sources()["csv"].model_validate({"path": "calls.csv", "features": {"label": {"kind": "label", "offset": "start"}}})
    with pytest.raises(ValidationError, match="images have 1, 3 or 4 `channels`, not 2"):
        sources()["csv"].model_validate({"path": "calls.csv", "features": {"image": {"kind": "image", "channels": 2}}})


@pytest.mark.tf
def test_a_segment_behind_the_end_names_its_row_and_its_file(folder: Path) -> None:
    source = _segments(folder, "WAV", ["0.wav,0,0.1,a", "1.wav,0.2,0.1,b"])
    with pytest.raises(DataError, match=r"calls\.csv.*1\.wav lasts 0\.1 s, so nothing lies after its `offset` of 0\.2 s"):
        list(pipegen.build(spec(source, splits={}, batch={"size": 1}))["train"])


@pytest.mark.tf
def test_a_recording_that_is_written_anew_is_noticed(folder: Path) -> None:
    pipe = pipegen.build(spec(_segments(folder, "WAV", ["0.wav,0,0.1,a", "1.wav,0,0.1,b"]), splits={}, batch={"size": 1}))
    (folder / "1.wav").write_bytes(sound(1) + b"more")
    with pytest.raises(DataError, match=r"1\.wav was changed"):
        list(pipe["train"])


DAMAGED = {
    "empty": (lambda content: b"", "is empty"),
    "cut": (lambda content: content[:-100], "is cut short"),
    "header": (lambda content: with_sizes(content[:44], riff=36, data=0), "is a WAV without samples"),
    "text": (lambda content: b"<html><head></head></html>", "is not a sound file"),
}


@pytest.mark.tf
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_named_or_skipped(name: str, folder: Path) -> None:
    damage, says = DAMAGED[name]
    path = folder / "words" / "go" / "0.wav"
    path.write_bytes(damage(path.read_bytes()))
    source = {"audio_folder": {"path": "words", "rate": RATE}}
    with pytest.raises((DataError, pipegen.SpecError), match=rf"go/0\.wav.*{says}|1 file .*is empty|go/0\.wav") as caught:
        list(pipegen.build(spec(source))["train"])
    if name != "empty":
        assert says in str(caught.value)
    skipped = spec(source, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    assert sum(len(x) for x, _ in pipegen.build(skipped)["train"]) == 10
