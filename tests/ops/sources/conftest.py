"""Small folders of real images."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMATS = {".jpg": "JPEG", ".png": "PNG", ".gif": "GIF", ".bmp": "BMP", ".webp": "WEBP", ".tif": "TIFF", ".ppm": "PPM"}


@pytest.fixture(scope="session")
def image_bytes() -> dict[str, bytes]:
    """A tiny image file for each extension."""
    made = {}
    for extension, kind in FORMATS.items():
        stream = io.BytesIO()
        Image.new("RGB", (4, 3), (200, 100, 50)).save(stream, kind)
        made[extension] = stream.getvalue()
    return made


@pytest.fixture
def tree(tmp_path: Path, image_bytes: dict[str, bytes]) -> Callable[..., Path]:
    """Writes files below a folder: an image where the extension is one's, a folder where the path ends in a slash."""

    def write(*paths: str) -> Path:
        root = tmp_path / "data"
        for path in paths:
            target = root / path
            if path.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(image_bytes.get(target.suffix.lower(), b"no image, but some text"))
        return root

    return write
