"""Fields of JSON members and columns: `json.label` is the field `label` of the member `json`."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

JSON = "json"
JSON_FIELDS = "fields of JSON"
"""Description of why reading such fields calls Python."""


def taken_apart(key: str) -> tuple[str, tuple[str, ...]]:
    """Splits a key into the ending of a member and the path of a field in it (empty for the whole member)."""
    parts = key.split(".")
    at = next((i for i, part in enumerate(parts[:-1]) if part.lower() == JSON), None)
    return (key, ()) if at is None else (".".join(parts[: at + 1]), tuple(parts[at + 1 :]))


def column_and_path(key: str, columns: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Splits a key into a column and the path of a field in its JSON (empty if no column matches)."""
    parts = key.split(".")
    ends = (end for end in range(len(parts) - 1, 0, -1) if ".".join(parts[:end]) in columns)
    at = next(ends, len(parts))
    return ".".join(parts[:at]), tuple(parts[at:])


class MissingFieldError(ValueError):
    """JSON that lacks a field."""


def value_at(content: Any, path: tuple[str, ...]) -> Any:
    """Returns a field of JSON as a Python value; booleans become 1 and 0.

    Args:
        content: JSON as text or bytes, or parsed by a library.
        path: Names of fields and indices of lists.

    Raises:
        MissingFieldError: The field is missing.
        ValueError: It is not JSON.
    """
    try:
        value = json.loads(content) if isinstance(content, (str, bytes)) else content
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    for done, name in enumerate(path):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            known = ", ".join(map(repr, list(value)[:8])) if isinstance(value, dict) else f"{value!r:.60}"
            raise MissingFieldError(f"it has no {'.'.join(path[: done + 1])!r}, but {known or 'nothing'}")
    return int(value) if isinstance(value, bool) else value


def list_in(content: bytes, path: tuple[str, ...]) -> Any:
    """Returns the list in a member: a field of JSON, all of it, or an `.npy` file.

    Raises:
        ValueError: There is none.
    """
    import numpy as np

    if content.startswith(b"\x93NUMPY") and not path:
        return np.load(io.BytesIO(content), allow_pickle=False)
    found = value_at(content, path)
    if not isinstance(found, list):
        raise ValueError(f"it holds {found!r:.60}, not a list")
    return found


def field_of(content: Any, path: tuple[str, ...]) -> bytes:
    """Returns a field as a member of its own would store it: text and numbers as text, lists of numbers as a float32 `.npy` file.

    Raises:
        ValueError: The field is missing or has another type.
    """
    return _as_member(value_at(content, path), ".".join(path))


def _as_member(value: Any, named: str) -> bytes:
    import numpy as np

    if isinstance(value, float) and value.is_integer():
        return str(int(value)).encode()
    if isinstance(value, (int, float, str)):
        return str(value).encode()
    try:
        numbers = np.asarray(value, np.float32)
    except (ValueError, TypeError):
        numbers = None
    if not isinstance(value, list) or numbers is None:
        raise ValueError(f"{named!r} holds {json.dumps(value)[:60]}; supported are text, numbers and lists of numbers of one shape")
    for exact, rounded in zip(np.asarray(value, object).ravel().tolist(), numbers.ravel().tolist(), strict=True):
        if isinstance(exact, int) and exact != rounded:
            raise ValueError(f"{named!r} holds {exact}, which float32 would round; `dtype: int64` works for fields of one number only")
    stream = io.BytesIO()
    np.lib.format.write_array(stream, numbers, version=(1, 0))
    return stream.getvalue()
