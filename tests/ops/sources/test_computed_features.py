"""Numbers computed from columns of a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

import field_writers as fields
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_files import png, write_tfrecord

import pipegen
from pipegen.errors import OpError
from pipegen.ops.registry import sources
from pipegen.ops.sources.features.predicate import parse_arithmetic

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {"a": np.array([1.0, 2.0, -3.5]), "b": np.array([4.0, 0.5, 2.0]), "first name": np.array([7.0, 8.0, 9.0])}
NUMBERS = st.one_of(st.integers(0, 99).map(str), st.floats(0, 99).map("{:.3f}".format), st.sampled_from(["a", "b"]))
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["+", "-", "*", "/"]), inner),
        st.builds("({})".format, inner),
        st.builds("-{}".format, inner),
        st.builds("{}-{}".format, inner, inner),
        st.builds("({}) ** {}".format, inner, st.sampled_from(["2", "-1", "a", "-b"])),
        st.builds("{} ** 2".format, NUMBERS),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(text=EXPRESSIONS)
def test_it_computes_what_python_computes(text: str) -> None:
    if not {"a", "b"} & set(text):
        with pytest.raises(ValueError, match="needs a column"):
            parse_arithmetic(text)
        return
    with np.errstate(all="ignore"):
        found = parse_arithmetic(text).compute(VALUES)
        try:
            expected = eval(text, {}, {"a": VALUES["a"], "b": VALUES["b"]})
        except ZeroDivisionError:  # of constants
            return
    np.testing.assert_array_equal(found, expected)


def test_columns_in_backticks_and_signs() -> None:
    np.testing.assert_array_equal(parse_arithmetic("`first name`-1").compute(VALUES), [6, 7, 8])
    np.testing.assert_array_equal(parse_arithmetic("-a ** 2").compute(VALUES), -(VALUES["a"] ** 2))
    assert set(parse_arithmetic("a + b.c*2").columns) == {"a", "b.c"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 +", "needs a column, a number"),
        ("sqrt(a)", "cannot call functions"),
        ("a b", "must end or go on with"),
        ("(a", "needs a closing `)`"),
        ("a == 1", "must end or go on with"),
        ("'x' + a", "needs a column or a number"),
        ("3 * 4", "needs a column"),
        ("a ? b", "cannot have"),
        ("(" * 60 + "a" + ")" * 60, "nested at most"),
    ],
)
def test_what_is_no_arithmetic(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)").replace("`", "`")):
        parse_arithmetic(text)


def listed(tmp_path: Path, feature: dict[str, Any], rows: str = "a.jpg,2,8\nb.jpg,4,1\n") -> Any:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "t.csv").write_text("file,count,age of pet\n" + rows)
    features = {"image": {"kind": "image", "column": "file"}, "w": feature}
    return sources()["csv"].model_validate({"path": str(tmp_path / "t.csv"), "features": features}).list(tmp_path)


def test_a_weight_and_a_tensor(tmp_path: Path) -> None:
    found = listed(tmp_path, {"kind": "weight", "value": "1 / count"}).columns["w"]
    np.testing.assert_array_equal(found, np.array([0.5, 0.25], np.float32))
    found = listed(tmp_path, {"kind": "tensor", "value": "`age of pet` ** 2", "dtype": "int64"}).columns["w"]
    assert (found.tolist(), found.dtype) == ([64, 1], np.int64)


@pytest.mark.parametrize(
    ("feature", "rows", "code", "words"),
    [
        ({"kind": "weight", "value": "1 / (count - 2)"}, "", "PG423", "`1 / (count - 2)` with"),
        ({"kind": "weight", "value": "3 - count"}, "", "PG423", "has the weight -1"),
        ({"kind": "tensor", "value": "count / 4", "dtype": "int64"}, "", "PG423", "a 64-bit integer"),
        ({"kind": "tensor", "value": "count - 1", "dtype": "int64"}, "a.jpg,9007199254740993,3\n", "PG666", "computed in float64"),
        ({"kind": "tensor", "value": "count * count", "dtype": "int64"}, "a.jpg,100000001,3\n", "PG666", "`count * count` with"),
        ({"kind": "tensor", "value": "1 / counts"}, "", "PG421", "no column 'counts'"),
        ({"kind": "tensor", "value": "1 / count"}, "a.jpg,x,3\n", "PG423", "'x'"),
    ],
)
def test_a_row_without_a_number(tmp_path: Path, feature: dict[str, Any], rows: str, code: str, words: str) -> None:
    with pytest.raises(OpError) as raised:
        listed(tmp_path, feature, rows or "a.jpg,2,8\nb.jpg,4,1\n")
    assert raised.value.every[0].code == code
    assert words in raised.value.every[0].message
    assert raised.value.every[0].field == "features.w.value"


@pytest.mark.parametrize(
    "feature",
    [
        {"kind": "weight", "value": "1 / count", "column": "count"},
        {"kind": "label", "value": "1 / count"},
        {"kind": "tensor", "value": "f(count)"},
    ],
)
def test_where_it_does_not_belong(tmp_path: Path, feature: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`value`|function"):
        listed(tmp_path, feature)


def test_a_joined_table_computes_too(tmp_path: Path) -> None:
    for name in ("a/1.jpg", "b/2.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        (tmp_path / "photos" / name).write_bytes(b"\xff\xd8\xff")
    (tmp_path / "t.csv").write_text("file,count\na/1.jpg,4\nb/2.jpg,5\n")
    source = {
        "path": str(tmp_path / "photos"),
        "join": {"table": {"csv": {"path": str(tmp_path / "t.csv")}}, "on": {"path": "file"}},
        "features": {"w": {"kind": "weight", "value": "1 / count"}},
    }
    found = sources()["image_folder"].model_validate(source).list(tmp_path).columns["w"]
    np.testing.assert_array_equal(found, np.array([0.25, 0.2], np.float32))


COMPUTING = sorted(op for op in fields.WRITERS if "value" in get_args(sources()[op].model_fields["features"].annotation)[1].model_fields)


@pytest.mark.tf
@pytest.mark.by_day(3)
@pytest.mark.parametrize("op", COMPUTING)
def test_every_source_with_columns_computes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """From a number that is stored with each record, beside it, and in place of it; of all records, and of those that `where` keeps."""
    monkeypatch.chdir(tmp_path)
    due = [np.float32(1 / (2 * record["weight"] - 0.5)) for record in fields.records(2)]
    pixels = [array.astype(np.float32).tobytes() for array in fields.as_arrays(fields.records(2), ["image"])["image"]]
    source, data = fields.WRITERS[op](tmp_path, fields.records(2), {name: fields.KINDS[name] for name in ("image", "weight")})
    stored = source["features"].pop("weight")
    column = stored.get("key") or stored.get("column") or "weight"
    computed = {"kind": "tensor", "value": f"1 / (2 * `{column}` - 0.5)"}
    beside = source["features"] | {"weight": stored, "z": computed}
    output = {"output": {"x": "image", "y": "z"}, "batch": {"size": 4, "remainder": "keep"}, "transforms": [{"resize": {"size": 16}}]}
    for features, where in ((beside, None), (source["features"] | {"z": computed}, f"`{column}` > 2")):
        own = source | {"features": features} | ({} if where is None else {"where": where})
        pipe = pipegen.build({"pipegen": 1, "source": {op: own}, "runtime": {"jit": "never"}, **output}, data=data)
        seen = {x.tobytes(): z for batch in pipe.dataset("train") for x, z in zip(*(part.numpy() for part in batch), strict=True)}
        kept = [i for i, record in enumerate(fields.records(2)) if where is None or record["weight"] > 2]
        assert seen == {pixels[i]: due[i] for i in kept}


def test_sizes_of_annotations_are_columns(tmp_path: Path) -> None:
    from PIL import Image

    images = []
    for i, (width, height) in enumerate([(8, 4), (6, 6)]):
        Image.new("RGB", (width, height)).save(tmp_path / f"{i}.png")
        images.append({"id": i, "file_name": f"{i}.png", "width": width, "height": height})
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0} for i in range(2)]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "car"}]}
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    features = {"share": {"kind": "tensor", "value": "32 / (width * height)"}}
    source = sources()["coco"].model_validate({"images": ".", "annotations": "boxes.json", "features": features})
    np.testing.assert_array_equal(source.list(tmp_path).columns["share"], np.array([1, 32 / 36], np.float32))


def test_a_record_without_a_number_is_named(tmp_path: Path) -> None:
    write_tfrecord(tmp_path / "a.tfrecord", [{"image": png(9), "count": 2}, {"image": png(8), "count": 0}])
    features = {"image": {"kind": "image"}, "w": {"kind": "weight", "value": "1 / count"}}
    source = sources()["tfrecord"].model_validate({"path": "a.tfrecord", "features": features})
    with pytest.raises(OpError) as raised:
        source.list(tmp_path)
    assert raised.value.every[0].field == "features.w.value"
    assert "`1 / count` with" in raised.value.every[0].message
    assert "a.tfrecord#1" in raised.value.every[0].message
    assert any("'count', for `value`, is read once" in line for line in source.remarks())
