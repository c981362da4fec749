"""Decode against Pillow: formats by content, orientations, windows and fractions of the size, and damaged files."""

from __future__ import annotations

import io
import struct
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from pipegen.errors import OpError
from pipegen.ops.traits import IMAGE_224
from pipegen.ops.transforms.decode import FILE, Decode
from pipegen.ops.transforms.resize import RandomResizedCrop

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def photo(height: int = 96, width: int = 150) -> Image.Image:
    """Smooth colours with some noise in brightness, as photographs are."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(40, 216, (height // 16 + 2, width // 16 + 2, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    noise = rng.integers(-8, 9, (height, width, 1))
    return Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8))


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def pillow(contents: bytes, mode: str = "RGB") -> Array:
    """The upright image as Pillow reads it."""
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(contents)))
    assert image is not None
    pixels = np.asarray(image.convert(mode)).astype(int)
    return pixels if pixels.ndim == 3 else pixels[..., None]


@cache
def traced(step: Decode) -> Any:
    """The graph that decodes, whole and as a window of everything, as a pipeline has it: nothing is known of the file."""
    import tensorflow as tf

    signature = [tf.TensorSpec([], tf.string)]

    def everything(height: Any, width: Any) -> Any:
        return tf.stack([0, 0, height, width])

    graph = tf.function(lambda c: (step.decode(c), step.decode_window(c, everything)), input_signature=signature, autograph=False)
    concrete = graph.get_concrete_function()
    assert concrete.outputs[0].shape.as_list() == [None, None, step.channels or 3]
    return concrete


def decode(contents: bytes, step: Decode | None = None) -> Array:
    """The whole image; a window is chosen in an image of just that size."""
    import tensorflow as tf

    image, window = traced(step or Decode())(tf.constant(contents))
    assert image.dtype == tf.uint8
    np.testing.assert_array_equal(window.numpy(), image.numpy())
    return image.numpy().astype(int)


def reduced(contents: bytes, need: tuple[int, int], step: Decode | None = None) -> Array:
    """The image as a step that needs no more than `need` gets it."""
    import tensorflow as tf

    return (step or Decode()).decode(tf.constant(contents), need).numpy().astype(int)


JPEGS = {
    "4:2:0": {"subsampling": 2}, "4:2:2": {"subsampling": 1}, "4:4:4": {"subsampling": 0},
    "progressive": {"progressive": True}, "high quality": {"quality": 98, "subsampling": 0},
}  # fmt: skip


@pytest.mark.parametrize("options", JPEGS.values(), ids=JPEGS)
def test_jpeg_is_near_pillow_s(options: dict[str, Any]) -> None:
    contents = encode(photo(), "JPEG", **options)
    difference = np.abs(decode(contents) - pillow(contents))
    # The fast transform differs by a level on average; plain upsampling of chroma adds to that at edges of colour.
    assert difference.mean() < (1.7 if options.get("subsampling") == 0 else 3.5)
    assert difference.max() <= (8 if options.get("subsampling") == 0 else 24)


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_gray_and_cmyk_jpeg(mode: str) -> None:
    contents = encode(photo().convert(mode), "JPEG")
    assert np.abs(decode(contents) - pillow(contents)).max() <= 8
    assert np.abs(decode(contents, Decode(channels=1)) - pillow(contents, "L")).max() <= 8


def files() -> dict[str, tuple[bytes, bytes]]:
    """A file of each kind, and a PNG of what it shows."""
    image = photo(13, 17)
    rgba = image.copy()
    rgba.putalpha(image.convert("L"))
    palette = image.quantize(40)
    turned = palette.rotate(180)
    return {
        "png": (encode(image, "PNG"), encode(image, "PNG")),
        "png rgba": (encode(rgba, "PNG"), encode(image, "PNG")),
        "png gray": (encode(image.convert("L"), "PNG"), encode(image.convert("L"), "PNG")),
        "png palette": (encode(palette, "PNG"), encode(palette, "PNG")),
        "png 1 bit": (encode(image.convert("1"), "PNG"), encode(image.convert("1"), "PNG")),
        "gif": (encode(palette, "GIF"), encode(palette, "PNG")),
        "gif animated": (encode(palette, "GIF", save_all=True, append_images=[turned]), encode(palette, "PNG")),
        "bmp": (encode(image, "BMP"), encode(image, "PNG")),
        "bmp rgba": (encode(rgba, "BMP"), encode(image, "PNG")),
        "bmp palette": (encode(palette, "BMP"), encode(palette, "PNG")),
        "bmp gray": (encode(image.convert("L"), "BMP"), encode(image.convert("L"), "PNG")),
    }


@pytest.mark.by_day(4)
@pytest.mark.parametrize("name", files())
@pytest.mark.parametrize("channels", [3, 1])
def test_lossless_formats(name: str, channels: Any) -> None:
    contents, same = files()[name]
    expected = pillow(same, "RGB" if channels == 3 else "L")
    assert np.abs(decode(contents, Decode(channels=1) if channels == 1 else Decode()) - expected).max() <= (0 if channels == 3 else 1)


def test_an_animated_webp_is_refused() -> None:
    """TensorFlow 2.21 would corrupt its memory and abort."""
    import tensorflow as tf

    frames = [Image.fromarray(np.full((12, 16, 3), v, np.uint8)) for v in (10, 200)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is an animated WebP image|is a WebP image"):
        Decode().decode(tf.constant(out.getvalue()))


def test_webp_where_tensorflow_reads_it() -> None:
    import tensorflow as tf

    image = photo(13, 17)
    rgba = image.copy()
    rgba.putalpha(image.convert("L"))
    for contents in (encode(image, "WEBP", lossless=True), encode(rgba, "WEBP", lossless=True, exact=True)):
        if hasattr(tf.raw_ops, "DecodeWebP"):
            np.testing.assert_array_equal(decode(contents), np.asarray(image))
        else:
            with pytest.raises(tf.errors.InvalidArgumentError, match="is a WebP image"):
                decode(contents)


def deep() -> bytes:
    return encode(Image.fromarray(np.arange(30, dtype=np.uint16).reshape(5, 6) * 2000), "PNG")


@pytest.mark.parametrize(("contents", "text"), [
    (b"", "is empty"),
    (b"hello, this is text", "is not a JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, PGM or PBM image"),
    (b"II*\x00" + bytes(60), "is a TIFF that is cut short"),
    (deep(), "is a 16-bit PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (encode(photo(), "JPEG")[:1500], "JPEG"),
    (encode(photo(), "PNG")[:80], "PNG"),
])  # fmt: skip
def test_damaged_and_foreign_files(contents: bytes, text: str) -> None:
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        decode(contents)


def with_orientation(image: Image.Image, orientation: int, endian: str, *, before: bytes = b"", entries: int = 0, gap: int = 0) -> bytes:
    """A JPEG with an EXIF block of our own: tags before the orientation, and a directory that starts later."""
    mark = b"II" if endian == "<" else b"MM"
    tags = [struct.pack(endian + "HHII", 0x0090 + i, 4, 1, 0x01120003) for i in range(entries)]
    tags.append(struct.pack(endian + "HHIHH", 0x0112, 3, 1, orientation, 0))
    tags.append(struct.pack(endian + "HHIHH", 0x0128, 3, 1, 2, 0))
    tiff = mark + struct.pack(endian + "HI", 42, 8 + gap) + bytes(gap) + struct.pack(endian + "H", len(tags)) + b"".join(tags) + bytes(4)
    exif = b"Exif\x00\x00" + tiff
    contents = encode(image, "JPEG", subsampling=0)
    return contents[:2] + before + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + contents[2:]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("endian", ["<", ">"])
def test_orientations_are_pillow_s(orientation: int, endian: str) -> None:
    image = photo(40, 64)
    exif = Image.Exif()
    exif.endian = endian
    exif[0x010F] = "A maker"
    exif[0x0112] = orientation
    for contents in (
        encode(image, "JPEG", exif=exif.tobytes(), subsampling=0),
        with_orientation(image, orientation, endian, entries=5, gap=26),
    ):
        assert Image.open(io.BytesIO(contents)).getexif()[0x0112] == orientation
        expected = pillow(contents)
        assert expected.shape == ((40, 64, 3) if orientation < 5 else (64, 40, 3))
        assert np.abs(decode(contents) - expected).max() <= 8
        ignored = decode(contents, Decode(exif="ignore"))
        assert ignored.shape == (40, 64, 3)


@pytest.mark.parametrize("before", [
    b"\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00",
    b"\xff\xfe\x00\x08a note",
    b"\xff\xe2\x01\x00" + bytes(range(254)),
], ids=["jfif", "comment", "another segment"])  # fmt: skip
def test_orientation_behind_other_segments(before: bytes) -> None:
    contents = with_orientation(photo(40, 64), 6, ">", before=before)
    assert np.abs(decode(contents) - pillow(contents)).max() <= 8


@pytest.mark.parametrize("orientation", [0, 9, 300])
def test_an_orientation_that_makes_no_sense_is_none(orientation: int) -> None:
    assert decode(with_orientation(photo(40, 64), orientation, "<")).shape == (40, 64, 3)


def test_exif_without_orientation_and_cut_short() -> None:
    image = photo(40, 64)
    plain = decode(encode(image, "JPEG"))
    exif = Image.Exif()
    exif[0x010F] = "A maker"
    np.testing.assert_array_equal(decode(encode(image, "JPEG", exif=exif.tobytes())), plain)
    for body in (b"", b"II", b"II*\x00\xff\xff\xff\xff", b"MM\x00*\x00\x00\x00\x08\xff\xff"):
        np.testing.assert_array_equal(decode(encode(image, "JPEG", exif=b"Exif\x00\x00" + body)), plain)


WINDOWED = {
    "4:2:0": encode(photo(), "JPEG", subsampling=2), "4:4:4": encode(photo(), "JPEG", subsampling=0),
    "gray": encode(photo().convert("L"), "JPEG"), "progressive": encode(photo(), "JPEG", progressive=True),
    "odd noise": encode(Image.fromarray(np.random.default_rng(1).integers(0, 256, (97, 151, 3), dtype=np.uint8)), "JPEG"),
    "turned": with_orientation(photo(), 6, ">"), "png": encode(photo(), "PNG"),
}  # fmt: skip


@cache
def windowed(need: tuple[int, int] | None) -> Any:
    """The graph that decodes a window, alone and cut out of the whole."""
    import tensorflow as tf

    signature = [tf.TensorSpec([], tf.string), tf.TensorSpec([4], tf.int32)]
    ways = [partial(Decode().decode_window, need=need, whole=whole) for whole in (False, True)]
    return tf.function(lambda c, w: [way(c, lambda height, width: w) for way in ways], input_signature=signature, autograph=False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize("need", [None, (6, 5)])
def test_a_window_alone_is_the_window_cut_out(name: str, need: tuple[int, int] | None) -> None:
    import tensorflow as tf

    contents = WINDOWED[name]
    full = decode(contents)
    rng = np.random.default_rng(2)
    ratios = set()
    for _ in range(40):
        h, w = (int(rng.integers(1, side + 1)) for side in full.shape[:2])
        top, left = int(rng.integers(0, full.shape[0] - h + 1)), int(rng.integers(0, full.shape[1] - w + 1))
        window = tf.constant([top, left, h, w])
        y, cut_out = (found.numpy() for found in windowed(need)(tf.constant(contents), window))
        np.testing.assert_array_equal(y, cut_out)
        ratio = 1
        while name != "png" and need and ratio < 8 and h >= 2 * ratio * need[0] and w >= 2 * ratio * need[1]:
            ratio *= 2
        ratios.add(ratio)
        expected = -(-(top + h) // ratio) - top // ratio, -(-(left + w) // ratio) - left // ratio
        assert y.shape[:2] == expected
        if ratio == 1:
            np.testing.assert_array_equal(y, full[top : top + h, left : left + w])
        else:
            assert y.shape[0] >= need[0]  # type: ignore[index]
            assert y.shape[1] >= need[1]  # type: ignore[index]
    assert len(ratios) == (1 if need is None or name == "png" else 4)


@pytest.mark.nightly
def test_a_window_in_a_graph() -> None:
    import tensorflow as tf

    graph, window = windowed((6, 5)), tf.constant([11, 3, 70, 81])
    assert graph.get_concrete_function().outputs[0].shape.as_list() == [None, None, 3]
    for contents in WINDOWED.values():
        eager = Decode().decode_window(tf.constant(contents), lambda height, width: window, (6, 5))
        np.testing.assert_array_equal(graph(contents, window)[0].numpy(), eager.numpy())


@pytest.mark.by_day(1)
@pytest.mark.parametrize("need", [pytest.param(None, marks=pytest.mark.nightly), (20, 20)])
@pytest.mark.parametrize(
    ("step", "plain"),
    [
        (Decode(), False),
        pytest.param(Decode(), True, marks=pytest.mark.nightly),
        *(pytest.param(Decode(channels=1), plain, marks=pytest.mark.nightly) for plain in (True, False)),
        *(pytest.param(Decode(exif="ignore"), plain, marks=pytest.mark.nightly) for plain in (False, True)),
    ],
    ids=lambda value: ("plain JPEGs" if value else "of all kinds") if isinstance(value, bool) else repr(value),
)
def test_several_files_at_once_are_what_each_is_alone(step: Decode, need: tuple[int, int] | None, plain: bool) -> None:
    """Files of all kinds side by side: JPEGs with and without EXIF, gray and CMYK, and one that is no JPEG; and JPEGs alone. By day one
    of each kind: each is traced."""
    import tensorflow as tf

    of_kinds = WINDOWED if need is None else ("4:2:0", "gray", "turned", "png")
    mixed = (*map(WINDOWED.__getitem__, of_kinds), encode(photo().convert("CMYK"), "JPEG"))
    contents = [tf.constant(c) for c in ([encode(photo(), "JPEG"), encode(photo().rotate(90, expand=True), "JPEG")] if plain else mixed)]
    draws = tf.constant(np.random.default_rng(3).random((len(contents), 22)))
    crop = RandomResizedCrop(size=20)

    @tf.function(autograph=False)
    def each(*files: Any, usual: bool = False) -> Any:
        asked: list[Any] = []

        def surveyed(window: Any, whole: bool = False) -> list[Any]:
            @tf.function(autograph=False)  # traced once, as a pipeline does it
            def one(file: Any, row: Any, drawn: Any) -> Any:
                return step.decode_surveyed(file, row, need, window and partial(window, drawn), whole=whole)

            survey = step.survey(list(files), need, window and partial(window, draws))
            if usual:
                return [one(file, (None, *survey.found[i][1:]), draws[i]) for i, file in enumerate(files)]
            asked.append(survey.usual)
            return [one(file, survey.found[i], draws[i]) for i, file in enumerate(files)]

        return surveyed(None), surveyed(crop.window), surveyed(crop.window, whole=True), asked

    images, *windows, all_usual = each(*contents)
    assert bool(all_usual[0]) is (plain and need is None), "usual is what is decoded at its full size without looking it up"
    if all_usual[0]:
        images, *windows, _ = each(*contents, usual=True)
    for number, one in enumerate(contents):
        np.testing.assert_array_equal(images[number], step.decode(one, need), err_msg=str(number))
        alone = step.decode_window(one, partial(crop.window, draws[number]), need)
        for given in windows:
            np.testing.assert_array_equal(given[number], alone, err_msg=str(number))


@pytest.mark.parametrize(("need", "ratio"), [
    ((96, 150), 1), ((48, 76), 1), ((48, 75), 2), ((24, 37), 4), ((12, 18), 8), ((12, 19), 4), ((1, 1), 8), ((13, 1), 4),
])  # fmt: skip
def test_an_image_is_reduced_as_far_as_the_next_step_allows(need: tuple[int, int], ratio: int) -> None:
    import tensorflow as tf

    contents = encode(photo(), "JPEG")
    y = reduced(contents, need)
    assert y.shape == (-(-96 // ratio), -(-150 // ratio), 3)
    kept = tf.io.decode_jpeg(contents, 3, ratio=ratio, dct_method="INTEGER_FAST", fancy_upscaling=False)
    np.testing.assert_array_equal(y, kept.numpy())
    assert reduced(contents, need, Decode(scaled="never")).shape == (96, 150, 3)


def test_a_reduced_image_shows_the_same_picture() -> None:
    contents = encode(photo(), "JPEG", subsampling=0)
    shrunk = np.asarray(Image.fromarray(pillow(contents).astype(np.uint8)).resize((75, 48), Image.Resampling.BOX)).astype(int)
    assert np.abs(reduced(contents, (48, 75)) - shrunk).mean() < 2


def test_need_is_that_of_the_upright_image() -> None:
    contents = with_orientation(photo(96, 150), 6, "<")  # 150 by 96 when upright
    assert reduced(contents, (75, 48)).shape == (75, 48, 3)
    assert reduced(contents, (48, 75)).shape == (150, 96, 3)
    assert reduced(encode(photo(), "PNG"), (2, 2)).shape == (96, 150, 3)


def test_types() -> None:
    assert Decode().traits(FILE).decodes
    assert Decode(channels=1).infer(FILE).shape == (None, None, 1)
    with pytest.raises(OpError) as caught:
        Decode().infer(IMAGE_224)
    assert caught.value.code == "PG215"
