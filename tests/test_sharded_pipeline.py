"""Pipelines on files of many records, from the spec to the batch, with a source that is made up as it is read."""

from __future__ import annotations

import time
from itertools import islice
from pipes import at
from typing import TYPE_CHECKING, Any

import pytest

import pipegen
from benchmarks.made_up import CLASSES, registered
from pipegen.errors import DataError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.tf

FOLDERS = {"parts": {"train": "train", "validation": "validation"}, "method": "folder"}


@pytest.fixture(autouse=True, scope="module")
def made_up() -> Iterator[None]:
    """The source is there."""
    with registered():
        yield


def build(source: dict[str, Any], **own: Any) -> pipegen.Pipeline:
    spec: dict[str, Any] = {"pipegen": 1, "source": {"made_up": source}, "splits": FOLDERS, "batch": {"size": 8, "remainder": "keep"}}
    steps = [{"resize": {"size": 2}}] if source.get("encoded") else []
    return pipegen.build(spec | {"transforms": [*steps, {"random_brightness": {"factor": 0.5}}], "output": {"dtype": "uint8"}} | own)


def records(batches: Any) -> list[tuple[int, ...]]:
    """The shard and the row of each example, from its picture, and its class."""
    found = []
    for x, y in batches:
        found += [(*pixel, label) for pixel, label in zip(x.numpy()[:, 0, 0].tolist(), y.numpy().tolist(), strict=True)]
    return found


PLAIN = {"transforms": [], "output": {"dtype": "uint8"}}


@pytest.mark.parametrize(
    ("source", "own"),
    [
        pytest.param({}, {"splits": {"parts": {"train": 0.8, "validation": 0.2}, "method": "hash"}}, marks=pytest.mark.nightly),
        pytest.param({"encoded": True, "by_block": True}, {"transforms": [{"resize": {"size": 2}}]}, marks=pytest.mark.nightly),
        ({"by_block": True}, {}),
    ],
    ids=["by hash", "encoded, by block", "by block"],
)
def test_every_record_is_read_once_and_shares_and_resumes_are_the_same(source: dict[str, Any], own: dict[str, Any]) -> None:
    pipe = build({"files": 12, "each": 21} | source, **(PLAIN | own))
    whole = records(at(pipe))
    assert len(whole) == len(set(whole)) == pipe.num_examples("train")
    others = records(pipe["validation"])
    assert len(set(whole) | set(others)) == 252, "and with the other split every record there is"
    for shard, high, row, label in whole + others:
        assert high == 0
        assert 0 <= row < 21 + shard % 3 - 1
        assert label == (shard * 7 + row) % CLASSES
    assert records(at(pipe, epoch=1)) != whole
    assert records(at(pipe, step=7)) == whole[7 * 8 :]
    halves = [records(islice(pipe.dataset("train", step=5, shard=(i, 2)), 2)) for i in range(2)]
    assert [halves[0][:4], halves[1][:4], halves[0][4:], halves[1][4:]] == [whole[at : at + 4] for at in range(40, 56, 4)]


@pytest.mark.parametrize(
    ("by_block", "shuffle", "said"),
    [
        (False, "global", "global shuffle"),
        (True, "global", "shuffle of whole files, then in windows of 1 GiB"),
        (False, {"window": "1MiB"}, "shuffle of whole files, then in windows of 1 MiB"),
        (True, "none", "stored order"),
    ],
)
def test_explain_says_which_order_it_is(by_block: bool, shuffle: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    pipe = build({"files": 12, "each": 21, "by_block": by_block}, shuffle=shuffle)
    assert not any("PG505" in r.getMessage() for r in caplog.records), "files of many records need not be in the order of classes"
    for physical in (False, True):
        assert said in str(pipe.explain("train", physical=physical))


def test_a_global_order_of_what_is_read_by_block_has_windows_of_a_gibibyte() -> None:
    source = {"files": 12, "each": 21}
    by_block, windows = build(source | {"by_block": True}, **PLAIN), build(source, **PLAIN, shuffle={"window": "1GiB"})
    found = records(at(by_block, epoch=2))
    assert found == records(at(windows, epoch=2))
    assert found != records(build(source, **PLAIN).dataset("train", epoch=2))


@pytest.mark.nightly
def test_draws_are_those_of_the_record() -> None:
    """Another batch size, order and split put the record elsewhere, and its numbers stay."""
    one, other = (build({"files": 5, "each": 20}, **own) for own in ({}, {"batch": {"size": 3, "remainder": "keep"}, "shuffle": "none"}))
    first, second = ({tuple(p) for x, _ in pipe.dataset("train") for p in x.numpy()[:, 0, 0].tolist()} for pipe in (one, other))
    assert first == second


def test_a_damaged_record_is_named_by_its_file_and_row() -> None:
    own = PLAIN | {"transforms": [{"resize": {"size": 2}}], "shuffle": "none"}
    pipe = build({"files": 5, "each": 5, "encoded": True, "damaged": 1}, **own)
    with pytest.raises(DataError, match=r"cannot decode /made/up/train/00001\.rec#0 \("):
        records(at(pipe))
    with pytest.raises(DataError, match=r"cannot decode /made/up/train/00001\.rec#0 \("):
        list(pipe.dataset("train").map(lambda x, _: x))
    skipping = build({"files": 5, "each": 5, "encoded": True, "damaged": 1}, **own, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    assert [(shard, row) for shard, _, row, _ in records(at(skipping))].count((1, 1)) == 2, "the next one took its place"


def test_files_can_be_left_out_and_others_keep_their_records(tmp_path: Path) -> None:
    (tmp_path / "exclude.txt").write_text("train/00001.rec\n")
    source = {"files": 5, "each": 6}
    own: dict[str, Any] = PLAIN | {"shuffle": "none"}
    fewer, whole = build(source, **own, errors={"exclude": str(tmp_path / "exclude.txt")}), build(source, **own)
    assert records(at(fewer)) == [record for record in records(at(whole)) if record[0] != 1]
    assert fewer.labels("train").tolist() == [label for *_, label in records(at(fewer))]
    assert fewer.files("train")[5:7] == ["/made/up/train/00002.rec#0", "/made/up/train/00002.rec#1"]


@pytest.mark.nightly
def test_a_cache_on_disk_holds_records_of_shards(tmp_path: Path) -> None:
    section = {"splits": {"parts": {"train": 0.5, "validation": 0.5}, "method": "hash"}, "runtime": {"cache": {"disk": str(tmp_path)}}}
    own: dict[str, Any] = PLAIN | section | {"transforms": [{"resize": {"size": 2}}]}
    pipe = build({"files": 5, "each": 5, "encoded": True}, **own)
    first = records(at(pipe))
    assert records(at(pipe)) == first
    again = build({"files": 5, "each": 5, "encoded": True}, **own)
    assert records(at(again)) == first
    assert len(first + records(again["validation"])) == 25 - 1


def test_a_billion_records_are_built_on_in_no_time() -> None:
    start = time.process_time()
    pipe = build({"files": 10_000, "each": 100_000})
    assert pipe.num_examples("train") + pipe.num_examples("validation") == 10**9 - 1
    first = records(islice(at(pipe, epoch=3, step=10**7), 2))
    assert first == records(islice(at(pipe, epoch=3, step=10**7), 2))
    assert len(set(first)) == 16
    assert pipe.files("train")[10**8].endswith(".rec#0") is False
    assert time.process_time() - start < 30


def test_more_records_than_can_be_ranked_are_told_and_the_advice_works() -> None:
    section = {"parts": {"train": 0.8, "validation": 0.2}}
    with pytest.raises(SpecError, match="`method: random` puts all records in one order, and there are 12,000,000 of them") as error:
        build({"files": 12, "each": 10**6}, splits=section)
    (found,) = error.value.diagnostics
    assert found.code == "PG302"
    assert found.help[0].lines == "splits: {method: hash}"
    assert build({"files": 12, "each": 10**6}, splits=section | {"method": "hash"}).num_examples("train") > 9_000_000


@pytest.mark.nightly
def test_tests_of_data_take_records_of_shards() -> None:
    tests = [
        {"classes": {"split": "train", "min": 1}},
        {"range": {"feature": "image", "within": [0, 255], "sample": 40, "split": "train"}},
        {"range": {"feature": "image", "within": [0, 255], "sample": "all", "split": "train"}},
        {"unique": {"path": ".*"}},
        {"no_leak": "exact"},
    ]
    spec = {"pipegen": 1, "source": {"made_up": {"files": 12, "each": 21}}, "splits": FOLDERS, "batch": {"size": 8}, **PLAIN}
    report = pipegen.test({**spec, "tests": tests})
    assert [r.status for r in report.results] == ["passed"] * 4 + ["failed"]
    assert "in 40 examples" in report.results[1].seen
    assert f"in {pipegen.build(spec).num_examples('train')} examples" in report.results[2].seen
    assert report.diagnostics[0].code == "PG702", "what could not be compared has not passed"
