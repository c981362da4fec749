"""Pixels of 16 bits and of other channels than three through whole pipelines: tables, folders, arrays, every family of steps."""

from __future__ import annotations

import io
from pipes import epoch_of, same, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tifffile
from PIL import Image
from planning import built, compiled, interpret, load_spec, records

import pipegen
from pipegen.phases.compilation import inspect

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]
N = 20


def scan(seed: int, channels: int = 1) -> Array:
    """A smooth picture that reaches both ends of 16 bits."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:34, :40]
    waves = [np.sin(x * rng.uniform(0.1, 0.4) + rng.uniform(0, 6)) + np.cos(y * rng.uniform(0.1, 0.4)) for _ in range(channels)]
    return np.clip((np.stack(waves, -1) + 1.6) * 20500, 0, 65535).astype(np.uint16)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of scans, PNG and TIFF in turn, four of each patient; the same in two class folders."""
    root = tmp_path_factory.mktemp("scans")
    rows = ["file,patient,finding"]
    for i in range(N):
        finding = "ab"[i // 4 % 2]
        (root / "scans" / finding).mkdir(parents=True, exist_ok=True)
        file = root / "scans" / finding / f"{i:02d}.{'png' if i % 2 else 'tif'}"
        if i % 2:
            Image.fromarray(scan(i)[..., 0]).save(file)
        else:
            tifffile.imwrite(file, scan(i)[..., 0], photometric="minisblack")
        rows.append(f"{file.relative_to(root)},p{i // 4},{finding}")
    (root / "scans.csv").write_text("\n".join(rows))
    return root


def table(place: Path, **image: Any) -> dict[str, Any]:
    features = {"image": {"kind": "image", "column": "file", **image}, "label": {"kind": "label", "column": "finding"}}
    return {"csv": {"path": str(place / "scans.csv"), "features": features}}


def spec(source: dict[str, Any], *steps: Any, **own: Any) -> dict[str, Any]:
    parts = {"parts": {"train": 0.8, "validation": 0.2}}
    return {"pipegen": 1, "source": source, "splits": parts, "transforms": list(steps), "batch": {"size": 8}, **own}


DEEP = {"channels": 1, "bits": 16}
RESIZE = {"resize": {"size": 24}}


def build(given: dict[str, Any], **runtime: Any) -> Any:
    return pipegen.build(given, runtime={"jit": "never", "cache": "none", **runtime})


@pytest.mark.nightly
@pytest.mark.tf
def test_task_3_patients_are_never_split_and_nothing_is_clipped(place: Path) -> None:
    """16-bit grayscale, patients never split, five folds: from a table, where the feature says it."""
    held: list[str] = []
    for fold in range(5):
        splits = {"group": "patient", "folds": {"count": 5, "fold": fold}}
        pipe = build(spec(table(place, **DEEP), {"center_crop": {"size": 24}}, splits=splits))
        parts = {split: {int(name[-6:-4]) // 4 for name in pipe.files(split)} for split in ("train", "validation")}
        assert not parts["train"] & parts["validation"]
        held += pipe.files("validation")
        if fold == 0:
            found = stream(pipe.validation)[0]
            stored = np.stack([scan(int(name[-6:-4]))[5:29, 8:32] for name in pipe.files("validation")])
            np.testing.assert_array_equal(found, stored.astype(np.float32))
            assert found.max() > 60000
    assert len(held) == len(set(held)) == N


@pytest.mark.nightly
@pytest.mark.tf
def test_a_folder_says_it_in_decode_and_a_table_is_the_same(place: Path) -> None:
    folder = {"image_folder": {"path": str(place / "scans")}}
    unit = {"rescale": {"to": [0, 1]}}
    splits: dict[str, Any] = {"parts": {}}
    one = build(spec(folder, {"decode": DEEP}, RESIZE, unit, splits=splits, shuffle="none"))
    files = {str(file): image for file, image in zip(one.files("train"), stream(one.train)[0], strict=False)}
    other = build(spec(table(place, **DEEP), RESIZE, unit, splits=splits, shuffle="none"))
    images = stream(other.train)[0]
    assert len(images) == 16
    both = [(image, files[str(file)]) for file, image in zip(other.files("train"), images, strict=False) if str(file) in files]
    assert len(both) > 8
    for image, again in both:
        np.testing.assert_array_equal(image, again)
    assert 0 <= images.min() < 0.1 < 0.9 < images.max() <= 1


FAMILIES: dict[str, list[Any]] = {
    "geometry": [
        RESIZE, {"random_rotation": {"degrees": 30}}, {"random_zoom": {"factor": 0.3, "interpolation": "bicubic"}}, "random_flip",
        {"random_perspective": {"x": 0.1, "fill": {"constant": 40000}}},
    ],
    "windows": [{"random_resized_crop": {"size": 18, "method": "bicubic"}}, {"random_crop": {"size": 16}}],
    "resizing": [
        {"resize": {"size": 40, "mode": "pad", "fill": {"constant": 65535}, "method": "lanczos3"}},
        {"resize": {"shorter_side": 24, "method": "area"}},
    ],
    "colour": [RESIZE, {"random_brightness": {"factor": 0.5}}, {"random_contrast": {"factor": 0.5}}, {"rescale": {"to": [-1, 1]}}],
    "arithmetic": [RESIZE, {"normalize": {"mean": 30000, "std": 15000}}, "random_flip"],
    "filters of floats": [RESIZE, {"cast": {"dtype": "float32"}}, {"random_gaussian_blur": {"sigma": 1}}, "random_erasing"],
    "look-up tables": [RESIZE, {"rescale": {"to": [0, 255]}}, {"random_gamma": {"gamma": 0.3}}],
    "combining": [RESIZE, "cutmix", {"mixup": {"alpha": 0.4}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def files() -> tuple[bytes, ...]:
    """PNG and TIFF in turn."""
    found = []
    for i in range(6):
        buffer = io.BytesIO()
        if i % 2:
            Image.fromarray(scan(i)[..., 0]).save(buffer, "PNG")
        else:
            tifffile.imwrite(buffer, scan(i)[..., 0], photometric="minisblack")
        found.append(buffer.getvalue())
    return tuple(found)


@pytest.mark.nightly
@pytest.mark.tf
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_works_on_16_bits_and_optimised_is_plain(files: tuple[bytes, ...], family: str) -> None:
    """The optimised plan gives what the plain one does, and no value leaves the range of 16 bits."""
    given: dict[str, Any] = {"transforms": [{"decode": DEEP}, *FAMILIES[family]], "runtime": {"jit": "never"}}
    if family == "combining":
        given["output"] = {"encode": {"label": "one_hot"}}
    chosen, plan, data = load_spec(**given), built(**given, classes=3), records(files)
    done = compiled(plan, chosen, num_examples=len(files), ram_budget=2**30)
    plain, fast = (interpret(one, chosen, data)["image"] for one in (plan, done.plan))
    interval = plan.out["image"].interval
    width = interval.width if interval is not None else 65535.0
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-6 * width)
    assert plain.std() > 0.05 * width
    if interval is not None:
        assert interval.low <= plain.min() <= plain.max() <= interval.high


@pytest.mark.parametrize(("steps", "code", "words"), [
    (["equalization"], "PG221", "put `rescale: {to: [0, 255]}` before it"),
    ([{"random_gaussian_blur": {"sigma": 1}}], "PG208", "put `cast: {dtype: float32}` before it"),
    ([{"random_rotation": {"degrees": 9, "fill": {"constant": 65536}}}], "PG207", "use a whole number from 0 to 65535"),
    ([{"cast": {"dtype": "uint8"}}], "PG208", "0 to 255"),
    ([{"decode": {"channels": 3}}, RESIZE], "PG229", "say it once"),
])  # fmt: skip
def test_what_16_bits_cannot_do_is_said_before_anything_runs(place: Path, steps: list[Any], code: str, words: str) -> None:
    given = spec(table(place, **DEEP), *([] if code == "PG229" else [RESIZE]), *steps)
    found = [d for d in inspect(given).diagnostics if d.severity.value == "error"]
    assert {d.code for d in found} == {code}
    assert words in " ".join((found[0].message, *found[0].help))


def test_splits_say_the_same_of_their_images(place: Path) -> None:
    parts = {"train": table(place, **DEEP), "validation": table(place)}
    (found,) = inspect({"pipegen": 1, "source": {"by_split": parts}, "transforms": [RESIZE]}).diagnostics
    assert "`image` of `validation` has another `channels` than in `train`" in found.message


@pytest.mark.tf
@pytest.mark.nightly
def test_caches_and_compiled_kernels_change_no_value(place: Path, tmp_path: Path) -> None:
    steps = [RESIZE, {"random_rotation": {"degrees": 30}}]
    given = spec(table(place, **DEEP), *steps)
    expected = epoch_of(build(given, jit="always"), 0)
    for cache in ("memory", {"disk": str(tmp_path)}):
        pipe = build(given, cache=cache)
        for _ in range(2):  # while it fills, and out of it
            same(epoch_of(pipe, 0), expected)


@pytest.mark.nightly
@pytest.mark.tf
def test_a_file_of_16_bits_is_never_clipped_silently(place: Path) -> None:
    pipe = build(spec(table(place, channels=1), RESIZE, shuffle="none"))
    with pytest.raises(pipegen.DataError, match=r"00\.tif .* is a 16-bit TIFF, which `decode` would cut to 8 bits; write `bits: 16`"):
        stream(pipe.train)


@pytest.mark.nightly
@pytest.mark.tf
def test_predictions_and_previews(place: Path) -> None:
    pipe = build(spec(table(place, **DEEP), RESIZE))
    files = [str(file) for file in pipe.files("validation")]
    by_file, by_array = (pipe.predict_on(x).dataset for x in (files, [scan(int(file[-6:-4])) for file in files]))
    same(stream(by_file), stream(by_array))
    with pytest.raises(TypeError, match="predict_on takes uint16 images"):
        pipe.predict_on(np.zeros((2, 9, 9, 1), np.uint8))
    sheet = np.asarray(pipe.preview("train", rows=1, draws=1).convert("L"))
    assert np.ptp(sheet) > 200


@pytest.mark.nightly
@pytest.mark.tf
def test_arrays_of_five_channels_of_16_bits() -> None:
    x = np.stack([scan(i, 5) for i in range(12)])
    features = {"image": {"kind": "image", "channels": 5, "bits": 16, "size": [34, 40]}, "label": {"kind": "label"}}
    turned = {"random_rotation": {"degrees": 20}}
    steps = [
        turned,
        {"random_channel_shift": {"delta": 9000}},
        {"random_crop": {"size": 30}},
        {"normalize": {"mean": 30000, "std": [1, 2, 3, 4, 5]}},
    ]
    given = spec({"arrays": {"features": features}}, *steps, batch={"size": 4}, output={"y": "label"})
    pipe = pipegen.build(given, data={"image": x, "label": np.arange(12) % 2}, runtime={"jit": "never"})
    held = stream(pipe.validation)[0]
    rows = [int(name) for name in pipe.files("validation")]
    np.testing.assert_allclose(held, (x[rows, 2:32, 5:35].astype(np.float64) - 30000) / [1, 2, 3, 4, 5], rtol=1e-6, atol=1e-2)
    assert stream(pipe.train)[0].shape == (8, 30, 30, 5)


def test_init_says_that_a_folder_and_a_table_have_16_bits(place: Path) -> None:
    from pipegen.cli.init.folder_survey import first_folder
    from pipegen.cli.init.table_specs import first_table

    (text, _), _ = first_folder(str(place / "scans"), str(place))
    assert "\n  - decode: {channels: 1, bits: 16}\n  - resize: {size: [34, 40]}\n" in text
    text, _ = first_table(str(place / "scans.csv"), str(place))
    assert "image: {kind: image, column: file, channels: 1, bits: 16}" in text


@pytest.mark.nightly
@pytest.mark.tf
def test_a_mask_moves_with_a_scan_of_16_bits(tmp_path: Path) -> None:
    """The mask shows where the scan is bright, and still does after both were turned; one of another size is found out."""
    for folder in ("scans", "masks"):
        (tmp_path / folder).mkdir()
    for i in range(4):
        tifffile.imwrite(tmp_path / "scans" / f"{i}.tif", scan(i)[..., 0], photometric="minisblack")
        Image.fromarray((scan(i)[..., 0] > 30000).astype(np.uint8)).save(tmp_path / "masks" / f"{i}.png")
    features = {
        "image": {"kind": "image", "path": str(tmp_path / "scans"), **DEEP},
        "mask": {"kind": "mask", "path": str(tmp_path / "masks")},
    }
    turn = {"random_rotation": {"degrees": 40, "interpolation": "nearest"}}
    given = {"pipegen": 1, "source": {"files": {"features": features}}, "splits": {"parts": {"train": 4}}, "batch": {"size": 4}}
    pipe = build({**given, "transforms": [{"center_crop": {"size": 30}}, turn], "output": {"y": "mask"}})
    images, masks = stream(pipe.train)
    np.testing.assert_array_equal(images > 30000, masks == 1)
    assert images.max() > 60000
    Image.fromarray(np.zeros((34, 39), np.uint8)).save(tmp_path / "masks" / "2.png")
    with pytest.raises(pipegen.DataError, match=r"its size is \[34 39\], but that of `image`, which it is aligned with, is \[34 40\]"):
        stream(pipe.train)
