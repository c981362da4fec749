"""Surveys a folder of images: classes, splits, counts, and a sample of the images."""

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
from pipegen.ops.fields.notes import quoted
from pipegen.ops.sources.folders.scan import Scan
from pipegen.ops.sources.image_folder import ImageFolder
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


def first_folder(folder: str, spec_folder: str, progress: Callable[[int], None] | None = None) -> tuple[Written, bool]:
    """Writes the spec of a folder of images, or of a single folder inside it; the second value is true if the images have labels.

    `progress` is called now and then with the number of files seen so far. Raises `CannotRun` if it has no image that pipegen reads."""
    folder = enter(folder)
    full, loose = level(folder)
    linked = sorted(set(level(folder, follow_links=True)[0]) - set(full))
    remarks: list[str] = []
    if linked:
        are = "are links to folders" if len(linked) > 1 else "is a link to a folder"
        remarks.append(f"{quoted(linked)} {are}, which the spec enters")
    remarks += [f"{name}/ has arrays that do not fit the images as dense maps, and is not used" for name in of_arrays(folder, full)]
    full = sorted([*full, *linked])
    labelled, parts = len(full) > 1, split_folders(full)
    if "train" in parts and len(parts) > 1:
        has_classes = {split: bool(level(os.path.join(folder, name), follow_links=bool(linked))[0]) for split, name in parts.items()}
        labelled = has_classes["train"]
        bare = [split for split in parts if labelled and not has_classes[split]]
        remarks += [f"{parts.pop(split)}/ has no class folders; use it with `pipe.predict_on`" for split in bare]
        if len(parts) == 1:
            remarks.append("no other folder is named like a split and has classes, so validation is split off the training images")
            folder, parts = os.path.join(folder, parts["train"]), {}
    else:
        parts = {}
        if loose and labelled:
            remarks.append(f"{loose:,} images lie beside the class folders; they belong to no class and are not used")
    source = ImageFolder(path=os.path.abspath(folder), labels="folder" if labelled else "none", follow_links=bool(linked))
    with readable():
        listing = source.list_parts(Path.cwd(), parts, progress) if parts else source.list(Path.cwd(), progress)
    sample, named = sample_of(listing.keys, listing.location.paths), listing.parts or ()
    summary = f"{len(listing.keys):,} images" + (f" in {len(listing.class_names):,} classes" if labelled else "")
    splits, by_folder, train = parts_of(stratified=True) if labelled else "", [], round(0.8 * len(listing.keys))
    if parts:
        summary += f", split by folder into {', '.join(parts)}"
        splits, train = f"method: folder, parts: {flow(parts)}", named.count("train")
        by_folder = [f"Splits: {', '.join(f'{split} {named.count(split):,}' for split in parts)}"]
    counts = Counter(listing.labels.tolist() if listing.labels is not None else ())
    classes = {name: counts[label] for label, name in enumerate(listing.class_names)}
    options = ("" if labelled else ", labels: none") + (", follow_links: true" if linked else "")
    is_flat = not (labelled or parts)
    written = spec_of(
        summary + ("" if labelled else ", without labels"),
        [*classes_line(classes), *by_folder, *about_sample(sample), *remarks],
        [f"source: {{image_folder: {{path: {flow(relative(folder, spec_folder))}{options}}}}}"],
        None if is_flat else 2 * train,
        most=32,
        splits=splits,
        decode=pixels_of(sample),
        sample=sample,
        steps=["rescale"] if is_flat else ["flip", "rotate", "brighten", "rescale"],
    )
    return written, labelled


@contextmanager
def readable() -> Iterator[None]:
    """Turns the error of a source, an `OpError`, into one of the command, `CannotRun`."""
    try:
        yield
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from error


def enter(folder: str) -> str:
    """Descends while a folder contains only one folder of folders of images, as in an unpacked archive."""
    for _ in range(3):
        full, loose = level(folder)
        if loose or len(full) != 1 or not level(os.path.join(folder, full[0]))[0]:
            return folder
        folder = os.path.join(folder, full[0])
    return folder


def level(folder: str, *, follow_links: bool = False) -> tuple[list[str], int]:
    """Lists the sub-folders with images at any depth, and counts the images beside them."""
    scan = Scan(os.path.abspath(folder), follow_links=follow_links)
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
