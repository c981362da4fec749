"""Pairs images with annotation files of their name, and reads these, with limits of size and depth. Errors have their places."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from pipegen.errors import OpError
from pipegen.files import read_regular
from pipegen.ops.fields.notes import Note, count
from pipegen.ops.sources.folders.scan import Scan, is_hidden, nothing_found, tally_notes, walk
from pipegen.ops.sources.listing.paths import find_root

MOST_BYTES = 1 << 32  # size limit of a file with annotations of many images; that of COCO's training images has half a gigabyte
MOST_OF_ONE = 1 << 26  # size limit of a file with annotations of one image
_MOST_DEPTH = 64
_BYTE_ORDERS = (b"\xff\xfe", b"\xfe\xff")


class DamagedError(Exception):
    """An annotation file is invalid; the message has the place."""


def read_text(path: str, most: int = MOST_OF_ONE) -> str:
    """Reads a text file in UTF-8, or in UTF-16 with a byte order mark; `DamagedError` for others, and for more than `most` bytes."""
    data = _content(path, most)
    try:
        return data.decode("utf-16" if data.startswith(_BYTE_ORDERS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path}: byte {error.start} is not UTF-8") from None


def _content(path: str, most: int) -> bytes:
    try:
        data = read_regular(path, most + 1)
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(data) > most:
        raise DamagedError(f"{path} is longer than {most >> 20:,} MiB")
    return data


def read_json(path: str, most: int = MOST_OF_ONE, hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Reads a JSON file of at most `most` bytes; `hook` converts each object as it is read. `DamagedError` if it is not JSON, is nested too
    deeply, or holds an invalid number."""

    def made(pairs: list[tuple[str, Any]]) -> Any:
        found = dict(pairs)
        if len(found) < len(pairs):  # Python would keep the last value
            twice = next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))
            raise DamagedError(f"an object has the key {twice!r} twice")
        return found if hook is None else hook(found)

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a JSON number")

    text = read_text(path, most)
    try:
        return json.loads(text, object_pairs_hook=made, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise DamagedError(f"{path}:{error.lineno}:{error.colno} is not JSON: {error.msg}") from None
    except RecursionError:
        raise DamagedError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise DamagedError(f"{path} is not JSON: {error}") from None
    except DamagedError as error:
        raise DamagedError(f"{path}: {error}") from None


def read_xml(path: str) -> Element:
    """Reads an XML file without a document type, so that entities cannot expand; `DamagedError` for others, and if it is nested too
    deeply."""
    data = _content(path, MOST_OF_ONE)
    builder, depth = TreeBuilder(), 0
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MOST_DEPTH:
            raise DamagedError(f"{path}:{parser.CurrentLineNumber} is nested too deeply")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def refuse(*_: object) -> int:
        raise DamagedError(f"{path}:{parser.CurrentLineNumber} declares a document type, which is not supported")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        said = expat.ErrorString(error.code)
        raise DamagedError(f"{path}:{error.lineno}:{error.offset + 1} is not XML: {said}") from None
    except (LookupError, ValueError) as error:  # an encoding unknown to Python
        raise DamagedError(f"{path} is not XML: {error}") from None
    return builder.close()


def finite(value: Any) -> float | None:
    """Parses a finite number from JSON or text; else `None`."""
    if isinstance(value, str):
        try:
            value = float(value.replace("_", "x"))  # underscores between digits are Python's own
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def numbers(value: Any, many: int) -> tuple[float, ...] | None:
    """Returns `many` finite numbers of a list; else `None`."""
    if not isinstance(value, list) or len(value) != many:
        return None
    found = tuple(x for x in map(finite, value) if x is not None)
    return found if len(found) == many else None


def damaged(said: Sequence[str], field: str, total: int = 0) -> OpError:
    """Returns the `PG475` error for the faults of annotation files; `total` is the number of files, if each annotates one image."""
    of = f" of {total:,} files" if total else ""
    more = f"; {count(len(said) - 1, 'more fault')}{of}" if len(said) > 1 else ""
    help_ = "write the file again, or remove the invalid part; nothing is skipped"
    return OpError("PG475", f"{said[0]}{more}", field=field, help=help_)


def below(path: str, named: str | None, usual: Sequence[str], field: str, otherwise: str) -> str:
    """Returns a folder below another: the named one, else the first existing usual one, else `otherwise`; `PG401` if it is missing."""
    if named is not None:
        return find_root(path, named, field=field)
    return next((f"{path}/{name}" for name in usual if os.path.isdir(f"{path}/{name}")), otherwise)


def listed_images(root: str, progress: Callable[[int], None] | None, ending: str) -> tuple[list[str], list[Note]]:
    """Returns the sorted paths of all images below a folder, and notes on other files, except for an ending; `PG402` without images."""
    scan = Scan(root, progress=progress)
    keys = [*scan.tree().paths]
    if not keys:
        raise nothing_found(scan)
    scan.tally.foreign.pop(ending, None)
    return keys, [*tally_notes(scan)]


def without_ending(path: str) -> str:
    """Removes the ending of a path."""
    return os.path.splitext(path)[0]


def files_below(folder: str, ending: str) -> list[str]:
    """Lists the files with an ending below a folder, as sorted relative paths; `PG406` for an unreadable folder."""
    found = []
    for at, folders, names in walk(folder):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        within = os.path.relpath(at, folder).replace(os.sep, "/")
        found += [name if within == "." else f"{within}/{name}" for name in names if name.lower().endswith(ending) and not is_hidden(name)]
    return sorted(found)


def annotated(root: str, keys: Sequence[str], folder: str, ending: str) -> tuple[dict[str, str], list[str]]:
    """Pairs images with their files: the file of each image that has one, and the files without an image; `PG424` if two images would share
    a file, `PG402` if no image has one."""
    images: dict[str, str] = {}
    for key in keys:
        other = images.setdefault(without_ending(key), key)
        if other != key:
            message = f"{other!r} and {key!r} have the same name, so their annotations are ambiguous"
            raise OpError("PG424", message, field="path", help="rename one of them, and its annotations")
    files = {without_ending(name): name for name in files_below(folder, ending)}
    if not files.keys() & images.keys():
        message = f"no image below {root!r} has annotations; found {count(len(files), f'{ending} file')} below {folder!r}"
        raise OpError("PG402", message, field="path", help="an image and its annotations must have the same name but for the ending")
    lost = [f"{folder}/{files[stem]}" for stem in files if stem not in images]
    found = {images[stem]: f"{folder}/{name}" for stem, name in files.items() if stem in images}
    return found, lost
