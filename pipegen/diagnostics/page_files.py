"""Descriptions of the files beside the specs of a page, which lists them in a notation for tests."""

from __future__ import annotations

import re

_FILE = re.compile(r"(?P<path>\S+) +(?P<kind>\w+)(?:\*(?P<count>\d+))?(?: +(?P<rest>.*))?")
_FENCE = re.compile(r"^```(files|absent) *\n(.*?)^``` *$", re.MULTILINE | re.DOTALL)
_IMAGES = {"jpeg": "JPEG", "png": "PNG", "webp": "WebP", "png16": "PNG", "turned": "JPEG"}
_OF_IMAGES = {"png16": " and 16 bits", "turned": " as stored, which EXIF turns by 90°"}
_EDITS = {"dark": "very dark", "blurred": "blurred", "recoloured": "in other colours"}
_RECORDS = {
    "array_record": "ArrayRecord with {}",
    "hdf5": "HDF5 with {}",
    "lmdb": "LMDB with {}",
    "mds": "MDS with {}",
    "sqlite": "SQLite with {}",
    "tfds": "a data set of TensorFlow Datasets with {}; half of them are `train`, half `test`",
    "tfrecord": "TFRecord with {}",
    "webdataset": "a tar file of {}",
}
_COLUMNS = {"bytes": "image files", "path": "paths", "class": "labels", "numbers": "numbers"}


def with_files_in_words(text: str) -> str:
    """Replaces the blocks of files in the Markdown of a page by descriptions, each with a line before it."""

    def block(fence: re.Match[str]) -> str:
        if fence[1] == "absent":
            return "No file has this name."
        return "\n".join(["Files beside it:", "", "```text", *described(fence[2].splitlines()), "```"])

    return _FENCE.sub(block, text)


def described(lines: list[str]) -> list[str]:
    """Describes the lines of a block of files, a line for each; the lines of a text follow it, indented. Raises `ValueError` for a line
    that does not describe a file."""
    files = [match for line in lines if line.strip() and (match := _FILE.fullmatch(line.strip()))]
    if len(files) != sum(1 for line in lines if line.strip()):
        raise ValueError(f"one of these lines does not describe a file: {lines}")
    scenes: dict[int, tuple[str, str]] = {}
    found: list[str] = []
    for file in files:
        kind, count, rest = file["kind"], int(file["count"] or 1), (file["rest"] or "").strip()
        what = _scenes(file["path"], count, rest, scenes) if kind == "scene" else _what(kind, count, rest)
        last = f" to {file['path'].rpartition('/')[2].replace('{i}', str(count - 1))}" if count > 1 else ""
        found.append(f"{file['path'].replace('{i}', '0')}{last}: {what}")
        if kind == "text":
            found += [f"    {line}" for line in rest.replace("\\n", "\n").splitlines()]
    return found


def _what(kind: str, count: int, rest: str) -> str:
    if kind == "text":
        return ("this text" if count == 1 else "this text in each") if rest else "an empty file"
    if kind in _IMAGES:
        return _images(_IMAGES[kind], count, rest) + _OF_IMAGES.get(kind, "")
    if kind in ("truncated", "empty", "dir"):
        truncated = "a JPEG that ends half-way" if count == 1 else f"{count} JPEGs that end half-way"
        return {"truncated": truncated, "empty": "an empty file", "dir": "an empty folder"}[kind]
    if kind == "npz":
        arrays = (re.split("[=:]", array) for array in rest.split())
        return "the arrays " + ", ".join(f"{name} ({dtype}, {shape.replace('x', '×')})" for name, dtype, shape in arrays)
    if kind == "parquet":
        number, *columns = rest.split()
        parts = (column.split(":") for column in columns)
        return f"{number} rows with " + ", ".join(f"{name} ({_COLUMNS[what]})" for name, what in parts)
    if kind not in _RECORDS:
        raise ValueError(f"files of the kind {kind!r} have no words")
    return _RECORDS[kind].format(_records(rest))


def _images(name: str, count: int, size: str) -> str:
    counted = f"a {name}" if count == 1 else f"{count} {name}s"
    return f"{counted} of {size.replace('x', '×')} pixels"


def _scenes(path: str, count: int, rest: str, seen: dict[int, tuple[str, str]]) -> str:
    """Describes images; copies of earlier ones have equal seeds."""
    size, seed, *edits = rest.split()
    first = int(seed)
    said = _images("picture", count, size)
    original = seen.get(first) if count == 1 else None
    if original is not None:
        smaller = "" if original[1] == size else f", at {size.replace('x', '×')} pixels"
        said = f"a copy of {original[0]}{smaller}"
    for i in range(count):
        seen.setdefault(first + i, (path.replace("{i}", str(i)), size))
    return ", ".join([said, *(_EDITS[edit] for edit in edits)])


def _records(rest: str) -> str:
    """Describes the number of records, and the content of each key."""
    count, *keys = rest.removesuffix(" cut").split()
    told = ", ".join(f"{key} ({_value(what)})" for key, what in (k.split("=") for k in keys))
    return f"{count} records of {told}" + ("; its last bytes are missing" if rest.endswith(" cut") else "")


def _value(what: str) -> str:
    kind, _, of = what.partition(":")
    if kind == "jpeg":
        return _images("JPEG", 1, of)
    return f"a whole number from 0 to {int(of) - 1}" if kind == "int" else f"{of} numbers"
