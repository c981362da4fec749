"""Records that cannot be read: the first line of the message names file, place, step and remedy, wherever it surfaces."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from pipes import FLIPPED, RESIZE, SIZE, batches, close, epoch_of, pipeline, same, sections, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

import pipegen
from pipegen.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.tf

QUICK = {"jit": "never", "cache": "none"}


def half(path: str) -> bytes:
    """The first part of a JPEG: enough to know what it is, too little to decode."""
    data = Path(path).read_bytes()
    return data[: len(data) // 2]


@contextmanager
def damaged(pipe: Any, split: str, place: int, contents: bytes | None = None) -> Iterator[str]:
    """The JPEG at a place of a split, with other contents for a while."""
    file = [f for f in pipe.files(split) if f.endswith(".jpg")][place]
    whole = Path(file).read_bytes()
    Path(file).write_bytes(half(file) if contents is None else contents)
    try:
        yield file
    finally:
        Path(file).write_bytes(whole)


@pytest.fixture(scope="module")
def folder(photo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to damage; each test mends what it broke."""
    return shutil.copytree(photo_folder, tmp_path_factory.mktemp("damage") / "photos")


@pytest.fixture
def pipe(folder: Path) -> Any:
    made = shared(folder, transforms=FLIPPED)
    made.seek(0, 0)
    return made


def spec_file(folder: Path, **own: Any) -> Path:
    """The spec as a file, so that messages can name its lines."""
    path = folder.parent / "flowers.pipegen.yaml"
    path.write_text(yaml.safe_dump(sections(folder, **own), sort_keys=False))
    return path


def line_of(spec: Path, word: str) -> int:
    return next(i for i, text in enumerate(spec.read_text().splitlines(), 1) if word in text)


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def model() -> Any:
    import keras

    made = keras.Sequential([keras.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    made.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    return made


FITS = {
    "plain": lambda pipe: model().fit(pipe.train, verbose=0),
    "class_weight": lambda pipe: model().fit(pipe.train, class_weight=pipe.class_weights, verbose=0),
    "repeat": lambda pipe: model().fit(pipe.train.repeat(), steps_per_epoch=4, verbose=0),
}


@pytest.fixture(scope="module")
def from_file(folder: Path) -> tuple[Any, Path]:
    """A pipeline from a spec in a file, whose `decode` has a line of its own."""
    spec = spec_file(folder, transforms=[{"decode": {"exif": "ignore"}}, RESIZE])
    return pipegen.build(spec, runtime=QUICK), spec


@pytest.mark.smoke
@pytest.mark.parametrize("fit", list(FITS))
def test_the_first_line_out_of_fit_names_file_line_step_and_setting(from_file: Any, fit: str) -> None:
    made, spec = from_file
    with damaged(made, "train", 5) as bad, pytest.raises(DataError) as caught:
        FITS[fit](made)
    text = str(caught.value)
    assert "\n" not in text, "all of it is the first line"
    assert f" {bad} " in text
    assert f"(step `decode`, {spec}:{line_of(spec, 'decode')}:" in text
    assert "`errors: {decode: {skip: {max_fraction: 0.01}}}` would replace it by the next good record" in text
    assert "node" not in text.lower()
    assert "{{" not in text


def test_so_does_iteration_of_any_kind(from_file: Any) -> None:
    import tensorflow as tf

    made, _ = from_file
    runs = [
        lambda: list(made.train),
        lambda: list(made.numpy("train")),
        lambda: made.peek("train", 32),
        lambda: list(made.train.map(lambda x, y: x)),
        lambda: list(made.train.repeat(2).prefetch(1)),
        lambda: list(made.dataset("train", epoch=3)),
    ]
    with damaged(made, "train", 5) as bad:
        for run in runs:
            with pytest.raises(DataError) as caught:
                run()
            assert bad in first_line(caught.value)
            assert "(step `decode`, " in first_line(caught.value)
        with pytest.raises(tf.errors.OpError, match="cannot read or decode") as raw:
            list(made.train.batch(2))
        assert bad in str(raw.value), "TensorFlow's own words, with ours among them"


def test_an_implicit_decode_and_a_spec_without_a_file_have_a_place_too(folder: Path, pipe: Any) -> None:
    spec = spec_file(folder, transforms=[RESIZE])
    with damaged(pipe, "train", 0) as bad:
        with pytest.raises(DataError) as caught:
            stream(pipegen.build(spec, runtime=QUICK).train)
        assert f"cannot decode {bad} (step `decode`, {spec}:{line_of(spec, 'transforms')}:" in first_line(caught.value)
        with pytest.raises(DataError) as caught:
            stream(pipeline(folder, transforms=[{"decode": {"exif": "ignore"}}, RESIZE]).train)
        assert "(step `decode`, transforms[0].decode)" in first_line(caught.value)


def test_evaluate_and_predict_name_the_file_and_what_helps_there(pipe: Any) -> None:
    fitted = model()
    with damaged(pipe, "validation", 3) as bad:
        for run in (fitted.evaluate, fitted.predict):
            with pytest.raises(DataError) as caught:
                run(pipe.validation, verbose=0)
            assert bad in first_line(caught.value)
            assert "exclude" in first_line(caught.value)
            assert "skip" not in first_line(caught.value), "which is for training alone"


def test_a_file_that_vanished_is_named(pipe: Any) -> None:
    gone = Path(pipe.files("train")[7])
    away = gone.rename(gone.with_suffix(".away"))
    try:
        with pytest.raises(DataError) as caught:
            stream(pipe.train)
    finally:
        away.rename(gone)
    assert f"cannot read {gone}" in first_line(caught.value)
    assert "No such file" in first_line(caught.value)


def test_what_is_no_image_is_named(pipe: Any) -> None:
    no_image = b"no image at all, but long enough to be looked at"
    with damaged(pipe, "train", 7, no_image) as bad, pytest.raises(DataError, match="cannot decode") as caught:
        stream(pipe.train)
    assert bad in first_line(caught.value)


def encoded(image: Any, kind: str) -> bytes:
    import io

    out = io.BytesIO()
    image.save(out, kind)
    return out.getvalue()


def test_a_16_bit_png_says_what_to_do(pipe: Any) -> None:
    from PIL import Image

    deep = encoded(Image.fromarray(np.full((40, 40), 40_000, np.uint16)), "PNG")
    with damaged(pipe, "train", 4, deep) as bad, pytest.raises(DataError, match="16") as caught:
        stream(pipe.train)
    assert bad in first_line(caught.value)


@pytest.mark.smoke
def test_a_webp_is_decoded_by_every_tensorflow(pipe: Any) -> None:
    """TensorFlow before 2.21 has no decoder of WebP: there Pillow reads it."""
    from PIL import Image

    webp = encoded(Image.new("RGB", (40, 40), (9, 99, 199)), "WEBP")
    with damaged(pipe, "train", 4, webp):
        assert len(stream(pipe.train)[0]) == 32


def test_an_image_too_small_for_a_crop_is_named(folder: Path) -> None:
    from PIL import Image

    made = pipeline(folder, transforms=[{"decode": {"scaled": "never"}}, {"random_crop": {"size": 25}}])
    small = encoded(Image.new("RGB", (20, 60)), "JPEG")
    with damaged(made, "train", 4, small) as bad, pytest.raises(DataError) as caught:
        stream(made.train)
    assert bad in first_line(caught.value)
    assert "random_crop" in first_line(caught.value)


def test_the_pipeline_goes_on_after_an_error(pipe: Any) -> None:
    expected = epoch_of(pipe, 0)
    pipe.seek(0, 0)
    with damaged(pipe, "train", 5), pytest.raises(DataError):
        stream(pipe.train)
    same(stream(pipe.train), expected)


def test_a_record_that_failed_is_not_taken_for_cached(folder: Path, pipe: Any) -> None:
    """Once it looked filled, and the second pass trained on zeros in its place."""
    expected = epoch_of(pipe, 0), stream(pipe.validation)
    cached = pipeline(folder, {"cache": "memory"}, transforms=FLIPPED)
    for split in ("train", "validation"):
        with damaged(cached, split, 5) as bad:
            for _ in range(3):
                with pytest.raises(DataError) as caught:
                    stream(cached[split])
                assert bad in first_line(caught.value)
    for _ in range(2):
        same(epoch_of(cached, 0), expected[0])
        same(stream(cached.validation), expected[1])


@pytest.mark.smoke
def test_an_excluded_file_is_in_no_split(folder: Path, pipe: Any) -> None:
    with damaged(pipe, "validation", 1) as one, damaged(pipe, "train", 3) as other:
        listed = folder.parent / "bad.txt"
        listed.write_text("# damaged\n" + "".join(f"{'/'.join(file.split('/')[-2:])}\n" for file in (one, other)))
        made = pipeline(folder, transforms=[RESIZE], errors={"exclude": str(listed)})
        assert made.num_examples("train") + made.num_examples("validation") == 41
        assert not {one, other} & {*made.files("train"), *made.files("validation")}
        assert len(stream(made.validation)[0]) == made.num_examples("validation")
        assert len(batches(made.train)) == made.steps("train")


def test_guarded_records_are_the_plain_ones(pipe: Any) -> None:
    """What is derived guards each record, and gives the same."""
    close(stream(pipe.train.map(lambda x, y: (x, y))), epoch_of(pipe, 0), 0)
