"""Which record is in which split: the promises of every method, for any data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipegen.data.splits import assign
from pipegen.errors import OpError
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.listing.base import Listing, Location

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Members = dict[str, tuple[int, ...]]


def _found(*keys: str) -> Location:
    return Location.below("/d", keys, (1,) * len(keys))


def listing_of(counts: Sequence[int], *, group_size: int = 1) -> Listing:
    """Classes `c0`, `c1`, … of these sizes; files are `cN/gM_K.jpg`, where M is a group of `group_size` files."""
    keys, labels = [], []
    for label, n in enumerate(counts):
        names = sorted(f"c{label}/g{label}x{i // group_size}_{i}.jpg" for i in range(n))
        keys += names
        labels += [label] * n
    return Listing.labelled(
        "/data", Location.below("/data", keys, (1,) * len(keys)), tuple(labels), tuple(f"c{i}" for i in range(len(counts)))
    )


def split(listing: Listing, **section: Any) -> Members:
    splits = Splits(**section)
    names = list(splits.parts)
    if splits.folds is not None:
        names = ["train", "validation", *names]
    return plain(assign(splits, listing, names or ["train"]))


def plain(members: Mapping[str, Any]) -> Members:
    return {name: tuple(records.tolist()) for name, records in members.items()}


def keys(listing: Listing, members: Members, name: str) -> set[str]:
    return {listing.keys[i] for i in members[name]}


@st.composite
def parts(draw: Callable[..., Any]) -> dict[str, float]:
    """Fractions of two to four parts that sum to 1 exactly as they are written."""
    cuts = sorted(draw(st.sets(st.integers(1, 99), min_size=1, max_size=3)))
    shares = [b - a for a, b in zip([0, *cuts], [*cuts, 100], strict=True)]
    names = draw(st.permutations(["train", "validation", "test", "extra"]))
    return {name: share / 100 for name, share in zip(names, shares, strict=False)}


counts = st.lists(st.integers(0, 25), min_size=1, max_size=6)
methods = st.sampled_from(
    [
        {},
        {"stratify": "label"},
        {"group": {"path": r"g\w+?_"}},
        {"group": {"path": r"g\w+?_"}, "stratify": "label"},
        {"method": "hash"},
        {"method": "hash", "group": {"path": r"g\w+?_"}},
    ]
)


@settings(max_examples=150)
@given(counts, parts(), methods, st.integers(0, 3), st.integers(1, 4))
def test_splits_are_disjoint_complete_and_in_source_order(
    n: list[int], p: dict[str, float], method: dict[str, Any], seed: int, size: int
) -> None:
    listing = listing_of(n, group_size=size)
    members = split(listing, parts=p, seed=seed, **method)
    assert list(members) == list(p)
    assert sorted(i for records in members.values() for i in records) == list(range(sum(n)))
    assert all(list(records) == sorted(records) for records in members.values())


@given(counts, parts(), st.booleans(), st.integers(0, 3))
def test_random_sizes_are_exact(n: list[int], p: dict[str, float], stratify: bool, seed: int) -> None:
    members = split(listing_of(n), parts=p, seed=seed, stratify="label" if stratify else None)
    for name, fraction in p.items():
        assert abs(len(members[name]) - Fraction(repr(fraction)) * sum(n)) < 1


@settings(max_examples=150)
@given(counts, parts(), st.integers(0, 3))
def test_stratified_parts_have_their_share_of_each_class_to_one_example(n: list[int], p: dict[str, float], seed: int) -> None:
    listing = listing_of(n)
    members = split(listing, parts=p, seed=seed, stratify="label")
    assert listing.labels is not None
    for records in members.values():
        have = Counter(listing.labels[i] for i in records)
        for label, size in enumerate(n):
            assert abs(have[label] - size * len(records) / max(sum(n), 1)) < 1


@given(counts, parts(), methods, st.integers(2, 5))
def test_groups_stay_whole(n: list[int], p: dict[str, float], method: dict[str, Any], size: int) -> None:
    listing = listing_of(n, group_size=size)
    if "group" not in method:
        method = {"group": {"path": r"/(g\w+?)_"}}
    members = split(listing, parts=p, **method)
    home: dict[str, str] = {}
    for name, records in members.items():
        for i in records:
            assert home.setdefault(listing.keys[i].split("_")[0], name) == name


@given(st.lists(st.integers(1, 25), min_size=8, max_size=8), st.integers(0, 3))
def test_group_sizes_are_as_near_as_the_smallest_group(n: list[int], seed: int) -> None:
    members = split(listing_of(n, group_size=2), parts={"train": 0.7, "validation": 0.3}, group={"path": r"g\w+?_"}, seed=seed)
    assert abs(len(members["validation"]) - 0.3 * sum(n)) <= 2


@given(parts(), st.integers(0, 5), st.booleans())
def test_membership_by_hash_never_moves_when_data_grows(p: dict[str, float], seed: int, grouped: bool) -> None:
    method = {"method": "hash", "seed": seed, "group": {"path": r"g\w+?_"} if grouped else None}
    small, large = listing_of([10, 20], group_size=3), listing_of([15, 20, 30], group_size=3)
    before, after = split(small, parts=p, **method), split(large, parts=p, **method)
    for name in p:
        assert keys(small, before, name) <= keys(large, after, name)


def test_a_larger_hash_share_takes_only_from_train() -> None:
    listing = listing_of([500])
    small = split(listing, parts={"train": 0.9, "validation": 0.1}, method="hash")
    large = split(listing, parts={"train": 0.8, "validation": 0.2}, method="hash")
    assert keys(listing, small, "validation") < keys(listing, large, "validation")
    assert 60 < len(large["validation"]) < 140


@given(parts(), methods)
def test_the_order_in_which_parts_are_written_moves_nothing(p: dict[str, float], method: dict[str, Any]) -> None:
    listing = listing_of([11, 7, 30], group_size=2)
    reverse = dict(reversed(list(p.items())))
    assert split(listing, parts=p, **method) == {name: split(listing, parts=reverse, **method)[name] for name in p}


def test_the_split_seed_decides_and_is_stable() -> None:
    listing = listing_of([20, 20])
    section: dict[str, Any] = {"parts": {"train": 0.8, "validation": 0.2}}
    first = split(listing, **section)
    assert first == split(listing, **section, seed=0)
    assert len({split(listing, **section, seed=seed)["validation"] for seed in range(8)}) == 8
    # Frozen: another result would move everybody's validation set.
    assert sorted(keys(listing, first, "validation")) == FROZEN


FROZEN = [
    "c0/g0x14_14.jpg",
    "c0/g0x15_15.jpg",
    "c0/g0x1_1.jpg",
    "c0/g0x3_3.jpg",
    "c0/g0x4_4.jpg",
    "c0/g0x6_6.jpg",
    "c1/g1x11_11.jpg",
    "c1/g1x7_7.jpg",
]


def test_removing_one_record_moves_few() -> None:
    listing = listing_of([300])
    fewer = Listing.labelled("/data", Location.below("/data", listing.keys[1:], (1,) * 299), (0,) * 299, ("c0",))
    section: dict[str, Any] = {"parts": {"train": 0.8, "validation": 0.1, "test": 0.1}}
    before, after = split(listing, **section), split(fewer, **section)
    assert len(keys(listing, before, "validation") ^ keys(fewer, after, "validation")) <= 3


def test_counts_are_exact_and_the_rest_is_unused() -> None:
    members = split(listing_of([50, 50]), parts={"train": 30, "validation": 7})
    assert {name: len(records) for name, records in members.items()} == {"train": 30, "validation": 7}
    with pytest.raises(OpError, match="ask for 101 examples and there are 100") as caught:
        split(listing_of([50, 50]), parts={"train": 100, "validation": 1})
    assert caught.value.code == "PG409"


@pytest.mark.parametrize("method", [{}, {"stratify": "label"}, {"method": "hash"}, {"group": {"path": r"g\w+?_"}}])
def test_what_fractions_leave_over_is_unused(method: dict[str, Any]) -> None:
    members = split(listing_of([500, 500]), parts={"train": 0.5, "validation": 0.1}, **method)
    assert abs(len(members["train"]) - 500) < (60 if "method" in method else 2)
    assert abs(len(members["validation"]) - 100) < (40 if "method" in method else 2)


def test_thirds_that_do_not_quite_sum_to_one_use_everything() -> None:
    members = split(listing_of([1000]), parts={"a": 0.3333333, "b": 0.3333333, "c": 0.3333333})
    assert sum(map(len, members.values())) == 1000


def test_without_parts_all_is_one_split() -> None:
    assert split(listing_of([3])) == {"train": (0, 1, 2)}


@settings(max_examples=60)
@given(counts, st.integers(2, 6), methods.filter(lambda m: "method" not in m))
def test_folds_share_out_everything_and_leave_the_test_set_alone(n: list[int], count: int, method: dict[str, Any]) -> None:
    listing = listing_of(n, group_size=2)
    runs = [split(listing, parts={"test": 0.2}, folds={"count": count, "fold": fold}, **method) for fold in range(count)]
    assert len({run["test"] for run in runs}) == 1
    pool = set(range(sum(n))) - set(runs[0]["test"])
    assert sorted(i for run in runs for i in run["validation"]) == sorted(pool)
    assert all(set(run["train"]) == pool - set(run["validation"]) for run in runs)
    if "group" not in method:
        sizes = [len(run["validation"]) for run in runs]
        assert max(sizes) - min(sizes) <= 1


def test_stratified_folds_have_their_share_of_each_class() -> None:
    listing = listing_of([7, 22, 9])
    assert listing.labels is not None
    for fold in range(5):
        have = Counter(listing.labels[i] for i in split(listing, folds={"count": 5, "fold": fold}, stratify="label")["validation"])
        assert all(abs(have[label] - n / 5) < 1 for label, n in enumerate([7, 22, 9]))


def test_grouped_and_stratified_parts_come_near_both() -> None:
    listing = listing_of([200, 100, 40], group_size=5)
    assert listing.labels is not None
    members = split(listing, parts={"train": 0.8, "validation": 0.2}, stratify="label", group={"path": r"g\w+?_"})
    have = Counter(listing.labels[i] for i in members["validation"])
    assert [abs(have[label] - n * 0.2) <= 5 for label, n in enumerate([200, 100, 40])] == [True] * 3


def test_keras_takes_the_first_files_of_each_class() -> None:
    listing = Listing.labelled("/d", _found("a/1.jpg", "a/2.jpg", "a/s/0.jpg", "b/1.jpg", "b/z.jpg"), (0, 0, 0, 1, 1), ("a", "b"))
    members = split(listing, parts={"train": 0.5, "validation": 0.5}, method="keras")
    assert members == {"train": (1, 2, 4), "validation": (0, 3)}


def test_a_record_without_a_group_is_an_error() -> None:
    with pytest.raises(OpError, match="matches 2 of 4 paths") as caught:
        split(listing_of([2, 2]), parts={"train": 0.5, "validation": 0.5}, group={"path": "^c0"})
    assert (caught.value.code, caught.value.field) == ("PG105", "group.path")


def test_a_group_without_a_match_in_its_bracket_is_the_whole_match() -> None:
    listing = Listing.labelled("/d", _found("a1.jpg", "a2.jpg", "b1.jpg"), None, ())
    members = split(listing, parts={"train": 0.6, "validation": 0.4}, group={"path": "(x)?^."})
    assert {len(records) for records in members.values()} == {1, 2}


def test_splits_given_by_the_data_are_taken_and_checked_for_leaks() -> None:
    listing = Listing.labelled("/d", _found("t/p1_a.jpg", "t/p2_a.jpg", "v/p2_b.jpg"), None, (), parts=("train", "train", "validation"))
    assert plain(assign(Splits(), listing, ["train", "validation"])) == {"train": (0, 1), "validation": (2,)}
    with pytest.raises(OpError, match="group 'p2' is in `train` and in `validation`") as caught:
        assign(Splits(group={"path": r"(p\d)_"}), listing, ["train", "validation"])  # type: ignore[arg-type]
    assert caught.value.code == "PG302"
