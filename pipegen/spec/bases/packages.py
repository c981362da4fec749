"""Finds a data file of an installed package without running a line of the package.

Only the top-level name is looked up, which imports nothing; what follows are folders. The package may be a folder, lie in a zip, or be a
namespace package in either, whose parts lie in several places.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pipegen.diagnostics.suggest import closest
from pipegen.regular import read_regular
from pipegen.spec.bases.address import BaseProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.spec.bases.address import PackageFile

_ENDINGS = (".yaml", ".yml")
_MOST_SEEN = 2000
"""Files of a package that are looked at for one of a similar name."""


def package_file(address: PackageFile) -> Path:
    """Returns the path of a file in a package; within a zip, that of the zip and then the one inside.

    Raises:
        BaseProblem: `PG113` where there is no such package, or no such file in it.
    """
    folders = _folders(address)
    for folder in folders:
        path = folder / address.file
        if path.is_file() or _in_zip(path) is not None:
            return path
    names = {PurePosixPath(name).name: name for folder in folders for name in _names(folder)}
    near = names.get(closest(PurePosixPath(address.file).name, names) or "")
    hint = (f"did you mean `pkg:{address.place}/{near}`?",) if near else ()
    where = f"it lies in {' and '.join(map(str, folders))}; data files have to be part of what is installed"
    raise BaseProblem("PG113", f"the package `{address.place}` has no file {address.file}", *hint, where)


def read_package_file(path: Path, most: int) -> bytes:
    """Returns at most that many bytes of a file that `package_file` has found.

    Raises:
        OSError: When it cannot be read, or is no regular file.
    """
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
    """Returns the entry of `sys.path` that a package was found in, from the path of a file in it."""
    return path.parents[len(address.file.split("/")) + address.place.count(".")]


def _folders(address: PackageFile) -> list[Path]:
    top, *below = address.place.split(".")
    for finder in sys.meta_path:  # those of editable installs are among them
        find = getattr(finder, "find_spec", None)
        spec = find(top, None) if find is not None else None
        if spec is None:
            continue
        if spec.submodule_search_locations is None:
            raise BaseProblem("PG113", f"`{top}` is a module, and no package with files in it", "name the package that holds the spec")
        return [Path(folder, *below) for folder in spec.submodule_search_locations]
    # Before Python 3.13, a namespace package in a zip is found only if the zip lists its folders, which few do.
    packed = [Path(entry, top, *below) for entry in sys.path if os.path.isfile(entry) and any(_packed(Path(entry), f"{top}/"))]
    if packed:
        return packed
    near = closest(top, [found.name for found in pkgutil.iter_modules()])
    hint = (f"did you mean `{near}`?",) if near else ()
    install = "install it into the environment that runs pipegen (`pipegen version` says which)"
    raise BaseProblem("PG113", f"there is no package `{top}` here", *hint, install)


def _in_zip(path: Path) -> tuple[Path, str] | None:
    """Splits the path of a member of a zip; `None` where no file stands on the way, or the zip has no such member."""
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    if archive is None:
        return None
    member = path.relative_to(archive).as_posix()
    return (archive, member) if member in _packed(archive, member) else None


def _packed(archive: Path, start: str) -> Iterator[str]:
    """Yields the members of a zip that begin like this; none of what is no zip."""
    import zipfile

    try:
        with zipfile.ZipFile(archive) as opened:
            yield from (name for name in opened.namelist() if name.startswith(start))
    except (OSError, zipfile.BadZipFile):
        return


def _names(folder: Path) -> Iterator[str]:
    """Yields the specs of a folder of a package, by their paths in it."""
    archive = next((parent for parent in folder.parents if parent.is_file()), None)
    if archive is not None:
        inside = folder.relative_to(archive).as_posix() + "/"
        yield from (name.removeprefix(inside) for name in _packed(archive, inside) if name.endswith(_ENDINGS))
        return
    walked = ((root, name) for root, _, files in os.walk(folder) for name in files)
    for root, name in islice(walked, _MOST_SEEN):
        if name.endswith(_ENDINGS):
            yield Path(root, name).relative_to(folder).as_posix()
