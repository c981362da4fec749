"""All that reaches a terminal: what it would obey, and not show, is made visible here and nowhere else.

Names of files, texts of specs and messages of other libraries may hold control characters, which move the cursor or rewrite a window's
title, or marks that turn the order of a line around. `visible` is for text of several lines, `one_line` for a part of a line,
`json_text` for JSON; the program writes by `say` and `note` alone, and what pipegen logs (`log.py`) or raises passes here, too.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from pipegen.masking import masked, masked_values

ODD = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters of both blocks, marks of direction, invisible characters, and halves of surrogate pairs, as in names of files that
are no UTF-8."""
_ODD_IN_LINES = re.compile(ODD.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_BREAKS = re.compile("\\s*[\r\n]+\\s*|\t")
_BOLD, _PLAIN = "\ufdd0", "\ufdd1"
"""Stand for the escape sequences of `bold` until the text is written; they are no characters of any script."""


def one_line(text: str) -> str:
    """Gives a text on one line with everything in it visible but passwords."""
    return masked(ODD.sub(_shown, _BREAKS.sub(" ", text)))


def visible(text: str) -> str:
    """Gives a text with everything in it visible but passwords; its lines and tabs stay."""
    return masked(_ODD_IN_LINES.sub(_shown, text.replace("\r\n", "\n")))


def sign_for(char: str) -> str:
    """Gives what stands for a character that a terminal would obey."""
    point = ord(char)
    return chr(0x2400 + point) if point < 0x20 else "\u2421" if point == 0x7F else "\ufffd"


def _shown(match: re.Match[str]) -> str:
    return sign_for(match[0])


def json_text(value: object) -> str:
    """Gives a value as indented JSON that a terminal can show, with what it would obey as escapes."""
    import json

    text = json.dumps(masked_values(value), indent=2, ensure_ascii=False)
    return _ODD_IN_LINES.sub(lambda m: json.dumps(m[0])[1:-1], text)


def say(text: str = "") -> None:
    """Writes lines to standard output."""
    styled = visible(text).replace(_BOLD, "\x1b[1m").replace(_PLAIN, "\x1b[0m")
    sys.stdout.write((styled if wants_colour(sys.stdout) else visible(text).replace(_BOLD, "").replace(_PLAIN, "")) + "\n")


def note(text: str) -> None:
    """Writes lines beside the output, to standard error."""
    sys.stderr.write(visible(text) + "\n")


def note_between(text: str) -> None:
    """Writes a line to standard error while another program may be drawing a progress bar there, which it draws anew."""
    sys.stderr.write(("\r\x1b[K" if is_terminal(sys.stderr) else "") + visible(text) + "\n")
    sys.stderr.flush()


def bold(text: str) -> str:
    """Gives a text that `say` writes in bold where standard output shows it."""
    return f"{_BOLD}{text}{_PLAIN}" if wants_colour(sys.stdout) else text


def aligned(rows: Iterable[tuple[str, ...]], gap: str = "  ") -> list[str]:
    """Gives rows as lines, each column as wide as its longest cell."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [gap.join(map(str.ljust, row, widths)).rstrip() for row in table]


def wants_colour(stream: TextIO) -> bool:
    """Tells whether to write colours: on a terminal that knows them, unless NO_COLOR is set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def is_terminal(stream: TextIO) -> bool:
    """Returns whether a person looks at a stream."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while something long runs, of which `total` are to do; nothing unless that is a terminal.

    Yields:
        To be called with how many are done.
    """
    if not is_terminal(sys.stderr):
        yield lambda _done: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = [bars.TextColumn("{task.description}"), bars.MofNCompleteColumn()]
    columns[1:1] = [bars.BarColumn()] if total else [bars.SpinnerColumn()]
    columns += [bars.TimeRemainingColumn()] if total else []
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
