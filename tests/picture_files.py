"""Pictures in every form of every format that is read: by Pillow and tifffile where they write it, by hand where they do not."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
import tifffile
from PIL import Image, ImageOps

from pipegen.ops.lowering.library import ready_for

Array = np.ndarray[Any, Any]
HEIGHT, WIDTH = 22, 19
"""Odd sides, so that rows are padded, bits end within a byte and chroma is cut."""
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def photo(height: int = HEIGHT, width: int = WIDTH) -> Array:
    """Smooth colours with a bright corner, uint8 `(height, width, 3)`: no symmetry, so that each orientation is another picture."""
    y, x = np.mgrid[:height, :width]
    planes = [40 + 200 * x / width, 30 + 180 * y / height, 200 - 90 * (x + y) / (height + width)]
    picture = np.stack(planes, -1)
    picture[: height // 4, : width // 3] += 30
    return np.clip(picture, 0, 255).astype(np.uint8)


def indices(colours: int, height: int = HEIGHT, width: int = WIDTH) -> Array:
    """An index of each of so many colours, uint8 `(height, width)`; each occurs."""
    found: Array = (np.arange(height * width).reshape(height, width) * 7 // 3 % colours).astype(np.uint8)
    return found


def palette(colours: int) -> Array:
    """So many different colours, none of them gray, uint8 `(colours, 3)`."""
    i = np.arange(colours)
    return np.stack([(i * 37 + 11) % 256, (i * 91 + 60) % 256, (255 - i * 53) % 256], -1).astype(np.uint8)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    held = io.BytesIO()
    image.save(held, form, **options)
    return held.getvalue()


def exif_block(orientation: int, *, long: bool = False, big: bool = True, more: int = 0) -> bytes:
    """A TIFF header with a directory of one orientation, and entries before it."""
    order = ">" if big else "<"
    entries = [struct.pack(f"{order}HHI4s", 0x100 + i, 3, 1, b"\0\1\0\0") for i in range(more)]
    value = struct.pack(f"{order}I", orientation) if long else struct.pack(f"{order}HH", orientation, 0)
    entries.append(struct.pack(f"{order}HHI", 0x112, 4 if long else 3, 1) + value)
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(f"{order}I", 8)
    return head + struct.pack(f"{order}H", len(entries)) + b"".join(entries) + bytes(4)


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'


# ---- PNG


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    samples: Array,
    bits: int,
    colour: int,
    *,
    before: Sequence[tuple[bytes, bytes]] = (),
    behind: Sequence[tuple[bytes, bytes]] = (),
    idat: int | None = None,
    interlace: bool = False,
) -> bytes:
    """A PNG of samples `(height, width, n)`, written by hand.

    Args:
        samples: Values of so many bits.
        bits: Of a sample.
        colour: The colour type.
        before: Chunks in front of the pixels, and behind them.
        behind: Likewise.
        idat: Bytes of a chunk of pixels; all in one by default.
        interlace: Whether it is stored in the seven passes of Adam7.
    """
    height, width = samples.shape[:2]

    def rows(part: Array) -> bytes:
        if not part.size:
            return b""
        if bits == 16:
            packed = [row.astype(">u2").tobytes() for row in part]
        elif bits == 8:
            packed = [row.astype(np.uint8).tobytes() for row in part]
        else:
            packed = [packed_bits(row.ravel(), bits) for row in part]
        return b"".join(b"\0" + row for row in packed)

    passes = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    raw = b"".join(rows(samples[a::c, b::d]) for a, b, c, d in passes) if interlace else rows(samples)
    data = zlib.compress(raw)
    step = idat or len(data)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, int(interlace))), *before]
    chunks += [(b"IDAT", data[at : at + step]) for at in range(0, len(data), step)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in (*chunks, *behind, (b"IEND", b"")))


def packed_bits(values: Array, bits: int) -> bytes:
    """Values of 1, 2 or 4 bits, the first in the highest, each row filled up to whole bytes."""
    split = (values[:, None] >> np.arange(bits - 1, -1, -1)) & 1
    return np.packbits(split.astype(np.uint8).ravel()).tobytes()


def png_files() -> Iterator[tuple[str, bytes]]:
    colour, gray = photo(), photo()[..., 0]
    alpha = (indices(256) * 3).astype(np.uint8)
    for interlace in (False, True):
        name = " interlaced" if interlace else ""
        own: dict[str, Any] = {"interlace": interlace}
        for bits in (1, 2, 4, 8):
            levels = 2**bits
            yield f"gray {bits}{name}", png((gray >> (8 - bits))[..., None], bits, 0, **own)
            colours = palette(levels)
            plte = (b"PLTE", colours.tobytes())
            yield f"palette {bits}{name}", png(indices(levels)[..., None], bits, 3, before=[plte], **own)
            clear = (b"tRNS", bytes([0, 128][: min(2, levels)]))
            yield f"palette {bits} tRNS{name}", png(indices(levels)[..., None], bits, 3, before=[plte, clear], **own)
        few = (b"PLTE", palette(5).tobytes())
        yield f"palette of 5 in 8{name}", png(indices(5)[..., None], 8, 3, before=[few], **own)
        yield f"rgb{name}", png(colour, 8, 2, **own)
        yield f"rgb tRNS{name}", png(colour, 8, 2, before=[(b"tRNS", struct.pack(">HHH", *colour[3, 3].tolist()))], **own)
        yield f"gray tRNS{name}", png(gray[..., None], 8, 0, before=[(b"tRNS", struct.pack(">H", int(gray[3, 3])))], **own)
        yield f"gray alpha{name}", png(np.stack([gray, alpha], -1), 8, 4, **own)
        yield f"rgba{name}", png(np.dstack([colour, alpha]), 8, 6, **own)
    told = [
        ("gAMA", [(b"gAMA", struct.pack(">I", 100000))]),
        ("sRGB", [(b"sRGB", b"\0")]),
        ("cHRM", [(b"gAMA", struct.pack(">I", 45455)), (b"cHRM", struct.pack(">8I", *range(30000, 38000, 1000)))]),
        ("sBIT", [(b"sBIT", b"\5\6\5")]),
        ("bKGD", [(b"bKGD", struct.pack(">HHH", 9, 200, 30))]),
        ("pHYs", [(b"pHYs", struct.pack(">IIB", 1000, 3000, 1))]),
        ("text", [(b"tEXt", b"Comment\0eXIf IDAT IEND")]),
    ]
    for name, before in told:
        yield f"rgb {name}", png(colour, 8, 2, before=before)
    yield "rgb in small chunks", png(colour, 8, 2, idat=100)
    frames = [Image.fromarray(colour), Image.fromarray(255 - colour)]
    yield "animated", saved(frames[0], "PNG", save_all=True, append_images=frames[1:])
    yield "animated beside its picture", saved(frames[0], "PNG", save_all=True, append_images=frames[1:], default_image=True)
    yield "bytes behind", png(colour, 8, 2) + b"behind"


# ---- BMP


def bmp(
    rows: Sequence[bytes] | bytes,
    size: tuple[int, int],
    bits: int,
    *,
    header: int = 40,
    packing: int = 0,
    colours: Array | None = None,
    used: int = 0,
    masks: Sequence[int] = (),
    down: bool = False,
    gap: int = 0,
    behind: bytes = b"",
) -> bytes:
    """A BMP.

    Args:
        rows: Of pixels, the first the highest in the picture, or packed pixels.
        size: Height and width.
        bits: Of a pixel.
        header: The length of the header behind the file's own.
        packing: 0 for none, 1 for runs of 8 bits, 2 of 4 bits, 3 for masks.
        colours: The palette.
        used: What the header says of how many colours there are.
        masks: Of red, green, blue, and in later headers alpha.
        down: Whether the rows are stored from the top.
        gap: Bytes between header and pixels.
        behind: What follows the pixels.
    """
    height, width = size
    if isinstance(rows, bytes):
        pixels = rows
    else:
        padded = [row + bytes(-len(row) % 4) for row in rows]
        pixels = b"".join(padded if down else padded[::-1])
    table = b"" if colours is None else colours[:, ::-1].tobytes()
    if header == 12:
        about = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        about = struct.pack("<IiiHHIIiiII", header, width, -height if down else height, 1, bits, packing, len(pixels), 2835, 2835, used, 0)
        after = b"".join(struct.pack("<I", mask) for mask in masks)
        room = header - 40
        about += (after[:room].ljust(room, b"\0")) if room else after
        table = b"" if colours is None else b"".join(bytes([b, g, r, 0]) for r, g, b in colours.tolist())
    start = 14 + len(about) + len(table) + gap
    return b"BM" + struct.pack("<IHHI", start + len(pixels) + len(behind), 0, 0, start) + about + table + bytes(gap) + pixels + behind


def in_runs(picture: Array, bits: Literal[4, 8]) -> bytes:
    """A palette's indices packed in runs from the bottom up, with stretches as they are, a jump over zeros, and ends of lines."""
    out = bytearray()
    for y in range(len(picture) - 1, -1, -1):
        row, x = picture[y], 0
        while x < len(row):
            same = 1
            while x + same < len(row) and row[x + same] == row[x] and same < 255:
                same += 1
            if row[x] == 0 and same >= 3:
                out += bytes([0, 2, same, 0])  # to the right by so many
            elif same >= 3 or len(row) - x < 4:
                value = int(row[x])
                out += bytes([same, value if bits == 8 else value << 4 | value])
            else:
                same = min(5, len(row) - x)
                part = row[x : x + same]
                data = part.tobytes() if bits == 8 else packed_bits(part, 4)
                out += bytes([0, same]) + data + bytes(len(data) % 2)
            x += same
        out += b"\0\0"
    return bytes(out + b"\0\1")


def bmp_files() -> Iterator[tuple[str, bytes]]:
    colour, size = photo(), (HEIGHT, WIDTH)
    blue_first = [row[:, ::-1].tobytes() for row in colour]
    four = [np.dstack([row[None, :, ::-1], np.full((1, WIDTH), 77, np.uint8)]).tobytes() for row in colour]
    for header in (12, 40, 52, 56, 64, 108, 124):
        yield f"24 bits, header {header}", bmp(blue_first, size, 24, header=header)
        if header != 12:
            yield f"32 bits, header {header}", bmp(four, size, 32, header=header)
        for bits in (1, 4, 8):
            rows = [packed_bits(row, bits) if bits < 8 else row.tobytes() for row in indices(2**bits)]
            yield f"{bits} bits, header {header}", bmp(rows, size, bits, header=header, colours=palette(2**bits))
            if header != 12:
                some = 2**bits - 1 if bits > 1 else 2
                fewer = [packed_bits(row, bits) if bits < 8 else row.tobytes() for row in indices(some)]
                yield (
                    f"{bits} bits of {some} colours, header {header}",
                    bmp(fewer, size, bits, header=header, colours=palette(some), used=some),
                )
    yield "24 bits from the top", bmp(blue_first, size, 24, down=True)
    yield "32 bits from the top", bmp(four, size, 32, down=True)
    rows = [row.tobytes() for row in indices(256)]
    yield "8 bits from the top", bmp(rows, size, 8, colours=palette(256), down=True)
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)
    yield "8 bits of gray", bmp([row.tobytes() for row in colour[..., 0]], size, 8, colours=ramp)
    yield "1 bit of black and white", bmp([packed_bits(row, 1) for row in indices(2)], size, 1, colours=ramp[[0, 255]])
    for name, options in (("a gap", {"gap": 10}), ("bytes behind", {"behind": b"xyz"}), ("both", {"gap": 6, "behind": b"12345678"})):
        yield f"24 bits with {name}", bmp(blue_first, size, 24, **options)  # type: ignore[arg-type]
        yield f"32 bits with {name}", bmp(four, size, 32, **options)  # type: ignore[arg-type]
        yield f"8 bits with {name}", bmp(rows, size, 8, colours=palette(256), **options)  # type: ignore[arg-type]
    few = np.where(indices(9) > 4, indices(9), 0) * (indices(2, HEIGHT, WIDTH) | 1)
    runs = np.repeat(few[:, ::4], 4, 1)[:, :WIDTH]
    for header in (40, 124):
        for bits, packing in ((8, 1), (4, 2)):
            for name, picture in (("runs", runs), ("stretches", few)):
                data = in_runs(picture, bits)  # type: ignore[arg-type]
                yield (
                    f"RLE{bits} of {name}, header {header}",
                    bmp(data, size, bits, header=header, packing=packing, colours=palette(16), used=16),
                )
    for masks in ((0xF800, 0x7E0, 0x1F), (0x7C00, 0x3E0, 0x1F)):
        high, low = [bin(mask).count("1") for mask in masks], [(mask & -mask).bit_length() - 1 for mask in masks]
        words = sum((colour[..., i].astype(np.uint16) >> (8 - high[i])) << low[i] for i in range(3)).astype("<u2")
        for header in (40, 52, 56, 108, 124):
            rows = [row.tobytes() for row in words]
            yield f"16 bits {''.join(map(str, high))}, header {header}", bmp(rows, size, 16, header=header, packing=3, masks=masks)
        if high == [5, 5, 5]:
            yield "16 bits without masks", bmp([row.tobytes() for row in words], size, 16)
    every = [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
             (0xFF, 0xFF00, 0xFF0000, 0xFF000000), (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF000000, 0xFF00, 0xFF, 0xFF0000),
             (0xFF, 0xFF00, 0xFF0000, 0), (0x3FF00000, 0xFFC00, 0x3FF, 0)]  # fmt: skip
    alpha = (indices(256) * 3).astype(np.uint32)
    for masks in every:
        words = np.zeros((HEIGHT, WIDTH), np.uint32)
        for i, mask in enumerate(masks):
            shift = (mask & -mask).bit_length() - 1 if mask else 0
            words |= ((colour[..., i].astype(np.uint32) if i < 3 else alpha) << shift) & mask
        rows = [row.astype("<u4").tobytes() for row in words]
        for header in (40, 108) if not masks[3] else (56, 108, 124):
            name = " ".join(f"{mask:x}" for mask in masks)
            yield (
                f"32 bits {name}, header {header}",
                bmp(rows, size, 32, header=header, packing=3, masks=masks[:3] if header == 40 else masks),
            )
    for bits in (24, 32):
        whole = bmp(blue_first if bits == 24 else four, size, bits)
        yield f"{bits} bits cut short", whole[:-40]
    yield "8 bits cut short", bmp([row.tobytes() for row in indices(256)], size, 8, colours=palette(256))[:-40]
    yield "header of 16", bmp(blue_first, size, 24, header=40).replace(struct.pack("<I", 40), struct.pack("<I", 16), 1)
    yield "JPEG within", bmp(saved(Image.fromarray(colour), "JPEG"), size, 0, packing=4)


# ---- GIF


def lzw(values: Array, least: int) -> bytes:
    """Indices packed as GIF does it, in blocks: with a table that is begun anew before codes grow."""
    clear, end, width = 1 << least, (1 << least) + 1, least + 1
    codes: list[int] = []
    for i, value in enumerate(values.ravel().tolist()):
        if i % max(1, (1 << least) - 2) == 0:
            codes.append(clear)
        codes.append(value)
    codes.append(end)
    bits = "".join(format(code, f"0{width}b")[::-1] for code in codes)
    bits += "0" * (-len(bits) % 8)
    data = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
    return bytes([least]) + b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255)) + b"\0"


def gif_frame(
    picture: Array,
    *,
    at: tuple[int, int] = (0, 0),
    local: Array | None = None,
    least: int,
    clear: int | None = None,
    dispose: int = 0,
    interlace: bool = False,
    control: bool = False,
) -> bytes:
    """One frame of indices; `at` is its top and left on the canvas."""
    height, width = picture.shape
    order = [*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)] if interlace else [*range(height)]
    out = b""
    if clear is not None or dispose or control:
        out += b"\x21\xf9\x04" + bytes([dispose << 2 | (clear is not None), 10, 0, clear or 0, 0])
    flags = (0x40 if interlace else 0) | (0 if local is None else 0x80 | (len(local).bit_length() - 2))
    out += b"\x2c" + struct.pack("<HHHHB", at[1], at[0], width, height, flags)
    return out + (b"" if local is None else local.tobytes()) + lzw(picture[order], least)


def gif(
    frames: Sequence[bytes],
    size: tuple[int, int] = (HEIGHT, WIDTH),
    colours: Array | None = None,
    *,
    version: bytes = b"89a",
    back: int = 0,
    before: bytes = b"",
    end: bytes = b";",
) -> bytes:
    flags = 0x70 if colours is None else 0xF0 | (len(colours).bit_length() - 2)
    head = b"GIF" + version + struct.pack("<HHBBB", size[1], size[0], flags, back, 0)
    return head + (b"" if colours is None else colours.tobytes()) + before + b"".join(frames) + end


LOOP = b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
NOTE = b"\x21\xfe\x05hello\x07 GIF8;,\0"


def gif_files() -> Iterator[tuple[str, bytes]]:
    for bits in (1, 2, 4, 8):
        colours, picture = palette(2**bits), indices(2**bits)
        least = max(2, bits)
        for version in (b"87a", b"89a"):
            yield f"{bits} bits {version.decode()}", gif([gif_frame(picture, least=least)], colours=colours, version=version)
        yield f"{bits} bits interlaced", gif([gif_frame(picture, least=least, interlace=True)], colours=colours)
        yield f"{bits} bits, own palette", gif([gif_frame(picture, least=least, local=colours)])
        yield f"{bits} bits, own palette before all", gif([gif_frame(picture, least=least, local=colours)], colours=colours[::-1])
        for clear in (0, 2**bits - 1):
            yield f"{bits} bits, {clear} clear", gif([gif_frame(picture, least=least, clear=clear)], colours=colours, back=1)
    colours, picture = palette(16), indices(16)
    small = indices(16, 9, 8)
    yield "control without transparency", gif([gif_frame(picture, least=4, control=True)], colours=colours)
    yield "clear index that does not occur", gif([gif_frame(indices(15), least=4, clear=15)], colours=colours)
    yield "loop and comment", gif([gif_frame(picture, least=4)], colours=colours, before=LOOP + NOTE)
    for place in ((5, 6), (0, 0), (13, 11), (1, 0)):
        for back in (0, 3):
            yield f"frame at {place}, back {back}", gif([gif_frame(small, at=place, least=4)], colours=colours, back=back)
            yield f"clear frame at {place}, back {back}", gif([gif_frame(small, at=place, least=4, clear=2)], colours=colours, back=back)
    yield "frame beyond the canvas", gif([gif_frame(small, at=(18, 15), least=4)], colours=colours)
    yield "frame larger than the canvas", gif([gif_frame(picture, least=4)], (7, 6), colours=colours)
    yield "wide frame", gif([gif_frame(indices(16, 9, WIDTH), at=(4, 0), least=4)], colours=colours)
    yield "tall frame", gif([gif_frame(indices(16, HEIGHT, 8), at=(0, 4), least=4)], colours=colours)
    yield "no palette", gif([gif_frame(picture, least=4)])
    yield "fewer colours than indices", gif([gif_frame(indices(16), least=4)], colours=palette(8))
    ramp = np.repeat(np.arange(16, dtype=np.uint8)[:, None], 3, 1)
    yield "a ramp of gray", gif([gif_frame(picture, least=4)], colours=ramp)
    yield "other grays", gif([gif_frame(picture, least=4)], colours=ramp[::-1] * 17)
    for dispose in (0, 1, 2, 3):
        second = gif_frame(small, at=(2, 3), least=4, dispose=dispose)
        yield f"two frames, disposal {dispose}", gif([gif_frame(picture, least=4, dispose=dispose), second], colours=colours)
        yield f"two small frames, disposal {dispose}", gif([gif_frame(small, at=(9, 9), least=4, dispose=dispose), second], colours=colours)
    yield "second frame clear", gif([gif_frame(picture, least=4), gif_frame(picture, least=4, clear=1)], colours=colours)
    yield "comment between frames", gif([gif_frame(picture, least=4), NOTE, gif_frame(picture, least=4)], colours=colours)
    whole = gif([gif_frame(picture, least=4)], colours=colours)
    yield "no end", whole[:-1]
    yield "bytes behind", whole + b"behind"
    yield "cut short", whole[:-60]
    yield "cut short in the second frame", gif([gif_frame(picture, least=4), gif_frame(picture, least=4)], colours=colours)[:-60]
    yield "cut short before the frame", whole[:40]
    yield "no frame", gif([], colours=colours)
    yield "Pillow's", saved(Image.fromarray(photo()).quantize(30), "GIF")
    yield "Pillow's, clear", saved(Image.fromarray(photo()).quantize(30), "GIF", transparency=4)
    moving = [Image.fromarray(np.roll(photo(), i, 0)).quantize(30) for i in range(3)]
    yield "Pillow's, moving", saved(moving[0], "GIF", save_all=True, append_images=moving[1:])


# ---- TIFF


def tiff(array: Array, **options: Any) -> bytes:
    held = io.BytesIO()
    tifffile.imwrite(held, array, **options)
    return held.getvalue()


def tiff_files() -> Iterator[tuple[str, bytes]]:
    colour, gray = photo(), photo()[..., 0]
    rgba = np.dstack([colour, indices(256)])
    image = Image.fromarray(colour)
    for name in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        yield f"rgb {name}", saved(image, "TIFF", compression=name)
        yield f"gray {name}", saved(image.convert("L"), "TIFF", compression=name)
    for name in ("raw", "group3", "group4", "tiff_lzw", "packbits", "tiff_ccitt"):
        yield f"1 bit {name}", saved(Image.fromarray(gray > 120), "TIFF", compression=name)
    for mode in ("L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I;16", "I", "F"):
        if mode == "LAB":
            converted: Any = Image.frombytes("LAB", image.size, colour.tobytes())
        elif mode == "P":
            converted = image.quantize(200)
        elif mode == "I;16":
            converted = Image.fromarray(gray.astype(np.uint16) * 257)
        else:
            converted = image.convert(mode)
        yield f"mode {mode}", saved(converted, "TIFF")
    for order in "<>":
        yield f"rgb {order}", tiff(colour, photometric="rgb", byteorder=order)
        yield f"gray {order}", tiff(gray, photometric="minisblack", byteorder=order)
    yield "white is zero", tiff(gray, photometric="miniswhite")
    yield "planes apart", tiff(np.moveaxis(colour, -1, 0).copy(), photometric="rgb", planarconfig="separate")
    yield "in tiles", tiff(photo(48, 40), photometric="rgb", tile=(16, 16))
    yield "in strips", tiff(colour, photometric="rgb", rowsperstrip=3)
    yield "deflate, predictor", tiff(colour, photometric="rgb", compression="zlib", predictor=True)
    yield "BigTIFF", tiff(colour, photometric="rgb", bigtiff=True)
    for kind in ("unassalpha", "assocalpha", "unspecified"):
        yield f"fourth sample {kind}", tiff(rgba, photometric="rgb", extrasamples=[kind])
        yield (
            f"second sample {kind}",
            tiff(np.dstack([gray, indices(256)]), photometric="minisblack", planarconfig="contig", extrasamples=[kind]),
        )
    yield (
        "five samples",
        tiff(np.dstack([rgba, gray]), photometric="rgb", planarconfig="contig", extrasamples=["unassalpha", "unspecified"]),
    )
    held = io.BytesIO()
    with tifffile.TiffWriter(held) as pages:
        for page in (colour, 255 - colour):
            pages.write(page, photometric="rgb", contiguous=False)
    yield "two pages", held.getvalue()
    for bits in (4,):
        yield f"gray {bits} by hand", bare_tiff(b"".join(packed_bits(row >> 4, bits) for row in gray), bits)
    yield (
        "1 bit, filled from the right",
        bare_tiff(
            b"".join(bytes(int(f"{b:08b}"[::-1], 2) for b in packed_bits((row > 120).astype(np.uint8), 1)) for row in gray), 1, fill=2
        ),
    )
    for kind, samples in RARE:
        yield f"{kind} of {samples}", tiff(np.resize(rgba, (HEIGHT, WIDTH, samples)), photometric=kind, planarconfig="contig")
    yield "mosaic", tiff(gray, photometric="cfa")
    yield "16 bits of LAB", tiff(colour.astype(np.uint16) * 257, photometric="cielab")
    yield "16 bits of a palette", tiff(gray.astype(np.uint16), photometric="palette", colormap=np.zeros((3, 65536), np.uint16))
    yield (
        "an unknown compression",
        tiff(gray, photometric="minisblack").replace(struct.pack("<HHIH", 259, 3, 1, 1), struct.pack("<HHIH", 259, 3, 1, 34712)),
    )
    yield "floats", tiff(colour.astype(np.float32), photometric="rgb")
    yield "signed", tiff(gray.astype(np.int16), photometric="minisblack")
    yield "32 bits", tiff(gray.astype(np.uint32), photometric="minisblack")
    yield "cut short", saved(image, "TIFF")[:-300]


RARE = [(kind, n) for kind in ("separated", "ycbcr", "cielab", "icclab", "itulab", "logluv", "linear_raw") for n in (3, 4, 5)
        if n > 3 or kind != "separated"]  # fmt: skip
"""Photometric interpretations and numbers of samples, most of which Pillow does not open."""


def bare_tiff(data: bytes, bits: int, *, fill: int = 1, size: tuple[int, int] = (HEIGHT, WIDTH)) -> bytes:
    """Gray samples in one strip."""
    tags = [(256, 4, size[1]), (257, 4, size[0]), (258, 3, bits), (259, 3, 1), (262, 3, 1), (266, 3, fill), (273, 4, 0), (277, 3, 1),
            (278, 4, size[0]), (279, 4, len(data))]  # fmt: skip
    start = 8 + 2 + 12 * len(tags) + 4
    tags = [(tag, kind, start if tag == 273 else value) for tag, kind, value in tags]
    table = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + table + bytes(4) + data


# ---- WebP, AVIF and their kin


def webp_files() -> Iterator[tuple[str, bytes]]:
    image = Image.fromarray(photo())
    rgba = Image.fromarray(np.dstack([photo(), indices(256)]))
    for lossless in (False, True):
        name = "lossless" if lossless else "lossy"
        yield f"{name}", saved(image, "WEBP", lossless=lossless)
        yield f"{name} with transparency", saved(rgba, "WEBP", lossless=lossless)
        yield f"{name} with transparency, exact", saved(rgba, "WEBP", lossless=lossless, exact=True)
        yield f"{name} with a profile", saved(image, "WEBP", lossless=lossless, icc_profile=b"x" * 200)
    yield "cut short", saved(image, "WEBP", lossless=True)[:-60]


# ---- JPEG


def segments(contents: bytes) -> Iterator[tuple[int, int, int]]:
    """The marker, the begin and the end of each segment of a JPEG up to its scan."""
    at = 2
    while contents[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(contents[at + 2 : at + 4], "big")
        yield contents[at + 1], at, end
        at = end


def without(contents: bytes, *markers: int) -> bytes:
    """A JPEG less the segments of some markers."""
    for marker, at, end in reversed([*segments(contents)]):
        if marker in markers:
            contents = contents[:at] + contents[end:]
    return contents


def segment(marker: int, data: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def with_segments(contents: bytes, *added: bytes) -> bytes:
    """A JPEG with segments at its begin."""
    return contents[:2] + b"".join(added) + contents[2:]


JFIF = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")


def jpeg_files() -> Iterator[tuple[str, bytes]]:
    image = Image.fromarray(photo())
    yield "gray", saved(image.convert("L"), "JPEG")
    for name, sub in (("4:4:4", 0), ("4:2:2", 1), ("4:2:0", 2)):
        yield name, saved(image, "JPEG", subsampling=sub, quality=90)
    yield "progressive", saved(image, "JPEG", progressive=True)
    yield "restarts", saved(image, "JPEG", restart_marker_blocks=2)
    yield "rgb", saved(image, "JPEG", keep_rgb=True)
    cmyk = saved(image.convert("CMYK"), "JPEG", quality=95)
    yield "CMYK", cmyk
    yield "CMYK without marker", without(cmyk, 0xEE)
    yield "CMYK behind JFIF", with_segments(cmyk, JFIF)
    yield "CMYK without marker behind JFIF", with_segments(without(cmyk, 0xEE), JFIF)
    ycck = with_segments(without(cmyk, 0xEE), segment(0xEE, b"Adobe\0\x64\0\0\0\0\2"))
    yield "YCCK", ycck
    yield (
        "CMYK with a profile of 100 KB",
        with_segments(cmyk, *(segment(0xE2, b"ICC_PROFILE\0" + bytes([i, 2]) + bytes(50000)) for i in (1, 2))),
    )
    yield "a thumbnail", with_segments(saved(image, "JPEG"), segment(0xE1, b"Exif\0\0" + exif_block(1) + saved(image, "JPEG")))
    yield "bytes behind", saved(image, "JPEG") + b"behind"
    yield "stray bytes before the end", saved(image, "JPEG")[:-2] + bytes(7) + b"\xff\xd9"


def oriented(form: str, orientation: int, *, long: bool = False, size: tuple[int, int] = (22, 19)) -> bytes:
    """A picture with an orientation."""
    image = Image.fromarray(photo(*size))
    block = exif_block(orientation, long=long, big=orientation % 2 == 0, more=3)
    if form.startswith("PNG"):
        where: Literal["before", "behind"] = "behind" if form == "PNG behind" else "before"
        return png(np.asarray(image), 8, 2, idat=300, **{where: [(b"eXIf", block)]})  # type: ignore[arg-type]
    if form.startswith("JPEG"):
        far = [segment(0xE2, b"ICC_PROFILE\0" + bytes(40000))] * 3 if form != "JPEG" else []
        return with_segments(saved(image, "JPEG"), *far, segment(0xE1, b"Exif\0\0" + block))
    if form == "TIFF":
        return saved(image, "TIFF", tiffinfo={274: orientation})
    return saved(image, form, exif=block)


FORMATS: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "PNG": png_files, "BMP": bmp_files, "GIF": gif_files, "TIFF": tiff_files, "WebP": webp_files, "JPEG": jpeg_files,
}  # fmt: skip


@cache
def files(form: str) -> dict[str, bytes]:
    """All pictures of a format, by what is odd about them."""
    return dict(FORMATS[form]())


def pillow(contents: bytes, channels: int, *, exif: str = "apply") -> Array | str:
    """What Pillow makes of a file of 8 bits, uint8 `(height, width, channels)`; or why it makes nothing of it."""
    try:
        ready_for(contents)
        with Image.open(io.BytesIO(contents)) as image:
            if image.mode not in ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "RGBX", "La", "RGBa"):
                return f"mode {image.mode}"
            upright = ImageOps.exif_transpose(image) if exif == "apply" else image
            pixels = np.asarray(upright.convert(MODES[channels]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return pixels if pixels.ndim == 3 else pixels[..., None]
