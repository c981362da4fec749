"""A file's bytes become pixels: by content, whole, one window alone, or at a fraction of the size.

JPEG is decoded with the integer FAST transform and without fancy upsampling, unless other pixels are asked for. That is a matter of
meaning: only so do the pixels of a window depend on nothing outside it, and decoding the window alone gives what cutting it out
gives. `accurate` is the slow integer transform with fancy upsampling, which is what Pillow does, bit for bit; `tensorflow` is the FAST
one with fancy upsampling, the defaults of `tf.io.decode_image`. Both decode at full size and whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pipegen.lazy import tf
from pipegen.ops.lowering.exif import orientation, swaps_sides, upright_png
from pipegen.ops.lowering.formats import GRAY_TYPES, decode_other, head_of, is_jpeg, kind, luma, refused, sure
from pipegen.ops.lowering.graphs import apart, either, once, target
from pipegen.ops.lowering.library import read_by_library, too_shallow

if TYPE_CHECKING:
    from typing import TypeAlias


if TYPE_CHECKING:
    Need: TypeAlias = tuple[int, int] | None
    Branch: TypeAlias = Callable[[], tf.Tensor]
    WindowOf: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    Jpeg: TypeAlias = Literal["fast", "accurate", "tensorflow"]
    Found: TypeAlias = tuple[tf.Tensor | None, ...]

RATIOS = (1, 2, 4, 8)
"""By what a JPEG can be reduced while it is decoded: sides become ⌈side / ratio⌉."""
_HOW: dict[str, dict[str, Any]] = {
    "fast": {"dct_method": "INTEGER_FAST", "fancy_upscaling": False},
    "accurate": {"dct_method": "INTEGER_ACCURATE", "fancy_upscaling": True},
    "tensorflow": {"dct_method": "INTEGER_FAST", "fancy_upscaling": True},
}
USUAL = 8
"""Up to how many times the pixels that are needed make a usual image."""
_HEAD, _START = 24, 1024
"""Bytes of a file by which it is plain, and those in which a plain JPEG says how many colours it has."""
_FOUR_COLOURS = r"(?s)\C*\x00\x14\x08\C\C\C\C\x04\C*"
"""A start of frame of four colours: its length, the bits, height and width, and their number."""
_ADOBE = bytes.fromhex("ffee000e41646f626500640000000000")
"""The segment of a JPEG whose inks are stored as their opposite, as they always are."""
_UNKNOWN_SIDE = 1 << 15
"""Stands for the height and width of a file that is looked at alone: no window is too large for it."""
_SMALLEST = bytes.fromhex("ffd8ffc0000b080001000101011100ffda0008010100003f00")
"""The head of a JPEG of one gray pixel, as far as its scan."""
# Start of image, an application segment of JFIF's 16 bytes, and the marker after it.
_JFIF_AT, _JFIF = (0, 1, 2, 3, 4, 5, 20), (0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 0xFF)
# Start of frame, Huffman and quantisation tables, restart interval: no application segment comes before these.
_BODY_MARKERS = (0xC0, 0xC1, 0xC2, 0xC4, 0xDB, 0xDD)


@dataclass(frozen=True)
class Survey:
    """Says what is known of several files before they are decoded.

    Of a file it says an int32 scalar, and with a window int32 `(4,)`: the index into `RATIOS` by which a JPEG with nothing to look up is
    reduced, or, for a file that has to be looked at by itself, the number of ratios that come into question; and the window in the
    reduced image. A decoder is told None in place of the scalar where it is known to be 0.

    Attributes:
        usual: A bool scalar: whether it is 0 for every file, and where so much is needed, none has more than `USUAL` times the pixels.
        sized: Whether it is known how much is needed.
        found: What is said of each file.
    """

    usual: tf.Tensor
    sized: bool
    found: list[Found]


def decode(
    contents: tf.Tensor,
    channels: int = 3,
    *,
    exif: Literal["apply", "ignore"] = "apply",
    need: Need = None,
    jpeg: Jpeg = "fast",
    rare: bool = False,
) -> tf.Tensor:
    """Decode a file of any format that is read; of an animation the first frame.

    Args:
        contents: string scalar: a file's bytes.
        channels: 1, 3 or 4.
        exif: Whether it is turned upright.
        need: The least `(height, width)` in pixels that is needed: a JPEG is reduced by the greatest of `RATIOS` whose
            multiple of it still fits into the upright image. `None` keeps the full size.
        jpeg: How a JPEG is decoded; all but `fast` take `need` to be `None`.
        rare: Whether the file is known to be none that `survey` calls plain, so that nothing is made ready for those.

    Returns:
        uint8 `(height, width, channels)`.
    """
    from pipegen.ops.lowering.exif import orient
    from pipegen.ops.lowering.formats import decode_other

    def plain() -> tf.Tensor:
        return _jpeg(contents, channels, _ratio_index(_jpeg_size(contents), need) if need else None, jpeg=jpeg)

    def segmented() -> tf.Tensor:
        marked, size, turn = _looked_at(contents, exif)
        image = _segmented(marked, channels, _ratio_index(size, need) if need else None, jpeg)
        return image if turn is None else once(orient, image, turn)

    def other() -> tf.Tensor:
        return once(decode_other, contents, channels=channels, exif=exif)

    return _shaped(_by_content(contents, None if rare else plain, segmented, other), channels)


def decode_window(
    contents: tf.Tensor,
    window: WindowOf,
    channels: int = 3,
    *,
    exif: Literal["apply", "ignore"] = "apply",
    need: Need = None,
    whole: bool = False,
    jpeg: Jpeg = "fast",
    rare: bool = False,
) -> tf.Tensor:
    """Decode one window of an image.

    Args:
        contents: string scalar: a file's bytes.
        window: From int32 scalars, the height and width of the full-size, upright image in pixels, to int32 `(4,)`: top,
            left, height, width of the window in it.
        channels: 1, 3 or 4.
        exif: Whether images are turned upright.
        need: The least `(height, width)` in pixels that is needed of the window: a JPEG is reduced by the greatest of
            `RATIOS` whose multiple of it still fits into the window. The window in the reduced image is
            `scaled_window`. `None` keeps the full size.
        whole: Decode the whole image (reduced likewise) and cut the window out: the same pixels, slower.
        jpeg: As for `decode`; the window is cut out of the whole, unless it is `fast`.
        rare: As for `decode`.

    Returns:
        uint8 `(height, width, channels)`.
    """
    from pipegen.ops.lowering.exif import orient
    from pipegen.ops.lowering.formats import decode_other

    window = _traced_once(window)

    def chosen(size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        place = window(*tf.unstack(size, num=2))
        return place, _ratio_index(place[2:], need) if need else None

    def cut(image: tf.Tensor, place: tf.Tensor, index: tf.Tensor | None) -> tf.Tensor:
        return _slice(image, place if index is None else scaled_window(place, tf.gather(RATIOS, index)))

    def plain() -> tf.Tensor:
        place, index = chosen(_jpeg_size(contents))
        if whole or jpeg != "fast":
            return cut(_jpeg(contents, channels, index, jpeg=jpeg), place, index)
        return _jpeg(contents, channels, index, place)

    def segmented() -> tf.Tensor:
        marked, size, turn = _looked_at(contents, exif)
        place, index = chosen(size)
        image = _segmented(marked, channels, index, jpeg)
        return cut(image if turn is None else once(orient, image, turn), place, index)

    def other() -> tf.Tensor:
        return cut_out(once(decode_other, contents, channels=channels, exif=exif), window)

    return _shaped(_by_content(contents, None if rare else plain, segmented, other), channels)


def survey(
    contents: list[tf.Tensor],
    *,
    need: Need = None,
    window: WindowOf | None = None,
) -> Survey:
    """Finds what `decode_surveyed` needs to know of each of several files, with the arithmetic done once for all of them.

    Args:
        contents: string scalars: the bytes of `n` files.
        need: The least size, as for `decode` and `decode_window`.
        window: From heights and widths `(n,)` to windows `(n, 4)`.
    """
    count = len(contents)
    plain = _is_plain(tf.stack([tf.strings.substr(one, 0, _START) for one in contents]))
    ratio, sizes, places = tf.zeros_like(plain, tf.int32), None, None
    if window is not None or need is not None:
        sizes = _sizes(contents, plain)
        places = None if window is None else window(sizes[:, 0], sizes[:, 1])
        sizes = sizes if places is None else places[:, 2:]
        ratio = ratio if need is None else _ratio_index(sizes, need)
    branch = tf.where(plain, ratio, len(_ratios(need)))
    usual = branch == 0 if need is None or sizes is None else (branch == 0) & (tf.reduce_prod(sizes, 1) <= USUAL * need[0] * need[1])
    if places is not None and need is not None:
        places = scaled_window(places, tf.gather(RATIOS, ratio)[:, None])
    columns = [tf.unstack(column, num=count) for column in (branch, places) if column is not None]
    return Survey(tf.reduce_all(usual), need is not None, list(zip(*columns, strict=True)))


def decode_surveyed(
    contents: tf.Tensor, found: Found, alone: Branch, channels: int, *, need: Need = None, whole: bool = False, jpeg: Jpeg = "fast"
) -> tf.Tensor:
    """Decode a file of which `survey` has found out what is to be known.

    Args:
        contents: string scalar: the file's bytes.
        found: What `survey` gave for it.
        alone: Decodes a file that has to be looked at by itself.
        channels: 1, 3 or 4.
        need: What the survey was told.
        whole: As for `decode_window`.
        jpeg: As for `decode_window`.

    Returns:
        uint8 `(height, width, channels)`.
    """
    branch, *window = found
    place = window[0] if window else None
    first, *reduced = (partial(_jpeg_at, contents, channels, ratio, place, whole=whole, jpeg=jpeg) for ratio in _ratios(need))
    # Only the rare files are a function apart: when it is first called, TensorFlow makes ready all that it holds.
    return _shaped(first() if branch is None else tf.switch_case(branch, [first, *reduced, apart(alone)]), channels)


def cut_out(image: tf.Tensor, window: WindowOf) -> tf.Tensor:
    """The window of an image that is decoded already."""
    return _slice(image, window(*tf.unstack(tf.shape(image)[:2], num=2)))


def scaled_window(window: tf.Tensor, ratio: int | tf.Tensor) -> tf.Tensor:
    """The window in an image reduced by `ratio` that holds every pixel of the one at full size.

    Top and left are rounded down, bottom and right up, so it always lies inside the reduced image.

    Args:
        window: int32 `(..., 4)`: top, left, height, width.
        ratio: One of `RATIOS`, or `(..., 1)` of them.
    """
    start, size = tf.split(window, 2, axis=-1)
    first = start // ratio
    return tf.concat([first, (start + size + (ratio - 1)) // ratio - first], axis=-1)


def _by_content(contents: tf.Tensor, plain: Branch | None, segmented: Branch, other: Branch) -> tf.Tensor:
    """Run what fits the file: a JPEG with nothing to look up (None where it is known to be none), one that may have EXIF, another format.

    Almost every JPEG of a dataset starts with JFIF and goes on to its tables. Seeing that costs a few bytes, while a
    search for EXIF passes over the file.
    """
    from pipegen.ops.lowering.formats import is_jpeg

    start = tf.strings.substr(contents, 0, _START)
    head = tf.io.decode_raw(start, tf.uint8, fixed_length=_HEAD)
    if plain is None:
        return tf.cond(is_jpeg(head), segmented, apart(other))
    return tf.cond(_is_plain(start), plain, apart(lambda: tf.cond(is_jpeg(head), segmented, apart(other))))


def _is_plain(start: tf.Tensor) -> tf.Tensor:
    """Returns whether files that start so, strings of `_START` bytes, are JPEGs without EXIF whose colours TensorFlow reads rightly."""
    head = tf.io.decode_raw(start, tf.uint8, fixed_length=_HEAD)
    jfif = tf.reduce_all(tf.gather(head, _JFIF_AT, axis=-1) == tf.constant(_JFIF, tf.uint8), axis=-1)
    tables = tf.reduce_any(head[..., 21, None] == tf.constant(_BODY_MARKERS, tf.uint8), axis=-1)
    return jfif & tables & ~tf.strings.regex_full_match(start, _FOUR_COLOURS)


def _looked_at(contents: tf.Tensor, exif: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """A JPEG whose colours TensorFlow reads as Pillow does, its height and width when it is upright, and how it is turned, if it is.

    Inks are stored as their opposite. TensorFlow believes so only if a segment of Adobe's stands there.
    """
    from pipegen.ops.lowering.exif import of_jpeg, swaps_sides

    shape = tf.io.extract_jpeg_shape(contents)

    def marked() -> tf.Tensor:
        return tf.strings.join([tf.strings.substr(contents, 0, 2), _ADOBE, tf.strings.substr(contents, 2, -1)])

    read = tf.cond(shape[2] == 4, marked, lambda: tf.identity(contents))
    if exif == "ignore":
        return read, shape[:2], None
    turn = once(of_jpeg, contents)
    return read, tf.where(swaps_sides(turn), tf.reverse(shape[:2], [0]), shape[:2]), turn


def _segmented(contents: tf.Tensor, channels: int, index: tf.Tensor | None, jpeg: Jpeg) -> tf.Tensor:
    """Decode a JPEG of any colours as stored; accurate inks by Pillow, as TensorFlow mixes them a level darker."""
    from pipegen.ops.lowering.library import read_by_library

    def read() -> tf.Tensor:
        return _jpeg(contents, channels, index, jpeg=jpeg)

    if jpeg != "accurate" or target() != "process":
        return read()
    inks = tf.io.extract_jpeg_shape(contents)[2] == 4
    return tf.cond(inks, apart(lambda: read_by_library(contents, channels, 8, exif="ignore")), read)


def _traced_once(window: WindowOf) -> WindowOf:
    """The same function, of which a graph has one copy whatever number of kinds of files call it."""
    return apart(window)


def _jpeg_size(contents: tf.Tensor) -> tf.Tensor:
    return tf.io.extract_jpeg_shape(contents)[:2]


def _sizes(contents: list[tf.Tensor], known: tf.Tensor) -> tf.Tensor:
    """int32 `(n, 2)`: the sizes of the JPEGs among files. In most chunks of a dataset all are, which is asked once for the chunk."""

    def of_all(contents: list[tf.Tensor], _known: tf.Tensor) -> tf.Tensor:
        return tf.stack([tf.io.extract_jpeg_shape(one) for one in contents])[:, :2]

    def of_some(contents: list[tf.Tensor], known: tf.Tensor) -> tf.Tensor:
        # Of the others the size of a file is taken that is known to be one: a branch for each would be two more functions for each.
        asked = [tf.where(*pair, _SMALLEST) for pair in zip(tf.unstack(known, num=len(contents)), contents, strict=True)]
        return tf.where(known[:, None], tf.stack([tf.io.extract_jpeg_shape(one) for one in asked])[:, :2], _UNKNOWN_SIDE)

    return tf.ensure_shape(either(tf.reduce_all(known), of_all, of_some, contents, known), [len(contents), 2])


def _ratios(need: Need) -> tuple[int, ...]:
    """By what a JPEG may be reduced where so much of it is needed."""
    return RATIOS if need else RATIOS[:1]


def _ratio_index(size: tf.Tensor, need: tuple[int, int]) -> tf.Tensor:
    """The index into `RATIOS` of the greatest ratio at which `need` pixels remain of a size `(..., 2)`."""
    least = tf.constant([[ratio * side for side in need] for ratio in RATIOS[1:]])
    return tf.reduce_sum(tf.cast(tf.reduce_all(size[..., None, :] >= least, axis=-1), tf.int32), axis=-1)


def _jpeg(
    contents: tf.Tensor, channels: int, index: tf.Tensor | None, window: tf.Tensor | None = None, *, jpeg: Jpeg = "fast"
) -> tf.Tensor:
    """Decode a JPEG as stored, whole or one window of it, reduced by `RATIOS[index]`."""
    if index is None:
        return _jpeg_at(contents, channels, 1, window, jpeg=jpeg)
    place = None if window is None else scaled_window(window, tf.gather(RATIOS, index))
    return tf.switch_case(index, [partial(_jpeg_at, contents, channels, ratio, place, jpeg=jpeg) for ratio in RATIOS])


def _jpeg_at(
    contents: tf.Tensor, channels: int, ratio: int, place: tf.Tensor | None, *, whole: bool = False, jpeg: Jpeg = "fast"
) -> tf.Tensor:
    """Decode a JPEG as stored, reduced by `ratio`: whole, or the window at `place` of the reduced image.

    Accurate gray is that of the colours, as Pillow has it: stored luma differs where a colour is clipped.
    """
    from pipegen.ops.lowering.formats import luma, with_opacity

    def read(channels: int) -> tf.Tensor:
        if place is None or whole or jpeg != "fast":
            image = tf.io.decode_jpeg(contents, channels, ratio=ratio, **_HOW[jpeg])
            return image if place is None else _slice(image, place)
        return tf.io.decode_and_crop_jpeg(contents, place, channels, ratio=ratio, **_HOW["fast"])

    if channels == 1 and jpeg == "accurate":
        return _shaped(luma(read(3)), 1)
    if channels == 1:  # the decoder has no way from CMYK to gray
        cmyk = tf.io.extract_jpeg_shape(contents)[2] == 4
        return _shaped(tf.cond(cmyk, lambda: luma(read(3)), lambda: read(1)), 1)
    return _shaped(read(channels) if channels != 4 else with_opacity(read(3)), channels)


def _slice(image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    start, size = tf.split(window, 2)
    return tf.slice(image, tf.concat([start, [0]], axis=0), tf.concat([size, [image.shape[-1]]], axis=0))


def _shaped(image: tf.Tensor, channels: int) -> tf.Tensor:
    image.set_shape([None, None, channels])
    return image


_AFTER_KINDS = 7
"""The branch of a JPEG, behind those of `kind`."""


def decode_deep(contents: tf.Tensor, channels: int, *, exif: Literal["apply", "ignore"] = "apply") -> tf.Tensor:
    """Decodes a PNG, TIFF, PGM or PPM file of 16 bits to uint16, as `decode_other` does one of 8; files of less are refused."""
    head = head_of(contents)
    number = tf.where(is_jpeg(head), _AFTER_KINDS, kind(head))

    def shallow(name: str) -> Callable[[], tf.Tensor]:
        return lambda: refused(contents, too_shallow(name), tf.uint16)

    def library() -> tf.Tensor:
        return read_by_library(contents, channels, 16, exif=exif)

    def png() -> tf.Tensor:
        def read() -> tf.Tensor:
            return _png(contents, head, channels)

        return upright_png(contents, read) if exif == "apply" else read()

    # In the order of `kind`: PNG, GIF, BMP, WebP, TIFF, Netpbm, unknown; then JPEG.
    others = [shallow(name) for name in ("a GIF", "a BMP image", "a WebP image")]
    unknown = [lambda: refused(contents, "is not a PNG, TIFF, PGM or PPM image", tf.uint16), shallow("a JPEG")]
    image = tf.switch_case(number, [png, *others, library, library, *unknown])
    image.set_shape([None, None, channels])
    return image


def _png(contents: tf.Tensor, head: tf.Tensor, channels: int) -> tf.Tensor:
    # TensorFlow would multiply 8 bits by 257 without a word.
    with sure((head[24] == 16, too_shallow("a PNG of 8 bits or less"))):
        known = tf.identity(contents)
    if channels != 1:
        return tf.io.decode_png(known, channels, dtype=tf.uint16)
    gray = tf.reduce_any(head[25] == list(GRAY_TYPES))
    return tf.cond(
        gray,
        lambda: tf.io.decode_png(known, 1, dtype=tf.uint16),
        lambda: luma(tf.io.decode_png(known, 3, dtype=tf.uint16)),
    )


PNG = b"\x89PNG\r\n\x1a\n"
"""How a PNG starts."""
_PNG_SIDES = 16
"""Where a PNG has its width and its height, four bytes each, the highest first."""


def stored_size(contents: tf.Tensor, *, exif: Literal["apply", "ignore"], bits: int = 8) -> tf.Tensor:
    """The height and width that a decoded file has, in pixels.

    Args:
        contents: string scalar: a file's bytes.
        exif: Whether images are turned upright.
        bits: What the file is decoded to, 8 or 16.

    Returns:
        int32 `(2,)`.
    """

    def upright(size: tf.Tensor) -> tf.Tensor:
        return tf.where(swaps_sides(once(orientation, contents)), tf.reverse(size, [0]), size) if exif == "apply" else size

    def jpeg() -> tf.Tensor:
        return upright(tf.io.extract_jpeg_shape(contents)[:2])

    def png() -> tf.Tensor:
        sides = tf.io.decode_raw(tf.strings.substr(contents, _PNG_SIDES, 8), tf.int32, little_endian=False)
        return upright(tf.reverse(tf.ensure_shape(sides, [2]), [0]))

    def other() -> tf.Tensor:
        return tf.shape(once(decode_other if bits == 8 else decode_deep, contents, channels=3, exif=exif))[:2]

    starts = [tf.strings.substr(contents, 0, len(PNG)) == PNG, tf.strings.substr(contents, 0, 3) == b"\xff\xd8\xff"]
    return tf.case([(starts[0], png), (starts[1], jpeg)], default=other)
