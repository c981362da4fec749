"""Any recipe gives of photographs in any form what it gives of files of them: pixels, labels and ids, whatever the runtime."""

from __future__ import annotations

import io
from dataclasses import replace
from importlib.util import find_spec
from pipes import picture
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from PIL import Image
from strategies import recipes

import pipegen
from benchmarks import written_sources
from benchmarks.written_sources import SOURCES, output_of
from pipegen import load
from pipegen.api import building
from pipegen.errors import SpecError
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.registry import transforms
from pipegen.phases.compilation import collect_data

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

    Folder = Callable[[str], Path]

pytestmark = [pytest.mark.tf, pytest.mark.nightly]

COUNT, SIDE, CLASSES = 22, 40, 3
LABELS = [CLASSES * i // COUNT for i in range(COUNT)]
"""They rise, so that files in class folders are listed as records are: in the order of their numbers."""
PLAIN: dict[str, Any] = {"jit": "never", "cache": "none"}
LOSSY = "prepared, jpeg"
BOXED = ("coco", "voc", "labelme", "yolo")
OTHER_BOXES = "yolo"
"""It says boxes by fractions, which are those of no other form here."""
BY_BOXES = {"random_box_crop", "random_box_safe_crop", "random_crop_around", "random_iou_crop"}
"""Steps whose crops follow boxes, and with them the rounding of fractions in YOLO's files."""
FORMS = [form for form in SOURCES if form not in ("files", LOSSY)]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Writes a form once."""
    folders: dict[str, Path] = {}

    def written(form: str) -> Path:
        if form not in folders:
            folders[form] = tmp_path_factory.mktemp("form") / "data"
            folders[form].mkdir()
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(written_sources, "SIDE", SIDE)
                patched.setattr(written_sources, "CLASSES", CLASSES)
                SOURCES[form].write(folders[form], [(png(i), label) for i, label in enumerate(LABELS)])
        return folders[form]

    return written


def png(number: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(picture(number, SIDE, SIDE)).save(stream, "PNG")
    return stream.getvalue()


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """A recipe, and what else says which examples a batch has."""
    sections: dict[str, Any] = yaml.safe_load(draw(recipes()))
    sections["batch"] = {"size": 4, "remainder": "keep", **sections.get("batch", {})}
    if draw(st.integers(0, 3)) == 0:
        sections["sampling"] = {"balance": "label"}
    if draw(st.integers(0, 3)) == 0:
        sections["views"] = 2
    if draw(st.integers(0, 3)) == 0:
        sections["seed"] = draw(st.integers(1, 9))
    return {"pipegen": 1, **sections}


def written(form: str, folder: Path, sections: dict[str, Any]) -> dict[str, Any]:
    """A spec on a form."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(written_sources, "CLASSES", CLASSES)
        source = SOURCES[form].spec(folder)
    if form in BOXED:
        source[form] |= {"max": 1}  # steps that combine would make room for more, by a number of their own
    output = {**sections.get("output", {}), **output_of(source)}
    if form in BOXED:
        output.pop("encode", None)
    return {**sections, "source": source, "output": output}


def on_files(spec: dict[str, Any], ids: Any) -> Pipeline:
    """The pipeline of a spec on image files, which draws for each as for a record of its id."""
    loaded = load(spec, runtime=PLAIN)
    manifest = collect_data(loaded)
    manifest = replace(manifest, listing=replace(manifest.listing, ids=ids))
    return building._built(loaded, manifest, lambda _: reject(), None, None)


def rows(dataset: Any) -> list[list[Any]]:
    """The parts of each example of a stream: of x, and then of y."""
    import tensorflow as tf

    found: list[list[Any]] = []
    for batch in dataset:
        parts = [part.numpy() for part in tf.nest.flatten(batch[:2])]
        found += [[part[row] for part in parts] for row in range(len(parts[0]))]
    return found


def alike(found: list[list[Any]], wanted: list[list[Any]]) -> None:
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)


def combines(sections: dict[str, Any]) -> bool:
    """Whether an example holds parts of others."""
    return any(issubclass(transforms()[name], CombiningTransform) for name in names_of(sections))


def names_of(sections: dict[str, Any]) -> list[str]:
    return [step if isinstance(step, str) else next(iter(step)) for step in sections["transforms"]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.timeout(3000)
@settings(max_examples=8, deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck))
@given(sections=specs(), cache=st.sampled_from(["none", "memory", "disk"]), step=st.integers(0, 4))
def test_it_gives_what_it_gives_on_files(
    form: str, sections: dict[str, Any], cache: str, step: int, folder_of: Folder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if SOURCES[form].library and find_spec(SOURCES[form].library) is None:
        pytest.skip(f"{SOURCES[form].library} is not installed")
    if form == OTHER_BOXES and not BY_BOXES.isdisjoint(names_of(sections)):
        reject()
    like = "coco" if form in BOXED else "files"
    kept: Any = {"disk": str(tmp_path_factory.mktemp("cache"))} if cache == "disk" else cache
    try:
        given, runtime = written(form, folder_of(form), sections), {**PLAIN, "cache": kept}
        pipe = pipegen.build(given, runtime=runtime, allow_write=[str(folder_of(form))])  # what a database answered is kept there
        plain = on_files(written(like, folder_of(like), sections), pipe._manifest.ids("train"))
    except SpecError:
        reject()
    compared(form, sections, plain, pipe, step)


def compared(form: str, sections: dict[str, Any], plain: Pipeline, pipe: Pipeline, step: int) -> None:
    """Compares two epochs, of which the second one finds what the first one left in a cache; then its rest, or its shares."""
    size, whole = sections["batch"]["size"], list[list[Any]]()
    assert len(set(pipe._manifest.ids("train").tolist())) == COUNT
    if form not in BOXED:
        assert [[*one.labels("train")] for one in (pipe, plain)] == [LABELS, LABELS]  # type: ignore[misc]
    for epoch in (0, 1):
        found, wanted = rows(pipe.dataset("train", epoch=epoch)), rows(plain.dataset("train", epoch=epoch))
        order, usual = (one._engine.order_of("train", epoch).tolist() for one in (pipe, plain))
        whole = found
        if form == OTHER_BOXES:
            found, wanted = ([row[: len(row) - 2] for row in some] for some in (found, wanted))
        if order == usual:
            alike(found, wanted)
        elif not combines(sections) and len(set(order)) == len(order) and "whiten" not in names_of(sections):
            # Few examples leave most directions to `epsilon`, as `whiten` warns, and so to the order of the sums.
            by_number = dict(zip(usual, wanted, strict=False))
            both = [(row, by_number[number]) for number, row in zip(order, found, strict=False) if number in by_number]
            alike([row for row, _ in both], [row for _, row in both])
        if form not in BOXED and not combines(sections):
            for number, row in zip(order, found, strict=False):
                label = row[-1] if row[-1].ndim == 0 else row[-1].argmax()
                assert int(label) == LABELS[number]
    if step:
        if len(whole) > step * size:
            alike(rows(pipe.dataset("train", epoch=1, step=step)), whole[step * size :])
    elif size % 2 == 0:
        half = size // 2
        for number in range(2):
            share = rows(pipe.dataset("train", epoch=1, shard=(number, 2)))
            for at in range(len(whole) // size):
                alike(share[at * half : (at + 1) * half], whole[at * size + number * half :][:half])
