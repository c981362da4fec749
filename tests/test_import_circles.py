"""No module of pipegen imports itself, whichever way round: neither when it is loaded, nor later inside a function, nor for annotations."""

from __future__ import annotations

from functools import cache
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

NAMED_BY_WHAT_THEY_MAKE = {
    ("pipegen.ops.kinds.base", "pipegen.ops.transform"),
    ("pipegen.ops.sources.listing.shards", "pipegen.ops.sources.listing.base"),
    *(
        (f"pipegen.migrate.{part}", "pipegen.migrate.evaluate")  # an interpreter, in a file for each kind of expression
        for part in ("bindings", "calling", "calls", "labels", "members", "outside", "records", "tables", "unrolling")
    ),
}
"""Annotations that name a class whose module imports this one."""


@cache
def found(*, annotations: bool) -> dict[str, frozenset[str]]:
    graph = grimp.build_graph("pipegen", exclude_type_checking_imports=not annotations, cache_dir=None)
    return {module: frozenset(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def imports(*, annotations: bool) -> dict[str, set[str]]:
    """Returns what each module imports, wherever in it."""
    return {module: set(named) for module, named in found(annotations=annotations).items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Returns the modules of a circle, each imported by the next; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_module_imports_itself_through_others() -> None:
    assert circle(imports(annotations=False)) == []


def test_annotations_name_no_module_that_imports_theirs() -> None:
    graph = imports(annotations=True)
    for module, named in NAMED_BY_WHAT_THEY_MAKE:
        graph[module].discard(named)
    assert circle(graph) == []


@pytest.mark.parametrize(("module", "named"), sorted(NAMED_BY_WHAT_THEY_MAKE))
def test_each_exception_is_needed(module: str, named: str) -> None:
    graph = imports(annotations=True)
    for other, name in NAMED_BY_WHAT_THEY_MAKE - {(module, named)}:
        graph[other].discard(name)
    assert circle(graph), f"{module} may name {named}: take it from the list"
