"""Files that are no plain JPEGs, where almost all are: they are decoded outside the graph, to the same pixels and errors."""

from __future__ import annotations

from pathlib import Path
from pipes import batches, pipeline
from typing import Any

import numpy as np
import picture_files as made
import pytest

from pipegen.backend.reading import split_records

pytestmark = pytest.mark.tf

Array = np.ndarray[Any, Any]


def every(form: str, channels: Any, *, rare: bool, exif: Any, need: tuple[int, int] | None) -> dict[str, Array | str]:
    """The pixels of all files of a format, decoded in a graph, or why there are none."""
    import tensorflow as tf

    from pipegen.ops.lowering import graphs
    from pipegen.ops.lowering.decoding import decode
    from pipegen.ops.lowering.python_calls import reason

    with graphs.meanwhile(graphs.plain_jpegs, rare):
        traced = tf.function(lambda contents: decode(contents, channels, exif=exif, need=need), autograph=False)
        traced = traced.get_concrete_function(tf.TensorSpec([], tf.string))
    found: dict[str, Array | str] = {}
    for name, contents in made.files(form).items():
        try:
            found[name] = traced(tf.constant(contents)).numpy()
        except tf.errors.InvalidArgumentError as error:
            found[name] = reason(error)
    return found


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("need", [None, (8, 8)])
@pytest.mark.parametrize("exif", ["apply", "ignore"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("form", made.FORMATS)
def test_a_rare_file_has_the_same_pixels_or_the_same_error(form: str, channels: int, exif: str, need: tuple[int, int] | None) -> None:
    alone, usual = (every(form, channels, rare=rare, exif=exif, need=need) for rare in (True, False))
    assert alone.keys() == usual.keys()
    for name, expected in usual.items():
        np.testing.assert_array_equal(alone[name], expected, err_msg=name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 files, of which three are no plain JPEGs."""
    from PIL import Image

    root = tmp_path_factory.mktemp("rare") / "photos"
    others = [
        made.oriented("PNG", 6, size=(40, 30)),
        made.oriented("JPEG", 8, size=(40, 30)),
        made.saved(Image.new("CMYK", (30, 40)), "JPEG"),
    ]
    for number in range(40):
        path = root / "ab"[number % 2] / f"{number:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        odd = number in (15, 20, 33)
        plain = made.saved(Image.fromarray(np.roll(made.photo(40, 30), number, 1)), "JPEG")
        path.write_bytes(others.pop() if odd else plain)
    return root


@pytest.mark.parametrize("first", [{"resize": {"size": [24, 24]}}, {"random_resized_crop": {"size": [24, 24]}}], ids=["whole", "window"])
def test_a_batch_is_the_same(folder: Path, first: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    own: dict[str, Any] = {"splits": {"parts": {"validation": 2, "train": 38}}, "transforms": [first]}
    monkeypatch.setattr(split_records, "_SAMPLE", 1)
    alone = pipeline(folder, **own)
    found = batches(alone.train)
    assert alone._engine.executor("train")._plain_files == {"image"}
    monkeypatch.setattr(split_records.Records, "plain_files", lambda *_: frozenset())
    usual = batches(pipeline(folder, **own).train)
    assert len(found) == len(usual) == 4
    for one, other in zip(found, usual, strict=True):
        np.testing.assert_array_equal(one[0], other[0])


def test_few_plain_jpegs_are_no_rule(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "one.jpg").write_bytes(made.oriented("JPEG", 8))
    from pipegen.ops.lowering.decoding import are_plain_jpegs

    paths = sorted(map(str, folder.rglob("*.jpg")))
    assert are_plain_jpegs(split_records._starts(paths[:9]))
    assert not are_plain_jpegs(split_records._starts([*paths[:9], str(tmp_path / "one.jpg")]))
    assert not are_plain_jpegs(split_records._starts([*paths[:9], str(tmp_path / "none.jpg")]))
    assert not are_plain_jpegs(split_records._starts([]))


def test_a_graph_that_may_run_in_another_process_calls_no_python() -> None:
    import tensorflow as tf

    from pipegen.backend.reading.manifest_columns import columns_captured
    from pipegen.ops.lowering import graphs

    with tf.Graph().as_default(), graphs.meanwhile(graphs.plain_jpegs, True):
        assert graphs.decodes_rare_files_in_python()
        with columns_captured(None):
            assert not graphs.decodes_rare_files_in_python()
        for target in ("file", "converter", "device"):
            with graphs.made_for(target):
                assert not graphs.decodes_rare_files_in_python()
