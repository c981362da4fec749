"""Features of unknown length: padded batches are the files with NumPy's padding, whatever makes them; buckets hold what fits."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pipegen
from pipegen.errors import DataError, SpecError

pytestmark = pytest.mark.tf

LENGTHS = [0, 1, 5, 8, 8, 12, 3, 7, 11, 2, 9, 4, 6, 10, 12, 5, 1, 8]
LONGEST = max(LENGTHS)
TRAIN = 12


def content(i: int) -> Any:
    """The array in file `i`: its values tell the file and the place."""
    return (100.0 * i + np.arange(LENGTHS[i] * 3, dtype=np.float32)).reshape(-1, 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Arrays of several lengths with a table of their lengths, and tokens beside them."""
    at = tmp_path_factory.mktemp("sounds")
    (at / "tokens").mkdir()
    lines = ["file,tokens,word,frames"]
    for i, length in enumerate(LENGTHS):
        np.save(at / f"{i:02}.npy", content(i))
        np.save(at / "tokens" / f"{i:02}.npy", np.arange(1, 3 + i % 4, dtype=np.int16))
        lines.append(f"{i:02}.npy,tokens/{i:02}.npy,w{i % 2},{length}")
    (at / "table.csv").write_text("\n".join(lines))
    return at


ARRAY = {"kind": "array", "format": "npy", "shape": [None, 3], "column": "file"}
EVERYTHING = {"sound": "sound", "length": "sound_length", "valid": "sound_valid"}


def build(folder: Path, pad: Any = {}, *, x: Any = EVERYTHING, batch: Any = {}, features: Any = {}, **own: Any) -> Any:  # noqa: B006
    """A pipeline over the table."""
    described = {"sound": ARRAY, "word": {"kind": "label", "column": "word"}, **features}
    spec = {
        "pipegen": 1,
        "source": {"csv": {"path": str(folder / "table.csv"), "features": described}},
        "splits": {"parts": {"train": TRAIN, "validation": len(LENGTHS) - TRAIN}},
        "batch": {"size": 4, **({"pad": pad} if pad is not None else {}), **batch},
        "output": {"x": x, "y": "word"},
        "runtime": {"jit": "never", "cache": "none"},
    }
    return pipegen.build(spec | own)


def number(file: str) -> int:
    return int(Path(file).stem)


def padded(i: int, to: int, value: float = 0.0) -> Any:
    """The array of file `i`, padded or cut by NumPy."""
    known = content(i)[:to]
    return np.pad(known, [[0, to - len(known)], [0, 0]], constant_values=value)


def batches(pipe: Any, split: str, **where: Any) -> list[dict[str, Any]]:
    """The inputs of the batches of an epoch, as arrays."""
    return [{name: value.numpy() for name, value in x.items()} for x, _ in pipe.dataset(split, **where)]


def rows(pipe: Any, split: str = "validation", **where: Any) -> dict[str, Any]:
    """The inputs of an epoch, batch after batch."""
    found = batches(pipe, split, **where)
    return {name: np.concatenate([own[name] for own in found]) for name in found[0]}


def check(pipe: Any, to: int, value: float = 0.0, split: str = "validation") -> None:
    """Compares a split in its stored order with NumPy's padding."""
    files, found = [number(file) for file in pipe.files(split)], rows(pipe, split)
    np.testing.assert_array_equal(found["sound"], np.stack([padded(i, to, value) for i in files]))
    lengths = [min(LENGTHS[i], to) for i in files]
    assert found["length"].dtype == np.int32
    assert found["length"].tolist() == lengths
    np.testing.assert_array_equal(found["valid"], np.arange(to) < np.array(lengths)[:, None])


@pytest.mark.parametrize(("to", "value"), [("longest", 0), (LONGEST, -1.5), (20, 0.25)])
def test_padding_is_that_of_numpy(folder: Path, to: int | str, value: float) -> None:
    pipe = build(folder, {"to": to, "value": value})
    check(pipe, LONGEST if to == "longest" else int(to), value)
    found = rows(pipe, "train")
    assert sorted(found["length"].tolist()) == sorted(LENGTHS[number(file)] for file in pipe.files("train"))


def in_cells(op: str, folder: Path, cells: list[Any]) -> tuple[dict[str, Any], Any]:
    """A table with lists of numbers in its cells, and a label; returns the arguments of the source, and its data."""
    held = [{"sound": cell, "word": f"w{i % 2}"} for i, cell in enumerate(cells)]
    if op == "dataframe":
        return {}, pytest.importorskip("pandas").DataFrame(held)
    if op == "jsonl":
        (folder / "t.jsonl").write_text("\n".join(map(json.dumps, held)))
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        type_ = pa.list_(pa.list_(pa.float32(), 3 if op == "fixed" else -1))
        table = pa.table({"sound": pa.array(cells, type_), "word": [row["word"] for row in held]})
        pq.write_table(table, folder / "t.parquet", row_group_size=5)
    return {"path": str(folder / ("t.jsonl" if op == "jsonl" else "t.parquet"))}, None


@pytest.mark.by_day(6)
@pytest.mark.parametrize("pad", [{}, {"to": 8, "longer": "cut"}, {"to": 20, "value": 0.5}, {"buckets": [4, 12]}], ids=str)
@pytest.mark.parametrize("op", ["parquet", "fixed", "jsonl", "dataframe"])
def test_lists_in_cells_are_arrays(op: str, pad: dict[str, Any], tmp_path: Path) -> None:
    """To the bit what NumPy pads, with their lengths, from memory or row groups; and the same from a cache."""
    cells = [content(i) if op == "dataframe" else content(i).tolist() for i in range(len(LENGTHS))]
    source, data = in_cells(op, tmp_path, cells)
    features = {"sound": {"kind": "array", "format": "list", "shape": [None, 3]}, "word": {"kind": "label"}}
    batch = {"buckets": {"by": "length", "sizes": pad["buckets"]}} if "buckets" in pad else {"pad": pad}
    spec = {
        "pipegen": 1,
        "source": {"dataframe" if op == "dataframe" else "parquet" if op == "fixed" else op: {**source, "features": features}},
        "splits": {"method": "random", "parts": {"train": TRAIN, "validation": len(LENGTHS) - TRAIN}},
        "batch": {"size": 2, "remainder": "keep", **batch},
        "output": {"x": EVERYTHING, "y": "word"},
    }
    for cache in ("none",) if "buckets" in pad else ("none", "memory"):
        pipe = pipegen.build(spec, data=data, runtime={"jit": "never", "cache": cache})
        found: list[bytes] = []
        for own in (*batches(pipe, "train", epoch=0), *batches(pipe, "validation")):
            for sound, length, valid in zip(*own.values(), strict=True):
                room = min(size for size in pad["buckets"] if size >= length) if "buckets" in pad else pad.get("to", LONGEST)
                assert len(sound) == room
                assert valid.tolist() == [place < length for place in range(room)]
                assert (sound[length:] == pad.get("value", 0)).all()
                found.append(sound[:length].tobytes())
        assert sorted(found) == sorted(content(i)[: pad.get("to")].tobytes() for i in range(len(LENGTHS)))


def test_an_export_has_arrays_in_files_beside_images(tmp_path: Path) -> None:
    """The image is the bytes in a cell; a large array would fill the line of its example."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import io

    from PIL import Image

    held = []
    for i in range(len(LENGTHS)):
        stream = io.BytesIO()
        Image.new("RGB", (8, 8), (10 * i,) * 3).save(stream, "PNG")
        held.append({"image": stream.getvalue(), "sound": content(i).tolist()})
    pq.write_table(
        pa.Table.from_pylist(held, pa.schema([("image", pa.binary()), ("sound", pa.list_(pa.list_(pa.float32())))])), tmp_path / "t.parquet"
    )
    features = {"image": {"kind": "image"}, "sound": {"kind": "array", "format": "list", "shape": [None, 3]}}
    spec = {
        "pipegen": 1,
        "source": {"parquet": {"path": str(tmp_path / "t.parquet"), "features": features}},
        "batch": {"size": 4, "pad": {}},
    }
    given = spec | {"transforms": [{"resize": {"size": 8}}], "output": {"x": {"image": "image", "length": "sound_length"}, "y": "sound"}}
    done = pipegen.build(given).export(tmp_path / "out", examples=6)
    lines = [json.loads(line) for line in done.table.read_text().splitlines()]
    assert len(lines) == 6
    for line in lines:
        i = int(line["source"].rpartition("#")[2] or 0)
        assert line["sound_length"] == LENGTHS[i]
        np.testing.assert_array_equal(np.load(tmp_path / "out" / line["sound_file_name"]), padded(i, LONGEST))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([[1, 2, 3], [4, 5]], "differ in length|has lists of"),
        ([[1, 2]], r"it is 1×2, and should be \?×3"),
        ([[], []], "it is 2×0, and should be"),
        ([[1, None, 3]], "it has missing numbers|other values than numbers"),
        (None, "the cell is empty|it is no list of numbers"),
    ],
)
@pytest.mark.parametrize("op", ["parquet", "jsonl"])
def test_a_list_that_is_no_such_array_is_named(op: str, wrong: Any, said: str, tmp_path: Path) -> None:
    source, _ = in_cells(op, tmp_path, [[[0.0, 1.0, 2.0]] * (i + 1) if i != 7 else wrong for i in range(12)])
    features = {"sound": {"kind": "array", "format": "list", "shape": [None, 3]}, "word": {"kind": "label"}}
    spec = {"pipegen": 1, "source": {op: {**source, "features": features}}, "batch": {"size": 4, "pad": {"to": 20}}}
    with pytest.raises((DataError, SpecError), match=said) as caught:
        for _ in pipegen.build({**spec, "output": {"x": "sound", "y": "word"}}).dataset("train", epoch=0):
            pass
    assert ("t.parquet#7" if op == "parquet" else "t.jsonl:8 cannot be `sound`") in str(caught.value)


def test_lists_need_their_format_and_a_table(tmp_path: Path) -> None:
    source, _ = in_cells("jsonl", tmp_path, [[1.0] * (i + 1) for i in range(6)])
    spec: dict[str, Any] = {"pipegen": 1, "batch": {"size": 2, "pad": {}}, "output": {"x": "sound", "y": None}}
    array = {"kind": "array", "shape": [None]}
    for own, said in (
        ({}, "an array needs its `format`(?s:.)*`format: list` for lists of numbers"),
        ({"format": "npy"}, "for lists of numbers, write `format: list`"),
    ):
        with pytest.raises(SpecError, match=said):
            pipegen.build(spec | {"source": {"jsonl": {**source, "features": {"sound": array | own}}}})
    pipegen.build(spec | {"source": {"jsonl": {**source, "features": {"sound": array | {"format": "list"}}}}})
    with pytest.raises(SpecError, match="lists of numbers in cells need a table"):
        pipegen.build(spec | {"source": {"files": {"features": {"sound": array | {"format": "list", "path": "*.npy"}}}}})


def test_without_padding_a_batch_is_the_files_again(folder: Path) -> None:
    pipe = build(folder)
    for epoch in range(2):
        found = rows(pipe, "train", epoch=epoch)
        names = [number(pipe.files("train")[i]) for i in pipe._engine.order_of("train", epoch)]
        for name, sound, length, valid in zip(names, found["sound"], found["length"], found["valid"], strict=True):
            np.testing.assert_array_equal(sound[:length], content(name))
            np.testing.assert_array_equal(sound[valid], content(name))


def test_longer_examples_are_cut_left_out_or_an_error_that_names_the_file(folder: Path) -> None:
    check(build(folder, {"to": 7, "longer": "cut"}), 7)
    dropping = build(folder, {"to": 8, "longer": "drop"})
    check(dropping, 8)
    every = build(folder)
    for split in ("train", "validation"):
        kept = [file for file in every.files(split) if LENGTHS[number(file)] <= 8]
        assert list(dropping.files(split)) == kept
        assert dropping.num_examples(split) == len(kept) < every.num_examples(split)
    assert "longer than `batch.pad` allows" in str(dropping)
    failing = build(folder, {"to": 8})
    first = next(number(file) for file in every.files("validation") if LENGTHS[number(file)] > 8)
    said = rf"{first:02}\.npy.*`sound` has a length of {LENGTHS[first]}, but `batch\.pad` has room for 8"
    with pytest.raises(pipegen.DataError, match=said):
        list(failing["validation"])


def test_lengths_of_a_column_are_those_of_headers(folder: Path) -> None:
    frames = {"frames": {"kind": "tensor", "column": "frames"}}
    by_header, by_column = build(folder), build(folder, {"measured": {"column": "frames"}}, features=frames)
    for a, b in zip(batches(by_header, "train"), batches(by_column, "train"), strict=True):
        for name, value in a.items():
            np.testing.assert_array_equal(value, b[name])
    np.testing.assert_array_equal(by_header._manifest.lengths["sound"], LENGTHS)


def test_an_example_that_is_longer_than_its_listed_length_is_an_error(folder: Path, tmp_path: Path) -> None:
    """Even with `longer: cut`, which is for examples longer than the last bucket."""
    lines = (folder / "table.csv").read_text().splitlines()
    wrong = next(i for i, length in enumerate(LENGTHS) if length == 5)
    lines[1 + wrong] = lines[1 + wrong].removesuffix(",5") + ",3"
    (tmp_path / "table.csv").write_text("\n".join(line.replace(",tokens/", f",{folder}/tokens/") for line in lines))
    for file in folder.glob("*.npy"):
        (tmp_path / file.name).symlink_to(file)
    frames = {"frames": {"kind": "tensor", "column": "frames"}}
    pad = {"measured": {"column": "frames"}, "longer": "cut"}
    pipe = build(tmp_path, pad, batch={"size": 1, "buckets": {"by": "length", "sizes": [4, 8]}}, features=frames)
    said = rf"{wrong:02}\.npy.*`sound` has a length of 5, but at most 4 by its header or its column, whose length is wrong"
    split = next(name for name in ("train", "validation") if wrong in map(number, pipe.files(name)))
    with pytest.raises(pipegen.DataError, match=said):
        list(pipe[split])


def test_what_is_not_asked_for_is_not_made(folder: Path) -> None:
    plan = build(folder, x="sound")._engine.executor("train").plan
    assert "sound_length" not in plan.out
    assert "sound_valid" not in plan.out
    assert [stage.name for stage in plan.stages()] == ["Decode", "PadLength"]


def test_each_feature_has_room_of_its_own(folder: Path) -> None:
    tokens = {"tokens": {**ARRAY, "column": "tokens", "shape": [None]}}
    x = {"sound": "sound", "tokens": "tokens", "count": "tokens_length"}
    pipe = build(folder, {"sound": {"to": 7, "longer": "cut"}, "tokens": {"value": -1}}, x=x, features=tokens)
    found = rows(pipe)
    for file, sound, own, count in zip(pipe.files("validation"), found["sound"], found["tokens"], found["count"], strict=True):
        i = number(file)
        np.testing.assert_array_equal(sound, padded(i, 7))
        np.testing.assert_array_equal(own, [*range(1, 3 + i % 4), *[-1] * (5 - (2 + i % 4))])
        assert count == 2 + i % 4


def test_numbers_do_not_depend_on_the_batch_the_share_or_the_cache(folder: Path, tmp_path: Path) -> None:
    whole = rows(build(folder), "train", epoch=1)
    shards = [batches(build(folder), "train", epoch=1, shard=(i, 2)) for i in range(2)]
    ways = {
        "batch": rows(build(folder, batch={"size": 2}), "train", epoch=1),
        "memory": rows(build(folder, runtime={"cache": "memory"}), "train", epoch=1),
        "disk": rows(build(folder, runtime={"cache": {"disk": str(tmp_path / "cache")}}), "train", epoch=1),
        "kept": rows(build(folder, runtime={"cache": {"disk": str(tmp_path / "cache")}}), "train", epoch=1),
        "shards": {name: np.concatenate([part[name] for pair in zip(*shards, strict=True) for part in pair]) for name in whole},
    }
    for way, found in ways.items():
        for name, value in whole.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"{name}, {way}")


def test_a_damaged_or_too_long_file_is_replaced_where_that_is_allowed(folder: Path, tmp_path: Path) -> None:
    skipping = build(folder, {"to": 11}, errors={"decode": {"skip": {"max_fraction": 0.5}}})
    lengths = rows(skipping, "train", epoch=0)["length"].tolist()
    assert len(lengths) == TRAIN
    assert max(lengths) == 11


BUCKETS = {"by": "length", "sizes": [4, 8, 12]}


def bucket(length: int) -> int:
    return next(size for size in BUCKETS["sizes"] if length <= size)  # type: ignore[attr-defined]


def bucketed(folder: Path, **own: Any) -> Any:
    return build(folder, own.pop("pad", None), batch={"size": own.pop("size", 2), "buckets": BUCKETS, "remainder": "keep"}, **own)


def test_each_batch_has_the_length_of_its_bucket_and_each_example_comes_once(folder: Path) -> None:
    pipe = bucketed(folder)
    names = [number(file) for file in pipe.files("train")]
    for epoch in range(2):
        found = batches(pipe, "train", epoch=epoch)
        seen: list[int] = []
        for own in found:
            to = own["sound"].shape[1]
            assert own["valid"].shape == own["sound"].shape[:2]
            for sound, length in zip(own["sound"], own["length"], strict=True):
                assert bucket(int(length)) == to
                i = names[[LENGTHS[n] == length and np.array_equal(padded(n, to), sound) for n in names].index(True)]
                seen.append(i)
        assert sorted(seen) == sorted(names)
        counts = Counter(bucket(LENGTHS[i]) for i in names)
        assert Counter(own["sound"].shape[1] for own in found) == {size: -(-n // 2) for size, n in counts.items()}
    order = [own["sound"].shape[1] for own in batches(pipe, "train", epoch=0)]
    assert order != sorted(order)  # batches of all buckets are permuted
    assert sum(len(own["sound"]) for own in batches(pipe, "validation")) == len(LENGTHS) - TRAIN
    shown = [LENGTHS[number(file)] for file in pipe.files("validation")]
    assert np.concatenate([own["length"] for own in batches(pipe, "validation")]).tolist() == shown


def test_buckets_go_on_where_they_stood_on_any_share_and_refuse_another_batch_size(folder: Path) -> None:
    pipe = bucketed(folder)
    whole = batches(pipe, "train", epoch=1)
    for a, b in zip(whole[2:], batches(pipe, "train", epoch=1, step=2), strict=True):
        np.testing.assert_array_equal(a["sound"], b["sound"])
    pipe.seek(1)
    iterator = iter(pipe.train)
    seen = [next(iterator)[0]["sound"].numpy() for _ in range(2)]
    state = json.loads(json.dumps(pipe.state()))
    again = bucketed(folder)
    again.restore(state)
    seen += [x["sound"].numpy() for x, _ in again.train]
    for own, sound in zip(whole, seen, strict=True):
        np.testing.assert_array_equal(own["sound"], sound)
    with pytest.raises(pipegen.StateError, match="as it was begun, not with 4; or begin the next epoch with it"):
        bucketed(folder, size=4).restore(state)
    dropping = build(folder, None, batch={"size": 2, "buckets": BUCKETS})
    for own, *parts in zip(*(batches(dropping, "train", **where) for where in ({}, {"shard": (0, 2)}, {"shard": (1, 2)})), strict=True):
        np.testing.assert_array_equal(own["sound"], np.concatenate([part["sound"] for part in parts]))


@pytest.mark.parametrize("longer", ["cut", "drop"])
def test_examples_longer_than_all_buckets(folder: Path, longer: str) -> None:
    short = {"by": "length", "sizes": [4, 8]}
    pipe = build(folder, {"longer": longer, "value": 9}, batch={"size": 1, "buckets": short})
    found = batches(pipe, "validation")
    files = [number(file) for file in pipe.files("validation")]
    assert (len(files) == len(LENGTHS) - TRAIN) is (longer == "cut")
    for i, own in zip(files, found, strict=True):
        np.testing.assert_array_equal(own["sound"][0], padded(i, 4 if LENGTHS[i] <= 4 else 8, 9))
    with pytest.raises(pipegen.SpecError, match=r"longer than 8, such as '\d\d\.npy' with 1[012]"):
        build(folder, None, batch={"size": 1, "buckets": short})


def model_of(pipe: Any) -> Any:
    import keras

    sound = keras.Input((None, 3), name="sound")
    return keras.Model(sound, keras.layers.Dense(2)(keras.layers.GlobalAveragePooling1D()(sound)))


def trained(pipe: Any) -> int:
    model = model_of(pipe)
    model.compile(loss="sparse_categorical_crossentropy")
    return len(model.fit(pipe.train, validation_data=pipe.validation, verbose=0).history["val_loss"])


ONE, SEVERAL = {"to": 20}, None  # padding to one length; buckets
WORKS: dict[str, Any] = {
    "peek": lambda pipe: len(pipe.peek("train", 4)[0]) == 4,
    "numpy": lambda pipe: sum(len(x) for x, _ in pipe.numpy("validation")) == 6,
    "fit": lambda pipe: trained(pipe) == 1,
    "check": lambda pipe: "the model fits" in pipe.check(model_of(pipe)),
    "predict": lambda pipe: model_of(pipe).predict(pipe.validation, verbose=0).shape == (6, 2),
    "tta": lambda pipe: len(model_of(pipe).predict(pipe.tta("validation", 2), verbose=0)) == 12,
    "explain": lambda pipe: "pad to" in str(pipe.explain()) and "pad to" in str(pipe.explain(physical=True)),
    "page": lambda pipe: "pad to" in str(pipe.explain_html("train")),
    "jax": lambda pipe: len(next(iter(pipe.jax("train")))[0]) == pipe.spec.model.batch.size,
    "grain": lambda pipe: len(next(iter(pipe.grain("train")))[0]) == pipe.spec.model.batch.size,
}
REFUSED: dict[str, tuple[Any, str]] = {
    "preview": (lambda pipe, _: pipe.preview("train"), "a sheet shows images"),
    "export": (lambda pipe, at: pipe.export(at, "train"), "export writes images"),
    "predict_on": (lambda pipe, _: pipe.predict_on([content(3)]), "`predict_on` takes images or sounds alone"),
    "serving_fn": (lambda pipe, _: pipe.serving_fn(model_of(pipe)), "which holds arrays; a request has only"),
    "layer": (lambda pipe, _: pipe.layer(), "which holds arrays; a request has only"),
    "eject": (lambda pipe, at: pipe.eject(at / "graph"), "that only Python reads"),
    "device_stage": (lambda pipe, _: pipe.device_stage("train"), "no step of split `train` can run on a device"),
}


@pytest.mark.by_day(12)
@pytest.mark.parametrize("pad", [ONE, SEVERAL], ids=["padded", "buckets"])
@pytest.mark.parametrize("way", [*WORKS, *REFUSED])
def test_each_way_works_or_is_refused_with_a_reason(folder: Path, tmp_path: Path, way: str, pad: Any) -> None:
    if way in ("jax", "grain"):
        pytest.importorskip(way)
    pipe = build(folder, pad, x="sound", batch={} if pad else {"size": 2, "buckets": BUCKETS})
    if way in WORKS:
        assert WORKS[way](pipe)
        return
    call, said = REFUSED[way]
    with pytest.raises((ValueError, pipegen.SpecError), match=said):
        call(pipe, tmp_path / "out")


@pytest.mark.parametrize("pad", [ONE, SEVERAL], ids=["padded", "buckets"])
def test_batches_by_hand_have_one_length(folder: Path, pad: Any) -> None:
    pipe = build(folder, pad, x="sound", batch={} if pad else {"size": 2, "buckets": BUCKETS})
    if pad is None:
        with pytest.raises(ValueError, match="has batches of buckets"):
            pipe.lowered("train")
    else:
        read = pipe.lowered("train")
        assert read.steps == pipe.steps("train")


@given(
    hnp.arrays(np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9), elements=st.floats(-9, 9, width=32)),
    st.integers(1, 12),
    st.integers(-3, 3),
)
def test_any_array_is_padded_as_by_numpy_and_comes_back(array: Any, to: int, value: int) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_element
    from pipegen.ops.families.lengths import MarkLength, MeasureLength, PadLength

    features = {"a": tf.constant(array)}
    for stage in (MeasureLength("a_length", "a", to), PadLength("a", to, value, "cut"), MarkLength("a_valid", "a_length", to)):
        apply_element(stage, features)
    kept = array[:to]
    np.testing.assert_array_equal(features["a"], np.pad(kept, [[0, to - len(kept)], *[[0, 0]] * (array.ndim - 1)], constant_values=value))
    np.testing.assert_array_equal(features["a"].numpy()[features["a_valid"].numpy()], kept)
    np.testing.assert_array_equal(features["a"].numpy()[: int(features["a_length"])], kept)
