"""Ignore comments silence lints on their line, never errors, and say when they are idle."""

from __future__ import annotations

import pytest

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label, Severity, Span
from pipegen.diagnostics.fixes import apply_fixes, suppressed


def at(line: int, code: str = "PG503", file: str = "f", severity: Severity | None = None) -> Diagnostic:
    return make(code, "m", Label(Span(file, line, 1, line, 2)), severity=severity)


def test_a_warning_on_the_line_is_silenced() -> None:
    text = "a: 1\nb: 2  # pipegen: ignore[PG503]\n"
    kept, unused = suppressed([at(1), at(2), at(2, "PG501"), at(2, file="g")], {"f": text})
    assert kept == [at(1), at(2, "PG501"), at(2, file="g")]
    assert unused == []


def test_several_codes_and_infos() -> None:
    text = "a: 1 #pipegen: ignore[ PG503 ,pg509]"
    assert suppressed([at(1), at(1, "PG509")], {"f": text}) == ([], [])


def test_what_has_no_place_is_kept() -> None:
    d = make("PG509", "m", Label(None, path="splits"))
    assert suppressed([d], {"f": "a: 1"}) == ([d], [])


def test_errors_are_never_silenced() -> None:
    text = "a: 1  # pipegen: ignore[PG102, PG403]"
    found = [at(1, "PG102"), at(1, "PG403", severity=Severity.ERROR)]
    kept, (unused,) = suppressed(found, {"f": text})
    assert kept == found
    assert unused.code == "PG511"
    assert unused.help == ("PG102 is an error, and errors cannot be silenced", "PG403 is an error, and errors cannot be silenced")


@pytest.mark.parametrize(
    ("line", "mended", "said"),
    [
        ("a: 1  # pipegen: ignore[PG503]", "a: 1", "`ignore[PG503]`"),
        ("# pipegen: ignore[PG503]", "", "`ignore[PG503]`"),
        ("a: 1 # pipegen: ignore[PG503, PG501]", "a: 1 # pipegen: ignore[PG501]", "`ignore[PG503]`"),
        ("a: 1 # pipegen: ignore[PG503] for the demo", "a: 1 # for the demo", "`ignore[PG503]`"),
        ("a: 1 # small # pipegen: ignore[PG503]", "a: 1 # small", "`ignore[PG503]`"),
    ],
)
def test_an_idle_comment_is_a_finding_with_a_fix(line: str, mended: str, said: str) -> None:
    kept, (unused,) = suppressed([at(1, "PG501")], {"f": line + "\r\n"})
    assert kept == ([] if "PG501" in line else [at(1, "PG501")])
    assert (unused.code, unused.severity) == ("PG511", Severity.WARNING)
    assert said in unused.message
    assert unused.fix is not None
    assert apply_fixes(line + "\r\n", [unused.fix], "f") == (mended + "\r\n", 1)
    assert unused.span is not None
    assert line[unused.span.column - 1 : unused.span.end_column - 1].startswith("# pipegen: ignore[")


def test_a_comment_without_codes_and_unknown_codes() -> None:
    _, (bare,) = suppressed([], {"f": "a: 1 # pipegen: ignore"})
    assert "has no code" in bare.message
    assert bare.fix is None
    _, (unknown,) = suppressed([], {"f": "a: 1 # pipegen: ignore[tiny-angle, PG999]"})
    assert unknown.help == ("unknown code TINY-ANGLE; did you mean PG503?", "unknown code PG999")


def test_an_idle_comment_can_be_silenced_itself() -> None:
    assert suppressed([], {"f": "a: 1 # pipegen: ignore[PG503, PG511]"}) == ([], [])


@pytest.mark.parametrize(
    "line",
    ['a: "# pipegen: ignore[PG503]"', "a: '# pipegen: ignore[PG503]'", "a: b#pipegen: ignore[PG503]", r'a: "\" # pipegen: ignore[PG503]"'],
)
def test_text_in_quotes_is_no_comment(line: str) -> None:
    assert suppressed([at(1)], {"f": line}) == ([at(1)], [])


def test_an_apostrophe_does_not_hide_a_comment() -> None:
    assert suppressed([at(1)], {"f": "a: it's # pipegen: ignore[PG503]"}) == ([], [])
