"""Edits the uses of an iterator: its members, its methods, single batches, `fit` and similar."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import cast

from pipegen.migrate.draws import Draws, goes_on, going_on, is_first, is_next, region_of
from pipegen.migrate.edits import Edits
from pipegen.migrate.findings import Findings
from pipegen.migrate.homes import of_function, stands
from pipegen.migrate.interpret import Collected, Use
from pipegen.migrate.known import certain
from pipegen.migrate.model_calls import drops, edit_model_call
from pipegen.migrate.nodes import names_in
from pipegen.migrate.values import Unknown

MEMBERS = {
    "class_indices": "{{name: i for i, name in enumerate({pipe}.class_names)}}",
    "classes": '{pipe}.labels("{split}")',
    "labels": '{pipe}.labels("{split}")',
    "samples": '{pipe}.num_examples("{split}")',
    "n": '{pipe}.num_examples("{split}")',
    "filepaths": 'list({pipe}.files("{split}"))',
    "num_classes": "len({pipe}.class_names)",
    "num_class": "len({pipe}.class_names)",
}
"""Expressions in place of the members of an iterator."""
ARGUMENTS = {"batch_size": 32, "class_mode": "categorical", "color_mode": "rgb", "target_size": (256, 256)}
"""Members that repeat an argument, with the defaults of flows from files."""
REPLACED = frozenset((*MEMBERS, *ARGUMENTS, "filenames", "image_shape"))  # members that the edits replace
_PROPERTIES = ("train", "validation", "test")


@dataclass
class UseEdits:
    """Edits the uses of one iterator."""

    edits: Edits
    found: Collected
    findings: Findings
    pipe: str
    split: str
    draws: Draws
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
        elif use.kind == "next" or is_first(use):
            self._draw(use)
        elif use.kind == "loop":
            self._loop(use)
        elif use.kind == "len":
            if goes_on(self.found, use.flow, REPLACED) and not bare:
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
        elif is_next(use):
            self._draw(use)
        else:
            self.findings.add("PG615", use.line, f"a dataset has no `.{use.name}()`", "remove or rewrite it")

    def _draw(self, use: Use) -> None:
        """Edits a single batch: the next one of a shared iterator if others were taken before, else that of a new one."""
        source = self.own if use.node is use.flow.node else self.edits.source(use.node)
        dataset = f"{source}.dataset" if self.bare and use.node is not use.flow.node else source
        if not any(use is u for u in going_on(self.found, use.flow)):
            near = of_function(use.frame) is of_function(use.flow.frame) and not self.bare
            batches = f'iter({self.pipe}.numpy("{self.split}"))' if near else f"{dataset}.as_numpy_iterator()"
            self.edits.replace(use.outer, f"next({batches})")
            return
        itself = use.node is use.flow.node or (goes_on(self.found, use.flow, REPLACED) and not self.bare)
        iterator = source if itself else self.draws.iterator(use, dataset)
        if iterator is None:
            message = "`next` draws any number of batches, but a dataset is not an iterator"
            help_ = f"make one iterator, `batches = iter({dataset}.repeat())`, and write `next(batches)` here"
            self.findings.add("PG615", use.line, message, help_)
            return
        self.edits.replace(use.outer, self.draws.of_round(use, iterator) if is_first(use) else f"next({iterator})")
        if is_first(use):
            message = "`[0]` gave the first batch each time, with new draws; now it is the next batch each time"
            shows = f"`{self.pipe}.preview(rows=1, draws=5)` shows several draws of one image" if region_of(use) is not None else ""
            self.findings.add("PG622", use.line, message, shows)

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
        return self.edits.source(node) if same or self._is_of_object(node, use) else ""

    def _is_of_object(self, node: ast.expr, use: Use) -> bool:
        """True if an expression depends only on attributes that the constructor sets on the object of both methods."""
        frames = (of_function(use.frame), of_function(use.flow.frame))
        around = frames[0].class_frame
        if around is None or around is not frames[1].class_frame or not isinstance(around.scope.node, ast.ClassDef):
            return False
        kinds = (ast.Name, ast.Attribute, ast.Constant, ast.BinOp, ast.operator, ast.expr_context)
        assigned = self.found.evaluator.assignments(around.scope.node)
        read = [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)]
        fixed = all(name in assigned and all(a.method.name == "__init__" for a in assigned[name]) for name in read)
        return fixed and all(isinstance(n, kinds) for n in ast.walk(node)) and names_in(node) == {"self"}


def is_dropped(found: Collected, node: ast.expr) -> bool:
    """True if an expression is in an argument that `fit` or similar loses, such as `steps_per_epoch`."""
    edited = {id(u.outer) for u in found.uses if u.kind == "model"}
    return any(id(call.node) in edited and drops(call, node) for call in found.calls)


def access(pipe: str, split: str) -> str:
    """A split of a pipeline as an expression."""
    return f"{pipe}.{split}" if split in _PROPERTIES else f'{pipe}["{split}"]'
