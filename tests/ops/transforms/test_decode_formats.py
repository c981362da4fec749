"""What `decode` reads beyond JPEG and colour of 8 bits, against NumPy, Pillow and tifffile: depths, channels, TIFF and Netpbm."""

from __future__ import annotations

import io
import sys
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import tifffile
from lowered_steps import decoder
from PIL import Image

from pipegen.errors import OpError
from pipegen.ops.transforms.decode import FILE, Decode

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]
H, W = 7, 9


def pixels(samples: int, bits: int) -> Array:
    """Values of every magnitude, `(H, W, samples)`."""
    top = 2**bits
    return np.random.default_rng(samples).integers(0, top, (H, W, samples)).astype(f"uint{bits}")


def saved(array: Array, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array).save(buffer, kind, **options)
    return buffer.getvalue()


def png(array: Array) -> bytes:
    """Pillow writes no PNG of several channels of 16 bits; TensorFlow's encoder does, which is not what is tested."""
    import tensorflow as tf

    contents: bytes = tf.io.encode_png(array).numpy()
    return contents


def tiff(array: Array, **options: Any) -> bytes:
    buffer = io.BytesIO()
    gray = array.shape[-1] <= 2
    alpha = array.shape[-1] in (2, 4)
    given = array[..., 0] if array.shape[-1] == 1 else array
    about = {"photometric": "minisblack" if gray else "rgb", **({"extrasamples": ["unassalpha"]} if alpha else {}), **options}
    tifffile.imwrite(buffer, given, planarconfig=None if array.shape[-1] == 1 else "contig", **about)
    return buffer.getvalue()


def netpbm(array: Array, comment: bytes = b"", most: int | None = None) -> bytes:
    """The binary form of PGM or PPM."""
    most = most or np.iinfo(array.dtype).max
    head = b"P5" if array.shape[-1] == 1 else b"P6"
    return head + b"\n" + comment + b"%d %d\n%d\n" % (W, H, most) + array.astype(array.dtype.newbyteorder(">")).tobytes()


def expected(array: Array, channels: int) -> Array:
    """Gray, RGB or RGBA of an array of 1 to 4 samples."""
    top = np.iinfo(array.dtype).max
    samples = array.shape[-1]
    colour = np.repeat(array[..., :1], 3, -1) if samples <= 2 else array[..., :3]
    if channels == 1:
        weighted = colour.astype(np.int64) @ [19595, 38470, 7471]
        return ((weighted + 32768) // 65536).astype(array.dtype)[..., None]
    alpha = array[..., -1:] if samples in (2, 4) else np.full((*array.shape[:2], 1), top, array.dtype)
    return colour if channels == 3 else np.concatenate([colour, alpha], -1)


@cache
def with_window(step: Decode) -> Any:
    """The graph that a pipeline has: whole, and as a window of all but the first row."""
    import tensorflow as tf

    def below(height: Any, width: Any) -> Any:
        return tf.stack([height * 0 + 1, height * 0, height - 1, width], axis=-1)

    def each(contents: Any) -> Any:
        assert step.survey([contents], None, below) is None
        return step.decode(contents), step.decode_window(contents, below)

    return tf.function(each, input_signature=[tf.TensorSpec([], tf.string)], autograph=False).get_concrete_function()


def decode(contents: bytes, channels: Any = 3, bits: Any = 8, exif: Any = "apply") -> Array:
    import tensorflow as tf

    step = Decode(channels=channels, bits=bits if bits == 16 or channels == 3 else None, exif=exif)  # 8 is what there is without `bits`
    done = (with_window if bits == 16 else decoder)(step)(tf.constant(contents))  # windows of 8 bits are looked at in `test_decode`
    image, *windows = done if bits == 16 else [done]
    assert image.dtype == step.infer(FILE).dtype
    for window in windows:
        np.testing.assert_array_equal(window.numpy(), image.numpy()[1:])
    found: Array = image.numpy()
    return found


def written(kind: str, array: Array) -> bytes:
    makers: dict[str, Any] = {
        "png": png,
        "tiff": tiff,
        "tiff big-endian": partial(tiff, byteorder=">"),
        "tiff deflate": partial(tiff, compression="zlib", predictor=True),
        "bigtiff": partial(tiff, bigtiff=True),
        "netpbm": partial(netpbm, comment=b"# a comment\n"),
    }
    contents: bytes = makers[kind](array)
    return contents


CASES = [
    (kind, samples, bits)
    for kind in ("png", "tiff", "tiff big-endian", "tiff deflate", "bigtiff", "netpbm")
    for samples in (1, 2, 3, 4)
    for bits in (8, 16)
    if not (kind == "netpbm" and samples in (2, 4))
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("bits", "channels"),
    [(8, 1), (8, 3), pytest.param(8, 4, marks=pytest.mark.nightly), *((16, channels) for channels in (1, 3, 4))],
)  # by day `test_pillow_table.py` reads 8 bits in four channels
def test_every_format_gives_what_is_stored(channels: int, bits: int) -> None:
    for kind, samples, depth in CASES:
        if depth != bits:
            continue
        array = pixels(samples, bits)
        found = decode(written(kind, array), channels, bits)
        gray_of_png = kind == "png" and bits == 8 and channels == 1  # libpng's weights
        difference = np.abs(found.astype(int) - expected(array, channels).astype(int))
        assert found.shape == (H, W, channels), (kind, samples)
        assert difference.max() <= gray_of_png, (kind, samples)


def refusal(contents: bytes, bits: int = 8, channels: int = 3) -> str:
    import tensorflow as tf

    from pipegen.ops.lowering.python_calls import reason

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        decode(contents, channels, bits)
    return reason(caught.value)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("kind", ["png", "tiff", "netpbm"])
def test_a_file_of_another_depth_is_refused(kind: str) -> None:
    name = {"png": "PNG", "tiff": "TIFF", "netpbm": "PPM"}[kind]
    assert refusal(written(kind, pixels(3, 16))).startswith(f"is a 16-bit {name}, which `decode` would cut to 8 bits; write `bits: 16`")
    assert "`bits: 16` needs files of 16 bits" in refusal(written(kind, pixels(3, 8)), 16)


@pytest.mark.parametrize(("kind", "name"), [("JPEG", "a JPEG"), ("GIF", "a GIF"), ("BMP", "a BMP image"), ("WEBP", "a WebP image")])
def test_formats_without_16_bits_are_refused(kind: str, name: str) -> None:
    assert refusal(saved(pixels(3, 8), kind), 16).startswith(f"is {name}, but `bits: 16`")


@pytest.mark.nightly
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("samples", [1, 3])
def test_a_tiff_is_turned_upright_as_its_orientation_says(samples: int, bits: int) -> None:
    array = pixels(samples, bits)
    turns = {
        2: array[:, ::-1], 3: array[::-1, ::-1], 4: array[::-1], 5: array.swapaxes(0, 1), 6: np.rot90(array, -1),
        7: array[::-1, ::-1].swapaxes(0, 1), 8: np.rot90(array),
    }  # fmt: skip
    for orientation, upright in turns.items():
        contents = tiff(array, extratags=[(274, "H", 1, orientation, True)])
        np.testing.assert_array_equal(decode(contents, samples, bits), upright, err_msg=str(orientation))
        np.testing.assert_array_equal(decode(contents, samples, bits, "ignore"), array, err_msg=str(orientation))


def test_a_tiff_whose_white_is_zero() -> None:
    for bits in (8, 16):
        array = pixels(1, bits)
        np.testing.assert_array_equal(decode(tiff(array, photometric="miniswhite"), 1, bits), np.iinfo(array.dtype).max - array)


def test_8_bits_of_a_tiff_are_pillow_s() -> None:
    """LZW, JPEG inside, a palette, one bit a pixel, CMYK; and of several pages the first."""
    image = Image.fromarray(pixels(3, 8))
    for one, options in [
        (image, {"compression": "tiff_lzw"}), (image, {"compression": "jpeg"}), (image.quantize(20), {}), (image.convert("1"), {}),
        (image.convert("CMYK"), {}), (image, {"save_all": True, "append_images": [image.rotate(180)]}),
    ]:  # fmt: skip
        buffer = io.BytesIO()
        one.save(buffer, "TIFF", **options)
        same = np.asarray(Image.open(io.BytesIO(buffer.getvalue())).convert("RGB"))
        np.testing.assert_array_equal(decode(buffer.getvalue()), same)


def test_netpbm_values_are_spread_to_the_whole_range() -> None:
    array = (pixels(3, 16) % 1024).astype(np.uint16)
    np.testing.assert_array_equal(decode(netpbm(array, most=1023), 3, 16), np.rint(array * (65535 / 1023)).astype(np.uint16))
    gray = array[..., :1]
    np.testing.assert_array_equal(decode(netpbm(gray, most=1023), 1, 16), np.rint(gray * (65535 / 1023)).astype(np.uint16))
    plain = b"P2\n2 1\n255\n7 250\n"
    np.testing.assert_array_equal(decode(plain, 1)[0, :, 0], [7, 250])
    np.testing.assert_array_equal(decode(b"P4\n8 1\n\xa5", 1)[0, :, 0] > 0, [False, True, False, True, True, False, True, False])


@pytest.mark.nightly
def test_transparency_is_dropped_or_kept() -> None:
    rgba = pixels(4, 8)
    rgba[0, :, 3] = 0  # nothing of this row can be seen, and its colour stands
    for kind in ("PNG", "BMP"):
        contents = saved(rgba, kind)
        if kind == "BMP":
            contents = contents[:14] + (40).to_bytes(4, "little") + contents[18:]
        np.testing.assert_array_equal(decode(contents), rgba[..., :3], err_msg=kind)
    np.testing.assert_array_equal(decode(saved(rgba, "PNG"), 4), rgba)
    np.testing.assert_array_equal(decode(saved(rgba, "BMP"), 4), np.asarray(Image.open(io.BytesIO(saved(rgba, "BMP"))).convert("RGBA")))
    image = Image.fromarray(rgba[..., :3]).quantize(9)
    buffer = io.BytesIO()
    image.save(buffer, "GIF", transparency=int(np.asarray(image)[0, 0]))
    found = decode(buffer.getvalue(), 4)
    np.testing.assert_array_equal(found[..., 3] == 0, np.asarray(image) == np.asarray(image)[0, 0])
    jpeg = saved(rgba[..., :3], "JPEG")
    np.testing.assert_array_equal(decode(jpeg, 4)[..., :3], decode(jpeg))
    assert (decode(jpeg, 4)[..., 3] == 255).all()


@pytest.mark.parametrize(("array", "options", "text"), [
    (np.zeros((H, W, 3), np.float32), {}, "is a TIFF of floats"),
    (np.zeros((H, W, 1), np.int16), {}, "is a TIFF of signed numbers"),
    (np.zeros((H, W, 1), np.uint32), {}, "is a TIFF of 32 bits"),
    (np.zeros((H, W, 5), np.uint16), {"photometric": "minisblack", "extrasamples": [0] * 4}, "is a 16-bit TIFF of 5 channels"),
    (np.zeros((H, W, 4), np.uint16), {"extrasamples": ["assocalpha"]}, "is a 16-bit TIFF of colours multiplied by their transparency"),
])  # fmt: skip
def test_what_a_tiff_may_hold_beside_is_refused(array: Array, options: Any, text: str) -> None:
    assert refusal(tiff(array, **options), 16).startswith(text)


def test_damaged_files_are_refused() -> None:
    for contents, bits in [(tiff(pixels(3, 8))[:-60], 8), (tiff(pixels(3, 16))[:-60], 16), (tiff(pixels(1, 16))[:-60], 16), (b"P6\n9", 8)]:
        assert refusal(contents, bits).startswith("is damaged")
    assert refusal(tiff(pixels(3, 16))[:20], 16) == "is a TIFF that is cut short"
    assert refusal(netpbm(pixels(3, 16))[:-1], 16) == "is a PPM that is cut short"
    assert refusal(b"", 16) == "is empty"
    assert refusal(b"hello, this is text", 16) == "is not a PNG, TIFF, PGM or PPM image"


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tifffile", None)
    contents = tiff(pixels(3, 16))
    assert refusal(contents, 16).endswith("which tifffile reads; `pip install tifffile`")
    assert refusal(tiff(pixels(3, 8)), 16).startswith("is an 8-bit TIFF"), "the rest is read without it"


def test_the_source_and_the_step_say_the_same() -> None:
    said = FILE.with_(file_channels=1, file_bits=16)
    assert str(Decode().infer(said)) == str(Decode(channels=1, bits=16).infer(FILE)) == "uint16[?×?×1] in [0, 65535]"
    assert Decode(channels=1).on(said) == Decode(channels=1, bits=16)
    assert [Decode(bits=b).traits(FILE).decodes_windows for b in (8, 16)] == [True, False]
    for step, field in ((Decode(channels=3), "channels"), (Decode(bits=8), "bits")):
        with pytest.raises(OpError) as caught:
            step.infer(said)
        assert (caught.value.code, caught.value.field) == ("PG229", field)
