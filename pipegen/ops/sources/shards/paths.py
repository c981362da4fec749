"""Finds the shards of a source: a file, a folder, a pattern, a brace range such as `train-{000..099}.tar`, or a list of these."""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import product

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.ops.fields.notes import Note, count, is_are, quoted
from pipegen.ops.sources.folders.scan import is_hidden, walk
from pipegen.ops.sources.listing.paths import close_names, nearest_folder
from pipegen.ops.sources.shards.findings import finding_notes, unpacked_name, unpacking_help

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)\Z")
_TIMES = 2**62
MOST = 1_000_000  # largest number of paths from braces, and largest set whose missing shards are counted
_LOCK = "lock.mdb"  # LMDB's lock file beside the records
_OF = re.compile(r"(?P<head>.*?)(?<!\d)(?P<number>\d+)(?P<of>[-_.]of[-_.])(?P<total>\d+)(?!\d)(?P<tail>.*)", re.DOTALL)
"""The name of a shard with its number and the total."""
_FINGERPRINT = re.compile(r"[-_][0-9a-f]{16}(?![0-9a-f])")  # hugging Face's former suffix, different for each shard
_NAMED = 1000  # missing shards whose names are matched with the pattern of the others


@dataclass(frozen=True)
class Found:
    """A shard."""

    key: str  # path relative to the root, with slashes
    path: str  # absolute path
    size: int  # bytes
    mtime: int  # modification time in nanoseconds since the epoch; for a folder see `written`
    named: bool = False  # whether the spec names it, rather than a folder or a pattern


def expand(pattern: str) -> Iterator[str]:
    """Expands the braces of a path: `{000..099}` to numbers of one width, `{a,b}` to either text; `ValueError` for invalid ones, a range
    that runs backwards, or more than a million paths."""
    parts: list[tuple[str, ...]] = []
    at, total = 0, 1
    for braces in _BRACES.finditer(pattern):
        parts += [(pattern[at : braces.start()],), _choices(braces[1], pattern)]
        total *= len(parts[-1])
        at = braces.end()
        if total > MOST:
            raise ValueError(f"the braces of {pattern!r} expand to more than {MOST:,} paths")
    parts.append((pattern[at:],))
    return map("".join, product(*parts))


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
    width = _width(numbers[1], numbers[2])
    return tuple(f"{number:0{width}d}" for number in range(first, last + 1))


def _width(number: str, last: str) -> int:
    """Returns the digits that numbers are padded to, from one and the last of them."""
    return len(number) if number.startswith("0") or len(number) == len(last) else 0


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
    if _is_shard(whole, marks):
        return [whole], None
    if os.path.isdir(whole):
        return _stores(whole, marks) or _shards_below(whole, field, suffixes, notes, unpacks), "*"
    if not has_magic(pattern):
        folder, name = os.path.split(whole)
        if os.path.isdir(folder):
            close = close_names(name, os.listdir(folder))
            help_ = f"{folder!r} holds {quoted(close)}; is it meant?" if close else f"{folder!r} exists, but not {name!r}"
        else:
            help_ = nearest_folder(folder)
        raise OpError("PG401", f"the file {whole!r} does not exist", field=field, help=help_)
    found = glob(whole, recursive=True)
    matching = [path for path in found if _is_shard(path, marks)]
    _check_links(found, field)
    if not matching:
        folder = os.path.dirname(whole)
        while has_magic(folder):
            folder = os.path.dirname(folder)
        names = sorted(name for name in os.listdir(folder) if not name.startswith(".")) if os.path.isdir(folder) else []
        held = f"holds {quoted(names)}" if names else "is empty"
        help_ = f"{folder!r} {held}" if os.path.isdir(folder) else nearest_folder(folder)
        raise OpError("PG402", f"no file matches {whole!r}", field=field, help=help_)
    return matching, os.path.basename(whole)


def _is_shard(path: str, marks: tuple[str, ...]) -> bool:
    return os.path.isfile(path) or any(os.path.isfile(os.path.join(path, mark)) for mark in marks)


def _stores(folder: str, marks: tuple[str, ...]) -> list[str]:
    """Lists the folders below one that are shards, without looking into those."""
    if not marks:
        return []
    found = []
    for inside, names, _ in os.walk(folder):
        stores = [name for name in names if _is_shard(os.path.join(inside, name), marks)]
        found += [os.path.join(inside, name) for name in stores]
        names[:] = [name for name in names if name not in stores and not is_hidden(name)]
    return found


def _shards_below(folder: str, field: str, suffixes: tuple[str, ...], notes: list[Note], unpacks: Mapping[str, str]) -> list[str]:
    """Lists the shards below a folder by name; `notes` collects other findings. `PG401` for a broken link, `PG402` without shards, `PG406`
    for an unreadable folder, `PG430` if all shards are compressed."""
    seen: defaultdict[str, list[str]] = defaultdict(list)
    for inside, folders, names in walk(folder, field):
        kinds = {name: _kind_of(name, suffixes) for name in names}
        kinds |= {name: "hidden" for name in folders if is_hidden(name)}
        kinds |= {name: "linked" for name in folders if not is_hidden(name) and os.path.islink(os.path.join(inside, name))}
        folders[:] = [name for name in folders if name not in kinds]
        for name, kind in kinds.items():
            seen[kind].append(os.path.join(inside, name))
    _check_links(seen["shard"], field)
    matching = [path for path in seen["shard"] if os.path.isfile(path)]
    known = set(matching)
    packed = [path for path in seen["packed"] if unpacked_name(path) not in known]
    if packed:
        (note,) = finding_notes(((path, {"compressed": (1, "")}) for path in packed), field)
        read = next((how for how, ending in unpacks.items() if all(path.endswith(ending) for path in packed)), None)
        if not matching and read is not None:
            raise OpError(note.code, f"all shards below {folder!r} are compressed by {read}", field=field, help=unpacking_help(read))
        if not matching:
            raise OpError(note.code, note.message, field=field, help=note.help)
        notes.append(replace(note, help=f"{note.help}; or leave them out with a pattern such as `*{suffixes[0]}`"))
    if not matching:
        below = len(seen["other"]) + len(seen["hidden"])
        if not below:
            raise OpError("PG402", f"{folder!r} is empty", field=field)
        message = f"{count(below, 'file')} below {folder!r}, but none ends in {' or '.join(suffixes)}"
        raise OpError("PG402", message, field=field, help="for other file names, use a pattern such as `data/train-*`")
    others, hidden, linked = (sorted(os.path.relpath(path, folder) for path in seen[kind]) for kind in ("other", "hidden", "linked"))
    ignored = [f"{count(len(others), 'file')} whose names do not end in {' or '.join(suffixes)} ({quoted(others)})"] if others else []
    ignored += [f"{count(len(hidden), 'hidden entry', 'hidden entries')} ({quoted(hidden)})"] if hidden else []
    notes += [Note("PG411", f"ignored: {', '.join(ignored)}", field=field)] if ignored else []
    if linked:
        message = f"{count(len(linked), 'linked folder')} below {folder!r} {is_are(len(linked))} not entered: {quoted(linked)}"
        notes.append(Note("PG411", message, "list such folders in `path`", field, "warning"))
    return matching


def _kind_of(name: str, suffixes: tuple[str, ...]) -> str:
    if is_hidden(name) or name == _LOCK:
        return "hidden"
    if name.endswith(suffixes):
        return "shard"
    return "packed" if unpacked_name(name).endswith(suffixes) else "other"


def _check_links(paths: Iterable[str], field: str) -> None:
    """Raises `PG401` for broken links."""
    lost = [path for path in paths if os.path.islink(path) and not os.path.exists(path)]
    if lost:
        message = f"{count(len(lost), 'broken link')} to shards: {quoted(lost)}"
        raise OpError("PG401", message, field=field, help="restore their targets, or remove them")


def check_sets(paths: Iterable[str], matched: Mapping[str, str]) -> None:
    """Checks that sets of shards such as `train-00002-of-00004` are complete and without duplicates.

    Args:
        paths: All shards.
        matched: The name pattern of those found by a folder or a pattern; shards named one by one may be incomplete.

    Raises:
        OpError: `PG401` for missing shards that the pattern would match, `PG663` for repeated numbers or several totals.
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
            what = f"have different totals: {quoted(several)}" if twice is None else f"have the same number: {quoted(twice)}"
            message = f"shards with one name in {os.path.dirname(found[0])!r} {what}"
            raise OpError("PG663", message, field="path", help="remove shards of an earlier run, or list the files to read in `path`")
        ((total, numbers),) = totals.items()
        first = 1 if 0 not in numbers and max(numbers) == total else 0
        missing = [number for number in range(first, first + min(total, MOST)) if number not in numbers]
        patterns = {matched[path] for path in found}
        parts = _OF.match(os.path.basename(found[0]))
        assert parts is not None  # noqa: S101 - all such names match
        width = _width(parts["number"], parts["total"])
        names = (f"{parts['head']}{number:0{width}d}{parts['of']}{parts['total']}{parts['tail']}" for number in missing[:_NAMED])
        lost = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
        above = [these[0] for number, these in numbers.items() if number >= first + total]
        if above:
            message = f"{above[0]!r} has a number beyond the last of {total} shards"
            raise OpError("PG663", message, field="path", help="remove it, or list the files to read in `path`")
        if lost:
            number = len(missing) if len(lost) == _NAMED else len(lost)
            message = f"{number:,} of {total:,} shards {is_are(number)} missing in {os.path.dirname(found[0])!r}: {quoted(lost)}"
            help_ = "copy or download the missing ones", "or list the others in `path`, or use a range such as `{00000..00003}`"
            raise OpError("PG401", message, field="path", help=help_)
