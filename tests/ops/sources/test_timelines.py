"""What is said of rows that make no windows, and how times are read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipegen.data.shards import Selected
from pipegen.data.time_splits import by_time
from pipegen.errors import OpError, SpecError
from pipegen.ops.fields.labels import label_texts
from pipegen.ops.registry import sources
from pipegen.ops.sampling_sections import Splits
from pipegen.ops.sources.timelines.calendar import calendar_of
from pipegen.ops.sources.timelines.columns import ArrayColumns, as_floats, as_moments, read_times
from pipegen.ops.sources.timelines.ts_files import read_ts
from pipegen.phases.compilation import collect_data, load

X = {"x": {"kind": "series", "column": "load"}}


def listed(data: Any, **arguments: Any) -> Any:
    """The listing of arrays."""
    return sources()["series"].model_validate({"features": X} | arguments).list(Path(), None, data)


def loads(count: int, **more: Any) -> dict[str, Any]:
    return {"load": np.arange(count, dtype=np.float32), **more}


def hours(count: int, **more: Any) -> dict[str, Any]:
    return loads(count, time=np.arange(count)) | more


WINDOW = {"length": 3}
TOGETHER = {"features": {"x": {"kind": "series", "columns": ["load", "heat"]}}}


@pytest.mark.parametrize(
    ("data", "arguments", "code", "told"),
    [
        (hours(9, time=[0, 1, 2, 2, 4, 5, 6, 7, 8]), {"order": "time"}, "PG490", "row 3 of `data` has the time 2 of row 2 of `data`"),
        (hours(9, time=[0.0, 1, np.nan, *range(3, 9)]), {"order": "time"}, "PG423", "row 2 of `data` has no time"),
        (hours(3, time=["2024-01-01", "soon", "2024-01-03"]), {"order": "time"}, "PG423", "row 1 of `data` has 'soon'"),
        (loads(9, meter=["a"] * 4 + [""] + ["b"] * 4), {"group": "meter"}, "PG421", "row 4 of `data` has no value in the column 'meter'"),
        ({"load": np.array([1, np.nan, 3, np.nan], np.float32)}, {}, "PG492", "`x` lacks 2 values, first in row 1 of `data`"),
        ({"load": np.array([1, np.inf, 3, 4], np.float32)}, {}, "PG423", "row 1 of `data` holds a value of `x` that is infinite"),
        ({"load": np.array([1, 1e300, 3, 4])}, {}, "PG423", "row 1 of `data` holds a value of `x` that is infinite"),
        ({"load": ["1", "two", "3", ""]}, {}, "PG423", "row 1 of `data` has 'two', which is not a number"),
        (
            {"load": np.array([1, 2**24 + 1, 3])},
            {},
            "PG666",
            "row 1 of `data` holds 16777217, which float32 would round to 16777216",
        ),
        ({"load": np.array([1, np.nan, 2.0**24 + 1])}, {}, "PG666", "row 2 of `data` holds 16777217"),
        ({"load": ["1", "", "16777217"], "heat": ["1", "2", "3"]}, TOGETHER, "PG666", "row 2 of `data` holds 16777217"),
        ({"load": np.arange(2.0)}, {}, "PG402", "`data` has 2 rows, and a window takes 3 rows"),
        ({"load": np.zeros((0,))}, {}, "PG402", "`data` has no rows"),
        (hours(4, time=np.arange(5)), {"order": "time"}, "PG418", "`load` has 4 rows and `time` has 5 rows"),
        (loads(4, other=np.arange(4)), {}, "PG418", "`data` has the array 'other', which no feature reads"),
        (
            {"load": np.zeros((2, 5, 1)), "area": np.zeros(3)},
            {"features": X | {"area": {"kind": "tensor"}}},
            "PG418",
            "`area` has the shape",
        ),
        ({"load": np.zeros((4, 5, 3, 4))}, {}, "PG204", "the rows of `load` have the shape (3, 4)"),
        (None, {}, "PG418", "needs the rows from `pipegen.build(data=)`"),
        (loads(9, meter=["a"] * 3 + ["b"] * 6), {"group": "meter", "window": None}, "PG418", "have 3 to 6 rows"),
        (hours(9), {"order": "tine"}, "PG421", "`data` has no array 'tine'"),
    ],
)
def test_an_error_says_which_row_and_why(data: Any, arguments: dict[str, Any], code: str, told: str) -> None:
    with pytest.raises(OpError) as refused:
        listed(data, **({"window": WINDOW} | arguments))
    assert refused.value.code == code
    assert told in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"features": {"y": {"kind": "series", "at": "horizon"}}}, "lies after the window, which has no `horizon`"),
        ({"features": {"c": {"kind": "series", "calendar": ["hour"]}}}, "needs the column with the time of each row"),
        ({"features": {"x": {"kind": "series", "at": "last"}}}, "`at` of `kind: series` is one of"),
        ({"features": {"x": {"kind": "tensor", "at": "past"}}}, "`at` of `kind: tensor` is one of"),
        ({"features": {"x": {"kind": "label", "missing": 0}}}, "`missing` is not for `kind: label`"),
        ({"features": {"x": {"kind": "series", "dtype": "int64"}}}, "a series is float32"),
        ({"features": {"x": {"kind": "series", "cyclic": True}}}, "`cyclic` is for features with a `calendar`"),
        ({"features": {"x": {"kind": "series", "column": "a", "columns": ["b"]}}}, "leave one of them out"),
        ({"features": X, "csv": {"path": "a"}, "npy": {"path": "b"}}, "`csv` and `npy` both say where the rows are"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"(?s).*") as refused:
        sources()["series"].model_validate({"window": WINDOW} | arguments)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("values", "more"),
    [
        (np.array([1, 2**24 + 1, 3, 5]), {"dtype": "float32"}),
        (np.array([1, 2**24 + 1, 3, 5]), {"observed": True}),
        (np.array([1, 2**24 + 2, 3, 5]), {}),
        (np.array([1, 2**24 + 1, 3.5, 5]), {}),
        (np.array([1, 3.5, 2**24 + 1, 5]), {}),
    ],
)
def test_integers_are_rounded_where_a_spec_says_so_or_beside_fractions(values: Any, more: dict[str, Any]) -> None:
    found = listed({"load": values}, window=WINDOW, features={"x": X["x"] | more})
    (window,) = found.readers[""].stored("x", np.zeros(1, np.int64), np.zeros(1, np.int64))
    expected = np.ones(3) if "observed" in more else values[:3].astype(np.float32)
    np.testing.assert_array_equal(np.ravel(window), expected)


def test_gaps_and_short_series_are_told() -> None:
    (note,) = listed(hours(9, time=[0, 1, 2, 3, 8, 9, 10, 11, 12]), order="time", window=WINDOW).notes
    assert note.code == "PG491"
    assert "at 1 row, first at row 4 of `data`, after 3" in note.message
    days = ["2024-05-02", "2024-05-03", "2024-05-06", "2024-05-07", "2024-05-08"]  # a weekend
    assert not listed(hours(5, time=days), order="time", window=WINDOW).notes
    months = [f"2024-{month:02}-01" for month in range(1, 8)]
    assert not listed(hours(7, time=months), order="time", window=WINDOW).notes
    (short,) = listed(hours(9, time=np.arange(9), meter=list("aaaaaabcc")), order="time", group="meter", window=WINDOW).notes
    assert short.code == "PG493"
    assert "2 series are shorter than a window and left out: 'b', 'c'" in short.message


def test_times_of_all_forms() -> None:
    assert as_moments(["1970-01-01"]).tolist() == [0]
    assert as_moments(["1970-01-01T00:00:01Z", "1970-01-01 01:00:01+01:00"]).tolist() == [10**9, 10**9]
    for wrong in ("now", "today", "01.02.2024", "2024-13-01"):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's or Python's own words
            as_moments([wrong])


def test_the_calendar_is_that_of_python() -> None:
    from datetime import datetime, timedelta

    moments = [datetime(1969, 12, 30, 23, 30) + timedelta(hours=7.25 * i) for i in range(2000)]
    values = np.array(moments, "datetime64[ns]").view(np.int64)
    names = ("minute", "hour", "weekday", "day", "day_of_year", "month")
    found = calendar_of(values, names, cyclic=False)
    due = [[t.minute, t.hour + t.minute / 60, t.weekday(), t.day, t.timetuple().tm_yday, t.month] for t in moments]
    np.testing.assert_allclose(found, due, atol=1e-4)
    waves = calendar_of(values, ("month",), cyclic=True)
    np.testing.assert_allclose(waves[:, 0], np.sin(2 * np.pi * (found[:, 5] - 1) / 12), atol=1e-6)


@given(st.data())
def test_no_window_crosses_a_series_or_a_part(data: st.DataObject) -> None:
    """Whatever the series, the windows and the parts: the rows of two parts are apart, by a gap or more, and no window is lost between."""
    lengths = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    window = {"length": data.draw(st.integers(1, 6)), "stride": data.draw(st.integers(1, 4)), "every": data.draw(st.integers(1, 3))}
    window["horizon"] = data.draw(st.integers(0, 3))
    span = (window["length"] + window["horizon"] - 1) * window["every"] + 1
    if max(lengths) < span:
        return
    meters = [name for name, length in enumerate(lengths) for _ in range(length)]
    times = [time for length in lengths for time in range(length)]
    listing = listed({"load": np.arange(len(times)), "time": times, "meter": meters}, order="time", group="meter", window=window)
    gap, history = data.draw(st.integers(0, 4)), bool(window["horizon"]) and data.draw(st.booleans())
    parts: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"train": 0.5, "validation": 0.5},
                {"train": 0.6, "validation": 0.2, "test": 0.2},
                {"train": "rest", "validation": 7, "test": 3},
            ]
        )
    )
    splits = Splits.model_validate({"parts": parts, "method": {"time": {"gap": gap, "history": history}}})
    cut = by_time(splits, listing)
    each = zip(cut.keys, cut.shards.rows.tolist(), strict=True)
    assert cut.cells("meter", "") == (*(name for name, count in each for _ in range(count)),)
    shards = cut.shards
    reader: Any = cut.reader()
    used: dict[str, set[int]] = {}
    targets: dict[str, set[int]] = {}
    for name in parts:
        own = Selected(shards.rows, cut.parts.records(name), offsets=shards.offsets)
        entry, row = own.locate(np.arange(len(own)))
        starts = reader._firsts[shards.numbers[entry]] + row * window["stride"]
        every = starts[:, None] + np.arange(window["length"] + window["horizon"]) * window["every"]
        assert all(len({meters[i] for i in rows}) == 1 for rows in every.tolist())
        used[name] = {*every.ravel().tolist()}
        targets[name] = {*every[:, window["length"] :].ravel().tolist()}
    names = [*parts]
    for one, other in pairwise(names):
        for meter in range(len(lengths)):
            last = max((i for i in used[one] if meters[i] == meter), default=None)
            first = min((i for i in (targets if history else used)[other] if meters[i] == meter), default=None)
            assert last is None or first is None or first - last > gap
    if not history:
        assert sum(map(len, used.values())) == len(set().union(*used.values()))


def test_ids_of_windows_stay_when_rows_are_added() -> None:
    spec = load({"pipegen": 1, "source": {"series": {"group": "m", "window": WINDOW, "features": X}}, "output": {"x": "x", "y": None}})
    few = collect_data(spec, None, {"load": np.arange(12), "m": list("aaaaaabbbbbb")})
    more = collect_data(spec, None, {"load": np.arange(20), "m": list("aaaaaabbbbbb" + "aabbcccc")})
    assert {*few.ids("predict").tolist()} < {*more.ids("predict").tolist()}
    assert [*few.keys("predict")][:5] == ["a#0", "a#1", "a#2", "a#3", "b#0"]


def test_splits_that_leak_or_fit_no_series_are_found() -> None:
    source = {"series": {"group": "m", "window": WINDOW, "features": X}}
    spec: dict[str, Any] = {"pipegen": 1, "source": source, "output": {"x": "x", "y": None}}
    parts = {"train": 0.5, "validation": 0.5}

    def codes(splits: dict[str, Any], **own: Any) -> list[str]:
        from pipegen.phases.compilation import inspect

        return [d.code for d in inspect(spec | own | {"splits": splits}).diagnostics if d.severity.value != "info"]

    assert codes({"parts": parts}) == []
    assert codes({"parts": parts, "method": "random"}) == ["PG494"]
    assert codes({"parts": parts, "method": "hash"}) == ["PG494"]
    assert codes({"parts": parts, "group": "m"}) == []
    assert codes({"parts": parts, "group": "m", "method": "time"}) == ["PG302"]
    assert codes({"parts": parts, "method": {"time": {"history": True}}}) == ["PG302"]
    assert codes({"parts": {"train": 0.5, "validation": 3}, "method": "time"}) == ["PG301"]
    assert codes({"parts": {"train": "2024-01-01", "validation": "2024-02-01"}, "method": "time"}) == ["PG301"]
    assert codes({"parts": {"train": 0.5, "validation": "rest"}, "method": "time"}) == ["PG301"]
    assert codes({"parts": {"train": 0.8, "validation": 0.4}, "method": "time"}) == ["PG301"]
    folds = {"folds": {"count": 3, "fold": 1}, "method": "time"}
    assert codes(folds | {"parts": {"test": 0.2}}) == []
    for parts_beside in ({"test": "rest"}, {"test": "2024-01-02"}, {"test": 3}, {"test": "rest", "more": 0.2}):
        assert codes(folds | {"parts": parts_beside}) == ["PG301"]
    whole = {"series": {"group": "m", "window": WINDOW | {"stride": 3}, "features": X}}
    assert codes({"parts": parts, "method": "random"}, source=whole) == []
    folder = {"image_folder": {"path": "a"}}
    assert codes({"parts": parts, "method": "time"}, source=folder, output={"x": "image"}, transforms=[{"resize": {"size": 8}}]) == [
        "PG302"
    ]


def test_a_part_without_a_window_is_an_error() -> None:
    spec = load(
        {
            "pipegen": 1,
            "source": {"series": {"window": WINDOW, "features": X}},
            "splits": {"parts": {"train": "rest", "validation": 2}, "method": "time"},
            "output": {"x": "x", "y": None},
        }
    )
    with pytest.raises(SpecError, match="no window, which takes 3 rows, fits into it"):
        collect_data(spec, None, {"load": np.arange(40)})


def ts(folder: Path, header: str, *lines: str) -> dict[str, Any]:
    """Writes a file of the form `.ts`; the arguments of the source."""
    file = folder / "made.ts"
    file.write_text("\n".join(["# a comment", "@problemName Made", *header.split("|"), "@data", *lines]) + "\n", encoding="utf-8")
    return {"ts": {"path": str(file)}}


def in_ts(folder: Path, header: str, *lines: str, **own: Any) -> Any:
    """The listing of such a file, and each window of `x`, and of `y` if there is one."""
    features = {"x": {"kind": "series", "column": "values", "missing": "keep"}} | own.pop("features", {})
    found = sources()["series"].model_validate(ts(folder, header, *lines) | {"features": features} | own).list(Path())
    reader = found.readers[""]
    places = [(shard, row) for shard, rows in enumerate(found.shards.rows.tolist()) for row in range(rows)]
    return found, *(np.array(reader.stored(name, *np.array(places).T)) for name in features)


CLASS = {"features": {"y": {"kind": "label", "column": "label", "at": "series"}}}


@pytest.mark.parametrize(
    ("classes", "given"),
    [("b a", ["a", "b", "b"]), ("1 -1", ["-1", "1", "1"]), ("-1 1", ["-1", "1", "-1"]), ("2 1", ["1", "2", "2"]), ("0 1", ["1", "0", "1"])],
)
def test_classes_of_ts_files_have_the_order_and_the_names_of_the_header(classes: str, given: list[str], tmp_path: Path) -> None:
    header = f"@univariate true|@equalLength true|@seriesLength 3|@classLabel true {classes}"
    found, x, y = in_ts(tmp_path, header, *(f"{i},{i + 1},{i + 2}:{name}" for i, name in enumerate(given)), **CLASS)
    np.testing.assert_array_equal(x[..., 0], np.arange(3)[:, None] + np.arange(3))
    assert found.classes["y"] == (*classes.split(),)
    assert [found.classes["y"][i] for i in y.tolist()] == given


def test_ts_files_of_several_dimensions_missing_values_and_unequal_lengths(tmp_path: Path) -> None:
    header = "@timeStamps false|@missing true|@univariate false|@dimension 2|@equalLength false|@classLabel true up\tdown"
    lines = ("1,?,3,4:5,6,7,8:up", "9,10:NaN,12:down", "13,14,15:16,17,18:up")
    found, x, y = in_ts(tmp_path, header, *lines, window={"length": 2}, **CLASS)
    nan = np.nan
    due = [[[1, 5], [nan, 6]], [[nan, 6], [3, 7]], [[3, 7], [4, 8]], [[9, nan], [10, 12]], [[13, 16], [14, 17]], [[14, 17], [15, 18]]]
    np.testing.assert_array_equal(x, np.array(due, np.float32))
    assert found.classes["y"] == ("up", "down")
    assert y.tolist() == [0, 0, 0, 1, 0, 0]
    with pytest.raises(OpError, match="have 2 to 4 rows"):
        in_ts(tmp_path, header, *lines)


def test_ts_files_round_no_integer(tmp_path: Path) -> None:
    """As arrays and tables."""
    with pytest.raises(OpError, match="holds 16777217, which float32 would round"):
        in_ts(tmp_path, "@classLabel false", "1,2,16777217", "3,4,5")
    _, x = in_ts(tmp_path, "@classLabel false", "1,2,16777216", "0.5,4,16777217")
    np.testing.assert_array_equal(x[..., 0], np.float32([[1, 2, 16777216], [0.5, 4, 16777216]]))  # numbers, not integers
    with pytest.raises(OpError, match="a value that is not a number"):
        in_ts(tmp_path, "@classLabel false", "1,1_0,3", "3,4,5")
    file = Path(ts(tmp_path, "@classLabel false", "1,2,3")["ts"]["path"])
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert read_ts(str(file)).array("values", "").dtype == np.float32


def test_ts_files_of_numbers_to_predict_and_without_classes(tmp_path: Path) -> None:
    target = {"features": {"y": {"kind": "tensor", "column": "target", "at": "series"}}}
    _, x, y = in_ts(tmp_path, "@targetLabel true", "1,2:0.5", "3,4:-7", **target)
    assert (x[..., 0].tolist(), y.tolist()) == ([[1, 2], [3, 4]], [0.5, -7])
    found, x = in_ts(tmp_path, "@classLabel false", "1,2:0.5,3")
    assert x.tolist() == [[[1, 0.5], [2, 3]]]
    assert not found.classes


@pytest.mark.parametrize(
    ("header", "line", "told"),
    [
        ("@timestamps true", "(0,1),(1,2)", "has the time of each value, which is not supported"),
        ("@univariate true", "(0,1),(1,2)", "holds a value that is not a number"),
        ("@classLabel true a b", "1,2:c", "has the class 'c', and the header lists 'a', 'b'"),
        ("@classLabel true a a", "1,2:a", "names a class twice"),
        ("@classLabel true a b", "1,2:3:a", None),
        ("@classLabel true a b", "1,2:3,4,5:a", "differ in length"),
        ("@targetLabel true", "1,2:high", "ends in 'high', and the target is a number"),
        ("classLabel true", "1,2:a", "is not a line of the header"),
    ],
)
def test_ts_files_that_cannot_be_read(header: str, line: str, told: str | None, tmp_path: Path) -> None:
    with pytest.raises(OpError) as refused:
        in_ts(tmp_path, header, line)
    assert refused.value.code == "PG406"
    assert (told or "differ in length") in refused.value.message


@pytest.mark.parametrize(
    "cells",
    [
        ["b", "a", "b", " a", "c"],
        np.array(["b", "a", "b", "c", "a"]),
        [b"b", b"a", b"b", b"b", b"a"],
        np.array([7, -1, 7, 3, -1]),
        [1, 1.0, True, "1", 2],
        [2.0, float("nan"), 2.0, None, 0.5],
        np.array([True, False, True, True, False]),
        ["x", None, "x", "", "y"],
    ],
    ids=str,
)
def test_series_are_numbered_by_their_text_from_their_first_rows_on(cells: Any) -> None:
    columns = ArrayColumns("`data`", {"meter": cells if isinstance(cells, np.ndarray) else np.array(cells, object)})
    codes, names = columns.numbered("meter", "group")
    texts = label_texts(cells)
    assert names == (*dict.fromkeys(texts),)
    assert [names[code] for code in codes] == texts


@pytest.mark.parametrize(
    "cells", [["1", " 2.5 ", "-3e4"], ["1", "", "nan"], [1, 2.5, None], [1, 10**20], ["1", "NA", "2"], [True, 2]], ids=str
)
def test_numbers_are_those_of_python(cells: list[Any]) -> None:
    due = [np.nan if cell is None or str(cell).strip() in ("", "nan", "NA") else float(cell) for cell in cells]
    np.testing.assert_array_equal(as_floats(cells, str, "x"), due)


def test_numbers_with_underscores_are_refused() -> None:
    with pytest.raises(OpError, match="'1_000', which is not a number"):
        as_floats(["1", "1_000"], str, "x")


def test_uneven_times_are_counted_as_by_hand() -> None:
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, 9, 60)
    steps = [np.where(draw.random(n) < 0.1, draw.integers(2, 5), 1) if i % 2 else np.full(n, 3) for i, n in enumerate(lengths.tolist())]
    due = sum(int(((own[1:] < 0.5 * (usual := np.median(own[1:]))) | (own[1:] > 1.5 * usual)).sum()) for own in steps if len(own) > 1)
    data = {"time": np.concatenate([np.cumsum(own) for own in steps]), "meter": np.repeat(np.arange(60), lengths)}
    notes = listed(loads(len(data["time"]), **data), order="time", group="meter", window={"length": 1}).notes
    assert f"at {due} rows" in next(note.message for note in notes if note.code == "PG491")


def test_times_of_python_are_those_of_numpy() -> None:
    from datetime import datetime, timedelta, timezone

    moments = [datetime(2024, 3, 1) + timedelta(hours=i) for i in range(5)]
    abroad = [moment.replace(tzinfo=timezone(timedelta(hours=2))) for moment in moments]
    found = [read_times(ArrayColumns("`data`", {"t": np.array(given, object)}), "t", "order").values for given in (moments, abroad)]
    np.testing.assert_array_equal(found[0], np.array(moments, "datetime64[ns]").view(np.int64))
    np.testing.assert_array_equal(found[0] - found[1], 2 * 3600 * 10**9)


def test_integers_of_a_parquet_file_are_not_rounded_in_silence(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for value, dtype in ((2**24, None), (2**24 + 1, None), (2**24 + 1, "float32")):
        parquet.write_table(pyarrow.table({"load": [1, value, 3]}), tmp_path / "a.parquet")
        feature = X["x"] | ({} if dtype is None else {"dtype": dtype})
        source = sources()["series"].model_validate(
            {"parquet": {"path": str(tmp_path / "a.parquet")}, "window": WINDOW, "features": {"x": feature}}
        )
        if value > 2**24 and dtype is None:
            with pytest.raises(OpError, match=r"row 1 of .* holds 16777217, which float32 would round"):
                source.list(Path())
        else:
            (window,) = source.list(Path()).readers[""].stored("x", np.zeros(1, np.int64), np.zeros(1, np.int64))
            assert window.ravel().tolist() == [1, 2**24, 3]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("lacking", [False, True])
def test_times_of_a_parquet_file_are_those_of_arrays(unit: str, lacking: bool, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times: Any = np.datetime64("2024-03-01T00:00", unit) + np.arange(9)[::-1].astype(f"timedelta64[{'s' if unit == 's' else unit}]") * 5
    parquet.write_table(pyarrow.table({"time": [None, *times[1:]] if lacking else times, "load": np.arange(9.0)}), tmp_path / "a.parquet")
    source = {"parquet": {"path": str(tmp_path / "a.parquet")}, "order": "time", "window": WINDOW, "features": X}
    if lacking:
        with pytest.raises(OpError, match=r"row 0 of .* has no time"):
            sources()["series"].model_validate(source).list(Path())
        return
    found = sources()["series"].model_validate(source).list(Path())
    np.testing.assert_array_equal(found.timeline.times, np.sort(times).astype("datetime64[ns]").view(np.int64))
    assert found.timeline.parse(str(times[0])) == times[0].astype("datetime64[ns]").view(np.int64)
