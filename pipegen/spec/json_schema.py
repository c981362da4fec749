"""The JSON Schema of a spec, for editors, built from the models and the ops."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from pipegen.ops.data_test import DataTest
from pipegen.ops.families.selections import STEP_SCHEMA
from pipegen.ops.model import Model, field_docs
from pipegen.ops.registry import datatests, goes_bare, sources, transforms
from pipegen.ops.sources.listing.base import Source
from pipegen.ops.sources.mix import SOURCE_SCHEMA
from pipegen.ops.transform import Transform
from pipegen.spec.models import Param, PipelineSpec

_SCALARS = frozenset({"integer", "number", "boolean", "string"})
_REFERENCE = {"$ref": "#/$defs/ParamReference"}
EXTENDS = (
    "A base spec, or a list of them, later ones over earlier ones: maps merge by key, lists and scalars replace. A path is relative to "
    "this file; `pkg:PACKAGE/FILE` is a data file of an installed package, and `git+URL@TAG#FILE` a file of a repository as `pipegen lock` "
    "has resolved it."
)
"""The description of `extends`, which is not a field of the model, as the loader resolves it."""
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_PARAM_REFERENCE = {
    "description": "The value of a declared param: `$name` or `${name}`.",
    "type": "string",
    "pattern": rf"^\$({_NAME}|\{{{_NAME}\}})$",
}
_STEP = {"$ref": "#/$defs/Step"}
_STEPS: dict[str, Any] = {"type": "array", "items": _STEP}
_STEPS_BY_ID = {"type": "object", "additionalProperties": _STEPS}
EDITS: dict[str, dict[str, Any]] = {
    "set": {
        "description": "Arguments to set: a map from ids to maps of arguments.",
        "type": "object",
        "additionalProperties": {"type": "object", "propertyNames": {"not": {"enum": ["id", "steps"]}}},
    },
    "replace": {"description": "Steps to replace: a map from ids to steps.", "type": "object", "additionalProperties": _STEP},
    "remove": {"description": "Steps to leave out: a list of ids.", "type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "before": {"description": "Steps to insert before others: a map from ids to lists of steps.", **_STEPS_BY_ID},
    "after": {"description": "Steps to insert after others: a map from ids to lists of steps.", **_STEPS_BY_ID},
    "append": {"description": "Steps to add at the end.", **_STEPS},
}
"""The schemas of the keys of a map of edits, which the loader applies."""
_EDITS = {
    "description": "Edits of the steps of the base, each named by the id that keys its draws.",
    "type": "object",
    "properties": EDITS,
    "additionalProperties": False,
}
_SPLIT_NAME = r"^[A-Za-z_][A-Za-z0-9_-]*$"


def json_schema() -> dict[str, Any]:
    """Builds the schema, of draft 2020-12. It accepts a param for any scalar, and for a list of texts."""
    # First, as this imports their models.
    ops = [*transforms().values(), *(s for s in sources().values() if not hasattr(s, "from_yaml")), *datatests().values()]
    models: list[type[Model]] = [*_parts(Model), *ops, PipelineSpec]
    refs, generated = models_json_schema([(m, "validation") for m in models], ref_template="#/$defs/{model}")
    defs: dict[str, Any] = generated["$defs"]
    used = {refs[m, "validation"]["$ref"].rpartition("/")[2]: m for m in models}
    result = {name: _model(defs[name], model) for name, model in used.items()}
    spec = result.pop(PipelineSpec.__name__)
    base = {"type": "string", "minLength": 1}
    extends = {"description": EXTENDS, "anyOf": [base, {"type": "array", "items": base, "minItems": 1}]}
    spec["properties"] = {"pipegen": spec["properties"].pop("pipegen"), "extends": extends, **spec["properties"]}
    names = {m.op: name for name, m in used.items() if issubclass(m, (Source, Transform)) and m.op in (*sources(), *transforms())}
    choices: dict[str, Any] = {"source": {"$ref": "#/$defs/Source"}, "transforms": {"anyOf": [_STEPS, {"$ref": "#/$defs/Edits"}]}}
    tests = {m.op: name for name, m in used.items() if issubclass(m, DataTest) and m.op in datatests()}
    result |= {"ParamReference": _PARAM_REFERENCE, "Source": _source(names), "Edits": _EDITS}
    result["Step"] = _choice(transforms(), {op: _reference(cls, names[op]) for op, cls in transforms().items()})
    result["Test"] = _test(tests, result)
    choices["tests"] = {"type": "array", "items": {"$ref": "#/$defs/Test"}}
    for name, schema in choices.items():
        spec["properties"][name] = _documented(schema, spec["properties"][name].get("description"))
    spec.pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pipegen spec",
        **spec,
        "anyOf": [{"required": ["pipegen", "source"]}, {"required": ["extends"]}],
        "if": {
            "required": ["transforms"],
            "properties": {"transforms": {"description": "A map edits the steps of a base.", "type": "object"}},
        },
        "then": {"required": ["extends"]},
        "$defs": dict(sorted(result.items())),
    }


def _parts(base: type[Model]) -> Iterator[type[Model]]:
    """Yields the models that sections and ops consist of."""
    for model in base.__subclasses__():
        if issubclass(model, (Transform, Source, DataTest, PipelineSpec)) or not model.__module__.startswith("pipegen."):
            continue
        if model.model_fields:
            yield model
        yield from _parts(model)


def _model(schema: dict[str, Any], model: type[Model]) -> dict[str, Any]:
    docs = field_docs(model)
    literal = model is Param
    properties = {name: _documented(_tidy(inner, literal=literal), docs.get(name)) for name, inner in schema.get("properties", {}).items()}
    if model is PipelineSpec:
        properties["pipegen"] = _documented({"const": 1}, docs["pipegen"])
    kept: dict[str, Any] = {key: schema[key] for key in ("type", "required", "anyOf", "additionalProperties") if key in schema}
    return {"description": inspect.cleandoc(model.__doc__ or ""), **kept, "properties": properties}


def _documented(schema: dict[str, Any], text: str | None) -> dict[str, Any]:
    return {"description": " ".join(text.split()), **schema} if text else schema


def _tidy(schema: Any, *, literal: bool) -> Any:
    """Removes generated titles and repeated defaults; unless `literal`, accepts a param for any scalar, or list of texts."""
    if not isinstance(schema, dict):
        return schema
    if STEP_SCHEMA in schema:
        return {"$ref": "#/$defs/Step"}
    if SOURCE_SCHEMA in schema:
        return {"$ref": "#/$defs/Source"}
    result = {k: v for k, v in schema.items() if k != "title" and not (k == "default" and isinstance(v, dict))}
    result |= {key: _tidy(result[key], literal=literal) for key in ("items", "additionalProperties") if key in result}
    if "prefixItems" in result:
        result["prefixItems"] = [_tidy(s, literal=literal) for s in result["prefixItems"]]
    if "patternProperties" in result:
        result["patternProperties"] = {k: _tidy(s, literal=literal) for k, s in result["patternProperties"].items()}
        result.setdefault("additionalProperties", False)
    if "anyOf" in result:
        members = [_tidy(s, literal=literal or _is_scalar(s)) for s in result["anyOf"]]
        if not literal and any(_takes_param(s) for s in result["anyOf"]):
            members.append(_REFERENCE)
        result["anyOf"] = members
    elif not literal and _takes_param(result):
        outer = {k: result.pop(k) for k in ("description", "default") if k in result}
        return {**outer, "anyOf": [result, _REFERENCE]}
    return result


def _takes_param(schema: dict[str, Any]) -> bool:
    """Tests for what a param may stand for: a scalar, or a list of texts."""
    return _is_scalar(schema) or (schema.get("type") == "array" and (schema.get("items") or {}).get("type") == "string")


def _is_scalar(schema: dict[str, Any]) -> bool:
    """Tests for a scalar that does not accept `$name` as it is."""
    typed = schema.get("type") in _SCALARS and (schema["type"] != "string" or "pattern" in schema)
    return typed or "enum" in schema or "const" in schema


def _choice(classes: Mapping[str, type[Any]], properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a word, for what needs no arguments, or a map with one key."""
    words = [op for op, cls in classes.items() if goes_bare(cls)]
    option = {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    return {"anyOf": [*([{"enum": words}] if words else []), option, _REFERENCE]}


def _summary(cls: type[Model]) -> str:
    return " ".join(inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0].split())


def _reference(cls: type[Any], name: str) -> dict[str, Any]:
    """A reference to the model of an op, without the empty map if it needs an argument."""
    least = {} if goes_bare(cls) else {"minProperties": 1}
    return {"description": _summary(cls), "$ref": f"#/$defs/{name}", **least}


def _test(names: dict[str, str], models: dict[str, Any]) -> dict[str, Any]:
    """The schema of a test, which may be the value of its main argument alone."""
    properties: dict[str, Any] = {}
    for op, cls in datatests().items():
        properties[op] = _reference(cls, names[op])
        if cls.bare is not None:
            argument = models[names[op]]["properties"][cls.bare]
            bare = {key: value for key, value in argument.items() if key not in ("description", "default")}
            text = properties[op].pop("description")
            properties[op] = {"description": text, "anyOf": [bare, properties[op]]}
    return _choice(datatests(), properties)


def _source(names: dict[str, str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for op, cls in sources().items():
        if hasattr(cls, "from_yaml"):
            named = {"type": "object", "propertyNames": {"enum": [*sources()]}, "additionalProperties": {"type": "object"}}
            common = {"description": "The arguments that splits with a source share, by the name of the source.", **named}
            each = {
                "propertyNames": {"pattern": _SPLIT_NAME},
                "if": {"required": ["common"]},
                "then": {"properties": {"common": common}, "additionalProperties": {"type": ["object", "string"]}},
                "else": {"additionalProperties": {"$ref": "#/$defs/Source"}},
            }
            properties[op] = {"description": _summary(cls), "type": "object", **each, "minProperties": 1}
        else:
            properties[op] = _reference(cls, names[op])
    return _choice(sources(), properties)
