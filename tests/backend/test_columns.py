"""What functions know of the records: columns that share their memory, and paths that are part of no graph."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tensorflow.core.framework.graph_pb2 import GraphDef

import pipegen
from pipegen.backend.process.traced_functions import plain
from pipegen.backend.reading import manifest_columns
from pipegen.backend.reading.manifest_columns import Column, Paths, columns_captured
from pipegen.backend.running.walk import batches_of
from pipegen.cache.folder import files_in
from pipegen.ops.fields.strings import Strings, aligned
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.physical.nodes import FIXED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


def folder(count: int) -> Listing:
    """So many images that are nowhere."""
    labels = [i % 10 for i in range(count)]
    location = Location.below("/data", [f"{c}/{i:07d}.jpg" for i, c in enumerate(labels)], [9] * count)
    return Listing.labelled("/data", location, labels, "0123456789")


def graphs(count: int, patch: pytest.MonkeyPatch) -> tuple[GraphDef, GraphDef]:
    """What TensorFlow writes of the training dataset in this process, and of what is derived from it."""
    patch.setattr(ImageFolder, "list", lambda *_: folder(count))
    spec = {"source": {"image_folder": {"path": "/data"}}, "transforms": [{"resize": {"size": 8}}], "runtime": {"cache": "none"}}
    pipe = pipegen.build({"pipegen": 1, "batch": {"size": 8}, **spec})
    return written(pipe)


def written(pipe: pipegen.Pipeline) -> tuple[GraphDef, GraphDef]:
    """The graph of the training dataset in this process, and of what is derived from it."""
    executor = pipe._engine.executor("train")
    head = tf.data.Dataset.from_tensors((tf.constant(0, tf.int64), tf.constant(0, tf.int64)))
    ignore: Any = tf.data.experimental.ExternalStatePolicy.IGNORE
    forms = (FIXED, FIXED.built_on())
    graphs = (batches_of(executor, head, form)._as_serialized_graph(external_state_policy=ignore) for form in forms)
    own, derived = (GraphDef.FromString(graph.numpy()) for graph in graphs)
    return own, derived


@pytest.mark.nightly
def test_no_function_holds_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dataset written for another process needs of each record stands beside its functions, and once."""
    for graph in graphs(100_000, monkeypatch):
        assert max(node.ByteSize() for function in graph.library.function for node in function.node_def) < 20_000
        held = sum(node.ByteSize() for node in graph.node) / 100_000
        assert 20 < held < 36, "a path of 13 bytes, where it begins, its row, the label and the id"


@pytest.mark.nightly
def test_what_is_written_of_a_derived_dataset_does_not_grow_with_its_records(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(manifest_columns, "_LARGE", 2**8)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    few, many = (graphs(n, monkeypatch)[1].ByteSize() for n in (10_000, 200_000))  # with fewer, examples are read in smaller chunks
    assert abs(many - few) < 100
    found = files_in(tmp_path / "pipegen")
    assert {kept.kind for kept in found} == {"columns"}
    assert len(found) == 2 * 4, "of each data set the paths, where they begin, which they are, and the labels"


def test_a_derived_dataset_maps_what_is_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values = aligned([np.arange(600, dtype=np.uint32).reshape(300, 2)])
    monkeypatch.setattr(manifest_columns, "_LARGE", 2**8)
    for _ in range(2):  # written, and found again
        with columns_captured(tmp_path):
            reads = tf.data.Dataset.from_tensors(tf.constant([1, 299])).map(plain(Column(values)))
        assert next(iter(reads)).numpy().tolist() == [[2, 3], [598, 599]]
        (kept,) = tmp_path.iterdir()
        written = kept.stat().st_mtime_ns
    assert kept.stat().st_mtime_ns == written
    (tmp_path / "full").write_text("no folder")
    with columns_captured(tmp_path / "full"):
        held = tf.data.Dataset.from_tensors(tf.constant([1])).map(plain(Column(values)))
    assert next(iter(held)).numpy().tolist() == [[2, 3]]


def test_in_this_process_functions_know_columns_by_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    own, derived = graphs(100, monkeypatch)
    assert sum(node.op == "VarHandleOp" for node in own.node) >= 4
    assert not any(node.op == "VarHandleOp" for node in derived.node)


def test_splits_share_the_columns_of_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFolder, "list", lambda *_: folder(100))
    splits = {"parts": {"train": 0.8, "validation": 0.2}}
    spec = {"source": {"image_folder": {"path": "/data"}}, "splits": splits, "transforms": [{"resize": {"size": 8}}]}
    pipe = pipegen.build({"pipegen": 1, "batch": {"size": 8}, **spec})
    manifest = pipe._manifest
    for split in manifest.splits:
        tensors = pipe._engine.executor(split).tensors
        places, labels, members = tensors._places, tensors._labels, manifest.members[split]
        shared = {places._ids: manifest.all_ids, labels: manifest.listing.labels, places._ids._of: members}
        shared[places._paths[""]._columns["rows"]] = members
        assert all(np.shares_memory(column._values, held) for column, held in shared.items())
        records = tf.range(manifest.num_examples(split))
        assert labels(records).numpy().tolist() == manifest.labels(split).tolist()
        low, high = (half.numpy().astype(np.uint64) for half in tensors.words(records))
        assert (low + (high << np.uint64(32))).tolist() == manifest.ids(split).tolist()


@pytest.mark.nightly
def test_paths_are_put_together(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.jpg")
    texts = [f"/a/ü{i}.jpg" for i in range(5)] + [odd]
    several = Strings.join([Strings.hold(["x", "y"]).below("/a/"), Strings.hold(["z"]).below("/b/")]).take([2, 0, 1])
    below_odd = Strings.hold(["x.jpg", "y.jpg"]).below(os.fsdecode(b"/caf\xe9/"))
    for wanted, records in ((texts, [4, 0, 5]), (several, [1, 0]), (below_odd, [1, 0])):
        paths = Paths(wanted)
        numbers = tf.data.Dataset.from_tensors(tf.constant(records, tf.int64))

        def found(places: tf.Tensor, paths: Paths = paths) -> tf.Tensor:
            return paths.each(places)

        expected = [os.fsencode(wanted[i]) for i in records]
        assert next(iter(numbers.map(found))).numpy().tolist() == expected
        with columns_captured(None):
            assert next(iter(numbers.map(found))).numpy().tolist() == expected
        assert paths.each(tf.constant(records[0])).numpy() == expected[0]


def test_a_name_that_is_no_utf8_is_read(tmp_path: Path) -> None:
    file = os.path.join(os.fsencode(tmp_path), b"caf\xe9.png")
    try:
        with open(file, "wb") as stream:
            Image.new("RGB", (8, 8), (200, 0, 0)).save(stream, "PNG")
    except OSError:
        pytest.skip("this file system takes no such name")
    source = {"image_folder": {"path": str(tmp_path), "labels": "none"}}
    pipe = pipegen.build({"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 8}}], "batch": {"size": 1}})
    assert np.allclose(next(iter(pipe["predict"])).numpy()[0, 0, 0], [200, 0, 0])


def test_a_column_is_not_copied() -> None:
    values = aligned([np.arange(10, dtype=np.int64)])
    column = Column(values)
    reads = tf.data.Dataset.from_tensors(tf.constant([1, 3])).map(column)
    values[3] = 77  # nobody does; it shows whose memory is read
    assert next(iter(reads)).numpy().tolist() == [1, 77]
    assert Column(np.arange(11)[1:])(tf.constant([0, 9])).numpy().tolist() == [1, 10]


def test_arrays_are_known_by_handle() -> None:
    data = {"image": np.zeros((400, 32, 32, 3), np.uint8), "label": np.arange(400) % 3}
    source = {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    own, derived = written(pipegen.build({"pipegen": 1, "source": source, "batch": {"size": 8}}, data=data))
    assert sum(node.op == "VarHandleOp" for node in own.node) == 4, "the images, the labels, which of those are of the split, and the rows"
    assert not any(node.op == "VarHandleOp" for node in derived.node), "which may run where no handle leads anywhere"


def test_threads_that_come_at_once_have_one_variable() -> None:
    column = Column(np.arange(5))
    with ThreadPoolExecutor(8) as pool:
        assert len({id(made) for made in pool.map(lambda _: column._variable, range(64))}) == 1
