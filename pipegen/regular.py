"""Opens files that others may have put there: only regular ones, without waiting for a pipe or a device, and up to a size."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

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
