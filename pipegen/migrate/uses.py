"""Edits the uses of iterators: members, methods, `fit` and similar, batches that are taken one by one, and pairs joined by `zip`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import cast

from pipegen.migrate import nodes
from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.homes import of_function, stands
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.model_calls import drops, edit_model_call
from pipegen.migrate.values import Flow, Unknown, Zipped, certain

ENDLESS = ".repeat().as_numpy_iterator()"  # turns a split into endless batches


def goes_on(found: Collected, flow: Flow) -> bool:
    """True if an iterator can become endless batches: code takes several batches, and only members beside them that the edits replace."""
    nexts = [u for u in found.uses_of(flow) if u.is_next]
    edited = {"member": _REPLACED, "method": ("reset", "on_epoch_end")}
    others = (u for u in found.uses_of(flow) if not u.is_next)
    return not _is_single(nexts) and all(u.kind == "len" or u.name in edited.get(u.kind, ()) for u in others)


def _is_single(nexts: list[Use]) -> bool:
    """True if at most one batch is taken, where the iterator is made."""
    return len({id(u.node) for u in nexts}) <= 1 and all(u.frame is u.flow.frame and u.frame.scope.is_once((u.line, 0)) for u in nexts)


MEMBERS = {
    "class_indices": "{{name: i for i, name in enumerate({pipe}.class_names)}}",
    **dict.fromkeys(("classes", "labels"), '{pipe}.labels("{split}")'),
    **dict.fromkeys(("samples", "n"), '{pipe}.num_examples("{split}")'),
    "filepaths": 'list({pipe}.files("{split}"))',
    **dict.fromkeys(("num_classes", "num_class"), "len({pipe}.class_names)"),
}
"""Expressions in place of the members of an iterator."""
ARGUMENTS = {"batch_size": 32, "class_mode": "categorical", "color_mode": "rgb", "target_size": (256, 256)}
"""Members that repeat an argument, with the defaults of flows from files."""
_REPLACED = (*MEMBERS, *ARGUMENTS, "filenames", "image_shape")  # members that the edits replace
_PROPERTIES = ("train", "validation", "test")


@dataclass
class UseEdits:
    """Edits the uses of one iterator."""

    edits: Edits
    found: Collected
    findings: Findings
    pipe: str
    split: str
    bare: bool = False  # true if the iterator becomes `predict_on`, since it has no labels and others do
    own: str = ""  # replacement of the call that makes the iterator

    def edit(self, use: Use) -> None:
        """Edits one use."""
        bare, pipe, split = self.bare, self.pipe, self.split
        if use.kind == "model":
            if bare and use.node is not use.flow.node:
                self.edits.replace(use.node, f"{self.edits.source(use.node)}.dataset")
            call = next(c for c in self.found.calls if c.node is use.outer)
            given = {id(use.node): f"{self.edits.source(use.node)}.dataset"} if bare else {}
            edit_model_call(self.edits, call, self.found.evaluator, self.findings, given)
        elif use.kind == "member":
            self._member(use)
        elif use.kind == "method":
            self._method(use)
        elif use.kind == "next" or use.is_first:
            self._draw(use)
        elif use.kind == "loop":
            self._loop(use)
        elif use.kind == "len":
            if goes_on(self.found, use.flow) and not bare:
                self.edits.replace(use.outer, f'{pipe}.steps("{split}")')
        elif not is_dropped(self.found, use.node):
            what = f"`{use.name}`" if use.name else "this use of the iterator"
            message = f"{what} took a Keras iterator, and now gets a dataset"
            self.findings.add("PG615", use.line, message, "check if it works with a dataset")

    def _member(self, use: Use) -> None:
        bare, pipe, split = self.bare, self.pipe, self.split
        outer = cast("ast.Attribute", use.outer)
        form = MEMBERS.get(use.name)
        stored = not isinstance(outer.ctx, ast.Load)
        if use.name == "filenames" and not stored:
            self._filenames(use, f"{self.edits.source(use.node)}.files" if bare else f'{pipe}.files("{split}")')
            return
        if form is not None and not stored and not bare:
            self.edits.replace(use.outer, form.format(pipe=pipe, split=split))
            if use.name == "class_indices" and use.flow.method == "flow_from_directory":
                self.findings.add("PG624", use.line, "hidden and empty folders were classes in Keras, but are not in pipegen")
            return
        counts = "list" if use.name == "filepaths" else "len" if use.name in ("n", "samples") else ""
        of_files = f"{counts}({self.edits.source(use.node)}.files)" if bare and counts else ""
        text = "" if stored else of_files or self._argument(use)
        if text:
            self.edits.replace(use.outer, text)
        elif not is_dropped(self.found, use.node):
            message = f"a dataset has no `.{use.name}`"
            self.findings.add("PG615", use.line, message, "see `pipe.files`, `pipe.labels`, `pipe.class_names`, `pipe.steps`")

    def _argument(self, use: Use) -> str:
        """A member that repeats an argument, or follows from it; empty if unknown there."""
        if use.name == "image_shape" and not self.bare:
            labelled = "y" in use.flow.args if use.flow.method == "flow" else use.flow.get("class_mode", "categorical") is not None
            return f"tuple({access(self.pipe, self.split)}.element_spec{'[0]' if labelled else ''}.shape[1:])"
        if use.name not in ARGUMENTS:
            return ""
        argument = use.flow.args.get(use.name)
        literal = certain(argument.value) if argument is not None else ARGUMENTS[use.name]
        if argument is not None and (literal is None or isinstance(literal, Unknown)):
            return self._moved(argument.node, use)
        return repr(literal)

    def _loop(self, use: Use) -> None:
        """Edits a loop over batches: endless if the code ends it, else one pass."""
        own = use.node is use.flow.node
        text = access(self.pipe, self.split) if own else self.edits.source(use.node)
        dataset = f"{text}.dataset" if self.bare and not own else text
        ends = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Raise)  # or passes batches on, one by one, to code that ends it
        if isinstance(use.outer, ast.For) and any(isinstance(n, ends) for s in use.outer.body for n in ast.walk(s)):
            self.edits.replace(use.node, f"{dataset}.repeat().as_numpy_iterator()")
            return
        self.edits.replace(use.node, f"{dataset}.as_numpy_iterator()")
        message = "a loop over the iterator was infinite; over the dataset it is one pass"
        self.findings.add("PG622", use.line, message)

    def _method(self, use: Use) -> None:
        statement = next((s for s in ast.walk(self.edits.tree) if isinstance(s, ast.Expr) and s.value is use.outer), None)
        if use.name in ("reset", "on_epoch_end") and statement is not None:
            self.edits.delete(statement)
        elif use.is_next:
            self._draw(use)
        else:
            self.findings.add("PG615", use.line, f"a dataset has no `.{use.name}()`", "remove or rewrite it")

    def _draw(self, use: Use) -> None:
        """Edits a single batch: the next one of endless batches, or the only one of a new iterator."""
        source = self.own if use.node is use.flow.node else self.edits.source(use.node)
        dataset = f"{source}.dataset" if self.bare and use.node is not use.flow.node else source
        if goes_on(self.found, use.flow) and not self.bare and not use.is_first:
            self.edits.replace(use.outer, f"next({source})")
        elif _is_single([use] if use.is_first else [u for u in self.found.uses_of(use.flow) if u.is_next]):
            near = use.node is not use.flow.node and not self.bare
            batches = f'iter({self.pipe}.numpy("{self.split}"))' if near else f"{dataset}.as_numpy_iterator()"
            self.edits.replace(use.outer, f"next({batches})")
        else:
            what = "`[0]` gave new draws of the first batch each time" if use.is_first else "`next` draws any number of batches"
            help_ = f"make one iterator, `batches = iter({dataset}.repeat())`, and write `next(batches)` here"
            self.findings.add("PG615", use.line, f"{what}, but a dataset is not an iterator", help_)

    def _filenames(self, use: Use, files: str) -> None:
        argument = use.flow.args.get("directory")
        known = certain(argument.value) if argument is not None else None
        folder = repr(str(known)) if isinstance(known, str) else ""
        if argument is not None and not folder:
            folder = self._moved(argument.node, use)
        imported = {b.dotted for b in use.flow.frame.module.scope.bindings.get("os", [])}
        if folder and imported <= {"os"}:
            self.edits.imports.update({"os"} - imported)
            self.edits.replace(use.outer, f"[os.path.relpath(f, {folder}) for f in {files}]")
            return
        message = "`.filenames` are relative to the folder, but pipegen returns full paths"
        self.findings.add("PG615", use.line, message, f"write `[os.path.relpath(f, FOLDER) for f in {files}]`, or use the full paths")

    def _moved(self, node: ast.expr, use: Use) -> str:
        """Text of an argument of the iterator, if it has the same value at a use; else empty."""
        place = use.outer if isinstance(use.outer, ast.expr) else use.node
        here = of_function(use.frame) is of_function(use.flow.frame) and use.frame is of_function(use.frame)
        same = here and stands(self.found.evaluator, node, use.flow.frame, place)
        return self.edits.source(node) if same else ""


def is_dropped(found: Collected, node: ast.expr) -> bool:
    """True if an expression is in an argument that `fit` or similar loses, such as `steps_per_epoch`."""
    edited = {id(u.outer) for u in found.uses if u.kind == "model"}
    return any(id(call.node) in edited and drops(call, node) for call in found.calls)


def access(pipe: str, split: str) -> str:
    """A split of a pipeline as an expression."""
    return f"{pipe}.{split}" if split in _PROPERTIES else f'{pipe}["{split}"]'


def edit_pair(edits: UseEdits, zipped: Zipped) -> None:
    """Replaces two iterators and their `zip` by a split, and edits its uses."""
    text = edits.edits
    split = access(edits.pipe, edits.split)
    text.replace(zipped.node, split)
    for flow in zipped.flows:
        statement = edits.found.statements.get(id(flow))
        if statement is not None:
            text.delete(statement[0])
        for use in edits.found.uses_of(flow):
            if use.kind == "member":
                edits.edit(use)
            elif use.kind == "len":
                text.replace(use.node, split)
    uses = edits.found.uses_of(zipped)
    for use in sorted(uses, key=lambda u: u.kind == "model"):  # last, since their arguments include edited parts
        whole = passes_on(use)
        given = split if use.node is use.of.node else text.source(use.node)
        if use.kind == "model":
            edits.edit(use)
        elif isinstance(whole, ast.GeneratorExp):
            around = (n for n in ast.walk(text.tree) if isinstance(n, ast.Call) and whole in n.args)
            shares = any(nodes.end(call.func) == nodes.start(whole) for call in around)  # its brackets are those of the call
            text.replace(whole, f"({given})" if shares else given)
        elif whole is not None:
            text.replace(whole, f"return {given}")
        else:
            edits.findings.add("PG622", use.line, "a loop over the pairs was infinite; over the dataset it is one pass")


def passes_on(use: Use) -> ast.stmt | ast.GeneratorExp | None:
    """The loop or generator expression of a use that only passes the pairs on, if it is one."""
    around = use.frame.scope.node
    if isinstance(use.outer, ast.For) and isinstance(around, nodes.Function):
        last = nodes.flattened(around.body)[-1]
        return last if nodes.passing_loop(last) is use.outer else None
    if isinstance(use.outer, ast.comprehension):
        inside = (n for n in ast.walk(around) if isinstance(n, ast.GeneratorExp))
        return next((n for n in inside if n.generators[0] is use.outer and nodes.hands_on(n)), None)
    return None
