"""Listings and specs for the tests of splits; no image is ever opened here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.spec.models import PipelineSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., Path]:
    """Writes files of one byte below a folder; a count, as in `cat/*10`, writes `cat/0.jpg` to `cat/9.jpg`."""

    def write(*paths: str) -> Path:
        root = tmp_path / "data"
        for path in paths:
            folder, star, n = path.rpartition("*")
            for name in (f"{folder}{i}.jpg" for i in range(int(n))) if star else (path,):
                target = root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(b"x")
        return root

    return write


@pytest.fixture
def make_spec() -> Callable[..., PipelineSpec]:
    """Builds a spec from a folder and sections given as plain values."""

    def build(root: Path | str = "data", source: Any = None, **sections: Any) -> PipelineSpec:
        arguments = {"path": str(root), **(source or {})} if not hasattr(source, "op") else None
        return PipelineSpec(pipegen=1, source=source if arguments is None else ImageFolder(**arguments), **sections)

    return build
