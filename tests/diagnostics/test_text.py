"""Golden renderings for people, and that nothing makes the renderer raise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Edit, Fix, Label, Severity, Span
from pipegen.diagnostics.text import display_width, render_text, summary
from pipegen.terminal import one_line

SPEC = """\
pipegen: 1
source: {image_folder: {path: flowers/}}
seed: 1

transforms:
  - random_flip: {prob: 0.5, probability: 1}
seed: 17
"""


def at(line: int, column: int, end: int, text: str = "", file: str = "f.yaml", end_line: int | None = None) -> Label:
    return Label(Span(file, line, column, end_line or line, end), text)


def shown(*diagnostics: Diagnostic, text: str = SPEC, width: int | None = None, **more: str) -> str:
    return "\n" + render_text(diagnostics, sources={"f.yaml": text, **more}, width=width)


def body(rendered: str) -> str:
    """Without the line of the code's page and the count, which every finding has."""
    kept = [line for line in rendered.splitlines() if not re.match(r" *= more|\d+ (error|warning|info)", line)]
    return "\n".join(kept).rstrip("\n") + "\n"


def test_one_label() -> None:
    fix = Fix("rename `prob` to `probability`", (Edit(Span("f.yaml", 6, 19, 6, 23), "probability"),), Applicability.SAFE)
    place = at(6, 19, 23, "did you mean `probability`?")
    d = make("PG102", "unknown key `prob` for step `random_flip`", place, help="allowed: axis, probability", fix=fix)
    assert (
        shown(d)
        == """
error[PG102]: unknown key `prob` for step `random_flip`
 --> f.yaml:6:19
  |
6 |   - random_flip: {prob: 0.5, probability: 1}
  |                   ^^^^ did you mean `probability`?
  |
  = help: allowed: axis, probability
  = fix: rename `prob` to `probability` (`pipegen validate --fix` applies it)
  = more: pipegen rule PG102

1 error; 1 fixable with `pipegen validate --fix`
"""
    )


def test_two_labels_on_one_line() -> None:
    d = make("PG102", "m", at(6, 19, 23, "this one"), at(6, 30, 41, "stands here already"))
    assert (
        body(shown(d))
        == """
error[PG102]: m
 --> f.yaml:6:19
  |
6 |   - random_flip: {prob: 0.5, probability: 1}
  |                   ^^^^       ----------- stands here already
  |                   |
  |                   this one
  |
"""
    )


def test_a_label_inside_another() -> None:
    d = make("PG102", "m", at(6, 19, 23, "inner"), at(6, 5, 43, "outer"), at(6, 30, 41, "beside"))
    assert (
        body(shown(d))
        == """
error[PG102]: m
 --> f.yaml:6:19
  |
6 |   - random_flip: {prob: 0.5, probability: 1}
  |     --------------^^^^--------------------
  |     |             |          |
  |     |             |          beside
  |     |             inner
  |     outer
  |
"""
    )


def test_labels_on_several_lines_with_and_without_a_gap() -> None:
    d = make("PG007", "`seed` stands twice", at(7, 1, 5, "again here"), at(3, 1, 5, "first here"), at(5, 1, 11, "between"))
    assert (
        body(shown(d))
        == """
error[PG007]: `seed` stands twice
 --> f.yaml:7:1
  |
3 | seed: 1
  | ---- first here
4 |
5 | transforms:
  | ---------- between
6 |   - random_flip: {prob: 0.5, probability: 1}
7 | seed: 17
  | ^^^^ again here
  |
"""
    )
    far = make("PG007", "m", at(7, 1, 5), at(1, 1, 8))
    assert (
        body(shown(far))
        == """
error[PG007]: m
 --> f.yaml:7:1
  |
1 | pipegen: 1
  | -------
...
7 | seed: 17
  | ^^^^
  |
"""
    )


def test_labels_in_two_files() -> None:
    d = make("PG105", "m", at(3, 7, 8, "too small"), at(1, 1, 4, "the bound is here", file="base.yaml"))
    assert (
        body(shown(d, **{"base.yaml": "min: 32\n"}))
        == """
error[PG105]: m
 --> f.yaml:3:7
  |
3 | seed: 1
  |       ^ too small
 ::: base.yaml:1:1
  |
1 | min: 32
  | --- the bound is here
  |
"""
    )


def test_the_gutter_is_as_wide_as_the_largest_line_number() -> None:
    text = "a: 1\n" * 120
    d = make("PG105", "m", at(101, 1, 2, "here"), at(9, 1, 2))
    assert (
        body(shown(d, text=text))
        == """
error[PG105]: m
   --> f.yaml:101:1
    |
  9 | a: 1
    | -
...
101 | a: 1
    | ^ here
    |
"""
    )


def test_wide_characters_and_tabs_are_aligned() -> None:
    d = make("PG102", "m", at(1, 6, 8, "here"))
    assert (
        body(shown(d, text="\t名前: 子供 # 😀\n"))
        == """
error[PG102]: m
 --> f.yaml:1:6
  |
1 |     名前: 子供 # 😀
  |           ^^^^ here
  |
"""
    )
    d = make("PG102", "m", at(1, 4, 5, "here"))
    assert "1 | 😀e\u0301x\n  |    ^ here" in shown(d, text="😀e\u0301x")


def test_long_lines_are_cut_around_the_place() -> None:
    text = "start " + "a" * 300 + " bad " + "b" * 300
    d = make("PG105", "m", at(1, 308, 311, "here"))
    row = "…" + "a" * 17 + " bad " + "b" * 17 + "…"
    rendered = shown(d, text=text, width=44).splitlines()
    line = next(x for x in rendered if x.startswith("1 | "))
    marks = rendered[rendered.index(line) + 1]
    assert line[4:].strip("…").strip("ab").strip() == "bad"
    assert len(line) <= 44
    assert line.index("bad") == marks.index("^^^")
    assert abs(len(line) - 4 - len(row)) <= 3
    first = shown(make("PG105", "m", at(1, 1, 6)), text=text, width=44)
    assert "1 | start aaa" in first
    assert "a…\n" in first
    last = shown(make("PG105", "m", at(1, len(text), len(text) + 1)), text=text, width=44)
    assert re.search(r"1 \| …b+\n  \| +\^\n", last)


def test_a_span_of_several_lines_is_shown_by_its_first() -> None:
    d = make("PG112", "m", at(5, 1, 3, "all this", end_line=7))
    assert (
        body(shown(d))
        == """
error[PG112]: m
 --> f.yaml:5:1
  |
5 | transforms:
  | ^^^^^^^^^^^ all this
  |
"""
    )


def test_the_end_of_the_file_and_an_empty_span_still_get_a_caret() -> None:
    d = make("PG002", "unexpected end", at(8, 1, 1, "here"))
    assert (
        body(shown(d))
        == """
error[PG002]: unexpected end
 --> f.yaml:8:1
  |
8 |
  | ^ here
  |
"""
    )


def test_without_a_span_the_key_path_is_shown() -> None:
    d = make("PG102", "unknown key `prob`", Label(None, "", "transforms[2].random_flip.prob"), help="first\nsecond")
    assert (
        shown(d)
        == """
error[PG102]: unknown key `prob`
  --> transforms[2].random_flip.prob
   = help: first
           second
   = more: pipegen rule PG102

1 error
"""
    )


def test_a_file_that_cannot_be_read_leaves_the_place() -> None:
    d = make("PG105", "m", at(3, 7, 8, "too small", file="gone.yaml"), at(99, 1, 2, "beyond"), Label(None))
    assert (
        body(shown(d))
        == """
error[PG105]: m
  --> gone.yaml:3:7: too small
  ::: f.yaml:99:1: beyond
"""
    )


def test_reads_the_file_from_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfpipegen: 1\r\nb: \xff\r\n")
    rendered = render_text([make("PG105", "m", at(2, 1, 2, "b", file=str(file)), at(1, 1, 2, "a", file=str(file)))])
    assert "1 | pipegen: 1\n  | - a\n2 | b: �\n  | ^ b\n" in rendered
    assert "1 |" not in render_text([make("PG105", "m", at(1, 1, 2, file=str(tmp_path)))])


def test_summary_counts_by_severity() -> None:
    found = [make("PG102", "a"), make("PG102", "b"), make("PG503", "c"), make("PG509", "d"), make("PG512", "e")]
    assert summary(found) == "2 errors, 1 warning, 2 infos"
    assert render_text(found).endswith("\n\n2 errors, 1 warning, 2 infos\n")


def test_summary_counts_what_can_be_mended() -> None:
    edit = Edit(Span("f.yaml", 6, 19, 6, 23), "probability")
    safe, guess = (make("PG102", f"m{a}", fix=Fix("t", (edit,), a)) for a in (Applicability.SAFE, Applicability.SUGGESTION))
    assert summary([safe, make("PG102", "none")]) == "2 errors; 1 fixable with `pipegen validate --fix`"
    assert summary([safe, guess]) == "2 errors; 1 fixable with `pipegen validate --fix`, 1 more with `--unsafe-fixes`"
    assert summary([guess]) == "1 error; 1 fixable with `pipegen validate --unsafe-fixes`"
    assert "= suggestion: t (`pipegen validate --unsafe-fixes` applies it)" in render_text([guess])
    assert render_text([]) == ""


def test_what_the_fix_says_is_not_said_twice() -> None:
    fix = Fix("write `size: 32`", (Edit(Span("f.yaml", 6, 19, 6, 23), "size: 32"),), Applicability.SUGGESTION)
    text = shown(make("PG102", "no", at(6, 19, 23), help=("did you mean `size`?", "write `size: 32`"), fix=fix))
    assert text.count("write `size: 32`") == 1
    assert "= suggestion: write `size: 32` (`pipegen validate --unsafe-fixes` applies it)" in text
    assert "= help: did you mean `size`?" in text


def test_an_unknown_code_names_no_page() -> None:
    assert "= more" not in render_text([Diagnostic("PG999", Severity.ERROR, "m")])


def test_colours_only_add_escapes() -> None:
    found = [make("PG102", "m", at(6, 19, 23, "x"), at(6, 30, 41, "y"), help="h"), make("PG503", "w", at(3, 1, 5))]
    sources = {"f.yaml": SPEC}
    coloured = render_text(found, sources=sources, color=True)
    assert "\x1b[1;31merror[PG102]\x1b[0m" in coloured
    assert "\x1b[1;33m^^^^\x1b[0m" in coloured
    assert "\x1b" not in render_text(found, sources=sources)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(found, sources=sources)


@pytest.mark.parametrize(
    ("text", "expected"), [("a\nb", "a b"), ("a\tb", "a b"), ("\x1b[31m", "␛[31m"), ("\u202eabc", "�abc"), ("\ud800", "�"), ("x\x7f", "x␡")]
)
def test_nothing_can_move_the_cursor(text: str, expected: str) -> None:
    assert one_line(text) == expected


@pytest.mark.parametrize(("char", "width"), [("a", 1), ("é", 1), ("名", 2), ("😀", 2), ("\u0301", 0), ("\u200d", 0), ("ﾊ", 1)])
def test_display_width(char: str, width: int) -> None:
    assert display_width(char) == width


_numbers = st.integers(-3, 12) | st.integers(-(10**9), 10**9)
_texts = (
    st.text(max_size=30)
    | st.text(alphabet=st.characters(), max_size=30)
    | st.sampled_from(["\t", "名\u0301", "a" * 500, "\ud800", "\x1b[0m", ""])
)
_files = st.sampled_from(["f.yaml", "none.yaml", "", "\0", "\0001", "<stdin>", "/", "."])
_spans = st.builds(Span, _files, _numbers, _numbers, _numbers, _numbers)
_labels = st.builds(Label, st.none() | _spans, _texts, _texts)
_fixes = st.none() | st.builds(Fix, _texts, st.just(()))
_found = st.builds(
    Diagnostic,
    st.sampled_from(["PG102", "PG999", "x\n"]),
    st.sampled_from(Severity),
    _texts,
    st.lists(_labels, max_size=5).map(tuple),
    st.lists(_texts, max_size=2).map(tuple),
    _fixes,
)


@pytest.mark.nightly
@settings(max_examples=200, deadline=None)
@given(
    st.lists(_found, min_size=1, max_size=3), st.lists(_texts, max_size=8).map("\n".join), st.booleans(), st.none() | st.integers(-5, 200)
)
def test_never_raises(found: list[Diagnostic], text: str, color: bool, width: int | None) -> None:
    rendered = render_text(found, sources={"f.yaml": text}, color=color, width=width)
    rendered.encode()
    assert rendered.endswith(summary(found) + "\n")
    assert color or "\x1b" not in rendered


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab \t名😀\u0301é", min_size=1, max_size=60), st.data())
def test_carets_stand_below_the_place(line: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(line) - 1))
    end = data.draw(st.integers(start + 1, len(line)))
    rendered = render_text([make("PG105", "m", at(1, start + 1, end + 1))], sources={"f.yaml": line}, width=1000).splitlines()
    marks = rendered[4].removeprefix("  |").removeprefix(" ")
    widths = [4 if c == "\t" else display_width(c) for c in line]
    assert len(marks) - len(marks.lstrip()) == sum(widths[:start])
    assert marks.count("^") == max(sum(widths[start:end]), 1)
