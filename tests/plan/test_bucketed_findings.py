"""What is found in the plan of one bucket says which; what is found in all of them is said once, of none."""

from __future__ import annotations

import pytest
from planning import checked

SIZES = [[128, 256], [256, 128], [192, 192]]


@pytest.mark.parametrize(
    ("height", "buckets"),
    [
        (100, None),
        (150, " (in the bucket of 128×256)"),
        (200, " (in the buckets of 128×256 and 192×192)"),
        (300, ""),
    ],
)
def test_a_finding_names_the_buckets_that_have_it_unless_all_do(height: int, buckets: str | None) -> None:
    steps = [{"resize": {"size": "bucket"}}, {"center_crop": {"size": [height, 100]}}]
    found = checked(transforms=steps, batch={"size": 8, "buckets": {"sizes": SIZES}}).diagnostics
    said = f"`center_crop` cuts {height}×100 pixels out of an image of 128×256"
    assert [finding.message for finding in found] == ([] if buckets is None else [said + buckets])
