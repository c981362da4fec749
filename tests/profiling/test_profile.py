"""A profile names the stage that takes the time, says how long it takes, and promises no more than is kept."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import replace
from importlib import import_module
from pipes import RESIZE, sections
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from my_pkg import slow

import pipegen
from pipegen.observe.measured import WARM, Recording, Trace, Usage, record, traced
from pipegen.observe.profile import UNATTRIBUTED, Profile, analyse
from pipegen.observe.tune import fitted_factors
from pipegen.physical.facts import called, scopes
from pipegen.plan.cost import Circumstances

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.tf

NAPS = [RESIZE, {"python": {"function": "my_pkg.slow:long"}}, "random_flip", {"python": {"function": "my_pkg.slow:short"}}]

WAITED_US = 15_000
"""What a call may wait for a core and for Python's lock, before the function's own clock starts and behind it, on a busy machine."""


def napping(folder: Path, **runtime: Any) -> Any:
    spec = sections(folder, transforms=NAPS, batch={"size": 4})
    return pipegen.build(spec, runtime={"jit": "never", "cache": "none", "threads": 2, **runtime}, allow_code=["my_pkg"])


@pytest.fixture(scope="module")
def slept(photo_folder: Path) -> tuple[Any, Profile]:
    """A pipeline with steps of 150 and 50 ms an image on two threads, and its profile."""
    pipe = napping(photo_folder)
    return pipe, analyse(pipe, record(pipe, "train", steps=16))


def named(made: Profile, name: str) -> Any:
    return next(part for part in made.parts if part.name == name)


def test_steps_of_known_duration_are_named_and_measured(slept: tuple[Any, Profile]) -> None:
    _, made = slept
    assert made.dearest.name == "python my_pkg.slow:long"
    for name, nap in (("long", 150_000), ("short", 50_000)):
        took = 1e6 * float(np.mean(slow.TOOK[name]))
        assert took >= nap
        assert named(made, f"python my_pkg.slow:{name}").us == pytest.approx(took, rel=0.15, abs=WAITED_US)
    assert made.sentence.startswith("python my_pkg.slow:long takes "), made.sentence
    assert "of 2 threads, mostly waiting; " in made.sentence
    assert made.starves


def test_threads_that_wait_ask_for_more_of_them(slept: tuple[Any, Profile]) -> None:
    _, made = slept
    assert {remedy.setting for remedy in made.remedies} == {"cache: memory", "threads: 16"}


@pytest.mark.parametrize("queued", [0.0, 0.2, 0.5])
def test_sleeps_promise_the_same_however_busy_the_machine_is(slept: tuple[Any, Profile], queued: float) -> None:
    """Of 64 images, each of which sleeps for 150 and 50 ms, while other programs hold up the little work that there is beside it."""
    pipe, made = slept
    plan = pipe._engine.executor("train").plan
    names = scopes(plan)
    naps = {"python my_pkg.slow:long": 0.15, "python my_pkg.slow:short": 0.05}
    busy = {"read": 0.02 + queued} | {names[id(stage)]: 64 * naps.get(called(stage), 1e-4) for stage in plan.stages()}
    seconds = sum(busy.values()) / 2
    trace = Trace(seconds, busy, cpu=0.05, queued=queued)
    found = replace(made.recording, examples=64, seconds=seconds, waited=seconds, traced_examples=64, traced_batches=16, trace=trace)
    times = {remedy.setting: remedy.times for remedy in analyse(pipe, found, {}).remedies}
    assert times == pytest.approx({"cache: memory": 4, "threads: 16": 8}, rel=0.05), "150 of 200 ms are the same in every epoch"


@pytest.mark.parametrize(("busy", "more"), [(0.2, False), (0.95, True)])
def test_more_cores_are_advised_only_where_all_are_busy(slept: tuple[Any, Profile], busy: float, more: bool) -> None:
    """What a cached pipeline leaves to do, on threads that work, and whose time no setting shortens."""
    pipe, made = slept
    trace = Trace(1.0, {"index": 2 * busy}, cpu=2 * busy, queued=0.0)
    found = replace(made.recording, examples=64, seconds=1.0, waited=1.0, traced_examples=64, traced_batches=16, trace=trace)
    said = replace(analyse(pipe, found, {}), remedies=[]).sentence
    assert (", more cores would" in said) is more, said
    assert ("the threads rest 80% of the time, so neither" in said) is not more, said


def test_every_form_says_the_same(slept: tuple[Any, Profile]) -> None:
    _, made = slept
    content = json.loads(json.dumps(made.as_json()))
    assert content["sentence"] == made.sentence
    assert content["stage"] == "python my_pkg.slow:long"
    assert sum(part["share"] for part in content["parts"]) == pytest.approx(1, abs=0.01)
    assert made.sentence in made.text()
    page = made.page()
    assert "python my_pkg.slow:long" in page
    assert "<script" not in page


@pytest.mark.nightly
def test_a_slow_reader_is_named(photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    from pipegen.ops.sources.listing.reader import FileReader

    opened, took = FileReader.open, []

    def slow(self: Any, *args: Any) -> Any:
        read = opened(self, *args)

        def late(*place: Any) -> Any:
            def nap(value: Any) -> Any:
                began = time.perf_counter()
                time.sleep(0.05)
                took.append(time.perf_counter() - began)
                return value

            value = read(*place)
            return tf.ensure_shape(tf.numpy_function(nap, [value], value.dtype), value.shape)

        return late

    monkeypatch.setattr(FileReader, "open", slow)
    pipe = pipegen.build(
        sections(photo_folder, transforms=[RESIZE], batch={"size": 4}), runtime={"jit": "never", "cache": "none", "threads": 2}
    )
    made = analyse(pipe, record(pipe, "train", steps=5))
    assert made.dearest.name == "reading"
    # So few are traced that the batches handed over meanwhile are not at all the ones that were read.
    assert made.dearest.us == pytest.approx(1e6 * float(np.mean(took)), rel=0.15, abs=WAITED_US)
    assert made.sentence.startswith("reading takes ")


def test_a_part_is_divided_by_the_examples_that_it_was_seen_to_make(slept: tuple[Any, Profile]) -> None:
    """Of four batches of 4 that were handed over, some of the work was done before, and more was done ahead."""
    pipe, made = slept
    found = replace(made.recording, traced_examples=16, traced_batches=4)
    busy = {"read": 1.0, "kernel.0": 1.0, "decode.0": 1.0, "batch": 1.0, "index": 1.0}

    def us(**runs: int) -> dict[str, float]:
        seen = Trace(1.0, busy, 1.0, 0.0, {name.replace("_", "."): count for name, count in runs.items()})
        parts = analyse(pipe, replace(found, trace=seen)).parts
        return {name: next(part.us for part in parts if part.name.startswith(name)) for name in ("reading", "batches", "order")}

    assert us() == pytest.approx({"reading": 1e6 / 16, "batches": 1e6 / 16, "order": 1e6 / 16}), "nothing is known of runs"
    assert us(read=13, batch=4, index=5) == pytest.approx({"reading": 1e6 / 13, "batches": 1e6 / 16, "order": 1e6 / 20})
    assert us(read=24, batch=1, index=40)["reading"] == pytest.approx(1e6 / 24)
    assert us(batch=1)["batches"] == pytest.approx(1e6 / 16), "that is no part of every batch"


def test_a_model_that_does_not_wait_is_told_so(slept: tuple[Any, Profile]) -> None:
    pipe, made = slept
    found = replace(made.recording, waited=0.01 * made.recording.seconds, model_ms=400.0)
    said = analyse(pipe, found)
    assert said.sentence.startswith("the model does not wait: its step takes ")
    assert not said.remedies
    waits = analyse(pipe, replace(made.recording, model_ms=10.0)).sentence
    assert waits.startswith("the model waits ")
    assert ": python my_pkg.slow:long takes " in waits


def test_within_a_compiled_kernel_shares_are_estimated(photo_folder: Path) -> None:
    steps = [RESIZE, {"random_rotation": {"degrees": 20}}, {"random_gaussian_blur": {"sigma": [0.5, 1]}}]
    spec = sections(photo_folder, transforms=steps, batch={"size": 8})
    pipe = pipegen.build(spec, runtime={"cache": "memory", "threads": 1})
    plan = pipe._engine.executor("train").plan
    kernels = {f"kernel.{n}": 0.5 for n in range(9)}
    found = Recording("train", 1, 1000.0, 4, 32, 1.0, 1.0, 32, trace=Trace(1.0, {**kernels, "read": 0.25}, 1.0))
    parts = analyse(pipe, found).parts
    inner = [part for part in parts if part.estimated]
    alone = [part for part in parts if part.stage is not None and not part.stage.one_example and not part.estimated]
    assert len(inner) + len(alone) >= 2, "one kernel, or one for each"
    several = [node for node in plan.nodes if len(getattr(node, "stages", ())) > 1 and type(node).__name__ == "Kernel"]
    assert bool(inner) == bool(several)
    assert "estimated" in analyse(pipe, found).text() or not several


def test_factors_leave_out_what_users_wrote_and_what_others_took(slept: tuple[Any, Profile]) -> None:
    pipe, made = slept
    factors = fitted_factors(made)
    assert not any("python" in name for name in factors)
    crowded = replace(made.recording, trace=replace(made.recording.trace, cpu=1.0, queued=1.0))
    alone = replace(made.recording, trace=replace(made.recording.trace, cpu=1.0, queued=0.0))
    one, other = (fitted_factors(analyse(pipe, found, {})) for found in (crowded, alone))
    assert other
    assert all(one[name] == pytest.approx(other[name] / 2, rel=0.1) for name in one if other[name] < 50)


def test_other_programs_take_nothing_from_what_a_cache_promises(slept: tuple[Any, Profile]) -> None:
    """The same work, once alone and once beside programs that take three quarters of the cores: a cache spares the waiting, too."""
    pipe, made = slept
    busy = dict(made.recording.trace.busy)
    work = sum(busy.values())
    quiet = replace(made.recording, threads=2, model_ms=None, trace=replace(made.recording.trace, cpu=work, queued=0.0, seconds=0.6 * work))
    slowed = replace(quiet.trace, busy={name: 4 * s for name, s in busy.items()}, queued=3 * work, seconds=0.6 * work + 1.5 * work)
    one, other = (
        next(r.times for r in analyse(pipe, found, {}).remedies if r.setting == "cache: memory")
        for found in (quiet, replace(quiet, trace=slowed))
    )
    assert other == pytest.approx(one, rel=0.05)


def test_a_trace_adds_up_what_each_thread_did() -> None:
    from pipegen.observe import measured

    space = import_module(measured.FORMAT).XSpace()
    plane = space.planes.add(name="/host:CPU")
    names = ["ExecutorState::Process", "examples/element/decode.0/DecodeJpeg:DecodeJpeg", "x/kernel.0/Add:Add", "unknown", "slice.1"]
    names += ["Iterator::Root::BatchV2", "Iterator::Root::BatchV2::ParallelMapV2", "ExecutorState::ProcessAsync::Start"]
    for number, name in enumerate(names):
        plane.event_metadata[number].name = name
    plane.stat_metadata[0].name = "name"

    def events(*given: tuple[int, int, int]) -> Any:
        line = plane.lines.add()
        return [line.events.add(metadata_id=n, offset_ps=start * 10**12, duration_ps=length * 10**12) for n, start, length in given]

    # The executor runs from 0 to 10: 1 s until the decoder starts (2 to 5, in it an unknown part), then a kernel from 6 to 8, and 2 s more.
    events((0, 0, 10), (1, 1, 4), (3, 2, 1), (2, 6, 2), (4, 11, 5))
    # A batch takes 10 s, of which it waits 7 for its input.
    events((5, 0, 10), (6, 1, 7))
    (late,) = events((7, 0, 3))
    late.stats.add(metadata_id=0, str_value="x/kernel.0/PartitionedCall")
    found, runs = measured.busy_seconds(space.SerializeToString(), {"decode.0", "kernel.0"})
    assert found == pytest.approx({"decode.0": 5.0, "kernel.0": 5.0 + 3.0, "batch": 3.0})
    assert runs == {"decode.0": 1, "kernel.0": 1}


def test_threads_that_wait_for_each_other_are_no_other_program() -> None:
    crowded = Usage(seconds=1.0, cpu=2.0, queued=3.0, busy=2.1)
    assert crowded.held == pytest.approx(0.1), "of two cores this process had nearly all"
    assert crowded.share_held(2) == pytest.approx(0.05)
    assert Usage(1.0, 0.5, 0.2, 2.0).held == 0.2, "what others had while nothing here could run is left out"
    assert Usage(1.0, 2.0, 3.0, None).held == 3.0
    before = Usage.now()
    sum(range(10**6))
    used = Usage.now().since(before)
    assert 0 < used.cpu <= used.seconds * 64
    assert used.held <= used.queued


def test_a_function_counts_for_the_operation_that_calls_it() -> None:
    """The body of a branch knows nothing of the stage's scope, runs on another thread, and calls another function."""
    from pipegen.observe import measured

    space = import_module(measured.FORMAT).XSpace()
    plane = space.planes.add(name="/host:CPU")
    names = ["ExecutorState::Process", "ExecutorState::ProcessAsync::Start", "FunctionRun", "cond/DecodeJpeg:DecodeJpeg", "DoneCallback"]
    for number, name in enumerate(names):
        plane.event_metadata[number].name = name
    for number, name in enumerate(["name", "_pt", "_p", "_ct", "_c"]):
        plane.stat_metadata[number].name = name

    def thread(*given: tuple[int, int, int, dict[int, Any]]) -> None:
        line = plane.lines.add()
        for name, start, length, stats in given:
            event = line.events.add(metadata_id=name, offset_ps=start * 10**12, duration_ps=length * 10**12)
            for key, value in stats.items():
                event.stats.add(metadata_id=key, **{"uint64_value" if key else "str_value": value})

    def calls(name: str, start: int, number: int) -> list[tuple[int, int, int, dict[int, Any]]]:
        return [(1, start, 1, {0: name}), (2, start, 1, {1: 2, 2: number})]

    thread((0, 0, 3, {3: 2, 4: 7}), *calls("element/decode.0/switch_case/PartitionedCall", 2, 8), (0, 20, 2, {3: 2, 4: 7}))
    thread((0, 4, 2, {3: 2, 4: 8}), *calls("cond/then/_0/PartitionedCall", 5, 9))
    thread((0, 6, 10, {3: 2, 4: 9}), (3, 7, 8, {}), (4, 16, 1, {3: 2, 4: 9}))
    thread((0, 30, 1, {3: 2, 4: 99}))
    busy, runs = measured.busy_seconds(space.SerializeToString(), {"decode.0"})
    assert busy == pytest.approx({"decode.0": 3 + 2 + 11})
    assert runs == {}, "how often a branch runs says nothing of how often its stage does"


RECIPES: dict[str, list[Any]] = {
    "folder": [{"resize": {"size": 64}}, "random_flip", {"random_rotation": {"degrees": 20}}, {"rescale": {"to": [0, 1]}}],
    "crop": [{"random_resized_crop": {"size": 64}}, "random_flip", {"normalize": {"preset": "torch"}}],
    "policy": [{"resize": {"size": 64}}, {"rand_augment": {"num_ops": 2}}, {"rescale": {"to": [0, 1]}}],
    "boxes": [{"resize": {"size": 64}}, "random_flip", {"random_rotation": {"degrees": 10, "fill": {"constant": 0}}}],
}


def camera_photos(folder: Path, count: int) -> Path:
    """Photographs as cameras write them: with EXIF, so that they are decoded in a branch of their own. Their boxes lie beside them."""
    from PIL import Image

    rng, images, boxes = np.random.default_rng(0), [], []
    for i in range(count):
        noise = Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).resize((500, 375), Image.Resampling.BICUBIC)
        exif = Image.Exif()
        exif[0x0110] = "a camera"
        (folder / "photos" / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        noise.save(folder / "photos" / f"c{i % 2}" / f"{i}.jpg", quality=90, exif=exif)
        images.append({"id": i, "file_name": f"c{i % 2}/{i}.jpg", "width": 500, "height": 375})
        boxes.append({"id": i, "image_id": i, "category_id": 1, "bbox": [20, 30, 200, 100], "area": 20_000, "iscrowd": 0})
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "car"}]}
    (folder / "boxes.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "photos"


def recipe(name: str, folder: Path, **runtime: Any) -> Any:
    source: dict[str, Any] = {"image_folder": {"path": str(folder)}}
    output = {}
    if name == "boxes":
        source = {"coco": {"images": str(folder), "annotations": str(folder.parent / "boxes.json")}}
        output = {"output": {"x": "image", "y": ["boxes", "labels"]}}
    spec = {"pipegen": 1, "source": source, "transforms": RECIPES[name], "batch": {"size": 16}, "epoch": {"steps": 10_000}, **output}
    return pipegen.build(spec, runtime={"cache": "none", **runtime})


@pytest.fixture(scope="module")
def photos_of_cameras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return camera_photos(tmp_path_factory.mktemp("cameras"), 32)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*RECIPES])
def test_the_processor_time_is_in_the_parts(photos_of_cameras: Path, name: str) -> None:
    """On real traces, however busy the machine is: what other programs take counts for none of them."""
    pipe = recipe(name, photos_of_cameras)
    executor = pipe._engine.executor("train")
    batches = iter(pipe.train)
    for _ in range(WARM):
        next(batches)
    seen = []
    for _ in range(5):
        with traced(frozenset(scopes(executor.plan).values())) as trace:
            for _ in range(6):
                next(batches)
        seen.append(trace.unattributed)
    assert statistics.median(seen) <= UNATTRIBUTED, seen


@pytest.mark.nightly
def test_the_promised_gain_of_threads_is_kept(photo_folder: Path, slept: tuple[Any, Profile]) -> None:
    _, made = slept
    promised = next(r for r in made.remedies if r.setting.startswith("threads"))
    wide = napping(photo_folder, threads=int(promised.setting.partition(": ")[2]))
    kept = record(wide, "train", steps=24).rate / made.recording.rate
    assert promised.times / 1.5 < kept < promised.times * 1.5, (promised, kept)


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["folder", "policy", "boxes"])
def test_the_promised_gain_of_a_cache_is_kept(photos_of_cameras: Path, name: str) -> None:
    """By processor time, which other programs hardly change, and in turns. A crop in the decoder leaves nothing to cache."""
    plain, cached = recipe(name, photos_of_cameras), recipe(name, photos_of_cameras, cache="memory")
    promised = statistics.median(
        next(r.times for r in analyse(plain, record(plain, "train", steps=40)).remedies if r.setting == "cache: memory") for _ in range(3)
    )
    batches = {pipe: iter(pipe.train) for pipe in (plain, cached)}

    def cpu(pipe: Any, steps: int) -> float:
        before = time.process_time()
        for _ in range(steps):
            next(batches[pipe])
        return (time.process_time() - before) / steps

    cpu(plain, 20), cpu(cached, 20)
    kept = statistics.median(cpu(plain, 40) / cpu(cached, 80) for _ in range(7))
    assert 0.8 * promised <= kept < 3 * promised, (promised, kept)


def test_costs_are_multiplied_by_what_is_known_of_the_machine(slept: tuple[Any, Profile]) -> None:
    from pipegen.plan.cost import fitted_as, plan_cost

    plan = slept[0]._engine.executor("train").plan
    plain, twice = (plan_cost(plan, Circumstances(factors=factors)) for factors in ({}, {"read": 2.0, "kernel": 3.0}))
    for node, one, other in zip(plan.nodes, plain.nodes, twice.nodes, strict=True):
        expected = {"read": 2.0, "kernel": 3.0}.get(fitted_as(node), 1.0)
        assert other.us == pytest.approx(one.us * expected)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No profiler runs on."""
    yield
    import tensorflow as tf

    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()
