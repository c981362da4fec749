"""A hundred pictures in every form: any order, each once, resumed at any step, shared out among hosts, and one of them damaged."""

from __future__ import annotations

from importlib.util import find_spec
from pipes import at
from typing import TYPE_CHECKING, Any

import damage
import numpy as np
import pytest
from damage import CONTAINERS, spec_of
from record_files import png

import pipegen
from benchmarks.written_sources import SOURCES, output_of
from pipegen.errors import DataError
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

COUNT, BATCH, BAD = 100, 8, 57
IN_ORDER = "sql"
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
    return pipegen.build(spec | {"batch": {"size": BATCH, "remainder": "keep"}} | sections, allow_write=["/"])


def seen(batches: Any) -> list[int]:
    """The numbers of the pictures, whose classes fit."""
    found = []
    for x, _ in batches:
        for number, label, last in x.numpy()[:, 0, 0].tolist():
            assert (label, last) == (number % 3, 9)
            found.append(number)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("form", by_day(FORMS, IN_ORDER))
def test_order_resume_and_shares(form: str, tmp_path: Path) -> None:
    pipe = built(form, tmp_path / "data")
    first, second = (seen(at(pipe, epoch=epoch)) for epoch in range(2))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    assert first != sorted(first)
    for step in (1, 5, COUNT // BATCH):
        assert seen(at(pipe, epoch=1, step=step)) == second[BATCH * step :]
    steps = COUNT // BATCH
    shares = [seen(pipe.dataset("train", epoch=1, shard=(i, 2)))[: steps * BATCH // 2] for i in range(2)]
    half = BATCH // 2
    together = [number for step in range(steps) for share in shares for number in share[step * half : (step + 1) * half]]
    assert together == second[: steps * BATCH]


@pytest.mark.nightly
@pytest.mark.parametrize("form", [form for form in FORMS if not SOURCES[form].decodes])
def test_one_in_a_hundred_is_damaged(form: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot (decode|read|process) ") as told:
        seen(built(form, tmp_path / "raise", damaged=True).dataset("train"))
    assert str(tmp_path / "raise") in str(told.value)
    pipe = built(form, tmp_path / "skip", damaged=True, errors={"decode": {"skip": {"max_fraction": 0.02}}})
    found = seen(at(pipe))
    assert len(found) == COUNT, "another one took its place"
    assert set(found) == {*range(COUNT)} - {BAD}


BY_DAY = ("csv", "dataframe", "webdataset, pax")
IN_MEMORY = "dataframe"


def test_every_source_is_compared() -> None:
    compared = {name.split(",")[0] for name in (*CONTAINERS, IN_MEMORY)}
    apart = {"by_split", "mix", "audio_folder", "series"}
    assert compared | apart == set(sources()), "what joins other sources, or holds no images, has tests of its own"


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*(n if n in BY_DAY else pytest.param(n, marks=pytest.mark.nightly) for n in CONTAINERS), IN_MEMORY])
def test_the_same_records_give_the_same_numbers(name: str, tmp_path: Path) -> None:
    folder, data = tmp_path / "data", None
    folder.mkdir()
    if name == IN_MEMORY:
        damage.write_images(folder)
        data = pytest.importorskip("pandas").DataFrame(damage.rows(), columns=damage.COLUMNS)
        source = {"dataframe": {"features": damage.table_of("csv", "")(folder)["csv"]["features"]}}
    else:
        if CONTAINERS[name].library:
            pytest.importorskip(CONTAINERS[name].library)
        CONTAINERS[name].write(folder)
        source = CONTAINERS[name].source(folder)
    pipe = pipegen.build(spec_of(source), data=data, allow_write=["/"])
    assert pipe.class_names in (damage.NAMES, ("0", "1", "2"), ())
    target, found = pipe.spec.model.output.y, dict[int, dict[str, Any]]()
    for x, y in pipe.dataset("train", epoch=0):
        images, others = x["image"].numpy(), {**x, target: y}
        for i, image in enumerate(images):
            distances = [np.abs(image - damage.pixels(row)).mean() for row in range(damage.COUNT)]
            assert name == LOSSY or min(distances) == 0
            found[int(np.argmin(distances))] = {key: np.atleast_1d(others[key][i]).tolist() for key in others if key in ("label", "point")}
    assert sorted(found) == list(range(damage.COUNT))
    for row, values in found.items():
        assert values.get("label", [row % 3]) == [row % 3]
        point = damage.point(row)
        assert values.get("point", point) in (point, point[:1])
