"""The benchmark harness on two dozen tiny images: it proves that the harness works, and measures nothing."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

from benchmarks import __main__ as command
from benchmarks import make_photos, measure, report
from benchmarks.recipes import RECIPES, Geometric, ImageNet
from benchmarks.systems import SYSTEMS, Photos, System, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, BATCH = 32, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 JPEGs of 48 by 40 pixels in three folders."""
    root = tmp_path_factory.mktemp("photos")
    rng = random.Random(0)
    for i in range(24):
        (root / f"class_{i % 3}").mkdir(exist_ok=True)
        Image.frombytes("RGB", (48, 40), rng.randbytes(48 * 40 * 3)).save(root / f"class_{i % 3}" / f"{i:02d}.jpg")
    return root


class Fake(System):
    """A system without TensorFlow, whose batches are `SimpleNamespace`s."""

    name = "fake"

    def __init__(self, shape: tuple[int, ...] = (BATCH, SIZE, SIZE, 3), error: Exception | None = None) -> None:
        self.shape, self.error, self.started = shape, error, 0

    def note(self, recipe: Any) -> str:
        return f"a fake {recipe.name}"

    def batches(self, recipe: Any, photos: Photos) -> Iterator[tuple[Any, Any]]:
        self.started += 1
        if self.error is not None:
            raise self.error
        while True:
            yield SimpleNamespace(shape=self.shape, dtype="float32"), None


def run(systems: list[System], folder: Path, repeats: int = 2) -> list[measure.Row]:
    effort = measure.Effort(repeats, images=8, seconds=1.0)
    return measure.run([Geometric(SIZE, BATCH)], systems, Photos.find(folder), effort, lambda row, repeat: None)


def test_every_repeat_is_a_turn_of_every_system(folder: Path) -> None:
    first, second = Fake(), Fake()
    rows = run([first, second], folder, repeats=3)
    assert [len(row.rates) for row in rows] == [3, 3]
    assert (first.started, second.started) == (3, 3)
    assert all(rate > 0 for row in rows for rate in row.rates)


@pytest.mark.parametrize(
    ("system", "problem"),
    [
        (Fake(error=UnavailableError("no such layer")), "cannot run: no such layer"),
        (Fake(error=RuntimeError("broke\nwith a long tail")), "failed: RuntimeError: broke"),
        (Fake(shape=(BATCH, 8, 8, 3)), "cannot run: it gives float32 (4, 8, 8, 3), not float32 (4, 32, 32, 3)"),
    ],
)
def test_a_system_that_cannot_run_is_a_row_that_says_why(folder: Path, system: Fake, problem: str) -> None:
    broken, fine = run([system, Fake()], folder)
    assert broken.problem == problem
    assert broken.rates == []
    assert system.started == 1, "it is not tried again"
    assert len(fine.rates) == 2


def test_a_ratio_compares_turns_of_the_same_repeat() -> None:
    recipe = Geometric()
    mine, theirs = (measure.Row(recipe, Fake(), rates) for rates in ([10.0, 40.0, 30.0], [5.0, 10.0, 10.0]))
    assert mine.ratio(theirs) == 3.0
    assert mine.ratio(measure.Row(recipe, Fake())) is None


def test_the_verdict_is_about_the_target() -> None:
    recipe = ImageNet()
    by_name = {system.name: system for system in SYSTEMS}
    rows = [measure.Row(recipe, by_name["pipegen"], [15.0]), measure.Row(recipe, by_name[recipe.baseline], [10.0])]
    assert report.verdict(recipe, rows) == "imagenet: 1.50 × tf.data tutorial; the target of 1.4 × is reached"
    assert report.verdict(recipe, rows[1:]) is None


def test_names_are_distinct_and_baselines_exist() -> None:
    names = Counter(system.name for system in SYSTEMS)
    assert set(names.values()) == {1}
    assert {recipe.baseline for recipe in RECIPES.values()} <= set(names)


def test_a_folder_without_photographs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path)]) == 2
    assert "benchmarks.make_photos" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.tf
def test_the_whole_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.json"
    argv = [str(folder), "--size", str(SIZE), "--batch", str(BATCH), "--repeats", "1", "--images", "8", "--out", str(out)]
    assert command.main(argv) == 0
    shown = capsys.readouterr().out
    results = json.loads(out.read_text(encoding="utf-8"))
    rows = {(row["recipe"], row["system"]): row for row in results["rows"]}
    assert set(rows) == {(recipe, system.name) for recipe in RECIPES for system in SYSTEMS}
    assert not [row["problem"] for row in rows.values() if row["problem"] and not row["problem"].startswith("cannot run: ")]
    for recipe in RECIPES.values():
        for system in ("pipegen", recipe.baseline, "limit: decode"):
            row = rows[recipe.name, system]
            assert row["problem"] is None
            assert row["median_images_per_s"] > 0
            assert row["ratio"] > 0
        assert f"{recipe.name}: " in shown
    assert rows["imagenet", "ImageDataGenerator"]["problem"] == "cannot run: it has no random resized crop"
    assert results["environment"]["photos"] == {"count": 24, "mean_bytes": results["environment"]["photos"]["mean_bytes"], "classes": 3}
    assert results["environment"]["packages"]["tensorflow"]


def test_made_photos_do_not_depend_on_the_count(tmp_path: Path) -> None:
    nature = tmp_path / "deb/usr/share/backgrounds/mate/nature"
    nature.mkdir(parents=True)
    for name, colour in (("a", "red"), ("b", "blue")):
        Image.new("RGB", (900, 700), colour).save(nature / f"{name}.jpg")
    sources = make_photos.find_sources(tmp_path / "deb")
    for count in (3, 5):
        make_photos.make(sources, tmp_path / str(count), count)
    few, many = ({f.relative_to(tmp_path / n): f.read_bytes() for f in (tmp_path / n).glob("*/*.jpg")} for n in ("3", "5"))
    assert len(few) == 3
    assert len(many) == 5
    assert few.items() <= many.items()
    with Image.open(tmp_path / "5/class_001/000001.jpg") as image:
        assert image.size in make_photos.SIZES


def test_no_wallpapers_is_an_error_that_names_the_packages(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mate-backgrounds and plasma-workspace-wallpapers"):
        make_photos.find_sources(tmp_path)
