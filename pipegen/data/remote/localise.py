"""Replaces the addresses in a source by local folders: of fetched files, or of stand-ins (empty files that are mounted).

fsspec or TensorFlow lists the files of an address.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from functools import cache, partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel

from pipegen.data.remote import caches
from pipegen.data.remote.caches import AT_ONCE, RUN, DroppedError, FullError, Remote, RemoteCache, patiently, version_of
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.kept import REMOTE, below, make_below, user_folder
from pipegen.mounts import ChangedError, mount
from pipegen.ops.sources.folders.scan import compile_glob
from pipegen.ops.sources.listing.base import Listing, Location, Source
from pipegen.ops.sources.listing.reader import FileReader, Hold, Read
from pipegen.ops.sources.shards.paths import expand
from pipegen.spec.models import Runtime
from pipegen.spec.places import Address, fetched, replaced
from pipegen.spec.units import format_bytes
from pipegen.terminal import masked, masked_address, progress, without_secrets

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


CHECKED = 10.0  # seconds after which the version of a file that takes several requests is checked again
_FAR = 8  # blocks between two reads from which on they do not count as sequential: an index reads only the heads of large records


class FetchedFileReader(FileReader):
    """A reader of encoded features in remote files, each fetched when it is read."""

    fetches = True

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.ops.lowering.fetched import FetchedFiles

        return FetchedFiles()

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return "remote files"


class RemoteMount:
    """A mount that reads files below an address; see `pipegen.mounts.Mount`.

    `place` are the folders in the cache that stand for the address.
    """

    def __init__(
        self, address: str, fs: AbstractFileSystem, cache: RemoteCache, place: tuple[str, ...], files: list[Remote], *, direct: bool = False
    ) -> None:
        self.address, self.direct = address, direct
        self.files = {file.key: file for file in files}  # in their present versions
        self._fs, self._cache, self._wholes, self._place = fs, cache.blocks, cache, place
        self._checked = dict.fromkeys(self.files, time.monotonic())
        self._read_to = threading.local()

    def size(self, key: str) -> int:
        return self._file(key).size

    def read(self, key: str, offset: int, length: int) -> bytes:
        file = self._file(key)
        length = file.size - offset if length < 0 else min(length, file.size - offset)
        try:
            content = self._cache.read(self._fs, file, offset, length)
        except (DroppedError, FileNotFoundError, PermissionError) as error:
            self._confirm(file)
            raise OSError(f"{self.address}/{key} cannot be fetched: {error}") from None
        if file.size > RUN * caches.BLOCK and time.monotonic() - self._checked[key] > CHECKED:
            self._confirm(file)
        return content

    def read_all(self, places: Sequence[tuple[str, int, int]]) -> list[bytes]:
        here = [self._cache.here(self._fs, self._file(key), offset, length) for key, offset, length in places]
        self.ahead(place for place, content in zip(places, here, strict=True) if content is None)
        return [self.read(*place) if content is None else content for place, content in zip(places, here, strict=True)]

    def along(self, key: str, offset: int, length: int) -> bytes:
        file = self._file(key)
        last, block = getattr(self._read_to, "at", None), caches.BLOCK
        self._read_to.at = (key, offset + length)
        if last is not None and last[0] == key and 0 <= offset - last[1] < _FAR * block:
            begin = offset // block // RUN * RUN * block
            self._cache.ahead(self._fs, file, begin, min(2 * RUN * block, file.size - begin))
        return self.read(key, offset, length)

    def ahead(self, places: Iterable[tuple[str, int, int]]) -> None:
        for key, offset, length in places:
            file = self.files.get(key)
            if file is not None:
                self._cache.ahead(self._fs, file, offset, file.size - offset if length < 0 else length)

    def check(self, keys: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda key: self._confirm(self._file(key)), keys))

    def whole(self, keys: Sequence[str]) -> list[str]:
        files = [self._file(key) for key in keys]
        try:
            root = self._wholes.hold(self._place, files, self._fs, lambda _done: None)
        except FullError as full:
            need, size, _ = full.args
            raise OSError(f"{need:,} bytes at {self.address} do not fit `remote_cache`, whose size is {size:,}") from None
        except (DroppedError, PermissionError) as error:
            raise OSError(f"{self.address} cannot be fetched: {error}") from None
        return [str(root / key) for key in keys]

    def _file(self, key: str) -> Remote:
        if key not in self.files:
            raise FileNotFoundError(2, "no such file when the address was listed", f"{self.address}/{key}")
        return self.files[key]

    def _confirm(self, file: Remote) -> None:
        """Checks that a file still has the version that was listed. Raises `ChangedError` if it changed or is gone; its blocks are removed,
        since some may be of the new version; `OSError` if the version cannot be read."""
        where = f"{self.address}/{file.key}"
        try:
            self._fs.invalidate_cache()
            now = patiently(lambda: self._fs.info(file.name))
        except FileNotFoundError:
            raise ChangedError(f"{where} was removed after it was listed; build the pipeline again") from None
        except (DroppedError, PermissionError) as error:
            raise OSError(f"{where} cannot be reached: {error}") from None
        size = now.get("size")
        if (size is not None and int(size) != file.size) or (file.version and version_of(now) not in ("", file.version)):
            self._cache.forget(self._fs, file)
            raise ChangedError(f"{where} changed after it was listed; build the pipeline again")
        self._checked[file.key] = time.monotonic()


_HIDDEN = "."
_LIBRARIES = {"gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "hf": "huggingface_hub", "hdfs": "pyarrow", "sftp": "paramiko"}
"""Packages that fsspec needs for a scheme beyond `pipegen[remote]`."""

ACCESS = "set the credentials as its client reads them, such as AWS_PROFILE for `s3://`; keep secrets out of the spec"
AGAIN = "run it again: what has been fetched is kept"


class FolderError(Exception):
    """A folder of the web taken for a file: the server redirects to an address that ends in `/`, which is the argument."""


def file_system(address: Address, field: str, *, by_tensorflow: bool) -> AbstractFileSystem:
    """Opens the file system that lists and fetches the files of an address; `field` is its argument, for errors.

    TensorFlow is used if `by_tensorflow` is set, else only for `gs://` without a library. Raises `OpError`: `PG565` for an unsupported
    scheme, `PG566` if the address cannot be reached, `PG744` if TensorFlow lacks the scheme."""
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


def stand_in(root: Path, files: Sequence[Remote], ours: Callable[[str], bool]) -> None:
    """Fills a folder with stand-ins: sparse files with the names and sizes of remote ones, and times that depend on their versions.

    Stand-ins of files that no longer exist are removed: those for which `ours` is true, given their relative path.
    """
    due = {file.key: file for file in files}
    here: dict[str, os.stat_result] = {}
    for folder, _, names in os.walk(root):
        inside = os.path.relpath(folder, root).replace(os.sep, "/")
        for name in names:
            key = name if inside == "." else f"{inside}/{name}"
            if key not in due and ours(key):
                with suppress(OSError):
                    os.unlink(root / key)
            elif key in due:
                here[key] = os.lstat(root / key)
    for key, file in due.items():
        # The hash of the version, as nanoseconds.
        written = int.from_bytes(hashlib.blake2b(file.version.encode(), digest_size=4).digest(), "little") * 1_000_000_000
        if key in here and (here[key].st_size, here[key].st_mtime_ns) == (file.size, written):
            continue
        path = root / key
        if not below(root, path):
            raise OSError(f"a link on the way to {path} leads out of the cache")
        make_below(root, path.parent)
        with open(path, "wb") as stream:
            stream.truncate(file.size)
        os.utime(path, ns=(written, written))


S = TypeVar("S", bound=BaseModel)
_cache_in = cache(RemoteCache)


@dataclass(frozen=True)
class Localised(Generic[S]):
    """A source whose addresses were replaced by local folders and files; `mounts` has the mount of each folder of stand-ins."""

    source: S
    mounts: Mapping[str, RemoteMount] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Replaces stand-ins by addresses in a text or a path."""
        for folder, of in self.mounts.items():
            text = text.replace(folder, of.address)
        return text

    def listing(self, listing: Listing) -> Listing:
        """Replaces stand-ins by addresses in a listing, and sets readers that fetch."""
        if not self.mounts:
            return listing
        return listing.changed(self._named)

    def _named(self, listing: Listing) -> Listing:
        direct = all(of.direct for of in self.mounts.values())
        readers = {
            split: FetchedFileReader() if type(reader) is FileReader and not direct else reader for split, reader in listing.readers.items()
        }

        def named(files: Location) -> Location:
            return replace(files, paths=files.paths.renamed(self.named))

        beside = {name: named(files) for name, files in listing.beside.items()}
        notes = tuple(replace(note, message=self.named(note.message)) for note in listing.notes)
        missing = tuple(group.renamed(self.named) for group in listing.missing)
        root, location = self.named(listing.root), named(listing.location)
        return replace(listing, root=root, location=location, beside=beside, readers=readers, notes=notes, missing=missing)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Replaces stand-ins by addresses in errors raised inside."""
        try:
            yield
        except OpError as error:
            for one in error.every if self.mounts else ():
                one.message = self.named(one.message)
                one.help = tuple(self.named(line) if type(line) is str else line for line in one.lines)
            raise


def localised(source: S, runtime: Runtime) -> Localised[S]:
    """Replaces the addresses in a source by local folders and files, in their present version. Raises `OpError`: `PG565` for an unsupported
    scheme, `PG744` for one that TensorFlow has to read and cannot, `PG566` if the files cannot be listed or fetched, `PG567` if they do not
    fit the cache. `field` is the argument."""
    mounts: dict[str, RemoteMount] = {}

    def local(address: Address, path: tuple[str, ...], of: Source | None) -> str:
        return _Place(address, ".".join(path), runtime, fetched(of, path, address, runtime)).local(mounts)

    return Localised(replaced(source, local), mounts)


@dataclass(frozen=True)
class _Place:
    """An address in an argument, and how it is read."""

    address: Address
    field: str
    runtime: Runtime
    mode: str

    def local(self, mounts: dict[str, RemoteMount]) -> str:
        """Fetches or mounts the address and returns its local path; adds a folder of stand-ins to `mounts`."""
        address, safe = self.address, without_secrets(self.address.text)
        fs = file_system(address, self.field, by_tensorflow=self.mode == "none")
        try:
            single, files = listed(fs, address)
            if not files:
                raise FileNotFoundError
            place = address.place[:-1] if single else address.place
            if self.mode == "whole":
                with progress(f"fetching {address}", sum(file.size for file in files)) as fetched:
                    root = self._wholes.hold(place, files, fs, fetched)
            else:
                root = self._mounted(fs, place, files, mounts, single=single)
        except FolderError as error:
            message = f"{error} is a folder or a page of the web, not a file"
            raise OpError("PG401", message, field=self.field, help="for a folder, write a `/` at the end of the address") from None
        except FileNotFoundError as error:
            raise self._nothing(error.filename) from None
        except FullError as full:
            need, size, others = full.args
            message = f"the files at {address} need {format_bytes(need)}, and `remote_cache` may take {format_bytes(size)}"
            message += f", of which {format_bytes(others)} are in use by runs with other addresses" if others else ""
            help_ = "raise it: `runtime: {remote_cache: {size: …}}`, or name fewer files"
            raise OpError("PG567", message, field=self.field, help=help_) from None
        except PermissionError as error:
            raise OpError("PG566", f"no permission to read {address}: {safe(error)}", field=self.field, help=ACCESS) from None
        except (DroppedError, OSError) as error:
            raise OpError("PG566", f"{address} cannot be fetched: {safe(error)}", field=self.field, help=AGAIN) from None
        return str(root / files[0].key) if single else str(root / address.pattern) if address.pattern else str(root)

    def _nothing(self, file: str | None) -> OpError:
        """Describes an address, or one `file` of its range, that does not exist."""
        address, message = self.address, f"nothing found at {self.address}"
        if not address.is_web:
            help_ = "check the address, and its region"
        elif address.pattern and file is not None:
            message, help_ = f"nothing found at {file}, which is one of {address}", "check the range, and the address"
        elif address.pattern or address.text.endswith("/"):
            lists = "TensorFlow lists no folders of the web" if self.mode == "none" else "the server lists no such files there"
            help_ = f"{lists}: name the files by a range, such as `{{000..099}}`, or one by one"
        else:
            help_ = "check the address; a folder ends in `/`"
        return OpError("PG401", message, field=self.field, help=help_)

    def _mounted(
        self, fs: AbstractFileSystem, place: tuple[str, ...], files: list[Remote], mounts: dict[str, RemoteMount], *, single: bool
    ) -> Path:
        root = self._kept / "listed" / Path(*place)
        at = masked_address(self.address.folder.partition("?")[0])
        at = at.rpartition("/")[0] if single else at
        if not below(self._kept, root):
            raise OSError(f"a link on the way to {root} leads out of the cache")
        with self._wholes.locked("listed", *place):
            make_below(self._kept, root)
            stand_in(root, files, lambda key: not single and bool(matching(self.address.pattern, [key])))
        earlier = mounts[str(root)].files.values() if str(root) in mounts else ()
        mounts[str(root)] = RemoteMount(at, fs, self._wholes, place, [*earlier, *files], direct=self.mode == "none")
        mount(str(root), mounts[str(root)])
        return root

    @property
    def _wholes(self) -> RemoteCache:
        return _cache_in(self._kept, self.runtime.remote_cache.size)

    @property
    def _kept(self) -> Path:
        """The folder of fetched files; raises `PG566` without one."""
        folder = self.runtime.remote_cache.path
        kept = Path(folder) if folder is not None else user_folder(REMOTE)
        if kept is None:
            help_ = "name one: `runtime: {remote_cache: {path: …}}`"
            raise OpError("PG566", "no folder for remote files: this user has no home folder", field=self.field, help=help_)
        return kept
