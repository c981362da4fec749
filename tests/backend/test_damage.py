"""Records that cannot be read: the message names file, step and remedy, wherever it surfaces; `skip` keeps every slot."""

from __future__ import annotations

import json
import shutil
from pipes import GEOMETRY, RESIZE, SIZE, epoch_of, pipeline, same, sections, shared, stream
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

import pipegen
from pipegen.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

QUICK = {"jit": "never", "cache": "none"}


def truncate(path: Path) -> None:
    """Leave the first part of a JPEG: enough to know what it is, too little to decode."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@pytest.fixture
def folder(photo_folder: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(photo_folder, tmp_path / "photos")


def damage(folder: Path, split: str, *places: int) -> list[str]:
    """Truncate some JPEGs of a split, by their place in it."""
    files = [f for f in shared_files(folder, split) if f.endswith(".jpg")]
    chosen = [files[i] for i in places]
    for file in chosen:
        truncate(type(folder)(file))
    return chosen


def shared_files(folder: Path, split: str) -> tuple[str, ...]:
    return pipeline(folder).files(split)


def write_spec(folder: Path, **own: Any) -> Path:
    """The spec as a file, so that messages can name its lines."""
    path = folder.parent / "flowers.pipegen.yaml"
    path.write_text(yaml.safe_dump(sections(folder, **own), sort_keys=False))
    return path


def first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


@pytest.mark.smoke
def test_the_first_line_names_file_line_step_and_setting(folder: Path) -> None:
    (bad,) = damage(folder, "train", 5)
    spec = write_spec(folder, transforms=[{"decode": {"exif": "ignore"}}, RESIZE])
    line = next(i for i, text in enumerate(spec.read_text().splitlines(), 1) if "decode" in text)
    with pytest.raises(DataError) as caught:
        stream(pipegen.build(spec, runtime=QUICK).train)
    text = first_line(caught.value)
    assert f"cannot decode {bad}" in text
    assert f"step `decode`, {spec}:{line}:" in text
    assert "errors: {decode: {skip:" in text


def test_an_implicit_decode_has_a_place_too(folder: Path) -> None:
    (bad,) = damage(folder, "train", 0)
    spec = write_spec(folder)
    with pytest.raises(DataError) as caught:
        stream(pipegen.build(spec, runtime=QUICK).train)
    text = first_line(caught.value)
    assert bad in text
    assert "step `decode`" in text
    assert str(spec) in text


def test_a_spec_without_a_file_names_the_key_path(folder: Path) -> None:
    damage(folder, "train", 5)
    with pytest.raises(DataError) as caught:
        stream(pipeline(folder, transforms=[{"decode": {"exif": "ignore"}}, RESIZE]).train)
    assert "(step `decode`, transforms[0].decode)" in first_line(caught.value)


@pytest.mark.smoke
def test_fit_raises_the_same(folder: Path) -> None:
    import keras

    (bad,) = damage(folder, "train", 5)
    pipe = pipeline(folder)
    model = keras.Sequential([keras.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(DataError) as caught:
        model.fit(pipe.train, epochs=1, verbose=0)
    assert bad in first_line(caught.value)
    assert "skip" in first_line(caught.value)


def test_evaluate_and_predict_name_the_file_and_what_helps_there(folder: Path) -> None:
    import keras

    (bad,) = damage(folder, "validation", 3)
    pipe = pipeline(folder)
    model = keras.Sequential([keras.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    for run in (model.evaluate, model.predict):
        with pytest.raises(DataError) as caught:
            run(pipe.validation, verbose=0)
        assert bad in first_line(caught.value)
        assert "exclude" in first_line(caught.value)


@pytest.mark.parametrize("derive", ["map", "repeat", "class_weight"])
def test_a_derived_dataset_names_the_file(folder: Path, derive: str) -> None:
    import keras

    (bad,) = damage(folder, "train", 5)
    pipe = pipeline(folder)
    model = keras.Sequential([keras.Input((SIZE, SIZE, 3)), keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(Exception, match="cannot read or decode") as caught:
        if derive == "map":
            list(pipe.train.map(lambda x, y: x))
        elif derive == "repeat":
            list(pipe.train.repeat(2))
        else:
            model.fit(pipe.train, class_weight=pipe.class_weights, verbose=0)
    assert bad in str(caught.value)


def test_a_file_that_vanished_is_named(folder: Path) -> None:
    import pathlib

    pipe = pipeline(folder)
    gone = pipe.files("train")[7]
    pathlib.Path(gone).unlink()
    with pytest.raises(DataError) as caught:
        stream(pipe.train)
    assert f"cannot read {gone}" in first_line(caught.value)
    assert "No such file" in first_line(caught.value)


def test_what_is_no_image_is_named(folder: Path) -> None:
    import pathlib

    pipe = pipeline(folder)
    bad = pathlib.Path(pipe.files("train")[7])
    bad.write_bytes(b"no image at all, but long enough to be looked at")
    with pytest.raises(DataError, match="cannot decode") as caught:
        stream(pipe.train)
    assert str(bad) in first_line(caught.value)


def test_an_image_too_small_for_a_crop_is_named(folder: Path) -> None:
    from PIL import Image

    pipe = pipeline(folder, transforms=[{"decode": {"scaled": "never"}}, {"random_crop": {"size": 25}}])
    small = pipe.files("train")[4]
    Image.new("RGB", (20, 60)).save(small)
    with pytest.raises(DataError) as caught:
        stream(pipe.train)
    assert small in first_line(caught.value)
    assert "random_crop" in first_line(caught.value)


def test_a_16_bit_png_says_what_to_do(folder: Path) -> None:
    from PIL import Image

    pipe = pipeline(folder)
    bad = pipe.files("train")[4]
    Image.fromarray(np.full((40, 40), 40_000, np.uint16)).save(bad, "PNG")
    with pytest.raises(DataError, match="16") as caught:
        stream(pipe.train)
    assert bad in first_line(caught.value)


def test_a_webp_is_decoded_or_named(folder: Path) -> None:
    import tensorflow as tf
    from PIL import Image

    pipe = pipeline(folder)
    file = pipe.files("train")[4]
    Image.new("RGB", (40, 40), (9, 99, 199)).save(file, "WEBP")
    if tuple(int(v) for v in tf.__version__.split(".")[:2]) >= (2, 19):
        assert len(stream(pipe.train)[0]) == 32
        return
    with pytest.raises(DataError, match="WebP") as caught:
        stream(pipe.train)
    assert file in first_line(caught.value)


def test_the_pipeline_goes_on_after_an_error(folder: Path) -> None:
    import pathlib

    pipe = pipeline(folder)
    file = pathlib.Path(pipe.files("train")[5])
    whole = file.read_bytes()
    truncate(file)
    with pytest.raises(DataError):
        stream(pipe.train)
    file.write_bytes(whole)
    same(stream(pipe.train), epoch_of(pipe, 0))


# skip


def skipping(folder: Path, report: Path | None = None, fraction: float = 0.2, **own: Any) -> Any:
    skip = {"max_fraction": fraction} | ({"report": str(report)} if report else {})
    return pipeline(folder, errors={"decode": {"skip": skip}}, **own)


@pytest.mark.smoke
def test_skip_keeps_steps_and_reports_exactly_the_bad_ones(folder: Path, photo_folder: Path, tmp_path: Path) -> None:
    bad = damage(folder, "train", 2, 9, 20)
    report = tmp_path / "damaged.jsonl"
    pipe = skipping(folder, report)
    assert len(pipe.train) == 4
    for epoch in range(3):
        assert [len(x) for x, _ in pipe.numpy("train")] == [8] * 4, epoch
    assert sorted(json.loads(line)["file"] for line in report.read_text().splitlines()) == sorted(bad)


def test_skip_leaves_the_good_ones_where_they_are(folder: Path, photo_folder: Path) -> None:
    bad = damage(folder, "train", 2, 9, 20)
    pipe, whole = skipping(folder), shared(photo_folder)
    names = [file.split("/")[-2:] for file in whole.files("train")]
    gone = [names.index(file.split("/")[-2:]) for file in bad]
    from pipes import Identify

    plain = epoch_of(shared(photo_folder, transforms=[RESIZE]), 1)
    order = np.asarray(Identify(photo_folder)(plain[0]))
    images, labels = epoch_of(pipe, 1)
    expected, _ = epoch_of(whole, 1)
    kept = ~np.isin(order, gone)
    assert 0 < np.count_nonzero(~kept) <= 3
    np.testing.assert_array_equal(images[kept], expected[kept])
    np.testing.assert_array_equal(labels[kept], whole.labels("train")[order][kept])


def test_the_next_good_record_of_the_block_stands_in_with_draws_of_its_own(folder: Path, photo_folder: Path) -> None:
    from pipes import Identify

    bad = damage(folder, "train", 2, 9, 20)
    pipe = skipping(folder, transforms=[RESIZE])
    who = Identify(photo_folder)
    plain = who(epoch_of(shared(photo_folder, transforms=[RESIZE]), 1)[0])
    images, labels = epoch_of(pipe, 1)
    served = who(images)
    np.testing.assert_array_equal(pipe.labels("train")[served], labels)
    gone = [i for i, file in enumerate(pipe.files("train")) if file in bad]
    for at, (meant, got) in enumerate(zip(plain, served, strict=True)):
        block = plain[at // 8 * 8 : at // 8 * 8 + 8]
        following = [*block[at % 8 + 1 :], *block[: at % 8]]
        assert got == (meant if meant not in gone else next(r for r in following if r not in gone))
    augmented, _ = epoch_of(skipping(folder), 1)
    assert len({image.tobytes() for image in augmented}) == 32, "a stand-in is no copy"


def test_skip_resumes_and_repeats(folder: Path) -> None:
    damage(folder, "train", 2, 9, 20)
    pipe = skipping(folder)
    first = epoch_of(pipe, 1)
    same(epoch_of(pipe, 1), first)
    same(epoch_of(pipe, 1, 2), [part[16:] for part in first])
    pipe._seek(1, 0)
    same(stream(pipe.train.map(lambda x, y: (x, y))), first)


def test_skip_runs_under_a_memory_cache_too(folder: Path) -> None:
    damage(folder, "train", 2)
    pipe = pipegen.build(sections(folder, errors={"decode": {"skip": {"max_fraction": 0.1}}}), runtime={"jit": "never", "cache": "memory"})
    same(epoch_of(pipe, 0), epoch_of(skipping(folder), 0))
    same(epoch_of(pipe, 1), epoch_of(skipping(folder), 1))


def test_more_damage_than_allowed_is_an_error_that_names_it(folder: Path) -> None:
    bad = damage(folder, "train", 2, 9, 20)
    pipe = skipping(folder, fraction=0.05)
    with pytest.raises(DataError) as caught:
        for _ in range(3):
            stream(pipe.train)
    text = first_line(caught.value)
    assert "max_fraction: 0.05" in text
    assert sum(file in text for file in bad) == 2


def test_other_splits_raise_whatever_skip_says(folder: Path) -> None:
    (bad,) = damage(folder, "validation", 1)
    pipe = skipping(folder)
    with pytest.raises(DataError) as caught:
        stream(pipe.validation)
    assert bad in first_line(caught.value)
    assert "exclude" in first_line(caught.value)


@pytest.mark.smoke
def test_an_excluded_file_is_in_no_split(folder: Path) -> None:
    bad = [*damage(folder, "validation", 1), *damage(folder, "train", 3)]
    listed = folder.parent / "bad.txt"
    listed.write_text("# damaged\n" + "".join(f"{'/'.join(file.split('/')[-2:])}\n" for file in bad))
    pipe = pipeline(folder, errors={"exclude": str(listed)})
    assert pipe.num_examples("train") + pipe.num_examples("validation") == 41
    assert not set(bad) & {*pipe.files("train"), *pipe.files("validation")}
    assert len(stream(pipe.validation)[0]) == pipe.num_examples("validation")
    assert len(stream(pipe.train)[0]) == 8 * pipe.steps("train")


def test_a_remote_reason_is_one_readable_line(folder: Path) -> None:
    damage(folder, "train", 5)
    with pytest.raises(DataError) as caught:
        stream(pipeline(folder, transforms=GEOMETRY).train)
    text = str(caught.value)
    assert "\n" not in text
    assert "{{" not in text
    assert "node" not in text.lower()
