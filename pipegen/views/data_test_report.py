"""Reports of tests of data: as text, HTML, JSON, and JUnit XML for continuous integration."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.diagnostics.machine_readable import render_json
from pipegen.diagnostics.text import render_text
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.page import box, notebook_table, preformatted
from pipegen.terminal import ODD, aligned, sign_for, visible

if TYPE_CHECKING:
    from pipegen.data.testing import DataTestResult, Status

_STATUSES: tuple[Status, ...] = ("passed", "failed", "warned", "skipped")


@dataclass(frozen=True)
class DataTestReport:
    """The results of the tests of a spec."""

    name: str  # the spec's name
    results: tuple[DataTestResult, ...]  # the result of each test that ran, in the order of the spec
    texts: Mapping[str, str]  # the texts that the findings point into, by file name
    errors: tuple[Diagnostic, ...] = ()  # errors of the spec or its data, because of which no test ran

    @property
    def passed(self) -> bool:
        """True if no test failed; warnings are not failures."""
        return not self.errors and not any(result.status == "failed" for result in self.results)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every finding, in the order of the tests."""
        return (*self.errors, *(finding for result in self.results for finding in result.findings))

    def raise_if_failed(self) -> None:
        """Raises `SpecError` with the findings of the failed tests, if any."""
        if not self.passed:
            failed = [finding for result in self.results if result.status == "failed" for finding in result.findings]
            raise SpecError([*self.errors, *failed])

    @property
    def summary(self) -> str:
        """The counts in a line: `7 tests: 5 passed, 2 failed (1.3 s)`."""
        counts = Counter(result.status for result in self.results)
        told = ", ".join(f"{counts[status]} {status}" for status in _STATUSES if counts[status])
        n, seconds = len(self.results), sum(result.seconds for result in self.results)
        return f"{n} {'test' if n == 1 else 'tests'}{': ' + told if told else ''} ({seconds:.1f} s)"

    def lines(self) -> list[str]:
        """Writes a line for each test: its status, its id, and what it measured; several lines for several splits."""
        rows = []
        for result in self.results:
            first, *more = result.seen.split("; ")
            rows += [(result.status, result.id, first), *(("", "", part) for part in more)]
        return aligned(rows)

    def __str__(self) -> str:
        """Joins the lines, the findings and the summary."""
        found = render_text(self.diagnostics, sources=self.texts) if self.diagnostics else ""
        return visible("\n".join((*self.lines(), "", *([found] if found else []), self.summary)))

    def __repr__(self) -> str:
        return f"DataTestReport({self.summary})"

    def _repr_html_(self) -> str:
        rows = [(result.status, result.id, result.seen) for result in self.results]
        found = [preformatted(render_text(self.diagnostics, sources=self.texts))] if self.diagnostics else []
        return box(f"Tests of {self.name}", self.summary, notebook_table(("", "test", "seen"), rows), *found)

    def as_json(self) -> str:
        """Writes one JSON document: that of the findings, with `tests` added.

        Each test has `id`, `test`, `path`, `place`, `status`, `seen`, `seconds` and `findings`, which are indices into `diagnostics`. The
        `summary` also counts the tests by status.
        """
        document: dict[str, Any] = json.loads(render_json(self.diagnostics))
        at = len(self.errors)
        tests = []
        for result in self.results:
            own = list(range(at, at + len(result.findings)))
            at += len(own)
            plain = {name: getattr(result, name) for name in ("id", "test", "path", "place", "status", "seen")}
            tests.append(plain | {"seconds": round(result.seconds, 3), "findings": own})
        counts = Counter(result.status for result in self.results)
        document["summary"] |= {status: counts[status] for status in _STATUSES}
        return json.dumps({"version": document.pop("version"), "tests": tests, **document}, indent=2)

    def as_junit(self) -> str:
        """Writes JUnit XML for Jenkins, GitLab and GitHub's actions: one suite, a case for each test.

        A failed test is a `failure`. A warning passes, with its text in `system-out`. If no test could run, one case has the `error`.
        """
        counts = Counter(result.status for result in self.results)
        cases = len(self.results) + bool(self.errors)
        totals = {"tests": str(cases), "failures": str(counts["failed"]), "errors": str(int(bool(self.errors)))}
        totals["skipped"] = str(counts["skipped"])
        totals["time"] = f"{sum(result.seconds for result in self.results):.3f}"
        suites = Xml.Element("testsuites", totals)
        suite = Xml.SubElement(suites, "testsuite", {"name": _clean(self.name), **totals})
        if self.errors:
            case = Xml.SubElement(suite, "testcase", {"classname": _clean(self.name), "name": "the spec and its data", "time": "0"})
            first, told = self.errors[0], "\n".join(map(_as_text, self.errors))
            Xml.SubElement(case, "error", {"message": _clean(first.message), "type": first.code}).text = _clean(told)
        for result in self.results:
            about = {"classname": _clean(self.name), "name": _clean(result.id), "time": f"{result.seconds:.3f}"}
            file, _, place = result.place.rpartition(":")
            file, _, line = file.rpartition(":")
            about |= {"file": _clean(file), "line": line} if file and place.isdigit() and line.isdigit() else {}
            case = Xml.SubElement(suite, "testcase", about)
            told = "\n".join(map(_as_text, result.findings))
            if result.status == "failed":
                first = result.findings[0]
                Xml.SubElement(case, "failure", {"message": _clean(first.message), "type": first.code}).text = _clean(told)
            elif result.status == "skipped":
                Xml.SubElement(case, "skipped", {"message": _clean(result.seen)})
            Xml.SubElement(case, "system-out").text = _clean(f"{result.seen}\n{told}" if result.status == "warned" else result.seen)
        Xml.indent(suites)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, encoding="unicode")


def _as_text(finding: Diagnostic) -> str:
    where = finding.span if finding.span is not None else finding.primary.path if finding.primary is not None else ""
    return "\n".join((f"{where}: {finding.severity.value} {finding.code}: {finding.message}", *(f"help: {line}" for line in finding.help)))


def _clean(text: str) -> str:
    """Replaces characters that are invalid in XML, or control characters of terminals."""
    return ODD.sub(lambda m: m[0] if m[0] in "\n\t" else sign_for(m[0]), text)
