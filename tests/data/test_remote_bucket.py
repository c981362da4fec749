"""Every source of files and of records at `s3://`, on a server of this machine that drops connections."""

from __future__ import annotations

import csv
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from pipes import write_photos
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from dropping import Dropping
from record_files import WRITERS, examples

import pipegen
from benchmarks.written_stores import WRITERS as STORES
from pipegen.data.remote import caches
from pipegen.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.tf, pytest.mark.nightly, pytest.mark.timeout(900)]
pytest.importorskip("s3fs")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
FEATURES = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
MAPPED = {"tfrecord": ".tfrecord", "webdataset": ".tar", "zip": ".zip", "mds": ".mds"}
WHOLE = {name: suffix for name, (suffix, _) in STORES.items()}
FILES = ("image_folder", "archive", "files", "csv", "by_split")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A bucket, in front of it what drops every ninth connection, the folder whose files it has, and sources of each kind."""
    server_of = pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            patch.delenv(name, raising=False)
        patch.setattr(caches, "WAITS", 0.01)
        patch.setattr(caches, "TRIES", 12)
        server = server_of.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        port = server.get_host_and_port()[1]
        front = Dropping(port, every=9)
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{front.server_address[1]}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        import s3fs

        fs = s3fs.S3FileSystem(endpoint_url=f"http://127.0.0.1:{port}", skip_instance_cache=True)
        fs.mkdir("bucket")
        folder = tmp_path_factory.mktemp("data")
        made = sources(folder)
        fs.put(str(folder), "bucket/data", recursive=True)
        yield fs, folder, made
        assert front.dropped or front.seen < 9, "or nothing was dropped"
        front.close()
        server.stop()


def sections(source: dict[str, Any], cache: Path, **own: Any) -> dict[str, Any]:
    remote = {"path": str(cache), **own.pop("remote", {})}
    return {
        "pipegen": 1,
        "source": source,
        "transforms": [{"resize": {"size": 4}}],
        "batch": {"size": 8, "remainder": "keep"},
        "runtime": {"cache": "none", "remote_cache": remote},
    } | own


def sources(folder: Path) -> dict[str, Any]:
    """From the path of the data to a source of each kind, whose files are written into a folder."""
    photos = write_photos(folder / "photos", per_class=5)
    names = [path.relative_to(photos).as_posix() for path in sorted(photos.rglob("*.*g"))]
    with open(folder / "table.csv", "w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["file", "label"])
        table.writerows([name, name.partition("/")[0]] for name in names)
    shutil.make_archive(str(folder / "packed"), "zip", photos)
    made: dict[str, Any] = {
        "archive": lambda at: {"image_folder": {"path": f"{at}/packed.zip"}},
        "image_folder": lambda at: {"image_folder": {"path": f"{at}/photos"}},
        "files": lambda at: {"files": {"features": {"image": {"kind": "image", "path": f"{at}/photos"}}}},
        "csv": lambda at: {
            "csv": {
                "path": f"{at}/table.csv",
                "features": {"image": {"kind": "image", "column": "file", "root": f"{at}/photos"}, "label": {"kind": "label"}},
            }
        },
        "by_split": lambda at: {"by_split": {part: {"image_folder": {"path": f"{at}/photos"}} for part in ("train", "validation")}},
    }
    for form, suffix in {**MAPPED, **WHOLE}.items():
        (folder / form).mkdir()
        for shard, count in enumerate((17, 9)):
            records = examples(shard, count)
            if form in MAPPED:
                WRITERS[form](folder / form / f"{shard}{suffix}", records)
            else:
                STORES[form][1](folder / form / f"{shard}{suffix}", [(record["image"], record["label"]) for record in records])
        made[form] = lambda at, form=form, suffix=suffix: {form: {"path": f"{at}/{form}/*{suffix}", "features": FEATURES}}
    pictured = {"image": [record["image"] for record in examples(0, 20)], "label": [record["label"] for record in examples(0, 20)]}
    pq.write_table(pa.table(pictured), folder / "rows.parquet", row_group_size=5)
    made["parquet"] = lambda at: {"parquet": {"path": f"{at}/rows.parquet", "features": FEATURES}}
    return made


def blocks_in(cache: Path) -> dict[str, tuple[int, int]]:
    """The blocks that are kept, each with its inode and when it was written."""
    found = [path for path in (cache / "blocks").rglob("*-*") if not path.name.endswith(".part")]
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def equal(one: Any, other: Any) -> int:
    count = 0
    for here, there in zip(one, other, strict=True):
        parts = [(here, there)] if not isinstance(here, tuple) else zip(here, there, strict=True)
        for a, b in parts:
            assert np.array_equal(a, b)
        count += 1
    return count


@pytest.mark.parametrize("name", [*FILES, *MAPPED, *WHOLE, "parquet"])
def test_every_source_at_an_address_gives_what_it_gives_of_the_disk(bucket: Any, tmp_path: Path, name: str) -> None:
    _, folder, made = bucket
    here = pipegen.build(sections(made[name](folder), tmp_path / "c"))
    there = pipegen.build(sections(made[name]("s3://bucket/data"), tmp_path / "c"))
    split = "predict" if name == "files" else "train"
    for epoch in range(2):
        assert equal(here.dataset(split, epoch=epoch), there.dataset(split, epoch=epoch))
    assert here.spec_hash == there.spec_hash
    assert equal([*here.dataset(split)][1:], there.dataset(split, step=1)), "resumed"
    kept = blocks_in(tmp_path / "c")
    assert bool(kept) == (name in FILES or name in MAPPED)
    python = "remote files" in str(there.explain(physical=True))
    assert python == bool(kept), "which `explain` says"
    assert equal(here.dataset(split), pipegen.build(sections(made[name]("s3://bucket/data"), tmp_path / "c")).dataset(split))
    assert blocks_in(tmp_path / "c") == kept, "nothing is fetched twice"


def test_a_file_that_is_written_anew_while_training_goes_on_is_named(bucket: Any, tmp_path: Path) -> None:
    fs, *_ = bucket
    WRITERS["tfrecord"](tmp_path / "r" / "a.tfrecord", examples(0, 30))
    fs.put(str(tmp_path / "r"), "bucket/changing", recursive=True)
    pipe = pipegen.build(sections({"tfrecord": {"path": "s3://bucket/changing/a.tfrecord", "features": FEATURES}}, tmp_path / "c"))
    assert [*pipe.train]
    WRITERS["tfrecord"](tmp_path / "r" / "a.tfrecord", examples(1, 30))
    fs.put(str(tmp_path / "r" / "a.tfrecord"), "bucket/changing/a.tfrecord")
    with pytest.raises(DataError, match=r"s3://bucket/changing/a\.tfrecord changed after it was listed; build the pipeline again"):
        list(pipe.train)


SHARED = """
import sys, time
import pipegen
spec = {
    "pipegen": 1, "source": {"image_folder": {"path": "s3://bucket/shared"}}, "transforms": [{"resize": {"size": 4}}],
    "batch": {"size": 8, "remainder": "keep"}, "runtime": {"cache": "none", "remote_cache": {"path": sys.argv[1]}},
}
pipe = pipegen.build(spec)
print("built", flush=True)
sys.stdin.readline()
total = 0.0
for x, _ in pipe.dataset("train", epoch=0):
    total += float(x.numpy().sum(dtype="float64"))
    print("step", flush=True)
print("sum", total, flush=True)
"""


@contextmanager
def running(cache: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SHARED, str(cache)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_two_processes_share_a_cache_and_one_is_killed(bucket: Any, tmp_path: Path) -> None:
    fs, *_ = bucket
    photos = write_photos(tmp_path / "photos", per_class=30)
    fs.put(str(photos), "bucket/shared", recursive=True)
    expected = sum(
        float(x.numpy().sum(dtype="float64"))
        for x, _ in pipegen.build(sections({"image_folder": {"path": str(photos)}}, tmp_path)).dataset("train", epoch=0)
    )
    cache = tmp_path / "cache"

    def go(process: Any) -> None:
        process.stdin.write("go\n")
        process.stdin.flush()

    def until(process: Any, word: str) -> str:
        return next(line for line in process.stdout if line.startswith(word))

    with running(cache) as first, running(cache) as second, running(cache) as third:
        for process in (first, second, third):
            until(process, "built")
        for process in (first, second, third):
            go(process)
        until(first, "step")
        first.send_signal(signal.SIGKILL)
        sums = [float(until(process, "sum").split()[1]) for process in (second, third)]
    assert sums == [expected, expected]
    files = len([*photos.rglob("*.*g")])
    kept = blocks_in(cache)
    assert len(kept) == files, "each fits one block"
    with running(cache) as fourth:
        until(fourth, "built")
        go(fourth)
        assert float(until(fourth, "sum").split()[1]) == expected
    assert blocks_in(cache) == kept, "nothing is fetched twice"
