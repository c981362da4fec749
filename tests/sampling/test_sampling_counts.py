"""How often examples are seen: the tables that are made of a split's classes and weights, against fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.data.sampling import UNIT, balanced, easiest_first, repeated, settled, weighted
from tests.sampling.counting import groups_of_slots

Labels = st.lists(st.integers(0, 6), min_size=1, max_size=150).map(lambda v: np.array(v))
Weights = st.lists(st.floats(0, 1e6, width=32), min_size=1, max_size=150).filter(lambda v: sum(v) > 1e-3).map(lambda v: np.array(v))


def rounded(value: Fraction) -> tuple[int, int]:
    return math.floor(value), math.ceil(value)


def check(repeats: Any, wanted: list[Fraction], n: int) -> None:
    """Every group has its visits, rounded down or up, in each epoch; and an epoch `n` of them."""
    assert repeats.size == n
    for epoch in (0, 1, 17, 10**6):
        slots = groups_of_slots(repeats, epoch)
        assert len(slots) == n
        for group, value in enumerate(wanted):
            assert slots.count(group) in rounded(value)


@given(units=st.lists(st.integers(0, 5 * UNIT), min_size=1, max_size=60))
def test_what_groups_have_is_moved_by_less_than_a_visit_and_what_is_whole_by_nothing(units: list[int]) -> None:
    total = (sum(units) + UNIT // 2) // UNIT
    found = settled(np.array(units, np.int64), total).tolist()
    assert sum(found) == total * UNIT
    for before, after in zip(units, found, strict=True):
        assert before // UNIT * UNIT <= after <= -(-before // UNIT) * UNIT


def test_a_spread_longer_than_63_bits() -> None:
    units = np.full(3_000, 2**31 + 1, np.int64)
    total = (int(units.sum()) + UNIT // 2) // UNIT + 1_000
    assert int(settled(units, total).sum()) == total * UNIT


@settings(max_examples=40)
@given(labels=Labels, threshold=st.floats(1e-4, 1))
def test_repeat_factors_are_those_of_the_paper(labels: Any, threshold: float) -> None:
    n = len(labels)
    sizes = np.bincount(labels)
    factors = [Fraction(round(max(1.0, math.sqrt(threshold * n / max(c, 1))) * UNIT), UNIT) for c in sizes]
    total = sum(int(c) * r for c, r in zip(sizes, factors, strict=True))
    repeats = repeated(labels, threshold, 3)
    check(repeats, [int(c) * r for c, r in zip(sizes, factors, strict=True)], math.floor(total + Fraction(1, 2)))
    assert np.array_equal(repeats.sizes, sizes)
    for visits, factor in zip(repeats.visits[sizes > 0], (f for f, c in zip(factors, sizes, strict=True) if c), strict=True):
        assert math.floor(factor) <= visits <= math.ceil(factor)


def test_an_example_of_several_classes_goes_by_the_rarest() -> None:
    several = np.zeros((100, 3), np.uint8)
    several[:, 0] = 1
    several[:4, 1] = 1
    several[0, 2] = 1
    several[99] = 0
    repeats = repeated(several, 0.16, 0)
    assert repeats.each(100)[[0, 1, 2, 3, 50, 99]] == pytest.approx([4, 2, 2, 2, 1, 1])
    assert repeats.size == 4 + 3 * 2 + 96


@settings(max_examples=40)
@given(labels=Labels, power=st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_classes_have_their_shares_exact_to_the_example(labels: Any, power: float) -> None:
    n, sizes = len(labels), np.bincount(labels)
    parts = [float(c) ** (1 - power) if c else 0.0 for c in sizes]
    wanted = [Fraction(round(n * p / math.fsum(parts) * UNIT), UNIT) for p in parts]
    check(balanced(labels, power, 1), wanted, n)
    largest = max(sizes)
    longer = [Fraction(round(p * float(largest) ** power * UNIT), UNIT) for p in parts]
    grown = balanced(labels, power, 1, longest=True)
    check(grown, longer, math.floor(sum(longer) + Fraction(1, 2)))
    assert all(visits >= 1 - 1 / UNIT for visits in grown.each(n)), "no example is left out"


def test_the_longest_epoch_is_that_of_an_over_sampler() -> None:
    repeats = balanced(np.repeat(np.arange(3), [64, 12, 4]), 1.0, 0, longest=True)
    for epoch in range(4):
        assert np.bincount(groups_of_slots(repeats, epoch)).tolist() == [64, 64, 64]


@settings(max_examples=40)
@given(weights=Weights)
def test_examples_are_seen_in_proportion_to_their_weights(weights: Any) -> None:
    n = len(weights)
    wanted = [Fraction(round(n * float(w) / math.fsum(weights) * UNIT), UNIT) for w in weights]
    repeats = weighted(weights, 5)
    check(repeats, wanted, n)
    assert repeats.each(n).sum() == pytest.approx(n)


def test_equal_weights_and_no_power_are_one_pass() -> None:
    for repeats in (weighted(np.full(1000, 0.1), 0), balanced(np.arange(1000) % 7, 0.0, 0), repeated(np.arange(1000) % 7, 0.001, 0)):
        assert (repeats.each(1000) == 1).all()


def test_over_all_phases_a_class_is_seen_as_often_as_its_factor_says() -> None:
    repeats = repeated(np.repeat(np.arange(4), [20, 3, 2, 1]), 0.3, 0)
    found = np.array([np.bincount(groups_of_slots(repeats, epoch), minlength=4) for epoch in range(1024)])
    assert found.mean(0) == pytest.approx(np.diff(repeats.bounds) / UNIT, abs=0.003)


def test_records_stored_by_class_need_no_list_of_members() -> None:
    assert repeated(np.repeat(np.arange(4), 5), 0.5, 0).members is None
    mixed = balanced(np.arange(20) % 4, 1.0, 0)
    assert mixed.members is not None
    assert mixed.members.dtype == np.int32


@settings(max_examples=40)
@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=80), shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_the_easiest_come_first_and_as_many_as_the_share_says(values: list[int], shares: list[float]) -> None:
    n = len(values)
    ids = np.random.default_rng(0).permutation(n).astype(np.uint64)
    easiest = easiest_first(np.array(values, float), ids, shares, n, 0)
    assert easiest.members.tolist() == sorted(range(n), key=lambda i: (values[i], ids[i]))
    assert easiest.counts.tolist() == [min(n, max(1, math.ceil(share * n - 1e-9 * n))) for share in shares]


def test_a_share_counts_as_written() -> None:
    assert easiest_first(np.zeros(30), np.arange(30, dtype=np.uint64), (0.1, 0.7), 30, 0).counts.tolist() == [3, 21]
