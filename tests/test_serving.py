"""Served models: what a request becomes is what `predict_on` gives, also in a process without pipegen, bit by bit."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from pipes import CLASSES, E1_OF_COLOUR, RESIZE, SIZE, picture, pipeline, sections, shared, stream
from typing import TYPE_CHECKING, Any

import copies
import numpy as np
import pytest

import pipegen
from pipegen.errors import ModelMismatchError, SpecError

if TYPE_CHECKING:
    from pipegen.views.serving import ServedModel

pytestmark = pytest.mark.tf

RECIPE = [{"random_resized_crop": {"size": SIZE}}, "random_flip", {"contrast": {"factor": 1.2}}, {"normalize": {"preset": "tf"}}]


def classifier(units: int = 3, activation: str = "softmax", size: int = SIZE) -> Any:
    import keras

    keras.utils.set_random_seed(1)
    kl = keras.layers
    return keras.Sequential([keras.Input((size, size, 3)), kl.AveragePooling2D(4), kl.Flatten(), kl.Dense(units, activation)])


def encoded(array: Any, form: str = "JPEG", mode: str | None = None, **options: Any) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    image = Image.fromarray(array)
    (image.convert(mode) if mode else image).save(stream, form, **options)
    return stream.getvalue()


def turned(orientation: int) -> bytes:
    """A JPEG whose EXIF says that it was taken with the camera turned."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture(7, 40, 64), exif=exif.tobytes())


@pytest.fixture(scope="module")
def pipe(photo_folder: Path) -> Any:
    return shared(photo_folder, transforms=RECIPE)


@pytest.fixture(scope="module")
def contents(pipe: Any) -> list[bytes]:
    """64 files and more, of many sizes."""
    files = [*pipe.files("train"), *pipe.files("validation")]
    return [Path(file).read_bytes() for file in (*files, *files[:21])]


@pytest.fixture(scope="module")
def odd() -> dict[str, bytes]:
    """Files that are not plain colour JPEGs."""
    shot = picture(3, 50, 36)
    return {
        "gray": encoded(shot, mode="L"),
        "cmyk": encoded(shot, mode="CMYK"),
        "png": encoded(shot, "PNG"),
        "rgba": encoded(shot, "PNG", "RGBA"),
        "gray_png": encoded(shot, "PNG", "L"),
        "palette": encoded(shot, "PNG", "P"),
        "gif": encoded(shot, "GIF"),
        "bmp": encoded(shot, "BMP"),
        "webp": encoded(shot, "WEBP"),
        "progressive": encoded(shot, progressive=True),
        **{f"turned {i}": turned(i) for i in (3, 6)},
    }


@pytest.fixture(scope="module")
def written(pipe: Any, tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    return pipe.export_model(classifier(), tmp_path_factory.mktemp("served") / "flowers" / "1", top_k=2)


@pytest.fixture(scope="module")
def answers(written: ServedModel, contents: list[bytes], odd: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a process without pipegen answers: the facts that it prints, and the arrays."""
    folder = tmp_path_factory.mktemp("requests")
    good = contents[0]
    bad = {
        "cut": good[:300],
        "empty": b"",
        "text": b"no image at all",
        "tiff": encoded(picture(1, 9, 9), "TIFF"),
        "deep": b"\x89PNG\r\n\x1a\n",
    }
    requests = {"one": contents[:1], "three": contents[:3], "many": contents[:64], "odd": list(odd.values())}
    requests |= {name: [good, damaged] for name, damaged in bad.items()}
    asked = {name: [{"b64": base64.b64encode(c).decode()} for c in batch] for name, batch in requests.items()}
    (folder / "requests.json").write_text(json.dumps(asked))
    script = Path(__file__).with_name("served_process.py").read_text()
    paths = (str(written.path), str(folder / "requests.json"), str(folder / "out.npz"))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = copies.run(script, *paths, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]), np.load(folder / "out.npz")


def predicted(pipe: Any, files: list[bytes], folder: Path) -> Any:
    """What `predict_on` gives of some files."""
    paths = []
    for i, content in enumerate(files):
        (folder / f"{i:03d}.img").write_bytes(content)
        paths.append(str(folder / f"{i:03d}.img"))
    return pipe.predict_on(paths).dataset


@pytest.mark.nightly
def test_without_pipegen_the_input_is_that_of_predict_on(answers: Any, pipe: Any, contents: list[bytes], tmp_path: Path) -> None:
    facts, arrays = answers
    assert facts["pipegen"] == []
    assert facts["inputs"] == ["image_bytes"], "what ends in _bytes takes base64"
    given = predicted(pipe, contents[:64], tmp_path)
    (wanted,) = stream(given)
    scores = classifier().predict(given, verbose=0)
    for name, count in {"one": 1, "three": 3, "many": 64}.items():
        assert facts["answers"][name] == "answered"
        np.testing.assert_array_equal(arrays[f"{name}/input"], wanted[:count])
        np.testing.assert_allclose(arrays[f"{name}/scores"], scores[:count], rtol=0, atol=1e-5)
    best = np.argsort(-scores, axis=1)[:, :2]
    np.testing.assert_array_equal(arrays["many/top_classes"], np.array(CLASSES, "S")[best])
    np.testing.assert_allclose(arrays["many/top_scores"], np.take_along_axis(scores, best, 1), rtol=0, atol=1e-5)


@pytest.mark.nightly
def test_every_format_is_decoded_as_in_training(answers: Any, pipe: Any, odd: dict[str, bytes], tmp_path: Path) -> None:
    facts, arrays = answers
    assert facts["answers"]["odd"] == "answered"
    (wanted,) = stream(predicted(pipe, list(odd.values()), tmp_path))
    for i, name in enumerate(odd):
        np.testing.assert_array_equal(arrays["odd/input"][i], wanted[i], err_msg=name)


@pytest.mark.parametrize(("name", "words"), [
    ("cut", "Invalid JPEG data"),
    ("empty", "image 1 of the request (from 0), 0 bytes, is not a JPEG, PNG, GIF, BMP or WebP file"),
    ("text", "image 1 of the request (from 0), 15 bytes, is not a JPEG, PNG, GIF, BMP or WebP file"),
    ("tiff", "is not a JPEG, PNG, GIF, BMP or WebP file"),
    ("deep", ""),
])  # fmt: skip
def test_a_damaged_image_is_a_clear_error(answers: Any, name: str, words: str) -> None:
    said = answers[0]["answers"][name]
    assert said != "answered"
    assert words in said


def test_the_file_holds_no_python_and_no_path(written: ServedModel, photo_folder: Path) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    content = (written.path / "saved_model.pb").read_bytes()
    assert str(photo_folder).encode() not in content
    graph = saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def
    ops = {node.op for nodes in (graph.node, *(f.node_def for f in graph.library.function)) for node in nodes}
    assert "DecodeJpeg" in ops
    assert not {op for op in ops if "Py" in op or "Random" in op or "Dataset" in op}


def test_what_was_written_says_what_it_is(written: ServedModel, pipe: Any) -> None:
    assert repr(written).endswith("image_bytes string[?] -> scores float32[?, 3], top_scores float32[?, 2], top_classes string[?, 2])")
    assert (written.path / "assets" / "class_names.txt").read_text() == "daisy\nrose\ntulip\n"
    about = json.loads((written.path / "assets.extra" / "pipegen.json").read_text())
    assert (about["takes"], about["class_names"], about["spec_hash"]) == ("bytes", list(CLASSES), pipe.spec_hash)
    assert about["request"] == {"image_bytes": {"dtype": "string", "shape": [None]}}
    assert [entry.name for entry in written.path.parent.iterdir()] == ["1"], "nothing is left beside it"


@pytest.mark.nightly
def test_saved_model_cli_shows_the_signature(written: ServedModel) -> None:
    command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "show", "--dir", str(written.path), "--tag_set", "serve"]
    done = subprocess.run([*command, "--signature_def", "serving_default"], capture_output=True, text=True, timeout=180, check=False)
    shown = " ".join(done.stdout.split())
    assert "inputs['image_bytes'] tensor_info: dtype: DT_STRING shape: (-1)" in shown, done.stderr[-2000:]
    assert "outputs['top_classes'] tensor_info: dtype: DT_STRING shape: (-1, 2)" in shown


def test_the_function_in_this_process(pipe: Any, contents: list[bytes], tmp_path: Path) -> None:
    import tensorflow as tf

    (wanted,) = stream(predicted(pipe, contents[:5], tmp_path))
    fn = pipe.serving_fn()
    np.testing.assert_array_equal(fn(contents[:5]), wanted)
    np.testing.assert_array_equal(fn(image_bytes=tf.constant(contents[2:3])), wanted[2:3])
    assert fn(tf.constant([], tf.string)).shape == (0, SIZE, SIZE, 3)
    model = classifier()
    np.testing.assert_allclose(pipe.serving_fn(model)(contents[:5]), model(wanted), rtol=0, atol=1e-6)
    assert len(stream(pipe.predict_on(tmp_path).dataset)[0]) == 5, "what was traced for a file is not used here"


@pytest.mark.nightly
def test_with_xla_it_is_within_rounding(pipe: Any, photo_folder: Path, contents: list[bytes], tmp_path: Path) -> None:
    (plain,) = stream(predicted(pipe, contents[:3], tmp_path))
    (compiled,) = stream(predicted(pipeline(photo_folder, {"jit": "auto"}, transforms=RECIPE), contents[:3], tmp_path))
    fn = pipe.serving_fn(jit=True)
    for count in (1, 3):
        for wanted in (plain, compiled):
            np.testing.assert_allclose(fn(contents[:count]), wanted[:count], rtol=0, atol=E1_OF_COLOUR)


@pytest.mark.nightly
def test_decoded_images(pipe: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    shots = np.stack([picture(i, 40, 60) for i in range(3)])
    fn = pipe.serving_fn(takes="images")
    np.testing.assert_array_equal(fn(shots), stream(pipe.predict_on(shots).dataset)[0])
    done = pipe.export_model(classifier(), tmp_path / "images", takes="images", top_k=0)
    assert repr(done).endswith("image uint8[?, ?, ?, 3] -> scores float32[?, 3])")
    served = tf.saved_model.load(tmp_path / "images").signatures["serving_default"]
    assert served(image=tf.constant(shots))["scores"].shape == (3, 3)


ODD_DECODES = [
    ({"channels": 1}, 1),
    pytest.param({"channels": 4, "exif": "ignore"}, 4, marks=pytest.mark.nightly),
    pytest.param({"jpeg": "accurate"}, 3, marks=pytest.mark.nightly),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("arguments", "channels"), ODD_DECODES)
def test_other_ways_to_decode(arguments: dict[str, Any], channels: int, photo_folder: Path, odd: dict[str, bytes], tmp_path: Path) -> None:
    own = pipeline(photo_folder, transforms=[{"decode": arguments}, RESIZE])
    files = [content for name, content in odd.items() if channels != 4 or name not in ("gif", "bmp", "webp")]
    (wanted,) = stream(predicted(own, files, tmp_path))
    assert wanted.shape[-1] == channels
    np.testing.assert_array_equal(own.serving_fn()(files), wanted)


@pytest.mark.nightly
def test_an_image_and_a_tensor(photo_folder: Path, tmp_path: Path) -> None:
    import keras
    import tensorflow as tf

    files = sorted(photo_folder.rglob("*.jpg"))[:12]
    rows = [f"{file},{i * 0.5},{i % 3},{i % 2}" for i, file in enumerate(files)]
    (tmp_path / "photos.csv").write_text("\n".join(["file,age,weight,sex", *rows]) + "\n")
    features = {
        "photo": {"kind": "image", "column": "file"},
        "facts": {"kind": "tensor", "columns": ["age", "weight"]},
        "sex": {"kind": "label", "column": "sex"},
    }
    output = {"x": {"picture": "photo", "facts": "facts"}, "y": "sex", "encode": {"sex": "binary"}}
    spec = sections(
        photo_folder, source={"csv": {"path": str(tmp_path / "photos.csv"), "features": features}}, transforms=[RESIZE], output=output
    )
    pipe = pipegen.build(spec, runtime={"jit": "never", "cache": "none"})
    picture_in, facts_in = keras.Input((SIZE, SIZE, 3), name="picture"), keras.Input((2,), name="facts")
    seen = keras.layers.GlobalAveragePooling2D()(picture_in)
    model = keras.Model([picture_in, facts_in], keras.layers.Dense(1, "sigmoid")(keras.layers.Concatenate()([seen, facts_in])))
    ((x, _),) = list(pipe["validation"])
    names = [i for i in range(12) if any(np.allclose(x["facts"][j], [i * 0.5, i % 3]) for j in range(len(x["facts"])))]
    request = {"photo_bytes": tf.constant([files[i].read_bytes() for i in names]), "facts": tf.constant([[i * 0.5, i % 3] for i in names])}
    given = pipe.serving_fn()(**request)
    np.testing.assert_array_equal(given["picture"], x["picture"])
    np.testing.assert_array_equal(given["facts"], x["facts"])
    done = pipe.export_model(model, tmp_path / "served", top_k=1)
    served = tf.saved_model.load(done.path).signatures["serving_default"](**request)
    scores = model(x).numpy()
    np.testing.assert_allclose(served["scores"], scores, atol=1e-5)
    assert [c.decode() for c in served["top_classes"].numpy()[:, 0]] == ["1" if s > 0.5 else "0" for s in scores[:, 0]]
    np.testing.assert_allclose(served["top_scores"], np.maximum(scores, 1 - scores), atol=1e-5)


def test_what_is_wrong_is_said_before_anything_is_written(pipe: Any, photo_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"PG540.*`random_flip` is random on split `validation`"):
        shared(photo_folder, transforms=[RESIZE, {"random_flip": {"when": "all"}}]).serving_fn()
    with pytest.raises(ModelMismatchError, match="takes 8×8×3, and the pipeline gives 24×24×3"):
        pipe.export_model(classifier(size=8), tmp_path / "a")
    with pytest.raises(TypeError, match="takes a Keras model"):
        pipe.export_model("model.keras", tmp_path / "a")
    with pytest.raises(ValueError, match="`takes` is 'bytes' or 'images', got 'files'"):
        pipe.serving_fn(takes="files")
    with pytest.raises(ValueError, match="`top_k` is at least 0"):
        pipe.export_model(classifier(), tmp_path / "a", top_k=-1)
    assert not list(tmp_path.iterdir())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError):
        pipe.export_model(classifier(), tmp_path / "full")
    assert [entry.name for entry in (tmp_path / "full").iterdir()] == ["mine.txt"]


def by_runtime(form: str, file: Path) -> Any:
    """A function from one image to what the file gives of it."""
    import tensorflow as tf

    if form == "onnx":
        session = pytest.importorskip("onnxruntime").InferenceSession(str(file))
        return lambda shot: session.run(None, {"image": shot[None]})[0][0]
    interpreter = tf.lite.Interpreter(str(file))
    (entry,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()

    def run(shot: Any) -> Any:
        interpreter.resize_tensor_input(entry["index"], [1, *shot.shape])
        interpreter.allocate_tensors()
        interpreter.set_tensor(entry["index"], shot[None])
        interpreter.invoke()
        return interpreter.get_tensor(out["index"])[0].copy()

    return run


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter:UserWarning")
@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_other_runtimes(form: str, photo_folder: Path, tmp_path: Path) -> None:
    if form == "onnx":
        pytest.importorskip("tf2onnx")
    model, shots = classifier(), np.stack([picture(i, 40, 60) for i in range(3)])
    pipe = shared(photo_folder, transforms=[step for step in RECIPE if "contrast" not in step])
    size = (40, 60) if form == "tflite" else None
    done = pipe.export_model(model, tmp_path / f"m.{form}", takes="images", form=form, image_size=size)
    assert done.class_names == CLASSES
    assert json.loads((tmp_path / f"m.{form}.json").read_text())["class_names"] == list(CLASSES)
    wanted = pipe.serving_fn(model, takes="images")(shots)
    run = by_runtime(form, done.path)
    np.testing.assert_allclose([run(shot) for shot in shots], wanted, rtol=0, atol=5e-3, err_msg="resized by rules of its own")
    bent = shared(photo_folder, transforms=[RESIZE, {"rotation": {"degrees": 10}}, {"rescale": {"to": [0, 1]}}])
    with pytest.raises(SpecError, match=r"PG543.*does not support `BitwiseAnd`.*, which `rotation` computes"):
        bent.export_model(model, tmp_path / "bent", takes="images", form=form)
    with pytest.raises(ValueError, match="cannot decode image files"):
        pipe.export_model(model, tmp_path / "bent", form=form)
    assert not (tmp_path / "bent").exists()


def test_arrays_are_served_as_images_alone() -> None:
    images = np.stack([picture(i, SIZE, SIZE) for i in range(6)]).astype(np.float32) / 255
    source = {"arrays": {"features": {"image": {"kind": "image"}, "row": {"kind": "tensor"}}}}
    spec = {
        "pipegen": 1,
        "source": source,
        "transforms": [{"resize": {"size": 12}}],
        "batch": {"size": 2},
        "output": {"x": "image", "y": "row"},
    }
    pipe = pipegen.build(spec, data={"image": images, "row": np.arange(6.0)}, runtime={"jit": "never", "cache": "none"})
    with pytest.raises(SpecError, match="PG541"):
        pipe.serving_fn()
    np.testing.assert_array_equal(pipe.serving_fn(takes="images")(images), stream(pipe.predict_on(images).dataset)[0])
