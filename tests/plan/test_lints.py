"""Lints of a recipe: what is found, where, and that good recipes have none. The texts stand in `golden/diagnostics/lints`."""

from __future__ import annotations

from typing import Any

import pytest
from planning import checked

LINTS = {"PG502", "PG504", "PG505", "PG506", "PG507", "PG512"}


def lints(text: str) -> list[tuple[str, str]]:
    """Code and key path of each lint of a recipe as a whole."""
    return [(d.code, d.labels[0].path) for d in checked(text).diagnostics.items if d.code in LINTS]


@pytest.mark.parametrize(("text", "expected"), [
    ("{transforms: [{resize: {size: 24}}, {rescale: {to: [0, 1]}}, {random_rotation: {degrees: 9}}]}",
     [("PG504", "transforms[2].random_rotation")]),
    ("{transforms: [{resize: {size: 24}}, {rescale: {to: [0, 1]}}, {random_rotation: {degrees: 9}}, {random_shear: {degrees: 9}}]}",
     [("PG504", "transforms[2].random_rotation")]),
    ("{transforms: [{resize: {size: 24}}, {resize: {size: 20}}]}", [("PG506", "transforms[1].resize")]),
    ("{transforms: [{random_resized_crop: {size: 24}}, {resize: {size: 20}}]}", [("PG506", "transforms[1].resize")]),
    ("{transforms: [{resize: {size: 24}}, {random_flip: {when: all}}]}", [("PG507", "transforms[1].random_flip.when")]),
    ("{transforms: [{resize: {size: 24}}, {random_flip: {when: [validation]}}]}", [("PG507", "transforms[1].random_flip.when")]),
    ("{transforms: [{resize: {size: 24}}], shuffle: none}", [("PG505", "shuffle")]),
    ("{transforms: [{resize: {size: 24}}], shuffle: {window: 1MiB}}", [("PG505", "shuffle")]),
    ("{transforms: [{resize: {size: 24}}], batch: {remainder: pad}}", [("PG512", "batch.remainder")]),
    ("{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}, {random_shear: {degrees: 9, fill: nearest}}]}",
     [("PG502", "transforms[2].random_shear.fill")]),
    ("{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}, {random_shear: {degrees: 9, interpolation: nearest}}]}",
     [("PG502", "transforms[2].random_shear.interpolation")]),
    ("{transforms: [{resize: {size: 24}}, random_flip, {random_rotation: {degrees: 9, fill: {constant: 0}}}]}", []),
    ("{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9, fill: wrap}}, random_flip, {random_zoom: {factor: 0.1}}]}",
     [("PG502", "transforms[3].random_zoom.fill")]),
])  # fmt: skip
def test_unwise_recipes(text: str, expected: list[tuple[str, str]]) -> None:
    assert lints(text) == expected


@pytest.mark.parametrize("text", [
    "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}, {rescale: {to: [0, 1]}}]}",
    "{transforms: [{resize: {size: 24}}, {rescale: {to: [0, 1]}}, random_flip, {random_crop: {size: 20}}]}",  # they only move pixels
    "{transforms: [{resize: {size: 24, when: train}}, {resize: {size: 24, when: eval}}]}",  # each runs once
    "{transforms: [{random_resized_crop: {size: 24}}, {normalize: {preset: torch}}]}",  # its stand-in resizes once
    "{transforms: [{resize: {size: 24}}, {random_flip: {when: train}}]}",
    "{transforms: [{resize: {size: 24}}], batch: {remainder: {train: pad}}}",  # training has weights for it
    "{transforms: [{resize: {size: 24}}], source: {image_folder: {path: photos, labels: none}}, shuffle: none}",  # no classes to sort by
    # said so
    "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}, {random_shear: {degrees: 9, fill: nearest, exact: true}}]}",
    "{transforms: [{resize: {size: 24}}, {random_rotation: {degrees: 9}}, {random_brightness: {factor: 0.1}}, "
    "{random_shear: {degrees: 9, fill: wrap}}]}",
])  # fmt: skip
def test_wise_recipes(text: str) -> None:
    found = checked(text)
    assert not found.diagnostics.has_errors, [d.message for d in found.diagnostics.items]
    assert lints(text) == []


TABLE = {
    "image": {"kind": "image"}, "mask": {"kind": "mask", "of": "image"}, "depth": {"kind": "image", "of": "image"},
    "other": {"kind": "image"}, "breed": {"kind": "label"}, "colour": {"kind": "label"}, "age": {"kind": "tensor"},
    "trust": {"kind": "weight"},
}  # fmt: skip


@pytest.mark.parametrize(("output", "unused"), [
    ({"x": ["image", "mask", "depth", "other", "age"], "y": ["breed", "colour"], "sample_weight": "trust"}, []),
    ({"x": "image", "y": "colour"}, ["mask", "depth", "other", "age", "trust"]),  # `breed` gives the data its classes
    ({"x": "mask", "y": None}, ["depth", "other", "colour", "age", "trust"]),  # the image says where the mask belongs
    ({"x": "imag", "y": "colour"}, []),  # which feature was meant is not known
])  # fmt: skip
@pytest.mark.parametrize("nested", [False, True])
def test_features_that_nothing_uses(output: Any, unused: list[str], nested: bool) -> None:
    source: Any = {"csv": {"path": "pets.csv", "features": TABLE}}
    sections = {"source": source} if not nested else {"source": {"by_split": {"validation": source, "train": source}}, "splits": {}}
    found = [d for d in checked(transforms=[{"resize": {"size": 8}}], output=output, **sections).diagnostics if d.code == "PG514"]
    above = "source.by_split.train.csv" if nested else "source.csv"
    assert [d.labels[0].path for d in found] == [f"{above}.features.{name}" for name in unused]
    for d, name in zip(found, unused, strict=True):
        assert f"`{name}` is never used" in d.message
        assert ("sample_weight" in d.help[0]) == (name == "trust")
