"""The import of `ImageDataGenerator` gives way to that of pipegen."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipegen.migrate.edits import Edits
    from pipegen.migrate.findings import Findings

_NAME = "ImageDataGenerator"


def exchange_imports(edits: Edits, findings: Findings) -> None:
    """Import pipegen, and take out the import of `ImageDataGenerator` where nothing uses it any more; one that stays is said."""
    remaining = len(re.findall(rf"\b{_NAME}\b", edits.apply()))
    statements = [s for s in ast.walk(edits.tree) if isinstance(s, ast.ImportFrom) and any(a.name == _NAME for a in s.names)]
    top = [s for s in statements if s in edits.tree.body]
    renamed = {a.asname for s in statements for a in s.names if a.name == _NAME and a.asname}
    used = remaining > len(statements) or any(len(re.findall(rf"\b{name}\b", edits.apply())) > 1 for name in renamed)
    if used or not top or len(top) != len(statements):
        _insert(edits)
        for statement in statements if used else ():
            if (statement.module or "").split(".")[0] in ("keras", "keras_preprocessing"):
                message = (
                    f"`{_NAME}` is still imported, since code uses it that is not edited; `{statement.module}` has it no more in Keras 3"
                )
                help_ = "take it out with what uses it; until then, `from pipegen.compat import ImageDataGenerator` has the same methods"
                findings.add("PG615", statement.lineno, message, help_)
        return
    for i, statement in enumerate(top):
        others = [a for a in statement.names if a.name != _NAME]
        kept = f"from {'.' * statement.level}{statement.module or ''} import {', '.join(ast.unparse(a) for a in others)}" if others else ""
        lines = ([kept] if kept else []) + (_modules(edits) if i == 0 else [])
        if lines:
            edits.replace(statement, "\n".join(lines))
        else:
            edits.delete(statement)


def _insert(edits: Edits) -> None:
    """Put the import before the first statement that is neither a docstring nor about the future."""
    for statement in edits.tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future and not isinstance(statement, ast.Pass):
            for line in _modules(edits):
                edits.before(statement, line)
            return


def _modules(edits: Edits) -> list[str]:
    """The statements that import what the edits need."""
    return [f"import {name}" for name in (*sorted(edits.imports), "pipegen")]
