"""`python` and `random_python` at work: what the function gets, what is checked, and what happens when it fails."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from pipes import RESIZE, SIZE, batches, epoch_of, same, sections, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from my_pkg import filters

import pipegen
from pipegen.errors import DataError, InternalError, SpecError
from pipegen.ops.transforms.python import Python
from pipegen.types import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.tf

STEPS: list[Any] = [RESIZE, {"python": {"function": "my_pkg.filters:denoise"}}, {"random_python": {"function": "my_pkg.weather:rain"}}]


def build(folder: Path, runtime: dict[str, Any] | None = None, **own: Any) -> Any:
    whole = {"jit": "never", "cache": "none", **(runtime or {})}
    return pipegen.build(sections(folder, **{"transforms": STEPS, **own}), runtime=whole, allow_code=["my_pkg"])


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return build(photo_folder)


@pytest.fixture(scope="module")
def epochs(pipe: Any) -> list[tuple[Any, ...]]:
    """The first two epochs."""
    return [epoch_of(pipe, 0), epoch_of(pipe, 1)]


def test_the_function_is_called_on_each_image(pipe: Any, epochs: Any, photo_folder: Path) -> None:
    plain = build(photo_folder, transforms=[RESIZE])
    expected = np.stack([filters.denoise(np.rint(image).astype(np.uint8)) for image in stream(plain.validation)[0]])
    np.testing.assert_array_equal(stream(pipe.validation)[0], expected, err_msg="and no rain falls in the evaluation")
    images = epochs[0][0]
    brightest = images.max((1, 2, 3), keepdims=True)
    wet = (images == brightest).all(-1).mean((1, 2))
    assert 0.15 < wet.mean() < 0.45
    assert not np.array_equal(epochs[0][0], epochs[1][0])


@pytest.mark.parametrize("jit", ["never", pytest.param("always", marks=pytest.mark.nightly)])
def test_the_numbers_depend_on_nothing_but_what_they_should(epochs: Any, photo_folder: Path, jit: str) -> None:
    other = build(photo_folder, {"jit": jit, "threads": 1}, batch={"size": 4})
    same(epoch_of(other, 0)[:1], epochs[0][:1])
    state = json.loads(json.dumps(other.state() | {"epoch": 1, "step": 4, "examples": 16}))
    other.restore(state)
    same(stream(other.train), [part[16:] for part in epochs[1]])


def test_a_copy_and_a_pickle_keep_the_permission_and_not_the_function(pipe: Any) -> None:
    assert pickle.loads(pickle.dumps(pipe.spec)).model.transforms[1]._callee is None
    with pytest.raises(InternalError, match="before it was looked up"):
        _ = pickle.loads(pickle.dumps(pipe.spec.model.transforms[1])).callee
    same(stream(copy.deepcopy(pipe).validation), stream(pipe.validation))
    with pytest.raises(SpecError, match="PG240"):
        pipegen.build(pipe.spec)


def test_predictions_call_it_too(pipe: Any) -> None:
    files = pipe.files("validation")[:3]
    (images,) = (np.concatenate([np.asarray(b) for b in pipe.predict_on(files).dataset]),)
    np.testing.assert_array_equal(images, stream(pipe.validation)[0][:3])


def test_a_function_may_write_into_what_it_gets_and_keep_what_it_gives() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 24, 24, 3), np.uint8)
    kept = images.copy()
    for function, runtime in (("denoise", {}), ("shared", {}), ("denoise", {"cache": "memory"})):
        spec = {
            "pipegen": 1,
            "source": {"arrays": {"features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": 2}}}},
            "splits": {"parts": {"train": 4, "validation": 8}},
            "transforms": [{"python": {"function": f"my_pkg.filters:{function}"}}],
            "batch": {"size": 4},
        }
        data = {"image": images, "label": np.arange(12) % 2}
        made = pipegen.build(spec, data=data, runtime={"jit": "never", **runtime}, allow_code=["my_pkg"])
        got = [stream(made.validation)[0] for _ in range(2)]
        np.testing.assert_array_equal(images, kept)
        np.testing.assert_array_equal(got[0], got[1])
        rows = {image.tobytes() for image in kept} if function == "shared" else {filters.blur(image).tobytes() for image in kept}
        assert {image.astype(np.uint8).tobytes() for image in got[0]} <= rows
        assert len({image.tobytes() for image in got[0]}) == 8


PROMISES: dict[str, tuple[dict[str, Any], str]] = {
    "doubles": ({}, "`my_pkg.filters:doubles` returned float64, and its step declares uint8; `.astype('uint8')` at its end would do"),
    "flat": ({}, "an array of 24×24 for an image of 24×24×3, and its step declares no other `shape`"),
    "trim": ({"shape": (None, 24, 3)}, "an array of 22×22×3, and its step declares ?×24×3"),
    "luminance": (
        {"dtype": "float32", "shape": (None, None, 3)},
        "an array of 24×24×1, and its step declares ?×?×3",
    ),
    "nothing": ({}, "returned nothing, and has to return a NumPy array"),
    "bright": ({"dtype": "float32", "range": (0, 1)}, "values from 2 to 257, and its step declares values from 0 to 1"),
    "broken": ({"dtype": "float32", "range": (0, 1)}, "values that are no numbers, and its step declares values from 0 to 1"),
    "stops": ({}, "`my_pkg.filters:stops` raised StopIteration ("),
    "refuses": ({}, "`my_pkg.filters:refuses` raised ValueError: the first pixel is bright ("),
}


@pytest.mark.parametrize("name", list(PROMISES))
def test_a_broken_promise_is_an_error(name: str) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.python_calls import reason

    arguments, message = PROMISES[name]
    step = Python(function=f"my_pkg.filters:{name}", **arguments).with_callee(getattr(filters, name))
    image = np.full((24, 24, 3), 255, np.uint8)
    image[0, 0] = [255, 0, 0]
    image[1] = 0
    with pytest.raises(tf.errors.OpError) as caught:
        step.apply(tf.constant(image), tf.zeros([0], tf.float64))
    assert message in reason(caught.value)


def test_what_is_promised_reaches_the_graph() -> None:
    import tensorflow as tf

    step = Python(function="my_pkg.filters:luminance", dtype="float32", shape=(24, None, 1), range=(0, 1)).with_callee(filters.luminance)
    image = tf.constant(np.random.default_rng(0).integers(0, 256, (24, 30, 3), np.uint8))
    made = tf.function(lambda x: step.apply(x, tf.zeros([0], tf.float64)))
    assert made.get_concrete_function(image).output_shapes.as_list() == [24, None, 1]
    out = made(image)
    assert (out.dtype, out.shape) == (tf.float32, (24, 30, 1))
    unit = step.infer(_type(image))
    assert unit.interval == Interval(0, 1)
    assert unit.shape == (24, None, 1)


def _type(image: Any) -> Any:
    from pipegen.types import BYTE_RANGE, FeatureType

    return FeatureType("image", "uint8", tuple(image.shape), BYTE_RANGE)


@pytest.fixture(scope="module")
def failing(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Builds a pipeline out of a file whose function fails on some images."""
    file = tmp_path_factory.mktemp("failing") / "failing.pipegen.yaml"

    def make(function: str = "refuses", **own: Any) -> Any:
        steps = [RESIZE, {"python": {"function": f"my_pkg.filters:{function}"}}]
        file.write_text(yaml.safe_dump(sections(photo_folder, transforms=steps, **own), sort_keys=False))
        return pipegen.build(file, runtime={"jit": "never", "cache": "none"}, allow_code=["my_pkg"])

    return make


def test_a_function_that_fails_is_named_with_its_place_and_the_file(failing: Callable[..., Any]) -> None:
    pipe = failing()
    for dataset in (pipe.train, pipe.train.map(lambda x, y: (x, y)), pipe.validation):
        with pytest.raises(DataError) as caught:
            list(dataset)
        (line,) = str(caught.value).splitlines()
        path, place, where = re.fullmatch(
            r"cannot process (\S+) \(step `python`, (\S+)\): `my_pkg\.filters:refuses` raised ValueError: the first pixel is bright "
            r"\((\S+)\); .*",
            line,
        ).groups()  # type: ignore[union-attr]
        assert Path(path).is_file()
        assert place == f"{pipe.spec.loaded.file}:12:3"
        assert where.startswith(f"{filters.__file__}:")
    assert "skip: {max_fraction" not in line, "evaluation has no stand-ins"


@pytest.mark.nightly
def test_a_function_that_fails_can_be_skipped(failing: Callable[..., Any]) -> None:
    pipe = failing(errors={"decode": {"skip": {"max_fraction": 0.9}}})
    images = np.concatenate([b[0] for b in batches(pipe.train)])
    assert len(images) == 8 * pipe.steps("train")
    assert images[:, 0, 0, 0].max() <= 128
    limited = r"of 32 records are damaged, .*; cannot process \S+ \(step `python`, \S+\): `my_pkg\.filters:refuses` raised ValueError"
    with pytest.raises(DataError, match=limited):
        list(failing(errors={"decode": {"skip": {"max_fraction": 0.01}}}).train)


def test_the_end_of_an_iteration_in_a_function_ends_no_dataset(failing: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match=r"`my_pkg\.filters:stops` raised StopIteration"):
        list(failing("stops").validation)


def test_statistics_behind_a_function_are_kept_under_its_version_alone(photo_folder: Path, cache_home: Path) -> None:
    folder = cache_home / "pipegen" / "statistics"

    def kept() -> set[str]:
        return {p.name for p in folder.glob("*.json")}

    step: dict[str, Any] = {"function": "my_pkg.filters:denoise"}
    before = kept()
    for version, new in ((None, 0), (1, 1)):
        own = step if version is None else {**step, "version": version}
        made = build(photo_folder, transforms=[RESIZE, {"python": own}, {"standardize": {"statistics": "featurewise"}}])
        assert len(kept() - before) == new
        assert ("and not kept: a Python function without a `version`" in made.explain("train", passes=True)) == (version is None)
    assert abs(stream(made.train)[0].mean()) < 0.1
    assert made.train.element_spec[0].shape == (8, SIZE, SIZE, 3)
