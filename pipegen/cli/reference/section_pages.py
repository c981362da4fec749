"""Reference pages of the sections of a spec: keys, accepted values, defaults and meaning."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from pipegen.cli.reference.ops import default_of, summary
from pipegen.frozen import dataclass
from pipegen.ops.arguments.magnitudes import CosineSchedule, LinearSchedule, Schedule, StepSchedule, TableSchedule
from pipegen.ops.data_test import DataTest, ExampleTest
from pipegen.ops.model import Model, field_docs
from pipegen.ops.registry import datatests, sources
from pipegen.ops.sampling_sections import Folds, Splits
from pipegen.ops.sources.features.feature import ArrayFeature
from pipegen.ops.sources.files import FilesFeature
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.transform import Transform
from pipegen.spec.expect import describe_argument, field_type, shape
from pipegen.spec.models import Batch, Errors, Output, Param, PipelineSpec, Runtime
from pipegen.terminal import aligned

_MODELS: tuple[type[Model], ...] = (
    *(PipelineSpec, Splits, Folds, Batch, Output, Errors, Runtime),
    *(ArrayFeature, FilesFeature, TableFeature, LinearSchedule, CosineSchedule, StepSchedule, TableSchedule, Transform, GeometricTransform),
    *(DataTest, ExampleTest),
)
_EDITS = {
    **dict.fromkeys(("before", "after"), "a map `{ID: [STEP, …]}`"),
    "set": "a map `{ID: {ARGUMENT: VALUE}}`",
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
    """One key of a section, in words; its path is below the section, such as `decode.skip.max_fraction`; capitals stand for names."""

    path: str
    accepts: str
    default: str
    text: str


def keys_named(what: str) -> list[Key]:
    """Lists the keys for the marker `<!-- keys: WHAT -->`.

    WHAT is `Extends`, `Edits`, `Params`, a model's name, `MODEL.FIELD` for one field, or `MODEL own` for fields that are not inherited.
    """
    from pipegen.spec.json_schema import EDITS, EXTENDS

    extends = Key("extends", "text or a list of texts", "optional", EXTENDS)
    if what == "Extends":
        return [extends]
    if what == "Edits":
        return [Key(key, _EDITS[key], "optional", form["description"]) for key, form in EDITS.items()]
    if what == "Params":
        return list(_keys(Param, "NAME."))
    if what == "PipelineSpec":
        return [key for key in (extends, *_keys(PipelineSpec)) if "." not in key.path]
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
    """Lists the keys of a test, except those that every test has."""
    common = {*DataTest.model_fields, "sample"}
    return [key for key in _keys(cls) if key.path not in common]


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
    """Yields the models that a value may contain, with the paths of their keys."""
    s = shape(annotation)
    if s.kind == "model" and issubclass(s.annotation, Model) and not issubclass(s.annotation, (Transform, Source, DataTest, Schedule)):
        yield path, s.annotation
    elif s.kind == "map":
        yield from _parts(s.items[1], f"{path}.NAME")
    elif s.kind == "union":
        for member in s.items:
            yield from _parts(member, path)


PAGES = {
    "spec": "the whole file, and how it is written",
    "extends": "a base spec that projects share",
    "params": "typed knobs, set from outside",
    "source": "which data",
    "features": "what each record of a source holds",
    "splits": "train, validation and others",
    "folds": "cross-validation",
    "transforms": "the steps, and what all of them accept",
    "schedules": "strengths that change over the epochs",
    "views": "several views of each example, and multi-crop",
    "seed": "the key of order and draws",
    "shuffle": "the order of the training split",
    "epoch": "what counts as an epoch",
    "sampling": "how often an epoch has each example",
    "order": "easy examples first",
    "batch": "how examples are stacked",
    "stages": "training in stages: progressive resizing, curricula",
    "output": "what the model receives",
    "errors": "damaged files",
    "tests": "what must hold for the data",
    "runtime": "cache, threads, memory, shards: how fast and where",
}
"""Every page with its subject, in the order of a spec."""
_WIDTH = 100
_MARKER = re.compile(r"^<!-- (keys: ([\w. ]+)|sources|tests) -->$", re.MULTILINE)
_LINK = re.compile(r"\b(see|under) `(\w+)`")
_AWAY = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_TITLE = re.compile(r"^```yaml title=\"(.+)\"$", re.MULTILINE)


@cache
def source_text(name: str) -> str:
    """Reads a page with its markers."""
    return (files("pipegen.cli.reference") / "sections" / f"{name}.md").read_text(encoding="utf-8")


def markdown(name: str) -> str:
    """Generates a page in Markdown, with its keys as a list."""

    def filled(match: re.Match[str]) -> str:
        if match[1] == "tests":
            return "\n\n".join(_test(op) for op in datatests())
        if match[2] is None:
            return "\n".join(f"- [`{op}`](../ops.md#{op}): {summary(cls)}" for op, cls in sources().items())
        linked = match[2] == "PipelineSpec"
        return "\n".join(_bullet(key, linked) for key in keys_named(match[2]))

    text = _MARKER.sub(filled, source_text(name))
    text = _LINK.sub(lambda m: f"{m[1]} [`{m[2]}`]({m[2]}.md)" if m[2] in PAGES else m[0], text)
    origin = f"<!-- Generated by `python -m docs.generated` from pipegen/cli/reference/sections/{name}.md and the models. -->"
    return f"{text.rstrip()}\n\n{origin}\n"


def terminal(name: str) -> str:
    """Generates a page for the terminal: keys are paragraphs, titles of files precede their blocks, and links are only their words."""

    def filled(match: re.Match[str]) -> str:
        if match[1] == "tests":
            return "\n".join(line for op in datatests() for line in _test_lines(op))
        if match[2] is None:
            return "\n".join(aligned((op, summary(cls)) for op, cls in sources().items()))
        return "\n".join(line for key in keys_named(match[2]) for line in key_lines(key))

    text = "```".join(part if i % 2 else _filled(_AWAY.sub(r"\1", part)) for i, part in enumerate(source_text(name).split("```")))
    return _TITLE.sub(lambda m: f"{m[1]}:\n\n```yaml", _MARKER.sub(filled, text))


def _filled(prose: str) -> str:
    """Wraps paragraphs and lists to the width of a page."""
    paragraphs = []
    for paragraph in prose.split("\n\n"):
        items = ((" ".join(item.split()), "  " * item.startswith("- ")) for item in re.split(r"\n(?=- )", paragraph))
        lines = (textwrap.fill(item, _WIDTH - 2, subsequent_indent=pad, break_on_hyphens=False) for item, pad in items)
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs)


def key_lines(key: Key) -> list[str]:
    """Writes a key as lines of text: accepted values and default, then its meaning, indented."""
    text = textwrap.wrap(key.text, _WIDTH - 6, break_on_hyphens=False)
    head = textwrap.wrap(f"{key.path}: {key.accepts}; {key.default}", 120, subsequent_indent="  ", break_on_hyphens=False)
    return [*head, *(f"    {line}" for line in text)]


def all_keys() -> Iterator[tuple[str, str, Key]]:
    """Yields the page of each key, its path, section included, and the key."""
    for page in PAGES:
        for match in _MARKER.finditer(source_text(page)):
            for key in keys_named(match[2]) if match[2] else ():
                top = page == "spec" or key.path.partition(".")[0] == page
                yield page, key.path if top else f"{page}.{key.path}", key


def _test(op: str) -> str:
    """Writes a test in Markdown: title, description, examples and its own keys."""
    cls = datatests()[op]
    examples = " ".join(f"`{example}`" for example in cls.examples)
    keys = "\n".join(_bullet(key, False) for key in test_keys(cls))
    text = " ".join((cls.__doc__ or "").split("\n\n")[0].split())
    return f"### {op}\n\n{text}\n\n{examples}\n\n{keys}".rstrip()


def _test_lines(op: str) -> list[str]:
    cls = datatests()[op]
    title = textwrap.wrap(f"{op}: {summary(cls)}", _WIDTH, break_on_hyphens=False)
    examples = [f"    - {example}" for example in cls.examples]
    return [*title, *examples, *(f"    {line}" for key in test_keys(cls) for line in key_lines(key)), ""]


def _bullet(key: Key, linked: bool) -> str:
    name = f"[{key.path}]({key.path}.md)" if linked and key.path in PAGES else key.path
    return f"- **{name}**: {key.accepts}; {key.default}. {key.text}".rstrip()
