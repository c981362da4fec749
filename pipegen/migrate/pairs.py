"""Images and masks that come from two iterators joined by `zip`: one source with both, so that a mask moves with its image."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from pipegen.migrate.collected import Collected
from pipegen.migrate.labels import folder_below
from pipegen.migrate.values import Const, Flow, Generator, Unknown, Zipped, same

_MASKS = re.compile(r"mask|annot|segm|(?:^|[^a-z])(?:label|gt(?:[^a-z]|$)|seg(?:[^a-z]|$))")
"""What iterators and folders of masks are called."""
_ALIKE = ("target_size", "batch_size", "seed", "shuffle", "subset")
_VALUES = ("rescale", "preprocessing_function", "dtype")
"""What may differ between images and masks: it changes values, not places."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The iterators of images and of their masks, and what joins them."""

    image: Flow
    mask: Flow
    zipped: Zipped


def pairs_of(found: Collected) -> list[Pair]:
    """The pairs of an image's and a mask's iterator that move in the same way; of two images, neither is known to be a mask."""
    pairs = []
    for zipped in found.pairs:
        a, b = zipped.flows
        a_is, b_is = _is_mask(found, a, b), _is_mask(found, b, a)
        if a_is != b_is and _move_together(a, b):
            pairs.append(Pair(b, a, zipped) if a_is else Pair(a, b, zipped))
    return pairs


def _move_together(a: Flow, b: Flow) -> bool:
    """Returns whether two iterators without labels draw the same numbers for their images."""
    if any(f.method != "flow_from_directory" or "**" in f.args or "class_mode" not in f.args for f in (a, b)):
        return False
    if any(f.known("class_mode") is not None or folder_of(f) is None for f in (a, b)):
        return False
    if a.get("seed") is None or any(not _equal(a, b, n) for n in _ALIKE):
        return False
    one, other = a.generator, b.generator
    if not isinstance(one, Generator) or not isinstance(other, Generator) or one.classes or other.classes:
        return False
    names = {*one.args, *other.args} - set(_VALUES)
    return "**" not in names and all(_equal(one, other, n) for n in names)


def _equal(a: Flow | Generator, b: Flow | Generator, name: str) -> bool:
    """Returns whether an argument is known to be the same for both."""
    return same(a.argument(name) or Const(None), b.argument(name) or Const(None)) and not isinstance(a.known(name), Unknown)


def _is_mask(found: Collected, flow: Flow, other: Flow) -> bool:
    """Returns whether an iterator is called one of masks, or its folder is, where it is not the other's."""
    own, others = ((folder_of(f) or "").lower().split("/") for f in (flow, other))
    words = [found.name_of(flow).lower(), *(part for part in own if part not in others)]
    return any(_MASKS.search(word) for word in words)


def folder_of(flow: Flow) -> str | None:
    """The folder whose files an iterator without labels reads, where it is known."""
    folder, below = flow.known("directory"), folder_below(flow)
    if not isinstance(folder, str) or not folder or below is None:
        return None
    return posixpath.join(folder, below) if below else folder
