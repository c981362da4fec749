"""Checks sets of shards whose names say their number and how many there are, such as `train-00002-of-00004`."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OF = re.compile(r"(?P<head>.*?)(?<!\d)(?P<number>\d+)(?P<of>[-_.]of[-_.])(?P<total>\d+)(?!\d)(?P<tail>.*)", re.DOTALL)
"""The name of a shard that says its number, and how many there are."""
_FINGERPRINT = re.compile(r"[-_][0-9a-f]{16}(?![0-9a-f])")
"""What Hugging Face once put behind that, another for each shard."""
_MOST = 1_000_000
"""Shards of a set up to which missing ones are counted."""
_NAMED = 1000
"""Missing shards whose names are compared with the pattern of the others."""


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
            raise OpError(
                "PG630", message, field="path", help="remove what an earlier run left, or list the files that are meant in `path`"
            )
        ((total, numbers),) = totals.items()
        first = 1 if 0 not in numbers and max(numbers) == total else 0
        missing = [number for number in range(first, first + min(total, _MOST)) if number not in numbers]
        patterns = {matched[path] for path in found}
        names = (_numbered(found[0], number) for number in missing[:_NAMED])
        lost = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
        above = [these[0] for number, these in numbers.items() if number >= first + total]
        if above:
            message = f"{above[0]!r} has a number above that of the last of {total} shards"
            raise OpError("PG630", message, field="path", help="remove it, or list the files that are meant in `path`")
        if lost:
            number = len(missing) if len(lost) == _NAMED else len(lost)
            verb = "is" if number == 1 else "are"
            message = f"{number:,} of {total:,} shards {verb} missing in {os.path.dirname(found[0])!r}: {quoted(lost)}"
            others = "to read only the others, list them in `path`, or give a range such as `{00000..00003}`"
            help_ = "copy or download what is missing", others
            raise OpError("PG401", message, field="path", help=help_)


def _numbered(path: str, number: int) -> str:
    """The name of a shard of the same set."""
    parts = _OF.match(os.path.basename(path))
    assert parts is not None  # noqa: S101 - only such are asked about
    width = len(parts["number"]) if parts["number"].startswith("0") or len(parts["number"]) == len(parts["total"]) else 0
    return f"{parts['head']}{number:0{width}d}{parts['of']}{parts['total']}{parts['tail']}"
