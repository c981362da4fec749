"""Checks of the arguments of Python calls: an error names the argument, what is expected, and an example."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_LONGEST = 60  # maximal number of characters of a value in a message


def got(value: object) -> str:
    """Describes a value of the wrong type: `3 (int)`, `None`, `a value of type list`."""
    if value is None:
        return "None"
    kind = type(value).__name__
    shown = repr(value) if isinstance(value, (bool, int, float, str, bytes)) else ""
    return f"{shown} ({kind})" if 0 < len(shown) <= _LONGEST else f"a value of type {kind}"


def file_or_folder(name: str, value: Any, example: str) -> Path:
    """Checks a path; raises `TypeError` for anything but text or a path object."""
    if not is_path(value):
        raise TypeError(f"`{name}` is a path, such as {example!r}, got {got(value)}")
    return Path(value)


def is_path(value: object) -> bool:
    """Checks if a value is text or a path object; bytes are neither."""
    return isinstance(value, str) or (isinstance(value, os.PathLike) and isinstance(os.fspath(value), str))


def values_by_name(name: str, value: Any, example: str) -> None:
    """Checks a map from names to values; `None` stands for an empty one.

    Raises `TypeError` for anything else, and for a name that is not text.
    """
    if value is None:
        return
    if not isinstance(value, Mapping):
        raise TypeError(f"`{name}` is a map, such as {example}, got {got(value)}")
    odd = next((key for key in value if not isinstance(key, str)), None)
    if odd is not None or None in value:
        raise TypeError(f"the keys of `{name}` are text, as in {example}, got {got(odd)}")


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Checks a whole number; raises `TypeError` for anything else and `ValueError` for one that is too small or too large."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"`{name}` is a whole number, got {got(value)}")
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"`{name}` is {bounds}, got {number}")
    return number


def pair(name: str, value: Any, such_as: str, least: int | None = None) -> tuple[int, int]:
    """Checks a pair of whole numbers; `such_as` names them, with an example.

    Raises `TypeError` for anything else and `ValueError` for a number that is too small.
    """
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"`{name}` is {such_as}, got {got(value)}")
    return whole(f"{name}[0]", value[0], least), whole(f"{name}[1]", value[1], least)


def share(value: Any) -> tuple[int, int] | None:
    """Checks a share of each batch; raises `TypeError` for anything but a pair of whole numbers."""
    return None if value is None else pair("shard", value, "(index, count), such as (0, 2)")


def text(name: str, value: Any, example: str) -> str:
    """Checks a text; raises `TypeError` for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is text, such as {example!r}, got {got(value)}")
    return value


def one_of(name: str, value: Any, known: Sequence[T], shown: Callable[[Any], str] = str) -> T:
    """Checks a value of a few; raises `ValueError` for another one, with the known ones as `shown`."""
    if value not in known:
        raise ValueError(f"`{name}` is one of {', '.join(map(shown, known))}, got {value!r}")
    found: T = value
    return found


def called_with_count(value: Callable[[int], None] | None) -> Callable[[int], None]:
    """Checks the callback `progress`, and returns it, or one that does nothing; raises `TypeError` for a value that cannot be called."""
    if value is not None and not callable(value):
        raise TypeError(f"`progress` is a function of one number, such as `print`, got {got(value)}")
    return value if value is not None else lambda _done: None
