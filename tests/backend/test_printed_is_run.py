"""What `explain --physical` prints of a plan is what its graphs hold: under each scope the same variables, Python, assertions and XLA.

The traced functions of every map are walked, with all functions that they call.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pipes import RESIZE, pipeline
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.physical import nodes as p
from pipegen.physical.facts import Facts, facts, inside
from pipegen.physical.nodes import node_name
from pipegen.physical.physical_text import physical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipegen.backend.running.execute import Executor

pytestmark = pytest.mark.tf

VARIABLES = {
    "pipegen_start": "the position",
    "pipegen_delivered": "the position",
    "pipegen_column": "columns of the data",
    "pipegen_cache": "the cache",
    "pipegen_cache_filled": "the cache",
    "pipegen_cache_checked": "which records are there",
}
MEMORY = "memory of earlier batches of image"
PASSED_ON = ("Identity", "GatherV2", "EnsureShape")
"""Operations that give the variable that they are given, or one of several."""
PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
LARGE: list[Any] = [{"resize": {"size": 224}}, "random_flip", {"rescale": {"to": [0, 1]}}]
"""Eight floats of that size take more than `LARGE` bytes."""
TWICE: list[Any] = [RESIZE, {"random_equalization": {"probability": 0.2}}, {"random_crop": {"size": 16}}]
COMBINED: list[Any] = [RESIZE, "random_flip", {"mixup": {"alpha": 0.2}}]
DISK = "a folder of the test's"
PLANS: dict[str, tuple[dict[str, Any], tuple[p.Form, ...]]] = {
    "files": ({"transforms": LARGE}, (p.TRAINING, p.FIXED.built_on(), p.SHOWN, p.PROBED)),
    "in memory": ({"transforms": LARGE, "runtime": {"cache": "memory"}}, (p.TRAINING, p.FIXED.built_on())),
    "on disk": ({"transforms": [RESIZE, {"random_crop": {"size": 16}}, "random_flip"], "runtime": {"cache": DISK}}, (p.REQUESTED,)),
    "drawn late": ({"transforms": TWICE, "runtime": {"cache": "memory", "jit": "never"}}, (p.FIXED,)),
    "combined": ({"transforms": COMBINED, "output": {"encode": {"label": "one_hot"}}, "batch": {"size": 12}}, (p.FIXED,)),
    "skipped": ({"transforms": [RESIZE], "errors": {"decode": {"skip": {"max_fraction": 0.5}}}}, (p.FIXED, p.PROBED)),
    "stored": ({"transforms": [RESIZE], "shuffle": "none", "runtime": {"jit": "never"}}, (p.FIXED,)),
}

Found = set[tuple[str, str]]
"""The place, `FUNCTION` or `FUNCTION/NODE`, and what is there."""


class Walk:
    """Goes through a traced function, and through whatever it calls.

    Args:
        function: The function.
        names: What tensors outside of it are, by their identity: the variables that it may capture.
    """

    def __init__(self, function: Any, names: Mapping[int, str]) -> None:
        self.definition = function.graph.as_graph_def()
        self.library = {f.signature.name: f for f in self.definition.library.function}
        captured = {inner.op.name: names.get(id(outer)) for outer, inner in function.graph.captures if outer.dtype.name == "resource"}
        self.captured = {name for name in captured.values() if name is not None}
        self.start = {inner: name for inner, name in captured.items() if name is not None}

    def found(self) -> Iterator[tuple[list[str], str]]:
        """The scopes of each operation of interest, and what it is."""
        return self.nodes(self.definition.node, self.start, [])

    def nodes(self, nodes: Any, held: Mapping[str, str], scope: list[str]) -> Iterator[tuple[list[str], str]]:
        known = dict(held)
        for node in nodes:
            inputs = [known.get(name.split(":")[0]) for name in node.input if not name.startswith("^")]
            path = [*scope, *node.name.split("/")[:-1]]
            called = [f.name for attr in node.attr.values() for f in (attr.func, *attr.list.func) if f.name]
            if node.op in PASSED_ON and inputs[0] is not None:
                known[node.name] = inputs[0]
            elif node.op in PYTHON:
                yield path, "Python"
            elif node.op == "Assert":
                yield path, "assertions"
            elif not called:
                yield from ((path, held) for held in inputs if held is not None)
            if node.attr["_XlaMustCompile"].b:
                yield path, "XLA"
            for name in called:
                body = self.library[name]
                given = zip(reversed([arg.name for arg in body.signature.input_arg]), reversed(inputs), strict=False)
                yield from self.nodes(body.node_def, {arg: label for arg, label in given if label is not None}, path)


def run_in(executor: Executor, made: p.Physical, progress: Any, places: list[Any]) -> dict[str, Walk]:
    """The traced function of each map of a plan, by the map's name. `places` are those of batches, as they are made."""
    import tensorflow as tf

    from pipegen.backend.running.walk import Run

    operations = list(made.named())
    maps = {name: name for name, operation in operations if isinstance(operation, p.Map)}
    # A map that puts its elements where they are stacked has both names.
    maps |= {f"{name}_{behind}": name for (name, _), (behind, o) in pairwise(operations) if name in maps and isinstance(o, p.Stack)}
    begin = tf.data.Dataset.from_tensors((tf.zeros([], tf.int64), tf.zeros([], tf.int64)))
    run = Run(executor, made, progress)
    ds, functions = run.dataset(run.dataset(begin), hands_over=True), {}
    while ds is not begin:
        if getattr(ds, "_name", None) in maps:
            functions[maps[ds._name]] = ds._pipegen_function
        (ds,) = ds._inputs()
    names = {id(handle): MEMORY for place in places for handle in place._handles}
    for function in functions.values():
        names |= {id(v.handle): VARIABLES[re.sub(r"(_\d+)?:0$", "", v.name)] for v in function.graph.variables}
    return {name: Walk(function, names) for name, function in functions.items()}


def printed(operation: p.Map, made: p.Physical) -> Found:
    """What the lines of a map say."""
    lines: list[tuple[str, Facts]] = []
    for function in operation.functions:
        name = node_name(function)
        lines.append((name, facts(function, made)))
        lines += [(f"{name}/{type(node).__name__.lower()}", facts(node, made)) for node in inside(function)]
    found: Found = set()
    for place, said in lines:
        found |= {(place, variable) for variable in said.variables}
        words = {"Python": bool(said.python), "assertions": said.asserts, "XLA": said.compiled}
        found |= {(place, word) for word, true in words.items() if true}
        assert said.compiled or not said.device
    return found


def place_of(scopes: list[str], operation: p.Map) -> str:
    """The line that an operation of a graph belongs to."""
    plain = [re.sub(r"_\d+$", "", scope) for scope in scopes]
    names = {node_name(function): function for function in operation.functions}
    assert plain[0] in names, scopes
    held = {type(node).__name__.lower() for node in inside(names[plain[0]])}
    return "/".join([plain[0], *[scope for scope in plain[1:] if scope in held][:1]])


NIGHTLY = ("in memory", "stored")
"""Plans whose lines others have, too: a cache in memory that is drawn late, and maps that are not compiled."""


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.nightly] * (name in NIGHTLY)) for name in PLANS])
def test_a_graph_holds_what_is_printed_where_it_is_printed(
    name: str, photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipegen.backend.kernels import chain
    from pipegen.backend.kernels.reuse import Places
    from pipegen.passes import chunk_elements

    monkeypatch.setattr(chunk_elements, "LONG_EPOCH", 1)
    given, forms = PLANS[name]
    runtime = {"jit": "auto", "threads": 2, **given.get("runtime", {})}
    if runtime.get("cache") == DISK:
        runtime["cache"] = {"disk": str(tmp_path / "cache")}
    places: list[Any] = []

    class Noted(Places):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            places.append(self)

    monkeypatch.setattr(chain, "Places", Noted)
    pipe = pipeline(photo_folder, runtime, **{key: value for key, value in given.items() if key != "runtime"})
    executor = pipe._engine.executor("train")
    for form in forms:
        made = executor.physical(form)
        maps = {name: operation for name, operation in made.named() if isinstance(operation, p.Map)}
        walks = run_in(executor, made, pipe._engine.train_progress(), places)
        assert set(walks) == set(maps)
        for at, operation in maps.items():
            found = {(place_of(scopes, operation), what) for scopes, what in walks[at].found()}
            assert found == printed(operation, made), f"{form.name}: {at}"
        lines = {what for operation in maps.values() for what in printed(operation, made)}
        captured = set().union(*(walk.captured for walk in walks.values()))
        assert captured <= {what for _, what in lines}, "what is captured is used"
        python = any(what == "Python" and not place.endswith("/element") for place, what in lines)
        assert physical_json(made)["portable"] == (form.enters in ("constant", "list") and not captured and not python)
