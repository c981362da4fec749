"""What a process that builds a pipeline says on standard error: one line of ours, and none of TensorFlow's."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys
import pipegen
steps = [{"resize": {"size": 8}}, {"random_rotation": {"degrees": 9}}]
spec = {"pipegen": 1, "source": {"image_folder": {"path": sys.argv[1]}}, "transforms": steps, "batch": {"size": 4}}
batch = next(iter(pipegen.build(spec).train))
os.write(2, b"kept")
print(os.environ.get("TF_CPP_MIN_LOG_LEVEL"), "tensorflow" in sys.modules)
"""


@pytest.mark.nightly
@pytest.mark.tf
def test_a_pipeline_starts_without_a_log_line_of_tensorflow(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        for number in range(4):
            Image.new("RGB", (24, 20), (number, 9, 9)).save(tmp_path / name / f"{number}.jpg")
    settled = {"TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS"}  # by the tests: of oneDNN, too, TensorFlow writes a line
    environment = {name: value for name, value in os.environ.items() if name not in settled} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("None True\n", "kept")


def held_back(capfd: pytest.CaptureFixture[str], written: bytes) -> str:
    from pipegen.backend.process.quiet import without_noise

    capfd.readouterr()
    with without_noise():
        os.write(2, written)
    return capfd.readouterr().err


@pytest.mark.tf
def test_what_is_no_chatter_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    chatter = [
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
        "I0000 00:00:1795401788.463603   11434 port.cc:153] oneDNN custom operations are on.",
        "E0000 00:00:1795401991.392069   22023 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error",
        "2026-11-23 03:57:09.031233: I external/local_tsl/tsl/cuda/cudart_stub.cc:32] Could not find cuda drivers",
        "2026-11-23 03:57:09.066525: E external/cuda_fft.cc:479] Unable to register cuFFT factory: Attempting to register",
        "To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow",
    ]
    other = [
        "E0000 00:00:1795401991.392069   22023 gpu.cc:1] out of memory",
        "F0000 00:00:1795401991.392069   22023 cpu.cc:1] no AVX",
        "/x.py:1: DeprecationWarning: old",
        "Traceback",
    ]
    lines = [line for pair in zip(chatter, [*other, "", ""], strict=True) for line in pair]
    assert held_back(capfd, "\n".join(lines).encode() + b"\nend") == "\n".join([*other, "", "", "end"])


@pytest.mark.tf
def test_lines_are_shown_where_the_user_s_level_asks_for_them(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from pipegen.backend.process import quiet

    line = "I0000 00:00:1 1 a.cc:1] hello\n"
    for level, shown in (("0", line), ("1", line), ("2", ""), ("3", ""), (None, "")):
        if level is None:
            monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
        else:
            monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
        with quiet.quietly():
            os.write(2, line.encode())
        assert (level, capfd.readouterr().err) == (level, shown)


@pytest.mark.tf
def test_an_error_during_the_import_is_shown_and_the_descriptor_given_back(capfd: pytest.CaptureFixture[str]) -> None:
    from pipegen.backend.process.quiet import without_noise

    def fails() -> None:
        with without_noise():
            os.write(2, b"why\n")
            raise ImportError

    with pytest.raises(ImportError):
        fails()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "why\nafter\n"


@pytest.mark.tf
@pytest.mark.parametrize(
    ("level", "terminal", "shown"), [(logging.INFO, True, "log"), (logging.WARNING, True, "line"), (logging.WARNING, False, "")]
)
def test_compiling_is_said_once(
    level: int, terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from pipegen.backend.kernels import chain

    written: list[str] = []
    monkeypatch.setattr(chain.sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=written.append, flush=lambda: None))
    chain.say_compiling.cache_clear()
    with caplog.at_level(level, "pipegen"):
        for _ in range(2):
            chain.say_compiling()
    assert len([r for r in caplog.records if "compiling" in r.getMessage()]) == (shown == "log")
    assert "".join(written) == ("pipegen: compiling the pipeline; the first batch takes a few seconds\n" if shown == "line" else "")
