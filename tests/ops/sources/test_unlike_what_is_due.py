"""What is stored is something else than the spec says: the error says what it is, and what to write."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from record_files import png

from pipegen.errors import OpError
from pipegen.jpeg_damage import damage_inside
from pipegen.ops.registry import sources

if TYPE_CHECKING:
    from pathlib import Path

IMAGE: dict[str, Any] = {"image": {"kind": "image"}}
LABEL: dict[str, Any] = {"label": {"kind": "label"}}


def refusal(op: str, path: Path, features: dict[str, Any]) -> OpError:
    with pytest.raises(OpError) as raised:
        sources()[op].model_validate({"path": path.name, "features": features}).list(path.parent)
    return raised.value


@pytest.mark.parametrize(("shape", "dtype", "says"), [
    ((4, 6, 8, 3), "float64", "or an array of uint8, uint16 or float32"),
    ((4, 6, 8, 3), "int32", "or an array of uint8, uint16 or float32"),
    ((4, 3, 6, 8), "uint8", "the channels of `image` seem to come first: its shape is (4, 3, 6, 8)"),
])  # fmt: skip
def test_arrays_that_are_no_pictures(tmp_path: Path, shape: tuple[int, ...], dtype: str, says: str) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["image"] = np.zeros(shape, dtype)
    assert says in refusal("hdf5", path, IMAGE).message


def test_a_feature_list_is_called_one(tmp_path: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    train = tf.train
    steps = train.FeatureList(feature=[train.Feature(bytes_list=train.BytesList(value=[png(1, 2, 3)]))])
    context = train.Features(feature={"label": train.Feature(int64_list=train.Int64List(value=[1]))})
    made = train.SequenceExample(context=context, feature_lists=train.FeatureLists(feature_list={"image": steps}))
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(made.SerializeToString())
    assert (
        "'image' of the first record is a feature list of a `tf.SequenceExample`"
        in refusal("tfrecord", tmp_path / "a.tfrecord", IMAGE).message
    )
    sources()["tfrecord"].model_validate({"path": "a.tfrecord", "features": LABEL}).list(tmp_path)


def test_rows_without_a_label(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": [png(1, 2, 3)] * 3, "label": [-1, 0, 1]}), tmp_path / "a.parquet")
    error = refusal("parquet", tmp_path / "a.parquet", IMAGE | LABEL)
    assert "list -1 in `ignore`" in str(error.help)
    told = {"kind": "label", "ignore": [-1]}
    listing = sources()["parquet"].model_validate({"path": "a.parquet", "features": IMAGE | {"label": told}}).list(tmp_path)
    assert len(listing.keys) == 2


def test_a_picture_that_is_only_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    images = pa.array([{"bytes": None, "path": "a.png"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    pq.write_table(pa.table({"image": images}), tmp_path / "a.parquet")
    listing = sources()["parquet"].model_validate({"path": "a.parquet", "features": IMAGE}).list(tmp_path)
    reader = listing.readers["image"] if "image" in listing.readers else next(iter(listing.readers.values()))
    with pytest.raises(ValueError, match=r"'image\.bytes' is empty; if a path beside it names the image"):
        reader.stored("image", np.zeros(1, np.int64))


def test_bytes_before_the_end_of_a_jpeg_have_two_causes() -> None:
    pytest.importorskip("simplejpeg")
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)).save(stream, "JPEG")
    whole = stream.getvalue()
    assert damage_inside(whole) is None
    assert "harmless if a program added them" in str(damage_inside(whole[:-2] + b"\x12\x34\x56\x78" * 3 + whole[-2:]))
    middle = len(whole) // 2
    assert "no harm" not in str(damage_inside(whole[:middle] + whole[middle + 300 :]))
