"""Many texts in one block of bytes: a few bytes of overhead each, where a Python string has about sixty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, repeat, starmap
from operator import le
from typing import Any, TypeAlias

from pipegen.lazy import np

Ints: TypeAlias = "np.ndarray[Any, Any]"
"""Whole numbers `(n,)`."""
_BLOCK = 1 << 14  # texts per block
ALIGNED = 64  # alignment in bytes of arrays whose memory tensors share
_LARGE = 1 << 22  # size from which NumPy asks the system for huge pages
_PIECE = 1 << 26  # bytes per piece: pieces this large go back to the system and leave no holes
_WORD = 8  # bytes compared at a time; as many follow the last text


def encode(text: str) -> bytes:
    """Encodes a text as UTF-8; different texts stay different even if a file's name is not valid UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def decode(content: bytes) -> str:
    """Decodes bytes from `encode`."""
    return content.decode("utf-8", "surrogatepass")


def as_sizes(values: Ints | Sequence[int]) -> Ints:
    """Converts non-negative numbers to an array: uint32 if they fit, else int64."""
    found = np.asarray(values, None if isinstance(values, np.ndarray) else np.int64)
    return found.astype(np.uint32 if not len(found) or int(found.max()) < 2**32 else np.int64, copy=False)


def as_places(values: Ints | Sequence[int], count: int) -> Ints:
    """Converts indices among `count` things to an array: int32 if they fit, else int64."""
    return np.asarray(values).astype(np.int32 if count < 2**31 else np.int64, copy=False)


class Strings(Sequence[str]):
    """A sequence of texts, decoded on access, that stands in for a tuple of `str`.

    Attributes:
        blob: The bytes of all texts, uint8, and eight more.
        bounds: The start of each text and the end of the last, `(n + 1,)`: uint32 if it fits, else int64.
        prefixes: Prefixes of the texts, stored once.
        of: The index of each text's prefix, `(n,)`, if there are several.
        rows: The texts that it has, in order; `None` for all.
    """

    __slots__ = ("blob", "bounds", "of", "prefixes", "rows")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, blob: Ints, bounds: Ints, prefixes: tuple[bytes, ...] = (b"",), of: Ints | None = None, rows: Ints | None = None
    ) -> None:
        self.blob, self.bounds, self.prefixes, self.of, self.rows = blob, bounds, prefixes, of, rows

    @classmethod
    def hold(cls, texts: Iterable[str]) -> Strings:
        """Builds it from texts; returns `Strings` as they are."""
        if isinstance(texts, Strings):
            return texts
        collected, rest = Collector(), iter(texts)
        while block := list(islice(rest, _BLOCK)):
            collected.add(block)
        return collected.strings()

    @classmethod
    def of_bytes(cls, blob: Ints, lengths: Ints) -> Strings:
        """Builds it from concatenated bytes, uint8, and lengths; invalid UTF-8 becomes surrogates, as in Python's file names."""
        found = cls(aligned([blob, np.zeros(_WORD, np.uint8)]), _bounds(lengths))
        if (blob < 128).all():
            return found
        return cls._of_blocks([encode(text.decode("utf-8", "surrogateescape")) for text in block] for block in found.blocks())

    @classmethod
    def join(cls, parts: Sequence[Strings], alike: Strings | None = None) -> Strings:
        """Concatenates several, in the block of `alike` if that has the same bytes; prefixes stay separate."""
        parts = [part.packed() for part in parts]
        prefixes = tuple(dict.fromkeys(prefix for part in parts for prefix in part.prefixes)) or (b"",)
        kinds = None
        if len(prefixes) > 1:
            number = {prefix: i for i, prefix in enumerate(prefixes)}
            own = [np.array([number[prefix] for prefix in part.prefixes], np.int16) for part in parts]
            kinds = np.concatenate([o[p.of] if p.of is not None else np.repeat(o[:1], len(p)) for o, p in zip(own, parts, strict=True)])
        if alike is not None:
            return cls(alike.blob, alike.bounds, prefixes, kinds)
        lengths = [np.diff(part.bounds) for part in parts]
        blob = aligned([*(part.blob[: int(part.bounds[-1])] for part in parts), np.zeros(_WORD, np.uint8)])
        return cls(blob, _bounds(np.concatenate(lengths) if lengths else np.zeros(0, np.int64)), prefixes, kinds)

    def below(self, prefix: str) -> Strings:
        """Returns the same texts with a prefix, sharing the block of bytes."""
        return Strings(self.blob, self.bounds, tuple(encode(prefix) + own for own in self.prefixes), self.of, self.rows)

    def take(self, places: Ints) -> Strings:
        """Returns the texts at these places, sharing the block of bytes."""
        rows = as_places(places if self.rows is None else self.rows[places], len(self.bounds))
        return Strings(self.blob, self.bounds, self.prefixes, self.of, rows)

    def packed(self, alike: Strings | None = None) -> Strings:
        """Returns the same texts in a block of bytes without others, that of `alike` if it has the same bytes; prefixes stay separate."""
        if self.rows is None:
            return self
        kinds = None if self.of is None else self.of[self.rows]
        if alike is not None:
            return Strings(alike.blob, alike.bounds, self.prefixes, kinds)
        blob = aligned([*(self._bytes(at, stop)[0] for at, stop in self._spans()), np.zeros(_WORD, np.uint8)])
        return Strings(blob, _bounds(np.diff(self.bounds)[self.rows]), self.prefixes, kinds)

    def renamed(self, name: Callable[[str], str]) -> Strings:
        """Rewrites the prefixes; the texts themselves if some have no prefix."""
        if b"" in self.prefixes:
            return Strings.hold(map(name, self))
        return Strings(self.blob, self.bounds, tuple(encode(name(decode(prefix))) for prefix in self.prefixes), self.of, self.rows)

    def blocks(self) -> Iterator[list[bytes]]:
        """Yields the encoded texts, some thousands at a time."""
        for at, stop in self._spans():
            block, lengths = self._bytes(at, stop)
            data, ends = block.tobytes(), [0, *lengths.cumsum().tolist()]
            pieces = [data[a:b] for a, b in pairwise(ends)]
            if self.of is not None:
                kinds = (self.of[at:stop] if self.rows is None else self.of[self.rows[at:stop]]).tolist()
                yield [self.prefixes[kind] + piece for kind, piece in zip(kinds, pieces, strict=True)]
            else:
                prefix = self.prefixes[0]
                yield [prefix + piece for piece in pieces] if prefix else pieces

    def order(self) -> Ints | None:
        """Returns the places of the texts in character order; `None` if they are sorted."""
        if all(starmap(le, pairwise(chain.from_iterable(self.blocks())))):
            return None
        texts = (self if len(self.prefixes) == 1 else Strings._of_blocks(self.blocks())).packed()
        starts: Ints = texts.bounds[:-1].astype(np.int64)
        lengths: Ints = texts.bounds[1:] - starts
        places: Ints = np.argsort(lengths, kind="stable")
        for word in range((int(lengths.max()) - 1) // _WORD, -1, -1):  # last word first, since sorts are stable
            longer = lengths[places] > word * _WORD
            some = places[longer]
            ranks = np.argsort(texts._word(starts[some], lengths[some], word), kind="stable")
            places = np.concatenate([places[~longer], some[ranks]])
        return places

    @classmethod
    def _of_blocks(cls, blocks: Iterable[list[bytes]]) -> Strings:
        collected = Collector()
        for block in blocks:
            collected.add_bytes(block)
        return collected.strings()

    def _spans(self) -> Iterator[tuple[int, int]]:
        n = len(self)
        return ((at, min(at + _BLOCK, n)) for at in range(0, n, _BLOCK))

    def _bytes(self, at: int, stop: int) -> tuple[Ints, Ints]:
        """Returns the bytes of some texts, without prefixes, and their lengths."""
        if self.rows is None:
            bounds: Ints = self.bounds[at : stop + 1].astype(np.int64)
            return self.blob[bounds[0] : bounds[-1]], np.diff(bounds)
        rows = self.rows[at:stop]
        starts: Ints = self.bounds[rows].astype(np.int64)
        lengths = self.bounds[rows + 1] - starts
        return taken_bytes(self.blob, starts, lengths), lengths

    def _word(self, starts: Ints, lengths: Ints, word: int) -> Ints:
        """Returns eight bytes of each text as one number of the same order, padded with zeros."""
        every = np.ndarray((len(self.blob) - _WORD + 1,), ">u8", self.blob.data, strides=(1,))
        left: Ints = lengths - word * _WORD
        value = every[np.where(left > 0, starts + word * _WORD, 0)].astype(np.uint64)
        missing = (_WORD - np.clip(left, 1, _WORD)).astype(np.uint64) * np.uint64(8)
        return np.where(left > 0, value >> missing << missing, np.uint64(0))

    def __len__(self) -> int:
        return len(self.bounds) - 1 if self.rows is None else len(self.rows)

    def __iter__(self) -> Iterator[str]:
        # As `decode`, without a call for each.
        return chain.from_iterable(map(str, block, repeat("utf-8"), repeat("surrogatepass")) for block in self.blocks())

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        n, at = len(self), int(place)
        if not -n <= at < n:
            raise IndexError(f"index {at} out of range for {n} texts")
        row = at % n if self.rows is None else int(self.rows[at])
        prefix = self.prefixes[0 if self.of is None else self.of[row]]
        return decode(prefix + self.blob[int(self.bounds[row]) : int(self.bounds[row + 1])].tobytes())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"Strings({shown}{', …' if len(self) > 3 else ''}; {len(self)})"


class Collector:
    """Collects the bytes of texts as they come."""

    def __init__(self) -> None:
        self._data = [bytearray()]
        self._lengths: list[Ints] = []

    def add(self, texts: Sequence[str]) -> None:
        joined = "".join(texts)
        if joined.isascii():
            self._take(joined.encode(), texts)
        else:
            self.add_bytes([encode(text) for text in texts])

    def add_bytes(self, texts: Sequence[bytes]) -> None:
        """Adds encoded texts."""
        self._take(b"".join(texts), texts)

    def _take(self, data: bytes, texts: Sequence[str] | Sequence[bytes]) -> None:
        if len(self._data[-1]) > _PIECE:
            self._data.append(bytearray())
        self._data[-1] += data
        self._lengths.append(np.fromiter(map(len, texts), np.uint32, len(texts)))

    def strings(self) -> Strings:
        """Returns the collected texts; nothing can be added afterwards."""
        lengths = np.concatenate([np.zeros(0, np.uint32), *self._lengths])
        data = [np.frombuffer(piece, np.uint8) for piece in (*self._data, bytes(_WORD))]
        return Strings(aligned(data), _bounds(lengths))


def taken_bytes(blob: Ints, starts: Ints, lengths: Ints) -> Ints:
    """Returns some stretches of bytes, one after another."""
    ends = lengths.cumsum()
    return blob[np.repeat(starts - (ends - lengths), lengths) + np.arange(int(lengths.sum()))]


def _bounds(lengths: Ints) -> Ints:
    """Returns the starts of texts of these lengths, and the end of the last."""
    bounds: Ints = aligned([np.zeros(len(lengths) + 1, np.uint32 if int(lengths.sum(dtype=np.int64)) < 2**32 else np.int64)])
    np.cumsum(lengths, out=bounds[1:], dtype=bounds.dtype)
    return bounds


def shareable(values: Ints) -> Ints:
    """Returns an array whose memory tensors can share: the array itself, else a copy."""
    taken = values.ctypes.data % ALIGNED == 0 and values.flags.c_contiguous and values.flags.writeable
    return values if taken else aligned([values])


def aligned(parts: Sequence[Ints]) -> Ints:
    """Concatenates arrays of one dtype into an array whose memory any library can share."""
    size, dtype = sum(part.nbytes for part in parts), parts[0].dtype
    memory = _memory(size + ALIGNED)
    start = -memory.ctypes.data % ALIGNED
    return np.concatenate(parts, out=memory[start : start + size].view(dtype).reshape(sum(map(len, parts)), *parts[0].shape[1:]))


def _memory(size: int) -> Ints:
    """Allocates small pages: making room for NumPy's huge ones can take longer than filling them."""
    import mmap

    if size < _LARGE or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(size, np.uint8)
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
