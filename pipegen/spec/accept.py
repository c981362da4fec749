"""Asks Pydantic whether a plain value is of a type; what is wrong with one that is not, `validate.py` says."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError


@lru_cache(maxsize=256)
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def valid(annotation: Any, value: Any) -> bool:
    """Returns whether a plain value is of a type."""
    try:
        validated(annotation, value)
    except ValidationError:
        return False
    return True


def validated(annotation: Any, value: Any) -> Any:
    """The value as its type.

    Raises:
        ValidationError: If it is none.
    """
    # JSON, because strict checks (no "yes" for a bool, no "3" for a number) accept a list for a tuple only there.
    adapter = _adapter(annotation)
    return adapter.validate_json(json.dumps(value), strict=True)
