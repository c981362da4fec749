"""A first spec for an archive in which a folder of images lies, with a sub-folder for each class."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.init.samples import sample_of_bytes, spread
from pipegen.cli.init.spec import PARTS, RESCALE, batch_for, relative, size_for, spec_text
from pipegen.errors import OpError
from pipegen.ops.sources.folders.scan import is_hidden
from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS
from pipegen.ops.sources.records.archives.archive import open_archive
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from pipegen.ops.sources.records.archives.archive import Archive

_SAMPLE = 50
_LEAST = 2


def class_folders(path: str) -> Archive | None:
    """Opens an archive at the folder whose sub-folders are classes of images; `None` where it holds something else."""
    try:
        whole = open_archive(path)
        names = [name.split("/") for name in _visible(whole)] if whole is not None else []
        folders = {"/".join(parts[:-1]) for parts in names}
        images = all(os.path.splitext(parts[-1])[1].lower().lstrip(".") in IMAGE_EXTENSIONS for parts in names)
        inner = os.path.commonpath(folders) if folders else ""
        found = open_archive(f"{path}/{inner}") if images and len(folders) >= _LEAST else None
    except OpError:
        return None  # whoever reads it as an archive of records says what is wrong
    return found if found is not None and all("/" in name for name in _visible(found)) else None


def first_archive(archive: Archive, path: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of such an archive, with a path relative to the spec's folder: its text, and what was found in a few words."""
    names = _visible(archive)
    sample = sample_of_bytes(archive.read(archive.numbers[names[i]]) for i in spread(len(names), _SAMPLE))
    classes = {name.split("/")[0] for name in names}
    summary = f"{len(names):,} images in {len(classes):,} classes, in an archive"
    place = relative(path, spec_folder).rstrip("/") + (f"/{archive.inner}" if archive.inner else "")
    lines = [f"source: {{image_folder: {{path: {flow_scalar(place)}}}}}", f"splits: {{{PARTS}, stratify: label}}"]
    lines += [
        "transforms:",
        f"  - resize: {{size: {size_for(sample)}}}",
        "  # - random_flip  # where a mirrored image means the same",
        RESCALE,
    ]
    lines.append(f"batch: {{size: {batch_for(len(names), 32)}}}")
    return spec_text(summary, [], lines), summary


def _visible(archive: Archive) -> list[str]:
    return [name for name in archive.numbers if not any(map(is_hidden, name.split("/")))]
