"""`timeseries_dataset_from_array`, Keras' utility, on a pipeline. Importing this imports TensorFlow."""

from __future__ import annotations

from typing import Any

from pipegen.api.building import _built
from pipegen.api.pipeline import Pipeline
from pipegen.arguments import one_of
from pipegen.backend.datasets.pipeline_dataset import DerivedDataset
from pipegen.compat.checks import UnsupportedArgument
from pipegen.data.manifest import ShardedManifest
from pipegen.data.shards import Selected
from pipegen.lazy import np, tf
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources.listing.base import Listing, Location, Shards
from pipegen.ops.sources.timelines.reader import SeriesReader, View
from pipegen.phases.compilation import load
from pipegen.phases.specs import Spec
from pipegen.types import DTYPES, ElementType, FeatureType

_MOST = 1 << 24  # windows of a stretch: the row of a record in a shard has 24 bits in its id


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Any:
    """Cuts windows out of an array like `keras.utils.timeseries_dataset_from_array`: the same windows, targets, dtypes and batches, and
    without `shuffle` in the same order. A batch is one gather of rows, and a window takes no memory of its own.

    It differs from Keras' in these points:

    - With `shuffle`, each epoch has a new order of all windows. Keras fixes one order, and shuffles it again in a buffer of eight batches.
    - An array without a window, and `targets` that end before the last one, are errors; Keras' dataset is empty, or fails while it runs.
    - `batch_size=None` gives single windows, but they are read in batches.

    Args:
        data: Values by time, `(rows, ...)`.
        targets: The target of the window that begins at each row, `(rows, ...)`, perhaps with fewer rows; or `None`.
        sequence_length: Rows of a window.
        sequence_stride: Rows from the start of a window to that of the next.
        sampling_rate: Take every so many rows.
        batch_size: Windows of a batch, of which the last may have fewer; `None` for single windows.
        shuffle: Whether windows are shuffled.
        seed: Seed of the order.
        start_index: First row that is used.
        end_index: Row at which they end, exclusive.
        format: `tf`, or `grain` for a `grain.IterDataset` of NumPy arrays, whose iterators save their position.

    Returns:
        A `tf.data.Dataset` of `(batch, sequence_length, ...)`, alone or with the targets, `(batch, ...)`; or the dataset of Grain. Its
        attribute `pipeline` is the pipeline.

    Raises:
        ValueError: For an invalid argument.
        UnsupportedArgument: For values of a dtype that a pipeline has not.
    """
    _check(len(data), start_index, end_index, sampling_rate, sequence_stride)
    for name, size in (("sequence_length", sequence_length), ("batch_size", batch_size)):
        if size is not None and size < 1:
            raise ValueError(f"`{name}` must be 1 or more, got {size}")
    one_of("format", format, ("tf", "grain"), repr)
    if format == "grain" and batch_size is None:
        raise UnsupportedArgument("batch_size", "Grain gets batches of a pipeline, not single windows", "give a number")
    first, end = start_index or 0, len(data) if end_index is None else end_index
    arrays = {"x": _rows("data", data, first, end)}
    starts = end - first - (sequence_length - 1) * sampling_rate
    if targets is not None:
        arrays["y"] = _rows("targets", targets, first, end)
        starts = min(starts, len(targets))
        if len(arrays["y"]) < starts:
            raise ValueError(f"`targets` has {len(targets)} rows, and the windows from `start_index={first}` on need {first + starts}")
    if starts <= 0:
        raise ValueError(f"a window takes {(sequence_length - 1) * sampling_rate + 1} rows, and there are {end - first}")
    offsets = {"x": (*range(0, sequence_length * sampling_rate, sampling_rate),), "y": 0}
    listing = _listing(arrays, offsets, len(range(0, starts, sequence_stride)), sequence_stride)
    drawn = int(np.random.randint(int(1e6))) if seed is None else int(seed)
    window = {"length": int(sequence_length), "stride": int(sequence_stride), "every": int(sampling_rate)}
    features = {"x": {"kind": "series"}, **({"y": {"kind": "tensor", "at": "first"}} if targets is not None else {})}
    sections = {
        "pipegen": 1,
        "source": {"series": {"window": window, "features": features}},
        "splits": {"parts": {"train": "rest"}, "method": "time"},
        "shuffle": "global" if shuffle else "none",
        "seed": drawn,
        "batch": {"size": 128 if batch_size is None else int(batch_size), "remainder": "keep"},
        "output": {"x": "x", "y": "y" if targets is not None else None},
    }
    rows = listing.shards.rows  # type: ignore[union-attr]  # it has shards

    def built(spec: Spec) -> Pipeline:
        return _built(spec, ShardedManifest(listing, {"train": Selected(rows, np.arange(len(rows)))}, "series"), built, None, None)

    pipe = built(load(sections))
    as_given = [tf.as_dtype(array.dtype) for array in arrays.values()]
    return _dataset(pipe, as_given, batched=batch_size is not None, format=format)


def _dataset(pipe: Pipeline, dtypes: list[Any], *, batched: bool, format: str) -> Any:
    def cast(*values: Any) -> Any:
        found = [tf.cast(value, dtype) for value, dtype in zip(values, dtypes, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    given = tf.nest.flatten(pipe.train.element_spec)
    alike = all(spec.dtype == dtype for spec, dtype in zip(given, dtypes, strict=True))
    if format == "grain":
        from pipegen.backend.datasets.grain_batches import GrainBatches

        made: Any = GrainBatches(pipe, "train", None if alike else cast)
    else:
        made = pipe.train if alike else pipe.train.map(cast)
        if not batched:
            count = pipe._manifest.num_examples("train")
            single = made._pipegen_source().unbatch().apply(tf.data.experimental.assert_cardinality(count))
            made = DerivedDataset(single, made, tf.constant(count, tf.int64))
    made.pipeline = pipe
    return made


def _rows(name: str, values: Any, first: int, end: int) -> Any:
    """Takes the rows that are used; raises `UnsupportedArgument` for values that are no numbers."""
    array = values[first:end]
    if isinstance(array, (list, tuple)):
        array = tf.convert_to_tensor(array).numpy()  # its dtypes are not NumPy's: int32 and float32
    array = array if isinstance(array, np.ndarray) else np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise UnsupportedArgument(name, f"its dtype is {array.dtype}", "pass numbers")
    return array


def _listing(arrays: dict[str, Any], offsets: dict[str, Any], count: int, stride: int) -> Listing:
    held, views, types = {}, {}, []
    for name, array in arrays.items():
        dtype = array.dtype.name if array.dtype.name in DTYPES else "int32" if array.dtype.itemsize < 4 else "int64"
        is_bool = array.dtype.kind == "b"
        held[name] = array.view(np.uint8) if is_bool else array if array.dtype.isnative else array.astype(dtype)
        if array.dtype.name in ("uint32", "uint64"):
            held[name] = array.astype(np.int64)
        views[name] = View(name, offsets[name], dtype)
        shape = (*np.shape(offsets[name]), *array.shape[1:])
        types.append((name, FeatureType("tensor", dtype, shape)))
    firsts = np.arange(0, count, _MOST)
    sizes = np.minimum(count - firsts, _MOST)
    keys = Strings.hold([f"series+{first}" if first else "series" for first in firsts.tolist()])
    each = sum(t.num_bytes or 1 for _, t in types)
    return Listing(
        "",
        Location(keys, keys, sizes * each, kind="row"),
        readers={"": SeriesReader(held, frozenset(), views, firsts * stride, sizes, stride)},
        type=ElementType(tuple(types)),
        shards=Shards(sizes, np.arange(len(sizes)), Strings.hold([""] * len(sizes))),
    )


def _check(rows: int, start: int | None, end: int | None, rate: int, stride: int) -> None:
    """Raises `ValueError` for what Keras refuses."""
    if start is not None and not 0 <= start < rows:
        raise ValueError(f"`start_index` must be from 0 to below {rows}, the length of the data; got {start}")
    if end is not None and not 0 < end < rows:
        raise ValueError(f"`end_index` must be above 0 and below {rows}, the length of the data; got {end}")
    if start and end is not None and end <= start:
        raise ValueError(f"`end_index` must be above `start_index`, which is {start}; got {end}")
    for name, value in (("sampling_rate", rate), ("sequence_stride", stride)):
        if not 0 < value < rows:
            raise ValueError(f"`{name}` must be above 0 and below {rows}, the length of the data; got {value}")
