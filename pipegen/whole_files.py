"""Files and folders that are there whole or not at all, whenever the process or the machine stops.

What is written goes under a name of its own beside its place, is brought to the disk, and then takes the place in one step. A process that
is killed leaves such a name behind at most; it begins with a dot, so that nothing that lists a folder takes it for data, and
`remove_parts` clears it away.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

K = TypeVar("K")

_BEGIN, _END = ".pipegen-", ".part"
_OPEN = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
"""Names of files that a process has open already, and goes on writing to."""
_NO_ROOM = {errno.EACCES, errno.EPERM, errno.EROFS}
_UNLINKED = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
"""What file systems without hard links answer."""


def part_name() -> str:
    """Makes a name for what is not whole yet, which no other process, thread or host uses."""
    return f"{_BEGIN}{os.getpid()}-{os.urandom(6).hex()}{_END}"


def is_part(name: str) -> bool:
    """Tells whether a name is one of those that `part_name` makes."""
    return name.startswith(_BEGIN) and name.endswith(_END)


def remove_parts(folder: str | os.PathLike[str], *, older: float = 3600.0) -> None:
    """Removes what processes that were killed have left in a folder; what was written within `older` seconds may still be in the making."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if is_part(entry.name):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime >= older:
                        shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


def write_whole(
    path: str | os.PathLike[str],
    content: str | bytes | Iterable[bytes | memoryview],
    *,
    new: bool = False,
    durable: bool = True,
    mode: int = 0o666,
    within: int | None = None,
) -> None:
    """Writes a file, text as UTF-8; for the arguments and the errors see `whole_file`."""
    with whole_file(path, new=new, durable=durable, mode=mode, within=within) as stream:
        if isinstance(content, (str, bytes)):
            stream.write(content.encode() if isinstance(content, str) else content)
        else:
            stream.writelines(content)


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, new: bool = False, durable: bool = True, mode: int = 0o666, within: int | None = None
) -> Iterator[IO[bytes]]:
    """Opens a file to be written, which takes its place when the block ends, and leaves it as it was where the block raises.

    A file that is there keeps its permissions, and a link goes on showing the file that it shows. What is not a file, such as a terminal or
    a pipe, is written directly.

    Args:
        path: The file; its folder exists.
        new: Raise where there is something already, even if it appears while the file is written.
        durable: Wait until it is on the disk, so that a power cut leaves the old or the new file. Leave it out only for what is checked
            when it is read, or can be made again.
        mode: The permissions of a new file, less those that the process takes away (`umask`).
        within: An open folder that `path` is a name in; links there are replaced, not followed.

    Raises:
        OSError: When it cannot be written, with the path in `filename`.
    """
    name = os.fspath(path)
    target = _target(name, new=new) if within is None else name
    if target is None:
        with open(name, "wb") as direct:
            yield direct
        return
    part = os.path.join(os.path.dirname(target), part_name())
    number = _made(part, name, mode, within)
    try:
        with os.fdopen(number, "wb") as stream:
            if within is None:
                _like(target, number)
            yield stream
            stream.flush()
            if durable:
                os.fsync(number)
        _put(part, target, name, new=new, within=within)
    except BaseException:
        with suppress(OSError):
            os.unlink(part, dir_fd=within)
        raise
    if durable:
        _sync_folder(os.path.dirname(target), within)


@contextmanager
def whole_files(targets: Mapping[K, Path], folder: Path) -> Iterator[dict[K, Path]]:
    """Yields names in `folder` to write files under, which take the places of the targets once all of them are on the disk.

    Raises:
        OSError: When one cannot be brought to the disk, or into its place.
    """
    parts = {key: folder / part_name() for key in targets}
    try:
        yield parts
        for part in parts.values():
            _sync(part)
        for key, part in parts.items():
            os.replace(part, targets[key])
        for parent in {target.parent for target in targets.values()}:
            _sync_folder(parent)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def put_in_place(part: Path, target: Path) -> None:
    """Brings a file that is complete to the disk, and then into its place."""
    _sync(part)
    os.replace(part, target)
    _sync_folder(target.parent)


@contextmanager
def whole_place(path: Path, *, new: bool = False, older: Path | None = None) -> Iterator[Path]:
    """Yields a place beside a path for a file or a folder, which takes the place of the path when the block ends.

    Args:
        path: What is to be replaced, if it is there; the folders above it are made.
        new: Replace nothing but an empty folder, and raise otherwise.
        older: Where a folder that is replaced stays until the new one is in its place, which takes two steps: between them a reader finds
            it here. By default that place is removed with all that a killed process leaves.

    Raises:
        OSError: When it cannot be written.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    outer = path.parent / part_name()
    try:
        outer.mkdir(mode=0o700)
    except OSError as error:
        raise _explained(error, os.fspath(path)) from None
    part, before = outer / "new", older if older is not None else outer / "before"
    try:
        yield part
        _sync_tree(part)
        if not new and path.exists() and (path.is_dir() or part.is_dir()):
            if older is not None:
                shutil.rmtree(older, ignore_errors=True)
            os.replace(path, before)
            try:
                os.replace(part, path)
            except BaseException:
                os.replace(before, path)
                raise
            shutil.rmtree(before, ignore_errors=True)
        else:
            os.replace(part, path)
        _sync_folder(path.parent)
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def _target(path: str, *, new: bool) -> str | None:
    """Returns the file that a path leads to; `None` for what is no file on a disk.

    Raises:
        OSError: For a folder, a file that may not be written, and with `new` for anything that is there.
    """
    try:
        about = os.stat(path)
    except FileNotFoundError:
        return path if new else os.path.realpath(path)
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(about.st_mode) or os.path.abspath(path).startswith(_OPEN):
        return None
    if new:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    if not os.access(path, os.W_OK):  # which a rename does not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return os.path.realpath(path)


def _made(part: str, path: str, mode: int, within: int | None) -> int:
    try:
        return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=within)
    except OSError as error:
        raise _explained(error, path) from None


def _explained(error: OSError, path: str) -> OSError:
    """Makes an error about a path of one about the name that is beside it for a while."""
    why = f"{error.strerror}: its folder takes no new file, which would become this one once it is whole"
    return OSError(error.errno, why if error.errno in _NO_ROOM else error.strerror, path)


def _like(target: str, number: int) -> None:
    """Gives an open file the permissions of the one that it replaces."""
    with suppress(FileNotFoundError):
        os.fchmod(number, stat.S_IMODE(os.stat(target).st_mode))


def _put(part: str, target: str, path: str, *, new: bool, within: int | None) -> None:
    try:
        if new:
            _put_new(part, target, within)
        else:
            os.replace(part, target, src_dir_fd=within, dst_dir_fd=within)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _put_new(part: str, target: str, within: int | None) -> None:
    try:
        os.link(part, target, src_dir_fd=within, dst_dir_fd=within)
        os.unlink(part, dir_fd=within)
    except OSError as error:
        if error.errno not in _UNLINKED:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=within))
        os.replace(part, target, src_dir_fd=within, dst_dir_fd=within)


def _sync(file: str | os.PathLike[str]) -> None:
    number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sync_tree(place: Path) -> None:
    if place.is_dir():
        for folder, _, names in os.walk(place):
            for name in names:
                _sync(os.path.join(folder, name))
            _sync_folder(folder)
    else:
        _sync(place)


def _sync_folder(folder: str | os.PathLike[str], within: int | None = None) -> None:
    """Brings the names in a folder to the disk, as far as its file system does that."""
    with suppress(OSError):
        if within is not None:
            os.fsync(within)
        else:
            _sync(os.fspath(folder) or os.curdir)
