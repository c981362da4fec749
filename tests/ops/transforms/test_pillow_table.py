"""Every form of every format against Pillow: the same pixels to the bit, JPEG within a stated distance, or an error."""

from __future__ import annotations

import io
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import picture_files as made
import pytest
from lowered_steps import decoder
from PIL import Image

from pipegen.ops.lowering.formats import odd_form
from pipegen.ops.transforms.decode import Decode

pytestmark = [pytest.mark.tf, pytest.mark.filterwarnings("ignore")]

Array = np.ndarray[Any, Any]
FARTHEST, ON_AVERAGE = 24, 3.5
"""Levels by which the JPEGs of the table may differ from Pillow's."""
ORIENTED = ("JPEG", "JPEG behind 64 KiB", "PNG", "PNG behind", "WebP", "TIFF", "AVIF")


def decode(contents: bytes, step: Decode) -> Array | str:
    """The pixels, or why there are none."""
    import tensorflow as tf

    try:
        pixels: Array = decoder(step)(tf.constant(contents)).numpy()
    except tf.errors.OpError as error:
        return error.message
    return pixels


def differs(form: str, found: Array | str, expected: Array | str, *, accurate: bool = False) -> str:
    """What is wrong, if anything is."""
    if isinstance(found, str) or isinstance(expected, str):
        both = isinstance(found, str) and isinstance(expected, str)
        return (
            ""
            if both
            else f"{found if isinstance(found, str) else 'read'}, and Pillow: {expected if isinstance(expected, str) else 'reads it'}"
        )
    if found.shape != expected.shape:
        return f"{found.shape} instead of {expected.shape}"
    off = np.abs(found.astype(int) - expected.astype(int))
    if form != "JPEG" or accurate:
        return f"differs by {off.max()} at {int((off.max(-1) > 0).sum())} pixels" if off.any() else ""
    return f"differs by {off.max()}, {off.mean():.2f} on average" if off.max() > FARTHEST or off.mean() > ON_AVERAGE else ""


@pytest.mark.by_day(6)
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("form", made.FORMATS)
def test_pixels_are_pillow_s(form: str, channels: Any) -> None:
    wrong = {}
    for name, contents in made.files(form).items():
        problem = differs(form, decode(contents, Decode(channels=channels)), made.pillow(contents, channels))
        if problem:
            wrong[name] = problem
    assert not wrong


@pytest.mark.by_day(6)
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("form", made.FORMATS)
def test_a_whole_picture_that_is_not_read_is_not_called_damaged(form: str, channels: Any) -> None:
    """Whole is what Pillow loads in colours of its own, and of TIFF all that is not cut short."""
    refused = 0
    for name, contents in made.files(form).items():
        try:
            with Image.open(io.BytesIO(contents)) as image:
                image.load()
            whole = True
        except (OSError, KeyError, SyntaxError, ValueError):
            whole = form == "TIFF" and "cut short" not in name
        found = decode(contents, Decode(channels=channels)) if whole else ""
        if whole and isinstance(found, str):
            refused += 1
            assert "damaged" not in found, name
            assert any(way in found for way in ("convert", "keep such data", "save", "write `bits: 16`")), f"{name}: {found}"
    assert refused > 10 or form != "TIFF"


@pytest.mark.nightly
# and `test_accurate_jpeg.py` reads gray
@pytest.mark.parametrize("channels", [3, 1, 4])
def test_accurate_jpeg_is_pillow_s_to_the_bit(channels: Any) -> None:
    step = Decode(channels=channels, jpeg="accurate")
    found = {name: differs("JPEG", decode(c, step), made.pillow(c, channels), accurate=True) for name, c in made.files("JPEG").items()}
    assert not {name: problem for name, problem in found.items() if problem}


def of_kind(side: int = 96) -> dict[str, list[Array]]:
    """Pictures by the rows of the table in the documentation."""
    random, (y, x) = np.random.default_rng(0), np.mgrid[:side, :side]
    squares = (x // 7 + y // 5) % 2
    black_and_white = np.array([[0] * 3, [255] * 3])[squares]
    gradient = np.stack([x * 255 // side, y * 255 // side, (x + y) * 128 // side], -1)
    noise = random.integers(0, 256, (side, side, 3))
    return {
        "photograph": [made.photo(side, side)],
        "flat or a gradient": [np.full((side, side, 3), (200, 30, 90)), gradient],
        "noise": [noise, np.repeat(noise[..., :1], 3, -1), random.choice([0, 255], (side, side, 3))],
        "hard edges of colour": [np.array([[0, 0, 255], [255, 0, 0]])[squares]],
        "hard edges of black and white": [black_and_white],
    }


@pytest.mark.parametrize("kind", of_kind(8))
def test_a_jpeg_is_as_near_pillow_s_as_the_documentation_says(kind: str) -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/formats.md").read_text()
    cells = next(line for line in page.splitlines() if line.startswith(f"| {kind} |")).strip("| ").split(" | ")[1:]
    stated = [tuple(map(float, cell.split(","))) for cell in cells]
    found = np.zeros((4, 2))
    for picture in of_kind()[kind]:
        for column, (subsampling, quality) in enumerate([(0, (50, 75, 90, 95)), (2, (50, 75, 90, 95)), (0, (98, 100)), (2, (98, 100))]):
            for q in quality:
                contents = made.saved(Image.fromarray(picture.astype(np.uint8)), "JPEG", quality=q, subsampling=subsampling)
                own, expected = decode(contents, Decode()), made.pillow(contents, 3)
                assert not isinstance(own, str)
                assert not isinstance(expected, str)
                off = np.abs(own.astype(int) - expected.astype(int))
                found[column] = np.maximum(found[column], (off.max(), off.mean()))
                assert not differs("JPEG", decode(contents, Decode(jpeg="accurate")), expected, accurate=True)
    assert (found <= stated).all(), f"{found.tolist()}, and the page says {stated}"
    assert kind == "photograph" or (found[:, 0] > np.array(stated)[:, 0] / 2).all(), f"the page says far too much: {found.tolist()}"


def test_what_python_reads_is_known_without_tensorflow() -> None:
    """A graph that is saved refuses what `odd_form` names, and reads the rest as Pillow does."""
    import tensorflow as tf

    from pipegen.ops.lowering.graphs import made_for

    with made_for("file"):
        saved = tf.function(lambda contents: Decode().decode(contents), input_signature=[tf.TensorSpec([], tf.string)], autograph=False)
        saved = saved.get_concrete_function()
    for form in ("GIF", "BMP"):
        for name, contents in made.files(form).items():
            expected = made.pillow(contents, 3)
            if isinstance(expected, str):
                continue
            try:
                found: Any = saved(tf.constant(contents)).numpy()
            except tf.errors.InvalidArgumentError:
                found = None
            assert (found is None) == (Decode().read_by_python(contents) is not None) or "colours" in name, name
            assert found is None or (found == expected).all(), name
    assert odd_form(b"GIF89a") is not None
    assert odd_form(b"BM") is not None
    assert odd_form(made.files("PNG")["rgb"]) is None


# ---- orientation


@pytest.mark.nightly
@pytest.mark.parametrize("form", ORIENTED)
def test_every_format_is_turned_upright_as_pillow_turns_it(form: str) -> None:
    if form == "AVIF":
        pytest.importorskip("PIL.AvifImagePlugin")
    for orientation in range(10):
        for long in (False, True) if form not in ("TIFF", "AVIF") else (False,):
            contents = made.oriented(form, orientation, long=long)
            for exif in ("apply", "ignore") if form != "TIFF" else ("apply",):
                step = Decode(jpeg="accurate", exif=exif)  # type: ignore[arg-type]
                assert not differs(form, decode(contents, step), made.pillow(contents, 3, exif=exif), accurate=True), (
                    orientation,
                    long,
                    exif,
                )
                import tensorflow as tf

                size = step.stored_size(tf.constant(contents)).numpy().tolist()
                assert size == list(made.pillow(contents, 3, exif=exif).shape[:2]), (orientation, exif)  # type: ignore[union-attr]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_orientation_in_xmp_counts_where_exif_has_none(orientation: int) -> None:
    photo = Image.fromarray(made.photo())
    xmp = made.XMP % orientation
    segment = made.segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + xmp)
    jpeg = made.saved(photo, "JPEG")
    files = [
        made.with_segments(jpeg, segment),
        made.with_segments(jpeg, segment, made.segment(0xE1, b"Exif\0\0" + made.exif_block(3))),
        made.saved(photo, "WEBP", xmp=xmp, lossless=True),
        made.png(made.photo(), 8, 2, before=[(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)]),
    ]
    for contents in files:
        assert not differs("", decode(contents, Decode(jpeg="accurate")), made.pillow(contents, 3))


@pytest.mark.nightly
def test_16_bits_of_colour_are_opencv_s(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    colour = np.random.default_rng(1).integers(0, 65536, (22, 19, 4)).astype(np.uint16)
    forms = {"rgb": (colour[..., :3], 2), "rgba": (colour, 6), "gray": (colour[..., :1], 0)}
    for name, (samples, kind) in forms.items():
        for interlace in (False, True):
            contents = made.png(samples, 16, kind, interlace=interlace)
            stored = cv2.imdecode(np.frombuffer(contents, np.uint8), cv2.IMREAD_UNCHANGED)
            stored = np.atleast_3d(stored)
            channels: Any = samples.shape[-1]
            expected = stored if channels == 1 else stored[..., [2, 1, 0, 3][:channels]]
            found = decode(contents, Decode(channels=channels, bits=16))
            assert not differs("PNG", found, expected), name
    for orientation in range(1, 9):
        contents = made.png(colour[..., :3], 16, 2, before=[(b"eXIf", made.exif_block(orientation))])
        turned = cv2.cvtColor(cv2.imdecode(np.frombuffer(contents, np.uint8), cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        if turned.shape[:2] == ((19, 22) if orientation > 4 else (22, 19)):  # an OpenCV that reads the EXIF of a PNG
            assert not differs("PNG", decode(contents, Decode(channels=3, bits=16)), turned), orientation


@pytest.mark.parametrize("idat", [1 << 13, 1 << 16, 100_000, None])
def test_exif_of_a_large_png_is_found_wherever_it_stands(idat: int | None) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (200, 300, 3)).astype(np.uint8)
    exif, text = (b"eXIf", made.exif_block(6)), (b"tEXt", b"Comment\0" + b"x" * 90_000)
    for where in ({"before": [exif]}, {"before": [text, exif]}, {"behind": [exif]}, {"behind": [exif, text]}, {"behind": [text, exif]}):
        contents = made.png(noise, 8, 2, idat=idat, **where)  # type: ignore[arg-type]
        found = decode(contents, Decode(channels=3))
        assert not isinstance(found, str)
        np.testing.assert_array_equal(found, made.pillow(contents, 3))
    plain = decode(made.png(noise, 8, 2, idat=idat), Decode(channels=3))
    assert not isinstance(plain, str)
    np.testing.assert_array_equal(plain, noise)


def test_16_bits_are_turned_upright_too() -> None:
    colour = np.random.default_rng(1).integers(0, 65536, (22, 19, 3)).astype(np.uint16)
    for orientation in range(1, 9):
        contents = made.png(colour, 16, 2, before=[(b"eXIf", made.exif_block(orientation))])
        high = made.png((colour >> 8).astype(np.uint8), 8, 2, before=[(b"eXIf", made.exif_block(orientation))])
        found, expected = decode(contents, Decode(channels=3, bits=16)), made.pillow(high, 3)
        assert not isinstance(found, str)
        assert not differs("PNG", (found >> 8).astype(np.uint8), expected)
        ignored = decode(contents, Decode(bits=16, exif="ignore"))
        assert not isinstance(ignored, str)
        np.testing.assert_array_equal(ignored, colour)


# ---- the same pictures, wherever they are stored


def chosen() -> Iterator[tuple[str, bytes]]:
    """Some pictures of every format that are read otherwise by TensorFlow alone, and all with orientation 6."""
    some = {
        "GIF": ("frame at (5, 6), back 3", "4 bits, 0 clear", "4 bits interlaced", "Pillow's, moving"),
        "BMP": (
            "4 bits, header 12",
            "RLE8 of runs, header 40",
            "16 bits 565, header 108",
            "24 bits with bytes behind",
            "32 bits from the top",
        ),
        "PNG": ("palette 4 tRNS", "gray 2", "rgb sRGB"),
        "TIFF": ("planes apart", "mode CMYK"),
        "WebP": ("lossless with transparency",),
        "JPEG": ("CMYK without marker", "4:2:0"),
    }
    for form, names in some.items():
        yield from ((f"{form} {name}", made.files(form)[name]) for name in names)
    yield from ((f"{form} turned", made.oriented(form, 6, size=(19, 22))) for form in ORIENTED if form != "AVIF")


SPEC = """
pipegen: 1
source: {source}
transforms: [{{decode: {{jpeg: accurate}}}}, {{resize: {{size: [22, 19], method: nearest}}}}]
batch: {{size: 1}}
runtime: {{cache: {cache}}}
"""


def as_files(files: dict[str, bytes], base: Path) -> str:
    (base / "f").mkdir()
    for name, contents in files.items():
        (base / "f" / name).write_bytes(contents)
    return "{image_folder: {path: f, labels: none}}"


def as_zip(files: dict[str, bytes], base: Path) -> str:
    with zipfile.ZipFile(base / "f.zip", "w") as out:
        for name, contents in files.items():
            out.writestr(name, contents)
    return "{image_folder: {path: f.zip, labels: none}}"


def as_webdataset(files: dict[str, bytes], base: Path) -> str:
    with tarfile.open(base / "f.tar", "w") as out:
        for name, contents in files.items():
            member = tarfile.TarInfo(f"{name.partition('.')[0]}.picture")
            member.size = len(contents)
            out.addfile(member, io.BytesIO(contents))
    return "{webdataset: {path: f.tar, features: {image: {kind: image, key: picture}}}}"


def as_table(files: dict[str, bytes], base: Path) -> str:
    as_files(files, base)
    (base / "t.csv").write_text("file\n" + "".join(f"f/{name}\n" for name in files))
    return "{csv: {path: t.csv, features: {image: {kind: image, column: file}}}}"


def named(files: Iterator[tuple[str, bytes]]) -> dict[str, bytes]:
    endings = {"JPEG": "jpg", "TIFF": "tif"}
    return {f"{i:03}.{endings.get(name.split()[0], name.split()[0].lower())}": contents for i, (name, contents) in enumerate(files)}


NIGHTLY = [pytest.param(store, marks=pytest.mark.nightly) for store in (as_files, as_zip, as_table)]


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["none", pytest.param("memory", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("store", [as_webdataset, *NIGHTLY])
def test_every_way_to_store_them_gives_the_same(store: Any, cache: str, tmp_path: Path) -> None:
    import pipegen

    files = named(chosen())
    (tmp_path / "spec.yaml").write_text(SPEC.format(source=store(files, tmp_path), cache=cache))
    pipe = pipegen.build(str(tmp_path / "spec.yaml"))
    for _ in range(1 if cache == "none" else 2):
        batches = [np.asarray(batch[0] if isinstance(batch, tuple) else batch)[0] for batch in pipe["predict"]]
        assert len(batches) == len(files)
        for (name, contents), found in zip(files.items(), batches, strict=True):
            assert not differs("", found, made.pillow(contents, 3)), name


@pytest.mark.parametrize("form", ["PNG", "GIF", "BMP", "TIFF"])
def test_a_mask_holds_the_index_that_is_stored(form: str) -> None:
    """Of a palette, the index and not the colour."""
    import tensorflow as tf

    from pipegen.ops.families.decoder import MaskDecoder

    step = MaskDecoder()
    looked = 0
    for name, contents in made.files(form).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with Image.open(io.BytesIO(contents)) as image:
                    expected = np.asarray(image) if image.mode in ("L", "P", "1") else None
            except OSError:
                continue
        if expected is None:
            continue
        looked += 1
        found = step.decode(tf.constant(contents)).numpy()[..., 0]
        if name.startswith("gray") and form == "PNG" and " 8" not in name and "tRNS" not in name:
            expected = expected.astype(int) * (2 ** int(name.split()[1]) - 1) // (1 if expected.dtype == bool else 255)
        np.testing.assert_array_equal(found, expected, err_msg=name)
    assert looked > 5
