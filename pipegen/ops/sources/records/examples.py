"""`ExampleSource`, the base of sources whose records are `tf.Example` messages, and the `layout` of such records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from pipegen.ops.sources.records.described import DescribedRecords
from pipegen.ops.sources.records.messages import check_content

_OBJECT = "image/object/"
LAYOUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "object_detection": {
        "image": {"kind": "image", "key": "image/encoded"},
        "boxes": {"kind": "boxes", "format": "rel_xyxy", "keys": [f"{_OBJECT}bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]},
        "labels": {"kind": "label", "with": "boxes", "key": f"{_OBJECT}class/label", "offset": 1},
    }
}
"""Features of each layout."""
_OF_KEY = ("key", "keys", "offset")
"""Arguments that belong to the key of a feature."""


def laid_out(layout: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the features of a layout, changed by given ones of the same kind. Another key has no `offset` unless that is given, too."""
    found: dict[str, Any] = {**LAYOUTS[layout], **given}
    for name, known in LAYOUTS[layout].items():
        own = found[name]
        if isinstance(own, Mapping) and own.get("kind") == known["kind"]:
            moved = "key" in own or "keys" in own
            found[name] = {**{k: v for k, v in known.items() if not (moved and k in _OF_KEY)}, **own}
    return found


def _either_in(schema: dict[str, Any]) -> None:
    """Requires `features` or `layout` in a schema."""
    schema["required"] = [name for name in schema["required"] if name != "features"]
    schema["anyOf"] = [{"required": ["features"]}, {"required": ["layout"]}]


class ExampleSource(DescribedRecords):
    """Records that are a `tf.Example`, or the bytes of one feature, each."""

    model_config = ConfigDict(json_schema_extra=_either_in)

    content: Literal["example", "bytes"] = "example"
    """Content of a record: a `tf.Example`, or the `bytes` of the only feature, such as a JPEG file."""
    layout: Literal["object_detection"] | None = Field(default=None, exclude=True)
    """Known keys in place of `features`. `object_detection`, the records of TensorFlow's Object Detection API: `image`, `boxes` from the
    four `image/object/bbox/` lists, and `labels` of these from `image/object/class/label`, counted from 1. `features` beside it
    change these (`{labels: {kind: label, key: image/object/class/text}}`) or add others."""

    @classmethod
    def written_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        layout, features = given.get("layout"), given.get("features", {})
        if not isinstance(layout, str) or layout not in LAYOUTS or not isinstance(features, Mapping):
            return given
        return {**{key: value for key, value in given.items() if key != "layout"}, "features": laid_out(layout, features)}

    @model_validator(mode="after")
    def _one_of_bytes(self) -> ExampleSource:
        check_content(self.content, self.features, self.where)
        return self
