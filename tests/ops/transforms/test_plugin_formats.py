"""HEIC, AVIF and JPEG XL: read by plugins of Pillow, and a clear word where one is missing."""

from __future__ import annotations

import importlib.util
import io
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from lowered_steps import decoder
from PIL import Image

from pipegen.errors import OpError
from pipegen.ops.lowering import library
from pipegen.ops.lowering.library import UnreadableError, is_readable, plugin_format, read, register
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.ops.sources.folders.scan import HEAD_BYTES, sniff

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
H, W = 40, 48
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "HEIC": ("HEIF", {"quality": -1}),
    "AVIF": ("AVIF", {"quality": 100, "subsampling": "4:4:4"}),
    "JPEG XL": ("JXL", {"lossless": True}),
}
FORMATS = [pytest.param(name, marks=pytest.mark.skipif(not is_readable(name), reason=f"no plugin for {name}")) for name in WRITTEN]


def pixels() -> Any:
    rows, columns = np.mgrid[:H, :W]
    return np.stack([rows * 4, columns * 4, 200 - rows - columns], axis=-1).astype(np.uint8)


@cache
def contents(name: str, **options: Any) -> bytes:
    register(name)
    buffer = io.BytesIO()
    kind, usual = WRITTEN[name]
    Image.fromarray(pixels()).save(buffer, kind, **usual, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_they_are_told_by_their_head_and_read_as_they_are_stored(name: str) -> None:
    import tensorflow as tf

    from pipegen.ops.transforms.decode import Decode

    assert sniff(contents(name)[:HEAD_BYTES]) == plugin_format(contents(name)) == name
    step = Decode()
    image = decoder(step)(tf.constant(contents(name))).numpy()
    assert (image.shape, image.dtype) == ((H, W, 3), np.uint8)
    assert np.abs(image.astype(int) - pixels()).mean() < 3
    assert step.read_by_python(contents(name)[:64]) == name
    assert read(contents(name), 4, 8)[..., 3].min() == 255
    assert read(contents(name), 1, 8).shape == (H, W, 1)
    assert tuple(step.stored_size(tf.constant(contents(name))).numpy()) == (H, W)


@pytest.mark.parametrize("name", FORMATS)
def test_16_bits_and_damage_are_told(name: str) -> None:
    import tensorflow as tf

    from pipegen.ops.transforms.decode import Decode

    with pytest.raises(UnreadableError, match=f"is an? {name} image, but `bits: 16` needs files of 16 bits"):
        read(contents(name), 3, 16)
    whole = contents(name)
    for damaged in (whole[:40], whole[: len(whole) // 2], whole[:60] + bytes(len(whole) - 60)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"is damaged|JPEG, PNG"):
            Decode().decode(tf.constant(damaged))


@pytest.mark.skipif(not is_readable("AVIF"), reason="no plugin for AVIF")
def test_the_depth_of_an_avif_stands_in_its_header() -> None:
    whole = bytearray(contents("AVIF"))
    assert library.bits_of_head(bytes(whole)) == 8
    at = whole.index(b"av1C") + 6
    for flags, bits in ((0x40, 10), (0x60, 12)):
        whole[at] = whole[at] & ~0x60 | flags
        assert library.bits_of_head(bytes(whole)) == bits


@pytest.mark.skipif(not is_readable("HEIC"), reason="no plugin for HEIC")
def test_a_heic_of_10_bits_is_never_cut() -> None:
    import pillow_heif

    buffer = io.BytesIO()
    deep = (pixels().astype(np.uint16) << 6).tobytes()
    pillow_heif.encode("RGB;16", (W, H), deep, buffer, quality=-1)
    with pytest.raises(UnreadableError, match=r"is a 1\d-bit HEIC image, which would be cut to 8 bits"):
        read(buffer.getvalue(), 3, 8)


@pytest.mark.parametrize("name", [pytest.param("HEIC", marks=FORMATS[0].marks), pytest.param("JPEG XL", marks=FORMATS[2].marks)])
def test_a_missing_plugin_is_a_finding_with_the_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(contents(name))
    Image.fromarray(pixels()).save(tmp_path / "a" / "two.png")
    source = ImageFolder(path=".")
    assert source.list(tmp_path).keys == ("a/one", "a/two.png")
    found = importlib.util.find_spec
    monkeypatch.setattr(library, "find_spec", lambda module: None if module.startswith("pillow") else found(module))
    listing = source.list(tmp_path)
    assert listing.keys == ("a/two.png",)
    (note,) = listing.notes
    assert note.code == "PG414"
    assert note.help is not None
    assert note.help[0] == f"pip install 'pipegen[{library.PLUGINS[name].extra}]'"
    with pytest.raises(UnreadableError, match=r"which pillow-\S+ reads: pip install"):
        read(contents(name), 3, 8)
    (tmp_path / "a" / "two.png").unlink()
    with pytest.raises(OpError, match=f"1 image of unsupported formats .{name}."):
        source.list(tmp_path)
