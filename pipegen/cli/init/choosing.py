"""Chooses among several keys the one of images and the one of labels, and says in comments what was chosen, and what else there is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.cli.init.columns import LABELS
from pipegen.cli.init.spec import plain
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

MOST_CLASSES = 1000
LABEL_KEYS = frozenset({*LABELS, "cls", "image/class/label", "fine_label"})
_IMAGES = ("image", "img", "picture", "photo", "jpg", "png")
_WORDS = ("label", "class", "target", "categor")
_SHOWN = 6


def last_of(key: str) -> str:
    """Returns the name that a key ends in: of a path all that counts in `tf.Example`, and of others the last part, without what stands for
    numbers."""
    name = key.lower().removesuffix("*").rstrip("-_:/.")
    return name if name in LABEL_KEYS else re.split(r"[/.]", name)[-1]


def image_among(keys: Sequence[str], argument: str = "key") -> tuple[str, list[str]]:
    """Chooses the images: the first that are called so, or the first.

    Args:
        keys: The keys, or columns, of images: at least one.
        argument: What names a key in a feature.

    Returns:
        The key, and comments: where there are several, how to take another, or more of them.
    """
    named = ((key, re.split(r"[/._\-*]", key.lower())) for key in keys)
    chosen = next((key for key, parts in named if any(part in _IMAGES for part in parts)), keys[0])
    others = [key for key in keys if key != chosen]
    if not others:
        return chosen, []
    name = re.sub(r"\W+", "_", last_of(others[0])).strip("_") or "other"
    added = f"`{name if name != 'image' else 'other'}: {{kind: image, {argument}: {flow_scalar(plain(others[0]))}}}`"
    listed = _listed(others)
    return chosen, [
        f"`image` reads {_quoted(chosen)}; {listed} {'is an image' if len(others) == 1 else 'are images'}, too: {added} adds one"
    ]


@dataclass(frozen=True)
class Values:
    """Counts the values under a key that may hold labels.

    Attributes:
        distinct: How many different ones there are; 0 where they are no labels.
        rows: The records that were looked at.
        named: Whether they are names, and no numbers.
    """

    distinct: int
    rows: int
    named: bool

    @property
    def likely(self) -> bool:
        """Returns whether they look like classes: few, each of which several records have."""
        return 1 < self.distinct <= min(MOST_CLASSES, self.rows // 2)


def label_among(seen: Mapping[str, Values], usual: Collection[str], argument: str = "key") -> tuple[str | None, list[str]]:
    """Chooses the labels: what is called so, or else what looks like classes, names before numbers.

    Args:
        seen: The values under the keys that may hold labels, where they were looked at.
        usual: Keys that are called like labels.
        argument: What names a key in a feature.

    Returns:
        The key, or `None`, and comments: why, and what else may be labels, unless the name says enough.
    """
    likely = [key for key, values in seen.items() if values.likely]
    if usual:
        chosen = next((key for key in usual if key in likely), next(iter(usual)))
        others = [key for key in usual if key != chosen]
        return chosen, [f"`label` reads {_quoted(chosen)}; {_listed(others)} may be labels, too"] if others else []
    if not likely:
        return None, []
    chosen = min(likely, key=lambda key: (not any(word in key.lower() for word in _WORDS), not seen[key].named, seen[key].distinct))
    others = [key for key in likely if key != chosen]
    counted = f"{seen[chosen].distinct:,} values in {seen[chosen].rows:,} records"
    said = f"`label` reads {_quoted(chosen)}, which has {counted}: no key is called like a label"
    return chosen, [said, *([f"{_listed(others)} may be labels, too: `{argument}` takes another"] if others else [])]


def _quoted(key: str) -> str:
    return f"`{plain(key)}`"


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _SHOWN
    return " and ".join([", ".join(map(_quoted, keys[:_SHOWN])), *([f"{more:,} more"] if more > 0 else [])])
