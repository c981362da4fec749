"""The counts of a mix: whole numbers by largest remainder, which add up over the epochs without drift."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mix_walk import Walk, interleave

from pipegen.data.rounding import LONGEST, epoch_examples, mixture
from pipegen.errors import OpError

LEVELS = [0.0, 0.01, 0.1, 0.2, 0.25, 0.3333, 0.5, 1.0, 2.0, 7.0]
SCHEDULES = st.lists(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=6), min_size=1, max_size=5).filter(
    lambda parts: all(any(own[min(e, len(own) - 1)] for own in parts) for e in range(6))
)
CONSTANTS = st.lists(st.sampled_from(LEVELS[2:]), min_size=1, max_size=6)


@given(SCHEDULES, st.integers(1, 200), st.integers(0, 40))
@example([[0.0, 1.0], [1.0]], 10, 1)  # a part that joins later
@example([[0.05], [0.35], [0.6]], 1, 12)  # the largest remainder of all epochs would take the first one's example away again
def test_counts_are_exact_in_every_epoch_and_do_not_drift(weights: list[list[float]], examples: int, epochs: int) -> None:
    made = mixture(examples, weights)
    owed = [Fraction(0)] * len(weights)
    for epoch in range(epochs + 1):
        now = [Fraction(repr(own[min(epoch, len(own) - 1)])) for own in weights]
        counts = made.counts(epoch)
        assert sum(counts) == examples
        assert min(counts) >= 0
        assert not any(count for count, weight in zip(counts, now, strict=True) if not weight)
        owed = [o + examples * weight / sum(now) for o, weight in zip(owed, now, strict=True)]
    assert max(abs(o - had) for o, had in zip(owed, made.before(epochs + 1), strict=True)) < len(weights) + 1


@given(CONSTANTS.filter(lambda weights: 60 * min(weights) >= sum(weights)), st.integers(60, 500), st.integers(0, 10**6))
def test_weights_that_stay_are_met_to_one_example_after_any_number_of_epochs(weights: list[float], examples: int, epoch: int) -> None:
    made = mixture(examples, [[weight] for weight in weights])
    whole = sum(Fraction(repr(weight)) for weight in weights)
    for weight, had in zip(weights, made.before(epoch), strict=True):
        assert abs(Fraction(repr(weight)) / whole * examples * epoch - had) < 1


@given(CONSTANTS.filter(lambda weights: 60 * min(weights) >= sum(weights)), st.integers(60, 300), st.integers(1, 50))
def test_counts_are_those_of_largest_remainders(weights: list[float], examples: int, epoch: int) -> None:
    """Against the definition: quotas, their floors, and one more for those with the largest remainders."""
    made = mixture(examples, [[weight] for weight in weights])
    whole = sum(Fraction(repr(weight)) for weight in weights)
    quotas = [Fraction(repr(weight)) / whole * examples * epoch for weight in weights]
    up = [int(had - quota // 1) for had, quota in zip(made.before(epoch), quotas, strict=True)]
    assert set(up) <= {0, 1}
    rests = [quota % 1 for quota in quotas]
    assert min((r for r, u in zip(rests, up, strict=True) if u), default=1) >= max(
        (r for r, u in zip(rests, up, strict=True) if not u), default=0
    )


@given(CONSTANTS, st.integers(1, 20), st.integers(0, 5000))
def test_shares_of_less_than_one_example_an_epoch_are_met_all_the_same(weights: list[float], examples: int, epoch: int) -> None:
    made = mixture(examples, [[weight] for weight in weights])
    whole = sum(Fraction(repr(weight)) for weight in weights)
    for weight, had in zip(weights, made.before(epoch), strict=True):
        assert abs(Fraction(repr(weight)) / whole * examples * epoch - had) < (2 if epoch <= 1024 else len(weights) + 2)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any))
def test_the_walk_gives_every_part_its_count_evenly(counts: list[int]) -> None:
    total = sum(counts)
    walked = [interleave(t, counts) for t in range(total)]
    assert Counter(part for part, _ in walked) == {i: c for i, c in enumerate(counts) if c}
    for part, count in enumerate(counts):
        places = [t for t, (own, _) in enumerate(walked) if own == part]
        assert [rank for own, rank in walked if own == part] == list(range(count))
        assert all(abs((i + 1) * total / count - (t + 1)) <= (len(counts)) * total / count for i, t in enumerate(places))


@pytest.mark.parametrize(("epoch", "examples"), [(100, 100), ("photos", 63), ("drawings", 50), ("shortest", 50), ("longest", 63)])
def test_the_length_of_an_epoch(epoch: int | str, examples: int) -> None:
    assert epoch_examples(epoch, {"photos": 50, "drawings": 10}, {"photos": 0.8, "drawings": 0.2}) == examples


def test_shortest_and_longest_round_so_that_no_part_is_left_out_or_repeated() -> None:
    sizes, weights = {"a": 7, "b": 5}, {"a": 2.0, "b": 1.0}
    assert epoch_examples("shortest", sizes, weights) == 10  # floor(10.5)
    assert epoch_examples("a", sizes, weights) == 11  # 10.5 rounded
    assert epoch_examples("longest", sizes, weights) == 15


@pytest.mark.parametrize(("epoch", "sizes"), [("a", {"a": 10**9, "b": 1}), ("shortest", {"a": 0, "b": 3})])
def test_an_epoch_of_nothing_or_of_too_much_is_an_error(epoch: str, sizes: dict[str, int]) -> None:
    with pytest.raises(OpError) as caught:
        epoch_examples(epoch, sizes, {"a": 1e-3, "b": 1.0})
    assert caught.value.code == "PG464"
    assert LONGEST < 10**12


def test_a_part_of_less_than_one_example_an_epoch_waits_for_it() -> None:
    made = mixture(10, [[0.01], [0.99]])
    assert made.counts(0) == (0, 10)
    assert made.before(10) == (1, 99)


def test_a_part_that_fades_out_gets_no_more_and_what_it_is_owed_goes_to_the_others() -> None:
    made = mixture(7, [[1.0, 1.0, 0.0], [1.0], [0.0, 1.0, 1.0]])
    assert made.counts(0)[2] == 0
    later = [made.counts(epoch) for epoch in range(2, 40)]
    assert all(counts[0] == 0 and sum(counts) == 7 for counts in later)
    assert abs(sum(c[1] for c in later) - sum(c[2] for c in later)) <= 3


@given(
    st.lists(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.3333, 0.5, 1.0, 2.0]), min_size=1, max_size=6), min_size=2, max_size=4),
    st.integers(100, 400),
)
def test_a_schedule_is_normalised_in_each_epoch_and_what_rounding_leaves_is_carried_over(weights: list[list[float]], examples: int) -> None:
    """Against the walk in plain fractions. Shares have a denominator of 2³¹ at most, so nearly equal remainders may go either way."""
    made, walk = mixture(examples, weights), Walk(examples, weights)
    for epoch in range(1, 9):
        rests = sorted(owed % 1 for owed in walk.owed(epoch - 1))
        if all(b - a > Fraction(1, 10**6) for a, b in pairwise([Fraction(0), *rests, Fraction(1)])):
            assert made.before(epoch) == tuple(walk.before(epoch))
