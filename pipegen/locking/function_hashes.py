"""Hashes of the Python functions and packages that a spec names, found without running any code."""

from __future__ import annotations

import ast
import json
import os
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pipegen.ops.families.custom import CustomTransform
from pipegen.spec.lock_file import FunctionSource, digest
from pipegen.spec.shared_bases import find_top, package_file, search_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipegen.ops.transform import Transform
    from pipegen.spec.models import PipelineSpec
    from pipegen.spec.shared_bases import PackageFile


_HOPS = 8
"""The most modules that a function may be imported through."""


def python_functions(spec: PipelineSpec) -> list[str]:
    """Lists the functions that the steps of a spec call, in all stages of training, as `module:function`."""
    every = (spec, *(stage.resolved for stage in spec.stages))
    return list(dict.fromkeys(name for one in every for name in _called(one.transforms)))


def _called(steps: Iterable[Transform]) -> Iterator[str]:
    """Yields the functions that steps and their inner steps call."""
    for step in steps:
        if isinstance(step, CustomTransform):
            yield step.function
        yield from _called(step.inner_steps())


def function_source(function: str) -> FunctionSource | None:
    """Hashes a function's lines and its module; `None` if the source is not found.

    Looks where `import` would look, and in the working directory, and follows names that a module imports from another one. The module
    counts, too, since the function may call other code in it.
    """
    module, _, name = function.partition(":")
    for _ in range(_HOPS):
        path = _module_path(module)
        if path is None:
            return None
        try:
            text = path.read_bytes()
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            return None
        node = next((node for node in reversed(tree.body) if name in _defines(node)), None)
        if isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module) if part)
            name = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            continue
        parts = [] if node is None else [*getattr(node, "decorator_list", ()), node]
        lines = [ast.get_source_segment(text.decode(errors="replace"), part) or "" for part in parts]
        return FunctionSource(function=digest("\n".join(lines).encode()) if lines else None, module=digest(text))
    return None


def _defines(node: ast.stmt) -> Iterator[str]:
    """Yields the names that a statement at the top of a module binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _module_path(module: str) -> Path | None:
    """Finds the source of a module by its top-level name, so that packages on the way are not run."""
    top, *below = module.split(".")
    spec = find_top(top) or PathFinder.find_spec(top, [os.getcwd()])
    if spec is None:
        return None
    if not below and spec.origin is not None and spec.origin.endswith(".py"):
        return Path(spec.origin)
    for folder in spec.submodule_search_locations or ():
        place = Path(folder, *below)
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None


_LISTS = ("RECORD", "SOURCES.txt", "installed-files.txt")
"""Lists of a distribution's files; the name depends on the installer."""


def distribution_of(address: PackageFile) -> tuple[str, str | None]:
    """Finds the distribution of a base: its name and version; else the package's name and `None`.

    Reads only the metadata beside the package and, if that does not list the file, the metadata of editable installs.
    """
    path = package_file(address)
    site = search_path(address, path)
    listed = path.relative_to(site).as_posix()
    for found in distributions(path=[str(site)]):
        for name in _LISTS:
            lines = (found.read_text(name) or "").splitlines()
            if any(line.partition(",")[0].strip('"').removeprefix("../") == listed for line in lines):
                return found.name, found.version
    for found in distributions():
        with suppress(ValueError):
            said = json.loads(found.read_text("direct_url.json") or "{}")
            source = urlsplit(said.get("url", "")) if said.get("dir_info", {}).get("editable") else None
            if source is not None and source.scheme == "file" and path.is_relative_to(unquote(source.path)):
                return found.name, found.version
    return address.place.partition(".")[0], None
