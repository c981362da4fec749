"""Where a spec can be cut, without data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pipegen.comparing import compare
from pipegen.ops.sources.prepared import Pixels
from pipegen.phases.compilation import load
from pipegen.preparing.cut import Cut, NoCutError, as_text, find_cut, rest_of
from pipegen.preparing.options import Options

if TYPE_CHECKING:
    from pathlib import Path

PARTS = {"parts": {"train": 0.8, "validation": 0.2}}
DECODE = {"decode": {"scaled": "never"}}
RESIZE = {"resize": {"size": 32}}
CROP = {"random_resized_crop": {"size": 32}}


def cut(steps: list[Any], at: str | None = None) -> Cut:
    spec = load({"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "splits": PARTS, "transforms": steps, "batch": {"size": 4}})
    return find_cut(spec.model, spec.plans, at)


@pytest.mark.parametrize(
    ("steps", "before"),
    [
        ([DECODE, CROP, "random_flip"], 1),
        ([CROP, "random_flip"], 0),
        ([DECODE, RESIZE, "random_flip", {"rescale": {"to": [0, 1]}}], 2),
        ([RESIZE, {"rescale": {"to": [0, 1]}}, "random_flip"], 1),
        ([RESIZE, {"rotation": {"degrees": 9}}, {"random_rotation": {"degrees": 20}}], 1),
        ([RESIZE, {"rotation": {"degrees": 9, "exact": True}}, {"random_rotation": {"degrees": 20}}], 2),
        ([RESIZE, {"rotation": {"degrees": 9}}, {"random_brightness": {"factor": 0.2}}], 2),
        ([RESIZE, {"brightness": {"factor": 0.1}}, {"random_brightness": {"factor": 0.2}}], 1),
        ([RESIZE, {"standardize": {"statistics": "featurewise"}}, "random_flip"], 1),
        ([DECODE, RESIZE], 2),
    ],
)
def test_it_is_the_last_place_where_nothing_is_random_or_in_two(steps: list[Any], before: int) -> None:
    found = cut(steps)
    assert found.steps == before
    assert found.type["image"].dtype == "uint8"
    assert set(found.stages) == {"train", "validation"}


def test_a_step_can_be_named() -> None:
    steps = [DECODE, RESIZE, {"rotation": {"degrees": 9}}, "random_flip"]
    assert cut(steps, "decode").steps == 1
    assert cut(steps, "resize").steps == 2
    for name, why in (("random_flip", "same in every epoch"), ("rotation", "as one"), ("nothing", "no step `nothing`")):
        with pytest.raises(NoCutError, match=why):
            cut(steps, name)


def test_splits_that_differ_in_size_have_a_type_in_common() -> None:
    sizes = [{"resize": {"size": 32, "when": "train"}}, {"resize": {"size": 24, "when": "eval"}}]
    found = cut([DECODE, *sizes, "random_flip", {"center_crop": {"size": 16}}], "resize#2")
    assert found.type["image"].shape == (None, None, 3)


def test_files_that_are_decoded_at_a_fraction_are_known() -> None:
    assert cut([CROP]).least == (32, 32)
    assert cut([DECODE, CROP]).least is None
    assert cut([RESIZE, "random_flip"]).least is None


def test_the_rest_of_a_spec_is_compared_by_what_was_stored(tmp_path: Path) -> None:
    steps = [DECODE, CROP, "random_flip"]
    original = {"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "splits": PARTS, "transforms": steps, "batch": {"size": 4}}
    spec = load(original)
    found = find_cut(spec.model, spec.plans)
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(original))
    for name, options in (("equal", Options()), ("changed", Options("jpeg", shorter_side=64, encoding="jpeg"))):
        form = "rows" if options.format == "raw" else "files"
        pixels = {"image": Pixels("rows", "uint8", (64, 64, 3)) if form == "rows" else Pixels("files")}
        rest = rest_of(spec.model, spec.hash, found, options, pixels)
        (tmp_path / f"{name}.yaml").write_text(as_text(rest, ()))
        same = compare(str(tmp_path / "a.yaml"), str(tmp_path / f"{name}.yaml"))
        assert same.same_numbers == (name == "equal")
        assert [c.kind for c in same.changes] == (["nothing"] if name == "equal" else ["numbers", "numbers"])
        assert set(same.draws.kept) >= {"random_resized_crop", "random_flip"} or name == "equal"
        (tmp_path / "other.yaml").write_text(as_text({**rest, "seed": 7}, ()))
        assert "seed" in {c.path[0] for c in compare(str(tmp_path / "a.yaml"), str(tmp_path / "other.yaml")).of("numbers")}


def test_mixes_and_stages_are_refused() -> None:
    steps = [{"resize": {"size": "$size"}}, "random_flip"]
    stages = [{"epochs": 1, "params": {"size": 8}}, {"epochs": 1, "params": {"size": 16}}]
    sections = {"params": {"size": {"type": "int", "default": 8}}, "splits": PARTS, "transforms": steps, "stages": stages}
    spec = load({"pipegen": 1, "source": {"image_folder": {"path": "photos"}}, "batch": {"size": 4}, **sections})
    with pytest.raises(NoCutError, match="stages"):
        find_cut(spec.model, spec.plans)
