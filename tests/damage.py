"""The same records in every container that a source reads, and what can happen to the bytes of their files."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import sqlite3
import tarfile
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import record_files as files
import tfds_files
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COUNT, SHARDS, SIDE = 24, 2, 8
NAMES = ("cat", "dog", "owl")
Record = dict[str, Any]


class Container(NamedTuple):
    """What writes the records to a folder, and what reads them there.

    Attributes:
        row: The row of the table on `docs/sources.md` that says what it cannot tell.
        write: From the folder of the data.
        source: The source of a spec, from the folder.
        library: What has to be installed, by the name that it is imported by.
    """

    row: str
    write: Callable[[Path], None]
    source: Callable[[Path], dict[str, Any]]
    library: str = ""


@cache
def pixels(row: int) -> np.ndarray[Any, Any]:
    """The picture of a record, which is like no other."""
    return np.random.default_rng(row).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


@cache
def png(row: int) -> bytes:
    """The file of that picture."""
    stream = io.BytesIO()
    Image.fromarray(pixels(row)).save(stream, "PNG")
    return stream.getvalue()


def point(row: int) -> list[float]:
    """The tensor of a record."""
    return [float(row), row + 0.5]


def records() -> list[Record]:
    """Every record: a picture, a class and two numbers."""
    return [{"image": png(row), "label": row % 3, "point": point(row)} for row in range(COUNT)]


def shares() -> list[tuple[str, list[Record]]]:
    """The records of each shard, whose name says how many shards there are."""
    every, each = records(), COUNT // SHARDS
    return [(f"data-{i:05}-of-{SHARDS:05}", every[i * each : (i + 1) * each]) for i in range(SHARDS)]


FEATURES: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label"}, "point": {"kind": "tensor", "shape": [2]}}


def shards_of(op: str, **own: Any) -> Callable[[Path], dict[str, Any]]:
    """The source of a folder of shards."""
    return lambda folder: {op: {"path": str(folder), "features": FEATURES, **own}}


def one_file(ending: str, write: Callable[[Path, Sequence[Record]], Any]) -> Callable[[Path], None]:
    """What writes a file for each share of the records."""

    def of(folder: Path) -> None:
        for name, share in shares():
            write(folder / f"{name}{ending}", share)

    return of


# Archives


def write_tar(path: Path, contents: Sequence[tuple[str, bytes]], form: int = tarfile.USTAR_FORMAT, times: float = 0) -> None:
    """A tar archive; with times of fractions, as `TarFile.add` takes them from files, members have PAX headers."""
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in contents:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(content), times
            archive.addfile(info, io.BytesIO(content))


def write_zip(path: Path, contents: Sequence[tuple[str, bytes]], how: int = zipfile.ZIP_STORED) -> None:
    """A ZIP archive."""
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in contents:
            archive.writestr(zipfile.ZipInfo(name), content, how)


LONG = "long/" * 30
TARS: dict[str, Callable[..., None]] = {
    "ustar": write_tar,
    "pax": partial(write_tar, form=tarfile.PAX_FORMAT, times=0.5),
    "gnu": partial(write_tar, form=tarfile.GNU_FORMAT),
}
ZIPS: dict[str, Callable[..., None]] = {"stored": write_zip, "deflated": partial(write_zip, how=zipfile.ZIP_DEFLATED)}


def members(write: Callable[..., None], folder: str = "") -> Callable[[Path, Sequence[Record]], None]:
    return lambda path, share: write(path, files.members(share, folder))


def in_classes() -> list[tuple[str, bytes]]:
    """Image files in a folder for each class."""
    return [(f"photos/{NAMES[row % 3]}/{row:03}.png", png(row)) for row in range(COUNT)]


def write_folder(folder: Path, contents: Sequence[tuple[str, bytes]]) -> None:
    for name, content in contents:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def folder_in(ending: str, write: Callable[..., None]) -> tuple[Callable[[Path], None], Callable[[Path], dict[str, Any]]]:
    name = f"photos.{ending}"
    return (lambda folder: write(folder / name, in_classes())), lambda folder: {"image_folder": {"path": str(folder / name / "photos")}}


# Records in files of their own formats


def write_gzip(path: Path, share: Sequence[Record]) -> None:
    path.write_bytes(gzip.compress(b"".join(files.framed(files.example(record)) for record in share), 1, mtime=0))


def write_mds(folder: Path) -> None:
    shards = []
    for name, share in shares():
        path = files.write_mds(folder / f"{name}.mds", share)
        shards.append({"raw_data": {"basename": path.name, "bytes": path.stat().st_size}, "samples": len(share), "hashes": {}})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def write_arrow(path: Path, share: Sequence[Record], footer: bool = False) -> None:
    import pyarrow as pa

    with pa.OSFile(str(path), "wb") as out, (pa.ipc.new_file if footer else pa.ipc.new_stream)(out, _table(share).schema) as writer:
        writer.write_table(_table(share), max_chunksize=4)


def _table(share: Sequence[Record]) -> Any:
    import pyarrow as pa

    points = pa.array([record["point"] for record in share], pa.list_(pa.float32(), 2))
    return pa.table({"image": [r["image"] for r in share], "label": [r["label"] for r in share], "point": points})


def write_huggingface(folder: Path) -> None:
    import pyarrow as pa

    named = [(f"{name}.arrow", share) for name, share in shares()]
    for name, share in named:
        images = pa.array([{"bytes": r["image"], "path": None} for r in share])
        table = _table(share).set_column(0, "image", images)
        with pa.OSFile(str(folder / name), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table, max_chunksize=4)
    features = {"image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"}}
    splits = {"train": {"name": "train", "num_examples": COUNT}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features, "splits": splits}))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name, _ in named], "_split": "train"}))


def write_parquet(folder: Path, split: str = "data", **options: Any) -> None:
    import pyarrow.parquet as pq

    for name, share in shares():
        pq.write_table(_table(share), folder / f"{name.replace('data', split)}.parquet", row_group_size=4, **options)


def write_hdf5(path: Path, share: Sequence[Record], **layout: Any) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        arrays = {"image": np.stack([pixels(int(r["point"][0])) for r in share]), "label": [r["label"] for r in share]}
        for key, values in {**arrays, "point": [r["point"] for r in share]}.items():
            held = np.asarray(values)
            file.create_dataset(key, data=held, **({"chunks": (4, *held.shape[1:]), **layout} if layout else {}))


def write_zarr(path: Path, share: Sequence[Record], version: int = 3, checked: bool = False) -> None:
    import zarr

    group = zarr.open_group(str(path), mode="w", zarr_format=version)  # type: ignore[arg-type]
    arrays = {"image": np.stack([pixels(int(r["point"][0])) for r in share]), "label": np.array([r["label"] for r in share])}
    for key, held in {**arrays, "point": np.array([r["point"] for r in share], np.float32)}.items():
        more: dict[str, Any] = {"compressors": zarr.codecs.Crc32cCodec()} if checked else {}
        group.create_array(key, shape=held.shape, chunks=(4, *held.shape[1:]), dtype=held.dtype, **more)[...] = held


def write_lmdb(path: Path, share: Sequence[Record]) -> None:
    """A file whose tensors are `.npy` files."""
    files.write_lmdb(path, [dict(record, point=dict(files.members([record]))["0000.point"]) for record in share])


NUMBERED = {**FEATURES, "point": {"kind": "tensor"}}


def write_sqlite(path: Path, share: Sequence[Record]) -> None:
    """A database, whose columns are one number each."""
    files.write_sqlite(path, [{**record, "point": record["point"][0]} for record in share])


def write_tfds(folder: Path) -> None:
    tfds_files.prepare(folder, {"train": [share for _, share in shares()]}, name="pets", classes=NAMES)


# Tables, whose images are files


def rows() -> list[tuple[str, str, float, float]]:
    return [(f"images/{row:03}.png", NAMES[row % 3], *point(row)) for row in range(COUNT)]


def write_images(folder: Path) -> None:
    write_folder(folder, [(f"images/{row:03}.png", png(row)) for row in range(COUNT)])


COLUMNS = ("file", "label", "left", "top")


def write_csv(folder: Path) -> None:
    write_images(folder)
    (folder / "photos.csv").write_text("\n".join(",".join(map(str, row)) for row in (COLUMNS, *rows())) + "\n")


def write_jsonl(folder: Path) -> None:
    write_images(folder)
    (folder / "photos.jsonl").write_text("\n".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows()) + "\n")


def write_excel(folder: Path) -> None:
    from openpyxl import Workbook

    write_images(folder)
    book = Workbook()
    for row in (COLUMNS, *rows()):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    with zipfile.ZipFile(stream) as archive:  # less the times at which it was written
        contents = [(name, archive.read(name)) for name in archive.namelist()]
    write_zip(folder / "photos.xlsx", [pair for pair in contents if pair[0] != "docProps/core.xml"], zipfile.ZIP_DEFLATED)


def write_sql(folder: Path) -> None:
    write_images(folder)
    with sqlite3.connect(folder / "photos.db") as opened:
        opened.execute("CREATE TABLE photos (file TEXT, label TEXT, left REAL, top REAL)")
        opened.executemany("INSERT INTO photos VALUES (?, ?, ?, ?)", rows())
    opened.close()


def table_of(op: str, name: str = "") -> Callable[[Path], dict[str, Any]]:
    """The source of a table."""

    def source(folder: Path) -> dict[str, Any]:
        image = {"kind": "image", "column": "file", "root": str(folder)}
        features = {"image": image, "label": {"kind": "label"}, "point": {"kind": "tensor", "columns": ["left", "top"]}}
        place: dict[str, Any] = {"path": str(folder / name)}
        if op == "sql":
            query = "select * from photos order by file"
            place = {"url": f"sqlite:///{folder}/photos.db", "query": query, "snapshot": str(folder / "snapshot")}
        return {op: {**place, "features": features}}

    return source


def write_rasters(folder: Path) -> None:
    """A large raster, and a table of windows of it."""
    import tifffile

    raster = np.concatenate([pixels(row) for row in range(COUNT)])
    tifffile.imwrite(folder / "large.tif", raster, tile=(16, 16), compression="zlib", photometric="rgb")
    lines = [f"large.tif,{SIDE * row},{NAMES[row % 3]}" for row in range(COUNT)]
    (folder / "windows.csv").write_text("\n".join(["image,top,label", *lines]) + "\n")


def read_rasters(folder: Path) -> dict[str, Any]:
    image = {"kind": "image", "format": {"geotiff": {"bands": [1, 2, 3], "window": ["top", 0, SIDE, SIDE]}}}
    return {"csv": {"path": str(folder / "windows.csv"), "features": {"image": image, "label": {"kind": "label"}}}}


# Annotations, beside image files


def write_coco(folder: Path) -> None:
    write_images(folder)
    content = {
        "images": [{"id": row, "file_name": f"{row:03}.png", "width": SIDE, "height": SIDE} for row in range(COUNT)],
        "annotations": [{"id": row, "image_id": row, "category_id": row % 3, "bbox": [1, 1, 3, 4]} for row in range(COUNT)],
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)],
    }
    (folder / "boxes.json").write_text(json.dumps(content))


def write_voc(folder: Path) -> None:
    write_images(folder)
    (folder / "images").rename(folder / "JPEGImages")
    (folder / "Annotations").mkdir()
    corners = "<xmin>2</xmin><ymin>2</ymin><xmax>5</xmax><ymax>6</ymax>"
    for row in range(COUNT):
        thing = f"<object><name>{NAMES[row % 3]}</name><bndbox>{corners}</bndbox></object>"
        size = f"<size><width>{SIDE}</width><height>{SIDE}</height></size>"
        (folder / "Annotations" / f"{row:03}.xml").write_text(f"<annotation>{size}{thing}</annotation>")


def write_yolo(folder: Path) -> None:
    write_images(folder)
    (folder / "labels").mkdir()
    for row in range(COUNT):
        (folder / "labels" / f"{row:03}.txt").write_text(f"{row % 3} 0.5 0.5 0.25 0.25\n")
    (folder / "data.yaml").write_text(json.dumps({"names": NAMES}))


def write_labelme(folder: Path) -> None:
    write_images(folder)
    for row in range(COUNT):
        shape = {"label": NAMES[row % 3], "shape_type": "rectangle", "points": [[1, 1], [4, 5]]}
        about = {"imagePath": f"{row:03}.png", "imageWidth": SIDE, "imageHeight": SIDE, "shapes": [shape]}
        (folder / "images" / f"{row:03}.json").write_text(json.dumps(about))


# Arrays, pairs of files, stores


def arrays() -> dict[str, Any]:
    points = np.array([point(row) for row in range(COUNT)], np.float32)
    return {"image": np.stack([pixels(row) for row in range(COUNT)]), "label": np.arange(COUNT) % 3, "point": points}


def write_npy(folder: Path) -> None:
    for name, array in arrays().items():
        np.save(folder / f"{name}.npy", array)


def array_features(**own: Any) -> dict[str, Any]:
    return {name: {"kind": kind, **own.get(name, {})} for name, kind in (("image", "image"), ("label", "label"), ("point", "tensor"))}


def read_npy(folder: Path) -> dict[str, Any]:
    return {"arrays": {"features": array_features(**{name: {"path": str(folder / f"{name}.npy")} for name in arrays()})}}


def write_npz(folder: Path, deflated: bool = False) -> None:
    (np.savez_compressed if deflated else np.savez)(folder / "all.npz", **arrays())


def read_npz(folder: Path) -> dict[str, Any]:
    return {"arrays": {"path": str(folder / "all.npz"), "features": array_features()}}


def write_pairs(folder: Path) -> None:
    write_images(folder)
    (folder / "points").mkdir()
    for row in range(COUNT):
        np.save(folder / "points" / f"{row:03}.npy", np.array(point(row), np.float32))


def read_pairs(folder: Path) -> dict[str, Any]:
    array = {"kind": "array", "path": str(folder / "points/*.npy"), "format": "npy", "shape": [2]}
    return {"files": {"features": {"image": {"kind": "image", "path": str(folder / "images/*.png")}, "point": array}}}


def write_prepared(folder: Path, form: str) -> None:
    import pipegen

    write_folder(folder.parent / "plain", in_classes())
    source = {"image_folder": {"path": str(folder.parent / "plain" / "photos")}}
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": SIDE}}], "batch": {"size": 1}}
    more = {} if form in ("raw", "jpeg") else {"encoding": "png"}
    pipegen.prepare(spec, folder / "store", format=form, **more)  # type: ignore[arg-type]


def read_prepared(folder: Path) -> dict[str, Any]:
    """The source of a store, as its spec had it before anything was damaged."""
    from pipegen import load

    source = load(next((folder / "store").glob("*.pipegen.yaml"))).model.source
    return {"prepared": source.model_dump(mode="json", exclude_unset=True) | {"path": str(folder / "store")}}


CONTAINERS: dict[str, Container] = {
    "image_folder": Container(
        "files and folders",
        lambda folder: write_folder(folder, in_classes()),
        lambda folder: {"image_folder": {"path": f"{folder}/photos"}},
    ),
    **{f"image_folder, tar, {form}": Container("tar", *folder_in("tar", write)) for form, write in TARS.items()},
    **{f"image_folder, zip, {form}": Container("ZIP", *folder_in("zip", write)) for form, write in ZIPS.items()},
    "files": Container("files and folders", write_pairs, read_pairs),
    "csv": Container("CSV, JSON lines", write_csv, table_of("csv", "photos.csv")),
    "csv, geotiff": Container("CSV, JSON lines", write_rasters, read_rasters, "rasterio"),
    "jsonl": Container("CSV, JSON lines", write_jsonl, table_of("jsonl", "photos.jsonl"), "pandas"),
    "excel": Container("Excel", write_excel, table_of("excel", "photos.xlsx"), "openpyxl"),
    "sql": Container("SQL, data frames", write_sql, table_of("sql"), "sqlalchemy"),
    "parquet": Container("Parquet", write_parquet, shards_of("parquet"), "pyarrow"),
    "parquet, plain": Container(
        "Parquet", partial(write_parquet, compression="none", use_dictionary=False), shards_of("parquet"), "pyarrow"
    ),
    "parquet, checked": Container(
        "Parquet", partial(write_parquet, write_page_checksum=True, compression="none"), shards_of("parquet"), "pyarrow"
    ),
    "tfrecord": Container("TFRecord", one_file(".tfrecord", files.write_tfrecord), shards_of("tfrecord")),
    "tfrecord, gzip": Container(
        "TFRecord, gzip", one_file(".tfrecord.gz", write_gzip), lambda folder: shards_of("tfrecord", compression="gzip")(folder / "*.gz")
    ),
    "tfds": Container("TensorFlow Datasets", write_tfds, lambda folder: {"tfds": {"name": "pets", "data_dir": str(folder)}}),
    **{
        f"webdataset, {form}": Container("tar", one_file(".tar", members(write, LONG if form == "gnu" else "")), shards_of("webdataset"))
        for form, write in TARS.items()
    },
    **{f"zip, {form}": Container("ZIP", one_file(".zip", members(write)), shards_of("zip")) for form, write in ZIPS.items()},
    "mds": Container("MDS", one_file(".mds", files.write_mds), shards_of("mds")),
    "mds, index": Container("MDS", write_mds, shards_of("mds")),
    "array_record": Container(
        "ArrayRecord", one_file(".array_record", files.write_array_record), shards_of("array_record"), "array_record"
    ),
    "arrow, stream": Container("Arrow", one_file(".arrow", write_arrow), shards_of("arrow"), "pyarrow"),
    "arrow, file": Container("Arrow", one_file(".arrow", partial(write_arrow, footer=True)), shards_of("arrow"), "pyarrow"),
    "huggingface": Container("Hugging Face", write_huggingface, lambda folder: {"huggingface": {"path": str(folder)}}, "pyarrow"),
    "huggingface, hub": Container(
        "Hugging Face", partial(write_parquet, split="train"), lambda folder: {"huggingface": {"path": str(folder)}}, "pyarrow"
    ),
    "lmdb": Container("LMDB", one_file(".lmdb", write_lmdb), shards_of("lmdb"), "lmdb"),
    "hdf5, contiguous": Container("HDF5", one_file(".h5", write_hdf5), shards_of("hdf5"), "h5py"),
    "hdf5, chunks": Container("HDF5", one_file(".h5", partial(write_hdf5, compression=None)), shards_of("hdf5"), "h5py"),
    "hdf5, gzip": Container("HDF5", one_file(".h5", partial(write_hdf5, compression="gzip")), shards_of("hdf5"), "h5py"),
    "hdf5, fletcher32": Container("HDF5", one_file(".h5", partial(write_hdf5, fletcher32=True)), shards_of("hdf5"), "h5py"),
    "hdf5, bytes": Container("HDF5", one_file(".h5", files.write_hdf5), shards_of("hdf5"), "h5py"),
    "sqlite": Container("SQLite", one_file(".sqlite", write_sqlite), shards_of("sqlite", table="examples", features=NUMBERED)),
    "zarr, 2": Container("Zarr", one_file(".zarr", partial(write_zarr, version=2)), shards_of("zarr"), "zarr"),
    "zarr, 3": Container("Zarr", one_file(".zarr", write_zarr), shards_of("zarr"), "zarr"),
    "zarr, crc32c": Container("Zarr", one_file(".zarr", partial(write_zarr, checked=True)), shards_of("zarr"), "zarr"),
    "coco": Container(
        "annotations",
        write_coco,
        lambda folder: {"coco": {"images": f"{folder}/images", "annotations": f"{folder}/boxes.json", "max": 4}},
    ),
    "voc": Container("annotations", write_voc, lambda folder: {"voc": {"path": str(folder), "max": 4}}),
    "yolo": Container("annotations", write_yolo, lambda folder: {"yolo": {"path": str(folder), "max": 4}}),
    "labelme": Container("annotations", write_labelme, lambda folder: {"labelme": {"path": str(folder), "max": 4}}),
    "arrays, npy": Container("`.npy`, `.npz`", write_npy, read_npy),
    "arrays, npz": Container("`.npy`, `.npz`", write_npz, read_npz),
    "arrays, npz, deflated": Container("`.npy`, `.npz`", partial(write_npz, deflated=True), read_npz),
    **{
        f"prepared, {form}": Container("prepared stores", partial(write_prepared, form=form), read_prepared)
        for form in ("raw", "jpeg", "tfrecord", "webdataset", "array_record")
    },
}
NOT_ATTACKED = {
    "dataframe": "a table in memory has no bytes",
    "by_split": "it reads by the sources of its splits, which are attacked",
    "mix": "it reads by the sources of its parts, which are attacked",
    "audio_folder": "it lists as `image_folder` does; `tests/ops/test_sound_decoding.py` cuts and breaks sounds of every format",
    "series": "it reads by tables and arrays, which are attacked",
}
"""Sources without a container, and why."""


def spec_of(source: dict[str, Any]) -> dict[str, Any]:
    """A spec that reads every feature of a source, in its order."""
    from pipegen.ops.registry import sources

    ((op, arguments),) = source.items()
    names = [name for name, _ in sources()[op].model_validate(arguments).infer().items()]
    y = next(name for name in ("boxes", "label", "point") if name in names)
    spec: dict[str, Any] = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": SIDE}}], "shuffle": "none"}
    spec |= {"batch": {"size": COUNT, "remainder": "keep"}, "runtime": {"cache": "none", "jit": "never"}}
    return spec | {"output": {"x": {name: name for name in names if name != y}, "y": y}}


# What happens to files

BLOCK, SECTOR, END = 512, 4096, 10240
PICTURES = (".png", ".jpg", ".tif")
"""Files that are one picture each: what follows their end is no record."""

UNREAD = re.compile(r"\.yaml$|/shards/(key|\d+\.(json|npz))$")
"""Specs, and what `pipegen prepare` goes on by, which nothing reads that is prepared."""


def payloads() -> list[bytes]:
    """What a container holds of pictures, as bytes."""
    return [content for row in range(COUNT) for content in (png(row), pixels(row).tobytes())]


def structure(content: bytes) -> list[int]:
    """The places of the bytes that are not those of pictures: headers, indexes, labels, footers; all where pictures are compressed."""
    free = bytearray(b"\1" * len(content))
    for payload in payloads():
        at = content.find(payload)
        if at >= 0:
            free[at : at + len(payload)] = bytes(len(payload))
    return [place for place, is_free in enumerate(free) if is_free]


def boundaries(content: bytes) -> list[int]:
    """Places where a record, a member, a page or a line ends, as far as they show."""
    found = {*range(BLOCK, len(content), BLOCK)}
    for payload in payloads():
        at = content.find(payload)
        if at >= 0:
            end = at + len(payload)
            found |= {at, end, -(-end // 8) * 8, -(-end // 64) * 64}
    lines = {place + 1 for place, byte in enumerate(content) if byte == 10} if content.isascii() else set()
    messages, at = set(), 0
    while at + 12 <= len(content) and files.checksum(content[at : at + 8]) == content[at + 8 : at + 12]:  # a TFRecord file
        at += 16 + int.from_bytes(content[at : at + 8], "little")
        messages.add(at)
    return sorted(place for place in lines or messages or found if 0 < place < len(content)) or [len(content) // 2]


def _flip(content: bytearray, draw: random.Random) -> None:
    content[_place(content, draw)] ^= 1 << draw.randrange(8)


def _flip_anywhere(content: bytearray, draw: random.Random) -> None:
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def _place(content: bytearray, draw: random.Random) -> int:
    return draw.choice(structure(bytes(content)) or [draw.randrange(len(content))])


def _zero(size: int) -> Callable[[bytearray, random.Random], None]:
    def of(content: bytearray, draw: random.Random) -> None:
        at = _place(content, draw) // size * size
        for place in range(at, min(at + size, len(content))):
            content[place] = 0

    return of


def _cut(content: bytearray, draw: random.Random) -> None:
    del content[draw.randrange(len(content)) :]


def _cut_at_end(content: bytearray, draw: random.Random) -> None:
    del content[draw.choice(boundaries(bytes(content))) :]


def _cut_one(content: bytearray, draw: random.Random) -> None:
    del content[-1]


def _swap(content: bytearray, draw: random.Random) -> None:
    size = draw.choice([size for size in (SECTOR, BLOCK, 64, 8) if 2 * size <= len(content)] or [1])
    one, other = draw.sample(range(len(content) // size), 2) if len(content) > 1 else (0, 0)
    one, other = one * size, other * size
    content[one : one + size], content[other : other + size] = content[other : other + size], content[one : one + size]


def _zeros_behind(content: bytearray, draw: random.Random) -> None:
    content.extend(bytes(draw.choice((1, 8, BLOCK, SECTOR))))


def _garbage_behind(content: bytearray, draw: random.Random) -> None:
    content.extend(draw.randbytes(draw.choice((1, 8, BLOCK, SECTOR))))


def _copy_behind(content: bytearray, draw: random.Random) -> None:
    content.extend(bytes(content))


def _empty(content: bytearray, draw: random.Random) -> None:
    content.clear()


def _flip_number(content: bytearray, draw: random.Random) -> None:
    """Flips a bit of the numbers of a record, where they lie in the file as they are."""
    row = draw.randrange(COUNT)
    found = [content.find(np.array(point(row), dtype).tobytes()) for dtype in ("<f4", "<f8")]
    at = max(found)
    content[at + draw.randrange(8) if at >= 0 else draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def _zero_end(content: bytearray, draw: random.Random) -> None:
    content[-END:] = bytes(min(END, len(content)))


IN_PLACE: dict[str, Callable[[bytearray, random.Random], None]] = {
    "a bit flipped": _flip,
    "a bit flipped anywhere": _flip_anywhere,
    "a byte zeroed": _zero(1),
    "a word zeroed": _zero(8),
    "a block zeroed": _zero(BLOCK),
    "a sector zeroed": _zero(SECTOR),
    "blocks swapped": _swap,
    "a number flipped": _flip_number,
    "the end zeroed": _zero_end,
}
"""Faults that leave the size of a file as it is."""
BEHIND = {"zeros behind": _zeros_behind, "garbage behind": _garbage_behind, "a copy behind": _copy_behind}
CUT = {"cut": _cut, "cut at a boundary": _cut_at_end, "cut by a byte": _cut_one, "emptied": _empty}
GONE, KEPT = "gone", "index kept, "
WEIGHTS: dict[str, int] = {
    "a bit flipped": 20, "a bit flipped anywhere": 11, "a byte zeroed": 7, "a word zeroed": 9, "a block zeroed": 7, "a sector zeroed": 5,
    "blocks swapped": 5, "cut": 4, "cut at a boundary": 10, "cut by a byte": 2, "emptied": 2, "zeros behind": 3, "garbage behind": 4,
    "a copy behind": 3, GONE: 5, KEPT + "a bit flipped": 7, KEPT + "a word zeroed": 3, KEPT + "a block zeroed": 3,
}  # fmt: skip
"""How often each fault happens to a container."""
FAULTS = random.Random(0).sample([how for how, weight in WEIGHTS.items() for _ in range(weight)], sum(WEIGHTS.values()))
FAULTS += ["a number flipped"] * 3 + ["the end zeroed"]
"""The faults in the order of the cases."""


class Fault(NamedTuple):
    """What was done to a file: its path below the folder, and how."""

    file: str
    how: str

    def __str__(self) -> str:
        return f"{self.file}: {self.how}"


def keeps_index(how: str) -> bool:
    """Tells whether an index of the whole file is kept, and the file's size and time are what they were."""
    return how.startswith(KEPT)


def draw_fault(folder: Path, case: int, draw: random.Random) -> Fault:
    """Chooses a file of a folder for the fault of a case."""
    every = [path for path in sorted(folder.rglob("*")) if path.is_file() and not UNREAD.search(path.as_posix()) and path.stat().st_size]
    beside = [path for path in every if path.suffix not in PICTURES]
    how = FAULTS[case % len(FAULTS)]
    if how in BEHIND and not beside:
        how = "a bit flipped"
    apart = beside and (how in BEHIND or draw.random() < 0.7)
    return Fault(draw.choice(beside if apart else every).relative_to(folder).as_posix(), how)


def damage(folder: Path, fault: Fault, draw: random.Random) -> str:
    """Lets a fault happen; returns where the file differs now."""
    path, how = folder / fault.file, fault.how.removeprefix(KEPT)
    if how == GONE:
        path.unlink()
        return ""
    about, before = path.stat(), path.read_bytes()
    content, change = bytearray(before), {**IN_PLACE, **BEHIND, **CUT}[how]
    for _ in range(100):  # what is zeroed may be zeros
        change(content, draw)
        if content != before:
            break
    path.write_bytes(content)
    if keeps_index(fault.how):
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    if how in IN_PLACE:
        differs = [place for place, (one, other) in enumerate(zip(before, content, strict=True)) if one != other] or [-1, -1]
        return f"bytes {differs[0]} to {differs[-1]} of {len(before)}"
    return f"{len(content)} bytes in place of {len(before)}"
