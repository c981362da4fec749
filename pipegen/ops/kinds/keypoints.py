"""Keypoints: named places on an image, such as the joints of a body, or any number of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError, PartError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.geometry import PointRules, swapped_places
from pipegen.ops.fields.columns import Column, Place, Ragged, most_items
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import read_ragged
from pipegen.ops.kinds.base import FAR, HORIZON, SUBPIXELS, FeatureKind, Geometry
from pipegen.ops.lowering.exif import TURNS, turned_points
from pipegen.ops.lowering.pictures import dotted
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Items, Size

_SHAPES = ((2,), (3,))


class PointGeometry(Geometry):
    """Points go where their pixel goes; with names, a mirror image swaps the pairs."""

    guide = "points"

    def turned(self, items: Any, orientation: int, sides: Any, x: FeatureType) -> Any:
        rules = x.details
        places = np.asarray(items[..., :2], np.float64)
        limits = np.ones_like(sides) if rules.relative else sides - 1  # type: ignore[attr-defined]
        found = np.concatenate([turned_points(places, orientation, limits), items[..., 2:]], -1)
        found = np.where(items[..., 2:] > 0, found, 0)
        transposes, mirrored = TURNS[orientation]
        mirrors = (transposes + len(mirrored)) % 2 == 1
        if mirrors and isinstance(rules, PointRules) and rules.swaps:
            sets = found if rules.each else found.reshape(-1, len(rules.names), 3)
            found = sets[:, list(rules.swaps)].reshape(found.shape)
        return found.astype(items.dtype)

    def joins(self, x: FeatureType) -> bool:
        """Allows keypoints without names: with names, an image has one of each."""
        return isinstance(x.details, PointRules) and not x.details.names

    def prepared_type(self, x: FeatureType) -> FeatureType:
        return x.with_(details=replace(x.details, relative=False))  # type: ignore[type-var]

    def prepare(self, items: tf.Tensor, size: Size, details: Any) -> Items:
        places = tf.cast(items[..., :2], tf.float64)
        if details.relative:
            places = places * tf.cast(tf.stack(size[::-1]), tf.float64) - 0.5
        return _kept(places, items[..., 2] > 0, items[..., 2], size, details)

    def guide_boxes(self, items: tf.Tensor, there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shape = tf.shape(items)
        own = tf.reshape(there, tf.concat([tf.shape(there), [1] * (items.shape.rank - 3)], 0)) & (items[..., 2] > 0)
        first = tf.reshape(tf.floor(tf.cast(items[..., :2], tf.float64) + 0.5), [shape[0], -1, 2])
        return tf.concat([first, first + 1.0], -1), tf.reshape(own, [shape[0], -1])

    def move(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> Items:
        m = tf.reshape(matrix, [-1, *([1] * (items.shape.rank - 2)), 3, 3])
        px, py = (tf.cast(items[..., i], tf.float64) for i in (0, 1))
        x, y, w = (m[..., i, 0] * px + m[..., i, 1] * py + m[..., i, 2] for i in range(3))
        seen = w >= HORIZON
        w = tf.where(seen, w, tf.ones_like(w))
        places = tf.round(tf.stack([x / w, y / w], -1) * SUBPIXELS) / SUBPIXELS
        seen &= (items[..., 2] > 0) & tf.reduce_all(tf.abs(places) < FAR, -1)
        places, kept = _kept(places, seen, items[..., 2], after, details)
        if details.swaps and details.swaps != tuple(range(len(details.swaps))):
            mirrored = tf.reshape(tf.linalg.det(matrix) < 0, [-1, *([1] * (items.shape.rank - 1))])
            places = tf.where(mirrored, tf.gather(places, details.swaps, axis=-2), places)
        return places, kept

    def clip(self, items: tf.Tensor, window: tf.Tensor, shift: tf.Tensor, details: Any, *, outside: bool) -> Items:
        ones = [1] * (items.shape.rank - 2)
        places = tf.cast(items[..., :2], tf.float64) + tf.reshape(shift[:, ::-1], [-1, *ones, 2])
        top, left, bottom, right = (tf.reshape(window[:, i], [-1, *ones]) - 0.5 for i in range(4))
        x, y = places[..., 0], places[..., 1]
        inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
        seen = (items[..., 2] > 0) & (~inside if outside else inside)
        return _points(places, seen, items[..., 2], details)

    def drop_hidden(self, items: tf.Tensor, hidden: Callable[[tf.Tensor], tf.Tensor], details: Any) -> Items:
        places = tf.cast(items[..., :2], tf.float64)
        return _points(places, (items[..., 2] > 0) & ~hidden(places), items[..., 2], details)

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        own = x.details.names if isinstance(x.details, PointRules) else ()
        points = np.asarray(value).reshape(-1, 3)
        return dotted(image, points, (*own,) * (len(points) // len(own)) if own else names)

    def described(self, items: Any, x: FeatureType) -> Any:
        def point(row: Any) -> list[float]:
            return [round(float(row[0]), 2), round(float(row[1]), 2), int(row[2])]

        names = x.details.names if isinstance(x.details, PointRules) else ()
        if not names:
            return [point(row) for row in items]
        sets = [dict(zip(names, map(point, rows), strict=True)) for rows in items.reshape(-1, len(names), 3)]
        return sets if x.beside is not None else sets[0]


class Keypoints(FeatureKind):
    """Places on an image, `(x, y, visibility)` each: (0, 0) is the centre of the first pixel; the visibility is 0 for absent, 1 for hidden
    and 2 for visible. With `names` each image has one of each, or each box of a feature that it is `with`.
    """

    name = "keypoints"
    plural = "keypoints"
    arguments = ("of", "columns", "shape", "names", "mirror_pairs", "outside")
    storage = "ragged"
    geometry = PointGeometry()

    def check(self, name: str, feature: Any) -> None:
        names, pairs = feature.names or (), feature.mirror_pairs or ()
        if feature.home is not None and not names:
            raise PartError(f"`{name}` is `with: {feature.home}`, and needs the `names` of each item's keypoints", name, "with")
        if getattr(feature, "shape", None) not in (None, *_SHAPES):
            raise PartError("`shape` of keypoints is `[2]`, x and y of each point, or `[3]`, with the visibility", name, "shape")
        if names and getattr(feature, "shape", None) is not None:
            raise PartError(f"`shape` is for keypoints without `names`, and `{name}` has some", name, "shape", help="remove `shape`")
        check_names(names, pairs, f" of `{name}`", name)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (keypoints_type(feature.of or "image", rules_of(feature), home=feature.home),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        rules = rules_of(feature)
        items = self._checked(read_ragged(name, given, None, place), rules, name, place)
        return Column(items, keypoints_type(feature.of or "image", rules, most=most_items(items), home=feature.home))

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        names, sets = len(feature.names or ()), 1 if items is None else items
        shape: tuple[int, ...] | None = getattr(feature, "shape", None)
        if not names and shape is not None:
            if numbers % shape[0]:
                raise ValueError(f"it has {count(numbers, 'number')}, which is no multiple of {shape[0]}")
            return shape
        if not names and numbers:
            raise ValueError("points without `names` need `shape: [2]`, x and y one after another, or `[3]`, with the visibility")
        width = numbers // (sets * names) if sets and names else 3
        if width not in (2, 3) or width * sets * names != numbers:
            raise ValueError(f"it has {count(numbers, 'number')} for {count(sets * names, 'point')}, which have 2 or 3 each")
        return (names, width) if items is not None else (width,)

    def _checked(self, items: Ragged, rules: PointRules, name: str, place: Place) -> Ragged:
        """Checks points, and returns them as float32 with a visibility; `PG256` if they are none."""
        values, lengths = np.asarray(items.values, np.float32), np.asarray(items.lengths, np.int64)
        inner = (len(rules.names),) if rules.each else ()
        if not len(values):
            values = np.zeros((0, *inner, 3), np.float32)
        if values.shape[1:-1] != inner or values.shape[-1] not in (2, 3):
            expected = "".join(f"{side}, " for side in ("items", *inner))
            message = f"`{name}` has the shape (…, {', '.join(map(str, values.shape[1:]))}) for each item"
            raise OpError("PG256", message, help=f"give `({expected}2)` for each image: x and y, or `({expected}3)` with the visibility")
        if values.shape[-1] == 2:
            values = np.concatenate([values, np.full_like(values[..., :1], 2)], -1)
        if rules.names and not rules.each:
            odd = np.flatnonzero(lengths != len(rules.names))
            if len(odd):
                message = f"{place(int(odd[0]))} has {int(lengths[odd[0]])} keypoints, but `names` has {len(rules.names)}"
                raise OpError("PG256", message, help="give each image one of every name, with a visibility of 0 for absent ones")
        seen = values[..., 2]
        wrong = (~np.isin(seen, (0, 1, 2))).reshape(len(values), int(np.prod(inner))).any(1)
        if wrong.any():
            other = float(seen[~np.isin(seen, (0, 1, 2))][0])
            message = f"{place(items.place(int(np.argmax(wrong)))[0])} has a keypoint of visibility {other:g}"
            raise OpError("PG256", message, help="use 0 for absent, 1 for hidden and 2 for visible")
        return Ragged(np.where(values[..., 2:] > 0, values, np.float32(0)), lengths)

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        rules: PointRules = x.details  # type: ignore[assignment]
        pairs = [[rules.names[a], rules.names[b]] for a, b in enumerate(rules.swaps) if a < b]
        found: dict[str, Any] = {"names": list(rules.names)} if rules.names else {}
        found |= {"mirror_pairs": pairs} if pairs else {}
        return found | ({"outside": rules.outside} if rules.outside != "remove" else {})


def check_names(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...], of: str, *path: str) -> None:
    """Raises `PartError`, below `path`, for a name that is listed twice, and for pairs of other names."""
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise PartError(f"duplicate keypoint name `{twice}` in `names`{of}", *path, "names")
    paired = [n for pair in pairs for n in pair]
    unknown = next((n for n in paired if n not in names), None)
    if unknown is not None:
        known = f"it has {', '.join(f'`{n}`' for n in names)}" if names else "give `names` first"
        raise PartError(f"`mirror_pairs`{of} has `{unknown}`, which is not in `names`", *path, "mirror_pairs", help=known)
    twice = next((n for n in paired if paired.count(n) > 1), None)
    if twice is not None:
        raise PartError(f"`mirror_pairs`{of} has `{twice}` twice, but a keypoint has one mirror image", *path, "mirror_pairs")


def rules_of(feature: Any) -> PointRules:
    """Makes the rules of keypoints from the arguments of a feature."""
    names = feature.names or ()
    swaps = swapped_places(names, feature.mirror_pairs or ())
    return PointRules(names, swaps, feature.outside or "remove", feature.home is not None)


def keypoints_type(of: str, rules: PointRules, *, most: int = 0, home: str | None = None) -> FeatureType:
    """Returns the type of keypoints on the image `of`; `most` is the most items that a record has, 0 if unknown."""
    if rules.each:
        return FeatureType("keypoints", "float32", (None, len(rules.names) or None, 3), of=of, most=0, beside=home, details=rules)
    return FeatureType("keypoints", "float32", (None, 3), of=of, most=len(rules.names) or most, details=rules)


def _kept(places: tf.Tensor, seen: tf.Tensor, visibility: tf.Tensor, size: Size, rules: PointRules) -> tuple[tf.Tensor, tf.Tensor]:
    """Hides points outside the image if the rules ask for it; returns float32 and a mask of the items to keep."""
    if rules.outside == "remove":
        height, width = (tf.cast(side, tf.float64) for side in size)
        seen &= tf.reduce_all((places >= -0.5) & (places < tf.stack([width, height]) - 0.5), -1)
    return _points(places, seen, visibility, rules)


def _points(places: tf.Tensor, seen: tf.Tensor, visibility: tf.Tensor, rules: PointRules) -> tuple[tf.Tensor, tf.Tensor]:
    """Zeroes invisible points; returns a mask of the items to keep, too: all if they have names."""
    points = tf.concat([tf.cast(places, tf.float32), visibility[..., None]], -1)
    kept = tf.ones(tf.shape(seen)[:2], tf.bool) if rules.names else seen
    return tf.where(seen[..., None], points, tf.zeros_like(points)), kept
