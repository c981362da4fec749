"""Masks: what their files store, and that they move with their images by construction."""

from __future__ import annotations

import io
import shutil
from pipes import at
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.tf

RNG = np.random.default_rng(0)
FEATURES: dict[str, Any] = {
    "image": {"kind": "image", "path": "photos"},
    "mask": {"kind": "mask", "path": "masks", "values": {0: 0, 7: 1, 200: 2}},
}
PAINT = 100
"""An image is its mask, painted: class 2 is a pixel of 200."""
NEAREST = {"interpolation": "nearest", "fill": {"constant": 0}}
STEPS: list[Any] = [
    {"random_resized_crop": {"size": 24, "method": "nearest", "area": [0.5, 1]}},
    {"random_flip": NEAREST},
    {"random_rotation": {"degrees": 40, **NEAREST}},
    {"random_brightness": {"factor": [1, 1]}},
    {"random_perspective": {"x": 0.1, "y": 0.1, "probability": 0.5, **NEAREST}},
    {"random_elastic": {"alpha": 20, "sigma": 4, **NEAREST}},
    {"random_thin_plate_spline": {"x": 0.05, "y": 0.05, "cells": 2, **NEAREST}},
    {"random_grid_distortion": NEAREST},
]


def file_of(image: Image.Image, kind: str = "PNG", **how: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs")
    for name in ("photos", "masks"):
        (root / name).mkdir()
    for i in range(10):
        height, width = RNG.integers(30, 44, 2)
        classes = np.zeros((height, width), np.uint8)
        classes[4 + i : 20, 5:25], classes[22:, 10:] = 1, 2
        Image.fromarray(np.array([0, 7, 200], np.uint8)[classes]).save(root / "masks" / f"{i}.png")
        Image.fromarray(np.repeat(classes[..., None] * PAINT, 3, -1)).save(root / "photos" / f"{i}.png")
    return root


def build(folder: Path, steps: list[Any], *, size: int = 4, features: Mapping[str, Any] = FEATURES, **runtime: Any) -> Any:
    import pipegen

    source = {
        "files": {
            "features": {n: {**f, "path": str(folder / f["path"])} for n, f in features.items()},
        }
    }
    sections = {"pipegen": 1, "source": source, "splits": {"parts": {"train": 8, "validation": 2}}, "transforms": steps}
    return pipegen.build(sections | {"batch": {"size": size}, "output": {"x": "image", "y": "mask"}}, runtime={"jit": "never", **runtime})


def stream(pipe: Any, split: str = "train", epoch: int = 0) -> tuple[Any, Any]:
    images, masks = zip(*((x.numpy(), y.numpy()) for x, y in (at(pipe, epoch) if split == "train" else pipe[split])), strict=True)
    return np.concatenate(images), np.concatenate(masks)


@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
def test_a_mask_goes_where_its_image_goes(folder: Path, jit: str) -> None:
    pipe = build(folder, STEPS, jit=jit)
    image, mask = stream(pipe)
    assert mask.dtype == np.uint8
    assert set(np.unique(mask)) == {0, 1, 2}
    np.testing.assert_array_equal(image[..., :1], mask * float(PAINT))
    moved = stream(pipe, epoch=1)
    assert not np.array_equal(moved[1], mask)
    np.testing.assert_array_equal(moved[0][..., :1], moved[1] * float(PAINT))


PASTED = [{"resize": {"size": 24, "method": "nearest"}}, "mosaic", {"copy_paste": {"objects": 0.6}}, {"random_flip": NEAREST}]


@pytest.mark.nightly
def test_more_shows_where_objects_were_pasted(folder: Path) -> None:
    before, after = (stream(build(folder, steps, size=8))[1] for steps in (PASTED[:2], PASTED))
    assert (after > 0).mean() > (before > 0).mean()


@pytest.mark.nightly
def test_pasted_objects_bring_their_masks_whatever_the_batch_size(folder: Path) -> None:
    steps = PASTED
    image, mask = stream(build(folder, steps, size=8))
    np.testing.assert_array_equal(image[..., :1], mask * float(PAINT))
    for given, due in zip(stream(build(folder, steps, size=4)), (image, mask), strict=True):
        np.testing.assert_array_equal(given, due)


@pytest.mark.nightly
@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_cache_keeps_both(folder: Path, tmp_path: Path, where: str) -> None:
    steps = [{"resize": {"size": 24}}, "random_flip"]
    wanted = stream(build(folder, steps, cache="none"))
    pipe = build(folder, steps, cache="memory" if where == "memory" else {"disk": str(tmp_path / "cache")})
    for _ in range(2):
        for given, due in zip(stream(pipe), wanted, strict=True):
            np.testing.assert_array_equal(given, due)


@pytest.mark.nightly
def test_what_a_constant_fill_uncovers_is_ignored(folder: Path) -> None:
    features = FEATURES | {"mask": {**FEATURES["mask"], "ignore": 255}}
    steps = [{"resize": {"size": 24}}, {"translation": {"x": 0.5, "fill": {"constant": 9}}}]
    image, mask = stream(build(folder, steps, features=features), "validation")
    assert (mask[:, :, :12] == 255).all()
    assert (image[:, :, :12] == 9).all()
    assert mask[:, :, 12:].max() == 2
    _, shown = stream(build(folder, [{"resize": {"size": 24}}, {"translation": {"x": 0.5}}], features=features), "validation")
    np.testing.assert_array_equal(shown[:, :, :12], shown[:, :, 12:][:, :, ::-1], "reflected with the image")


def test_one_hot_leaves_out_what_is_ignored(folder: Path) -> None:
    import pipegen

    sections: dict[str, Any] = {
        "pipegen": 1,
        "source": {"arrays": {"features": {"image": {"kind": "image"}, "mask": {"kind": "mask", "classes": 2, "ignore": 9}}}},
        "splits": {"parts": {"validation": 3}},
        "output": {"x": "image", "y": "mask", "encode": {"mask": "one_hot"}},
    }
    masks = np.array([[[0, 1], [9, 1]]] * 3)
    pipe = pipegen.build(sections, data={"image": np.zeros((3, 2, 2, 3), np.uint8), "mask": masks})
    _, found = stream(pipe, "validation")
    np.testing.assert_array_equal(found[0], [[[1, 0], [0, 1]], [[0, 0], [0, 1]]])
    for wrong, says in ((masks + 3, "`mask` holds 3"), (masks[:, :1], "has 1×2 pixels, but `image`"), (masks / 2, "are float64")):
        with pytest.raises(pipegen.SpecError, match=says):
            pipegen.build(sections, data={"image": np.zeros((3, 2, 2, 3), np.uint8), "mask": wrong})


@pytest.fixture(scope="module")
def spoilt(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A copy whose masks do not fit, and a pipeline over it."""
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("spoilt") / "pairs")
    return copy, build(copy, [{"resize": {"size": 24}}])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Image.new("L", (9, 9)), "its size is [9 9], but that of `image`, which it is aligned with, is"),
        ("other", "the mask holds 8, which is none of its `values` or `classes`"),
        ("lossy", "the mask is a JPEG, which changes values, and holds"),
        ("colour", "one value a pixel, as gray or as a palette's index, and this file has 3 channels"),
    ],
)
def test_a_mask_that_does_not_fit_is_named(folder: Path, spoilt: tuple[Path, Any], wrong: Any, says: str) -> None:
    import pipegen

    copy, pipe = spoilt
    for path in sorted((copy / "masks").iterdir())[:9]:
        size = Image.open(folder / "masks" / path.name).size
        made = wrong if isinstance(wrong, Image.Image) else Image.new("L", size, 8) if wrong == "other" else Image.new("RGB", size)
        if wrong == "lossy":
            made = Image.fromarray(RNG.integers(0, 2, size[::-1]).astype(np.uint8) * 255)
        made.save(path, "JPEG" if wrong == "lossy" else "PNG")
    with pytest.raises(pipegen.DataError) as caught:
        stream(pipe)
    first = str(caught.value).splitlines()[0]
    assert f"{copy}/masks/" in first
    assert says in first


def _palette(depth: int) -> Image.Image:
    image = Image.fromarray(RNG.integers(0, 2**depth, (9, 13)).astype(np.uint8), mode="P")
    image.putpalette(RNG.integers(0, 256, 3 * 2**depth).tolist())
    return image


def _gray(depth: int) -> bytes:
    """A gray PNG of few bits: Pillow writes those only of one bit, so this one is put together by hand."""
    import struct
    import zlib

    rows = RNG.integers(0, 2**depth, (6, 8)).astype(np.uint8)
    packed = b"".join(b"\0" + np.packbits(np.unpackbits(row[:, None], axis=1)[:, 8 - depth :].ravel()).tobytes() for row in rows)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 8, 6, depth, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(packed)) + chunk(b"IEND", b"") + rows.tobytes()


def test_what_files_store() -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.decoding import decode_mask

    decode = tf.function(lambda contents: decode_mask(contents, None), autograph=False)
    eight = Image.fromarray(RNG.integers(0, 256, (9, 13)).astype(np.uint8))
    for image in (eight, _palette(1), _palette(4), _palette(8)):
        np.testing.assert_array_equal(decode(file_of(image))[..., 0], np.asarray(image))
        np.testing.assert_array_equal(decode_mask(tf.constant(file_of(image)), None)[..., 0], np.asarray(image))
    np.testing.assert_array_equal(decode(file_of(eight, "BMP"))[..., 0], np.asarray(eight))
    for depth in (1, 2, 4):
        contents = _gray(depth)
        rows = np.frombuffer(contents[-48:], np.uint8).reshape(6, 8)
        np.testing.assert_array_equal(decode(contents)[..., 0], rows)
    wide = RNG.choice([0, 300, 65535], (9, 13)).astype(np.uint16)
    mapped = decode_mask(tf.constant(file_of(Image.fromarray(wide))), ((0, 0), (300, 1), (65535, 2)))
    np.testing.assert_array_equal(mapped[..., 0], np.searchsorted([0, 300, 65535], wide))
    with pytest.raises(tf.errors.InvalidArgumentError, match="the mask holds 65535, and class indices go up to 255"):
        decode(file_of(Image.fromarray(wide)))


def test_the_size_that_a_file_says() -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.decoding import stored_size

    image = Image.fromarray(RNG.integers(0, 256, (31, 47, 3)).astype(np.uint8))
    turned = Image.Exif()
    turned[0x0112] = 6
    files = [file_of(image, kind) for kind in ("PNG", "JPEG", "BMP", "GIF")]
    for contents in files:
        assert stored_size(tf.constant(contents), exif="apply").numpy().tolist() == [31, 47]
    upright = tf.constant(file_of(image, "JPEG", exif=turned))
    assert stored_size(upright, exif="apply").numpy().tolist() == [47, 31]
    assert stored_size(upright, exif="ignore").numpy().tolist() == [31, 47]


def test_a_contact_sheet_shows_the_mask_on_its_image(folder: Path) -> None:
    from pipegen.ops.lowering.pictures import overlay

    image = np.full((2, 2, 3), 100, np.uint8)
    shown = overlay(image, np.array([[[0], [1]], [[1], [9]]], np.uint8), ignore=9)
    assert shown[0, 0].tolist() == [100, 100, 100]
    assert shown[0, 1].tolist() == shown[1, 0].tolist() != [100, 100, 100]
    assert shown[1, 1].tolist() == [114, 114, 114]
    sheet = np.asarray(build(folder, [{"resize": {"size": 24}}]).preview("train", rows=1, draws=1, cell=24))
    assert (sheet.max(-1) > sheet.min(-1) + 60).any(), "gray images, coloured by their classes"


def test_predictions_need_no_mask(folder: Path) -> None:
    pipe = build(folder, [{"resize": {"size": 20, "feature": "mask"}}, {"resize": {"size": 20, "feature": "image"}}])
    found = pipe.predict_on(folder / "photos")
    assert len(found.files) == 10
    assert next(iter(found.dataset)).shape[1:] == (20, 20, 3)
