"""Windows of GeoTIFF files, one for each row of a table."""

from __future__ import annotations

import io
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

import pipegen
from pipegen.errors import DataError, OpErrors
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from pathlib import Path

rasterio = pytest.importorskip("rasterio")

SIDE, TILE, ROWS = 256, 16, 24
RASTERS = {name: np.random.default_rng(i).integers(0, 4000, (SIDE, SIDE, 3), np.uint16) for i, name in enumerate(("a.tif", "b.tif"))}


def write(path: Path, array: Any) -> None:
    about = {"driver": "GTiff", "height": SIDE, "width": SIDE, "count": 3, "dtype": "uint16", "tiled": True, "compress": "deflate"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(path, "w", blockxsize=64, blockysize=64, **about) as raster:
            raster.write(np.moveaxis(array, -1, 0))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Where the window of each row lies."""
    monkeypatch.chdir(tmp_path)
    for name, array in RASTERS.items():
        write(tmp_path / name, array)
    draw = np.random.default_rng(3)
    found = [(f"{'ab'[i % 2]}.tif", *map(int, draw.integers(0, SIDE - TILE, 2))) for i in range(ROWS)]
    lines = [f"{name},{top},{left},{TILE},{('field', 'wood')[i % 2]}" for i, (name, top, left) in enumerate(found)]
    (tmp_path / "windows.csv").write_text("\n".join(["image,top,left,side,label", *lines]))
    return found


def spec(window: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    image = {"kind": "image", "format": {"geotiff": {"bands": [3, 1], "window": window or ["top", "left", TILE, TILE]}}}
    return {
        "pipegen": 1,
        "source": {"csv": {"path": "windows.csv", "features": {"image": image, "label": {"kind": "label"}}}},
        "splits": {"parts": {"train": 16, "validation": 8}},
        "batch": {"size": 4},
        "runtime": {"jit": "never", "cache": "none"},
        **more,
    }


def due(row: tuple[str, int, int]) -> Any:
    name, top, left = row
    return RASTERS[name][top : top + TILE, left : left + TILE, [2, 0]].astype(np.float32)


def test_windows_are_cut_out_of_files_that_are_read_nowhere_else(table: list[tuple[str, int, int]], tmp_path: Path) -> None:
    listing = sources()["csv"].model_validate({**spec()["source"]["csv"], "where": "top > 60"}).list(tmp_path)
    kept = [row for row in table if row[1] > 60]
    keys = [f"{row[0]}#{i // 2 + 1}".removesuffix("#1") for i, row in enumerate(table) if row[1] > 60]
    assert listing.keys == keys, "that row and no other number, whatever `where` leaves out"
    assert listing.location.rows is not None
    assert listing.sizes.tolist() == [TILE * TILE * 2 * 4] * len(kept)
    assert "image" not in listing.columns
    for content, row in zip(listing.reader().stored("image", listing.location.rows), kept, strict=True):
        np.testing.assert_array_equal(np.load(io.BytesIO(content)), due(row))
    damaged = (tmp_path / "a.tif").read_bytes()
    at = next(i for i, row in enumerate(kept) if row[0] == "a.tif")
    about = (tmp_path / "a.tif").stat()
    (tmp_path / "a.tif").write_bytes(damaged[:200] + bytes(len(damaged) - 200))
    os.utime(tmp_path / "a.tif", ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    with pytest.raises(OSError, match=r"windows\.csv.*a\.tif was changed since it was listed"):
        listing.reader().stored("image", listing.location.rows[at : at + 1])
    with pytest.raises(DataError, match="was changed"):
        listing.reader().check()


@pytest.mark.nightly
def test_each_row_has_its_window_and_a_run_goes_on_where_it_was(table: list[tuple[str, int, int]]) -> None:
    pipe = pipegen.build(spec())
    seen = {
        image.tobytes(): int(label)
        for split in ("train", "validation")
        for x, y in pipe[split]
        for image, label in zip(x.numpy(), y, strict=True)
    }
    assert seen == {due(row).tobytes(): i % 2 for i, row in enumerate(table)}
    assert pipe["train"].element_spec[0].shape[1:] == (TILE, TILE, 2)
    whole = [x.numpy() for x, _ in pipe.dataset("train")]
    for expected, (x, _) in zip(whole[2:], pipe.dataset("train", step=2), strict=True):
        np.testing.assert_array_equal(x, expected)


def test_what_is_wrong_with_a_window_is_said(table: list[tuple[str, int, int]], tmp_path: Path) -> None:
    lines = (tmp_path / "windows.csv").read_text().splitlines()
    for cell, says in (("-1", "holds '-1', but a window needs an integer of 0 or more"), ("1.5", "holds '1.5'"), ("", "holds ''")):
        (tmp_path / "windows.csv").write_text("\n".join([lines[0], f"a.tif,{cell},0,16,field", *lines[2:]]))
        with pytest.raises(OpErrors, match=says) as caught:
            sources()["csv"].model_validate(spec()["source"]["csv"]).list(tmp_path)
        assert [(e.code, e.field) for e in caught.value.every] == [("PG423", "features.image.format.geotiff.window.0")]
    (tmp_path / "windows.csv").write_text("\n".join(lines))
    with pytest.raises(OpErrors, match="no column 'height'"):
        sources()["csv"].model_validate(spec(["top", "left", "height", 8])["source"]["csv"]).list(tmp_path)
    feature = {**spec()["source"]["csv"]["features"]["image"], "path": "*.tif"}
    with pytest.raises(ValidationError, match="needs a table"):
        sources()["files"].model_validate({"features": {"image": feature}})


@pytest.mark.nightly
def test_windows_of_sizes_of_their_own_in_shards(table: list[tuple[str, int, int]]) -> None:
    resized = spec(["top", "left", "side", "side"], transforms=[{"resize": {"size": 8}}])
    whole = pipegen.build(resized)
    for shard in range(2):
        own = pipegen.build(resized).dataset("train", shard=(shard, 2))
        got = [x.numpy() for x, _ in own]
        assert sum(map(len, got)) == 8
    assert {x.shape[1:] for x, _ in whole["validation"]} == {(8, 8, 2)}


@pytest.mark.nightly
def test_damage_is_named_or_skipped(table: list[tuple[str, int, int]], tmp_path: Path) -> None:
    path = tmp_path / "windows.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], f"b.tif,{SIDE - 4},0,{TILE},wood", *lines[4:]]))
    with pytest.raises(DataError, match=r"row 2|windows\.csv.*4.*ends outside"):
        list(pipegen.build(spec(splits={}))["train"])
    skipped = spec(splits={}, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    assert sum(len(x) for x, _ in pipegen.build(skipped)["train"]) == ROWS
    path.write_text("\n".join(lines))
    (tmp_path / "b.tif").write_bytes((tmp_path / "b.tif").read_bytes()[:-60_000])
    with pytest.raises(DataError, match=r"b\.tif"):
        list(pipegen.build(spec(splits={}))["train"])


@pytest.mark.nightly
def test_a_raster_that_is_written_anew_is_noticed(table: list[tuple[str, int, int]], tmp_path: Path) -> None:
    pipe = pipegen.build(spec())
    fingerprint = pipe.fingerprint
    write(tmp_path / "a.tif", RASTERS["b.tif"])
    os.utime(tmp_path / "a.tif", ns=(1, 1))
    with pytest.raises(DataError, match=r"a\.tif was changed"):
        list(pipe["train"])
    moved = (tmp_path / "windows.csv").read_text().replace(f"{table[0][1]},{table[0][2]}", "7,7", 1)
    (tmp_path / "windows.csv").write_text(moved)
    assert pipegen.build(spec()).fingerprint != fingerprint
