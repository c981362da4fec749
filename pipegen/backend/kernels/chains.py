"""Chains of tables and geometry on batches of images, and their blend: whole numbers, the same bits everywhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.kernels.positions import fits_int32, fixed_matrix, locate, outside, sides
from pipegen.backend.kernels.tables import fold, histogram, look_up, through
from pipegen.backend.kernels.warp import read
from pipegen.ops.families.chains import PLAIN, STRETCH, BlendChains, Chains
from pipegen.ops.lowering.filters import BITS, rounded_shift
from pipegen.ops.lowering.tables import as_bytes, auto_contrasted, equalized

if TYPE_CHECKING:
    from pipegen.backend.features import Params, Phase


def chain_phases(stage: BlendChains) -> tuple[Phase, ...]:
    """Returns the functions that fold the tables, read the images through them, and find where each chain reads each pixel."""
    return partial(_fold, stage), partial(_look_up, stage), partial(_locate, stage)


def blend_chains(stage: BlendChains, image: tf.Tensor, given: Params) -> tf.Tensor:
    """The blend of the images `(n, height, width, channels)`, from what the last phase gave."""
    step: Any = stage.ref.step
    own = given[:-1] if stage.ref.conditional else given
    values, weights, *located = own
    fill, constant = outside(step.fill)
    values = read(values, tuple(located), fill=fill, constant=constant) if located else values
    image = as_bytes(image)
    count = int(weights.shape[1]) - 1
    parts = tf.reshape(values, [-1, count, *sides(values), values.shape[-1]])
    weights = weights[..., None] if weights.shape.rank == 2 else weights
    total = tf.cast(image, tf.float32) * weights[:, 0, None, None]
    for number in range(count):  # whole numbers below 2^22, so that the sums are exact
        total += tf.cast(parts[:, number], tf.float32) * weights[:, number + 1, None, None]
    done = tf.cast(rounded_shift(tf.cast(total, tf.int32), BITS), tf.uint8)
    return tf.where(given[-1][:, None, None, None], done, image) if stage.ref.conditional else done


def _fold(_stage: BlendChains, image: tf.Tensor, params: Params) -> Params:
    """Makes of the tables of each chain one: int32 `(n · chains, channels, 256)`."""
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


def _look_up(_stage: BlendChains, image: tf.Tensor, params: Params) -> Params:
    table, matrices, weights, *rest = params
    repeated = tf.repeat(as_bytes(image), int(weights.shape[1]) - 1, axis=0)
    return (look_up(repeated, table), matrices, weights, *rest)


def _locate(stage: BlendChains, image: tf.Tensor, params: Params) -> Params:
    values, matrices, weights, *rest = params
    step: Any = stage.ref.step
    if not step.geometry:
        return (values, weights, *rest)
    fixed = fixed_matrix(_together(matrices), step.interpolation)
    size = sides(image)
    narrow = fits_int32((image.shape[1], image.shape[2]), (image.shape[1], image.shape[2]))
    located = locate(fixed, size, size, fill=outside(step.fill)[0], interpolation=step.interpolation, narrow=narrow)
    return (values, weights, *located, *rest)


def _together(part: tf.Tensor) -> tf.Tensor:
    """Makes examples of the chains of examples: `(n · chains, ...)`."""
    return tf.reshape(part, [-1, *part.shape[2:]])
