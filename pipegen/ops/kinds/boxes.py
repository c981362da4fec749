"""Boxes: any number of upright rectangles on an image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.geometry import BoxFormat, BoxRules
from pipegen.ops.fields.columns import Column, Place, Ragged, most_items
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import read_ragged
from pipegen.ops.kinds.base import FAR, HORIZON, SUBPIXELS, FeatureKind, Geometry
from pipegen.ops.lowering.exif import turned_points
from pipegen.ops.lowering.pictures import outlined
from pipegen.types import FeatureType

if TYPE_CHECKING:
    from pipegen.ops.kinds.base import Items, Size


class BoxGeometry(Geometry):
    """Boxes become the least upright boxes around the moved ones, cut to the image."""

    guide = "boxes"
    formats = get_args(BoxFormat)

    def joins(self, x: FeatureType) -> bool:
        return True

    def prepared_type(self, x: FeatureType) -> FeatureType | None:
        rules: BoxRules = x.details  # type: ignore[assignment]
        return None if rules.format is None else x.with_(details=replace(rules, format=None, empty="allow"))  # both have been applied

    def prepare(self, items: tf.Tensor, size: Size, details: Any) -> Items:
        boxes = tf.cast(_as_xyxy(tf, items, details.format), tf.float64)
        return _kept(boxes * _limits(size) if details.format.startswith("rel_") else boxes, size, details)

    def guide_boxes(self, items: tf.Tensor, there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.cast(items, tf.float64), there

    def move(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> Items:
        return _kept(_seen_around(tf.cast(items, tf.float64), matrix), after, details)

    def move_affinely(self, items: tf.Tensor, matrix: tf.Tensor, before: Size, after: Size, details: Any) -> Items:
        return _kept(_around(tf.cast(items, tf.float64), matrix), after, details)

    def displace(self, items: tf.Tensor, shown: Callable[[tf.Tensor], tf.Tensor], size: Size, details: Any) -> Items:
        border = tf.constant(_BORDER, tf.float64)
        boxes = tf.cast(items, tf.float64)[:, :, None] - 0.5
        points = boxes[..., :2] + (boxes[..., 2:] - boxes[..., :2]) * border
        n, most, count = (tf.shape(points)[i] for i in range(3))
        places = tf.reshape(shown(tf.reshape(points, [n, most * count, 2])), [n, most, count, 2])
        edges = tf.concat([tf.reduce_min(places, 2), tf.reduce_max(places, 2)], -1) + 0.5
        return _kept(tf.round(edges * SUBPIXELS) / SUBPIXELS, size, details)

    def clip(self, items: tf.Tensor, window: tf.Tensor, shift: tf.Tensor, details: Any, *, outside: bool) -> Items:
        boxes = tf.cast(items, tf.float64) + tf.gather(shift, [1, 0, 1, 0], axis=1)[:, None]
        top, left, bottom, right = (window[:, None, i] for i in range(4))
        lows, highs = tf.stack([left, top], -1), tf.stack([right, bottom], -1)
        shared = tf.concat([tf.maximum(boxes[..., :2], lows), tf.minimum(boxes[..., 2:], highs)], -1)
        covered = _area(shared)
        if not outside:
            return tf.cast(shared, tf.float32), _large_enough(shared, covered, _area(boxes), details)
        # A window makes a box smaller only if it spans one of its sides.
        x0, y0, x1, y1 = tf.unstack(boxes, axis=-1)
        spans_x, spans_y = (left <= x0) & (right >= x1), (top <= y0) & (bottom >= y1)
        x0, x1 = (
            tf.where(spans_y & (left <= x0), tf.maximum(x0, tf.minimum(right, x1)), x0),
            tf.where(spans_y & (right >= x1), tf.minimum(x1, tf.maximum(left, x0)), x1),
        )
        y0, y1 = (
            tf.where(spans_x & (top <= y0), tf.maximum(y0, tf.minimum(bottom, y1)), y0),
            tf.where(spans_x & (bottom >= y1), tf.minimum(y1, tf.maximum(top, y0)), y1),
        )
        left_over = tf.stack([x0, y0, x1, y1], -1)
        untouched = covered <= 0
        left_over = tf.where(untouched[..., None], boxes, left_over)
        whole = _area(boxes)
        kept = _large_enough(left_over, whole - covered, whole, details)
        return tf.cast(left_over, tf.float32), kept

    def clip_covered(self, items: tf.Tensor, edges: tf.Tensor, moved: tf.Tensor, share: tf.Tensor, details: Any) -> Items:
        boxes = tf.cast(items, tf.float64)
        whole = _area(boxes)
        boxes = tf.where(moved, edges, boxes)
        kept = _large_enough(boxes, whole * share, whole, details) & tf.reduce_all(boxes[..., 2:] > boxes[..., :2], -1)
        return tf.cast(boxes, tf.float32), kept

    def turned(self, items: Any, orientation: int, sides: Any, x: FeatureType) -> Any:
        form = x.details.format or "xyxy"  # type: ignore[attr-defined]
        corners = _as_xyxy(np, np.asarray(items, np.float64), form)
        limits = np.ones_like(sides) if form.startswith("rel_") else sides
        found = np.concatenate([turned_points(corners[:, :2], orientation, limits), turned_points(corners[:, 2:], orientation, limits)], -1)
        x0, x1 = np.sort(found[:, [0, 2]], -1).T
        y0, y1 = np.sort(found[:, [1, 3]], -1).T
        return np.stack(_parts(x0, y0, x1, y1, form), -1).astype(items.dtype)

    def to_format(self, items: tf.Tensor, form: str, size: tuple[int, int] | None) -> tf.Tensor:
        x0, y0, x1, y1 = tf.unstack(tf.cast(items, tf.float64), axis=-1)
        if form.startswith("rel_") and size is not None:
            x0, y0, x1, y1 = x0 / size[1], y0 / size[0], x1 / size[1], y1 / size[0]
        return tf.cast(tf.stack(_parts(x0, y0, x1, y1, form), -1), tf.float32)

    def limit(self, x: FeatureType) -> int | None:
        return x.details.most if isinstance(x.details, BoxRules) else None

    def weight(self, items: tf.Tensor) -> tf.Tensor:
        return tf.cast(_area(tf.cast(items, tf.float64)), tf.float32)

    def draw(self, image: Any, value: Any, x: FeatureType, names: Sequence[str] = ()) -> Any:
        return outlined(image, value, names)

    def described(self, items: Any, x: FeatureType) -> Any:
        return [[round(float(v), 6 if x.form.startswith("rel_") else 2) for v in box] for box in items]


class Boxes(FeatureKind):
    """Upright rectangles, any number on each image. Edges are counted from 0, the left edge of the first pixel, to the width of the image,
    the right edge of the last one.
    """

    name = "boxes"
    plural = "boxes"
    arguments = ("of", "keys", "columns", "format", "max", "min_area", "min_visibility", "min_size", "empty")
    storage = "ragged"
    geometry = BoxGeometry()
    numbers = 4

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        return (boxes_type(feature.of or "image", feature.box_rules()),)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        rules = feature.box_rules()
        items = self._checked(read_ragged(name, given, (4,), place), rules, name, place)
        return Column(items, boxes_type(feature.of or "image", rules, most=most_items(items)))

    def item_shape(self, feature: Any, numbers: int, items: int | None) -> tuple[int, ...]:
        if numbers % 4:
            raise ValueError(f"it has {count(numbers, 'number')}, which is no multiple of 4")
        return (4,)

    def _checked(self, items: Ragged, rules: Any, name: str, place: Place) -> Ragged:
        """Checks boxes, and returns them as float32; `PG250` if they are none, `PG251` if there are none but must be some."""
        values = np.asarray(items.values, np.float32).reshape(-1, 4)

        def at(wrong: Any) -> str:
            item = int(np.argmax(wrong))
            row, number = items.place(item)
            return f"{place(row)}: box {number} is [{', '.join(f'{v:g}' for v in values[item])}]"

        wrong = ~np.isfinite(values).all(1)
        if wrong.any():
            raise OpError("PG250", f"{at(wrong)}, not four finite numbers", help="leave such boxes out")
        relative, highest = rules.format.startswith("rel_"), float(np.abs(values).max(initial=0))
        wrong = _negative(np, values, rules.format)
        if wrong.any():
            message = f"{at(wrong)}, which as `{rules.format}` has a width or a height below 0; so {'has' if wrong.sum() == 1 else 'have'}"
            message = f"{message} {int(wrong.sum())}"
            fits = [f for f in BoxGeometry.formats if f.startswith("rel_") == (highest <= 1 or (relative and highest <= _RELATIVE_MOST))]
            fits = [f for f in fits if f != rules.format and not _negative(np, values, f).any()]
            help_ = f"set their `format`: they could be `{'` or `'.join(fits)}`" if fits else "correct such boxes, or leave them out"
            raise OpError("PG250", f"{message} of {len(values):,} boxes", field="format", help=help_)
        message, fit = "", ""
        if relative and highest > _RELATIVE_MOST:
            fit = rules.format.removeprefix("rel_")
            message = f"{at(np.abs(values).max(1) == highest)}, but a `{rules.format}` box is in parts of the image, from 0 to 1"
        elif not relative and 0 < highest <= 1:
            fit = f"rel_{rules.format}"
            message = f"no number of `{name}` is above 1, so the boxes seem to be parts of the image, but `{rules.format}` is in pixels"
        if fit:
            raise OpError("PG250", message, field="format", help=f"set their `format`: it could be `{fit}`")
        if rules.empty == "refuse" and not np.all(items.lengths):
            bare = np.flatnonzero(np.asarray(items.lengths) == 0)
            message = f"{place(int(bare[0]))} has no boxes, like {len(bare) - 1} others, but `empty: refuse` requires one on each image"
            raise OpError("PG251", message, field="empty", help=write("empty: allow", "arguments", "leave such images out, or write {}"))
        return Ragged(values, np.asarray(items.lengths, np.int64))

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        rules: BoxRules = x.details  # type: ignore[assignment]
        kept = {"min_area": rules.min_area, "min_visibility": rules.min_visibility, "min_size": rules.min_size}
        return {name: value for name, value in ({"max": rules.most} | kept).items() if value}


def boxes_type(of: str, rules: BoxRules, *, most: int = 0) -> FeatureType:
    """Returns the type of boxes on the image `of`; `most` is the most that a record has, 0 if unknown."""
    return FeatureType("boxes", "float32", (None, 4), of=of, most=most, details=rules)


_SIDE = 16
_BORDER = [point for i in range(_SIDE) for point in ((i / _SIDE, 0.0), (1.0, i / _SIDE), (1.0 - i / _SIDE, 1.0), (0.0, 1.0 - i / _SIDE))]
"""Points on the border of a box, as parts of its sides, that are moved by a displacement field."""

_RELATIVE_MOST = 2.0  # largest plausible coordinate in parts of an image


def _parts(x0: Any, y0: Any, x1: Any, y1: Any, form: str) -> tuple[Any, Any, Any, Any]:
    """Converts edges to a format; relative ones stay relative."""
    parts = {
        "xyxy": (x0, y0, x1, y1), "yxyx": (y0, x0, y1, x1), "xywh": (x0, y0, x1 - x0, y1 - y0),
        "center_xywh": ((x0 + x1) / 2.0, (y0 + y1) / 2.0, x1 - x0, y1 - y0),
    }  # fmt: skip
    return parts[form.removeprefix("rel_")]


def _as_xyxy(library: Any, boxes: Any, form: str) -> Any:
    """Converts boxes of a format to left, top, right and bottom edge, by NumPy or TensorFlow; relative ones stay relative."""
    a, b, c, d = tf.unstack(boxes, axis=-1) if library is tf else (boxes[..., i] for i in range(4))
    parts = {
        "xyxy": (a, b, c, d), "yxyx": (b, a, d, c), "xywh": (a, b, a + c, b + d),
        "center_xywh": (a - c / 2, b - d / 2, a + c / 2, b + d / 2),
    }  # fmt: skip
    return library.stack(parts[form.removeprefix("rel_")], -1)


def _negative(np: Any, values: Any, form: str) -> Any:
    corners = _as_xyxy(np, values, form)
    return (corners[:, 2] < corners[:, 0]) | (corners[:, 3] < corners[:, 1])


def _area(boxes: tf.Tensor) -> tf.Tensor:
    left, top, right, bottom = tf.unstack(boxes, axis=-1)
    return tf.maximum(right - left, 0.0) * tf.maximum(bottom - top, 0.0)


def _limits(size: Size) -> tf.Tensor:
    """Returns the largest `xyxy` on an image, float64 `(4,)`."""
    height, width = (tf.cast(side, tf.float64) for side in size)
    return tf.stack([width, height, width, height])


def _kept(boxes: tf.Tensor, size: Size, rules: BoxRules) -> tuple[tf.Tensor, tf.Tensor]:
    """Clips boxes, float64 `xyxy`, to an image; returns float32 and a mask of those to keep."""
    clipped = tf.clip_by_value(boxes, tf.zeros([], tf.float64), _limits(size))
    return tf.cast(clipped, tf.float32), _large_enough(clipped, _area(clipped), _area(boxes), rules)


def _large_enough(boxes: tf.Tensor, seen: tf.Tensor, whole: tf.Tensor, rules: BoxRules) -> tf.Tensor:
    """Selects the boxes to keep, by their areas `seen` of `whole` ones."""
    kept = seen > 0
    if rules.min_area:
        kept &= seen >= rules.min_area
    if rules.min_visibility:
        kept &= seen >= rules.min_visibility * whole
    if rules.min_size:
        kept &= tf.reduce_min(boxes[..., 2:] - boxes[..., :2], -1) >= rules.min_size
    return kept


def _around(boxes: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Returns the least upright boxes around boxes moved by affine matrices: float64 `(n, most, 4)`. The centre moves like a point; half a
    new side is the sum of both old halves in that direction."""
    by_x, by_y, shift = tf.unstack((matrix / matrix[:, 2:, 2:])[:, None, :2], axis=-1)
    low, high = tf.split(boxes - 0.5, 2, -1)  # for matrices, pixel centres lie at integers
    (x, y), (across, down) = tf.split((low + high) / 2.0, 2, -1), tf.split((high - low) / 2.0, 2, -1)
    centre = by_x * x + by_y * y + shift
    half = tf.abs(by_x) * across + tf.abs(by_y) * down
    return tf.round((tf.concat([centre - half, centre + half], -1) + 0.5) * SUBPIXELS) / SUBPIXELS


def _seen_around(boxes: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Like `_around`, for projective matrices, too. Sides that reach behind the viewer are clipped at the horizon."""
    x0, y0, x1, y1 = tf.unstack(boxes - 0.5, axis=-1)  # for matrices, pixel centres lie at integers
    corners = tf.stack([tf.stack([x0, x1, x1, x0], -1), tf.stack([y0, y0, y1, y1], -1)], -1)
    rows = matrix[:, None, None]
    x, y, w = (rows[..., i, 0] * corners[..., 0] + rows[..., i, 1] * corners[..., 1] + rows[..., i, 2] for i in range(3))
    points = tf.stack([x, y, w], -1)
    following = tf.roll(points, -1, axis=-2)
    before, after = points[..., 2:], following[..., 2:]
    crosses = (before >= HORIZON) != (after >= HORIZON)
    share = (before - HORIZON) / tf.where(crosses, before - after, tf.ones_like(before))
    points = tf.concat([points, points + share * (following - points)], -2)
    seen = tf.concat([before >= HORIZON, crosses], -2)
    places = tf.clip_by_value(points[..., :2] / tf.where(seen, points[..., 2:], tf.ones_like(points[..., 2:])), -FAR, FAR)
    low = tf.reduce_min(tf.where(seen, places, tf.fill(tf.shape(places), tf.constant(FAR, tf.float64))), -2)
    high = tf.reduce_max(tf.where(seen, places, tf.fill(tf.shape(places), tf.constant(-FAR, tf.float64))), -2)
    return tf.round((tf.concat([low, high], -1) + 0.5) * SUBPIXELS) / SUBPIXELS
