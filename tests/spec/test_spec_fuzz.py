"""Whatever the bytes, loading ends in a spec or in findings."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sections import FULL

from pipegen.spec.load import load

WORDS = [
    "pipegen",
    "source",
    "image_folder",
    "path",
    "splits",
    "parts",
    "train",
    "transforms",
    "resize",
    "size",
    "random_flip",
    "batch",
    "shuffle",
    "runtime",
]
WORDS += [
    "params",
    "type",
    "int",
    "default",
    "$p",
    "${p}",
    "$",
    "p",
    "output",
    "x",
    "y",
    "encode",
    "errors",
    "decode",
    "skip",
    "extends",
    "by_split",
    "tests",
]
WORDS += [
    "remainder",
    "window",
    "1GiB",
    "folds",
    "count",
    "group",
    "method",
    "column",
    "when",
    "fill",
    "constant",
    "degrees",
    "random_rotation",
    "cache",
    "disk",
]
PIECES = [
    ": ",
    ":",
    "\n",
    "\n  ",
    "\n- ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "#",
    "&a ",
    "*a",
    "<<: ",
    "!t ",
    "'",
    '"',
    "|\n",
    "\t",
    "~",
    "1",
    "-0.5",
    ".nan",
    "1/2",
    "yes",
    "é",
    "---\n",
]


def check(data: str | bytes) -> None:
    loaded = load("f.yaml", text=data, env={})
    assert (loaded.spec is None) == loaded.diagnostics.has_errors
    for finding in loaded.diagnostics:
        assert finding.message
        assert finding.labels
        if finding.span is not None:
            assert finding.span.line >= 1
            assert finding.span.column >= 1


@given(st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_bytes(data: bytes) -> None:
    check(data)


@given(st.lists(st.sampled_from(WORDS + PIECES), max_size=40).map("".join))
@settings(max_examples=80, deadline=None)
def test_pieces_of_yaml(text: str) -> None:
    check(text)


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(st.sampled_from(WORDS), _values, max_size=6))
@settings(max_examples=80, deadline=None)
def test_trees_of_known_words(spec: dict[str, object]) -> None:
    loaded = load({"pipegen": 1, **spec}, env={})
    assert (loaded.spec is None) == loaded.diagnostics.has_errors


TREE = yaml.safe_load(FULL)


def _paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for k, v in items for p in _paths(v, (*path, k)))]


@given(st.sampled_from(_paths(TREE)[1:]), _values)
@settings(max_examples=100, deadline=None)
def test_a_good_spec_with_one_value_replaced(path: tuple[object, ...], value: object) -> None:
    import copy

    spec = copy.deepcopy(TREE)
    at = spec
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    loaded = load(spec, env={})
    assert (loaded.spec is None) == loaded.diagnostics.has_errors


@given(st.integers(0, len(FULL)), st.integers(0, 20), st.text(max_size=4))
@settings(max_examples=80, deadline=None)
def test_a_good_spec_with_a_hole(start: int, length: int, text: str) -> None:
    check(FULL[:start] + text + FULL[start + length :])
