"""The call of `pipegen.build` that stands for a group of iterators."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipegen.migrate.functions import permission
from pipegen.migrate.homes import array_stands, of_function, stands
from pipegen.migrate.settings import params_of, sides
from pipegen.migrate.sources import Sources, folder_below, weighted
from pipegen.migrate.values import ClassIndices, Generator, OneHot, Seq, Table, Unknown, origins_of, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.migrate.edits import Edits
    from pipegen.migrate.evaluate import Evaluator
    from pipegen.migrate.findings import Findings
    from pipegen.migrate.values import Flow
    from pipegen.migrate.write_spec import Written


@dataclass
class BuildCall:
    """Writes the call for one spec.

    Attributes:
        written: The spec, and the iterators that it stands for.
        evaluator: Says what expressions are.
        edits: Gives the text of expressions.
        findings: Takes what is not handed over.
        home: The statement that the call comes before.
        left_out: Iterators that the spec does not read.
        problem: Why there is no call, where there is none.
    """

    written: Written
    evaluator: Evaluator
    edits: Edits
    findings: Findings
    home: ast.stmt
    left_out: list[Flow]
    problem: str = field(init=False, default="")

    def text(self) -> str | None:
        """The call; `None`, with the problem, where the form or the place of the arrays is not sure."""
        data = self._data() if self.written.group.method == "flow" else ""
        return None if data is None else f'pipegen.build("{self.written.file}"{self._params()}{data}{allowed(self.written)})'

    def _data(self) -> str | None:
        """The arrays; `None` where their form or their place is not sure."""
        group = self.written.group
        parts = {}
        for split, flow in group.parts.items():
            given = self._arrays(flow)
            if given is None:
                return None
            parts[split] = given
        shared = len(parts) == 2 and all("subset" in f.args for f in group.parts.values()) and len(set(parts.values())) == 1
        if shared or (list(parts) == ["train"] and Sources(group, self.findings, {}).labelled()):
            return f", data={next(iter(parts.values()))}"
        return ", data={" + ", ".join(f'"{split}": {given}' for split, given in parts.items()) + "}"

    def _arrays(self, flow: Flow) -> str | None:
        self.problem = "whether the labels are class indices or one-hot rows is not known"
        if "x" not in flow.args or isinstance(flow.argument("x"), Seq) or "**" in flow.args:
            return None
        arrays = [flow.args[name].node for name in ("x", "y", "sample_weight") if name in flow.args]
        if not all(array_stands(self.evaluator, node, flow, self.home) for node in arrays):
            inside = flow.frame is not of_function(flow.frame)
            where = "outside the comprehension" if inside else f"before line {self.home.lineno}"
            self.problem = f"the arrays of line {flow.line} are not there, or are others, {where}"
            return None
        image = f'"image": {self.edits.source(flow.args["x"].node)}'
        if "y" not in flow.args or plain(flow.argument("y")) is None:
            return f"{{{image}}}"
        label, value = self.edits.source(flow.args["y"].node), flow.argument("y")
        if isinstance(value, OneHot):
            inner = flow.args["y"].node
            label = f"{label}.argmax(axis=1)" if isinstance(inner, (ast.Name, ast.Attribute, ast.Call)) else f"({label}).argmax(axis=1)"
        elif not isinstance(value, ClassIndices):
            return None
        weight = f', "weight": {self.edits.source(flow.args["sample_weight"].node)}' if weighted(flow) else ""
        return f'{{{image}, "label": {label}{weight}}}'

    def _params(self) -> str:
        """What is known at run time alone, or may be another then, where its expression gives the same here."""
        given: dict[str, str] = {}
        flows = [flow for flow in self.written.group.flows if flow not in self.left_out]
        for name, text in (*(p for f in flows for p in self._paths(f)), *(n for f in flows for n in self._numbers(f))):
            given.setdefault(name, text)
        self._report_lost(given)
        self._note(given)
        return ", params={" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}" if given else ""

    def _report_lost(self, given: dict[str, str]) -> None:
        """Say which values may be others at run time and are not handed over."""
        group = self.written.group
        for flow in group.flows:
            for name, argument in flow.args.items():
                lost = [p for p in params_of(group, flow, name, self.written.params) if p not in given]
                if lost and origins_of(argument.value) and flow not in self.left_out:
                    message = f"`{name}` is not handed over: its expression gives something else, or nothing, before this line"
                    self.findings.add("PG615", argument.node.lineno, message, f'add it to the call of `build`: `params={{"{lost[0]}": …}}`')

    def _note(self, given: dict[str, str]) -> None:
        """Say of what is not known that the call gives it, where it does."""
        group = self.written.group
        for flow in group.flows:
            for name, argument in flow.args.items():
                names = params_of(group, flow, name, self.written.params)
                known = plain(argument.value)
                if not names or not isinstance(known, Unknown) or any(param not in given for param in names):
                    continue
                for finding in self.findings.of("unresolved"):
                    about = finding.message.startswith(f"`{name}` is not known") or f"`--set {names[0]}=" in finding.help
                    if finding.line in (argument.node.lineno, flow.line, known.line) and about and finding.help.startswith("the spec has"):
                        help_ = finding.help.replace("the spec has", "the spec alone has").replace("put the", "put the usual")
                        self.findings.exchange(finding, f"the call of `build` gives it; {help_}")

    def _paths(self, flow: Flow) -> Iterator[tuple[str, str]]:
        """Folders and tables."""
        group, declared = self.written.group, self.written.params
        for param in params_of(group, flow, "directory", declared):
            text = self._text(flow, "directory") if self._varies(flow, "directory") else ""
            below = folder_below(flow) if group.masks else ""
            if text:
                yield param, f"os.path.join({text}, {below!r})" if below else text
        table = flow.argument("dataframe")
        if isinstance(table, Table) and table.named is not None and origins_of(self.evaluator.value(*table.named)):
            node, frame = table.named
            for param in params_of(group, flow, "dataframe", declared):
                if of_function(frame) is of_function(flow.frame) and stands(self.evaluator, node, frame, self.home):
                    yield param, self.edits.source(node)

    def _numbers(self, flow: Flow) -> Iterator[tuple[str, str]]:
        """Sizes and the seed."""
        for argument in ("target_size", "batch_size", "seed"):
            names = params_of(self.written.group, flow, argument, self.written.params)
            if names and self._varies(flow, argument):
                texts = self._sides(flow, names) if argument == "target_size" else [(names[0], self._text(flow, argument))]
                yield from ((name, text) for name, text in texts if text)

    def _sides(self, flow: Flow, names: list[str]) -> list[tuple[str, str]]:
        """Height and width, or the one side."""
        node = flow.args["target_size"].node
        side = sides(flow)
        if names == ["size"] and side is not None:
            return [("size", self.edits.source(side) if self._stands(side, flow) else "")]
        if isinstance(node, (ast.Tuple, ast.List)):
            pairs = zip(names, node.elts, strict=False) if len(names) == 2 else ()
            return [(name, self.edits.source(part) if self._stands(part, flow) else "") for name, part in pairs]
        text = self._text(flow, "target_size") if isinstance(flow.argument("target_size"), Seq) else ""
        return [(name, f"{text}[{i}]" if text else "") for i, name in enumerate(names)]

    def _text(self, flow: Flow, argument: str) -> str:
        """An argument as an expression that gives the same before the call; empty where there is none."""
        given = flow.args[argument]
        inside = self.evaluator.value(given.node, flow.frame) is not given.value  # of a dict that is unpacked
        if not self._stands(given.node, flow) or (inside and not isinstance(given.node, (ast.Name, ast.Attribute))):
            return ""
        return self.edits.source(given.node) + (f'["{argument}"]' if inside else "")

    def _varies(self, flow: Flow, argument: str) -> bool:
        """Whether an argument is not known, or may be another at run time."""
        value = flow.argument(argument)
        return argument in flow.args and (isinstance(plain(value), Unknown) or bool(origins_of(value)))

    def _stands(self, node: ast.expr, flow: Flow) -> bool:
        return stands(self.evaluator, node, flow.frame, self.home)


def hint(written: Written) -> str:
    """The call as far as it is known without the code around it."""
    group = written.group
    inner = '{"image": x, "label": y}'
    data = "" if group.method != "flow" else f", data={inner}" if len(group.parts) == 1 else ', data={"train": ' + inner + ", …}"
    return f'pipegen.build("{written.file}"{data}{allowed(written)})'


def allowed(written: Written) -> str:
    """The permission to call a function of the user's, where the spec does."""
    generator = written.group.first.generator
    argument = generator.args.get("preprocessing_function") if isinstance(generator, Generator) else None
    return permission(argument.value) if argument is not None else ""
