"""The call of `pipegen.build` that stands for a group of iterators."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import FileEvaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.groups import Written
from pipegen.migrate.homes import array_stands, constants, of_function, stands
from pipegen.migrate.known import origins_of
from pipegen.migrate.labels import folder_below, hold_table_numbers, weighted
from pipegen.migrate.nodes import Row, names_in
from pipegen.migrate.sources import Sources
from pipegen.migrate.steps import expression, grouped, permission
from pipegen.migrate.values import Argument, Flow, Frame, Generator, OneHot, Seq, Table, Unknown, plain
from pipegen.migrate.write_spec import params_of, sides


@dataclass
class BuildCall:
    """Writes the call for one spec."""

    written: Written
    evaluator: FileEvaluator
    edits: Edits
    findings: Findings
    home: ast.stmt  # the statement that the call comes before
    left_out: list[Flow]  # iterators that the spec does not read
    moved: dict[int, ast.expr] = field(default_factory=dict)
    """Replacements of constructor arguments at the call of their function, by node id."""
    problem: str = field(init=False, default="")  # reason why there is no call
    arrays_missing: bool = field(init=False, default=False)  # true if the reason is that arrays differ there

    def text(self) -> str | None:
        """The call; `None`, with `problem` set, if the form or place of the arrays is uncertain."""
        data = self._data()
        return None if data is None else f"pipegen.build({_quoted(self.written.file)}{self._params()}{data}{allowed(self.written)})"

    def _data(self) -> str | None:
        """Arrays and tables of the code; `None` if their form or place is uncertain."""
        group = self.written.group
        sources = Sources(group)
        parts = {}
        for split, flow in group.parts.items():
            if flow.method != "flow" and not sources.in_memory(flow):
                continue
            given = self._arrays(flow) if flow.method == "flow" else self._table(flow)
            if given is None:
                return None
            parts[split] = given
        if parts and sources.is_whole() and len(set(parts.values())) == 1:
            return f", data={next(iter(parts.values()))}"
        return ", data={" + ", ".join(f'"{split}": {given}' for split, given in parts.items()) + "}" if parts else ""

    def _table(self, flow: Flow) -> str | None:
        self.problem = "its table may not be a DataFrame"
        if "dataframe" not in flow.args or "**" in flow.args:
            return None
        node = flow.args["dataframe"].node
        if array_stands(self.evaluator, node, flow, self.home):
            return self.edits.source(node)
        self._missing(flow, "table")
        return None

    def _missing(self, flow: Flow, what: str) -> None:
        inside = flow.frame is not of_function(flow.frame)
        where = "outside the comprehension" if inside else f"before line {self.home.lineno}"
        verb = "does" if what == "table" else "do"
        self.arrays_missing = True
        self.problem = f"the {what} of line {flow.line} {verb} not exist or may differ {where}"

    def _arrays(self, flow: Flow) -> str | None:
        self.problem = "its arrays are not separate arguments"
        if "x" not in flow.args or isinstance(flow.argument("x"), Seq) or "**" in flow.args:
            return None
        arrays = [flow.args[name].node for name in ("x", "y", "sample_weight") if name in flow.args]
        if not all(array_stands(self.evaluator, node, flow, self.home) for node in arrays):
            self._missing(flow, "arrays")
            return None
        node = flow.args["x"].node
        image = f'"image": {self.edits.source(node)}'
        if hold_table_numbers(self.evaluator, node, flow.frame):  # integers from a table are cast, as Keras did
            image = f'"image": {grouped(node, self.edits.source(node))}.astype("float32")'
        if flow.known("y") is None:
            return f"{{{image}}}"
        label, value = self.edits.source(flow.args["y"].node), flow.argument("y")
        name = Sources(self.written.group).given_labels()
        if name == "label" and isinstance(value, OneHot):
            label = f"{grouped(flow.args['y'].node, label)}.argmax(axis=1)"
        weight = f', "weight": {self.edits.source(flow.args["sample_weight"].node)}' if weighted(flow) else ""
        return f'{{{image}, "{name}": {label}{weight}}}'

    def _params(self) -> str:
        """Params that are known only at run time, or may change then, if their expression is valid here."""
        given: dict[str, str] = {}
        flows = [flow for flow in self.written.group.flows if flow not in self.left_out]
        paths, numbers = (p for f in flows for p in self._paths(f)), (n for f in flows for n in self._numbers(f))
        for name, text in (*paths, *numbers, *self._knobs()):
            given.setdefault(name, text)
        self._report_lost(given)
        self._note(given)
        return ", params={" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}" if given else ""

    def _report_lost(self, given: dict[str, str]) -> None:
        """Reports values that may change at run time and are not passed on."""
        group = self.written.group
        for knob in self.written.knobs:
            if knob.param not in given and isinstance(group.first.generator, Generator):
                self._lost(knob.param, group.first.generator.args[knob.argument])
        for flow in group.flows:
            for name, argument in flow.args.items():
                lost = [p for p in params_of(group, flow, name, self.written.params) if p not in given]
                if lost and origins_of(argument.value) and flow not in self.left_out:
                    self._lost(lost[0], argument)

    def _lost(self, param: str, argument: Argument) -> None:
        message = f"`{argument.name}` is not passed on: its expression has another value, or none, in line {self.home.lineno}"
        self.findings.add("PG615", argument.line, message, f'add it to the call of `build`: `params={{"{param}": …}}`')

    def _knobs(self) -> Iterator[tuple[str, str]]:
        generator = self.written.group.first.generator
        if not isinstance(generator, Generator):
            return
        for knob in self.written.knobs:
            argument = generator.args[knob.argument]
            inside = argument.unpacked
            moved = self.moved.get(id(argument.node))
            whole, frame = (argument.node, generator.frame) if moved is None else (moved, self.written.group.first.frame)
            node, text = expression(knob, whole, self._source(whole, frame), inside=inside)
            if (not inside or isinstance(node, (ast.Name, ast.Attribute))) and self._is_same_here(node, frame):
                yield knob.param, text

    def _is_same_here(self, node: ast.expr, frame: Frame) -> bool:
        """True if an expression of another frame has the same value before the call: within one function, or with module names."""
        here = of_function(self.written.group.first.frame)
        if of_function(frame) is here:
            return stands(self.evaluator, node, frame, self.home)
        others = [f for f in (here, *frame.outward) if f.parent is not None]
        return not any(names_in(node) & set(f.scope.bindings) for f in others) and stands(self.evaluator, node, here, self.home)

    def _note(self, given: dict[str, str]) -> None:
        """Notes, for each unknown value, that the call passes it."""
        group = self.written.group
        things = [(flow, a, params_of(group, flow, n, self.written.params)) for flow in group.flows for n, a in flow.args.items()]
        generator = group.first.generator
        if isinstance(generator, Generator):
            things += [(group.first, generator.args[knob.argument], [knob.param]) for knob in self.written.knobs]
        for flow, argument, names in things:
            if not names or any(param not in given for param in names):
                continue
            known = plain(argument.value)
            for finding in self.findings.of("unresolved"):
                default = finding.code == "PG613" and finding.line == argument.line and finding.message.startswith(f"`{argument.name}` is")
                if default and origins_of(argument.value) and finding.help.startswith("the spec has it as the default of"):
                    self.findings.exchange(finding, "the call of `build` gives it; the spec alone has this default")
                here = isinstance(known, Unknown) and finding.line in (argument.line, flow.line, known.line)
                about = finding.message.startswith(f"`{argument.name}` is not known") or f"`--set {names[0]}=" in finding.help
                if here and about and finding.help.startswith("the spec has"):
                    help_ = finding.help.replace("the spec has", "the spec alone has").replace("put the", "put the usual")
                    self.findings.exchange(finding, f"the call of `build` gives it; {help_}")

    def _paths(self, flow: Flow) -> Iterator[tuple[str, str]]:
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
                    yield param, self._source(node, frame)

    def _numbers(self, flow: Flow) -> Iterator[tuple[str, str]]:
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
            return [("size", self._standing(side, flow))]
        if isinstance(node, Row):
            pairs = zip(names, node.elts, strict=False) if len(names) == 2 else ()
            return [(name, self._standing(part, flow)) for name, part in pairs]
        named = isinstance(flow.argument("target_size"), Seq) or (len(names) == 2 and not isinstance(node, ast.Constant))
        text = self._text(flow, "target_size") if named else ""
        return [(name, f"{text}[{i}]" if text else "") for i, name in enumerate(names)]

    def _text(self, flow: Flow, argument: str) -> str:
        """An argument as an expression that is valid before the call; empty if there is none."""
        given = flow.args[argument]
        if given.unpacked and not isinstance(given.node, (ast.Name, ast.Attribute)):
            return ""
        text = self._standing(given.node, flow)
        return f'{text}["{argument}"]' if text and given.unpacked else text

    def _standing(self, node: ast.expr, flow: Flow) -> str:
        """Text of an expression that is valid before the call; else empty."""
        return self._source(node, flow.frame) if stands(self.evaluator, node, flow.frame, self.home) else ""

    def _source(self, node: ast.expr, frame: Frame) -> str:
        """Text of an expression, with loop variables replaced by their values, since they do not exist before the loop."""
        return self.edits.source_with(node, constants(self.evaluator, node, frame))

    def _varies(self, flow: Flow, argument: str) -> bool:
        """True if an argument is unknown or may change at run time."""
        value = flow.argument(argument)
        return argument in flow.args and (isinstance(plain(value), Unknown) or bool(origins_of(value)))


def hint(written: Written) -> str:
    """The call, as far as it is known without the surrounding code."""
    group = written.group
    sources = Sources(group)
    given = sources.given_labels()
    inner = f'{{"image": x, "{given}": y}}' if given else '{"image": x}'
    tables = any(sources.in_memory(flow) for flow in group.parts.values())
    inner = "df" if tables else inner
    split = next(iter(group.parts))
    several = f', data={{"{split}": {inner}' + (", …}" if len(group.parts) > 1 else "}")
    data = "" if group.method != "flow" and not tables else f", data={inner}" if sources.is_whole() else several
    return f"pipegen.build({_quoted(written.file)}{data}{allowed(written)})"


def allowed(written: Written) -> str:
    """Argument that permits calling a user's function, if the spec calls one."""
    generator = written.group.first.generator
    argument = generator.args.get("preprocessing_function") if isinstance(generator, Generator) else None
    return permission(argument.value) if argument is not None else ""


def _quoted(name: str) -> str:
    """A file's name as a Python literal."""
    return json.dumps(name, ensure_ascii=not name.isprintable())
