"""The training code after the migration: only edits that are sure; the rest is said."""

from __future__ import annotations

import ast
import json
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pipegen.migrate.build_call import BuildCall, hint
from pipegen.migrate.displays import Display, displays_of
from pipegen.migrate.edits import Edits
from pipegen.migrate.homes import home_of, is_read_elsewhere
from pipegen.migrate.imports import exchange_imports
from pipegen.migrate.leftovers import Leftovers
from pipegen.migrate.pair_edits import edit_pair
from pipegen.migrate.refusals import Refusals
from pipegen.migrate.signatures import FLOWS
from pipegen.migrate.sources import Sources, folder_below
from pipegen.migrate.uses import UseEdits, access, goes_on
from pipegen.migrate.values import certain

if TYPE_CHECKING:
    from pipegen.migrate.findings import Findings
    from pipegen.migrate.groups import Group
    from pipegen.migrate.interpret import Collected
    from pipegen.migrate.reading import Code
    from pipegen.migrate.values import Flow, Generator
    from pipegen.migrate.write_spec import Written

_FEATURES = "write one spec with a feature for each of them"
_ENDLESS = ".repeat().as_numpy_iterator()"
"""What makes of a split batches without an end."""


@dataclass
class Rewriter:
    """Edits the code of one file.

    Attributes:
        code: The file.
        found: What it has to do with `ImageDataGenerator`.
        findings: Takes what must be done by hand.
    """

    code: Code
    found: Collected
    findings: Findings
    edits: Edits = field(init=False)
    done: list[Flow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.edits = Edits(self.code.text, cast("ast.Module", self.code.tree))

    def run(self, specs: list[Written]) -> str:
        """The new code, for the groups that a spec was written for."""
        for written in specs:
            self._group(written)
        if not self.done:
            return self.code.text
        for generator in self.found.generators:
            self._generator(generator)
        Leftovers(self.edits, self.found, self.findings, self.done, self.names[0] if len(self.names) == 1 else "pipe").report()
        exchange_imports(self.edits)
        return self.edits.apply()

    def _group(self, written: Written) -> None:
        group = written.group
        first = min(group.flows, key=lambda f: (f.node.lineno, f.node.col_offset))
        home = home_of(first)
        left_out = Sources(group, self.findings, {}).left_out()
        displays = displays_of(self.found, group, left_out)
        problem = Refusals(group, self.found, frozenset(id(d.element) for d in displays)).reason()
        if problem or home is None:
            self._refuse(written, problem)
            return
        build = BuildCall(written, self.found.evaluator, self.edits, self.findings, home, left_out)
        call = build.text()
        if call is None:
            self._refuse(written, build.problem)
            return
        pipe = self._new_name()
        self.edits.before(home, f"{pipe} = {call}")
        self.done += group.flows
        for display in displays:
            self._display(display, group, pipe)
        whole = {id(d.element) for d in displays}
        for split, flow in group.parts.items():
            name = _split_name(group, split)
            uses = UseEdits(self.edits, self.found, self.findings, pipe, name, flow in left_out)
            if split in group.zips:
                edit_pair(uses, group.zips[split])
                continue
            if id(flow.node) not in whole:
                text = f"{pipe}.predict_on({self._folder(flow)})" if uses.bare else self._fresh(pipe, name, flow)
                self.edits.replace(flow.node, text)
            for use in self.found.uses_of(flow):
                uses.edit(use)

    def _refuse(self, written: Written, problem: str) -> None:
        """Say why the code of a group is not edited, and what to write."""
        group = written.group
        split = _split_name(group, group.split_of(group.first))
        where = " where all its arrays are there" if problem.startswith("the arrays of") else ""
        help_ = f"write `pipe = {hint(written)}`{where}, and `{access('pipe', split)}` for the iterator"
        if group.masks:
            help_ = help_.removesuffix("the iterator") + "both"
        elif "together" in problem:
            help_ = _FEATURES
        line = min(f.line for f in group.flows)
        self.findings.add("PG615", line, f"this code is not edited: {problem}", help_)

    def _display(self, display: Display, group: Group, pipe: str) -> None:
        """A comprehension that makes iterators becomes what it makes, written out."""
        texts = [self._fresh(pipe, _split_name(group, group.split_of(flow)), flow) for flow in display.flows]
        if display.keys is not None:
            keys = [json.dumps(key, ensure_ascii=False) for key in display.keys]
            text = "{" + ", ".join(f"{key}: {text}" for key, text in zip(keys, texts, strict=True)) + "}"
        else:
            text = f"[{', '.join(texts)}]"
        self.edits.replace(display.node, text)

    def _fresh(self, pipe: str, split: str, flow: Flow) -> str:
        """What stands for an iterator."""
        return access(pipe, split) + (_ENDLESS if goes_on(self.found, flow) else "")

    def _folder(self, flow: Flow) -> str:
        """The folder of an iterator without labels, as an expression."""
        node, below = flow.args["directory"].node, folder_below(flow)
        known = certain(flow.argument("directory"))
        if not below:
            return self.edits.source(node)
        return repr(posixpath.join(known, below)) if isinstance(known, str) else f"os.path.join({self.edits.source(node)}, {below!r})"

    def _new_name(self) -> str:
        taken = {*re.findall(r"\w+", self.code.text), *self.names}
        name = next(n for n in ("pipe", *(f"pipe{i}" for i in range(2, len(taken) + 3))) if n not in taken)
        self.names.append(name)
        return name

    def _generator(self, generator: Generator) -> None:
        """Take out a generator that nothing uses any more, and its `fit`."""
        flows = [f for f in self.found.flows if f.generator is generator]
        if (
            not flows
            or any(f not in self.done for f in flows)
            or any(o is generator and name not in FLOWS for o, name, _ in self.found.members)
        ):
            return
        if id(generator) not in self.found.statements or id(generator.node) in self.found.shared:
            return
        calls = [call for owner, call in self.found.fits if owner is generator]
        statement, frame = self.found.statements[id(generator)]
        known = frozenset(id(c.func.value) for c in (*calls, *(f.node for f in flows)) if isinstance(c.func, ast.Attribute))
        if is_read_elsewhere(self.found.evaluator, statement, frame, known):
            return
        self.edits.delete(statement)
        for expression in ast.walk(self.edits.tree):
            if isinstance(expression, ast.Expr) and expression.value in calls:
                self.edits.delete(expression)


def _split_name(group: Group, split: str) -> str:
    return "predict" if len(group.parts) == 1 and split == "predict" else split
