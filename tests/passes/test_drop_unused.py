"""`drop_unused` by execution: what remains is the same to the bit, and what is gone is not even opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from planning import built, compiled, interpret, load_spec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNT = 4
FEATURES: dict[str, Any] = {
    "other": {"kind": "image", "path": "other"},
    "image": {"kind": "image", "path": "image"},
    "depth": {"kind": "image", "path": "depth", "of": "image", "channels": 1},
    "mask": {"kind": "mask", "path": "mask", "of": "image", "classes": 2},
}
STEPS: list[Any] = [
    {"random_resized_crop": {"size": 20}},
    {"random_rotation": {"degrees": 30}},
    {"random_brightness": {"factor": 0.4}},
    {"random_flip": {"probability": 0.5}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every feature of a few examples, of which `other` cannot be decoded."""
    root, rng = tmp_path_factory.mktemp("unused"), np.random.default_rng(4)
    for name in FEATURES:
        (root / name).mkdir()
        for i in range(COUNT):
            shape = (34 + i, 40) if name in ("depth", "mask") else (34 + i, 40, 3)
            pixels = rng.integers(0, 2 if name == "mask" else 256, shape).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{i}.png")
    for i in range(COUNT):
        (root / "other" / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    return root


def sections(folder: Path, output: Mapping[str, Any], **own: Any) -> dict[str, Any]:
    features = {name: {**feature, "path": str(folder / feature["path"])} for name, feature in FEATURES.items()}
    parts = {"train": 3, "validation": 1}
    base = {"pipegen": 1, "source": {"files": {"features": features}}, "splits": {"parts": parts}, "batch": {"size": 3}}
    return {**base, "transforms": STEPS, "output": dict(output), **own}


def records(folder: Path) -> Any:
    from pipegen.backend.reading.split_records import Records

    files = {name: [str(folder / name / f"{i}.png") for i in range(COUNT)] for name in FEATURES}
    first = files.pop("other")
    return Records(first, [(i + 1) * 0x9E3779B97F4A7C15 % 2**64 for i in range(COUNT)], None, 1.0, features=tuple(FEATURES), beside=files)


@pytest.fixture(scope="module")
def whole_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with files of `other` that can be decoded, so that the plan before the pass runs as well."""
    root = tmp_path_factory.mktemp("whole")
    for name in FEATURES:
        (root / name).symlink_to(folder / ("image" if name == "other" else name))
    return root


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("output", "steps", "gone"),
    [
        ({"x": "image", "y": "mask"}, STEPS, {"other", "depth"}),
        ({"x": "image", "y": None}, [{"resize": {"size": 16}}, "random_flip", "mixup"], {"other", "depth", "mask"}),
    ],
)
def test_what_remains_is_the_same(whole_folder: Path, output: dict[str, Any], steps: list[Any], gone: set[str]) -> None:
    text = sections(whole_folder, output, transforms=steps, runtime={"jit": "never"})
    spec, plan, data = load_spec(text), built(text), records(whole_folder)
    record = next(r for r in compiled(plan, spec).records if r.name == "drop_unused")
    assert {*FEATURES} - set(record.after.read) == gone
    assert record.after.index.draws == plan.index.draws, "every step finds its numbers where they were"
    before, after = (interpret(p, spec, data) for p in (record.before, record.after))
    assert before
    for name, value in before.items():
        assert value.std() > 0
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.nightly
def test_what_is_gone_is_not_opened(folder: Path, tmp_path: Path) -> None:
    """Not while statistics are taken, in a preview, or for an export, which is what training sees; so nothing of it is skipped."""
    import pipegen

    steps = [{"resize": {"size": 16}}, {"standardize": {"statistics": "featurewise"}}, "random_flip"]
    skipping = {"decode": {"skip": {"max_fraction": 0.1}}}
    pipe = pipegen.build(sections(folder, {"x": "image", "y": "mask"}, transforms=steps, errors=skipping), runtime={"jit": "never"})
    (fitted,) = (step.fitted for step in pipe.spec.model.transforms if step.op == "standardize")
    assert fitted is not None
    assert set(fitted.numbers) == {"image"}
    quarantine = pipe._engine.executor("train").damage.quarantine
    assert quarantine is not None
    assert all("other" not in path and " or " in path for path in map(quarantine.path, range(quarantine.count))), (
        "it may be the image or the mask"
    )
    assert "the model does not receive `other` and `depth`" in pipe.explain("train", passes=True)
    assert pipe.preview(rows=1, draws=1, cell=24).size[0] > 48
    done = pipe.export(tmp_path / "out", examples=1)
    assert sorted(p.suffix for p in (tmp_path / "out").iterdir()) == [".jsonl", ".png", ".png"], "an image and its mask"
    assert "random_flip" in done.table.read_text()
    assert "@other" not in done.table.read_text()
    assert not quarantine.damaged


def test_rows_of_arrays_do_without_their_image() -> None:
    """The size of a mask in an array is that of its image, so nothing has to be compared."""
    import pipegen

    rng = np.random.default_rng(2)
    data = {"image": rng.integers(0, 256, (4, 20, 20, 3)).astype(np.uint8), "mask": rng.integers(0, 2, (4, 20, 20)).astype(np.uint8)}
    features = {"image": {"kind": "image"}, "mask": {"kind": "mask", "classes": 2}}
    base = {"pipegen": 1, "source": {"arrays": {"features": features}}, "splits": {"parts": {"train": 4}}, "batch": {"size": 4}}
    base |= {"transforms": [{"random_rotation": {"degrees": 40}}, "random_flip"]}
    both, alone = (
        pipegen.build(base | {"output": {"x": x, "y": None}}, data=data, runtime={"jit": "never"}) for x in (["image", "mask"], "mask")
    )
    assert set(alone._engine.executor("train").plan.read) == {"mask"}
    assert set(alone._engine.executor("train").records.features) == {"mask"}
    for ((_, expected),), mask in zip(both.train, alone.train, strict=True):
        np.testing.assert_array_equal(mask, expected)
    with pytest.raises(ValueError, match="the model receives none"):
        alone.preview(rows=1)
