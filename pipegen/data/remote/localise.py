"""Replaces the addresses in a source by folders of this machine: of fetched files, or of stand-ins that are mounted."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel

from pipegen.data.remote import block_cache
from pipegen.data.remote.block_cache import AT_ONCE, RUN, BlockCache, DroppedError, Remote, patiently, version_of
from pipegen.data.remote.cache import FullError, RemoteCache
from pipegen.data.remote.listing import ACCESS, AGAIN, FolderError, file_system, listed, matching
from pipegen.errors import OpError
from pipegen.kept import REMOTE, below, make_below, user_folder
from pipegen.mounts import ChangedError, mount
from pipegen.ops.sources.listing.base import Files, Listing, Source
from pipegen.ops.sources.listing.fetched_reader import FetchedFileReader
from pipegen.ops.sources.listing.reader import FileReader
from pipegen.ops.sources.listing.strings import Strings
from pipegen.spec.addresses import fetched, replaced
from pipegen.spec.units import format_bytes
from pipegen.terminal import masked_address, progress, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsspec import AbstractFileSystem

    from pipegen.spec.addresses import Address
    from pipegen.spec.models import Runtime


CHECKED = 10.0
"""Seconds after which a file of several requests is asked for its version anew."""
_FAR = 8
"""Blocks between two reads from which on what lies between is not fetched: an index wants the heads of large records."""


class RemoteMount:
    """Reads files below an address; see `pipegen.mounts.Mount`.

    Args:
        address: The address, without secrets.
        fs: What to fetch with.
        cache: Keeps blocks.
        wholes: Keeps whole files.
        place: The folders in there that stand for the address.
        direct: Whether TensorFlow reads the addresses itself.
    """

    def __init__(
        self, address: str, fs: AbstractFileSystem, cache: BlockCache, wholes: RemoteCache, place: tuple[str, ...], *, direct: bool = False
    ) -> None:
        self.address, self.direct = address, direct
        self._fs, self._cache, self._wholes, self._place = fs, cache, wholes, place
        self._files: dict[str, Remote] = {}
        self._checked: dict[str, float] = {}
        self._read_to = threading.local()

    def add(self, files: Iterable[Remote]) -> None:
        """Learns of files, in the versions that they have now."""
        now = time.monotonic()
        for file in files:
            self._files[file.key] = file
            self._checked[file.key] = now

    def files(self) -> list[Remote]:
        """Returns the files that it knows."""
        return [*self._files.values()]

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
        if file.size > RUN * block_cache.BLOCK and time.monotonic() - self._checked[key] > CHECKED:
            self._confirm(file)
        return content

    def read_all(self, places: Sequence[tuple[str, int, int]]) -> list[bytes]:
        here = [self._cache.here(self._fs, self._file(key), offset, length) for key, offset, length in places]
        self.ahead(place for place, content in zip(places, here, strict=True) if content is None)
        return [self.read(*place) if content is None else content for place, content in zip(places, here, strict=True)]

    def along(self, key: str, offset: int, length: int) -> bytes:
        file = self._file(key)
        last, block = getattr(self._read_to, "at", None), block_cache.BLOCK
        self._read_to.at = (key, offset + length)
        if last is not None and last[0] == key and 0 <= offset - last[1] < _FAR * block:
            begin = offset // block // RUN * RUN * block
            self._cache.ahead(self._fs, file, begin, min(2 * RUN * block, file.size - begin))
        return self.read(key, offset, length)

    def ahead(self, places: Iterable[tuple[str, int, int]]) -> None:
        for key, offset, length in places:
            file = self._files.get(key)
            if file is not None:
                self._cache.ahead(self._fs, file, offset, file.size - offset if length < 0 else length)

    def check(self, keys: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda key: self._confirm(self._file(key)), keys):
                pass

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
        if key not in self._files:
            raise FileNotFoundError(2, "there was no such file when it was listed", f"{self.address}/{key}")
        return self._files[key]

    def _confirm(self, file: Remote) -> None:
        """Asks for the version of a file.

        Raises:
            ChangedError: Where it is another one, or the file is gone; its blocks are forgotten, since some may be of either.
            OSError: Where it cannot be found out.
        """
        where = f"{self.address}/{file.key}"
        try:
            self._fs.invalidate_cache()
            now = patiently(lambda: self._fs.info(file.name))
        except FileNotFoundError:
            raise ChangedError(f"{where} is gone since it was listed; build the pipeline again") from None
        except (DroppedError, PermissionError) as error:
            raise OSError(f"{where} cannot be reached: {error}") from None
        size = now.get("size")
        if (size is not None and int(size) != file.size) or (file.version and version_of(now) not in ("", file.version)):
            self._cache.forget(self._fs, file)
            raise ChangedError(f"{where} was written anew after it was listed; build the pipeline again")
        self._checked[file.key] = time.monotonic()


def stand_in(root: Path, files: Sequence[Remote], ours: Callable[[str], bool]) -> None:
    """Makes a folder list as what it stands for does: each file with its name and its size, written when its version says, and empty.

    Args:
        root: The folder.
        files: What there is.
        ours: From a relative path to whether it would be among `files`, if it still existed.
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
        written = _written(file.version)
        if key in here and (here[key].st_size, here[key].st_mtime_ns) == (file.size, written):
            continue
        path = root / key
        if not below(root, path):
            raise OSError(f"on the way to {path} is a link, which leads out of the cache")
        make_below(root, path.parent)
        with open(path, "wb") as stream:
            stream.truncate(file.size)
        os.utime(path, ns=(written, written))


def _written(version: str) -> int:
    """A time of writing that differs where versions do, in nanoseconds."""
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=4).digest(), "little") * 1_000_000_000


S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class Localised(Generic[S]):
    """A source whose addresses are folders and files of this machine.

    Attributes:
        source: The source.
        mounts: The mount of each folder of stand-ins.
    """

    source: S
    mounts: Mapping[str, RemoteMount] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Returns a text, or a path, with addresses in place of stand-ins."""
        for folder, of in self.mounts.items():
            text = text.replace(folder, of.address)
        return text

    def listing(self, listing: Listing) -> Listing:
        """Returns what was listed with addresses in place of stand-ins, and read as what it is."""
        if not self.mounts:
            return listing
        direct = all(of.direct for of in self.mounts.values())
        readers = {
            split: FetchedFileReader() if type(reader) is FileReader and not direct else reader for split, reader in listing.readers.items()
        }
        beside = {name: Files(files.keys, self._paths(files.paths), files.sizes) for name, files in listing.beside.items()}
        notes = tuple(replace(note, message=self.named(note.message)) for note in listing.notes)
        paths = None if listing.paths is None else self._paths(listing.paths)
        missing = tuple(group.renamed(self.named) for group in listing.missing)
        return replace(listing, root=self.named(listing.root), paths=paths, beside=beside, readers=readers, notes=notes, missing=missing)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Puts addresses into what is raised inside."""
        try:
            yield
        except OpError as error:
            for one in error.every if self.mounts else ():
                one.message = self.named(one.message)
                one.help = tuple(self.named(line) if type(line) is str else line for line in one.lines)
            raise

    def _paths(self, paths: Strings) -> Strings:
        return Strings.hold([self.named(path) for path in paths])


def localised(source: S, runtime: Runtime) -> Localised[S]:
    """Returns a source whose addresses are folders and files of this machine, in their present version; the same where it names none.

    Raises:
        OpError: `PG565` where nothing speaks the scheme, `PG744` where TensorFlow has to and does not, `PG566` where the files cannot be
            listed or fetched, `PG567` where they do not fit the cache. `field` is the argument.
    """
    mounts: dict[str, RemoteMount] = {}

    def local(address: Address, path: tuple[str, ...], of: Source | None) -> str:
        return _Place(address, ".".join(path), runtime, fetched(of, path, address, runtime)).local(mounts)

    changed = replaced(source, local)
    return Localised(source if changed is None else changed, mounts)


@dataclass(frozen=True)
class _Place:
    """An address that an argument has, and how it is read."""

    address: Address
    field: str
    runtime: Runtime
    mode: str

    def local(self, mounts: dict[str, RemoteMount]) -> str:
        """Returns the path on this machine that stands for it; a folder of stand-ins is added to `mounts`."""
        address, said = self.address, without_secrets(self.address.text)
        fs = file_system(address, self.field, by_tensorflow=self.mode == "none")
        try:
            single, files = listed(fs, address)
            if not files:
                raise FileNotFoundError
            place = address.place[:-1] if single else address.place
            root = self._whole(fs, place, files) if self.mode == "whole" else self._mounted(fs, place, files, mounts, single=single)
        except FolderError as error:
            message = f"{error} is a folder, or a page that the server leads to, and not a file"
            raise OpError("PG401", message, field=self.field, help="the address of a folder of the web ends in `/`") from None
        except FileNotFoundError as error:
            raise self._nothing(error.filename) from None
        except FullError as full:
            need, size, others = full.args
            message = f"what is at {address} takes {format_bytes(need)}, and `remote_cache` may take {format_bytes(size)}"
            message += f", of which runs are reading {format_bytes(others)} from elsewhere" if others else ""
            help_ = "raise it: `runtime: {remote_cache: {size: …}}`, or name fewer files"
            raise OpError("PG567", message, field=self.field, help=help_) from None
        except PermissionError as error:
            raise OpError("PG566", f"{address} may not be read: {said(error)}", field=self.field, help=ACCESS) from None
        except (DroppedError, OSError) as error:
            raise OpError("PG566", f"{address} cannot be fetched: {said(error)}", field=self.field, help=AGAIN) from None
        return str(root / files[0].key) if single else str(root / address.pattern) if address.pattern else str(root)

    def _nothing(self, file: str | None) -> OpError:
        """Returns what is said where an address, or one `file` of those that it stands for, is not there."""
        address = self.address
        if not address.is_web:
            return OpError("PG401", f"there is nothing at {address}", field=self.field, help="look at the address, and at its region")
        if address.pattern and file is not None:
            message = f"there is nothing at {file}, which is one of {address}"
            return OpError("PG401", message, field=self.field, help="look at the range, and at the address")
        lists = "TensorFlow lists no folders of the web" if self.mode == "none" else "the server lists no such files there"
        if address.pattern or address.text.endswith("/"):
            help_ = f"{lists}: name the files by a range, such as `{{000..099}}`, or one by one"
            return OpError("PG401", f"there is nothing at {address}", field=self.field, help=help_)
        return OpError("PG401", f"there is nothing at {address}", field=self.field, help="look at the address; a folder ends in `/`")

    def _whole(self, fs: AbstractFileSystem, place: tuple[str, ...], files: list[Remote]) -> Path:
        with progress(f"fetching {self.address}", sum(file.size for file in files)) as fetched:
            return self._wholes.hold(place, files, fs, fetched)

    def _mounted(
        self, fs: AbstractFileSystem, place: tuple[str, ...], files: list[Remote], mounts: dict[str, RemoteMount], *, single: bool
    ) -> Path:
        root = self._kept / "listed" / Path(*place)
        at = masked_address(self.address.folder.partition("?")[0])
        at = at.rpartition("/")[0] if single else at
        if not below(self._kept, root):
            raise OSError(f"on the way to {root} is a link, which leads out of the cache")
        with self._wholes.locked("listed", *place):
            make_below(self._kept, root)
            stand_in(root, files, lambda key: not single and bool(matching(self.address.pattern, [key])))
        blocks = _block_cache(self._kept, self.runtime.remote_cache.size)
        known = mounts.get(str(root))
        made = RemoteMount(at, fs, blocks, self._wholes, place, direct=self.mode == "none")
        made.add([*(known.files() if known is not None else ()), *files])
        mounts[str(root)] = made
        mount(str(root), made)
        return root

    @property
    def _wholes(self) -> RemoteCache:
        return RemoteCache(self._kept, self.runtime.remote_cache.size)

    @property
    def _kept(self) -> Path:
        """The folder of what is fetched.

        Raises:
            OpError: `PG566` where there is none.
        """
        folder = self.runtime.remote_cache.path
        kept = Path(folder) if folder is not None else user_folder(REMOTE)
        if kept is None:
            help_ = "name one: `runtime: {remote_cache: {path: …}}`"
            raise OpError("PG566", "there is no folder to keep remote files in", field=self.field, help=help_)
        return kept


@cache
def _block_cache(folder: Path, size: int) -> BlockCache:
    return BlockCache(folder, size)
