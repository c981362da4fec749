"""Pipelines on windows of time series: the windows of NumPy, whatever holds the rows; groups, splits, shares, resuming and caches."""

from __future__ import annotations

import json
from pathlib import Path
from pipes import at as position
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import pipegen
from pipegen.errors import SpecError

pytestmark = pytest.mark.tf


def at(pipe: pipegen.Pipeline, split: str = "train", **own: int) -> Any:
    """The batches of a split; of the training split from an epoch and step on."""
    return position(pipe, **own) if split == "train" else pipe[split]


METERS = {"north": 61, "south": 50, "east": 47}
WINDOW = {"length": 8, "stride": 3, "every": 2, "horizon": 4}
FEATURES = {
    "x": {"kind": "series", "columns": ["load", "heat"]},
    "y": {"kind": "series", "column": "load", "at": "horizon"},
}
OUTPUT = {"x": "x", "y": "y"}


def rows() -> dict[str, Any]:
    """Hours of three meters, row by row in turn as long as each lasts: `time`, `meter`, `load` and `heat`."""
    draw = np.random.default_rng(3)
    found: list[tuple[str, str, float, float]] = []
    for hour in range(max(METERS.values())):
        when = str(np.datetime64("2024-03-01T00") + np.timedelta64(hour, "h")).replace("T", " ") + ":00:00"
        for name, length in METERS.items():
            if hour < length:
                load, heat = np.round(draw.normal(size=2), 4).tolist()
                found.append((when, name, load, heat))
    columns = zip(*found, strict=True)
    return dict(zip(("time", "meter", "load", "heat"), map(list, columns), strict=True))


def expected(window: dict[str, int], columns: dict[str, Any], meter: str) -> tuple[Any, Any]:
    """All windows of a meter, `(n, length, 2)`, and their horizons, `(n, horizon, 1)`."""
    own = [i for i, name in enumerate(columns["meter"]) if name == meter]
    values = np.array([[columns["load"][i], columns["heat"][i]] for i in own], np.float32)
    length, horizon, every = window["length"], window.get("horizon", 0), window.get("every", 1)
    whole = sliding_window_view(values, (length + horizon - 1) * every + 1, 0)[:: window.get("stride", 1), :, ::every].transpose(0, 2, 1)
    return whole[:, :length], whole[:, length:, :1]


def spec(source: dict[str, Any], **own: Any) -> dict[str, Any]:
    given = {"order": "time", "group": "meter", "window": WINDOW, "features": FEATURES} | source
    return {"pipegen": 1, "source": {"series": given}, "batch": {"size": 5, "remainder": "keep"}, "output": OUTPUT} | own


def written(folder: Path, form: str) -> tuple[dict[str, Any], Any]:
    """Writes the rows in a form; returns the arguments of the source, and what `build` gets as `data`."""
    columns = rows()
    if form == "csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (folder / "a.csv").write_text("\n".join(lines) + "\n")
        return {"csv": {"path": str(folder / "a.csv")}}, None
    if form == "data":
        return {}, columns
    if form == "arrays":
        order = np.random.default_rng(1).permutation(len(columns["time"]))  # rows need not be stored in order
        arrays = {name: np.array(values)[order] for name, values in columns.items()}
        # Series are listed by their first row.
        first = {name: int(np.argmax(arrays["meter"] == name)) for name in METERS}
        order = np.concatenate([[first[name] for name in METERS], np.setdiff1d(np.arange(len(order)), [*first.values()])])
        return {}, {name: values[order] for name, values in arrays.items()}
    if form == "dataframe":
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(columns)
        frame["time"] = pandas.to_datetime(frame["time"])
        return {}, frame
    if form == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(columns), folder / "a.parquet")
        return {"parquet": {"path": str(folder / "a.parquet")}}, None
    if form == "npz":
        np.savez(folder / "a.npz", **{name: np.array(values) for name, values in columns.items()})
        return {"npz": {"path": str(folder / "a.npz")}}, None
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "a.h5", "w") as file:
        for name, values in columns.items():
            file.create_dataset(name, data=np.array(values) if name in ("load", "heat") else values)
    return {"hdf5": {"path": str(folder / "a.h5")}}, None


FORMS = ["csv", "data", "arrays", "dataframe", "parquet", "npz", "hdf5"]


@pytest.mark.parametrize("form", FORMS)
def test_windows_are_those_of_numpy_whatever_holds_the_rows(tmp_path: Path, form: str) -> None:
    source, data = written(tmp_path, form)
    pipe = pipegen.build(spec(source, shuffle="none"), data=data)
    x, y = (np.concatenate(part) for part in zip(*((x.numpy(), y.numpy()) for x, y in at(pipe)), strict=True))
    each = [expected(WINDOW, rows(), meter) for meter in METERS]
    np.testing.assert_array_equal(x, np.concatenate([own for own, _ in each]))
    np.testing.assert_array_equal(y, np.concatenate([own for _, own in each]))
    assert next(iter(pipe.files("train"))).endswith("[north]#0")


@pytest.mark.parametrize(
    "window",
    [
        {"length": 1},
        {"length": 47},
        {"length": 5, "stride": 5},
        {"length": 3, "every": 7, "horizon": 2},
        {"length": 4, "horizon": 1, "stride": 60},
    ],
    ids=str,
)
def test_every_length_stride_step_and_horizon(window: dict[str, int]) -> None:
    features = FEATURES if window.get("horizon") else {"x": FEATURES["x"]}
    split = "train" if window.get("horizon") else "predict"
    output = OUTPUT if window.get("horizon") else {"x": "x", "y": None}
    pipe = pipegen.build(spec({"window": window, "features": features}, shuffle="none", output=output), data=rows())
    found = [batch[0].numpy() if isinstance(batch, tuple) else batch.numpy() for batch in at(pipe, split)]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate([expected(window, rows(), meter)[0] for meter in METERS]))


def keyed(pipe: pipegen.Pipeline, split: str = "train", **own: Any) -> list[bytes]:
    """Each example of an epoch, as bytes."""
    return [x.tobytes() + y.tobytes() for batch in at(pipe, split, **own) for x, y in zip(*(part.numpy() for part in batch), strict=True)]


def test_an_epoch_has_each_window_once_and_a_run_goes_on_anywhere() -> None:
    steps = [{"random_jitter": {"std": 0.1}}, {"random_scale": {"factor": 0.2}}, {"random_time_warp": {"factor": 0.3}}]
    plain = pipegen.build(spec({}), data=rows())
    whole = keyed(plain)
    assert len(set(whole)) == len(whole) == sum(len(expected(WINDOW, rows(), meter)[0]) for meter in METERS)
    assert whole != keyed(plain, epoch=1)
    assert sorted(whole) == sorted(keyed(plain, epoch=1))
    pipe = pipegen.build(spec({}, transforms=steps), data=rows())
    drawn = keyed(pipe, epoch=2)
    assert keyed(pipe, epoch=2, step=3) == drawn[15:]
    other = pipegen.build(spec({}, transforms=steps, batch={"size": 7, "remainder": "keep"}), data=rows())
    for one, another in zip(drawn, keyed(other, epoch=2), strict=True):
        np.testing.assert_allclose(np.frombuffer(one, np.float32), np.frombuffer(another, np.float32), rtol=1e-5, atol=1e-6)


def test_hosts_share_batches_and_caches_change_nothing(tmp_path: Path) -> None:
    given = spec({}, batch={"size": 4, "remainder": "drop"})
    whole = keyed(pipegen.build(given, data=rows()))
    shares = [keyed(pipegen.build(given, data=rows(), runtime={"shard": {"index": i, "count": 2}})) for i in (0, 1)]
    assert [one for at in range(0, len(whole), 4) for one in whole[at : at + 4]] == [
        one for at in range(0, len(shares[0]), 2) for share in shares for one in share[at : at + 2]
    ]
    steps = [{"fill_missing": {}}, {"difference": {}}]
    for cache in ("memory", {"disk": str(tmp_path / "cache")}):
        kept = pipegen.build(given | {"transforms": steps}, data=rows(), runtime={"cache": cache})
        none = pipegen.build(given | {"transforms": steps}, data=rows(), runtime={"cache": "none"})
        first, again = keyed(kept), keyed(kept)
        assert first == again == keyed(none)


def test_rows_that_are_added_change_no_draws_of_others() -> None:
    columns = rows()
    more = {name: [*values] for name, values in columns.items()}
    for hour in range(30):
        added = f"2024-03-{9 + hour // 24:02} {hour % 24:02}:00:00", "west", 0.1 * hour, 1.0
        for values, extra in zip(more.values(), added, strict=True):
            values.append(extra)
    steps = [{"random_jitter": {"std": 0.5}}]
    before, after = (keyed(pipegen.build(spec({}, transforms=steps), data=data)) for data in (columns, more))
    assert len(after) > len(before)
    assert set(before) < set(after)


def test_windows_of_several_series_in_one_array_and_of_single_values(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(4, 30, 3))
    np.save(tmp_path / "load.npy", values)
    source = {"npy": {"path": str(tmp_path / "load.npy")}, "order": None, "group": None, "window": {"length": 10, "horizon": 2}}
    given = spec(source | {"features": {"x": {"kind": "series"}, "y": {"kind": "tensor", "at": "next"}}}, shuffle="none")
    x, y = (np.concatenate(part) for part in zip(*((x.numpy(), y.numpy()) for x, y in at(pipegen.build(given))), strict=True))
    each = [sliding_window_view(one, 12, 0).transpose(0, 2, 1) for one in values.astype(np.float32)]
    np.testing.assert_array_equal(x, np.concatenate([own[:, :10] for own in each]))
    np.testing.assert_array_equal(y, np.concatenate([own[:, 10] for own in each]))


def test_whole_series_with_a_class_each(tmp_path: Path) -> None:
    text = "@problemName made\n@classLabel true a b\n@data\n1,2,3:4,5,6:a\n7,8,9:10,11,12:b\n1,1,1:2,?,2:a\n"
    (tmp_path / "made.ts").write_text(text)
    features = {"x": {"kind": "series", "column": "values", "missing": 0}, "label": {"kind": "label", "at": "series"}}
    given = {"pipegen": 1, "source": {"series": {"ts": {"path": str(tmp_path / "made.ts")}, "features": features}}, "shuffle": "none"}
    pipe = pipegen.build(given | {"batch": {"size": 3}, "output": {"x": "x", "y": "label"}})
    ((x, y),) = at(pipe)
    np.testing.assert_array_equal(x[0].numpy(), [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(x[2].numpy(), [[1, 2], [1, 0], [1, 2]])
    assert y.numpy().tolist() == [0, 1, 0]
    assert pipe.class_names == ("a", "b")


def test_calendar_static_values_and_what_was_observed() -> None:
    columns = rows()
    columns["load"][7] = None
    columns["area"] = [float(len(name)) for name in columns["meter"]]
    features = {
        "x": {"kind": "series", "columns": ["load", "heat"], "missing": -9},
        "seen": {"kind": "series", "columns": ["load", "heat"], "observed": True},
        "hours": {"kind": "series", "calendar": ["hour", "weekday"], "at": "all"},
        "wave": {"kind": "series", "calendar": ["hour"], "cyclic": True, "at": "horizon"},
        "area": {"kind": "tensor", "at": "series"},
        "y": FEATURES["y"] | {"missing": "keep"},
    }
    output = {"x": ["x", "seen", "hours", "wave", "area"], "y": "y"}
    window = {"length": 8, "horizon": 4}
    given = spec({"features": features, "window": window}, shuffle="none", output=output)
    (x, seen, hours, wave, area), _ = next(iter(at(pipegen.build(given, data=columns))))
    meter, row = columns["meter"][7], [i for i, name in enumerate(columns["meter"]) if name == columns["meter"][7]].index(7)
    assert meter == "south" or row < 12
    assert hours.numpy()[2, :, 0].tolist() == [float(hour % 24) for hour in range(2, 14)]
    assert set(hours.numpy()[0, :, 1]) == {4.0}  # a Friday
    np.testing.assert_allclose(wave.numpy()[0, :, 0], np.sin(2 * np.pi * np.arange(8, 12) / 24), atol=1e-6)
    np.testing.assert_array_equal(x.numpy() == -9, seen.numpy() == 0)
    assert set(area.numpy().tolist()) == {5.0}


def test_a_static_value_that_changes_is_an_error() -> None:
    features = FEATURES | {"area": {"kind": "tensor", "column": "heat", "at": "series"}}
    with pytest.raises(SpecError, match="one value for each series, but changes within"):
        pipegen.build(spec({"features": features}), data=rows())


def test_splits_by_time_share_no_row_and_leave_the_gap_out() -> None:
    parts = {"train": 0.6, "validation": 0.2, "test": 0.2}
    columns = rows()
    columns["row"] = [float(i) for i in range(len(columns["time"]))]
    window = {"length": 4, "horizon": 2}
    features = FEATURES | {"all": {"kind": "series", "column": "row", "at": "all"}}
    output = {"x": ["x", "all"], "y": "y"}
    for gap in (0, 3):
        given = spec({"window": window, "features": features}, splits={"parts": parts, "method": {"time": {"gap": gap}}}, output=output)
        pipe = pipegen.build(given, data=columns)
        used = {split: {int(i) for (_, own), _ in at(pipe, split) for i in own.numpy().ravel()} for split in parts}
        times = {split: {columns["time"][i] for i in own} for split, own in used.items()}
        assert max(times["train"]) < min(times["validation"])
        assert max(times["validation"]) < min(times["test"])
        hours = sorted(set(columns["time"]))
        assert hours.index(min(times["validation"])) - hours.index(max(times["train"])) > gap
        assert not used["train"] & used["validation"]


def test_the_last_horizon_of_each_series_is_evaluation() -> None:
    splits = {"parts": {"train": "rest", "validation": 4}, "method": {"time": {"history": True}}}
    window = {"length": 8, "horizon": 4}
    pipe = pipegen.build(spec({"window": window}, splits=splits), data=rows())
    x, y = (np.concatenate(part) for part in zip(*((x.numpy(), y.numpy()) for x, y in at(pipe, "validation")), strict=True))
    each = [expected(window, rows(), meter) for meter in METERS]
    np.testing.assert_array_equal(x, np.stack([own[-1] for own, _ in each]))
    np.testing.assert_array_equal(y, np.stack([own[-1] for _, own in each]))
    assert len(keyed(pipe)) == sum(len(own) - 4 for own, _ in each)


def test_rolling_folds_validate_on_what_follows() -> None:
    seen: set[str] = set()
    for fold in range(3):
        splits = {"folds": {"count": 3, "fold": fold}, "method": "time"}
        columns = rows() | {"row": [float(i) for i in range(len(rows()["time"]))]}
        features = FEATURES | {"all": {"kind": "series", "column": "row", "at": "all"}}
        given = spec({"window": {"length": 3, "horizon": 1}, "features": features}, splits=splits, output={"x": ["x", "all"], "y": "y"})
        pipe = pipegen.build(given, data=columns)
        used = {split: {int(i) for (_, own), _ in at(pipe, split) for i in own.numpy().ravel()} for split in ("train", "validation")}
        times = {split: {columns["time"][i] for i in own} for split, own in used.items()}
        assert max(times["train"]) < min(times["validation"])
        assert not seen & times["validation"]
        seen |= times["validation"]


def test_parts_that_begin_at_a_time() -> None:
    splits = {"parts": {"train": "rest", "validation": "2024-03-02 06:00"}, "method": "time"}
    pipe = pipegen.build(spec({"window": {"length": 4, "horizon": 2}}, splits=splits), data=rows())
    assert len(keyed(pipe)) == sum(30 - 5 for _ in METERS)
    assert len(keyed(pipe, "validation")) == sum(length - 30 - 5 for length in METERS.values())


def test_steps_leave_targets_alone_unless_they_name_them() -> None:
    plain = pipegen.build(spec({}, shuffle="none"), data=rows())
    steps = [{"random_scale": {"factor": [2, 2]}}]
    scaled = pipegen.build(spec({}, shuffle="none", transforms=steps), data=rows())
    named = pipegen.build(spec({}, shuffle="none", transforms=[{"random_scale": {"factor": [2, 2], "feature": "y"}}]), data=rows())
    for (x, y), (twice, same), (alone, both) in zip(at(plain), at(scaled), at(named), strict=True):
        np.testing.assert_array_equal(twice, 2 * x)
        np.testing.assert_array_equal(same, y)
        np.testing.assert_array_equal(alone, x)
        np.testing.assert_array_equal(both, 2 * y)


def test_many_windows_take_no_memory(tmp_path: Path) -> None:
    from pipegen.phases.compilation import collect_data, load

    values = np.lib.format.open_memmap(tmp_path / "long.npy", "w+", np.float32, (10_000_000,))
    values[:] = 1
    del values
    source = {"npy": {"path": str(tmp_path / "long.npy")}, "order": None, "group": None, "window": {"length": 96, "horizon": 24}}
    source |= {"features": {"x": {"kind": "series"}, "y": {"kind": "series", "at": "horizon"}}}
    given = spec(source, splits={"parts": {"train": 0.9, "validation": 0.1}})
    manifest = collect_data(load(given))
    assert manifest.num_examples("train") == 9_000_000 - 119
    held = [value for part in manifest.members.values() for value in vars(part).values() if isinstance(value, np.ndarray)]
    assert sum(value.nbytes for value in held) < 1000


@pytest.mark.parametrize("statistics", ["featurewise", "samplewise"])
def test_values_are_standardized_by_the_training_windows_or_by_their_own(
    statistics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    splits = {"parts": {"train": 0.6, "validation": 0.4}}
    given = spec({"window": {"length": 8, "horizon": 2}}, splits=splits, shuffle="none")
    plain = pipegen.build(given, data=rows())
    steps = [{"standardize": {"statistics": statistics, **({"per": "channel"} if statistics == "samplewise" else {})}}]
    pipe = pipegen.build(given | {"transforms": steps}, data=rows())
    values = {split: np.concatenate([x.numpy() for x, _ in at(plain, split)]) for split in ("train", "validation")}
    axis = (0, 1) if statistics == "featurewise" else 1
    for split, raw in values.items():
        of = values["train"] if statistics == "featurewise" else raw
        due = (raw - of.mean(axis, keepdims=True)) / (of.std(axis, keepdims=True) + 1e-6)
        np.testing.assert_allclose(np.concatenate([x.numpy() for x, _ in at(pipe, split)]), due, atol=2e-4)
        for (_, y), (_, same) in zip(at(plain, split), at(pipe, split), strict=True):
            np.testing.assert_array_equal(y, same)


def test_classes_of_windows_are_counted_balanced_and_split() -> None:
    columns = rows()
    columns["state"] = ["high" if heat > 0.5 else "low" for heat in columns["heat"]]
    features = {"x": FEATURES["x"], "label": {"kind": "label", "column": "state", "at": "last"}}
    window = {"length": 5, "every": 2}
    own = {"splits": {"parts": {"train": 0.7, "validation": 0.3}}, "output": {"x": "x", "y": "label"}}
    pipe = pipegen.build(spec({"window": window, "features": features}, **own), data=columns)
    for split in ("train", "validation"):
        seen = [(x[-1, 1], label) for xs, ys in at(pipe, split) for x, label in zip(xs.numpy(), ys.numpy().tolist(), strict=True)]
        assert all((heat > 0.5) == (pipe.class_names[label] == "high") for heat, label in seen)
    labels = np.concatenate([y.numpy() for _, y in at(pipe)])
    due = {c: len(labels) / (2 * int((labels == c).sum())) for c in (0, 1)}
    assert pipe.class_weights == pytest.approx(due)
    balanced = pipegen.build(spec({"window": window, "features": features}, sampling={"balance": "label"}, **own), data=columns)
    drawn = np.concatenate([y.numpy() for _, y in at(balanced)])
    assert abs(drawn.mean() - 0.5) < 0.05


def test_rows_of_a_file_that_is_large_for_the_memory_stay_in_it(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(40_000, 8))
    np.save(tmp_path / "load.npy", values)
    source = {"npy": {"path": str(tmp_path / "load.npy")}, "order": None, "group": None, "window": {"length": 10, "stride": 999}}
    source |= {"features": {"x": {"kind": "series"}, "y": {"kind": "tensor", "at": "last"}}}
    held, mapped = (pipegen.build(spec(source), runtime={"ram_budget": budget}) for budget in ("1GiB", "4MiB"))
    features = ("x", "y")
    assert [pipe._manifest.listing.reader().python(features, budget) for pipe, budget in ((held, 2**30), (mapped, 2**22))] == [
        "",
        "rows of a mapped file",
    ]
    assert keyed(held) == keyed(mapped)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">u2"])
def test_arrays_of_another_byte_order_hold_the_same_numbers(dtype: str) -> None:
    values = np.random.default_rng(0).integers(0, 99, size=60)
    features = {"x": {"kind": "series", "column": "v"}, "y": {"kind": "tensor", "column": "v", "at": "last"}}
    source = {"order": None, "group": None, "window": {"length": 5}, "features": features}
    found = [keyed(pipegen.build(spec(source), data={"v": values.astype(dtype)})) for dtype in (dtype, "float32")]
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["complex64", "timedelta64[s]"])
def test_values_that_are_no_numbers_are_refused(dtype: str) -> None:
    source = {"order": None, "group": None, "window": {"length": 5}, "features": {"x": {"kind": "series", "column": "v"}}}
    with pytest.raises(SpecError, match="PG419"):
        pipegen.build(spec(source, output={"x": "x", "y": None}), data={"v": np.arange(60).astype(dtype)})


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2024-01-01", "2024-01-02", "3000-01-01"], "row 2 of `data` has '3000-01-01'"),
        (["1500-01-01", "1900-01-02", "2000-01-01"], "row 0 of `data` has '1500-01-01'"),
        (np.array(["2024-01-01", "3000-01-01", "2024-01-03"], "datetime64[D]"), "row 1 of `data` has the time 3000-01-01"),
        (["2024-01-01T00:00Z", "2024-01-01T01", "2024-01-01T02:00Z"], "row 1 of `data` with none, '2024-01-01T01'"),
        (["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00+02:00"], "row 2 of `data` with one"),
    ],
)
def test_times_that_cannot_be_told_apart_are_refused(times: Any, said: str) -> None:
    source = {"order": "t", "group": None, "window": {"length": 1}, "features": {"x": {"kind": "series", "column": "v"}}}
    with pytest.raises(SpecError, match="PG423") as error:
        pipegen.build(spec(source, output={"x": "x", "y": None}), data={"v": np.arange(3.0), "t": times})
    assert said in str(error.value)


def test_prediction_takes_windows_of_the_same_shape() -> None:
    source = {"order": None, "group": None, "window": {"length": 5}, "features": {"x": {"kind": "series", "column": "v"}}}
    pipe = pipegen.build(
        spec(source, output={"x": "x", "y": None}, transforms=[{"random_jitter": {"std": 1}}]), data={"v": np.arange(60.0)}
    )
    windows = np.random.default_rng(0).normal(size=(7, 5, 1)).astype(np.float32)
    assert np.array_equal(np.concatenate([x.numpy() for x in pipe.predict_on(windows).dataset]), windows)
    for odd in (windows[:, :4], np.repeat(windows, 2, 2)):
        with pytest.raises(TypeError, match=r"need the shape \(n, 5, 1\)"):
            pipe.predict_on(odd)


def test_a_number_beyond_float32_is_named() -> None:
    source = {"order": None, "group": None, "window": {"length": 5}, "features": {"x": {"kind": "series", "column": "v"}}}
    with pytest.raises(SpecError, match="row 7 of `data` holds a value of `x` that is infinite"):
        pipegen.build(spec(source, output={"x": "x", "y": None}), data={"v": [1e39 if i == 7 else str(i) for i in range(60)]})


def test_series_without_a_window_in_a_part_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With a stride above 1 the windows of a series need not end where it ends."""
    rows = [(group, time, time) for group, length in (("a", 60), ("b", 61), ("c", 62)) for time in range(length)]
    (tmp_path / "t.csv").write_text("group,time,value\n" + "\n".join(",".join(map(str, row)) for row in rows), encoding="utf-8")
    features = {"x": {"kind": "series", "column": "value"}, "y": {"kind": "series", "column": "value", "at": "horizon"}}
    source = {"csv": {"path": str(tmp_path / "t.csv")}, "order": "time", "group": "group", "features": features}
    for stride, none in ((3, True), (1, False)):
        spec = {
            "pipegen": 1,
            "source": {"series": source | {"window": {"length": 5, "horizon": 4, "stride": stride}}},
            "splits": {"parts": {"train": "rest", "validation": 4}, "method": {"time": {"history": True}}},
            "output": {"x": "x", "y": "y"},
        }
        caplog.clear()
        pipegen.build(spec)
        assert ("2 of 3 series have no window in `validation`, so nothing is measured on them" in caplog.text) == none


def test_training_is_the_first_part(tmp_path: Path) -> None:
    source = {"series": {"window": {"length": 5}, "features": {"x": {"kind": "series"}}}}
    spec = {
        "pipegen": 1,
        "source": source,
        "splits": {"parts": {"validation": 0.3, "train": 0.7}, "method": "time"},
        "output": {"x": "x", "y": "x"},
    }
    with pytest.raises(SpecError, match="before those that it learns from"):
        pipegen.build(spec, data={"x": np.zeros((50, 2), np.float32)})


STATES = {"label": {"kind": "label", "column": "state", "at": "past"}, "next": {"kind": "label", "column": "state", "at": "horizon"}}
STEPS_OF_TIME: dict[str, list[Any]] = {
    "none": [],
    "means": [{"resample": {"every": 3}}],
    "length": [{"resample": {"length": 13}}],
    "difference": [{"difference": {"lag": 2}}],
    "warp": [{"random_time_warp": {"factor": 0.5, "probability": 0.8}}],
    "several": [{"random_window_warp": {"fraction": 0.3}}, {"resample": {"length": 20}}, {"random_time_warp": {"factor": 0.5}}],
}


def with_states(form: str, folder: Path) -> tuple[dict[str, Any], Any]:
    """Rows with a state that lasts some hours, and as `load` the number of the row in its series."""
    columns = rows()
    number = {name: 0 for name in METERS}
    for i, name in enumerate(columns["meter"]):
        columns["load"][i] = float(number[name])
        number[name] += 1
    columns["state"] = [("walk", "run", "rest")[int(load) // 5 % 3] for load in columns["load"]]
    if form == "csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        (folder / "a.csv").write_text("\n".join(lines) + "\n")
        return {"csv": {"path": str(folder / "a.csv")}}, None
    if form == "npz":
        np.savez(folder / "a.npz", **{name: np.array(values) for name, values in columns.items()})
        return {"npz": {"path": str(folder / "a.npz")}}, None
    if form == "parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(columns), folder / "a.parquet")
        return {"parquet": {"path": str(folder / "a.parquet")}}, None
    return {}, columns


@pytest.mark.parametrize("form", ["data", "csv", "npz", "parquet"])
def test_a_class_of_each_time_step_whatever_holds_the_rows(form: str, tmp_path: Path) -> None:
    source, data = with_states(form, tmp_path)
    given = spec(source | {"features": FEATURES | STATES}, shuffle="none", output={"x": "x", "y": ["label", "next"]})
    pipe = pipegen.build(given, data=data)
    names = np.array(pipe.class_names)
    assert names.tolist() == ["rest", "run", "walk"]
    for x, (label, later) in at(pipe):
        due = np.array(["walk", "run", "rest"])[x[..., 0].numpy().astype(int) // 5 % 3]
        np.testing.assert_array_equal(names[label.numpy()], due)
        assert later.shape[1:] == (4,)
    one_hot = pipegen.build(given | {"output": {"x": "x", "y": "label", "encode": {"label": "one_hot"}}}, data=data)
    for (_, encoded), (_, (label, _)) in zip(at(one_hot), at(pipe), strict=True):
        np.testing.assert_array_equal(encoded, np.eye(3, dtype=np.float32)[label.numpy()])


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", STEPS_OF_TIME)
def test_classes_follow_their_time_steps_over_epochs_hosts_and_caches(name: str, tmp_path: Path) -> None:
    source, data = with_states("data", tmp_path)
    steps = STEPS_OF_TIME[name]
    own = {"transforms": steps, "batch": {"size": 4, "remainder": "drop"}, "output": {"x": "x", "y": "label"}}
    given = spec(source | {"window": {"length": 12}, "features": {"x": FEATURES["x"], "label": STATES["label"]}}, **own)
    pipe = pipegen.build(given, data=data)
    names = pipe.class_names
    for x, label in at(pipe, epoch=1):
        assert label.shape == x.shape[:2]
        if name in ("warp", "length"):  # the row that is nearest to each new time
            time = x[..., 0].numpy()
            sure = np.abs(time - np.round(time)) < 0.49
            due = np.array([names.index(("walk", "run", "rest")[int(t) // 5 % 3]) for t in np.round(time).ravel()])
            np.testing.assert_array_equal(label.numpy()[sure], due.reshape(time.shape)[sure])
    whole = keyed(pipe, epoch=1)
    assert keyed(pipe, epoch=1, step=5) == whole[20:]
    shares = [keyed(pipegen.build(given, data=data, runtime={"shard": {"index": i, "count": 2}}), epoch=1) for i in (0, 1)]
    for place, one in enumerate([one for i in range(0, len(whole) // 2, 2) for share in shares for one in share[i : i + 2]]):
        np.testing.assert_allclose(np.frombuffer(one, np.int32), np.frombuffer(whole[place], np.int32), atol=4)
    for cache in ("memory", {"disk": str(tmp_path / "cache")}):
        kept = pipegen.build(given, data=data, runtime={"cache": cache})
        keyed(kept)
        assert keyed(kept, epoch=1) == whole


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize(
    "step",
    [
        {"random_time_warp": {"factor": 0.5, "probability": 0.6}},
        {"random_window_warp": {"fraction": 0.3}},
        {
            "one_of": {
                "steps": [
                    {"random_time_warp": {"factor": 0.5}},
                    {"random_window_warp": {"fraction": 0.3}},
                    {"random_mask": {"fraction": 0.2}},
                ]
            }
        },
        {"random_order": {"steps": [{"random_time_warp": {"factor": 0.5, "probability": 0.6}}, {"random_window_warp": {"fraction": 0.3}}]}},
    ],
)
def test_all_series_of_a_window_move_alike_in_time(step: dict[str, Any], views: int) -> None:
    columns = {"time": np.arange(90), "other": np.arange(90) * 2.0, "label": np.arange(90)}
    parts = {"x": {"columns": ["time"]}, "z": {"columns": ["other", "time"]}}
    features = {name: {"kind": "series"} | own for name, own in parts.items()} | {"c": {"kind": "label", "column": "label", "at": "past"}}
    source = {"window": {"length": 30}, "features": features}
    output = {"x": ["x", "z"], "y": "c"}
    own = {"views": views, "batch": {"size": 8}, "output": output}
    pipe = pipegen.build({"pipegen": 1, "source": {"series": source}, "transforms": [step]} | own, data=columns)
    moved = 0
    for values, labels in pipe.train:
        each = labels.values() if views > 1 else [labels]
        for x, z, label in zip(values[:views], values[views:], each, strict=True):
            time, other = x[..., 0].numpy(), z.numpy()
            whole = (time != 0) & (other[..., 0] != 0)  # where no mask lies, which each series draws for itself
            np.testing.assert_allclose(time[whole], other[..., 1][whole], atol=1e-4)
            np.testing.assert_allclose(time[whole] * 2, other[..., 0][whole], atol=1e-4)
            assert np.abs(time - label.numpy())[whole].max() < 2  # the class of the nearest row, after each of at most two steps
            moved += (np.abs(np.diff(time, axis=1) - 1) > 0.01).any(1).sum()
    assert moved > 20


def test_a_store_keeps_what_follows_the_time_steps(tmp_path: Path) -> None:
    source, _ = with_states("csv", tmp_path)
    features = {"x": FEATURES["x"], "label": STATES["label"], "seen": FEATURES["x"] | {"observed": True}}
    steps = [{"resample": {"length": 20}}, {"random_time_warp": {"factor": 0.5}}]
    given = spec(source | {"window": {"length": 12}, "features": features}, transforms=steps, output={"x": ["x", "seen"], "y": "label"})
    done = pipegen.prepare(given, tmp_path / "store", format="raw")
    pipe, stored = pipegen.build(given), pipegen.build(str(done.spec))
    assert done.rounded
    assert done.bytes > pipe.num_examples("train") * 20 * 4
    assert stored.class_names == pipe.class_names
    assert not pipegen.report(str(done.spec)).diagnostics  # the windows are compared by their bytes
    for one, other in zip(at(pipe), at(stored), strict=True):
        np.testing.assert_allclose(one[0][0], other[0][0], rtol=2e-6, atol=2e-6)  # XLA joins the two steps otherwise
        for a, b in zip((one[0][1], one[1]), (other[0][1], other[1]), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("y", "units", "flat", "loss", "wrong"),
    [
        ("next", 6, True, "mse", ""),  # Keras leaves out a last axis of 1
        ("next", 1, False, "mse", "the model gives 12×1 for each example, and `next` needs 6×1, a row for each step of time"),
        ("next", 5, True, "mse", "the model gives 5 for each example, and `next` needs 6×1"),
        ("state", 3, False, "sparse_categorical_crossentropy", ""),
        ("state", 3, True, "sparse_categorical_crossentropy", "the model gives 3 for each example, and `state` needs 12×3"),
    ],
)
def test_a_model_of_time_steps_is_checked(y: str, units: int, flat: bool, loss: str, wrong: str) -> None:
    import keras

    rows = np.arange(60)
    values = {"x": {"kind": "series", "columns": ["a"]}, "next": {"kind": "series", "column": "a", "at": "horizon"}}
    features = values | {"state": {"kind": "label", "column": "c", "classes": 3, "at": "past"}}
    source = {"window": {"length": 24, "horizon": 6}, "features": {name: features[name] for name in ("x", y)}}
    steps = [{"resample": {"length": 12}}]
    given = {"pipegen": 1, "source": {"series": source}, "transforms": steps, "batch": {"size": 4}, "output": {"x": "x", "y": y}}
    pipe = pipegen.build(given, data={"a": np.sin(rows), **({"c": rows % 3} if y == "state" else {})})
    ends = keras.layers.Dense(units, activation="softmax" if y == "state" else None)
    model = keras.Sequential([keras.Input((12, 1)), *([keras.layers.Flatten()] if flat else []), ends])
    model.compile(loss=loss)
    if wrong:
        with pytest.raises(pipegen.ModelMismatchError, match=wrong):
            pipe.check(model)
    else:
        assert "the model fits" in pipe.check(model)
        model.fit(pipe.train, verbose=0)


def test_an_export_names_the_factor_of_each_channel(tmp_path: Path) -> None:
    source, _ = with_states("csv", tmp_path)
    features = {"x": FEATURES["x"], "label": STATES["label"]}
    steps = [{"random_scale": {"factor": 0.1, "each": "channel"}}]
    given = spec(source | {"window": {"length": 12}, "features": features}, transforms=steps, output={"x": "x", "y": "label"})
    pipe = pipegen.build(given)
    pipe.export(tmp_path / "out", examples=1)
    factors = json.loads((tmp_path / "out" / "metadata.jsonl").read_text())["parameters"]["random_scale.factor"]
    assert np.shape(factors) == (pipe.peek("train", 1)[0].shape[-1],)


@pytest.mark.parametrize(("begin", "gap", "lost"), [(10, 0, True), (10, 4, True), (12, 4, False), (13, 0, False)])
def test_a_series_that_lies_in_no_part_is_named(begin: int, gap: int, lost: bool, caplog: pytest.LogCaptureFixture) -> None:
    """One that is shorter than the gap between two parts, or lies over the end of one."""
    data = {"time": [*range(30), *range(begin, begin + 5)], "of": ["long"] * 30 + ["short"] * 5, "a": np.arange(35.0)}
    source = {"order": "time", "group": "of", "window": {"length": 4}, "features": {"x": {"kind": "series", "columns": ["a"]}}}
    given = {"pipegen": 1, "source": {"series": source}, "batch": {"size": 2, "remainder": "keep"}, "output": {"x": "x", "y": None}}
    parts = {"parts": {"train": 0.45, "test": 0.55}, "method": {"time": {"gap": gap}} if gap else "time"}
    pipe = pipegen.build(given | {"splits": parts}, data=data)
    firsts = np.concatenate([batch[:, 0, 0] for split in parts["parts"] for batch in pipe[split]])
    assert (firsts < 30).all() == lost
    assert ("PG493 source.series: 1 of 2 series have no window in any part, so they are left out" in caplog.text) == lost


def test_integers_beside_floats_stay_exact() -> None:
    data = {"a": np.arange(20.0), "i": 2**53 + 1 + np.arange(20)}
    features = {"x": {"kind": "series", "column": "a"}, "w": {"kind": "tensor", "columns": ["a", "i"], "dtype": "int64"}}
    given = {"pipegen": 1, "source": {"series": {"window": {"length": 3}, "features": features}}, "shuffle": "none"}
    pipe = pipegen.build(given | {"batch": {"size": 2}, "output": {"x": {"x": "x", "w": "w"}, "y": None}}, data=data)
    w = next(iter(pipe["predict"]))["w"]
    assert w[0].numpy().tolist() == [2, 2**53 + 3]


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_what_a_mask_hides_is_missing(dtype: str) -> None:
    values = np.ma.MaskedArray(np.arange(12).astype(dtype), mask=np.arange(12) == 1)
    features = {"x": {"kind": "series", "column": "a", "missing": -1.0}, "seen": {"kind": "series", "column": "a", "observed": True}}
    given = {"pipegen": 1, "source": {"series": {"window": {"length": 3}, "features": features}}, "shuffle": "none"}
    output = {"x": {"x": "x", "seen": "seen"}, "y": None}
    found = next(iter(pipegen.build(given | {"batch": {"size": 2}, "output": output}, data={"a": values})["predict"]))
    assert found["x"][0, :, 0].numpy().tolist() == [0, -1, 2]
    assert found["seen"][0, :, 0].numpy().tolist() == [1, 0, 1]
    whole = np.ma.MaskedArray(np.arange(12).astype(dtype))
    pipegen.build(given | {"batch": {"size": 2}, "output": output}, data={"a": whole})


def test_a_year_of_five_digits_is_no_time() -> None:
    times = [f"2024-01-{day:02}" for day in range(1, 13)]
    features = {"x": {"kind": "series", "column": "a"}}
    given = {"pipegen": 1, "source": {"series": {"order": "t", "window": {"length": 3}, "features": features}}}
    own = {"batch": {"size": 2}, "output": {"x": "x", "y": None}}
    pipegen.build(given | own, data={"a": np.arange(12.0), "t": times})
    pipegen.build(given | own, data={"a": np.arange(12.0), "t": [time.replace("-", "") + "T000000" for time in times]})
    with pytest.raises(SpecError, match="20240-01-08"):
        pipegen.build(given | own, data={"a": np.arange(12.0), "t": [*times[:7], "20240-01-08", *times[8:]]})


def test_columns_have_names_of_their_own() -> None:
    """A number is not its text, and a column may be called as what pipegen makes."""
    rows = np.arange(20)
    data = {"1": rows, "0": rows + 100, "x@observed": rows + 200, "x": np.where(rows % 2, np.nan, rows)}
    columns: dict[str, Any] = {"a": 0, "b": "0", "c": "x@observed"}
    features = {name: {"kind": "series", "column": column} for name, column in columns.items()} | {
        "x": {"kind": "series", "observed": True}
    }
    source = {"window": {"length": 3}, "features": features}
    given = {"pipegen": 1, "source": {"series": source}, "shuffle": "none", "batch": {"size": 2}, "output": {"x": [*features], "y": None}}
    import tensorflow as tf

    batch = tf.nest.flatten(next(iter(pipegen.build(given, data=data)["predict"])))
    first = [value[0, :, 0].numpy().tolist() for value in batch]
    assert first == [[0, 1, 2], [100, 101, 102], [200, 201, 202], [1, 0, 1]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_stands_for_missing_values_is_not_rounded_to_how_they_are_stored(dtype: str) -> None:
    features = {"x": {"kind": "series", "column": "a", "missing": 70_000.1}}
    given = {"pipegen": 1, "source": {"series": {"window": {"length": 3}, "features": features}}, "shuffle": "none"}
    own: dict[str, Any] = {"batch": {"size": 2}, "output": {"x": "x", "y": None}}
    data = {"a": np.where(np.arange(12) == 1, np.nan, np.arange(12)).astype(dtype)}
    found = next(iter(pipegen.build(given | own, data=data)["predict"]))
    np.testing.assert_array_equal(found[0, :, 0], np.float32([0, 70_000.1, 2]))
    features["x"]["missing"] = 1e300
    with pytest.raises(SpecError, match="a series is float32, which cannot hold this number"):
        pipegen.build(given | own, data=data)


def test_advice_on_classes_of_time_steps_can_be_followed() -> None:
    rows = np.arange(60)
    data = {"a": rows, "s": np.where(rows % 7, np.where(rows % 2, "p", "q"), "")}
    label = {"kind": "label", "column": "s", "at": "past"}

    def given(label: dict[str, Any], **own: Any) -> dict[str, Any]:
        features = {"x": {"kind": "series", "columns": ["a"]}, "s": label}
        return {"pipegen": 1, "source": {"series": {"window": {"length": 10}, "features": features}}, "output": {"x": "x", "y": "s"}} | own

    with pytest.raises(
        SpecError, match=r"is empty; 9 labels of 60 are empty(?s:.)*a class of their own, such as `map: {'': none}`"
    ) as empty:
        pipegen.build(given(label), data=data)
    assert "unlabelled" not in str(empty.value)
    named = label | {"map": {"": "none"}}
    assert pipegen.build(given(named), data=data).class_names == ("none", "p", "q")
    with pytest.raises(SpecError, match=r"`s` has a class for each time step(?s:.)*a label of the whole window, `at: last`"):
        pipegen.build(given(named, sampling={"balance": "s"}), data=data)
    pipegen.build(given(named | {"at": "last"}, sampling={"balance": "s"}), data=data)


@pytest.mark.parametrize("views", [1, 2])
def test_an_export_has_every_feature(views: int, tmp_path: Path) -> None:
    """In files or in the table: classes of time steps as the steps moved them, and numbers."""
    features = {
        "x": {"kind": "series", "columns": ["at", "other"]},
        "state": {"kind": "label", "column": "state", "at": "past", "classes": ["p", "q", "r"]},
        "later": {"kind": "label", "column": "state", "at": "horizon", "classes": ["p", "q", "r"]},
        "next": {"kind": "tensor", "column": "other", "at": "next"},
        "last": {"kind": "label", "column": "state", "at": "last", "classes": ["p", "q", "r"]},
    }
    rows = np.arange(60)
    data = {"at": rows, "state": rows // 4 % 3, "other": rows * 2.0}
    source = {"window": {"length": 12, "horizon": 3}, "features": features}
    steps = [{"random_time_warp": {"factor": 0.5}}]
    given = {"pipegen": 1, "source": {"series": source}, "transforms": steps, "views": views, "output": {"x": "x", "y": [*features][1:]}}
    done = pipegen.build(given, data=data).export(tmp_path, examples=20)
    moved = 0
    for line in map(json.loads, done.table.read_text().splitlines()):
        first = int(line["source"].rpartition("#")[2])
        assert line["last"] == "pqr"[(first + 11) // 4 % 3]
        assert line["next"] == 2 * (first + 12)
        for view in [""] if views == 1 else ["_1", "_2"]:
            file = line["file_name" if view in ("", "_1") else f"x{view}_file_name"]
            times = np.load(tmp_path / file)[:, 0]
            assert line[f"later{view}"] == ["pqr"[(first + 12 + i) // 4 % 3] for i in range(3)]
            assert line[f"state{view}"] == ["pqr"[round(float(time)) // 4 % 3] for time in times]
            moved += not np.allclose(np.diff(times), 1)
    assert moved > 10


def unfilled(caplog: pytest.LogCaptureFixture, **own: Any) -> list[str]:
    """The findings about missing values that reach the output."""
    columns = rows()
    columns["heat"][11] = None
    features = {"x": FEATURES["x"] | {"missing": "keep"}, "y": FEATURES["y"], "seen": FEATURES["x"] | {"observed": True}}
    caplog.clear()
    pipegen.build(spec({"features": features}, **own), data=columns)
    return [line for line in caplog.text.splitlines() if "PG495" in line]


def test_missing_values_that_reach_the_model_are_named(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = unfilled(caplog)
    assert "`heat` lacks values, which reach the output as NaN in `x`" in line
    assert unfilled(caplog, transforms=[{"difference": {}}, {"fill_missing": {"probability": 0.5}}])
    assert not unfilled(caplog, transforms=["fill_missing"])
    assert not unfilled(caplog, output={"x": ["x", "seen"], "y": "y"})
    (line,) = unfilled(caplog, transforms=[{"standardize": {"statistics": "samplewise"}}, "fill_missing"])
    assert "`standardize` takes means of `heat`, where values are missing" in line


def test_a_store_knows_which_columns_lack_values(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    columns = rows()
    columns["heat"][11] = None
    given = spec({"features": {"x": FEATURES["x"] | {"missing": "keep"}, "y": FEATURES["y"]}}, transforms=[{"difference": {}}])
    done = pipegen.prepare(given, tmp_path / "store", data=columns)
    caplog.clear()
    whole = pipegen.build(str(done.spec))
    assert "PG495" in caplog.text
    caplog.clear()
    text = done.spec.read_text()
    done.spec.write_text(text.replace("transforms: []", "transforms: [fill_missing]"))
    filled = pipegen.build(str(done.spec))
    assert "PG495" not in caplog.text
    before, after = (np.concatenate([batch[0] for batch in pipe.dataset("train", epoch=0)]) for pipe in (whole, filled))
    assert np.isnan(before).any()
    assert np.isfinite(after).all()
