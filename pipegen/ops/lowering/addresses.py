"""Addresses that TensorFlow reads itself, in the graph: which ones, and their files as fsspec would give them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pipegen.lazy import tf

_AT_ONCE = 32
_LOADS_WITH = "2.16"
"""The version of TensorFlow that tensorflow-io, whose last release is 0.37.1, was built for."""


def speaks(address: str, scheme: str) -> tuple[str, ...]:
    """Tries one operation on an address.

    Returns:
        Nothing where TensorFlow knows the scheme; else why it does not, and what would help.
    """
    if _knows(address):
        return ()
    loads = tf.version.VERSION.startswith(f"{_LOADS_WITH}.")
    if loads:
        try:
            import tensorflow_io  # noqa: F401 - which adds file systems
        except ImportError:
            return "tensorflow-io would add it, and is not installed", "pip install 'pipegen[io]'", _ELSE
        if _knows(address):
            return ()
        return f"nor does tensorflow-io read `{scheme}://`", _ELSE
    why = f"tensorflow-io, which would add it, loads with TensorFlow {_LOADS_WITH} alone, and this is {tf.version.VERSION}"
    return why, _ELSE


_ELSE = "`pip install 'pipegen[remote]'`, and `fetch: blocks`, which keeps on the local disk what it reads"


def _knows(address: str) -> bool:
    """Returns whether an operation does more than to say that there is no such file system."""
    try:
        tf.io.gfile.exists(address)
    except tf.errors.UnimplementedError:
        return False
    except tf.errors.OpError:  # it knows the scheme; what is wrong is said when the files are listed
        return True
    return True


class TensorFlowFiles:
    """Gives the files at addresses by TensorFlow, with what is used here of the interface of fsspec; names are whole addresses."""

    protocol = "tensorflow"

    def _strip_protocol(self, path: str) -> str:
        return path

    def invalidate_cache(self, path: str | None = None) -> None:
        """Nothing is kept."""

    def info(self, path: str) -> dict[str, Any]:
        """Returns the type, the size and the time of writing of a file.

        Raises:
            FileNotFoundError: Where there is none.
            OSError: Where it cannot be asked for.
        """
        about = _told(tf.io.gfile.stat, path)
        kind = "directory" if about.is_directory else "file"
        return {"name": path, "type": kind, "size": about.length, "mtime": about.mtime_nsec}

    def find(self, path: str, *, detail: bool = True) -> dict[str, dict[str, Any]]:
        """Returns every file below a folder, by its name."""
        found: dict[str, dict[str, Any]] = {}
        folders = [path.rstrip("/")]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while folders:
                folder = folders.pop()
                names = [f"{folder}/{name}" for name in sorted(_told(tf.io.gfile.listdir, f"{folder}/")) if name]
                files = [name for name in names if not name.endswith("/")]
                folders += [name.rstrip("/") for name in names if name.endswith("/")]
                for name, about in zip(files, pool.map(partial(_told, tf.io.gfile.stat), files), strict=True):
                    if about.is_directory:  # some file systems give no slash
                        folders.append(name)
                    else:
                        found[name] = {"name": name, "size": about.length, "mtime": about.mtime_nsec}
        return found

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        """Reads bytes of a file; errors as of `info`."""

        def read() -> bytes:
            with tf.io.gfile.GFile(path, "rb") as stream:
                stream.seek(start)
                found: bytes = stream.read(end - start)
                return found

        content: bytes = _told(read)
        return content


def _told(ask: Any, *given: Any) -> Any:
    """Calls something of TensorFlow's, with its errors as Python has them."""
    try:
        return ask(*given)
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(2, error.message) from None
    except (tf.errors.PermissionDeniedError, tf.errors.UnauthenticatedError) as error:
        raise PermissionError(13, error.message) from None
    except tf.errors.OpError as error:
        raise OSError(error.message) from None
