"""Parses `tf.Example` messages in the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.lazy import tf
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.record_values import class_index, from_member, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.labels import Lookup
    from pipegen.ops.sources.records.messages import Layout


def parse_example(
    record: tf.Tensor, features: Mapping[str, RecordFeature], layout: Layout, classes: Mapping[str, Lookup]
) -> dict[str, tf.Tensor]:
    """Returns features of one record.

    Args:
        record: The message, a string scalar.
        features: Those that are wanted, each with its key.
        layout: How the records hold them.
        classes: What finds the class of each label.

    Returns:
        Encoded features as string scalars, labels as int64 class indices, others as float32 or int64 of their shapes.
    """
    dtypes = {"bytes": tf.string, "float": tf.float32, "int": tf.int64}
    fields = {name: field for name, field in layout.fields.items() if name in features}
    keys = {name: feature.key or name for name, feature in features.items() if name not in fields}
    asked = {field.key: tf.io.FixedLenFeature((), tf.string) for field in fields.values()}
    for name, key in keys.items():
        asked[key] = tf.io.FixedLenFeature(features[name].stored_shape, dtypes[layout.held.get(key) or "bytes"])
    found = tf.io.parse_single_example(record, asked)
    values = {}
    for name, field in fields.items():
        values[name] = from_member(name, features[name], field.stored, found[field.key], None, classes.get(name), field.read)
    for name, key in keys.items():
        feature, value = features[name], found[key]
        kind = kind_of(feature)
        if kind.labels:
            value = class_index(name, value, classes[name])
        elif kind.numbers:
            value = number(name, feature, value)
        values[name] = value
    return values
