"""No module of pipegen imports itself, whichever way round: neither when it is loaded, nor later inside a function, nor for annotations;
and no folder imports itself through others."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def imports(*, annotations: bool) -> dict[str, set[str]]:
    """Returns what each module imports, wherever in it."""
    graph = grimp.build_graph("pipegen", exclude_type_checking_imports=not annotations, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Returns the modules of a circle, each imported by the next; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def folders(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Returns what each folder of pipegen imports, with its folders; a module that lies in none stands for itself."""
    found: dict[str, set[str]] = {}
    for module, names in graph.items():
        if module != "pipegen":
            own = module.split(".")[1]
            found.setdefault(own, set()).update(name.split(".")[1] for name in names if name != "pipegen")
            found[own].discard(own)
    return found


@pytest.mark.parametrize("annotations", [False, True])
def test_no_module_imports_itself_through_others(annotations: bool) -> None:
    assert circle(imports(annotations=annotations)) == []


@pytest.mark.parametrize("annotations", [False, True])
def test_no_folder_imports_itself_through_others(annotations: bool) -> None:
    assert circle(folders(imports(annotations=annotations))) == []


def test_no_kind_imports_a_source() -> None:
    """Also not for annotations, which the contracts of the import-linter leave out."""
    found = imports(annotations=True)
    below = {module: names for module, names in found.items() if module.startswith(("pipegen.ops.kinds", "pipegen.ops.fields"))}
    assert len(below) > 12
    assert not [(module, name) for module, names in below.items() for name in names if name.startswith("pipegen.ops.sources")]


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle(folders({"pipegen.a.x": {"pipegen.b.y"}, "pipegen.b.y": set(), "pipegen.b.z": {"pipegen.a.w"}, "pipegen.a.w": set()}))
