"""The benchmark of many records: its phases, and what it says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import record_scale, scale

pytestmark = pytest.mark.skipif(not scale.STATUS.exists(), reason="memory is read from /proc, which Linux has")


def test_made_up_records_are_listed_by_class() -> None:
    listing = scale.listing_of(2500)
    assert len(listing.keys) == len(listing.labels) == 2500
    assert listing.keys[2499] == "class_999/img_00002499.jpg"
    assert listing.keys.order() is None
    assert listing.labels.tolist() == sorted(listing.labels.tolist())


@pytest.mark.tf
@pytest.mark.nightly  # no spec runs through it, and it is run by night
def test_every_phase_is_measured() -> None:
    found = scale.measure("grouped", 3000)
    assert list(found["phases"]) == ["list", "split", "build", "fingerprint", "first batch"]
    assert sum(found["examples"].values()) == 3000
    assert found["seconds"] == pytest.approx(sum(phase["seconds"] for phase in found["phases"].values()))
    said = scale.show(found | {"peak": scale.TARGET_BYTES})  # the process of the tests holds more than the benchmark's
    assert said.startswith("grouped, 3,000 records: ")
    assert "within 60 s and 2 GiB" in said
    assert "beyond 60 s" in scale.show(found | {"seconds": 61})
    assert "beyond 60 s" in scale.show(found | {"peak": scale.TARGET_BYTES + 1})


@pytest.mark.tf
@pytest.mark.nightly
def test_records_in_files_are_indexed_and_begun() -> None:
    found = record_scale.measure("tfrecord", 400, shards=8, size=100)
    assert (found["records"], found["shards"]) == (400, 8)
    assert found["kept"] > 12, "the offset and the length of each"
    said = record_scale.show(found | {"held": 30.0, "index_us": 3.0})
    assert "tfrecord, 400 records in 8 shards: index" in said
    assert "within 5 µs and 40 bytes" in said
    assert "beyond 5 µs" in record_scale.show(found | {"held": 30.0, "index_us": 6.0})
