"""Photographs that scikit-image brings along, copies of them, and manifests of folders."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from pipegen.data.collect import collect
from pipegen.phases.compilation import load

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.spec.models import PipelineSpec

PHOTOS = (
    "astronaut.png brick.png camera.png cell.png chelsea.png clock_motion.png coffee.png coins.png grass.png gravel.png "
    "hubble_deep_field.jpg ihc.png moon.png motorcycle_left.png page.png retina.jpg rocket.jpg text.png"
)


def photos(most: int = 400) -> list[Image.Image]:
    """The photographs, no side longer than `most` pixels."""
    skimage = pytest.importorskip("skimage")
    folder = Path(skimage.__file__).parent / "data"
    found = []
    for name in PHOTOS.split():
        with Image.open(folder / name) as picture:
            small = picture.convert("RGB")
        small.thumbnail((most, most))
        found.append(small)
    return found


def encoded(picture: Image.Image, kind: str = "JPEG", quality: int = 50) -> bytes:
    """A picture as a file."""
    stream = io.BytesIO()
    picture.save(stream, kind, quality=quality)
    return stream.getvalue()


def put(folder: Path, files: dict[str, bytes]) -> Path:
    """Writes files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def spec_of(folder: Path, **sections: object) -> PipelineSpec:
    """A spec of class folders in folders of splits."""
    given: dict[str, object] = {"splits": {"method": "folder", "parts": {"train": "train", "validation": "validation"}}, **sections}
    given = {"source": {"image_folder": {"path": str(folder)}}, "runtime": {"cache": {"disk": str(folder.parent / "cache")}}, **given}
    return load({"pipegen": 1, "transforms": [{"resize": {"size": 32}}], "batch": {"size": 1}, **given}).model


def manifest_of(spec: PipelineSpec) -> Manifest:
    """The records of a spec."""
    collected = collect(spec)
    assert collected.manifest is not None, [d.message for d in collected.diagnostics]
    return collected.manifest
