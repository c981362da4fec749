"""The commands that run a pipeline: `preview` and `bench`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_helpers import GOOD, Cli

pytestmark = pytest.mark.tf


@pytest.mark.nightly
def test_preview_writes_a_png_with_a_column_for_each_draw(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    from PIL import Image

    sizes = {}
    for rows, draws in ((2, 1), (2, 3), (3, 3)):
        result = cli("preview", "good.pipegen.yaml", "--rows", str(rows), "--draws", str(draws), "-o", "sheet.png")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(f"wrote sheet.png: {rows} of 8 examples of split train")
        with Image.open(tmp_path / "sheet.png") as image:
            assert image.format == "PNG"
            sizes[rows, draws] = image.size
    assert sizes[2, 3][0] - sizes[2, 1][0] == 2 * 150
    assert sizes[3, 3][1] > sizes[2, 3][1]
    assert sizes[3, 3][0] == sizes[2, 3][0]


def test_preview_names_its_file_and_other_splits(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    assert cli("preview", "good.pipegen.yaml", "--split", "validation", "--rows", "1").exit_code == 0
    assert (tmp_path / "good-validation.png").read_bytes().startswith(b"\x89PNG")
    assert cli("preview", "good.pipegen.yaml", "--split", "test").exit_code == 2
    assert cli("preview", "good.pipegen.yaml", "-o", "sheet.jpg").exit_code == 2


def test_preview_knows_at_once_that_it_cannot_write(cli: Cli, good: Path) -> None:
    result = cli("preview", "good.pipegen.yaml", "-o", "nowhere/sheet.png")
    assert result.exit_code == 2
    assert "there is no folder nowhere" in result.stderr, "and not that the data is missing, which is found later"


def test_preview_of_damaged_files(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    for path in (photos / "rose").iterdir():
        path.write_bytes(path.read_bytes()[:200])
    result = cli("preview", "good.pipegen.yaml", "--draws", "1")
    assert result.exit_code == 1
    assert f"cannot decode {photos}/rose/" in result.stderr
    assert "good.pipegen.yaml:4:1" in result.stderr
    assert "errors: {decode: {skip" in result.stderr
    assert "Traceback" not in result.stderr
    good.write_text(GOOD + "errors: {decode: {skip: {max_fraction: 1}}}\n")
    skipped = cli("preview", "good.pipegen.yaml", "--draws", "1", "-o", "sheet.png")
    assert skipped.exit_code == 0, skipped.output
    assert (tmp_path / "sheet.png").exists()


def test_export_writes_images_and_a_table(cli: Cli, good: Path, photos: Path, tmp_path: Path) -> None:
    from PIL import Image

    result = cli("export", "good.pipegen.yaml", "out", "--examples", "3", "--draws", "2", "--format", "jpeg", "--prefix", "new_")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("wrote 6 images of split train and out/metadata.jsonl")
    table = [json.loads(line) for line in (tmp_path / "out" / "metadata.jsonl").read_text().splitlines()]
    assert {len({each["source"] for each in table}), *(each["parameters"]["random_flip.horizontal"] for each in table)} == {3, True, False}
    for line in table:
        assert line["file_name"].startswith(f"new_{line['label']}-")
        with Image.open(tmp_path / "out" / line["file_name"]) as image:
            assert (image.format, image.size) == ("JPEG", (16, 16))
    again = cli("export", "good.pipegen.yaml", "out")
    assert again.exit_code == 2
    assert "out is not empty" in again.stderr
    assert "--overwrite" in again.stderr
    inside = cli("export", "good.pipegen.yaml", "photos/new", "--split", "validation")
    assert inside.exit_code == 2
    assert "would become part of the data" in inside.stderr
    assert not (photos / "new").exists()


def test_export_says_what_an_epoch_leaves_out(cli: Cli, good: Path, photos: Path) -> None:
    good.write_text(GOOD + "runtime: {jit: never}\n")
    result = cli("export", "good.pipegen.yaml", "out", "--whole-epoch", "--set", "batch.size=3")
    assert "wrote 6 images" in result.stdout
    assert "2 examples are left out of each epoch" in result.stdout
    (option,) = re.findall(r"`--set (\S+)` writes them", result.stdout)
    again = cli("export", "good.pipegen.yaml", "all", "--whole-epoch", "--set", "batch.size=3", "--set", option)
    assert "wrote 8 images" in again.stdout
    assert "left out" not in again.stdout


def test_export_of_a_damaged_file(cli: Cli, good: Path, photos: Path) -> None:
    for path in photos.rglob("*.jpg"):
        path.write_bytes(path.read_bytes()[:200])
    result = cli("export", "good.pipegen.yaml", "out", "--whole-epoch")
    assert result.exit_code == 1
    assert f"cannot decode {photos}/" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_spec_without_data_is_1(cli: Cli, good: Path) -> None:
    result = cli("preview", "good.pipegen.yaml")
    assert result.exit_code == 1
    assert "PG401" in result.stderr


@pytest.mark.nightly
def test_a_damaged_file_is_named_without_a_traceback(cli: Cli, good: Path, photos: Path) -> None:
    for path in photos.rglob("*.jpg"):
        path.write_bytes(path.read_bytes()[:200])
    good.write_text(GOOD + "runtime: {jit: never}\n")
    result = cli("bench", "good.pipegen.yaml", "--steps", "2")
    assert result.exit_code == 1
    assert "cannot decode" in result.stderr
    assert "Traceback" not in result.stderr


def test_bench_prints_figures(cli: Cli, good: Path, photos: Path) -> None:
    good.write_text(GOOD.replace("  - random_flip\n", "") + "shuffle: none\nruntime: {jit: never}\n")
    result = cli("bench", "good.pipegen.yaml", "--steps", "3")
    assert result.exit_code == 0, result.output
    for words in ("images/s", "first batch", "a model of 50 ms", "peak memory", "3 batches of split train"):
        assert words in result.stdout


def test_bench_as_json_adds_up(cli: Cli, good: Path, photos: Path) -> None:
    good.write_text(GOOD + "runtime: {jit: never}\n")
    figures = json.loads(cli("bench", "good.pipegen.yaml", "--steps", "6", "--model-ms", "0", "--format", "json").stdout)
    assert figures["steps"] == 6
    assert figures["images"] == 12, "it goes on through the epochs, two images a batch"
    assert figures["images_per_s"] == pytest.approx(figures["images"] / figures["seconds"])
    assert figures["model_waits_ms"] == pytest.approx(figures["batch_ms"])
    assert figures["model_waits_share"] == pytest.approx(1)


@pytest.mark.by_day(1)
def test_bench_marks_what_comes_from_a_cache(cli: Cli, good: Path, photos: Path) -> None:
    text = GOOD.replace("size: 2}", "size: 1}") + "runtime: {jit: never, cache: memory}\n"
    assert "batch: {size: 1}" in text
    good.write_text(text)
    said = json.loads(cli("bench", "good.pipegen.yaml", "--steps", "20", "--format", "json").stdout)
    assert (said["cache"], said["is_warm"], said["steps"]) == ("memory", True, 20)
    assert said["first_epoch"]["steps"] == 2, "of 8 batches 6 pass before the clock starts"
    early = cli("bench", "good.pipegen.yaml", "--steps", "1").stdout
    assert "while the cache (memory) is filled; later epochs were not reached" in early
    good.write_text(GOOD + "runtime: {jit: never, cache: {disk: kept}}\n")
    for _ in range(2):
        said = cli("bench", "good.pipegen.yaml", "--steps", "6").stdout
    assert "from the warm cache (disk)" in said
    good.write_text(GOOD + "runtime: {jit: never, cache: none}\n")
    assert "cache" not in cli("bench", "good.pipegen.yaml", "--steps", "2").stdout


def test_the_first_epoch_has_a_line_of_its_own() -> None:
    from pipegen.cli.bench import Figures, Timed

    first = Timed(10, 320, 4.0)
    figures = Figures("train", 32, 100, 3200, 1.0, 2.0, None, cache="memory", is_warm=True, first_epoch=first)
    lines = figures.as_text(200).splitlines()
    assert lines[0].endswith("80 in the first epoch, while the cache (memory) is filled")
    assert lines[1].endswith("3,200 in later epochs, from the warm cache")
    assert "a model of 200 ms  in the first epoch waits 200.0 ms for each batch: 50% of its time" in figures.as_text(200)
    assert "in later epochs never waits" in figures.as_text(200)
    assert figures.as_json(200)["first_epoch"]["images_per_s"] == 80


def test_a_slow_model_never_waits() -> None:
    from pipegen.cli.bench import Figures

    figures = Figures("train", 32, steps=10, images=320, seconds=1.0, first_batch_s=2.0, peak_bytes=None)
    assert figures.as_json(100)["model_waits_ms"] == 0
    assert "never waits" in figures.as_text(100)
    assert figures.as_json(60)["model_waits_ms"] == pytest.approx(40)
    assert figures.as_json(60)["model_waits_share"] == pytest.approx(0.4)
    assert "waits 40.0 ms for each batch: 40% of its time" in figures.as_text(60)
    assert figures.as_text(60).startswith("images/s ")


def test_examples_have_their_word() -> None:
    from pipegen.cli.bench import Figures
    from pipegen.ops.kinds.base import called
    from pipegen.types import FeatureType

    figures = Figures("train", 32, steps=10, images=320, seconds=1.0, first_batch_s=2.0, peak_bytes=None, records="sounds")
    assert figures.as_text(60).startswith("sounds/s ")
    assert "100.0 ms for 32 sounds" in figures.as_text(60)
    assert "records" not in figures.as_json(60)
    kinds = {"audio label": "sounds", "label audio image": "images", "mask image": "images", "series": "series", "label tensor": "examples"}
    for names, word in kinds.items():
        assert called(FeatureType(name, "float32", ()) for name in names.split()) == word
