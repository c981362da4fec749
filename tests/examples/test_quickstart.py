"""The quickstart folder: small, sound, attributed, and made by the script that lies beside it."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "quickstart"


def load(name: str) -> ModuleType:
    """A script of the folder as a module."""
    spec = importlib.util.spec_from_file_location(f"quickstart_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def maker() -> Any:
    return load("make_photos")


def photographs() -> list[Path]:
    return sorted([*FOLDER.glob("photos/*/*.jpg"), *FOLDER.glob("unlabelled/*.jpg")])


def test_it_is_small() -> None:
    assert sum(f.stat().st_size for f in FOLDER.rglob("*") if f.is_file()) < 4_000_000


def test_every_photograph_decodes_and_shapes_vary(maker: Any) -> None:
    sizes = Counter()
    for file in photographs():
        with Image.open(file) as image:
            image.load()
            assert image.format == "JPEG"
            assert all(maker.SIDES[0] <= side <= maker.SIDES[1] for side in image.size)
            sizes[image.size] += 1
    assert sizes.total() >= 300
    assert sum(count for (width, height), count in sizes.items() if width != height) > 0.9 * sizes.total()


def test_classes_are_the_sources_and_equally_large(maker: Any) -> None:
    counts = Counter(file.parent.name for file in FOLDER.glob("photos/*/*.jpg"))
    assert counts == {photo.name: 5 * maker.CROPS_PER_REGION for photo in maker.PHOTOS}
    assert {file.name.rpartition("-")[0] for file in FOLDER.glob("unlabelled/*.jpg")} == set(counts)


def test_every_source_is_attributed_and_free(maker: Any) -> None:
    text = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert text == maker.attribution()
    for photo in maker.PHOTOS:
        assert photo.licence.startswith(("CC0", "public domain"))
        assert photo.file in text
        assert photo.author in text


def test_regions_share_no_pixel(maker: Any) -> None:
    for photo in maker.PHOTOS:
        boxes = maker.regions(photo.box)
        assert len(boxes) == 6
        for i, a in enumerate(boxes):
            assert photo.box[0] <= a[0] < a[2] <= photo.box[2]
            assert photo.box[1] <= a[1] < a[3] <= photo.box[3]
            for b in boxes[i + 1 :]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_making_them_again_gives_the_same(maker: Any, tmp_path: Path) -> None:
    try:
        sources = maker.find_sources()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    photo = maker.PHOTOS[0]
    for out in ("once", "again"):
        maker.make_class(photo, sources, tmp_path / out)
    once = {f.relative_to(tmp_path / "once"): f for f in (tmp_path / "once").rglob("*.jpg")}
    assert len(once) == 5 * maker.CROPS_PER_REGION + 2
    for name, file in once.items():
        assert file.read_bytes() == (tmp_path / "again" / name).read_bytes()
        with Image.open(file) as made, Image.open(FOLDER / name) as kept:
            assert made.size == kept.size
            # Another Pillow may round differently; the picture is the same.
            assert max(abs(a - b) for a, b in zip(made.convert("L").tobytes(), kept.convert("L").tobytes(), strict=True)) <= 8
