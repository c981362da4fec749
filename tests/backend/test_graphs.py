from __future__ import annotations

from pathlib import Path
from pipes import RESIZE, pipeline
from typing import Any

import copies
import numpy as np
import pytest
import tensorflow as tf

from pipegen.backend.process.traced_functions import plain_map

pytestmark = pytest.mark.tf


def halves(number: tf.Tensor) -> dict[str, Any]:
    return {"half": number / 2, "pair": (number, tf.stack([number, number]))}


def several(number: tf.Tensor) -> list[tf.Tensor]:
    return [number, tf.cast(number, tf.float32)]


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("function", [halves, several])
def test_it_maps_as_tensorflow_does(function: Any, calls: int | None) -> None:
    """Elements, their structure and types, the length, and a function of what a function gives."""
    source = tf.data.Dataset.range(5)
    for again in (lambda *given: given[-1], lambda *given: {"all": given}):
        ours = plain_map(plain_map(source, function, calls), again, calls, name="second")
        theirs = source.map(function, num_parallel_calls=calls).map(again, num_parallel_calls=calls)
        assert ours.element_spec == theirs.element_spec
        assert int(ours.cardinality()) == int(theirs.cardinality()) == 5
        tf.nest.map_structure(np.testing.assert_array_equal, list(ours.as_numpy_iterator()), list(theirs.as_numpy_iterator()))


def test_it_reads_variables_and_runs_inside_of_functions() -> None:
    variable = tf.Variable(3, dtype=tf.int64)

    @tf.function(autograph=False)
    def total(factor: tf.Tensor) -> tf.Tensor:
        return plain_map(tf.data.Dataset.range(4), lambda n: n * factor + variable).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)

    assert int(total(tf.constant(2, tf.int64))) == 2 * 6 + 4 * 3


def made_ready_anew(ds: tf.data.Dataset) -> tuple[set[str], int]:
    """The functions that TensorFlow optimises for each element of a dataset, and how many functions run for each."""
    graph = tf.compat.v1.GraphDef.FromString(tf.raw_ops.DatasetToGraphV2(input_dataset=ds._variant_tensor, external_state_policy=1).numpy())
    library = {own.signature.name: own for own in graph.library.function}
    nested = {
        attribute.func.name
        for own in library.values()
        for node in own.node_def
        if "Dataset" in node.op
        for attribute in node.attr.values()
        if attribute.HasField("func")
    }
    return {name for name in nested if "experimental_ints_on_device" not in library[name].attr}, len(nested)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "errors",
    [pytest.param({}, marks=pytest.mark.nightly), {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}}],
    ids=["raise", "skip"],
)
def test_nothing_is_optimised_for_each_record(errors: dict[str, Any], photo_folder: Path) -> None:
    """A dataset inside a function begins anew for each record: what it maps by runs as it was traced."""
    pipe = pipeline(photo_folder, transforms=[RESIZE], **errors)
    for ds in (pipe.dataset("train", epoch=0)._pipegen.numbered, pipe.train.take(1)):
        anew, nested = made_ready_anew(ds)
        assert nested
        assert not anew


FULL_SEARCHES = """
import gc, pathlib, sys
import numpy as np, tensorflow as tf
import pipegen
gc.collect()
before = gc.get_stats()[2]["collections"]
images, labels = np.zeros((8, 8, 8, 3), np.uint8), np.arange(8) % 2
features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}
spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "transforms": ["random_flip"], "batch": {"size": 4}}
pipe = pipegen.build(spec, data={"image": images, "label": labels})
next(iter(pipe.train))
print(gc.get_stats()[2]["collections"] - before, gc.get_freeze_count())
"""


@pytest.mark.nightly
def test_nobody_searches_all_that_lives_for_garbage_before_the_first_batch() -> None:
    done = copies.run(FULL_SEARCHES)
    assert done.stdout.split() == ["0", "0"], done.stderr[-2000:]


def calls_of(ds: tf.data.Dataset) -> set[str]:
    """The functions that a dataset calls by TensorFlow's own node for a call; not those that XLA compiles, which takes such nodes apart."""
    graph = tf.compat.v1.GraphDef.FromString(tf.raw_ops.DatasetToGraphV2(input_dataset=ds._variant_tensor, external_state_policy=1).numpy())
    library = {own.signature.name: own for own in graph.library.function}
    seen, found, waiting = set(), set(), [*graph.node]
    while waiting:
        node = waiting.pop()
        for attribute in node.attr.values():
            for name in {attribute.func.name, *(one.name for one in attribute.list.func)} & library.keys():
                if library[name].attr["_XlaMustCompile"].b:
                    continue
                found |= {name} if "PartitionedCall" in node.op else set()
                waiting += library[name].node_def if name not in seen else ()
                seen.add(name)
    assert seen
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("jit", ["auto", "never"])
@pytest.mark.parametrize(
    "more", [{}, {"batch": {"size": 16}}, {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}}], ids=["", "chunks", "skip"]
)
def test_nothing_is_prepared_for_several_devices_at_a_call(more: dict[str, Any], jit: str, photo_folder: Path) -> None:
    """TensorFlow's own node for a call does so, anew for each node and each iterator; calls of ours run what they call as it is."""
    crop = {"random_resized_crop": {"size": 24}}
    pipe = pipeline(photo_folder, transforms=[crop, {"random_brightness": {"factor": 0.3}}], runtime={"jit": jit}, **more)
    assert calls_of(pipe.dataset("train", epoch=0)._pipegen.numbered) == set()


def test_a_call_takes_and_gives_nested_tensors_and_knows_what_is_around_it() -> None:
    """As TensorFlow's own: by name, with what is no tensor beside them, with tensors of the graph around, and compiled by XLA as well."""
    from pipegen.ops.lowering.graphs import apart

    def graph(x: tf.Tensor, y: tf.Tensor) -> Any:
        around = x + y
        called = apart(lambda given, more: {"sum": given["a"] + around, "both": (more[1], given["a"]), "n": tf.size(around)})
        return called({"a": x}, (None, y))

    x, y = tf.constant([1, 2]), tf.constant([3, 4])
    for jit in (None, True):
        found = tf.function(graph, autograph=False, jit_compile=jit)(x, y)
        expected = {"sum": [5, 8], "both": ([3, 4], [1, 2]), "n": 2}
        tf.nest.map_structure(np.testing.assert_array_equal, tf.nest.map_structure(lambda t: t.numpy().tolist(), found), expected)
