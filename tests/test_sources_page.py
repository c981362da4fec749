"""What `docs/sources.md` shows is what happens: each section writes its data, builds its spec, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pipegen
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

PAGE = Path(__file__).parents[1] / "docs" / "sources.md"
FENCE = re.compile(r"^```(python|yaml|text)(?: title=\"([^\"\n]+)\")? *\n(.*?)^```", re.MULTILINE | re.DOTALL)
LIMITS = "Damage that formats do not detect"
"""The section that is a table."""
DEFAULT = "WebDataset"
"""The section that runs by day; the others repeat it on other formats."""
LIMITS = "Damage that formats do not detect"
"""The section that is about no source, and has no example."""


def sections() -> Iterator[pytest.param]:  # type: ignore[valid-type]
    title, *rest = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert title.startswith("# ")
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        if name == LIMITS:
            continue
        blocks = FENCE.findall(text)
        if name == LIMITS:
            continue
        assert blocks, f"{name} has no example"
        yield pytest.param(blocks, id=name, marks=() if name == DEFAULT else pytest.mark.nightly)


def test_every_source_has_an_example(tmp_path: Path) -> None:
    blocks = [block for one in sections() for block in one.values[0]]
    specs = [(tmp_path / title, content) for kind, title, content in blocks if kind == "yaml"]
    for path, content in specs:
        path.write_text(content, encoding="utf-8")
    shown = {pipegen.load(path).model.source.op for path, _ in specs}
    shown |= {"prepared" for kind, _, content in blocks if kind == "text" and "by the source prepared" in content}  # `prepare` writes it
    assert shown == set(sources())


@pytest.mark.parametrize("blocks", list(sections()))
def test_an_example_is_true(
    blocks: list[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for kind, title, content in blocks:
        if kind == "yaml":
            Path(title).write_text(content, encoding="utf-8")
        elif kind == "python":
            exec(compile(content, f"{PAGE.name}: {title or 'example'}", "exec"), known)
        else:
            assert capsys.readouterr().out == content
