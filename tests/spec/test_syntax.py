"""Syntax errors in plain words, at the place to mend."""

from __future__ import annotations

import pytest

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.diagnostics.fixes import apply_fixes
from pipegen.spec.compose import compose


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        ("a:\n\t- b\n", "a tab where", 2, 1),
        ("a: 1\n\tb: 2\n", "a tab where", 2, 1),
        ("a: [1, 2\nb: 3\n", "expected `,` or `]`", 2, 2),
        ("a: [1, 2\n", "`[` is opened and never closed", 1, 4),
        ("a: {x: 1\n", "`{` is opened and never closed", 1, 4),
        ("a: [", "`[` is opened and never closed", 1, 4),
        ("a: {b: 2, c: [1, {x: 3},\n", "`[` is opened and never closed", 1, 14),
        ('a: {b: "]", c: [1, # ]\n', "`[` is opened and never closed", 1, 16),
        ("a: 'x\nb: 1\n", "a quote is opened and never closed", 1, 4),
        ('a: "x\nb: 1\n', "a quote is opened and never closed", 1, 4),
        ("a:1\nb: 2\n", "a space is missing after the colon", 1, 2),
        ("a: 1\nb:2\nc: 3\n", "a space is missing after the colon", 2, 2),
        ("a: b: c\n", "a second `: ` in one line", 1, 5),
        ("a: 1\n b: 2\n", "indented deeper", 2, 3),
        ("a\nb: 1\n", "a key without a colon", 1, 1),
        ("a: 1\nb\nc: 2\n", "a key without a colon", 2, 1),
        ("a: @x\n", "cannot begin with @", 1, 4),
        ("a: %x\n", "cannot begin with %", 1, 4),
        ('a: "\\q"\n', "`\\q` means nothing", 1, 6),
        ("a: ]\n", "a value is missing before `]`", 1, 4),
        ("a: {b: 1}}\n", "`}` closes nothing", 1, 10),
        ("- a\nb: c\n", "is not aligned", 2, 1),
        ("a:\n  - b\n - c\n", "is not aligned", 3, 2),
        ("k: 'it's'\n", "text after the closing quote", 1, 8),
    ],
)
def test_messages_and_places(text: str, words: str, line: int, column: int) -> None:
    out = Diagnostics()
    assert compose(text, "f", out) is None
    (finding,) = out
    assert finding.code == "PG002"
    assert words in finding.message
    assert finding.span is not None
    assert (finding.span.line, finding.span.column) == (line, column)
    assert "scanning" not in finding.message


def test_the_opening_bracket_is_shown_too() -> None:
    out = Diagnostics()
    compose("a: [1, 2\nb: 3\n", "f", out)
    (finding,) = out
    assert [label.span.line for label in finding.labels if label.span] == [2, 1]


def test_a_missing_space_can_be_mended() -> None:
    text = "a:1\nb: 2\n"
    out = Diagnostics()
    compose(text, "f", out)
    (finding,) = out
    assert finding.fix is not None
    assert apply_fixes(text, [finding.fix], "f") == ("a: 1\nb: 2\n", 1)
