"""`yolo`: images, each with a text file of boxes, as in YOLO."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.arguments.geometry import BoxFormat
from pipegen.ops.fields.notes import count, quoted
from pipegen.ops.sources.annotations.files import (
    DamagedError,
    below,
    damaged,
    files_below,
    finite,
    listed_images,
    read_text,
    without_ending,
)
from pipegen.ops.sources.annotations.outlines import FARTHEST, Outlines
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.annotations.source import Found, Item, ListedSource, OutlinedSource, PointedSource, PointNames, files_without_image
from pipegen.ops.sources.listing.base import Missing
from pipegen.ops.sources.listing.paths import close_names, find_root
from pipegen.ops.transform import SplitName

_Name = Annotated[str, Field(min_length=1)]
_IMAGES, _LABELS = "images", "labels"
_LINE = 2**16  # bytes of a line that are looked at
_FAR = 4.0  # larger coordinates, as fractions of the image, must be pixels
_MOST_SAID = 1000


class Yolo(PointedSource, OutlinedSource, ListedSource):
    """Images, each with a text file of lines with a class and a box: `0 0.5 0.5 0.2 0.4`. The box is its centre, width and height as
    fractions of the image.

    The text file of `images/train/1.jpg` is `labels/train/1.txt`; without a folder `images` it lies beside the image. A missing or empty
    file means that the image has no boxes. A line with three points or more is an outline, and gives the box around it. If `data.yaml` has
    `kpt_shape`, keypoints follow the box. `data.yaml` or `classes.txt` holds the class names.
    """

    op: ClassVar[str] = "yolo"
    form: ClassVar[BoxFormat] = "rel_xyxy"

    path: _Name
    """Folder that holds `images` and `labels`, or its `data.yaml`; relative to the spec's file."""
    split: _Name | Annotated[dict[SplitName, _Name], Field(min_length=1)] | None = None
    """Images to read, as named in `data.yaml`, else by the folders below `images`: `train`, or one for each split of the pipeline:
    `{train: train, validation: val}`. By default every image."""

    def find(self, base: Path, progress: Callable[[int], None] | None) -> Found:
        about = described(str(base), self.path)
        root = below(about.folder, None, (_IMAGES,), "path", about.folder)
        images, beside = listed_images(root, progress, ".txt")
        missing: builtins.list[Missing] = []
        folders = ["."] if self.split is None else []
        split_of = self.split_of(root, images, partial(self._named, about, root, images, folders), missing)
        keys, parts = [*split_of], self.parts_of([*split_of.values()])
        items, wrong, outlines = list[Item](), list[str](), Outlines()
        sides: dict[str, tuple[float, float]] = {}
        if self.masks:
            read = ((key, sides_of(f"{root}/{key}")) for key in keys)
            sides = {key: (1, 1) if one is None else one.upright for key, one in read}  # an unreadable image is an error when it is read
        files = {key: _labels_of(f"{root}/{key}") for key in keys}
        there = [key for key in keys if os.path.isfile(files[key])]
        if not there:
            message = f"no image below {root!r} has a text file of boxes; {keys[0]!r} needs {files[keys[0]]!r}"
            raise OpError("PG402", message, field="path", help="`path` must be the folder that holds `images` and `labels`")
        about = replace(about, points=self._pose(about)) if self.keypoints else about
        for key in there:
            try:
                for line, words in enumerate(map(str.split, read_text(files[key]).splitlines()), 1):
                    if words:
                        item, outline = _item(key, words, about, f"{files[key]}:{line}")
                        if self.masks and outline:
                            whole = [x * side for x, side in zip(outline, cycle(sides[key]), strict=False)]
                            item = item._replace(outline=outlines.take([whole]))
                        items.append(item)
            except DamagedError as error:
                if len(wrong) < _MOST_SAID:
                    wrong.append(str(error))
        far = {*outlines.finish().tolist()}
        wrong += [f"{item.where} has an outline more than {FARTHEST:,} pixels from its image" for item in items if item.outline in far]
        missing += files_without_image(_alone(root, images, folders), root, "text file")
        names = about.names or tuple(sorted({item.name for item in items}, key=int))
        more: dict[str, Any] = {"notes": tuple(beside), "parts": parts, "missing": tuple(missing)}
        drawn, points = outlines if self.masks else None, about.points if self.keypoints else None
        return self.found(root, keys, items, sides, wrong, len(there), names=names, outlines=drawn, points=points, **more)

    def _pose(self, about: Described) -> PointNames:
        """Returns the keypoints by `data.yaml`, which `names` names if that has no names."""
        pose = about.points
        if pose is None:
            message = f"{self.path!r} has no keypoints: its `data.yaml` has no `kpt_shape`"
            raise OpError("PG475", message, field="keypoints", help="add it, such as `kpt_shape: [17, 3]`, or remove `keypoints`")
        if not pose.numbered or self.names is None:
            return pose
        if len(self.names) != len(pose.names):
            message = f"`names` has {count(len(self.names), 'name')}, but `kpt_shape` says {count(len(pose.names), 'keypoint')}"
            raise OpError("PG256", message, field="names", help="name each keypoint, in the order of the files")
        named = dict(zip(pose.names, self.names, strict=True))
        return replace(pose, names=self.names, pairs=pose.pairs and tuple((named[a], named[b]) for a, b in pose.pairs))

    def _named(
        self, about: Described, root: str, keys: Sequence[str], whole: builtins.list[str], name: str, field: str
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Returns the images of a split, and listed images that are missing; appends the folders that it takes whole."""
        folders = sorted({key.split("/")[0] for key in keys if "/" in key})
        places = about.splits.get(name) or ([f"{root}/{name}"] if name in folders else [])
        if not places:
            known = [*about.splits, *(folder for folder in folders if folder not in about.splits)]
            near = close_names(name, known)
            help_ = f"the splits are {quoted(known)}" if known else "remove `split` to read every image"
            help_ = f"is {quoted(near)} meant?" if near else help_
            raise OpError("PG578", f"{self.path!r} has no split `{name}`", field=field, help=help_)
        known_keys = set(keys)
        found, gone = list[str](), list[str]()
        for place in places:
            if os.path.isdir(place):
                within = os.path.relpath(os.path.realpath(place), os.path.realpath(root)).replace(os.sep, "/")
                own = [key for key in keys if within == "." or key.startswith(f"{within}/")]
                lost = [place]
                whole.append(within)
            else:
                own, lost = _of_list(place, about.folder, root, known_keys, field)
                gone += lost if own else []
            if lost and not own:
                message = f"the split `{name}` names {count(len(lost), 'path')} without images of {root!r}: {quoted(lost)}"
                raise OpError("PG578", message, field=field, help="add the images, or correct the names")
            found += own
        return found, gone


def _of_list(place: str, folder: str, root: str, known: set[str], field: str) -> tuple[list[str], list[str]]:
    """Returns the images of a list of paths, and the listed paths that are missing."""
    try:
        lines = [line.strip() for line in read_text(place).splitlines() if line.strip()]
    except DamagedError as error:
        raise OpError("PG578", str(error), field=field, help="a split is a folder of images, or a file that lists them") from None
    found, lost = list[str](), list[str]()
    for line in lines:
        path = os.path.normpath(os.path.join(os.path.dirname(place) if line.startswith("./") else folder, line))
        key = os.path.relpath(path, root).replace(os.sep, "/")
        (found if key in known else lost).append(key if key in known else line)
    return found, lost


def _labels_of(image: str) -> str:
    """Returns the text file of an image: below `labels` in place of the last `images`, else beside it."""
    folder, _, name = image.rpartition("/")
    parts = folder.split("/")
    if _IMAGES in parts:
        last = len(parts) - 1 - parts[::-1].index(_IMAGES)
        parts[last] = _LABELS
    return f"{'/'.join(parts)}/{without_ending(name)}.txt"


def _alone(root: str, images: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Lists text files of boxes without an image, below the folders taken whole; beside the images, their first line shows which hold
    boxes."""
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
    try:
        with open(file, "rb") as stream:
            words = stream.readline(_LINE).split()
    except OSError:
        return False
    return len(words) >= 5 and all(finite(word.decode("ascii", "replace")) is not None for word in words)


def _item(image: str, words: Sequence[str], about: Described, where: str) -> tuple[Item, Sequence[float]]:
    """Returns the box of a line of an image's file, and its outline, if any."""
    values: list[Any] = [finite(word) for word in words]
    shown, names = repr(" ".join(words)[:80]), about.names
    if None in values or len(values) < 5:
        raise DamagedError(f"{where} needs a class and a box, five numbers or more; got {shown}")
    number = values[0]
    if number != int(number) or number < 0 or (names and number >= len(names)):
        known = f"; the {count(len(names), 'class', 'classes')} are 0 to {len(names) - 1}" if names else ""
        raise DamagedError(f"{where} has the invalid class {words[0]}{known}")
    name = names[int(number)] if names else str(int(number))
    pose = about.points or PointNames(())
    many = len(pose.names) * pose.columns
    if len(values) > 6 and not many:
        outline = values[1:]
        if len(outline) % 2:
            raise DamagedError(f"{where} has an outline of {len(outline)} numbers; it needs pairs")
        if max(outline) > _FAR:
            raise DamagedError(f"{where} has an outline in pixels; use fractions of the image, from 0 to 1: {shown}")
        xs, ys = outline[::2], outline[1::2]
        return Item(image, (min(xs), min(ys), max(xs), max(ys)), name, where), outline
    points = values[5 : 5 + many]
    if len(points) not in (0, 1, many) or len(values) > 6 + many:  # a model's confidence may follow
        said = f"`kpt_shape` asks for {5 + many}: a class, a box and {many} of keypoints"
        raise DamagedError(f"{where} has {len(values)} numbers, but {said}")
    x, y, width, height = values[1:5]
    places = [value for i, value in enumerate(points) if i % pose.columns < 2]
    if max(values[1:5] + places) > _FAR:
        what = "a box" if max(values[1:5]) > _FAR else "keypoints"
        raise DamagedError(f"{where} has {what} in pixels; use fractions of the image, from 0 to 1: {shown}")
    if pose.columns == 2:  # negative ones and zeros are absent
        pairs = zip(points[::2], points[1::2], strict=False)
        points = [value for a, b in pairs for value in (a, b, 0 if a < 0 or b < 0 or a == b == 0 else 2)]
    own = (pose.names, points) if len(points) > 1 else None
    return Item(image, (x - width / 2, y - height / 2, x + width / 2, y + height / 2), name, where, points=own), ()


YAMLS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_TEXTS = ("classes.txt", "obj.names", "labels/classes.txt", "_darknet.labels")
_MOST = 1 << 22
_SPLITS = ("train", "val", "valid", "validation", "test")


@dataclass(frozen=True)
class Described:
    """The description of a dataset: its absolute folder; class names in index order, if given; for each named split, folders of images or
    files that list them; the keypoints of each box, if there are some."""

    folder: str
    names: tuple[str, ...] = ()
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    points: PointNames | None = None


def described(base: str, path: str) -> Described:
    """Reads the description of the dataset in a folder, or in a YAML file; `PG401` if it is missing, `PG475` for an invalid file."""
    whole = os.path.abspath(os.path.join(base, os.path.expanduser(path)))
    if os.path.isfile(whole) and whole.lower().endswith((".yaml", ".yml")):
        folder, file = os.path.dirname(whole), whole
    else:
        folder = find_root(base, path)
        file = next((f"{folder}/{name}" for name in YAMLS if os.path.isfile(f"{folder}/{name}")), "")
    try:
        if file:
            return _from_yaml(folder, file)
        text = next((f"{folder}/{name}" for name in _TEXTS if os.path.isfile(f"{folder}/{name}")), None)
        lines = read_text(text, _MOST).splitlines() if text is not None else ()
        return Described(folder, _checked(text or "", [line.strip() for line in lines if line.strip()]))
    except DamagedError as error:
        raise damaged([str(error)], "path") from None


def _from_yaml(folder: str, file: str) -> Described:
    import yaml

    text = read_text(file, _MOST)
    try:
        content = yaml.load(text, yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        at = f":{error.problem_mark.line + 1}:{error.problem_mark.column + 1}" if error.problem_mark else ""
        raise DamagedError(f"{file}{at} is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DamagedError(f"{file} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{file} does not describe a dataset: it needs a map with `names`")
    names = content.get("names")
    if isinstance(names, dict):
        if sorted(names, key=str) != sorted(range(len(names)), key=str):
            raise DamagedError(f"{file}: the keys of `names` are not the numbers 0 to {len(names) - 1}")
        names = [names[i] for i in range(len(names))]
    names = [] if names is None else names
    if not isinstance(names, list) or any(isinstance(name, (list, dict)) or name is None for name in names):
        raise DamagedError(f"{file}: `names` must be a list of names")
    own = content.get("path")
    root = os.path.normpath(os.path.join(folder, own)) if isinstance(own, str) else folder
    root = root if os.path.isdir(root) else folder
    splits = {name: _places(content[name], root, folder) for name in _SPLITS if content.get(name)}
    placed = {name: places for name, places in splits.items() if places}
    return Described(root, _checked(file, [str(name) for name in names]), placed, _pose(file, content))


def _pose(file: str, content: dict[str, Any]) -> PointNames | None:
    """Reads the shape, the names and the mirror images of keypoints."""
    shape, flipped, named = (content.get(key) for key in ("kpt_shape", "flip_idx", "kpt_names"))
    if shape is None:
        return None
    if not isinstance(shape, list) or len(shape) != 2 or not all(type(x) is int for x in shape) or shape[0] < 1 or shape[1] not in (2, 3):
        raise DamagedError(f"{file}: `kpt_shape` must be the number of keypoints, and 2 (x, y) or 3 (and visibility): [17, 3]")
    many = shape[0]
    lists = list(named.values()) if isinstance(named, dict) else [] if named is None else [named]
    lists = lists if lists and all(one == lists[0] for one in lists) else []  # classes may name them differently
    names = tuple(map(str, lists[0])) if lists and isinstance(lists[0], list) else tuple(map(str, range(many)))
    if len({*names}) != many or len(names) != many:
        raise DamagedError(f"{file}: `kpt_names` must list {many} different names, as many as `kpt_shape` says")
    if flipped is None:
        return PointNames(names, None, not lists, shape[1])
    if not isinstance(flipped, list) or any(type(i) is not int for i in flipped) or sorted(flipped) != [*range(many)]:
        raise DamagedError(f"{file}: `flip_idx` must hold each of the numbers 0 to {many - 1} once")
    odd = next((i for i, other in enumerate(flipped) if flipped[other] != i), None)
    if odd is not None:
        raise DamagedError(f"{file}: `flip_idx` says that {odd} becomes {flipped[odd]} in a mirror, but not the reverse")
    pairs = tuple((names[i], names[other]) for i, other in enumerate(flipped) if i < other)
    return PointNames(names, pairs, not lists, shape[1])


def _checked(file: str, names: list[str]) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DamagedError(f"{file} has the class {twice!r} twice")
    return tuple(names)


def _places(value: Any, root: str, folder: str) -> tuple[str, ...]:
    """Returns the paths of a split. Some tools write `../train/images`, one folder too far up, for a folder beside the file."""
    found = []
    for path in value if isinstance(value, list) else [value]:
        if isinstance(path, str) and path:
            tried = [os.path.normpath(os.path.join(at, name)) for at in (root, folder) for name in (path, path.removeprefix("../"))]
            found.append(next((one for one in tried if os.path.exists(one)), tried[0]))
    return tuple(found)
