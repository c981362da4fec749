"""Which steps a split runs, and where their draws lie."""

from __future__ import annotations

import pytest
from planning import load_spec

from pipegen.plan.recipe import recipe

TEXT = """\
transforms:
  - random_resized_crop: {size: 24}
  - resize: {size: 24, when: eval}
  - random_flip
  - random_rotation: {degrees: 5, probability: 0.5}
  - random_brightness: {factor: 0.1, when: all}
  - random_flip: {axis: both, when: [validation]}
  - normalize: {preset: tf}
splits: {parts: {train: 0.6, validation: 0.2, test: 0.2}}
"""


@pytest.mark.parametrize(("split", "ops"), [
    ("train", ["random_resized_crop", "random_flip", "random_rotation", "random_brightness", "normalize"]),
    ("validation", ["resize", "center_crop", "resize", "random_brightness", "random_flip", "normalize"]),
    ("test", ["resize", "center_crop", "resize", "random_brightness", "normalize"]),
])  # fmt: skip
def test_steps_of_a_split(split: str, ops: list[str]) -> None:
    chosen = recipe(load_spec(TEXT), split)
    assert [r.step.op for r in chosen.steps] == ops
    stand_ins = set() if split == "train" else {("transforms", 0, "random_resized_crop")}
    assert chosen.stand_ins == stand_ins


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_draws_lie_side_by_side(split: str) -> None:
    steps = recipe(load_spec(TEXT), split).steps
    start = 0
    for ref in steps:
        assert ref.start == start
        assert ref.num_draws == ref.step.num_draws() + ref.gated
        start += ref.num_draws


def test_only_a_step_that_does_not_know_its_probability_is_gated() -> None:
    gated = {r.step.op: r.gated for r in recipe(load_spec(TEXT), "train").steps}
    assert gated["random_rotation"]
    assert not gated["random_flip"], "a flip's probability is that of each axis"
    assert not gated["random_brightness"], "it always acts"


def test_a_step_keeps_its_id_whatever_the_split_runs() -> None:
    """The second flip is the second on every split, so that its draws do not depend on the first one's `when`."""
    spec = load_spec(TEXT)
    ids = {split: {r.path: r.id for r in recipe(spec, split).steps} for split in ("train", "validation")}
    shared = ids["train"].keys() & ids["validation"].keys()
    assert {ids["train"][p] for p in shared} == {ids["validation"][p] for p in shared}
    flips = ids["train"][("transforms", 2, "random_flip")], ids["validation"][("transforms", 5, "random_flip")]
    assert flips[0] != flips[1]


def test_the_evaluation_form_resizes_as_published() -> None:
    """DESIGN rule 3: the shorter side to size × 256/224, then the middle."""
    resize, crop = (r.step for r in recipe(load_spec("{transforms: [{random_resized_crop: {size: 224}}]}"), "validation").steps)
    assert (resize.shorter_side, crop.size) == (256, 224)  # type: ignore[attr-defined]
