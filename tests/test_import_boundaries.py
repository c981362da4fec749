"""What works without TensorFlow, Keras and NumPy: importing pipegen, and every command that reads no data. Listing data takes NumPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

POISONED = ("tensorflow", "keras", "numpy")
LISTING = ("tensorflow", "keras")
"""What stays out where data is listed."""

SPEC = """\
pipegen: 1
source: {image_folder: {path: flowers/}}
splits: {parts: {train: 0.8, validation: 0.2}, stratify: label}
transforms:
  - random_resized_crop: {size: 224}
  - random_flip
  - random_rotation: {degrees: 20}
  - random_brightness: {factor: 0.2}
  - normalize: {preset: resnet50}
output: {encode: {label: one_hot}}
"""

RUN = """\
import contextlib, io, json, sys
for name in json.loads(sys.argv[2]):
    sys.modules[name] = None  # importing it raises ModuleNotFoundError
from pipegen.cli.commands import app
results = []
for args in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(args, prog_name="pipegen")
            code = None
        except SystemExit as end:
            code = end.code
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""

COMMANDS = {
    ("validate", "flowers.pipegen.yaml"): "fine (2 splits, 5 steps, images 224×224×3 float32)",
    ("validate", "--format", "sarif", "--strict"): '"version": "2.1.0"',
    ("explain", "flowers.pipegen.yaml", "--before"): "expected cost",
    ("explain", "flowers.pipegen.yaml", "--format", "json"): '"passes"',
    ("explain", "flowers.pipegen.yaml", "--physical", "--all"): "form: requested batches",
    ("show", "flowers.pipegen.yaml"): "spec_hash",
    ("show", "flowers.pipegen.yaml", "--format", "json"): '"origins"',
    ("schema",): '"$defs"',
    ("ops",): "random_rotation",
    ("ops", "random_rotation"): "degrees",
    ("rule",): "PG214",
    ("rule", "PG214"): "standardised-values",
    ("migrate", "train.py"): "=== train.pipegen.yaml",
    ("cache", "ls", "images"): "images: no caches",
    ("cache", "verify", "images"): "no caches found",
    ("version",): "Python",
    ("--help",): "validate",
}
"""Commands, and what each prints; all of them run in one process."""


def run(code: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], tuple[int, str, str]]:
    """The exit code, the output and the complaints of each command."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("poisoned")
    (folder / "flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    script = "from keras.preprocessing.image import ImageDataGenerator as G\nit = G().flow_from_directory('images')\n"
    (folder / "train.py").write_text(script, encoding="utf-8")
    (folder / "flowers").mkdir()
    (folder / "images").mkdir()
    Image.new("RGB", (8, 8)).save(folder / "images" / "0.png")
    result = run(RUN, json.dumps(list(COMMANDS)), json.dumps(POISONED), cwd=folder)
    assert result.returncode == 0, result.stderr
    return {args: tuple(found) for args, found in zip(COMMANDS, json.loads(result.stdout), strict=True)}


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_commands_without_array_libraries(results: dict[tuple[str, ...], tuple[int, str, str]], args: tuple[str, ...]) -> None:
    code, out, err = results[args]
    assert (code, err) == (0, "")
    assert COMMANDS[args] in out


def test_importing_pipegen_imports_none_of_them(tmp_path: Path) -> None:
    names = ("tensorflow", "keras", "numpy", "PIL", "typer", "rich")
    result = run(f"import sys, pipegen; print([n for n in {names!r} if n in sys.modules])", cwd=tmp_path)
    assert result.stdout.strip() == "[]", result.stderr


def test_importing_the_drop_in_class_imports_none_of_them(tmp_path: Path) -> None:
    names = ("tensorflow", "keras", "numpy", "PIL", "scipy")
    code = f"""\
import sys
from pipegen import compat
print([n for n in {names!r} if n in sys.modules], dir(compat) == sorted(compat.__all__), "DirectoryIterator" in dir(compat))
"""
    assert run(code, cwd=tmp_path).stdout.strip() == "[] True True"


@pytest.mark.nightly
def test_loading_a_spec_in_python_imports_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    code = f"""\
import sys
for name in {POISONED!r}:
    sys.modules[name] = None
import pipegen
spec = pipegen.load("flowers.pipegen.yaml")
print(len(spec.hash), pipegen.build.__name__, pipegen.SpecError.__name__)
"""
    result = run(code, cwd=tmp_path)
    assert result.stdout.split() == ["64", "build", "SpecError"], result.stderr


def test_the_first_spec_for_a_folder_imports_no_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    result = run(RUN, json.dumps([["init", "images", "-o", "first.pipegen.yaml"]]), json.dumps(LISTING), cwd=tmp_path)
    ((code, out, err),) = json.loads(result.stdout)
    assert (code, err) == (0, "")
    assert "wrote first.pipegen.yaml" in out


def test_listing_and_dealing_out_data_imports_no_tensorflow(tmp_path: Path) -> None:
    for name in ("rose", "tulip"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for i in range(40):
            (tmp_path / "flowers" / name / f"{i}.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    code = f"""\
import sys
for name in {LISTING!r}:
    sys.modules[name] = None
import pipegen
from pipegen.phases.compilation import collect_data
print(collect_data(pipegen.load("flowers.pipegen.yaml")).num_examples("train"))
"""
    result = run(code, cwd=tmp_path)
    assert result.stdout.split() == ["64"], result.stderr


def test_validate_of_a_folder_starts_without_what_other_sources_need(tmp_path: Path) -> None:
    (tmp_path / "flowers.pipegen.yaml").write_text(SPEC, encoding="utf-8")
    for name in ("rose", "tulip"):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        (tmp_path / "flowers" / name / "0.jpg").write_bytes(b"\xff\xd8\xff")
    of_others = [f"pipegen.ops.sources.{name}" for name in ("records.archives", "features.arrays", "parts.merge")]
    names = ("rich", "PIL", "pipegen.api.pipeline", *of_others)
    code = f"""\
import atexit, sys
atexit.register(lambda: print([n for n in {names!r} if n in sys.modules]))
from pipegen.cli.app import main
main()
"""
    result = run(code, "validate", cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == "[]", "these cost time that `pipegen validate` does not have"


ONE_COMMAND = """
import sys
from typer.testing import CliRunner
from pipegen.cli.commands import MODULES, app
done = CliRunner().invoke(app, ["validate", "--help"], prog_name="pipegen")
assert done.exit_code == 0, done.output
loaded = {name.split(".")[2] for name in sys.modules if name.startswith("pipegen.cli.")}
print(*sorted(loaded & {name.replace("-", "_") for name in MODULES}))
"""


def test_a_command_starts_without_the_others() -> None:
    done = subprocess.run([sys.executable, "-c", ONE_COMMAND], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["validate"]
