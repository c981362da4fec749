"""Keras 3 on TensorFlow: `fit`, `evaluate` and `predict` see what the spec says, also when a run is broken off and resumed."""

from __future__ import annotations

from pipes import RESIZE, SIZE, pipeline, shared
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

STEPS = [RESIZE, "random_flip", {"random_rotation": {"degrees": 20}}, {"normalize": {"preset": "tf"}}]


@pytest.fixture
def pipe(photo_folder: Path) -> Any:
    """32 training examples a pass, in 4 batches."""
    made = shared(photo_folder, transforms=STEPS)
    made.seek(0, 0)
    return made


@pytest.fixture(scope="module")
def clean(photo_folder: Path) -> Any:
    """The sum of the pixels of each batch, by epoch: what `watched` records when `fit` is handed the right batches."""
    made = shared(photo_folder, transforms=STEPS)
    sums = []
    for epoch in range(5):
        made.seek(epoch, 0)
        sums.append([round(float(np.sum(x.numpy(), dtype=np.float64)), 1) for x, _ in made.train])
    return sums


def model_of(outputs: int = 3, loss: Any = "sparse_categorical_crossentropy") -> Any:
    """A small model that is the same each time."""
    import keras

    keras.utils.set_random_seed(1)
    layers = [
        keras.Input((SIZE, SIZE, 3)),
        keras.layers.AveragePooling2D(4),
        keras.layers.Flatten(),
        keras.layers.Dense(outputs, "softmax"),
    ]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss, metrics=["accuracy"], jit_compile=False)
    return model


def watched(model: Any) -> tuple[Any, list[list[float]]]:
    """The model, recording the sum of the pixels of each training batch as it is trained on, a list for each epoch."""
    import keras

    seen: list[list[float]] = []

    class Epochs(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            seen.append([])

    original = model.train_step

    def train_step(data: Any) -> Any:
        import tensorflow as tf

        def note(total: Any) -> None:
            seen[-1].append(round(float(total), 1))

        noted = tf.py_function(note, [tf.reduce_sum(tf.cast(data[0], tf.float64))], [])
        with tf.control_dependencies([noted] if noted is not None else []):
            return original(data)

    model.train_step = train_step
    return Epochs(), seen


def weights(model: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(w) for w in model.get_weights()]


def equal(a: Any, b: Any) -> None:
    for one, other in zip(weights(a), weights(b), strict=True):
        np.testing.assert_array_equal(one, other)


class Crash(Exception):
    """What breaks a run off."""


def crash_after(batches: int) -> Any:
    """A callback that ends the process, as far as `fit` can tell, after so many batches."""
    import keras

    class CrashAfter(keras.callbacks.Callback):
        left = batches

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.left -= 1
            if self.left == 0:
                raise Crash

    return CrashAfter()


@pytest.mark.smoke
@pytest.mark.parametrize("callback", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_fit_sees_epochs_0_1_2(pipe: Any, clean: Any, callback: bool) -> None:
    model = model_of()
    epochs, seen = watched(model)
    callbacks = [epochs, pipe.callback()] if callback else [epochs]
    history = model.fit(pipe.train, validation_data=pipe.validation, epochs=3, callbacks=callbacks, verbose=0)
    assert seen == clean[:3]
    assert len(history.history["val_accuracy"]) == 3
    assert pipe.state()["epoch"] == 3


def test_fit_again_goes_on_and_initial_epoch_is_taken_from_fit(pipe: Any, clean: Any) -> None:
    model = model_of()
    epochs, seen = watched(model)
    model.fit(pipe.train, epochs=1, callbacks=[epochs], verbose=0)
    model.fit(pipe.train, epochs=1, callbacks=[epochs], verbose=0)
    assert seen == clean[:2]
    model.fit(pipe.train, initial_epoch=3, epochs=5, callbacks=[epochs, pipe.callback()], verbose=0)
    assert seen[2:] == clean[3:5]
    model.fit(pipe.train, epochs=1, callbacks=[epochs, pipe.callback()], verbose=0)
    assert seen[4:] == clean[:1]


def test_a_peek_between_epochs_and_building_the_model_cost_no_epoch(pipe: Any, clean: Any) -> None:
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    epochs, seen = watched(model)
    pipe.peek("train", 20)
    next(iter(pipe.train))
    model.fit(pipe.train, epochs=2, callbacks=[epochs], verbose=0)
    assert seen == clean[:2]


@pytest.mark.nightly  # by day a crash within one is resumed
def test_several_steps_per_execution(pipe: Any, clean: Any) -> None:
    model = model_of()
    model.compile("sgd", "sparse_categorical_crossentropy", steps_per_execution=3, jit_compile=False)
    epochs, seen = watched(model)
    model.fit(pipe.train, validation_data=pipe.validation, epochs=3, callbacks=[epochs], verbose=0)
    assert seen == clean[:3]


@pytest.mark.parametrize("per_epoch", [pytest.param(3, marks=pytest.mark.nightly), 6])
def test_repeat_with_steps_per_epoch_runs_on(pipe: Any, clean: Any, per_epoch: int) -> None:
    model = model_of()
    epochs, seen = watched(model)
    model.fit(pipe.train.repeat(), steps_per_epoch=per_epoch, epochs=3, callbacks=[epochs], verbose=0)
    straight = [total for epoch in clean for total in epoch]
    assert seen == [straight[i * per_epoch : (i + 1) * per_epoch] for i in range(3)]


@pytest.mark.nightly  # by day weights come with the examples
def test_class_weights(pipe: Any, clean: Any) -> None:
    model = model_of()
    epochs, seen = watched(model)
    labels = pipe.labels("train")
    expected = {c: len(labels) / (3 * np.count_nonzero(labels == c)) for c in range(3)}
    assert pipe.class_weights == pytest.approx(expected)
    assert sum(pipe.class_weights[c] for c in labels) == pytest.approx(len(labels)), "balanced weights keep the size of the loss"
    model.fit(pipe.train, epochs=2, class_weight=pipe.class_weights, callbacks=[epochs], verbose=0)
    assert seen == clean[:2]


@pytest.mark.smoke
def test_evaluate_counts_each_example_once(pipe: Any, photo_folder: Path) -> None:
    import tensorflow as tf

    model = model_of()
    loss, accuracy = model.evaluate(pipe.validation, verbose=0)
    rows = model.predict(pipe.validation, verbose=0)
    labels = pipe.labels("validation")
    assert len(rows) == len(labels) == 11
    assert accuracy == pytest.approx(np.mean(rows.argmax(1) == labels), abs=1e-6)
    assert loss == pytest.approx(float(np.mean(-np.log(rows[np.arange(11), labels]))), rel=1e-4)
    assert tf.data.experimental.cardinality(pipe.validation) == 2


@pytest.mark.smoke
def test_rows_of_predict_are_in_the_order_of_files(pipe: Any) -> None:
    """The model's output is a function of the picture alone, so each row can be checked against its file."""
    import keras
    import tensorflow as tf

    inputs = keras.Input((SIZE, SIZE, 3))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(inputs))
    rows = model.predict(pipe.validation, verbose=0)
    assert len(rows) == len(pipe.files("validation"))
    for row, file in zip(rows, pipe.files("validation"), strict=True):
        image = tf.io.decode_image(tf.io.read_file(file), 3).numpy().astype(float)
        np.testing.assert_allclose(row, image.mean((0, 1)) / 127.5 - 1, atol=0.03)


def test_the_training_split_can_be_evaluated_without_a_change(pipe: Any, clean: Any) -> None:
    model = model_of()
    for _ in range(2):
        assert model.evaluate(pipe.dataset("train"), verbose=0, return_dict=True)["loss"] > 0
    assert pipe.state()["epoch"] == 0


@pytest.fixture(scope="module")
def whole(photo_folder: Path) -> Any:
    """The model of a run of 3 epochs that nothing broke off, and what it measured on the validation split."""
    pipe = shared(photo_folder, transforms=STEPS)
    pipe.seek(0, 0)
    model = model_of()
    history = model.fit(pipe.train, validation_data=pipe.validation, epochs=3, callbacks=[pipe.callback()], verbose=0)
    return model, history.history["val_loss"]


@pytest.mark.parametrize(
    ("crash", "save_freq"),
    [
        pytest.param(4, "epoch", id="boundary", marks=pytest.mark.nightly),  # `test_resuming_fit.py` has it by day
        pytest.param(6, "epoch", id="middle, from the epoch's start", marks=pytest.mark.nightly),
        pytest.param(4, 3, id="boundary, from its middle", marks=pytest.mark.nightly),
        pytest.param(7, 3, id="middle", marks=pytest.mark.nightly),  # likewise
        pytest.param(10, 1, id="last epoch, each batch", marks=pytest.mark.nightly),
    ],
)
def test_a_run_that_is_broken_off_and_resumed_is_the_run_that_was_not(
    pipe: Any, whole: Any, tmp_path: Path, crash: int, save_freq: Any
) -> None:
    """4 batches an epoch, 3 epochs with validation; bit for bit the same weights."""
    import keras

    def resumable(model: Any, *more: Any) -> Any:
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"), save_freq=save_freq)
        saver = pipe.callback(tmp_path / "backup")
        return model.fit(pipe.train, validation_data=pipe.validation, epochs=3, callbacks=[backup, saver, *more], verbose=0)

    with pytest.raises(Crash):
        resumable(model_of(), crash_after(crash))
    pipe.seek(2, 3)  # another process knows nothing of where this one stood
    resumed = model_of()
    history = resumable(resumed)
    assert int(resumed.optimizer.iterations) == 12
    equal(resumed, whole[0])
    measured = history.history["val_loss"]
    np.testing.assert_array_equal(measured, whole[1][-len(measured) :])


@pytest.mark.nightly
@pytest.mark.parametrize("save_freq", ["epoch", 1])
def test_a_repeated_run_of_steps_resumes_too(pipe: Any, clean: Any, tmp_path: Path, save_freq: Any) -> None:
    """Epochs of 3 steps over passes of 4: Keras' epochs and ours meet only now and then."""
    import keras

    straight = [total for epoch in clean for total in epoch]

    def run(*more: Any) -> list[list[float]]:
        model = model_of()
        epochs, seen = watched(model)
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "b"), save_freq=save_freq)
        saver = pipe.callback(tmp_path / "b")
        try:
            model.fit(pipe.train.repeat(), steps_per_epoch=3, epochs=4, callbacks=[epochs, backup, saver, *more], verbose=0)
        except Crash:
            return seen
        assert int(model.optimizer.iterations) == 12
        return seen

    assert run(crash_after(5)) == [straight[:3], straight[3:5]]
    pipe.seek(0, 0)
    first = 5 if save_freq == 1 else 3
    assert run() == [straight[first:6], straight[6:9], straight[9:12]]


@pytest.mark.nightly
def test_a_resumed_run_sees_the_rest(pipe: Any, clean: Any, tmp_path: Path) -> None:
    import keras

    def run(*more: Any) -> list[list[float]]:
        model = model_of()
        epochs, seen = watched(model)
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "b"), save_freq=1)
        try:
            model.fit(pipe.train, epochs=3, callbacks=[epochs, backup, pipe.callback(tmp_path / "b"), *more], verbose=0)
        except Crash:
            return seen
        return seen

    assert run(crash_after(6)) == [clean[0], clean[1][:2]]
    pipe.seek(0, 0)
    rest = run()
    # Keras' checkpoint is written before the callback that crashes, so the sixth batch counts
    assert rest == [clean[1][2:], clean[2]]


def test_a_finished_run_leaves_a_state_that_starts_the_next_epoch(pipe: Any, tmp_path: Path) -> None:
    import json

    model = model_of()
    model.fit(pipe.train, epochs=2, callbacks=[pipe.callback(tmp_path)], verbose=0)
    saved = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert (saved["epoch"], saved["step"]) == (2, 0)
    pipe.seek(0, 0)
    pipe.restore(saved)
    assert pipe.state()["epoch"] == 2


@pytest.mark.parametrize("ours_first", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_a_stop_that_another_callback_wants_stays(pipe: Any, tmp_path: Path, ours_first: bool) -> None:
    import json

    import keras

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = True

    pipe.seek(0, 2)
    (tmp_path / "pipegen.state.json").write_text(json.dumps(pipe.state()))
    both = [pipe.callback(tmp_path), Stop()]
    history = model_of().fit(pipe.train, epochs=3, verbose=0, callbacks=both if ours_first else both[::-1])
    assert len(history.epoch) == 1


@pytest.mark.parametrize(
    ("encode", "loss", "outputs"),
    [
        pytest.param("one_hot", "categorical_crossentropy", 3, marks=pytest.mark.nightly),
        pytest.param("int", "sparse_categorical_crossentropy", 3, marks=pytest.mark.nightly),
    ],
)
def test_the_loss_that_is_named_fits(photo_folder: Path, encode: str, loss: str, outputs: int) -> None:
    made = pipeline(photo_folder, transforms=[RESIZE], output={"encode": {"label": encode}})
    assert f"loss: {loss}" in repr(made)
    made.check(model_of(outputs, loss))
    history = model_of(outputs, loss).fit(made.train, validation_data=made.validation, epochs=1, verbose=0).history
    assert np.isfinite(history["loss"][0])
