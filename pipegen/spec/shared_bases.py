"""Base specs that `extends` names: in installed packages, found without running a line of them, and in git."""

from __future__ import annotations

import os
import pkgutil
import posixpath
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.machinery import ModuleSpec
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from pipegen.diagnostics.diagnostic import GIT, PACKAGE
from pipegen.diagnostics.suggest import closest, hints
from pipegen.errors import OpError
from pipegen.files import read_regular
from pipegen.frozen import dataclass

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\]")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+/-]*")
_REPOSITORY = re.compile(r"/[A-Za-z0-9._~+/%-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_PACKAGE_FORM = "a base in a package is `pkg:PACKAGE/path/base.pipegen.yaml`"
_GIT_FORM = "a base in a repository is `git+https://HOST/REPOSITORY@TAG#path/base.pipegen.yaml`"


S = TypeVar("S", bound="Shared")


@dataclass(frozen=True, slots=True)
class Shared:
    """The address of a base outside the project: a package, or a repository at a revision, and the path of the file in it."""

    place: str
    file: str

    def beside(self: S, value: str) -> S:
        """The address of a path that is relative to this file. Raises `OpError`: `PG115` if it is outside of the package or
        repository."""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(self.file), value))
        if posixpath.isabs(file) or file.split("/")[0] in ("..", "."):
            message = f"`extends: {value}` is outside of {self.place}, which has {self.file}"
            raise OpError("PG115", message, help="extend a file in there, or another one by its `pkg:` or `git+` address")
        return replace(self, file=file)


@dataclass(frozen=True, slots=True)
class PackageFile(Shared):
    """`pkg:PACKAGE/FILE`, a data file of an installed Python package. `place` is the package, perhaps dotted."""

    def __str__(self) -> str:
        return f"{PACKAGE}{self.place}/{self.file}"


@dataclass(frozen=True, slots=True)
class GitFile(Shared):
    """`git+URL@REVISION#FILE`, a file of a git repository. `place` is `git+URL@REVISION`."""

    url: str = ""
    revision: str = ""

    def __str__(self) -> str:
        return f"{self.place}#{self.file}"

    @property
    def repository(self) -> str:
        """The last part of the URL, without `.git`."""
        return posixpath.basename(self.url.rstrip("/")).removesuffix(".git")

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a whole commit id, which cannot move."""
        return _COMMIT.fullmatch(self.revision) is not None


def parse(value: str) -> PackageFile | GitFile | None:
    """Parses an address; `None` for a path. Raises `OpError`: `PG115` for an invalid address."""
    if value.startswith(PACKAGE):
        package, _, file = value.removeprefix(PACKAGE).partition("/")
        if _NAME.fullmatch(package) is None:
            raise OpError("PG115", f"`{package}` is not a valid name of a Python package", help=_PACKAGE_FORM)
        return PackageFile(package, _file(file, value, _PACKAGE_FORM))
    if value.startswith(GIT):
        return _git(value)
    if "://" in value:
        raise OpError("PG115", f"`extends` does not support the address `{value}`", help=(_GIT_FORM, _PACKAGE_FORM))
    return None


def _git(value: str) -> GitFile:
    address, _, file = value.removeprefix(GIT).partition("#")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise OpError("PG115", f"`{value}` is not a valid address of a git repository", help=_GIT_FORM) from None
    _check_host(parts, value)
    repository, _, revision = parts.path.rpartition("@")
    if not repository:
        raise OpError("PG115", f"`{value}` has no tag", help=_GIT_FORM)
    if _REVISION.fullmatch(revision) is None or ".." in revision or revision.endswith(("/", ".", ".lock")):
        raise OpError("PG115", f"`{revision}` is not a valid tag of a git repository", help=_GIT_FORM)
    if _REPOSITORY.fullmatch(repository) is None or ".." in repository.split("/") or parts.query:
        raise OpError("PG115", f"`{value}` is not a valid address of a git repository", help=_GIT_FORM)
    user = f"{parts.username}@" if parts.username else ""
    url = f"{parts.scheme}://{user}{parts.hostname}{f':{port}' if port else ''}{repository}"
    return GitFile(f"{GIT}{url}@{revision}", _file(file, value, _GIT_FORM), url, revision)


def _check_host(parts: SplitResult, value: str) -> None:
    """Refuses protocols other than https and ssh, and secrets in the address, since locks and specs are committed."""
    if parts.scheme not in ("https", "ssh"):
        named = f"`{GIT}{parts.scheme}:`" if parts.scheme else f"`{value}`"
        ssh = "the address of `git@HOST:REPOSITORY` is `git+ssh://git@HOST/REPOSITORY`"
        raise OpError("PG115", f"bases are fetched over https or ssh, not by {named}", help=(_GIT_FORM, ssh))
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if _HOST.fullmatch(shown) is None:
        raise OpError("PG115", f"`{value}` has no valid host", help=_GIT_FORM)
    if parts.password is not None or (parts.scheme == "https" and parts.username):
        help_ = "leave the name and the secret out: git asks its credential helper, or use `git+ssh://`"
        raise OpError("PG115", f"the address of {shown} has a login, but specs are shared", help=help_)
    if parts.username and _USER.fullmatch(parts.username) is None:
        raise OpError("PG115", f"`{parts.username}` is not a valid name of a user", help=_GIT_FORM)


def _file(file: str, value: str, form: str) -> str:
    if not file:
        raise OpError("PG115", f"`{value}` has no file", help=form)
    parts = file.split("/")
    if {"", ".", "..", ".git"} & set(parts) or "\\" in file or not file.isprintable():
        raise OpError("PG115", f"`{file}` is not a valid path", help=(form, "join its parts by `/`, without `..`"))
    return file


_ENDINGS = (".yaml", ".yml")
_MOST_SEEN = 2000  # the most files of a package that are searched for a similar name


def package_file(address: PackageFile) -> Path:
    """Finds a file in a package; in a zip, the path is that of the zip with that of the member. Raises `OpError`: `PG113` if the
    package or the file does not exist."""
    folders = _folders(address)
    for folder in folders:
        path = folder / address.file
        if path.is_file() or _in_zip(path) is not None:
            return path
    names = {PurePosixPath(name).name: name for folder in folders for name in _names(folder)}
    near = names.get(closest(PurePosixPath(address.file).name, names) or "")
    hint = (f"did you mean `pkg:{address.place}/{near}`?",) if near else ()
    where = f"the package is in {' and '.join(map(str, folders))}; its data files have to be installed with it"
    raise OpError("PG113", f"the package `{address.place}` has no file {address.file}", help=(*hint, where))


def read_package_file(path: Path, most: int) -> bytes:
    """Reads at most `most` bytes of a file that `package_file` found. Raises `OSError` if it cannot be read, or is no regular file."""
    found = _in_zip(path)
    if found is None:
        return read_regular(path, most)
    import zipfile

    archive, member = found
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as stream:
            return stream.read(most)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise OSError(0, str(error), str(path)) from error


def search_path(address: PackageFile, path: Path) -> Path:
    """The entry of `sys.path` with a package, from the path of a file in it."""
    return path.parents[len(address.file.split("/")) + address.place.count(".")]


def find_top(name: str) -> ModuleSpec | None:
    """Finds a package or module at the top level as `import` would, also in editable installs, without running it."""
    finders = (getattr(finder, "find_spec", None) for finder in sys.meta_path)
    return next((spec for find in finders if find is not None and (spec := find(name, None)) is not None), None)


def _folders(address: PackageFile) -> list[Path]:
    top, *below = address.place.split(".")
    spec = find_top(top)
    if spec is not None and spec.submodule_search_locations is None:
        raise OpError("PG113", f"`{top}` is a module, not a package with files", help="name the package that has the spec")
    if spec is not None:
        return [Path(folder, *below) for folder in spec.submodule_search_locations or ()]
    # Before Python 3.13, a namespace package in a zip is found only if the zip lists its folders, which is rare.
    packed = [Path(entry, top, *below) for entry in sys.path if os.path.isfile(entry) and any(_packed(Path(entry), f"{top}/"))]
    if packed:
        return packed
    install = "install it into the environment of pipegen (shown by `pipegen version`)"
    help_ = hints(top, [found.name for found in pkgutil.iter_modules()], install)
    raise OpError("PG113", f"the package `{top}` is not installed", help=help_)


def _in_zip(path: Path) -> tuple[Path, str] | None:
    """Splits the path of a member of a zip; `None` if it is not one."""
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        return None
    member = path.relative_to(archive).as_posix()
    return (archive, member) if member in _packed(archive, member) else None


def _packed(archive: Path, start: str) -> Iterator[str]:
    """Yields the members of a zip whose names begin with `start`; none for another file."""
    import zipfile

    try:
        with zipfile.ZipFile(archive) as opened:
            yield from (name for name in opened.namelist() if name.startswith(start))
    except (OSError, zipfile.BadZipFile):
        return


def _names(folder: Path) -> Iterator[str]:
    """Yields the paths of specs in a folder of a package."""
    archive = next((parent for parent in folder.parents if parent.is_file()), None)
    if archive is not None:
        inside = folder.relative_to(archive).as_posix() + "/"
        yield from (name.removeprefix(inside) for name in _packed(archive, inside) if name.endswith(_ENDINGS))
        return
    walked = ((root, name) for root, _, files in os.walk(folder) for name in files)
    for root, name in islice(walked, _MOST_SEEN):
        if name.endswith(_ENDINGS):
            yield Path(root, name).relative_to(folder).as_posix()
