"""The rest of the façade: what a pipeline says about itself, the contact sheet, `check`, and encodings."""

from __future__ import annotations

from html.parser import HTMLParser
from pipes import RESIZE, SIZE, batches, pipeline, sections, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pipegen
from pipegen.errors import ModelMismatchError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return shared(photo_folder, transforms=[RESIZE])


@pytest.mark.smoke
def test_repr_says_what_a_model_must_fit(photo_folder: Path) -> None:
    text = repr(pipeline(photo_folder, transforms=[RESIZE], name="flowers"))
    for part in (
        "flowers",
        "train: 32 examples, 4 batches of 8",
        "validation: 11 examples, 2 batches of 8",
        "x: float32 8×24×24×3",
        "y: int64 8",
        "3 classes: daisy, rose, tulip",
        "loss: sparse_categorical_crossentropy",
        "fit: model.fit(pipe.train, validation_data=pipe.validation)",
    ):
        assert part in text


def test_what_is_known_about_the_data(pipe: Any, photo_folder: Path) -> None:
    assert pipe.class_names == ("daisy", "rose", "tulip")
    assert pipe.num_examples("train") + pipe.num_examples("validation") == 43
    assert set(pipe.files("train")).isdisjoint(pipe.files("validation"))
    assert len({*pipe.files("train"), *pipe.files("validation")}) == 43
    labels = pipe.labels("train")
    assert labels.dtype == np.int64
    assert [pipe.class_names[i] for i in labels] == [f.split("/")[-2] for f in pipe.files("train")]
    assert len(pipe.spec_hash) == 64
    assert len(pipe.fingerprint) == 64
    assert pipe.spec_hash == pipegen.load(sections(photo_folder, transforms=[RESIZE])).hash


def test_class_weights_are_balanced(photo_folder: Path) -> None:
    import shutil
    import tempfile
    from pathlib import Path as P

    with tempfile.TemporaryDirectory() as temporary:
        root = P(temporary) / "uneven"
        for name, count in (("a", 8), ("b", 2)):
            (root / name).mkdir(parents=True)
            for i in range(count):
                shutil.copy(photo_folder / "rose" / f"{i:02d}.jpg", root / name)
        made = pipeline(root, transforms=[RESIZE], splits={"parts": {}}, batch={"size": 2})
        assert made.class_weights == {0: 10 / (2 * 8), 1: 10 / (2 * 2)}


def test_build_takes_a_path_a_mapping_and_a_spec(photo_folder: Path, tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "flowers.pipegen.yaml"
    path.write_text(
        yaml.safe_dump(sections(photo_folder, transforms=[{"resize": {"size": "$size"}}], params={"size": {"type": "int", "default": 24}}))
    )
    for source in (path, str(path), yaml.safe_load(path.read_text()), pipegen.load(path)):
        assert pipegen.build(source, params={"size": 16}, runtime={"jit": "never"}).element_spec[0].shape == (8, 16, 16, 3)
    assert pipegen.build(path, runtime={"threads": 1}).spec.model.name == "flowers"
    with pytest.raises(SpecError, match="PG418") as caught:
        pipegen.build(path, data={"image": np.zeros((2, 4, 4, 3))})
    assert "`image_folder` reads files" in str(caught.value)
    assert "leave `data` out; `arrays` without a `path` and `dataframe` take it" in str(caught.value)


def test_the_runtime_argument_lies_over_the_section(photo_folder: Path) -> None:
    made = pipegen.build(sections(photo_folder, runtime={"threads": 1, "cache": "none"}), runtime={"threads": 2})
    assert made.spec.model.runtime.threads == 2
    assert made.spec.model.runtime.cache == "none"


def test_a_wrong_spec_raises_findings_not_frames(photo_folder: Path) -> None:
    with pytest.raises(SpecError) as caught:
        pipegen.build(sections(photo_folder, transforms=["resise"]))
    assert "resise" in str(caught.value)
    assert "Traceback" not in "".join(caught.value._render_traceback_())
    with pytest.raises(SpecError, match="PG401"):
        pipegen.build(sections(photo_folder / "nowhere"))


def test_a_batch_that_hosts_cannot_share_is_a_finding(photo_folder: Path) -> None:
    with pytest.raises(SpecError, match="PG412"):
        pipeline(photo_folder, {"shard": {"index": 0, "count": 3}})
    with pytest.raises(SpecError, match="pad"):
        pipeline(photo_folder, {"shard": {"index": 0, "count": 8}}).validation  # noqa: B018 - 3 rows for 8 hosts


# outputs


@pytest.mark.nightly
@pytest.mark.parametrize(("output", "x", "y"), [
    ({"encode": {"label": "one_hot"}}, ((8, 24, 24, 3), "float32"), ((8, 3), "float32")),
    ({"channels": "first"}, ((8, 3, 24, 24), "float32"), ((8,), "int64")),
    ({"dtype": "uint8"}, ((8, 24, 24, 3), "uint8"), ((8,), "int64")),
    ({"dtype": "float16"}, ((8, 24, 24, 3), "float16"), ((8,), "int64")),
    ({"dtype": "bfloat16", "y": "label"}, ((8, 24, 24, 3), "bfloat16"), ((8,), "int64")),
], ids=str)  # fmt: skip
def test_outputs(photo_folder: Path, pipe: Any, output: dict[str, Any], x: Any, y: Any) -> None:
    made = pipeline(photo_folder, transforms=[RESIZE], output=output)
    got = next(iter(made.validation))
    for (shape, dtype), tensor, spec in zip((x, y), got, made.element_spec, strict=True):
        assert spec.is_compatible_with(tensor)
        assert (tuple(tensor.shape), tensor.dtype.name) == (shape, dtype)
    image, label = next(iter(pipe.validation))
    pixels = got[0].numpy().astype(np.float32)
    pixels = np.moveaxis(pixels, 1, -1) if output.get("channels") == "first" else pixels
    np.testing.assert_allclose(pixels, image.numpy(), atol={"bfloat16": 1, "float16": 0.1}.get(x[1], 0))
    np.testing.assert_array_equal(got[1].numpy().argmax(1) if len(y[0]) == 2 else got[1].numpy(), label.numpy())


def test_binary_labels(photo_folder: Path) -> None:
    source = {"image_folder": {"path": str(photo_folder), "classes": ["rose", "daisy"]}}
    made = pipeline(photo_folder, source=source, transforms=[RESIZE], output={"encode": {"label": "binary"}})
    assert made.class_names == ("rose", "daisy")
    _, labels = stream(made.validation)
    assert labels.shape == (made.num_examples("validation"), 1)
    assert labels.dtype == np.float32
    np.testing.assert_array_equal(labels[:, 0], made.labels("validation"))
    assert "binary_crossentropy" in repr(made)


def test_names_of_inputs_and_outputs(photo_folder: Path) -> None:
    made = pipeline(photo_folder, transforms=[RESIZE], output={"x": {"photo": "image"}, "y": {"kind": "label"}})
    x, y = next(iter(made.validation))
    assert list(x) == ["photo"]
    assert list(y) == ["kind"]
    listed = pipeline(photo_folder, transforms=[RESIZE], output={"x": ["image"], "y": None})
    (batch,) = [b for b in listed.validation][:1]
    assert len(batches([batch])[0]) == 1


def test_several_inputs_without_targets_are_none_of_them_a_target() -> None:
    """Keras takes the second of two tensors for targets, so several inputs stand in a tuple of their own."""
    import keras

    rng = np.random.default_rng(0)
    rows = {"image": rng.integers(0, 256, (5, 1, 1, 3)).astype(np.uint8), "age": rng.random((5, 2), np.float32)}
    features = {"image": {"kind": "image"}, "age": {"kind": "tensor"}}
    spec = {"pipegen": 1, "source": {"arrays": {"features": features}}, "output": {"x": [*rows]}, "batch": {"size": 2}}
    pipe = pipegen.build(spec, data=rows, runtime={"jit": "never"})
    inputs = [keras.Input((1, 1, 3), name="image"), keras.Input((2,), name="age")]
    model = keras.Model(inputs, keras.layers.Concatenate()([keras.layers.Flatten()(inputs[0]), inputs[1]]))
    pipe.check(model)
    assert "y:" not in repr(pipe)
    np.testing.assert_array_equal(model.predict(pipe["predict"], verbose=0), np.concatenate([rows["image"][:, 0, 0], rows["age"]], 1))


# preview


@pytest.mark.nightly
@pytest.mark.parametrize(("rows", "draws", "split"), [(3, 4, "train"), (2, 5, "validation"), (100, 1, "validation")])
def test_a_contact_sheet(photo_folder: Path, rows: int, draws: int, split: str) -> None:
    made = shared(photo_folder)
    made.seek(3, 1)
    sheet = made.preview(split, rows=rows, draws=draws, cell=40)
    rows, columns = min(rows, made.num_examples(split)), (draws if split == "train" else 1) + 1
    assert sheet.mode == "RGB"
    assert sheet.width == 2 * 12 + columns * 40 + columns * 6
    assert sheet.height == 2 * 12 + 18 + rows * (40 + 18 + 6)
    assert len(sheet.getcolors(1 << 24)) > 100
    assert (made.state()["epoch"], made.state()["step"]) == (3, 1), "drawing moves nothing"


@pytest.mark.parametrize("transforms", [
    [{"decode": {"channels": 1}}, RESIZE, {"random_brightness": {"factor": 0.3}}, {"rescale": {"to": [0, 1]}}],
    [RESIZE, {"random_contrast": {"factor": 0.5}}, {"normalize": {"preset": "torch"}}],
    [{"random_resized_crop": {"size": 24}}, "random_flip", {"normalize": {"preset": "caffe"}}],
    [RESIZE, {"rescale": {"to": [0, 1]}}, {"random_rotation": {"degrees": 20}}],
], ids=["gray", "torch", "window", "floats"])  # fmt: skip
def test_a_contact_sheet_of_any_recipe(photo_folder: Path, transforms: list[Any]) -> None:
    made = pipeline(photo_folder, transforms=transforms, output={"channels": "first"})
    sheet = np.asarray(made.preview(rows=2, draws=2, cell=48))
    drawn = sheet[12 + 18 + 18 :][:48, 12 + 48 + 12 :][:, :48]
    assert drawn.std() > 5, "the picture is there, and not blank"


@pytest.mark.nightly
def test_preview_moves_nothing_and_shows_what_training_sees(photo_folder: Path) -> None:
    from pipegen.views.preview import render_example

    made = shared(photo_folder)
    made.seek(2, 0)
    made.preview(rows=2, draws=2, cell=30)
    assert made.state()["epoch"] == 2
    images, _ = stream(made.train)
    shown = {render_example(made._engine.executor("train"), r, 2, "image").tobytes() for r in range(32)}
    assert {image.astype(np.uint8).tobytes() for image in images} == shown


# check


def model(shape: tuple[int, ...] = (SIZE, SIZE, 3), units: int = 3, loss: Any = None, ending: str | None = "softmax", **own: Any) -> Any:
    import keras

    inputs = keras.Input(shape, name=own.pop("name", "image"), **own)
    made = keras.Model(inputs, keras.layers.Dense(units, ending)(keras.layers.Flatten()(inputs)))
    if loss is not None:
        made.compile("sgd", loss)
    return made


def test_a_model_that_fits_passes(pipe: Any) -> None:
    import keras

    pipe.check(model())
    import keras.layers as kl

    anywhere = keras.Input((None, None, 3))
    pipe.check(keras.Model(anywhere, kl.Dense(3)(kl.GlobalAveragePooling2D()(anywhere))))
    pipe.check(model(loss="sparse_categorical_crossentropy"))
    pipe.check(model(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), ending=None))
    line = pipe.check(model(loss="sparse_categorical_crossentropy"))
    assert line.startswith(
        "the model fits: 24×24×3 float32 in [0, 255] -> label 3, loss sparse_categorical_crossentropy; `image` is in [0, 255]"
    )


def test_a_model_that_is_not_compiled_is_a_warning(pipe: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "pipegen"):
        line = pipe.check(model())
    assert "not compiled" in line
    assert "sparse_categorical_crossentropy fits" in line
    assert [r.getMessage() for r in caplog.records] == [line]


def ending(last: str) -> Any:
    """A model that ends in one of many ways."""
    import keras
    import keras.layers as kl

    inputs = keras.Input((SIZE, SIZE, 3))
    flat = kl.Flatten()(inputs)
    inner = keras.Sequential([keras.Input((SIZE * SIZE * 3,)), kl.Dense(3, "softmax")])
    ends: dict[str, Any] = {
        "logits": lambda: kl.Dense(3)(flat),
        "relu": lambda: kl.Dense(3, "relu")(flat),
        "softmax": lambda: kl.Dense(3, "softmax")(flat),
        "sigmoid": lambda: kl.Dense(3, "sigmoid")(flat),
        "a layer of softmax": lambda: kl.Softmax()(kl.Dense(3)(flat)),
        "an activation": lambda: kl.Activation("softmax", dtype="float32")(kl.Dense(3)(flat)),
        "an activation that does nothing": lambda: kl.Activation("linear")(kl.Dense(3, "softmax")(flat)),
        "an operation": lambda: keras.ops.softmax(kl.Dense(3)(flat)),
        "an inner model": lambda: inner(flat),
        "logits, reshaped": lambda: kl.Reshape((3,))(kl.Dense(3)(flat)),
        "a normalisation": lambda: kl.BatchNormalization()(kl.Dense(3)(flat)),
    }
    return keras.Model(inputs, ends[last]())


@pytest.mark.parametrize(("last", "logits", "words"), [
    ("logits", False, "no activation, so in logits"),
    ("logits", True, None),
    ("logits, reshaped", False, "from_logits=True"),
    ("relu", False, "does not return probabilities"),
    ("softmax", True, "leave out one of the two"),
    ("softmax", False, None),
    ("sigmoid", True, "leave out one of the two"),
    ("a layer of softmax", False, None),
    ("a layer of softmax", True, "leave out one of the two"),
    ("an activation", True, "leave out one of the two"),
    ("an activation that does nothing", True, "leave out one of the two"),
    ("an operation", True, "leave out one of the two"),
    ("an operation", False, None),
    ("an inner model", True, "leave out one of the two"),
    ("an inner model", False, None),
    ("a normalisation", False, None),
    ("a normalisation", True, None),
])  # fmt: skip
def test_logits_and_probabilities(pipe: Any, last: str, logits: bool, words: str | None) -> None:
    import keras

    made = ending(last)
    for loss in ([] if logits else ["sparse_categorical_crossentropy"]) + [keras.losses.SparseCategoricalCrossentropy(from_logits=logits)]:
        made.compile(loss=loss)
        if words is None:
            pipe.check(made)
            continue
        with pytest.raises(ModelMismatchError) as caught:
            pipe.check(made)
        assert words in str(caught.value)
        assert str(caught.value).count("\n  - ") == 1


def test_one_unit_of_softmax(photo_folder: Path) -> None:
    two = pipeline(photo_folder, transforms=[RESIZE], source={"image_folder": {"path": str(photo_folder), "classes": ["rose", "tulip"]}})
    with pytest.raises(ModelMismatchError, match="always 1"):
        two.check(model(units=1, loss="sparse_categorical_crossentropy"))


def test_several_targets() -> None:
    """Without the data of a table: what the pipeline gives is made up here."""
    from types import SimpleNamespace

    import keras
    import keras.layers as kl

    from pipegen.types import ElementType, FeatureType
    from pipegen.views.model_check import check

    label = FeatureType("label", "int64", (), classes=3)
    record = ElementType((("a", label), ("b", label)))
    inputs = keras.Input((8,), name="x")
    heads = {"p": kl.Dense(3, "softmax", name="p")(inputs), "q": kl.Dense(4, name="q")(inputs)}
    import tensorflow as tf

    spec = (tf.TensorSpec((None, 8)), None)

    def told(outputs: Any, y: Any, loss: Any) -> list[str]:
        made = keras.Model(inputs, outputs)
        made.compile(loss=loss)
        output = SimpleNamespace(x="x", y=y, encode={}, channels="last")
        with pytest.raises(ModelMismatchError) as caught:
            check(made, spec, output, record, [], [], None)  # type: ignore[arg-type]
        return str(caught.value).split("\n  - ")[1:]

    sparse = "sparse_categorical_crossentropy"
    (one,) = told(heads["p"], ("a", "b"), sparse)
    assert "one output" in one
    assert "2 targets, `a` and `b`" in one
    for found in (
        told([heads["p"], heads["q"]], ("a", "b"), [sparse, sparse]),
        told(heads, {"p": "a", "q": "b"}, {"p": sparse, "q": sparse}),
        told([heads["p"], heads["q"]], {"p": "a", "q": "b"}, [sparse, sparse]),
    ):
        units, logits = found
        assert "4 units, and there are 3 classes" in units
        assert "logits" in logits
        assert all("`b`" in m or "`q`" in m for m in found)
    assert any("`r`" in m for m in told(heads, {"p": "a", "r": "b"}, {"p": sparse}))


@pytest.mark.parametrize(("arguments", "words"), [
    ({"shape": (32, 24, 3)}, "takes 32×24×3, and the pipeline gives 24×24×3"),
    ({"shape": (3, 24, 24)}, "takes 3×24×24"),
    ({"units": 5}, "ends in 5 units, and there are 3 classes"),
    ({"loss": "categorical_crossentropy"}, "`categorical_crossentropy` does not fit `encode: {label: int}`; use sparse"),
    ({"units": 3, "loss": "binary_crossentropy"}, "binary"),
    ({"dtype": "int32"}, "takes int32, and the pipeline gives float32"),
])  # fmt: skip
def test_a_model_that_does_not_fit_is_told_why(pipe: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelMismatchError) as caught:
        pipe.check(model(**arguments))
    assert words in str(caught.value)


@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize(
    ("kind", "encode"),
    [
        ("label", "int"),
        ("label", "one_hot"),
        ("label", "binary"),
        ("tensor", "none"),
        ("vector", "none"),
        ("mask", "int"),
        ("mask", "binary"),
    ],
)
def test_the_whole_shape_of_an_output_is_compared(kind: str, encode: str, channels: str) -> None:
    import keras

    if kind == "mask" and channels == "first" and encode == "int":
        pytest.skip("no loss of Keras has the classes of pixels first")
    classes, first = 2 if encode == "binary" else 3, channels == "first"
    numbers = np.random.default_rng(0).integers(0, classes, (16, 8, 8, 1), np.uint8)
    held = {"mask": numbers, "tensor": numbers[:, 0, 0, 0].astype(np.float32), "vector": numbers[:, 0, :3, 0].astype(np.float32)}
    feature = {"kind": "tensor"} if encode == "none" else {"kind": kind, "classes": classes}
    output = {"x": "x", "y": "y", "channels": channels} | ({} if encode == "none" else {"encode": {"y": encode}})
    source = {"arrays": {"features": {"x": {"kind": "image"}, "y": feature}}}
    given = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": [4, 6]}}], "batch": {"size": 4}, "output": output}
    pipe = pipegen.build(given, data={"x": np.zeros((16, 8, 8, 3), np.uint8), "y": held.get(kind, numbers[:, 0, 0, 0])})
    loss = {"int": "sparse_categorical_crossentropy", "one_hot": "categorical_crossentropy", "binary": "binary_crossentropy"}.get(
        encode, "mse"
    )

    def model(*end: int) -> Any:
        start = keras.Input((3, 4, 6) if first else (4, 6, 3))
        units = keras.layers.Dense(int(np.prod(end)))(keras.layers.Flatten()(start))
        made = keras.Model(start, keras.layers.Activation("linear" if loss == "mse" else "sigmoid")(keras.layers.Reshape(end)(units)))
        made.compile(loss=loss)
        return made

    units = 1 if encode == "binary" or kind == "tensor" else 3
    fits = (units,) if kind != "mask" else (units, 4, 6) if first else (4, 6, units)
    right = model(*fits)
    assert "the model fits" in pipe.check(right)
    right.fit(pipe.train, verbose=0)
    apart = [(7, *fits), (*fits[:-1], 20, fits[-1]), (*fits[:-1], fits[-1] + 1)]
    for wrong in apart if kind != "mask" else [*apart, (3, *fits[1:]), (5, *fits[1:]), (units,), (5, 6, units)]:
        with pytest.raises(ModelMismatchError, match=r"the model (gives|ends in)"):
            pipe.check(model(*wrong))


def test_everything_that_does_not_fit_is_listed_at_once(photo_folder: Path) -> None:
    made = pipeline(photo_folder, transforms=[RESIZE], output={"x": {"photo": "image"}, "encode": {"label": "one_hot"}})
    with pytest.raises(ModelMismatchError) as caught:
        made.check(model(units=4, loss="sparse_categorical_crossentropy"))
    text = str(caught.value)
    for words in ("`image`", "`photo`", "4 units", "`sparse_categorical_crossentropy` does not fit"):
        assert words in text
    assert text.count("\n  - ") == 4


def test_a_loss_class_from_keras_is_understood(photo_folder: Path) -> None:
    import keras

    made = pipeline(photo_folder, transforms=[RESIZE], output={"encode": {"label": "one_hot"}})
    made.check(model(loss=keras.losses.CategoricalCrossentropy()))
    with pytest.raises(ModelMismatchError, match="SparseCategoricalCrossentropy"):
        made.check(model(loss=keras.losses.SparseCategoricalCrossentropy()))


def test_explain_counts_examples_and_steps(pipe: Any) -> None:
    text = pipe.explain()
    assert text.startswith("split train: 32 examples, 4 steps\n")
    assert text == pipe.explain("train")
    assert "split validation: " not in text
    assert "fuse_decode_crop" not in text
    assert text.endswith("explain(NAME)), what each pass did (explain(passes=True)), everything (explain(all=True))\n")
    assert "fuse_decode_crop" in pipe.explain(passes=True)
    everything = pipe.explain(all=True)
    for title in ("split train: 32 examples, 4 steps", "split validation: 11 examples, 2 steps", "fuse_decode_crop", "expected cost, in"):
        assert title in everything
    assert "as written" in pipe.explain("train", before=True)
    physical = pipe.explain(physical=True)
    assert physical.startswith("split train: 32 examples, 4 steps\n")
    assert "form: training\n" in physical
    assert "form: requested batches\n" in pipe.explain("validation", physical=True, all=True)
    with pytest.raises(KeyError, match="train, validation"):
        pipe.explain("val")


class _Page(HTMLParser):
    """The texts of a piece of HTML, and what is wrong with it: tags that do not match, and anything that fetches or runs."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(html)
        self.wrong += self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.wrong += [tag] * (tag in ("script", "link", "img", "iframe", "b1"))
        self.wrong += [name for name, value in attrs if name != "style" or "url(" in (value or "")]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_pipelines_specs_datasets_and_plans(photo_folder: Path) -> None:
    name = "<b1>&\"'"
    made = pipegen.build(sections(photo_folder, name=name, transforms=[RESIZE], output={"x": {"<b1>": "image"}, "y": {"kind": "label"}}))
    shown = {"pipe": made, "spec": made.spec, "train": made.train, "plan": made.explain(), "repeat": made.train.repeat()}
    pages = {key: _Page(value._repr_html_()) for key, value in shown.items() if hasattr(value, "_repr_html_")}
    assert set(pages) >= {"pipe", "spec", "train", "plan"}
    for key, page in pages.items():
        assert not page.wrong, key
    for text in (f"Pipeline {name}", made.spec_hash[:12], "train", "32", "4 of 8", "x: <b1>", "y: kind", "loss"):
        assert text in pages["pipe"].texts
    assert any(text.startswith("- resize: {size: 24") or "resize" in text for text in pages["spec"].texts)
    assert f"Spec {name}" in pages["spec"].texts
    assert "float32 8×24×24×3" in pages["train"].texts
    assert "".join(pages["plan"].texts) == str(made.explain())
    assert repr(made.explain()) == str(made.explain()), "line by line, and not as a quoted string"
    assert len(made._repr_html_()) < 5000


@pytest.mark.parametrize("shard", [(5, 4), (-1, 4), (0, 3), (1, 3), (0, 0)])
def test_a_share_that_there_is_not_is_refused(pipe: Any, shard: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"share|divide"):
        pipe.dataset("train", shard=shard)


def test_a_device_that_is_not_there_is_refused(photo_folder: Path, pipe: Any) -> None:
    made = pipegen.build(sections(photo_folder), runtime={"prefetch": {"device": "GPU:7"}})
    with pytest.raises(SpecError, match="unknown device `GPU:7`"):
        _ = made.train
    with pytest.raises(ValueError, match="unknown device `TPU:0`"):
        pipe.dataset("train", device="TPU:0")


@pytest.mark.nightly
def test_the_caches_of_all_splits_share_the_ram_budget(photo_folder: Path) -> None:
    """32 and 11 examples of 24 x 24 x 3 bytes: 55,296 and 19,008."""
    with pytest.raises(SpecError, match="split `validation` in memory"):
        pipegen.build(sections(photo_folder), runtime={"cache": "memory", "ram_budget": 70_000})
    assert pipegen.build(sections(photo_folder), runtime={"cache": "memory", "ram_budget": 75_000}).splits == ("train", "validation")
    auto = pipegen.build(sections(photo_folder), runtime={"cache": "auto", "ram_budget": 112_000})
    text = auto.explain(all=True)
    assert text.count("\ncache ") == 2
    assert pipegen.build(sections(photo_folder), runtime={"ram_budget": 60_000}).explain(all=True).count("\ncache ") == 1


def test_splits_that_there_are_not_are_told_with_those_that_there_are(photo_folder: Path, pipe: Any) -> None:
    for ask in (pipe.peek, pipe.preview, pipe.files, pipe.labels, pipe.steps, pipe.num_examples, pipe.__getitem__, pipe.dataset):
        with pytest.raises(KeyError, match="the splits are train, validation"):
            ask("nosplit")
    unlabelled = pipegen.build(
        sections(photo_folder, source={"image_folder": {"path": str(photo_folder), "labels": "none"}}, splits={"parts": {}})
    )
    for ask in (unlabelled.state, unlabelled.peek, lambda: unlabelled.train, lambda: unlabelled.restore({})):
        with pytest.raises(KeyError, match="the splits are predict"):
            ask()


@pytest.mark.nightly
def test_the_element_is_that_of_training_whatever_the_order_of_the_parts(photo_folder: Path) -> None:
    made = pipegen.build(sections(photo_folder, splits={"parts": {"validation": 0.25, "train": 0.75}}), runtime={"jit": "never"})
    assert made.element_spec[0].shape == (8, 24, 24, 3)


def test_findings_cross_between_processes(photo_folder: Path, pipe: Any) -> None:
    import pickle

    with pytest.raises(SpecError) as caught:
        pipegen.build(sections(photo_folder, seed="much"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert "PG104" in repr(again)
    copied = pickle.loads(pickle.dumps(pipe))
    assert copied.files("train") == pipe.files("train")
    assert copied.spec_hash == pipe.spec_hash


def test_what_is_unwise_is_logged(photo_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "pipegen"):
        pipegen.build(sections(photo_folder, shuffle="none"))
    assert ["PG505" in r.getMessage() for r in caplog.records] == [True]


@pytest.mark.parametrize("thing", [None, 3, "resnet"])
def test_what_is_no_model_is_refused(pipe: Any, thing: Any) -> None:
    with pytest.raises(TypeError, match="takes a Keras model"):
        pipe.check(thing)


def test_more_that_does_not_fit(photo_folder: Path, pipe: Any) -> None:
    import keras

    inputs = keras.Input(batch_shape=(16, 24, 24, 3))
    flat = keras.layers.Flatten()(inputs)
    heads = [keras.layers.Dense(3, "softmax")(flat) for _ in range(2)]
    model = keras.Model(inputs, heads)
    model.compile(loss=["categorical_crossentropy"] * 2)
    with pytest.raises(ModelMismatchError, match=r"batches of 16(.|\n)*2 outputs"):
        pipe.check(model)
    single = keras.Model(inputs, heads[0])
    single.compile(loss=["categorical_crossentropy"])
    with pytest.raises(ModelMismatchError, match=r"does not fit `encode: \{label: int\}`"):
        pipe.check(single)


def test_a_sheet_of_nothing_is_refused(pipe: Any) -> None:
    for own in ({"rows": 0}, {"draws": 0}, {"cell": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            pipe.preview(**own)
    assert list(pipe) == ["train", "validation"]


def test_fit_on_the_whole_pipeline_is_answered_with_what_to_write(pipe: Any) -> None:
    """Keras shows the pipeline in its message."""
    with pytest.raises(ValueError, match=r"fit: model\.fit\(pipe\.train, validation_data=pipe\.validation\)"):
        model(loss="sparse_categorical_crossentropy").fit(pipe)
