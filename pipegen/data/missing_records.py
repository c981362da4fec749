"""Decides about records that lack a file, as `errors.missing` says: they are left out, or they are an error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pipegen.data.splits import exact
from pipegen.diagnostics.diagnostic import write
from pipegen.ops.sources.listing.base import LeftOut, Note
from pipegen.spec.models import MissingFraction

if TYPE_CHECKING:
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.listing.missing import Missing
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.spec.models import Errors

_LIST = "or name those to leave out: `pipegen validate SPEC --data --write-exclude missing.txt`, then `errors: {exclude: missing.txt}`"


def without_missing(errors: Errors, listing: Listing) -> tuple[Listing | None, tuple[str, ...], tuple[Note, ...]]:
    """Leaves out the records that lack a file.

    Returns:
        The other records, or `None` where none is left, or none of a split whose source is its own; the keys of those that lack a file;
        and a note about each group of them: an error unless the spec lets them go, and then a warning.
    """
    if not listing.missing:
        return listing, (), ()
    gone: Ints = np.zeros(len(listing.keys), bool)
    for group in listing.missing:
        if group.records is not None:
            gone[group.records] = True
    unlisted = sum(len(group.keys) for group in listing.missing if group.records is None)
    is_left = not any(gone[own].all() for own in (slice(None), *_parts(listing)) if gone[own].size)
    # The share counts in each split that has a source of its own, and in all together with what belongs to none.
    counts = [(int(gone.sum()) + unlisted, len(gone) + unlisted), *((int(gone[own].sum()), int(own.sum())) for own in _parts(listing))]
    over = [(lost, total) for lost, total in counts if lost > exact(errors.most_missing) * total]
    drops = is_left and not over
    why = ""
    if isinstance(errors.missing, MissingFraction) and is_left and over:
        lost, total = over[-1]
        why = f"; {lost:,} of {total:,} is more than `max_fraction: {errors.missing.max_fraction:g}` allows"
    if errors.missing != "raise" and not is_left:
        none = "no record" if gone.all() else "no record of a split"
        why = f"; leaving them out, as `errors.missing` asks, would leave {none}"
    ways_out = (write("errors: {missing: drop}", "spec", "or leave them out, with a warning: {}"), _LIST) if is_left else ()
    notes = tuple(_note(group, _total(group, listing, unlisted), why, drops=drops, ways_out=ways_out) for group in listing.missing)
    keys = tuple(dict.fromkeys(key for group in listing.missing for key in group.keys))
    if not is_left:
        return None, keys, notes
    left = listing.take(np.flatnonzero(~gone)) if gone.any() else listing
    return replace(left, missing=(), notes=(*listing.notes, *notes)), keys, notes


def _parts(listing: Listing) -> list[Ints]:
    """The records of each split whose source is its own, as truths `(n,)`; empty where one source has all."""
    return [] if listing.parts is None else [listing.parts.codes == code for code in range(len(listing.parts.names))]


def _total(group: Missing, listing: Listing, unlisted: int) -> int:
    """Counts the records that a group is some of: those of its splits, where each has a source of its own."""
    if group.records is None or listing.parts is None:
        return len(listing.keys) + unlisted
    return sum(int(own.sum()) for own in _parts(listing) if own[group.records].any())


def _note(group: Missing, total: int, why: str, *, drops: bool, ways_out: tuple[str, ...]) -> Note:
    n, (one, several) = len(group.keys), group.what
    message = group.example(0)
    if n > 1:
        message += f"; {n:,} of {total:,} {several} lack {group.lack}"
    if drops:
        message += " and are left out" if n > 1 else "; it is left out"
    help_ = group.help if drops else (*group.help, *ways_out)
    left_out = LeftOut(n, f"{one} that lacks {group.lack}", f"{several} that lack {group.lack}")
    return Note(group.code, message + why, help_, group.field, "warning" if drops else "error", (left_out,))
