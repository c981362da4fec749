"""Replaces the addresses in a source by folders of this machine: of whole files that were fetched, or of stand-ins for what is fetched
as it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel

from pipegen.data.remote.block_cache import BlockCache
from pipegen.data.remote.blocks import DroppedError
from pipegen.data.remote.cache import FullError, RemoteCache
from pipegen.data.remote.listing import ACCESS, AGAIN, FolderError, file_system, listed, matching
from pipegen.data.remote.mounting import RemoteMount, stand_in
from pipegen.errors import OpError
from pipegen.kept import REMOTE, below, make_below, user_folder
from pipegen.masking import masked_address, without_secrets
from pipegen.mounts import mount
from pipegen.ops.sources.listing.base import Files, Listing, Source
from pipegen.ops.sources.listing.fetched_reader import FetchedFileReader
from pipegen.ops.sources.listing.reader import FileReader
from pipegen.ops.sources.listing.strings import Strings
from pipegen.spec.addresses import fetched, replaced
from pipegen.spec.units import format_bytes
from pipegen.terminal import progress

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from pipegen.data.remote.blocks import Remote
    from pipegen.spec.address import Address
    from pipegen.spec.models import Runtime

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
