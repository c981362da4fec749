"""`pipegen init` of files whose pictures stand in them: the specs fit their data."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import Cli
from PIL import Image
from record_files import examples
from tfds_files import prepare

import pipegen
from pipegen.phases.compilation import collect_data, inspect


def written(cli: Cli, path: Path) -> tuple[str, Any]:
    """Runs `init`: the text of the spec, which has no findings, and its manifest."""
    result = cli("init", str(path))
    assert result.exit_code == 0, result.output
    name = result.stdout.split(":")[0].removeprefix("wrote ")
    assert not inspect(name).diagnostics.items
    return Path(name).read_text(encoding="utf-8"), collect_data(pipegen.load(name))


def png(size: tuple[int, int]) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", size).save(stream, "PNG")
    return stream.getvalue()


def test_parquet(cli: Cli, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", exc_type=ImportError)
    pq = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    pictures = [{"bytes": png((40, 30)), "path": None}] * 40
    pq.write_table(pa.table({"id": list(range(40)), "img": pictures, "breed": ["cat", "dog"] * 20}), tmp_path / "pets.parquet")
    text, manifest = written(cli, tmp_path / "pets.parquet")
    assert "image: {kind: image, column: img}" in text
    assert "label: {kind: label, column: breed}" in text
    assert "resize: {size: [30, 40]}" in text
    assert "PNG; 40 pixels wide, 30 high" in text
    assert manifest.num_examples("train") == 32
    pq.write_table(pa.table({"id": [1, 2], "note": ["a", "b"]}), tmp_path / "notes.parquet")
    assert "contains images" in cli("init", str(tmp_path / "notes.parquet")).output


def test_zarr(cli: Cli, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(tmp_path / "pets.zarr"), mode="w")
    for key, values in {"photo": np.zeros((20, 8, 6, 3), np.uint8), "y": np.arange(20) % 3}.items():
        group.create_array(key, shape=values.shape, chunks=(5, *values.shape[1:]), dtype=values.dtype)[...] = values
    text, manifest = written(cli, tmp_path / "pets.zarr")
    assert "image: {kind: image, key: photo}" in text
    assert "resize: {size: [8, 6]}" in text
    assert manifest.class_names == ("0", "1", "2")


def test_a_prepared_data_set(cli: Cli, tmp_path: Path) -> None:
    records = [examples(shard, 8) for shard in range(3)]
    folder = prepare(tmp_path / "data", {"train": records[:2], "test": records[2:]}, classes=("ant", "bee", "cat", "dog"))
    text, manifest = written(cli, folder)
    assert (tmp_path / "pets.pipegen.yaml").exists()
    assert "split: {train: train, validation: test}" in text
    assert "16 records of `train` in 4 classes" in text
    assert [manifest.num_examples(split) for split in manifest.splits] == [16, 8]
    alone = prepare(tmp_path / "more", {"train": records}, name="birds", classes=("ant", "bee", "cat", "dog"))
    assert "validation: 'train[80%:]'" in written(cli, alone)[0] or 'validation: "train[80%:]"' in written(cli, alone)[0]
