"""What `decode` reads beyond JPEG and colour of 8 bits, against NumPy, Pillow and tifffile: depths, channels, TIFF and Netpbm."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import pytest
import tifffile
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
def traced(step: Decode) -> Any:
    """The graph that a pipeline has: whole, as a window of everything but the first row, and as one of several files."""
    import tensorflow as tf

    def below(height: Any, width: Any) -> Any:
        return tf.stack([height * 0 + 1, height * 0, height - 1, width], axis=-1)

    def each(contents: Any) -> Any:
        found = step.survey([contents], None, below)[0]
        return step.decode(contents), step.decode_window(contents, below), step.decode_surveyed(contents, found, None, below)

    return tf.function(each, input_signature=[tf.TensorSpec([], tf.string)], autograph=False).get_concrete_function()


def decode(contents: bytes, channels: Any = 3, bits: Any = 8, exif: Any = "apply") -> Array:
    import tensorflow as tf

    step = Decode(channels=channels, bits=bits, exif=exif)
    image, window, surveyed = traced(step)(tf.constant(contents))
    y = step.infer(FILE)
    assert image.dtype == y.dtype
    np.testing.assert_array_equal(window.numpy(), image.numpy()[1:])
    np.testing.assert_array_equal(surveyed.numpy(), window.numpy())
    found: Array = image.numpy()
    return found


FILES = {
    **{f"png {n}": (lambda n=n, bits=8: png(pixels(n, bits)), n) for n in (1, 2, 3, 4)},
}


def written(kind: str, array: Array) -> bytes:
    samples = array.shape[-1]
    match kind:
        case "png":
            return png(array)
        case "tiff":
            return tiff(array)
        case "tiff big-endian":
            return tiff(array, byteorder=">")
        case "tiff deflate":
            return tiff(array, compression="zlib", predictor=True)
        case "bigtiff":
            return tiff(array, bigtiff=True)
        case "netpbm":
            return netpbm(array, b"# a comment\n")
    raise AssertionError(kind, samples)


CASES = [
    (kind, samples, bits)
    for kind in ("png", "tiff", "tiff big-endian", "tiff deflate", "bigtiff", "netpbm")
    for samples in (1, 2, 3, 4)
    for bits in (8, 16)
    if not (kind == "netpbm" and samples in (2, 4))
]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("bits", [8, 16])
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

    from pipegen.backend.damage import reason

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        decode(contents, channels, bits)
    return reason(caught.value)


@pytest.mark.parametrize("kind", ["png", "tiff", "netpbm"])
def test_a_file_of_another_depth_is_refused(kind: str) -> None:
    name = {"png": "PNG", "tiff": "TIFF", "netpbm": "PPM"}[kind]
    assert refusal(written(kind, pixels(3, 16))).startswith(f"is a 16-bit {name}, which `decode` would cut to 8 bits; write `bits: 16`")
    assert "`bits: 16` takes files of 16 bits alone" in refusal(written(kind, pixels(3, 8)), 16)


@pytest.mark.parametrize(("kind", "name"), [("JPEG", "a JPEG"), ("GIF", "a GIF"), ("BMP", "a BMP image"), ("WEBP", "a WebP image")])
def test_formats_without_16_bits_are_refused(kind: str, name: str) -> None:
    assert refusal(saved(pixels(3, 8), kind), 16).startswith(f"is {name}, and `bits: 16`")
