"""Files and folders that are there whole or not at all; and how to open what others may have put there."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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


class NotRegularError(OSError):
    """Something else stands where a regular file was expected; `strerror` says what."""


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Reads `most` bytes at most of a regular file, or of what a link to one shows.

    Raises:
        OSError: When it cannot be read, or is no regular file: a pipe or a device may never end, and what the system makes up as it
            is read, as below `/proc`, is no file of anyone's.
    """
    name = os.fspath(path)
    number = os.open(name, os.O_RDONLY | _NO_WAIT)
    with os.fdopen(number, "rb") as stream:
        about = os.fstat(number)
        _check_kind(about, name)
        data = stream.read(most)  # `None` where it would have to wait, which no file on a disk makes it do
        if data is None or (data and not about.st_size and not os.fstat(number).st_size):
            raise NotRegularError(errno.EINVAL, "it is made up by the system, not a file on a disk", name)
        return data


def open_owned(name: str, flags: int, *, within: int, owners: Iterable[int], mode: int = 0o666) -> int:
    """Opens a file in an open folder that several users may write to, and follows no link; `flags` and `mode` are those of `os.open`.

    Raises:
        OSError: When it cannot be opened, is no regular file, belongs neither to this user nor to one of `owners`, or has, where it is to
            be written, a second name elsewhere.
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
            raise NotRegularError(errno.EPERM, f"`{name}` is a file with another name elsewhere, which would be written, too", name)
    except OSError:
        os.close(number)
        raise
    return number


def open_folder(path: Path, owners: Iterable[int] = (), *, linked: bool = True) -> int:
    """Opens a folder for `open_owned`; a link is followed where it belongs to this user or to one of `owners`, and `linked` allows it.

    Raises:
        OSError: When there is none, or a link of someone else stands in its place.
    """
    link = os.lstat(path)
    ours = link.st_uid in {os.geteuid(), *owners}
    if stat.S_ISLNK(link.st_mode) and not (ours and linked):
        what = "a link of another user" if not ours else "a link, and leads out of the folder of the caches"
        raise NotRegularError(errno.EPERM, f"`{path.name}` is {what}", str(path))
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | (0 if ours and linked else _NO_LINK))


def open_lock(path: str | os.PathLike[str]) -> int:
    """Opens a file for the system to lock, made if needed; nothing of it is changed, and no link is followed.

    Raises:
        OSError: When it cannot be opened, or a link stands in its place.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | _NO_WAIT | _NO_LINK, 0o666)


def is_irregular(path: str) -> bool:
    """Tells whether something stands at a path that is no regular file, such as a pipe; what is not there is none."""
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
"""Characters that a shell expands within double quotes, as escapes of JSON."""


def is_foreign(path: str) -> bool:
    """Tells whether a file exists that is no report; what cannot be read is none."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(len(_HEAD))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return bool(head) and head != _HEAD.encode()


def add_line(path: str, about: object) -> None:
    """Adds a line to a report, which is begun if needed, and so is its folder.

    Raises:
        OSError: When it cannot be written, or the file is no report.
    """
    if is_foreign(path):
        raise OSError(errno.EEXIST, "the file exists, and is not a report of damaged records", path)
    line = inert(json.dumps(about)) + "\n"
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(line if os.fstat(stream.fileno()).st_size else _HEAD + line)


def inert(text: str) -> str:
    """Gives a text of JSON with escapes for what a shell would expand, should it ever read it."""
    return text.translate(_ACTIVE)
