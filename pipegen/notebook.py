"""Makes what notebooks show: small pieces of HTML that need no style sheet, no script and no network, and take the notebook's colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:none"
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)"


class Explanation(str):
    """Text that a notebook and the interpreter show as it reads, line by line, and not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(self)


def preformatted(text: str) -> str:
    """Returns text in a fixed-width font; long lines scroll."""
    return f'<pre style="white-space:pre;overflow-x:auto;line-height:1.35">{escape(str(text))}</pre>'


def box(title: str, aside: str, *parts: str) -> str:
    """Returns HTML under a title in bold and an aside in a quiet colour, both of which are escaped; the parts are not."""
    quiet = f' <code style="opacity:.6">{escape(aside)}</code>' if aside else ""
    return f'<div style="margin:.3em 0"><div><b>{escape(title)}</b>{quiet}</div>{"".join(parts)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; every text is escaped. Without rows it is nothing."""
    lines = ["".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) for row in rows]
    if not lines:
        return ""
    first = "<tr>" + "".join(f'<th style="{_HEAD}">{escape(cell)}</th>' for cell in head) + "</tr>" if head else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse;margin:.4em 0;border:0">{first}{body}</table>'


def folded(summary: str, inside: str) -> str:
    """Returns HTML that opens on a click; the summary is escaped."""
    return f'<details style="margin:.3em 0"><summary>{escape(summary)}</summary>{inside}</details>'
