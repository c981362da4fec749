"""The training code after the migration: only edits that are sure; the rest is said."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pipegen.migrate.edits import Edits
from pipegen.migrate.functions import preset_of, python_function
from pipegen.migrate.imports import exchange_imports
from pipegen.migrate.model_calls import edit_model_call
from pipegen.migrate.scopes import flattened
from pipegen.migrate.signatures import FLOWS
from pipegen.migrate.sources import Sources, weighted
from pipegen.migrate.values import ClassIndices, Flow, Generator, OneHot, Seq, Table, plain

if TYPE_CHECKING:
    from pipegen.migrate.findings import Findings
    from pipegen.migrate.groups import Group
    from pipegen.migrate.interpret import Collected, Use
    from pipegen.migrate.reading import Code

_MEMBERS = {
    "class_indices": "{{name: i for i, name in enumerate({pipe}.class_names)}}",
    "classes": '{pipe}.labels("{split}")',
    "labels": '{pipe}.labels("{split}")',
    "samples": '{pipe}.num_examples("{split}")',
    "n": '{pipe}.num_examples("{split}")',
    "filepaths": 'list({pipe}.files("{split}"))',
    "num_classes": "len({pipe}.class_names)",
    "num_class": "len({pipe}.class_names)",
}
"""What stands for the members of an iterator."""
_PROPERTIES = ("train", "validation", "test")


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

    def run(self, specs: list[tuple[Group, str]]) -> str:
        """The new code, for the groups that a spec was written for, with the spec's file name."""
        for group, file in specs:
            self._group(group, file)
        if not self.done:
            return self.code.text
        for generator in self.found.generators:
            self._generator(generator)
        exchange_imports(self.edits)
        return self.edits.apply()

    def _group(self, group: Group, file: str) -> None:
        flows = list(group.parts.values())
        first = min(flows, key=lambda f: (f.node.lineno, f.node.col_offset))
        home = self._home(first)
        left_out = Sources(group, self.findings, {}).left_out()
        problem = self._problem(group, home, left_out)
        data = self._data(group, flows) if group.method == "flow" and not problem else ""
        if data is None:
            problem = "whether the labels are class indices or one-hot rows is not known"
        if problem or home is None:
            split = self._split_name(group, group.split_of(group.first))
            line = f'pipe = pipegen.build("{file}"{_hint(group)}{_allowed(group)})'
            help_ = f"write `{line}`, and `{_access('pipe', split)}` for the iterator"
            help_ = "write one spec with a feature for each of them" if "zip" in problem else help_
            self.findings.add("PG615", first.line, f"this code is not edited: {problem}", help_)
            return
        pipe = self._new_name()
        self.edits.before(home, f'{pipe} = pipegen.build("{file}"{self._params(group, home, left_out)}{data}{_allowed(group)})')
        self.done += flows
        for split, flow in group.parts.items():
            bare = flow in left_out
            folder = self.edits.source(flow.args["directory"].node) if bare else ""
            self.edits.replace(flow.node, f"{pipe}.predict_on({folder})" if bare else _access(pipe, self._split_name(group, split)))
            for use in self.found.uses_of(flow):
                self._use(use, pipe, self._split_name(group, split), bare)

    def _split_name(self, group: Group, split: str) -> str:
        alone = len(group.parts) == 1 and split == "predict"
        return "predict" if alone else split

    def _home(self, flow: Flow) -> ast.stmt | None:
        """The statement that an iterator is made in, where it runs whenever its scope does."""
        body = getattr(flow.frame.scope.node, "body", None)
        if not isinstance(body, list):
            return None
        at = flow.node.lineno
        inside = [
            s for s in flattened(body) if s.lineno <= at <= (s.end_lineno or 0) and not isinstance(s, (ast.With, ast.AsyncWith, ast.If))
        ]
        found = inside[-1] if inside else None
        compound = isinstance(found, (ast.For, ast.While, ast.Try, ast.FunctionDef, ast.ClassDef))
        return None if compound else found

    def _problem(self, group: Group, home: ast.stmt | None, left_out: list[Flow]) -> str:
        """Why a group's code is not edited; empty where it is."""
        flows = list(group.parts.values())
        if home is None:
            return "the iterator is made in a branch or a loop"
        if any(id(f.node) in self.found.shared for f in flows):
            return "one line makes several of the iterators"
        if any(f.frame is not flows[0].frame for f in flows):
            return "its iterators are made in several functions"
        if any(self._home(f) is None for f in flows):
            return "an iterator is made in a branch or a loop"
        if any(f.method != "flow_from_directory" or "directory" not in f.args for f in left_out):
            return "one of its iterators has labels and another has none"
        odd = next((f for f in flows if not isinstance(f.generator, Generator)), None)
        if odd is not None:
            return "its generator is not known"
        if any(isinstance(f.generator, Generator) and f.generator.subclass is not None for f in flows):
            return "its generator is a subclass of ImageDataGenerator"
        if any(u.kind == "zip" for f in flows for u in self.found.uses_of(f)):
            return "its iterators are joined by `zip`, and must move together"
        tables = [f.argument("dataframe") for f in flows if f.method == "flow_from_dataframe"]
        if any(not isinstance(t, Table) or t.changed for t in tables):
            return "its table is made by code"
        outside = next((u for f in flows for u in self.found.uses_of(f) if u.frame is not f.frame and u.kind in ("member", "method")), None)
        return "its members are used in another function" if outside is not None else ""

    def _data(self, group: Group, flows: list[Flow]) -> str | None:
        """The arrays for `build`; `None` where their form is not sure."""
        parts = {}
        for split, flow in group.parts.items():
            given = self._arrays(flow)
            if given is None:
                return None
            parts[split] = given
        shared = len(flows) == 2 and all("subset" in f.args for f in flows) and len(set(parts.values())) == 1
        if shared or list(parts) == ["train"]:
            return f", data={next(iter(parts.values()))}"
        return ", data={" + ", ".join(f'"{split}": {given}' for split, given in parts.items()) + "}"

    def _params(self, group: Group, home: ast.stmt, left_out: list[Flow]) -> str:
        """Folders that are known at run time alone, as arguments of `build`, where their expression stands already."""
        given = {}
        for split, flow in group.parts.items():
            node = flow.args["directory"].node if "directory" in flow.args and flow not in left_out else None
            if group.method != "flow_from_directory" or node is None or isinstance(plain(flow.argument("directory")), str):
                continue
            bound = [b for n in ast.walk(node) if isinstance(n, ast.Name) for b in flow.frame.scope.bindings.get(n.id, [])]
            plain_names = all(isinstance(n, (ast.Name, ast.Attribute, ast.Load)) for n in ast.walk(node))
            if plain_names and all(b.after[0] < home.lineno for b in bound):
                name = "data" if len(group.parts) - len(left_out) == 1 or flow.get("subset") else split
                given[name] = self.edits.source(node)
        return ", params={" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}" if given else ""

    def _arrays(self, flow: Flow) -> str | None:
        if "x" not in flow.args or isinstance(flow.argument("x"), Seq) or "**" in flow.args:
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

    def _new_name(self) -> str:
        taken = {*re.findall(r"\w+", self.code.text), *self.names}
        name = next(n for n in ("pipe", *(f"pipe{i}" for i in range(2, len(taken) + 3))) if n not in taken)
        self.names.append(name)
        return name

    # Uses

    def _use(self, use: Use, pipe: str, split: str, bare: bool) -> None:
        if use.kind == "model":
            if bare and use.node is not use.flow.node:
                self.edits.replace(use.node, f"{self.edits.source(use.node)}.dataset")
            call = next(c for c in self.found.calls if c.node is use.outer)
            edit_model_call(self.edits, call, self.findings, {id(use.node): f"{self.edits.source(use.node)}.dataset"} if bare else {})
        elif use.kind == "member":
            self._member(use, pipe, split, bare)
        elif use.kind == "method":
            self._method(use, pipe, split, bare)
        elif use.kind == "next":
            self._next(use, pipe, split, bare)
        elif use.kind == "loop":
            message = "a loop over the iterator never ended by itself; over the dataset it is one pass"
            self.findings.add("PG622", use.line, message)
        elif (
            use.kind == "item"
            and isinstance(use.outer, ast.Subscript)
            and isinstance(use.outer.slice, ast.Constant)
            and use.outer.slice.value == 0
        ):
            if bare:
                self.findings.add("PG615", use.line, "an iterator has batches by number, and a dataset has not", "take `next(iter(…))`")
            else:
                self.edits.replace(use.outer, _batch(pipe, split))
        elif use.kind != "len":
            what = f"`{use.name}`" if use.name else "this use of the iterator"
            self.findings.add(
                "PG615", use.line, f"{what} takes a Keras iterator, and now gets a dataset", "look whether it works with a dataset"
            )

    def _member(self, use: Use, pipe: str, split: str, bare: bool) -> None:
        outer = cast("ast.Attribute", use.outer)
        form = _MEMBERS.get(use.name)
        stored = not isinstance(outer.ctx, ast.Load)
        if use.name == "filenames" and not stored:
            self._filenames(use, f"{self.edits.source(use.node)}.files" if bare else f'{pipe}.files("{split}")')
            return
        literal = use.flow.get(use.name, {"batch_size": 32, "target_size": (256, 256)}.get(use.name))
        if form is not None and not stored and not bare:
            self.edits.replace(use.outer, form.format(pipe=pipe, split=split))
            if use.name == "class_indices":
                self.findings.add("PG624", use.line, "hidden and empty folders were classes for Keras, and are none for pipegen")
        elif use.name in ("batch_size", "target_size") and literal is not None and not stored:
            self.edits.replace(use.outer, repr(literal))
        else:
            self.findings.add(
                "PG615", use.line, f"a dataset has no `.{use.name}`", "see `pipe.files`, `pipe.labels`, `pipe.class_names`, `pipe.steps`"
            )

    def _method(self, use: Use, pipe: str, split: str, bare: bool) -> None:
        statement = next((s for s in ast.walk(self.edits.tree) if isinstance(s, ast.Expr) and s.value is use.outer), None)
        if use.name == "reset" and statement is not None:
            self.edits.delete(statement)
        elif use.name in ("next", "__next__"):
            self._next(use, pipe, split, bare)
        else:
            self.findings.add("PG615", use.line, f"a dataset has no `.{use.name}()`", "take it out, or rewrite it by hand")

    def _next(self, use: Use, pipe: str, split: str, bare: bool) -> None:
        """One batch: by an iterator of its own where no other batch is drawn so, which that would give again."""
        others = [u for u in self.found.uses_of(use.flow) if u.name in ("next", "__next__")]
        if len(others) == 1 and use.frame is use.flow.frame and use.frame.scope.is_once((use.line, 0)) and not bare:
            self.edits.replace(use.outer, _batch(pipe, split))
            return
        message = "`next` draws batch after batch without an end, and a dataset is no iterator"
        name = self.edits.source(use.node)
        self.findings.add(
            "PG615", use.line, message, f"make one iterator, `batches = iter({name}.repeat())`, and take `next(batches)` here"
        )

    def _filenames(self, use: Use, files: str) -> None:
        """Names relative to the folder, from whole paths."""
        folder = use.flow.get("directory")
        imported = [b.dotted for b in use.flow.frame.module.scope.bindings.get("os", [])]
        if isinstance(folder, str) and imported == ["os"]:
            self.edits.replace(use.outer, f"[os.path.relpath(f, {str(folder)!r}) for f in {files}]")
            return
        message = "`.filenames` are relative to the folder, and pipegen gives whole paths"
        self.findings.add("PG615", use.line, message, f"take `[os.path.relpath(f, FOLDER) for f in {files}]`, or the paths as they are")

    # Generators

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
        self.edits.delete(self.found.statements[id(generator)][0])
        calls = [call for owner, call in self.found.fits if owner is generator]
        for statement in ast.walk(self.edits.tree):
            if isinstance(statement, ast.Expr) and statement.value in calls:
                self.edits.delete(statement)


def _batch(pipe: str, split: str) -> str:
    return f'next(iter({pipe}.numpy("{split}")))'


def _access(pipe: str, split: str) -> str:
    return f"{pipe}.{split}" if split in _PROPERTIES else f'{pipe}["{split}"]'


def _allowed(group: Group) -> str:
    """The permission to call the script's own `preprocessing_function`, where it is imported."""
    generator = group.first.generator
    argument = generator.args.get("preprocessing_function") if isinstance(generator, Generator) else None
    called = python_function(argument.value) if argument is not None and preset_of(argument.value) is None else ""
    return f', allow_code=["{re.split("[.:]", called)[0]}"]' if called else ""


def _hint(group: Group) -> str:
    if group.method != "flow":
        return ""
    inner = '{"image": x, "label": y}'
    return f", data={inner}" if len(group.parts) == 1 else ', data={"train": ' + inner + ", …}"
