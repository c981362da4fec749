"""Each line of the examination, on made-up machines: files of the system below a root, TensorFlow's answers by hand."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pipegen.observe import hardware, software
from pipegen.observe.doctor import CHECKS
from pipegen.observe.examination import Examination, Line, Machine, examine, worst

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30
ANSWERS: dict[str, Any] = {
    "tensorflow": "2.21.0",
    "seconds": 6.0,
    "cpu_s": 3.0,
    "build": {"cuda": "12.5.1", "cudnn": "9", "is_cuda": True},
    "keras": "3.15.1",
    "keras_backend": "tensorflow",
    "onednn": True,
    "driver_cuda": None,
    "gpus": [],
    "xla": True,
    "xla_seconds": 0.3,
}
CPU = "processor\t: {n}\nmodel name\t: Some CPU\nflags\t\t: fpu avx avx2 fma\n\n"
GOOD = {
    "proc/cpuinfo": "".join(CPU.replace("{n}", str(n)) for n in range(8)),
    "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-3,6-7\n",
    "proc/meminfo": "MemTotal:       33554432 kB\nMemAvailable:   16777216 kB\n",
    "proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max open files            65536                unlimited            files\n",
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "dev/shm/x": "",
}
CARD = {"sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n", "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n"}
DRIVER = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 1\nGCC version: 12.2.0\n"}
NODE = {"dev/nvidia0": ""}


def machine(root: Path, *files: dict[str, str], **environment: str) -> Machine:
    for name, text in {name: text for several in (GOOD, *files) for name, text in several.items()}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine(root, environment)


def lines(root: Path, *files: dict[str, str], answers: dict[str, Any] | None = None, **environment: str) -> dict[str, Line]:
    found = Examination(machine(root, *files, **environment), answered=ANSWERS if answers is None else answers)
    without = tuple(check for check in CHECKS if check not in (software.check_tensorflow_io, software.check_extras))
    return {line.about: line for line in examine(found, without)}


def test_a_good_machine_has_nothing_in_its_way(tmp_path: Path) -> None:
    found = lines(tmp_path)
    assert {line.about: line.verdict for line in found.values() if line.verdict in ("warning", "error")} == {}
    assert found["cores"].fact == "8 in the machine, 6 by affinity, control groups v2 grant all: the pipeline takes 6"
    assert found["memory"].fact == "32 GiB, 16 GiB available"
    assert found["vector units"].fact == "avx, avx2, fma (Some CPU)"
    assert found["open files"].fact == "65,536 at a time, and up to any number on request"
    assert found["GPU"].fact == "none: this machine has no NVIDIA card; TensorFlow is built for CUDA 12.5.1"
    assert worst(found.values()) in ("ok", "note")


@pytest.mark.parametrize(("files", "about", "fact", "verdict", "remedy"), [
    ({"sys/fs/cgroup/cpu.max": "250000 100000"}, "cores", "v2 grant 2.5: the pipeline takes 3", "ok", ""),
    ({"sys/fs/cgroup/cpu.max": "50000 100000"}, "cores", "grant 0.5: the pipeline takes 1", "note", "two or more"),
    ({"sys/fs/cgroup/cpu.max": "200000 100000", "sys/fs/cgroup/cpu.stat": "nr_periods 100\nnr_throttled 40"},
     "throttling", "throttled in 40% of its periods", "warning", "raise the quota"),
    ({"sys/fs/cgroup/memory.max": str(4 * GIB), "sys/fs/cgroup/memory.current": str(3 * GIB)},
     "memory", "control groups grant 4 GiB, of which 1 GiB are left", "warning", "more memory"),
    ({"proc/loadavg": "3.20 1.00 0.50 1/200 4000"}, "load", "3.2 programs ran or waited for a core", "ok", ""),
    ({"proc/loadavg": "20.00 9.00 5.00 9/200 4000"}, "load", "on 8 cores: the machine is busy", "warning", "before you measure"),
    ({"proc/meminfo": ""}, "memory", "unknown", "note", ""),
    ({"proc/self/limits": "Max open files            1024                 524288               files\n"},
     "open files", "1,024 at a time", "warning", "ulimit -n 4096"),
    ({"proc/self/limits": "Max open files            1024                 1024               files\n"},
     "open files", "1,024 at a time", "warning", "LimitNOFILE"),
    ({"proc/self/limits": ""}, "open files", "unknown", "note", ""),
    ({"proc/cpuinfo": "processor: 0\nflags: fpu avx\n"}, "vector units", "avx, but no AVX2", "warning", "-cpu host"),
    ({"proc/cpuinfo": "processor: 0\nflags: fpu sse4_2\n"}, "vector units", "no AVX", "error", "TensorFlow's builds need AVX"),
    ({"proc/cpuinfo": "processor: 0\nFeatures: fp asimd sve\n"}, "vector units", "asimd, sve", "ok", ""),
    ({"proc/cpuinfo": ""}, "vector units", "unknown", "note", ""),
])  # fmt: skip
def test_machines_that_lack_something(tmp_path: Path, files: dict[str, str], about: str, fact: str, verdict: str, remedy: str) -> None:
    line = lines(tmp_path, files)[about]
    assert fact in line.fact
    assert line.verdict == verdict
    assert remedy in line.remedy
    assert bool(line.remedy) == (verdict in ("warning", "error") or bool(remedy)), "whoever complains knows what to do"


def test_groups_of_version_1(tmp_path: Path) -> None:
    groups = {
        "proc/self/cgroup": "3:cpu,cpuacct:/box\n2:memory:/box\n",
        "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(8 * GIB),
        "sys/fs/cgroup/memory/box/memory.usage_in_bytes": str(GIB),
    }
    made = machine(tmp_path, groups)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").unlink()
    found = {line.about: line for line in examine(Examination(made, answered=ANSWERS), (hardware.check_cores, hardware.check_memory))}
    assert "control groups v1 grant 3: the pipeline takes 3" in found["cores"].fact
    assert "control groups grant 8 GiB, of which 7 GiB are left" in found["memory"].fact


def test_no_shared_memory_is_a_note(tmp_path: Path) -> None:
    made = machine(tmp_path)
    (tmp_path / "dev/shm/x").unlink()
    (tmp_path / "dev/shm").rmdir()
    (line,) = examine(Examination(made, answered=ANSWERS), (hardware.check_shared_memory,))
    assert (line.fact, line.verdict) == ("not mounted", "note")


@pytest.mark.parametrize(("files", "environment", "answers", "fact", "verdict", "remedy"), [
    ([CARD], {}, {}, "1 NVIDIA card and no driver", "error", "install NVIDIA's driver"),
    ([CARD, DRIVER], {}, {}, "the machine's driver is 570.86.15, and no card is in /dev", "error", "--gpus all"),
    ([DRIVER, NODE], {"CUDA_VISIBLE_DEVICES": ""}, {}, "CUDA_VISIBLE_DEVICES='' hides them", "note", "unset"),
    ([CARD, DRIVER, NODE], {}, {"driver_cuda": 12080}, "does not find its CUDA libraries", "error", "tensorflow[and-cuda]"),
    ([CARD, DRIVER, NODE], {}, {"driver_cuda": 11040}, "too old, which takes CUDA up to 11.4", "error", "driver to one for CUDA 12"),
    ([CARD, DRIVER, NODE], {}, {"build": {"cuda": None, "cudnn": None, "is_cuda": False}}, "for processors only", "error", "and-cuda"),
    ([CARD, DRIVER, NODE], {}, {"gpus": ["NVIDIA H200"], "driver_cuda": 12080},
     "1: NVIDIA H200; TensorFlow is built for CUDA 12.5.1, driver 570.86.15, which takes CUDA up to 12.8", "ok", ""),
    ([CARD, DRIVER, NODE], {}, {"gpus": ["NVIDIA H200"], "driver_cuda": 11080}, "up to 11.8", "warning", "CUDA 12"),
])  # fmt: skip
def test_gpus(tmp_path: Path, files: Any, environment: Any, answers: Any, fact: str, verdict: str, remedy: str) -> None:
    (line,) = hardware.check_cuda(Examination(machine(tmp_path, *files, **environment), answered={**ANSWERS, **answers}))
    assert fact in line.fact
    assert line.verdict == verdict
    assert remedy in line.remedy


def test_a_card_of_another_kind_is_none(tmp_path: Path) -> None:
    audio = {name: text.replace("0x0302", "0x0403") for name, text in CARD.items()}
    assert "no NVIDIA card" in lines(tmp_path, audio)["GPU"].fact


def test_what_tensorflow_does_not_come_to_is_a_line_each(tmp_path: Path) -> None:
    broken = lines(tmp_path, answers={"doing": "importing TensorFlow", "failed": "it crashes with SIGILL"})
    assert broken["TensorFlow"].verdict == "error"
    assert "AVX" in broken["TensorFlow"].remedy
    assert not {"Keras", "GPU", "XLA", "oneDNN"} & set(broken)
    assert "cores" in broken, "the machine is looked at all the same"
    missing = lines(tmp_path, answers={"failed": "ModuleNotFoundError: No module named 'tensorflow'"})
    assert missing["TensorFlow"].remedy == "pip install tensorflow"
    no_keras = {name: ANSWERS[name] for name in ("tensorflow", "seconds", "build")}
    assert "cannot be imported: E: x" in lines(tmp_path, answers={**no_keras, "failed": "E: x"})["Keras"].fact
    before_gpus = {name: value for name, value in ANSWERS.items() if name not in ("gpus", "xla", "xla_seconds")}
    assert lines(tmp_path, answers={**before_gpus, "failed": "it crashes with SIGSEGV"})["GPU"].verdict == "error"
    in_xla = {name: value for name, value in ANSWERS.items() if not name.startswith("xla")}
    assert lines(tmp_path, answers={**in_xla, "failed": "it crashes with SIGSEGV"})["XLA"].verdict == "error"
    assert lines(tmp_path, answers={**ANSWERS, "xla": False, "why": "no ptxas"})["XLA"].verdict == "warning"
    off = lines(tmp_path, answers={**ANSWERS, "onednn": False}, TF_ENABLE_ONEDNN_OPTS="0")["oneDNN"]
    assert (off.verdict, off.fact) == ("note", "off, by TF_ENABLE_ONEDNN_OPTS=0; the input does not need it")


@pytest.mark.parametrize(("change", "about", "verdict"), [
    ({"tensorflow": "2.15.1"}, "TensorFlow", "warning"),
    ({"tensorflow": "2.22.0-rc1"}, "TensorFlow", "warning"),
    ({"tensorflow": "2.16.2"}, "TensorFlow", "ok"),
    ({"seconds": 45.0}, "TensorFlow", "note"),
    ({"keras": "3.6.0"}, "Keras", "error"),
    ({"keras": "3.10.0"}, "Keras", "ok"),
])  # fmt: skip
def test_versions(tmp_path: Path, change: dict[str, Any], about: str, verdict: str) -> None:
    assert lines(tmp_path, answers={**ANSWERS, **change})[about].verdict == verdict


def test_the_versions_are_those_of_the_project_file() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    first, last = software.FIRST, software.LAST
    assert f'"tensorflow>={first[0]}.{first[1]},<{last[0]}.{last[1] + 1}"' in text
    assert f'"keras>={software.FIRST_KERAS[0]}.{software.FIRST_KERAS[1]}"' in text


MOUNTS = (
    "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "23 22 0:50 / {0}/net rw - nfs4 server:/export rw\n"
    "24 22 8:16 / {0}/with\\040space rw - xfs /dev/sdb rw\n"
    "25 22 0:51 / {0}/memory rw - tmpfs tmpfs rw\n"
)


def test_storage_is_named_and_nothing_is_concluded_from_rotational(tmp_path: Path) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    made = machine(root, {"proc/self/mountinfo": MOUNTS.replace("{0}", str(data)), "sys/dev/block/8:1/queue/rotational": "1\n"})
    disk = {"sys/dev/block/8:16/queue/rotational": "0\n"}
    machine(root, disk)
    for name in ("net", "with space", "memory", "plain"):
        (data / name).mkdir(parents=True)
        (data / name / "a").write_bytes(os.urandom(5000))
        (data / name / "b").write_bytes(os.urandom(3000))

    def facts(name: str) -> list[Line]:
        return list(hardware.check_storage(Examination(made, folder=str(data / name), answered=ANSWERS)))

    assert [line.fact.partition(": ")[2] for name in ("net", "with space", "memory", "plain") for line in facts(name)[:1]] == [
        "2 files, nfs4 on server:/export; over a network",
        "2 files, xfs on /dev/sdb; the kernel calls its disk solid-state",
        "2 files, tmpfs on tmpfs; in memory",
        "2 files, ext4 on /dev/sda1; the kernel calls its disk rotational, as virtual disks often are called",
    ]
    named, measured = facts("plain")
    assert (named.verdict, named.figures["rotational"]) == ("ok", "1")
    assert measured.figures["mean_bytes"] == 4000
    assert measured.figures["random"] > 0


def test_data_that_is_not_there(tmp_path: Path) -> None:
    made = machine(tmp_path / "root")
    (tmp_path / "empty").mkdir()
    (line,) = hardware.check_storage(Examination(made, folder=str(tmp_path / "empty"), answered=ANSWERS))
    assert (line.verdict, "has no files" in line.fact) == ("error", True)
    (tmp_path / "empty" / "zero").touch()
    found = list(hardware.check_storage(Examination(made, folder=str(tmp_path / "empty"), answered=ANSWERS)))
    assert found[-1].fact == "the files are empty"


def test_a_check_that_fails_is_a_line(tmp_path: Path) -> None:
    def check(_: Examination) -> Any:
        raise ValueError("odd")
        yield

    (line,) = examine(Examination(machine(tmp_path)), (check,))
    assert "cannot be examined here: ValueError: odd" in line.fact


def test_every_check_has_a_place() -> None:
    assert set(CHECKS) == {check for module in (hardware, software) for name, check in vars(module).items() if name.startswith("check_")}


def test_extras_are_those_of_the_project_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "do_not_load", lambda *_: {})
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    (line,) = software.check_extras(Examination(answered=ANSWERS))
    written = {name.replace("_", "-") for name in re.findall(r"^([\w-]+) = \[", text, re.MULTILINE)}
    assert {name.replace("_", "-") for name in line.figures["missing"]} == written - {"test", "dev", "docs", "benchmark", "peers", "io"}
    marked = ['pyarrow>=14; extra == "parquet"', "no-such-thing>=1 ; extra == 'odd'", "tensorflow>=2.16"]
    monkeypatch.setattr(software, "requires", lambda _: marked)
    monkeypatch.setattr(software, "installed_version", lambda name: name == "pyarrow")
    (line,) = software.check_extras(Examination(answered=ANSWERS))
    assert line.fact == "parquet installed; not odd (no-such-thing)"
    assert "pip install 'pipegen[odd]'" in line.remedy


def test_each_library_of_an_extra_is_imported_by_its_name() -> None:
    declared = {name for names in software._declared().values() for name in names if software.installed_version(name)}
    assert declared >= {"pyarrow", "pillow", "lmdb"}
    assert {name for name in declared if find_spec(software.module_of(name)) is None} == set()


def test_a_library_that_is_installed_and_does_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {
        "too-new": "raise ImportError('it requires NumPy 2.0, found 1.26.4\\nand more')",
        "crashes": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "lacks": "import no_such_thing",
        "whole": "print('hello')",
        "old": "import math; math.no_such_thing",
    }
    for name, code in codes.items():
        about = tmp_path / f"{name.replace('-', '_')}-3.1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.1\n")
        (tmp_path / f"{name.replace('-', '_')}.py").write_text(code)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "whole.py").write_text("raise SystemExit('a script of the user, who is in its folder')")
    monkeypatch.chdir(tmp_path / "scripts")
    monkeypatch.syspath_prepend(str(tmp_path))
    marked = [f'{name}>=1; extra == "{name}"' for name in codes] + ['too-new>=1; extra == "other"', 'absent; extra == "other"']
    monkeypatch.setattr(software, "requires", lambda _: marked)
    found = list(software.check_extras(Examination(machine(tmp_path / "root", PYTHONPATH=str(tmp_path)))))
    assert found[0].fact == "whole installed; not other (absent)"
    assert found[0].figures["do_not_load"] == {name: [name] for name in codes if name != "whole"} | {"other": ["too-new"]}
    said = {line.about: line for line in found[1:]}
    assert {line.verdict for line in said.values()} == {"warning"}
    assert said["too-new"].fact == "3.1, of the extras too-new, other, is installed and does not load: it requires NumPy 2.0, found 1.26.4"
    assert "pip install 'too-new<3'" in said["too-new"].remedy
    assert said["too-new"].as_json()["figures"]["why"] == "it requires NumPy 2.0, found 1.26.4"
    assert "it crashes with SIGSEGV" in said["crashes"].fact
    assert said["lacks"].remedy == "pip install 'pipegen[lacks]'", "which brings what is missing"
    assert "AttributeError: module 'math'" in said["old"].fact


def test_a_library_that_takes_long_to_import_is_not_called_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "requires", lambda _: ['numpy; extra == "one"', 'pyyaml; extra == "two"'])
    runs = iter([(None, '{"doing": "numpy"}\n', ""), (0, '{"doing": "pyyaml"}\n{"doing": null}\n', "")])
    monkeypatch.setattr(software, "run_python", lambda *_: next(runs))
    first, late = software.check_extras(Examination(machine(tmp_path)))
    assert first.fact == "one, two installed"
    assert re.fullmatch(r"[\d.]+, of the extra one, is installed, and importing it was not done after 60 s", late.fact)
    assert (late.verdict, late.remedy, late.figures["loads"]) == ("note", "", None)


def test_memory_that_a_spec_does_not_fit_into(tmp_path: Path) -> None:
    class Wants:
        def memory(self, *_: object) -> int:
            return 20 * GIB

    (line,) = hardware.check_memory(Examination(machine(tmp_path), needs=Wants(), answered=ANSWERS))  # type: ignore[arg-type]
    assert (line.verdict, line.figures["needed"]) == ("error", 20 * GIB)
    assert "cache: {disk: FOLDER}" in line.remedy
