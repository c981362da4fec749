"""Several views of an example: each is, bit for bit, what a spec gives that has its steps and its draws and nothing else."""

from __future__ import annotations

import json
from functools import cache
from pipes import picture
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

import pipegen
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf

HEAD: list[Any] = [{"resize": {"shorter_side": 30}}]
LARGE: list[Any] = [{"random_resized_crop": {"size": 16, "area": [0.4, 1]}}, "random_flip", {"random_rotation": {"degrees": 20}}]
SMALL: list[Any] = [{"random_crop": {"size": 10}}, {"random_solarization": {"threshold": [0, 255]}}, "random_flip"]
CROPS: dict[str, Any] = {"large": {"count": 2, "transforms": LARGE}, "small": {"count": 2, "transforms": SMALL}}
TWINS = {"image_1": LARGE, "image_2": LARGE}
BRANCHES = {"image_large_1": LARGE, "image_large_2": LARGE, "image_small_1": SMALL, "image_small_2": SMALL}
"""The steps of each view, behind `HEAD`; the first has the draws of the steps alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of several sizes, a mask of each, which says where the picture is bright, sounds, and a series."""
    root = tmp_path_factory.mktemp("views")
    for name in ("images", "masks", "sounds"):
        (root / name).mkdir()
    for i in range(13):
        pixels = picture(i, 30 + 3 * (i % 4), 34 + 5 * (i % 3))
        Image.fromarray(pixels).save(root / "images" / f"{i:02}.png")
        Image.fromarray((pixels[..., 0] > 127).astype(np.uint8)).save(root / "masks" / f"{i:02}.png")
        samples = np.sin(np.arange(16_000 * 0.6) * (0.02 + 0.01 * i)) * np.linspace(0.1, 0.9, 9600)
        wavfile.write(root / "sounds" / f"{i:02}.wav", 16_000, samples.astype(np.float32))
    rng = np.random.default_rng(0)
    np.savez(root / "series.npz", x=np.cumsum(rng.normal(size=(13 * 24, 2)), 0).astype(np.float32))
    return root


def feature(folder: Path, **more: Any) -> dict[str, Any]:
    return {"kind": "image", "path": f"{folder}/images/*.png", **more}


def mask(folder: Path, of: str) -> dict[str, Any]:
    return {"kind": "mask", "path": f"{folder}/masks/*.png", "of": of, "classes": 2}


def build(features: dict[str, Any], output: dict[str, Any], runtime: dict[str, Any] | None = None, **own: Any) -> Pipeline:
    spec = {
        "pipegen": 1,
        "source": {"files": {"features": features}},
        "splits": {"parts": {"train": 0.8, "validation": 0.2}},
        "batch": {"size": 4},
        "output": {"y": None, "dtype": "uint8", **output},
        "seed": 5,
        **own,
    }
    return pipegen.build(spec, runtime={"jit": "never", "cache": "none", **(runtime or {})})


def epoch(pipe: Pipeline, split: str = "train", **how: Any) -> list[Any]:
    return list(pipe.dataset(split, **{"epoch": 1, **how}).as_numpy_iterator())


def alone(folder: Path, view: str, steps: list[Any], *, first: bool, **own: Any) -> Iterator[Any]:
    """The batches of one view by a spec without views: an image of its own on the same files, whose name keys the draws."""
    features = {view: feature(folder)} if first else {"image": feature(folder), view: feature(folder)}
    yield from epoch(build(features, {"x": view}, transforms=[*HEAD, *steps], **own))


def test_two_views_are_two_images_on_the_same_files(folder: Path) -> None:
    """Each has draws of its own, by its name, as an image beside another has."""
    steps = [*HEAD, *LARGE[:2]]
    views = build({"image": feature(folder)}, {"x": "image"}, transforms=steps, views=2)
    apart = build({"image": feature(folder), "image_2": feature(folder)}, {"x": ["image", "image_2"]}, transforms=steps)
    seen = epoch(views)
    for batch, ((first, second),) in zip(seen, epoch(apart), strict=True):
        np.testing.assert_array_equal(batch["image_1"], first)
        np.testing.assert_array_equal(batch["image_2"], second)
        assert not np.array_equal(first, second)
    np.testing.assert_array_equal(epoch(views, step=1)[0]["image_2"], seen[1]["image_2"])


@pytest.mark.nightly
@pytest.mark.parametrize("views", [2, {"a": {"count": 2}, "b": {}}], ids=["two", "branches"])
def test_the_first_view_of_each_image_is_that_image_without_views(folder: Path, views: Any) -> None:
    """Of two images that draw for themselves, and of a mask of the second: on every split."""
    features = {"image": feature(folder), "radar": feature(folder), "mask": mask(folder, "radar")}
    steps = [*HEAD, *LARGE, {"random_flip": {"when": "all"}}]
    first = "1" if views == 2 else "a_1"
    named = {"x": {name: f"{name}_{first}" for name in features}}
    plain = build(features, {"x": {name: name for name in features}}, transforms=steps)
    several = build(features, named, transforms=steps, views=views)
    for split in ("train", "validation"):
        for batch, wanted in zip(epoch(several, split), epoch(plain, split), strict=True):
            for name in features:
                np.testing.assert_array_equal(batch[name], wanted[name], err_msg=f"{split} {name}")
    every = epoch(build(features, {"x": "radar"}, transforms=steps, views=views))[0]
    shown = {view.tobytes() for view in every.values()}
    assert len(shown) == len(every) > 1, "each view of the second image draws for itself"


@pytest.mark.nightly
@pytest.mark.parametrize(("views", "each"), [(2, TWINS), (CROPS, BRANCHES)], ids=["two", "crops"])
def test_each_view_is_what_a_spec_with_its_draws_gives(folder: Path, views: Any, each: dict[str, Any]) -> None:
    common = [*HEAD, *LARGE] if views == 2 else HEAD
    seen = epoch(build({"image": feature(folder)}, {"x": "image"}, transforms=common, views=views))
    assert len(seen) == 2
    assert list(seen[0]) == list(each)
    for number, (view, steps) in enumerate(each.items()):
        for batch, other in zip(seen, alone(folder, view, steps, first=number == 0), strict=True):
            np.testing.assert_array_equal(batch[view], other, err_msg=view)
    one, two, *_ = each
    assert not np.array_equal(seen[0][one], seen[0][two]), "views differ"


@pytest.mark.nightly
def test_resumed_shared_out_and_cached_epochs_have_the_same_views(folder: Path) -> None:
    image = {"image": feature(folder), "mask": mask(folder, "image")}
    steps = [{"resize": {"size": 20}}, "random_flip", {"random_rotation": {"degrees": 20}}]
    made = [build(image, {"x": "image", "y": "mask"}, {"cache": cache}, transforms=steps, views=2) for cache in ("none", "memory")]
    whole, cached = (epoch(pipe) for pipe in made)
    for (x, y), (held, labels) in zip(whole, cached, strict=True):
        for name in ("1", "2"):
            np.testing.assert_array_equal(x[f"image_{name}"], held[f"image_{name}"])
            np.testing.assert_array_equal(y[f"mask_{name}"], labels[f"mask_{name}"])
    later = epoch(made[1], step=1)
    hosts = [epoch(made[0], shard=(host, 2)) for host in (0, 1)]
    np.testing.assert_array_equal(later[0][0]["image_2"], whole[1][0]["image_2"])
    shared = np.concatenate([host[1][1]["mask_2"] for host in hosts])
    np.testing.assert_array_equal(shared, whole[1][1]["mask_2"])
    two = image | {"image_2": feature(folder), "mask_2": mask(folder, "image_2")}
    apart = epoch(build(two, {"x": ["image", "image_2"], "y": ["mask", "mask_2"]}, transforms=steps))
    np.testing.assert_array_equal(apart[0][1][1], whole[0][1]["mask_2"], "a mask goes with its view")


@pytest.mark.nightly
def test_other_splits_have_the_first_view_alone(folder: Path) -> None:
    one = build({"image": feature(folder)}, {"x": "image"}, transforms=[*HEAD, *LARGE])
    views = build({"image": feature(folder)}, {"x": {"a": "image_large", "b": "image_small_2"}}, transforms=HEAD, views=CROPS)
    assert list(views.element_spec) == ["a_1", "a_2", "b"]
    for batch, other in zip(epoch(views, "validation"), epoch(one, "validation"), strict=True):
        assert list(batch) == ["a"]
        np.testing.assert_array_equal(batch["a"], other)
    predicted = next(iter(views.predict_on(str(folder / "images" / "03.png")).dataset.as_numpy_iterator()))
    assert list(predicted) == ["a"]
    assert predicted["a"].shape == (1, 16, 16, 3)
    sheet = views.preview(rows=1, draws=2, cell=40)
    assert sheet.width == one.preview(rows=1, draws=6, cell=40).width, "three views of two epochs"


@pytest.mark.nightly
def test_examples_are_combined_with_all_their_views(folder: Path, tmp_path: Path) -> None:
    for name in ("day", "night"):
        (tmp_path / name).mkdir()
    for i, path in enumerate(sorted((folder / "images").iterdir())):
        (tmp_path / ("day", "night")[i % 2] / path.name).write_bytes(path.read_bytes())
    common = {"source": {"image_folder": {"path": str(tmp_path)}}, "output": {"encode": {"label": "one_hot"}, "dtype": "uint8"}}
    steps = [{"resize": {"size": 16}}, {"mixup": {"alpha": 1.0}}, {"random_rotation": {"degrees": 30}}]
    spec = {"pipegen": 1, "splits": {"parts": {"train": 0.8, "validation": 0.2}}, "transforms": steps, "batch": {"size": 8}, **common}
    one, two = (pipegen.build({**spec, "views": views}, runtime={"jit": "never"}) for views in (1, 2))
    for (x, y), (seen, labels) in zip(epoch(one), epoch(two), strict=True):
        np.testing.assert_array_equal(seen["image_1"], x)
        np.testing.assert_array_equal(labels, y)
        assert not np.array_equal(seen["image_2"], x)


@pytest.mark.nightly
def test_a_layer_is_for_one_image(folder: Path) -> None:
    pipe = build({"image": feature(folder)}, {"x": "image"}, transforms=[{"resize": {"size": 16}}, "random_flip"], views=2)
    with pytest.raises(SpecError, match=r"PG544.*has `views`"):
        pipe.dataset("train", stages="element")


def worked_examples() -> list[Any]:
    """Every worked example of every random step, with the kind that it acts on."""
    import yaml

    from pipegen.ops.families.combining import CombiningTransform
    from pipegen.ops.registry import transforms

    steps = [op for op in transforms().values() if op.random and not issubclass(op, CombiningTransform) and op.calls_python == "never"]
    examples = [example for op in steps for example in op.examples[:1]]
    return [(yaml.safe_load(e.yaml), "spectrum" if len(e.given.shape) == 3 and e.given.kind == "audio" else e.given.kind) for e in examples]


def epochs(pipe: Pipeline) -> list[list[Any]]:
    """The epochs 0 and 1 of training, and what is left of epoch 1 behind its first batch: of one dataset, whose graph is made once."""
    found = []
    for start in ((0, 0), (1, 0), (1, 1)):
        pipe.seek(*start)
        found.append(list(pipe.train.as_numpy_iterator()))
    return found


def around(kind: str, step: Any) -> list[Any]:
    """A step among those that it needs."""
    if kind in ("audio", "spectrum"):
        return [
            {"crop_or_pad": {"seconds": 0.5}},
            *(["mel_spectrogram", step] if kind == "spectrum" else [step, {"crop_or_pad": {"seconds": 0.4}}]),
        ]
    return [step] if kind == "series" else [{"resize": {"size": 256}}, step, {"resize": {"size": 16}}]


def many(folder: Path, kind: str, count: int) -> dict[str, Any]:
    """What differs in a spec of one or two features of a kind on the same files; a window is as long as its stride."""
    names = ["image", "image_2"][:count]
    output: dict[str, Any] = {"x": {"image_1": "image", "image_2": "image_2"} if count == 2 else "image"}
    if kind == "image":
        return {"features": {name: feature(folder) for name in names}, "output": output}
    output |= {"dtype": "float32"}
    if kind == "series":
        given = {"npz": {"path": f"{folder}/series.npz"}, "window": {"length": 24, "stride": 24}}
        features = {name: {"kind": "series", "column": "x"} for name in names}
        return {"features": {}, "source": {"series": {**given, "features": features}}, "output": output}
    sound = {"kind": "audio", "path": f"{folder}/sounds/*.wav", "rate": 16000}
    return {"features": dict.fromkeys(names, sound), "output": output}


@pytest.fixture(scope="module")
def apart(folder: Path) -> Callable[[str, str], tuple[list[Any], list[Any]]]:
    """What two features of a kind on the same files give by steps that are written as JSON: the epochs of training, and validation. Each
    has draws of its own, as views have, also where series of one window share those of a step."""
    from pipegen.ops.families.series import TimeTransform

    @cache
    def get(kind: str, steps: str) -> tuple[list[Any], list[Any]]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(TimeTransform, "shares_draws", lambda _step, _kind: False)
            pipe = build(**many(folder, kind, 2), transforms=json.loads(steps))
        return epochs(pipe), epoch(pipe, "validation")

    return get


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kept", ["none", "memory", "disk"])
@pytest.mark.parametrize(("step", "kind"), worked_examples(), ids=str)
def test_every_step_gives_each_view_what_it_gives_alone(step: Any, kind: str, kept: str, folder: Path, tmp_path: Path, apart: Any) -> None:
    """Step × cache × split × resume × host; where a cache is read, the host's share is of it."""
    steps = around(kind, step)
    runtime = {"cache": {"disk": str(tmp_path)} if kept == "disk" else kept}
    views = build(**many(folder, kind, 1), runtime=runtime, views=2, transforms=steps)
    wanted, validation = apart(kind, json.dumps(steps))
    assert [len(batches) for batches in wanted] == [2, 2, 1]
    same(epochs(views), wanted)
    if kept == "none":
        for batch, other in zip(epoch(views, "validation"), validation, strict=True):
            np.testing.assert_array_equal(batch, other["image_1"])
    else:
        same([epoch(views, shard=(1, 2))], [[{name: pixels[2:] for name, pixels in batch.items()} for batch in wanted[1]]])


def same(found: list[list[Any]], wanted: list[list[Any]]) -> None:
    for number, (mine, others) in enumerate(zip(found, wanted, strict=True)):
        for batch, other in zip(mine, others, strict=True):
            for name in ("image_1", "image_2"):
                np.testing.assert_array_equal(batch[name], other[name], err_msg=f"{name} {number}")


@pytest.mark.nightly
def test_an_image_without_views_is_what_it_is_without_any(folder: Path) -> None:
    """Beside one that has some: bit for bit, on every split, resumed, and with its mask; and so is the first view."""
    features = {"image": feature(folder), "radar": feature(folder), "mask": mask(folder, "radar")}
    steps = [*HEAD, *LARGE]
    output = {"x": ["image", "radar", "mask"]}
    plain = build(features, output, transforms=steps)
    for views in (
        {"a": {"count": 3, "of": "image"}},
        {"a": {"of": "image", "count": 2}, "b": {"of": ["image"], "transforms": ["random_flip"]}},
    ):
        pipe = build(features, output, transforms=steps, views=views)
        for how in ({}, {"step": 1}, {"shard": (1, 2)}):
            for ((first, *_, radar, labels),), (wanted,) in zip(epoch(pipe, **how), epoch(plain, **how), strict=True):
                for mine, other in zip((first, radar, labels), wanted, strict=True):
                    np.testing.assert_array_equal(mine, other)
        for mine, other in zip(epoch(pipe, "validation"), epoch(plain, "validation"), strict=True):
            for a, b in zip(mine[0], other[0], strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.nightly
def test_jpegs_are_decoded_at_a_scale_that_all_views_have(tmp_path: Path) -> None:
    """A `resize` of all views decides it, and then each view has the pixels of a spec without views; sizes of branches decide nothing."""
    (tmp_path / "images").mkdir()
    for i in range(6):
        Image.fromarray(picture(i, 260, 340)).save(tmp_path / "images" / f"{i}.jpg")
    image = {"image": {"kind": "image", "path": f"{tmp_path}/images/*.jpg"}}
    whole, sides = [{"decode": {"scaled": "never"}}], {"large": 48, "small": 12}

    def seen(steps: list[Any], views: Any = 1) -> list[Any]:
        return epoch(build(image, {"x": "image"}, transforms=steps, views=views))

    common = [{"resize": {"size": 40}}]
    for batch, wanted in zip(seen(common, 2), seen(common), strict=True):
        np.testing.assert_array_equal(batch["image_2"], wanted)
    branches = {name: {"transforms": [{"resize": {"size": side}}]} for name, side in sides.items()}
    alone = [seen([*whole, {"resize": {"size": side}}]) for side in sides.values()]
    for batch, *wanted in zip(seen([], branches), *alone, strict=True):
        for mine, other in zip(batch.values(), wanted, strict=True):
            np.testing.assert_array_equal(mine, other)
