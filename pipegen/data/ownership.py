"""Claims the folders and files that a spec names for writing: what holds something else is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.json_lines import is_foreign
from pipegen.kept import ForeignFolderError, claim
from pipegen.spec.addresses import replaced
from pipegen.spec.models import DiskCache
from pipegen.spec.trust import REPORT

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.address import Address
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


def claim_places(spec: PipelineSpec, locate: Locate) -> Iterator[Diagnostic]:
    """Marks the folders of a spec's caches as pipegen's; yields a finding for each place that holds something else."""
    folders: list[tuple[tuple[str, ...], str]] = []
    if isinstance(spec.runtime.cache, DiskCache):
        folders.append((("runtime", "cache", "disk"), spec.runtime.cache.disk))
    if spec.runtime.remote_cache.path is not None and _has_addresses(spec):
        folders.append((("runtime", "remote_cache", "path"), spec.runtime.remote_cache.path))
    for path, folder in folders:
        try:
            claim(Path(folder))
        except ForeignFolderError as foreign:
            message = f"{folder!r} is not a folder of pipegen: it holds {foreign}"
            help_ = (
                "name a folder that does not exist yet, or an empty one; pipegen writes to it and deletes from it",
                f"if an earlier pipegen made it, delete {folder!r} yourself: it is made anew",
            )
            yield make("PG674", message, locate(path), help=help_)
    skip = spec.errors.skip
    if skip is not None and skip.report is not None and is_foreign(skip.report):
        message = f"{skip.report!r} exists, and is not a report of damaged records"
        help_ = (
            "name a file that does not exist yet: pipegen adds only to reports that it began",
            f"if an earlier pipegen wrote it, delete or rename {skip.report!r} yourself: a new one is begun",
        )
        yield make("PG674", message, locate(REPORT), help=help_)
    elif skip is not None and skip.report is not None:
        above = next(folder for folder in Path(skip.report).absolute().parents if folder.exists())
        if not above.is_dir():
            message = f"{skip.report!r} cannot be written: {str(above)!r} is not a folder"
            yield make("PG674", message, locate(REPORT), help="name a file below a folder")


def _has_addresses(spec: PipelineSpec) -> bool:
    found: list[str] = []

    def look(address: Address, _path: tuple[str, ...], _of: object) -> str:
        found.append(address.scheme)
        return address.text

    replaced(spec.source, look)
    return bool(found)
