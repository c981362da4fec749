"""Formats by content."""

from __future__ import annotations

import pytest

from pipegen.ops.sources.folders.scan import HEAD_BYTES, sniff


@pytest.mark.parametrize(
    ("extension", "kind"),
    [(".jpg", "JPEG"), (".png", "PNG"), (".gif", "GIF"), (".bmp", "BMP"), (".webp", "WebP"), (".tif", "TIFF"), (".ppm", "PPM")],
)
def test_formats_that_pillow_writes_are_told_by_their_head(image_bytes: dict[str, bytes], extension: str, kind: str) -> None:
    assert sniff(image_bytes[extension][:HEAD_BYTES]) == kind


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff\xd8",
        b"BM",
        b"BMW is a car maker",
        b"RIFF1234WAVEfmt ",
        b"GIF",
        b"%PDF-1.7 and more",
        b"P",
        b"P6 is a city",
        b"P7\nWIDTH 4",
    ],
)
def test_other_files_are_no_images(head: bytes) -> None:
    assert sniff(head[:HEAD_BYTES]) is None


@pytest.mark.parametrize(("brand", "kind"), [(b"heic", "HEIC"), (b"avif", "AVIF"), (b"mp42", None)])
def test_phone_formats_are_known_and_films_are_not(brand: bytes, kind: str | None) -> None:
    assert sniff(b"\x00\x00\x00\x1cftyp" + brand + b"\x00\x00\x00\x00") == kind
