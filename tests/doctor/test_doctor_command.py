"""`pipegen doctor` on this machine, with a spec, with a folder, and with an installation that is broken."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from pipegen.cli.commands import app
from pipegen.observe import asking, software, storage
from pipegen.observe.asking import ask, reason, run_python
from pipegen.observe.examination import Examination

SPEC = """\
pipegen: 1
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.5, validation: 0.5}}
transforms:
  - resize: {size: 16}
batch: {size: 2}
"""
ANSWERS: dict[str, Any] = {
    "tensorflow": "2.21.0", "seconds": 6.0, "cpu_s": 3.0, "build": {"cuda": None, "is_cuda": False}, "keras": "3.15.1",
    "keras_backend": "tensorflow",
    "onednn": True, "gpus": [], "xla": True, "xla_seconds": 0.3,
}  # fmt: skip


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command without asking TensorFlow, on a folder of a few files."""
    from typer.testing import CliRunner

    from pipegen.observe import examination

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(examination, "ask", lambda _environment: dict(ANSWERS))
    monkeypatch.setattr(software, "do_not_load", lambda *_: {"pyarrow": software.Failure("it requires NumPy 2.0")})
    monkeypatch.setattr(storage, "_SECONDS", 0.1)
    for name in ("rose", "tulip"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(5):
            (tmp_path / "photos" / name / f"{i}.jpg").write_bytes(os.urandom(20_000))
    (tmp_path / "flowers.pipegen.yaml").write_text(SPEC)
    return lambda *args: CliRunner().invoke(app, ["doctor", *args], prog_name="pipegen")


def rows(result: Any) -> dict[str, dict[str, Any]]:
    return {line["about"]: line for line in json.loads(result.output)["lines"]}


def test_a_spec_is_compared_with_the_storage(cli: Any) -> None:
    result = cli("flowers.pipegen.yaml", "--format", "json", "--images-per-s", "1e9")
    found = rows(result)
    assert result.exit_code == 0, result.output
    assert found["reading"]["figures"]["mean_bytes"] == 20_000
    need = found["reading for the spec"]
    assert need["verdict"] == "warning"
    assert need["figures"]["needed"] == 1e9 * 20_000
    assert "the spec needs 20,000,000 MB/s: the model takes 1,000,000,000 examples/s" in need["fact"]
    assert found["memory"]["figures"]["needed"] > 0
    assert cli("flowers.pipegen.yaml", "--images-per-s", "1e9", "--strict").exit_code == 1
    easy = rows(cli("flowers.pipegen.yaml", "--images-per-s", "0.01", "--format", "json"))["reading for the spec"]
    assert easy["verdict"] == "ok"
    assert "expected to prepare" in rows(cli("flowers.pipegen.yaml", "--format", "json"))["reading for the spec"]["fact"]


def test_more_threads_than_cores_are_a_warning(cli: Any) -> None:
    found = rows(cli("flowers.pipegen.yaml", "--format", "json", "--set", "runtime.threads=900"))
    assert found["cores"]["verdict"] == "warning"
    assert "asks for 900 threads" in found["cores"]["fact"]


def test_tables_name_their_files_and_arrays_none(cli: Any, tmp_path: Path) -> None:
    import numpy as np

    names = "".join(f"photos/rose/{i}.jpg,{i % 2}\n" for i in range(5))
    (tmp_path / "t.csv").write_text(f"image,label\n{names}")
    np.savez(tmp_path / "a.npz", image=np.zeros((8, 4, 4, 3), np.uint8), label=np.arange(8) % 2)
    features = "features: {image: {kind: image, KEY: image}, label: {kind: label, KEY: label}}"
    rest = "splits: {parts: {train: 4}}\ntransforms: [{resize: {size: 4}}]\nbatch: {size: 2}\n"
    for name, source in (("csv", "path: t.csv, "), ("arrays", "path: a.npz, "), ("arrays", "")):
        key = "column" if name == "csv" else "key"
        spec = f"pipegen: 1\nsource: {{{name}: {{{source}{features.replace('KEY', key)}}}}}\n{rest}"
        (tmp_path / f"{name}.pipegen.yaml").write_text(spec)
        found = rows(cli(f"{name}.pipegen.yaml", "--format", "json"))
        if name == "csv":
            assert found["reading"]["figures"]["mean_bytes"] == 20_000
            assert "4 examples of split train" in found["storage"]["fact"]
        else:
            assert "reading" not in found
            assert ("4 examples" if source else "comes from Python") in found["storage"]["fact"]


def test_files_of_many_records_and_parts_of_a_mix_are_read(cli: Any, tmp_path: Path) -> None:
    from record_files import png, write_tfrecord

    write_tfrecord(tmp_path / "a.tfrecord", [{"image": png(1, 2, i) + bytes(1000), "label": 0} for i in range(20)])
    records = "{tfrecord: {path: a.tfrecord, features: {image: {kind: image}, label: {kind: label, classes: [rose]}}}}"
    photos = "{image_folder: {path: photos/}}"
    mix = f"{{mix: {{epoch: 8, parts: {{old: {{weight: 1, source: {photos}}}, new: {{weight: 1, source: {records}}}}}}}}}"
    for name, source in (("records", records), ("mix", mix)):
        text = f"pipegen: 1\nsource: {source}\ntransforms: [{{resize: {{size: 16}}}}]\nbatch: {{size: 2}}\n"
        (tmp_path / f"{name}.pipegen.yaml").write_text(text)
        result = cli(f"{name}.pipegen.yaml", "--format", "json", "--images-per-s", "1000")
        lines = json.loads(result.output)["lines"]
        assert not [line for line in lines if "cannot be examined" in line["fact"]], result.output
        stored = [line["fact"] for line in lines if line["about"] == "storage"]
        assert [
            f"{count} examples of split train{part}" in fact
            for fact, (count, part) in zip(
                stored, [(20, "")] if name == "records" else [(10, ", part old"), (20, ", part new")], strict=True
            )
        ] == [True] * len(stored)
        if name == "records":
            needed = rows(result)["reading for the spec"]["figures"]["needed"]
            assert 1000 * 1000 < needed < 1000 * 2000, "what an example takes, and not a file"


def test_a_folder_and_nothing_are_enough(cli: Any) -> None:
    text = cli("photos")
    assert text.exit_code == 0, text.output
    assert "10 files" in text.output
    broken = r"WARNING +pyarrow +[\d.]+, of the extras \w+, \w+, is installed and does not load: it requires NumPy 2\.0\n +→ pyarrow "
    assert re.search(broken, text.output)
    assert "reading for the spec" not in text.output
    assert "reading " not in cli().output
    assert len({line.index("→") for line in text.output.splitlines() if "→" in line} | {0}) <= 2, "remedies stand below the facts"


def test_what_cannot_be_examined_is_said(cli: Any, tmp_path: Path) -> None:
    assert cli("flowers.pipegen.yml").exit_code == 2
    (tmp_path / "wrong.pipegen.yaml").write_text(SPEC.replace("resize", "resise"))
    wrong = cli("wrong.pipegen.yaml")
    assert wrong.exit_code == 1
    assert "resise" in wrong.output
    (tmp_path / "gone.pipegen.yaml").write_text(SPEC.replace("photos/", "fotos/"))
    gone = cli("gone.pipegen.yaml")
    assert gone.exit_code == 1
    assert "ERROR" in gone.output
    assert "the data cannot be used: PG401" in gone.output
    assert "1 error" in gone.output


def test_shards_are_read_in_parts_and_what_stays_in_memory_is_said(on_disk: Path) -> None:
    big = on_disk / "a.tfrecord"
    big.write_bytes(os.urandom(6 << 20))
    rates = storage.measure([str(big)], 4)
    assert rates is not None
    assert rates.shards
    assert min(rates.random, rates.together, rates.sequential) > 0
    descriptor = os.open(big, os.O_RDONLY)
    os.pread(descriptor, 4096, 0)
    assert storage._in_memory(descriptor, 0)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    dropped = not storage._in_memory(descriptor, 0)
    os.close(descriptor)
    mount = Examination().machine.mount_of(on_disk.resolve())
    assert dropped or mount is None or mount.kind not in ("ext4", "xfs")


def test_a_broken_tensorflow_is_an_answer(tmp_path: Path) -> None:
    for code, why in (
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "it crashes with SIGILL"),
        ("raise ImportError('libfoo.so: cannot open')", "ImportError: libfoo.so: cannot open"),
    ):
        (tmp_path / "tensorflow.py").write_text(code)
        found = ask({**os.environ, "PYTHONPATH": str(tmp_path)}, patience=30)
        assert (found["failed"], found["doing"]) == (why, "importing TensorFlow")
    (tmp_path / "tensorflow.py").write_text("import time; print('hello'); time.sleep(3000)")
    slow = ask({**os.environ, "PYTHONPATH": str(tmp_path)}, patience=1.5)
    assert slow["failed"] == "not done after 2 s"


def test_a_library_that_does_not_load_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software, "installed_version", lambda _: "0.37.1")
    for code, err, loads in ((0, "", True), (1, "x.so: undefined symbol: _ZN\nNotImplementedError: y", False), (None, "", False)):
        monkeypatch.setattr(software, "run_python", lambda *_, code=code, err=err: (code, "", err))
        (line,) = software.check_tensorflow_io(Examination(answered=ANSWERS))
        assert line.figures["loads"] is loads
        assert line.verdict == ("ok" if loads else "warning")


def test_other_processes_have_a_time_limit() -> None:
    assert run_python(["-S", "-c", "import time; time.sleep(9)"], os.environ, 0.3)[0] is None
    assert reason(None, "", 3.0) == "not done after 3 s"
    assert reason(1, "", 3.0) == "exit code 1"
    assert asking._HOME.endswith(str(Path(__file__).resolve().parents[2].name))


@pytest.mark.nightly
@pytest.mark.tf
def test_tensorflow_answers() -> None:
    found = ask(os.environ)
    assert "failed" not in found
    assert found["xla"] is True
    assert set(ANSWERS) <= set(found)
