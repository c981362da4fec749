"""Removes code that only the exchanged code used, such as generators and imports; reports uncertain uses of iterators that are left."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from dataclasses import dataclass, field

from pipegen.migrate import nodes
from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import Evaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected
from pipegen.migrate.signatures import FLOWS, is_keras
from pipegen.migrate.uses import MEMBERS, is_dropped
from pipegen.migrate.values import Flow, Frame, Generator

_NAME = "ImageDataGenerator"
_UTILS = ("array_to_img", "img_to_array", "load_img", "save_img")
_OF_KERAS_3 = (*_UTILS, "smart_resize")  # functions of `keras.preprocessing.image` in Keras 3
_COMPAT = (
    "DataFrameIterator", "DirectoryIterator", "Iterator", "NumpyArrayIterator", "apply_affine_transform", "apply_brightness_shift",
    "apply_channel_shift", "flip_axis", "list_pictures", "random_brightness", "random_channel_shift", "random_rotation", "random_shear",
    "random_shift", "random_zoom", "transform_matrix_offset_center", "validate_filename",
)  # fmt: skip
"""Classes that it had before, and that `pipegen.compat` has."""


def exchange_imports(edits: Edits, hidden: str) -> None:
    """Imports `pipegen`, and removes the import of `ImageDataGenerator`; if code or a `hidden` line uses it, imports it from the package
    `pipegen.compat` instead."""
    with suppress(SyntaxError):  # the edits are undone as a whole
        _Imports(edits, frozenset(re.findall(r"\w+", hidden))).exchange()


@dataclass
class _Imports:
    """Removes unneeded imports of one file."""

    edits: Edits
    hidden: frozenset[str]  # names that lines which are not Python may use
    read: set[str] = field(init=False)  # names that code reads after the edits
    _before: set[str] = field(init=False)
    _after: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self._before = _names(self.edits.tree)
        self._read()

    def _read(self) -> None:
        self._after = ast.parse(self.edits.apply())
        self.read = {*self.hidden, *_names(self._after)}

    def exchange(self) -> None:
        """Edits the imports."""
        self._without_aliases()
        first = True
        for statement in [s for s in ast.walk(self.edits.tree) if isinstance(s, (ast.Import, ast.ImportFrom))]:
            gone = [a for a in statement.names if self._goes(statement, a)]
            moved = [a for a in statement.names if a not in gone and _new_home(statement, a) and self._serves(a)]
            if not gone and not moved:
                continue
            lines = _left(statement, gone, moved)
            if first and statement in self.edits.tree.body and any(a.name == _NAME for a in gone):
                lines += _modules(self.edits)
                first = False
            if lines:
                alone = statement in self.edits.tree.body and self.edits.is_alone(statement)
                self.edits.replace(statement, ("\n" if alone else "; ").join(lines))
            else:
                self.edits.delete(statement)
        if first:
            _insert(self.edits)

    def _without_aliases(self) -> None:
        """Removes `G = keras.preprocessing.image.ImageDataGenerator` if `G` is not read."""
        for statement in ast.walk(self.edits.tree):
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Attribute) or statement.value.attr != _NAME:
                continue
            if all(getattr(t, "id", "") in self._before - self.read for t in statement.targets):
                self.edits.delete(statement)
                self._read()

    def _serves(self, alias: ast.alias) -> bool:
        """True if the new module has all that code takes from the old one."""
        local = alias.asname or alias.name
        taken = {n.attr for n in ast.walk(self._after) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == local}
        return alias.name != "image" or taken <= set(_OF_KERAS_3)

    def _goes(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
        """True if a name is unread and is the class, or was there for the exchanged code and fails on Keras 3."""
        local = alias.asname or (alias.name if isinstance(statement, ast.ImportFrom) else alias.name.split(".")[0])
        full = _full(statement, alias)
        if local in self.read or alias.name == "*" or not is_keras(full):
            return False
        if alias.name == _NAME:
            return True
        return not _exists(statement, alias) and (local in self._before or "preprocessing.image" in full)


def _names(tree: ast.Module) -> set[str]:
    """Names that code reads, deletes, declares or lists in `__all__`."""
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)) and "__all__" in ast.dump(node):
            found |= {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


def _full(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(statement, ast.Import):
        return alias.name
    return f"{'.' * statement.level}{statement.module or ''}.{alias.name}"


def _exists(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """True if an import works with Keras 3, as far as images are concerned."""
    full = _full(statement, alias)
    if full.split(".")[0] in ("keras_preprocessing", "tensorflow_core") or full.startswith("tensorflow.python.keras"):
        return False
    return not full.startswith("keras.preprocessing.image.") or alias.name in (*_OF_KERAS_3, "*")


def _new_home(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """New module of an image function that its old module no longer has; empty if none is needed."""
    if isinstance(statement, ast.ImportFrom) and (statement.module, alias.name) == ("keras_preprocessing", "image"):
        return "keras.preprocessing"
    if not isinstance(statement, ast.ImportFrom) or not (statement.module or "").endswith("preprocessing.image"):
        return ""
    if alias.name == _NAME and is_keras(statement.module or ""):
        return "pipegen.compat"
    if not is_keras(statement.module or "") or statement.level or _exists(statement, alias):
        return ""
    if alias.name in _OF_KERAS_3:
        return "keras.utils" if alias.name in _UTILS else "keras.preprocessing.image"
    return "pipegen.compat" if alias.name in _COMPAT else ""


def _left(statement: ast.Import | ast.ImportFrom, gone: list[ast.alias], moved: list[ast.alias]) -> list[str]:
    """Statements of an import without some names, and with some from another module."""
    rest = [a for a in statement.names if a not in gone and a not in moved]
    if isinstance(statement, ast.Import):
        return [f"import {', '.join(ast.unparse(a) for a in rest)}"] if rest else []
    homes: dict[str, list[str]] = {f"{'.' * statement.level}{statement.module or ''}": [ast.unparse(a) for a in rest]}
    for alias in moved:
        homes.setdefault(_new_home(statement, alias), []).append(ast.unparse(alias))
    return [f"from {home} import {', '.join(names)}" for home, names in homes.items() if names]


def _insert(edits: Edits) -> None:
    """Inserts the import before the first statement that is neither a docstring nor a `__future__` import."""
    for statement in edits.tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future and not isinstance(statement, ast.Pass):
            for line in _modules(edits):
                edits.before(statement, line)
            return


def _modules(edits: Edits) -> list[str]:
    return [f"import {name}" for name in (*sorted(edits.imports), "pipegen")]


@dataclass
class Removal:
    """Removes code that only made the exchanged iterators, once some functions are gone."""

    edits: Edits
    found: Collected
    done: list[Flow]
    gone: list[nodes.Function]

    def run(self) -> None:
        """Removes each unneeded generator."""
        for generator in self.found.generators:
            if all(self._is_done(g) for g in self.found.generators if g.node is generator.node):
                self._take_out(generator)

    def _is_done(self, generator: Generator) -> bool:
        flows = [f for f in self.found.flows if f.generator is generator]
        others = any(owner is generator and name not in FLOWS for owner, name, _ in self.found.members)
        return bool(flows) and all(f in self.done for f in flows) and not others

    def _take_out(self, generator: Generator) -> None:
        statement, frame = self.found.statements.get(id(generator), (None, generator.frame))
        owners = [call.func.value for _, call in self.found.fits if isinstance(call.func, ast.Attribute)]
        own = (*owners, *(flow.node for flow in self.done), *self.gone)  # the exchanged calls, and those of `fit`
        known = frozenset(id(n) for root in own for n in ast.walk(root))
        if statement is None or is_read_elsewhere(self.found.evaluator, statement, frame, known):
            return
        self.edits.delete(statement)
        calls = [call for owner, call in self.found.fits if owner is generator]
        for statement in (n for n in ast.walk(self.edits.tree) if isinstance(n, ast.Expr) and n.value in calls):
            self.edits.delete(statement)


def is_read_elsewhere(evaluator: Evaluator, statement: ast.stmt, frame: Frame, known: frozenset[int]) -> bool:
    """True if code other than the nodes with these ids reads the variable that a statement assigns."""
    target = next(iter(nodes.targets_of(statement)), None)
    whole = evaluator.module.scope.node
    same: list[ast.Name | ast.Attribute]
    if isinstance(target, ast.Name):
        around = whole if target.id in frame.scope.module_names else of_function(frame).scope.node
        same = [n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == target.id]
    elif isinstance(target, ast.Attribute):
        same = [n for n in ast.walk(whole) if isinstance(n, ast.Attribute) and n.attr == target.attr]
    else:
        return True
    augmented = {id(n.target) for n in ast.walk(whole) if isinstance(n, ast.AugAssign)}
    return any(id(n) not in known and (not isinstance(n.ctx, ast.Store) or id(n) in augmented) for n in same)


_OTHER_MEMBERS = {
    "filenames": 'write `{pipe}.files("{split}")`, which returns full paths',
    "image_shape": "write the shape itself",
    "batch_size": "write the number itself",
}
_MEMBERS = {**{name: f"write `{form}`" for name, form in MEMBERS.items()}, **_OTHER_MEMBERS}
_METHODS = {
    "reset": "remove it: every pass over a dataset starts at the beginning",
    "next": "make one iterator, `batches = iter(DATASET.repeat())`, and write `next(batches)`",
}
_OLD_CALLS = ("fit_generator", "evaluate_generator", "predict_generator")
_CALLS = ("fit", "evaluate", "predict")


@dataclass
class Leftovers:
    """Finds and reports them."""

    edits: Edits
    found: Collected
    findings: Findings
    done: list[Flow]  # the iterators that were exchanged
    pipe: str

    def report(self) -> None:
        """Reports each of them."""
        parents = {id(n.func) for n in ast.walk(self.edits.tree) if isinstance(n, ast.Call)}
        for node in self.found.unsure.values():
            if self._carries(node.value) and not is_dropped(self.found, node):
                self._attribute(node, called=id(node) in parents)
        known = {id(call.node) for call in self.found.calls}
        for call in ast.walk(self.edits.tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and id(call) not in known:
                self._call(call, call.func.attr)

    def _attribute(self, node: ast.Attribute, *, called: bool) -> None:
        name = node.attr
        forms = _METHODS if called else _MEMBERS
        if name not in forms:
            return
        shown = self.edits.source(node.value).split("\n")[0]
        message = f"`{shown}` may be the iterator, which is a dataset now and has no `.{name}{'()' if called else ''}`"
        self.findings.add("PG615", node.lineno, message, f"if it is, {forms[name].format(pipe=self.pipe, split='…')}")

    def _call(self, call: ast.Call, name: str) -> None:
        help_ = "name the arguments, and remove `steps_per_epoch`, `validation_steps`, `workers` and the like"
        first = next(iter((*call.args, *(k.value for k in call.keywords if k.arg in ("generator", "x")))), None)
        if name in _OLD_CALLS:
            why = "its argument may be the iterator"
            if self._is_python_generator(first):
                why = "its argument is a Python generator"
                help_ = "keep `steps_per_epoch` and the like, since a generator has no length; remove `workers` and the like"
            message = f"`{name}` does not exist in Keras 3; it is not edited, since {why}"
            self.findings.add("PG615", call.lineno, message, f"write `{name.removesuffix('_generator')}`; {help_}")
        elif name in _CALLS and any(k.arg is None and self._carries(k.value) for k in call.keywords):
            message = f"`{name}` is not edited, since its unpacked arguments may contain the iterator"
            self.findings.add("PG615", call.lineno, message, help_)

    def _is_python_generator(self, node: ast.expr | None) -> bool:
        """True for a call of a generator function of the file, or a name that one is assigned to."""
        if isinstance(node, ast.Name):
            assigned = (s for s in ast.walk(self.edits.tree) if isinstance(s, ast.Assign))
            given = [s.value for s in assigned if node.id in [getattr(t, "id", "") for t in s.targets]]
            return bool(given) and all(isinstance(value, ast.Call) and self._is_python_generator(value) for value in given)
        if not isinstance(node, ast.Call):
            return False
        functions = [n for n in ast.walk(self.edits.tree) if isinstance(n, nodes.Function) and n.name == nodes.called(node)]
        return any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for f in functions for inner in nodes.own_nodes(f.body))

    def _carries(self, node: ast.expr) -> bool:
        """True if an expression names one of the iterators, or makes it; equal names of other scopes count as the same."""
        names = set(filter(None, map(self.found.name_of, self.done)))
        return any(nodes.name_of(n) in names or n in [flow.node for flow in self.done] for n in ast.walk(node))
