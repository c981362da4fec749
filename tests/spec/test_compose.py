"""Text to values and places; what is forbidden; and that hostile files end."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.spec.compose import MAX_BYTES, MAX_SCALAR, compose, decode
from pipegen.spec.runtime_fix import to_yaml


def run(text: str) -> tuple[object, list[str], Diagnostics]:
    out = Diagnostics()
    tree = compose(text, "f.yaml", out)
    return (None if tree is None else tree.value), [d.code for d in out], out


def spans(text: str) -> dict[tuple[str | int, ...], str]:
    """The text that each span covers, where it is one line."""
    tree = compose(text, "f.yaml", Diagnostics())
    assert tree is not None
    lines = text.splitlines()
    return {
        path: lines[s.line - 1][s.column - 1 : s.end_column - 1]
        if s.line == s.end_line
        else f"{s.line}:{s.column}-{s.end_line}:{s.end_column}"
        for path, s in tree.spans.values.items()
    }


def test_values_and_places() -> None:
    text = "a: {b: [1, 'two']}\nc:\n  - d: e # comment\n    f:\n  -\n  - |\n    long\n    text\n\n\ng: 1\n"
    value, codes, _ = run(text)
    assert codes == []
    assert value == {"a": {"b": [1, "two"]}, "c": [{"d": "e", "f": None}, None, "long\ntext\n"], "g": 1}
    found = spans(text)
    assert found["a",] == "{b: [1, 'two']}"
    assert found["a", "b", 1] == "'two'"
    assert found["c", 0, "d"] == "e"
    assert found["c", 0, "f"] == "f"  # nothing stands there, so the key does
    assert found["c",] == "3:3-8:9"  # not up to `g`, where YAML would end it
    assert found["c", 0] == "3:5-4:6"


def test_key_spans() -> None:
    tree = compose("one:\n  two: 3\n", "f", Diagnostics())
    assert tree is not None
    assert (tree.spans.keys["one", "two"].line, tree.spans.keys["one", "two"].column, tree.spans.keys["one", "two"].end_column) == (2, 3, 6)


def test_columns_count_characters_and_a_byte_order_mark_has_none() -> None:
    tree = compose("\ufeffé: {ü: 1}\n", "f", Diagnostics())
    assert tree is not None
    assert tree.spans.values["é", "ü"].column == 8


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"a: \xff\n", "PG001", 1),
        (b"a: 1\nb: caf\xe9\n", "PG001", 2),
        (b"\xff\xfea\x00", "PG001", 1),
        (b"\x89PNG\r\n\x1a\n\0", "PG001", 1),
        (b"a" * (MAX_BYTES + 1), "PG003", 1),
    ],
)
def test_bytes_that_are_no_spec(data: bytes, code: str, line: int) -> None:
    finding = decode(data, "f")
    assert not isinstance(finding, str)
    assert finding.code == code
    assert finding.span is not None
    assert finding.span.line == line


def test_utf_8_with_and_without_a_mark() -> None:
    assert decode("é".encode(), "f") == "é"
    assert decode(b"\xef\xbb\xbfa: 1", "f") == "a: 1"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", ["PG006"]),
        ("# only a comment\n", ["PG006"]),
        ("---\n", ["PG006"]),
        ("- a\n", ["PG006"]),
        ("word\n", ["PG006"]),
        ("a: 1\n---\nb: 2\n", ["PG006"]),
        ("a: 1\na: 2\n", ["PG007"]),
        ("a: {b: 1, b: 2}\n", ["PG007"]),
        ("a: !env HOME\n", ["PG004"]),
        ("a: !!python/object:os.system x\n", ["PG004"]),
        ("a: !!int word\n", ["PG004"]),
        ("a: !!str 12\n", []),
        ("a: &x {b: 1}\nc: {<<: *x}\n", ["PG009"]),
        ("a: &x 1\nb: *x\n", []),
        ("a: *x\n", ["PG002"]),
        ("a: &x [*x]\n", ["PG003"]),
        ('a: "\\ud800"\n', ["PG001"]),
        ("a: \x07\n", ["PG001"]),
        ("--- {a: 1}\n...\n", []),
        ("%YAML 1.2\n---\na: 1\n", []),
    ],
)
def test_codes(text: str, codes: list[str]) -> None:
    assert run(text)[1] == codes


def test_a_duplicate_shows_both_places_and_the_first_one_counts() -> None:
    value, _, out = run("a: 1\nb: 2\na: 3\n")
    assert value == {"a": 1, "b": 2}
    (finding,) = out
    assert [(label.span.line, label.text) for label in finding.labels if label.span] == [(3, "again here"), (1, "first here")]


def test_a_merge_key_is_reported_and_merged_so_that_nothing_seems_missing() -> None:
    assert run("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n")[0] == {"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}


def test_a_quoted_merge_key_is_text() -> None:
    assert run("a: {'<<': 1}\n")[1] == ["PG009"]  # nobody means it otherwise


def test_explicit_text() -> None:
    assert run("a: !!str 12\n")[0] == {"a": "12"}


def test_odd_keys_are_noted_and_become_text() -> None:
    tree = compose("1: a\ntrue: b\nno: c\n? [x]\n: d\n", "f", Diagnostics())
    assert tree is not None
    assert set(tree.value) == {"1", "true", "no", "[x]"}
    assert set(tree.odd_keys) == {("1",), ("true",), ("[x]",)}


def _bomb(levels: int, width: int = 9) -> str:
    rows = ["a0: &a0 [" + ",".join("x" * width) + "]"]
    rows += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 500_000, "PG003"),
        ("{a: " * 100_000, "PG003"),
        ("- " * 200_000, "PG003"),
        ("? " * 200_000, "PG003"),
        ("".join(" " * i + "a:\n" for i in range(200)), "PG003"),
        ("- a\n" * 100_000, "PG003"),
        ("a: [" + "1," * 100_000 + "]", "PG003"),
        ("a: " + "x" * (MAX_SCALAR + 1), "PG003"),
        ("a: '" + "x" * (MAX_SCALAR + 1) + "'", "PG003"),
        ("a" * (MAX_BYTES + 1), "PG003"),
        (_bomb(7), "PG003"),
        (_bomb(50, 1), "PG003"),
        ("a: &x 1\n" + "b: [" + "*x," * 65 + "]", "PG003"),
    ],
    ids=["brackets", "braces", "dashes", "questions", "steps", "long", "wide", "scalar", "quoted", "bytes", "laughs", "chain", "aliases"],
)
def test_hostile_files_end_in_a_finding(text: str, code: str) -> None:
    value, codes, _ = run(text)
    assert value is None
    assert codes == [code]


def test_what_just_fits() -> None:
    assert run("a: '" + "x" * MAX_SCALAR + "'")[1] == []
    assert run("a: " + "[" * 31 + "]" * 31)[1] == []


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("abé: #'\"\\$-1.e", max_size=12)
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcé-_ ", min_size=1, max_size=6), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.nightly
@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), _values, max_size=5), st.booleans())
@settings(max_examples=60, deadline=None)
@example({"a": ["-.1", "1e5", "0o17", "+.5", "1.e1", ".1", "10", "0x1f", "null", "yes", "1_000"], "b": "1e1"}, False)
def test_what_is_written_is_read_back(value: dict[str, object], flow: bool) -> None:
    read, codes, _ = run(to_yaml(value, default_flow_style=flow))
    assert codes == []
    assert _without_yaml_1_1(read) == _without_yaml_1_1(value)


def _without_yaml_1_1(value: object) -> object:
    """PyYAML writes some numbers in a way that YAML 1.2 reads as the same number of another type."""
    if isinstance(value, dict):
        return {k: _without_yaml_1_1(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_yaml_1_1(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), _values, min_size=1, max_size=5), st.booleans())
@settings(max_examples=40, deadline=None)
def test_spans_lie_inside_their_parents(value: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    tree = compose(text, "f", Diagnostics())
    assert tree is not None
    values = tree.spans.values
    for path, span in values.items():
        start, end = (span.line, span.column), (span.end_line, span.end_column)
        assert start <= end
        if path and start != (values[path[:-1]].line, values[path[:-1]].column):
            outer = values[path[:-1]]
            assert (outer.line, outer.column) <= start
            assert end <= (outer.end_line, outer.end_column)
