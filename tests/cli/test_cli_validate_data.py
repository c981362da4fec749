"""`pipegen validate --data`: files are decoded as the pipeline would, and the damaged ones named."""

from __future__ import annotations

import sys
from pathlib import Path

import picture_files
import pytest
from cli_helpers import GOOD, Cli, write_images

pytestmark = pytest.mark.tf


FLAT = """\
pipegen: 1
source: {image_folder: {path: photos/, labels: none}}
transforms: [{resize: {size: 16}}]
batch: {size: 2}
"""
"""One split, for what does not depend on splits: each is compiled for itself."""


@pytest.fixture
def flat(tmp_path: Path) -> Path:
    """`flat.pipegen.yaml` in the working directory."""
    path = tmp_path / "flat.pipegen.yaml"
    path.write_text(FLAT, encoding="utf-8")
    return path


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def test_missing_data_is_an_error_and_only_with_data(cli: Cli, good: Path) -> None:
    assert cli("validate").exit_code == 0
    result = cli("validate", "--data")
    assert result.exit_code == 1
    assert "PG401" in result.stdout


@pytest.mark.nightly
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
    assert "would replace it by the next good record" not in result.stdout, "nothing is being trained"


def test_odd_forms_that_pillow_reads_are_not_damaged_and_those_that_it_refuses_are(cli: Cli, flat: Path, tmp_path: Path) -> None:
    bmp, gif = picture_files.files("BMP"), picture_files.files("GIF")
    good = {"a.bmp": bmp["RLE4 of runs, header 40"], "b.gif": gif["clear frame at (5, 6), back 3"], "c.bmp": bmp["16 bits 565, header 40"]}
    bad = {"d.bmp": bmp["32 bits 3ff00000 ffc00 3ff 0, header 40"], "e.gif": gif["cut short"]}
    (tmp_path / "photos").mkdir()
    for name, contents in (good | bad).items():
        (tmp_path / "photos" / name).write_bytes(contents)
    result = cli("validate", "--data=all")
    assert result.stdout.count("error[PG406]") == len(bad)
    assert all(name in result.stdout for name in bad)
    assert not any(name in result.stdout for name in good)


@pytest.mark.parametrize("step", ["random_crop: {size: 16}", "random_resized_crop: {size: 16, area: [0.01, 0.02]}"])
def test_a_window_does_not_hide_damage(cli: Cli, tmp_path: Path, step: str) -> None:
    import io

    import tensorflow as tf
    from PIL import Image

    folder = tmp_path / "photos"
    write_images(folder / "tulip", 1)
    (folder / "rose").mkdir()
    stream = io.BytesIO()
    Image.effect_noise((640, 640), 90).convert("RGB").save(stream, "JPEG", quality=90)
    whole = stream.getvalue()
    cut = whole[: int(0.97 * len(whole))]
    assert tf.io.decode_and_crop_jpeg(cut, [0, 0, 16, 16]).shape == (16, 16, 3), "a window before the cut decodes without complaint"
    (folder / "rose" / "good.jpg").write_bytes(whole)
    (folder / "rose" / "cut.jpg").write_bytes(cut)
    spec = f"pipegen: 1\nsource: {{image_folder: {{path: photos/}}}}\ntransforms:\n  - {step}\nbatch: {{size: 1}}\n"
    (tmp_path / "crop.pipegen.yaml").write_text(spec)
    result = cli("validate", "--data=all")
    assert result.exit_code == 1
    assert f"cannot decode {folder}/rose/cut.jpg" in result.stdout
    assert "good.jpg" not in result.stdout


def test_the_exclude_list_serves_the_spec(cli: Cli, flat: Path, photos: Path, tmp_path: Path) -> None:
    truncate(photos / "rose" / "03.jpg")
    (photos / "tulip" / "05.jpg").write_bytes(b"")
    result = cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert result.exit_code == 1
    assert "errors: {exclude: damaged.txt}" in result.stderr
    listed = [line for line in (tmp_path / "damaged.txt").read_text().splitlines() if not line.startswith("#")]
    assert listed == ["rose/03.jpg", "tulip/05.jpg"]
    flat.write_text(FLAT + "errors: {exclude: damaged.txt}\n")
    again = cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert again.exit_code == 0, again.output
    assert "14 of 14 files decoded" in again.stdout
    assert [line for line in (tmp_path / "damaged.txt").read_text().splitlines() if not line.startswith("#")] == listed, (
        "nothing is forgotten"
    )


def test_a_list_that_the_spec_names_already_may_be_yet_to_be_written(cli: Cli, flat: Path, photos: Path, tmp_path: Path) -> None:
    flat.write_text(FLAT + "errors: {exclude: damaged.txt}\n")
    truncate(photos / "rose" / "03.jpg")
    assert "PG413" in cli("validate", "--data=all").stdout
    cli("validate", "--data=all", "--write-exclude", "damaged.txt")
    assert "rose/03.jpg" in (tmp_path / "damaged.txt").read_text()
    assert cli("validate", "--data=all").exit_code == 0


def test_a_strange_file_is_not_written_over(cli: Cli, flat: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk\n")
    result = cli("validate", "--data", "--write-exclude", "notes.txt")
    assert result.exit_code == 2
    assert (tmp_path / "notes.txt").read_text() == "remember the milk\n"


def test_many_damaged_files_end_in_a_summary(cli: Cli, flat: Path, tmp_path: Path) -> None:
    for name in ("rose", "tulip"):
        for path in write_images(tmp_path / "photos" / name, 16).iterdir():
            path.write_text("no image")
    result = cli("validate", "--data")
    assert result.stdout.count("error[PG406]") == 21, "twenty by name, and one for the rest"
    assert "12 more files cannot be read" in result.stdout


def test_a_sample_is_spread_over_each_split(cli: Cli, good: Path, photos: Path) -> None:
    assert "6 of 16 files decoded" in cli("validate", "--data=3", "good.pipegen.yaml").stdout


def test_data_does_not_swallow_the_file(cli: Cli, flat: Path, photos: Path) -> None:
    result = cli("validate", "--data", "flat.pipegen.yaml")
    assert result.exit_code == 0, result.output
    assert "16 of 16 files decoded" in result.stdout


def test_spread() -> None:
    from pipegen.data.rounding import spread

    assert spread(10, 5) == [0, 2, 4, 6, 8]
    assert spread(3, 200) == [0, 1, 2]
    assert spread(4, None) == [0, 1, 2, 3]
    assert spread(0, 200) == []


@pytest.mark.nightly
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


def test_damage_that_decoders_pass_over_is_named_and_can_be_excluded(cli: Cli, flat: Path, photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("simplejpeg")
    import numpy as np
    from PIL import Image

    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    victim = photos / "rose" / "noise.jpg"
    Image.fromarray(noise).save(victim, quality=95)
    content = victim.read_bytes()
    middle = len(content) // 2
    victim.write_bytes(content[:middle] + content[middle + 600 :])
    with Image.open(victim) as image:
        image.load()  # nobody else says a word
    result = cli("validate", str(flat), "--data=all", "--write-exclude", "damaged.txt")
    assert result.exit_code == 1
    assert "noise.jpg can be decoded but is damaged inside, which training does not notice: premature end" in " ".join(
        result.stdout.split()
    )
    assert result.stdout.count("error[PG406]") == 1
    assert (tmp_path / "damaged.txt").read_text(encoding="utf-8").splitlines()[1:] == ["rose/noise.jpg"]


def test_without_the_extra_it_says_what_was_not_looked_for(cli: Cli, flat: Path, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    result = cli("validate", str(flat), "--data=all")
    assert result.exit_code == 0
    assert "pip install 'pipegen[check]'" in result.stderr


def test_data_that_is_missing_is_found_beside_other_errors(cli: Cli, good: Path) -> None:
    """Errors keep the data from being listed, and not its path from being looked at: one run shows both."""
    good.write_text(good.read_text().replace("  - resize: {size: 16}\n", ""))
    result = cli("validate", "good.pipegen.yaml", "--data")
    assert result.exit_code == 1
    assert [line[:12] for line in result.stdout.splitlines() if line.startswith("error")] == ["error[PG201]", "error[PG401]"]
    assert "there is no folder" in result.stdout
