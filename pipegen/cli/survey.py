"""What lies in a folder of images: classes, splits, counts, and the formats and sizes of a sample. Headers are read, no pixels."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pipegen.cli.failures import CannotRun
from pipegen.errors import OpError
from pipegen.ops.sources.image_folder import ImageFolder
from pipegen.ops.sources.scan import Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.ops.sources.base import Listing

_SPLIT_NAMES = {
    "train": ("train", "training", "trainset"),
    "validation": ("validation", "val", "valid", "dev", "validate", "validset"),
    "test": ("test", "testing", "testset"),
}
_SAMPLE = 200
Layout = Literal["classes", "splits", "flat"]


@dataclass(frozen=True)
class Sample:
    """The headers of some files.

    Attributes:
        formats: How many files there are of each format.
        sizes: `(width, height)` of each, in pixels.
        gray: How many are gray.
        unreadable: The relative paths that Pillow cannot read.
    """

    formats: Counter[str] = field(default_factory=Counter)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    gray: int = 0
    unreadable: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Survey:
    """What was found.

    Attributes:
        folder: Where the classes, the splits or the images lie: what was asked for, or a single folder inside it.
        layout: `classes`, `splits` or `flat`.
        labelled: Whether there are classes.
        parts: For `splits`, the folder of each split.
        listing: The files.
        sample: What their headers say.
        remarks: What the user should know.
    """

    folder: str
    layout: Layout
    labelled: bool
    parts: Mapping[str, str]
    listing: Listing
    sample: Sample
    remarks: tuple[str, ...] = ()

    @property
    def class_counts(self) -> dict[str, int]:
        """How many files each class has."""
        counts = dict.fromkeys(self.listing.class_names, 0)
        for label in self.listing.labels or ():
            counts[self.listing.class_names[label]] += 1
        return counts

    @property
    def train_count(self) -> int:
        """About how many files the training split will have."""
        if self.layout == "splits":
            return sum(part == "train" for part in self.listing.parts or ())
        return round(0.8 * len(self.listing.keys))

    def summary(self) -> str:
        """What was found, in a few words."""
        images = f"{len(self.listing.keys):,} images"
        classes = f" in {len(self.listing.class_names):,} classes" if self.labelled else ""
        splits = f", split by folder into {', '.join(self.parts)}" if self.layout == "splits" else ""
        return images + classes + splits + ("" if self.labelled else ", without labels")


def survey(folder: str, progress: Callable[[int], None] | None = None) -> Survey:
    """Look at a folder.

    Args:
        folder: The folder.
        progress: Called with the number of files seen so far, now and then.

    Raises:
        CannotRun: If it holds no image that pipegen reads.
    """
    folder = _enter(folder)
    scan = Scan(os.path.abspath(folder))
    names, _, loose = scan.level("")
    full = [name for name in names if scan.tree(name)]
    parts = _split_folders(full)
    remarks: list[str] = []
    if "train" in parts and len(parts) > 1:
        return _with_splits(folder, parts, progress, remarks)
    if full:
        if loose:
            remarks.append(f"{len(loose):,} images lie beside the class folders and belong to no class, so they are not used")
        return _survey(folder, "classes", _list(ImageFolder(path=os.path.abspath(folder)), folder, progress), {}, remarks)
    listing = _list(ImageFolder(path=os.path.abspath(folder), labels="none"), folder, progress)
    return _survey(folder, "flat", listing, {}, remarks)


def _enter(folder: str) -> str:
    """Go down while there is nothing but one folder with folders of images in it, as archives are packed."""
    for _ in range(3):
        scan = Scan(os.path.abspath(folder))
        names, _, loose = scan.level("")
        full = [name for name in names if scan.tree(name)]
        if loose or len(full) != 1 or not any(scan.tree(inner) for inner in scan.level(full[0])[0]):
            return folder
        folder = os.path.join(folder, full[0])
    return folder


def _split_folders(names: list[str]) -> dict[str, str]:
    """The folders that are named like splits."""
    found: dict[str, str] = {}
    for split, spellings in _SPLIT_NAMES.items():
        match = next((name for name in names if name.lower() in spellings), None)
        if match is not None:
            found[split] = match
    return found


def _with_splits(folder: str, parts: dict[str, str], progress: Callable[[int], None] | None, remarks: list[str]) -> Survey:
    """Splits by folder. Those whose images lie in no class folder are left out where the training images have classes."""
    scan = Scan(os.path.abspath(folder))
    labelled = {split: any(scan.tree(inner) for inner in scan.level(name)[0]) for split, name in parts.items()}
    for split in [s for s in parts if labelled["train"] and not labelled[s]]:
        remarks.append(f"{parts.pop(split)}/ has no class folders: those are for `pipe.predict_on({os.path.join(folder, split)!r})`")
    source = ImageFolder(path=os.path.abspath(folder), labels="folder" if labelled["train"] else "none")
    try:
        listing = source.list_parts(scan_base(folder), parts, progress)
    except OpError as error:
        raise _nothing(folder, error) from error
    if not labelled["train"]:
        return _survey(folder, "splits", listing, parts, remarks)
    if len(parts) == 1:
        remarks.append("there is no validation folder, so a share of the training images is set aside")
        inner = os.path.join(folder, parts["train"])
        return _survey(inner, "classes", _list(ImageFolder(path=os.path.abspath(inner)), inner, progress), {}, remarks)
    return _survey(folder, "splits", listing, parts, remarks)
