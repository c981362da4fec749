"""JSON and GitHub annotations."""

from __future__ import annotations

import json
import os

import pytest

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix, Label, Span, file_uri, relative_path
from pipegen.diagnostics.machine_readable import render_github, render_json

SPAN = Span("a.yaml", 3, 5, 3, 9)
FOUND = [
    make(
        "PG102",
        "unknown key",
        Label(SPAN, "did you mean `probability`?", "transforms[0].random_flip.prob"),
        help="allowed: axis",
        fix=Fix("rename", (Edit(SPAN, "probability"),), Applicability.SAFE),
    ),
    make("PG509", "no validation", Label(None, path="splits")),
]


def test_json_document() -> None:
    span = {"file": "a.yaml", "line": 3, "column": 5, "end_line": 3, "end_column": 9}
    assert json.loads(render_json(FOUND)) == {
        "version": 1,
        "diagnostics": [
            {
                "code": "PG102",
                "name": "unknown-key",
                "severity": "error",
                "message": "unknown key",
                "labels": [{"span": span, "path": "transforms[0].random_flip.prob", "text": "did you mean `probability`?"}],
                "help": ["allowed: axis"],
                "fix": {"title": "rename", "applicability": "safe", "edits": [{"span": span, "replacement": "probability"}]},
            },
            {
                "code": "PG509",
                "name": "no-validation",
                "severity": "info",
                "message": "no validation",
                "labels": [{"span": None, "path": "splits", "text": ""}],
                "help": [],
                "fix": None,
            },
        ],
        "summary": {"errors": 1, "warnings": 0, "infos": 1, "safe_fixes": 1, "suggestions": 0},
    }


def test_json_of_nothing() -> None:
    nothing = {"errors": 0, "warnings": 0, "infos": 0, "safe_fixes": 0, "suggestions": 0}
    assert json.loads(render_json([])) == {"version": 1, "diagnostics": [], "summary": nothing}


def test_github_annotations() -> None:
    assert render_github(FOUND) == (
        "::error file=a.yaml,line=3,col=5,endLine=3,endColumn=9,title=PG102 unknown-key::"
        "unknown key%0Adid you mean `probability`?%0Ahelp: allowed: axis%0Afix: rename (`pipegen validate --fix`)\n"
        "::notice title=PG509 no-validation::splits: no validation\n"
    )
    assert render_github([]) == ""


def test_a_suggestion_is_called_one() -> None:
    fix = Fix("write `cutmix`", (Edit(SPAN, "cutmix"),), Applicability.SUGGESTION)
    d = make("PG103", "there is no step `aug_mix`", Label(SPAN), fix=fix)
    assert "%0Asuggestion: write `cutmix` (`pipegen validate --unsafe-fixes`)\n" in render_github([d])
    document = json.loads(render_json([d]))
    assert document["diagnostics"][0]["fix"]["applicability"] == "suggestion"
    assert (document["summary"]["safe_fixes"], document["summary"]["suggestions"]) == (0, 1)


def test_github_escapes() -> None:
    d = make("PG503", "100%\r\nof it, really: yes", Label(Span("a,b:c%.yaml", 1, 2, 4, 5)))
    assert (
        render_github([d]) == "::warning file=a%2Cb%3Ac%25.yaml,line=1,endLine=4,title=PG503 tiny-angle::100%25%0D%0Aof it, really: yes\n"
    )


def test_paths_are_relative_to_the_working_directory(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = os.path.join(os.getcwd(), "specs", "a b.yaml")
    assert relative_path(inside) == "specs/a b.yaml"
    assert relative_path("./specs/../x.yaml") == "x.yaml"
    assert relative_path("/elsewhere/x.yaml") == "/elsewhere/x.yaml"
    assert relative_path("<stdin>") == "<stdin>"
    assert file_uri(inside) == "specs/a%20b.yaml"
    assert file_uri("/elsewhere/ü.yaml") == "file:///elsewhere/%C3%BC.yaml"
    assert render_github([make("PG101", "m", Label(Span(inside, 1, 1, 1, 2)))]).startswith("::error file=specs/a b.yaml,")
