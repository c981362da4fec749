"""The same records for every source that `features` describe: what holds every kind of field, and writers by source."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import record_files as files
from PIL import Image
from sound_files import decoded, encoded, noise
from tfds_files import prepare

COUNT, SIDE = 12, 16
CLASSES = ("cat", "dog", "owl")
NAMES = ("nose", "tail")
Record = dict[str, Any]
Features = dict[str, dict[str, Any]]
Written = tuple[dict[str, Any], Any]
"""The arguments of a source, and what is given as `data`."""

KINDS: Features = {
    "image": {"kind": "image"},
    "mask": {"kind": "mask", "classes": 3},
    "depth": {"kind": "dense", "interpolation": "nearest"},
    "label": {"kind": "label", "classes": list(CLASSES)},
    "tags": {"kind": "label", "separator": ";", "classes": list(CLASSES)},
    "vector": {"kind": "tensor", "shape": [3]},
    "load": {"kind": "series", "shape": [4]},
    "weight": {"kind": "weight"},
    "boxes": {"kind": "boxes", "format": "xywh"},
    "name": {"kind": "label", "with": "boxes", "classes": list(CLASSES)},
    "score": {"kind": "tensor", "with": "boxes"},
    "parts": {"kind": "keypoints", "with": "boxes", "names": list(NAMES)},
    "numbers": {"kind": "mask", "with": "boxes"},
    "face": {"kind": "keypoints", "names": list(NAMES)},
    "spots": {"kind": "keypoints"},
    "sound": {"kind": "audio", "rate": 8000},
    "events": {"kind": "events", "of": "sound"},
    "frames": {"kind": "events", "of": "sound", "hop_ms": 1},
    "call": {"kind": "label", "with": "frames", "classes": 3},
}
"""A feature of every kind, and of every form of it, without where it is stored."""
EMPTY = {"boxes": (0, 4), "name": (0,), "score": (0,), "parts": (0, 2, 3), "spots": (0, 3), "events": (0, 2)}
"""The shapes of no items."""


def png(pixels: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@cache
def records(least: int = 0) -> tuple[Record, ...]:
    """Records with some items each, from `least` on."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(COUNT):
        n = least or i % 4
        corners = rng.integers(0, 8, (n, 2))
        boxes = np.concatenate([corners, rng.integers(2, 8, (n, 2))], 1).astype(float)
        parts = np.concatenate([corners[:, None] + rng.integers(0, 3, (n, 2, 2)), rng.integers(1, 3, (n, 2, 1))], -1).astype(float)
        spots = np.concatenate([rng.integers(0, 15, (n, 2)), np.full((n, 1), 2)], -1).astype(float)
        numbers = np.zeros((SIDE, SIDE), np.uint8)
        for number, (x, y, width, height) in reversed([*enumerate(boxes.astype(int), 1)]):
            numbers[y : y + height, x : x + width] = number
        found.append(
            {
                "image": png(rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)),
                "mask": png(rng.integers(0, 3, (SIDE, SIDE), np.uint8)),
                "depth": png(((np.indices((SIDE, SIDE)).sum(0) * 7 + i) % 256).astype(np.uint8)),
                "numbers": png(numbers),
                "label": CLASSES[i % 3],
                "tags": [CLASSES[(i + k) % 3] for k in range(least or i % 3)],
                "vector": [i / 4, -1.0, 2.0 * i],
                "load": [i / 8, -1.0, 0.5, 2.0 * i],
                "weight": 1 + i / 2,
                "boxes": boxes.tolist(),
                "name": [CLASSES[(i + k) % 3] for k in range(n)],
                "score": rng.random(n).tolist(),
                "parts": parts.tolist(),
                "face": [[i / 2, 3.0, 2.0], [4.5, i / 4, 1.0]],
                "spots": spots.tolist(),
                "sound": encoded(noise(80, seed=i), 8000),
                "events": [[(i % 3 + k) / 1024, (i % 3 + k + 2) / 1024] for k in range(n)],
                "frames": [(i + k // 3) % 3 for k in range(10)],
                "call": [(i + k // 3) % 3 for k in range(10)],
            }
        )
    return tuple(found)


def as_arrays(held: Sequence[Record], names: Sequence[str]) -> dict[str, Any]:
    """The features of records as arrays and lists of arrays."""

    def column(name: str) -> Any:
        values = [record[name] for record in held]
        if name == "sound":
            return np.stack([decoded(value) for value in values])
        if isinstance(values[0], bytes):
            return np.stack([np.asarray(Image.open(io.BytesIO(value))) for value in values])
        if name == "tags":
            return values
        if name in EMPTY:
            return [np.array(value) if value else np.zeros(EMPTY[name]) for value in values]
        return np.array(values)

    return {name: column(name) for name in names}


def flat(record: Record) -> Record:
    """Numbers one after another, as a `tf.Example` has them."""
    whole = ("boxes", "parts", "face", "spots", "events")
    return {key: np.ravel(value).tolist() if key in whole else value for key, value in record.items()}


def one_after_another(features: Features) -> Features:
    """The features of such records."""
    return {name: {**feature, "shape": [3]} if name == "spots" else feature for name, feature in features.items()}


def apart(record: Record) -> tuple[Record, Record]:
    """The files of a record, and its values."""
    return {k: v for k, v in record.items() if isinstance(v, bytes)}, {k: v for k, v in record.items() if not isinstance(v, bytes)}


def keyed(features: Features, of: str, argument: str = "key") -> Features:
    """The features, with addresses that begin as `of` says, but for files."""
    files_of = {name for name in features if isinstance(records(2)[0].get(name), bytes)}
    return {name: feature if name in files_of else {**feature, argument: of + name} for name, feature in features.items()}


def indexed(record: Record) -> Record:
    """The classes by number, -1 for none of them."""
    several: Record = {key: [CLASSES.index(name) for name in record[key]] for key in ("name", "tags") if key in record}
    return {
        **record,
        **several,
        **({"label": CLASSES.index(label) if (label := record["label"]) in CLASSES else -1} if "label" in record else {}),
    }


def write_tfds(path: Path, held: Sequence[Record], features: Features) -> Written:
    numbered = [flat(indexed(record)) for record in held]
    folder = prepare(path, {"train": [numbered[:5], numbered[5:]]}, name="pets")
    described = json.loads((folder / "features.json").read_text())["featuresDict"]["features"]
    names = {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel", "classLabel": {"numClasses": "3"}}
    classed = {"name": {"sequence": {"feature": names}}, "tags": {"sequence": {"feature": names}}, "label": names}
    described |= {name: feature for name, feature in classed.items() if name in described}
    (folder / "features.json").write_text(json.dumps({"featuresDict": {"features": described}}))
    for name in ("name", "tags", "label"):
        (folder / f"{name}.labels.txt").write_text("\n".join(CLASSES))
    features = one_after_another(features)
    own = {name: {k: v for k, v in feature.items() if k != "classes" or name == "mask"} for name, feature in features.items()}
    return {"name": "pets", "data_dir": str(path), "features": own}, None


def arrow_table(held: Sequence[Record]) -> Any:
    pa = pytest.importorskip("pyarrow")
    rows = []
    for record in held:
        own, values = apart(record)
        rows.append({**own, "image": {"bytes": record["image"], "path": None}, "objects": values})
    return pa.Table.from_pylist(rows)


def write_arrow(path: Path, held: Sequence[Record], features: Features) -> Written:
    import pyarrow as pa

    table = arrow_table(held)
    with pa.OSFile(str(path / "a.arrow"), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return {"path": str(path / "a.arrow"), "features": keyed(features, "objects.")}, None


def write_huggingface(path: Path, held: Sequence[Record], features: Features) -> Written:
    write_arrow(path, held, features)
    label = {"names": list(CLASSES), "_type": "ClassLabel"}
    about: Record = {"objects": {"name": {"feature": label, "_type": "List"}}}
    about |= {name: {"dtype": "binary", "_type": "Value"} for name in ("mask", "depth", "numbers") if name in held[0]}
    about |= {"image": {"_type": "Image"}, "sound": {"sampling_rate": 8000, "_type": "Audio"}}
    splits = {"train": {"name": "train", "num_examples": len(held)}}
    (path / "dataset_info.json").write_text(json.dumps({"features": about, "splits": splits}))
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.arrow"}], "_split": "train"}))
    return {"path": str(path), "features": keyed(features, "objects.")}, None


def write_array_record(path: Path, held: Sequence[Record], features: Features) -> Written:
    pytest.importorskip("array_record")
    files.write_array_record(path / "a.array_record", map(flat, held))
    return {"path": str(path / "a.array_record"), "features": one_after_another(features)}, None


def write_tfrecord(path: Path, held: Sequence[Record], features: Features) -> Written:
    for number, some in enumerate((held[:5], held[5:])):
        files.write_tfrecord(path / f"a-{number}.tfrecord", map(flat, some))
    return {"path": str(path / "a-*.tfrecord"), "features": one_after_another(features)}, None


def write_archive(write: Callable[..., Any], ending: str, path: Path, held: Sequence[Record], features: Features) -> Written:
    write(path / f"a.{ending}", [{**own, "json": json.dumps(values).encode()} for own, values in map(apart, held)])
    return {"path": str(path / f"a.{ending}"), "features": keyed(features, "json.")}, None


def write_mds(path: Path, held: Sequence[Record], features: Features) -> Written:
    files.write_mds(path / "a.mds", [{**own, "about": values} for own, values in map(apart, held)])
    return {"path": str(path / "a.mds"), "features": keyed(features, "about.")}, None


def in_json(record: Record) -> Record:
    own, values = apart(record)
    return {**own, **{key: json.dumps(value) if isinstance(value, list) else value for key, value in values.items()}}


def write_lmdb(path: Path, held: Sequence[Record], features: Features) -> Written:
    pytest.importorskip("lmdb")
    files.write_lmdb(path / "a.mdb", [{k: v if k not in ("vector", "load") else npy(r[k]) for k, v in in_json(r).items()} for r in held])
    return {"path": str(path / "a.mdb"), "features": features}, None


def npy(value: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array(value, np.float32))
    return stream.getvalue()


def write_sqlite(path: Path, held: Sequence[Record], features: Features) -> Written:
    files.write_sqlite(
        path / "a.sqlite", [{k: v if k not in ("vector", "load") else npy(r[k]) for k, v in in_json(r).items()} for r in held]
    )
    return {"path": str(path / "a.sqlite"), "table": "examples", "features": features}, None


def write_hdf5(path: Path, held: Sequence[Record], features: Features) -> Written:
    pytest.importorskip("h5py")
    files.write_hdf5(path / "a.h5", list(map(indexed, held)))
    return {"path": str(path / "a.h5"), "features": features}, None


def write_zarr(path: Path, held: Sequence[Record], features: Features) -> Written:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path / "a.zarr"), mode="w")
    whole = [name for name, value in held[0].items() if not isinstance(value, bytes)]
    for key, values in as_arrays(list(map(indexed, held)), whole).items():
        group.create_array(key, data=np.array(values))
    for key in {*held[0]} - {*whole}:
        group.create_array(key, shape=(len(held),), dtype="variable_length_bytes")[:] = np.array([record[key] for record in held], object)
    return {"path": str(path / "a.zarr"), "features": features}, None


def ending(name: str) -> str:
    return ".wav" if name == "sound" else ".png"


def in_files(path: Path, held: Sequence[Record]) -> list[Record]:
    """The records, with their pictures and sounds in files."""
    rows = []
    for i, record in enumerate(held):
        own, values = apart(record)
        for name, content in own.items():
            (path / f"{name}-{i}{ending(name)}").write_bytes(content)
        rows.append({**{name: f"{name}-{i}{ending(name)}" for name in own}, **values})
    return rows


def texts(row: Record) -> Record:
    row = {**row, "tags": ";".join(row["tags"])}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in row.items()}


def spread(row: Record) -> Record:
    """With a column for each number of a tensor, and for each of the points with names."""
    vector = {f"vector{i}": value for i, value in enumerate(row["vector"])}
    points = {f"{name}_{side}": point[i] for name, point in zip(NAMES, row["face"], strict=True) for i, side in enumerate("xyv")}
    load = {f"load{i}": value for i, value in enumerate(row["load"])}
    return {**{key: value for key, value in row.items() if key not in ("vector", "load", "face")}, **vector, **load, **points}


COLUMNS = {
    "vector": [f"vector{i}" for i in range(3)],
    "load": [f"load{i}" for i in range(4)],
    "face": [f"{name}_{side}" for name in NAMES for side in "xyv"],
}


def in_columns(features: Features) -> Features:
    """The features of tables that are `spread`."""
    spread_out = {name: {k: v for k, v in features[name].items() if k != "shape"} for name in COLUMNS if name in features}
    return {**features, **{name: {**feature, "columns": COLUMNS[name]} for name, feature in spread_out.items()}}


def write_csv(path: Path, held: Sequence[Record], features: Features) -> Written:
    rows = [texts(spread(row)) for row in in_files(path, held)]
    with open(path / "t.csv", "w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return {"path": str(path / "t.csv"), "features": in_columns(features)}, None


def write_jsonl(path: Path, held: Sequence[Record], features: Features) -> Written:
    """Objects in a list, as annotation tools write them."""
    of_items = [name for name in ("boxes", "name", "score", "parts")]
    lines = []
    for row in in_files(path, held):
        objects = [dict(zip(of_items, one, strict=True)) for one in zip(*(row[name] for name in of_items), strict=True)]
        lines.append({**{key: value for key, value in row.items() if key not in of_items}, "objects": objects})
    (path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    own = keyed({name: feature for name, feature in features.items() if name in of_items}, "objects.", "column")
    return {"path": str(path / "t.jsonl"), "features": {**features, **own}}, None


def write_parquet(path: Path, held: Sequence[Record], features: Features) -> Written:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(list(held)), path / "t.parquet", row_group_size=5)
    return {"path": str(path / "t.parquet"), "features": features}, None


def as_frame(path: Path, held: Sequence[Record], features: Features) -> Written:
    pandas = pytest.importorskip("pandas")
    return {"features": below(features, path)}, pandas.DataFrame(in_files(path, held))


def below(features: Features, path: Path) -> Features:
    """The features, with the folder of their files."""
    return {n: {**f, "root": str(path)} if isinstance(records(2)[0].get(n), bytes) else f for n, f in features.items()}


def write_excel(path: Path, held: Sequence[Record], features: Features) -> Written:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    pandas.DataFrame([texts(spread(row)) for row in in_files(path, held)]).to_excel(path / "t.xlsx", index=False)
    return {"path": str(path / "t.xlsx"), "features": in_columns(features)}, None


def write_sql(path: Path, held: Sequence[Record], features: Features) -> Written:
    rows = [texts(spread(row)) for row in in_files(path, held)]
    with sqlite3.connect(path / "t.db") as base:
        base.execute(f"create table t ({', '.join(rows[0])})")
        base.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", [list(row.values()) for row in rows])
    return {"url": f"sqlite:///{path}/t.db", "query": "select * from t", "features": below(in_columns(features), path)}, None


def write_files(path: Path, held: Sequence[Record], features: Features) -> Written:
    """Files in a folder of each feature, and a joined table of the others."""
    table, _ = write_csv(path, held, {name: feature for name, feature in features.items() if not isinstance(held[0].get(name), bytes)})
    pictures = [name for name in features if name not in table["features"]]
    for name in pictures:
        (path / name).mkdir()
        for i in range(len(held)):
            (path / f"{name}-{i}{ending(name)}").rename(path / name / f"image-{i}{ending(name)}")
    folders = {name: {**features[name], "path": str(path / name)} for name in pictures}
    join = {"table": {"csv": {"path": table["path"]}}, "on": {"path": "image"}} if table["features"] else None
    return {"features": {**folders, **table["features"]}, "join": join}, None


def write_arrays(path: Path, held: Sequence[Record], features: Features) -> Written:
    plain = {name: {k: v for k, v in feature.items() if k != "shape"} for name, feature in features.items()}
    return {"features": plain}, as_arrays(held, list(features))


WRITERS: Mapping[str, Callable[[Path, Sequence[Record], Features], Written]] = {
    "array_record": write_array_record,
    "arrays": write_arrays,
    "arrow": write_arrow,
    "csv": write_csv,
    "dataframe": as_frame,
    "excel": write_excel,
    "files": write_files,
    "hdf5": write_hdf5,
    "huggingface": write_huggingface,
    "jsonl": write_jsonl,
    "lmdb": write_lmdb,
    "mds": write_mds,
    "parquet": write_parquet,
    "sql": write_sql,
    "sqlite": write_sqlite,
    "tfds": write_tfds,
    "tfrecord": write_tfrecord,
    "webdataset": partial(write_archive, files.write_tar, "tar"),
    "zip": partial(write_archive, files.write_zip, "zip"),
    "zarr": write_zarr,
}
FULL = {"hdf5", "zarr"}
"""Sources of arrays, in which each record has as many items."""
