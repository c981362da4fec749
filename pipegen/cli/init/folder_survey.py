"""Surveys a folder of images or of sounds: classes, splits, counts, and a sample of the images."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.spec import Sample, Written, about_sample, classes_line, parts_of, pixels_of, relative, spec_of
from pipegen.data.rounding import spread
from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.class_folders import ClassFolder, ImageFolder
from pipegen.ops.sources.folders.scan import IMAGES, Scan, Wanted
from pipegen.ops.sources.listing.base import Listing
from pipegen.spec.compose import flow

_FILES = 200  # number of images to examine
_RECORDS = 20  # number of images in records to examine: compressed files are inflated up to each
_HEAD = 1024
_MOST_FOLDERS = 201


def sample_of(names: Sequence[str], paths: Sequence[str]) -> Sample:
    """Reads the headers of a sample of files."""
    return _sample((names[i], partial(open, paths[i], "rb")) for i in spread(len(names), _FILES))


def sample_of_bytes(contents: Iterable[bytes]) -> Sample:
    """Reads the headers of encoded images."""
    return _sample((f"number {number} of those examined", partial(BytesIO, content)) for number, content in enumerate(contents))


def sample_of_records(listing: Listing, count: int) -> Sample:
    """Reads the headers of a sample of the images in `count` records, or the shapes of arrays."""

    def stored(number: int) -> Any:
        reader, place, _ = listing.place_of(number)
        (found,) = reader.stored("image", *place)
        return BytesIO(found) if isinstance(found, bytes) else found

    return _sample((f"number {i}", partial(stored, i)) for i in spread(count, _RECORDS))


def _sample(images: Iterable[tuple[str, Callable[[], Any]]]) -> Sample:
    """Reads the headers of named images, which are opened as files, or the shapes of arrays."""
    sample = Sample()
    for name, opened in images:
        try:
            image = opened()
            if hasattr(image, "shape"):
                sample.sizes.append((image.shape[1], image.shape[0]))
                continue
            with image as file:
                _add(file, sample)
        except (OSError, ValueError):
            sample.unreadable.append(name)
    return sample


def _add(file: IO[bytes], sample: Sample) -> None:
    """Adds the header of an image; `OSError` or `ValueError` if it cannot be read."""
    from PIL import Image

    from pipegen.ops.lowering.library import UnreadableError, bits_of

    try:
        with Image.open(file) as image:
            form, size, gray = image.format or "unknown", image.size, image.mode in ("1", "L", "LA", "I", "I;16", "I;16B", "F")
            file.seek(0)
            deep = bits_of(file.read() if form == "TIFF" else file.read(_HEAD)) == 16
    except (SyntaxError, Image.DecompressionBombError, UnreadableError) as error:
        raise ValueError(str(error)) from error
    sample.formats[form] += 1
    sample.sizes.append(size)
    sample.gray += gray
    sample.deep += deep


_SPLIT_NAMES = {
    "train": ("train", "training", "trainset"),
    "validation": ("validation", "val", "valid", "dev", "validate", "validset"),
    "test": ("test", "testing", "testset"),
}


@dataclass(frozen=True)
class Survey:
    """What is in a folder of files of one kind."""

    folder: str  # the folder to read, perhaps inside the given one
    listing: Listing  # its files
    labelled: bool  # whether its sub-folders are classes
    parts: dict[str, str]  # the folder of each split, if folders are splits
    linked: bool  # whether links to folders are entered
    remarks: list[str]  # what a user should know

    @property
    def train(self) -> int:
        """The number of training examples; the splits are made of the others."""
        return (self.listing.parts or ()).count("train") if self.parts else round(0.8 * len(self.listing.keys))

    def summary(self, many: str) -> str:
        """Describes the files, whose kind has this plural."""
        keys, names = self.listing.keys, self.listing.class_names
        summary = f"{len(keys):,} {many}" + (f" in {len(names):,} classes" if self.labelled else "")
        summary += f", split by folder into {', '.join(self.parts)}" if self.parts else ""
        return summary + ("" if self.labelled else ", without labels")

    def splits(self) -> str:
        """Writes the contents of the section `splits`."""
        if self.parts:
            return f"method: folder, parts: {flow(self.parts)}"
        return parts_of(stratified=True) if self.labelled else ""

    def comments(self) -> list[str]:
        """Lists the classes and the splits, in lines for comments."""
        listing, named = self.listing, self.listing.parts or ()
        counts = Counter(listing.labels.tolist() if listing.labels is not None else ())
        by_folder = [f"Splits: {', '.join(f'{split} {named.count(split):,}' for split in self.parts)}"] if self.parts else []
        return [*classes_line({name: counts[label] for label, name in enumerate(listing.class_names)}), *by_folder]

    def source(self, op: str, spec_folder: str, more: str = "") -> str:
        """Writes the source in a line."""
        options = ("" if self.labelled else ", labels: none") + (", follow_links: true" if self.linked else "") + more
        return f"source: {{{op}: {{path: {flow(relative(self.folder, spec_folder))}{options}}}}}"


def surveyed(
    folder: str, source: Callable[..., ClassFolder], wanted: Wanted, progress: Callable[[int], None] | None = None, **given: Any
) -> Survey:
    """Lists a folder of files of one kind, or a single folder inside it, by a source that has more arguments `given`.

    `progress` is called now and then with the number of files seen so far. Raises `CannotRun` if it has no file that pipegen reads."""
    folder = enter(folder, wanted)
    full, loose = level(folder, wanted)
    linked = sorted(set(level(folder, wanted, follow_links=True)[0]) - set(full))
    remarks: list[str] = []
    if linked:
        are = "are links to folders" if len(linked) > 1 else "is a link to a folder"
        remarks.append(f"{quoted(linked)} {are}, which the spec enters")
    if wanted is IMAGES:
        remarks += [f"{name}/ has arrays that do not fit the images as dense maps, and is not used" for name in of_arrays(folder, full)]
    full = sorted([*full, *linked])
    labelled, parts = len(full) > 1, split_folders(full)
    if "train" in parts and len(parts) > 1:
        has_classes = {
            split: bool(level(os.path.join(folder, name), wanted, follow_links=bool(linked))[0]) for split, name in parts.items()
        }
        labelled = has_classes["train"]
        bare = [split for split in parts if labelled and not has_classes[split]]
        remarks += [f"{parts.pop(split)}/ has no class folders; use it with `pipe.predict_on`" for split in bare]
        if len(parts) == 1:
            remarks.append(f"no other folder is named like a split and has classes, so validation is split off the training {wanted.many}")
            folder, parts = os.path.join(folder, parts["train"]), {}
    else:
        parts = {}
        if loose and labelled:
            remarks.append(f"{loose:,} {wanted.many} lie beside the class folders; they belong to no class and are not used")
    reading = source(path=os.path.abspath(folder), labels="folder" if labelled else "none", follow_links=bool(linked), **given)
    with readable():
        listing = reading.list_parts(Path.cwd(), parts, progress) if parts else reading.list(Path.cwd(), progress)
    return Survey(folder, listing, labelled, parts, bool(linked), remarks)


def first_folder(folder: str, spec_folder: str, progress: Callable[[int], None] | None = None) -> tuple[Written, bool]:
    """Writes the spec of a folder of images; the second value is true if they have labels. For the rest see `surveyed`."""
    survey = surveyed(folder, ImageFolder, IMAGES, progress)
    sample = sample_of(survey.listing.keys, survey.listing.location.paths)
    is_flat = not (survey.labelled or survey.parts)
    written = spec_of(
        survey.summary("images"),
        [*survey.comments(), *about_sample(sample), *survey.remarks],
        [survey.source("image_folder", spec_folder)],
        None if is_flat else 2 * survey.train,
        most=32,
        splits=survey.splits(),
        decode=pixels_of(sample),
        sample=sample,
        steps=["rescale"] if is_flat else ["flip", "rotate", "brighten", "rescale"],
    )
    return written, survey.labelled


@contextmanager
def readable() -> Iterator[None]:
    """Turns the error of a source, an `OpError`, into one of the command, `CannotRun`."""
    try:
        yield
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from error


def enter(folder: str, wanted: Wanted = IMAGES) -> str:
    """Descends while a folder contains only one folder of folders of wanted files, as in an unpacked archive."""
    for _ in range(3):
        full, loose = level(folder, wanted)
        if loose or len(full) != 1 or not level(os.path.join(folder, full[0]), wanted)[0]:
            return folder
        folder = os.path.join(folder, full[0])
    return folder


def level(folder: str, wanted: Wanted = IMAGES, *, follow_links: bool = False) -> tuple[list[str], int]:
    """Lists the sub-folders with wanted files at any depth, and counts such files beside them."""
    scan = Scan(os.path.abspath(folder), follow_links=follow_links, wanted=wanted)
    with readable():
        names, links, loose = scan.level("")
        return [name for name in sorted([*names, *links]) if scan.tree(name)], len(loose)


ARRAYS = (".npy", ".flo")  # endings of files of arrays, which may be dense maps of images


def of_arrays(folder: str, images: Collection[str]) -> list[str]:
    """Lists the sub-folders with files of arrays, beside those with images."""
    inside = (name for name in sorted(os.listdir(folder)) if name not in images and not name.startswith("."))
    walked = ((name, some_folders(os.path.join(folder, name))) for name in inside)
    return [name for name, found in walked if any(file.lower().endswith(ARRAYS) for _, files in found for file in files)]


def some_folders(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the first folders below a folder, and the names of the files in each."""
    for at, inner, names in islice(os.walk(folder), _MOST_FOLDERS):
        inner.sort()
        yield at, sorted(names)


def split_folders(names: list[str]) -> dict[str, str]:
    """Finds the folders that are named like splits."""
    named = {split: [name for name in names if name.lower() in spellings] for split, spellings in _SPLIT_NAMES.items()}
    return {split: several[0] for split, several in named.items() if several}


def split_of(name: str) -> str | None:
    """Finds the split named by a word in the name of a file or a folder, as in `instances_train2017.json`."""
    words = re.split(r"[^a-z]+", name.lower())
    return next((split for split, spellings in _SPLIT_NAMES.items() if any(word in spellings for word in words)), None)
