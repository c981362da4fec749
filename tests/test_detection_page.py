"""What `docs/detection-data.md` shows is what happens: each section writes its data, `init` writes its spec, and that is built."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_sources_page import FENCE
from typer.testing import CliRunner

import pipegen
from pipegen.cli.commands import app

pytestmark = pytest.mark.tf

PAGE = Path(__file__).parents[1] / "docs" / "detection-data.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL))
SPECS = {name: text for name, text in SECTIONS.items() if "```yaml" in text}
COMMAND = re.compile(r"^\$ pipegen (.+)$", re.MULTILINE)


def write_data(until: str, known: dict[str, object]) -> None:
    """Runs the code of the page up to a section: names of earlier ones are used again."""
    for name, text in SPECS.items():
        for kind, title, content in FENCE.findall(text):
            if kind == "python":
                exec(compile(content, f"{PAGE.name}: {title or name}", "exec"), known)
        if name == until:
            return


@pytest.mark.parametrize("name", SPECS)
def test_init_writes_the_spec_of_the_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(name, {})
    ((_, title, content),) = [block for block in FENCE.findall(SPECS[name]) if block[0] == "yaml"]
    (command,) = COMMAND.findall(SPECS[name])
    said = CliRunner().invoke(app, command.split(), prog_name="pipegen")
    assert said.exit_code == 0, said.output
    assert yaml.safe_load(Path(title).read_text(encoding="utf-8")) == yaml.safe_load(content)
    checked = CliRunner().invoke(app, ["validate", title, "--data"], prog_name="pipegen")
    assert checked.exit_code == 0, checked.output
    assert "fine" in checked.output
    for x, y in pipegen.build(title, runtime={"jit": "never"}).train:
        height, width = x.shape[1:3]
        if isinstance(y, dict):
            boxes = y["boxes"].numpy()[y["there"].numpy()]
            assert np.all(boxes >= 0)
            assert np.all(boxes <= [width, height, width, height])
            assert np.all(boxes[:, 2:] > boxes[:, :2])
            assert set(y["labels"].numpy().ravel().tolist()) <= {0, 1, 2}
        else:
            assert set(y.numpy()[..., 2].ravel().tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("name", [name for name in SPECS if "format: xywh" in SPECS[name]])
def test_a_wrong_format_is_a_finding_whose_advice_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_data(name, {})
    ((_, title, content),) = [block for block in FENCE.findall(SPECS[name]) if block[0] == "yaml"]
    Path(title).write_text(content.replace("format: xywh", "format: rel_xyxy"), encoding="utf-8")
    said = CliRunner().invoke(app, ["validate", title, "--data"], prog_name="pipegen")
    assert "PG250" in said.output
    advised = re.findall(r"`(\w+)`", re.findall(r"could be (.+)", said.output)[0])
    assert "xywh" in advised
    for form in advised:
        Path(title).write_text(content.replace("format: xywh", f"format: {form}"), encoding="utf-8")
        assert CliRunner().invoke(app, ["validate", title, "--data"], prog_name="pipegen").exit_code == 0
