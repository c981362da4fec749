"""Lists the files of an address, with fsspec or TensorFlow."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from glob import has_magic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipegen.data.remote.caches import AT_ONCE, DroppedError, Remote, patiently, version_of
from pipegen.errors import OpError
from pipegen.ops.sources.folders.glob import compile_glob
from pipegen.ops.sources.records.paths import expand
from pipegen.terminal import masked, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsspec import AbstractFileSystem

    from pipegen.spec.addresses import Address

_HIDDEN = "."
_LIBRARIES = {"gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "hf": "huggingface_hub", "hdfs": "pyarrow", "sftp": "paramiko"}
"""Packages that fsspec needs for a scheme beyond `pipegen[remote]`."""

ACCESS = "set the credentials as its client reads them, such as AWS_PROFILE for `s3://`; keep secrets out of the spec"
AGAIN = "run it again: what has been fetched is kept"


class FolderError(Exception):
    """A folder of the web taken for a file: the server redirects to an address that ends in `/`, which is the argument."""


def file_system(address: Address, field: str, *, by_tensorflow: bool) -> AbstractFileSystem:
    """Opens the file system that lists and fetches the files of an address; `field` is its argument, for errors.

    TensorFlow is used if `by_tensorflow` is set, else only for `gs://` without a library.

    Raises:
        OpError: `PG565` for an unsupported scheme, `PG566` if the address cannot be reached, `PG744` if TensorFlow lacks the scheme.
    """
    if by_tensorflow or (address.scheme == "gs" and importlib.util.find_spec("gcsfs") is None):
        from pipegen.ops.lowering.fetched import TensorFlowFiles, speaks

        lacking = speaks(address.text, address.scheme)
        if lacking:
            message = f"TensorFlow here does not read `{address.scheme}://` in its graph: {lacking[0]}"
            raise OpError("PG744", message, field=field, help=lacking[1:])
        if address.scheme != "gs" or importlib.util.find_spec("gcsfs") is None:
            return TensorFlowFiles()
    try:
        import fsspec
    except ImportError:
        raise OpError("PG565", f"reading {address} needs fsspec", field=field, help="pip install 'pipegen[remote]'") from None
    try:
        fs, _ = patiently(lambda: fsspec.core.url_to_fs(address.folder))
    except ImportError as error:
        library = _LIBRARIES.get(address.scheme)
        install = f"pip install {library}" if library else "pip install 'pipegen[remote]'"
        raise OpError("PG565", f"`{address.scheme}://` needs a library: {error}", field=field, help=install) from None
    except ValueError:
        known = "`s3://`, `http://`, `https://`, `hf://`, `gs://` and others that fsspec knows"
        raise OpError("PG565", f"unknown scheme `{address.scheme}://`", field=field, help=f"addresses are {known}") from None
    except (DroppedError, OSError) as error:
        raise OpError("PG566", f"{address} cannot be reached: {without_secrets(address.text)(error)}", field=field, help=AGAIN) from None
    return fs


def listed(fs: AbstractFileSystem, address: Address) -> tuple[bool, list[Remote]]:
    """Lists the files of an address without hidden ones; the first value is true if the address is that of one file."""
    fs.invalidate_cache()
    name = fs._strip_protocol(address.folder)
    if address.is_web and address.pattern and not has_magic(address.pattern):  # a range names its files, without a listing
        named = [Remote(f"{name}/{key}{address.query}", key, -1, "") for key in expand(address.pattern)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return False, list(pool.map(partial(_sized, fs), named))
    # On the web, only the slash at its end tells a folder from a file.
    is_file = address.is_web and not address.text.endswith("/")
    if not address.pattern and not address.is_web:
        # A permission to list a folder does not imply one for its facts. fsspec's `isfile` is false after any error, such as a dropped
        # connection.
        with suppress(FileNotFoundError, PermissionError):
            is_file = patiently(lambda: fs.info(name))["type"] == "file"
    if is_file and not address.pattern:
        return True, [_sized(fs, Remote(name, address.place[-1], -1, ""))]
    files = []
    for full, about in sorted(_found(fs, name).items()):
        key = unquote(full[len(name.rstrip("/")) :].strip("/"))
        if not key or any(part in ("..", "") or part.startswith(_HIDDEN) for part in key.split("/")):
            continue
        files.append(Remote(full, key, -1 if about.get("size") is None else int(about["size"]), version_of(about)))
    wanted = set(matching(address.pattern, (file.key for file in files)))
    return False, [file if file.size >= 0 else _sized(fs, file) for file in files if file.key in wanted]


def _found(fs: AbstractFileSystem, name: str) -> dict[str, dict[str, Any]]:
    """Lists the files below a folder; retries each folder, while fsspec's generic `find` skips folders after an error."""
    # TensorFlow's, which must not import fsspec, has a `find` that gets all files at once, like some others.
    finds = fs.protocol == "tensorflow"
    if not finds:
        from fsspec import AbstractFileSystem
        from fsspec.asyn import AsyncFileSystem

        if isinstance(fs, AsyncFileSystem):
            finds = type(fs)._find is not AsyncFileSystem._find
        else:
            finds = not isinstance(fs, AbstractFileSystem) or type(fs).find is not AbstractFileSystem.find
    if finds:
        return patiently(lambda: fs.find(name, detail=True))
    files, folders = {}, [name]
    while folders:
        folder = folders.pop()
        try:
            listing = patiently(partial(fs.ls, folder, detail=True))
        except FileNotFoundError:
            if folder == name:
                raise
            continue  # a broken link
        for about in listing:
            full = about["name"].rstrip("/")
            if about["type"] != "directory":
                files[about["name"]] = about
            elif full != folder.rstrip("/") and not full.rpartition("/")[2].startswith(_HIDDEN):
                folders.append(about["name"])
    return files


def matching(pattern: str, keys: Iterable[str]) -> list[str]:
    """Selects the relative paths that match a pattern; all without one."""
    if not pattern:
        return list(keys)
    globs = [compile_glob(one) for one in expand(pattern)]
    deep = "/" in pattern
    return [key for key in keys if (deep or "/" not in key) and any(glob.match(key) is not None for glob in globs)]


def _sized(fs: AbstractFileSystem, file: Remote) -> Remote:
    """Asks for the size and version of one file."""
    try:
        about = patiently(lambda: fs.info(file.name))
    except FileNotFoundError:
        raise FileNotFoundError(2, "no such file", masked(file.name)) from None
    if str(about.get("url", "")).partition("?")[0].endswith("/"):
        raise FolderError(masked(file.name))
    if about.get("size") is None:
        raise DroppedError(f"the server does not report the size of {masked(file.key)}")
    return file._replace(size=int(about["size"]), version=version_of(about))
