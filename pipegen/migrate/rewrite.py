"""Edits the training code where the result is certain, and reports the rest."""

from __future__ import annotations

import ast
import json
import posixpath
import re
from dataclasses import dataclass, field, replace
from typing import cast

from pipegen.migrate.build_call import BuildCall, hint
from pipegen.migrate.draws import ENDLESS, Draws, goes_on, going_on, is_first, is_next, loops_around, region_of
from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Display, Group, Written, displays_of
from pipegen.migrate.hoisting import Hoisted, hoisted, unused
from pipegen.migrate.homes import home_of, late_home, waiting_name
from pipegen.migrate.interpret import Collected
from pipegen.migrate.known import certain
from pipegen.migrate.labels import folder_below
from pipegen.migrate.leftovers import Leftovers
from pipegen.migrate.nodes import Function
from pipegen.migrate.pairs import edit_pair
from pipegen.migrate.reading import Code
from pipegen.migrate.refusals import BY_NUMBER, Refusals, owner_of, round_of, varies
from pipegen.migrate.removal import Removal, exchange_imports
from pipegen.migrate.sources import Sources
from pipegen.migrate.uses import REPLACED, UseEdits, access
from pipegen.migrate.values import Flow


@dataclass
class Rewriter:
    """Edits the code of one file."""

    code: Code
    found: Collected
    findings: Findings
    edits: Edits = field(init=False)
    draws: Draws = field(init=False)
    done: list[Flow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    moved: list[Flow] = field(default_factory=list)  # iterators that stand at calls of functions of the file
    gone: list[Function] = field(default_factory=list)  # removed functions
    compat: bool = False  # true if code remains that takes `ImageDataGenerator` from `pipegen.compat`

    def __post_init__(self) -> None:
        self.edits = Edits(self.code.text, cast("ast.Module", self.code.tree))
        self.draws = Draws(self.edits, self.found)

    def run(self, specs: list[Written]) -> str:
        """The new code, for the groups that have a spec."""
        for written in specs:
            self._group(written)
        if not self.done and not self.compat:
            return self.code.text
        Removal(self.edits, self.found, self.done, self.gone).run()
        Leftovers(self.edits, self.found, self.findings, self.done, self.names[0] if len(self.names) == 1 else "pipe").report()
        exchange_imports(self.edits, self.findings, self.code.hidden(), pipegen=bool(self.done), compat=self.compat)
        return self.edits.apply()

    def _group(self, written: Written) -> None:
        move = hoisted(self.found, written.group, needed=owner_of(written.group, self.found) is None)
        if move is not None:
            move.apply(self.found)
            self.edits.texts.update(move.texts())
            if self._edit(replace(written, group=move.group), move):
                self.moved += [new for _, new in move.moved]
                for function in unused(self.edits.tree, move.makers, [new.node for new in self.moved]):
                    self.edits.delete(function)
                    self.gone += [function]
                return
            move.undo(self.found)
        self._edit(written)

    def _edit(self, written: Written, move: Hoisted | None = None) -> bool:
        """Edits the code of a group. If it cannot, returns False and reports the reason, unless its iterators are moved."""
        group = written.group
        first = min(group.flows, key=lambda f: (f.node.lineno, f.node.col_offset))
        home = home_of(first)
        left_out = Sources(group).left_out()
        displays = [*displays_of(self.found, group, left_out), *(move.displays if move is not None else ())]
        problem = Refusals(group, self.found, frozenset(id(d.element) for d in displays)).reason()
        if problem or home is None:
            return self._refuse(written, problem, quiet=move is not None)
        nodes = move.nodes if move is not None else {}
        build = BuildCall(written, self.found.evaluator, self.edits, self.findings, home, left_out, nodes)
        build = self._out_of_loops(build, group)
        home, call = build.home, build.text()
        later = late_home(group.flows) if call is None and build.arrays_missing else None
        if later is not None:
            home, call = later, replace(build, home=later).text()
        if call is None:
            return self._refuse(written, build.problem, quiet=move is not None)
        loop = round_of(self.edits.tree, self.found, group, home, call)
        if loop is not None:
            return self._keep(group, loop, quiet=move is not None)
        owner = owner_of(group, self.found)
        pipe = f"{owner}.{self._new_name()}" if owner else self._new_name()
        self.edits.before(home, f"{pipe} = {call}")
        waiting = [flow for flow in group.flows if later is not None and home_of(flow) is not later]
        self.done += group.flows
        for display in displays:
            self._display(display, group, pipe)
        whole = {id(d.element) for d in displays}
        for split, flow in group.parts.items():
            name = _split_name(group, split)
            fresh = f"{pipe}.predict_on({self._folder(flow)})" if flow in left_out else self._fresh(pipe, name, flow)
            own = self._of_place(flow, f"{access(pipe, name)}{ENDLESS}", home) or fresh
            uses = UseEdits(self.edits, self.found, self.findings, pipe, name, self.draws, flow in left_out, own)
            if split in group.zips:
                edit_pair(uses, group.zips[split])
                continue
            if flow in waiting:
                self.edits.before(home, f"{waiting_name(flow)} = {fresh}")
                self.edits.delete(cast("ast.stmt", home_of(flow)))
            elif id(flow.node) not in whole and not any(u.kind == "loop" and u.node is flow.node for u in self.found.uses_of(flow)):
                self.edits.replace(flow.node, own)
            for use in self.found.uses_of(flow):
                uses.edit(use)
        return True

    def _refuse(self, written: Written, problem: str, *, quiet: bool) -> bool:
        """Reports why the code of a group is not edited, and what to write."""
        if quiet:
            return False
        group = written.group
        split = _split_name(group, group.split_of(group.first))
        missing = next((what for what in ("arrays", "table") if problem.startswith(f"the {what} of")), "")
        where = f" where all its {missing} are there" if missing == "arrays" else " where its tables are there" if missing else ""
        help_ = f"write `pipe = {hint(written)}`{where}, and `{access('pipe', split)}` instead of the iterator"
        if group.masks:
            help_ = help_.removesuffix("the iterator") + "both"
        elif "together" in problem:
            help_ = "write one spec with a feature for each of them"
        elif BY_NUMBER in problem:
            help_ = "`from pipegen.compat import ImageDataGenerator` also has batches by number, and the other code stays as it is"
        line = min(f.line for f in group.flows)
        self.findings.add("PG615", line, f"this code is not edited: {problem}", help_)
        self._in_no_spec(group)
        return False

    def _keep(self, group: Group, loop: ast.stmt, *, quiet: bool) -> bool:
        """Leaves code to `pipegen.compat` if each of its rounds would begin with the same numbers."""
        if quiet:
            return False
        self.compat = True
        message = f"this code is not edited: each round of the loop in line {loop.lineno} makes a new iterator"
        message += ", but a pipeline that is built in each round would draw the same numbers again"
        help_ = "`pipegen.compat` has the class, and draws other numbers in each round, as in Keras"
        help_ += "; or build once before the loop, and loop over `pipe.train`, which counts its epochs"
        self.findings.add("PG615", min(f.line for f in group.flows), message, help_)
        self._in_no_spec(group)
        return False

    def _in_no_spec(self, group: Group) -> None:
        """Reports data of unedited code that no spec reads."""
        for flow in Sources(group).left_out():
            folder = self._folder(flow) if "directory" in flow.args else "FOLDER"
            message = f"the {group.split_of(flow)} data of line {flow.line} is not in a spec, since it has no labels"
            self.findings.add("PG615", flow.line, message, f"write `pipe.predict_on({folder})` instead of its iterator")

    def _display(self, display: Display, group: Group, pipe: str) -> None:
        """Writes out a comprehension, or a call in a loop, that makes iterators."""
        texts = [self._fresh(pipe, _split_name(group, group.split_of(flow)), flow) for flow in display.flows]
        text = f"({', '.join(texts)})" if display.is_tuple else f"[{', '.join(texts)}]"
        if display.keys is not None:
            keys = [json.dumps(key, ensure_ascii=False) for key in display.keys]
            text = "{" + ", ".join(f"{key}: {text}" for key, text in zip(keys, texts, strict=True)) + "}"
        if display.name:
            text = texts[0] if len(texts) == 1 else f"{text}[{display.name}]"
        self.edits.replace(display.element if display.name else display.node, text)

    def _fresh(self, pipe: str, split: str, flow: Flow) -> str:
        return access(pipe, split) + (ENDLESS if goes_on(self.found, flow, REPLACED) else "")

    def _out_of_loops(self, build: BuildCall, group: Group) -> BuildCall:
        """Moves the call before the loops that draw from an iterator made in each round, if it can be made once."""
        flow = group.first
        in_place = len(group.flows) == 1 and all(u.node is flow.node and (is_next(u) or is_first(u)) for u in self.found.uses_of(flow))
        begins_anew = flow.known("shuffle") is False or not varies(flow)  # each round then takes the same examples, not the next ones
        for loop in loops_around(flow) if in_place and self.found.uses_of(flow) and not begins_anew else ():
            outer = replace(build, home=loop)
            if outer.text() is not None:
                return outer
        return build

    def _of_place(self, flow: Flow, endless: str, home: ast.stmt) -> str:
        """Iterator in place of a call from which several rounds take batches; empty for other calls."""
        if not any(u.node is flow.node and region_of(u) is not None for u in going_on(self.found, flow)):
            return ""
        name = self.draws.new_name("batches")
        self.draws.names_of_calls.append(name)
        self.edits.before(home, f"{name} = {endless}")
        return name

    def _folder(self, flow: Flow) -> str:
        """Folder of an iterator without labels, as an expression."""
        node, below = flow.args["directory"].node, folder_below(flow)
        known = certain(flow.argument("directory"))
        if not below:
            within = any(n is node for n in ast.walk(flow.node))  # else it is the name of a parameter where the iterator was made
            return self.edits.source(node) if within or not isinstance(known, str) else repr(str(known))
        return repr(posixpath.join(known, below)) if isinstance(known, str) else f"os.path.join({self.edits.source(node)}, {below!r})"

    def _new_name(self) -> str:
        taken = {*re.findall(r"\w+", self.code.text), *self.names}
        name = next(n for n in ("pipe", *(f"pipe{i}" for i in range(2, len(taken) + 3))) if n not in taken)
        self.names.append(name)
        return name


def _split_name(group: Group, split: str) -> str:
    return "predict" if len(group.parts) == 1 and split == "predict" else split
