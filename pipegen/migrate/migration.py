"""The migration of one file: its specs, its changed code and the findings."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipegen.migrate.findings import Findings, report_text
from pipegen.migrate.groups import Group, Written, group_flows
from pipegen.migrate.interpret import Collected, collect
from pipegen.migrate.mistakes import find_mistakes
from pipegen.migrate.nodes import name_of
from pipegen.migrate.reading import Code, cell_mark, parse_code, patch_name, plain_text, restored, unified, with_sources
from pipegen.migrate.rewrite import Rewriter
from pipegen.migrate.signatures import FITTED
from pipegen.migrate.values import Unknown
from pipegen.migrate.write_spec import Writer
from pipegen.phases.compilation import inspect

SUFFIX = ".pipegen.yaml"
_OF_ARRAYS = ("random_transform", "apply_transform", "get_random_transform", "standardize")  # methods of a generator that take one array


@dataclass
class Migration:
    """Result of the migration of one file."""

    code: Code
    specs: dict[str, str] = field(default_factory=dict)  # texts of the specs, by file name
    changed: str = ""  # the code after the migration; for a notebook, of its joined cells
    findings: Findings = field(default_factory=Findings)
    concerned: bool = False  # true if the file uses `ImageDataGenerator` at all

    @property
    def broken(self) -> bool:
        """True if the file could not be read."""
        return bool(self.findings.of("broken"))

    def diff(self) -> str:
        """The changes as a unified diff; of a notebook, cell by cell."""
        if not self.code.cells:
            return self.patch()
        name = os.path.basename(self.code.file)
        titles = {number: [f"{side}/{name} cell {number}" for side in "ab"] for number, _, _ in self._cells()}
        return "".join(unified(plain_text(before), plain_text(after), *titles[number]) for number, before, after in self._cells())

    def patch(self) -> str:
        """The changes as a patch of the stored file, to be written in its encoding; empty if there are none."""
        raw = self.code.raw
        if self.code.cells:
            changed = with_sources(raw, {number: after for number, before, after in self._cells() if before != after})
        elif self.changed:
            text = raw.removeprefix("\ufeff")
            changed = raw[: len(raw) - len(text)] + restored(text, self.code.text.split("\n"), self.changed.split("\n"))
        else:
            changed = raw
        name = os.path.basename(self.code.file)
        return unified(raw, changed, patch_name(f"a/{name}"), patch_name(f"b/{name}"))

    def _cells(self) -> Iterator[tuple[int, str, str]]:
        """Number, old and new text of each code cell; lines that are not Python are restored."""
        if self.changed in ("", self.code.text):
            return
        changed = self.changed.split("\n")
        starts = [changed.index(cell_mark(cell.number)) + 1 for cell in self.code.cells]
        ends = [*(start - 1 for start in starts[1:]), len(changed) - 1]
        for cell, first, last in zip(self.code.cells, starts, ends, strict=True):
            yield cell.number, cell.source, restored(cell.source, cell.lines, changed[first:last])

    def report(self) -> str:
        """The report."""
        return report_text(self.findings, self.code.place)


def migrate(file: str) -> Migration:
    """Migrates a `.py` or `.ipynb` file; writes nothing. Raises `OSError` if the file cannot be opened."""
    with open(file, "rb") as stream:
        return migrate_code(parse_code(file, stream.read()))


def migrate_code(code: Code, *, always: bool = False) -> Migration:
    """Migrates parsed code; with `always`, also code that does not name `ImageDataGenerator`."""
    result = Migration(code, findings=code.findings)
    if code.tree is None or not (always or "ImageDataGenerator" in code.text or "flow_from_d" in code.text):
        return result
    try:
        found = collect(code.tree)
        groups = group_flows(found)
        find_mistakes(found, groups, result.findings)
        result.concerned = bool(found.generators or found.flows)
        _without_flow(found, result.findings)
        _assigned(found, result.findings)
        written = _specs(code, groups, result, frozenset(id(owner) for owner, _ in found.fits))
        result.changed = Rewriter(code, found, result.findings).run(written)
        _check(result)
    except RecursionError:
        result.findings.add("PG601", 0, "the code is nested too deeply to be followed")
    return result


def _check(result: Migration) -> None:
    """Undoes changes that are not valid Python, as a last resort."""
    marks = {cell_mark(cell.number) for cell in result.code.cells}
    try:
        ast.parse(result.changed)
        lost = marks - set(result.changed.split("\n"))
    except SyntaxError:
        lost = {""}
    if lost:
        result.changed = result.code.text
        result.findings.add("PG615", 0, "the code is not edited: the edits would not be valid Python", "the report says what to do")


def _without_flow(found: Collected, findings: Findings) -> None:
    for generator in found.generators:
        if not any(f.generator is generator or getattr(f.generator, "node", None) is generator.node for f in found.flows):
            message = "this ImageDataGenerator has no iterator in this file"
            help_ = "migrate the file that calls `flow…` on it, or write the spec by hand"
            single = next((name for owner, name, _ in found.members if owner is generator and name in _OF_ARRAYS), "")
            name = found.name_of(generator)
            unsure = [f for f in found.flows if isinstance(f.generator, Unknown) and name == name_of(getattr(f.node.func, "value", None))]
            if name and unsure:
                message = f"line {unsure[0].line} makes an iterator, but it is not certain if this ImageDataGenerator is the one used"
                help_ = "make an iterator of each generator, so that each has a spec, and choose between their pipelines"
            elif single:
                help_ = f"`{single}` takes one array at a time; `from pipegen.compat import ImageDataGenerator` has this method, too"
            findings.add("PG612", generator.line, message, help_)


def _assigned(found: Collected, findings: Findings) -> None:
    for _, name, line in found.assigned:
        message = f"`{name}` is assigned to the generator after it was made"
        help_ = "the spec has the value of the constructor: check which one is right"
        statements = (n for n in ast.walk(found.evaluator.module.scope.node) if isinstance(n, ast.Assign) and n.lineno == line)
        copied = any(isinstance(n.value, ast.Attribute) and n.value.attr == name for n in statements)  # from another generator
        if name in FITTED and copied and any(other == name and at == line for _, other, at in found.members):
            help_ = "`standardize` in the spec is fitted to the training data once for every split, so this line can be removed"
        elif name in FITTED:
            help_ = "write it as a step, `normalize: {mean: …, std: …}`, after the steps that come before it in Keras"
        findings.add("PG610", line, message, help_)


def _specs(code: Code, groups: list[Group], result: Migration, fitted: frozenset[int]) -> list[Written]:
    """Writes a spec for each group, if it can have one."""
    stem = os.path.splitext(os.path.basename(code.file))[0]
    written: list[Written] = []
    for group in groups:
        name = stem if not written else f"{stem}-{len(written) + 1}"
        file = f"{name}{SUFFIX}"
        writer = Writer(group, os.path.basename(code.file), result.findings, fitted)
        text = writer.text()
        problem = next((d for d in inspect(file, text=text).diagnostics if d.severity.value == "error"), None)
        if problem is not None:
            message = f"no spec is written, since it would not be valid: {problem.message}"
            result.findings.add("PG630", group.first.line, message, "change that in the code, or write the spec by hand")
            continue
        result.specs[file] = text
        written.append(Written(group, file, writer.params))
    return written
