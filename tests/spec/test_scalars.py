"""YAML 1.2's core schema, not 1.1's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.spec.compose import compose, needs_quotes, quoted, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("012", 12),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("null", None),
        ("", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_core_scalars(text: str, value: object) -> None:
    result = resolve(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "on", "off", "y", "2024-01-01", "12:30", "1_000", "1/255", "50%", "0b11", "1,5", "nan", "inf", "tRue", "0o8", "- 1"],
)
def test_what_yaml_1_1_would_have_converted_stays_text(text: str) -> None:
    assert resolve(text) == text


def test_nan() -> None:
    assert math.isnan(resolve(".nan"))  # type: ignore[arg-type]


def test_a_mile_of_digits_is_text() -> None:
    assert isinstance(resolve("9" * 5000), str)


@given(st.text(max_size=30))
def test_text_that_needs_no_quotes_is_read_as_itself(text: str) -> None:
    if not needs_quotes(text):
        assert resolve(text) == text
    assert quoted(text)[0] == quoted(text)[-1]
    tree = compose(f"a: {quoted(text)}", "x", Diagnostics())
    assert tree is not None
    assert tree.value["a"] == text
