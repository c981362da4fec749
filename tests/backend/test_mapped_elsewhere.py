"""Files that a graph maps wherever it runs: only what is read of them is read, and any number of them does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tensorflow as tf
from record_files import examples, write_tfrecord

import pipegen
from pipegen.ops.lowering.graphs import elsewhere, meanwhile
from pipegen.ops.lowering.stored_readers import Maps
from pipegen.preparing import work

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

SIZE = 9 << 20
"""Bytes of a file that TensorFlow would make a constant of: it does so below 10 MiB."""


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """The address of a tf.data service with a worker, which makes datasets anew from graphs, away from the resources of this process."""
    dispatcher = tf.data.experimental.service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    worker = tf.data.experimental.service.WorkerServer(tf.data.experimental.service.WorkerConfig(address, heartbeat_interval_ms=50))
    yield dispatcher.target
    del worker


def served(dataset: tf.data.Dataset, service: str) -> tf.data.Dataset:
    number = tf.data.experimental.service.register_dataset(service, dataset)
    return tf.data.experimental.service.from_dataset_id("parallel_epochs", service, number, element_spec=dataset.element_spec)


def anonymous() -> int:
    """Bytes of this process that no file holds."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


def test_of_a_file_that_is_mapped_only_what_is_wanted_is_read(tmp_path: Path, service: str) -> None:
    files = [(str(tmp_path / f"{i}"), SIZE) for i in range(40)]
    for number, (path, size) in enumerate(files):
        with open(path, "wb") as file:  # what is not written takes no room on the disk, and as much memory as anything else
            file.seek(size - 100)
            file.write(bytes([number]) * 100)
    maps = Maps([*files, (str(tmp_path), 0)])

    def read(number: tf.Tensor) -> tf.Tensor:
        return maps.cut(maps.every(), number, tf.constant(SIZE - 100, tf.int64), tf.constant(3, tf.int64))

    with meanwhile(elsewhere, True):
        dataset = tf.data.Dataset.range(40).map(read, num_parallel_calls=2)
    before = anonymous()
    for run in (dataset, served(dataset, service), dataset):
        assert list(run.as_numpy_iterator()) == [bytes([i]) * 3 for i in range(40)]
    assert anonymous() - before < 40 * SIZE // 2


@pytest.mark.nightly
def test_a_service_reads_any_number_of_shards(tmp_path: Path, service: str) -> None:
    for shard in range(300):
        write_tfrecord(tmp_path / f"{shard:03}.tfrecord", examples(shard % 256, 2))
    features: dict[str, Any] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 4}}
    spec = {"pipegen": 1, "source": {"tfrecord": {"path": str(tmp_path), "features": features}}, "transforms": [{"resize": {"size": 2}}]}
    pipe = pipegen.build(spec | {"output": {"dtype": "uint8"}, "batch": {"size": 50}, "runtime": {"cache": "none"}})
    derived = pipe.dataset("train").map(lambda x, y: (x, y))
    same(derived, pipe.dataset("train"))
    same(served(derived, service), derived)
    write_tfrecord(tmp_path / "000.tfrecord", examples(7, 2))
    again = pipegen.build(pipe.spec).dataset("train").map(lambda x, y: x)
    seen = [tuple(pixel) for x in served(again, service).as_numpy_iterator() for pixel in x[:, 0, 0, :2].tolist()]
    assert (seen.count((7, 0)), seen.count((0, 0))) == (3, 1), "a file that was written anew is mapped anew"


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["raw", "jpeg"])
def test_a_service_reads_a_prepared_store(
    tmp_path: Path, service: str, form: Any, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SHARD_BYTES", 1)
    steps = [{"resize": {"size": 24}}, {"random_crop": {"size": 16}}]
    spec = {"pipegen": 1, "source": {"image_folder": {"path": str(photo_folder)}}, "transforms": steps, "batch": {"size": 4}}
    pipegen.prepare(spec, tmp_path / "store", format=form)
    pipe = pipegen.build(next((tmp_path / "store").glob("*.pipegen.yaml")))
    derived = pipe.dataset("train").map(lambda x, y: (x, y))
    same(derived, pipe.dataset("train"))
    same(served(derived, service), derived)


def same(found: tf.data.Dataset, wanted: tf.data.Dataset) -> None:
    pairs = list(zip(found, wanted, strict=True))
    assert pairs
    for one, other in pairs:
        for a, b in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
            assert tf.reduce_all(a == b)
