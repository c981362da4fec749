"""Data at `gs://` that TensorFlow reads itself, on a server of this machine that drops connections."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from pipes import write_photos
from typing import TYPE_CHECKING

import pytest
from cloud_storage import Storage, certificate
from record_files import examples, write_tar, write_tfrecord

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.tf, pytest.mark.nightly, pytest.mark.timeout(600)]
pytest.importorskip("cryptography")

SCRIPT = """
import sys
import numpy as np
import pipegen

def spec(source, path, cache, **own):
    named = {"features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}} if source != "image_folder" else {}
    return {
        "pipegen": 1, "source": {source: {"path": path, **named}}, "transforms": [{"resize": {"size": 2}}],
        "batch": {"size": 4, "remainder": "keep"}, "runtime": {"cache": "none", "remote_cache": {"path": cache, **own}},
    }

source, folder, fetch, cache = sys.argv[1:]
here = pipegen.build(spec(source, f"{folder}/bucket/{source}", cache))
there = pipegen.build(spec(source, f"gs://bucket/{source}", cache, fetch=fetch))
assert here.spec_hash == there.spec_hash
count = 0
for (x, y), (u, v) in zip(here.train, there.train, strict=True):
    assert np.array_equal(x, u) and np.array_equal(y, v)
    count += len(y)
print("examples", count)
print(next(iter(there.files("train"))))
"""


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    folder = tmp_path / "data"
    write_photos(folder / "bucket" / "image_folder", per_class=3)
    for shard in range(2):
        write_tfrecord(folder / "bucket" / "tfrecord" / f"{shard}.tfrecord", examples(shard, 9))
        write_tar(folder / "bucket" / "webdataset" / f"{shard}.tar", examples(shard, 9))
    server = Storage(folder, certificate(tmp_path), drops=7)
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("source", "fetch", "kept"),
    [
        ("image_folder", "auto", False),
        ("tfrecord", "auto", True),
        ("webdataset", "auto", True),
        ("image_folder", "blocks", True),
        ("image_folder", "whole", True),
    ],
)
def test_a_bucket_gives_the_batches_of_the_folder(storage: Storage, tmp_path: Path, source: str, fetch: str, kept: bool) -> None:
    cache = tmp_path / "cache"
    environment = os.environ | storage.environment | {"CURL_CA_BUNDLE": str(tmp_path / "certificate.pem")}
    command = [sys.executable, "-c", SCRIPT, source, str(storage.folder), fetch, str(cache)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    count = 18 if source != "image_folder" else len([*(storage.folder / "bucket" / source).rglob("*.*g")])
    assert done.stdout.splitlines()[0] == f"examples {count}"
    own = "gs://" if fetch != "whole" else str(cache)
    assert done.stdout.splitlines()[1].startswith(own)
    bytes_kept = sum(
        path.stat().st_size for part in ("blocks", "files") for path in (cache / part).rglob("*-*" if part == "blocks" else "*.*")
    )
    assert (bytes_kept > 0) == kept
    assert len(storage.seen) > 7, "or nothing was dropped"
