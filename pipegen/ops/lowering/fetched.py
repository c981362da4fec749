"""Reads what lies on other machines by a call into Python: one for all records that are wanted together, which waits for what has to be
fetched."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.lazy import np, tf
from pipegen.mounts import content_of, mounted
from pipegen.ops.lowering.mapped import MappedRecords
from pipegen.ops.lowering.python_call import numpy_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.mounts import Mount


class FetchedRecords(MappedRecords):
    """Reads features of records in files that are fetched block by block; see `Reader.open_together`.

    Args:
        mount: What reads the files.
        keys: What it calls each file.
        about: As `MappedRecords`, from its index on.
    """

    def __init__(self, mount: Mount, keys: Sequence[str], *about: Any) -> None:
        self._mount, self._keys = mount, tuple(keys)
        super().__init__((), *about)

    def ahead(self, features: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        """Begins to fetch records, whose places are int64 `(n,)` each, and gives an op that waits for nothing."""
        offsets, lengths, columns = self._places(self._parts_of(features), shard, row)
        return numpy_function(partial(self._begin, columns), [shard, offsets, lengths], tf.bool, stateful=True)

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        """Nothing is mapped."""

    def _places(self, wanted: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, list[int]]:
        number = self._first(shard) + row
        return self._offsets(number), tf.cast(self._lengths(number), tf.int64), [self._parts.index(part) for part in wanted]

    def _cuts(self, wanted: Sequence[str], shard: tf.Tensor, offsets: tf.Tensor, lengths: tf.Tensor) -> Any:
        columns = [self._parts.index(part) for part in wanted]
        read = numpy_function(partial(self._read, columns), [shard, offsets, lengths], tf.string, stateful=False)
        read.set_shape([shard.shape[0], len(columns)])
        return read

    def _begin(self, columns: Sequence[int], shards: Any, offsets: Any, lengths: Any) -> Any:
        self._mount.ahead(self._spans(columns, shards, offsets, lengths))
        return np.True_

    def _read(self, columns: Sequence[int], shards: Any, offsets: Any, lengths: Any) -> Any:
        found: Any = np.empty(len(shards) * len(columns), object)
        found[:] = self._mount.read_all([*self._spans(columns, shards, offsets, lengths)])
        return found.reshape(len(shards), len(columns))

    def _spans(self, columns: Sequence[int], shards: Any, offsets: Any, lengths: Any) -> Iterable[tuple[str, int, int]]:
        for shard, starts, sizes in zip(shards.tolist(), offsets.tolist(), lengths.tolist(), strict=True):
            for column in columns:
                yield self._keys[shard], starts[column], max(0, sizes[column])


class FetchedFiles:
    """Reads files that are fetched as a whole: the bytes of one, or of `(n,)` in one call."""

    def __call__(self, path: tf.Tensor) -> tf.Tensor:
        """Returns the bytes of files, stacked as their paths are."""
        read = numpy_function(_contents, [path], tf.string, stateful=False)
        read.set_shape(path.shape)
        return read

    def ahead(self, paths: tf.Tensor) -> tf.Tensor:
        """Begins to fetch files `(n,)`, and gives an op that waits for nothing."""
        return numpy_function(_begin, [paths], tf.bool, stateful=True)


def _contents(paths: Any) -> Any:
    if not isinstance(paths, np.ndarray) or not paths.shape:
        return content_of(paths if isinstance(paths, bytes) else paths.item())
    _begin(paths)
    found: Any = np.empty(len(paths), object)
    found[:] = [content_of(path) for path in paths.tolist()]
    return found


def _begin(paths: Any) -> Any:
    for path in paths.tolist():
        found = mounted(path.decode("utf-8", "surrogateescape"))
        if found is not None:
            found[0].ahead([(found[1], 0, -1)])
    return np.True_
