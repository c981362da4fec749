"""`pipegen validate --data`: files are decoded as the pipeline would, and the damaged ones named."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli, write_images

pytestmark = pytest.mark.tf


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def test_data_does_not_swallow_the_file(cli: Cli, good: Path, photos: Path) -> None:
    result = cli("validate", "--data", "good.pipegen.yaml")
    assert result.exit_code == 0, result.output
    assert "16 of 16 files decoded" in result.stdout


def test_missing_data_is_an_error_and_only_with_data(cli: Cli, good: Path) -> None:
    assert cli("validate").exit_code == 0
    result = cli("validate", "--data")
    assert result.exit_code == 1
    assert "PG401" in result.stdout


def test_damaged_files_are_named_with_the_reason(cli: Cli, good: Path, photos: Path) -> None:
    truncate(photos / "rose" / "03.jpg")
    (photos / "tulip" / "05.jpg").write_bytes(b"")
    (photos / "tulip" / "06.jpg").write_text("no image at all")
    result = cli("validate", "--data=all")
    assert result.exit_code == 1
    assert result.stdout.count("error[PG406]") == 3
    for name in ("rose/03.jpg", "tulip/05.jpg", "tulip/06.jpg"):
        assert f"{photos}/{name}" in result.stdout
    assert "is empty" in result.stdout
    assert "good.pipegen.yaml:2:" in result.stdout
    assert "would take the next good record" not in result.stdout, "nothing is being trained"


def test_a_window_does_not_hide_damage(cli: Cli, tmp_path: Path) -> None:
    from PIL import Image

    folder = tmp_path / "photos" / "rose"
    write_images(tmp_path / "photos" / "tulip", 8)
    folder.mkdir()
    for i in range(8):
        Image.effect_noise((640, 640), 90).convert("RGB").save(folder / f"{i}.jpg", quality=90)
    whole = (folder / "0.jpg").read_bytes()
    (folder / "0.jpg").write_bytes(whole[: int(0.97 * len(whole))])
    spec = GOOD.replace("resize: {size: 16}", "random_crop: {size: 16}").replace("0.5, validation: 0.5", "0.9, validation: 0.1")
    (tmp_path / "crop.pipegen.yaml").write_text(spec)
    result = cli("validate", "--data=all")
    assert "rose/0.jpg" in result.stdout


def test_the_exclude_list_serves_the_spec(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    truncate(photos / "rose" / "03.jpg")
    (photos / "tulip" / "05.jpg").write_bytes(b"")
    result = cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert result.exit_code == 1
    assert "errors: {exclude: damaged.txt}" in result.stderr
    listed = [line for line in (tmp_path / "damaged.txt").read_text().splitlines() if not line.startswith("#")]
    assert listed == ["rose/03.jpg", "tulip/05.jpg"]
    good.write_text(GOOD + "errors: {exclude: damaged.txt}\n")
    again = cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert again.exit_code == 0, again.output
    assert "14 of 14 files decoded" in again.stdout
    assert [line for line in (tmp_path / "damaged.txt").read_text().splitlines() if not line.startswith("#")] == listed, (
        "nothing is forgotten"
    )


def test_a_list_that_the_spec_names_already_may_be_yet_to_be_written(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    good.write_text(GOOD + "errors: {exclude: damaged.txt}\n")
    truncate(photos / "rose" / "03.jpg")
    assert "PG413" in cli("validate", "--data=all").stdout
    cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert "rose/03.jpg" in (tmp_path / "damaged.txt").read_text()
    assert cli("validate", "--data=all").exit_code == 0


def test_a_strange_file_is_not_written_over(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    result = cli("validate", "--data", "--write-exclude", "notes.txt")
    assert result.exit_code == 2
    assert (tmp_path / "notes.txt").read_text() == "remember the milk\n"


def test_many_damaged_files_end_in_a_summary(cli: Cli, good: Path, tmp_path: Path) -> None:
    for name in ("rose", "tulip"):
        for path in write_images(tmp_path / "photos" / name, 16).iterdir():
            path.write_text("no image")
    result = cli("validate", "--data")
    assert result.stdout.count("error[PG406]") == 21
    assert "12 more files cannot be read" in result.stdout


def test_a_sample_is_spread_over_each_split(cli: Cli, good: Path, photos: Path) -> None:
    assert "6 of 16 files decoded" in cli("validate", "--data=3").stdout


def test_spread() -> None:
    from pipegen.backend.probe import spread

    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(3, 200) == [0, 1, 2]
    assert spread(4, None) == [0, 1, 2, 3]
    assert spread(0, 200) == []


def test_an_ignore_comment_about_data_is_not_idle_when_data_is_read(cli: Cli, photos: Path, tmp_path: Path) -> None:
    write_images(photos / "lily", 1)
    commented = GOOD.replace(
        "splits: {parts: {train: 0.5, validation: 0.5}, stratify: label}", "splits:\n  parts:\n    train: 0.5\n    validation: 0.5"
    )
    (tmp_path / "a.pipegen.yaml").write_text(commented)
    found = cli("validate", "--data")
    assert "PG405" in found.stdout, "one file of a class cannot be in both splits"
    line = next(part for part in found.stdout.split() if part.startswith("a.pipegen.yaml:"))
    lines = commented.splitlines()
    lines[int(line.split(":")[1]) - 1] += "  # pipegen: ignore[PG405]"
    (tmp_path / "a.pipegen.yaml").write_text("\n".join(lines) + "\n")
    silent = cli("validate", "--data")
    assert "PG405" not in silent.stdout.replace("ignore[PG405]", "")
    assert "PG511" not in silent.stdout
