"""Writes the same photographs in every form that a source reads, each with the source that reads them there.

To add a source, add what writes it and its spec to `SOURCES`.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import written_tables as tables
from benchmarks.written_stores import WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

SHARDS = 4
SIDE = 256
"""Pixels of the sides of images that are stored as arrays."""
CLASSES = 1000
Photo = tuple[bytes, int]
"""The bytes of a file and its class."""


class SourceOf(NamedTuple):
    """What writes photographs to a folder, and the source that reads them there.

    Attributes:
        write: Takes the folder and the photographs.
        spec: From the folder to the source.
        decodes: Whether photographs are decoded when they are written, so that nothing else can be.
        library: What has to be installed, by the name that it is imported by.
    """

    write: Callable[[Path, Sequence[Photo]], None]
    spec: Callable[[Path], dict[str, Any]]
    decodes: bool = False
    library: str = ""


def _shares(photos: Sequence[Photo]) -> Iterator[tuple[int, Sequence[Photo]]]:
    each = -(-len(photos) // SHARDS)
    return ((i, photos[i * each : (i + 1) * each]) for i in range(SHARDS))


def _files(folder: Path, photos: Sequence[Photo]) -> None:
    for i, (content, label) in enumerate(photos):
        path = folder / f"class_{label:03}" / f"{i:06}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def _tfrecord(folder: Path, photos: Sequence[Photo]) -> None:
    import tensorflow as tf

    for shard, share in _shares(photos):
        with tf.io.TFRecordWriter(str(folder / f"{shard}.tfrecord")) as writer:
            for content, label in share:
                image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))
                classes = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                features = tf.train.Features(feature={"image": image, "label": classes})
                writer.write(tf.train.Example(features=features).SerializeToString(deterministic=True))


def _tar(folder: Path, photos: Sequence[Photo]) -> None:
    for shard, share in _shares(photos):
        with tarfile.open(folder / f"{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for i, (content, label) in enumerate(share):
                for key, part in (("image", content), ("label", str(label).encode())):
                    info = tarfile.TarInfo(f"{i:06}.{key}")
                    info.size = len(part)
                    archive.addfile(info, io.BytesIO(part))


def _zip(folder: Path, photos: Sequence[Photo], how: int = zipfile.ZIP_STORED) -> None:
    for shard, share in _shares(photos):
        with zipfile.ZipFile(folder / f"{shard}.zip", "w", how) as archive:
            for i, (content, label) in enumerate(share):
                archive.writestr(f"{i:06}.image", content)
                archive.writestr(f"{i:06}.label", str(label))


def _deflated(folder: Path, photos: Sequence[Photo]) -> None:
    _zip(folder, photos, zipfile.ZIP_DEFLATED)


def _mds(folder: Path, photos: Sequence[Photo]) -> None:
    import json

    import numpy as np

    about = {"column_names": ["image", "label"], "column_encodings": ["jpeg", "int"], "column_sizes": [None, 8]}
    config = json.dumps(about).encode()
    for shard, share in _shares(photos):
        samples = [struct.pack("<I", len(content)) + content + struct.pack("<q", label) for content, label in share]
        starts = np.cumsum([4 + 4 * (len(samples) + 1) + len(config), *map(len, samples)]).astype("<u4")
        (folder / f"{shard}.mds").write_bytes(struct.pack("<I", len(samples)) + starts.tobytes() + config + b"".join(samples))


def _compressed(folder: Path, photos: Sequence[Photo]) -> None:
    import gzip

    _tfrecord(folder, photos)
    for path in list(folder.iterdir()):
        path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()


def _parquet(folder: Path, photos: Sequence[Photo]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"image": [content for content, _ in photos], "label": [label for _, label in photos]})
    pq.write_table(table, folder / "all.parquet", row_group_size=100)


def _zarr(folder: Path, photos: Sequence[Photo]) -> None:
    import numpy as np
    import zarr

    for shard, share in _shares(photos):
        group = zarr.open_group(str(folder / f"{shard}.zarr"), mode="w")
        images: Any = np.empty(len(share), object)
        images[:] = [content for content, _ in share]
        group.create_array("image", shape=len(share), chunks=64, dtype="variable_length_bytes", compressors=None)[:] = images
        group.create_array("label", shape=len(share), chunks=4096, dtype="int64")[:] = np.array([label for _, label in share])


def _tfds(folder: Path, photos: Sequence[Photo]) -> None:
    import json

    own = folder / "photos" / "1.0.0"
    own.mkdir(parents=True)
    _tfrecord(own, photos)
    counts = [len(share) for _, share in _shares(photos)]
    for shard in range(SHARDS):
        (own / f"{shard}.tfrecord").rename(own / f"photos-train.tfrecord-{shard:05}-of-{SHARDS:05}")
    about = {"name": "photos", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": [str(count) for count in counts]}]}
    features = {"image": {"image": {}}, "label": {"classLabel": {"numClasses": str(CLASSES)}}}
    (own / "dataset_info.json").write_text(json.dumps(about))
    (own / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))


def _by_library(op: str) -> Callable[[Path, Sequence[Photo]], None]:
    def write(folder: Path, photos: Sequence[Photo]) -> None:
        ending, writer = WRITERS[op]
        for shard, share in _shares(photos):
            writer(folder / f"{shard}{ending}", share)

    return write


def _huggingface(folder: Path, photos: Sequence[Photo]) -> None:
    import json

    names = [f"data-{shard:05}-of-{SHARDS:05}.arrow" for shard in range(SHARDS)]
    for name, (_, share) in zip(names, _shares(photos), strict=True):
        WRITERS["arrow"][1](folder / name, share)
    classes = {"names": [f"class {i}" for i in range(CLASSES)], "_type": "ClassLabel"}
    about = {"features": {"image": {"_type": "Image"}, "label": classes}}
    (folder / "dataset_info.json").write_text(json.dumps(about))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], "_split": "train"}))


def _images(folder: Path, photos: Sequence[Photo]) -> Iterator[tuple[str, int]]:
    """Writes image files, and yields the name and the class of each."""
    folder.mkdir()
    for i, (content, label) in enumerate(photos):
        (folder / f"{i:06}.jpg").write_bytes(content)
        yield f"{i:06}", label


def _coco(folder: Path, photos: Sequence[Photo]) -> None:
    import json

    named = list(enumerate(_images(folder / "images", photos)))
    content = {
        "images": [{"id": i, "file_name": f"{name}.jpg"} for i, (name, _) in named],
        "annotations": [{"id": i, "image_id": i, "category_id": label, "bbox": [1, 1, 8, 8]} for i, (_, label) in named],
        "categories": [{"id": label, "name": f"class {label}"} for label in sorted({label for _, (_, label) in named})],
    }
    (folder / "boxes.json").write_text(json.dumps(content))


def _voc(folder: Path, photos: Sequence[Photo]) -> None:
    (folder / "Annotations").mkdir()
    corners = "<xmin>2</xmin><ymin>2</ymin><xmax>9</xmax><ymax>9</ymax>"
    for name, label in _images(folder / "JPEGImages", photos):
        thing = f"<object><name>class {label}</name><bndbox>{corners}</bndbox></object>"
        (folder / "Annotations" / f"{name}.xml").write_text(f"<annotation>{thing}</annotation>")


def _yolo(folder: Path, photos: Sequence[Photo]) -> None:
    (folder / "labels").mkdir()
    for name, label in _images(folder / "images", photos):
        (folder / "labels" / f"{name}.txt").write_text(f"{label} 0.5 0.5 0.25 0.25\n")


def _labelme(folder: Path, photos: Sequence[Photo]) -> None:
    import json

    for name, label in _images(folder / "all", photos):
        shape = {"label": f"class {label}", "shape_type": "rectangle", "points": [[1, 1], [9, 9]]}
        (folder / "all" / f"{name}.json").write_text(json.dumps({"imagePath": f"{name}.jpg", "shapes": [shape]}))


def _arrays(folder: Path, photos: Sequence[Photo]) -> None:
    import numpy as np
    from PIL import Image

    images: Any = np.lib.format.open_memmap(folder / "image.npy", "w+", np.uint8, (len(photos), SIDE, SIDE, 3))
    for row, (content, _) in enumerate(photos):
        images[row] = Image.open(io.BytesIO(content)).convert("RGB").resize((SIDE, SIDE))
    images.flush()
    np.save(folder / "label.npy", np.array([label for _, label in photos]))


def _read_arrays(folder: Path) -> dict[str, Any]:
    label = {"kind": "label", "classes": CLASSES, "path": str(folder / "label.npy")}
    return {"arrays": {"features": {"image": {"kind": "image", "path": str(folder / "image.npy")}, "label": label}}}


def _prepared(form: str) -> Callable[[Path, Sequence[Photo]], None]:
    def write(folder: Path, photos: Sequence[Photo]) -> None:
        import pipegen

        (folder / "files").mkdir()
        _files(folder / "files", photos)
        steps = [{"resize": {"size": [SIDE, SIDE]}}]
        spec = {"pipegen": 1, "source": {"image_folder": {"path": str(folder / "files")}}, "transforms": steps, "batch": {"size": 1}}
        pipegen.prepare(spec, folder / "store", format=form)  # type: ignore[arg-type]

    return write


def _read_prepared(folder: Path) -> dict[str, Any]:
    from pipegen import load

    source = load(next((folder / "store").glob("*.pipegen.yaml"))).model.source
    return {"prepared": source.model_dump(mode="json", exclude_unset=True) | {"path": str(folder / "store")}}


def output_of(source: dict[str, Any]) -> dict[str, Any]:
    """Returns the features that make a batch of what a source reads: images, and labels or boxes."""
    from pipegen.ops.registry import sources

    ((op, arguments),) = source.items()
    return {"x": "image", "y": "boxes"} if "boxes" in sources()[op].model_validate(arguments).infer() else {}


def records_of(op: str) -> Callable[[Path], dict[str, Any]]:
    """Returns the source of a folder of shards whose records have the keys `image` and `label`."""
    return lambda folder: {
        op: {"path": str(folder), "features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": CLASSES}}}
    }


def _table(folder: Path) -> dict[str, Any]:
    features = {"image": {"kind": "image"}, "label": {"kind": "label"}}
    return {"parquet": {"path": str(folder / "all.parquet"), "features": features}}


def _gzipped(folder: Path) -> dict[str, Any]:
    return {"tfrecord": records_of("tfrecord")(folder)["tfrecord"] | {"path": f"{folder}/*.gz", "compression": "gzip"}}


SOURCES: dict[str, SourceOf] = {
    "files": SourceOf(_files, lambda folder: {"image_folder": {"path": str(folder)}}),
    "tfrecord": SourceOf(_tfrecord, records_of("tfrecord")),
    "webdataset": SourceOf(_tar, records_of("webdataset")),
    "zip, stored": SourceOf(_zip, records_of("zip")),
    "zip, deflated": SourceOf(_deflated, records_of("zip")),
    "mds": SourceOf(_mds, records_of("mds")),
    "tfds": SourceOf(_tfds, lambda folder: {"tfds": {"name": "photos", "data_dir": str(folder)}}),
    "array_record": SourceOf(_by_library("array_record"), records_of("array_record"), library="array_record"),
    "arrow": SourceOf(_by_library("arrow"), records_of("arrow"), library="pyarrow"),
    "huggingface": SourceOf(_huggingface, lambda folder: {"huggingface": {"path": str(folder)}}, library="pyarrow"),
    "lmdb": SourceOf(_by_library("lmdb"), records_of("lmdb"), library="lmdb"),
    "hdf5": SourceOf(_by_library("hdf5"), records_of("hdf5"), library="h5py"),
    "sqlite": SourceOf(_by_library("sqlite"), records_of("sqlite")),
    "tfrecord, gzip": SourceOf(_compressed, _gzipped),
    "parquet": SourceOf(_parquet, _table, library="pyarrow"),
    "zarr": SourceOf(_zarr, records_of("zarr"), library="zarr"),
    "coco": SourceOf(
        _coco, lambda folder: {"coco": {"images": str(folder / "images"), "annotations": str(folder / "boxes.json"), "max": 4}}
    ),
    "voc": SourceOf(_voc, lambda folder: {"voc": {"path": str(folder)}}),
    "yolo": SourceOf(_yolo, lambda folder: {"yolo": {"path": str(folder)}}),
    "labelme": SourceOf(_labelme, lambda folder: {"labelme": {"path": str(folder)}}),
    "csv": SourceOf(tables.written_as("csv"), tables.read_as("csv")),
    "jsonl": SourceOf(tables.written_as("jsonl"), tables.read_as("jsonl"), library="pandas"),
    "excel": SourceOf(tables.written_as("excel"), tables.read_as("excel"), library="openpyxl"),
    "sql": SourceOf(tables.written_as("sql"), tables.read_as("sql"), library="sqlalchemy"),
    "archive, zip": SourceOf(tables.write_zip_folder, lambda folder: {"image_folder": {"path": str(folder / "photos.zip" / "photos")}}),
    "archive, tar": SourceOf(tables.write_tar_folder, lambda folder: {"image_folder": {"path": str(folder / "photos.tar" / "photos")}}),
    "arrays": SourceOf(_arrays, _read_arrays, decodes=True),
    "prepared, raw": SourceOf(_prepared("raw"), _read_prepared, decodes=True),
    "prepared, jpeg": SourceOf(_prepared("jpeg"), _read_prepared, decodes=True),
}
"""Every form, by the name of the source and what is particular about it; `files` are what the others are compared with."""
