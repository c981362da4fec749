"""Says which version of which distribution a file of an installed package belongs to."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pipegen.spec.bases.packages import package_file, search_path

if TYPE_CHECKING:
    from pipegen.spec.bases.address import PackageFile

_LISTS = ("RECORD", "SOURCES.txt", "installed-files.txt")
"""What lists the files of a distribution, by who has installed it."""


def distribution_of(address: PackageFile) -> tuple[str, str | None]:
    """Returns the name and the version of the distribution that a base comes from; of none, the package's name and `None`.

    Only the metadata of what is installed beside the package is read, and where that does not know the file, what says that it was
    installed from a folder to be edited.
    """
    path = package_file(address)
    site = search_path(address, path)
    listed = path.relative_to(site).as_posix()
    for found in distributions(path=[str(site)]):
        for name in _LISTS:
            lines = (found.read_text(name) or "").splitlines()
            if any(line.partition(",")[0].strip('"').removeprefix("../") == listed for line in lines):
                return found.name, found.version
    for found in distributions():
        edited = _edited(found)
        if edited is not None and path.is_relative_to(edited):
            return found.name, found.version
    return address.place.partition(".")[0], None


def _edited(found: Distribution) -> Path | None:
    """The folder that a distribution was installed from to be edited."""
    try:
        said = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    url = urlsplit(said.get("url", "")) if said.get("dir_info", {}).get("editable") else None
    return Path(unquote(url.path)) if url is not None and url.scheme == "file" else None
