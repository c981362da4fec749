"""Damage inside of JPEG files that every decoder passes over is found, and good files of any kind are left alone."""

from __future__ import annotations

import io
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.tf
pytest.importorskip("simplejpeg")

SECTOR = 512
KINDS = ("zeroed", "swapped", "cut", "zeroed to the end", "cut to the end")
SAVED: dict[str, dict[str, Any]] = {
    "plain": {},
    "4:4:4": {"subsampling": 0},
    "tables of its own": {"optimize": True},
    "progressive": {"progressive": True},
    "poor": {"quality": 12},
}


@cache
def photos(count: int) -> tuple[bytes, ...]:
    """Photographs of 40 KB and more: waves under noise."""
    made = []
    for number in range(count):
        rng = np.random.default_rng(number)
        y, x = np.mgrid[:300, :400]
        waves = [127 + 90 * np.sin(x / (20 + 9 * c + number % 7) + y / (33 - 4 * c) + number) for c in range(3)]
        image = np.clip(np.stack(waves, -1) + rng.normal(0, 8, (300, 400, 3)), 0, 255).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "JPEG", quality=92)
        made.append(stream.getvalue())
    return tuple(made)


def planted(content: bytes, kind: str, rng: random.Random, size: int = SECTOR) -> bytes:
    """The file with a part of its scan damaged, and with its end marker."""
    low, high = content.index(b"\xff\xda") + 20, len(content) - 2
    at = rng.randrange(low, high - 2 * size)
    if kind == "zeroed":
        return content[:at] + bytes(size) + content[at + size :]
    if kind == "cut":
        return content[:at] + content[at + size :]
    if kind == "zeroed to the end":
        return content[:at] + bytes(high - at) + content[high:]
    if kind == "cut to the end":
        return content[:at] + content[high:]
    other = rng.randrange(at + size, high - size)
    return content[:at] + content[other : other + size] + content[at + size : other] + content[at : at + size] + content[other + size :]


def rate(kind: str, files: tuple[bytes, ...]) -> float:
    from pipegen.jpeg_damage import damage_inside

    rng = random.Random(kind)
    return sum(damage_inside(planted(content, kind, rng)) is not None for content in files) / len(files)


@pytest.mark.parametrize("kind", KINDS)
def test_planted_damage_is_found(kind: str) -> None:
    assert rate(kind, photos(60)) >= 0.95


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_planted_damage_is_found_in_many(kind: str) -> None:
    assert rate(kind, photos(1500)) >= 0.95


@pytest.mark.nightly
def test_no_good_file_of_many_is_reported() -> None:
    from pipegen.jpeg_damage import damage_inside

    assert [i for i, content in enumerate(photos(3000)) if damage_inside(content) is not None] == []


@pytest.mark.parametrize("how", SAVED)
def test_good_files_of_any_kind_are_left_alone(how: str) -> None:
    from pipegen.jpeg_damage import damage_inside

    images = [Image.open(io.BytesIO(content)) for content in photos(4)]
    images += [images[0].convert("L"), images[0].convert("CMYK")]
    images += [Image.new(mode, (900, 700), 0) for mode in ("RGB", "L")] + [Image.new("RGB", (640, 480), (255, 3, 200))]
    for image in images:
        stream = io.BytesIO()
        image.save(stream, "JPEG", **{"quality": 90, **SAVED[how]})
        assert damage_inside(stream.getvalue()) is None


def test_other_formats_are_not_looked_at() -> None:
    from pipegen.jpeg_damage import damage_inside

    assert damage_inside(b"\x89PNG\r\n\x1a\n" + bytes(99)) is None
    assert damage_inside(b"") is None
