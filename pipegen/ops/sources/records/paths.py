"""Finds the shards of a source: a file, a folder, a pattern, a brace range such as `train-{000..099}.tar`, or a list of these."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from glob import glob, has_magic
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.sources.folders.scan import is_hidden
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import close_names, count, nearest_folder, quoted
from pipegen.ops.sources.records.findings import finding_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)\Z")
_LOCK = "lock.mdb"
"""What LMDB keeps beside the records of a folder."""
_OF = re.compile(r"(?P<head>.*?)(?<!\d)(?P<number>\d+)(?P<of>[-_.]of[-_.])(?P<total>\d+)(?!\d)(?P<tail>.*)", re.DOTALL)
"""The name of a shard that says its number, and how many there are."""
_FINGERPRINT = re.compile(r"[-_][0-9a-f]{16}(?![0-9a-f])")
"""What Hugging Face once put behind that, another for each shard."""
_PACKED = frozenset({".gz", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".br", ".snappy", ".Z"})
"""What programs that compress files put behind their names."""
_TIMES = 2**62
MOST = 1_000_000
"""The most paths that braces stand for."""


@dataclass(frozen=True)
class Found:
    """A shard.

    Attributes:
        key: Its path relative to the root, with slashes.
        path: Its absolute path.
        size: Bytes.
        mtime: When it was last written, in nanoseconds since the epoch; of a folder as `written` says.
        named: Whether the spec names it itself, and not a folder or a pattern that it is found by.
    """

    key: str
    path: str
    size: int
    mtime: int
    named: bool = False


def expand(pattern: str) -> Iterator[str]:
    """Yields what the braces of a path stand for: `{000..099}` numbers of one width, `{a,b}` either text.

    Raises:
        ValueError: For braces that are neither, a range that runs backwards, or more than a million paths.
    """
    parts: list[tuple[str, ...]] = []
    at = 0
    total = 1
    for braces in _BRACES.finditer(pattern):
        parts += [(pattern[at : braces.start()],), _choices(braces[1], pattern)]
        total *= len(parts[-1])
        at = braces.end()
        if total > MOST:
            raise ValueError(f"the braces of {pattern!r} stand for more than {MOST:,} paths")
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
        raise ValueError(f"the braces of {pattern!r} stand for more than {MOST:,} paths")
    width = len(numbers[1]) if numbers[1].startswith("0") or len(numbers[1]) == len(numbers[2]) else 0
    return tuple(f"{number:0{width}d}" for number in range(first, last + 1))


def find_shards(
    base: str,
    given: str | Sequence[str],
    suffixes: tuple[str, ...],
    marks: tuple[str, ...] = (),
    notes: list[Note] | None = None,
) -> tuple[str, list[Found]]:
    """Finds the shards of a source, in the order of their paths; each counts once, however often it is named.

    Args:
        base: What relative paths are relative to.
        given: A path, or several; of a folder, each file below it with one of the `suffixes` counts.
        suffixes: Such as `(".tar",)`.
        marks: Names of files: a folder that holds one of them is a shard.
        notes: Takes what was odd.

    Returns:
        The folder that all of them lie in, and the shards.

    Raises:
        OpError: `PG401` for a path that does not exist, and for a set of shards of which one is missing, `PG402` where there is no shard,
            `PG630` for shards that belong to different sets.
    """
    several = not isinstance(given, str)
    paths: dict[str, None] = {}
    named: set[str] = set()
    matched: dict[str, str] = {}
    for place, pattern in enumerate([given] if isinstance(given, str) else given):
        field = f"path.{place}" if several else "path"
        for one in expand(pattern):
            found, wildcard = _matched(base, one, field, suffixes, marks, notes if notes is not None else [])
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
    """Returns when a shard was last written, in nanoseconds; of a folder a number that differs once anything in it was written."""
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
    base: str, pattern: str, field: str, suffixes: tuple[str, ...], marks: tuple[str, ...], notes: list[Note]
) -> tuple[list[str], str | None]:
    """The absolute paths of the files that one path names, and what their names are matched by: `None` where it names one."""
    if "://" in pattern:
        raise OpError("PG401", f"{pattern!r} is an address and not a file", field=field, help="copy or mount the data")
    whole = os.path.abspath(os.path.join(base, os.path.expanduser(pattern)))
    if _is_store(whole, marks):
        return [whole], None
    if os.path.isdir(whole):
        stores = _stores(whole, marks)
        return stores or _shards_below(whole, field, suffixes, notes), "*"
    if os.path.isfile(whole):
        return [whole], None
    if not has_magic(pattern):
        folder, name = os.path.split(whole)
        if os.path.isdir(folder):
            close = close_names(name, os.listdir(folder))
            help_ = f"{folder!r} holds {quoted(close)}: is that the one?" if close else f"{folder!r} exists, but not {name!r}"
        else:
            help_ = nearest_folder(folder)
        raise OpError("PG401", f"there is no file {whole!r}", field=field, help=help_)
    found = glob(whole, recursive=True)
    matching = [path for path in found if _is_file(path) or _is_store(path, marks)]
    _check_links((path for path in found if os.path.islink(path)), field)
    if not matching:
        raise OpError("PG402", f"no file matches {whole!r}", field=field, help=_near(whole))
    return matching, os.path.basename(whole)


def _shards_below(folder: str, field: str, suffixes: tuple[str, ...], notes: list[Note]) -> list[str]:
    """The files below a folder that are shards by their names; the others are told of.

    Raises:
        OpError: `PG401` for a link that leads nowhere, `PG402` where there is no shard, `PG406` for a folder that cannot be read.
    """

    def unread(error: OSError) -> None:
        message = f"the folder {error.filename!r} cannot be read: {error.strerror or error}"
        raise OpError("PG406", message, field=field, help="give this process the right to read it") from error

    found, packed, others, hidden, linked = list[str](), list[str](), list[str](), list[str](), list[str]()
    for inside, folders, names in os.walk(folder, onerror=unread):
        for name in list(folders):
            if is_hidden(name) or os.path.islink(os.path.join(inside, name)):
                (hidden if is_hidden(name) else linked).append(os.path.relpath(os.path.join(inside, name), folder))
                folders.remove(name)
        for name in names:
            path = os.path.join(inside, name)
            if is_hidden(name) or name == _LOCK:
                hidden.append(os.path.relpath(path, folder))
            elif name.endswith(suffixes):
                found.append(path)
            elif name.removesuffix(os.path.splitext(name)[1]).endswith(suffixes) and os.path.splitext(name)[1] in _PACKED:
                packed.append(path)
            else:
                others.append(os.path.relpath(path, folder))
    _check_links((path for path in found if os.path.islink(path)), field)
    matching = [path for path in found if _is_file(path)]
    packed = [path for path in packed if os.path.splitext(path)[0] not in matching]
    if packed:
        (note,) = finding_notes(((path, {"compressed": (1, "")}) for path in packed), field)
        if not matching:
            raise OpError(note.code, note.message, field=field, help=note.help)
        notes.append(replace(note, help=f"{note.help}; a pattern such as `*{suffixes[0]}` leaves them out"))
    if not matching:
        below = len(others) + len(hidden)
        message = f"{count(below, 'file')} below {folder!r}, of which none ends in {' or '.join(suffixes)}" if below else f"{folder!r} is empty"
        raise OpError("PG402", message, field=field, help="give a pattern such as `data/train-*`, for files of other names" if below else None)
    passed = []
    if others:
        passed.append(f"{count(len(others), 'file')} whose names do not end in {' or '.join(suffixes)} ({quoted(sorted(others))})")
    if hidden:
        passed.append(f"{count(len(hidden), 'hidden entry', 'hidden entries')} ({quoted(sorted(hidden))})")
    if passed:
        notes.append(Note("PG411", f"ignored: {', '.join(passed)}", field=field))
    if linked:
        message = f"{count(len(linked), 'linked folder')} below {folder!r} {'is' if len(linked) == 1 else 'are'} not entered: {quoted(linked)}"
        notes.append(Note("PG411", message, "list such folders in `path`", field, "warning"))
    return matching


def _check_links(links: Iterable[str], field: str) -> None:
    """Raises `PG401` for a link that leads nowhere."""
    lost = [path for path in links if not os.path.exists(path)]
    if lost:
        message = f"{count(len(lost), 'link')} to {'a shard leads' if len(lost) == 1 else 'shards lead'} nowhere: {quoted(lost)}"
        raise OpError("PG401", message, field=field, help="restore what they lead to, or remove them")


def check_sets(paths: Iterable[str], matched: Mapping[str, str]) -> None:
    """Checks that shards whose names say how many there are, such as `train-00002-of-00004`, are all there, once each.

    Args:
        paths: All of them.
        matched: Those that a folder or a pattern gave, with the pattern of their names. Whoever names some files means just these.

    Raises:
        OpError: `PG401` where some are missing that would have been matched, `PG630` where there are two of a number, or two totals.
    """
    sets: dict[tuple[str, str, str], dict[int, dict[int, list[str]]]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        parts = _OF.match(name)
        if parts is not None:
            key = folder, parts["head"], _FINGERPRINT.sub("", parts["tail"])
            sets.setdefault(key, {}).setdefault(int(parts["total"]), {}).setdefault(int(parts["number"]), []).append(path)
    for totals in sets.values():
        every = [path for numbers in totals.values() for these in numbers.values() for path in these]
        found = [path for path in every if path in matched]
        if not found:
            continue
        twice = next((these for numbers in totals.values() for these in numbers.values() if len(these) > 1), None)
        several = [min(numbers.items())[1][0] for _, numbers in sorted(totals.items())]
        if twice is not None or len(several) > 1:
            what = f"say different numbers of shards: {quoted(several)}" if twice is None else f"have one number: {quoted(twice)}"
            message = f"shards of one name in {os.path.dirname(found[0])!r} {what}"
            raise OpError("PG630", message, field="path", help="remove what an earlier run left, or list the files that are meant in `path`")
        ((total, numbers),) = totals.items()
        first = 1 if 0 not in numbers and max(numbers) == total else 0
        missing = [_numbered(found[0], number) for number in range(first, first + total) if number not in numbers]
        lost = [name for name in missing if any(fnmatchcase(name, matched[path]) for path in found)]
        above = [these[0] for number, these in numbers.items() if number >= first + total]
        if above:
            message = f"{above[0]!r} has a number above that of the last of {total} shards"
            raise OpError("PG630", message, field="path", help="remove it, or list the files that are meant in `path`")
        if lost:
            verb = "is" if len(lost) == 1 else "are"
            message = f"{len(lost):,} of {total:,} shards {verb} missing in {os.path.dirname(found[0])!r}: {quoted(lost)}"
            help_ = "copy or download what is missing; to read only the others, list the files in `path`, or give a range such as `{00000..00003}`"
            raise OpError("PG401", message, field="path", help=help_)


def _numbered(path: str, number: int) -> str:
    """The name of a shard of the same set."""
    parts = _OF.match(os.path.basename(path))
    assert parts is not None  # noqa: S101 - only such are asked about
    width = len(parts["number"]) if parts["number"].startswith("0") or len(parts["number"]) == len(parts["total"]) else 0
    return f"{parts['head']}{number:0{width}d}{parts['of']}{parts['total']}{parts['tail']}"


def _is_store(folder: str, marks: tuple[str, ...]) -> bool:
    return any(os.path.isfile(os.path.join(folder, mark)) for mark in marks)


def _stores(folder: str, marks: tuple[str, ...]) -> list[str]:
    """The folders below one that are a shard each; what lies in them is not looked at."""
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


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
