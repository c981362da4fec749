"""The keys of a section, read off its model: what each accepts, its default and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.cli.reference.op_docs import default_of
from pipegen.ops.arguments.magnitudes import CosineSchedule, LinearSchedule, Schedule, StepSchedule, TableSchedule
from pipegen.ops.base import GeometricTransform, Model, Transform
from pipegen.ops.model import field_docs
from pipegen.ops.sources.features.arrays import ArrayFeature
from pipegen.ops.sources.files import FilesFeature
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.testing.base import DataTest, ExampleTest
from pipegen.spec.expect import describe_argument, field_type, shape
from pipegen.spec.models import Batch, Errors, Folds, Output, Param, PipelineSpec, Runtime, Splits

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODELS: tuple[type[Model], ...] = (
    *(PipelineSpec, Splits, Folds, Batch, Output, Errors, Runtime),
    *(ArrayFeature, FilesFeature, TableFeature, LinearSchedule, CosineSchedule, StepSchedule, TableSchedule, Transform, GeometricTransform),
    *(DataTest, ExampleTest),
)
_EDITS = {
    **dict.fromkeys(("before", "after"), "a map `{ID: [STEP, …]}`"),
    "replace": "a map `{ID: STEP}`",
    "remove": "a list of ids",
    "append": "a list of steps",
}
_BY_NAME = {model.__name__: model for model in _MODELS}


_ACCEPTS: dict[tuple[type[Model], str], str] = {
    (PipelineSpec, "source"): "a word or `{NAME: {…}}`",
    (PipelineSpec, "tests"): "a list of tests",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a section.

    Attributes:
        path: Its path below the section, such as `decode.skip.max_fraction`; capitals stand for any name.
        accepts: The values that it accepts, in words.
        default: The value that it has when it is not given, in words.
        text: What it means.
    """

    path: str
    accepts: str
    default: str
    text: str


def keys_named(what: str) -> list[Key]:
    """Returns the keys that the marker `<!-- keys: WHAT -->` stands for.

    Args:
        what: `Extends`, `Edits`, `Params`, a model's name, `MODEL.FIELD` for one field, or `MODEL own` for the fields that it does not
            inherit.

    Raises:
        KeyError: For any other text.
    """
    if what == "Extends":
        return [_extends()]
    if what == "Edits":
        return _edits()
    if what == "Params":
        return list(_keys(Param, "NAME."))
    if what == "PipelineSpec":
        return [key for key in (_extends(), *_keys(PipelineSpec)) if "." not in key.path]
    name = what.removesuffix(" own")
    model, _, field = name.partition(".")
    found = list(_keys(_BY_NAME[model]))
    if field:
        return [key for key in found if key.path == field or key.path.startswith(f"{field}.")]
    if what.endswith(" own"):
        inherited = _BY_NAME[model].__mro__[1]
        return [key for key in found if key.path not in getattr(inherited, "model_fields", {})]
    return found


def test_keys(cls: type[DataTest]) -> list[Key]:
    """Returns the keys of a test that not every test has."""
    common = {*DataTest.model_fields, "sample"}
    return [key for key in _keys(cls) if key.path not in common]


def _extends() -> Key:
    from pipegen.spec.json_schema import EXTENDS

    return Key("extends", "text or a list of texts", "optional", EXTENDS)


def _edits() -> list[Key]:
    from pipegen.spec.json_schema import EDITS

    return [Key(key, _EDITS[key], "optional", text) for key, text in EDITS.items()]


def _keys(model: type[Model], prefix: str = "") -> Iterator[Key]:
    docs = field_docs(model)
    for name, info in model.model_fields.items():
        annotation = field_type(model, name)
        path = f"{prefix}{name}"
        inner = dict(_parts(annotation, path))
        default = "optional" if isinstance(info.default, Model) else default_of(model, name)
        text = docs.get(name) or info.description or ""
        accepts = _ACCEPTS.get((model, name)) or describe_argument(annotation)
        yield Key(path, accepts, default, " ".join(text.split()))
        for below, part in inner.items():
            yield from _keys(part, f"{below}.")


def _parts(annotation: Any, path: str) -> Iterator[tuple[str, type[Model]]]:
    """Yields the models that a value may be made of, with the path that their keys stand under."""
    s = shape(annotation)
    if s.kind == "model" and issubclass(s.annotation, Model) and not issubclass(s.annotation, (Transform, Source, DataTest, Schedule)):
        yield path, s.annotation
    elif s.kind == "map":
        yield from _parts(s.items[1], f"{path}.NAME")
    elif s.kind == "union":
        for member in s.items:
            yield from _parts(member, path)
