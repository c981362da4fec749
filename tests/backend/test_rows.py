"""Arrays run: a batch is one gather of rows, and every rule of the order, of resuming and of the draws holds as for files."""

from __future__ import annotations

import json
import pickle
from functools import cache
from pipes import batches, close, epoch_of, same, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.api.pipeline import Pipeline

pytestmark = pytest.mark.tf

COUNT, SIDE = 61, 10
IMAGES = np.random.default_rng(3).integers(0, 256, (COUNT, SIDE, SIDE, 3), np.uint8)
LABELS: np.ndarray[Any, Any] = np.arange(COUNT) % 3
DATA = {"image": IMAGES, "label": LABELS[:, None]}
FEATURES = {"image": {"kind": "image"}, "label": {"kind": "label"}}
GEOMETRY: list[Any] = ["random_flip", {"random_rotation": {"degrees": 25}}]
COLOUR: list[Any] = [*GEOMETRY, {"random_brightness": {"factor": 0.3}}, {"normalize": {"preset": "tf"}}]
CROPS: list[Any] = [{"random_resized_crop": {"size": 8}}, *GEOMETRY]
"""Works on single images first, so that batches are stacked."""


def sections(**own: Any) -> dict[str, Any]:
    return {
        "pipegen": 1,
        "source": {"arrays": {"features": FEATURES}},
        "splits": {"parts": {"train": 0.75, "validation": 0.25}},
        "transforms": GEOMETRY,
        "batch": {"size": 8},
        **own,
    }


def pipeline(data: Any = DATA, runtime: Any = None, **own: Any) -> Pipeline:
    import pipegen

    return pipegen.build(sections(**own), data=data, runtime={"jit": "never", **(runtime or {})})


def shared(**own: Any) -> Pipeline:
    """Made once for all tests that ask for it; read it with `epoch_of`."""
    return _shared(json.dumps(own))


@cache
def _shared(own: str) -> Pipeline:
    return pipeline(**json.loads(own))


def as_written(pipe: Pipeline) -> Any:
    """The training dataset of the plan that no pass has touched: one example at a time."""
    from pipegen.backend.datasets.engine import Engine
    from pipegen.physical.extent import FIRST

    engine = Engine(pipe._compiled, pipe._plans)
    return engine.fixed("train", FIRST, None, None)


def kinds(pipe: Pipeline) -> list[str]:
    return [type(node).__name__ for node in pipe._compiled.splits["train"].plan.nodes]


@pytest.mark.smoke
def test_rows_come_as_they_are() -> None:
    pipe = shared(transforms=[], output={"dtype": "uint8"})
    assert kinds(pipe) == ["Index", "Batch", "Read", "Emit", "Prefetch"]
    for split in ("train", "validation"):
        rows = np.array(pipe.files(split), int)
        images, labels = stream(pipe[split]) if split == "validation" else epoch_of(pipe, 0)
        chosen = rows if split == "validation" else rows[[int(np.flatnonzero((IMAGES[rows] == i).all((1, 2, 3)))[0]) for i in images]]
        np.testing.assert_array_equal(images, IMAGES[chosen])
        np.testing.assert_array_equal(labels, LABELS[chosen])
        np.testing.assert_array_equal(pipe.labels(split), LABELS[rows])
    assert len(set(epoch_of(pipe, 0)[0][:, 0, 0, 0])) > 20, "an epoch repeats nothing"
    assert sorted([*pipe.files("train"), *pipe.files("validation")], key=int) == [str(i) for i in range(COUNT)]
    weights = pipe.class_weights
    assert weights is not None
    assert set(weights) == {0, 1, 2}


@pytest.mark.by_day(1)
@pytest.mark.parametrize("transforms", [COLOUR, CROPS], ids=["from the start", "from the crop on"])
def test_the_passes_change_nothing(transforms: list[Any]) -> None:
    pipe = shared(transforms=transforms)
    assert ("Element" in kinds(pipe)) == (transforms is CROPS)
    close(stream(as_written(pipe)), epoch_of(pipe, 0))


@pytest.mark.nightly  # by day batches of files are compiled
def test_xla_changes_nothing() -> None:
    close(epoch_of(pipeline(runtime={"jit": "always"}, transforms=COLOUR), 1), epoch_of(shared(transforms=COLOUR), 1))


@pytest.mark.parametrize("batch", [{"size": 5, "remainder": "keep"}, pytest.param({"size": 46}, marks=pytest.mark.nightly)])
def test_a_batch_of_another_size_holds_the_same_examples(batch: dict[str, Any]) -> None:
    wanted = epoch_of(shared(batch={"size": 8, "remainder": "keep"}), 2)
    assert len(wanted[0]) == 46
    same(epoch_of(shared(batch=batch), 2), wanted)


def test_resuming_and_shares() -> None:
    pipe = shared()
    wanted = epoch_of(pipe, 1)
    same(epoch_of(pipe, 1, 3), [part[24:] for part in wanted])
    shares = [batches(pipe.dataset("train", epoch=1, shard=(i, 2))) for i in (0, 1)]
    joined = [np.concatenate([a[part], b[part]]) for part in (0, 1) for a, b in zip(*shares, strict=True)]
    half = len(joined) // 2
    same([np.concatenate(joined[:half]), np.concatenate(joined[half:])], wanted)
    it = iter(pipe.train)
    next(it), next(it)
    state = json.loads(json.dumps(pipe.state()))
    other = pickle.loads(pickle.dumps(pipe))
    assert other.state()["step"] == 0, "a copy starts anew"
    other.restore(state)
    same(stream(other.train), epoch_of(pipe, state["epoch"], state["step"]))


def test_other_arrays_are_other_data() -> None:
    from pipegen.errors import StateError

    pipe = shared()
    changed = IMAGES.copy()
    changed[5, 0, 0, 0] ^= 1
    with pytest.raises(StateError, match="the data is not what"):
        pipeline({**DATA, "image": changed}).restore(pipe.state())


def test_the_last_batch() -> None:
    keep = [len(batch[0]) for batch in shared().validation]
    assert keep == [8, 7]
    padded = shared(batch={"size": 8, "remainder": {"validation": "pad"}})
    (_, _, full), (images, _, weights) = batches(padded.validation)
    assert full.tolist() == [1] * 8
    assert weights.tolist() == [1] * 7 + [0]
    assert images.shape == (8, SIDE, SIDE, 3)
    steps = shared(epoch={"steps": 7})
    assert len(stream(steps.dataset("train", epoch=3))[0]) == 56


def test_splits_of_rows() -> None:
    stratified = shared(splits={"parts": {"train": 40, "validation": 21}, "stratify": "label"})
    assert np.bincount(stratified.labels("validation")).tolist() == [7, 7, 7]
    keras = shared(splits={"parts": {"train": 0.75, "validation": 0.25}, "method": "keras"})
    assert keras.files("validation") == tuple(map(str, range(15))), "the first rows, as `ImageDataGenerator.flow` has it"
    folds = [set(shared(splits={"folds": {"count": 3, "fold": fold}}).files("validation")) for fold in range(3)]
    assert sum(map(len, folds)) == len(set.union(*folds)) == COUNT


def test_arrays_for_each_split() -> None:
    train, held = ({"image": IMAGES[a:b], "label": LABELS[a:b]} for a, b in ((0, 40), (40, COUNT)))
    arrays = {"arrays": {"features": FEATURES}}
    pipe = pipeline({"train": train, "test": held}, source={"by_split": {"train": arrays, "test": arrays}}, splits={}, transforms=[])
    assert pipe.files("test") == tuple(map(str, range(21)))
    images, labels = stream(pipe.test)
    np.testing.assert_array_equal(images, IMAGES[40:].astype(np.float32))
    np.testing.assert_array_equal(labels, LABELS[40:])
    assert pipe.num_examples("train") == 40


def test_prediction_on_other_arrays() -> None:
    pipe = shared(transforms=[*GEOMETRY, {"rescale": {"to": [0, 1]}}])
    found = pipe.predict_on(IMAGES[:13])
    assert found.files == tuple(map(str, range(13)))
    (images,) = stream(found.dataset)
    np.testing.assert_allclose(images, IMAGES[:13] / 255, atol=1e-6)
    for wanted, said in (
        ("photos/", "built on arrays"),
        (["a.jpg"], "built on arrays"),
        (IMAGES[0], "looks like one image"),
        (IMAGES / 255, "float32, but the pipeline was built on uint8"),
        (IMAGES[..., :1], "1 channel, not 3"),
    ):
        with pytest.raises(TypeError, match=said):
            pipe.predict_on(wanted)
    floats = pipeline({**DATA, "image": IMAGES / 255}, transforms=[])
    np.testing.assert_allclose(stream(floats.predict_on([IMAGES[0] / 255]).dataset)[0], IMAGES[:1] / 255, atol=1e-7)
    with pytest.raises(TypeError, match=r"beyond \[0, 1\]"):
        floats.predict_on(IMAGES * 1.0)


def test_a_look_at_arrays() -> None:
    pipe = shared(transforms=COLOUR)
    sheet = pipe.preview(rows=2, draws=2, cell=32)
    assert sheet.width > 3 * 32
    images, labels = pipe.peek("validation", 3)
    assert images.shape == (3, SIDE, SIDE, 3)
    np.testing.assert_array_equal(labels, pipe.labels("validation")[:3])  # type: ignore[index]
    assert "read     rows of a whole batch" in pipe.explain("train")


def test_a_mapped_file_is_read_row_by_row_where_memory_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.ops.lowering import stored_readers

    mapped: list[Any] = []
    real = stored_readers.Mapped.__init__

    def noted(self: Any, array: Any) -> None:
        mapped.append(array.shape)
        real(self, array)

    monkeypatch.setattr(stored_readers.Mapped, "__init__", noted)
    np.savez(tmp_path / "data.npz", **DATA)
    source = {"arrays": {"features": FEATURES, "path": str(tmp_path / "data.npz")}}
    wanted = epoch_of(shared(), 0)
    for budget in ("1GiB", "1KiB"):
        pipe = pipeline(None, runtime={"ram_budget": budget}, source=source)
        same(epoch_of(pipe, 0), wanted)
        assert mapped == ([] if budget == "1GiB" else [IMAGES.shape])
        assert ("Python: rows of a mapped file" in pipe.explain(physical=True)) == (budget == "1KiB")


def test_arrays_are_no_constants_of_the_graph() -> None:
    """A graph may hold 2 GiB at most, and is copied for every iterator."""
    pipe = pipeline({"image": np.zeros((400, 32, 32, 3), np.uint8), "label": np.zeros(400, int)}, transforms=[])
    for dataset in (pipe.train, pipe.dataset("train").map(lambda x, y: x)):
        seen, todo = 0, [dataset]
        while todo:
            ds = todo.pop()
            function = getattr(ds, "_pipegen_function", None) or getattr(getattr(ds, "_map_func", None), "function", None)
            if function is not None:
                seen += 1
                assert function.graph.as_graph_def().ByteSize() < 100_000
            todo += ds._inputs()
        assert seen >= 3
    rows = pipe._manifest.listing.reader()
    assert rows.open("image", 2**30, np.copy) is rows.open("image", 2**30, np.copy), "one for every split"


@pytest.mark.nightly
def test_fit() -> None:
    import keras

    pipe = shared(transforms=COLOUR)
    pipe.seek(0, 0)
    model = keras.Sequential([keras.Input((SIDE, SIDE, 3)), keras.layers.Flatten(), keras.layers.Dense(3)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    pipe.check(model)
    done = model.fit(pipe.train, validation_data=pipe.validation, epochs=2, class_weight=pipe.class_weights, verbose=0)
    assert len(done.history["val_loss"]) == 2
    assert np.isfinite(done.history["loss"]).all()
    assert pipe.state()["epoch"] == 2
    assert len(model.predict(pipe.predict_on(IMAGES[:11]).dataset, verbose=0)) == 11
