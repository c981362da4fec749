"""Image files read by Pillow and tifffile: formats that TensorFlow does not decode (TIFF, PPM and its kin; HEIC, AVIF and JPEG XL by
plugins), and files that it decodes differently, such as a transparent GIF or a packed BMP.

Inside a graph it is a call into Python for each file. Errors are returned as strings and raised by the graph, like TensorFlow's own.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.ops.lowering.exif import TURNS
from pipegen.ops.lowering.graphs import target
from pipegen.ops.lowering.python_calls import numpy_function

_BRANDS = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1"), "HEIC")
"""The brands of ISO base media files that hold images (ISO/IEC 14496-12 and 23008-12)."""
_JPEG_XL = (b"\xff\x0a", b"\x00\x00\x00\x0cJXL \r\n\x87\n")  # signatures of JPEG XL: a bare codestream, and a container (ISO/IEC 18181-2)
_HEAD = 64


@dataclass(frozen=True)
class Plugin:
    """The library that reads a format: its name in messages, the module to import ("" if Pillow itself may read the format), the extra of
    pipegen that installs it, and Pillow's name of the format."""

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
    """Detects a format of `PLUGINS` by the head of a file: 16 bytes for most, 64 for all."""
    if head.startswith(_JPEG_XL):
        return "JPEG XL"
    if head[4:8] != b"ftyp":
        return None
    found = _BRANDS.get(head[8:12])
    if found == "HEIC" and b"avif" in head[16 : min(int.from_bytes(head[:4], "big"), _HEAD)]:
        return "AVIF"  # its brand follows the general one of still images
    return found


def is_readable(name: str) -> bool:
    """Checks that a format of `PLUGINS` can be read in this environment."""
    plugin = PLUGINS[name]
    if plugin.module:
        return find_spec(plugin.module) is not None
    from PIL import features

    return "avif" in features.modules and bool(features.check("avif"))


def missing_plugin(name: str) -> str:
    """Returns the command that installs the plugin of a format of `PLUGINS`."""
    return f"pip install 'pipegen[{PLUGINS[name].extra}]'"


def register(name: str) -> None:
    """Registers the installed plugin of a format with Pillow."""
    if name == "HEIC":
        import pillow_heif

        pillow_heif.register_heif_opener()
    elif name == "JPEG XL":
        import pillow_jxl  # noqa: F401  # importing it is enough


def ready_for(contents: bytes) -> None:
    """Registers the plugin that a file needs with Pillow, if installed."""
    name = plugin_format(contents[:_HEAD])
    if name is not None and is_readable(name):
        register(name)


def bits_of_head(contents: bytes) -> int:
    """Reads the bits of a value of an AVIF file from its `av1C` box (AV1-ISOBMFF, 2.3.3); 8 without one."""
    at = contents[: 1 << 14].find(b"av1C")
    if at < 0 or len(contents) < at + 7:
        return 8
    flags = contents[at + 6]
    return 12 if flags & 0x20 else 10 if flags & 0x40 else 8


Exif = Literal["apply", "ignore"]
_FORMATS = ("TIFF", "PPM", "GIF", "BMP", "WEBP", "JPEG")  # formats by Pillow's names; JPEG includes MPO
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_EIGHT_BITS = ("1", "L", "LA", "P", "RGB", "RGBA")
_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_DEEP_HEADER = re.compile(rb"P([2356])" + 3 * (_GAP + rb"(\d+)") + rb"\s")
"""Format, width, height and the highest value of a PGM or PPM file (see pgm(5) and ppm(5) of Netpbm)."""
_ORIENTATION, _BITS, _COMPRESSION, _PHOTOMETRIC, _SAMPLES, _EXTRA, _FORMAT = 274, 258, 259, 262, 277, 338, 339
_SIDES = (256, 257)
_TIFF_MARKS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB = 0, 1, 2
_UNSIGNED, _PREMULTIPLIED = 1, 1
_COLOURS = {
    _WHITE_IS_ZERO: "gray", _BLACK_IS_ZERO: "gray", _RGB: "RGB", 3: "palette", 4: "mask", 5: "CMYK", 6: "YCbCr", 8: "LAB", 9: "ICC LAB",
    10: "ITU LAB", 32803: "colour filter array", 32844: "LogL", 32845: "LogLuv", 34892: "linear raw",
}  # fmt: skip
"""Names of the photometric interpretations of a TIFF."""
_PLAIN = "convert it to gray or RGB"

_UNIDENTIFIED = "is damaged, or of a kind that Pillow does not read"


class UnreadableError(Exception):
    """Damage of a file; the message continues the file's name."""


@dataclass(frozen=True)
class _Header:
    """The header of a TIFF, by the tags of TIFF 6.0."""

    bits: int
    samples: int
    photometric: int
    orientation: int
    premultiplied: bool
    compression: int

    @property
    def colours(self) -> str:
        """The name of the photometric interpretation."""
        return _COLOURS.get(self.photometric, f"colours of kind {self.photometric}")


def read_by_library(contents: tf.Tensor, channels: int, bits: int, *, exif: Exif) -> tf.Tensor:
    """Calls `read` from a graph on a string scalar, a file's bytes."""
    dtype = tf.uint8 if bits == 8 else tf.uint16
    lacking = f"only {served_formats(channels, bits)} is read, of GIF and BMP what fills its canvas, is opaque and not packed"

    def describe(error: Exception) -> str:
        from PIL import UnidentifiedImageError  # not before a file needs it

        return _UNIDENTIFIED if isinstance(error, UnidentifiedImageError) else f"is damaged: {type(error).__name__}: {error}"

    return call_reader(lambda content: read(content, channels, bits, exif=exif), contents, [None, None, channels], dtype, describe, lacking)


def call_reader(
    reader: Callable[[bytes], Any],
    contents: tf.Tensor,
    shape: Sequence[int | None],
    dtype: tf.DType,
    describe: Callable[[Exception], str],
    lacking: str = "",
) -> tf.Tensor:
    """Calls a function in Python on a string scalar, a file's bytes; returns its array, of a shape and dtype, or its bytes as a string
    scalar. A saved graph, which has no Python, fails with the message `lacking`.

    Its `UnreadableError`s fail in the graph with their message, and so do other errors, for which `describe` makes one: libraries raise any
    exception on damaged files.
    """
    if lacking and target() != "process":
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[lacking])]):
            return tf.zeros([side or 0 for side in shape], dtype)

    def attempt(given: Any) -> tuple[Any, Any]:
        content = given if isinstance(given, bytes) else given.item()  # eagerly it is an array of one object
        made, problem = _attempt(reader, describe, content)
        if made is None:
            return b"" if dtype == tf.string else np.zeros([side or 0 for side in shape], dtype.as_numpy_dtype), np.bytes_(problem)
        return made if dtype == tf.string else np.ascontiguousarray(made), np.bytes_(b"")

    values, problem = numpy_function(attempt, [contents], [dtype, tf.string], stateful=False)
    array = without_problem(values, problem)
    array.set_shape(shape)
    return array


def call_reader_on_each(
    reader: Callable[[bytes], bytes], contents: tf.Tensor, describe: Callable[[Exception], str]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Calls Python once for several files, strings `(n,)`: the bytes that a function makes of each, and the problem of each, "" if it has
    none. Nothing fails before `without_problem`; see `call_reader`."""

    def attempt(given: Any) -> tuple[Any, Any]:
        found = [_attempt(reader, describe, content) for content in given]
        return np.array([made or b"" for made, _ in found], object), np.array([problem for _, problem in found], object)

    made, problems = numpy_function(attempt, [contents], [tf.string, tf.string], stateful=False)
    return tf.ensure_shape(made, contents.shape), tf.ensure_shape(problems, contents.shape)


def _attempt(reader: Callable[[bytes], Any], describe: Callable[[Exception], str], content: bytes) -> tuple[Any, bytes]:
    """Returns what a reader makes of a file, `None` on damage, and its problem."""
    try:
        return reader(content), b""
    except UnreadableError as error:
        problem = str(error)
    except Exception as error:
        problem = describe(error)
    return None, " ".join(problem.split()).encode()


def without_problem(values: tf.Tensor, problem: tf.Tensor) -> tf.Tensor:
    """Returns the values that a reader made of a file; fails with its problem, a string scalar, unless that is ""."""
    sound = tf.raw_ops.Assert(condition=tf.equal(problem, ""), data=[problem])
    with tf.control_dependencies([] if sound is None else [sound]):
        return tf.identity(values)


def served_formats(channels: int, bits: int) -> str:
    """Names the formats that are read without a library: PNG for 16 bits, and for 8 bits those that TensorFlow decodes correctly."""
    return "PNG" if bits != 8 else "JPEG, PNG or WebP" if channels == 4 else "JPEG, PNG, GIF, BMP or WebP"


def read(contents: bytes, channels: int, bits: int, *, exif: Exif = "apply") -> Any:
    """Decodes a TIFF, PPM, PGM, PBM, GIF, BMP or WebP file, a JPEG, or one that a plugin reads, to uint8 or uint16 `(height, width,
    channels)`, of 1, 3 or 4 channels and 8 or 16 `bits`; the first of several pages.

    A file that cannot be read raises `UnreadableError`, whose message continues the file's name, or on damage any exception of a library.
    """
    plugin = plugin_format(contents)
    if plugin is not None:
        return _by_plugin(contents, plugin, channels, bits, exif)
    if contents[:1] == b"P":
        return _netpbm(contents, channels, bits)
    if contents[:2] not in (b"II", b"MM"):
        return _by_pillow(contents, channels, exif)
    header = _tiff_header(contents)
    if header.bits == 16 and header.photometric not in (_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB):
        raise UnreadableError(f"is a 16-bit TIFF ({header.colours}); of 16 bits `decode` reads gray and RGB: {_PLAIN}")
    require_bits("TIFF", header.bits, bits)
    if bits == 8:
        upright = _by_pillow(contents, channels, "ignore", header)
        return upright if exif == "apply" else _as_stored(upright, header.orientation)
    pixels = _deep_tiff(contents, header)
    return _with_channels(_upright(pixels, header.orientation) if exif == "apply" else pixels, channels)


def bits_of(contents: bytes) -> int:
    """Reads the bits of a value of a file of any supported format: 16, or at most 8 for a format without more. For all but TIFF, its first
    64 bytes are enough; a TIFF of unsupported values raises `UnreadableError`."""
    if contents[:4] == b"\x89PNG":
        return contents[24] if len(contents) > 24 else 8
    if contents[:4] in _TIFF_MARKS:
        return _tiff_header(contents).bits
    header = _DEEP_HEADER.match(contents)
    return 16 if header is not None and int(header[4]) > 255 else 8


def require_bits(what: str, have: int, bits: int) -> None:
    """Rejects a file of another depth by an `UnreadableError` with what to do."""
    if have > 8 >= bits:
        raise UnreadableError(too_deep(f"a {have}-bit {what}"))
    if have <= 8 < bits:
        raise UnreadableError(too_shallow(f"a{'n' * (have == 8)} {have}-bit {what}"))


def too_deep(what: str) -> str:
    """Describes a file of more than 8 bits, if 8 are needed."""
    return f"is {what}, which `decode` would cut to 8 bits; write `bits: 16` for the feature or `decode: {{bits: 16}}`, or convert it"


def too_shallow(what: str) -> str:
    """Describes a file of 8 bits or less, if 16 are needed."""
    return f"is {what}, but `bits: 16` needs files of 16 bits; leave `bits` out, or convert it"


def _by_pillow(contents: bytes, channels: int, exif: Exif, tiff: _Header | None = None) -> Any:
    """Reads 8 bits; Pillow turns a TIFF upright by itself."""
    from PIL import Image, ImageOps, UnidentifiedImageError
    from PIL.TiffImagePlugin import COMPRESSION_INFO

    try:
        image = Image.open(io.BytesIO(contents), formats=_FORMATS)
    except (UnidentifiedImageError, KeyError):  # `KeyError`: an unknown compression
        if tiff is None:
            raise UnreadableError(_UNIDENTIFIED) from None
        what, change = f"compression {tiff.compression}", "save it with another compression"
        if tiff.compression in COMPRESSION_INFO:
            samples, bits = (f"{n} {noun}{'s' * (n != 1)}" for n, noun in ((tiff.samples, "channel"), (tiff.bits, "bit")))
            what, change = f"{samples} of {bits} ({tiff.colours})", _PLAIN
        raise UnreadableError(f"is a TIFF of {what}, which Pillow does not read; {change}") from None
    with image:
        upright = ImageOps.exif_transpose(image) if exif == "apply" else image
        return _converted(upright, channels)


def _converted(image: Any, channels: int) -> Any:
    """Converts an opened image to gray, RGB or RGBA; `UnreadableError` if Pillow cannot convert its colours."""
    image.load()
    mode = _MODES[channels]
    try:
        pixels = np.asarray(image.convert(mode))
    except ValueError:  # the pixels are loaded, so the file is whole
        message = f"has {image.mode} colours, which Pillow does not convert to {'gray' if mode == 'L' else mode}; {_PLAIN}"
        raise UnreadableError(message) from None
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _by_plugin(contents: bytes, name: str, channels: int, bits: int, exif: Exif) -> Any:
    """Reads 8 bits of a HEIC, AVIF or JPEG XL file. HEIC is always upright."""
    from PIL import Image, ImageOps

    article = "an" if name == "AVIF" else "a"
    if not is_readable(name):
        raise UnreadableError(f"is {article} {name} image, which {PLUGINS[name].library} reads: {missing_plugin(name)}")
    if bits != 8:
        raise UnreadableError(too_shallow(f"{article} {name} image"))
    register(name)
    with Image.open(io.BytesIO(contents), formats=(PLUGINS[name].format,)) as image:
        deep = bits_of_head(contents) if name == "AVIF" else int(image.info.get("bit_depth") or 8)
        if deep > 8 or image.mode not in _EIGHT_BITS:
            what = f"a {deep}-bit {name} image" if deep > 8 else f"{article} {name} image of the kind {image.mode}"
            raise UnreadableError(f"is {what}, which would be cut to 8 bits; convert it")
        return _converted(ImageOps.exif_transpose(image) if exif == "apply" else image, channels)


def _netpbm(contents: bytes, channels: int, bits: int) -> Any:
    """Reads PPM and PGM of up to 65,535 values, and PBM. Values are scaled to the whole range, as the format defines."""
    header = _DEEP_HEADER.match(contents)
    most = int(header[4]) if header is not None else 1
    what = {b"2": "PGM", b"5": "PGM", b"3": "PPM", b"6": "PPM"}[header[1]] if header is not None else "PBM"
    require_bits(what, 8 if most < 256 else 16, bits)
    if bits == 8 or header is None:
        return _by_pillow(contents, channels, "ignore")
    if header[1] in b"23":
        raise UnreadableError(f"is a 16-bit {what} written as text, which is not supported; convert it to the binary form")
    width, height, samples = int(header[2]), int(header[3]), 3 if what == "PPM" else 1
    if len(contents) - header.end() < 2 * width * height * samples:
        raise UnreadableError(f"is a {what} that is cut short")
    pixels = np.frombuffer(contents, ">u2", width * height * samples, header.end()).reshape(height, width, samples)
    if most < 65535:
        pixels = np.minimum((pixels.astype(np.int64) * 65535 * 2 + most) // (2 * most), 65535)
    return _with_channels(pixels.astype(np.uint16), channels)


def _tiff_header(contents: bytes) -> _Header:
    """Reads the tags of the first page. `UnreadableError` for a header that is cut short, and for values that are not unsigned integers, or
    of an unusual number of bits."""
    from PIL.TiffImagePlugin import ImageFileDirectory_v2

    file = io.BytesIO(contents)
    head = file.read(8)
    if len(head) == 8 and struct.unpack("<H" if head[:2] == b"II" else ">H", head[2:4])[0] == 43:  # BigTIFF has a longer one
        head += file.read(8)
    tags = ImageFileDirectory_v2(head)
    file.seek(tags.next)
    tags.load(file)
    if not all(tag in tags for tag in _SIDES):
        raise UnreadableError("is a TIFF that is cut short")
    bits, formats = _numbers(tags.get(_BITS, (1,))), _numbers(tags.get(_FORMAT, (_UNSIGNED,)))
    if set(formats) - {_UNSIGNED}:
        kind = "floats" if 3 in formats else "signed numbers"
        raise UnreadableError(f"is a TIFF of {kind}; `decode` reads unsigned ones of 8 and of 16 bits: keep such data as `arrays`")
    if len(set(bits)) > 1 or bits[0] not in (1, 2, 4, 8, 16):
        depths = " and ".join(map(str, sorted(set(bits))))
        raise UnreadableError(f"is a TIFF of {depths} bits; `decode` reads 8 and 16: keep such data as `arrays`")
    photometric, samples = tags.get(_PHOTOMETRIC, _BLACK_IS_ZERO), tags.get(_SAMPLES, 1)
    premultiplied = _PREMULTIPLIED in _numbers(tags.get(_EXTRA, ()))
    return _Header(bits[0], samples, photometric, tags.get(_ORIENTATION, 1), premultiplied, tags.get(_COMPRESSION, 1))


def _numbers(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _deep_tiff(contents: bytes, header: _Header) -> Any:
    """Reads 16 bits as stored, uint16 `(height, width, samples)`, black at 0."""
    if header.samples == 1 and header.photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO):
        from PIL import Image

        with Image.open(io.BytesIO(contents), formats=("TIFF",)) as image:
            gray = np.asarray(image).astype(np.uint16)[..., None]
        gray = _as_stored(gray, header.orientation)  # Pillow has turned it upright
        return 65535 - gray if header.photometric == _WHITE_IS_ZERO else gray
    known = (header.photometric, header.samples) in ((_BLACK_IS_ZERO, 2), (_RGB, 3), (_RGB, 4))
    if not known or header.premultiplied:
        what = f"{header.samples} channels" if not header.premultiplied else "colours multiplied by their transparency"
        raise UnreadableError(
            f"is a 16-bit TIFF of {what}; `decode` reads gray and RGB, with plain transparency: keep such data as `arrays`"
        )
    try:  # Pillow would cut several channels to 8 bits
        import tifffile
    except ImportError:
        raise UnreadableError("is a 16-bit TIFF of several channels, which tifffile reads; `pip install tifffile`") from None
    try:
        with tifffile.TiffFile(io.BytesIO(contents)) as file:
            page: Any = file.pages[0]
            pixels = page.asarray()
            return np.moveaxis(pixels, 0, -1) if page.planarconfig == 2 else pixels
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
        raise UnreadableError("is a compressed 16-bit TIFF, for which tifffile needs imagecodecs; `pip install imagecodecs`") from None


def _with_channels(pixels: Any, channels: int) -> Any:
    """Converts uint16 gray or RGB, with or without transparency, to gray, RGB or RGBA; luma as Pillow computes it for 8 bits."""
    gray, opaque = pixels.shape[-1] <= 2, pixels.shape[-1] in (1, 3)
    if channels == 1 and gray:
        return pixels[..., :1]
    if channels == 1:
        weighted = pixels[..., :3].astype(np.int64) @ np.array([19595, 38470, 7471])
        return ((weighted + 32768) >> 16).astype(np.uint16)[..., None]
    colours = np.repeat(pixels[..., :1], 3, -1) if gray else pixels[..., :3]
    if channels == 3:
        return colours
    alpha = np.full_like(colours[..., :1], 65535) if opaque else pixels[..., -1:]
    return np.concatenate([colours, alpha], -1)


def _upright(pixels: Any, orientation: int) -> Any:
    transposes, mirrored = TURNS.get(orientation, (False, ()))
    return np.flip(pixels.swapaxes(0, 1) if transposes else pixels, mirrored)


def _as_stored(upright: Any, orientation: int) -> Any:
    """Undoes `_upright`."""
    transposes, mirrored = TURNS.get(orientation, (False, ()))
    pixels = np.flip(upright, mirrored)
    return pixels.swapaxes(0, 1) if transposes else pixels
