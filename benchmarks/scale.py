"""Measures what many records cost: to list, split, fingerprint and give their first batch, in seconds and bytes.

There are no files: a made-up folder lists names, and whatever is read is one tiny image. Each split method has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from benchmarks.record_scale import FORMS
from benchmarks.record_scale import SHARDS as FILES
from benchmarks.record_scale import measure as measure_source
from benchmarks.record_scale import show as show_source

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 10_000_000
CLASSES = 1000
GROUP = 100
"""Records that one group has."""
TARGET_S = 60
TARGET_BYTES = 2 * 2**30
PARTS = {"train": 0.8, "validation": 0.1, "test": 0.1}
METHODS: dict[str, dict[str, Any]] = {
    "random": {},
    "hash": {"method": "hash"},
    "stratified": {"stratify": "label"},
    "balanced": {"stratify": "label"},
    "subset": {},
    "grouped": {"group": {"path": r"(class_\d+/img_\d{6})"}},
}
SAMPLING: dict[str, dict[str, Any]] = {"balanced": {"balance": "label"}, "subset": {"subset": {"fraction": 0.5, "stratify": "label"}}}
"""What is sampled beside the split method."""
STATUS = Path("/proc/self/status")


class Phases:
    """Times phases, each with the memory that is resident at its end and the most that was so far."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time what is done meanwhile; phases within it are no part of it."""
        inside, start, cpu = self._sum(), time.perf_counter(), time.process_time()
        yield
        seconds = {"seconds": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}
        own = {kind: value - (self._sum()[kind] - inside[kind]) for kind, value in seconds.items()}
        self.found[name] = own | {"resident": _status("VmRSS"), "peak": _status("VmHWM")}

    def _sum(self) -> dict[str, float]:
        return {kind: sum(phase[kind] for phase in self.found.values()) for kind in ("seconds", "cpu_s")}


def listing_of(count: int) -> Any:
    """A folder of so many images in class folders, collected a folder at a time as a walk does."""
    import numpy as np

    from pipegen.ops.fields.strings import Collector
    from pipegen.ops.sources.listing.base import Listing, Location

    classes = min(CLASSES, count)
    ends = [(i + 1) * count // classes for i in range(classes)]
    keys, start = Collector(), 0
    for i, end in enumerate(ends):
        keys.add([f"class_{i:03d}/img_{record:08d}.jpg" for record in range(start, end)])
        start = end
    labels = np.repeat(np.arange(classes, dtype=np.int32), np.diff([0, *ends]))
    sizes = 50_000 + np.arange(count, dtype=np.uint32) % 100_000
    location = Location.below("/data/images", keys.strings(), sizes)
    return Listing.labelled("/data/images", location, labels, tuple(f"class_{i:03d}" for i in range(classes)))


def measure(method: str, count: int) -> dict[str, Any]:
    """What each phase takes with one split method, in this process."""
    import tensorflow as tf

    import pipegen
    from pipegen.data import collect
    from pipegen.ops.sources.class_folders import ImageFolder

    phases = Phases()
    assign, image = collect.assign, tf.io.encode_png(tf.zeros([8, 8, 3], tf.uint8))
    counts = iter((CLASSES, count))  # first a few, so that what TensorFlow itself takes to run is not counted for the records

    def list_them(*_: object) -> Any:
        with phases.phase("list"):
            return listing_of(next(counts))

    def split_them(*about: Any) -> Any:
        with phases.phase("split"):
            return assign(*about)

    def read(path: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.strings.regex_full_match(path, r"/data/images/class_\d+/img_\d{8}\.jpg"), image, "")

    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": "/data/images"}},
        "splits": {"parts": PARTS} | METHODS[method],
        "transforms": [{"resize": {"size": 224}}],
        "batch": {"size": 32},
        **({"sampling": SAMPLING[method]} if method in SAMPLING else {}),
    }
    for _ in range(2):
        phases.found.clear()
        start = _status("VmRSS")
        with (
            mock.patch.object(ImageFolder, "list", list_them),
            mock.patch.object(collect, "assign", split_them),
            phases.phase("build"),
        ):
            pipe = pipegen.build(spec)
        with phases.phase("fingerprint"):
            fingerprint = pipe.fingerprint
        with phases.phase("first batch"), mock.patch.object(tf.io, "read_file", read):
            next(iter(pipe["train"]))
    paths = pipe._manifest.listing.keys.blob.nbytes
    return {
        "method": method,
        "records": count,
        "fingerprint": fingerprint,
        "examples": {split: pipe.num_examples(split) for split in PARTS},
        "phases": phases.found,
        "seconds": sum(phase["seconds"] for phase in phases.found.values()),
        "peak": _status("VmHWM"),
        "path_bytes": paths / count,
        "bytes": (_status("VmRSS") - start) / count,
    }


def _status(name: str) -> int:
    """A line of this process's status, in bytes."""
    lines = STATUS.read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def show(found: dict[str, Any]) -> str:
    """A table of the phases, and whether the targets are met."""
    lines = [f"{found['method']}, {found['records']:,} records: {found['examples']}"]
    for name, phase in found["phases"].items():
        lines.append(
            f"  {name:12} {phase['seconds']:7.1f} s {phase['cpu_s']:7.1f} s CPU"
            f"  resident {phase['resident'] / 2**20:6,.0f} MiB  peak {phase['peak'] / 2**20:6,.0f} MiB"
        )
    within = "within" if found["seconds"] <= TARGET_S and found["peak"] <= TARGET_BYTES else "beyond"
    lines += [
        f"  {'together':12} {found['seconds']:7.1f} s {sum(phase['cpu_s'] for phase in found['phases'].values()):7.1f} s CPU"
        f"  peak {found['peak'] / 2**30:.2f} GiB with TensorFlow, {within} {TARGET_S} s and {TARGET_BYTES >> 30} GiB",
        f"  {'a record':12} {found['bytes'] - found['path_bytes']:.0f} bytes beside its path, which takes {found['path_bytes']:.0f}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the methods one after another, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="records to list (default: %(default)s)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="split methods (default: all)")
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--shards", type=int, nargs="?", const=10**9, help="instead, so many records in 10,000 files (default: %(const)s)")
    parser.add_argument("--source", choices=FORMS, help="instead, so many records in files of this source")
    parser.add_argument("--files", type=int, default=FILES, help="files of the source (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=0, help="bytes that a picture of it has at least (default: as few as it needs)")
    parser.add_argument("--folder", help="where they are written, and removed again (default: that of temporary files)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.shards:
        from benchmarks.shards import measure as of_shards

        for line in of_shards(args.shards):
            print(line, flush=True)
        return 0
    if args.source:
        of_records = measure_source(args.source, args.records, args.files, args.bytes, args.folder)
        print(json.dumps(of_records) if args.json else show_source(of_records))
        return 0
    if args.here:
        print(json.dumps(measure(args.methods[0], args.records)))
        return 0
    for method in args.methods:
        command = [sys.executable, "-m", "benchmarks.scale", "--here", "--records", str(args.records), "--methods", method]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        print(said if args.json else show(json.loads(said)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
