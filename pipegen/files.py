"""Atomic writing of files and folders, and safe opening of files in folders that others may write to."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

K = TypeVar("K")

_BEGIN, _END = ".pipegen-", ".part"
_OPEN = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")  # names of files that a process has open already; they are written directly
_NO_ROOM = {errno.EACCES, errno.EPERM, errno.EROFS}
_UNLINKED = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}  # errors of file systems without hard links


def part_name() -> str:
    """Makes a name for an unfinished file, which no other process, thread or host uses."""
    return f"{_BEGIN}{os.getpid()}-{os.urandom(6).hex()}{_END}"


def is_part(name: str) -> bool:
    """Checks if a name was made by `part_name`."""
    return name.startswith(_BEGIN) and name.endswith(_END)


def remove_parts(folder: str | os.PathLike[str], *, older: float = 3600.0) -> None:
    """Removes unfinished files of killed processes from a folder, except those modified within the last `older` seconds."""
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
    """Opens a file to write, which replaces the path atomically when the block ends; if the block raises, nothing changes.

    An existing file keeps its permissions; a link stays, and its target is replaced. Terminals, pipes and the like are written directly.

    Args:
        path: The file; its folder exists.
        new: Raise if the path exists, even if it appears while the file is written.
        durable: Wait until it is on the disk, so that a power cut leaves the old or the new file. Set it to false only for files that are
            checked when read, or can be made again.
        mode: The permissions of a new file, before `umask`.
        within: An open folder that contains the name `path`; links there are replaced, not followed.

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
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=within)
    except OSError as error:
        raise _explained(error, name) from None
    try:
        with os.fdopen(number, "wb") as stream:
            if within is None:
                with suppress(FileNotFoundError):
                    os.fchmod(number, stat.S_IMODE(os.stat(target).st_mode))
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
    """Yields temporary paths in `folder` to write; when all are on the disk, they replace the targets.

    Raises `OSError` when one cannot be synced or moved.
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
    """Syncs a complete file to the disk, and then moves it to its place."""
    _sync(part)
    os.replace(part, target)
    _sync_folder(target.parent)


@contextmanager
def whole_place(path: Path, *, new: bool = False, older: Path | None = None) -> Iterator[Path]:
    """Yields a temporary path for a file or a folder, which replaces the path when the block ends.

    Args:
        path: The path to replace or make; the folders above it are made.
        new: Replace nothing but an empty folder, and raise otherwise.
        older: The place of the replaced folder until the new one is in place. That takes two steps; between them, a reader finds it here.
            By default that place is removed with other remains of killed processes.

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
        if not part.is_dir():
            _sync(part)
        for folder, _, names in os.walk(part):  # nothing, if it is a file
            for name in names:
                _sync(os.path.join(folder, name))
            _sync_folder(folder)
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
    """Resolves a path; `None` if it is not a file on a disk.

    Raises `OSError` for a folder, a read-only file and, with `new`, for any existing path.
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
    if not os.access(path, os.W_OK):  # a rename does not check it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    return os.path.realpath(path)


def _explained(error: OSError, path: str) -> OSError:
    """Turns an error about the temporary file into one about the path."""
    why = f"{error.strerror}: cannot create a temporary file in its folder"
    return OSError(error.errno, why if error.errno in _NO_ROOM else error.strerror, path)


def _put(part: str, target: str, path: str, *, new: bool, within: int | None) -> None:
    try:
        if new:
            try:
                os.link(part, target, src_dir_fd=within, dst_dir_fd=within)
                os.unlink(part, dir_fd=within)
                return
            except OSError as error:
                if error.errno not in _UNLINKED:
                    raise
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=within))
        os.replace(part, target, src_dir_fd=within, dst_dir_fd=within)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _sync(file: str | os.PathLike[str]) -> None:
    number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sync_folder(folder: str | os.PathLike[str], within: int | None = None) -> None:
    """Syncs the names in a folder to the disk, if its file system supports that."""
    with suppress(OSError):
        if within is not None:
            os.fsync(within)
        else:
            _sync(os.fspath(folder) or os.curdir)


_NO_WAIT = os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
)


def stamp(path: str) -> tuple[int, int]:
    """Returns the size of a file in bytes and its modification time in nanoseconds, to detect changes."""
    about = os.stat(path)
    return about.st_size, about.st_mtime_ns


class NotRegularError(OSError):
    """A path is not a regular file; `strerror` describes what it is."""


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Reads at most `most` bytes of a regular file; follows links. Raises `OSError` when it cannot be read, or is not a regular file: a
    pipe or a device may never end, and files below `/proc` are made up by the system."""
    name = os.fspath(path)
    number = os.open(name, os.O_RDONLY | _NO_WAIT)
    with os.fdopen(number, "rb") as stream:
        about = os.fstat(number)
        _check_kind(about, name)
        data = stream.read(most)  # `None` if it would block; files on a disk never do
        if data is None or (data and not about.st_size and not os.fstat(number).st_size):
            raise NotRegularError(errno.EINVAL, "it is made up by the system, not a file on a disk", name)
        return data


def open_owned(name: str, flags: int, *, within: int, owners: Iterable[int], mode: int = 0o666) -> int:
    """Opens a file in an open folder that several users may write to, without following links; `flags` and `mode` as in `os.open`.

    Raises `OSError` when it cannot be opened, is not a regular file, belongs neither to this user nor to one of `owners`, or is opened to
    be written and has a second hard link.
    """
    try:
        number = os.open(name, flags | _NO_WAIT | _NO_LINK, mode, dir_fd=within)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EISDIR):
            raise NotRegularError(errno.EINVAL, f"`{name}` {_is(os.lstat(name, dir_fd=within))}, not a file of its own", name) from None
        raise
    try:
        about = os.fstat(number)
        _check_kind(about, name)
        if about.st_uid not in {os.geteuid(), *owners}:
            raise NotRegularError(errno.EPERM, f"`{name}` belongs to another user", name)
        if about.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
            raise NotRegularError(errno.EPERM, f"`{name}` has a hard link elsewhere, which would be written, too", name)
    except OSError:
        os.close(number)
        raise
    return number


def open_folder(path: Path, owners: Iterable[int] = (), *, linked: bool = True) -> int:
    """Opens a folder for `open_owned`; follows a link if `linked` is set and it belongs to this user or to one of `owners`.

    Raises `OSError` when it does not exist, or is a link of another user.
    """
    link = os.lstat(path)
    ours = link.st_uid in {os.geteuid(), *owners}
    if stat.S_ISLNK(link.st_mode) and not (ours and linked):
        what = "a link of another user" if not ours else "a link that leads out of the cache folder"
        raise NotRegularError(errno.EPERM, f"`{path.name}` is {what}", str(path))
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | (0 if ours and linked else _NO_LINK))


def open_lock(path: str | os.PathLike[str]) -> int:
    """Opens a lock file, made if needed, without changing it or following links.

    Raises `OSError` when it cannot be opened, or is a link.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | _NO_WAIT | _NO_LINK, 0o666)


def is_irregular(path: str) -> bool:
    """Checks if a path exists and is not a regular file, such as a pipe."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _check_kind(about: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(about.st_mode):
        raise NotRegularError(errno.EINVAL, f"it {_is(about)}, not a file", name)


def _is(about: os.stat_result) -> str:
    return f"is {next((what for of, what in _KINDS if of(about.st_mode)), 'something else')}"


_HEAD = '{"pipegen_report": 1}\n'
_ACTIVE = str.maketrans({character: f"\\u{ord(character):04x}" for character in "$`!"})
"""JSON escapes for characters that a shell expands within double quotes."""


def is_foreign(path: str) -> bool:
    """Checks if a file exists and is not a report; true if it cannot be read."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(len(_HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return bool(head) and head != _HEAD.encode()


def add_line(path: str, about: object) -> None:
    """Appends a line to a report; makes the file and its folder if needed.

    Raises `OSError` when it cannot be written, or the file is not a report.
    """
    if is_foreign(path):
        raise OSError(errno.EEXIST, "the file exists, and is not a report of damaged records", path)
    line = inert(json.dumps(about)) + "\n"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(line if os.fstat(stream.fileno()).st_size else _HEAD + line)


def inert(text: str) -> str:
    """Escapes in a JSON text what a shell would expand, should it ever read it."""
    return text.translate(_ACTIVE)
