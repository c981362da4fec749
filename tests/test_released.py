"""What a pipeline opened is closed when the pipeline is gone, and not while anything that was made of it is used."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path
from pipes import RESIZE, sections, stream, write_photos
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pipegen
from pipegen.backend.reading.damage import Quarantine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("released")
    write_photos(root / "photos", per_class=1)
    images = np.arange(8 * 24 * 24 * 3, dtype=np.int64).astype(np.uint8).reshape(8, 24, 24, 3)
    np.savez(root / "a.npz", image=images, label=np.arange(8) % 3)
    return root


def spec_of(folder: Path, kind: str) -> dict[str, Any]:
    if kind == "folder":
        return sections(folder / "photos", transforms=[RESIZE], splits={}, batch={"size": 2})
    arrays = {"arrays": {"path": str(folder / "a.npz"), "features": {"image": {"kind": "image"}, "label": {"kind": "label"}}}}
    if kind == "arrays":
        return {"pipegen": 1, "source": arrays, "transforms": [RESIZE], "batch": {"size": 2}}
    photos = {"image_folder": {"path": str(folder / "photos")}}
    mix = {"epoch": "shortest", "parts": {"a": {"source": photos}, "b": {"source": arrays}}}
    return {"pipegen": 1, "source": {"mix": mix}, "transforms": [RESIZE], "batch": {"size": 2}}


@pytest.fixture(autouse=True)
def _only_what_is_new() -> Iterator[None]:
    """What was there before a test is not searched for garbage, which takes a quarter of a second each time."""
    gc.freeze()
    yield
    gc.unfreeze()


def opened(folder: Path) -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return sorted(name for name in found if name.startswith(str(folder)))


def build(folder: Path, kind: str, cache: Any) -> pipegen.Pipeline:
    return pipegen.build(spec_of(folder, kind), runtime={"jit": "never", "cache": cache})


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed by Linux")
@pytest.mark.parametrize("kind", ["folder", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("arrays", "mix"))])
def test_files_of_a_cache_are_closed_with_the_pipeline(folder: Path, tmp_path: Path, kind: str) -> None:
    for epoch in range(2):
        pipe = build(folder, kind, {"disk": str(tmp_path / "cache")})
        for _ in pipe.dataset("train", epoch=epoch):
            pass
        assert opened(tmp_path) or opened(folder), "the test would find nothing"
        engine = weakref.ref(pipe._engine)
        del pipe
        gc.collect()
        assert engine() is None
        assert opened(tmp_path) + opened(folder) == []


def test_a_damaged_record_is_noted_by_what_goes_with_the_pipeline(folder: Path, tmp_path: Path) -> None:
    """`skip` calls into Python, too, and what it calls knows all records."""
    write_photos(tmp_path / "photos", per_class=4)
    next(iter((tmp_path / "photos").rglob("*.jpg"))).write_bytes(b"damaged")
    spec = sections(tmp_path / "photos", transforms=[RESIZE], splits={}, batch={"size": 2})
    skip = {"errors": {"decode": {"skip": {"max_fraction": 0.5}}}}
    pipe = pipegen.build(spec | skip, runtime={"jit": "never", "cache": {"disk": str(tmp_path / "cache")}})
    for _ in pipe.dataset("train", epoch=0):
        pass
    noted = [called for called in gc.get_objects() if isinstance(called, Quarantine)]
    before = [weakref.ref(called) for called in noted if any(name.startswith(str(tmp_path)) for name in called.damaged.values())]
    noted.clear()  # what other tests of the process keep is theirs
    assert before, "the test would find nothing"
    del pipe
    gc.collect()
    assert [quarantine for quarantine in (reference() for reference in before) if quarantine is not None] == []
    assert opened(tmp_path) == []


@pytest.mark.parametrize("of", ["numpy", "eager"])
@pytest.mark.parametrize("where", ["function", "map", "branch", "loop"])
def test_what_a_graph_calls_is_let_go_with_the_graph(of: str, where: str) -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.python_calls import numpy_function, py_function

    class Twice:
        def __call__(self, x: Any) -> Any:
            return np.int64(2) * x

    twice = Twice()
    held = weakref.ref(twice)

    def call(x: Any, twice: Any = twice) -> Any:
        y = numpy_function(twice, [x], tf.int64) if of == "numpy" else py_function(twice, [x], tf.int64)
        return tf.ensure_shape(y, [])

    def branch(x: Any, call: Any = call) -> Any:
        return tf.cond(x >= 0, lambda: call(x), lambda: x)

    def loop(x: Any, call: Any = call) -> Any:
        return tf.while_loop(lambda i, _: i < 1, lambda i, y: (i + 1, call(y)), (tf.constant(0), x))[1]

    body = {"function": call, "map": call, "branch": branch, "loop": loop}[where]
    made: Any
    if where == "map":
        made = tf.data.Dataset.range(3).map(body)
    else:
        graph = tf.function(body, input_signature=[tf.TensorSpec([], tf.int64)], autograph=False).get_concrete_function()
        made = [graph(tf.constant(i, tf.int64)) for i in range(3)]
        gc.collect()
        assert int(graph(tf.constant(5, tf.int64))) == 10, "it is not let go before"
        del graph
    assert [int(value) for value in made] == [0, 2, 4]
    del made, twice, call, branch, loop, body
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("use", ["iterator", *(pytest.param(use, marks=pytest.mark.nightly) for use in ("dataset", "derived", "train"))])
def test_what_was_made_of_a_pipeline_goes_on_without_it(folder: Path, tmp_path: Path, use: str) -> None:
    expected = stream(build(folder, "folder", "none").dataset("train", epoch=0))
    pipe = build(folder, "folder", {"disk": str(tmp_path / "cache")})
    made: Any = pipe.train if use == "train" else pipe.dataset("train", epoch=0)
    if use == "derived":
        made = made.map(lambda x, y: (x, y)).prefetch(1)
    if use == "iterator":
        made = iter(made)
    del pipe
    gc.collect()
    got = stream(made)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one, other)
