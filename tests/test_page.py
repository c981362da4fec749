"""Pages are one file that loads nothing and runs nothing, whatever stands in their texts."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING

import pytest
from page_tags import Tags

from pipegen.page import Html, bar, element, folded, page, picture, table

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script>\"' onload=x \x00\u202e & </style></table>"


def hostile_page() -> str:
    return page(
        HOSTILE,
        element("h1", HOSTILE, class_=HOSTILE),
        table([HOSTILE, "n"], [[HOSTILE, "1"]], numbers=[1]),
        folded(HOSTILE, element("p", HOSTILE), open_=True),
        bar(0.25, HOSTILE),
        picture(b"\x89PNG", HOSTILE, 4, 3),
    )


def test_every_text_is_escaped() -> None:
    tags = Tags(hostile_page())
    names = [tag for tag, _ in tags.found]
    assert "script" not in names
    assert names.count("style") == 1
    shown = "<script>alert(1)</script>\"' onload=x ␀\ufffd & </style></table>"
    assert tags.text.count(shown) == 6, "the title, a heading, two cells, a summary and a paragraph"
    assert {value for _, attrs in tags.found for name, value in attrs.items() if name in ("alt", "aria-label")} == {shown}
    assert not {name for _, attrs in tags.found for name in attrs if name.startswith("on") or name == "style"}


def test_the_policy_allows_the_pages_own_style_alone() -> None:
    text = hostile_page()
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(attrs["content"] for tag, attrs in Tags(text).found if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_markup_stays_markup() -> None:
    assert element("p", element("b", "a < b"), " & c") == "<p><b>a &lt; b</b> &amp; c</p>"
    assert element("details", Html("<i>x</i>"), open=True, class_=None) == "<details open><i>x</i></details>"


@pytest.mark.parametrize(("share", "width"), [(0.5, "50.00"), (-1.0, "0.00"), (7.0, "100.00")])
def test_a_bar_stays_within_its_frame(share: float, width: str) -> None:
    assert f'<rect width="{width}" height="1">' in bar(share)


def test_a_page_is_saved_and_shown_in_a_frame(tmp_path: Path) -> None:
    made = page("Größe", element("p", "1 µs"))
    made.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == made
    ((tag, attrs),) = Tags(made._repr_html_()).found
    assert tag == "iframe"
    assert attrs["srcdoc"] == made, "the frame's page is the page, escaped once"
    assert "sandbox" in attrs
    assert len(repr(made)) < 100
