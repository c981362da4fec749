"""The pages about other libraries: every transform is there, every form is right, and what is only near says so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path
from typing import Any

import pytest

from docs.generated.other_libraries import FLAT, NONE, Answer, answers
from pipegen.diagnostics.suggest import NOTHING, every_row
from pipegen.phases.compilation import inspect
from pipegen.spec.peers.words import OF_SERIES, OF_SOUND
from pipegen.spec.templates import parsed, steps_of

sys.path.append(str(Path(__file__).parents[1]))
from collect_transforms import FOLDER, LIBRARIES, collected

SIZED = {"resize": {"size": 32}}


@pytest.mark.parametrize(
    "library",
    [
        "keras",
        "torchvision",
        *(pytest.param(one, marks=pytest.mark.peers) for one in ("albumentations", "audiomentations", "librosa", "tsaug")),
    ],
)
def test_the_lists_are_the_installed_libraries(library: str) -> None:
    """A version other than the list's is compared by `python tests/collect_transforms.py` and its diff."""
    if util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    assert library in LIBRARIES
    kept = (FOLDER / f"{library}.txt").read_text(encoding="utf-8")
    if metadata.version(library) != kept.partition("\n")[0]:
        pytest.skip(f"the list is of {library} {kept.partition(chr(10))[0]}")
    assert collected(library) == kept


@pytest.mark.parametrize("library", [*LIBRARIES])
def test_every_transform_has_an_answer(library: str) -> None:
    found = answers(library)
    assert [a.name for a in found if a.row is None and a.meaning is None] == []
    assert all(a.meaning.why for a in found if a.meaning and not a.meaning.steps), "of what has no form the page says what differs"
    assert all(a.row.remark for a in found if a.row and a.row.lines == NOTHING), "whoever gets no lines is told why"


def _specs(answer: Answer, library: str) -> Iterator[dict[str, Any]]:
    """Specs with the steps of an answer, before and behind what fixes the size; or with its sections."""
    if library in OF_SOUND and answer.meaning is not None:
        source = {"audio_folder": {"path": "words/", "rate": 16000, "classes": ["a", "b"]}}
        crop = {"crop_or_pad": {"seconds": 1}}
        for steps in ([*answer.meaning.steps, crop], [crop, *answer.meaning.steps], [crop, "mel_spectrogram", *answer.meaning.steps]):
            yield {"pipegen": 1, "source": source, "transforms": steps}
        return
    if library in OF_SERIES and answer.meaning is not None:
        windows = {"csv": {"path": "a.csv"}, "window": {"length": 96}, "features": {"x": {"kind": "series", "column": "load"}}}
        yield {"pipegen": 1, "source": {"series": windows}, "transforms": [*answer.meaning.steps], "output": {"x": "x", "y": "x"}}
        return
    spec: dict[str, Any] = {"pipegen": 1, "source": {"image_folder": {"path": "photos/", "classes": ["a", "b"]}}}
    if answer.row is not None and answer.row.place == "spec":
        yield {**spec, "transforms": [SIZED], **parsed(answer.row)}
        return
    own = steps_of(answer.row, None) if answer.row is not None else list(answer.meaning.steps) if answer.meaning is not None else []
    for steps in ([*own, SIZED], [SIZED, *own], [{"resize": {"size": 256}}, *own], [*own, {"center_crop": {"size": 32}}]):
        yield {**spec, "transforms": steps, "output": {"encode": {"label": "one_hot"}}}


@pytest.mark.parametrize(("library", "least"), [("keras", 0.7), ("torchvision", 0.9), ("albumentations", 0.58)])
def test_most_of_what_is_about_images_has_a_form(library: str, least: float) -> None:
    """A form is lines that do the same, as `test_peers.py` shows, or the word that nothing is to be done; the others name what differs."""
    flat = [answer for answer in answers(library) if answer.flat]
    near = [answer.name for answer in flat if not answer.there]
    assert 1 - len(near) / len(flat) >= least, near
    of_python = [a.name for a in flat if a.there and a.row is not None and a.row.lines.startswith("random_python")]
    assert of_python == [], "a function of one's own is no form"


@pytest.mark.parametrize("library", [*LIBRARIES])
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_form_is_a_right_spec(library: str, every: int) -> None:
    """By day every third form."""
    wrong = {}
    for answer in [*answers(library)][::every]:
        lines = answer.row.lines if answer.row is not None else "steps" if answer.meaning is not None and answer.meaning.steps else NOTHING
        if lines != NOTHING and "python" not in lines:
            found = [[d.message for d in inspect(spec).diagnostics if d.severity.value == "error"] for spec in _specs(answer, library)]
            if all(found):
                wrong[answer.name] = found
    assert wrong == {}


def test_the_remarks_that_mean_something_are_spelled_alike() -> None:
    near = [row.remark for row in every_row() if "has no" in row.remark]
    assert [remark for remark in near if not remark.startswith(NONE)] == []
    assert FLAT in {row.remark for row in every_row()}
