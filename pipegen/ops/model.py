"""`Model`, the base of all parts of a spec, and the documentation of its fields."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

FeatureName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]  # the name of a feature of a source


class Model(BaseModel):
    """The base of all parts of a spec: frozen, strict about unknown keys, with fields documented by the strings below them."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    later: ClassVar[frozenset[str]] = frozenset()
    """Arguments that are written only if they are given, so that they are no part of the hash of a spec without them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Shortens annotations of class variables: pydantic would evaluate their texts again for every class that derives from this one."""
        super().__pydantic_init_subclass__(**kwargs)
        cls.__annotations__ = {name: ClassVar if name in cls.__class_vars__ else type_ for name, type_ in cls.__annotations__.items()}

    @model_serializer(mode="wrap")
    def _without_later(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        left_out = {name for name, field in type(self).model_fields.items() if name in self.later and getattr(self, name) == field.default}
        return {name: value for name, value in written(self).items() if name not in left_out}

    @classmethod
    def reject_misplaced(cls, given: Mapping[str, Any]) -> None:
        """Rejects an argument that does not belong beside the others, by a `ValueError`, even if its value is invalid, too."""


class OneOf(Model):
    """A choice of exactly one of its fields."""

    called: ClassVar[str]  # what it is, for messages

    @model_validator(mode="after")
    def _one(self) -> OneOf:
        if sum(getattr(self, name) is not None for name in type(self).model_fields) != 1:
            raise ValueError(f"{self.called} needs exactly one of {', '.join(f'`{name}`' for name in type(self).model_fields)}")
        return self

    @property
    def name(self) -> str:
        """The name of the field that is given."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)


@cache
def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Returns the documentation of each field by name, inherited fields included; undocumented fields are left out."""
    docs = {name: field.description for name, field in model.model_fields.items() if field.description}  # names that are Python keywords
    for cls in reversed(model.__mro__):
        if cls.__module__.partition(".")[0] not in ("builtins", "pydantic"):
            docs.update(_classes(cls.__module__).get(cls.__qualname__, {}))
    return {name: docs[name] for name in model.model_fields if name in docs}


@cache
def _classes(module: str) -> dict[str, dict[str, str]]:
    """Parses the field documentation of every class of a module."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (OSError, TypeError, KeyError):
        return {}
    return {node.name: _fields(node) for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def _fields(node: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, text in pairwise(node.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = inspect.cleandoc(said)
    return found
