"""What was measured on a machine is kept in a file of its own, moves no number, and is left out where it is damaged or switched off."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from pipegen.phases import machine_settings as kept
from pipegen.phases.compilation import load, optimise
from pipegen.phases.machine_settings import Machine, Tuned, keep_machine, machine, machine_file
from pipegen.phases.specs import tuned_key, untuned, with_tuned
from pipegen.plan.nodes import Cache

if TYPE_CHECKING:
    from pathlib import Path

SPEC: dict[str, Any] = {
    "pipegen": 1,
    "source": {"image_folder": {"path": "photos/", "labels": "none"}},
    "splits": {"parts": {"train": 1000}},
    "transforms": [{"resize": {"size": 32}}, "random_flip"],
}


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(kept.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = machine_file()
    assert file is not None
    assert file.parent == tmp_path / "pipegen" / "machines"
    return file


def test_what_is_kept_is_read_again(own_file: Path) -> None:
    assert machine() == Machine()
    known = Machine().with_factors({"read": 2.0}, "2026-11-23").with_tuned("abc", Tuned(threads=4, cache="none", times=1.5, examples=9))
    assert keep_machine(known) == own_file
    assert machine() == known
    later = known.with_factors({"kernel": 0.5}, "2026-11-24")
    keep_machine(later)
    assert machine().factors == {"read": 2.0, "kernel": 0.5}, "what was not measured again stays"
    assert own_file.stat().st_mode & 0o077 == 0
    assert [f.name for f in own_file.parent.iterdir()] == [own_file.name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 2, "factors": {}, "tuned": {}, "fitted": ""}',
        '{"version": 1, "factors": {"read": -1}, "tuned": {}, "fitted": ""}',
        '{"version": 1, "factors": {"read": NaN}, "tuned": {}, "fitted": ""}',
        '{"version": 1, "factors": {"read": "x"}, "tuned": {}, "fitted": ""}',
        '{"version": 1, "factors": [], "tuned": {}, "fitted": ""}',
        '{"version": 1, "factors": {}, "fitted": "", "tuned": {"a": {"threads": "rm -rf"}}}',
        '{"version": 1, "factors": {}, "fitted": "", "tuned": {"a": {"threads": true}}}',
        '{"version": 1, "factors": {}, "fitted": "", "tuned": {"a": {"prefetch": 100000000}}}',
        '{"version": 1, "factors": {}, "fitted": "", "tuned": {"a": {"cache": {"disk": "/"}}}}',
        '{"version": 1, "factors": {}, "fitted": "", "tuned": {"a": {"more": 1}}}',
        "[" * 100_000,
        "x" * (2 << 20),
    ],
)
def test_a_damaged_file_is_left_out_with_a_note(own_file: Path, content: str, caplog: pytest.LogCaptureFixture) -> None:
    keep_machine(Machine({"read": 2.0}))
    own_file.write_text(content)
    with caplog.at_level(logging.WARNING, "pipegen"):
        assert machine() == Machine()
        assert machine() == Machine()
    assert len(caplog.records) == 1
    assert str(own_file) in caplog.text
    assert "ignoring the measurements" in caplog.text


def test_it_can_be_off_or_elsewhere(own_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_machine(Machine({"read": 2.0}))
    with kept.ignored():
        assert machine() == Machine()
    monkeypatch.setenv(kept.VARIABLE, "off")
    assert machine() == Machine()
    assert machine_file() is None
    assert keep_machine(Machine({"read": 3.0})) is None
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "own" / "mine.json"))
    assert machine() == Machine()
    assert keep_machine(Machine({"read": 3.0})) == tmp_path / "own" / "mine.json"
    assert machine().factors == {"read": 3.0}
    monkeypatch.delenv(kept.VARIABLE)
    assert machine().factors == {"read": 2.0}


def test_another_machine_has_another_file(own_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("available_cores", 77), ("_processor", "another one")):
        with monkeypatch.context() as patched:
            patched.setattr(kept, name, lambda value=value: value)
            assert machine_file() != own_file


def cached(**context: Any) -> tuple[bool, str]:
    """Whether `cache: auto` caches, and why."""
    spec = load(SPEC)
    done = optimise(spec.model, spec.plans["train"], num_examples=1000, file_bytes=80_000.0, **context)
    note = next(record.notes for record in done.records if record.name == "place_cache")
    return any(isinstance(n, Cache) for n in done.plan.nodes), "; ".join(note)


def test_auto_decides_by_what_the_machine_costs() -> None:
    assert cached(ram_budget=1 << 30)[0]
    keep_machine(Machine({"cache": 100.0, "read": 0.02, "decode.decode": 0.02, "apply.resize": 0.02}))
    assert not cached(ram_budget=1 << 30)[0]


def test_auto_does_what_tune_has_found_where_it_fits() -> None:
    without, why = cached(ram_budget=1 << 30, prefers="none")
    assert not without
    assert "`pipegen tune` found" in why
    assert cached(ram_budget=1 << 30, prefers="memory")[0]
    assert not cached(ram_budget=1 << 10, prefers="memory")[0], "a preference takes no memory that is not there"


def test_explain_says_that_costs_are_fitted() -> None:
    from pipegen.phases.machine_settings import circumstances
    from pipegen.views.explanation import Known, explain_text

    spec = load(SPEC)
    plain = explain_text(spec.model, spec.compiled, {"train": Known(given=circumstances(spec.model, 2))})
    keep_machine(Machine({"decode.decode": 2.0}, "2026-11-23"))
    fitted = explain_text(spec.model, spec.compiled, {"train": Known(given=circumstances(spec.model, 2))})
    assert "fitted to this machine" in fitted
    assert "fitted" not in plain
    assert plain != fitted


def test_settings_are_taken_where_the_spec_leaves_them_open() -> None:
    spec = load(SPEC)
    keep_machine(
        Machine().with_tuned(tuned_key(spec), Tuned(threads=7, prefetch=5, cache="memory", times=1.3, low=1.2, high=1.4, examples=1000))
    )
    taken = with_tuned(spec, 1000)
    assert (taken.model.runtime.threads, taken.model.runtime.prefetch, taken.model.runtime.cache) == (7, 5, "auto")
    assert taken.tuned is not None
    assert taken.tuned.settings == {"cache": "memory", "threads": 7, "prefetch": 5}
    assert "`pipegen tune` found on this machine" in taken.tuned.says
    assert taken.hash == spec.hash
    assert untuned(taken).model == spec.model
    assert with_tuned(spec, 2000) is spec, "another data set"
    assert with_tuned(load(SPEC | {"seed": 1}), 1000).tuned is None, "another spec"
    own = load(SPEC, runtime={"threads": 2, "cache": "none"})
    assert with_tuned(own, 1000) is own, "what was found beside other settings"
    keep_machine(machine().with_tuned(tuned_key(own), Tuned(prefetch=5, examples=1000)))
    part = with_tuned(own, 1000)
    assert (part.model.runtime.threads, part.model.runtime.prefetch) == (2, 5)
    assert part.tuned is not None
    assert part.tuned.settings == {"prefetch": 5}
    assert with_tuned(spec, 1000).tuned == taken.tuned, "which is kept beside the other answer"


def test_the_file_says_which_machine_it_is_of(own_file: Path) -> None:
    keep_machine(Machine({"read": 2.0}))
    content = json.loads(own_file.read_text())
    assert content["version"] == 1
    assert set(content["machine"]) == {"pipegen", "cores", "processor"}


@pytest.mark.tf
@pytest.mark.nightly
def test_build_takes_them_and_no_number_moves(photo_folder: Path) -> None:
    import pickle
    from pipes import epoch_of, same, sections

    import pipegen

    spec = sections(photo_folder)
    plain = pipegen.build(spec, runtime={"jit": "never"})
    before = epoch_of(plain, 1)
    keep_machine(
        Machine().with_tuned(tuned_key(plain.spec), Tuned(threads=3, prefetch=4, cache="none", examples=plain.num_examples("train")))
    )
    tuned = pipegen.build(spec, runtime={"jit": "never"})
    assert tuned._engine.executor("train").setting.threads == 3
    assert "runtime: cache: none, threads: 3, prefetch: 4, which `pipegen tune` found" in tuned.explain()
    assert "`pipegen tune`" not in plain.explain()
    same(before, epoch_of(tuned, 1))
    keep_machine(Machine())
    again = pickle.loads(pickle.dumps(tuned))
    assert again.spec.model.runtime.threads == "auto", "another machine decides for itself"
