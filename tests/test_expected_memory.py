"""Memory is checked before the run: the finding and its ways out, the limits that it knows, and the estimate against what a run takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pipegen
from pipegen.cli.checking import check_data
from pipegen.diagnostics.diagnostic import Advice
from pipegen.memory import granted_memory
from pipegen.phases.compilation import bind, collect_data, compile_plans, inspect, load
from pipegen.phases.memory_budget import TENSORFLOW, memory_findings, memory_held

if TYPE_CHECKING:
    from pipegen.diagnostics.diagnostic import Diagnostic

sys.path.append(str(Path(__file__).parent / "diagnostics"))
from following import followed

MIB = 2**20
FLOATS = [{"resize": {"size": 224}}, "random_flip", {"rescale": {"to": [0, 1]}}]


def found(sections: dict[str, Any], root: Path = Path("/")) -> list[Diagnostic]:
    spec = load(sections)
    manifest = collect_data(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pipegen.phases.memory_budget.granted_memory", lambda: granted_memory(root))
        return memory_findings(spec, manifest, compile_plans(spec, manifest, bind(spec, manifest).plans))


def files(folder: Path, num_bytes: int) -> dict[str, Any]:
    """A source of 64 files of so many bytes each, which are never decoded."""
    for i in range(64):
        path = folder / "data" / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.truncate(num_bytes)
    return {"pipegen": 1, "source": {"image_folder": {"path": str(folder / "data")}}}


def limited(root: Path, num_bytes: int, version: int) -> Path:
    """A machine of 64 GiB whose control group grants so many bytes."""
    name = "memory.max" if version == 2 else "memory/memory.limit_in_bytes"
    own = "0::/\n" if version == 2 else "4:memory:/\n"
    told = {"proc/meminfo": f"MemTotal: {64 * 2**20} kB\n", "proc/self/cgroup": own, f"sys/fs/cgroup/{name}": f"{num_bytes}\n"}
    for at, text in told.items():
        (root / at).parent.mkdir(parents=True, exist_ok=True)
        (root / at).write_text(text)
    return root


CASES: dict[str, tuple[int, dict[str, Any], str, str]] = {
    "batches": (9000, {"batch": {"size": 32}, "runtime": {"threads": 4, "ram_budget": "100MiB"}}, "batch.size", "being made on 4 threads"),
    "prefetch": (9000, {"batch": {"size": 2}, "runtime": {"prefetch": 90, "ram_budget": "64MiB"}}, "runtime.prefetch", "that wait for the"),
    "cache": (9000, {"batch": {"size": 1}, "runtime": {"cache": "memory", "ram_budget": "10MiB"}}, "runtime.cache", "of 64 examples"),
    "examples": (9 * MIB, {"batch": {"size": 1}, "runtime": {"threads": 8, "ram_budget": "64MiB"}}, "transforms", "decoded on 8 threads"),
}


@pytest.mark.parametrize("part", CASES)
def test_the_largest_part_is_named_and_each_way_out_works(part: str, tmp_path: Path) -> None:
    file, own, place, words = CASES[part]
    sections = {**files(tmp_path, file), "transforms": FLOATS, **own}
    (finding,) = found(sections)
    assert (finding.code, finding.labels[0].path) == ("PG425", place)
    assert words in finding.message
    assert re.search(r"hold [\d.]+ MiB of memory, and `ram_budget` is [\d.]+ MiB; the largest part, [\d.]+ MiB, is the ", finding.message)
    ways = [line for line in finding.help if isinstance(line, Advice)]
    assert ways
    for advice in ways:
        assert found(followed(sections, finding, advice)) == [], advice


def test_arrays_are_told_of(tmp_path: Path) -> None:
    import numpy as np

    np.savez_compressed(tmp_path / "a.npz", image=np.zeros([500, 64, 64, 3], np.uint8))
    source = {"arrays": {"path": str(tmp_path / "a.npz"), "features": {"image": {"kind": "image"}}}}
    sections = {
        "pipegen": 1,
        "source": source,
        "output": {"y": None},
        "batch": {"size": 4},
        "runtime": {"ram_budget": "6MiB", "threads": 1},
    }
    (finding,) = found(sections)
    assert "5.9 MiB, is what the source keeps in memory" in finding.message
    *ways, stored = finding.help
    assert ".npy" in stored
    for advice in ways:
        assert isinstance(advice, Advice)
        assert found(followed(sections, finding, advice)) == []


def test_where_nothing_alone_is_enough_it_is_said_what_is(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    sections = {**files(tmp_path, 9000), "transforms": FLOATS, "batch": {"size": 32}, "runtime": {"threads": 64, "prefetch": 64}}
    plain = load({**sections, "batch": {"size": 1}, "runtime": {"threads": 1, "prefetch": 1, "cache": "none"}})
    manifest = collect_data(plain)
    least = memory_held(plain, manifest, compile_plans(plain, manifest, bind(plain, manifest).plans)).bytes
    machine = limited(tmp_path, TENSORFLOW + least, 2)
    (finding,) = found(sections, machine)
    (together,) = finding.help
    assert isinstance(together, Advice)
    assert "batch: {size: 1}" in together
    assert found(followed(sections, finding, together), machine) == []
    (finding,) = found(sections, limited(tmp_path, TENSORFLOW + least - 1, 2))
    assert finding.help == ("make the images smaller, or ask for a machine with more memory",)


@pytest.mark.parametrize("version", [1, 2])
def test_the_limit_of_the_control_group_counts(version: int, tmp_path: Path) -> None:
    sections = {**files(tmp_path, 9000), "transforms": FLOATS, "batch": {"size": 32}, "runtime": {"threads": 4}}
    assert found(sections, limited(tmp_path, 4 << 30, version)) == []
    machine = limited(tmp_path, 600 * MIB, version)
    assert granted_memory(machine) == (600 * MIB, "the control group of this process grants")
    (finding,) = found(sections, machine)
    assert "the control group of this process grants 600 MiB, of which TensorFlow itself takes about 512 MiB" in finding.message
    for advice in finding.help:
        assert isinstance(advice, Advice)
        assert "ram_budget" not in advice
        assert found(followed(sections, finding, advice), machine) == []
    assert found({**sections, "runtime": {"threads": 4, "ram_budget": "64MiB"}}, machine)[0].message.count("`ram_budget` is 64 MiB") == 1


def test_the_machine_counts_where_nothing_else_limits(tmp_path: Path) -> None:
    assert granted_memory(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 614400 kB\nMemFree: 1 kB\n")
    sections = {**files(tmp_path, 9000), "transforms": FLOATS, "batch": {"size": 32}, "runtime": {"threads": 4}}
    assert "this machine has 600 MiB" in found(sections, tmp_path)[0].message
    assert found({**sections, "batch": {"size": 2}, "runtime": {"threads": 1}}, tmp_path) == []


def test_hosts_share_a_batch_and_its_memory(tmp_path: Path) -> None:
    sections = {**files(tmp_path, 9000), "transforms": FLOATS, "batch": {"size": 32}}
    given = [{"threads": 4, "ram_budget": "150MiB", "shard": shard} for shard in ("none", {"index": 0, "count": 4})]
    assert [len(found({**sections, "runtime": runtime})) for runtime in given] == [1, 0]


def test_validate_tells_and_a_comment_silences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.cli.checking._decode", lambda bound, sample: ([], 0))
    spec, sections = tmp_path / "s.pipegen.yaml", {**files(tmp_path, 9000), "transforms": FLOATS, "runtime": {"ram_budget": "1MiB"}}
    for comment in ("", "  # pipegen: ignore[PG425]"):
        spec.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in sections.items()) + f"batch:\n  size: 16{comment}\n")
        inspection = inspect(spec)
        assert inspection.spec is not None
        seen, _ = check_data(inspection, inspection.spec, 2)
        assert ({d.code for d in seen} & {"PG425", "PG511"}) == (set() if comment else {"PG425"}), seen


def test_validate_tells_of_stages_and_of_a_cache_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipegen.cli.checking._decode", lambda bound, sample: ([], 0))

    def seen(**own: Any) -> list[Diagnostic]:
        inspection = inspect({**files(tmp_path, 9000), "transforms": FLOATS, "batch": {"size": 1}} | own)
        assert inspection.spec is not None, list(inspection.diagnostics)
        return check_data(inspection, inspection.spec, 2)[0]

    stages = [{"epochs": 1}, {"epochs": 1, "batch": 32}]
    (late,) = (d for d in seen(runtime={"threads": 1, "ram_budget": "64MiB"}, stages=stages) if d.code == "PG425")
    assert [label.path for label in late.labels][1:] == ["stages[1]"]
    (full,) = (d for d in seen(runtime={"cache": "memory", "ram_budget": "1MiB"}) if d.code == "PG410")
    assert "caching split `train` in memory needs 9.2 MiB" in full.message


@pytest.mark.tf
def test_build_tells_and_a_comment_silences(photo_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sections = {"pipegen": 1, "source": {"image_folder": {"path": str(photo_folder)}}, "transforms": FLOATS, "batch": {"size": 16}}
    spec = tmp_path / "s.pipegen.yaml"
    spec.write_text("".join(f"{key}: {json.dumps(value)}  # pipegen: ignore[PG425]\n" for key, value in sections.items()))
    with caplog.at_level("WARNING", "pipegen"):
        pipegen.build(sections, runtime={"ram_budget": "20MiB"})
        pipegen.build(spec, runtime={"ram_budget": "20MiB"})
    (line,) = (r.getMessage() for r in caplog.records if r.getMessage().startswith("PG425"))
    assert re.search(r"^PG425 the spec: training is expected to hold .*: make batches smaller: `batch: \{size: \d+\}`$", line)


MEASURED = """
import sys, threading, time
from pathlib import Path
import pipegen

def taken():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024

def run(spec, epochs):
    pipe = pipegen.build(spec)
    for _ in range(epochs):
        for _ in pipe.train:
            time.sleep(0.02)
    return pipe

spec, steps = eval(sys.argv[1]), {"transforms": [{"resize": {"size": 8}}, {"random_rotation": {"degrees": 10}}], "batch": {"size": 4}}
run({**spec, **steps, "runtime": {}}, 1)
before, high, over = taken(), [0], []

def watch():
    while not over:
        high[0] = max(high[0], taken())
        time.sleep(0.005)

thread = threading.Thread(target=watch)
thread.start()
pipe = run(spec, 2)
over.append(True)
thread.join()
from pipegen.phases.memory_budget import memory_held
print("FOUND", high[0] - before, memory_held(pipe.spec, pipe._manifest, pipe._compiled.splits).bytes)
"""


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it is read from /proc")
@pytest.mark.parametrize("own", [
    {"runtime": {"cache": "none", "threads": 2}},
    {"runtime": {"cache": "memory", "threads": 2}},
    {"runtime": {"cache": "none", "threads": 2, "prefetch": 6}},
    {"runtime": {"cache": "none", "threads": 2, "jit": "never"}},
], ids=str)  # fmt: skip
def test_a_run_takes_about_what_is_expected(own: dict[str, Any], tmp_path: Path) -> None:
    """Beside a quarter of a gigabyte that compilers and threads take, whatever the batches are."""
    from pipes import picture

    from PIL import Image

    for i in range(240):
        path = tmp_path / "data" / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(i % 8, 96, 128)).save(path)
    steps = [{"resize": {"size": 448}}, "random_flip", {"random_rotation": {"degrees": 9}}, {"random_contrast": {"factor": 0.2}}]
    spec = {
        "pipegen": 1,
        "source": {"image_folder": {"path": str(tmp_path / "data")}},
        "transforms": [*steps, {"rescale": {"to": [0, 1]}}],
        "batch": {"size": 40},
    }
    done = subprocess.run([sys.executable, "-c", MEASURED, repr(spec | own)], capture_output=True, text=True, check=True, timeout=500)
    taken, expected = map(int, done.stdout.split("FOUND")[1].split())
    assert expected > 500 * MIB
    assert 0.7 * expected < taken < 1.2 * expected + 300 * MIB, (taken / MIB, expected / MIB)
