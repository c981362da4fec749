"""Regular expressions and globs of users: Python's meaning, in linear time."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
import time

import pytest

from pipegen.ops.sources.folders.scan import compile_glob
from pipegen.patterns import compile_pattern
from pipegen.phases.compilation import inspect

SECONDS = 1.0


@pytest.mark.parametrize("pattern", [r"^(?:a+)+$", r"(a*)*c", r"(a|aa)+$", r"(?:.*a){12}c", "(.*)(.*)(.*)(.*)(.*)c"])
def test_nested_quantifiers_cost_no_more_than_others(pattern: str) -> None:
    started = time.process_time()
    assert compile_pattern(pattern).search("a" * 20_000 + "b") is None
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("glob", ["*a" * 30 + "*b", "**/" + "a*" * 30 + "b", "**/*a" * 20 + "b", "a**" * 15 + "b", "*" * 30 + "b"])
def test_a_glob_of_thirty_stars_ends(glob: str) -> None:
    started = time.process_time()
    compiled = compile_glob(glob)
    for path in ("a" * 250, "/".join(["a" * 20] * 40), "a/" * 1000):
        assert not compiled.match(path)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a*b*c*", "xaybzc"),
        ("**/x*/**/y*/*.jpg", "a/x1/b/c/y2/d.jpg"),
        ("p**q*r*", "p/a/b/q1r"),
        ("[a-z]*[!0-9]*_*_*", "b-x_1_2"),
        ("*é*é*é*", "é1é2é"),
    ],
)
def test_many_stars_mean_the_same(glob: str, path: str) -> None:
    assert compile_glob(glob).match(path)
    assert not compile_glob(glob).match(f"{path}/more/" if "**" not in glob else "other")


@pytest.mark.parametrize("glob", ["a[+-9]b", "a[/]b", "*a[+-9]b*c*", "a[!x]b"])
def test_no_set_holds_a_slash(glob: str) -> None:
    assert not compile_glob(glob).match("a/b")


@pytest.mark.filterwarnings("ignore:Possible nested set")
@pytest.mark.parametrize(
    "pattern",
    [
        r"\d+",
        r"\w+",
        r"[\w-]+",
        r"\W",
        r"[^\d_]+",
        r"\s",
        r"(\w+)_\d",
        r"[]a]+",
        r"[^]a]+",
        "[[a]+",
        r"a\Z",
        r"(?i)MÜ",
        r"(?P<who>\w+)/",
        r"(x)?\w",
        r"p(\d+)|$",
    ],
)
def test_patterns_mean_what_they_mean_in_python(pattern: str) -> None:
    compiled, python = compile_pattern(pattern), re.compile(pattern)
    for text in ("müller_07/é 1.jpg", "٣٤ x", "[a]a", "p12", "", "\udcff\udcfe_7", "日本語_5", "x\u00a0y"):
        ours, theirs = compiled.search(text), python.search(text)
        assert (ours is None) == (theirs is None), text
        if ours is not None and theirs is not None:
            assert ours.whole == theirs[0], text
            assert ours.first == (theirs[1] if python.groups else None), text


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=a)b", "look-ahead"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-references"),
        ("(?P<n>a)(?P=n)", "back-references"),
        ("(a", "not a valid regular expression"),
        ("a{1001}", "RE2"),
        ("a" * 3000, "longer"),
    ],
)
def test_what_re2_cannot_do_is_a_finding(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compile_pattern(pattern)
    head = {"pipegen": 1, "transforms": [{"resize": {"size": 8}}]}
    split = {"splits": {"parts": {"train": 0.5, "validation": 0.5}, "group": {"path": pattern}}}
    features = {"image": {"kind": "image", "path": "a"}, "mask": {"kind": "mask", "path": "b", "values": {"0": 0}}}
    for spec in (
        head | split | {"source": {"image_folder": {"path": "x"}}},
        head | {"source": {"files": {"key": pattern, "features": features}}, "output": {"x": "image", "y": "mask"}},
    ):
        found = [d for d in inspect(spec).diagnostics if said in d.message]
        assert [d.code for d in found] == ["PG105"], [d.message for d in inspect(spec).diagnostics]


@pytest.mark.filterwarnings("ignore:Possible nested set", "ignore:Possible set", "ignore:Flags not")
def test_random_patterns_mean_what_they_mean_in_python() -> None:
    drawn = random.Random(2)
    parts = [*"ab01/_-.*+?()[]{}|^$\\dwsDWSbZAxnpP<>=!:#,é \t\n", "(?:", "(?P<n>", "(?i)", "\udc80", "{2,3}", "[^", "]", "**/"]
    compared = 0
    for _ in range(3_000):
        pattern = "".join(drawn.choices(parts, k=drawn.randint(1, 9)))
        with contextlib.suppress(ValueError):
            compile_glob(pattern).match("a/b")
        with contextlib.suppress(ValueError, re.error):
            ours, theirs = compile_pattern(pattern), re.compile(pattern)
            for text in ("ab_01/é.x", "", "a-b 12", "\udc80z"):
                found, expected = ours.search(text), theirs.search(text)
                assert (found.whole if found else None) == (expected[0] if expected else None), (pattern, text)
                compared += 1
    assert compared > 2_000


def test_an_open_bracket_in_the_path_of_files_is_a_finding() -> None:
    spec = {"pipegen": 1, "source": {"files": {"features": {"image": {"kind": "image", "path": "a/[b.jpg"}}}}}
    assert any("not closed" in d.message for d in inspect(spec).diagnostics)


def test_re2_is_imported_only_for_a_regular_expression() -> None:
    code = """
import sys
from pipegen.phases.compilation import inspect
spec = {"pipegen": 1, "source": {"image_folder": {"path": "x", "pattern": "**/*.jpg"}}, "transforms": [{"resize": {"size": 8}}]}
inspect(spec)
assert "re2" not in sys.modules
inspect({**spec, "splits": {"parts": {"train": 0.5, "validation": 0.5}, "group": {"path": "a"}}})
assert "re2" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
