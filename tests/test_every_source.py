"""Every command works on every source, and says of each the same: the same photographs, stored in every form."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import pipegen
from benchmarks.written_sources import SOURCES
from pipegen.cli.commands import app

pytestmark = pytest.mark.tf

COUNT = 24
SAMPLE = [("tfrecord", "validate"), ("arrow", "report"), ("zip, stored", "test")]
"""What runs by day."""
COMMANDS: dict[str, list[str]] = {
    "bench": ["--steps", "2", "--format", "json"],
    "explain": [],
    "preview": ["--rows", "2", "-o", "preview.png"],
    "profile": ["--steps", "2", "--format", "json"],
    "report": ["-o", "report.html", "--format", "json"],
    "show": [],
    "test": ["--format", "json"],
    "validate": ["--data=all", "--format", "json"],
}


def photographs() -> list[tuple[bytes, int]]:
    """Made-up ones of two classes, of which the last is the first one again, and one is all black."""
    draw = np.random.default_rng(7)
    found = []
    for i in range(COUNT - 1):
        coarse = draw.integers(0, 256 if i != 5 else 1, (6, 6, 3), np.uint8)
        stream = io.BytesIO()
        Image.fromarray(coarse).resize((64, 64), Image.Resampling.BICUBIC).save(stream, "JPEG", quality=95)
        found.append((stream.getvalue(), i % 2))
    return [*found, found[0]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Writes a form once, and returns its folder."""
    folders: dict[str, Path] = {}

    def folder_of(name: str) -> Path:
        source = SOURCES[name]
        if source.library and find_spec(source.library) is None:
            pytest.skip(f"{source.library} is not installed")
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp("source")
            data = folders[name] / "data"
            data.mkdir()
            source.write(data, photographs())
            spec: dict[str, Any] = {"pipegen": 1, "name": "photos", "source": source.spec(data), "transforms": [{"resize": {"size": 32}}]}
            spec |= {"batch": {"size": 4}, "runtime": {"cache": {"disk": str(folders[name] / "cache")}}, "splits": splits(name)}
            spec["tests"] = [{"shape": {"feature": "image", "equals": [32, 32, 3]}}, *([{"no_leak": "near"}] if spec["splits"] else [])]
            (folders[name] / "photos.pipegen.yaml").write_text(json.dumps(spec))
        return folders[name]

    return folder_of


def splits(name: str) -> dict[str, Any]:
    return {} if name.startswith("prepared") else {"parts": {"train": 0.5, "validation": 0.5}, "seed": 1}


def pairs() -> list[Any]:
    every = [(name, command) for name in SOURCES for command in COMMANDS]
    return [pytest.param(*pair, marks=[] if pair in SAMPLE else [pytest.mark.nightly]) for pair in every]


@pytest.mark.parametrize(("name", "command"), pairs())
def test_a_command_says_of_every_source_what_it_says_of_files(
    name: str, command: str, written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = written(name)
    result = CliRunner().invoke(app, [command, str(folder / "photos.pipegen.yaml"), *COMMANDS[command]], prog_name="pipegen")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    CHECKS.get(command, ends_well)(result, folder)


def ends_well(result: Any, folder: Path) -> None:
    assert (result.exit_code, bool(result.output)) == (0, True), result.output


def sees_the_copy_and_the_black_one(result: Any, folder: Path) -> None:
    codes = [finding["code"] for finding in json.loads(result.stdout)["diagnostics"]]
    assert "PG735" in codes, "one is black"
    assert {"PG730", "PG741"} & set(codes), "one is there twice, in one split or in two"
    assert "PG742" not in codes, "all can be looked at"
    page = Path("report.html").read_text()
    assert page.count("data:image/jpeg") > 5
    assert "cannot be shown" not in page


def finds_the_copy_where_splits_share_it(result: Any, folder: Path) -> None:
    seen = pipegen.report(folder / "photos.pipegen.yaml")
    assert result.exit_code == int(any(finding.code == "PG730" for finding in seen.diagnostics)), result.output
    assert seen.leaks.looked_at == COUNT


def decodes_them_all(result: Any, folder: Path) -> None:
    assert result.exit_code == 0, result.output
    assert f"{COUNT} records" in result.output or f"{COUNT} files" in result.output, result.output


def draws_them(result: Any, folder: Path) -> None:
    ends_well(result, folder)
    assert np.asarray(Image.open("preview.png")).std() > 20


CHECKS = {
    "preview": draws_them,
    "report": sees_the_copy_and_the_black_one,
    "test": finds_the_copy_where_splits_share_it,
    "validate": ends_well,
}
