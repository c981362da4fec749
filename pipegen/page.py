"""HTML pages in one file, and HTML for notebooks: without scripts and downloads, light and dark."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Sequence
from html import escape

from pipegen.files import write_whole
from pipegen.terminal import visible

_VOID = frozenset({"br", "hr", "img", "meta"})
_STYLE = """
:root { color-scheme: light dark; --ink: #1d1d20; --quiet: #65656d; --paper: #fcfcfd; --card: #fff; --line: #dfdfe4; --accent: #0d8074;
  --soft: #e3f1ef; --warn: #9a6200; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --quiet: #a2a2ad; --paper: #17171a; --card: #202024; --line: #38383f;
  --accent: #4fc0b2; --soft: #1d3835; --warn: #e7b04b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem clamp(.9rem, 3vw, 2rem) 4rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.65rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; scroll-margin-top: .8rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0; }
a { color: var(--accent); }
code, pre { font: .87em/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; margin: .5rem 0;
  overflow-wrap: normal; }
img { max-width: 100%; height: auto; border-radius: 4px; vertical-align: middle; }
figure { margin: 0; }
figcaption, .quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93em; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
details { margin: .8rem 0; }
summary { cursor: pointer; color: var(--accent); font-weight: 600; }
.chip { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; background: var(--soft); font-size: .85em;
  margin: 0 .35rem .25rem 0; text-decoration: none; color: inherit; }
.bar { display: inline-block; width: 100%; height: .55rem; border-radius: 3px; background: var(--soft); overflow: hidden; }
.bar rect { fill: var(--accent); }
.warning { color: var(--warn); }
.error { color: var(--bad); }
@media print { body { max-width: none; } }
"""


class Html(str):
    """Text that is markup; all other text is escaped on a page."""

    __slots__ = ()


class Page(Html):
    """A whole page, which a notebook shows in a frame."""

    __slots__ = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file. Raises `OSError` when the file cannot be written."""
        write_whole(path, str(self))

    def __repr__(self) -> str:
        return f"<a page of {len(self.encode()) / 1000:,.0f} kB: `.save(FILE)` writes it, and a notebook shows it>"

    def _repr_html_(self) -> str:
        look = "width:100%;height:44rem;border:1px solid rgba(128,128,128,.4);border-radius:8px"
        return f'<iframe sandbox srcdoc="{escape(str(self))}" style="{look}"></iframe>'


def element(tag: str, *content: str, **attributes: str | bool | float | None) -> Html:
    """Makes an element; escapes attributes, and content that is not `Html`.

    The attributes `class_="x"` and `data_node="y"` become `class` and `data-node`; False and `None` omit an attribute.
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None and value is not False:
            key = name.rstrip("_").replace("_", "-")
            words.append(key if value is True else f'{key}="{escape(visible(str(value)))}"')
    inner = "".join(part if isinstance(part, Html) else escape(visible(part)) for part in content)
    return Html(f"<{' '.join(words)}>" if tag in _VOID else f"<{' '.join(words)}>{inner}</{tag}>")


def page(title: str, *body: Html, style: str = "") -> Page:
    """Makes a page with its title, its content, and additional CSS rules."""
    rules = f"{_STYLE}{style}"
    digest = base64.b64encode(hashlib.sha256(rules.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("style", Html(rules)),
    )
    return Page(f"<!doctype html>\n{element('html', head, element('body', *body), lang='en')}\n")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Html:
    """Makes a table that scrolls on a narrow screen; columns of `numbers` are aligned to the right. `head` may be empty."""
    right = frozenset(numbers)

    def row(cells: Sequence[str], tag: str) -> Html:
        return element("tr", *(element(tag, cell, class_="number" if i in right else None) for i, cell in enumerate(cells)))

    body = element("tbody", *(row(cells, "td") for cells in rows))
    return element("div", element("table", *([element("thead", row(head, "th"))] if head else []), body), class_="wide")


def folded(summary: str, *inside: str, open_: bool = False) -> Html:
    """Makes a part that opens on a click."""
    return element("details", element("summary", summary), *inside, open=open_)


def bar(share: float, said: str = "") -> Html:
    """Makes a bar that is filled for a share between 0 and 1; `said` is its text for screen readers."""
    filled = element("rect", width=f"{100 * min(max(share, 0.0), 1.0):.2f}", height="1")
    about = {"aria_label": said} if said else {"aria_hidden": "true"}
    return element("svg", filled, class_="bar", viewBox="0 0 100 1", preserveAspectRatio="none", role="img", **about)


def picture(content: bytes, alt: str, width: int | None = None, height: int | None = None) -> Html:
    """Embeds an image file: PNG, JPEG or WebP. `alt` describes the image; its size is in CSS pixels, by default its own."""
    kind = "png" if content[:4] == b"\x89PNG" else "jpeg" if content[:2] == b"\xff\xd8" else "webp"
    held = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    return element("img", src=held, alt=alt, width=width, height=height)


_CELL = "text-align:left;vertical-align:top;padding:2px 14px 2px 0;background:none"
_HEAD = f"{_CELL};font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)"


class Explanation(str):
    """Text that a notebook and the interpreter print line by line, not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return preformatted(self)


def preformatted(text: str) -> str:
    """Formats text in a fixed-width font; long lines scroll."""
    return f'<pre style="white-space:pre;overflow-x:auto;line-height:1.35">{escape(str(text))}</pre>'


def box(title: str, aside: str, *parts: str) -> str:
    """Puts HTML below a bold title and a faint aside, which are both escaped; the parts are not."""
    quiet = f' <code style="opacity:.6">{escape(aside)}</code>' if aside else ""
    return f'<div style="margin:.3em 0"><div><b>{escape(title)}</b>{quiet}</div>{"".join(parts)}</div>'


def notebook_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Makes a table for a notebook, with all text escaped; empty without rows."""
    lines = ["".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) for row in rows]
    if not lines:
        return ""
    first = "<tr>" + "".join(f'<th style="{_HEAD}">{escape(cell)}</th>' for cell in head) + "</tr>" if head else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="border-collapse:collapse;margin:.4em 0;border:0">{first}{body}</table>'


def notebook_folded(summary: str, inside: str) -> str:
    """Makes a part that opens on a click, for a notebook; escapes the summary."""
    return f'<details style="margin:.3em 0"><summary>{escape(summary)}</summary>{inside}</details>'
