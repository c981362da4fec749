"""Measures sources of records beside the same images as files; `python -m benchmarks.sources` writes the table.

Photographs are written once to each format. Then every source reads and decodes them in turn, several times over, in one process: a
source's rate is compared with that of the files in the same turn, so that a machine that slows down favours none. To add a source, add what
writes it and its spec to `SOURCES`.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import struct
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.measure import ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SHARDS = 4
BATCH = 32
SIZE = 224
Photo = tuple[bytes, int]
"""The bytes of a file and its class."""


class SourceOf(NamedTuple):
    """What writes photographs to a folder, and the source that reads them there."""

    write: Callable[[Path, Sequence[Photo]], None]
    spec: Callable[[Path], dict[str, Any]]


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
                writer.write(tf.train.Example(features=features).SerializeToString())


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
    features = {"image": {"image": {}}, "label": {"classLabel": {"numClasses": "1000"}}}
    (own / "dataset_info.json").write_text(json.dumps(about))
    (own / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))


def records_of(op: str) -> Callable[[Path], dict[str, Any]]:
    """Returns the source of a folder of shards whose records have the keys `image` and `label`."""
    return lambda folder: {op: {"path": str(folder), "features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 1000}}}}


SOURCES = {
    "files": SourceOf(_files, lambda folder: {"image_folder": {"path": str(folder)}}),
    "tfrecord": SourceOf(_tfrecord, records_of("tfrecord")),
    "webdataset": SourceOf(_tar, records_of("webdataset")),
    "zip, stored": SourceOf(_zip, records_of("zip")),
    "zip, deflated": SourceOf(_deflated, records_of("zip")),
    "mds": SourceOf(_mds, records_of("mds")),
    "tfrecord, gzip": SourceOf(
        _compressed,
        lambda folder: {"tfrecord": records_of("tfrecord")(folder)["tfrecord"] | {"path": f"{folder}/*.gz", "compression": "gzip"}},
    ),
    "parquet": SourceOf(
        _parquet,
        lambda folder: {"parquet": {"path": f"{folder}/all.parquet", "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}},
    ),
    "zarr": SourceOf(_zarr, records_of("zarr")),
    "tfds": SourceOf(_tfds, lambda folder: {"tfds": {"name": "photos", "data_dir": str(folder)}}),
}


def photographs(folder: Path, most: int) -> list[Photo]:
    """Reads the JPEG files of class folders, at most so many."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    found = [(path, label) for label, one in enumerate(classes) for path in sorted(one.glob("*.jp*g"))][:most]
    return [(path.read_bytes(), label) for path, label in found]


class Measured:
    """One source as it is measured.

    Attributes:
        rates: Images for each second of CPU, of each turn.
        first: Seconds of CPU from the spec to the first batch.
        index: Microseconds of CPU for a record, to list and index the data.
    """

    def __init__(self, source: SourceOf, folder: Path, count: int) -> None:
        import pipegen
        from pipegen.ops.registry import sources

        ((op, arguments),) = source.spec(folder).items()
        lists = sources()[op].model_validate(arguments).list
        lists(folder)  # what is imported for it
        start = time.process_time()
        lists(folder)
        self.index = (time.process_time() - start) / count * 1e6
        spec = {"pipegen": 1, "source": source.spec(folder), "transforms": [{"resize": {"size": SIZE}}], "output": {"dtype": "uint8"}}
        own = {"batch": {"size": BATCH}, "runtime": {"cache": "none"}}
        start = time.process_time()
        pipe = pipegen.build(spec | own)
        self.batches = pipe.dataset("train")
        next(iter(self.batches))
        self.first = time.process_time() - start
        self.rates: list[float] = []

    def turn(self) -> None:
        """Reads an epoch."""
        start, images = time.process_time(), 0
        for x, _ in self.batches:
            images += len(x)
        self.rates.append(images / (time.process_time() - start))


def table(photos: Sequence[Photo], folder: Path, repeats: int, names: Sequence[str]) -> Iterator[str]:
    """Yields the lines of the table."""
    measured: dict[str, Measured] = {}
    for name in names:
        own = folder / name.replace(", ", "-")
        own.mkdir()
        SOURCES[name].write(own, photos)
        measured[name] = Measured(SOURCES[name], own, len(photos))
    for _ in range(repeats):
        for one in measured.values():
            one.turn()
    size = statistics.mean(len(content) for content, _ in photos)
    yield f"{len(photos):,} JPEG files of {size / 1000:.0f} kB on average, decoded and resized to {SIZE}; medians of {repeats} turns"
    yield ""
    yield "| source | images for a second of CPU | beside files | first batch, s of CPU | index, µs of CPU a record |"
    yield "|---|--:|--:|--:|--:|"
    for name, one in measured.items():
        beside = ratio(one.rates, measured["files"].rates)
        yield f"| {name} | {statistics.median(one.rates):,.0f} | {beside:.2f} | {one.first:.1f} | {one.index:.1f} |"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition(";")[0])  # type: ignore[union-attr]
    parser.add_argument("photos", type=Path, help="a folder with a folder of JPEG files for each class")
    parser.add_argument("--most", type=int, default=2000, help="images that are taken")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[*SOURCES], choices=[*SOURCES], metavar="SOURCE")
    given = parser.parse_args()
    os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as folder:
        names = ["files", *(name for name in given.only if name != "files")]
        for line in table(photographs(given.photos, given.most), Path(folder), given.repeats, names):
            print(line, flush=True)


if __name__ == "__main__":
    main()
