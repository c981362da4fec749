"""Replaces the addresses in a source by the folders of the cache that hold their files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel

from pipegen.data.remote.address import Address
from pipegen.data.remote.blocks import DroppedError, Remote, patiently, version_of
from pipegen.data.remote.cache import FullError, RemoteCache
from pipegen.errors import OpError
from pipegen.kept import REMOTE, user_folder
from pipegen.masking import masked, without_secrets
from pipegen.ops.sources.folders.glob import compile_glob
from pipegen.ops.sources.records.paths import expand
from pipegen.spec.rebase import SOURCE_PATHS
from pipegen.spec.units import format_bytes
from pipegen.terminal import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsspec import AbstractFileSystem

    from pipegen.spec.models import Runtime

M = TypeVar("M", bound=BaseModel)
_HIDDEN = "."
_LIBRARIES = {"gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "hf": "huggingface_hub", "hdfs": "pyarrow", "sftp": "paramiko"}
"""What fsspec needs for a scheme, where that is no part of `pipegen[remote]`."""


def localised(source: M, runtime: Runtime) -> M:
    """Returns a source whose addresses are folders and files of the cache, in their present version; the same where it names none.

    Raises:
        OpError: `PG565` where nothing speaks the scheme, `PG566` where the files cannot be listed or fetched, `PG567` where they do not
            fit the cache. `field` is the argument.
    """
    changed = _inside(source, (), partial(_local, runtime))
    return source if changed is None else changed


def _inside(value: Any, path: tuple[str, ...], local: Callable[[Address, str], str]) -> Any:
    """The value with its addresses replaced; `None` where there are none."""
    if isinstance(value, BaseModel):
        given = {name: getattr(value, name) for name in type(value).model_fields}
        found = {name: new for name, old in given.items() if (new := _inside(old, (*path, name), local)) is not None}
        return value.model_copy(update=found) if found else None
    if isinstance(value, Mapping):
        changed = {key: new for key, old in value.items() if (new := _inside(old, (*path, str(key)), local)) is not None}
        return {**value, **changed} if changed else None
    if isinstance(value, (list, tuple)):
        items = [_inside(old, (*path, str(i)), local) for i, old in enumerate(value)]
        if all(item is None for item in items):
            return None
        return type(value)(old if new is None else new for old, new in zip(value, items, strict=True))
    if not isinstance(value, str) or not SOURCE_PATHS & set(path[-2:]):
        return None
    address = Address.of(value)
    return None if address is None else local(address, ".".join(path))


def _local(runtime: Runtime, address: Address, field: str) -> str:
    """The path on this machine that stands for an address."""
    fs = _file_system(address, field)
    said = without_secrets(address.text)
    folder = runtime.remote_cache.path
    kept = Path(folder) if folder is not None else user_folder(REMOTE)
    if kept is None:
        raise OpError(
            "PG566", "there is no folder to keep remote files in", field=field, help="name one: `runtime: {remote_cache: {path: …}}`"
        )
    try:
        single, files = _listed(fs, address)
        if not files:
            raise FileNotFoundError
        with progress(f"fetching {address}", sum(file.size for file in files)) as fetched:
            root = RemoteCache(kept, runtime.remote_cache.size).hold(address.place[:-1] if single else address.place, files, fs, fetched)
    except FileNotFoundError:
        raise OpError("PG401", f"there is nothing at {address}", field=field, help="look at the address, and at its region") from None
    except FullError as full:
        need, size = full.args
        message = f"what is at {address} takes {format_bytes(need)}, and `remote_cache` may take {format_bytes(size)}"
        raise OpError("PG567", message, field=field, help="raise it: `runtime: {remote_cache: {size: …}}`, or name fewer files") from None
    except PermissionError as error:
        raise OpError("PG566", f"{address} may not be read: {said(error)}", field=field, help=_ACCESS) from None
    except (DroppedError, OSError) as error:
        raise OpError("PG566", f"{address} cannot be fetched: {said(error)}", field=field, help=_AGAIN) from None
    return str(root / files[0].key) if single else str(root / address.pattern) if address.pattern else str(root)


_ACCESS = "set the credentials as its client reads them, such as AWS_PROFILE for `s3://`; secrets belong in no spec"
_AGAIN = "run it again: what has been fetched is kept"


def _file_system(address: Address, field: str) -> AbstractFileSystem:
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
        raise OpError("PG565", f"nothing here speaks `{address.scheme}://`", field=field, help=f"addresses are {known}") from None
    except (DroppedError, OSError) as error:
        raise OpError("PG566", f"{address} cannot be reached: {without_secrets(address.text)(error)}", field=field, help=_AGAIN) from None
    return fs


def _listed(fs: AbstractFileSystem, address: Address) -> tuple[bool, list[Remote]]:
    """Tells whether an address is that of one file, and lists its files; hidden ones are left out."""
    fs.invalidate_cache()
    name = fs._strip_protocol(address.folder)
    web = address.scheme in ("http", "https")  # where a folder is a page like any other, told by the slash behind it
    if not address.pattern and (not address.text.endswith("/") if web else patiently(lambda: fs.isfile(name))):
        return True, [_sized(fs, Remote(name, address.place[-1], -1, ""))]
    found = patiently(lambda: fs.find(name, detail=True))
    files = []
    for full, about in sorted(found.items()):
        key = unquote(full[len(name.rstrip("/")) :].strip("/"))
        if not key or any(part in ("..", "") or part.startswith(_HIDDEN) for part in key.split("/")):
            continue
        files.append(Remote(full, key, _size(about), version_of(about)))
    return False, [file if file.size >= 0 else _sized(fs, file) for file in _matching(address.pattern, files)]


def _size(about: Mapping[str, Any]) -> int:
    """The size that a listing says, or -1."""
    return -1 if about.get("size") is None else int(about["size"])


def _matching(pattern: str, files: list[Remote]) -> list[Remote]:
    """The files that a pattern is about; all of them without one."""
    if not pattern:
        return files
    globs = [compile_glob(one) for one in expand(pattern)]
    deep = "/" in pattern
    return [file for file in files if (deep or "/" not in file.key) and any(glob.match(file.key) is not None for glob in globs)]


def _sized(fs: AbstractFileSystem, file: Remote) -> Remote:
    """The file with what only a look at it alone tells."""
    about = patiently(lambda: fs.info(file.name))
    if about.get("size") is None:
        raise DroppedError(f"the server does not say how large {masked(file.key)} is")
    return file._replace(size=int(about["size"]), version=version_of(about))
