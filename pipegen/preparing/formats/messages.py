"""Makes a `tf.Example` of a record. Of features named `image` and `label` the keys are those that TensorFlow's models and tools read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.prepared_store.messages import ENCODED
from pipegen.preparing.formats.base import picture_format
from pipegen.types import FLOATING

if TYPE_CHECKING:
    from pipegen.preparing.formats.base import Described, Record

_OBJECT = "image/object/"
_FORMATS = {"jpg": b"jpeg"}
"""What `image/format` says where it is not the ending of a file."""


def message_of(record: Record, described: Described) -> bytes:
    """Returns the message of a record.

    A picture has `NAME/encoded`, `NAME/format`, `NAME/height`, `NAME/width` and `NAME/channels`; the label `label` beside an `image`
    `image/class/label` and `image/class/text`, any other `NAME` and `NAME/text`; numbers have `NAME`, and the record's own name is
    `image/filename`. Items lie one behind the other, `NAME`, in pixels; `boxes` on an `image`, and their `labels` and `crowd`, also have
    the keys that detectors read.
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
        elif kind_of(t).counts:
            key, text = keys_of_label(name, described)
            features[key] = _integers(described.class_indices(name, value))
            features[text] = _texts([one.encode() for one in described.class_texts(name, value)])
        elif t.dtype in FLOATING:
            features[name] = _numbers(value.ravel())
        else:
            features[name] = _integers(value.ravel().tolist())
    features |= _of_detectors(record, described)
    features[f"{'image/' * ('image' in described.pixels)}filename"] = _texts([record.name.encode("utf-8", "surrogateescape")])
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return bytes(example.SerializeToString(deterministic=True))


def _of_detectors(record: Record, described: Described) -> dict[str, tf.train.Feature]:
    """Says the boxes of a record as detectors of TensorFlow's models read them: edges in parts of the image, classes counted from 1."""
    t = described.type.get("boxes")
    if t is None or (t.kind, t.of) != ("boxes", "image") or "image" not in described.pixels:
        return {}
    height, width = (float(side) for side in record.values["@size.image"])
    edges = record.values["boxes"] / np.array([width, height, width, height], np.float32)
    found = {f"{_OBJECT}bbox/{name}": _numbers(edges[:, i]) for i, name in enumerate(("xmin", "ymin", "xmax", "ymax"))}
    riders = [name for name in ("labels", "crowd") if name in described.type and described.type[name].beside == "boxes"]
    if "labels" in riders and "labels" in described.classes:
        found[f"{_OBJECT}class/label"] = _integers([1 + i for i in described.class_indices("labels", record.values["labels"])])
        found[f"{_OBJECT}class/text"] = _texts([one.encode() for one in described.class_texts("labels", record.values["labels"])])
    if "crowd" in riders and record.values["crowd"].ndim == 1:
        found[f"{_OBJECT}is_crowd"] = _integers([int(one) for one in record.values["crowd"]])
    return found


def keys_of_label(name: str, described: Described) -> tuple[str, str]:
    """Returns the keys of a label's class index and of the name of its class."""
    if name == "label" and "image" in described.pixels:
        return "image/class/label", "image/class/text"
    return name, f"{name}/text"


def _texts(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _numbers(values: np.ndarray[Any, Any]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _integers(values: list[Any]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
