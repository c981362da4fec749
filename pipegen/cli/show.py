"""`pipegen show`: the resolved spec as YAML and as JSON, with the origin of each value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import ValidationError

from pipegen.cli.common import NOTHING, Given, SpecFile
from pipegen.cli.reference.ops import argument_names
from pipegen.ops.transform import Transform
from pipegen.spec.compose import double_quoted, flow_scalar, needs_quotes, quoted
from pipegen.spec.models import PipelineSpec
from pipegen.spec.params import NAME
from pipegen.spec.source_map import ABSENT, KeyPath, format_path, lookup
from pipegen.terminal import json_text, masked_value, one_line, say

if TYPE_CHECKING:
    from pipegen.phases.specs import Spec


def show(
    spec: SpecFile,
    output_format: Annotated[Literal["yaml", "json"], typer.Option("--format", help="How to print it.")] = "yaml",
    given: Annotated[Given, "stage", "sets"] = NOTHING,
) -> None:
    """Print a spec with every default, and the origin of each value.

    The output is a valid spec. The hash identifies the meaning of the pipeline: a run resumes only under the same hash.

    Examples:
      pipegen show flowers.pipegen.yaml
      pipegen show flowers.pipegen.yaml --set size=192
      pipegen show flowers.pipegen.yaml --format json
    """
    loaded = given.load(spec)
    say(json_text(resolved_json(loaded)) if output_format == "json" else resolved_yaml(loaded).rstrip())


_WIDEST = 72  # the rightmost column at which comments are aligned

Line = tuple[str, str]  # a line of YAML, and the comment that follows it


def resolved_json(spec: Spec) -> dict[str, Any]:
    """Lists the resolved spec as plain values, with the origin of each leaf."""
    values = _as_written(spec)
    origin = spec.loaded.locate.origin
    origins = {format_path(path): origin(path) for path, _ in _leaves(values, ())}
    return {"version": 1, "spec_hash": spec.hash, "spec": values, "origins": origins}


def resolved_yaml(spec: Spec) -> str:
    """Writes the resolved spec as YAML that loads to the same spec."""
    origins = _Origins(spec)
    locate = spec.loaded.locate
    used = {one.name: path for path, filled in locate.filled.items() for one in filled}
    lines = [(f"# spec_hash: {spec.hash}", "")]
    lines += [(f"# param {name}, from {locate.origin(used[name])}", "") for name in spec.model.params if name in used]
    for key, value in _as_written(spec).items():
        lines += _entry(key, value, (key,), 0, origins)
    width = min(max(len(text) for text, comment in lines if comment), _WIDEST)
    shown = [one_line(f"{text:<{width}}  # {comment}" if comment else text) for text, comment in lines]
    return "".join(f"{line}\n" for line in shown)


def plain_spec(model: PipelineSpec) -> dict[str, Any]:
    """Lists a spec as plain values, in the shape of a file, with params filled in."""
    values: dict[str, Any] = {}
    for key in type(model).model_fields:
        value = getattr(model, key)
        if key == "source":
            values[key] = {value.op: value.model_dump(mode="json")}
        elif key == "transforms":
            dumped = [(step, step.model_dump(mode="json")) for step in value]
            values[key] = [{step.op: {name: given[name] for name in argument_names(type(step))}} for step, given in dumped]
        elif key == "tests":
            dumped = [(test, test.model_dump(mode="json", exclude_none=True)) for test in value]
            values[key] = [{t.op: given[t.bare] if t.bare is not None and t.model_fields_set == {t.bare} else given} for t, given in dumped]
        elif key == "stages":
            values |= {key: [stage.model_dump(mode="json", exclude_defaults=True) for stage in value]} if value else {}
        elif key == "views":
            each = {name: view.model_dump(mode="json") for name, view in value.items()} if isinstance(value, dict) else value
            values |= {key: each} if value != 1 else {}
        elif key == "epoch" and value == "pass":
            values[key] = None
        elif key != "params":
            values[key] = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    if not model.source.has_labels() and "y" not in model.output.model_fields_set:
        values["output"]["y"] = None
    return values


def _as_written(spec: Spec) -> dict[str, Any]:
    """Lists the resolved spec, in which params that stages set are still references."""
    values = plain_spec(spec.model)
    if not spec.model.stages:
        return values
    names = {name for stage in spec.model.stages for name in stage.params}
    locate = spec.loaded.locate
    found: dict[str, Any] = {}
    for path, filled in locate.filled.items():
        if any(one.name in names for one in filled):
            _put_reference(values, spec.loaded.written, path)
    for name, param in spec.model.params.items():
        if name in names:
            found[name] = param.model_dump(mode="json", exclude_none=True)
            given = next((path for path, filled in locate.filled.items() if [one.name for one in filled] == [name]), None)
            if given is not None and lookup(spec.loaded.written, given) in (f"${name}", f"${{{name}}}"):
                found[name]["default"] = lookup(spec.loaded.raw, given)  # a value from `--set` stays
    return {"pipegen": values.pop("pipegen"), "params": found, **values} if found else values


def _put_reference(values: Any, written: Any, path: KeyPath) -> None:
    """Replaces a value by the text with params that it came from, unless the value was changed."""
    inner, text = lookup(values, path[:-1]), lookup(written, path)
    known = lookup(values, path, ABSENT)
    if known is not ABSENT and isinstance(inner, (dict, list)) and isinstance(text, str) and not isinstance(known, (dict, list)):
        inner[path[-1]] = _Reference(text)  # type: ignore[index]


class _Reference(str):
    """A text with references to params, `$NAME`."""


def _rejected_defaults(step: Transform) -> set[str]:
    """Arguments whose defaults must not be written, since they need another argument that is not given."""

    def is_valid(values: dict[str, Any]) -> bool:
        try:
            type(step).model_validate(values)
        except ValidationError:
            return False
        return True

    values = step.model_dump(mode="json", exclude_none=True)
    given = {name: values[name] for name in step.model_fields_set if name in values}
    return set() if is_valid(values) else {n for n in values if n not in given and not is_valid({**given, n: values[n]})}


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
        for i, inner in enumerate(value):
            yield from _leaves(inner, (*path, i))
    else:
        yield path, value


class _Origins:
    """Comments: the origin of a value, or the meaning of a missing one."""

    def __init__(self, spec: Spec) -> None:
        self.origin: Callable[[KeyPath], str] = spec.loaded.locate.origin
        self.steps, self.splits = spec.model.transforms, spec.model.split_names()
        steps = enumerate(spec.model.transforms)
        self.unwritten = {("transforms", i, step.op, name) for i, step in steps for name in _rejected_defaults(step)}

    def unset(self, path: KeyPath) -> str | None:
        """Meaning of a missing value; `None` if it has none."""
        if path[:1] == ("transforms",) and path[-1] == "when" and len(path) == 4:
            step = self.steps[int(path[1])]
            stand_ins = " and ".join(s.op for s in step.evaluation_form())
            return f"train, with {stand_ins} elsewhere" if stand_ins else "train" if step.random else "all"
        meanings: dict[KeyPath, str] = {
            ("batch", "remainder"): "drop for train, keep elsewhere",
            ("epoch",): "one pass over the data",
            ("output", "y"): "nothing, as there are no labels",
            ("splits", "parts"): f"everything is {' and '.join(self.splits)}",
        }
        return meanings.get(path)


def _entry(key: str, value: Any, path: KeyPath, indent: int, origins: _Origins, lead: str = "") -> list[Line]:
    pad = " " * indent
    is_plain = key.isdigit() or not (needs_quotes(key) or any(c in key for c in ",[]{}#:"))  # numbers are read as text
    start = f"{lead or pad}{key if is_plain else quoted(key)}:"
    if path in origins.unwritten:
        return [(f"{pad}# {key}: {_inline(value)}", "default, and without effect here")]
    if value is None or value == {}:
        meant = origins.unset(path)
        return [(f"{pad}# {key}: {meant}", "default")] if meant and not lead else []
    if isinstance(value, dict):
        inner = [line for k, v in value.items() for line in _entry(k, v, (*path, k), indent + 2, origins)]
        left = [k for k, v in value.items() if v in (None, {}) and origins.unset((*path, k)) is None]
        if left:
            inner.append((f"{pad}  # not set: {', '.join(left)}", ""))
        live = any(not text.lstrip().startswith("#") for text, _ in inner)
        return [(start if live else f"{start} {{}}", ""), *inner]
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        lines: list[Line] = [(start, "")]
        for i, item in enumerate(value):
            if isinstance(item, str):  # a step inside another, without arguments
                lines.append((f"{pad}  - {item}", origins.origin((*path, i))))
            elif path == ("stages",):
                lines.append((f"{pad}  - {_inline(item)}", origins.origin((*path, i, "epochs"))))
            else:
                ((name, arguments),) = item.items()
                lines += _entry(name, arguments, (*path, i, name), indent + 4, origins, lead=f"{pad}  - ")
        return lines
    return [(f"{start} {_inline(value)}", origins.origin(path))]


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {_inline(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_inline(v) for v in value)}]"
    if isinstance(value, _Reference):
        return str(value) if NAME.fullmatch(value[1:]) else json.dumps(value)
    if isinstance(value, str):
        value = masked_value(value)
        return double_quoted(value.replace("$", "$$")) if "\\" in value else flow_scalar(value)
    return json.dumps(value)
