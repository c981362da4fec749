"""The reader of windows: one gather of rows for all windows of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.strings import Ints
from pipegen.ops.sources.listing.reader import Hold, Reader, Together
from pipegen.ops.sources.listing.rows import Rows

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True, eq=False)
class View:
    """What a feature reads of the rows: those at some distances from the first row of a window, or a single one."""

    array: str  # the name of the array of rows, `(rows, channels)`, or `(rows, ...)` for a single row
    offsets: tuple[int, ...] | int  # the distance of each row; or that of a single row
    dtype: str  # of the feature
    channels: tuple[int, ...] | None = None  # the channels, if not all
    fill: float | None = None  # what stands for missing values; `None` if they stay NaN


class SeriesReader(Reader):
    """A reader of windows by the number of their series and their number in it.

    Args:
        arrays: Values by row, of all series one after another.
        made: The arrays that no user can change.
        views: What each feature reads.
        firsts: The first row of the first window of each series, int64 `(series,)`.
        counts: The windows of each series, int64 `(series,)`.
        stride: The rows from a window to the next.
    """

    checksums = None

    def __init__(
        self, arrays: Mapping[str, Any], made: frozenset[str], views: Mapping[str, View], firsts: Ints, counts: Ints, stride: int
    ) -> None:
        self._rows = Rows(arrays, made)
        self._views, self._firsts, self._counts, self._stride = views, firsts, counts, stride

    def _arrays_of(self, features: Iterable[str]) -> set[str]:
        return {self._views[name].array for name in features if name in self._views}

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together:
        held = {array: self._rows.open(array, ram_budget, hold) for array in sorted(self._arrays_of(features))}
        firsts = hold(self._firsts)

        def read(names: Sequence[str], number: tf.Tensor, row: tf.Tensor) -> dict[str, tf.Tensor]:
            from pipegen.lazy import tf

            start = firsts(number) + row * self._stride
            gathered: dict[tuple[str, bytes], tf.Tensor] = {}
            found = {}
            for name in names:
                view = self._views[name]
                offsets = np.asarray(view.offsets, np.int64)
                key = view.array, offsets.tobytes()
                if key not in gathered:
                    gathered[key] = held[view.array](start[:, None] + offsets if offsets.ndim else start + offsets)
                values = gathered[key]
                if view.channels is not None:
                    values = tf.gather(values, list(view.channels), axis=-1)
                values = tf.cast(values, view.dtype)
                if view.fill is not None:
                    values = tf.where(tf.math.is_nan(values), tf.constant(view.fill, values.dtype), values)
                found[name] = values
            return found

        return read

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        number, row = place
        return [*self._take(self._views[feature], self._firsts[number] + row * self._stride)]

    def _take(self, view: View, starts: Ints) -> Any:
        """Reads a feature of windows by their first rows, int64 `(n,)`."""
        at: Ints = starts + view.offsets if isinstance(view.offsets, int) else starts[:, None] + np.array(view.offsets)
        values = self._rows.arrays[view.array][at]
        values = values if view.channels is None else values[..., list(view.channels)]
        values = values.astype(view.dtype)
        return values if view.fill is None else np.where(np.isnan(values), values.dtype.type(view.fill), values)

    def column(self, name: str, files: Ints) -> Ints | None:
        view = self._views.get(name)
        if view is None or np.ndim(view.offsets) or self._rows.arrays[view.array].ndim > 1:
            return None
        starts = [self._firsts[i] + np.arange(self._counts[i]) * self._stride for i in files.tolist()]
        return self._take(view, np.concatenate([np.zeros(0, np.int64), *starts]))

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        return self._rows.python(self._arrays_of(features), ram_budget)

    def held_bytes(self, features: Iterable[str], ram_budget: int) -> int:
        return self._rows.held_bytes(self._arrays_of(features), ram_budget)

    def digest(self, *, whole: bool = False) -> str:
        return self._rows.digest(whole=whole)
