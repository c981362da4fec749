"""Reads parts of files that are mapped into memory, by TensorFlow ops alone.

A record is cut out of its file by `slice`, and becomes a string by way of a serialised tensor, whose last bytes are its content:
TensorFlow has no other op from uint8 to string. The maps lie in one list, out of which one is taken at no cost. In this process NumPy maps
them; a graph that runs elsewhere maps the files wherever that is, once in each process.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf
from pipegen.ops.lowering.graphs import graph_around, runs_elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.reader import Hold, Read, Together
    from pipegen.ops.sources.records.index import RecordIndex


class Maps:
    """Files mapped into memory, once for all graphs.

    Args:
        files: The path and the bytes of each. They must not get shorter while they are read: the system would end the process.
    """

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self.files = tuple(files)
        with tf.init_scope(), tf.device("CPU:0"):
            maps = _empty_list(len(files))
            for number, (path, size) in enumerate(files):
                maps = tf.raw_ops.TensorListSetItem(input_handle=maps, index=number, item=_here(path, size))
            # A graph writes down the tensors that it holds, and knows a resource by its handle.
            self._held = tf.raw_ops.VarHandleOp(dtype=tf.variant, shape=[], shared_name=ANONYMOUS)
            tf.raw_ops.AssignVariableOp(resource=self._held, value=maps)

    def every(self) -> tf.Tensor:
        """Returns the list of all maps: that of this process, or of whichever runs the graph."""
        return mapped_there(self.files) if runs_elsewhere() else tf.raw_ops.ReadVariableOp(resource=self._held, dtype=tf.variant)

    def cut(self, maps: tf.Tensor, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Cuts bytes out of one file: a string scalar. `offset` and `length` are int64 scalars; the length is below 2 GiB."""
        serialised = tf.io.serialize_tensor(tf.slice(file_of(maps, file), offset[None], length[None]))
        count = tf.cast(length, tf.int32)
        return tf.strings.substr(serialised, tf.strings.length(serialised) - count, count)


def file_of(maps: tf.Tensor, number: tf.Tensor | int) -> tf.Tensor:
    """Takes one file out of a list of maps: uint8 `(size,)`."""
    index = tf.cast(number, tf.int32)
    return tf.raw_ops.TensorListGetItem(input_handle=maps, index=index, element_shape=tf.constant([-1]), element_dtype=tf.uint8)


def mapped_there(files: Sequence[tuple[str, int]]) -> tf.Tensor:
    """Returns the list of files, of which each has a path and its bytes, as mapped by the process that runs the graph.

    The list is a resource of that process, which the first call makes. Its name says which files it is of, and when they were written.
    """
    about = hashlib.blake2b(digest_size=16)
    for path, size in files:
        about.update(f"{path}\0{size}\0{os.stat(path).st_mtime_ns}\0".encode("utf-8", "surrogateescape"))

    signature = [tf.TensorSpec([], tf.resource)]

    def nothing(held: tf.Tensor) -> tuple[()]:  # noqa: ARG001 - TensorFlow names an input by it
        return ()

    def make(held: tf.Tensor) -> tuple[()]:
        tf.raw_ops.AssignVariableOp(resource=held, value=_mapped_list(files))
        return ()

    # `tf.cond` would put what makes the list into the graph around it, to be passed over at each call: some operations for every file.
    there, lacking = (tf.function(f, signature, autograph=False).get_concrete_function() for f in (nothing, make))
    around = graph_around()
    with around.as_default() if around is not None else nullcontext(), tf.device("CPU:0"):
        held = tf.raw_ops.VarHandleOp(dtype=tf.variant, shape=[], shared_name=f"pipegen_maps_{about.hexdigest()}")
        is_there = tf.raw_ops.VarIsInitializedOp(resource=held)
        made = tf.raw_ops.If(cond=is_there, input=[held], Tout=[], then_branch=there, else_branch=lacking)
        with tf.control_dependencies([made]):
            return tf.raw_ops.ReadVariableOp(resource=held, dtype=tf.variant)


def _empty_list(length: int) -> tf.Tensor:
    return tf.raw_ops.TensorListReserve(element_shape=tf.constant([-1]), num_elements=length, element_dtype=tf.uint8)


def _here(path: str, size: int) -> tf.Tensor:
    """Returns a file as uint8 `(size,)`, mapped in this process. Nothing of an empty file can be mapped."""
    import numpy as np

    if not size:
        return tf.zeros([0], tf.uint8)
    # A tensor takes only memory that may be written to; written to, the file would stay as it is.
    stored = np.memmap(path, np.uint8, mode="c", shape=(size,))
    return tf.experimental.dlpack.from_dlpack(stored.__dlpack__())


def _mapped_list(files: Sequence[tuple[str, int]]) -> tf.Tensor:
    """Returns the same of all files, in a list, by operations that map them wherever the graph runs.

    TensorFlow evaluates what has no inputs when it takes a graph up, and what is below 10 MiB becomes a constant of the graph: such files
    would be read whole. It leaves alone what is marked for its allocator of many tensors; the mark, which names none, has no other effect.
    """
    graph = tf.compat.v1.GraphDef()
    last = "empty"
    for number, (path, size) in enumerate(files):
        mapped = graph.node.add(name=f"mapped_{number}", op="ImmutableConst" if size else "Const")
        mapped.attr["dtype"].type = tf.uint8.as_datatype_enum
        if size:
            mapped.attr["shape"].shape.dim.add(size=size)
            mapped.attr["memory_region_name"].s = os.fsencode(path)
            mapped.attr["_scoped_allocator"].list.SetInParent()
        else:
            mapped.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([], tf.uint8))
        at = graph.node.add(name=f"at_{number}", op="Const")
        at.attr["dtype"].type = tf.int32.as_datatype_enum
        at.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(number, tf.int32))
        put = graph.node.add(name=f"put_{number}", op="TensorListSetItem", input=[last, at.name, mapped.name])
        put.attr["element_dtype"].type = tf.uint8.as_datatype_enum
        last = put.name
    (made,) = tf.graph_util.import_graph_def(graph, {"empty": _empty_list(len(files))}, [f"{last}:0"], name="maps")
    return made


ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""The name by which TensorFlow makes a resource that goes with its last handle (`ResourceHandle::ANONYMOUS_NAME`)."""

TFRECORD_HEAD = 12
"""Bytes of a TFRecord file before a record: its length, and the checksum of that."""
_AT_ONCE = 16
"""Records of a batch of varying size that are read at a time."""


def alone(together: Together, feature: str) -> Read:
    """Returns what reads one feature of records, of one or of `(n,)` as their places are."""

    def read(shard: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        values = together((feature,), tf.reshape(shard, [-1]), tf.reshape(row, [-1]))[feature]
        values = tf.stack(values) if isinstance(values, list) else values
        return values if shard.shape.rank else values[0]

    return read


class MappedRecords:
    """Reads features of records in mapped files; see `Reader.open_together`.

    Args:
        files: The path and the bytes of each file.
        index: Where the parts of each record are.
        parts: The names of the parts.
        hold: What to hold arrays with.
        parts_of: From features to the parts that they are read from.
        parse: From features, the parts of one record and the places of all of them, to these features.
    """

    def __init__(
        self,
        files: Sequence[tuple[str, int]],
        index: RecordIndex,
        parts: Sequence[str],
        hold: Hold,
        parts_of: Callable[[Sequence[str]], Sequence[str]],
        parse: Callable[[Sequence[str], dict[str, Any], dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._lacking = bool((index.lengths < 0).any())
        self._open(files)
        self._first, self._offsets, self._lengths = hold(index.first), hold(index.offsets), hold(index.lengths)
        self._parts, self._parts_of, self._parse = tuple(parts), parts_of, parse

    def __call__(self, features: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> dict[str, Any]:
        """Returns features of records, whose places are int64 `(n,)` each: lists of n tensors, or tensors `(n, ...)` where n varies."""
        number = self._first(shard) + row
        offsets, lengths = self._offsets(number), tf.cast(self._lengths(number), tf.int64)
        wanted = self._parts_of(features)
        cuts = self._cuts(wanted, shard, offsets, lengths)

        def one(place: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
            file, offset, length, *read = place
            places = {part: (offset[i], length[i]) for i, part in enumerate(self._parts)}
            found = {}
            for i, part in enumerate(wanted):
                there = self._there(part, places[part][1])
                with tf.control_dependencies([there]):
                    found[part] = cuts(file, places[part][0], there) if callable(cuts) else tf.identity(read[0][i])
            return self._parse(features, found, places)

        count = shard.shape[0]
        each_place = (shard, offsets, lengths) if callable(cuts) else (shard, offsets, lengths, cuts)
        if count is None:
            like = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), self._like(features))
            return tf.map_fn(one, each_place, fn_output_signature=like, parallel_iterations=_AT_ONCE)
        each = [one(place) for place in zip(*map(tf.unstack, each_place), strict=True)]
        return {name: [record[name] for record in each] for name in features}

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        self._maps = Maps(files)

    def _cuts(self, wanted: Sequence[str], shard: tf.Tensor, offsets: tf.Tensor, lengths: tf.Tensor) -> Any:
        """Returns what cuts a part out of a file, from its number, an offset and a length; or the wanted parts of all records, strings
        `(n, wanted)`."""
        maps = self._maps.every()
        return lambda *place: self._cut(maps, *place)

    def _cut(self, maps: Any, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        return self._maps.cut(maps, file, offset, length)

    def _there(self, part: str, length: tf.Tensor) -> tf.Tensor:
        """Returns the length of a part, after making sure that the record has it."""
        if not self._lacking:
            return length
        checked = tf.debugging.Assert(length >= 0, [f"it has no `{part}`"])
        with tf.control_dependencies([checked] if checked is not None else []):
            return tf.identity(length)

    def _like(self, features: Sequence[str]) -> dict[str, Any]:
        """The dtypes and shapes of features."""
        graph = tf.Graph()
        with graph.as_default():
            zero = tf.zeros([], tf.int64)
            return self._parse(features, dict.fromkeys(self._parts_of(features), tf.constant("")), dict.fromkeys(self._parts, (zero, zero)))


class VerifiedRecords(MappedRecords):
    """The same of TFRecord files, read by TensorFlow's own reader, which compares the checksum of each record; it takes twice as long, and
    knows addresses that TensorFlow knows."""

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        self._paths = [path for path, _ in files]

    def _cuts(self, wanted: Sequence[str], shard: tf.Tensor, offsets: tf.Tensor, lengths: tf.Tensor) -> Any:
        return partial(self._cut, None)

    def _cut(self, maps: Any, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        path = tf.gather(tf.constant(self._paths), file)
        about: dict[str, Any] = {"output_types": [tf.string], "output_shapes": [[]]}
        records = tf.raw_ops.TFRecordDatasetV2(
            filenames=path[None], compression_type="", buffer_size=tf.constant(0, tf.int64), byte_offsets=offset[None] - TFRECORD_HEAD
        )
        first = tf.raw_ops.TakeDataset(input_dataset=records, count=tf.constant(1, tf.int64), **about)
        (found,) = tf.raw_ops.DatasetToSingleElement(dataset=first, **about)
        found.set_shape([])
        return found
