"""A hundred pictures in every form: any order, each once, resumed at any step, shared out among hosts, and one of them damaged."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from record_files import png

import pipegen
from benchmarks.written_sources import SOURCES, output_of
from pipegen.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNT, BATCH, BAD = 100, 8, 57
IN_ORDER, DAMAGED = "sql", "tfrecord"
"""The forms that are tried by day: one that Python reads, and one that is mapped, whose order `test_record_pipelines.py` sees to."""
LOSSY = "prepared, jpeg"
"""Its pictures are compressed anew, so that a colour says no number; the tests of prepared stores read it."""
FORMS = [name for name in SOURCES if name != LOSSY]


def by_day(forms: list[str], day: str) -> list[Any]:
    return [form if form == day else pytest.param(form, marks=pytest.mark.nightly) for form in forms]


def built(form: str, folder: Path, damaged: bool = False, **sections: Any) -> pipegen.Pipeline:
    """Builds the pipeline of a form, whose pictures are of one colour: their number, their class and 9."""
    if SOURCES[form].library and find_spec(SOURCES[form].library) is None:
        pytest.skip(f"{SOURCES[form].library} is not installed")
    folder.mkdir(parents=True)
    photographs = [(b"\x89PNG no more" if damaged and i == BAD else png(i, i % 3, 9), i % 3) for i in range(COUNT)]
    SOURCES[form].write(folder, photographs)
    source = SOURCES[form].spec(folder)
    spec = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": 2}}], "runtime": {"cache": "none"}}
    spec["output"] = {"dtype": "uint8", **output_of(source)}
    return pipegen.build(spec | {"batch": {"size": BATCH, "remainder": "keep"}} | sections)


def seen(batches: Any) -> list[int]:
    """The numbers of the pictures, whose classes fit."""
    found = []
    for x, _ in batches:
        for number, label, last in x.numpy()[:, 0, 0].tolist():
            assert (label, last) == (number % 3, 9)
            found.append(number)
    return found


@pytest.mark.parametrize("form", by_day(FORMS, IN_ORDER))
def test_order_resume_and_shares(form: str, tmp_path: Path) -> None:
    pipe = built(form, tmp_path / "data")
    first, second = (seen(pipe.dataset("train", epoch=epoch)) for epoch in range(2))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    assert first != sorted(first)
    for step in (1, 5, COUNT // BATCH):
        assert seen(pipe.dataset("train", epoch=1, step=step)) == second[BATCH * step :]
    steps = COUNT // BATCH
    shares = [seen(pipe.dataset("train", epoch=1, shard=(i, 2)))[: steps * BATCH // 2] for i in range(2)]
    half = BATCH // 2
    together = [number for step in range(steps) for share in shares for number in share[step * half : (step + 1) * half]]
    assert together == second[: steps * BATCH]


@pytest.mark.parametrize("form", by_day([form for form in FORMS if not SOURCES[form].decodes], DAMAGED))
def test_one_in_a_hundred_is_damaged(form: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot (decode|read|process) ") as told:
        seen(built(form, tmp_path / "raise", damaged=True).dataset("train"))
    assert str(tmp_path / "raise") in str(told.value)
    pipe = built(form, tmp_path / "skip", damaged=True, errors={"decode": {"skip": {"max_fraction": 0.02}}})
    found = seen(pipe.dataset("train"))
    assert len(found) == COUNT, "another one took its place"
    assert set(found) == {*range(COUNT)} - {BAD}
