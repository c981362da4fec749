"""Checks sets of shards with number and total in their names, such as `train-00002-of-00004`."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.sources.listing.wording import is_are, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OF = re.compile(r"(?P<head>.*?)(?<!\d)(?P<number>\d+)(?P<of>[-_.]of[-_.])(?P<total>\d+)(?!\d)(?P<tail>.*)", re.DOTALL)
"""The name of a shard with its number and the total."""
_FINGERPRINT = re.compile(r"[-_][0-9a-f]{16}(?![0-9a-f])")
"""Hugging Face's former suffix, different for each shard."""
_MOST = 1_000_000
"""Largest set whose missing shards are counted."""
_NAMED = 1000
"""Missing shards whose names are matched with the pattern of the others."""


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
        missing = [number for number in range(first, first + min(total, _MOST)) if number not in numbers]
        patterns = {matched[path] for path in found}
        names = (_numbered(found[0], number) for number in missing[:_NAMED])
        lost = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
        above = [these[0] for number, these in numbers.items() if number >= first + total]
        if above:
            message = f"{above[0]!r} has a number beyond the last of {total} shards"
            raise OpError("PG663", message, field="path", help="remove it, or list the files to read in `path`")
        if lost:
            number = len(missing) if len(lost) == _NAMED else len(lost)
            message = f"{number:,} of {total:,} shards {is_are(number)} missing in {os.path.dirname(found[0])!r}: {quoted(lost)}"
            others = "or list the others in `path`, or use a range such as `{00000..00003}`"
            help_ = "copy or download the missing ones", others
            raise OpError("PG401", message, field="path", help=help_)


def _numbered(path: str, number: int) -> str:
    """Returns the name of a shard of the same set."""
    parts = _OF.match(os.path.basename(path))
    assert parts is not None  # noqa: S101 - all such names match
    width = len(parts["number"]) if parts["number"].startswith("0") or len(parts["number"]) == len(parts["total"]) else 0
    return f"{parts['head']}{number:0{width}d}{parts['of']}{parts['total']}{parts['tail']}"
