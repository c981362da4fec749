"""Whole numbers in given proportions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.data.rounding import apportion, round_table

if TYPE_CHECKING:
    from collections.abc import Callable


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=1, max_size=6))
def test_apportioned_sizes_sum_to_the_total_and_are_less_than_one_off(total: int, weights: list[int]) -> None:
    shares = [Fraction(w, sum(weights)) for w in weights]
    sizes = apportion(total, shares)
    assert sum(sizes) == total
    assert all(abs(size - share * total) < 1 for size, share in zip(sizes, shares, strict=True))


@st.composite
def margins(draw: Callable[..., list[int]]) -> tuple[list[int], list[int]]:
    rows = draw(st.lists(st.integers(0, 40), min_size=1, max_size=30))
    cuts = sorted(draw(st.lists(st.integers(0, sum(rows)), max_size=5)))
    return rows, [b - a for a, b in zip([0, *cuts], [*cuts, sum(rows)], strict=True)]


@settings(max_examples=200)
@given(margins())
def test_a_table_has_both_margins_and_each_cell_is_less_than_one_off(given_margins: tuple[list[int], list[int]]) -> None:
    rows, columns = given_margins
    table = round_table(rows, columns)
    assert [sum(line) for line in table] == rows
    assert [sum(column) for column in zip(*table, strict=True)] == columns
    total = sum(rows)
    for row, line in zip(rows, table, strict=True):
        for column, cell in zip(columns, line, strict=True):
            assert abs(cell * total - row * column) < max(total, 1)


def test_equal_classes_too_small_for_their_share_are_spread_over_both_parts() -> None:
    table = round_table([7] * 22, [123, 31])
    assert sorted({tuple(line) for line in table}) == [(5, 2), (6, 1)]


def test_thousands_of_classes_of_many_sizes() -> None:
    rows = [1 + i % 17 for i in range(5000)]
    total = sum(rows)
    table = round_table(rows, [total // 10, total // 5, total - total // 10 - total // 5])
    assert [sum(line) for line in table] == rows
