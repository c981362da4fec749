"""Image formats by content and, to be quick, by extension. Nothing here decodes."""

from __future__ import annotations

from pipegen.ops.lowering.library import PLUGINS, plugin_format

HEAD_BYTES = 16
"""How much of a file `sniff` wants to see, in bytes."""

IMAGE_EXTENSIONS = frozenset({"jpg", "jpeg", "jpe", "jfif", "png", "gif", "bmp", "webp", "tif", "tiff", "ppm", "pgm", "pbm", "pnm"})
"""Extensions, in lower case, of files that are taken without opening them."""

UNSUPPORTED_EXTENSIONS = {
    "heic": "HEIC", "heif": "HEIC", "avif": "AVIF", "jp2": "JPEG 2000", "jxl": "JPEG XL",
}  # fmt: skip
"""Extensions of images in formats that are never, or not always, decoded, with the format's name."""

OTHER_EXTENSIONS = frozenset({
    "txt", "csv", "tsv", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "log", "md", "html", "pdf", "doc", "docx", "xls", "xlsx",
    "npy", "npz", "pkl", "mat", "h5", "hdf5", "pt", "parquet", "tfrecord", "db", "py", "ipynb", "pyc", "sh", "bat", "lock", "svg",
    "zip", "tar", "gz", "tgz", "bz2", "xz", "7z", "rar", "mp3", "wav", "mp4", "avi", "mov", "mkv",
})  # fmt: skip
"""Extensions of files that are known to be something else and are not opened either: labels often lie beside images."""

BY_PLUGIN = frozenset(PLUGINS)
"""What `sniff` can tell, and is decoded only where a library is installed."""


def sniff(head: bytes) -> str | None:
    """The format of a file that begins with `head`.

    Args:
        head: The first `HEAD_BYTES` bytes, or all of a shorter file.

    Returns:
        `JPEG`, `PNG`, `GIF`, `BMP`, `WebP`, `TIFF` or `PPM` (PGM and PBM too); one of `BY_PLUGIN`; or `None` when it is no
        image.
    """
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    # "BM" alone would also match a text; the size of the second header follows at byte 14.
    if head[:2] == b"BM" and len(head) >= 16 and int.from_bytes(head[14:16], "little") in (12, 40, 52, 56, 64, 108, 124):
        return "BMP"
    if head.startswith((b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")):
        return "TIFF"
    # "P5" alone would also match a text; a size or a comment follows.
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace() and (head[3:4].isdigit() or head[3:4] == b"#"):
        return "PPM"
    return plugin_format(head)
