"""Knows the image formats that Pillow reads by a plugin, or only when it was built so: HEIC, AVIF and JPEG XL."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

_BRANDS = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1"), "HEIC")
"""The brands of ISO base media files that hold images (ISO/IEC 14496-12 and 23008-12)."""
_JPEG_XL = (b"\xff\x0a", b"\x00\x00\x00\x0cJXL \r\n\x87\n")
"""How JPEG XL begins: a bare codestream, and a container (ISO/IEC 18181-2)."""
_HEAD = 64


@dataclass(frozen=True)
class Plugin:
    """Says what reads a format.

    Attributes:
        library: What people call it.
        module: What is imported; empty where Pillow itself may have it.
        extra: The extra of pipegen that brings it.
        format: What Pillow calls the format.
    """

    library: str
    module: str
    extra: str
    format: str


PLUGINS = {
    "HEIC": Plugin("pillow-heif", "pillow_heif", "heif", "HEIF"),
    "AVIF": Plugin("Pillow 11.3 or newer", "", "avif", "AVIF"),
    "JPEG XL": Plugin("pillow-jxl-plugin", "pillow_jxl", "jxl", "JXL"),
}


def plugin_format(head: bytes) -> str | None:
    """Names the format of a file that begins so, if it is one of `PLUGINS`; 16 bytes tell most, 64 all."""
    if head.startswith(_JPEG_XL):
        return "JPEG XL"
    if head[4:8] != b"ftyp":
        return None
    found = _BRANDS.get(head[8:12])
    if found == "HEIC" and b"avif" in head[16 : min(int.from_bytes(head[:4], "big"), _HEAD)]:
        return "AVIF"  # its brands stand behind that of still images in general
    return found


def is_readable(name: str) -> bool:
    """Returns whether a format of `PLUGINS` can be read here."""
    plugin = PLUGINS[name]
    if plugin.module:
        return find_spec(plugin.module) is not None
    from PIL import features

    return "avif" in features.modules and bool(features.check("avif"))


def missing_plugin(name: str) -> str:
    """Says what to install for a format of `PLUGINS`."""
    return f"pip install 'pipegen[{PLUGINS[name].extra}]'"


def register(name: str) -> None:
    """Tells Pillow of the plugin of a format, which is there."""
    if name == "HEIC":
        import pillow_heif

        pillow_heif.register_heif_opener()
    elif name == "JPEG XL":
        import pillow_jxl  # noqa: F401  # importing it is enough


def ready_for(contents: bytes) -> None:
    """Tells Pillow of the plugin that a file needs, where it needs one that is there."""
    name = plugin_format(contents[:_HEAD])
    if name is not None and is_readable(name):
        register(name)


def bits_of_head(contents: bytes) -> int:
    """Returns how many bits a value of an AVIF file has, by its `av1C` box (AV1-ISOBMFF, 2.3.3); 8 where none is found."""
    at = contents[: 1 << 14].find(b"av1C")
    if at < 0 or len(contents) < at + 7:
        return 8
    flags = contents[at + 6]
    return 12 if flags & 0x20 else 10 if flags & 0x40 else 8
