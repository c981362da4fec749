"""A mix of two folders end to end: exact shares, the pixels that each part has alone, resume, shares of hosts, batch sizes, `fit`."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mixes import COMMON, DRAWINGS, OWN, PHOTOS, build, mixed, part, pixels, visits, write_parts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("mix"))


@pytest.fixture(scope="module")
def pipe(root: Path) -> Any:
    """25 examples an epoch, 20 of photographs and 5 of drawings, in 4 steps of 8: the last one padded."""
    return build(mixed(root, batch={"size": 8, "remainder": "keep"}))


def same(a: list[tuple[int, Any]], b: list[tuple[int, Any]]) -> None:
    assert [label for label, _ in a] == [label for label, _ in b]
    assert all(np.array_equal(x, y) for (_, x), (_, y) in zip(a, b, strict=True))


def test_an_epoch_has_exactly_the_shares(pipe: Any) -> None:
    assert pipe.steps("train") == 4
    assert pipe.num_examples("train") == PHOTOS + DRAWINGS
    for epoch in (0, 1):
        shown = [label for label, _ in pixels(pipe.dataset("train", epoch=epoch))]
        assert Counter(label >= PHOTOS for label in shown) == {False: 20, True: 5}
        assert [pipe.class_names[label] for label in shown] == [key.split("/")[1] for key, _ in visits(pipe, epoch)]
    every = [visit for epoch in range(11) for visit in visits(pipe, epoch)]
    assert len(set(every)) == len(every)  # no example twice in a pass
    assert {cycle for key, cycle in every if key.startswith("drawings")} == set(range(11))  # 5 of 5 in each epoch


@pytest.mark.parametrize("name", [pytest.param("photos", marks=pytest.mark.nightly), "drawings"])
def test_a_part_has_the_pixels_that_it_has_alone(root: Path, name: str, pipe: Any) -> None:
    """The id of an example is that of the part's name and its key, so a part that is called like its source has those of the source."""
    other = "drawings" if name == "photos" else "photos"
    parts = {"image_folder": part(root, name, 1, transforms=OWN[name]), other: part(root, other, 1)}
    spec = mixed(root, 12)
    spec["source"]["mix"]["parts"] = parts
    both = build(spec | {"batch": {"size": 4}})
    alone = build({"pipegen": 1, "source": parts["image_folder"]["source"], "transforms": OWN[name] + COMMON, "batch": {"size": 1}})
    seen = 0
    passes = {cycle: dict(pixels(alone.dataset("train", epoch=cycle))) for cycle in range(3)}
    for epoch in range(2):
        shown = pixels(both.dataset("train", epoch=epoch))
        for (key, cycle), (label, image) in zip(visits(both, epoch), shown, strict=True):
            if key.startswith("image_folder/"):
                own = alone.class_names.index(both.class_names[label])
                assert np.array_equal(image, passes[cycle][own])
                seen += 1
    assert seen == 12


@pytest.mark.nightly
def test_it_is_resumed_at_any_step(root: Path, pipe: Any) -> None:
    whole = pixels(pipe.dataset("train", epoch=1))
    other = build(mixed(root, batch={"size": 8, "remainder": "keep"}))
    for step in range(1, 4):
        pipe.seek(1, step)
        other.restore(json.loads(json.dumps(pipe.state())))
        assert other.state() == pipe.state()
        same(pixels(other.train), whole[8 * step :])
    assert other.state()["epoch"] == 2


@pytest.mark.nightly
def test_shares_of_hosts_and_other_batches_show_the_same_examples(root: Path) -> None:
    pipe = build(mixed(root, 24))
    whole = pixels(pipe.dataset("train", epoch=2))
    shares = [pixels(pipe.dataset("train", epoch=2, shard=(i, 2))) for i in range(2)]
    blocks = [shares[i][4 * step : 4 * step + 4] for step in range(3) for i in range(2)]
    same([one for block in blocks for one in block], whole)
    pipe.seek(2, 1)
    smaller = build(mixed(root, 24, batch={"size": 4}))
    smaller.restore(pipe.state())
    assert smaller.state()["step"] == 2
    same(pixels(smaller.train), whole[8:])


@pytest.mark.nightly
def test_the_other_splits_hold_the_parts_in_turn(root: Path) -> None:
    spec = mixed(root)
    for name, own in spec["source"]["mix"]["parts"].items():
        own["splits"] = {"parts": {"train": 0.6, "test": 0.4}} if name == "drawings" else {"parts": {"train": 0.6, "validation": 0.4}}
    pipe = build(spec)
    assert pipe.splits == ("train", "validation", "test")
    assert [key.partition("/")[0] for key in pipe._manifest.keys("validation")] == ["photos"] * pipe.num_examples("validation")
    assert len(pixels(pipe.test)) == 2
    assert {file.split("/")[-3] for file in pipe.files("test")} == {"drawings"}


@pytest.mark.nightly
def test_fit_goes_on_across_epochs(root: Path) -> None:
    import keras

    pipe = build(mixed(root, 24, transforms=[*COMMON, {"rescale": {"to": [0, 1]}}]))
    seen: list[list[int]] = []

    class Noted(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            seen.append(data[1].numpy().tolist())
            return {"loss": 0.0}

    model = Noted()
    model.compile(run_eagerly=True)
    model.fit(pipe.train, epochs=3, verbose=0)
    wanted = [label for epoch in range(3) for label, _ in pixels(pipe.dataset("train", epoch=epoch))]
    assert [label for batch in seen for label in batch] == wanted
    assert pipe.state()["epoch"] == 3
