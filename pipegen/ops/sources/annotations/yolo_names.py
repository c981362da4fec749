"""Reads the description of a YOLO dataset: class names and places of splits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

from pipegen.frozen import dataclass
from pipegen.ops.sources.annotations.files import DamagedError, damaged, read_text
from pipegen.ops.sources.listing.wording import find_root

YAMLS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_TEXTS = ("classes.txt", "obj.names", "labels/classes.txt", "_darknet.labels")
_MOST = 1 << 22
_SPLITS = ("train", "val", "valid", "validation", "test")


class Pose(NamedTuple):
    """The keypoints of each box: their names, those that a mirror swaps (`None` if the file does not say), whether the names are numbers
    since the file has none, and the numbers of each: 2 for x and y, 3 with a visibility."""

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] | None
    numbered: bool
    columns: int


@dataclass(frozen=True)
class Described:
    """The description of a dataset: its absolute folder; class names in index order, if given; for each named split, folders of images or
    files that list them; the keypoints of each box, if there are some."""

    folder: str
    names: tuple[str, ...] = ()
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    points: Pose | None = None


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


def _pose(file: str, content: dict[str, Any]) -> Pose | None:
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
        return Pose(names, None, not lists, shape[1])
    if not isinstance(flipped, list) or any(type(i) is not int for i in flipped) or sorted(flipped) != [*range(many)]:
        raise DamagedError(f"{file}: `flip_idx` must hold each of the numbers 0 to {many - 1} once")
    odd = next((i for i, other in enumerate(flipped) if flipped[other] != i), None)
    if odd is not None:
        raise DamagedError(f"{file}: `flip_idx` says that {odd} becomes {flipped[odd]} in a mirror, but not the reverse")
    pairs = tuple((names[i], names[other]) for i, other in enumerate(flipped) if i < other)
    return Pose(names, pairs, not lists, shape[1])


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
