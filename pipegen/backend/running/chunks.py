"""Chunks: several examples of a batch in one call of the element stage, which unstacks and stacks them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from math import prod

import tensorflow as tf

from pipegen.backend.features import Features, Found
from pipegen.backend.kernels.lower import survey
from pipegen.backend.reading import damage
from pipegen.backend.running.execute import Executor
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.lowering.graphs import apart, either
from pipegen.ops.lowering.resizing import usual_sizes
from pipegen.plan.nodes import Element, Read
from pipegen.types import ElementType, FeatureType

_REAL = "@real"  # false for rows that only fill the last chunk or the batch

_BY_REFERENCE = 1 << 14
"""Least bytes of a feature that is not stacked within its chunk, which would cost a second copy and fresh pages for it."""


def cut(features: Features, chunk: int, *, full: bool) -> Features:
    """Splits a batch `(n, ...)` into chunks `(⌈n / chunk⌉, chunk, ...)`; unless every batch is full, the last row is repeated."""
    if not full:
        features = filled(features, chunk)
    return {name: tf.reshape(value, tf.concat([[-1, chunk], tf.shape(value)[1:]], 0)) for name, value in features.items()}


def filled(features: Features, multiple: int) -> Features:
    """Repeats the last row of a batch `(n, ...)` up to a multiple of rows; `real` removes the copies."""
    n = tf.shape(features["@record"])[0]
    rows = tf.range(n + -n % multiple)
    return {name: tf.gather(value, tf.minimum(rows, n - 1)) for name, value in features.items()} | {_REAL: rows < n}


def real(features: Features) -> Features:
    """Removes the rows added by `filled`."""
    n = tf.reduce_sum(tf.cast(features[_REAL], tf.int32))
    return {name: value[:n] for name, value in features.items() if name != _REAL}


def each(features: Features, nodes: Sequence[Read | Element], executor: Executor, chunk: int, of: ElementType | None) -> Features:
    """Runs nodes, which work on single examples, on a chunk `(chunk, ...)`.

    Files are read and surveyed in parallel. The rest is traced once, and TensorFlow inlines it for each example. In most chunks all files
    are usual ones, whose graph has no branches. If the nodes are those of one bucket, `of` has the types of an example in all buckets, so
    that all are stacked alike. Returns the features `(chunk, ...)`; large ones as a list of tensors, which `joined` stacks."""
    given = {name: tf.unstack(features[name], num=chunk) for name in ("@record", "@draws")}
    for node in nodes:
        if isinstance(node, Read):
            given |= executor.tensors.read_each(features["@record"], node.out, chunk)
    examples = [{name: values[i] for name, values in given.items()} for i in range(chunk)]
    elements = [node for node in nodes if isinstance(node, Element)]
    surveys = {}
    for stage in (stage for node in elements for stage in node.stages if isinstance(stage, Decodes)):
        with executor.scope(stage):
            made = survey(stage, examples)
        if made is not None:
            surveys[stage.feature] = made
    out = nodes[-1].out

    def rest(example: Features, own: Mapping[str, Found]) -> list[tf.Tensor]:
        done = dict(example)
        for node in elements:
            executor.element(node, done, own)
        return [done[name] for name, _ in out.items()]

    def of_each(examples: list[Features], found: list[dict[str, Found]]) -> list[list[tf.Tensor]]:
        one = apart(rest)
        return [one(example, own) for example, own in zip(examples, found, strict=True)]

    def usual(examples: list[Features], found: list[dict[str, Found]]) -> list[list[tf.Tensor]]:
        with usual_sizes() if all(made.sized for made in surveys.values()) else nullcontext():
            return of_each(examples, [{name: (None, *window) for name, (_, *window) in own.items()} for own in found])

    found = [{name: made.found[i] for name, made in surveys.items()} for i in range(chunk)]
    if surveys:
        results = either(tf.reduce_all([made.usual for made in surveys.values()]), usual, apart(of_each), examples, found)
    else:
        results = of_each(examples, found)
    columns = zip(*results, strict=True)
    every = [(name, t if of is None else of[name]) for name, t in out.items()]
    return features | {name: _together([*column], t) for (name, t), column in zip(every, columns, strict=True)}


def guarded(features: Features, one: Callable[[Features], Features], chunk: int, of: ElementType) -> Features:
    """Runs a function that treats the damage of one example on each of a chunk `(chunk, ...)`. Returns features as `each` does."""
    given = {name: tf.unstack(value, num=chunk) for name, value in features.items()}

    def changed(example: Features) -> Features:
        return {name: value for name, value in one(dict(example)).items() if value is not example.get(name)}

    call = apart(changed)
    results = [call({name: values[i] for name, values in given.items()}) for i in range(chunk)]
    return features | {name: _together([result[name] for result in results], of.get(name)) for name in results[0]}


def each_marked(features: Features, nodes: Sequence[Read | Element], executor: Executor, chunk: int, of: ElementType | None) -> Features:
    """As `each`; if a record is damaged, the features of the whole chunk are zeros. Adds `WHOLE`, bool `(chunk,)`."""
    out = nodes[-1].out
    zeros = {name: _together([value] * chunk, out[name] if of is None else of[name]) for name, value in damage.nothing(out).items()}
    known = {name: features[name] for name in ("@record", "@draws")}
    made, good = damage.tried(lambda f: each(f, nodes, executor, chunk, of), known, zeros)
    return features | made | {damage.WHOLE: tf.fill([chunk], good)}


def joined(features: Features, of: ElementType, batch: int, chunk: int, *, full: bool) -> Features:
    """Joins chunks `(k, chunk, ...)`, the results of `each`, into a batch; `of` is the type of one example."""
    count = tf.shape(features["@record"])[0]
    rows = {}
    for name, value in features.items():
        if value.dtype == tf.variant:
            # In a batch that is not full, the last chunk is repeated in place of missing ones.
            lists = [value[i if full else tf.minimum(i, count - 1)] for i in range(batch // chunk)]
            rows[name] = _stacked(lists, tf.TensorSpec(of[name].shape, tf.as_dtype(of[name].dtype)), batch)
        elif value.shape[2:].is_fully_defined():
            rows[name] = tf.reshape(value, [batch if full else -1, *value.shape[2:]])
        else:  # sides that differ from bucket to bucket are read from the batch
            rows[name] = tf.reshape(value, tf.concat([[batch if full else -1], tf.shape(value)[2:]], 0))
            rows[name].set_shape([batch if full else None, *value.shape[2:]])
    return rows if full else real(rows)


def _together(values: list[tf.Tensor], t: FeatureType | None) -> tf.Tensor:
    """Stacks tensors of type `t`, or puts large ones into a tensor list: a scalar of dtype `variant`. `None` is an internal feature."""
    one = values[0]
    if t is None:
        return tf.stack(values)
    own = (tuple(one.shape),) if one.shape.rank is not None else ()
    known = [shape for shape in t.shapes or own if None not in shape]
    if not known or max(map(prod, known)) * one.dtype.size < _BY_REFERENCE:
        return tf.stack(values)
    held = tf.raw_ops.EmptyTensorList(element_shape=one.shape.as_list(), max_num_elements=-1, element_dtype=one.dtype)
    for value in values:
        held = tf.raw_ops.TensorListPushBack(input_handle=held, tensor=value)
    return held


def _stacked(lists: list[tf.Tensor], spec: tf.TensorSpec, count: int) -> tf.Tensor:
    """Stacks the `count` tensors of several lists with one copy: concatenating the lists first copies nothing."""
    held = lists[0]
    for more in lists[1:]:
        held = tf.raw_ops.TensorListConcatLists(input_a=held, input_b=more, element_dtype=spec.dtype)
    shape = [-1 if side is None else side for side in spec.shape]
    stacked = tf.raw_ops.TensorListStack(input_handle=held, element_shape=shape, element_dtype=spec.dtype, num_elements=count)
    return tf.ensure_shape(stacked, [count, *spec.shape])
