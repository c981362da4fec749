"""The training code after the migration: only edits that are sure; the rest is said."""

from __future__ import annotations

import ast
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import COMPREHENSIONS
from pipegen.migrate.functions import permission
from pipegen.migrate.imports import exchange_imports
from pipegen.migrate.model_calls import edit_model_call
from pipegen.migrate.scopes import end, flattened, start
from pipegen.migrate.signatures import FLOWS
from pipegen.migrate.sources import Sources, folder_below, weighted
from pipegen.migrate.values import ClassIndices, Dotted, Flow, Generator, OneHot, Seq, Table, Unknown, plain

if TYPE_CHECKING:
    from pipegen.migrate.findings import Findings
    from pipegen.migrate.groups import Group
    from pipegen.migrate.interpret import Collected, Use
    from pipegen.migrate.reading import Code
    from pipegen.migrate.values import Frame

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
_FEATURES = "write one spec with a feature for each of them"
_READING = (
    ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.JoinedStr, ast.FormattedValue, ast.Subscript, ast.expr_context,
)  # fmt: skip
"""Expressions that change nothing, whenever they are evaluated."""
_ENDLESS = ".repeat().as_numpy_iterator()"
"""What makes of a split batches without an end."""
_PURE = ("os.path.join", "os.path.abspath", "os.path.expanduser", "pathlib.Path", "builtins.str", "builtins.int")
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
            if "together" in problem:
                help_ = f"write `{line}`, and `{_access('pipe', split)}` for both" if group.mask is not None else _FEATURES
            self.findings.add("PG615", first.line, f"this code is not edited: {problem}", help_)
            return
        pipe = self._new_name()
        self.edits.before(home, f'{pipe} = pipegen.build("{file}"{self._params(group, home, left_out)}{data}{_allowed(group)})')
        self.done += flows
        for split, flow in group.parts.items():
            bare = flow in left_out
            folder = self._folder(flow) if bare else ""
            fresh = _access(pipe, self._split_name(group, split)) + (_ENDLESS if self._goes_on(flow) else "")
            self.edits.replace(flow.node, f"{pipe}.predict_on({folder})" if bare else fresh)
            for use in self.found.uses_of(flow):
                self._use(use, pipe, self._split_name(group, split), bare)

    def _folder(self, flow: Flow) -> str:
        """The folder of an iterator without labels, as an expression."""
        node, below = flow.args["directory"].node, folder_below(flow)
        known = plain(flow.argument("directory"))
        if not below:
            return self.edits.source(node)
        return repr(posixpath.join(known, below)) if isinstance(known, str) else f"os.path.join({self.edits.source(node)}, {below!r})"

    def _split_name(self, group: Group, split: str) -> str:
        alone = len(group.parts) == 1 and split == "predict"
        return "predict" if alone else split

    def _home(self, flow: Flow) -> ast.stmt | None:
        """The statement that an iterator is made in, where it runs whenever its scope does."""
        body = getattr(flow.frame.scope.node, "body", None)
        if not isinstance(body, list):
            return None
        at = start(flow.node)
        inside = [s for s in flattened(body) if start(s) <= at <= end(s) and not isinstance(s, (ast.With, ast.AsyncWith, ast.If))]
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
        imports_os = [b.dotted for b in self.found.evaluator.module.scope.bindings.get("os", [])] == ["os"]
        if any(folder_below(f) is None or (folder_below(f) and not imports_os and not _text(f, "directory")) for f in left_out):
            return "an iterator without labels reads several folders, or one that is not known"
        odd = next((f for f in flows if not isinstance(f.generator, Generator)), None)
        if odd is not None:
            return "its generator is not known"
        if any(isinstance(f.generator, Generator) and f.generator.subclass is not None for f in flows):
            return "its generator is a subclass of ImageDataGenerator"
        if any(owner is f.generator for f in flows for owner, _, _ in self.found.assigned):
            return "its generator is changed after it was made"
        return self._odd_use(group, flows)

    def _odd_use(self, group: Group, flows: list[Flow]) -> str:
        """What is wrong with the data of the iterators, or with how they are used; empty where nothing is."""
        if any(self.found.is_paired(f) for f in flows):
            return "its iterators are drawn from side by side, and must move together"
        size = _literal(group.first, "batch_size")
        if any(_literal(f, "batch_size") != size and self._draws(f) for f in flows):
            return "batches of another size than those of training are drawn from one of its iterators"
        if Sources(group, self.findings, {}).stray() is not None:
            return "an iterator takes a share of its data, and the spec all of it"
        tables = [f.argument("dataframe") for f in flows if f.method == "flow_from_dataframe"]
        if any(not isinstance(t, Table) or t.changed for t in tables):
            return "its table is made by code"
        uses = [(u, f) for f in flows for u in self.found.uses_of(f)]
        outside = next((u for u, f in uses if _of_function(u.frame) is not f.frame and u.kind in ("member", "method")), None)
        return "its members are used in another function" if outside is not None else ""

    def _draws(self, flow: Flow) -> bool:
        """Whether single batches are drawn from an iterator."""
        return any(u.kind in ("next", "item") or u.name in ("next", "__next__") for u in self.found.uses_of(flow))

    def _data(self, group: Group, flows: list[Flow]) -> str | None:
        """The arrays for `build`; `None` where their form is not sure."""
        parts = {}
        for split, flow in group.parts.items():
            given = self._arrays(flow)
            if given is None:
                return None
            parts[split] = given
        shared = len(flows) == 2 and all("subset" in f.args for f in flows) and len(set(parts.values())) == 1
        if shared or (list(parts) == ["train"] and Sources(group, self.findings, {}).labelled()):
            return f", data={next(iter(parts.values()))}"
        return ", data={" + ", ".join(f'"{split}": {given}' for split, given in parts.items()) + "}"

    def _params(self, group: Group, home: ast.stmt, left_out: list[Flow]) -> str:
        """Folders and sizes that are known at run time alone, as arguments of `build`, where their expression gives the same there."""
        given = {}
        for split, flow in group.parts.items():
            node = flow.args["directory"].node if "directory" in flow.args and flow not in left_out else None
            if group.method != "flow_from_directory" or node is None or isinstance(plain(flow.argument("directory")), str):
                continue
            if self._stands(node, flow, home):
                name = "data" if len(group.parts) - len(left_out) == 1 or flow.get("subset") else split
                given[name] = self.edits.source(node)
        first = group.first
        for name, node in (("size", _side(first)), ("batch", first.args["batch_size"].node if "batch_size" in first.args else None)):
            unknown = node is not None and isinstance(plain(self.found.evaluator.value(node, first.frame)), Unknown)
            if node is not None and unknown and self._stands(node, first, home):
                given[name] = self.edits.source(node)
        return ", params={" + ", ".join(f'"{name}": {text}' for name, text in given.items()) + "}" if given else ""

    def _stands(self, node: ast.expr, flow: Flow, home: ast.stmt) -> bool:
        """Whether an expression of an iterator's call may be moved to before a statement: it only reads what is there already."""
        for n in ast.walk(node):
            if isinstance(n, ast.Call):
                function = self.found.evaluator.value(n.func, flow.frame)
                if n.keywords or not isinstance(function, Dotted) or function.name not in _PURE:
                    return False
            elif not isinstance(n, _READING):
                return False
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        return all(b.after[0] < home.lineno for name in names for b in flow.frame.scope.bindings.get(name, []))

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
        literal = _literal(use.flow, use.name)
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

    def _goes_on(self, flow: Flow) -> bool:
        """Whether batches are drawn from an iterator with `next` alone, one after the other."""
        uses = self.found.uses_of(flow)
        return self.found.only_drawn_from(flow) and not (len(uses) == 1 and self._is_single(uses[0]))

    def _is_single(self, use: Use) -> bool:
        return use.frame is use.flow.frame and use.frame.scope.is_once((use.line, 0))

    def _next(self, use: Use, pipe: str, split: str, bare: bool) -> None:
        """One batch: by an iterator of its own where no other batch is drawn so, which that would give again."""
        if self._goes_on(use.flow) and not bare:
            if use.kind == "method":
                self.edits.replace(use.outer, f"next({self.edits.source(use.node)})")
            return
        others = [u for u in self.found.uses_of(use.flow) if u.name in ("next", "__next__")]
        if len(others) == 1 and self._is_single(use) and not bare:
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


def _literal(flow: Flow, name: str) -> object:
    """The size of batches or images, where it is known."""
    if name not in flow.args:
        return {"batch_size": 32, "target_size": (256, 256)}.get(name)
    value = plain(flow.args[name].value)
    return None if isinstance(value, Unknown) else value


def _text(flow: Flow, name: str) -> bool:
    """Whether an argument is a known text."""
    return isinstance(plain(flow.argument(name)), str)


def _side(flow: Flow) -> ast.expr | None:
    """The expression that is height and width alike, if there is one."""
    size = flow.args["target_size"].node if "target_size" in flow.args else None
    if not isinstance(size, (ast.Tuple, ast.List)) or len(size.elts) != 2 or ast.dump(size.elts[0]) != ast.dump(size.elts[1]):
        return None
    return size.elts[0]


def _of_function(frame: Frame) -> Frame:
    """The frame of the function or the module that a comprehension stands in."""
    while isinstance(frame.scope.node, COMPREHENSIONS) and frame.parent is not None:
        frame = frame.parent
    return frame


def _batch(pipe: str, split: str) -> str:
    return f'next(iter({pipe}.numpy("{split}")))'


def _access(pipe: str, split: str) -> str:
    return f"{pipe}.{split}" if split in _PROPERTIES else f'{pipe}["{split}"]'


def _allowed(group: Group) -> str:
    generator = group.first.generator
    argument = generator.args.get("preprocessing_function") if isinstance(generator, Generator) else None
    return permission(argument.value) if argument is not None else ""


def _hint(group: Group) -> str:
    if group.method != "flow":
        return ""
    inner = '{"image": x, "label": y}'
    return f", data={inner}" if len(group.parts) == 1 else ', data={"train": ' + inner + ", …}"
