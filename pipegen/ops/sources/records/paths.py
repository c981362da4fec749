"""Finds the shards of a source: a file, a folder, a pattern, a brace range such as `train-{000..099}.tar`, or a list of these."""

from __future__ import annotations

import os
import re
import stat
from glob import glob, has_magic
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.sources.folders.scan import is_hidden
from pipegen.ops.sources.listing.wording import close_names, nearest_folder, quoted
from pipegen.ops.sources.records.shard_folders import check_links, is_file, shards_below
from pipegen.ops.sources.records.shard_sets import check_sets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipegen.ops.sources.listing.base import Note

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)\Z")
_TIMES = 2**62
MOST = 1_000_000
"""Largest number of paths from braces."""


@dataclass(frozen=True)
class Found:
    """A shard.

    Attributes:
        key: Path relative to the root, with slashes.
        path: Absolute path.
        size: Bytes.
        mtime: Modification time in nanoseconds since the epoch; for a folder see `written`.
        named: Whether the spec names it, rather than a folder or a pattern.
    """

    key: str
    path: str
    size: int
    mtime: int
    named: bool = False


def expand(pattern: str) -> Iterator[str]:
    """Expands the braces of a path: `{000..099}` to numbers of one width, `{a,b}` to either text.

    Raises:
        ValueError: Invalid braces, a range that runs backwards, or more than a million paths.
    """
    parts: list[tuple[str, ...]] = []
    at = 0
    total = 1
    for braces in _BRACES.finditer(pattern):
        parts += [(pattern[at : braces.start()],), _choices(braces[1], pattern)]
        total *= len(parts[-1])
        at = braces.end()
        if total > MOST:
            raise ValueError(f"the braces of {pattern!r} expand to more than {MOST:,} paths")
    parts.append((pattern[at:],))
    return _joined(parts)


def _joined(parts: Sequence[tuple[str, ...]]) -> Iterator[str]:
    if not parts:
        yield ""
        return
    for first in parts[0]:
        for rest in _joined(parts[1:]):
            yield first + rest


def _choices(inside: str, pattern: str) -> tuple[str, ...]:
    numbers = _RANGE.match(inside)
    if numbers is None:
        if "," not in inside:
            raise ValueError(f"`{{{inside}}}` in {pattern!r} is neither a range such as `{{000..099}}` nor a choice such as `{{a,b}}`")
        return tuple(inside.split(","))
    first, last = int(numbers[1]), int(numbers[2])
    if last < first:
        raise ValueError(f"the range `{{{inside}}}` in {pattern!r} runs backwards")
    if last - first >= MOST:
        raise ValueError(f"the braces of {pattern!r} expand to more than {MOST:,} paths")
    width = len(numbers[1]) if numbers[1].startswith("0") or len(numbers[1]) == len(numbers[2]) else 0
    return tuple(f"{number:0{width}d}" for number in range(first, last + 1))


def find_shards(
    base: str,
    given: str | Sequence[str],
    suffixes: tuple[str, ...],
    marks: tuple[str, ...] = (),
    notes: list[Note] | None = None,
    unpacks: Mapping[str, str] | None = None,
) -> tuple[str, list[Found]]:
    """Finds the shards of a source, sorted by path, without repetitions.

    Args:
        base: What relative paths are relative to.
        given: A path, or several; a folder stands for every file below it with one of the `suffixes`.
        suffixes: Such as `(".tar",)`.
        marks: Names of files: a folder with one of them is a shard.
        notes: Collects findings.
        unpacks: As `RecordSource.unpacks`.

    Returns:
        Their common folder, and the shards.

    Raises:
        OpError: `PG401` for a missing path or a missing shard of a set, `PG402` without shards, `PG663` for shards of different sets.
    """
    several = not isinstance(given, str)
    paths: dict[str, None] = {}
    named: set[str] = set()
    matched: dict[str, str] = {}
    for place, pattern in enumerate([given] if isinstance(given, str) else given):
        field = f"path.{place}" if several else "path"
        for one in expand(pattern):
            found, wildcard = _matched(base, one, field, suffixes, marks, notes if notes is not None else [], unpacks or {})
            paths |= dict.fromkeys(found)
            if wildcard is None:
                named.update(found)
            else:
                matched |= dict.fromkeys(found, wildcard)
    check_sets(paths, matched)
    root = os.path.commonpath([os.path.dirname(path) for path in paths])
    shards = []
    for path in sorted(paths):
        about = os.stat(path)
        key = os.path.relpath(path, root).replace(os.sep, "/")
        shards.append(Found(key, path, about.st_size, written(path, about), path in named))
    return root, shards


def written(path: str, about: os.stat_result) -> int:
    """Returns the modification time of a shard in nanoseconds; for a folder, a number that changes if anything in it does."""
    found = about.st_mtime_ns
    folders = [path] if stat.S_ISDIR(about.st_mode) else []
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                own = entry.stat()
                found = (found + own.st_mtime_ns + own.st_size) % _TIMES
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


def _matched(
    base: str, pattern: str, field: str, suffixes: tuple[str, ...], marks: tuple[str, ...], notes: list[Note], unpacks: Mapping[str, str]
) -> tuple[list[str], str | None]:
    """Returns the absolute paths that a path stands for, and the pattern of their names (`None` for a single file)."""
    if "://" in pattern:
        raise OpError("PG401", f"{pattern!r} is an address, not a file", field=field, help="copy or mount the data")
    whole = os.path.abspath(os.path.join(base, os.path.expanduser(pattern)))
    if _is_store(whole, marks):
        return [whole], None
    if os.path.isdir(whole):
        stores = _stores(whole, marks)
        return stores or shards_below(whole, field, suffixes, notes, unpacks), "*"
    if os.path.isfile(whole):
        return [whole], None
    if not has_magic(pattern):
        folder, name = os.path.split(whole)
        if os.path.isdir(folder):
            close = close_names(name, os.listdir(folder))
            help_ = f"{folder!r} holds {quoted(close)}; is it meant?" if close else f"{folder!r} exists, but not {name!r}"
        else:
            help_ = nearest_folder(folder)
        raise OpError("PG401", f"the file {whole!r} does not exist", field=field, help=help_)
    found = glob(whole, recursive=True)
    matching = [path for path in found if is_file(path) or _is_store(path, marks)]
    check_links(found, field)
    if not matching:
        raise OpError("PG402", f"no file matches {whole!r}", field=field, help=_near(whole))
    return matching, os.path.basename(whole)


def _is_store(folder: str, marks: tuple[str, ...]) -> bool:
    return any(os.path.isfile(os.path.join(folder, mark)) for mark in marks)


def _stores(folder: str, marks: tuple[str, ...]) -> list[str]:
    """Lists the folders below one that are shards, without looking into those."""
    if not marks:
        return []
    found = []
    for inside, names, _ in os.walk(folder):
        stores = [name for name in names if _is_store(os.path.join(inside, name), marks)]
        found += [os.path.join(inside, name) for name in stores]
        names[:] = [name for name in names if name not in stores and not is_hidden(name)]
    return found


def _near(pattern: str) -> str:
    folder = os.path.dirname(pattern)
    while has_magic(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        return nearest_folder(folder)
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return f"{folder!r} holds {quoted(names)}" if names else f"{folder!r} is empty"
