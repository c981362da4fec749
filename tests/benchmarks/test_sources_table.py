"""The table of sources has a row for each, beside files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from record_files import jpeg

from benchmarks.sources import SOURCES, photographs, table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tf, pytest.mark.nightly]


def test_every_source_reads_what_the_files_hold(tmp_path: Path) -> None:
    for i in range(40):
        path = tmp_path / "photos" / f"class_{i % 2}" / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg("64x48"))
    (tmp_path / "out").mkdir()
    lines = list(table(photographs(tmp_path / "photos", 36), tmp_path / "out", 1, [*SOURCES]))
    assert lines[0].startswith("36 JPEG files of 1 kB on average")
    assert [line.split("|")[1].strip() for line in lines[4:]] == [*SOURCES]
    assert lines[4].split("|")[3].strip() == "1.00"
