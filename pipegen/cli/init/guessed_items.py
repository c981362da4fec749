"""Boxes, keypoints and labels of boxes for a first spec: guessed from names of keys, and tried on the data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipegen.cli.init.guessed_columns import IMAGE, KINDS, USUAL_RATE
from pipegen.errors import OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.records.messages import LAYOUTS, MessageSource, laid_out

if TYPE_CHECKING:
    Lists = Callable[["Features"], Listing]

Features = dict[str, dict[str, Any]]  # features of a source by name, with their arguments
FORMATS = ("rel_xyxy", "rel_yxyx", "xyxy", "xywh", "yxyx")
"""Formats of boxes, in the order in which they are chosen: `xywh` fits almost all boxes."""
_BOXES = re.compile(r"(?:^|[/._])b?(?:ound(?:ing)?_?)?box(?:es)?$", re.IGNORECASE)
_SIDES = {
    ("xmin", "ymin", "xmax", "ymax"): "xyxy", ("x_min", "y_min", "x_max", "y_max"): "xyxy", ("x1", "y1", "x2", "y2"): "xyxy",
    ("left", "top", "right", "bottom"): "xyxy", ("x", "y", "w", "h"): "xywh", ("x", "y", "width", "height"): "xywh",
}  # fmt: skip
"""Ends of four keys of boxes, and what formats of these end with."""
_NAMES = ("text", "name")
_WORDS = ("label", "class", "target", "categor", *_NAMES)
_MIRRORED = ("left", "right")
_LEAST_POINTS = 2
_ARRAY = ".npy"
OBJECTS = "object_detection"


def fields_of(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a value, of JSON text too, with their paths as keys; the value itself if it has none."""
    if isinstance(value, (str, bytes)) and value[:1] in ("{", "[", b"{", b"["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    first = next(iter(value), None) if isinstance(value, (list, tuple)) else value
    if not isinstance(first, dict):
        yield key, value
        return
    for name, inner in first.items():
        for path, found in fields_of(f"{key}.{name}", inner):
            yield path, found if first is value else [found]


def boxes_among(keys: Sequence[str], several: str) -> tuple[dict[str, Any], list[str]]:
    """Guesses the keys of boxes, one or four, as arguments of a feature (empty without any), and likely keys of a label of each.

    `several` is the argument for four keys.
    """
    known = set(keys)
    fours = (([key[: len(key) - len(sides[0])] + side for side in sides] for key in keys if key.endswith(sides[0])) for sides in _SIDES)
    four = next((found for each in fours for found in each if known.issuperset(found)), None)
    one = next((key for key in keys if _BOXES.search(key.removesuffix(_ARRAY))), None)
    if four is None and one is None:
        return {}, []
    found = {several: four} if four is not None else {several.rstrip("s"): one}
    folder = re.sub(r"[^/.]*$", "", re.sub(r"[/._]*[^/._]*$", "", four[0]) if four is not None else (one or "").removesuffix(_ARRAY))
    near = [key for key in keys if key.startswith(folder) and any(word in key[len(folder) :].lower() for word in _WORDS)]
    return found, sorted(near, key=lambda key: (any(word in key for word in _NAMES), len(key)))


def boxed(
    lists: Lists, features: Features, keys: Sequence[str], argument: str = "key", formats: Sequence[str] = FORMATS
) -> tuple[Features, list[str]]:
    """Describes the boxes of a source, and a label of each, by the first format that fits; empty if none does.

    Returns the features, and remarks: the other formats that fit, or what does not.

    Args:
        lists: Lists the records with some features.
        features: The features that are known.
        keys: Keys, or columns, that may be boxes or labels.
        argument: The argument of a feature that names one.
        formats: Formats to try.
    """
    found, near = boxes_among(keys, f"{argument}s")
    four = found.get(f"{argument}s")
    named = next((form for sides, form in _SIDES.items() if four and all(map(str.endswith, four, sides))), "")
    formats = [form for form in formats if found and form.removeprefix("rel_").startswith(named)]
    tried = [{"labels": {"kind": "label", "with": "boxes", **({argument: key} if key != "labels" else {})}} for key in near]
    keyed = {name: value for name, value in found.items() if (name, value) != (argument, "boxes")}
    fitting: list[Features] = []
    problem: Exception | None = None
    for more, form in product([*tried, {}], formats):
        guess: Features = {"boxes": {"kind": "boxes", "format": form, **keyed}, **more}
        if fitting and more != {name: own for name, own in fitting[0].items() if name != "boxes"}:
            break
        try:
            lists(features | guess)
            fitting.append(guess)
        except (OpError, OSError, ValueError) as error:
            problem = error
    if not fitting:
        said = problem.message if isinstance(problem, OpError) else problem
        return {}, [f"The boxes are not read: {said}"] if found else []
    others = ", ".join(f"`{guess['boxes']['format']}`" for guess in fitting[1:])
    remarks = [f"The boxes fit `{fitting[0]['boxes']['format']}`, but also {others}: look at `pipegen preview`"] if others else []
    return fitting[0], remarks


def keys_read(features: Features, argument: str = "key") -> set[str]:
    """Returns the keys, or columns, that features are read from."""
    return {key for name, feature in features.items() for key in feature.get(f"{argument}s", [feature.get(argument, name)])}


def features_of(held: str, label: str | None, argument: str = "key", more: Mapping[str, int] | None = None, what: str = IMAGE) -> Features:
    """Makes the features of a source, with `more` arguments of the image, or of the sound; `argument` names a key that is not the feature's
    own name."""
    keys = {KINDS[what]: held, **({"label": label} if label is not None else {})}
    features: Features = {name: {"kind": name, **({argument: key} if key != name else {})} for name, key in keys.items()}
    features[KINDS[what]] |= more or ({} if what == IMAGE else {"rate": USUAL_RATE})
    return features


def listed(op: str, arguments: Mapping[str, Any], base: str, features: Features) -> Listing:
    """Lists the records of a source; for errors see `Source.list`."""
    return sources()[op].model_validate({**arguments, "features": features}).list(Path(base).absolute())


def with_classes(lists: Lists, features: Features, keys: Sequence[str], argument: str = "key") -> tuple[Features, Listing]:
    """Adds the classes of the labels of boxes if these are numbers, and the offset: their names if those are stored, else their number.

    Returns the listing of the features, too. The arguments are those of `boxed`.
    """
    listing = lists(features)
    classes, values = listing.classes.get("labels", ()), cast("Any", listing.columns.get("labels"))
    if not classes or not all(name.isdecimal() for name in classes):
        return features, listing
    numbers = values.values.tolist()
    offset = {"offset": 1} if 0 not in numbers else {}
    found: Any = len(classes) - len(offset)
    for key in boxes_among(keys, f"{argument}s")[1]:
        if isinstance(found, int) and any(word in key for word in _NAMES):
            with suppress(OpError, OSError, ValueError):
                named = lists(features | {"labels": {"kind": "label", "with": "boxes", argument: key}})
                texts = named.classes["labels"]
                pairs = dict(zip(numbers, (texts[i] for i in cast("Any", named.columns["labels"]).values.tolist()), strict=True))
                if sorted(pairs) == list(range(len(offset), len(classes))) and len({*pairs.values()} - {*classes}) == len(pairs):
                    found = [pairs[number] for number in sorted(pairs)]
    if isinstance(found, int) and not offset:
        return features, listing
    return features | {"labels": features["labels"] | {"classes": found, **offset}}, listing


def by_layout(op: str, features: Features) -> tuple[dict[str, str], Features]:
    """Writes the features of detection records by their `layout`, as an argument of the source and the features that differ from it."""
    known = LAYOUTS[OBJECTS]
    if not issubclass(sources()[op], MessageSource) or not known.keys() <= features.keys() or known["boxes"] != features["boxes"]:
        return {}, features
    rest: Features = {}
    for name, feature in features.items():
        usual = known.get(name, {})
        own = {key: value for key, value in feature.items() if key == "kind" or usual.get(key) != value}
        rest |= {name: own} if own.keys() != {"kind"} or not usual else {}
    return ({"layout": OBJECTS}, rest) if laid_out(OBJECTS, rest) == features else ({}, features)


def points_among(columns: Sequence[str]) -> dict[str, Any]:
    """Guesses named keypoints in columns such as `nose_x` and `nose_y`, as arguments of a feature; empty without any."""
    known = set(columns)
    names = [column[:-2] for column in columns if column.endswith("_x") and column[:-2] and f"{column[:-2]}_y" in known]
    if len(names) < _LEAST_POINTS:
        return {}
    mirrored = [(name, name.replace(*_MIRRORED)) for name in names if _MIRRORED[0] in name]
    pairs = [list(pair) for pair in mirrored if pair[1] in names]
    seen = {name: [f"{name}_{part}" for part in "xyv" if f"{name}_{part}" in known] for name in names}
    parts = 3 if all(len(own) == 3 for own in seen.values()) else 2
    read = [column for own in seen.values() for column in own[:parts]]
    return {"kind": "keypoints", "columns": read, "names": names, "mirror_pairs": pairs}
