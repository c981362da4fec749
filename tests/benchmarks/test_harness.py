"""The benchmark harness on two dozen tiny images: it proves that the harness works, and measures nothing."""

from __future__ import annotations

import dataclasses
import gc
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the harness is not part of the installed package

import pipegen
from benchmarks import __main__ as command
from benchmarks import chart, make_photos, measure, memory, processes, profile, report, targets
from benchmarks.data import Dataset, Photos, UnavailableError
from benchmarks.recipes import RECIPES
from benchmarks.steps import RandomResizedCrop
from benchmarks.systems import SYSTEMS, System
from benchmarks.systems.batches import whole
from benchmarks.systems.pipegen_system import spec
from benchmarks.systems.spdl_loader import window

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE, BATCH = 16, 4
GEOMETRIC = dataclasses.replace(RECIPES["geometric"], size=SIZE, batch=BATCH)


needs_proc = pytest.mark.skipif(not processes.PROC.exists(), reason="it is read from /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 JPEGs of 24 by 20 pixels in three folders."""
    root = tmp_path_factory.mktemp("photos") / "small"
    rng = random.Random(0)
    for i in range(24):
        (root / f"class_{i % 3}").mkdir(parents=True, exist_ok=True)
        Image.frombytes("RGB", (24, 20), rng.randbytes(24 * 20 * 3)).save(root / f"class_{i % 3}" / f"{i:02d}.jpg")
    return root


@pytest.fixture(autouse=True)
def collects_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each turn the harness searches everything for garbage, which beside a whole suite takes longer than the turn."""
    monkeypatch.setattr(measure, "gc", SimpleNamespace(collect=lambda: gc.collect(1)))


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return Dataset({"photos": Photos.find(folder)}, arrays=20)


class Fake(System):
    """A system without TensorFlow, whose batches are `SimpleNamespace`s."""

    name = "fake"
    remark = "a fake"

    def __init__(self, shape: tuple[int, ...] = (BATCH, SIZE, SIZE, 3), error: Exception | None = None) -> None:
        self.shape, self.error, self.started, self.ended = shape, error, 0, 0

    def batches(self, recipe: Any, data: Dataset) -> Iterator[tuple[Any, Any]]:
        self.started += 1
        try:
            if self.error is not None:
                raise self.error
            while True:
                yield SimpleNamespace(shape=self.shape, dtype="float32"), None
        finally:
            self.ended += 1


def run(systems: list[System], data: Dataset, repeats: int = 2, recipe: Any = GEOMETRIC) -> list[measure.Row]:
    effort = measure.Effort(repeats, seconds=1.0, images=8, warm_up=0)
    return measure.run([recipe], systems, data, effort, lambda row, repeat: None)


def test_every_repeat_is_a_turn_of_every_system(data: Dataset) -> None:
    first, second = Fake(), Fake()
    rows = run([first, second], data, repeats=3)
    assert [len(row.rates) for row in rows] == [3, 3]
    assert (first.started, second.started) == (3, 3)
    assert (first.ended, second.ended) == (3, 3), "an iterator is closed after its turn, which ends its processes"
    assert all(rate > 0 for row in rows for rate in row.rates)
    assert [len(row.processor_ms) for row in rows] == [3, 3]


class Working(Fake):
    """A system with a process of its own, which works for a tenth of a second before each batch."""

    def batches(self, recipe: Any, data: Dataset) -> Iterator[tuple[Any, Any]]:
        turn = "end = time.process_time() + 0.1\n while time.process_time() < end: pass\n print(flush=True)"
        work = f"import sys, time\nfor _ in sys.stdin:\n {turn}"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", work], text=True, **pipes) as worker:  # type: ignore[call-overload]
            try:
                while True:
                    print(file=worker.stdin, flush=True)
                    worker.stdout.readline()
                    yield SimpleNamespace(shape=self.shape, dtype="float32"), None
            finally:
                worker.stdin.close()


@needs_proc
def test_processor_time_has_that_of_all_processes(data: Dataset) -> None:
    (row,) = run([Working()], data, repeats=1)
    assert 24 < row.processor_ms[0] < 60, "a batch of four images takes a tenth of a second"
    (record,) = report.records([row])
    assert record["processor_ms"] == row.processor_ms
    console = Console(width=200, record=True)
    console.print(report.table([record]))
    assert f"{row.processor_ms[0]:.2f}" in console.export_text()


@needs_proc
def test_processes_that_have_ended_count(tmp_path: Path) -> None:
    before = processes.processor_s(os.getpid())
    work = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    after = processes.processor_s(os.getpid())
    assert before is not None
    assert after is not None
    assert after - before >= 0.28
    assert processes.processor_s(0) is None, "there is no such process"


@needs_proc
def test_the_highest_memory_is_that_of_all_processes() -> None:
    """The process of a system says that it has imported, is told to begin, and says that it has ended."""
    here, there = multiprocessing.Pipe()
    hold = "import time; held = bytearray(b'x') * 2**26; time.sleep(0.5)"
    work = f"import subprocess, sys\ninput()\nsubprocess.run([sys.executable, '-c', {hold!r}])\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def between() -> None:
            there.send(None)
            there.recv()
            print(file=process.stdin, flush=True)
            process.stdout.readline()  # type: ignore[union-attr]
            there.send(None)

        thread = threading.Thread(target=between)
        thread.start()
        found = memory._watch(here, process.pid)
        thread.join()
        process.kill()
    assert isinstance(found, int)
    assert 2**26 < found < 2**26 + 2**25


@needs_proc
@pytest.mark.parametrize("at_once", [True, False])
def test_a_system_that_cannot_run_has_no_memory(at_once: bool) -> None:
    here, there = multiprocessing.Pipe()
    for said in ["why"] if at_once else [None, "why"]:
        there.send(said)
    assert memory._watch(here, os.getpid()) == "why"


@pytest.mark.parametrize(
    ("system", "problem"),
    [
        (Fake(error=UnavailableError("no such layer")), "cannot run: no such layer"),
        (Fake(error=RuntimeError("broke\nwith a long tail")), "failed: RuntimeError: broke"),
        (Fake(shape=(BATCH, 8, 8, 3)), "cannot run: it gives float32 (4, 8, 8, 3), not float32 (4, 16, 16, 3)"),
    ],
)
def test_a_system_that_cannot_run_is_a_row_that_says_why(data: Dataset, system: Fake, problem: str) -> None:
    broken, fine = run([system, Fake()], data)
    assert broken.problem == problem
    assert broken.rates == []
    assert system.started == 1, "it is not tried again"
    assert len(fine.rates) == 2


@pytest.mark.parametrize(
    ("recipe", "system", "problem"),
    [
        ("imagenet", "ImageDataGenerator", "it has no random resized crop"),
        ("randaugment", "DataLoader + Albumentations", "Albumentations has no RandAugment"),
        ("combining", "DALI on the CPU", "it has no MixUp op"),
        ("cached", "DALI on the CPU", "it has no cache of decoded images"),
        ("arrays", "Keras dataset + layers", "it reads no arrays"),
        ("png", "TurboLoader", "it reads no such files"),
        ("jitter_blur", "TurboLoader", "only the steps of `geometric`, `imagenet` and `large` are written for it here"),
        ("randaugment", "SPDL + Albumentations", "Albumentations has no RandAugment"),
        ("geometric", "limit: decode and crop", "the recipe does not crop"),
    ],
)
def test_what_a_system_lacks_stands_in_its_row(data: Dataset, recipe: str, system: str, problem: str) -> None:
    named = next(s for s in SYSTEMS if s.name == system)
    assert run([named], data, recipe=RECIPES[recipe])[0].problem == f"cannot run: {problem}"


@pytest.mark.parametrize(
    ("system", "module"),
    [
        ("DALI on the CPU", "nvidia.dali"),
        ("DataLoader + Albumentations", "torch.utils.data"),
        ("DataLoader + torchvision", "torch.utils.data"),
        ("Grain + Albumentations", "grain"),
        ("TurboLoader", "turboloader"),
        ("SPDL + Albumentations", "spdl"),
    ],
)
def test_a_peer_that_is_not_installed_is_a_row_that_says_so(data: Dataset, system: str, module: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    row = run([next(s for s in SYSTEMS if s.name == system)], data)[0]
    assert row.problem.startswith("cannot run: ")
    assert "import" in row.problem or "No module" in row.problem


def test_a_recipe_without_its_folder_says_how_to_make_it(data: Dataset) -> None:
    row = run([next(s for s in SYSTEMS if s.name == "limit: decode")], data, recipe=RECIPES["large"])[0]
    assert row.problem == "cannot run: there is no folder for it; `python -m benchmarks.make_photos --kind large` makes one"


def test_a_ratio_compares_turns_of_the_same_repeat() -> None:
    mine, theirs = (measure.Row(GEOMETRIC, Fake(), rates) for rates in ([10.0, 40.0, 30.0], [5.0, 10.0, 10.0]))
    assert mine.ratio(theirs) == 3.0
    assert mine.ratio(measure.Row(GEOMETRIC, Fake())) is None


def test_verdicts_are_about_the_targets_and_about_who_is_ahead() -> None:
    recipe = RECIPES["imagenet"]
    by_name = {system.name: system for system in SYSTEMS}
    rates = {"pipegen": 15.0, "tf.data tutorial": 10.0, "tf.data expert": 30.0, "limit: decode and crop": 60.0}
    rows = report.records([measure.Row(recipe, by_name[name], [rate], 1.0) for name, rate in rates.items()])
    assert report.verdicts(rows) == [
        "imagenet: 1.50 × tf.data tutorial; the target of 1.8 × is missed",
        "imagenet: 0.25 × limit: decode and crop; the target of 0.75 × is missed",
        "imagenet: ahead of pipegen: tf.data expert (2.00 ×)",
    ]
    assert report.verdicts(rows[1:]) == []


def test_memory_is_set_beside_that_of_keras() -> None:
    layers, generator = memory.KERAS
    peaks: dict[str, report.Peaks] = {
        "a": {"pipegen": 2**30, layers: 2**30, generator: 2**20},
        "b": {"pipegen": 2**31, layers: "it reads no arrays", generator: 2**30},
        "c": {"pipegen": "why", layers: 2**20},
    }
    assert [report.keras_ratio(each) for each in peaks.values()] == [1.0, 2.0, None]
    assert report.memory_lines(peaks) == [
        "a: 1.00 GiB above the imported libraries, within 1.5 GiB",
        "a: 1.00 × the peak memory of Keras, within 1.2 ×",
        f"b: peak memory of {layers} unknown: it reads no arrays",
        "b: 2.00 GiB above the imported libraries, above 1.5 GiB",
        "b: 2.00 × the peak memory of Keras, above 1.2 ×",
        "c: peak memory of pipegen unknown: why",
    ]
    console = Console(width=200, record=True)
    console.print(report.memory_table(peaks))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.export_text().splitlines() if line.startswith("│")]
    assert rows == [["a", "1,024", "1,024", "1", "1.00"], ["b", "2,048", "–", "1,024", "2.00"], ["c", "–", "1", "–", "–"]]


def results_of(data: Dataset, rates: dict[str, float]) -> report.Results:
    """A run of one system on some recipes."""
    found = report.results(data, measure.Effort())
    for name, rate in rates.items():
        report.add(found, report.records([measure.Row(RECIPES[name], Fake(), [rate], 1.0)]))
    return found


def test_a_run_that_is_cut_off_leaves_the_recipes_before(data: Dataset, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def cut_off(*args: Any) -> None:
        args[-1]([measure.Row(GEOMETRIC, Fake(), [1.0], 1.0)])
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "run", cut_off)
    monkeypatch.setattr(measure, "prepare", lambda: None)
    out = tmp_path / "results.json"
    with pytest.raises(KeyboardInterrupt):
        command.main([str(folder), "--out", str(out)])
    assert [row["recipe"] for row in json.loads(out.read_text(encoding="utf-8"))["rows"]] == ["geometric"]
    assert list(tmp_path.iterdir()) == [out]


def test_peak_memory_can_be_all_that_is_measured(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(measure, "run", lambda *_: pytest.fail("rates were asked for"))
    monkeypatch.setattr(measure, "prepare", lambda: None)
    monkeypatch.setattr(memory, "peak", lambda recipe, *_: recipe.batch)
    out = tmp_path / "results.json"
    assert command.main([str(folder), "--memory-only", "--recipes", "cached", "combining", "batch_8", "--out", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))["peak_memory"]
    assert found == {"combining": dict.fromkeys(memory.MEASURED, 64), "batch_8": dict.fromkeys(memory.MEASURED, 8)}


def test_runs_are_merged_by_recipe(data: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = results_of(data, {"geometric": 1.0, "imagenet": 2.0}), results_of(data, {"imagenet": 3.0, "png": 4.0})
    first["peak_memory"], second["peak_memory"] = {"geometric": {"pipegen": 1}, "png": {"pipegen": 2}}, {"png": {"pipegen": 3}}
    for name, run in (("a", first), ("b", second)):
        report.write(tmp_path / f"{name}.json", run)
    assert report.main([str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--out", str(tmp_path / "merged.json")]) == 0
    merged = json.loads((tmp_path / "merged.json").read_text(encoding="utf-8"))
    assert {row["recipe"]: row["images_per_s"] for row in merged["rows"]} == {"geometric": [1.0], "imagenet": [3.0], "png": [4.0]}
    assert merged["peak_memory"] == {"geometric": {"pipegen": 1}, "png": {"pipegen": 3}}
    assert [run["recipes"] for run in merged["runs"]] == [["geometric", "imagenet"], ["imagenet", "png"]]
    shown = capsys.readouterr().out
    assert "imagenet: decode, random resized crop" in shown
    second["environment"]["cores"] += 1
    report.write(tmp_path / "b.json", second)
    assert report.main([str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 2
    assert "different machines" in capsys.readouterr().out


def test_names_are_distinct_and_baselines_and_targets_exist() -> None:
    names = Counter(system.name for system in SYSTEMS)
    assert set(names.values()) == {1}
    assert {recipe.baseline for recipe in RECIPES.values()} <= set(names)
    assert {target.peer for target in targets.TARGETS} <= set(names)
    assert set(memory.MEASURED) <= set(names)
    assert {target.recipe for target in targets.TARGETS} <= set(RECIPES)


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_recipe_is_a_valid_spec(name: str, data: Dataset) -> None:
    photos = data.folders["photos"]
    loaded = pipegen.load(spec(RECIPES[name], Dataset({"photos": photos, "large": photos, "png": photos})))
    assert loaded.model.transforms


def test_the_smaller_last_batch_is_left_out() -> None:
    assert list(whole(iter([("abcd", 1), ("ab", 2), ("efgh", 3)]), 4)) == [("abcd", 1), ("efgh", 3)]


def test_memory_is_unknown_without_proc(data: Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path / "none")
    assert "Linux" in str(memory.peak(GEOMETRIC, SYSTEMS[0], data))
    assert processes.processor_s(os.getpid()) is None


@needs_proc
@pytest.mark.nightly
@pytest.mark.tf
def test_the_memory_of_a_system_is_measured_in_a_process_of_its_own(data: Dataset) -> None:
    by_name = {system.name: system for system in SYSTEMS}
    found = memory.peak(GEOMETRIC, by_name["pipegen"], data)
    assert isinstance(found, int), found
    assert 2**20 < found < 2**29
    assert memory.peak(RECIPES["imagenet"], by_name["ImageDataGenerator"], data) == "it has no random resized crop"


def test_windows_lie_within_the_image_and_have_the_sizes_that_the_recipe_asks_for() -> None:
    step = RECIPES["imagenet"].find(RandomResizedCrop)
    assert step is not None
    found = [window(step, 100, 80) for _ in range(500)]
    assert all(x >= 0 and y >= 0 and x + w <= 100 and y + h <= 80 for x, y, w, h in found)
    assert all(step.area[0] - 0.01 <= w * h / 8000 <= step.area[1] for _, _, w, h in found)
    assert len({w * h for _, _, w, h in found}) > 100
    assert window(step, 1000, 1) == (0, 0, 1000, 1)


@pytest.mark.tf
def test_a_folder_without_photographs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path)]) == 2
    assert profile.main([str(tmp_path)]) == 2
    assert "benchmarks.make_photos" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.nightly
@pytest.mark.tf
def test_the_whole_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.json"
    names = ("pipegen", "ImageDataGenerator", "limit: decode")
    effort = ["--repeats", "1", "--seconds", "0", "--warm-up", "0", "--arrays", "20", "--no-memory"]
    argv = [str(folder), "--recipes", "geometric", "arrays", "--systems", *names, "--size", str(SIZE), "--batch", str(BATCH), *effort]
    assert command.main([*argv, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    results = json.loads(out.read_text(encoding="utf-8"))
    rows = {(row["recipe"], row["system"]): row for row in results["rows"]}
    assert set(rows) == {(recipe, system) for recipe in ("geometric", "arrays") for system in names}
    for recipe in ("geometric", "arrays"):
        for system in names[:2]:
            assert rows[recipe, system]["problem"] is None
            assert rows[recipe, system]["median_images_per_s"] > 0
            assert rows[recipe, system]["ratio"] > 0
        assert f"{recipe}: " in shown
    assert rows["arrays", "limit: decode"]["problem"] == "cannot run: it reads no arrays"
    assert results["environment"]["data"]["photos"]["count"] == 24
    assert results["environment"]["packages"]["tensorflow"]
    reached = {(target["recipe"], target["peer"]): target["reached"] for target in results["targets"]}
    assert reached["geometric", "ImageDataGenerator"] > 0
    assert reached["imagenet", "DALI on the CPU"] is None


@pytest.mark.tf
@pytest.mark.nightly
def test_the_profile_names_every_part(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "QUIET_S", 0.01)
    argv = [str(folder), "--recipe", "imagenet", "--size", str(SIZE), "--batch", str(BATCH), "--batches", "1", "--repeats", "1"]
    assert profile.main(argv) == 0
    shown = capsys.readouterr().out
    named = ("order and draws", "read", "decode: the window", "resize: the window", "copy: batch", "kernel: ", "emit", "whole")
    for part in (*named, "system", "page faults"):
        assert part in shown


def test_the_chart_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    common = {"recipe": "geometric", "size": 224, "batch": 64}
    rows = [
        common
        | {"system": name, "limit": name.startswith("limit"), "images_per_s": rates, "median_images_per_s": rates[0] if rates else None}
        for name, rates in {"pipegen": [3.0, 2.0, 4.0], "peer": [1.0], "limit: decode": [5.0], "absent": []}.items()
    ]
    machine = {"cpu": "some", "cores": 2, "packages": {"tensorflow": "2.21.0"}, "date": "2026-11-21T00:00:00"}
    (tmp_path / "r.json").write_text(json.dumps({"rows": rows, "environment": machine}), encoding="utf-8")
    for name in ("chart.svg", "chart.png"):
        assert chart.main([str(tmp_path / "r.json"), str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_size > 1000


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
        assert image.size in make_photos.KINDS["photos"].sizes


@pytest.mark.parametrize(("kind", "suffix"), [("large", "jpg"), ("png", "png")])
def test_other_kinds_of_photos(tmp_path: Path, kind: str, suffix: str) -> None:
    source = tmp_path / "source.png"
    Image.new("RGB", (90, 70), "green").save(source)
    small = dataclasses.replace(make_photos.KINDS[kind], sizes=((40, 30),))
    make_photos.make([source], tmp_path / kind, 1, small)
    with Image.open(tmp_path / f"{kind}/class_000/000000.{suffix}") as image:
        assert image.size == (40, 30)


def test_no_wallpapers_is_an_error_that_names_the_packages(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mate-backgrounds and plasma-workspace-wallpapers"):
        make_photos.find_sources(tmp_path)
