"""The functions of `pipegen.compat` on arrays: against Keras' own where it is right, against SciPy and Pillow where it is not."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from pipegen import compat

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)
SQUARE = RNG.uniform(0, 255, (18, 18, 3)).astype(np.float32)
WIDE = RNG.uniform(0, 255, (12, 20, 3)).astype(np.float32)
LAST = {"row_axis": 0, "col_axis": 1, "channel_axis": 2}


def ramps(height: int, width: int) -> Array:
    """An image whose channels are the row and the column of each pixel, so that what a warp reads can be seen."""
    return np.stack(np.mgrid[:height, :width], -1).astype(np.float64)


def test_pictures_are_known_by_their_names(tmp_path: Path) -> None:
    for name in ("b.PNG", "a.jpg", "notes.txt", "notapng", "below/c.tiff"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert compat.list_pictures(tmp_path) == [str(tmp_path / name) for name in ("a.jpg", "b.PNG", "below/c.tiff")]
    assert compat.list_pictures(tmp_path, ext="png") == compat.list_pictures(str(tmp_path), ext=("png",)) == [str(tmp_path / "b.PNG")]
    assert compat.validate_filename(str(tmp_path / "b.PNG"), ("jpg", "png"))
    for name in ("a.jpg", "folder.png", "gone.png"):
        assert not compat.validate_filename(str(tmp_path / name), ("png",))


def test_nothing_to_do_gives_the_same_array() -> None:
    assert compat.apply_affine_transform(SQUARE, **LAST) is SQUARE


def test_zoom_is_about_the_centre_of_an_image_that_is_not_square() -> None:
    rows, columns = np.moveaxis(compat.apply_affine_transform(ramps(11, 21), zx=0.5, zy=0.5, **LAST), -1, 0)
    np.testing.assert_allclose(rows, 5 + (np.mgrid[:11, :21][0] - 5) * 0.5, atol=1e-9)
    np.testing.assert_allclose(columns, 10 + (np.mgrid[:11, :21][1] - 10) * 0.5, atol=1e-9)


def test_half_a_turn_of_an_image_that_is_not_square_mirrors_it_both_ways() -> None:
    turned = compat.apply_affine_transform(WIDE, theta=180, **LAST)
    np.testing.assert_allclose(turned, WIDE[::-1, ::-1], atol=1e-3)


def test_a_positive_angle_turns_the_picture_counter_clockwise() -> None:
    np.testing.assert_allclose(compat.apply_affine_transform(SQUARE, theta=90, **LAST), np.rot90(SQUARE), atol=1e-3)


def test_shifts_go_along_the_axes_that_they_name() -> None:
    across = compat.apply_affine_transform(ramps(9, 9), tx=2, order=0, **LAST)[4, 4]
    down = compat.apply_affine_transform(ramps(9, 9), ty=2, order=0, **LAST)[4, 4]
    assert (across.tolist(), down.tolist()) == ([4, 6], [6, 4])


@pytest.mark.parametrize(("geometry", "moves"), [("documented", 1), ("keras3", 0)])
def test_random_shift_moves_the_width_across(geometry: Any, moves: int) -> None:
    np.random.seed(0)
    seen = [compat.random_shift(ramps(16, 16), 0.25, 0.0, **LAST, geometry=geometry)[8, 8] - 8 for _ in range(5)]
    assert np.abs(np.stack(seen)[:, moves]).max() > 0.5
    assert np.abs(np.stack(seen)[:, 1 - moves]).max() < 1e-6


@pytest.mark.parametrize("mode", ["nearest", "constant", "reflect", "wrap"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_the_warp_is_scipys(mode: str, order: int) -> None:
    y = compat.apply_affine_transform(WIDE, theta=25, tx=2.5, ty=-1, zx=1.3, **LAST, fill_mode=mode, cval=7.0, order=order)
    t = np.deg2rad(25)
    xy = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    centre = np.array([5.5, 9.5])
    linear = (xy @ np.diag([1.3, 1.0]))[::-1, ::-1]
    offset = centre - linear @ centre + (xy @ [2.5, -1])[::-1]
    for channel in range(3):
        expected = ndimage.affine_transform(WIDE[..., channel], linear, offset, order=order, mode=mode, cval=7.0)
        np.testing.assert_allclose(y[..., channel], expected, atol=2e-3)


def test_channels_first_is_the_same_picture() -> None:
    first = compat.apply_affine_transform(WIDE.transpose(2, 0, 1), theta=20, shear=10, zy=0.8)
    last = compat.apply_affine_transform(WIDE, theta=20, shear=10, zy=0.8, **LAST)
    np.testing.assert_array_equal(first.transpose(1, 2, 0), last)


@pytest.mark.parametrize(
    ("axes", "message"),
    [((0, 1, 1), "each once"), ((0, 2, 1), "not the middle"), ((0, 1, 3), "each once")],
)
def test_axes_that_are_none(axes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compat.apply_affine_transform(SQUARE, 10, 0, 0, 0, 1, 1, *axes)


def test_other_errors() -> None:
    with pytest.raises(ValueError, match="3 dimensions"):
        compat.apply_affine_transform(SQUARE[..., 0], theta=3)
    with pytest.raises(ValueError, match="'keras3'"):
        compat.random_rotation(SQUARE, 3, geometry="keras4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pair"):
        compat.random_zoom(SQUARE, (1.0, 1.0, 1.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pair"):
        compat.random_brightness(SQUARE, (1.0,))


def test_without_scipy_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"pipegen\[compat\]"):
        compat.apply_affine_transform(SQUARE, theta=3, **LAST)


def test_brightness_of_fractions_stays_in_fractions() -> None:
    np.testing.assert_allclose(compat.apply_brightness_shift(SQUARE / 255, 0.5, scale=False), SQUARE / 510, rtol=1e-6)
    assert compat.apply_brightness_shift(SQUARE / 255, 9.0, scale=False).max() == 1


def test_brightness_of_other_ranges_is_above_the_least_value() -> None:
    x = SQUARE / 127.5 - 1
    y = compat.apply_brightness_shift(x, 0.5, scale=False)
    np.testing.assert_allclose(y - x.min(), (x - x.min()) / 2, atol=1e-6)
    assert compat.apply_brightness_shift(x, 3.0, scale=False).max() == x.max()


def test_brightness_leaves_alpha_and_the_input_alone() -> None:
    x = RNG.uniform(0, 255, (4, 5, 4)).astype(np.float32)
    before = x.copy()
    y = compat.apply_brightness_shift(x, 0.5, scale=False)
    np.testing.assert_array_equal(y[..., 3], x[..., 3])
    np.testing.assert_array_equal(x, before)
    first = compat.apply_brightness_shift(x.transpose(2, 0, 1), 0.5, scale=False, channel_axis=0)
    np.testing.assert_array_equal(first.transpose(1, 2, 0), y)


def test_channel_shift_clips_to_the_image() -> None:
    y = compat.apply_channel_shift(SQUARE, 100, 2)
    np.testing.assert_array_equal(y, np.clip(SQUARE + 100, SQUARE.min(), SQUARE.max()))
    np.testing.assert_array_equal(compat.apply_channel_shift(np.full((3, 3, 3), 9.0), 50), 9.0)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_arrays_to_pictures_and_back(channels: int, data_format: str) -> None:
    x = RNG.integers(0, 256, (6, 9, channels)).astype(np.float32)
    given = x.transpose(2, 0, 1) if data_format == "channels_first" else x
    img = compat.array_to_img(given, data_format, scale=False)
    assert (img.size, img.mode) == ((9, 6), {1: "L", 3: "RGB", 4: "RGBA"}[channels])
    back = compat.img_to_array(img, data_format)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, given)


def test_files_come_back(tmp_path: Path) -> None:
    x = RNG.integers(0, 256, (6, 9, 3)).astype(np.uint8)
    compat.save_img(tmp_path / "a.png", x, scale=False)
    np.testing.assert_array_equal(compat.img_to_array(compat.load_img(tmp_path / "a.png")), x)
    with pytest.warns(UserWarning, match="alpha"):
        compat.save_img(tmp_path / "a.jpg", np.zeros((4, 4, 4)))
    buffer = io.BytesIO()
    compat.save_img(buffer, x, file_format="bmp")
    assert compat.load_img(io.BytesIO(buffer.getvalue()), color_mode="grayscale", target_size=(3, 4)).size == (4, 3)


def test_16_bit_gray_is_kept(tmp_path: Path) -> None:
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000
    Image.fromarray(deep).save(tmp_path / "deep.png")
    np.testing.assert_array_equal(compat.img_to_array(compat.load_img(tmp_path / "deep.png", "grayscale"))[..., 0], deep)


def test_wrong_words_for_pictures(tmp_path: Path) -> None:
    Image.fromarray(SQUARE.astype(np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(ValueError, match="color_mode"):
        compat.load_img(tmp_path / "a.png", color_mode="gray")
    with pytest.raises(ValueError, match="interpolation"):
        compat.load_img(tmp_path / "a.png", target_size=(3, 3), interpolation="cubic")
    with pytest.raises(TypeError, match="BytesIO"):
        compat.load_img(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="data_format"):
        compat.img_to_array(SQUARE, "last")
    with pytest.raises(ValueError, match="has 2"):
        compat.array_to_img(np.zeros((3, 3, 2)))
    with pytest.raises(ValueError, match="3 dimensions"):
        compat.array_to_img(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="shape"):
        compat.img_to_array(np.zeros(3))


def test_importing_it_imports_no_array_library() -> None:
    code = "import sys, pipegen.compat; print([m for m in ('tensorflow', 'keras', 'numpy', 'scipy', 'PIL') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    beside = "import sys, pipegen; print('pipegen.compat' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", beside], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_grayscale_is_the_word_of_keras_2(tmp_path: Path) -> None:
    compat.save_img(tmp_path / "a.png", np.random.default_rng(2).integers(0, 256, (4, 5, 3)), scale=False)
    for word, mode in ((True, "grayscale"), (False, "rgb")):
        with pytest.warns(DeprecationWarning, match="Keras 2") as caught:
            old = compat.load_img(tmp_path / "a.png", grayscale=word)
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(np.asarray(old), np.asarray(compat.load_img(tmp_path / "a.png", color_mode=mode)))
    for word, mode in ((True, "rgba"), (False, "grayscale")):
        with pytest.raises(ValueError, match="contradicts"):
            compat.load_img(tmp_path / "a.png", color_mode=mode, grayscale=word)
