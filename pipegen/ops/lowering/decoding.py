"""Decoding of image files: whole, only a window, or at a fraction of the size; and of masks to class indices.

By default JPEG is decoded with the integer FAST transform and without fancy upsampling. Only then do the pixels of a window not depend on
pixels outside, so that decoding a window gives the same as cropping. `accurate` is the slow integer transform with fancy upsampling, to
the bit as Pillow; `tensorflow` is FAST with fancy upsampling, the default of `tf.io.decode_image`. Both decode whole images at full size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.ops.lowering.exif import of_jpeg, orient, orientation, swaps_sides, upright_png
from pipegen.ops.lowering.formats import GRAY_TYPES, decode_other, head_of, is_jpeg, kind, luma, refused, sure, with_opacity
from pipegen.ops.lowering.graphs import apart, asserted, decodes_rare_files_in_python, either, once, target
from pipegen.ops.lowering.library import call_reader, read_by_library, too_shallow
from pipegen.ops.lowering.python_calls import numpy_function, reason

if TYPE_CHECKING:
    Need: TypeAlias = tuple[int, int] | None
    Branch: TypeAlias = Callable[[], tf.Tensor]
    WindowOf: TypeAlias = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
    Jpeg: TypeAlias = Literal["fast", "accurate", "tensorflow"]
    Found: TypeAlias = tuple[tf.Tensor | None, ...]

RATIOS = (1, 2, 4, 8)  # ratios by which a JPEG can be reduced while it is decoded: sides become ⌈side / ratio⌉
_HOW: dict[str, dict[str, Any]] = {
    "fast": {"dct_method": "INTEGER_FAST", "fancy_upscaling": False},
    "accurate": {"dct_method": "INTEGER_ACCURATE", "fancy_upscaling": True},
    "tensorflow": {"dct_method": "INTEGER_FAST", "fancy_upscaling": True},
}
USUAL = 8  # most pixels of a usual image, in multiples of the needed pixels
_HEAD, START = 24, 1024
"""Bytes of a file that decide if it is plain, and those in which a plain JPEG has its number of colours."""
_FOUR_COLOURS = r"(?s)\C*\x00\x14\x08\C\C\C\C\x04\C*"
"""A start of frame of four colours: its length, the bits, height and width, and their number."""
_ADOBE = bytes.fromhex("ffee000e41646f626500640000000000")  # the segment of a JPEG with inverted inks, as they always are
_SMALLEST = bytes.fromhex("ffd8ffc0000b080001000101011100ffda0008010100003f00")  # the head of a JPEG of one gray pixel, up to its scan
# Start of image, an application segment of JFIF's 16 bytes, and the marker after it.
_JFIF_AT, _JFIF = (0, 1, 2, 3, 4, 5, 20), (0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 0xFF)
# Start of frame, Huffman and quantisation tables, restart interval: no application segment comes before these.
_BODY_MARKERS = (0xC0, 0xC1, 0xC2, 0xC4, 0xDB, 0xDD)


@dataclass(frozen=True)
class Survey:
    """Facts about several files before they are decoded: `found`, for each file an int32 scalar and, with a window, int32 `(4,)`. The
    scalar is the index into `RATIOS` by which a plain JPEG is reduced, or the number of possible ratios for a file that has to be inspected
    by itself; `(4,)` is the window in the reduced image. A decoder gets None in place of a scalar that is known to be 0. Decoders of other
    files than images have facts of their own, of which the first is None for usual files.

    `usual` is a bool scalar: the scalar is 0 for every file, and none has more than `USUAL` times the needed pixels, if these are known
    (`sized`).
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
    """Decodes a file of any supported format, a string scalar, to uint8 `(height, width, channels)` with 1, 3 or 4 channels; the first
    frame of an animation.

    With `need`, the least needed `(height, width)` in pixels, a JPEG is reduced by the largest of `RATIOS` whose multiple of it still fits
    into the upright image; all values of `jpeg` but `fast` require the full size, `None`. `rare` says that the file is known not to be
    plain, so that no code is made for plain ones.
    """

    def plain() -> tf.Tensor:
        return _jpeg(contents, channels, _ratio_index(tf.io.extract_jpeg_shape(contents)[:2], need) if need else None, jpeg=jpeg)

    def segmented(contents: tf.Tensor) -> tf.Tensor:
        marked, size, turn = _looked_at(contents, exif)
        image = _segmented(marked, channels, _ratio_index(size, need) if need else None, jpeg)
        return image if turn is None else once(orient, image, turn)

    def other(contents: tf.Tensor) -> tf.Tensor:
        return once(decode_other, contents, channels=channels, exif=exif)

    def unusual(contents: tf.Tensor) -> tf.Tensor:
        return tf.cond(_starts_jpeg(contents), partial(segmented, contents), apart(partial(other, contents)))

    alone = _rare(unusual, contents, channels)
    return _shaped(alone() if rare else tf.cond(_is_plain(_start(contents)), plain, apart(alone)), channels)


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
    """Decodes one window of an image to uint8 `(height, width, channels)`; for the other arguments see `decode`.

    `window` is a function from int32 scalars, the height and width of the full-size, upright image in pixels, to int32 `(4,)`: top, left,
    height, width of the window in it. With `need`, the least needed `(height, width)` of the window in pixels, a JPEG is reduced by the
    largest of `RATIOS` whose multiple of it still fits into the window; the window in the reduced image is `scaled_window`. With `whole`,
    or a `jpeg` that is not `fast`, the window is cropped from the whole image (reduced, too): the same pixels, slower.
    """
    window = apart(window)  # one copy in the graph for all kinds of files

    def chosen(size: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        place = window(*tf.unstack(size, num=2))
        return place, _ratio_index(place[2:], need) if need else None

    def cut(image: tf.Tensor, place: tf.Tensor, index: tf.Tensor | None) -> tf.Tensor:
        return _slice(image, place if index is None else scaled_window(place, tf.gather(RATIOS, index)))

    def plain() -> tf.Tensor:
        place, index = chosen(tf.io.extract_jpeg_shape(contents)[:2])
        if whole or jpeg != "fast":
            return cut(_jpeg(contents, channels, index, jpeg=jpeg), place, index)
        return _jpeg(contents, channels, index, place)

    def segmented() -> tf.Tensor:
        marked, size, turn = _looked_at(contents, exif)
        place, index = chosen(size)
        image = _segmented(marked, channels, index, jpeg)
        return cut(image if turn is None else once(orient, image, turn), place, index)

    def other() -> tf.Tensor:
        return cut_out(_rare(partial(once, decode_other, channels=channels, exif=exif), contents, channels)(), window)

    def alone() -> tf.Tensor:
        return tf.cond(_starts_jpeg(contents), segmented, apart(other))

    return _shaped(alone() if rare else tf.cond(_is_plain(_start(contents)), plain, apart(alone)), channels)


def survey(contents: list[tf.Tensor], *, need: Need = None, window: WindowOf | None = None) -> Survey:
    """Surveys the bytes of `n` files, string scalars, for `decode_surveyed`, with the arithmetic done once for all of them; `need` is as
    for `decode` and `decode_window`, and `window` is a function from heights and widths `(n,)` to windows `(n, 4)`."""
    count = len(contents)
    plain = _is_plain(tf.stack([_start(one) for one in contents]))
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
    """Decodes a surveyed file to uint8 `(height, width, channels)`: by what `survey` `found` for it, or by `alone` if it has to be
    inspected by itself. The other arguments are as for `survey` and `decode_window`."""
    branch, *window = found
    place = window[0] if window else None
    first, *reduced = (partial(_jpeg_at, contents, channels, ratio, place, whole=whole, jpeg=jpeg) for ratio in _ratios(need))
    # Only rare files are a separate function: TensorFlow instantiates all of it on the first call.
    return _shaped(first() if branch is None else tf.switch_case(branch, [first, *reduced, apart(alone)]), channels)


def cut_out(image: tf.Tensor, window: WindowOf) -> tf.Tensor:
    """Crops a decoded image."""
    return _slice(image, window(*tf.unstack(tf.shape(image)[:2], num=2)))


def scaled_window(window: tf.Tensor, ratio: int | tf.Tensor) -> tf.Tensor:
    """Scales windows, int32 `(..., 4)`, to images reduced by `ratio`, one of `RATIOS` or `(..., 1)` of them, so that they hold every pixel
    of the windows at full size. Top and left are rounded down, bottom and right up, so a window is always inside the reduced image."""
    start, size = tf.split(window, 2, axis=-1)
    first = start // ratio
    return tf.concat([first, (start + size + (ratio - 1)) // ratio - first], axis=-1)


def _rare(decode: Callable[[tf.Tensor], tf.Tensor], contents: tf.Tensor, channels: int) -> Branch:
    """Makes the branch that decodes a file to uint8 `(height, width, channels)` if it is not a plain JPEG. If such files are rare, Python
    runs `decode` eagerly. Tracing it would take a tenth of the time to the first batch."""
    if not decodes_rare_files_in_python():
        return partial(decode, contents)

    def read(content: bytes) -> Any:
        with tf.device("CPU"):
            return decode(tf.constant(content)).numpy()

    return partial(call_reader, read, contents, [None, None, channels], tf.uint8, reason)


def are_plain_jpegs(starts: Sequence[bytes]) -> bool:
    """Checks that files are plain JPEGs, by their first `START` bytes; false without files."""
    return bool(starts) and bool(tf.reduce_all(_is_plain(tf.constant(starts))))


def _start(contents: tf.Tensor) -> tf.Tensor:
    return tf.strings.substr(contents, 0, START)


def _starts_jpeg(contents: tf.Tensor) -> tf.Tensor:
    return is_jpeg(tf.io.decode_raw(_start(contents), tf.uint8, fixed_length=_HEAD))


def _is_plain(start: tf.Tensor) -> tf.Tensor:
    """Finds plain JPEGs, without EXIF and with colours that TensorFlow reads correctly, by their first `START` bytes. In almost every JPEG
    of a dataset, tables follow the JFIF segment. Checking that reads a few bytes; a search for EXIF reads the file."""
    head = tf.io.decode_raw(start, tf.uint8, fixed_length=_HEAD)
    jfif = tf.reduce_all(tf.gather(head, _JFIF_AT, axis=-1) == tf.constant(_JFIF, tf.uint8), axis=-1)
    tables = tf.reduce_any(head[..., 21, None] == tf.constant(_BODY_MARKERS, tf.uint8), axis=-1)
    return jfif & tables & ~tf.strings.regex_full_match(start, _FOUR_COLOURS)


def _looked_at(contents: tf.Tensor, exif: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Returns a JPEG whose colours TensorFlow reads like Pillow, its upright height and width, and its orientation, unless ignored. Inks
    are inverted, which TensorFlow assumes only with an Adobe segment."""
    shape = tf.io.extract_jpeg_shape(contents)

    def marked() -> tf.Tensor:
        return tf.strings.join([tf.strings.substr(contents, 0, 2), _ADOBE, tf.strings.substr(contents, 2, -1)])

    read = tf.cond(shape[2] == 4, marked, lambda: tf.identity(contents))
    if exif == "ignore":
        return read, shape[:2], None
    turn = once(of_jpeg, contents)
    return read, tf.where(swaps_sides(turn), tf.reverse(shape[:2], [0]), shape[:2]), turn


def _segmented(contents: tf.Tensor, channels: int, index: tf.Tensor | None, jpeg: Jpeg) -> tf.Tensor:
    """Decodes a JPEG of any colours as stored; accurate inks by Pillow, since TensorFlow's are one level darker."""

    def read() -> tf.Tensor:
        return _jpeg(contents, channels, index, jpeg=jpeg)

    if jpeg != "accurate" or target() != "process":
        return read()
    inks = tf.io.extract_jpeg_shape(contents)[2] == 4
    return tf.cond(inks, apart(lambda: read_by_library(contents, channels, 8, exif="ignore")), read)


def _sizes(contents: list[tf.Tensor], known: tf.Tensor) -> tf.Tensor:
    """Reads the sizes of the JPEGs among files: int32 `(n, 2)`. In most chunks all are JPEGs, which is checked once for the chunk."""

    def of_all(contents: list[tf.Tensor], _known: tf.Tensor) -> tf.Tensor:
        return tf.stack([tf.io.extract_jpeg_shape(one) for one in contents])[:, :2]

    def of_some(contents: list[tf.Tensor], known: tf.Tensor) -> tf.Tensor:
        # For other files a known JPEG is read: a branch for each would add two functions each.
        asked = [tf.where(*pair, _SMALLEST) for pair in zip(tf.unstack(known, num=len(contents)), contents, strict=True)]
        return tf.where(known[:, None], of_all(asked, known), 1 << 15)  # larger than any window

    return tf.ensure_shape(either(tf.reduce_all(known), of_all, of_some, contents, known), [len(contents), 2])


def _ratios(need: Need) -> tuple[int, ...]:
    return RATIOS if need else RATIOS[:1]


def _ratio_index(size: tf.Tensor, need: tuple[int, int]) -> tf.Tensor:
    """Finds the index into `RATIOS` of the largest ratio at which `need` pixels remain of a size `(..., 2)`."""
    least = tf.constant([[ratio * side for side in need] for ratio in RATIOS[1:]])
    return tf.reduce_sum(tf.cast(tf.reduce_all(size[..., None, :] >= least, axis=-1), tf.int32), axis=-1)


def _jpeg(
    contents: tf.Tensor, channels: int, index: tf.Tensor | None, window: tf.Tensor | None = None, *, jpeg: Jpeg = "fast"
) -> tf.Tensor:
    """Decodes a JPEG as stored, whole or one window of it, reduced by `RATIOS[index]`."""
    if index is None:
        return _jpeg_at(contents, channels, 1, window, jpeg=jpeg)
    place = None if window is None else scaled_window(window, tf.gather(RATIOS, index))
    return tf.switch_case(index, [partial(_jpeg_at, contents, channels, ratio, place, jpeg=jpeg) for ratio in RATIOS])


def _jpeg_at(
    contents: tf.Tensor, channels: int, ratio: int, place: tf.Tensor | None, *, whole: bool = False, jpeg: Jpeg = "fast"
) -> tf.Tensor:
    """Decodes a JPEG as stored, reduced by `ratio`: whole, or the window at `place` of the reduced image. Accurate gray is computed from
    colours, like Pillow's: stored luma differs if a colour is clipped."""

    def read(channels: int) -> tf.Tensor:
        if place is None or whole or jpeg != "fast":
            image = tf.io.decode_jpeg(contents, channels, ratio=ratio, **_HOW[jpeg])
            return image if place is None else _slice(image, place)
        return tf.io.decode_and_crop_jpeg(contents, place, channels, ratio=ratio, **_HOW["fast"])

    if channels == 1 and jpeg == "accurate":
        return _shaped(luma(read(3)), 1)
    if channels == 1:  # the decoder cannot convert CMYK to gray
        cmyk = tf.io.extract_jpeg_shape(contents)[2] == 4
        return _shaped(tf.cond(cmyk, lambda: luma(read(3)), lambda: read(1)), 1)
    return _shaped(read(channels) if channels != 4 else with_opacity(read(3)), channels)


def _slice(image: tf.Tensor, window: tf.Tensor) -> tf.Tensor:
    start, size = tf.split(window, 2)
    return tf.slice(image, tf.concat([start, [0]], axis=0), tf.concat([size, [image.shape[-1]]], axis=0))


def _shaped(image: tf.Tensor, channels: int) -> tf.Tensor:
    image.set_shape([None, None, channels])
    return image


def decode_deep(contents: tf.Tensor, channels: int, *, exif: Literal["apply", "ignore"] = "apply") -> tf.Tensor:
    """Decodes a PNG, TIFF, PGM or PPM file of 16 bits to uint16, like `decode_other` for 8 bits; rejects files of fewer bits."""
    head = head_of(contents)
    number = tf.where(is_jpeg(head), 7, kind(head))

    def shallow(name: str) -> Callable[[], tf.Tensor]:
        return lambda: refused(contents, too_shallow(name), tf.uint16)

    def library() -> tf.Tensor:
        return read_by_library(contents, channels, 16, exif=exif)

    def png() -> tf.Tensor:
        return upright_png(contents, stored_png) if exif == "apply" else stored_png()

    def stored_png() -> tf.Tensor:
        # TensorFlow would silently multiply 8 bits by 257.
        with sure((head[24] == 16, too_shallow("a PNG of 8 bits or less"))):
            known = tf.identity(contents)
        read = partial(tf.io.decode_png, known, dtype=tf.uint16)
        if channels != 1:
            return read(channels)
        return tf.cond(tf.reduce_any(head[25] == list(GRAY_TYPES)), lambda: read(channels=1), lambda: luma(read(channels=3)))

    # In the order of `kind`: PNG, GIF, BMP, WebP, TIFF, Netpbm, unknown; then JPEG.
    others = [shallow(name) for name in ("a GIF", "a BMP image", "a WebP image")]
    unknown = [lambda: refused(contents, "is not a PNG, TIFF, PGM or PPM image", tf.uint16), shallow("a JPEG")]
    image = tf.switch_case(number, [png, *others, library, library, *unknown])
    image.set_shape([None, None, channels])
    return image


PNG = b"\x89PNG\r\n\x1a\n"  # the signature of a PNG


def stored_size(contents: tf.Tensor, *, exif: Literal["apply", "ignore"], bits: int = 8) -> tf.Tensor:
    """Returns the height and width, int32 `(2,)` in pixels, of a file, a string scalar, once it is decoded to 8 or 16 bits."""

    def upright(size: tf.Tensor) -> tf.Tensor:
        return tf.where(swaps_sides(once(orientation, contents)), tf.reverse(size, [0]), size) if exif == "apply" else size

    def jpeg() -> tf.Tensor:
        return upright(tf.io.extract_jpeg_shape(contents)[:2])

    def png() -> tf.Tensor:
        sides = tf.io.decode_raw(tf.strings.substr(contents, 16, 8), tf.int32, little_endian=False)  # width and height, four bytes each
        return upright(tf.reverse(tf.ensure_shape(sides, [2]), [0]))

    def other() -> tf.Tensor:
        return tf.shape(once(decode_other if bits == 8 else decode_deep, contents, channels=3, exif=exif))[:2]

    starts = [tf.strings.substr(contents, 0, len(PNG)) == PNG, tf.strings.substr(contents, 0, 3) == b"\xff\xd8\xff"]
    return tf.case([(starts[0], png), (starts[1], jpeg)], default=other)


_DEPTH_AT, _COLOUR_AT = 24, 25
"""Offsets in a PNG's header of the bits of a sample, and of the colour type: gray, colour or palette (W3C, PNG Specification, 11.2.2)."""
_GRAY = 0
_STORED = 1 << 16
_NONE = -1


def decode_mask(contents: tf.Tensor, values: Sequence[tuple[int | None, int]] | None, *, palette: bool = False) -> tf.Tensor:
    """Decodes a mask, a string scalar, to uint8 `(height, width, 1)`, by pairs of a stored value, 0 to 65535, or `None` for all others, and
    its class index; or `None` if stored values are indices. With a `palette` the values are colours; see `rgb_code`.

    A gray PNG is read in the graph, and with a palette any PNG; other files by Pillow, since TensorFlow converts palette indices to
    colours. A file with several channels but no palette, and a value without a class, raise `tf.errors.InvalidArgumentError`.
    """
    png = tf.strings.substr(contents, 0, len(PNG)) == PNG
    header = tf.io.decode_raw(contents, tf.uint8, fixed_length=_COLOUR_AT + 1)
    depth, colour = (tf.cast(header[at], tf.int32) for at in (_DEPTH_AT, _COLOUR_AT))

    def read() -> tf.Tensor:
        if palette:
            return _as_codes(tf.cast(tf.io.decode_png(contents, 3), tf.int32))
        return tf.cond(depth == 16, lambda: tf.cast(tf.io.decode_png(contents, 1, tf.uint16), tf.int32), small)

    def small() -> tf.Tensor:
        # The decoder scales samples of 1, 2 and 4 bits to the range of a byte.
        widest = tf.bitwise.left_shift(1, depth) - 1
        return tf.cast(tf.io.decode_png(contents, 1), tf.int32) * widest // 255

    def other() -> tf.Tensor:
        if target() == "process":
            return numpy_function(partial(_by_pillow, values, palette), [contents], tf.int32)
        known = "PNG" if palette else "gray PNG"
        with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.constant(False), data=[f"only {known} masks can be read"])]):
            return tf.zeros([0, 0, 1], tf.int32)

    stored = tf.cond(png if palette else png & (colour == _GRAY), read, other)
    stored.set_shape([None, None, 1])
    if values is None:
        odd = tf.reduce_max(stored)
        said = tf.strings.format("the mask holds {}, and class indices go up to 255; give it `values`", odd)
        return tf.cast(asserted(stored, odd <= 255, said), tf.uint8)
    named, rest = {value: index for value, index in values if value is not None}, dict(values).get(None, _NONE)
    if palette:
        codes = tf.constant([*named], tf.int32)  # rising
        place = tf.minimum(tf.searchsorted(codes, tf.reshape(stored, [-1])), len(named) - 1)
        place = tf.reshape(place, tf.shape(stored))
        found = tf.where(tf.gather(codes, place) == stored, tf.gather(tf.constant([*named.values()], tf.int32), place), rest)
        said = "the mask holds the colour [{}, {}, {}], which is none of its `palette`; `else` there takes all others"
    else:
        table: np.ndarray[Any, Any] = np.full(_STORED, rest, np.int32)
        table[[*named]] = [*named.values()]
        found, said = (
            tf.gather(tf.constant(table), stored),
            "the mask holds {}, which is none of its `values` or `classes`; `else` in `values` takes all others",
        )
    odd = tf.reduce_max(tf.where(found == _NONE, stored, _NONE))
    parts = [tf.bitwise.right_shift(odd, 16), tf.bitwise.right_shift(odd, 8) % 256, odd % 256] if palette else [odd]
    return tf.cast(asserted(found, odd == _NONE, tf.strings.format(said, parts)), tf.uint8)


def _as_codes(colours: Any) -> Any:
    """Colours as numbers, int32 `(height, width, 1)`; see `rgb_code`."""
    return colours[..., 0:1] * 65536 + colours[..., 1:2] * 256 + colours[..., 2:3]


def _by_pillow(values: Sequence[tuple[int | None, int]] | None, palette: bool, given: Any) -> np.ndarray[Any, Any]:
    """Reads the stored values of a file, int32 `(height, width, 1)`; outside a graph, TensorFlow passes an array of one object."""
    import io

    from PIL import Image, UnidentifiedImageError

    contents = given if isinstance(given, bytes) else given.item()
    try:
        opened = Image.open(io.BytesIO(contents))
    except UnidentifiedImageError:
        raise ValueError("it is not a readable image, or is damaged") from None
    with opened as image:
        lossy = image.format == "JPEG"
        if palette:
            stored = _as_codes(np.asarray(image.convert("RGB")).astype(np.int32))
        elif image.mode in ("1", "L", "P", "I", "I;16", "I;16B"):
            stored = np.asarray(image).astype(np.int32)[..., None]
        else:
            found = f"{len(image.getbands())} channels ({image.mode})"
            why = f"a mask has one value a pixel, as gray or as a palette's index, and this file has {found}"
            raise ValueError(f"{why}; for colours give it a `palette`")
    if not palette and (stored.min(initial=0) < 0 or stored.max(initial=0) >= _STORED):
        raise ValueError(f"the mask holds values outside 0..{_STORED - 1}")
    odd = sorted({*np.unique(stored).tolist()} - {value for value, _ in values}) if lossy and values is not None else []
    if odd:
        what = f"the colour {[odd[0] >> 16, odd[0] >> 8 & 255, odd[0] & 255]}" if palette else odd[0]
        known = "palette" if palette else "values"
        raise ValueError(f"the mask is a JPEG, which changes values, and holds {what}, which is none of its `{known}`: save masks as PNG")
    return stored
