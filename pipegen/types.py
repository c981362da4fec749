"""Static types of the data in a pipeline: one `FeatureType` per feature, one `ElementType` per edge.

Inference uses these alone: it reads no data and imports no array library.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from pipegen.frozen import dataclass

Dim = int | None  # a dimension in elements; `None` is unknown until the data is read

DTYPES = ("uint8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "string", "bool")
DTYPE_BYTES = {
    "uint8": 1, "uint16": 2, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "bool": 1,
}  # fmt: skip
"""Bytes of one element; strings have no fixed size."""
FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval of values, in the units of the feature."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval needs low <= high, got [{self.low}, {self.high}]")

    @property
    def width(self) -> float:
        """`high - low`."""
        return self.high - self.low

    def affine(self, scale: float, offset: float) -> Interval:
        """Maps the interval by `x * scale + offset`."""
        ends = (self.low * scale + offset, self.high * scale + offset)
        return Interval(min(ends), max(ends))

    def union(self, other: Interval) -> Interval:
        """Computes the smallest interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def contains(self, other: Interval, slack: float = 0.0) -> bool:
        """Checks if `other` lies inside, with a tolerance of `slack` at each end."""
        return self.low - slack <= other.low and other.high <= self.high + slack

    def __str__(self) -> str:
        return f"[{self.low:.6g}, {self.high:.6g}]"


BYTE_RANGE = Interval(0.0, 255.0)
WORD_RANGE = Interval(0.0, 65535.0)
LARGEST_SIDE = 32767  # maximal side of an image in pixels
MOST_INSTANCES = 254  # most items of a mask: a pixel is a byte, 0 is no item, and 255 may be ignored by the loss
INTEGER_RANGES = {"uint8": BYTE_RANGE, "uint16": WORD_RANGE}  # ranges of the integer dtypes of images
PIXEL_RANGES: dict[str, Interval | None] = {**INTEGER_RANGES, "float32": None}  # dtypes of pixels that are arrays, with their ranges


@dataclass(frozen=True, slots=True)
class FeatureType:
    """The type of one feature of one example (no batch axis).

    Attributes:
        kind: The kind of the feature, a name in `ops/kinds`; it determines which steps have a rule for it.
        dtype: One of `DTYPES`.
        shape: Sizes in elements; an image is `(height, width, channels)`, or `(channels, height, width)` after a
            channels-first output.
        interval: The values that can occur; `None` if unknown.
        of: The image that the feature is aligned with, for masks, boxes and keypoints.
        classes: The number of classes of a label, if known.
        uniform: Whether all examples have the same shape, which may be unknown until the data is read.
        ignore: For a mask: the class index of pixels outside of the image, for a constant fill.
        file_channels: For an encoded image: the number of channels to decode, if the source sets it.
        file_bits: For an encoded image: the bits of a value, 8 or 16, if the source sets it.
        file_size: For an encoded image: the height and the width of every image in pixels, if the source sets it.
        centred: Whether values of an unknown interval lie around 0, since a mean that is not learned yet is subtracted.
        most: For a ragged feature, whose examples have any number of items along the first axis: the maximal number, to which it is
            padded; 0 if it is unknown until the data is read.
        beside: The ragged feature whose items this one describes, such as the class of each box. When that one drops an item, so does
            this one.
        instances: For a mask of instances: the ragged feature whose items are numbered by its values.
        form: The output format of a ragged feature's items; empty before.
        details: Data for the kind alone, such as the minimal area of a box.
        shapes: The possible shapes of a batch, if batches have the sizes of buckets. `shape` has only the sides that all of them share.
        longest: For a stored feature of unknown length: the largest length along the first axis of any example, once lengths are listed.
        buckets: For a ragged feature: the possible lengths of a batch below `most`, ascending; a batch has the smallest one that fits its
            items. After padding, `most` is included; if empty, every batch has the length `most`.
        missing: The columns, or arrays, of which values are missing and are NaN, once the data is known.
    """

    kind: str
    dtype: str
    shape: tuple[Dim, ...]
    interval: Interval | None = None
    of: str | None = None
    classes: int | None = None
    uniform: bool = False
    ignore: int = 0
    file_channels: int | None = None
    file_bits: int | None = None
    file_size: tuple[int, int] | None = None
    centred: bool = False
    most: int | None = None
    buckets: tuple[int, ...] = ()
    beside: str | None = None
    instances: str | None = None
    form: str = ""
    details: Hashable = None
    shapes: tuple[tuple[Dim, ...], ...] = ()
    longest: int | None = None
    missing: tuple[str, ...] = ()

    @classmethod
    def any_of(cls, types: Sequence[FeatureType]) -> FeatureType:
        """Merges the types that a feature may have in different batches: they differ in shape, and perhaps in the interval."""
        first = types[0]
        if all(t == first for t in types):
            return first
        sides = zip(*(t.shape for t in types), strict=True)
        shape = tuple(own[0] if len(set(own)) == 1 else None for own in sides)
        known = [t.interval for t in types if t.interval is not None]
        interval = None if len(known) < len(types) else reduce(Interval.union, known)
        shapes = tuple(dict.fromkeys(t.shape for t in types))
        return first.with_(shape=shape, interval=interval, uniform=False, shapes=shapes if len(shapes) > 1 else ())

    @property
    def height(self) -> Dim:
        """Rows of a channels-last image, in pixels."""
        return self.shape[0] if len(self.shape) == 3 else None

    @property
    def width(self) -> Dim:
        """Columns of a channels-last image, in pixels."""
        return self.shape[1] if len(self.shape) == 3 else None

    @property
    def channels(self) -> Dim:
        """Channels of a channels-last image."""
        return self.shape[2] if len(self.shape) == 3 else None

    @property
    def is_static(self) -> bool:
        """True if all examples have the same shape and can be stacked."""
        return self.uniform or all(d is not None for d in self.shape)

    @property
    def num_bytes(self) -> int | None:
        """Bytes of one example; `None` for text and unknown dimensions."""
        if self.dtype not in DTYPE_BYTES or any(d is None for d in self.shape):
            return None
        return DTYPE_BYTES[self.dtype] * math.prod(d or 0 for d in self.shape)

    @property
    def encoded(self) -> bool:
        """True for the bytes of a file, before decoding."""
        return self.dtype == "string"

    def decoded(self, channels: int, **changes: object) -> FeatureType:
        """Makes the type after decoding."""
        shape = (*(self.file_size or (None, None)), channels)
        return self.with_(shape=shape, file_channels=None, file_bits=None, file_size=None, **changes)

    def with_(self, **changes: object) -> FeatureType:
        """Makes a copy with some attributes changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        unknown = "|".join(map(str, self.buckets)) or "?"
        shapes = " | ".join(times(shape, unknown) for shape in self.shapes or (self.shape,))
        text = f"{self.dtype}[{shapes}]" if self.shape else self.dtype
        if self.interval is not None:
            text += f" in {self.interval}"
        return text


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of an edge: an ordered map from feature name to type, and the batch axis if there is one.

    Attributes:
        features: `(name, type)` pairs in order; the types never include the batch axis.
        batch: `None` before batching; else the batch size, 0 standing for a size that varies (the last, smaller batch).
    """

    features: tuple[tuple[str, FeatureType], ...]
    batch: int | None = None

    @classmethod
    def any_of(cls, types: Sequence[ElementType]) -> ElementType:
        """Merges the types that an edge may have in different batches; their features are the same."""
        first = types[0]
        return cls(tuple((name, FeatureType.any_of([t[name] for t in types])) for name, _ in first.items()), first.batch)

    def __getitem__(self, name: str) -> FeatureType:
        return dict(self.features)[name]

    def get(self, name: str) -> FeatureType | None:
        """Looks up the type of a feature; `None` if it does not exist."""
        return dict(self.features).get(name)

    def __contains__(self, name: object) -> bool:
        return name in dict(self.features)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.features)

    def items(self) -> tuple[tuple[str, FeatureType], ...]:
        """Lists the `(name, type)` pairs, in order."""
        return self.features

    def replace(self, **types: FeatureType) -> ElementType:
        """Makes a copy with the named features' types replaced; appends new names."""
        return ElementType(tuple((dict(self.features) | types).items()), self.batch)

    def forked(self, name: str, types: dict[str, FeatureType]) -> ElementType:
        """Makes a copy in which several features replace one."""
        return ElementType(tuple(new for k, t in self.features for new in (types.items() if k == name else ((k, t),))), self.batch)

    def without(self, *names: str) -> ElementType:
        """Makes a copy without the named features."""
        return ElementType(tuple((k, t) for k, t in self.features if k not in names), self.batch)

    def padded(self) -> ElementType:
        """Makes the type after padding: a ragged feature has its maximal length, and `NAME_valid` marks the real items."""
        found: dict[str, FeatureType] = {}
        for name, own in self.features:
            found[name] = own
            if own.most is not None:
                home = self.get(own.beside) if own.beside is not None else None
                t = own if home is None else own.with_(most=home.most, buckets=home.buckets)
                room, shorter = t.most or None, tuple(length for length in t.buckets if length < (t.most or math.inf))
                buckets = (*shorter, room) if shorter and room else shorter
                found[name] = t.with_(shape=(room, *t.shape[1:]), uniform=True, most=None, buckets=buckets)
                if t.beside not in self:
                    found[valid_name(name)] = FeatureType("valid", "bool", (room,), of=name, uniform=True, buckets=buckets)
        return ElementType(tuple(found.items()), self.batch)

    def riders(self, name: str) -> tuple[str, ...]:
        """Lists the features that describe the items of a ragged one."""
        return tuple(other for other, t in self.features if t.beside == name)

    def valid(self, name: str) -> str:
        """Name of the feature that marks the real items of a padded one."""
        return valid_name(self[name].beside or name)

    def with_batch(self, batch: int | None) -> ElementType:
        """Makes a copy with another batch axis."""
        return ElementType(self.features, batch)

    def __str__(self) -> str:
        inner = ", ".join(f"{k}: {t}" for k, t in self.features)
        if self.batch is None:
            return inner
        return f"{self.batch}× {inner}" if self.batch else f"batches of {inner}"


def times(sides: Iterable[Dim], unknown: str = "?") -> str:
    """Formats sides, some of which may be unknown: `224×224×3`."""
    return "×".join(unknown if side is None else str(side) for side in sides)


def valid_name(name: str) -> str:
    """Name of the feature that marks the real items, or steps, of a padded one."""
    return f"{name}_valid"


def length_name(name: str) -> str:
    """Name of the feature with the length of a padded one before padding."""
    return f"{name}_length"
