"""Findings as SARIF 2.1.0, the format that code-scanning services read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipegen.diagnostics.catalog import CODES, Code, page
from pipegen.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity, Span
from pipegen.diagnostics.paths import file_uri

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""The name of the schema that the document follows; nothing is fetched."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(diagnostics: Sequence[Diagnostic], *, version: str | None = None) -> str:
    """The findings as one SARIF log with one run of this version of pipegen."""
    rules = list(CODES.values())
    index = {rule.code: i for i, rule in enumerate(rules)}
    driver: dict[str, Any] = {"name": "pipegen", "rules": [_rule(rule) for rule in rules]}
    if version is not None:
        driver["version"] = version
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(d, index) for d in diagnostics],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: Code) -> dict[str, Any]:
    told = page(code.code)
    what, why = (told.sections[title].strip() for title in ("What it finds", "Why"))
    return {
        "id": code.code,
        "name": code.name,
        "shortDescription": {"text": f"{code.title}."},
        "fullDescription": {"text": " ".join(what.split())},
        "help": {"text": f"{what}\n\n{why}\n\nMore: pipegen rule {code.code}", "markdown": told.text},
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _result(d: Diagnostic, index: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {"ruleId": d.code, "level": _LEVELS[d.severity], "message": {"text": "\n".join((d.message, *d.help))}}
    if d.code in index:
        result["ruleIndex"] = index[d.code]
    # A shared base is no file of the repository: what is shown there comes first, and the base is among the related places.
    labels = sorted(d.labels, key=lambda label: label.span is not d.in_project) if d.in_base else d.labels
    locations = [(label, _location(label)) for label in labels]
    if locations and locations[0][1]:
        result["locations"] = [locations[0][1]]
    related = [{"id": i, **at, "message": {"text": label.text or "related"}} for i, (label, at) in enumerate(locations[1:]) if at]
    if related:
        result["relatedLocations"] = related
    if d.fix is not None and d.fix.edits:
        result["fixes"] = [_fix(d.fix)]
    return result


def _location(label: Label) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if label.span is not None:
        location["physicalLocation"] = {"artifactLocation": {"uri": file_uri(label.span.file)}, "region": _region(label.span)}
    if label.path:
        location["logicalLocations"] = [{"fullyQualifiedName": label.path}]
    return location


def _region(span: Span) -> dict[str, int]:
    """A region of the SARIF schema, where lines and columns are at least 1 and the end is not before the start."""
    line, column = max(span.line, 1), max(span.column, 1)
    end_line = max(span.end_line, line)
    end_column = max(span.end_column, column if end_line == line else 1)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(fix: Fix) -> dict[str, Any]:
    by_file: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.replacement}}
        by_file.setdefault(edit.span.file, []).append(replacement)
    changes = [{"artifactLocation": {"uri": file_uri(file)}, "replacements": edits} for file, edits in by_file.items()]
    properties = {"applicability": fix.applicability.value, "option": fix.applicability.option}
    return {"description": {"text": fix.title}, "artifactChanges": changes, "properties": properties}
