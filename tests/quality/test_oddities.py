"""When a class is nearly empty."""

from __future__ import annotations

import pytest

from pipegen.quality.survey import Classes


@pytest.mark.parametrize(
    ("counts", "few"),
    [
        ({"a": 1, "b": 19}, ["a"]),  # a tenth of the mean, which is 10
        ({"a": 2, "b": 18}, []),
        ({"a": 0, "b": 20}, []),  # an empty one is another finding
        ({"b": 96, "a": 2, "c": 1, "d": 1}, ["c", "d", "a"]),
        ({}, []),
    ],
)
def test_a_class_of_a_tenth_of_the_mean_or_less_is_nearly_empty(counts: dict[str, int], few: list[str]) -> None:
    assert list(Classes("train", counts, 1.0).nearly_empty) == few
