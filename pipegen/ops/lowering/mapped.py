"""Reads parts of files that are mapped into memory, by TensorFlow ops alone.

A record is cut out of its file by `slice`, and becomes a string by way of a serialised tensor, whose last bytes are its content:
TensorFlow has no other op from uint8 to string. The maps lie in one list, out of which one is taken at no cost. In this process NumPy maps
them; a graph that runs elsewhere has `ImmutableConst`, of which TensorFlow folds a file below 10 MiB into the graph, and so reads it whole.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf
from pipegen.ops.lowering.target import runs_elsewhere

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
            maps = tf.raw_ops.TensorListReserve(element_shape=tf.constant([-1]), num_elements=len(files), element_dtype=tf.uint8)
            for number, (path, size) in enumerate(files):
                maps = tf.raw_ops.TensorListSetItem(input_handle=maps, index=number, item=_here(path, size))
            # A graph writes down the tensors that it holds, and knows a resource by its handle.
            self._held = tf.raw_ops.VarHandleOp(dtype=tf.variant, shape=[], shared_name=ANONYMOUS)
            tf.raw_ops.AssignVariableOp(resource=self._held, value=maps)

    def every(self) -> tf.Tensor | None:
        """Returns the list of all maps; `None` where a graph that runs elsewhere has to map the files itself."""
        if runs_elsewhere() and len(self.files) <= MOST_ELSEWHERE:
            return None
        return tf.raw_ops.ReadVariableOp(resource=self._held, dtype=tf.variant)

    def cut(self, maps: tf.Tensor | None, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Cuts bytes out of one file: a string scalar. `offset` and `length` are int64 scalars; the length is below 2 GiB."""
        number = tf.cast(file, tf.int32)
        if maps is None:
            cut = tf.switch_case(number, [partial(_slice_of, path, size, offset, length) for path, size in self.files])
        else:
            shape = tf.constant([-1])
            mapped = tf.raw_ops.TensorListGetItem(input_handle=maps, index=number, element_shape=shape, element_dtype=tf.uint8)
            cut = tf.slice(mapped, offset[None], length[None])
        serialised = tf.io.serialize_tensor(cut)
        count = tf.cast(length, tf.int32)
        return tf.strings.substr(serialised, tf.strings.length(serialised) - count, count)


def _slice_of(path: str, size: int, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Returns bytes of a file that is mapped by the graph itself, each time."""
    return tf.slice(_mapped(path, size), offset[None], length[None])


def _here(path: str, size: int) -> tf.Tensor:
    """Returns a file as uint8 `(size,)`, mapped in this process. Nothing of an empty file can be mapped."""
    import numpy as np

    if not size:
        return tf.zeros([0], tf.uint8)
    # A tensor takes only memory that may be written to; written to, the file would stay as it is.
    stored = np.memmap(path, np.uint8, mode="c", shape=(size,))
    return tf.experimental.dlpack.from_dlpack(stored.__dlpack__())


def _mapped(path: str, size: int) -> tf.Tensor:
    """Returns the same, mapped wherever the graph runs."""
    if not size:
        return tf.zeros([0], tf.uint8)
    return tf.raw_ops.ImmutableConst(dtype=tf.uint8, shape=[size], memory_region_name=_named(path))


_WRITTEN: dict[str, list[int]] = {}
"""When each file was written whenever it was mapped, in nanoseconds."""


def _named(path: str) -> str:
    """Returns a path of a file by which no earlier content of it was mapped.

    TensorFlow maps a name once in a process, so that a file that was written anew would be read as it had been. With steps that lead
    nowhere (`/./`) the name is another one, and the file the same.
    """
    times = _WRITTEN.setdefault(path, [])
    now = os.stat(path).st_mtime_ns
    if now not in times:
        times.append(now)
    return "/." * times.index(now) + path


ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
"""The name by which TensorFlow makes a resource that goes with its last handle (`ResourceHandle::ANONYMOUS_NAME`)."""

TFRECORD_HEAD = 12
"""Bytes of a TFRecord file before a record: its length, and the checksum of that."""
MOST_ELSEWHERE = 256
"""The most files that a graph maps itself, with a function for each."""
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

    def _cut(self, maps: tf.Tensor | None, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
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

    def _cut(self, maps: tf.Tensor | None, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        path = tf.gather(tf.constant(self._paths), file)
        about: dict[str, Any] = {"output_types": [tf.string], "output_shapes": [[]]}
        records = tf.raw_ops.TFRecordDatasetV2(
            filenames=path[None], compression_type="", buffer_size=tf.constant(0, tf.int64), byte_offsets=offset[None] - TFRECORD_HEAD
        )
        first = tf.raw_ops.TakeDataset(input_dataset=records, count=tf.constant(1, tf.int64), **about)
        (found,) = tf.raw_ops.DatasetToSingleElement(dataset=first, **about)
        found.set_shape([])
        return found
