"""Masks whose classes are colours, and values that stand for all others."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from pipegen.errors import DataError
from pipegen.spec.load import load
from pipegen.spec.spec_hash import spec_hash

if TYPE_CHECKING:
    from pathlib import Path

COLOURS = np.array([[0, 0, 0], [128, 0, 0], [0, 64, 128], [255, 255, 255]], np.uint8)
PALETTE = {"[0, 0, 0]": 0, "[128, 0, 0]": 1, "[0, 64, 128]": 2, "[255, 255, 255]": 3}


def saved(classes: Any, form: str) -> bytes:
    """A mask of class indices in the colours of their classes."""
    colours = Image.fromarray(COLOURS[classes])
    if form == "P":
        colours = Image.fromarray(classes.astype(np.uint8), "L")
        colours.putpalette(COLOURS.tobytes())
    out = io.BytesIO()
    colours.convert("RGBA" if form == "RGBA" else colours.mode).save(out, {"BMP": "BMP", "JPEG": "JPEG"}.get(form, "PNG"))
    return out.getvalue()


def classes_of(n: int) -> Any:
    return (np.arange(20 * 24).reshape(20, 24) // 7 + n) % 4


def spec_of(folder: Path, **mask: Any) -> dict[str, Any]:
    features = {
        "image": {"kind": "image", "path": str(folder / "images")},
        "mask": {"kind": "mask", "path": str(folder / "masks"), **mask},
    }
    return {
        "pipegen": 1,
        "source": {"files": {"features": features}},
        "transforms": [{"resize": {"size": [20, 24]}}],
        "shuffle": "none",
        "output": {"x": "image", "y": "mask"},
        "batch": {"size": 2},
    }


def write(folder: Path, forms: list[str]) -> None:
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for n, form in enumerate(forms):
        Image.new("RGB", (24, 20)).save(folder / "images" / f"{n}.png")
        (folder / "masks" / f"{n}.{form.lower() if form in ('BMP', 'JPEG') else 'png'}").write_bytes(saved(classes_of(n), form))


@pytest.mark.tf
def test_colours_of_every_format_are_classes(tmp_path: Path) -> None:
    import pipegen

    forms = ["RGB", "P", "RGBA", "BMP"]
    write(tmp_path, forms)
    pipe = pipegen.build(spec_of(tmp_path, palette=PALETTE))
    found = np.concatenate([y.numpy() for _, y in pipe["train"]])
    np.testing.assert_array_equal(found[..., 0], [classes_of(n) for n in range(4)])
    rest = pipegen.build(spec_of(tmp_path, palette={"#800000": 1, "else": 0}))
    found = np.concatenate([y.numpy() for _, y in rest["train"]])
    np.testing.assert_array_equal(found[..., 0], [classes_of(n) == 1 for n in range(4)])


@pytest.mark.nightly
@pytest.mark.tf
def test_all_other_values(tmp_path: Path) -> None:
    import pipegen

    write(tmp_path, ["RGB"])
    Image.fromarray(np.array([[0, 7], [200, 255]], np.uint8).repeat(10, 0).repeat(12, 1)).save(tmp_path / "masks" / "0.png")
    pipe = pipegen.build(spec_of(tmp_path, values={7: 1, "else": 2}) | {"batch": {"size": 1}})
    found = next(iter(pipe["train"]))[1].numpy()[0, :, :, 0]
    np.testing.assert_array_equal(found[::10, ::12], [[2, 1], [2, 2]])


@pytest.mark.tf
@pytest.mark.parametrize(
    ("form", "mask", "words"),
    [
        (
            "RGB",
            {"palette": {"[0, 0, 0]": 0, "[128, 0, 0]": 1}},
            "the mask holds the colour [255, 255, 255], which is none of its `palette`",
        ),
        ("JPEG", {"palette": {**PALETTE, "else": 0}}, "which changes values, and holds the colour"),
        pytest.param("RGB", {"values": {0: 0, 1: 1}}, "for colours give it a `palette`", marks=pytest.mark.nightly),
    ],
)
def test_a_colour_without_a_class_and_a_jpeg_are_errors(tmp_path: Path, form: str, mask: dict[str, Any], words: str) -> None:
    """A JPEG changes colours, so `else` would turn some of each class into another in silence."""
    import pipegen

    write(tmp_path, [form])
    with pytest.raises(DataError) as raised:
        [*pipegen.build(spec_of(tmp_path, **mask) | {"batch": {"size": 1}})["train"]]
    assert words in str(raised.value)


def test_a_colour_has_one_meaning_in_every_spelling() -> None:
    def hash_of(written: str) -> str:
        text = (
            "pipegen: 1\nsource: {files: {features: {image: {kind: image, path: a}, mask: {kind: mask, path: b, palette: "
            + written
            + "}}}}\noutput: {x: image, y: mask}\n"
        )
        found = load("a.yaml", text=text)
        assert found.spec is not None, [str(d) for d in found.diagnostics]
        return spec_hash(found.spec)

    assert (
        len(
            {
                hash_of(text)
                for text in ("{[128, 0, 0]: 1, [0,0,0]: 0}", "{'#800000': 1, '[0, 0, 0]': 0}", "{'#000000': 0, [ 128, 0, 0 ]: 1}")
            }
        )
        == 1
    )


@pytest.mark.parametrize(
    ("written", "code", "words"),
    [
        ("{[128, 0, 0]: 1, [128, 0, 0]: 2}", "PG007", "duplicate key"),
        ("{[128, 0, 0]: 1, '#800000': 2}", "PG105", "has the colour [128, 0, 0] twice"),
        ("{[128, 0, 300]: 1}", "PG105", "above 255"),
        ("{red: 1}", "PG105", "`red`"),
        ("{else: 1}", "PG105", "needs a value besides `else`"),
        ("{[1, 2, 3]: 1}, values: {0: 0}", "PG105", "leave one of them out"),
        ("{[1, 2, 3]: 4}, classes: 2", "PG105", "palette` of `mask` has the class index 4, but there are 2 `classes`"),
    ],
)
def test_a_wrong_palette(written: str, code: str, words: str) -> None:
    text = (
        "pipegen: 1\nsource: {files: {features: {image: {kind: image, path: a}, mask: {kind: mask, path: b, palette: "
        + written
        + "}}}}\noutput: {x: image, y: mask}\n"
    )
    found = [*load("a.yaml", text=text).diagnostics]
    assert [d for d in found if d.code == code and words in d.message], [str(d) for d in found]
