"""A mix of two folders end to end: exact shares, the pixels that each part has alone, resume, shares of hosts, batch sizes, `fit`."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from pipes import at
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
        shown = [label for label, _ in pixels(at(pipe, epoch=epoch))]
        assert Counter(label >= PHOTOS for label in shown) == {False: 20, True: 5}
        assert [pipe.class_names[label] for label in shown] == [key.split("/")[1] for key, _ in visits(pipe, epoch)]
    every = [visit for epoch in range(11) for visit in visits(pipe, epoch)]
    assert len(set(every)) == len(every)  # no example twice in a pass
    assert {cycle for key, cycle in every if key.startswith("drawings")} == set(range(11))  # 5 of 5 in each epoch


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["photos", "drawings"])
def test_a_part_has_the_pixels_that_it_has_alone(root: Path, name: str, pipe: Any) -> None:
    """The id of an example is that of the part's name and its key, so a part that is called like its source has those of the source."""
    other = "drawings" if name == "photos" else "photos"
    parts = {"image_folder": part(root, name, 1, transforms=OWN[name]), other: part(root, other, 1)}
    spec = mixed(root, 12)
    spec["source"]["mix"]["parts"] = parts
    both = build(spec | {"batch": {"size": 4}})
    alone = build({"pipegen": 1, "source": parts["image_folder"]["source"], "transforms": OWN[name] + COMMON, "batch": {"size": 1}})
    seen = 0
    passes = {cycle: dict(pixels(at(alone, epoch=cycle))) for cycle in range(3)}
    for epoch in range(2):
        shown = pixels(at(both, epoch=epoch))
        for (key, cycle), (label, image) in zip(visits(both, epoch), shown, strict=True):
            if key.startswith("image_folder/"):
                own = alone.class_names.index(both.class_names[label])
                assert np.array_equal(image, passes[cycle][own])
                seen += 1
    assert seen == 12


@pytest.mark.nightly
def test_it_is_resumed_at_any_step(root: Path, pipe: Any) -> None:
    whole = pixels(at(pipe, epoch=1))
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
    whole = pixels(at(pipe, epoch=2))
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
    wanted = [label for epoch in range(3) for label, _ in pixels(at(pipe, epoch=epoch))]
    assert [label for batch in seen for label in batch] == wanted
    assert pipe.state()["epoch"] == 3


def filled(root: Path) -> dict[str, Any]:
    own = part(
        root, "drawings", 0.2, source={"image_folder": {"path": str(root / "drawings"), "labels": "none"}}, fill={"label": "photos03"}
    )
    spec = mixed(root, 24)
    spec["source"]["mix"]["parts"]["drawings"] = own
    return spec


def of_a_table(root: Path) -> dict[str, Any]:
    rows = [f"{root}/drawings/drawings{i:02d}/image.png,c{i % 2},{i / 2}" for i in range(DRAWINGS)]
    (root / "t.csv").write_text("\n".join(["pic,kind,w", *rows]) + "\n")
    columns = {"picture": {"kind": "image", "column": "pic"}, "sort": {"kind": "label", "column": "kind"}, "w": {"kind": "weight"}}
    spec = mixed(root, 24, output={"x": {"a": "image", "p": "part"}, "y": "label", "sample_weight": "w"})
    names = {"image": "picture", "label": "sort"}
    parts = spec["source"]["mix"]["parts"]
    parts["drawings"] |= {"source": {"csv": {"path": str(root / "t.csv"), "features": columns}}, "features": names}
    parts["photos"]["fill"] = {"w": 1.5}
    return spec


def of_arrays(root: Path) -> dict[str, Any]:
    np.savez(root / "x.npz", image=np.zeros((6, 28, 28, 3), np.uint8), label=np.arange(6) % 2)
    features = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": ["u", "v"]}}
    spec = mixed(root, 24, output={"encode": {"label": "one_hot"}})
    spec["source"]["mix"]["parts"]["drawings"]["source"] = {"arrays": {"path": str(root / "x.npz"), "features": features}}
    return spec


def mixed_up(root: Path) -> dict[str, Any]:
    return mixed(root, 24, transforms=[*COMMON, {"mixup": {"alpha": 0.4}}], output={"encode": {"label": "one_hot"}})


@pytest.mark.nightly
@pytest.mark.parametrize("make", [filled, of_a_table, of_arrays, mixed_up], ids=lambda make: make.__name__)
def test_parts_of_other_kinds_come_to_one_batch(make: Any, root: Path) -> None:
    pipe = build(make(root))
    batches = list(pipe.train)
    assert len(batches) == 3
    classes = {filled: PHOTOS, of_a_table: PHOTOS + 2, of_arrays: PHOTOS + 2, mixed_up: PHOTOS + DRAWINGS}[make]
    assert len(pipe.class_names) == classes
    if make in (of_arrays, mixed_up):
        assert batches[0][1].shape == (8, classes)
    if make is of_a_table:
        own = np.concatenate([x["p"] for x, _, _ in batches])
        weights = np.concatenate([w for _, _, w in batches])
        assert set(weights[own == 0].tolist()) == {1.5}
        assert weights[own == 1].max() <= 2


@pytest.mark.nightly
@pytest.mark.parametrize("cache", ["memory", "disk"])
def test_a_cache_changes_no_pixel(cache: str, root: Path, tmp_path: Path) -> None:
    spec = mixed(root, 24)
    for own in spec["source"]["mix"]["parts"].values():
        own["transforms"] = []
    plain, cached = build(spec), build(spec, cache="memory" if cache == "memory" else {"disk": str(tmp_path / "cache")})
    for epoch in range(2):
        same(pixels(at(cached, epoch=epoch)), pixels(at(plain, epoch=epoch)))


@pytest.mark.nightly
def test_what_stands_in_for_a_damaged_file_is_of_its_part(root: Path, tmp_path: Path) -> None:
    for i in range(6):
        (tmp_path / "bad" / f"b{i}").mkdir(parents=True)
        whole = (root / "drawings" / "drawings00" / "image.png").read_bytes()
        (tmp_path / "bad" / f"b{i}" / "image.png").write_bytes(whole if i else whole[:40])
    spec = mixed(root, 25, errors={"decode": {"skip": {"max_fraction": 0.1}}}, batch={"size": 5})
    spec["source"]["mix"]["parts"]["drawings"]["source"] = {"image_folder": {"path": str(tmp_path / "bad")}}
    shown = [label for epoch in range(2) for label, _ in pixels(build(spec).dataset("train", epoch=epoch))]
    assert Counter(label >= PHOTOS for label in shown) == {False: 40, True: 10}
    assert set(label for label in shown if label >= PHOTOS) <= set(range(PHOTOS, PHOTOS + 6))


def test_a_damaged_member_of_an_archive_has_the_path_of_its_archive(root: Path, tmp_path: Path) -> None:
    from pipegen import DataError

    with zipfile.ZipFile(tmp_path / "drawings.zip", "w") as archive:
        for i in range(5):
            archive.writestr(f"class{i}/image.png", b"no picture")
    spec = mixed(root, epoch=8, weights=(0.1, 0.9))
    spec["source"]["mix"]["parts"]["drawings"]["source"] = {"image_folder": {"path": str(tmp_path / "drawings.zip")}}
    with pytest.raises(DataError, match=rf"cannot decode {re.escape(str(tmp_path))}/drawings.zip/class\d/image.png"):
        list(build(spec).train)
