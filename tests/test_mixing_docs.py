"""The guide to mixing sources: its code runs, and prints what it says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.tf

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "mixing-sources.md"


@pytest.mark.nightly
def test_the_guide_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for part, name, count in (("photos", "cat", 50), ("photos", "dog", 50), ("drawings", "cat", 10), ("drawings", "fox", 10)):
        (tmp_path / part / name).mkdir(parents=True)
        for i in range(count):
            Image.fromarray(rng.integers(0, 255, (34, 36, 3), np.uint8)).save(tmp_path / part / name / f"{i:02}.png")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    known: dict[str, Any] = {}
    printed = StringIO()
    for language, text in blocks:
        if language == "yaml":
            (tmp_path / "animals.pipegen.yaml").write_text(text)
        elif language == "python":
            with redirect_stdout(printed):
                exec(compile(text, PAGE.name, "exec"), known)
        elif language == "text":
            assert printed.getvalue() == text
    assert known["pipe"].class_names == ("cat", "dog", "fox")
