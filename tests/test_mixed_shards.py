"""Shards as parts of a mix, beside a folder and beside each other: exact counts, resume at any step, shares of hosts, damage."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from mix_walk import Walk
from PIL import Image
from record_files import WRITERS, example, examples, framed

import pipegen
from benchmarks.written_stores import WRITERS as STORES
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNTS = (8, 5)
FOLDER = 7
"""Pictures in the folder beside the shards; the class of the i-th is i modulo 4, as that of the record behind i others is."""
CLASSES = ("d0", "c1", "d2", "c3")
"""The classes of the records, of which the folder has two."""
FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": list(CLASSES)}}
FORMS = ("tfrecord", "gzip", "webdataset", "zip", "mds", "array_record", "arrow", "hdf5", "lmdb", "sqlite", "zarr", "parquet")


def records(shard: int, damaged: tuple[int, int] | None) -> list[dict[str, Any]]:
    made = examples(shard, COUNTS[shard])
    if damaged is not None and damaged[0] == shard:
        made[damaged[1]]["image"] = b"junk"
    return made


def written(folder: Path, form: str, damaged: tuple[int, int] | None = None) -> dict[str, Any]:
    """Writes shards whose pictures have one colour, (the shard, the row, the class), and returns the source that reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    source: dict[str, Any] = {"path": str(folder), "features": FEATURES}
    if form == "parquet":
        write_parquet(folder / "all.parquet", [record for shard in range(len(COUNTS)) for record in records(shard, damaged)])
        return {form: source | {"path": str(folder / "all.parquet")}}
    for shard in range(len(COUNTS)):
        made = records(shard, damaged)
        if form == "gzip":
            (folder / f"{shard}.tfrecord.gz").write_bytes(gzip.compress(b"".join(framed(example(record)) for record in made), 1))
            source |= {"path": str(folder / "*.gz"), "compression": "gzip"}
        elif form in STORES:
            ending, write = STORES[form]
            write(folder / f"{shard}{ending}", [(record["image"], record["label"]) for record in made])
        elif form == "zarr":
            write_zarr(folder / f"{shard}.zarr", made)
        else:
            WRITERS[form](folder / f"{shard}.{ {'webdataset': 'tar'}.get(form, form) }", made)
    return {"tfrecord" if form == "gzip" else form: source}


def write_zarr(path: Path, made: list[dict[str, Any]]) -> None:
    import numpy as np

    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path), mode="w")
    pixels = np.array([pixel_of(record["image"]) for record in made], np.uint8)[:, None, None]
    columns = {"image": np.broadcast_to(pixels, (len(made), 2, 2, 3)), "label": np.array([record["label"] for record in made])}
    for key, column in columns.items():
        group.create_array(key, shape=column.shape, chunks=(3, *column.shape[1:]), dtype=column.dtype)[...] = column


def pixel_of(content: bytes) -> Any:
    import io

    return Image.open(io.BytesIO(content)).getpixel((0, 0))


def write_parquet(path: Path, made: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": [r["image"] for r in made], "label": [CLASSES[r["label"]] for r in made]}), path, row_group_size=3)


def write_folder(folder: Path) -> dict[str, Any]:
    for i in range(FOLDER):
        (folder / f"c{i % 4}").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2), (255, i, i % 4)).save(folder / f"c{i % 4}" / f"{i}.png")
    return {"image_folder": {"path": str(folder)}}


def build(parts: dict[str, Any], epoch: int = 100, **own: Any) -> Any:
    spec = {
        "pipegen": 1,
        "source": {"mix": {"epoch": epoch, "parts": parts}},
        "transforms": [{"resize": {"size": 2}}],
        "output": {"x": {"image": "image", "part": "part"}, "dtype": "uint8"},
        "batch": {"size": 8, "remainder": "keep"},
    }
    runtime = {"jit": "never", "cache": "none"} | own.pop("runtime", {})
    return pipegen.build(spec | own, runtime=runtime, allow_write=["/"])


def seen(pipe: Any, batches: Any) -> list[tuple[int, ...]]:
    """The part of each example and its pixel, whose last number is its class."""
    found = []
    for x, y in batches:
        for part, pixel, label in zip(x["part"].numpy().tolist(), x["image"].numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True):
            assert pipe.class_names[label] == (CLASSES[pixel[2]] if pixel[0] < len(COUNTS) else f"c{pixel[2]}")
            found.append((part, *pixel))
    return found


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.ops.sources.zarr.SMALL", 0)


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
def test_shards_beside_a_folder(form: str, tmp_path: Path) -> None:
    n = sum(COUNTS)
    photos, shards = write_folder(tmp_path / "p"), written(tmp_path / "r", form)
    parts = {"photos": {"weight": 0.3, "source": photos}, "records": {"weight": 0.7, "source": shards}}
    pipe = build(parts)
    walk = Walk(100, [[0.3], [0.7]])
    every: list[tuple[int, ...]] = []
    for epoch in range(2):
        whole = seen(pipe, pipe.dataset("train", epoch=epoch))
        assert [Counter(part for part, *_ in whole[at : at + 64]) for at in (0, 64)] == walk.windows(epoch)
        every += whole
    # 60 of 7 and 140 of 13 in two epochs: each ⌊⌋ or ⌈⌉ times, however the epochs lie
    for part, size, total in ((0, FOLDER, 60), (1, n, 140)):
        often = Counter(one for one in every if one[0] == part)
        assert len(often) == size
        assert set(often.values()) <= {total // size, -(-total // size)}
    for step in (5, 12):
        assert seen(pipe, pipe.dataset("train", epoch=1, step=step)) == whole[8 * step :]
    shares = [seen(pipe, pipe.dataset("train", epoch=1, shard=(i, 2))) for i in range(2)]
    cut = [shares[i][4 * step : 4 * step + 4] for step in range(12) for i in range(2)]
    assert [one for block in cut for one in block] == whole[:96]
    pipe.seek(1, 3)
    other = build(parts, batch={"size": 4, "remainder": "keep"})
    other.restore(json.loads(json.dumps(pipe.state())))
    assert seen(other, other.train) == whole[24:]


@pytest.mark.nightly
@pytest.mark.parametrize("form", [form for form in FORMS if form != "zarr"])
def test_damage_is_named_or_replaced_by_a_record_of_its_part(form: str, tmp_path: Path) -> None:
    photos, shards = write_folder(tmp_path / "p"), written(tmp_path / "r", form, damaged=(1, 2))
    parts = {"photos": {"weight": 0.5, "source": photos}, "records": {"weight": 0.5, "source": shards}}
    raising = build(parts, epoch=40)
    with pytest.raises(DataError, match=r"all\.parquet#10" if form == "parquet" else rf"{tmp_path}/r/1\.[\w.]+#2"):
        seen(raising, raising.dataset("train"))
    report = tmp_path / "damaged.jsonl"
    skipping = build(parts, epoch=40, errors={"decode": {"skip": {"max_fraction": 0.2, "report": str(report)}}})
    found = seen(skipping, skipping.dataset("train"))
    assert Counter(part for part, *_ in found) == {0: 20, 1: 20}
    assert {one[1:3] for one in found if one[0]} == {(s, r) for s, n in enumerate(COUNTS) for r in range(n)} - {(1, 2)}
    assert json.loads(report.read_text().splitlines()[1])["file"].endswith("#10" if form == "parquet" else "#2")
    assert seen(skipping, skipping.dataset("train", step=2)) == found[16:]


@pytest.mark.nightly
def test_shards_beside_shards_with_what_one_lacks(tmp_path: Path) -> None:
    """A part that is read by blocks comes first, one has its label filled, and one its weight from a tensor of another name."""
    first = written(tmp_path / "a", "gzip")
    first["tfrecord"]["features"] = {"image": {"kind": "image"}}
    second = written(tmp_path / "b", "tfrecord")
    second["tfrecord"]["features"] = FEATURES | {"w": {"kind": "weight", "key": "label"}}
    parts: dict[str, Any] = {
        "zipped": {"weight": 1, "source": first, "fill": {"label": "other", "weight": 0.5}},
        "plain": {"weight": 2, "source": second, "features": {"weight": "w"}},
    }
    with pytest.raises(SpecError, match="invalid class 'other'"):
        build(parts)
    parts["zipped"]["fill"]["label"] = "c1"
    own = {"output": {"x": {"image": "image", "part": "part"}, "sample_weight": "weight", "encode": {"label": "one_hot"}, "dtype": "uint8"}}
    pipe = build(parts, epoch=39, **own)
    assert pipe.class_names == CLASSES
    found = [
        (part, label, weight, pixel)
        for x, y, w in pipe.train
        for part, pixel, label, weight in zip(
            x["part"].numpy().tolist(), x["image"].numpy()[:, 0, 0].tolist(), y.numpy().argmax(1).tolist(), w.numpy().tolist(), strict=True
        )
    ]
    assert Counter(part for part, *_ in found) == {0: 13, 1: 26}
    assert {(label, weight) for part, label, weight, _ in found if not part} == {(1, 0.5)}
    assert all(label == weight == pixel[2] for part, label, weight, pixel in found if part)
    assert Counter(map(tuple, (pixel for part, *_, pixel in found if part))) == {
        (s, r, (s + r) % 4): 2 for s, n in enumerate(COUNTS) for r in range(n)
    }
    assert "zipped: shuffle of whole files, then in windows of 1GiB" in str(pipe.explain()).replace("1 GiB", "1GiB")
    assert pipe.labels("train").tolist() == [1] * 13 + [(s + r) % 4 for s, n in enumerate(COUNTS) for r in range(n)]


@pytest.mark.nightly
def test_validation_data_of_shards_is_complete_and_caches_change_nothing(tmp_path: Path) -> None:
    splits = {"parts": {"train": 0.7, "validation": 0.3}}
    parts = {
        "photos": {"weight": 0.5, "source": write_folder(tmp_path / "p"), "splits": splits},
        "records": {"weight": 0.5, "source": written(tmp_path / "r", "tfrecord"), "splits": splits},
    }
    pipe = build(parts, epoch=20)
    others = seen(pipe, pipe.validation)
    assert [part for part, *_ in others] == sorted(part for part, *_ in others)
    assert len(set(others)) == len(others) == pipe.num_examples("validation")
    both = {one[1:] for one in others} | {one[1:] for epoch in range(4) for one in seen(pipe, pipe.dataset("train", epoch=epoch))}
    assert len(both) == FOLDER + sum(COUNTS)
    for cache in ("memory", {"disk": str(tmp_path / "cache")}):
        cached = build(parts, epoch=20, runtime={"cache": cache})
        for epoch in (0, 1):
            assert seen(cached, cached.train) == seen(pipe, pipe.dataset("train", epoch=epoch))
