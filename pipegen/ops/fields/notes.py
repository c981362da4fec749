"""Findings about data, and words that their messages share: counts, a few names of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pipegen.errors import OpError
from pipegen.frozen import dataclass

_SHOWN = 5


class LeftOut(NamedTuple):
    """A number of things that a listing leaves out, with the words for one (`box without an area`) and for several."""

    number: int
    one: str
    several: str

    def __str__(self) -> str:
        return f"{self.number:,} {self.one if self.number == 1 else self.several}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something seen while listing, such as an empty class."""

    code: str  # a diagnostic code
    message: str  # one sentence
    help: str | tuple[str, ...] | None = None  # what to do
    field: str | None = None
    """The argument of the source that it concerns, dotted if nested (`train.image_folder.path`); `None` for the whole source."""
    severity: Literal["error", "warning", "info"] | None = None  # its severity, if it differs from the usual one of the code
    left_out: tuple[LeftOut, ...] = ()  # what is left out for this reason

    @classmethod
    def of(cls, error: OpError) -> Note:
        """Makes a note of an error, with which listing goes on."""
        return cls(error.code, error.message, error.help, error.field, "error")


def quoted(names: Sequence[str]) -> str:
    """Quotes a few names, and counts the rest."""
    more = len(names) - _SHOWN
    return ", ".join(repr(name) for name in names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Formats a count with its noun: `1 file`, `3 files`."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def is_are(n: int) -> str:
    """Returns the verb for `n` things."""
    return "is" if n == 1 else "are"


def joined(words: Sequence[str]) -> str:
    """Lists words in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])
