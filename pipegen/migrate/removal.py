"""Removes code that only the exchanged code used: generators with their `fit`, collections of them, and imports."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from pipegen.migrate.edits import Edits
from pipegen.migrate.evaluate import FileEvaluator
from pipegen.migrate.findings import Findings
from pipegen.migrate.homes import of_function
from pipegen.migrate.interpret import Collected
from pipegen.migrate.nodes import Function, Row, targets_of
from pipegen.migrate.signatures import FLOWS, is_keras
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


def exchange_imports(edits: Edits, findings: Findings, hidden: str = "", *, pipegen: bool = True, compat: bool = False) -> None:
    """Imports `pipegen`, and removes the import of `ImageDataGenerator` if no code and no `hidden` line uses it.

    If unedited code uses it, imports it from `pipegen.compat` if `compat` is set; else reports the import.
    """
    try:
        imports = _Imports(edits, frozenset(re.findall(r"\w+", hidden)), pipegen, compat)
    except SyntaxError:
        return  # the edits are undone as a whole
    for statement in imports.exchange():
        message = f"`{_NAME}` is still imported for code that is not edited, but `{statement.module}` does not have it in Keras 3"
        help_ = "remove it with the code that uses it; until then, `from pipegen.compat import ImageDataGenerator` has the same methods"
        findings.add("PG615", statement.lineno, message, help_)


@dataclass
class _Imports:
    """Removes unneeded imports of one file."""

    edits: Edits
    hidden: frozenset[str]  # names that lines which are not Python may use
    pipegen: bool  # true if `pipegen` is imported
    compat: bool  # true if `ImageDataGenerator` is imported from `pipegen.compat`
    read: set[str] = field(init=False)  # names that code reads after the edits
    _before: set[str] = field(init=False)
    _after: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self._before = _names(self.edits.tree)
        self._read()

    def _read(self) -> None:
        self._after = ast.parse(self.edits.apply())
        self.read = {*self.hidden, *_names(self._after)}

    def exchange(self) -> list[ast.ImportFrom]:
        """Edits the imports; returns those of the class that stay and fail on Keras 3."""
        self._without_aliases()
        kept: list[ast.ImportFrom] = []
        first = True
        for statement in [s for s in ast.walk(self.edits.tree) if isinstance(s, (ast.Import, ast.ImportFrom))]:
            gone = [a for a in statement.names if self._goes(statement, a)]
            moved = [a for a in statement.names if a not in gone and _new_home(statement, a, self.compat) and self._serves(a)]
            if any(a.name == _NAME and a not in gone and a not in moved and not _exists(statement, a) for a in statement.names):
                kept += [statement] if isinstance(statement, ast.ImportFrom) and is_keras(statement.module or "") else []
            if not gone and not moved:
                continue
            lines = _left(statement, gone, moved, self.compat)
            if first and self.pipegen and statement in self.edits.tree.body and any(a.name == _NAME for a in gone):
                lines += _modules(self.edits)
                first = False
            if lines:
                alone = statement in self.edits.tree.body and self.edits.is_alone(statement)
                self.edits.replace(statement, ("\n" if alone else "; ").join(lines))
            else:
                self.edits.delete(statement)
        if first and self.pipegen:
            _insert(self.edits)
        return kept

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


def _new_home(statement: ast.Import | ast.ImportFrom, alias: ast.alias, compat: bool) -> str:
    """New module of an image function that its old module no longer has; empty if none is needed."""
    if isinstance(statement, ast.ImportFrom) and (statement.module, alias.name) == ("keras_preprocessing", "image"):
        return "keras.preprocessing"
    if not isinstance(statement, ast.ImportFrom) or not (statement.module or "").endswith("preprocessing.image"):
        return ""
    if alias.name == _NAME and compat and is_keras(statement.module or ""):
        return "pipegen.compat"
    if not is_keras(statement.module or "") or statement.level or _exists(statement, alias):
        return ""
    if alias.name in _OF_KERAS_3:
        return "keras.utils" if alias.name in _UTILS else "keras.preprocessing.image"
    return "pipegen.compat" if alias.name in _COMPAT else ""


def _left(statement: ast.Import | ast.ImportFrom, gone: list[ast.alias], moved: list[ast.alias], compat: bool) -> list[str]:
    """Statements of an import without some names, and with some from another module."""
    rest = [a for a in statement.names if a not in gone and a not in moved]
    if isinstance(statement, ast.Import):
        return [f"import {', '.join(ast.unparse(a) for a in rest)}"] if rest else []
    homes: dict[str, list[str]] = {f"{'.' * statement.level}{statement.module or ''}": [ast.unparse(a) for a in rest]}
    for alias in moved:
        homes.setdefault(_new_home(statement, alias, compat), []).append(ast.unparse(alias))
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
    gone: list[Function]

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
        if statement is None:
            statement = self._holder(generator)
        owners = [call.func.value for _, call in self.found.fits if isinstance(call.func, ast.Attribute)]
        own = (*owners, *(flow.node for flow in self.done), *self.gone)  # the exchanged calls, and those of `fit`
        known = frozenset(id(n) for root in own for n in ast.walk(root))
        if statement is None or is_read_elsewhere(self.found.evaluator, statement, frame, known):
            return
        self.edits.delete(statement)
        calls = [call for owner, call in self.found.fits if owner is generator]
        for statement in (n for n in ast.walk(self.edits.tree) if isinstance(n, ast.Expr) and n.value in calls):
            self.edits.delete(statement)

    def _holder(self, generator: Generator) -> ast.stmt | None:
        """Assignment of a dict or a list of only unneeded generators."""
        done = {id(g.node) for g in self.found.generators if self._is_done(g)}
        for statement in ast.walk(self.edits.tree):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
                value = statement.value
                held = value.values if isinstance(value, ast.Dict) else value.elts if isinstance(value, Row) else []
                held = [value.value] if isinstance(value, ast.DictComp) else held
                if generator.node in held and all(id(h) in done for h in held):
                    return statement
        return None


def is_read_elsewhere(evaluator: FileEvaluator, statement: ast.stmt, frame: Frame, known: frozenset[int]) -> bool:
    """True if code other than the nodes with these ids reads the variable that a statement assigns."""
    target = next(iter(targets_of(statement)), None)
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
