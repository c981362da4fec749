"""Every step on every source with every cache goes through every pass, or `validate` says what is wrong with it. No data, no TensorFlow."""

from __future__ import annotations

import gc
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from planning import built, compiled, load_spec

from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.decoder import DecodeTransform
from pipegen.ops.registry import sources, transforms
from pipegen.phases.compilation import optimise
from pipegen.plan.check import check
from pipegen.plan.nodes import Batch, Kernel, Read
from pipegen.plan.stages import Branch
from pipegen.spec.load import load
from pipegen.spec.models import Runtime, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipegen.ops.transform import Transform
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import FeatureType

IMAGES = ("alone", "mask", "two")
RECORDS = ("tfrecord", "webdataset", "zip", "mds", "lmdb", "sqlite", "hdf5", "array_record", "arrow", "huggingface", "zarr")
"""Sources of records, which say alike what they hold."""
CACHES: tuple[Any, ...] = ("none", "memory", "auto", {"disk": "/nowhere"})
RUNTIMES: tuple[dict[str, Any], ...] = ({}, {"jit": "never"}, {"shard": {"index": 0, "count": 2}}, {"threads": 1, "prefetch": "none"})
"""What else passes read; taken in turn, since none of them meets the step."""
DATA: tuple[dict[str, Any], ...] = (
    {},
    {"num_examples": 50, "ram_budget": 10**12, "file_bytes": 1e5},
    {"num_examples": 10**6, "ram_budget": 1, "file_bytes": 1e3},
)
SECOND = {"crop_or_pad": {"seconds": 1}}
BEFORE: dict[str, dict[str, list[Any]]] = {
    "image": {
        "nothing": [],
        "a flip": ["random_flip"],
        "bytes of one size": [{"resize": {"size": 256}}],
        "floats": [{"resize": {"size": 256}}, {"random_rotation": {"degrees": 9}}, {"random_contrast": {"factor": 0.1}}],
    },
    "audio": {"nothing": [], "one length": [SECOND], "another gain": [{"random_gain": {"db": 3, "probability": 0.5}}, SECOND]},
    "spectra": {"spectra": [SECOND, "mel_spectrogram"], "of any length": ["mel_spectrogram"]},
    "series": {"nothing": [], "noise": [{"random_jitter": {"std": 0.1}}], "other steps of time": [{"resample": {"length": 40}}]},
}
"""What stands before a step, by what it works on."""
INNER: dict[str, list[Any]] = {
    "image": [{"random_equalization": {"probability": 0.5}}, "random_flip"],
    "audio": [{"random_gain": {"db": 3, "probability": 0.5}}, "random_polarity"],
    "spectra": [{"spec_augment": {"time": 0.1, "frequency": 0.1}}],
    "series": [{"random_scale": {"factor": 0.1, "probability": 0.5}}, {"random_jitter": {"std": 0.1}}],
}
"""The other steps of a policy."""


def features(images: str, **where: dict[str, Any]) -> dict[str, Any]:
    """An image with a label; beside it a mask, or another image. `where` says of each where it is."""
    found: dict[str, dict[str, Any]] = {"image": {"kind": "image"}, "label": {"kind": "label", "classes": ["a", "b", "c"]}}
    if images == "mask":
        found["mask"] = {"kind": "mask", "of": "image"}
    if images == "two":
        found["second"] = {"kind": "image"}
    return {name: {**feature, **where.get(name, {})} for name, feature in found.items() if name in where}


def columns(images: str) -> dict[str, Any]:
    return features(images, **{name: {"column": name} for name in ("image", "label", "mask", "second")})


def stored_before(images: str) -> dict[str, Any]:
    """A store of `pipegen prepare`: pictures of many sizes on one canvas."""
    pixels = {"shape": [None, None, 3], "canvas": [300, 280]}
    found = features(images, image=pixels, label={"dtype": "int64", "classes": 3}, mask={**pixels, "classes": 3}, second=pixels)
    found.get("mask", {})["shape"] = [None, None, 1]
    return {"path": "x", "of": "0" * 64, "splits": ["train", "validation"], "features": found}


def written_sources() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every kind of source, with every set of images that it can hold."""
    folder = {"image_folder": {"path": "photos/"}}
    yield "image_folder", {"source": folder}
    yield "by_split", {"source": {"by_split": {"train": folder, "validation": folder}}, "splits": None}
    one = {"weight": 0.8, "source": folder, "splits": {"parts": {"train": 0.8, "validation": 0.2}}}
    boxed: dict[str, Any] = {name: {"path": "x"} for name in ("labelme", "voc", "yolo")}
    for op, given in {"coco": {"images": "x", "annotations": "x.json"}, **boxed}.items():
        yield op, {"source": {op: given}, "output": {"y": "boxes"}}
    yield "mix", {"source": {"mix": {"epoch": "a", "parts": {"a": one, "b": {**one, "weight": {"step": {0: 1, 3: 0}}}}}}, "splits": None}
    own = {**one, "transforms": ["random_invert", {"random_rotation": {"degrees": 5}}]}
    yield "own steps mix", {"source": {"mix": {"epoch": 100, "parts": {"a": one, "b": own}}}, "splits": None}
    label = {"kind": "label", "dtype": "int64", "classes": 3}
    for shape in ([None, None, 3], [200, 300, 3]):
        stored = {"image": {"kind": "image", "shape": shape, "canvas": [200, 304 if None in shape else 300]}, "label": label}
        prepared = {"path": "prepared/", "of": "0" * 64, "splits": ["train", "validation"], "features": stored}
        yield f"{len(set(shape))} prepared", {"source": {"prepared": prepared}, "splits": None}
    for images in IMAGES:
        yield f"csv, {images}", {"source": {"csv": {"path": "t.csv", "features": columns(images)}}}
        yield f"parquet, {images}", {"source": {"parquet": {"path": "t.parquet", "features": columns(images)}}}
        yield f"dataframe, {images}", {"source": {"dataframe": {"features": columns(images)}}}
        for table in ("jsonl", "excel"):
            yield f"{table}, {images}", {"source": {table: {"path": "x", "features": columns(images)}}}
        yield f"sql, {images}", {"source": {"sql": {"url": "sqlite:///x", "query": "select * from x", "features": columns(images)}}}
        bare: dict[str, Any] = {"label": {}, "mask": {}, "second": {}}
        for op in RECORDS:
            yield f"{op}, {images}", {"source": {op: {"path": "x", "features": features(images, image={}, **bare)}}}
        yield f"tfds, {images}", {"source": {"tfds": {"name": "x", "data_dir": ".", "features": features(images, image={}, **bare)}}}
        yield f"prepared, {images}", {"source": {"prepared": stored_before(images)}, "splits": None}
        small, floats = {"size": 32, "channels": 3, "bits": 8}, {"size": [300, 280], "range": [0, 1]}
        yield f"arrays, {images}", {"source": {"arrays": {"features": features(images, image={}, **bare)}}}
        yield f"small arrays, {images}", {"source": {"arrays": {"features": features(images, image=small, **bare)}}}
        yield f"large arrays, {images}", {"source": {"arrays": {"features": features(images, image={**small, "size": 300}, **bare)}}}
        yield f"npz, {images}", {"source": {"arrays": {"path": "x.npz", "features": features(images, image=floats, **bare)}}}
        stored = features(images, image={"path": "images/"}, mask={"path": "masks/"}, second={"path": "more/"})
        output = {"x": ["image", "second"] if images == "two" else "image", "y": "mask" if images == "mask" else None}
        yield f"files, {images}", {"source": {"files": {"features": stored}}, "output": {k: v for k, v in output.items() if v}}
    sound = {"kind": "audio", "rate": 16000}
    of_sound = {"image": {**sound, "column": "file"}, "label": {"kind": "label", "column": "label", "classes": 3}}
    yield "audio_folder", {"source": {"audio_folder": {"path": "words/", "rate": 16000}}, "output": {"x": "audio"}}
    yield "csv, sound", {"source": {"csv": {"path": "t.csv", "features": of_sound}}}
    for op in ("webdataset", "arrays"):
        place = {"path": "x"} if op == "webdataset" else {}
        yield f"{op}, sound", {"source": {op: {**place, "features": {"image": sound, "label": {"kind": "label", "classes": 3}}}}}
    happening = {"events": {"kind": "events"}, "what": {"kind": "label", "with": "events", "classes": 3}}
    output = {"x": "image", "y": ["events", "events_valid", "what"]}
    yield "csv, sound with events", {"source": {"csv": {"path": "t.csv", "features": {**of_sound, **happening}}}, "output": output}
    output = {"x": "image", "y": "what", "encode": {"what": "frames"}}
    yield "arrays, sound with events", {"source": {"arrays": {"features": {"image": sound, **happening}}}, "output": output}
    window = {"length": 96, "horizon": 24}
    rows = {"x": {"kind": "series", "columns": ["a", "b"]}, "y": {"kind": "series", "column": "a", "at": "horizon"}}
    rows |= {"state": {"kind": "label", "classes": 3, "at": "past"}, "seen": {"kind": "series", "columns": ["a"], "observed": True}}
    table = {"csv": {"path": "t.csv"}, "order": "time", "window": window, "features": rows}
    yield "series", {"source": {"series": table}, "output": {"x": ["x", "seen"], "y": ["y", "state"]}}


def worked_on(x: FeatureType) -> str:
    """What a step works on, as in `BEFORE`."""
    return "spectra" if x.kind == "audio" and len(x.shape) == 3 else x.kind


def holds(name: str) -> str:
    """The kind of feature that a source gives."""
    return "audio" if "sound" in name or name == "audio_folder" else "series" if name == "series" else "image"


@cache
def parsed_sources() -> dict[str, PipelineSpec]:
    """A spec for each source, without steps."""
    made = {}
    for name, sections in written_sources():
        both = {"output": {"encode": {"label": "one_hot"}}, **sections}
        if name == "audio_folder":
            both["output"] = {"x": "audio", "encode": {"label": "one_hot"}}
        if "two" in name and not name.startswith("files"):
            both["output"] = {"x": ["image", "second"], "y": "label", "encode": {"label": "one_hot"}}
        splits = {} if sections.get("splits", True) else {"splits": {}}
        made[name] = load_spec({k: v for k, v in both.items() if k != "splits"}, **splits)
    return made


def test_the_sources_are_all_here() -> None:
    assert {name.split(",")[0].split()[-1] for name in parsed_sources()} - {"npz"} == set(sources())


def written_steps() -> Iterator[tuple[type[Transform], str, dict[str, Any]]]:
    """Every worked example of every step, with what it works on: as it is, for some examples alone, and as a part of policies."""
    for op in transforms().values():
        for example in op.examples:
            written = yaml.safe_load(example.yaml)
            name, arguments = (written, {}) if isinstance(written, str) else next(iter(written.items()))
            on = worked_on(example.given)
            some = {"probability": 0.3} if "probability" in op.model_fields and not (on == "audio" and name == "random_crop") else {}
            yield op, on, {name: arguments}
            if some:
                yield op, on, {name: {**arguments, **some}}
            if not issubclass(op, (DecodeTransform, CombiningTransform)):
                inner = [{name: {**arguments, **some}}, *INNER[on]]
                yield op, on, {"one_of": {"steps": inner, "weights": [1, 2, 9][: len(inner)]}}
                yield op, on, {"some_of": {"steps": inner, "count": [0, 2], "probability": 0.5}}


@cache
def combined_steps() -> tuple[tuple[str, str, list[Any]], ...]:
    """What the steps of specs are, with the kind of feature that they are for: each example behind each of `BEFORE`."""
    return tuple(
        (f"{where}, then {written}", "audio" if on == "spectra" else on, [*before, written])
        for op, on, written in written_steps()
        for where, before in BEFORE[on].items()
        if not (issubclass(op, DecodeTransform) and before)
    )


@cache
def parsed_steps(number: int) -> tuple[Transform, ...] | None:
    """The steps of that number; `None` for what a policy cannot hold."""
    said, _, written = combined_steps()[number]
    found = load({"pipegen": 1, "source": {"image_folder": {"path": "x"}}, "transforms": written}, env={})
    if found.spec is None:
        assert {d.code for d in found.diagnostics.items if d.severity.value == "error"} <= {"PG226"}, said
        return None
    return found.spec.transforms


@cache
def parsed_runtimes() -> tuple[Runtime, ...]:
    found = (load_spec(runtime={**runtime, "cache": how}).runtime for runtime in RUNTIMES for how in CACHES)
    return tuple(found)


IN_VIEWS = {"image": ("random_flip", {}), "audio": ("normalize", {"mean": 0.0, "std": 2.0}), "series": ("random_jitter", {"std": 0.1})}
"""A step on each kind that a source gives, with its arguments."""


def branches(kind: str) -> dict[str, View]:
    """Views of an example, some of them with a step of their own."""
    name, arguments = IN_VIEWS[kind]
    return {"large": View(count=2, when="all"), "small": View(transforms=(transforms()[name].model_validate(arguments),))}


VIEWS: tuple[Callable[[str], Any], ...] = (lambda _: 2, branches)
"""Several views of each example: all alike, and in branches."""


SHARES = 16
"""The cases that all combinations are tried in: a third of a million, more than an hour has room for."""


def compile_all(stride: int, views: Callable[[str], Any] = lambda _: 1, first: int = 0) -> tuple[int, int]:
    """Every `stride`-th combination of a source and steps, from the `first` on, through every pass, with every cache.

    Returns:
        How many compiled, and of how many `validate` says what is wrong.
    """
    locate = load({"pipegen": 1}, env={}).locate.label
    gc.freeze()  # the specs and steps live on: searched for garbage, they take a tenth of the time
    every = list(product(parsed_sources().items(), enumerate((said, kind) for said, kind, _ in combined_steps())))
    pairs = [(source, (which, said)) for source, (which, (said, kind)) in every if kind == holds(source[0])]
    compiled = refused = 0
    tried: dict[tuple[str, int, int], list[Plan]] = {}  # of evaluation: most steps are left out there, so plans repeat
    for number, ((name, spec), (which, said)) in enumerate(pairs[first::stride], first):
        if (steps := parsed_steps(which)) is None:
            continue
        seen = views(holds(name))
        whole = spec.model_copy(update={"transforms": steps, "views": seen})
        found = check(whole, locate)
        alone = found if seen == 1 else check(whole.model_copy(update={"views": 1}), locate)
        if {d.code for d in alone.diagnostics if d.severity.value == "error"} == {"PG210"}:
            continue  # splits that differ in one image alone: views have other names than the image that is evaluated
        if found.diagnostics.has_errors:
            refused += 1
            continue
        compiled += 1
        given = DATA[number % len(DATA)]
        before = tried.setdefault((name, number % len(DATA), number % len(RUNTIMES)), [])
        plans = [plan for plan in found.plans.values() if plan not in before]
        before += [plan for plan in plans if plan.split != "train"]
        for runtime in parsed_runtimes()[number % len(RUNTIMES) * len(CACHES) :][: len(CACHES)]:
            for plan in plans:
                try:
                    optimise(whole.model_copy(update={"runtime": runtime}), plan, **given)
                except Exception as error:
                    raise AssertionError(f"{name}: {said}, {runtime}, {given}") from error
    return compiled, refused


def test_a_sample_of_all_combinations_compiles() -> None:
    compiled, refused = compile_all(stride=1301)
    assert compiled > max(refused, 100)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("views", VIEWS, ids=["two", "branches"])
def test_views_compile_wherever_one_image_does(views: Callable[[str], Any]) -> None:
    assert compile_all(stride=37, views=views) == compile_all(stride=37)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(SHARES))
def test_every_combination_compiles(first: int) -> None:
    compiled, refused = compile_all(stride=SHARES, first=first)
    assert compiled > refused


def test_small_images_are_read_together_and_large_ones_branched() -> None:
    """Where a batch of rows is read as one, only large images make up for reading each by itself, if XLA compiles nothing."""
    for size, branches in ((32, False), (224, True)):
        image = {"kind": "image", "size": size, "channels": 3, "bits": 8}
        source = {"arrays": {"features": {"image": image, "label": {"kind": "label"}}}}
        for jit in ("never", "auto"):
            found = load_spec(source=source, transforms=["rand_augment"], runtime={"jit": jit})
            plan = optimise(found, check(found, load({"pipegen": 1}, env={}).locate.label).plans["train"]).plan
            kinds = [type(node) for node in plan.nodes]
            assert (kinds.index(Read) < kinds.index(Batch)) == (branches and jit == "never")
            assert any(isinstance(stage, Branch) for stage in plan.stages()) == (branches and jit == "never")
            assert any(isinstance(node, Kernel) and node.rows for node in plan.nodes) == (jit == "auto")


@pytest.mark.tf
@pytest.mark.parametrize(
    ("size", "steps"),
    [
        (12, ["random_flip", "rand_augment"]),
        pytest.param(
            160,
            [{"random_equalization": {"probability": 0.4}}, {"random_sharpness": {"factor": 0.5, "probability": 0.3}}],
            marks=pytest.mark.nightly,  # by day what is branched is compared in `test_execution.py`
        ),
    ],
)
def test_what_validate_lets_pass_is_built_and_runs(size: int, steps: list[Any]) -> None:
    """Rare and dear steps on arrays, in the batch and branched: each example is the same whatever the batch is."""
    import numpy as np

    import pipegen

    rows = {"image": np.random.default_rng(0).integers(0, 256, (8, size, size, 3), np.uint8), "label": np.arange(8) % 2}
    source = {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    got = []
    for batch in (4, 8):
        spec = {"pipegen": 1, "source": source, "transforms": steps, "batch": {"size": batch}}
        pipe = pipegen.build(spec, data=rows, runtime={"jit": "never"})
        got.append(np.concatenate([x for x, _ in pipe.train.as_numpy_iterator()]))
    assert got[0].shape == (8, size, size, 3)
    np.testing.assert_array_equal(got[0], got[1])


@pytest.mark.parametrize(("probability", "branches"), [(0.69, True), (0.7, True), (0.71, False), (1, False)])
def test_what_seven_examples_of_ten_need_is_branched(probability: float, branches: bool) -> None:
    steps = {"transforms": [{"resize": {"size": 64}}, {"random_jpeg": {"quality": [30, 90], "probability": probability}}]}
    plan = compiled(built(steps, classes=3), load_spec(steps)).plan
    assert any(isinstance(stage, Branch) for stage in plan.stages()) == branches


@pytest.mark.parametrize(("probability", "size", "rows"), [(0.5, 224, True), (0.5, 4, False), (0.98, 224, False), (1, 224, False)])
def test_what_saves_more_than_the_copies_skips_examples(probability: float, size: int, rows: bool) -> None:
    steps = {"transforms": [{"resize": {"size": size}}, {"random_median_blur": {"probability": probability}}]}
    plan = compiled(built(steps, classes=3), load_spec(steps)).plan
    assert any(isinstance(node, Kernel) and node.rows for node in plan.nodes) == rows
