"""Hides the passwords of addresses, such as that of a database, in whatever is shown or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

_STARS = "***"
# One character of the scheme will do: a search for its beginning looks at long texts, as a picture in base64, again from each character.
_USER = re.compile(r"(?P<before>[A-Za-z0-9+.-]://[^\s/:@?#'\"]*:)(?P<secret>[^\s/'\"]+)(?=@)")
_NAMES = "pass(?:word|wd|phrase)?|pwd|secret|token|api_?key"
_ARGUMENT = re.compile(rf"(?P<before>(?:{_NAMES})(?:=|%3[dD]))(?P<secret>(?:(?!%3[bB])[^\s&;'\"])+)", re.IGNORECASE)


def masked(text: str, *, aligned: bool = False) -> str:
    """Gives a text with stars in place of each password of an address: `db://user:***@host`, `?password=***`.

    Args:
        text: Any text.
        aligned: Whether the text keeps its length, for what points at its columns.
    """
    if "://" not in text and "=" not in text and "%3" not in text:
        return text

    def stars(match: re.Match[str]) -> str:
        if not match["secret"].strip("*"):
            return match[0]  # hidden already
        return match["before"] + ("*" * len(match["secret"]) if aligned else _STARS)

    text = _USER.sub(stars, text)
    return _ARGUMENT.sub(stars, text) if "://" in text else text


def secrets_in(text: str) -> list[str]:
    """Gives the passwords that `masked` hides in an address."""
    return [match["secret"] for pattern in (_USER, _ARGUMENT) for match in pattern.finditer(text)]


def without_secrets(address: str) -> Callable[[object], str]:
    """Gives what writes an error of a driver on one line, with stars for the passwords of the address that it was given."""
    hidden = {form for secret in secrets_in(address) for form in (secret, unquote(secret))}

    def write(error: object) -> str:
        text = " ".join(str(error).split())
        for secret in sorted(hidden, key=len, reverse=True):
            text = text.replace(secret, _STARS)
        return masked(text)

    return write


class Secretive(str):
    """An address that shows itself without its password; `revealed` has it."""

    __slots__ = ()

    def __str__(self) -> str:
        return masked(self.revealed)

    def __repr__(self) -> str:
        return repr(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    @property
    def revealed(self) -> str:
        """Returns the address with its password."""
        return str.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.revealed,)
