"""What the tests of the command line share: a spec, tiny images, and the types of the fixtures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

GOOD = """\
pipegen: 1
source: {image_folder: {path: photos/}}
splits: {parts: {train: 0.5, validation: 0.5}, stratify: label}
transforms:
  - resize: {size: 16}
  - random_flip
batch: {size: 2}
"""
"""A spec without findings that runs on the `photos` fixture."""


@cache
def program_tree() -> Any:
    """The commands with their options, made once: typer makes them from all signatures at each call."""
    from typer.main import get_command

    from pipegen.cli.commands import app

    return get_command(app)


Cli = Callable[..., Any]
Program = Callable[..., "subprocess.CompletedProcess[str]"]


def write_images(folder: Path, count: int, size: tuple[int, int] = (20, 18), kind: str = "jpg", mode: str = "RGB") -> Path:
    """Write tiny images, each of a colour of its own."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        colour: Any = (30 * i % 256, 80, 160) if mode == "RGB" else 20 * i % 256
        Image.new(mode, size, colour).save(folder / f"{i:02d}.{kind}")
    return folder
