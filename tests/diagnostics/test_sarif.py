"""The SARIF log keeps the rules of SARIF 2.1.0 that code-scanning services check."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.diagnostics.catalog import CODES, make
from pipegen.diagnostics.diagnostic import Applicability, Edit, Fix, Label, Span
from pipegen.diagnostics.machine_readable import render_sarif

SPAN = Span("a b.yaml", 3, 5, 3, 9)


def log(*found: Any) -> dict[str, Any]:
    return json.loads(render_sarif(found, version="1.2.3"))


def check(document: dict[str, Any]) -> None:
    """What the schema demands of the parts that pipegen writes."""
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "pipegen"
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for rule in driver["rules"]:
        assert set(rule) <= {"id", "name", "shortDescription", "fullDescription", "help", "defaultConfiguration"}
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in [*result.get("locations", []), *result.get("relatedLocations", [])]:
            assert location.get("physicalLocation") or location.get("logicalLocations")
            if "physicalLocation" in location:
                check_place(location["physicalLocation"]["artifactLocation"], location["physicalLocation"]["region"])
        for fix in result.get("fixes", []):
            assert fix["description"]["text"]
            for change in fix["artifactChanges"]:
                assert change["replacements"]
                for replacement in change["replacements"]:
                    check_place(change["artifactLocation"], replacement["deletedRegion"])
                    assert "text" in replacement["insertedContent"]


def check_place(artifact: dict[str, Any], region: dict[str, int]) -> None:
    assert artifact["uri"]
    assert not set(artifact["uri"]) & set(" <>\\")
    assert all(region[key] >= 1 for key in ("startLine", "startColumn", "endLine", "endColumn"))
    assert (region["endLine"], region["endColumn"]) >= (region["startLine"], region["startColumn"])


def test_rules_are_the_catalogue() -> None:
    document = log()
    check(document)
    driver = document["runs"][0]["tool"]["driver"]
    assert [r["id"] for r in driver["rules"]] == list(CODES)
    assert driver["version"] == "1.2.3"
    assert document["runs"][0]["results"] == []
    assert "version" not in json.loads(render_sarif([]))["runs"][0]["tool"]["driver"]


def test_a_finding_with_everything() -> None:
    d = make(
        "PG102",
        "unknown key",
        Label(SPAN, "here", "a.b"),
        Label(Span("base.yaml", 1, 1, 2, 4), "from here"),
        Label(None),
        help="do this",
        fix=Fix("rename", (Edit(SPAN, "x"),), Applicability.SAFE),
    )
    document = log(d)
    check(document)
    region = {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}
    (result,) = document["runs"][0]["results"]
    assert result == {
        "ruleId": "PG102",
        "ruleIndex": list(CODES).index("PG102"),
        "level": "error",
        "message": {"text": "unknown key\ndo this"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "a%20b.yaml"}, "region": region},
                "logicalLocations": [{"fullyQualifiedName": "a.b"}],
            }
        ],
        "relatedLocations": [
            {
                "id": 0,
                "physicalLocation": {
                    "artifactLocation": {"uri": "base.yaml"},
                    "region": {"startLine": 1, "startColumn": 1, "endLine": 2, "endColumn": 4},
                },
                "message": {"text": "from here"},
            }
        ],
        "fixes": [
            {
                "description": {"text": "rename"},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": "a%20b.yaml"},
                        "replacements": [{"deletedRegion": region, "insertedContent": {"text": "x"}}],
                    }
                ],
                "properties": {"applicability": "safe", "option": "--fix"},
            }
        ],
    }


def test_a_finding_without_a_file() -> None:
    document = log(make("PG509", "m", Label(None, path="splits")), make("PG402", "m"))
    check(document)
    first, second = document["runs"][0]["results"]
    assert first["level"] == "note"
    assert first["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "splits"}]}]
    assert "locations" not in second


@pytest.mark.nightly
@settings(max_examples=50, deadline=None)
@given(st.builds(Span, st.sampled_from(["a.yaml", "<stdin>", "x\\y é.yaml", "/abs/a.yaml"]), *[st.integers(-2, 5)] * 4))
def test_odd_spans_stay_within_the_schema(span: Span) -> None:
    check(log(make("PG105", "m", Label(span, "t"), Label(span), fix=Fix("f", (Edit(span, "r"),), Applicability.SUGGESTION))))
