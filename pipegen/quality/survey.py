"""Looks at the data of a spec as a whole: leaks, repeats and oddities from one pass over the pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.quality.leaks import Leaks, find_leaks
from pipegen.quality.looks import UNREADABLE
from pipegen.quality.oddities import Classes, Odd, classes_of, odd_pictures, repeated, several_labels

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from pipegen.data.manifest import Manifest
    from pipegen.spec.models import Runtime

    Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Survey:
    """Holds what was seen of a spec's data.

    Attributes:
        manifest: The records and their splits.
        looks: `LOOK (n,)`, for each record of the listing.
        leaks: What splits share.
        odd: Pictures that are odd, a way each.
        repeats: For each content that is stored several times in a split: the split, and the records.
        contradictions: Records of the same content and of different classes.
        classes: The classes of the training split; `None` without labels.
        unreadable: The keys of records that could not be looked at.
    """

    manifest: Manifest
    looks: Array
    leaks: Leaks
    odd: tuple[Odd, ...]
    repeats: tuple[tuple[str, list[int]], ...]
    contradictions: tuple[list[int], ...]
    classes: Classes | None
    unreadable: tuple[str, ...]


def survey(manifest: Manifest, looks: Array, runtime: Runtime, comparing: Callable[[int], None] | None = None) -> Survey:
    """Makes a survey of what `look_at` has seen; for `comparing` see `find_leaks`."""
    leaks = find_leaks(manifest, runtime=runtime, looks=looks, comparing=comparing)
    classes = classes_of(manifest)
    keys = manifest.every_key
    unread = tuple(keys[record] for record in np.flatnonzero(looks["state"] == UNREADABLE).tolist())
    again, several = tuple(repeated(manifest, looks)), tuple(several_labels(manifest, looks))
    return Survey(manifest, looks, leaks, tuple(odd_pictures(looks)), again, several, classes, unread)
