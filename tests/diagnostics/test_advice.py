"""Advice, followed, works: the lines of every help are put into the spec, which then validates; and so is every fix."""

from __future__ import annotations

import ast
import copy
import itertools
import json
import pickle
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from following import at, followed, parsed, put
from golden import cases
from one_batch import of_files, of_photographs
from spec_pages import PageFile, spec_page
from test_pages import BY_NIGHT, findings

import pipegen
from pipegen.diagnostics.catalog import CODES
from pipegen.diagnostics.diagnostic import Advice, Applicability, Diagnostic, Diagnostics, Severity, write
from pipegen.diagnostics.fixes import apply_fixes
from pipegen.diagnostics.suggest import VAGUE, Row, every_row, plain
from pipegen.ops.arguments.geometry import ConstantFill
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.kinds.base import kind_named, named_kinds
from pipegen.ops.registry import transforms
from pipegen.ops.sources.class_folders import ImageFolder
from pipegen.ops.sources.coco import Coco
from pipegen.ops.sources.features.feature import ArrayFeature
from pipegen.ops.sources.table_sources import Csv
from pipegen.ops.sources.tables.features import TableFeature
from pipegen.phases.compilation import inspect
from pipegen.spec.compose import compose
from pipegen.spec.expect import field_type, valid, words_of
from pipegen.spec.models import DiskCache, Epoch, Errors, Param, PipelineSpec, SkipChoice, WindowShuffle

ROOT = Path(pipegen.__file__).parent
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "diagnostics").rglob("*.md"))
FFT = ("n_fft", "nfft", "fft_length", "fft_size", "filter_length")
HIDDEN = {
    ("typo-remainder", "PG220"),
    ("typo-output", "PG105"),
    *((f"key {word}", "PG105") for word in FFT),
    ("step random_shift", "PG203"),
}
"""A second mistake of a golden case, which only shows once the first is mended; a transform of 30 samples, which is too short; a step of
sound, which only then meets a source of images, and is said to be `random_translation` there."""
ELSEWHERE = {
    "data/shares.py": "hosts and replicas that share a last batch unevenly; test_launchers.py follows it",
    "data/shards.py": "more records than any source has; test_sharded_pipeline.py follows it",
    "diagnostics/diagnostic.py": "where the helper stands",
    "ops/sources/tfds.py": "metadata that tells another rate or channels; test_sounds_as_lists.py follows it",
    "phases/memory_budget.py": "more memory than there is; test_expected_memory.py follows it",
}
"""Files whose advice no spec alone can bring about."""
APPLIED: set[tuple[str, int]] = set()
"""Where the advice was made that the tests of this file have followed."""
FOLLOWED: dict[str, tuple[str, Any, Path | None]] = {}
"""The specs that are right after advice was followed, by their text: the advice, the spec, and where its data lies, if it is there."""

Look = Callable[[Any], list[Diagnostic]]


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes where each piece of advice is made."""
    make = Advice.__new__

    def noted(cls: type[Advice], *args: Any, **kwargs: Any) -> Advice:
        made = make(cls, *args, **kwargs)
        frame = sys._getframe(2)
        made.site = (frame.f_code.co_filename.removeprefix(f"{ROOT}/"), frame.f_lineno)  # type: ignore[attr-defined]
        return made

    monkeypatch.setattr(Advice, "__new__", noted)


def wrong_after(
    spec: Any, found: list[Diagnostic], look: Look, name: str = "", allowed: Collection[str] = (), folder: Path | None = None
) -> list[str]:
    """What is still wrong, or newly so, after each piece of advice has been followed on its own; `folder` has the data, if it is there."""
    wrong = []
    before = {(d.code, d.message) for d in found if d.severity is Severity.ERROR}
    for finding in found:
        for advice in (line for line in finding.help if isinstance(line, Advice)):
            mended = followed(spec, finding, advice)
            after = look(mended)
            if not any(d.severity is Severity.ERROR for d in after):
                FOLLOWED.setdefault(json.dumps(mended, sort_keys=True, default=str), (f"{finding.code} {advice}", mended, folder))
            new = {
                (d.code, d.message)
                for d in after
                if d.severity is Severity.ERROR and (name, d.code) not in HIDDEN and d.code not in allowed
            } - before
            stays = (finding.code, finding.message) in {(d.code, d.message) for d in after}
            wrong += [f"{name}: {finding.message} | {advice} | {'stays ' * stays}{new or ''}"] if new or stays else []
            APPLIED.add(advice.site)  # type: ignore[attr-defined]
    return wrong


def in_memory(spec: Any) -> list[Diagnostic]:
    return list(inspect(spec).diagnostics)


def test_the_advice_of_the_golden_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for path in GOLDEN:
        for case in cases(path.read_text(encoding="utf-8")):
            for block in case.blocks[1:]:
                if block.info.startswith("yaml "):
                    Path(block.info.split()[1]).write_text(block.body, encoding="utf-8")
            tree = compose(case.source.body, "spec.yaml", Diagnostics())
            if tree is not None and not tree.partial:
                params = dict([case.source.settings["params"].split(":")]) if "params" in case.source.settings else {}
                wrong += wrong_after(tree.value, list(inspect(tree.value, params=params).diagnostics), in_memory, path.stem)
    assert wrong == []
    assert len(APPLIED) > 30


@pytest.mark.tf
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_advice_of_the_pages(whole: bool, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages have data beside their specs, so that what listing says is followed, too."""
    wrong, tmp_path = [], tmp_path_factory.mktemp("pages")  # which stays until the batches below have been run
    monkeypatch.setattr("pipegen.data.remote.caches.WAITS", 0.0)
    for code in (c for c in CODES if c not in ("PG406", "PG414", "PG241") and (whole or c not in BY_NIGHT)):
        told = spec_page(code)
        tree = None if told.raw or told.absent else compose(told.bad, "spec.yaml", Diagnostics())
        if tree is None:
            continue
        (tmp_path / code).mkdir()
        monkeypatch.chdir(tmp_path / code)

        def look(spec: Any, code: str = code, told: Any = told) -> list[Diagnostic]:
            return findings(code, told, json.dumps(spec).encode())

        wrong += wrong_after(tree.value, look(tree.value), look, code, folder=tmp_path / code if told.files else None)
    assert wrong == []


BASE: dict[str, Any] = {
    "pipegen": 1,
    "source": {"image_folder": {"path": "photos/"}},
    "splits": {"parts": {"train": 0.8, "validation": 0.2}},
    "transforms": [{"resize": {"size": 224}}],
}
OWN = {
    "PG108": "a default or a limit that the user chose for a param of another type",
    "PG213": "a mean of 30, which the user gave",
    "PG301": "sizes of splits, where the word meant that folders are the splits",
    "PG223": "labels as class indices, for which the finding has lines of its own",
    "PG207": "a fill of 0.2, which the user gave, in bytes",
    "PG210": "a crop on some splits only, which the user asked for",
    "PG226": "a crop at times of images that have another size, for which the finding has lines of its own",
    "PG217": "a feature, which the user named, that the source has not",
    "PG218": "several labels, of which the source has one",
    "PG596": "a mask to paste by, which the spec has not",
    "PG104": "a count of 0.2, which the user gave, and which is no whole number",
}
"""What may be wrong after advice on the words alone, since the rest of the spec does not know of them."""
UNSIZED = ("random_shorter_side", "random_zoom_out", "random_iou_crop", "random_box_safe_crop", "random_box_crop")
"""Steps that leave images with sizes of their own."""
OF_KINDS = {argument for kind in named_kinds() for argument in kind.arguments}
OF_OTHERS: dict[str | int, set[str]] = {
    "label": OF_KINDS - {*kind_named("label").arguments},
    "boxes": {*OF_KINDS, "path"} - {*kind_named("boxes").arguments},
}
"""Keys of a feature that are for other kinds of it; a `path` stands at all arrays or at none."""
SMALL = {**BASE, "transforms": [{"resize": {"size": 48}}]}
LARGE = {**BASE, "transforms": [{"resize": {"size": 256}}]}
SOUNDS: dict[str, Any] = {
    **BASE,
    "source": {"arrays": {"features": {"audio": {"kind": "audio", "rate": 44100}}}},
    "transforms": [{"crop_or_pad": {"seconds": 1}}],
    "output": {"x": "audio", "y": None},
}
SPECTRA = {**SOUNDS, "transforms": ["spectrogram"]}
SERIES: dict[str, Any] = {
    **BASE,
    "source": {"series": {"window": {"length": 24}, "features": {"x": {"kind": "series"}}}},
    "transforms": ["fill_missing"],
    "output": {"x": "x", "y": "x"},
}
WHOLE = {key: value for key, value in BASE.items() if key != "splits"}
PLACES: list[tuple[Any, str | tuple[str | int, ...]]] = [
    (PipelineSpec, ()),
    *((field_type(PipelineSpec, section), (section,)) for section in ("splits", "batch", "output", "errors", "runtime")),
    (Epoch, ("epoch",)),
    (WindowShuffle, ("shuffle",)),
    (Param, ("params", "size")),
    (DiskCache, ("runtime", "cache")),
    (ConstantFill, ("transforms", 1, "random_rotation", "fill")),
    (Errors, ("errors",)),
    (SkipChoice, ("errors", "decode")),
    (ImageFolder, ("source", "image_folder")),
    (Csv, ("source", "csv")),
    (TableFeature, ("source", "csv", "features", "label")),
    (Coco, ("source", "coco")),
    (ArrayFeature, ("source", "arrays", "features", "boxes")),
    *((cls, ("transforms", 1, op)) for op, cls in transforms().items()),
]
"""Every map of a spec by its model."""
FILLED: dict[tuple[Any, ...], Any] = {
    ("params", "size"): {"type": "int", "default": 224},
    ("source", "image_folder"): {"path": "photos/"},
    ("source", "csv"): {
        "path": "table.csv",
        "features": {"image": {"kind": "image", "column": 0}, "label": {"kind": "label", "column": 1}},
    },
    ("transforms", 1, "random_rotation", "fill"): {"constant": 0},
    ("transforms", 1, "random_crop"): {"size": 160, "padding": 4},
    ("source", "coco"): {"images": "photos/", "annotations": "instances.json"},
    ("source", "arrays"): {"features": {"image": {"kind": "image", "size": [64, 64]}, "boxes": {"kind": "boxes", "format": "xywh"}}},
    ("source", "arrays", "features", "boxes"): {"kind": "boxes", "format": "xywh"},
    ("splits",): BASE["splits"],
    (): BASE,
}


def _base(op: str | None) -> dict[str, Any]:
    """A spec whose feature a step acts on."""
    step = transforms().get(op or "")
    if step is not None and step.kinds == {"audio"}:
        return SPECTRA if getattr(step, "form", None) == "spectra" else SOUNDS
    if step is not None and "series" in step.kinds and "image" not in step.kinds:
        return SERIES
    return {"whiten": SMALL, "crop": LARGE}.get(op or "", BASE)


def _with(path: tuple[str | int, ...], value: Any) -> Any:
    """A spec with a value at a path, of a kind that has that path."""
    op = path[2] if path[:1] == ("transforms",) else None
    spec = copy.deepcopy(_base(None if op is None else str(op)))
    if not path:
        return value
    if op is not None:
        step = parsed(transforms()[str(op)].examples[0].yaml)
        steps = [*spec["transforms"], {step: {}} if isinstance(step, str) else step]
        spec["transforms"] = steps
        if issubclass(transforms()[str(op)], CombiningTransform):
            spec["output"] = {"encode": {"label": "one_hot"}}
        if op in UNSIZED:
            steps.append({"resize": {"size": 48}})
        if op == "trim":
            steps.append({"crop_or_pad": {"seconds": 1}})
        if op == "decode":
            steps.reverse()
            path = ("transforms", 0, *path[2:])
    if path[:1] == ("params",):
        spec |= {"description": "images of ${size} pixels", "params": {"size": {"type": "int", "default": 224}}}
    if path[:2] in FILLED and path[0] == "source":
        spec["source"] = {path[1]: copy.deepcopy(FILLED[path[:2]])}
    for n in range(1, len(path)):
        if not isinstance(at(spec, path[: n - 1]).get(path[n - 1]) if isinstance(at(spec, path[: n - 1]), dict) else {}, (dict, list)):
            put(spec, path[:n], {})
    put(spec, path, value)
    return spec


def _given(model: Any, path: tuple[Any, ...]) -> dict[str, Any]:
    """What stands in a map of a model: what it must have."""
    if path in FILLED:
        return dict(FILLED[path])
    if len(path) == 3 and path[0] == "transforms":
        example = parsed(model.examples[0].yaml)
        return {} if isinstance(example, str) else dict(example[model.op])
    return {"kind": "label", "column": 0} if path[-2:] == ("features", "label") else {}


def _written(row: Row, word: str) -> tuple[str, list[Any]]:
    """The word, and values that people write behind it."""
    name, equals, value = word.partition("=")
    if equals:
        known = {"true": True, "false": False, "null": None, "#": 1000}
        return name, [known[value] if value in known else float(value) if value.replace(".", "").isdigit() else value]
    return name, [True, 0.2, [180, 180], "abc"] if row.place == "spec" else [0.2, "abc", 30]


def _steps(row: Row, name: str, value: Any) -> Iterator[Any]:
    """A step in a spec: bare, with one value, and with arguments."""
    base = _base(row.names[-1] if row.names else None)
    for step in (name, {name: value}, {name: {"p": 0.5, "degrees": 10, "size": 200, "height": 100, "width": 120, "mode": "horizontal"}}):
        steps = [*base["transforms"], step]
        if "mixup" in row.lines or "cutmix" in row.lines:
            base = {**base, "output": {"encode": {"label": "one_hot"}}}
        yield {**base, "transforms": steps[::-1] if row.lines.startswith("decode") else steps}


def _fits(model: Any, row: Row) -> bool:
    """Whether a row is about the keys of a map: keys of the same names may mean something else."""
    if not set(row.names) <= set(model.model_fields):
        return False
    example = {key.partition("~")[0]: value for key, value in parsed(f"{{{row.lines}}}").items()}
    nested = model is PipelineSpec or any("~" in str(value) for value in example.values())
    return nested or all(valid(field_type(model, key), value) for key, value in example.items())


def _keys(row: Row, name: str, value: Any) -> Iterator[Any]:
    """An entry of every map that has the keys of the row."""
    for model, path in PLACES:
        if path and not OF_OTHERS.get(path[-1], set()).isdisjoint(row.names):
            continue
        if name not in model.model_fields and _fits(model, row):
            kept = {key: inner for key, inner in _given(model, path).items() if key not in row.names}
            if row.names == ("choices",):
                kept = {"type": "choice", "default": "small"}
            if row.names == ("folds",):
                kept = {}
            spec = _with(path, {**kept, name: value})
            if row.names == ("group",) and path == ("splits",):
                spec["source"] = {"csv": FILLED["source", "csv"]}  # which may have such a column
            yield spec


def _values(row: Row, name: str) -> Iterator[Any]:
    """A choice of every map that has the row's word."""
    for model, path in PLACES:
        for key in model.model_fields:
            words = words_of(field_type(model, key))
            if row.lines in words and name not in words:
                yield _with(path, {**_given(model, path), key: name})
    if row.lines in ("one_hot", "int", "multi_hot", "binary"):
        yield {**BASE, "output": {"encode": {"label": name}}}
    if row.lines in ("validation", "test"):
        yield {**BASE, "splits": {"parts": {"train": 0.8, row.lines: 0.2}}, "batch": {"remainder": {name: "keep"}}}
        yield {
            **BASE,
            "splits": {"parts": {"train": 0.8, row.lines: 0.2}},
            "transforms": [{"resize": {"size": 224}}, {"random_flip": {"when": [name]}}],
        }


def _specs(row: Row, word: str) -> Iterator[Any]:
    """Specs that hold a word of the table wherever it may stand."""
    name, values = _written(row, word)
    base = WHOLE if "by_split" in row.lines or "folds" in row.lines else _base(row.names[-1] if row.place == "step" and row.names else None)
    for value in values:
        if row.place == "step":
            yield from _steps(row, name, value)
        if row.place in ("step", "spec") and name not in PipelineSpec.model_fields:
            yield {**base, name: value}
        if row.place in ("step", "spec") and name not in ("path", "classes", "labels", "pattern", "follow_links") and base is not SPECTRA:
            folder = {"audio_folder": {"rate": 44100}} if "output" in base else {"image_folder": {}}
            yield {**base, "source": {op: {"path": "x", **own, name: value} for op, own in folder.items()}}
        if row.place == "spec":
            yield {**base, "transforms": [*base["transforms"], {name: value}]}
        if row.place == "key":
            yield from _keys(row, name, value)
    if row.place == "value":
        yield from _values(row, name)
    if row.place == "source":
        yield {**base, "source": name}
        yield {**base, "source": {name: {"path": "photos/"}}}
    if row.place == "split":
        yield {**base, "splits": {"parts": {**({"train": 0.8} if row.lines != "train" else {}), name: 0.2}}}


def _day() -> Iterator[tuple[Row, str, Any]]:
    """The first word of every third row in the first place."""
    for row in [*every_row()][::3]:
        yield from ((row, row.words[0], spec) for spec in itertools.islice(_specs(row, row.words[0]), 1))


def _night() -> Iterator[tuple[Row, str, Any]]:
    """Every word of each row in every place, with every value."""
    yield from ((row, word, spec) for row in every_row() for word in row.words for spec in _specs(row, word))


@pytest.mark.parametrize("every_spec", [_day, pytest.param(_night, marks=pytest.mark.nightly)])
def test_every_word_of_the_table_is_answered_with_lines_that_validate(every_spec: Callable[[], Iterator[tuple[Row, str, Any]]]) -> None:
    """Each word in each place that it may stand in."""
    wrong, silent, seen = [], [], set()
    for row, word, spec in every_spec():
        seen.add(row)
        found = in_memory(spec)
        wrong += wrong_after(spec, found, in_memory, f"{row.place} {word}", OWN)
        name = word.partition("=")[0]
        about = [d for d in found if f"`{name}`" in d.message or name in d.labels[0].path.split(".")]
        if row.place in ("key", "spec") and "[180, 180]" in str(spec):
            continue  # more than a line can say again: the finding names the key alone
        if about and not any(isinstance(line, Advice) for d in about for line in d.help) and plain(name) not in VAGUE:
            silent.append((row.place, word, spec, [d.message for d in about]))
    assert wrong == []
    assert silent == []
    # A row that no place has is dead.
    assert every_spec is _day or [row.lines for row in every_row() if row not in seen] == ["extends~: base.pipegen.yaml"]


def _after(*steps: Any, **sections: Any) -> dict[str, Any]:
    return {**BASE, "transforms": [{"resize": {"size": 64}}, *steps], **sections}


TABLE = {"csv": {"path": "t.csv", "features": {"image": {"kind": "image", "column": 0}}}}


def _features(**more: Any) -> dict[str, Any]:
    return {"csv": {**TABLE["csv"], "features": {**TABLE["csv"]["features"], **more}}}


MASK = {"kind": "mask", "column": 1, "classes": 3}
MASKED = _features(mask=MASK)
PIXELS = {"size": [64, 64]}
MARKED = {
    "arrays": {
        "features": {
            "image": {"kind": "image", **PIXELS},
            "boxes": {"kind": "boxes"},
            "mask": {"kind": "mask", "with": "boxes", **PIXELS},
            "kinds": {"kind": "mask", "classes": 3, **PIXELS},
        }
    }
}
SOUND = {"arrays": {"features": {"sound": {"kind": "audio", "rate": 8000}}}}
OF_SERIES = {"series": {"window": {"length": 24}, "features": {"x": {"kind": "series"}}}}
EVENTS = {"arrays": {"features": {"sound": {"kind": "audio", "rate": 8000}, "calls": {"kind": "events"}}}}
RARE: list[dict[str, Any]] = [
    {**BASE, "source": OF_SERIES, "transforms": [{"resample": {"length": 48, "method": "mean"}}], "output": {"x": "x", "y": "x"}},
    {
        **BASE,
        "source": EVENTS,
        "transforms": [{"crop_or_pad": {"seconds": 1}}, {"random_shift": {"seconds": 0.1}}],
        "output": {"x": "sound", "y": "calls"},
    },
    *(
        {
            **BASE,
            "source": {"arrays": {"features": {"sound": {"kind": "audio", "rate": 8000}, y: target}}},
            "transforms": [{"crop_or_pad": {"seconds": 1}}],
            "output": {"x": "sound", "y": y, "encode": {y: encoding}},
        }
        for y, target, encoding in (("calls", {"kind": "events"}, "one_hot"), ("label", {"kind": "label", "classes": 3}, "frames"))
    ),
    {**SOUNDS, "transforms": [*SOUNDS["transforms"], {"random_noise": {"snr_db": [5, 30], "min_amplitude": 0.001}}]},
    {
        **BASE,
        "source": {"audio_folder": {"path": "words/", "rate": 8000}},
        "transforms": [{"random_crop": {"seconds": 1, "when": "train"}}],
    },
    {**BASE, "source": {"arrays": {"features": {"sound": {"kind": "audio"}}}}, "transforms": [], "output": {"x": "sound", "y": None}},
    {
        **BASE,
        "source": SOUND,
        "transforms": [{"crop_or_pad": {"seconds": 1}}, {"random_crop": {"seconds": 2}}],
        "output": {"x": "sound", "y": None},
    },
    {**BASE, "source": SOUND, "transforms": [{"trim": {"db": 3}}, {"crop_or_pad": {"seconds": 1}}], "output": {"x": "sound", "y": None}},
    *(
        {**BASE, "source": SOUND, "transforms": [{"crop_or_pad": {"seconds": seconds}}, *steps], "output": {"x": "sound", "y": None}}
        for seconds, steps in (
            (1, [{"spec_augment": {"time": 0.1}}]),
            (1, [{"rescale": {"to": [0, 255]}}, {"cast": {"dtype": "uint8"}}, {"gain": {"db": 3}}]),
            (1, [{"mel_spectrogram": {"window": 1000, "fft": 512}}]),
            (0.01, ["mel_spectrogram"]),
            (1, ["mel_spectrogram", {"spec_augment": {"time": 0.95}}]),
        )
    ),
    {
        **BASE,
        "source": {"series": {"path": "load.csv", **OF_SERIES["series"]}},
        "transforms": [{"standardize": {"statistics": "samplewise"}}],
        "output": {"x": "x", "y": None},
    },
    {**BASE, "source": {"csv": {**TABLE["csv"], "join": {"path": "b.csv", "on": "id"}}}},
    {**BASE, "source": {"csv": {**TABLE["csv"], "join": {"table": "b.parquet", "on": "id"}}}},
    _after({"solarization": {"threshold": 0.5}}),
    _after({"random_solarization": {"threshold": [0.2, 0.8]}}),
    {**BASE, "transforms": [{"decode": {"bits": 16}}, {"resize": {"size": 64}}, {"posterization": {"bits": 4}}]},
    {**BASE, "transforms": [{"resize": {"size": 64}}, {"height_factor": 0.2}]},
    {**BASE, "transforms": [{"resize": {"size": 64}}, {"degrees": 15}]},
    {**BASE, "transforms": [{"decode": {"bits": 16}}, {"resize": {"size": 64}}, {"gaussian_blur": {"sigma": 2}}]},
    _after({"python": {"function": "my_pkg.filters:denoise", "dtype": "float32"}}, "equalization"),
    _after({"random_channel_shift": {"delta": 0.1}}),
    _after({"random_pca_lighting": {"std": 0.1}}),
    _after({"random_iso_noise": {"std": 0.1}}),
    _after({"random_solarize_add": {"delta": 0.3}}),
    _after({"random_gaussian_noise": {"std": 0.05}}),
    _after({"random_gaussian_noise": {"std": [0, 0.05]}}),
    _after({"random_rotation": {"degrees": [-0.3, 0.2]}}),
    _after({"random_rotation": {"degrees": -10}}),
    _after({"random_brightness": {"factor": -0.2}}),
    _after({"random_channel_shift": {"delta": -3}}),
    _after(source=_features(weight={"kind": "weight", "column": 1}), output={"y": None, "sample_weight": "weight"}, splits={}),
    _after(
        source=_features(mask={"kind": "mask", "column": 1, "classes": 3}), output={"y": "mask", "encode": {"mask": "multi_hot"}}, splits={}
    ),
    _after(source=_features(label={"kind": "label", "column": 1, "separator": ";"}), output={"encode": {"label": "one_hot"}}, splits={}),
    {**BASE, "source": {"image_folder": {"path": "a"}, "csv": {"path": "b"}}},
    _after({"random_flip": None}),
    _after({"random_rotation": None}),
    _after(params={"n": 3}),
    _after(horizontal_flip=False),
    _after(Compose=[1]),
    _after(image_size=[64, 64]),
    _after(verbose=1),
    _after(threads=3),
    _after(shuffle=1000),
    _after(shuffle="true"),
    _after(cache=True),
    _after({"random_flip": "horizontal"}),
    _after({"rescale": "1/255"}),
    _after({"rescale": "to:[0, 1]"}),
    _after({"normalize": {"preset": "imagenet"}}),
    _after({"rotate": {"degrees": 20}}),
    _after({"random_resized_crop": [1, 2, 3]}),
    _after({"random_rotation": {"degrees": 20, "rotation_range": 20}}),
    _after(
        {"random_coarse_dropout": {"holes": [3, 8]}},
        source={"csv": {"path": "t.csv", "features": {"mask": MASK}}},
        output={"x": "mask", "y": None},
    ),
    _after({"copy_paste": {"mask": "image"}}, source=MASKED, output={"y": "mask"}),
    _after({"copy_paste": {}}, source=_features(a=MASK, b=MASK), output={"y": ["a", "b"]}),
    _after({"copy_paste": {"mask": "kinds"}}, source=MARKED, output={"y": ["mask", "boxes"]}),
    _after({"random_coarse_dropout": {"holes": [3, 8], "mask_fill": 7}}, source=MARKED, output={"y": "mask"}),
    _after({"random_flip": {"mode": "horizontal", "seed": 3}}),
    _after(class_names=["a", "b"], source=_features(label={"kind": "label", "column": 1})),
    _after({"Crop": {"x_min": 10, "y_min": 0, "x_max": 40, "y_max": 50}}),
    _after(RandomBrightness={"factor": 0.2}),
    _after(splits={"train": 0.8, "val": 0.2}),
    _after(splits={"train": 80, "test": 20, "stratify": "label"}),
    _after(splits={"train": "train/", "val": "val/"}),
    _after(splits={"parts": {"train": 0.7, "val": 0.2, "testing": 0.1}}, batch={"remainder": {"val": "keep"}}),
    _after(source={"coco": {"images": "photos", "annotations": "a.json", "names": ["a", "b"]}}, output={"y": "boxes"}),
]
"""Mistakes that no golden file and no page has."""


@pytest.mark.parametrize(
    ("section", "source", "lines"),
    [
        ({"class_names": ["a", "b"]}, {"image_folder": {"path": "x"}}, "source: {image_folder: {classes: [a, b]}}"),
        ({"class_names": ["a", "b"]}, _features(label={"kind": "label"}), "source: {csv: {features: {label: {classes: [a, b]}}}}"),
        ({"class_names": ["a", "b"]}, {"image_folder": {"features": {"label": {}}}}, "source: {image_folder: {classes: [a, b]}}"),
        ({"class_names": ["a", "b"]}, {"voc": {"path": "x"}}, None),
        ({"follow_links": True}, {"image_folder": {"path": "x"}}, "source: {image_folder: {follow_links: true}}"),
        ({"follow_links": True}, _features(), None),
    ],
)
def test_a_word_about_the_source_is_answered_for_the_source_there_is(section: Any, source: Any, lines: str | None) -> None:
    """An argument of another source would take the place of the whole source."""
    found = in_memory(_after(source=source, **section))
    (about,) = (d for d in found if d.message == f"unknown section `{next(iter(section))}`")
    assert [line.lines for line in about.help if isinstance(line, Advice)] == ([] if lines is None else [lines])


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        ({"RandomGamma": {"gamma_limit": 10**400}}, "pipegen has no form of `gamma_limit` of Albumentations' `RandomGamma`"),
        ({"Affine": {"scale": [0.9, 1.1], "rotate": 5}}, "pipegen has no form of `scale: [0.9, 1.1]` of Albumentations' `Affine`"),
        (
            {"Affine": {"scale": [0.9, 1.1], "rotate": [-5, 5], "keep_ratio": True}},
            "random_affine: {degrees: 5, factor: 0.1, fill: {constant: 0}, probability: 0.5}",
        ),
        ({"CLAHE": {"clip_limit": 4.0, "tile_grid_size": [8, 8]}}, "pipegen has no form of Albumentations' `CLAHE`"),
        ({"ChannelDropout": {"channel_drop_range": [1, 2]}}, "random_channel_drop: {count: [1, 2], probability: 0.5}"),
        ({"GaussNoise": {"std_range": [0.2, 0.44]}}, "random_gaussian_noise: {std: [51, 112.2], probability: 0.5}"),
        ({"GaussianBlur": {"sigma_limit": [0.5, 3.0]}}, "random_gaussian_blur: {sigma: [0.5, 3], probability: 0.5}"),
        ({"GaussianBlur": {"blur_limit": [3, 7]}}, "pipegen has no form of `blur_limit: [3, 7]` of Albumentations' `GaussianBlur`"),
        ({"MultiplicativeNoise": {"multiplier": [0.8, 1.1]}}, "random_brightness: {factor: [0.8, 1.1], probability: 0.5}"),
        ({"Perspective": {"scale": [0.05, 0.1]}}, "pipegen has no form of Albumentations' `Perspective`"),
        ({"RandomPosterize": {"bits": 4, "p": 0.5}}, "random_posterization: {bits: [4, 4], probability: 0.5}"),
        (
            {"RandomBrightnessContrast": {"brightness_limit": [-0.2, 0.2], "contrast_limit": 0.3}},
            "random_brightness: {factor: 0.3, delta: 51, probability: 0.5}",
        ),
        ({"RandomGamma": {"gamma_limit": [80, 120]}}, "random_gamma: {gamma: 0.2, probability: 0.5}"),
        ({"RandomScale": {"scale_limit": [-0.1, 0.2]}}, "pipegen has no form of Albumentations' `RandomScale`"),
        ({"Solarize": {"threshold_range": [0.5, 0.6]}}, "random_solarization: {threshold: [127.5, 153], probability: 0.5}"),
        (
            {"RandomAffine": {"degrees": 10, "translate": [0.1, 0.2]}},
            "random_affine: {degrees: 10, x: 0.1, y: 0.2, fill: {constant: 0}, interpolation: nearest}",
        ),
        ({"RandomPerspective": {"distortion_scale": 0.5}}, "pipegen has no form of torchvision's `RandomPerspective`"),
        ({"RandomColorJitter": {"hue_factor": 0.1}}, "random_hsv: {hue_degrees: 18}"),
        ({"ColorJitter": {"hue": 0.1}}, "random_hsv: {hue_degrees: 36}"),
        ({"RandomPosterization": {"factor": 4}}, "random_posterization: {bits: [1, 3]}"),
        ({"Crop": {"x_min": 10, "y_min": 20, "x_max": 40, "y_max": 60}}, "crop: {size: [40, 30], top: 20, left: 10}"),
        ({"Crop": {"x_max": 40, "y_max": 60}}, "crop: {size: [60, 40]}"),
        ({"LongestMaxSize": {"max_size": 48}}, "- resize: {longer_side: 48}\n- pad: {size: 48}"),
        ({"LongestMaxSize": None}, "- resize: {longer_side: 512}\n- pad: {size: 512}"),
        (
            {"SomeOf": {"transforms": ["HorizontalFlip"], "p": 7}},
            "some_of: {count: 1, steps: [random_flip, {random_rotation: {degrees: 20}}], probability: 0.5}",
        ),
        ({"torchvision.RandomApply": 0.3}, "some_of: {count: 2, steps: [random_flip, {random_rotation: {degrees: 20}}], probability: 0.3}"),
    ],
)
def test_a_step_of_another_library_is_answered_with_its_values(step: Any, lines: str) -> None:
    """Of Albumentations, torchvision and Keras: in our units, about our middle, from that whose arguments they are; or with why not."""
    found = in_memory(_after(step))
    (about,) = (d for d in found if d.severity is Severity.ERROR)
    said = [line.lines if isinstance(line, Advice) else line for line in about.help]
    assert any(line == lines or line.startswith(f"{lines}: ") for line in said), said
    assert wrong_after(_after(step), found, in_memory) == []


@pytest.mark.parametrize("spec", RARE, ids=lambda spec: str(list(spec.items())[-1])[:60])
def test_rare_advice(spec: dict[str, Any]) -> None:
    found = in_memory(spec)
    assert any(isinstance(line, Advice) for d in found for line in d.help), [(d.message, d.help) for d in found]
    known = {"PG301"} if spec["splits"] == {"train": 80, "test": 20, "stratify": "label"} else set()
    assert wrong_after(spec, found, in_memory, allowed=known) == []


X_KEPT = {"kind": "series", "column": "load", "missing": "keep"}


def _records(features: dict[str, Any], source: str = "tfrecord", path: str = "a.tfrecord") -> dict[str, Any]:
    return {source: {"path": path, "features": features}}


@pytest.mark.parametrize(
    ("file", "kind", "content", "source"),
    [
        (
            "b.npz",
            "npz",
            "sound=float32:6x8000x2",
            {"arrays": {"path": "b.npz", "features": {"sound": {"kind": "audio", "rate": 8000}}}},
        ),
        (
            "load.csv",
            "text",
            "hour,load\n0,1\n1,\n2,3\n3,4\n4,5\n5,6",
            {"series": {"csv": {"path": "load.csv"}, "window": {"length": 2}, "features": {"x": X_KEPT}}},
        ),
        (
            "t.jsonl",
            "text",
            "\n".join('{"steps": [1, 2.5]}' for _ in range(6)),
            {"jsonl": {"path": "t.jsonl", "features": {"steps": {"kind": "array", "format": "npy", "shape": [2]}}}},
        ),
        ("a.npz", "npz", "images=uint8:6x8x8x3", {"arrays": {"path": "a.npz", "features": {"image": {"kind": "image"}}}}),
        ("photos/{i}.jpg", "jpeg", "", {"image_folder": {"path": "photos"}}),
        ("a.tfrecord", "tfrecord", "6 image=jpeg:8x8 at=float:2", _records({"image": {"kind": "image"}, "at": {"kind": "tensor"}})),
        ("a.tfrecord", "tfrecord", "6 image=jpeg:8x8", _records({"image": {"kind": "image", "key": "imag"}})),
        ("a.tfrecord", "tfrecord", "6 @=jpeg:8x8", _records({"image": {"kind": "image"}})),
        (
            "pets",
            "tfds",
            "6 image=jpeg:8x8",
            {"tfds": {"name": "pets", "data_dir": ".", "features": {"image": {"kind": "image", "key": "imag"}}}},
        ),
        ("a.h5", "hdf5", "6 image=jpeg:8x8 at=float:2", _records({"image": {"kind": "image"}, "at": {"kind": "tensor"}}, "hdf5", "a.h5")),
        ("a.h5", "hdf5", "6 image=jpeg:8x8", _records({"image": {"kind": "image", "key": "imag"}}, "hdf5", "a.h5")),
        ("a.mds", "mds", "6 image=jpeg:8x8 at=float:2", _records({"image": {"kind": "image"}, "at": {"kind": "tensor"}}, "mds", "a.mds")),
        ("a.mds", "mds", "6 image=jpeg:8x8", _records({"image": {"kind": "image", "key": "imag"}}, "mds", "a.mds")),
        (
            "a.tar",
            "webdataset",
            "6 image=jpeg:8x8 at=float:2",
            _records({"image": {"kind": "image"}, "at": {"kind": "tensor"}}, "webdataset", "a.tar"),
        ),
    ],
)
def test_advice_on_data(file: str, kind: str, content: str, source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of_file = {"b.npz": ([{"crop_or_pad": {"seconds": 1}}], "sound"), "load.csv": ([{"standardize": {"statistics": "samplewise"}}], "x")}
    of_file |= {"t.jsonl": ([], "steps")}
    steps, x = of_file.get(file, ([{"resize": {"size": 8}}], "image"))
    spec = {"pipegen": 1, "source": source, "transforms": steps, "output": {"x": x, "y": None}}
    size, count = ((8, 8) if kind == "jpeg" else None), (4 if kind == "jpeg" else 1)
    told = replace(spec_page("PG402"), files=(PageFile(file, kind, size, count, content),))

    def look(spec: Any) -> list[Diagnostic]:
        return findings("PG402", told, json.dumps(spec).encode())

    found = look(spec)
    assert any(isinstance(line, Advice) for d in found for line in d.help), [(d.message, d.help) for d in found]
    assert wrong_after(spec, found, look) == []


def _calls(name: str) -> Iterator[tuple[str, str, range]]:
    """The file, the function and the lines of every call of `write` or `Fix` in the package."""
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if f"{name}(" not in text:
            continue
        inside = {n: f.name for f in ast.walk(ast.parse(text)) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
        for call, function in inside.items():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == name:
                yield path.relative_to(ROOT).as_posix(), function, range(call.lineno, (call.end_lineno or call.lineno) + 1)


@pytest.mark.tf  # as some of those above
def test_all_advice_of_the_code_base_has_been_followed() -> None:
    """Each place that makes advice was reached above; one that is not is tested by nobody."""
    left = [
        (file, function, lines.start)
        for file, function, lines in _calls("write")
        if file not in ELSEWHERE and not any(f == file and line in lines for f, line in APPLIED)
    ]
    assert left == [], "\n".join(map(str, left))


@pytest.mark.tf
@pytest.mark.parametrize("each", [24, pytest.param(1, marks=pytest.mark.nightly)])
def test_what_advice_leads_to_runs(each: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One batch of each spec that the tests above came to, by night; by day of some."""
    if each == 1:  # those tests do not run by night
        with pytest.MonkeyPatch.context() as patched:
            test_the_advice_of_the_golden_files(tmp_path_factory.mktemp("golden"), patched)
            test_the_advice_of_the_pages(True, tmp_path_factory, patched)
        test_every_word_of_the_table_is_answered_with_lines_that_validate(_day)
        for spec in RARE:
            test_rare_advice(spec)
    wrong, ran = [], 0
    for advice, spec, folder in [*FOLLOWED.values()][::each]:
        said = of_photographs(spec) if folder is None else of_files(spec, folder)
        ran += said is not None
        wrong += [f"{advice} | {said} | {spec}"] if said else []
    assert wrong == [], "\n".join(wrong)
    assert ran > (200 if each == 1 else 5)


def _texts() -> Iterator[tuple[str, str]]:
    """Every spec in one file that has a fix: those of the golden files, of the pages, and some that neither has."""
    for path in GOLDEN:
        yield from ((path.stem, case.source.body) for case in cases(path.read_text(encoding="utf-8")) if len(case.blocks) == 2)
    yield from ((code, spec_page(code).bad) for code in CODES if not spec_page(code).raw)
    for i, spec in enumerate(RARE):
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in spec.items())
        yield f"rare {i}", re.sub(r'"(\w+)": ', r"\1: ", text)


@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_every_fix_mends_what_it_is_for(each: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fix on its own takes its finding away and brings no other error; a suggestion may leave another mistake to see.

    By day every fifth spec is mended, by night each.
    """
    monkeypatch.chdir(tmp_path)
    titles: set[tuple[str, Applicability]] = set()
    wrong = []
    for name, text in itertools.islice(_texts(), 0, None, each):
        found = list(inspect("spec.yaml", text=text).diagnostics)
        before = {(d.code, d.message) for d in found if d.severity is Severity.ERROR}
        for finding in (d for d in found if d.fix is not None and d.code != "PG110"):
            assert finding.fix is not None
            mended, count = apply_fixes(text, [finding.fix], "spec.yaml")
            after = list(inspect("spec.yaml", text=mended).diagnostics)
            new = {(d.code, d.message) for d in after if d.severity is Severity.ERROR} - before
            if finding.fix.applicability is Applicability.SUGGESTION or finding.code == "PG002":
                new = {(code, message) for code, message in new if code in ("PG002", "PG007", "PG102", "PG103", "PG112")} - before
            stays = (finding.code, finding.message) in {(d.code, d.message) for d in after}
            titles.add((re.sub(r"`.*?`", "…", finding.fix.title), finding.fix.applicability))
            if count != 1 or stays or {e for e in new if (name, e[0]) not in HIDDEN}:
                wrong.append((name, finding.message, finding.fix.title, new))
    assert wrong == [], "\n".join(map(str, wrong))
    assert len(titles) >= (8 if each == 1 else 4), titles


def test_lines_to_paste_are_advice_and_not_just_text() -> None:
    """Text that says "write `…`" is made by `write`, so that the tests above follow it."""
    loose = []
    for path in sorted(ROOT.rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.split("/")[0] in ("migrate", "compat", "cli", "backend") or where in ("ops/lowering/library.py", "phases/state.py"):
            continue  # those speak of Python code, of the command line, and of data while it is read
        code = path.read_text(encoding="utf-8")
        if not re.search(r"""\b(write|add|put)[\s"'bfru\\]*`""", code, re.IGNORECASE):
            continue  # strings that stand one after another are one
        nodes = [*ast.walk(ast.parse(code))]
        docs = {id(n.value) for n in nodes if isinstance(n, ast.Expr)}
        calls = (n for n in nodes if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Fix")
        titles = {id(part) for n in calls for part in ast.walk(n.args[0])}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | titles:
                loose += [f"{where}:{node.lineno}: {node.value}"] if re.search(r"\b(write|add|put) `", node.value) else []
    assert loose == []


def test_advice_is_text_that_can_be_pickled() -> None:
    advice = write("random_flip: {axis: both}", "step", "write {} here", instead=True)
    assert advice == "write `random_flip: {axis: both}` here"
    again = pickle.loads(pickle.dumps(advice))
    assert (again, again.lines, again.into, again.instead) == (advice, advice.lines, "step", True)
    assert write("- a\n- b", "step") == "write\n  - a\n  - b"
