"""`pipegen init` on the same photographs in every form: what it writes has no errors, reads all of them, and gives a batch."""

from __future__ import annotations

import gzip
import io
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_helpers import Cli
from PIL import Image
from record_files import WRITERS, jpeg

import pipegen
from benchmarks.written_sources import SOURCES
from pipegen.phases.compilation import inspect

pytestmark = pytest.mark.tf

COUNT = 24
BY_DAY = ("tfrecord, gzip", "zarr", "sql")
WRITTEN: dict[str, str] = {
    "files": "image_folder", "tfrecord": "tfrecord", "webdataset": "webdataset", "zip, stored": "zip", "zip, deflated": "zip", "mds": "mds",
    "tfds": "tfds", "array_record": "array_record", "arrow": "arrow", "huggingface": "huggingface", "lmdb": "lmdb", "hdf5": "hdf5",
    "sqlite": "sqlite", "tfrecord, gzip": "tfrecord", "parquet": "parquet", "zarr": "zarr", "coco": "coco", "voc": "voc", "yolo": "yolo",
    "labelme": "labelme", "csv": "csv", "jsonl": "jsonl", "excel": "excel", "sql": "sql", "archive, zip": "image_folder",
    "archive, tar": "image_folder", "arrays": "arrays",
}  # fmt: skip
"""By the form, the source of the spec that is written of its folder."""
NOT_LOOKED_FOR = {"prepared, raw", "prepared, jpeg"}
"""Stores that have a spec."""


def photographs() -> list[tuple[bytes, int]]:
    """Pictures of one gray level, by which they are known, and of two classes."""
    found = []
    for i in range(COUNT):
        stream = io.BytesIO()
        Image.new("RGB", (40, 32), (10 * i,) * 3).save(stream, "PNG")
        found.append((stream.getvalue(), i % 2))
    return found


def first_spec(cli: Cli, path: str) -> tuple[str, str]:
    """Runs `init`: the name of the spec, which has no errors, and its source."""
    result = cli("init", path)
    assert result.exit_code == 0, result.output
    name = result.stdout.split(":")[0].removeprefix("wrote ")
    assert not inspect(name).diagnostics.has_errors
    return name, pipegen.load(name).model.source.op


def read(spec: str) -> list[int]:
    """The gray level of every example of all splits."""
    pipe = pipegen.build(spec, runtime={"cache": "none"})
    found = []
    for split in pipe.splits:
        for batch in pipe.dataset(split, epoch=0):
            x = (batch[0] if isinstance(batch, tuple) else batch).numpy()
            assert x.ndim == 4
            assert x.shape[-1] == 3
            found += np.rint(x.mean((1, 2, 3)) * 255).astype(int).tolist()
    return found


def test_every_form_is_looked_at_or_said_to_be_none() -> None:
    assert set(WRITTEN) | NOT_LOOKED_FOR == set(SOURCES)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("form", [name if name in BY_DAY else pytest.param(name, marks=pytest.mark.nightly) for name in WRITTEN])
def test_the_folder_of_a_form_gives_batches(cli: Cli, tmp_path: Path, form: str) -> None:
    if SOURCES[form].library and find_spec(SOURCES[form].library) is None:
        pytest.skip(f"{SOURCES[form].library} is not installed")
    (tmp_path / "data").mkdir()
    SOURCES[form].write(tmp_path / "data", photographs())
    spec, op = first_spec(cli, "data")
    assert op == WRITTEN[form]
    text = Path(spec).read_text(encoding="utf-8")
    assert "24 " in text.splitlines()[1]
    steps = [line for line in text.splitlines() if "random_" not in line]  # they change what is read
    Path(spec).write_text("\n".join(steps).replace("batch: {size: ", "batch: {remainder: keep, size: "), encoding="utf-8")
    if "parts: {train: 0.8" in text:
        assert 18 <= pipegen.build(spec).num_examples("train") <= 20, "few records are not split by their hashes"
    found = read(spec)
    wanted = [10 * i for i in range(COUNT)]
    assert len(found) == COUNT
    assert np.abs(np.sort(found) - wanted).max() <= 2


@pytest.mark.parametrize("packed", [False, True])
def test_records_whose_files_are_called_by_their_numbers_alone(cli: Cli, tmp_path: Path, packed: bool) -> None:
    records = [{"image": jpeg("24x16"), "label": i % 3} for i in range(12)]
    for split, count in (("train", 2), ("validation", 1)):
        for number in range(count):
            path = WRITERS["tfrecord"](tmp_path / "d" / f"{split}-{number:05}-of-{count:05}", records)
            if packed:
                path.write_bytes(gzip.compress(path.read_bytes()))
    more = {"compression": "gzip"} if packed else {}
    spec, op = first_spec(cli, "d")
    assert op == "by_split"
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 3}}
    source = yaml.safe_load(Path(spec).read_text(encoding="utf-8"))["source"]["by_split"]
    parts = {"train": "d/train-*", "validation": "d/validation-*"}
    assert source == {split: {"tfrecord": {"path": path, "features": features, **more}} for split, path in parts.items()}
    assert first_spec(cli, "d/train-00000-of-00002")[1] == "tfrecord"


def test_other_files_of_such_names_are_no_records(cli: Cli, tmp_path: Path) -> None:
    for name in ("notes-1-of-2", "notes.gz"):
        (tmp_path / name).write_bytes(b"\x1f\x8bno records" if name.endswith("gz") else b"chapter one of two")
        result = cli("init", name)
        assert (result.exit_code, f"{name} is not a folder" in result.stderr) == (2, True)


def test_arrays_in_files_of_their_own(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for split, count in (("train", 8), ("test", 4)):
        np.save(tmp_path / "d" / f"x_{split}.npy", np.zeros((count, 6, 5, 3), np.uint8))
        np.save(tmp_path / "d" / f"y_{split}.npy", np.arange(count) % 2)
    spec, op = first_spec(cli, "d")
    pipe = pipegen.build(spec)
    assert (op, pipe.num_examples("train"), pipe.num_examples("test")) == ("by_split", 8, 4)
    assert first_spec(cli, "d/x_train.npy")[1] == "arrays"


def test_a_database_and_a_spec_in_different_folders(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    (tmp_path / "data").mkdir()
    SOURCES["sql"].write(tmp_path / "data", photographs())
    (tmp_path / "specs").mkdir()
    result = cli("init", "data/photos.db", "-o", "specs/photos.pipegen.yaml")
    assert result.exit_code == 0, result.output
    source = yaml.safe_load((tmp_path / "specs" / "photos.pipegen.yaml").read_text(encoding="utf-8"))["source"]["sql"]
    assert (source["url"], source["query"]) == ("sqlite:///../data/photos.db", 'select * from "photos" order by rowid')
    assert source["features"]["image"]["root"] == "../data"
    assert sorted(pipegen.build("specs/photos.pipegen.yaml").class_names) == ["0", "1"]


def test_a_store_has_a_spec_already(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    SOURCES["prepared, raw"].write(tmp_path / "data", photographs()[:4])
    result = cli("init", "data/store")
    assert result.exit_code == 2
    assert "data/store is a store of `pipegen prepare`" in result.stderr
    advice = result.stderr.split("`pipegen explain ")[1].split("`")[0]
    assert cli("explain", advice).exit_code == 0


def test_of_two_tables_beside_images_none_is_taken(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    SOURCES["csv"].write(tmp_path / "data", photographs())
    table = tmp_path / "data" / "photos.csv"
    (tmp_path / "data" / "again.csv").write_bytes(table.read_bytes())
    assert first_spec(cli, "data")[1] == "image_folder"
