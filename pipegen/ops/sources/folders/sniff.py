"""Recognises image formats by content and, for speed, by extension."""

from __future__ import annotations

from pipegen.ops.lowering.library import PLUGINS, plugin_format

HEAD_BYTES = 16  # bytes that `sniff` needs

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm", "pnm"})
"""Extensions, in lower case, of images that are listed without opening them."""

UNSUPPORTED_EXTENSIONS = {
    "heic": "HEIC", "heif": "HEIC", "avif": "AVIF", "jp2": "JPEG 2000", "jxl": "JPEG XL",
}  # fmt: skip
"""Extensions of image formats that cannot always be decoded, with the format's name."""

OTHER_EXTENSIONS = frozenset({
    "txt", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "log", "md", "html", "pdf", "doc", "docx", "xls", "xlsx",
    "npy", "npz", "pkl", "mat", "h5", "hdf5", "pt", "parquet", "tfrecord", "db", "py", "ipynb", "pyc", "sh", "bat", "lock", "svg",
    "zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "mp3", "wav", "mp4", "avi", "mov", "mkv",
})  # fmt: skip
"""Extensions of other files that are not opened either: labels often lie beside images."""

BY_PLUGIN = frozenset(PLUGINS)  # formats that `sniff` recognises but only some installations decode


def sniff(head: bytes) -> str | None:
    """Recognises the format of a file that begins with `head`.

    Args:
        head: The first `HEAD_BYTES` bytes, or all of a shorter file.

    Returns:
        `JPEG`, `PNG`, `GIF`, `BMP`, `WebP`, `TIFF` or `PPM` (also for PGM and PBM); one of `BY_PLUGIN`; `None` for other files.
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    # "BM" alone would also match text; byte 14 has the size of the second header.
    if head[:2] == b"BM" and len(head) >= 16 and int.from_bytes(head[14:16], "little") in (12, 40, 52, 56, 64, 108, 124):
        return "BMP"
    if head.startswith((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")):
        return "TIFF"
    # "P5" alone would also match text; a size or a comment follows.
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace() and (head[3:4].isdigit() or head[3:4] == b"#"):
        return "PPM"
    return plugin_format(head)
