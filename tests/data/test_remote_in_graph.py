"""Data at `s3://` that TensorFlow 2.16 reads in the graph by tensorflow-io, on a server of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from pipes import write_photos

import pytest
from record_files import examples, write_tfrecord

pytestmark = [pytest.mark.tf, pytest.mark.nightly, pytest.mark.timeout(600)]
pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
if find_spec("tensorflow_io") is None:  # importing it here would add its file systems to every test
    pytest.skip("tensorflow-io is not installed", allow_module_level=True)

SCRIPT = """
import logging, os, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
server.start()
os.environ["AWS_ENDPOINT_URL"] = os.environ["S3_ENDPOINT"] = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
import numpy as np
import s3fs
import pipegen

folder = sys.argv[1]
fs = s3fs.S3FileSystem(endpoint_url=os.environ["AWS_ENDPOINT_URL"])
fs.mkdir("bucket")
fs.put(folder, "bucket/data", recursive=True)
features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}

def spec(at, source):
    arguments = {"path": f"{at}/{source}"} | ({"features": features} if source == "tfrecord" else {})
    return {
        "pipegen": 1, "source": {source: arguments}, "transforms": [{"resize": {"size": 4}}], "batch": {"size": 4, "remainder": "keep"},
        "runtime": {"cache": "none", "remote_cache": {"path": f"{folder}/cache", "fetch": "none"}},
    }

for source in ("image_folder", "tfrecord"):
    here, there = (pipegen.build(spec(at, source)) for at in (folder, "s3://bucket/data"))
    count = 0
    for (x, y), (u, v) in zip(here.train, there.train, strict=True):
        assert np.array_equal(x, u) and np.array_equal(y, v)
        count += 1
    print(source, count, there.files("train")[0], flush=True)
os._exit(0)  # the library aborts when a process ends that has used it
"""


def test_addresses_are_read_in_the_graph(tmp_path: Path) -> None:
    write_photos(tmp_path / "image_folder", per_class=3)
    for shard in range(2):
        write_tfrecord(tmp_path / "tfrecord" / f"{shard}.tfrecord", examples(shard, 9))
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
    environment = (
        os.environ | keys | {"AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "S3_USE_HTTPS": "0", "S3_VERIFY_SSL": "0"}
    )
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    folder, records = done.stdout.splitlines()
    assert folder.startswith("image_folder 3 s3://bucket/data/image_folder/")
    assert records.startswith("tfrecord 5 s3://bucket/data/tfrecord/")
