"""Stages on items such as boxes: they move with their image, by the inverse of the matrix that reads it, and are padded in batches."""

from __future__ import annotations

from functools import partial

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.index.combined_groups import partners_by, pasted_pixels
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels.geometry_kernels import geometric_matrix
from pipegen.ops.families import item_stages as st
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.crops import ChooseWindow, window_name
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.kinds.base import FAR, HORIZON, geometry_of, placement_of
from pipegen.ops.lowering.linear import multiply
from pipegen.ops.lowering.windows import onto
from pipegen.ops.stage import StepRef
from pipegen.ops.step_bases import GeometricTransform
from pipegen.plan import stages as s
from pipegen.types import valid_name

_ROUNDS = 24  # rounds of the search for a displaced point; each at least halves the error, which leaves 2^-24 of it
_VECTOR_ROUNDS = 12  # the same for the ends of vectors, one a pixel, of which 1/256 of a pixel is enough


def measure(stage: st.Measure, features: Features) -> None:
    """Stores the size of an image or of its file: int32 `(2,)`."""
    name, decode = stage.like
    stored = features[name]
    features[f"@size/{stage.feature}"] = tf.shape(stored)[:2] if decode is None else decode.step.stored_size(stored)


def move(stage: st.Move, features: Features) -> None:
    """Moves the items of a batch, of one example if image sizes are not static, in place: remaining ones in order, followed by zeros."""
    name, size = stage.feature, f"@size/{stage.feature}"
    items = features[name]
    before = _known(stage.canvas, features.get(size))
    matrix, after = _product(stage, features, before)
    if None not in stage.size:  # a turn swaps the sides
        after = _known(stage.size, None)
    features[size] = tf.broadcast_to(tf.stack(after), [tf.shape(items)[0], 2])
    geometry = geometry_of(stage.kind)
    moved = geometry.move if stage.projective else geometry.move_affinely
    keep_items(stage, features, *moved(items, _inverse(matrix), before, after, stage.details))


def bend(stage: st.Bend, features: Features) -> None:
    """Moves the items of a batch by the displacement field of a step on their image, in place."""
    name, draws = stage.feature, features["@draws"]
    size = _known(stage.canvas, features.get(f"@size/{stage.feature}"))
    moved = geometry_of(stage.kind).displace(features[name], partial(_displaced, _field(stage.refs[0], draws, size)), size, stage.details)
    features[f"@size/{name}"] = tf.broadcast_to(tf.stack(size), [tf.shape(features[name])[0], 2])
    keep_items(stage, features, *moved)


def turn(stage: s.Turn, features: Features) -> None:
    """Turns and scales the vectors of a batch, in place: from where the image shows a place to where it shows that at the vector's end. By
    matrices, the image is not moved yet; by a field, it is."""
    vectors, draws = features[stage.feature], features["@draws"]
    v, (n, height, width) = tf.cast(vectors, tf.float64), tf.unstack(tf.shape(vectors)[:3])
    begin = tf.cast(tf.stack(tf.meshgrid(tf.range(width), tf.range(height)), -1), tf.float64)
    if stage.displaced:
        field = _field(stage.refs[0], draws, (height, width))
        end = _displaced(field, tf.reshape(begin + field + v, [n, -1, 2]), _VECTOR_ROUNDS)
        turned = tf.reshape(end, tf.shape(vectors)) - begin
    else:
        m = _inverse(_product(stage, features, (height, width))[0])[:, None, None]
        # Without perspective, the place of a vector makes no difference.
        turned = _through(m, begin + v) - _through(m, begin) if stage.projective else _linear(m / m[..., 2:, 2:], v)
    features[stage.feature] = tf.ensure_shape(tf.cast(turned, vectors.dtype), vectors.shape)


def _linear(m: tf.Tensor, v: tf.Tensor) -> tf.Tensor:
    return tf.stack([m[..., i, 0] * v[..., 0] + m[..., i, 1] * v[..., 1] for i in (0, 1)], -1)


def _through(matrix: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    """Moves points, x and y, float64 `(..., 2)`, by matrices `(..., 3, 3)`; those behind the horizon go far away."""
    x, y, w = (matrix[..., i, 0] * points[..., 0] + matrix[..., i, 1] * points[..., 1] + matrix[..., i, 2] for i in range(3))
    return tf.clip_by_value(tf.stack([x, y], -1) / tf.maximum(w, HORIZON)[..., None], -FAR, FAR)


def _field(ref: StepRef, draws: tf.Tensor, size: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
    """Computes the displacement field of a step on images of a size, for `_displaced`."""
    step, n = step_of(ref.of(DisplacementTransform), draws), tf.shape(draws)[0]
    # The phases of such a step read only the size of the image.
    found, blank = step.parameters(own_draws(ref, draws), *size), tf.zeros([n, *size, 1], tf.uint8)
    for phase in step.phases():
        found = phase(blank, *found)
    field = tf.cast(tf.stack(found, -1), tf.float64) / 256.0
    return tf.where(acts(ref, draws)[:, None, None, None], field, 0.0) if ref.conditional else field


def _displaced(field: tf.Tensor, points: tf.Tensor, rounds: int = _ROUNDS) -> tf.Tensor:
    """Finds the positions of points after a displacement: x and y, float64 `(n, k, 2)`.

    A pixel p is read at p + d(p), so a point q moves to p with p + d(p) = q. Each round at least halves the error, as long as the image
    is nowhere compressed to less than a third.

    Args:
        field: The displacement to the right and down, float64 `(n, height, width, 2)`, in pixels.
        points: x and y, float64 `(n, k, 2)`.
        rounds: The number of rounds.
    """
    shape = tf.shape(field)
    most = tf.cast(tf.stack([shape[2], shape[1]]) - 1, tf.float64)
    flat = tf.reshape(field, [shape[0], -1, 2])

    def distance(at: tf.Tensor) -> tf.Tensor:
        inside = tf.clip_by_value(at, tf.zeros([], tf.float64), most)
        first = tf.minimum(tf.floor(inside), tf.maximum(most - 1.0, 0.0))
        part = inside - first
        x, y = tf.unstack(tf.cast(first, tf.int32), axis=-1)
        right, below = tf.minimum(x + 1, shape[2] - 1), tf.minimum(y + 1, shape[1] - 1)
        above, under = (
            tf.gather(flat, row * shape[2] + x, batch_dims=1) * (1.0 - part[..., :1])
            + tf.gather(flat, row * shape[2] + right, batch_dims=1) * part[..., :1]
            for row in (y, below)
        )
        return above * (1.0 - part[..., 1:]) + under * part[..., 1:]

    def closer(at: tf.Tensor) -> tuple[tf.Tensor]:
        return (tf.ensure_shape(at + 0.5 * (points - at - distance(at)), points.shape),)

    (found,) = tf.while_loop(lambda _: True, closer, (points,), maximum_iterations=rounds)
    return found


def enter(stage: st.Enter, features: Features) -> None:
    """Converts the items of a batch to the format that steps work on, in place."""
    size = _known(stage.canvas, features.get(f"@size/{stage.feature}"))
    keep_items(stage, features, *geometry_of(stage.kind).prepare(features[stage.feature], size, stage.details))


def choose_window(stage: ChooseWindow, features: Features) -> None:
    """Chooses the window of a crop by the items or the mask of one example, and drops boxes outside, in place."""
    step, u = step_of(stage.ref, features["@draws"]), own_draws(stage.ref, features["@draws"])
    if not stage.by_items():
        classes = tf.cast(features[stage.feature][..., 0], tf.int32)
        features[window_name(stage.ref)] = step.choose_by_pixels(u, classes, classes != stage.ignore)
        return
    height, width = _known(stage.canvas, features.get(f"@size/{stage.feature}"))
    geometry, valid = geometry_of(stage.kind), valid_name(stage.home or stage.feature)
    boxes, there = geometry.guide_boxes(features[stage.feature], features[valid])
    window, stays = step.choose(u, boxes, there, height, width)
    features[window_name(stage.ref)] = window
    if stage.ref.conditional:
        stays |= ~acts(stage.ref, features["@draws"])[:, None]
    if geometry.guide == "boxes":
        features[valid] = there & stays


def combine_items(stage: st.CombineItems, features: Features) -> None:
    """Appends the items of each example's partners to its own, in place."""
    valid, height, width = valid_name(stage.feature), *(tf.convert_to_tensor(side, tf.int32) for side in stage.canvas)
    step, chosen, partner, alone = combined_with(stage.ref, features, height, width)
    shares, seen = step.shares(chosen, height, width), step.seen(chosen, height, width)
    sources = [tf.range(tf.size(alone)), *tf.unstack(partner, axis=1)]
    own_kinds = [(stage.feature, stage.kind, stage.details), *(moved for moved in stage.moved if moved[0] in stage.riders)]
    items: dict[str, list[tf.Tensor]] = {name: [] for name in (stage.feature, *stage.riders)}
    there = []
    for number, (source, part) in enumerate(zip(sources, seen, strict=True)):
        own = {name: tf.gather(features[name], source) for name in items}
        is_there = tf.gather(features[valid], source)
        is_there &= tf.where(alone, number == 0, shares[:, number] > 0)[:, None]
        if part.window is not None:
            window = tf.cast(part.window, tf.float64)
            shift = tf.zeros_like(window[:, :2]) if part.shift is None else tf.cast(part.shift, tf.float64)
            for name, kind, details in own_kinds:
                cut, kept = geometry_of(kind).clip(own[name], window, shift, details, outside=part.outside)
                own[name] = tf.where(tf.reshape(alone, [-1] + [1] * (cut.shape.rank - 1)), own[name], cut)
                if name == stage.feature:
                    is_there &= kept | alone[:, None]
        if stage.number in own:
            own[stage.number] += float(number * st.NUMBERS)
        for name, value in own.items():
            items[name].append(value)
        there.append(is_there)
    features.update({name: tf.concat(parts, 1) for name, parts in items.items()}, **{valid: tf.concat(there, 1)})
    keep_items(stage, features, features[stage.feature], features[valid])


def combined_with(
    ref: StepRef[CombiningTransform], features: Features, height: tf.Tensor, width: tf.Tensor
) -> tuple[CombiningTransform, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the step, its choices, the partners of each example, int32 `(n, others)`, and, bool `(n,)`, true for an example that is
    combined only with itself, unshifted, so that its items must not be doubled."""
    step, u = step_of(ref, features["@draws"]), own_draws(ref, features["@draws"])
    partner, chosen = partners_by(step, u, features), step.choose(u, height, width)
    shifted = any(part.shift is not None for part in step.seen(chosen, height, width))
    same = tf.reduce_all(partner == tf.range(tf.shape(partner)[0])[:, None], 1)
    alone = tf.zeros_like(same) if shifted else same
    return step, chosen, partner, alone


def limit(stage: st.Limit, features: Features) -> None:
    """Limits the number of items of a batch, or pads it, in place. Remaining items keep their order."""
    valid = valid_name(stage.feature)
    there = features[valid]
    missing = tf.maximum(stage.most - tf.shape(there)[1], 0)
    if stage.room is None or stage.room > stage.most:
        weight = tf.where(there, placement_of(stage.kind).weight(features[stage.feature]), -1.0)
        rank = tf.argsort(tf.argsort(weight, direction="DESCENDING", stable=True))
        keep_items(stage, features, features[stage.feature], rank < stage.most)
    for name in stage.touches():
        value = features[name][:, : stage.most]
        padding = tf.concat([[[0, 0], [0, missing]], tf.zeros([value.shape.rank - 2, 2], tf.int32)], 0)
        padded = tf.pad(value, padding)
        padded.set_shape([value.shape[0], stage.most, *value.shape[2:]])
        features[name] = padded


def express(stage: st.Express, features: Features) -> None:
    """Converts the items of a batch to an output format, in place."""
    items = placement_of(stage.kind).to_format(features[stage.feature], stage.form, stage.canvas)
    features[stage.feature] = _zero_padding(items, features[valid_name(stage.feature)])


def shorten(stage: st.Shorten, features: Features) -> None:
    """Trims the padding of a batch's items to the least length that holds them, in place."""
    lengths = tf.constant(stage.lengths)
    most = tf.reduce_max(tf.math.count_nonzero(features[valid_name(stage.feature)], axis=1, dtype=lengths.dtype))
    length = tf.gather(lengths, tf.searchsorted(lengths, most[None])[0])
    for name in stage.touches():
        features[name] = features[name][:, :length]


def keep_items(
    stage: st.Move | st.Enter | st.InSound | st.CombineItems | st.Limit, features: Features, items: tf.Tensor, kept: tf.Tensor
) -> None:
    """Moves the kept items, and the features aligned with them, to the front, in order, followed by zeros.

    The mask of items that are aligned with others is that of those.
    """
    home = getattr(stage, "home", None)
    valid = valid_name(home or stage.feature)
    there = features[valid]
    if home is not None:
        features[stage.feature] = _zero_padding(items, there)
        return
    there = tf.logical_and(there, kept)
    place = tf.range(tf.shape(there)[1])
    order = tf.argsort(tf.where(there, place, place + tf.size(place)))
    there = features[valid] = tf.gather(there, order, batch_dims=1)
    for name, value in ((stage.feature, items), *((rider, features[rider]) for rider in stage.riders)):
        features[name] = _zero_padding(tf.gather(value, order, batch_dims=1), there)


def _zero_padding(items: tf.Tensor, there: tf.Tensor) -> tf.Tensor:
    """Zeroes the padding of items `(n, most, ...)`."""
    for _ in range(items.shape.rank - 2):
        there = tf.expand_dims(there, -1)
    return tf.where(there, items, tf.zeros([], items.dtype))


def _known(sides: tuple[int | None, int | None], size: tf.Tensor | None) -> tuple[tf.Tensor, tf.Tensor]:
    """Height and width, int32 scalars: static, or measured for the one example."""
    height, width = (side if side is not None or size is None else size[0, i] for i, side in enumerate(sides))
    return tf.convert_to_tensor(height, tf.int32), tf.convert_to_tensor(width, tf.int32)


def _product(
    stage: st.Move | s.Turn, features: Features, before: tuple[tf.Tensor, tf.Tensor]
) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """Multiplies the output-to-input matrices of all steps, float64 `(n, 3, 3)`; returns the size of the output, too."""
    draws = features["@draws"]
    real = [tf.cast(side, tf.float64) for side in before]
    whole, after = tf.eye(3, batch_shape=[tf.shape(draws)[0]], dtype=tf.float64), before
    for ref in stage.refs:
        if isinstance(ref.step, GeometricTransform):
            matrix = geometric_matrix(ref.of(GeometricTransform), draws, *real)
        else:
            window = features.get(window_name(ref))
            if window is None:
                box, shown = step_of(ref, draws).shown(own_draws(ref, draws), *before)
            else:
                top, left, height, width = tf.unstack(window, axis=1)
                box, shown = (top, left, height, width), (height[0], width[0])
            shown = tf.convert_to_tensor(shown[0], tf.int32), tf.convert_to_tensor(shown[1], tf.int32)
            matrix = onto(box, shown, draws[:, 0] if draws.shape[1] else whole[:, 0, 0])
            if ref.conditional:  # where sizes differ, it is one example
                own = acts(ref, draws)
                matrix = tf.where(own[:, None, None], matrix, tf.eye(3, dtype=tf.float64))
                shown = tf.where(own[0], shown[0], after[0]), tf.where(own[0], shown[1], after[1])
            after = shown
        whole = multiply(whole, matrix)
    return whole, after


def _inverse(m: tf.Tensor) -> tf.Tensor:
    """Inverts matrices `(n, 3, 3)` up to a positive factor, which homogeneous coordinates ignore."""
    rows = tf.unstack(m, axis=1)
    columns = [tf.linalg.cross(rows[(i + 1) % 3], rows[(i + 2) % 3]) for i in range(3)]
    mirrored = tf.sign(tf.reduce_sum(rows[0] * columns[0], -1))
    return tf.stack(columns, axis=-1) * mirrored[:, None, None]


def renumber(stage: st.Renumber, features: Features) -> None:
    """Replaces item numbers in the masks of a batch by places of items, counted from 1, in place: uint8."""
    mask, there = features[stage.feature], features[valid_name(stage.home)]
    n, most = tf.shape(there)[0], tf.shape(there)[1]
    numbers = tf.where(there, tf.cast(features[stage.number], tf.int32), 0)
    places = tf.where(there, tf.range(1, most + 1), 0)
    row = tf.broadcast_to(tf.range(n)[:, None], [n, most])
    table = tf.scatter_nd(tf.stack([row, numbers], -1), places, [n, stage.sources * st.NUMBERS])
    table += stage.ignore * tf.one_hot(stage.ignore, stage.sources * st.NUMBERS, dtype=tf.int32)
    found = tf.gather(tf.cast(table, tf.uint8), tf.reshape(tf.cast(mask, tf.int32), [n, -1]), batch_dims=1)
    features[stage.feature] = tf.ensure_shape(tf.reshape(found, tf.shape(mask)), mask.shape)


def number_items(stage: st.NumberItems, features: Features) -> None:
    """Numbers the items of a batch from 1 on, in place."""
    there = features[valid_name(stage.feature)]
    features[stage.number] = tf.where(there, tf.cast(tf.range(1, tf.shape(there)[1] + 1), tf.float32), 0.0)


def combine_instances(stage: st.CombineInstances, features: Features) -> None:
    """Mixes the masks of a batch like its images, in place: int32; the numbers of each partner are offset by `NUMBERS`."""
    mask = features[stage.feature]
    height, width = (d if d is not None else tf.shape(mask)[a] for a, d in enumerate(stage.canvas, 1))
    step, chosen, partner, alone = combined_with(stage.ref, features, *(tf.convert_to_tensor(side, tf.int32) for side in (height, width)))
    own = tf.cast(mask, tf.int32)
    others = tf.gather(own, partner)
    numbered = (others != 0) & ~alone[:, None, None, None, None]
    if stage.ignore:
        numbered &= others != stage.ignore
    behind = (tf.range(step.others) + 1)[None, :, None, None, None] * st.NUMBERS
    combined = step.combine(own, tf.where(numbered, others + behind, others), chosen)
    features[stage.feature] = tf.ensure_shape(combined, mask.shape)


def paste_instances(stage: st.PasteInstances, features: Features) -> None:
    """Pastes the partners' instances into the instance masks of a batch, in place: int32; the partners' numbers are offset by `NUMBERS`."""
    partner, _, taken = pasted_pixels(stage, features)
    mask = tf.cast(features[stage.feature], tf.int32)
    others = tf.gather(mask, partner)
    alone = (partner == tf.range(tf.size(partner)))[:, None, None, None]
    numbered = (others != 0) & (others != stage.ignore)
    features[stage.feature] = tf.where(taken & ~alone, tf.where(numbered, others + st.NUMBERS, others), mask)


def paste_items(stage: st.PasteItems, features: Features) -> None:
    """Appends the pasted items of each example's partner to its own, in place, and clips the own ones to their visible part.

    Numbers in masks are places of items here. An edge of an item stays as long as its outermost pixels are visible, else it moves to the
    outermost visible ones.
    """
    partner, theirs, taken = pasted_pixels(stage, features)
    valid, rows = valid_name(stage.feature), tf.range(tf.size(partner))
    taken &= (partner != rows)[:, None, None, None]
    there, shown = features[valid], tf.squeeze(taken, -1)
    most = tf.shape(there)[1]
    seen = _Pixels(features[stage.mask], most, stage.ignore)
    covered = seen.where(shown)
    first, last, moved, share = _edges(seen, covered)
    edges = tf.concat([first, last + 1.0], -1)
    own, kept = geometry_of(stage.kind).clip_covered(features[stage.feature], edges, moved, share, stage.details)
    items = {name: features[name] for name in (stage.feature, *stage.riders)}
    mine = items | {stage.feature: own}
    for name, of, details in stage.moved:
        if name in mine:
            mine[name] = geometry_of(of).drop_hidden(mine[name], partial(_hidden, shown), details)[0]
    other = {name: tf.gather(value, partner) for name, value in items.items()}
    pasted = _Pixels(tf.where(taken, theirs, 0), most, stage.ignore).counts() > 0
    if stage.number in other:
        other[stage.number] += float(st.NUMBERS)
    both = tf.concat([there & (kept | (share == 1.0)), tf.gather(there, partner) & pasted], 1)
    features.update({name: tf.concat([mine[name], other[name]], 1) for name in items}, **{valid: both})
    keep_items(stage, features, features[stage.feature], both)


def paste_points(stage: st.PastePoints, features: Features) -> None:
    """Drops points of a batch that are hidden by what is pasted, and adds the partners' points on it, in place."""
    partner, _, taken = pasted_pixels(stage, features)
    shown = tf.squeeze(taken, -1) & (partner != tf.range(tf.size(partner)))[:, None, None]
    valid, geometry = valid_name(stage.feature), geometry_of(stage.kind)
    own, kept = geometry.drop_hidden(features[stage.feature], partial(_hidden, shown), stage.details)
    mine, there = {name: features[name] for name in stage.riders} | {stage.feature: own}, features[valid] & kept
    if stage.joins:
        other = {name: tf.gather(features[name], partner) for name in mine}
        other[stage.feature], kept = geometry.drop_hidden(other[stage.feature], lambda at: ~_hidden(shown, at), stage.details)
        there = tf.concat([there, tf.gather(features[valid], partner) & kept], 1)
        mine = {name: tf.concat([value, other[name]], 1) for name, value in mine.items()}
    features.update(mine, **{valid: there})
    keep_items(stage, features, mine[stage.feature], there)


def _hidden(shown: tf.Tensor, points: tf.Tensor) -> tf.Tensor:
    """Looks points, x and y, float64 `(n, ..., 2)`, up in a mask of pasted pixels, bool `(n, height, width)`: bool `(n, ...)`."""
    size = tf.shape(shown)
    x, y = tf.unstack(tf.cast(tf.floor(tf.clip_by_value(points, -1e6, 1e6) + 0.5), tf.int32), axis=-1)
    inside = (x >= 0) & (x < size[2]) & (y >= 0) & (y < size[1])
    at = tf.where(inside, y * size[2] + x, 0)
    found = tf.gather(tf.reshape(shown, [size[0], -1]), tf.reshape(at, [size[0], -1]), batch_dims=1)
    return tf.reshape(found, tf.shape(x)) & inside


class _Pixels:
    """The pixels of masks `(n, height, width, 1)` that show an item numbered up to `most`."""

    def __init__(self, mask: tf.Tensor, most: tf.Tensor, ignore: int) -> None:
        numbers = tf.cast(tf.squeeze(mask, -1), tf.int32)
        shape = tf.shape(numbers)
        is_item = (numbers > 0) & (numbers <= most)
        if ignore:
            is_item &= numbers != ignore
        self.shape, self.most = shape, most
        self._places = tf.where(is_item)
        self._items = tf.cast(self._places[:, 0], tf.int32) * most + tf.gather_nd(numbers, self._places) - 1

    def where(self, shown: tf.Tensor) -> _Pixels:
        """Selects the pixels where `shown`, bool `(n, height, width)`, is true."""
        found = object.__new__(_Pixels)
        chosen = tf.gather_nd(shown, self._places)
        found.shape, found.most = self.shape, self.most
        found._places, found._items = tf.boolean_mask(self._places, chosen), tf.boolean_mask(self._items, chosen)
        return found

    def counts(self, axis: int | None = None) -> tf.Tensor:
        """Counts the pixels of each item, int32 `(n, most)`; with an axis, in each row (1) or column (2), `(n, most, side)`."""
        at, sides = self._items, [self.shape[0], self.most]
        if axis is not None:
            at, sides = at * self.shape[axis] + tf.cast(self._places[:, axis], tf.int32), [*sides, self.shape[axis]]
        total = tf.reduce_prod(sides)
        return tf.reshape(tf.math.bincount(at, minlength=total, maxlength=total), sides)


def _edges(seen: _Pixels, covered: _Pixels) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Measures items that are partly covered. Returns x and y of the first and of the last visible pixel of each item, float64 `(n, most,
    2)` each; which of the edges left, top, right and bottom have moved, bool `(n, most, 4)`; and the visible share of its pixels, float64
    `(n, most)`, 1 for an item without any."""
    firsts, lasts, moved_first, moved_last = [], [], [], []

    def ends_of(there: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Finds the first and the last true place of each row, bool `(..., side)`."""
        ones = tf.cast(there, tf.uint8)
        return tf.argmax(ones, -1), tf.shape(there, tf.int64)[-1] - 1 - tf.argmax(tf.reverse(ones, [-1]), -1)

    for axis in (2, 1):
        before = seen.counts(axis)
        after = before - covered.counts(axis)
        ends = [ends_of(count > 0) for count in (before, after)]
        firsts.append(ends[1][0])
        lasts.append(ends[1][1])
        moved_first.append(ends[0][0] != ends[1][0])
        moved_last.append(ends[0][1] != ends[1][1])
    whole, gone = (tf.cast(pixels.counts(), tf.float64) for pixels in (seen, covered))
    share = tf.where(whole > 0, (whole - gone) / tf.maximum(whole, 1.0), 1.0)
    first, last = (tf.cast(tf.stack(ends, -1), tf.float64) for ends in (firsts, lasts))
    return first, last, tf.stack([*moved_first, *moved_last], -1), share
