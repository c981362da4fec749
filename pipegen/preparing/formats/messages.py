"""Makes a `tf.Example` of a record. Of features named `image` and `label` the keys are those that TensorFlow's models and tools read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.prepared_store.messages import ENCODED
from pipegen.preparing.formats.base import picture_format
from pipegen.types import FLOATING

if TYPE_CHECKING:
    from pipegen.preparing.formats.base import Described, Record

_FORMATS = {"jpg": b"jpeg"}
"""What `image/format` says where it is not the ending of a file."""


def message_of(record: Record, described: Described) -> bytes:
    """Returns the message of a record.

    A picture has `NAME/encoded`, `NAME/format`, `NAME/height`, `NAME/width` and `NAME/channels`; the label `label` beside an `image`
    `image/class/label` and `image/class/text`, any other `NAME` and `NAME/text`; numbers have `NAME`, and the record's own name is
    `image/filename`.
    """
    features: dict[str, tf.train.Feature] = {}
    for name, t in described.type.items():
        value = record.values[name]
        if name in described.pixels:
            height, width = (int(side) for side in record.values[f"@size.{name}"])
            form = picture_format(value)
            features[f"{name}{ENCODED}"] = _texts([value])
            features[f"{name}/format"] = _texts([_FORMATS.get(form, form.encode())])
            features |= {f"{name}/height": _integers([height]), f"{name}/width": _integers([width])}
            features[f"{name}/channels"] = _integers([t.shape[2] if t.shape else t.file_channels])
        elif kind_of(t).labels:
            key, text = keys_of_label(name, described)
            features[key] = _integers(described.class_indices(name, value))
            features[text] = _texts([one.encode() for one in described.class_texts(name, value)])
        elif t.dtype in FLOATING:
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=value.ravel()))
        else:
            features[name] = _integers(value.ravel().tolist())
    features[f"{'image/' * ('image' in described.pixels)}filename"] = _texts([record.name.encode("utf-8", "surrogateescape")])
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return bytes(example.SerializeToString(deterministic=True))


def keys_of_label(name: str, described: Described) -> tuple[str, str]:
    """Returns the keys of a label's class index and of the name of its class."""
    if name == "label" and "image" in described.pixels:
        return "image/class/label", "image/class/text"
    return name, f"{name}/text"


def _texts(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _integers(values: list[Any]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
