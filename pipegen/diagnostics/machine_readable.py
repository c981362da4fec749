"""Findings for machines: a stable JSON document, GitHub's workflow commands, and SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipegen.diagnostics.catalog import CODES, Code, page
from pipegen.diagnostics.diagnostic import Applicability, Diagnostic, Label, Severity, Span, file_uri, relative_path

JSON_VERSION = 1  # the version of the JSON document: new keys do not change it, but removed or changed keys do

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def code_name(code: str) -> str:
    """The name of a code, or the code itself if it is not in the catalogue."""
    return CODES[code].name if code in CODES else code


def render_json(diagnostics: Sequence[Diagnostic], **more: Any) -> str:
    """Renders findings as a JSON document.

    Keys: `version`; `diagnostics`, a list of `code`, `name`, `severity`, `message`, `labels` (the primary first; `span` is
    null without a file), `help` and `fix` (`title`, `applicability`, which is `safe` or `suggestion`, and `edits`); `summary`
    with the number of findings of each severity and of the fixes of each applicability. Lines and columns count from 1, in
    characters; the end column is exclusive. `more` keys are those of one command.
    """
    made = [d.fix.applicability for d in diagnostics if d.fix is not None]
    summary = {f"{s.value}s": sum(d.severity is s for d in diagnostics) for s in Severity}
    summary |= {"safe_fixes": made.count(Applicability.SAFE), "suggestions": made.count(Applicability.SUGGESTION)}
    findings = [{"code": d.code, "name": code_name(d.code), **asdict(d)} for d in diagnostics]
    document = {"version": JSON_VERSION, "diagnostics": findings, "summary": summary, **more}
    return json.dumps(document, indent=2)


def render_github(diagnostics: Sequence[Diagnostic]) -> str:
    """Renders findings as GitHub workflow commands, one a line, which GitHub shows beside the changed lines."""
    return "".join(_annotation(d) + "\n" for d in diagnostics)


def _annotation(d: Diagnostic) -> str:
    properties = {"title": f"{d.code} {code_name(d.code)}"}
    message = f"{d.span}: {d.message}" if d.in_base else d.message
    span = d.in_project
    if span is not None:
        properties |= {"file": relative_path(span.file), "line": str(span.line), "endLine": str(span.end_line)}
        # GitHub accepts columns only within one line.
        if span.line == span.end_line:
            properties |= {"col": str(span.column), "endColumn": str(span.end_column)}
    elif d.primary is not None and d.primary.path and not d.in_base:
        message = f"{d.primary.path}: {message}"
    lines = [message, *(label.text for label in d.labels[:1] if label.text), *(f"help: {h}" for h in d.help)]
    if d.fix is not None:
        kind = "fix" if d.fix.applicability is Applicability.SAFE else "suggestion"
        lines.append(f"{kind}: {d.fix.title} (`pipegen validate {d.fix.applicability.option}`)")
    return workflow_command(_COMMANDS[d.severity], properties, "\n".join(lines))


def workflow_command(command: str, properties: Mapping[str, str], text: str) -> str:
    """Renders one of GitHub's workflow commands, such as `notice`, as a line; the text may have several."""
    order = ("file", "line", "col", "endLine", "endColumn", "title")
    listed = ",".join(f"{k}={_data(properties[k]).replace(':', '%3A').replace(',', '%2C')}" for k in order if k in properties)
    return f"::{command} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"  # the name of the schema of the document; nothing is fetched

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(diagnostics: Sequence[Diagnostic], *, version: str | None = None) -> str:
    """Renders findings as a SARIF log with one run of this version of pipegen."""
    rules = list(CODES.values())
    index = {rule.code: i for i, rule in enumerate(rules)}
    driver: dict[str, Any] = {"name": "pipegen", "rules": [_rule(rule) for rule in rules]}
    if version is not None:
        driver["version"] = version
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [_result(d, index) for d in diagnostics]}
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
    # A shared base is not a file of the repository, so it is a related place, after the place in the repository.
    labels = sorted(d.labels, key=lambda label: label.span is not d.in_project) if d.in_base else d.labels
    locations = [(label, _location(label)) for label in labels]
    if locations and locations[0][1]:
        result["locations"] = [locations[0][1]]
    related = [{"id": i, **at, "message": {"text": label.text or "related"}} for i, (label, at) in enumerate(locations[1:]) if at]
    if related:
        result["relatedLocations"] = related
    if d.fix is not None and d.fix.edits:
        by_file: dict[str, list[dict[str, Any]]] = {}
        for edit in d.fix.edits:
            replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.replacement}}
            by_file.setdefault(edit.span.file, []).append(replacement)
        changes = [{"artifactLocation": {"uri": file_uri(file)}, "replacements": edits} for file, edits in by_file.items()]
        properties = {"applicability": d.fix.applicability.value, "option": d.fix.applicability.option}
        result["fixes"] = [{"description": {"text": d.fix.title}, "artifactChanges": changes, "properties": properties}]
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
