"""`tune` takes what is faster beyond the noise, and writes it into a spec without touching anything else."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.diagnostics.fixes import apply_fixes
from pipegen.observe import tune as tuning
from pipegen.phases.compilation import load
from pipegen.spec.runtime_fix import runtime_fix

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "pipegen: 1\nsource: {image_folder: {path: photos/}}  # of the garden\nsplits: {parts: {train: 0.5, validation: 0.5}}\n"
HEAD += "transforms: [{resize: {size: 8}}]\n"


@pytest.mark.parametrize(
    ("runtime", "wanted"),
    [
        ("", "runtime:\n  threads: 4\n  cache: none\n"),
        ("runtime: {cache: auto}  # fast\n", "runtime: {threads: 4, cache: none}  # fast\n"),
        ("runtime: {}\n", "runtime: {threads: 4, cache: none}\n"),
        (
            "runtime:\n  # of us\n  cache: auto  # why\n  jit: never\n",
            "runtime:\n  # of us\n  threads: 4\n  cache: none  # why\n  jit: never\n",
        ),
        ("runtime:\n    jit: auto\nseed: 3\n", "runtime:\n    threads: 4\n    cache: none\n    jit: auto\nseed: 3\n"),
        ("seed: 3", "seed: 3\nruntime:\n  threads: 4\n  cache: none\n"),
        ("runtime:\r\n  jit: auto\r\n", "runtime:\r\n  threads: 4\r\n  cache: none\r\n  jit: auto\r\n"),
    ],
)
def test_settings_go_into_the_file_and_the_rest_stays(tmp_path: Path, runtime: str, wanted: str) -> None:
    file = tmp_path / "a.pipegen.yaml"
    text = (HEAD.replace("\n", "\r\n") if "\r" in runtime else HEAD) + runtime
    file.write_text(text, newline="")
    spec = load(file)
    fix = runtime_fix(spec.loaded, {"threads": 4, "cache": "none"})
    assert fix is not None
    after = apply_fixes(text, [fix], spec.loaded.file or "")[0]
    assert after.replace("\r\n", "\n") == (HEAD + wanted).replace("\r\n", "\n")
    file.write_text(after, newline="")
    again = load(file)
    assert (again.model.runtime.threads, again.model.runtime.cache) == (4, "none")
    assert again.hash == spec.hash


def test_what_comes_from_a_base_is_said_in_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(HEAD + "runtime: {cache: auto, jit: never}\n")
    file = tmp_path / "own.pipegen.yaml"
    file.write_text("extends: base.yaml\nseed: 3\n")
    spec = load(file)
    fix = runtime_fix(spec.loaded, {"cache": "none"})
    assert fix is not None
    file.write_text(apply_fixes(file.read_text(), [fix], spec.loaded.file or "")[0])
    assert (load(file).model.runtime.cache, load(file).model.runtime.jit) == ("none", "never")
    assert (
        runtime_fix(
            load({"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}]}).loaded, {"threads": 1}
        )
        is None
    )


class Fake:
    """Stands in for a running pipeline whose rate depends on its settings, with noise."""

    made: list[Fake] = []
    gains: dict[str, float] = {}
    noise = 0.02
    held: tuple[float, ...] = (0.0,)
    """The share of the cores that other programs hold, turn by turn."""

    def __init__(self, pipe: Any, split: str, nap: float, settings: dict[str, Any] | None = None) -> None:
        self.pipe, self.settings = pipe, settings or {}
        self._turns = itertools.count()
        Fake.made.append(self)

    def turn(self, seconds: float) -> tuning.Turn:
        base = 100.0
        for name, value in self.settings.items():
            base *= self.gains.get(f"{name}: {value}", 1.0)
        number = next(self._turns)
        return tuning.Turn(base * (1 + self.noise * (1, -1, 0.5, -0.5)[number % 4]), 1e6 / base, self.held[number % len(self.held)])


class Pipe:
    """Stands in for a pipeline that caches nothing."""

    splits = ("train",)

    def __init__(self, settings: Any, **runtime: Any) -> None:
        spec = {"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": [{"resize": {"size": 8}}]}
        self.spec = load(spec, runtime=runtime)
        from pipegen.phases.compilation import optimise

        model = self.spec.model.model_copy(update={"runtime": self.spec.model.runtime.model_copy(update=dict(settings))})
        done = optimise(model, self.spec.plans["train"], num_examples=100, ram_budget=1 << 30, cache=settings.get("cache") == "memory")
        self._compiled = type("C", (), {"splits": {"train": done}})()

    def num_examples(self, split: str) -> int:
        return 100


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_Running", Fake)
    monkeypatch.setattr(tuning, "available_cores", lambda: 4)
    monkeypatch.setattr(Fake, "gains", {})
    monkeypatch.setattr(Fake, "noise", 0.02)
    monkeypatch.setattr(Fake, "held", (0.0,))


def tune(build: Any, disk: str | None = None) -> tuning.Tuning:
    return tuning.tune(build, "train", disk=disk, model_ms=0, turns=7, seconds=1, said=lambda _: None)


@pytest.mark.usefixtures("faked")
def test_the_fastest_settings_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "gains", {"cache: memory": 2.0, "threads: 8": 1.5, "threads: 16": 1.55, "prefetch: 4": 0.5})
    found = tune(lambda settings: Pipe(settings))
    assert found.best == {"cache": "memory", "threads": 8}
    assert found.tuned.settings == {"cache": "memory", "threads": 8}
    assert found.tuned.times == pytest.approx(3.0, rel=0.05)
    assert found.tuned.low <= found.tuned.times <= found.tuned.high
    assert "cache: memory, threads: 8 is " in found.sentence
    assert found.sentence in found.text()
    assert found.as_json()["best"] == found.best
    assert found.trials[0].cpu_us == pytest.approx(1e4)
    assert found.trials[1].cpu_us == pytest.approx(5e3)
    assert "processor µs an example" in found.text()
    tried = [trial.setting for trial in found.trials]
    assert tried[1:] == [
        "cache: memory", "threads: 2", "threads: 5", "threads: 8", "threads: 16", "prefetch: 1", "prefetch: 4", "prefetch: 8",
        "cache: memory, threads: 8, against pipegen's own choice",
    ]  # fmt: skip


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
def test_noise_is_no_gain(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    monkeypatch.setattr(Fake, "noise", noise)
    monkeypatch.setattr(Fake, "gains", {"threads: 8": 1.01})
    found = tune(lambda settings: Pipe(settings))
    assert found.best == {}
    assert not found.tuned.settings
    assert "as fast as anything" in found.sentence


@pytest.mark.usefixtures("faked")
@pytest.mark.parametrize(
    ("held", "decided"), [((0.05, 0.09), True), ((0.11, 0, 0, 0, 0, 0, 0), True), ((0.5, 0.5, 0.5, 0, 0, 0, 0), False)]
)
def test_turns_beside_other_programs_do_not_count(monkeypatch: pytest.MonkeyPatch, held: tuple[float, ...], decided: bool) -> None:
    monkeypatch.setattr(Fake, "gains", {"threads: 8": 1.5})
    monkeypatch.setattr(Fake, "held", held)
    found = tune(lambda settings: Pipe(settings))
    assert found.best == ({"threads": 8} if decided else {})
    assert bool(found.undecided) is not decided
    assert bool(found.tuned.settings) is decided
    if not decided:
        assert found.sentence.startswith("undecided: other programs held more than 10% of the cores")
        assert "threads: 8 is undecided: " in found.text()
        assert len(found.trials) == 1


@pytest.mark.usefixtures("faked")
def test_a_disturbed_turn_is_dropped_and_not_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the one turn that other programs disturb more threads win a hundred times as much."""
    calm = Fake.turn

    def turn(self: Fake, seconds: float) -> tuning.Turn:
        found = calm(self, seconds)
        return tuning.Turn(100 * found.rate, found.cpu_us, 0.8) if found.held else found

    monkeypatch.setattr(Fake, "turn", turn)
    monkeypatch.setattr(Fake, "held", (0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0))
    found = tune(lambda settings: Pipe(settings, cache="none", prefetch="none"))
    assert found.best == {}
    assert not found.undecided
    assert all(trial.rate < 200 for trial in found.trials)


@pytest.mark.usefixtures("faked")
def test_what_the_spec_says_is_not_tried() -> None:
    found = tune(lambda settings: Pipe(settings, threads=2, prefetch="none", cache="none"))
    assert len(found.trials) == 1


@pytest.mark.usefixtures("faked")
def test_a_disk_is_tried_on_request_and_is_for_the_spec_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "gains", {"cache: {'disk': '/ssd'}": 3.0})
    assert tune(lambda settings: Pipe(settings)).best == {}
    found = tune(lambda settings: Pipe(settings), "/ssd")
    assert found.best == {"cache": {"disk": "/ssd"}}
    assert not found.tuned.settings, "`auto` never writes to a disk"
    assert "cache: {disk: /ssd} is 3.0" in found.sentence


@pytest.mark.usefixtures("faked")
def test_what_cannot_be_built_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(settings: Any) -> Any:
        if settings.get("cache") == "memory":
            raise ValueError("it does not fit\nat all")
        return Pipe(settings)

    found = tune(build)
    assert found.notes == ["cache: memory was not tried: it does not fit"]
    monkeypatch.setattr(tuning, "ram_budget", lambda runtime: 100)
    assert "more than half of the RAM budget" in tune(lambda settings: Pipe(settings)).notes[0]
