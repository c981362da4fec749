"""The source `arrays`: what a spec says of it, what the arrays themselves say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipegen.errors import OpError
from pipegen.ops.sources.arrays import Arrays
from pipegen.ops.sources.listing.base import Listing
from pipegen.types import Interval

HERE = Path()
IMAGES = np.random.default_rng(0).integers(0, 256, (12, 6, 5, 3), np.uint8)
LABELS: np.ndarray[Any, Any] = np.arange(12) % 3


def source(image: dict[str, Any] | None = None, label: dict[str, Any] | None = None, **own: Any) -> Arrays:
    """An image and a label, with arguments of their own."""
    features = {"image": {"kind": "image", **(image or {})}, "label": {"kind": "label", **(label or {})}}
    return Arrays.model_validate({"features": features, **own})


def listed(x: Any = IMAGES, y: Any = LABELS, image: dict[str, Any] | None = None, label: dict[str, Any] | None = None) -> Listing:
    return source(image, label).list(HERE, data={"image": x, "label": y})


def wrong(x: Any = IMAGES, y: Any = LABELS, image: dict[str, Any] | None = None, label: dict[str, Any] | None = None) -> Any:
    """The one finding about arrays that cannot be used."""
    found = listed(x, y, image, label)
    assert found.keys == ()
    (note,) = found.notes
    assert note.severity == "error"
    return note


def test_before_the_data_is_there_the_arguments_say_what_they_can() -> None:
    plain = source()
    assert str(plain.infer()) == "image: uint8[?×?×3] in [0, 255], label: int64"
    assert plain.infer()["image"].is_static, "all rows have one shape, whatever that is"
    assert {t["image"].channels for t in plain.possible()} == {1, 3, 4}
    assert {t["image"].dtype for t in plain.possible()} == {"uint8", "uint16", "float32"}
    told = source({"size": [6, 5], "channels": 1, "bits": 16}, {"classes": ["a", "b"]})
    (only,) = told.possible()
    assert str(only) == "image: uint16[6×5×1] in [0, 65535], label: int64"
    assert only["label"].classes == 2
    assert str(source({"size": 8, "channels": 3, "range": [0, 1]}).possible()[-1]["image"]) == "float32[8×8×3] in [0, 1]"
    assert source({"size": [8, 8]}) == source({"size": 8}), "one meaning has one form, as the hash of a spec needs"
    assert plain.needs_data()
    assert not source(path="x.npz").needs_data()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"features": {"label": {"kind": "label"}}}, "`features` has no image"),
        ({"features": {"image": {"kind": "image", "classes": 3}}}, "`classes` belongs to masks and labels"),
        ({"features": {"image": {"kind": "image"}, "label": {"kind": "label", "bits": 8}}}, "`bits` belongs to images"),
        ({"features": {"image": {"kind": "image", "range": [1, 0]}}}, "the lowest and the highest"),
        ({"features": {"image": {"kind": "image", "range": [0, 1], "bits": 8}}}, "for images of floats"),
        ({"features": {"image": {"kind": "image"}, "label": {"kind": "label", "classes": ["a", "a"]}}}, "listed twice"),
        ({"features": {"image": {"kind": "image", "path": "a.npy"}}, "path": "a.npz"}, "leave one of them out"),
        ({"features": {"image": {"kind": "image", "path": "a.npy"}, "label": {"kind": "label"}}}, "give each array one"),
        ({"features": {"image": {"kind": "image", "path": "a.npy", "key": "x"}}}, "leave `key` out"),
    ],
)
def test_arguments_that_contradict_each_other(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Arrays.model_validate(arguments)


def test_rows_are_records_known_by_their_number() -> None:
    found = listed(y=LABELS[:, None])
    assert found.keys == tuple(map(str, range(12)))
    assert found.location.paths[7] == "7"
    assert tuple(found.labels) == tuple(LABELS.tolist())
    assert found.class_names == ("0", "1", "2")
    assert tuple(found.sizes) == (90,) * 12
    assert vars(found.reader())["arrays"]["image"] is IMAGES, "bytes are not copied"
    assert str(found.type) == "image: uint8[6×5×3] in [0, 255], label: int64"


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (IMAGES[..., 0], "uint8[6×5×1] in [0, 255]"),
        (IMAGES[..., :2], "uint8[6×5×2] in [0, 255]"),
        (IMAGES.astype("uint16") * 257, "uint16[6×5×3] in [0, 65535]"),
        (IMAGES.astype(">u2"), "uint16[6×5×3] in [0, 65535]"),
        (IMAGES / 255, "float32[6×5×3] in [0, 1]"),
        (IMAGES.astype("float16"), "float32[6×5×3] in [0, 255]"),
        (IMAGES / 127.5 - 1, "float32[6×5×3] in [-1, 1]"),
        ((IMAGES - 120.0) / 60, "float32[6×5×3]"),
        (list(IMAGES), "uint8[6×5×3] in [0, 255]"),
        (np.zeros((12, 6, 5, 3)), "float32[6×5×3] in [0, 1]"),
    ],
)
def test_what_the_data_says(x: Any, expected: str) -> None:
    found = listed(x)
    assert found.type is not None
    assert str(found.type["image"]) == expected
    array = vars(found.reader())["arrays"]["image"]
    assert str(array.dtype) == expected.split("[")[0]
    np.testing.assert_allclose(array.reshape(12, -1), np.asarray(x, array.dtype).reshape(12, -1))


def test_a_declared_range_stands() -> None:
    found = listed(IMAGES / 4096.0, image={"range": [0, 16]})
    assert found.type is not None
    assert found.type["image"].interval == Interval(0, 16)


@pytest.mark.parametrize(
    ("x", "image", "code", "said"),
    [
        (IMAGES.astype("int64"), {}, "PG419", 'pass `x.astype("uint8")`'),
        (IMAGES.astype("int32") * 4 - 1, {}, "PG419", "-1..1019; images must be uint8, uint16 or floats"),
        (IMAGES > 9, {}, "PG419", "are bool"),
        (IMAGES.astype("complex64"), {}, "PG419", "are complex64"),
        (IMAGES.reshape(12, -1), {}, "PG204", "(12, 90)"),
        (IMAGES.reshape(12, -1)[:, :81], {}, "PG204", "x.reshape(-1, 9, 9, 1)"),
        (IMAGES[0], {}, "PG204", "looks like one image"),
        (IMAGES.transpose(0, 3, 1, 2), {}, "PG204", "np.moveaxis"),
        (IMAGES[None], {}, "PG204", "(1, 12, 6, 5, 3)"),
        ([IMAGES[0], IMAGES[1, :4]], {}, "PG418", "differ in shape"),
        (IMAGES[:0], {}, "PG402", "no rows"),
        (IMAGES[:, :0], {}, "PG419", "no pixels"),
        (IMAGES, {"channels": 1}, "PG419", "3 channels, not 1"),
        (IMAGES, {"size": 6}, "PG419", "6×5 pixels"),
        (IMAGES, {"bits": 16}, "PG419", "8 bits"),
        (IMAGES, {"range": [0, 1]}, "PG419", "a range of its own"),
        (IMAGES / 255, {"bits": 8}, "PG419", "are floats"),
        (IMAGES / 200, {"range": [0, 1]}, "PG419", "beyond [0, 1]"),
    ],
)
def test_images_that_cannot_be_used(x: Any, image: dict[str, Any], code: str, said: str) -> None:
    note = wrong(x, image=image)
    assert note.code == code
    assert said in f"{note.message}; {note.help}"
    assert note.field.startswith("features.image")


def test_what_is_no_number_is_found_with_its_row() -> None:
    x = IMAGES / 255
    for value in (np.nan, np.inf):
        x[4, 1, 1, 1] = value
        note = wrong(x)
        assert (note.code, note.message) == ("PG419", "row 4 of `image` holds values that are not finite numbers")


@pytest.mark.parametrize(
    ("y", "label", "indices", "names"),
    [
        (LABELS.astype("uint8"), {}, LABELS, ("0", "1", "2")),
        (LABELS.astype(float), {"classes": 4}, LABELS, ("0", "1", "2", "3")),
        (LABELS > 0, {}, LABELS > 0, ("False", "True")),
        (LABELS > 0, {"classes": 2}, LABELS > 0, ("0", "1")),
        (LABELS + 1, {"offset": 1}, LABELS, ("1", "2", "3")),
        (LABELS, {"classes": ["rose", "daisy", "tulip"]}, LABELS, ("rose", "daisy", "tulip")),
        (np.array(["rose", "daisy"] * 6), {}, [1, 0] * 6, ("daisy", "rose")),
        (np.array(["rose", "daisy"] * 6, object), {"classes": ["rose", "daisy"]}, [0, 1] * 6, ("rose", "daisy")),
        ([b"rose", b"daisy"] * 6, {}, [1, 0] * 6, ("daisy", "rose")),
    ],
)
def test_labels(y: Any, label: dict[str, Any], indices: Any, names: tuple[str, ...]) -> None:
    found = listed(y=y, label=label)
    assert tuple(found.labels) == tuple(np.asarray(indices, int).tolist())
    assert found.class_names == names
    assert found.type is not None
    assert found.type["label"].classes == len(names)


@pytest.mark.parametrize(
    ("y", "label", "said"),
    [
        (np.eye(3)[LABELS], {}, "y.argmax(axis=1)"),
        (LABELS, {"classes": 2}, "row 2 of `label` is 2, but 2 classes are 0 to 1"),
        (LABELS + 1, {"classes": 3}, "`offset: 1`"),
        (LABELS - 1, {}, "row 0 of `label` is -1"),
        (LABELS + 0.5, {}, "row 0 of `label` is 0.5; 12 labels of 12"),
        (np.where(LABELS == 1, np.nan, 0), {}, "row 1 of `label` is empty; 4 labels of 12 are empty"),
        (LABELS + 1j, {}, "complex128"),
        (LABELS * 10**6, {}, "set the number of `classes`"),
        (np.array(["rose", "dasy"] * 6), {"classes": ["rose", "daisy"]}, "is 'daisy' meant?"),
        (np.array(["rose", "daisy"] * 6), {"classes": 2}, "list the names"),
        (np.array([None, "daisy"] * 6), {}, "row 0 of `label` is empty"),
    ],
)
def test_labels_that_name_no_class(y: Any, label: dict[str, Any], said: str) -> None:
    note = wrong(y=y, label=label)
    assert note.code == "PG420"
    assert said in f"{note.message}; {note.help}"


def test_every_array_is_judged_in_one_go() -> None:
    found = listed(IMAGES.astype("int8"), np.eye(3)[LABELS])
    assert [n.code for n in found.notes] == ["PG419", "PG420"]
    (uneven,) = listed(y=LABELS[:9]).notes
    assert (uneven.code, uneven.message.split(";")[0]) == ("PG418", "`image` has 12 rows and `label` has 9 rows")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, 'none were passed; pass them: `pipegen.build(spec, data={"image": …, "label": …})`'),
        ((IMAGES, LABELS), "not `tuple`"),
        ({"image": IMAGES}, "no array 'label'"),
        ({"image": IMAGES, "labels": LABELS}, "is `labels` meant?"),
        ({}, "`data` is empty"),
        ({"image": IMAGES, "label": LABELS, "weights": LABELS}, "the array 'weights', which no feature reads"),
    ],
)
def test_data_that_is_not_what_the_features_name(data: Any, said: str) -> None:
    with pytest.raises(OpError) as caught:
        source().list(HERE, data=data)
    assert caught.value.code == "PG418"
    assert said in f"{caught.value.message}; {caught.value.help}"


def test_a_digest_is_of_what_the_arrays_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipegen.data.fingerprint import fingerprint
    from pipegen.ops.sources.listing import rows

    changed = IMAGES.copy()
    changed[11, 5, 4, 2] ^= 1
    prints = [fingerprint(listed(x, y)) for x in (IMAGES, changed) for y in (LABELS, LABELS[::-1].copy())]
    assert len(set(prints)) == 4
    assert fingerprint(listed(np.asfortranarray(IMAGES))) == prints[0]
    monkeypatch.setattr(rows, "_HASHED_WHOLE", 180)  # two rows: the first and the last
    sampled = [fingerprint(listed(x)) for x in (IMAGES, changed)]
    changed = IMAGES.copy()
    changed[5] ^= 1
    assert sampled[0] != sampled[1]
    assert fingerprint(listed(changed)) == sampled[0], "rows between are not read"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_arrays(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "data.npz", x_train=IMAGES, label=LABELS, more=LABELS)
    found = source({"key": "x_train"}, path="data.npz").list(tmp_path)
    array = vars(found.reader())["arrays"]["image"]
    np.testing.assert_array_equal(array, IMAGES)
    assert tuple(found.labels) == tuple(LABELS.tolist())
    assert isinstance(array, np.memmap) == (save is np.savez), "what is stored plainly is mapped"
    np.save(tmp_path / "x.npy", np.asfortranarray(IMAGES))
    np.save(tmp_path / "y.npy", LABELS)
    own = source({"path": "x.npy"}, {"path": "y.npy"}).list(tmp_path)
    assert own.reader().digest() == found.reader().digest()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", images=IMAGES, label=LABELS, odd=np.array([{}, {}], object))
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "text.npy").write_text("no array")
    np.save(tmp_path / "objects.npy", np.array([{}], object))

    def said(image: dict[str, Any], **own: Any) -> tuple[str, str]:
        made = Arrays.model_validate({"features": {"image": {"kind": "image", **image}}, **own})
        with pytest.raises(OpError) as caught:
            made.list(tmp_path)
        return caught.value.code, f"{caught.value.message}; {caught.value.help}"

    code, text = said({}, path="data.npz")
    assert code == "PG418"
    assert "is `images` meant? write `key: images`" in text
    assert said({"key": "odd"}, path="data.npz")[0] == "PG406"
    assert said({}, path="text.npz")[0] == "PG406"
    assert said({}, path="missing.npz")[0] == "PG401"
    assert said({"path": "."})[1].startswith(f"{str(tmp_path)!r} is a folder")
    assert said({"path": "text.npy"})[0] == "PG406"
    assert said({"path": "objects.npy"})[0] == "PG406"
    assert said({"path": "data.npz"})[1].endswith("`path` of the source itself")
