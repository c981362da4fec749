"""`errors: skip`: a damaged record's slot is taken by the next good one of its block, and everything else stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from pipes import RESIZE, Identify, epoch_of, pipeline, same, shared, stream
from typing import Any, NamedTuple

import numpy as np
import pytest

from pipegen.errors import DataError
from pipegen.plan.nodes import Cache

pytestmark = pytest.mark.tf

TURNED: list[Any] = [RESIZE, {"random_rotation": {"degrees": 25}}]
"""Draws something that no two examples have alike."""


class Hurt(NamedTuple):
    """A folder with three damaged training files."""

    folder: Path
    bad: list[str]
    places: list[int]


def truncate(file: str) -> None:
    data = Path(file).read_bytes()
    Path(file).write_bytes(data[: len(data) // 2])


@pytest.fixture(scope="module")
def hurt(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Hurt:
    folder = shutil.copytree(photo_folder, tmp_path_factory.mktemp("skip") / "photos")
    files = shared(folder).files("train")
    bad = [[f for f in files if f.endswith(".jpg")][i] for i in (2, 9, 20)]
    for file in bad:
        truncate(file)
    return Hurt(folder, bad, [files.index(file) for file in bad])


def skipping(folder: Path, report: Path | None = None, fraction: float = 0.2, **own: Any) -> Any:
    skip = {"max_fraction": fraction} | ({"report": str(report)} if report else {})
    return shared(folder, **{"errors": {"decode": {"skip": skip}}, "transforms": TURNED, **own})


@pytest.fixture(scope="module")
def report(hurt: Hurt) -> Path:
    return hurt.folder.parent / "damaged.jsonl"


@pytest.fixture(scope="module")
def pipe(hurt: Hurt, report: Path) -> Any:
    return skipping(hurt.folder, report)


@pytest.fixture(scope="module")
def order(photo_folder: Path) -> list[int]:
    """Which record is due in each slot of epoch 1."""
    return Identify(photo_folder)(epoch_of(shared(photo_folder, transforms=[RESIZE]), 1)[0])


@pytest.fixture(scope="module")
def first(pipe: Any) -> tuple[Any, ...]:
    """Epoch 1."""
    return epoch_of(pipe, 1)


@pytest.mark.smoke
def test_skip_keeps_steps_and_reports_exactly_the_bad_ones(pipe: Any, hurt: Hurt, report: Path) -> None:
    assert len(pipe.train) == 4
    pipe.seek(0, 0)
    for epoch in range(3):
        assert [len(x) for x, _ in pipe.numpy("train")] == [8] * 4, epoch
    assert sorted(json.loads(line)["file"] for line in report.read_text().splitlines()[1:]) == sorted(hurt.bad)


def test_skip_leaves_the_good_ones_where_they_are(first: Any, hurt: Hurt, order: list[int], photo_folder: Path) -> None:
    whole = shared(photo_folder, transforms=TURNED)
    images, labels = first
    expected, _ = epoch_of(whole, 1)
    kept = ~np.isin(order, hurt.places)
    assert 0 < np.count_nonzero(~kept) <= 3
    np.testing.assert_array_equal(images[kept], expected[kept])
    np.testing.assert_array_equal(labels[kept], whole.labels("train")[order][kept])
    assert len({image.tobytes() for image in images}) == 32, "a stand-in has draws of its own, so it is no copy"


def test_the_next_good_record_of_the_block_stands_in(hurt: Hurt, order: list[int], photo_folder: Path) -> None:
    pipe = skipping(hurt.folder, transforms=[RESIZE])
    images, labels = epoch_of(pipe, 1)
    served = Identify(photo_folder)(images)
    np.testing.assert_array_equal(pipe.labels("train")[served], labels)
    for at, (meant, got) in enumerate(zip(order, served, strict=True)):
        block = order[at // 8 * 8 : at // 8 * 8 + 8]
        following = [*block[at % 8 + 1 :], *block[: at % 8]]
        assert got == (meant if meant not in hurt.places else next(r for r in following if r not in hurt.places))


def test_skip_resumes_and_repeats(pipe: Any, first: Any) -> None:
    same(epoch_of(pipe, 1), first)
    same(epoch_of(pipe, 1, 2), [part[16:] for part in first])
    pipe.seek(1, 0)
    same(stream(pipe.train.map(lambda x, y: (x, y))), first)


def test_a_cache_in_memory_freezes_no_stand_in(pipe: Any, hurt: Hurt, first: Any) -> None:
    """A stand-in differs from epoch to epoch, so training is not cached; evaluation is."""
    cached = shared(hurt.folder, {"cache": "memory"}, transforms=TURNED, errors={"decode": {"skip": {"max_fraction": 0.2}}})
    zeroth = epoch_of(pipe, 0)
    for epoch, expected in ((0, zeroth), (1, first), (0, zeroth)):
        same(epoch_of(cached, epoch), expected)
    whole = stream(pipe.validation)
    for _ in range(2):
        same(stream(cached.validation), whole)
    nodes = {split: cached._compiled.splits[split].plan.nodes for split in ("train", "validation")}
    assert {split: any(isinstance(n, Cache) for n in found) for split, found in nodes.items()} == {"train": False, "validation": True}
    assert "no cache: `errors: skip` replaces damaged records" in cached.explain("train", passes=True)


def test_more_damage_than_allowed_is_an_error_on_every_pass(hurt: Hurt) -> None:
    made = skipping(hurt.folder, fraction=0.05, transforms=[RESIZE])

    def three_epochs() -> None:
        for _ in range(3):
            stream(made.train)

    for _ in range(2):
        with pytest.raises(DataError) as caught:
            three_epochs()
        text = str(caught.value).splitlines()[0]
        assert text.startswith("2 of 32 records are damaged")
        assert "max_fraction: 0.05" in text
        assert sum(file in text for file in hurt.bad) == 2


def test_a_report_that_cannot_be_written_is_named(hurt: Hurt, tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    made = skipping(hurt.folder, fraction=0.5, transforms=[RESIZE], report=report)
    report.mkdir()
    with pytest.raises(DataError, match=r"cannot write the report of damaged records .*report\.jsonl'"):
        stream(made.train)


def test_other_splits_raise_whatever_skip_says(hurt: Hurt, tmp_path: Path) -> None:
    folder = shutil.copytree(hurt.folder, tmp_path / "photos")
    made = pipeline(folder, transforms=[RESIZE], errors={"decode": {"skip": {"max_fraction": 0.2}}})
    bad = next(f for f in made.files("validation") if f.endswith(".jpg"))
    truncate(bad)
    with pytest.raises(DataError) as caught:
        stream(made.validation)
    assert bad in str(caught.value).splitlines()[0]
    assert "exclude" in str(caught.value).splitlines()[0]


@pytest.fixture(scope="module")
def hopeless(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder in which no training file can be decoded, and a pipeline over it."""
    folder = shutil.copytree(photo_folder, tmp_path_factory.mktemp("hopeless") / "photos")
    made = pipeline(folder, transforms=[RESIZE], errors={"decode": {"skip": {"max_fraction": 1.0}}})
    for file in made.files("train"):
        truncate(file) if file.endswith(".jpg") else Path(file).write_bytes(b"nothing")
    return folder, made


@pytest.mark.parametrize("repeated", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_block_of_damaged_records_ends_the_run(hopeless: tuple[Path, Any], repeated: bool) -> None:
    folder, made = hopeless
    with pytest.raises(DataError, match="no record of the batch could replace a damaged one") as caught:
        next(iter(made.train.repeat() if repeated else made.train))
    assert str(caught.value).startswith(f"cannot decode {folder}")


def test_eight_tries_are_made_and_no_more(hopeless: tuple[Path, Any]) -> None:
    _, made = hopeless
    with pytest.raises(DataError, match="no record of the batch could replace a damaged one in 8 tries, the last of them /"):
        next(iter(made.train.prefetch(1)))
