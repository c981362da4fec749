"""The benchmark of many records: its phases, and what it says of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import scale

pytestmark = pytest.mark.skipif(not scale.STATUS.exists(), reason="memory is read from /proc, which Linux has")


def test_made_up_records_are_listed_by_class() -> None:
    listing = scale.listing_of(2500)
    assert len(listing.keys) == len(listing.labels) == 2500
    assert listing.keys[2499] == "class_999/img_00002499.jpg"
    assert listing.keys.order() is None
    assert listing.labels.tolist() == sorted(listing.labels.tolist())


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
