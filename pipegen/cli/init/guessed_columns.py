"""Columns and keys of data for a first spec: which are images, labels or numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.cli.init.spec import plain
from pipegen.frozen import dataclass
from pipegen.ops.families.decoder import LARGEST
from pipegen.ops.fields.labels import LIST
from pipegen.ops.lowering.sounds import sound_format
from pipegen.ops.sources.folders.scan import IMAGE_EXTENSIONS, SOUND_EXTENSIONS, sniff
from pipegen.spec.compose import flow

if TYPE_CHECKING:
    from pipegen.ops.sources.tables.table import Table


LABELS = ("label", "labels", "class", "class_name", "classname", "target", "category", "y")  # names of columns of labels
SPLITS = frozenset({"usage", "split", "subset", "fold", "partition"})  # names of columns of splits
_WEIGHTS = ("weight", "weights", "sample_weight")
_MOST_CLASSES = 1000
_SHOWN = 12
_EXAMINED, _LEAST_SIDE = 50, 8
"""Rows whose cells may be pixels, and the side of the smallest images that are found."""
_NUMBERED = re.compile(r"(.*?\D)(\d+)")


@dataclass(frozen=True)
class Lists:
    """What the cells of a column of lists hold: so many numbers each, `None` if they differ in length, 0 if they are no numbers; and how
    many classes, of which a row has any number. Lists that are text, as in CSV, cannot be read."""

    numbers: int | None
    classes: int
    text: bool

    @classmethod
    def of(cls, cells: Sequence[str], name: str) -> Lists | None:
        """Examines the cells of a column; `None` if they are no lists."""
        full = [cell for cell in cells if cell]
        if full and all(cell.startswith("[") and cell.endswith("]") for cell in full):
            return cls(0, 0, text=True)
        if not full or not all(cell.startswith(LIST) for cell in full):
            return None
        items = [cell.split(LIST)[1:] for cell in cells]
        every = [item for row in items for item in row]
        nested = any(item[:1] in ("[", "{") for item in every)
        numbers = [_number(item) for item in every]
        lengths = {len(row) for row in items}
        classes = 0
        if not nested and (None in numbers or (name.lower() in LABELS and all(item.isdecimal() for item in every))):
            distinct = len(set(every))
            classes = distinct if 1 < distinct <= min(len(every) // 2, _MOST_CLASSES) else 0
        return cls(0 if None in numbers else lengths.pop() if len(lengths) == 1 else None, classes, text=False)

    def label(self, called: str | int) -> dict[str, Any]:
        """Makes the arguments of a label of several classes that its column holds."""
        return {"kind": "label", "column": called, "separator": ","}

    def feature(self, name: str, called: str | int, *, beside_paths: bool = True) -> str:
        """Writes a line of `features` that reads its column, or that explains why it is not read."""
        if self.classes:
            return f"{name}: {flow(self.label(called))}  # {self.classes:,} classes, any number for each row"
        if self.numbers:
            return f"{name}: {flow({'kind': 'tensor', 'column': called, 'shape': [self.numbers]})}  # {self.numbers:,} numbers each"
        if self.numbers is None and not beside_paths:
            array = {"kind": "array", "column": called, "format": "list", "shape": [None]}
            return f"{name}: {flow(array)}  # numbers, of several lengths; needs `batch: {{pad: {{}}}}`"
        why = "written as text" if self.text else "of several lengths, in a table of paths" if self.numbers is None else "of no numbers"
        return f"{name}: not read, as its cells are lists {why}"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    number: int  # its number, from 0
    called: str | int  # its name in a spec, or its number
    name: str  # a name for a feature of it
    numbers: tuple[float, float] | None  # the least and the largest number; `None` if a cell is not a number
    values: int  # the number of different cells
    empty: int  # the number of empty cells
    labels: bool  # whether it may be a column of classes: whole numbers or words, each in two rows on average
    unlabelled: str | int | None  # the value of rows without a class, if so: an empty cell, or -1 in a column named like labels
    lists: Lists | None = None  # what its cells hold, if that is lists

    @property
    def several(self) -> bool:
        """Whether it may hold any number of classes for each row."""
        return self.lists is not None and self.lists.classes > 0

    def label(self, called: str | int) -> dict[str, Any]:
        """Makes the arguments of a label that it holds."""
        if self.lists is not None:
            return self.lists.label(called)
        none = {} if self.unlabelled is None else {"unlabelled": [self.unlabelled]}
        return {"kind": "label", "column": called, **none}

    def feature(self) -> str:
        """Writes a line of `features` that reads it, or that explains why it is not read."""
        if self.lists is not None:
            return self.lists.feature(self.name, self.called)
        if self.empty and not self.labels:
            return f"{self.name}: not read, as {self.empty:,} {'cell is' if self.empty == 1 else 'cells are'} empty"
        if self.numbers is None and not self.labels:
            return f"{self.name}: not read, as it is text of {self.values:,} {'value' if self.values == 1 else 'different values'}"
        kind, remark = "label", f"{self.values:,} classes"
        if self.numbers is not None:
            kind, remark = "tensor", f"from {self.numbers[0]:g} to {self.numbers[1]:g}"
            if self.name.lower() in _WEIGHTS and self.numbers[0] >= 0:
                kind, remark = "weight", f"for `output: {{sample_weight: {self.name}}}`"
        given = self.label(self.called) if kind == "label" else {"kind": kind, "column": self.called}
        return f"{self.name}: {flow(given)}  # {remark}"


def columns_of(table: Table) -> list[Column]:
    """Examines the columns of a table, in order."""
    found: list[Column] = []
    for number in range(table.width):
        cells = [row[number].strip() for row in table.rows]
        known = [value for cell in cells if (value := _number(cell)) is not None]
        named = table.names[number] if table.names is not None else f"column_{number}"
        name = re.sub(r"\W+", "_", named, flags=re.ASCII).strip("_") or f"column_{number}"
        name = f"column_{name}" if name[0].isdigit() else name
        name = f"{name}_{number}" if any(name == column.name for column in found) else name
        called = named if table.names is not None and table.names.count(named) == 1 else number
        limits = (min(known), max(known)) if known and len(known) == len(cells) else None
        whole = all(value.is_integer() for value in known) and not any("." in cell for cell in cells)
        none = "" if "" in cells else -1 if whole and limits is not None and limits[0] == -1 and name.lower() in LABELS else None
        classes = [cell for cell in cells if cell != str(none)]
        values, words = len(set(classes)), len(known) < len(classes)
        labels = 1 < values <= min(len(classes) // 2, _MOST_CLASSES) and (whole or words) and 2 * len(classes) >= len(cells)
        lists = Lists.of([row[number] for row in table.rows], name)  # whose first character would be stripped
        labels = labels and lists is None
        values = values if lists is None else lists.classes
        found.append(Column(number, called, name, limits, values, cells.count(""), labels, none if labels else None, lists))
    return found


def _number(cell: str) -> float | None:
    try:
        value = float(cell.replace("_", "x"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


IMAGE, SOUND = "image", "sound"


def told_by(name: str) -> str | None:
    """Returns what a file holds by the extension of its name, `IMAGE` or `SOUND`; `None` for anything else."""
    extension = os.path.splitext(name.strip().lower())[1].removeprefix(".")
    return IMAGE if extension in IMAGE_EXTENSIONS else SOUND if extension in SOUND_EXTENSIONS else None


def held_in(content: Any) -> str | None:
    """Returns what the bytes of a file hold, `IMAGE` or `SOUND`; `None` for anything else."""
    if not isinstance(content, bytes):
        return None
    return IMAGE if sniff(content) is not None else SOUND if sound_format(content) is not None else None


def pixels_among(table: Table) -> tuple[list[int], dict[str, Any]]:
    """Finds images whose pixels are numbers: in one column, or in columns such as `pixel0` and `pixel1`.

    Returns the columns, none if there are no such images, and the arguments of a feature.
    """
    names = table.names or ()
    for column in range(table.width):
        shape = _square({len(_pixels(row[column])) for row in table.rows[:_EXAMINED]})
        if shape:
            return [column], {"kind": "image", "column": names[column] if names else column, **shape}
    numbered: dict[str, dict[int, int]] = {}
    for column, name in enumerate(names):
        if (found := _NUMBERED.fullmatch(name)) is not None:
            numbered.setdefault(found[1], {})[int(found[2])] = column
    for stem, columns in numbered.items():
        first, shape = min(columns), _square({len(columns)})
        following = [columns.get(first + i) for i in range(len(columns))]
        if shape and None not in following and all(_pixels(row[c]) for row in table.rows[:_EXAMINED] for c in columns.values()):
            return [*columns.values()], {"kind": "image", "columns": [f"{stem}{{{first}..{max(columns)}}}"], **shape}
    return [], {}


def _pixels(cell: str) -> list[str]:
    """Splits a cell into pixels of 8 bits; none if it holds something else."""
    words = cell.strip("[]() ").replace(",", " ").replace(LIST, " ").split()
    return words if all(word.isdecimal() and len(word) <= 3 and int(word) <= LARGEST for word in words) else []


def _square(counts: set[int]) -> dict[str, int]:
    """Returns the size and channels of images that have one number of pixels, if they are squares."""
    count = counts.pop() if len(counts) == 1 else 0
    for channels in (1, 3):
        side = math.isqrt(count // channels)
        if side >= _LEAST_SIDE and side * side * channels == count:
            return {"size": side} if channels == 1 else {"size": side, "channels": channels}
    return {}


def unused(columns: list[Column], used: Collection[int]) -> list[str]:
    """Writes remarks on the columns that a spec does not read: for each, the line that would read it."""
    left = [column for column in columns if column.number not in used]
    return [column.feature() for column in left[:_SHOWN]] + ([f"and {len(left) - _SHOWN:,} more columns"] if len(left) > _SHOWN else [])


LABEL_KEYS = frozenset({*LABELS, "cls", "image/class/label", "fine_label"})
_USUAL = {IMAGE: ("image", "img", "picture", "photo", "jpg", "png"), SOUND: ("audio", "sound", "wav", "wave", "flac", "mp3")}
KINDS = {IMAGE: "image", SOUND: "audio"}
"""The kind of a feature of what a file holds, which names the feature, too."""
USUAL_RATE = 16000
"""The rate of sounds in Hz until their own is known."""
_WORDS = ("label", "class", "target", "categor")
_MOST_NAMED = 6


def last_of(key: str) -> str:
    """Last part of a key, without the pattern for numbers; a usual key of labels with slashes, as in `tf.Example`, stays whole."""
    name = key.lower().removesuffix("*").rstrip("-_:/.")
    return name if name in LABEL_KEYS else re.split(r"[/.]", name)[-1]


def chosen_among(keys: Sequence[str], argument: str = "key", what: str = IMAGE) -> tuple[str, list[str]]:
    """Chooses the key of the images or sounds: the first with a usual name, else the first; and writes comments on how to read others.

    `argument` of a feature names a key.
    """
    named, kind = ((key, re.split(r"[/._\-*]", key.lower())) for key in keys), KINDS[what]
    chosen = next((key for key, parts in named if any(part in _USUAL[what] for part in parts)), keys[0])
    others = [key for key in keys if key != chosen]
    if not others:
        return chosen, []
    name = re.sub(r"\W+", "_", last_of(others[0])).strip("_") or "other"
    added = f"`{name if name != kind else 'other'}: {flow({'kind': kind, argument: plain(others[0])})}`"
    are = f"is {'an image' if what == IMAGE else 'a sound'}" if len(others) == 1 else f"are {what}s"
    return chosen, [f"`{kind}` reads `{chosen}`; {_listed(others)} {are}, too: {added} adds one"]


@dataclass(frozen=True)
class Values:
    """The number of different values of a key (0 if they are not labels), and of records examined; whether the values are names."""

    distinct: int
    rows: int
    named: bool

    @property
    def likely(self) -> bool:
        """True if they look like classes: few, each in several records."""
        return 1 < self.distinct <= min(_MOST_CLASSES, self.rows // 2)


def label_among(seen: Mapping[str, Values], usual: Collection[str], argument: str = "key") -> tuple[str | None, list[str]]:
    """Chooses the key of the labels: one with a usual name, else one that looks like classes, names before numbers; writes comments, too.

    `seen` has the values of the keys that may be labels, if they were examined; `argument` of a feature names a key.
    """
    likely = [key for key, values in seen.items() if values.likely]
    if usual:
        chosen = next((key for key in usual if key in likely), next(iter(usual)))
        others = [key for key in usual if key != chosen]
        return chosen, [f"`label` reads `{chosen}`; {_listed(others)} may be labels, too"] if others else []
    if not likely:
        return None, []
    chosen = min(likely, key=lambda key: (not any(word in key.lower() for word in _WORDS), not seen[key].named, seen[key].distinct))
    others = [key for key in likely if key != chosen]
    counted = f"{seen[chosen].distinct:,} values in {seen[chosen].rows:,} records"
    said = f"`label` reads `{chosen}`, which has {counted}; no key has a usual name of labels"
    return chosen, [said, *([f"{_listed(others)} may be labels, too; choose one with `{argument}`"] if others else [])]


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MOST_NAMED
    return " and ".join([", ".join(f"`{key}`" for key in keys[:_MOST_NAMED]), *([f"{more:,} more"] if more > 0 else [])])
