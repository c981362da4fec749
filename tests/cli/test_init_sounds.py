"""`pipegen init` on the same sounds in every form: what it writes has no errors, reads all of them, and gives a batch."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_files as files
from cli_helpers import Cli
from sound_files import encoded
from tfds_files import prepare

import pipegen
from pipegen.phases.compilation import inspect

pytestmark = pytest.mark.tf

COUNT, RATE, FRAMES = 16, 8000, 800
CLASSES = ("cat", "dog")
Sounds = Sequence[tuple[bytes, int]]
Records = Sequence[dict[str, Any]]


def sounds() -> Sounds:
    """Sounds of one level, by which they are known, and of two classes."""
    return [(encoded(np.full((FRAMES, 1), i / 32, np.float32), RATE, subtype="FLOAT"), i % 2) for i in range(COUNT)]


def in_files(path: Path, held: Sounds) -> list[tuple[str, str]]:
    for i, (content, _) in enumerate(held):
        (path / f"{i}.wav").write_bytes(content)
    return [(f"{i}.wav", CLASSES[label]) for i, (_, label) in enumerate(held)]


def as_csv(path: Path, held: Sounds, *, header: bool = True, folder: str = "") -> str:
    (path / folder).mkdir(exist_ok=True)
    rows = in_files(path / folder, held)
    with open(path / "t.csv", "w", newline="") as out:
        csv.writer(out).writerows([*([("file", "category")] if header else []), *rows])
    return "t.csv"


def as_jsonl(path: Path, held: Sounds) -> str:
    (path / "t.jsonl").write_text("\n".join(json.dumps({"file": file, "label": label}) for file, label in in_files(path, held)))
    return "t.jsonl"


def as_parquet(path: Path, held: Sounds, *, paths: bool = False) -> str:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows: list[Any] = [{"audio": {"bytes": content, "path": None}, "label": CLASSES[label]} for content, label in held]
    rows = [{"file": file, "label": label} for file, label in in_files(path, held)] if paths else rows
    pq.write_table(pa.Table.from_pylist(rows), path / "t.parquet")
    return "t.parquet"


def as_huggingface(path: Path, held: Sounds) -> str:
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pylist([{"audio": {"bytes": content, "path": None}, "label": label} for content, label in held])
    with pa.OSFile(str(path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    features = {"audio": {"sampling_rate": RATE, "_type": "Audio"}, "label": {"names": list(CLASSES), "_type": "ClassLabel"}}
    about = {"features": features, "splits": {"train": {"name": "train", "num_examples": len(held)}}}
    (path / "dataset_info.json").write_text(json.dumps(about))
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}], "_split": "train"}))
    return ""


def as_tfds(path: Path, held: Sounds) -> str:
    """Lists of samples, as TensorFlow Datasets writes them."""
    records = [{"audio": [round(i / 32 * 2**15)] * FRAMES, "label": label} for i, (_, label) in enumerate(held)]
    folder = prepare(path, {"train": [records]}, name="speech")
    about = json.loads((folder / "features.json").read_text())
    named = "tensorflow_datasets.core.features.audio_feature.Audio"
    told = {"shape": {"dimensions": ["-1"]}, "dtype": "int64", "sampleRate": str(RATE)}
    about["featuresDict"]["features"]["audio"] = {"pythonClassName": named, "audio": told}
    about["featuresDict"]["features"]["label"]["classLabel"] = {"numClasses": "2"}
    (folder / "features.json").write_text(json.dumps(about))
    return str(folder.relative_to(path))


def as_zip_of_folders(path: Path, held: Sounds) -> str:
    with zipfile.ZipFile(path / "c.zip", "w") as archive:
        for i, (content, label) in enumerate(held):
            archive.writestr(f"{CLASSES[label]}/{i}.wav", content)
    return "c.zip"


def as_records(write: Callable[[Path, Records], None], name: str, path: Path, held: Sounds, **keys: str) -> str:
    """Records with the keys `audio` and `label`, or others: labels as numbers."""
    audio, label_ = keys.get("audio", "audio"), keys.get("label", "label")
    as_text = "label" in keys or name.endswith(".mdb")
    write(path / name, [{audio: content, label_: str(label).encode() if as_text else label} for content, label in held])
    return name


def whole(write: Any, path: Path, held: Records) -> None:
    write(path, [record["audio"] for record in held])


WRITERS: dict[str, tuple[str, Callable[[Path, Sounds], str]]] = {
    "csv": ("csv", as_csv),
    "csv without a header": ("csv", partial(as_csv, header=False)),
    "csv above the sounds": ("csv", partial(as_csv, folder="audio")),
    "a folder with a table": ("csv", lambda path, held: as_csv(path, held) and ""),
    "jsonl": ("jsonl", as_jsonl),
    "parquet": ("parquet", as_parquet),
    "parquet of paths": ("parquet", partial(as_parquet, paths=True)),
    "huggingface": ("huggingface", as_huggingface),
    "tfds": ("tfds", as_tfds),
    "zip of folders": ("audio_folder", as_zip_of_folders),
    "tfrecord": ("tfrecord", partial(as_records, files.write_tfrecord, "a.tfrecord")),
    "tar": ("webdataset", partial(as_records, files.write_tar, "a.tar", audio="wav", label="cls")),
    "zip": ("zip", partial(as_records, files.write_zip, "a.zip", audio="wav", label="cls")),
    "mds": ("mds", partial(as_records, files.write_mds, "a.mds")),
    "sqlite": ("sqlite", partial(as_records, files.write_sqlite, "a.sqlite")),
    "hdf5": ("hdf5", partial(as_records, files.write_hdf5, "a.h5")),
    "lmdb": ("lmdb", partial(as_records, files.write_lmdb, "a.mdb")),
    "array_record": ("array_record", partial(as_records, files.write_array_record, "a.array_record")),
}
"""By the form, the source of the spec that is written of it, and its writer, which returns what `init` is asked of."""
LIBRARIES = {"hdf5": "h5py", "lmdb": "lmdb", "array_record": "array_record"}


@pytest.mark.by_day(2)
@pytest.mark.parametrize("form", WRITERS)
def test_a_form_of_sounds_gives_batches(form: str, cli: Cli, tmp_path: Path) -> None:
    if form in LIBRARIES:
        pytest.importorskip(LIBRARIES[form])
    op, write = WRITERS[form]
    (tmp_path / "data").mkdir()
    asked = write(tmp_path / "data", sounds())
    result = cli("init", f"data/{asked}".rstrip("/"), "-o", "a.pipegen.yaml")
    assert result.exit_code == 0, result.output
    assert not inspect("a.pipegen.yaml").diagnostics.has_errors
    text = Path("a.pipegen.yaml").read_text()
    assert f"# {COUNT} sounds examined: {RATE} Hz; 0.1 seconds long" in text
    assert "- random_crop: {seconds: 0.1, padding: as_needed}" in text
    assert pipegen.load("a.pipegen.yaml").model.source.op == op
    pipe = pipegen.build("a.pipegen.yaml", overrides={"batch.size": 1}, runtime={"jit": "never"})
    seen = []
    for split in pipe.splits:
        for x, y in pipe.dataset(split, epoch=0):
            level = x.numpy()[0, :, 0]
            assert x.shape == (1, FRAMES, 1)
            assert np.ptp(level) == 0
            seen.append((round(float(level[0]) * 32), int(y.numpy()[0])))
    assert sorted(seen) == [(i, i % 2) for i in range(COUNT)]


@pytest.mark.parametrize("times", ["onset,offset", "onset,duration", "start,end", "start,duration"])
def test_a_table_with_a_row_for_each_event(times: str, cli: Cli, tmp_path: Path) -> None:
    """As DCASE has it: what happens in a sound is in as many rows."""
    lasting = [
        (number, start, 0.02, CLASSES[(number + row) % 2]) for number in range(8) for row, start in enumerate([0.01, 0.05][: number % 3])
    ]
    in_files(tmp_path, sounds()[:8])
    rows = [f"{n}.wav\t{start}\t{long if times.endswith('duration') else start + long}\t{label}" for n, start, long, label in lasting]
    header = f"filename,{times},event_label".replace(",", "\t")
    (tmp_path / "t.tsv").write_text("\n".join([header, *rows, *(f"{n}.wav\t\t\t" for n in (0, 3, 6))]))
    assert "8 sounds with events in 10 rows" in cli("init", "t.tsv", "-o", "a.pipegen.yaml").output
    overrides = {"transforms": [{"crop_or_pad": {"seconds": 0.1}}, {"spectrogram": {"window": 80, "hop": 80, "center": "hop"}}]}
    pipe = pipegen.build("a.pipegen.yaml", overrides=overrides | {"batch.size": 1, "shuffle": "none"}, runtime={"jit": "never"})
    due = {n: np.zeros((10, 2), np.float32) for n in range(8)}
    for n, start, long, label in lasting:
        due[n][round(start * 100) : round((start + long) * 100), CLASSES.index(label)] = 1
    seen = 0
    for split in pipe.splits:
        for name, (_, y) in zip(pipe.files(split), pipe.dataset(split, epoch=0), strict=True):
            np.testing.assert_array_equal(y.numpy()[0], due[int(Path(name).stem)])
            seen += 1
    assert seen == 8
    assert "loss: binary_crossentropy" in str(pipe)
    assert cli("validate", "a.pipegen.yaml", "--data=all").exit_code == 0


def test_sounds_without_labels(cli: Cli, tmp_path: Path) -> None:
    """Files of records, whole: nothing else is in them."""
    files.write_tfrecord(tmp_path / "a.tfrecord", [content for content, _ in sounds()])
    assert cli("init", "a.tfrecord").exit_code == 0
    text = Path("a.pipegen.yaml").read_text()
    assert "content: bytes" in text
    assert "output: {x: audio, y: null}  # there are no labels" in text
    assert cli("validate", "a.pipegen.yaml", "--data=all").exit_code == 0


def test_sounds_beside_images_are_named(cli: Cli, tmp_path: Path) -> None:
    """An image comes first; what else a record has is in a comment."""
    files.write_tfrecord(tmp_path / "a.tfrecord", [{"jpg": files.jpeg("20x16"), "wav": sound, "cry": sound} for sound, _ in sounds()])
    assert cli("init", "a.tfrecord").exit_code == 0
    text = Path("a.pipegen.yaml").read_text()
    assert "image: {kind: image, key: jpg}" in text
    assert '# The records also have "cry" (sound), "wav" (sound)' in text
    files.write_tfrecord(tmp_path / "b.tfrecord", [{"wav": sound, "cry": sound} for sound, _ in sounds()])
    assert cli("init", "b.tfrecord").exit_code == 0
    text = Path("b.pipegen.yaml").read_text()
    assert "# `audio` reads `wav`; `cry` is a sound, too: `cry: {kind: audio, key: cry}` adds one" in text
    assert "also have" not in text
