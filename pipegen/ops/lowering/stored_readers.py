"""Readers of stored records: files, mapped files and arrays, images on canvases, and readers in Python.

A record is sliced from its mapped file and becomes a string. The maps are in one tensor list, from which one is taken without a copy. In
this process NumPy maps the files; a graph that runs in another process maps them there, once in each process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.lazy import np, tf
from pipegen.ops.lowering.graphs import asserted, elsewhere, made_once
from pipegen.ops.lowering.python_calls import numpy_function

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.reader import Hold


def string_of(values: tf.Tensor) -> tf.Tensor:
    """Converts bytes, uint8 `(n,)`, to a string scalar. TensorFlow has no operation for it, but they are the end of a serialised tensor."""
    text, size = tf.io.serialize_tensor(values), tf.size(values)
    return tf.strings.substr(text, tf.strings.length(text) - size, size)


class Mapped:
    """Rows of an array that stays in its file, read by a call into Python."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        taken = numpy_function(lambda at: np.ascontiguousarray(self._array[at]), [row], tf.as_dtype(self._array.dtype), stateful=False)
        taken.set_shape([*row.shape, *self._array.shape[1:]])
        return taken


def called(
    take: Callable[..., Sequence[Any]], types: Mapping[str, tuple[str, tuple[int | None, ...]]]
) -> Callable[..., dict[str, tf.Tensor]]:
    """Makes a reader of several features of records, by one call into Python: `take` maps names of features and places of records, NumPy
    arrays `(n,)`, to an array `(n, ...)` for each feature, whose `types` are the dtype and the shape in one record. See
    `Reader.open_together`."""

    def read(names: Sequence[str], *place: tf.Tensor) -> dict[str, tf.Tensor]:
        dtypes = [tf.as_dtype(types[name][0]) for name in names]
        found = numpy_function(lambda *at: take(names, *at), list(place), dtypes, stateful=False)
        found = [found] if tf.is_tensor(found) else found  # outside a graph, for one feature
        for name, value in zip(names, found, strict=True):
            value.set_shape([place[0].shape[0], *types[name][1]])
        return dict(zip(names, found, strict=True))

    return read


class StoredPixels:
    """Images on canvases of one height, width and channels, a row of bytes each, read by `rows`; `sizes` reads the height and the width of
    images, int32 `(..., 2)`."""

    def __init__(self, rows: Any, sizes: Any, canvas: tuple[int, int, int], dtype: str) -> None:
        self._rows, self.canvas, self._dtype = rows, canvas, dtype
        self.sizes = sizes  # a function from rows to the height and the width of their images, int32 `(..., 2)`

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        """Reads the image of one row, at its own size; for rows `(n,)` of one size, `(n, height, width, channels)`."""
        canvas = self.canvases(row)
        if row.shape.rank:
            return canvas
        height, width = tf.unstack(self.sizes(row))
        image = canvas[:height, :width]
        image.set_shape([None, None, self.canvas[2]])
        return image

    def canvases(self, row: tf.Tensor) -> tf.Tensor:
        """Reads the canvases of rows."""
        stored = self._rows(row)
        if self._dtype != "uint8":
            dtype = tf.as_dtype(self._dtype)
            stored = tf.bitcast(tf.reshape(stored, tf.concat([tf.shape(row), [-1, dtype.size]], 0)), dtype)
        canvas = tf.reshape(stored, tf.concat([tf.shape(row), self.canvas], 0))
        canvas.set_shape([*row.shape, *self.canvas])
        return canvas

    def memory(self, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor] | None:
        """Returns the memory of all canvases as words, and the offsets of rows `(n,)` in bytes; `None` in another process."""
        found: tuple[tf.Tensor, tf.Tensor] | None = self._rows.memory(row)
        return found


class StoredFiles:
    """Encoded files, concatenated: `stored` reads a range of bytes, `places` offsets and lengths of files, int64 `(..., 2)`."""

    def __init__(self, stored: Any, places: Any) -> None:
        self._stored, self._places = stored, places

    def __call__(self, row: tf.Tensor) -> tf.Tensor:
        return string_of(self._stored.part(*tf.unstack(self._places(row))))


class Maps:
    """Files, given by path and size, mapped into memory once for all graphs. They must not shrink while they are read: the system would
    kill the process."""

    def __init__(self, files: Sequence[tuple[str, int]]) -> None:
        self.files = tuple(files)
        with tf.init_scope(), tf.device("CPU:0"):
            maps = _empty_list(len(files))
            for number, (path, size) in enumerate(files):
                if size:  # a tensor needs writable memory; writing would not change the file
                    item = tf.experimental.dlpack.from_dlpack(np.memmap(path, np.uint8, mode="c", shape=(size,)).__dlpack__())
                else:  # cannot be mapped
                    item = tf.zeros([0], tf.uint8)
                maps = tf.raw_ops.TensorListSetItem(input_handle=maps, index=number, item=item)
            # A graph would serialise a captured tensor; a resource is captured by its handle.
            self._held = tf.raw_ops.VarHandleOp(dtype=tf.variant, shape=[], shared_name=ANONYMOUS)
            tf.raw_ops.AssignVariableOp(resource=self._held, value=maps)

    def every(self) -> tf.Tensor:
        """Returns the list of all maps, of this process or of the one that runs the graph."""
        return mapped_there(self.files) if elsewhere.get() else tf.raw_ops.ReadVariableOp(resource=self._held, dtype=tf.variant)

    def cut(self, maps: tf.Tensor, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Reads bytes of one file: a string scalar. `offset` and `length` are int64 scalars; the length is below 2 GiB."""
        return string_of(tf.slice(file_of(maps, file), offset[None], length[None]))


def file_of(maps: tf.Tensor, number: tf.Tensor | int) -> tf.Tensor:
    """Gets one file from a list of maps: uint8 `(size,)`."""
    index = tf.cast(number, tf.int32)
    return tf.raw_ops.TensorListGetItem(input_handle=maps, index=index, element_shape=tf.constant([-1]), element_dtype=tf.uint8)


def mapped_there(files: Sequence[tuple[str, int]]) -> tf.Tensor:
    """Returns the list of files, given by path and size, as mapped by the process that runs the graph. The list is a resource of that
    process, made by the first call. Its name is a hash of the files and their modification times."""
    about = hashlib.blake2b(digest_size=16)
    for path, size in files:
        about.update(f"{path}\0{size}\0{os.stat(path).st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return made_once(f"pipegen_maps_{about.hexdigest()}", tf.variant, partial(_mapped_list, files))


def _empty_list(length: int) -> tf.Tensor:
    return tf.raw_ops.TensorListReserve(element_shape=tf.constant([-1]), num_elements=length, element_dtype=tf.uint8)


def _mapped_list(files: Sequence[tuple[str, int]]) -> tf.Tensor:
    """Makes a list of files, by operations that map them in the process of the graph.

    TensorFlow folds operations without inputs, and results below 10 MiB become constants of the graph: such files would be read whole. It
    does not fold operations with the attribute of its scoped allocator; an empty one has no other effect.
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
"""The name for a resource that is deleted with its last handle (`ResourceHandle::ANONYMOUS_NAME`)."""

TFRECORD_HEAD = 12  # bytes of a TFRecord file before a record: its length, and the checksum of that
_AT_ONCE = 16  # records read at a time, in batches of varying size


def each_record(
    names: Sequence[str], make: Callable[[Any], dict[str, Any]], places: tuple[tf.Tensor, ...], like: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Makes features of records from their places, tensors `(n, ...)`: lists of n tensors; or tensors `(n, ...)` if n varies, of the dtypes
    and shapes of `like()`. See `Reader.open_together`."""
    if places[0].shape[0] is None:
        with tf.Graph().as_default():
            types = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), like())
        return tf.map_fn(make, places, fn_output_signature=types, parallel_iterations=_AT_ONCE)
    each = [make(place) for place in zip(*map(tf.unstack, places), strict=True)]
    return {name: [record[name] for record in each] for name in names}


class MappedRecords:
    """A reader of features of records in mapped files, each given by path and size, for a `MappedReader`, which knows the parts of records;
    see `Reader.open_together`. `hold` converts arrays to tensors."""

    def __init__(self, files: Sequence[tuple[str, int]], reader: Any, hold: Hold) -> None:
        index = reader.index
        self._lacking = bool((index.lengths < 0).any())
        self._open(files)
        self._first, self._offsets, self._lengths = hold(index.first), hold(index.offsets), hold(index.lengths)
        self._parts, self._parts_of, self._parse = tuple(reader.parts), reader.parts_of, reader.parse

    def __call__(self, features: Sequence[str], *place: tf.Tensor) -> dict[str, Any]:
        """Reads features of records at places int64 `(n,)` each, of a single file only the rows: lists of n tensors, or tensors `(n, ...)`
        if n varies."""
        shard, row = place if len(place) > 1 else (place[0] * 0, place[0])
        number = self._first(shard) + row
        offsets, lengths = self._offsets(number), tf.cast(self._lengths(number), tf.int64)
        wanted = self._parts_of(features)
        cuts = self._cuts(wanted, shard, offsets, lengths)

        def one(place: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
            file, offset, length, *read = place
            places = {part: (offset[i], length[i]) for i, part in enumerate(self._parts)}
            found = {}
            for i, part in enumerate(wanted):
                there = places[part][1]
                there = asserted(there, there >= 0, f"it has no `{part}`") if self._lacking else there
                with tf.control_dependencies([there]):
                    found[part] = cuts(file, places[part][0], there) if callable(cuts) else tf.identity(read[0][i])
            return self._parse(features, found, places)

        def like() -> dict[str, Any]:
            zero = tf.zeros([], tf.int64)
            return self._parse(features, dict.fromkeys(wanted, tf.constant("")), dict.fromkeys(self._parts, (zero, zero)))

        each_place = (shard, offsets, lengths) if callable(cuts) else (shard, offsets, lengths, cuts)
        return each_record(features, one, each_place, like)

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        self._maps = Maps(files)

    def _cuts(self, wanted: Sequence[str], shard: tf.Tensor, offsets: tf.Tensor, lengths: tf.Tensor) -> Any:
        """Returns a function that reads a part of a file, from its number, an offset and a length; or the wanted parts of all records,
        strings `(n, wanted)`."""
        return partial(self._maps.cut, self._maps.every())


class VerifiedRecords(MappedRecords):
    """A reader of TFRecord files by TensorFlow's own reader, which compares the checksum of each record. It takes twice as long, and reads
    all addresses that TensorFlow reads."""

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        self._paths = [path for path, _ in files]

    def _cuts(self, wanted: Sequence[str], shard: tf.Tensor, offsets: tf.Tensor, lengths: tf.Tensor) -> Any:
        return self._record

    def _record(self, file: tf.Tensor, offset: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        path = tf.gather(tf.constant(self._paths), file)
        about: dict[str, Any] = {"output_types": [tf.string], "output_shapes": [[]]}
        records = tf.raw_ops.TFRecordDatasetV2(
            filenames=path[None], compression_type="", buffer_size=tf.constant(0, tf.int64), byte_offsets=offset[None] - TFRECORD_HEAD
        )
        first = tf.raw_ops.TakeDataset(input_dataset=records, count=tf.constant(1, tf.int64), **about)
        (found,) = tf.raw_ops.DatasetToSingleElement(dataset=first, **about)
        found.set_shape([])
        return found
