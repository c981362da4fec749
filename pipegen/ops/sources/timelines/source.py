"""`SeriesSource`, the base of sources of windows, with the arguments of windows and of their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipegen.errors import PartError
from pipegen.ops.kinds.base import TimestepClass, having
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import record_type
from pipegen.ops.sources.features.series import SeriesFeature, Window
from pipegen.ops.sources.listing.base import SeriesRules, Source, always
from pipegen.ops.sources.tables.readings import Column
from pipegen.types import ElementType, FeatureType


class SeriesSource(Source):
    """A source of windows of time series."""

    order: Column | None = None
    """The column with the time of each row: numbers, or dates and times in ISO 8601. By default rows are in order as they are stored."""
    group: Column | None = None
    """The column whose values tell series apart, such as the number of a meter; by default all rows are one series."""
    window: Window | None = None
    """Windows of rows: `{length: 96, stride: 1, every: 1, horizon: 24}`. By default a whole series is one example; all then have the same
    number of rows."""
    features: Annotated[dict[FeatureName, SeriesFeature], Field(min_length=1)]
    """Features of a window, by name: `{x: {kind: series, columns: [load, temperature]}, y: {kind: series, column: load, at: horizon}}`."""

    has_folders = always(False)

    @model_validator(mode="after")
    def _within_the_window(self) -> SeriesSource:
        horizon = 0 if self.window is None else self.window.horizon
        for name, feature in self.features.items():
            if feature.at in ("horizon", "next") and not horizon:
                help_ = "such as `window: {length: 96, horizon: 24}`"
                raise PartError(f"`{name}` lies after the window, which has no `horizon`", "features", name, "at", help=help_)
            if feature.calendar is not None and self.order is None:
                message = f"the calendar of `{name}` needs the column with the time of each row: `order`"
                raise PartError(message, "features", name, "calendar")
        return self

    def has_single_columns(self) -> bool:
        """Tells whether each column has one value a row, so that it is one channel."""
        return False

    def column_names(self) -> tuple[str, ...] | None:
        return () if self.group is None else (str(self.group),)

    def split_method(self) -> Literal["random", "hash", "time"]:
        return "random" if self.window is None else "time"

    def series(self) -> SeriesRules:
        window = self.window
        return SeriesRules(window.horizon if window else 0, window is not None and window.stride < window.span, self.group)

    def labelled_by(self) -> str | None:
        return super().labelled_by() or next(iter(having(self.infer(), TimestepClass)), None)

    def rows_of(self, feature: SeriesFeature) -> int | None:
        """Returns the number of rows of a feature along time; `None` if that is the length of a series."""
        if self.window is None:
            return None
        past, horizon = self.window.length, self.window.horizon
        return {"horizon": horizon, "all": past + horizon}.get(feature.at or "past", past)

    def type_of(self, feature: SeriesFeature, channels: int | None = None) -> FeatureType:
        """Infers the type of a feature; the number of channels may be known from the data."""
        x = feature.own_kind.array_types(feature)[0].with_(details=feature.follows)
        if feature.calendar is not None:
            channels = len(feature.calendar) * (2 if feature.cyclic else 1)
        elif channels is None and self.has_single_columns():
            channels = len(feature.columns or (None,))
        if feature.is_along:
            length = self.rows_of(feature)
            return x.with_(shape=(length, channels) if feature.is_series else (length,), uniform=True)
        return x if feature.columns is None else x.with_(shape=(len(feature.columns),))

    def infer(self) -> ElementType:
        return self.record({name: self.type_of(feature) for name, feature in self.features.items()})

    def record(self, types: Mapping[str, FeatureType]) -> ElementType:
        """Returns the type of a window. What lies after a window, is known in advance, is a class or tells what was observed belongs to its
        first values, so that steps leave it alone unless they name it or move its time steps."""
        plain = {n: f.at in (None, "past") and f.follows is None for n, f in self.features.items() if f.is_along}
        first = next((name for name, own in plain.items() if own), None)
        return record_type(types, {name: None if own else first for name, own in plain.items()})
