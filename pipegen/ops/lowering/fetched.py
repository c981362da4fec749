"""Readers of remote files, and file systems of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pipegen.lazy import np, tf
from pipegen.mounts import Mount, content_of, mounted
from pipegen.ops.lowering.python_calls import numpy_function
from pipegen.ops.lowering.stored_readers import MappedRecords


class FetchedRecords(MappedRecords):
    """A reader of features of records in files, by their keys in a mount, that are fetched block by block; see `Reader.open_together`.
    `reader` and `hold` are as for `MappedRecords`."""

    def __init__(self, mount: Mount, keys: Sequence[str], reader: Any, hold: Any) -> None:
        self._mount, self._keys = mount, tuple(keys)
        super().__init__((), reader, hold)

    def ahead(self, features: Sequence[str], shard: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
        """Starts to fetch records, whose places are int64 `(n,)` each, without waiting."""
        number, columns = self._first(shard) + row, [self._parts.index(part) for part in self._parts_of(features)]
        places = [shard, self._offsets(number), tf.cast(self._lengths(number), tf.int64)]
        return numpy_function(partial(self._begin, columns), places, tf.bool, stateful=True)

    def _open(self, files: Sequence[tuple[str, int]]) -> None:
        """Maps nothing."""

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
    """A reader of files that are fetched as a whole: of one, or of `(n,)` in one call."""

    def __call__(self, path: tf.Tensor) -> tf.Tensor:
        """Reads the bytes of files; the result has the shape of the paths."""
        read = numpy_function(_contents, [path], tf.string, stateful=False)
        read.set_shape(path.shape)
        return read

    def ahead(self, paths: tf.Tensor) -> tf.Tensor:
        """Starts to fetch files `(n,)`, without waiting."""
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


_AT_ONCE = 32
_LOADS_WITH = "2.16"  # the version of TensorFlow of the last release of tensorflow-io, 0.37.1


def speaks(address: str, scheme: str) -> tuple[str, ...]:
    """Checks, with one operation, that TensorFlow reads an address. Returns nothing if it does; else the reason, and what helps."""
    if _knows(address):
        return ()
    loads = tf.version.VERSION.startswith(f"{_LOADS_WITH}.")
    if loads:
        try:
            import tensorflow_io  # noqa: F401 - which adds file systems
        except ImportError:
            return "tensorflow-io, which adds it, is not installed", "pip install 'pipegen[io]'", _ELSE
        if _knows(address):
            return ()
        return f"nor does tensorflow-io read `{scheme}://`", _ELSE
    why = f"tensorflow-io, which adds it, loads only with TensorFlow {_LOADS_WITH}, but this is {tf.version.VERSION}"
    return why, _ELSE


_ELSE = "`pip install 'pipegen[remote]'`, and `fetch: blocks`, which caches blocks on the local disk"


def _knows(address: str) -> bool:
    try:
        tf.io.gfile.exists(address)
    except tf.errors.UnimplementedError:
        return False
    except tf.errors.OpError:  # a known scheme; listing the files will report the error
        return True
    return True


class TensorFlowFiles:
    """The files at addresses that TensorFlow reads, with the used part of fsspec's interface; names are whole addresses."""

    protocol = "tensorflow"

    def _strip_protocol(self, path: str) -> str:
        return path

    def invalidate_cache(self, path: str | None = None) -> None:
        """Does nothing: there is no cache."""

    def info(self, path: str) -> dict[str, Any]:
        """Returns the type, the size and the modification time of a file; `FileNotFoundError` if it does not exist, else `OSError`."""
        about = _told(tf.io.gfile.stat, path)
        kind = "directory" if about.is_directory else "file"
        return {"name": path, "type": kind, "size": about.length, "mtime": about.mtime_nsec}

    def find(self, path: str, *, detail: bool = True) -> dict[str, dict[str, Any]]:
        """Lists all files below a folder, by name."""
        found: dict[str, dict[str, Any]] = {}
        folders = [path.rstrip("/")]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while folders:
                folder = folders.pop()
                names = [f"{folder}/{name}" for name in sorted(_told(tf.io.gfile.listdir, f"{folder}/")) if name]
                files = [name for name in names if not name.endswith("/")]
                folders += [name.rstrip("/") for name in names if name.endswith("/")]
                for name, about in zip(files, pool.map(partial(_told, tf.io.gfile.stat), files), strict=True):
                    if about.is_directory:  # some file systems list folders without a slash
                        folders.append(name)
                    else:
                        found[name] = {"name": name, "size": about.length, "mtime": about.mtime_nsec}
        return found

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        """Reads bytes of a file; raises like `info`."""

        def read() -> bytes:
            with tf.io.gfile.GFile(path, "rb") as stream:
                stream.seek(start)
                found: bytes = stream.read(end - start)
                return found

        content: bytes = _told(read)
        return content


def _told(ask: Any, *given: Any) -> Any:
    """Calls a function of TensorFlow; converts its errors to Python's."""
    try:
        return ask(*given)
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(2, error.message) from None
    except (tf.errors.PermissionDeniedError, tf.errors.UnauthenticatedError) as error:
        raise PermissionError(13, error.message) from None
    except tf.errors.OpError as error:
        raise OSError(error.message) from None
