"""The table of `benchmarks.service` says what the turns took."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from pipes import write_photos

import pytest
from rich.console import Console

from benchmarks import service
from benchmarks.service import Turn


def test_a_way_is_shown_beside_the_first() -> None:
    turns = {"alone": [Turn(100, 1.0, 0.2, 0.0)] * 3, "by 1 worker": [Turn(100, 2.0, 0.1, 0.3, 588.0)] * 3}
    console = Console(width=120, file=StringIO())
    with console.capture() as printed:
        console.print(service.table(turns))
    text = printed.get()
    assert [cell.strip() for cell in text.splitlines()[-3].split("│")[1:-1]] == ["alone", "100", "1.00", "2.000", "1.00", "2.000", ""]
    assert [cell.strip() for cell in text.splitlines()[-2].split("│")[1:-1]] == [
        "by 1 worker",
        "50",
        "0.50",
        "4.000",
        "2.00",
        "1.000",
        "588",
    ]


@pytest.mark.tf
@pytest.mark.nightly
def test_the_service_is_measured_beside_none(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # or the words of a cell are on several lines
    write_photos(tmp_path / "photos")
    assert service.main([str(tmp_path / "photos"), "--repeats", "1", "--steps", "3", "--size", "24"]) == 0
    assert "by 1 worker" in capsys.readouterr().out
