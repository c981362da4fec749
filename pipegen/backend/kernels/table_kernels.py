"""Look-up tables on batches of images, and chains of tables and geometry, in integers: the same bits everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features, Params, Phase
from pipegen.backend.index.draws import acts, own_draws, step_of
from pipegen.backend.kernels.warp import fits_int32, fixed_matrix, locate, outside, read, sides
from pipegen.ops.families.chains import PLAIN, STRETCH, BlendChains, Chains
from pipegen.ops.families.lookup_tables import LookupTable, LookupTableTransform
from pipegen.ops.lowering.colours import as_bytes, auto_contrasted, equalized
from pipegen.ops.lowering.filters import BITS, rounded_shift
from pipegen.ops.stage import StepRef

_waits = attrgetter("step.needs_histogram")  # true for a use of a step whose table depends on the image


def table_params(stage: LookupTable, features: Features) -> Params:
    """Computes the part of a chain of tables that depends only on the draws, outside XLA.

    Consecutive steps without a histogram become one table. A step with one contributes its draws, followed by whether it acts if that
    is drawn.
    """
    draws = features["@draws"]
    found: list[tf.Tensor] = []
    for waits, refs in groupby(stage.refs, _waits):
        if waits:
            for ref in refs:
                found += [own_draws(ref, draws), acts(ref, draws)] if ref.conditional else [own_draws(ref, draws)]
            continue
        table = None
        for ref in refs:
            own = step_of(ref, draws).table(own_draws(ref, draws), None)
            table = fold(table, _gated(own, acts(ref, draws) if ref.conditional else None))
        found.append(table)
    return tuple(found)


def changes_values(stage: LookupTable, image: tf.Tensor, params: Params) -> tf.Tensor | None:
    """Tests which images a chain of tables may change, bool `(n, ...)`, from `table_params`; `None` if it may change all."""
    each = list(_each(stage, params))
    if image.dtype != tf.uint8 or any(ref is not None and when is None for ref, _, when in each):  # others are rounded
        return None
    return tf.stack([tf.reduce_any(own != tf.range(256), [1, 2]) if when is None else when for _, own, when in each], 1)


def histogram_table(stage: LookupTable, image: tf.Tensor, params: Params) -> Params:
    """Folds a chain that reads the histogram into one table: int32 `(n, channels, 256)`. A pure function of `table_params`."""
    each = list(_each(stage, params))
    counts = _counts(image, each)
    table: tf.Tensor | None = None
    for ref, own, when in each:
        entering = counts if table is None else through(counts, table)
        table = fold(table, own if ref is None else _gated(ref.step.table(own, entering), when))
    assert table is not None  # noqa: S101 - a stage has steps
    return (table,)


_Part = tuple[StepRef[LookupTableTransform] | None, tf.Tensor, tf.Tensor | None]
"""Of a chain: a table, or a use that reads the histogram, with its draws and whether it acts, if that is drawn."""


def _counts(image: tf.Tensor, each: list[_Part]) -> tf.Tensor:
    """Counts as many values as a chain reads, int32 `(n, channels, 256)`: all, or the extremes. A single image that needs none gets any."""
    (first, own, _), single = each[0], image.shape[0] == 1
    if len(each) == 1 and first is not None and first.step.from_extremes(own) is True:
        return extremes(image)
    if not single:
        return histogram(image)
    all_, some, same = tf.constant(False), tf.constant(False), tf.constant(True)  # `same`: the image enters the use as it is
    for ref, own, when in each:
        acts = tf.reduce_any(own != tf.range(256)) if ref is None else tf.constant(True) if when is None else when[0]
        if ref is not None:
            enough = same & tf.reshape(ref.step.from_extremes(own), [])
            all_, some = all_ | (acts & ~enough), some | acts
        same &= ~acts
    return tf.cond(all_, lambda: histogram(image), lambda: tf.cond(some, lambda: extremes(image), lambda: extremes(image[:, :1, :1])))


def _each(stage: LookupTable, params: Params) -> Iterator[_Part]:
    """Iterates over the parts of a chain, from `table_params`."""
    given = iter(params)
    for waits, refs in groupby(stage.refs, _waits):
        if waits:
            yield from ((ref, next(given), next(given) if ref.conditional else None) for ref in refs)
        else:
            list(refs)
            yield None, next(given), None


def _gated(table: tf.Tensor, when: tf.Tensor | None) -> tf.Tensor:
    """Selects the table if the step acts, else the identity."""
    return table if when is None else tf.where(when[:, None, None], table, tf.range(256))


def fold(first: tf.Tensor | None, second: tf.Tensor) -> tf.Tensor:
    """Composes two tables, `second` after `first`: int32 `(n, channels, 256)`, or `(n, 1, 256)` if both serve every channel."""
    if first is None:
        return second
    channels = max(first.shape[1], second.shape[1])
    first, second = (tf.broadcast_to(t, [tf.shape(t)[0], channels, 256]) for t in (first, second))
    return tf.gather(second, first, batch_dims=2)


def through(counts: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """Applies a table to a histogram: int32 `(n, channels, 256)`."""
    shape = tf.shape(counts)
    rows = tf.reshape(tf.range(shape[0] * shape[1]), [shape[0], shape[1], 1])
    places = tf.reshape(rows * 256 + table, [-1, 1])
    return tf.reshape(tf.tensor_scatter_nd_add(tf.zeros([tf.size(counts)], tf.int32), places, tf.reshape(counts, [-1])), shape)


def histogram(image: tf.Tensor) -> tf.Tensor:
    """Counts the pixels of each value: int32 `(n, channels, 256)` for images `(n, height, width, channels)`.

    Image by image, so that the indices stay in the processor's cache: in XLA that takes a quarter of the time of one scatter over the
    batch. Counts are integers, so the order of the sum does not matter.
    """
    channels = int(image.shape[-1])

    def one(single: tf.Tensor) -> tf.Tensor:
        values = tf.reshape(tf.cast(as_bytes(single), tf.int32), [-1, channels])
        places = tf.reshape(values + tf.range(channels) * 256, [-1, 1])
        ones = tf.ones([tf.shape(places)[0]], tf.int32)
        return tf.reshape(tf.tensor_scatter_nd_add(tf.zeros([channels * 256], tf.int32), places, ones), [channels, 256])

    return tf.map_fn(one, image, fn_output_signature=tf.TensorSpec([channels, 256], tf.int32))


def extremes(image: tf.Tensor) -> tf.Tensor:
    """Counts the least and the greatest value of each channel alone, as `histogram` does: a tenth of its time."""
    shape, channels = tf.shape(image), int(image.shape[-1])
    lines = tf.reshape(as_bytes(image), [shape[0], shape[1], shape[2] * channels])
    # First over whole lines, which XLA does many values at a time.
    least, most = (reduced(tf.reshape(reduced(lines, 1), [shape[0], shape[2], channels]), 1) for reduced in (tf.reduce_min, tf.reduce_max))
    return tf.one_hot(tf.cast(least, tf.int32), 256, dtype=tf.int32) + tf.one_hot(tf.cast(most, tf.int32), 256, dtype=tf.int32)


def look_up(image: tf.Tensor, table: tf.Tensor) -> tf.Tensor:
    """Looks each value up in its example's table: uint8 `(n, height, width, channels)`."""
    tables = int(table.shape[1])
    index = tf.cast(as_bytes(image), tf.int32)
    if tables > 1:
        index = index + tf.range(tables) * 256
    n = tf.shape(index)[0]
    flat = tf.reshape(tf.cast(table, tf.uint8), [n, tables * 256])
    values = tf.gather(flat, tf.reshape(index, [n, -1]), batch_dims=1)
    done = tf.reshape(values, tf.shape(index))
    done.set_shape(image.shape)
    return done


def chain_phases(stage: BlendChains) -> tuple[Phase, ...]:
    """Lists the functions that fold the tables, apply them to the images, and find the positions that each chain reads."""

    def apply(image: tf.Tensor, params: Params) -> Params:
        table, matrices, weights, *rest = params
        repeated = tf.repeat(as_bytes(image), int(weights.shape[1]) - 1, axis=0)
        return (look_up(repeated, table), matrices, weights, *rest)

    return _fold, apply, partial(_locate, stage)


def blend_chains(stage: BlendChains, image: tf.Tensor, given: Params) -> tf.Tensor:
    """Blends the images `(n, height, width, channels)` with the results of the last phase."""
    step: Any = stage.ref.step
    own = given[:-1] if stage.ref.conditional else given
    values, weights, *located = own
    values = read(values, tuple(located), step.fill) if located else values
    image = as_bytes(image)
    count = int(weights.shape[1]) - 1
    parts = tf.reshape(values, [-1, count, *sides(values), values.shape[-1]])
    weights = weights[..., None] if weights.shape.rank == 2 else weights
    total = tf.cast(image, tf.float32) * weights[:, 0, None, None]
    for number in range(count):  # integers below 2^22, so the sums are exact
        total += tf.cast(parts[:, number], tf.float32) * weights[:, number + 1, None, None]
    done = tf.cast(rounded_shift(tf.cast(total, tf.int32), BITS), tf.uint8)
    return tf.where(given[-1][:, None, None, None], done, image) if stage.ref.conditional else done


def _fold(image: tf.Tensor, params: Params) -> Params:
    """Folds the tables of each chain into one: int32 `(n · chains, channels, 256)`."""
    chains, rest = Chains(*params[:4]), params[4:]
    count, layers = int(chains.kinds.shape[1]), int(chains.kinds.shape[2])
    counts = tf.repeat(histogram(as_bytes(image)), count, axis=0)
    kinds, tables = (_together(part) for part in (chains.kinds, chains.tables))
    table = None
    for layer in range(layers):
        entering = counts if table is None else through(counts, table)
        kind = kinds[:, layer, None, None]
        learned = tf.where(kind == STRETCH, auto_contrasted(entering), equalized(entering))
        table = fold(table, tf.where(kind == PLAIN, tables[:, layer, None], learned))
    return (table, chains.matrices, chains.weights, *rest)


def _locate(stage: BlendChains, image: tf.Tensor, params: Params) -> Params:
    values, matrices, weights, *rest = params
    step: Any = stage.ref.step
    if step.geometry is False:
        return (values, weights, *rest)
    fixed = fixed_matrix(_together(matrices), step.interpolation)
    size = sides(image)
    narrow = fits_int32((image.shape[1], image.shape[2]), (image.shape[1], image.shape[2]))
    located = locate(fixed, size, size, fill=outside(step.fill)[0], interpolation=step.interpolation, narrow=narrow)
    return (values, weights, *located, *rest)


def _together(part: tf.Tensor) -> tf.Tensor:
    """Merges the axes of examples and chains: `(n · chains, ...)`."""
    return tf.reshape(part, [-1, *part.shape[2:]])
