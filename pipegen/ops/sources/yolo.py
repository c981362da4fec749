"""`yolo`: images, and a text file for each with the boxes on it, as YOLO has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.ops.arguments.item_rules import BoxFormat
from pipegen.ops.sources.annotations.files import DamagedError, damaged, finite, read_text
from pipegen.ops.sources.annotations.pairs import below, files_below, listed_images, without_ending
from pipegen.ops.sources.annotations.source import BoxedSource, gathered, known_sides, without_listed, without_own_image
from pipegen.ops.sources.annotations.yolo_names import Described, described
from pipegen.ops.sources.listing.base import Parts
from pipegen.ops.sources.listing.wording import close_names, count, quoted
from pipegen.ops.transform import SplitName

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipegen.ops.sources.annotations.found import Found
    from pipegen.ops.sources.listing.missing import Missing

_Name = Annotated[str, Field(min_length=1)]
_IMAGES, _LABELS = "images", "labels"
_MOST_SAID = 1000


class Yolo(BoxedSource):
    """Images, and a text file for each whose lines are a class and a box: `0 0.5 0.5 0.2 0.4`, the centre, the width and the height in
    parts of the image.

    The text file of `images/train/1.jpg` is `labels/train/1.txt`; where no folder is called `images` it lies beside its image. One that is
    missing or empty says that there is nothing on the image. A line with an outline, of three points or more, is the box around it. The
    names of the classes stand in `data.yaml` or `classes.txt`.
    """

    op: ClassVar[str] = "yolo"
    form: ClassVar[BoxFormat] = "rel_xyxy"

    path: _Name
    """The folder that holds `images` and `labels`, or its `data.yaml`; relative to the spec's file."""
    split: _Name | Annotated[dict[SplitName, _Name], Field(min_length=1)] | None = None
    """Which images, by the names in `data.yaml`, else by the folders below `images`: `train`, or for each split of the pipeline its name:
    `{train: train, validation: val}`. By default every image."""

    def split_names(self) -> tuple[str, ...] | None:
        """Returns the splits where `split` names one for each."""
        return tuple(self.split) if isinstance(self.split, Mapping) else None

    def find(self, base: Path, progress: Callable[[int], None] | None) -> tuple[str, Found, Parts | None]:
        """Read the files of the images that are listed; see `BoxedSource.find`."""
        about = described(str(base), self.path)
        root = below(about.folder, None, (_IMAGES,), "path", about.folder)
        images, beside = listed_images(root, progress, ".txt")
        missing: builtins.list[Missing] = []
        keys, parts, folders = self._images(about, root, images, missing)
        boxes: list[tuple[int, tuple[float, ...], str]] = []
        places: list[str] = []
        wrong: list[str] = []
        files = [_labels_of(f"{root}/{key}") for key in keys]
        there = [os.path.isfile(file) for file in files]
        if not any(there):
            message = f"no image below {root!r} has a text file with its boxes: that of {keys[0]!r} would be {files[0]!r}"
            raise OpError("PG402", message, field="path", help="`path` is the folder that holds `images` and `labels`")
        for record in (number for number, is_there in enumerate(there) if is_there):
            try:
                for line, words in enumerate(map(str.split, read_text(files[record]).splitlines()), 1):
                    if words:
                        where = f"{files[record]}:{line}"
                        name, box = _box(words, about.names, where)
                        boxes.append((record, box, name))
                        places.append(where)
            except DamagedError as error:
                if len(wrong) < _MOST_SAID:
                    wrong.append(str(error))
        if wrong:
            raise damaged(wrong, "path", sum(there))
        names = about.names or tuple(sorted({name for _, _, name in boxes}, key=int))
        missing += without_own_image(_alone(root, images, folders), root, "text file")
        sides = known_sides([None] * len(keys))
        return root, gathered(keys, sides, boxes, names, places.__getitem__, {}, beside, missing, relative=True), parts

    def _images(
        self, about: Described, root: str, keys: builtins.list[str], lost: builtins.list[Missing]
    ) -> tuple[builtins.list[str], Parts | None, builtins.list[str]]:
        """The images of the splits, the split of each where there are several, and the folders that are taken as a whole, relative to
        the root. What lists name and is not there comes to `lost`."""
        if self.split is None:
            return keys, None, ["."]
        found: dict[str, str] = {}
        folders: builtins.list[str] = []
        for split, name in self.split.items() if isinstance(self.split, Mapping) else (("", self.split),):
            field = f"split.{split}" if split else "split"
            for key in self._of_split(about, root, keys, name, field, lost, folders):
                if found.setdefault(key, split) != split:
                    message = f"{key!r} is in `{found[key]}` and in `{split}`"
                    raise OpError("PG448", message, field=field, help="name splits that have no image in common")
        chosen = sorted(found)
        return chosen, Parts.hold([found[key] for key in chosen]) if isinstance(self.split, Mapping) else None, folders

    def _of_split(
        self,
        about: Described,
        root: str,
        keys: Sequence[str],
        name: str,
        field: str,
        gone: builtins.list[Missing],
        whole: builtins.list[str],
    ) -> builtins.list[str]:
        folders = sorted({key.split("/")[0] for key in keys if "/" in key})
        places = about.splits.get(name) or ([f"{root}/{name}"] if name in folders else [])
        if not places:
            known = [*about.splits, *(folder for folder in folders if folder not in about.splits)]
            near = close_names(name, known)
            help_ = f"is {quoted(near)} meant?" if near else f"there are {quoted(known)}" if known else "leave `split` out for every image"
            raise OpError("PG578", f"{self.path!r} has no split `{name}`", field=field, help=help_)
        known_keys, found = set(keys), []
        for place in places:
            if os.path.isdir(place):
                within = os.path.relpath(os.path.realpath(place), os.path.realpath(root)).replace(os.sep, "/")
                own = [key for key in keys if within == "." or key.startswith(f"{within}/")]
                lost = [place]
                whole.append(within)
            else:
                own, lost = _of_list(place, about.folder, root, known_keys, field)
                gone += without_listed(lost, name, root, field) if own else []
            if lost and not own:
                message = f"the split `{name}` names {count(len(lost), 'path')} below which no image of {root!r} lies: {quoted(lost)}"
                raise OpError("PG578", message, field=field, help="put the images there, or correct the names")
            found += own
        return found


def _of_list(place: str, folder: str, root: str, known: set[str], field: str) -> tuple[list[str], list[str]]:
    """The images of a list of paths, and what it names and is not there."""
    try:
        lines = [line.strip() for line in read_text(place).splitlines() if line.strip()]
    except DamagedError as error:
        raise OpError("PG578", str(error), field=field, help="a split is a folder of images, or a file that lists them") from None
    found: list[str] = []
    lost: list[str] = []
    for line in lines:
        path = os.path.normpath(os.path.join(os.path.dirname(place) if line.startswith("./") else folder, line))
        key = os.path.relpath(path, root).replace(os.sep, "/")
        (found if key in known else lost).append(key if key in known else line)
    return found, lost


def _labels_of(image: str) -> str:
    """The text file of an image: below `labels` in place of the last `images`, else beside it."""
    folder, _, name = image.rpartition("/")
    parts = folder.split("/")
    if _IMAGES in parts:
        last = len(parts) - 1 - parts[::-1].index(_IMAGES)
        parts[last] = _LABELS
    return f"{'/'.join(parts)}/{without_ending(name)}.txt"


def _alone(root: str, images: Sequence[str], folders: Sequence[str]) -> list[str]:
    """The text files with boxes that belong to no image, below those folders of images that are taken as a whole.

    Where text files lie beside the images, one with boxes is told by its first line.
    """
    known = {_labels_of(f"{root}/{key}") for key in images}
    found: dict[str, None] = {}
    for folder in folders:
        own = os.path.normpath(f"{root}/{folder}")
        labels = os.path.dirname(_labels_of(f"{own}/_"))
        for name in files_below(labels, ".txt"):
            path = f"{labels}/{name}"
            if path not in known and os.path.basename(name) != "classes.txt" and (labels != own or _has_boxes(path)):
                found[path] = None
    return list(found)


def _has_boxes(file: str) -> bool:
    """Tells by the first line whether a text file holds boxes."""
    try:
        with open(file, "rb") as stream:
            words = stream.readline(_LINE).split()
    except OSError:
        return False
    return len(words) >= 5 and all(finite(word.decode("ascii", "replace")) is not None for word in words)


_LINE = 2**16
"""Bytes of a line that are looked at."""


def _box(words: Sequence[str], names: tuple[str, ...], where: str) -> tuple[str, tuple[float, ...]]:
    """The class and the edges of a line."""
    values: list[Any] = [finite(word) for word in words]
    if None in values or len(values) < 5:
        raise DamagedError(f"{where} is no class and box: five numbers or more are due, and it has {' '.join(words)[:80]!r}")
    number = values[0]
    if number != int(number) or number < 0 or (names and number >= len(names)):
        known = f", and the {count(len(names), 'class', 'classes')} are 0 to {len(names) - 1}" if names else ""
        raise DamagedError(f"{where} has the class {words[0]}{known}")
    name = names[int(number)] if names else str(int(number))
    if len(values) <= 6:  # behind the box may stand how sure a model was of it
        x, y, width, height = values[1:5]
        if max(values[1:5]) > _FAR:
            raise DamagedError(f"{where} has a box in pixels, and parts of the image are due, from 0 to 1: {' '.join(words)[:80]!r}")
        return name, (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    if len(values) % 2 == 0:
        raise DamagedError(f"{where} has an outline of {len(values) - 1} numbers, which are no pairs")
    xs, ys = values[1::2], values[2::2]
    return name, (min(xs), min(ys), max(xs), max(ys))


_FAR = 4.0
"""Parts of an image beyond which nobody marks anything."""
