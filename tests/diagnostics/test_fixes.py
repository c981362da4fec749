"""Fixes go in whole or not at all, and nothing else changes."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix, Offsets, Span, split_lines
from pipegen.diagnostics.fixes import apply_fixes


def fix(*edits: tuple[int, int, int, int, str], file: str = "f") -> Fix:
    return Fix("t", tuple(Edit(Span(file, a, b, c, d), text) for a, b, c, d, text in edits), Applicability.SAFE)


def test_a_replacement_an_insertion_and_a_deletion() -> None:
    text = "a: 1\nprob: 0.5\nseed: 1 # x\n"
    fixes = [fix((2, 1, 2, 5, "probability")), fix((1, 1, 1, 1, "pipegen: 1\n")), fix((3, 8, 3, 12, ""))]
    assert apply_fixes(text, fixes, "f") == ("pipegen: 1\na: 1\nprobability: 0.5\nseed: 1\n", 3)


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    text = "\ufeffa: 1\r\nb: yes\r\nc: 3"
    assert apply_fixes(text, [fix((2, 4, 2, 7, "true")), fix((1, 1, 1, 2, "A"))], "f") == ("\ufeffA: 1\r\nb: true\r\nc: 3", 2)


def test_an_edit_may_span_lines() -> None:
    assert apply_fixes("a\r\nb\r\nc\r\n", [fix((1, 2, 3, 1, "\r\n"))], "f") == ("a\r\nc\r\n", 1)


def test_the_first_of_two_overlapping_fixes_wins() -> None:
    assert apply_fixes("abcdef", [fix((1, 2, 1, 5, "X")), fix((1, 4, 1, 6, "Y"))], "f") == ("aXef", 1)
    assert apply_fixes("abc", [fix((1, 2, 1, 2, "X")), fix((1, 2, 1, 2, "Y"))], "f") == ("aXbc", 1)
    assert apply_fixes("abcd", [fix((1, 1, 1, 3, "X")), fix((1, 3, 1, 5, "Y"))], "f") == ("XY", 2)


def test_a_fix_goes_in_whole_or_not_at_all() -> None:
    both = fix((1, 1, 1, 2, "X"), (1, 3, 1, 4, "Z"))
    assert apply_fixes("abc", [both], "f") == ("XbZ", 1)
    assert apply_fixes("abc", [fix((1, 3, 1, 4, "q")), both], "f") == ("abq", 1)
    assert apply_fixes("abc", [fix((1, 1, 1, 3, "X"), (1, 2, 1, 4, "Z"))], "f") == ("abc", 0)


def test_what_does_not_fit_the_text_is_left_out() -> None:
    for place in [(9, 1, 9, 2), (0, 1, 1, 2), (1, 0, 1, 2), (1, 1, 1, 9), (1, 3, 1, 2), (2, 1, 1, 1)]:
        assert apply_fixes("abc\nd", [fix((*place, "X"))], "f") == ("abc\nd", 0)
    assert apply_fixes("abc", [fix((1, 1, 1, 2, "X"), file="other"), Fix("none", (), Applicability.SAFE)], "f") == ("abc", 0)


def test_lines_are_those_of_the_yaml_reader() -> None:
    assert split_lines("\ufeffa\r\nb\rc\nd\x0be\x85f\u2028g\n") == ["a", "b", "c", "d\x0be", "f", "g", ""]
    assert split_lines("") == [""]


_texts = st.text(alphabet="ab名\r\n\ufeff", max_size=30)


@settings(max_examples=100, deadline=None)
@given(_texts)
def test_offsets_agree_with_lines(text: str) -> None:
    offsets = Offsets(text)
    for number, line in enumerate(split_lines(text), 1):
        start = offsets.at(number, 1)
        assert start is not None
        assert text[start : start + len(line)] == line
        assert offsets.at(number, len(line) + 1) == start + len(line)
        assert offsets.at(number, len(line) + 2) is None
    assert offsets.at(len(split_lines(text)) + 1, 1) is None


@settings(max_examples=200, deadline=None)
@given(_texts, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 8), st.integers(0, 4), st.integers(0, 8)), max_size=5))
def test_everything_else_stays(text: str, places: list[tuple[int, int, int, int]]) -> None:
    fixes = [fix((*place, "\x01")) for place in places]
    result, count = apply_fixes(text, fixes, "f")
    assert result.count("\x01") == count <= len(fixes)
    if count == 0:
        assert result == text
    # What lies between the replacements occurs in the text, in this order.
    pieces = [re.escape(piece) for piece in result.split("\x01")]
    assert re.fullmatch(".*".join(pieces), text, re.DOTALL)
    alone = [f for f in fixes if apply_fixes(text, [f], "f")[1]]
    assert bool(alone) == bool(count)
