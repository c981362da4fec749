"""Sound files as samples.

WAV is read by operations of TensorFlow, in every form of PCM, of floats and of G.711; with the same bits as libsndfile. Other formats, and
rare forms of WAV, are read by the library soundfile, in Python, which makes them a WAV of floats.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from pipegen.lazy import np, tf
from pipegen.mounts import Opened, mounted
from pipegen.ops.lowering.decoding import Survey
from pipegen.ops.lowering.formats import sure
from pipegen.ops.lowering.graphs import asserted, chosen, either, target
from pipegen.ops.lowering.library import UnreadableError, call_reader, call_reader_on_each, without_problem
from pipegen.ops.lowering.resampling import MOST, resample
from pipegen.ops.lowering.stored_readers import string_of

if TYPE_CHECKING:
    from pipegen.ops.lowering.decoding import Found

HEAD = 64  # the number of first bytes that identify the format of a sound file
READ = "WAV, FLAC, Ogg Vorbis, Opus, MP3, AIFF, AU, RF64, W64 and SPHERE"  # in messages
UNREAD = {"m4a": "MP4", "aac": "AAC", "wma": "WMA"}  # formats that are not read, by the ending of files
WITHOUT_LIBRARY = "WAV"  # the format that needs no library
INSTALL = "pip install 'pipegen[audio]'"

_PCM, _FLOAT, _A_LAW, _MU_LAW, _EXTENSIBLE = 1, 3, 6, 7, 0xFFFE  # tags of WAVE forms (RFC 2361)
_FORMS = ((_PCM, 1), (_PCM, 2), (_PCM, 3), (_PCM, 4), (_FLOAT, 4), (_FLOAT, 8), (_A_LAW, 1), (_MU_LAW, 1))
"""The forms that are read in the graph: the tag, and the bytes of a sample."""
_UNWRITTEN = 0x7FFF0000  # sizes from here on stand for one that a stream did not know when it wrote its header
_FMT, _DATA = (int.from_bytes(name, "little") for name in (b"fmt ", b"data"))
_LARGEST = 0x7FFFF000  # bytes of samples that Linux reads at once, and a tensor holds
_FIXED = [0, 2, 3, 4, 5, 6, 7, 8, 9]  # words of 32 bits of a plain header that are not sizes: all but the second and the last
_START, _ABOUT, _SHORT = 44, 20, 7  # of a WAV that `wav` writes: the places of its samples and of their form, which has so many words
_TOO_LONG = "has more than 2 GiB of samples; read it in parts, by `offset` and `duration`"
_SPHERE = 1024  # bytes of a header of SPHERE
_PAGE = 65307  # most bytes of a page of Ogg (RFC 3533, 6)
_MOST_CHUNKS = 1000  # chunks before the samples
_NEVER = 1 << 60  # frames from here on stand for an unknown number
_AT_ONCE = 1 << 20  # frames that soundfile reads at once if their number is unknown


class Header(NamedTuple):
    """What a WAV says of its samples: the place in `_FORMS`, channels, the rate in Hz, the place of the first byte, and frames."""

    form: Any
    channels: Any
    rate: Any
    first: Any
    frames: Any


def sound_format(head: bytes) -> str | None:
    """Recognises the format of a sound file by its first `HEAD` bytes; `None` for other files."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return WITHOUT_LIBRARY
    if head[:4] == b"RIFX" and head[8:12] == b"WAVE":
        return "big-endian WAV"
    if head[:4] == b"OggS":
        return "Opus" if b"OpusHead" in head else "Ogg Vorbis" if b"\x01vorbis" in head else "Ogg"
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "AIFF"
    if head[:3] == b"ID3" or _starts_mp3(head):
        return "MP3"
    magics = ((b"fLaC", "FLAC"), (b"RF64", "RF64"), (b"riff\x2e\x91\xcf\x11", "W64"), (b".snd", "AU"), (b"NIST_1A", "SPHERE"))
    return next((name for magic, name in magics if head.startswith(magic)), None)


def is_readable(name: str) -> bool:
    """Checks that files of a format can be read in this environment."""
    return name == WITHOUT_LIBRARY or find_spec("soundfile") is not None


def missing_library(name: str) -> str:
    """Returns the command that installs what reads a format; "" if nothing does."""
    return "" if name in UNREAD.values() else INSTALL


def read_by_library(head: bytes) -> str | None:
    """The format of a file that begins with these `HEAD` bytes and that the graph does not read; `None` for a WAV of one of `_FORMS`, and
    for one whose first chunk is not its form."""
    name = sound_format(head)
    if name != WITHOUT_LIBRARY:
        return name or "file of an unknown format"
    tag, channels, _, _, align, *_, sub = struct.unpack("<HHIIHHHHIH", head[20:46].ljust(26, b"\0"))
    is_form = (sub if tag == _EXTENSIBLE else tag, align // max(channels, 1)) in _FORMS
    return None if is_form or head[12:16] != b"fmt " else f"{name} of another form than PCM, floats, A-law and mu-law"


def _starts_mp3(head: bytes) -> bool:
    """Checks for the header of a frame of MPEG audio, layer III (ISO/IEC 11172-3, 2.4.1.3): the synchronisation, a version, the layer, a
    bit rate and a sampling rate that are defined."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    return head[1] & 0x18 != 0x08 and head[1] & 0x06 == 0x02 and head[2] & 0xF0 != 0xF0 and head[2] & 0x0C != 0x0C


def wav_header(read: Callable[[int, int], bytes], size: int) -> Header | None:
    """Reads the header of a WAV of `size` bytes by a function that takes a place and a number of bytes.

    `None` for a form that the graph does not read. A file that is cut short, has no samples, or lacks a part of its header raises
    `UnreadableError`. The graph does the same in `_header`.
    """
    at, about, name, length = 12, b"", 0, 0
    for _ in range(_MOST_CHUNKS):
        name, length = struct.unpack("<II", read(at, 8)) if at + 8 <= size else (0, 0)
        if name == _DATA or at + 8 > size:
            break
        if name == _FMT:
            about = read(at + 8, 26).ljust(26, b"\0")
        at += 8 + length + length % 2
    if name != _DATA:
        raise UnreadableError("is a WAV without samples: it ends before a `data` chunk")
    if not about:
        raise UnreadableError("is a WAV with a damaged header: it has no `fmt ` chunk before its samples")
    tag, channels, rate, _, align, _, _, _, _, sub = struct.unpack("<HHIIHHHHIH", about)
    tag = sub if tag == _EXTENSIBLE else tag
    there, promised = size - at - 8, length
    riff = struct.unpack("<I", read(4, 4))[0]
    if promised >= _UNWRITTEN or (promised == 0 and riff <= at):
        promised = there
    if promised > there:
        raise UnreadableError(f"is cut short: its header promises {promised:,} bytes of samples, and it has {there:,}")
    width = align // channels if channels and align % channels == 0 else 0
    if (tag, width) not in _FORMS or not rate:
        return None
    if promised < align:
        raise UnreadableError("is a WAV without samples")
    return Header(_FORMS.index((tag, width)), channels, rate, at + 8, promised // align)


def _header(contents: tf.Tensor) -> tuple[Header, tf.Tensor]:
    """Reads the header of a WAV, a string scalar, like `wav_header`: int64 scalars, and whether the graph can read the file."""
    size = tf.strings.length(contents)
    start = tf.io.decode_raw(contents, tf.int32, fixed_length=12)
    is_wav = tf.reduce_all(tf.gather(start, [0, 2]) == [int.from_bytes(name, "little") for name in (b"RIFF", b"WAVE")])
    at0 = tf.where(is_wav & (size >= 12), 12, tf.maximum(size, 12))

    def chunk(at: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        two = tf.io.decode_raw(tf.strings.substr(contents, tf.minimum(at, size), 8), tf.int32, fixed_length=8)
        return two[0], _unsigned(two[1])

    def step(at: tf.Tensor, name: tf.Tensor, length: tf.Tensor, about: tf.Tensor) -> tuple[tf.Tensor, ...]:
        behind = tf.cast(at, tf.int64) + 8 + length + length % 2
        now = tf.cast(tf.minimum(behind, tf.cast(size, tf.int64)), tf.int32)
        return now, *chunk(now), tf.where(name == _FMT, at + 8, about)

    at, name, length, about = tf.while_loop(
        lambda at, name, *_: (at + 8 <= size) & (name != _DATA), step, (at0, *chunk(at0), tf.constant(0)), maximum_iterations=_MOST_CHUNKS
    )
    words = tf.cast(tf.io.decode_raw(tf.strings.substr(contents, about, 26), tf.uint16, fixed_length=26), tf.int64)
    is_form, channels, rate = _form(words)
    align = words[6]
    there = tf.cast(size - at - 8, tf.int64)
    promised = tf.where((length >= _UNWRITTEN) | ((length == 0) & (_unsigned(start[1]) <= tf.cast(at, tf.int64))), there, length)
    whole = (name == _DATA) & (about > 0) & (promised <= there) & (promised >= align)
    known = tf.reduce_any(is_form) & (rate > 0)
    frames = tf.math.floordiv(promised, tf.maximum(align, 1))
    return Header(tf.argmax(tf.cast(is_form, tf.int32)), channels, rate, tf.cast(at, tf.int64) + 8, frames), whole & known


def _form(words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Reads the words of a `fmt ` chunk, int64 `(7,)` or more: which of `_FORMS` it has, bool `(8,)`, channels, and the rate."""
    tag = words[0] if words.shape[0] == _SHORT else tf.where(words[0] == _EXTENSIBLE, words[12], words[0])
    width = tf.where(words[1] > 0, words[6] / tf.maximum(words[1], 1), 0.0)  # bytes of a sample, if it is a whole number
    forms = tf.constant(_FORMS, tf.float64)
    return (forms[:, 0] == tf.cast(tag, tf.float64)) & (forms[:, 1] == width), words[1], words[2] + words[3] * 65536


def _unsigned(number: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.bitwise_and(tf.cast(number, tf.int64), 0xFFFFFFFF)


def decode_sound(contents: tf.Tensor, rate: int, channels: int, offset: float = 0.0, duration: float | None = None) -> tf.Tensor:
    """Decodes a sound file, a string scalar, to float32 `(frames, channels)`; integers become values in [-1, 1).

    Args:
        contents: The bytes of the file.
        rate: The rate in Hz, to which a file of another is resampled.
        channels: One is the mean of the file's; a file of one has it copied to all; any other number of channels must be the file's.
        offset: Seconds before the first frame to read.
        duration: The most seconds to read; by default up to the end.

    Raises:
        InvalidArgumentError: Damage, another format, another number of channels, no frame after `offset`, values that are not numbers, or a
            rate that is more than a hundred times higher or lower. The message continues the file's name.
    """
    # Almost every file of speech is a WAV of 16 bits of that rate, with the plainest header.
    start = round(offset * rate)
    count = None if duration is None else max(1, round(duration * rate))
    head = tf.io.decode_raw(contents, tf.int32, fixed_length=_START)
    plain = np.frombuffer(wav(b"", rate, channels, (_PCM, 2)), "<i4")
    alike = tf.reduce_all(tf.gather(head, _FIXED) == tf.constant(plain[_FIXED]))
    size = tf.strings.length(contents)
    is_plain = alike & (head[-1] > 2 * channels * start) & (head[-1] <= size - _START)

    def read(contents: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        frames = length // (2 * channels) - start
        frames = frames if count is None else tf.minimum(frames, count)
        held = tf.strings.substr(contents, _START + 2 * channels * start, 2 * channels * frames)
        return tf.reshape(tf.cast(tf.io.decode_raw(held, tf.int16), tf.float32) * 2.0**-15, [-1, channels])

    def other(contents: tf.Tensor, length: tf.Tensor) -> tf.Tensor:  # noqa: ARG001 - TensorFlow names an input by it
        return _decode(contents, rate, channels, offset, duration)

    return tf.ensure_shape(either(is_plain, read, other, contents, head[-1]), [None, channels])


def _decode(contents: tf.Tensor, rate: int, channels: int, offset: float, duration: float | None) -> tf.Tensor:
    """Decodes a file of any format; see `decode_sound`."""
    header, is_read_here = _header(contents)
    rated = tf.cast(header.rate, tf.float64)
    start = tf.cast(tf.round(offset * rated), tf.int64)
    count = header.frames - start
    if duration is not None:
        count = tf.minimum(count, tf.maximum(tf.cast(tf.round(duration * rated), tf.int64), 1))
    frame = header.channels * tf.gather(tf.constant([width for _, width in _FORMS], tf.int64), header.form)
    about = tf.stack([header.form, header.channels, header.rate])

    def here(contents: tf.Tensor, about: tf.Tensor, first: tf.Tensor, length: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.strings.substr(contents, first, length), about

    def library(contents: tf.Tensor, *_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        unread = "is not a whole WAV of PCM or floats that lasts longer than its offset"
        lacking = f"a sound of the request {unread}, and other files can be read only by Python"
        return _parts(call_reader(partial(piece, offset=offset, duration=duration), contents, [], tf.string, describe, lacking))

    given = contents, about, header.first + start * frame, count * frame
    held, about = either(is_read_here & (count > 0), here, library, *given)
    return _samples(held, about, rate, channels)


def _parts(made: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Takes a WAV that `wav` wrote apart: its samples, and their form, channels and rate, int64 `(3,)`."""
    words = tf.cast(tf.io.decode_raw(tf.strings.substr(made, _ABOUT, 14), tf.uint16, fixed_length=14), tf.int64)
    known, stored, own_rate = _form(words)
    return tf.strings.substr(made, _START, -1), tf.stack([tf.argmax(tf.cast(known, tf.int32)), stored, own_rate])


def survey(contents: list[tf.Tensor], offset: float, duration: float | None) -> Survey | None:
    """Reads the files that are not WAV, of several, string scalars, by one call of the library. Facts about each are what `piece` makes of
    it, "" for a WAV, and its problem, "" if it has none. `None` in a saved graph, which has no Python."""
    if target() != "process":
        return None
    heads = tf.stack([tf.strings.substr(content, 0, 12) for content in contents])
    usual = tf.reduce_all(tf.strings.regex_full_match(heads, r"(?s)RIFF\C{4}WAVE"))

    def none(contents: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.fill([len(contents)], ""), tf.fill([len(contents)], "")

    def read(content: bytes) -> bytes:
        return b"" if sound_format(content[:HEAD]) == WITHOUT_LIBRARY else piece(content, offset, duration)

    def library(contents: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        return call_reader_on_each(read, tf.stack(contents), describe)

    made, problems = either(usual, none, library, contents)
    return Survey(usual, True, list(zip(tf.unstack(made), tf.unstack(problems), strict=True)))


def decode_surveyed(contents: tf.Tensor, found: Found, rate: int, channels: int, decode: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    """Decodes a surveyed file, like `decode_sound`; a WAV by `decode`."""
    made, problem = found
    if made is None:
        return decode(contents)

    def of_library(contents: tf.Tensor, made: tf.Tensor) -> tf.Tensor:  # noqa: ARG001 - TensorFlow names an input by it
        return _samples(*_parts(made), rate, channels)

    def other(contents: tf.Tensor, made: tf.Tensor) -> tf.Tensor:  # noqa: ARG001 - likewise
        return decode(contents)

    made = without_problem(made, problem)
    return tf.ensure_shape(either(tf.strings.length(made) > 0, of_library, other, contents, made), [None, channels])


def _samples(held: tf.Tensor, about: tf.Tensor, rate: int, channels: int) -> tf.Tensor:
    """Converts the bytes of samples of a form, with channels and a rate, int64 `(3,)`, to float32 `(frames, channels)` of another rate."""
    form, stored, own_rate = tf.unstack(about)
    samples = chosen(tf.cast(form, tf.int32), _readers(), held)
    samples = tf.reshape(samples, tf.stack([-1, tf.cast(stored, tf.int32)]))
    same = (own_rate == rate) & (stored == channels)
    return either(same, lambda samples, *_: samples, partial(_changed, rate, channels), samples, own_rate, stored)


def _readers() -> list[Callable[[tf.Tensor], tf.Tensor]]:
    """Returns a function for each of `_FORMS` that converts the bytes of samples, a string scalar, to float32 `(samples,)`."""

    def scaled(dtype: tf.DType, held: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.io.decode_raw(held, dtype), tf.float32) * 2.0 ** (1 - 8 * dtype.size)

    def coded(row: int, held: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.constant(_bytes_mean()[row]), tf.cast(tf.io.decode_raw(held, tf.uint8), tf.int32))

    def three_bytes(held: tf.Tensor) -> tf.Tensor:
        # After a byte of 0 they are the upper ones of an int32. Shifts and sums would take three times as long.
        four = tf.pad(tf.reshape(tf.io.decode_raw(held, tf.uint8), [-1, 3]), [[0, 0], [1, 0]])
        return tf.cast(tf.bitcast(four, tf.int32), tf.float32) * 2.0**-31

    def floats(dtype: tf.DType, held: tf.Tensor) -> tf.Tensor:
        values = tf.cast(tf.io.decode_raw(held, dtype), tf.float32)
        with sure((tf.reduce_all(tf.math.is_finite(values)), "holds samples that are not finite numbers"), what="a sound"):
            return tf.identity(values)

    return [
        partial(coded, 0),
        partial(scaled, tf.int16),
        three_bytes,
        partial(scaled, tf.int32),
        partial(floats, tf.float32),
        partial(floats, tf.float64),
        partial(coded, 1),
        partial(coded, 2),
    ]


def _changed(rate: int, channels: int, samples: tf.Tensor, own_rate: tf.Tensor, stored: tf.Tensor) -> tf.Tensor:
    """Converts samples `(frames, stored)` to another number of channels, and of another rate; all are int64 scalars."""
    of_channels = ["has ", tf.strings.as_string(stored), f" channels, but `channels: {channels}` is wanted; `channels: 1` takes their mean"]
    of_rate = ["has a rate of ", tf.strings.as_string(own_rate), f" Hz, which cannot be resampled to {rate}"]
    fits = (stored == 1) | (stored == channels) | (channels == 1)
    near = (own_rate * MOST >= rate) & (own_rate <= rate * MOST)
    with sure((fits, tf.strings.join(of_channels)), (near, tf.strings.join(of_rate)), what="a sound"):
        if channels == 1:
            samples = tf.cond(stored == 1, lambda: tf.identity(samples), lambda: tf.reduce_mean(samples, axis=1, keepdims=True))
        else:
            samples = tf.cond(stored == channels, lambda: tf.identity(samples), lambda: tf.tile(samples, [1, channels]))
    return resample(tf.ensure_shape(samples, [None, channels])[None], own_rate, rate)[0]


@cache
def _bytes_mean() -> Any:
    """Returns the sample that each byte stands for, float32 `(3, 256)`: as PCM, as A-law and as mu-law (ITU-T G.711)."""
    code = np.arange(256)
    inverted = code ^ 0x55  # A-law inverts every other bit
    exponent, mantissa = inverted >> 4 & 7, inverted & 15
    a_law = np.where(exponent == 0, (mantissa << 4) + 8, (mantissa << 4) + 0x108 << np.maximum(exponent - 1, 0))
    inverse = ~code & 0xFF  # and mu-law all
    mu_law = ((inverse & 15) << 3) + 0x84 << (inverse >> 4 & 7)
    signed = [np.where(inverted & 0x80, a_law, -a_law), np.where(inverse & 0x80, 0x84 - mu_law, mu_law - 0x84)]
    return np.stack([(code - 128) * 256, *signed]).astype(np.float32) / np.float32(32768)


def wav(samples: bytes, rate: int, channels: int, form: tuple[int, int] = (_FLOAT, 4)) -> bytes:
    """Makes a WAV of samples in a form, by default little-endian float32."""
    tag, width = form
    about = struct.pack("<IHHIIHH", 16, tag, channels, rate, rate * channels * width & 0xFFFFFFFF, channels * width, 8 * width)
    return b"".join(
        (b"RIFF", struct.pack("<I", _START - 8 + len(samples)), b"WAVEfmt ", about, b"data", struct.pack("<I", len(samples)), samples)
    )


def encode_wav(samples: Any, rate: int) -> bytes:
    """Encodes samples `(frames, channels)` as a WAV of float32, which holds every value as it is."""
    return wav(np.ascontiguousarray(samples, "<f4").tobytes(), rate, samples.shape[1])


def pack_wav(samples: tf.Tensor, rate: int) -> tf.Tensor:
    """Encodes samples, float32 `(frames, channels)`, as a WAV in the graph, a string scalar: of int16 if that holds every sample, else of
    float32. `decode_sound` reads the same bits. Fails with more than 2 GiB of samples."""
    whole = tf.cast(tf.clip_by_value(samples * 2.0**15, -(2.0**15), 2.0**15 - 1), tf.int16)
    again = tf.cast(whole, tf.float32) * 2.0**-15
    exact = tf.reduce_all(tf.bitcast(again, tf.int32) == tf.bitcast(samples, tf.int32))
    with sure((tf.size(samples, tf.int64) * 4 <= _LARGEST, _TOO_LONG), what="a sound"):
        channels = samples.shape[1]
        return tf.cond(exact, lambda: _packed(whole, rate, channels), lambda: _packed(samples, rate, channels))


def _packed(stored: tf.Tensor, rate: int, channels: int) -> tf.Tensor:
    """Encodes samples, int16 or float32, as a WAV of these, a string scalar."""

    def held(values: tf.Tensor) -> tf.Tensor:
        return string_of(tf.reshape(tf.bitcast(values, tf.uint8), [-1]))

    form = (_FLOAT, 4) if stored.dtype.is_floating else (_PCM, 2)
    head, length = wav(b"", rate, channels, form), tf.size(stored, tf.int64) * form[1]
    sizes = [held(tf.cast(number, tf.uint32)) for number in (length + _START - 8, length)]
    return tf.strings.join([head[:4], sizes[0], head[8 : _START - 4], sizes[1], held(stored)])


LISTED = {"int64": "<i2", "int16": "<i2", "int32": "<i4", "uint8": "u1", "float16": "<f4", "float32": "<f4", "float64": "<f4"}
"""Dtypes of lists of samples, and those of the WAV of each. An int64 has no width of its own, and holds 16 bits."""


def pack_list(name: str, samples: tf.Tensor, rate: int, channels: int) -> tf.Tensor:
    """Encodes samples one after another, int64 of 16 bits or float32 `(n,)`, with those of a frame side by side, as a WAV of the same
    numbers, a string scalar. Fails like `wav_of_list`, with the name of the feature."""
    count, integers = tf.size(samples), samples.dtype.is_integer
    checks = [
        (count > 0, _NONE),
        (count % channels == 0, _UNEVEN.format(channels)),
        (tf.size(samples, tf.int64) * 4 <= _LARGEST, _TOO_LONG),
    ]
    fit = (samples >= -(2**15)) & (samples < 2**15) if integers else tf.math.is_finite(samples)
    checks.append((tf.reduce_all(fit), _WIDE if integers else _INFINITE))
    for condition, message in checks:
        samples = asserted(samples, condition, f"`{name}` {message}")
    return _packed(tf.cast(samples, tf.int16) if integers else samples, rate, channels)


def wav_of_list(samples: Sequence[Any], rate: int, channels: int) -> bytes:
    """As `pack_list`, in NumPy, and for arrays of `LISTED` dtypes, with the scale of these; `ValueError` for no samples, for another number
    than whole frames have, for samples that are not finite, or int64 beyond 16 bits."""
    values = np.asarray(samples)
    if values.ndim != 1:
        raise ValueError(f"it {_NESTED}")
    wrong = _NONE if not len(values) else _UNEVEN.format(channels) if len(values) % channels else ""
    if not wrong and values.dtype == np.int64 and (values.min() < -(2**15) or values.max() >= 2**15):
        wrong = _WIDE
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinite
        stored = values.astype(LISTED.get(values.dtype.name, "<f4"))
    wrong = wrong or (_INFINITE if stored.dtype.kind == "f" and not np.isfinite(stored).all() else "")
    if wrong:
        raise ValueError(f"it {wrong}")
    return wav(stored.tobytes(), rate, channels, (_FLOAT if stored.dtype.kind == "f" else _PCM, stored.dtype.itemsize))


_NONE = "has no samples"
_NESTED = "is a list of lists; the samples of all channels stand in one list, frame after frame"
_UNEVEN = "has a number of samples that is no multiple of its {} channels"
_WIDE = "has integers beyond the 16 bits of samples, -32768 to 32767"
_INFINITE = "has samples that are not finite numbers"


def describe(error: Exception) -> str:
    """Describes what a library said of a damaged file, to continue the file's name."""
    return f"is damaged or cut short: {getattr(error, 'error_string', '') or f'{type(error).__name__}: {error}'}"


class _Ranges:
    """The bytes of a local or remote file by ranges, of which only those are read."""

    def __init__(self, file: Opened) -> None:
        self._file = file

    def __len__(self) -> int:
        return self._file.seek(0, os.SEEK_END)

    def __getitem__(self, place: slice) -> bytes:
        first, end, _ = place.indices(len(self))
        return self._file.pread(max(0, end - first), first)


def stored_sound(source: str | bytes) -> tuple[int, int, int]:
    """Reads the rate in Hz, the channels and the frames that a file, at a path or as bytes, tells of itself; raises like `piece`, and
    `OSError`."""
    if isinstance(source, bytes):
        return _stored_in(source, source)[1:]
    with Opened(source) as opened:
        return _stored(opened)[1:]


def stored_frames(opened: Opened, rate: int, offset: float, duration: float | None) -> int | None:
    """Returns how many frames `decode_sound` gives, by the header of a file; `None` if that only estimates them. Raises like `piece`, and
    `OSError`."""
    name, own_rate, _, frames = _stored(opened)
    if frames >= _NEVER or (name == "MP3" and not _counts_frames(_Ranges(opened))):
        return None
    return -(-_span(frames, own_rate, offset, duration)[1] * rate // own_rate)


def _stored(opened: Opened) -> tuple[str, int, int, int]:
    """Returns the format, and the rate, channels and frames that a file tells."""
    contents = _Ranges(opened)
    return _stored_in(contents, contents if mounted(opened.name) else opened.name)


def _stored_in(contents: Any, source: Any) -> tuple[str, int, int, int]:
    """As `_stored`, of bytes or ranges of a file; `source` is these, or the path of the file."""
    name, header = _told(contents)
    if header is not None:
        return name, header.rate, header.channels, header.frames
    with _by_soundfile(source if isinstance(source, str) else source[:], name) as file:
        return name, file.samplerate, file.channels, file.frames


def piece_of_file(path: str, offset: float = 0.0, duration: float | None = None) -> bytes:
    """Reads a piece of a file as a WAV, like `piece`; of a WAV, only its bytes are read. Also raises `OSError`."""
    with Opened(path) as opened:
        return piece(_Ranges(opened), offset, duration, "" if mounted(path) else path)


def piece(contents: Any, offset: float = 0.0, duration: float | None = None, path: str = "") -> bytes:
    """Converts a piece of a sound file, by its bytes or a map of them, to a WAV; for the arguments see `decode_sound`. One that the graph
    reads stays as it is stored; of another, soundfile makes float32, from the file at a `path` if there is one.

    `UnreadableError` for damage that is known without decoding, another format, a library that is not installed, and no frame after the
    `offset`; on other damage any exception of the library.
    """
    name, header = _told(contents)
    if header is not None:
        start, count = _span(header.frames, header.rate, offset, duration)
        form = _FORMS[header.form]
        frame = header.channels * form[1]
        if count * frame > _LARGEST:
            raise UnreadableError(_TOO_LONG)
        first = header.first + start * frame
        return wav(contents[first : first + count * frame], header.rate, header.channels, form)
    with _by_soundfile(path or contents[:], name) as file:
        return _read(file, name, offset, duration, counted=name != "MP3" or _counts_frames(contents))


def _told(contents: Any) -> tuple[str, Header | None]:
    """Returns the format of a sound file, and its header if the graph reads it; raises `UnreadableError` as `piece`."""
    if not len(contents):
        raise UnreadableError("is empty")
    name = sound_format(contents[:HEAD])
    if name is None:
        raise UnreadableError(f"is not a sound file ({READ} are read): it begins with {_begins(contents)}")
    if name == WITHOUT_LIBRARY:
        return name, wav_header(lambda at, count: contents[at : at + count], len(contents))
    _check_whole(name, contents)
    return name, None


def _begins(contents: Any) -> str:
    """Shows the first bytes of a file."""
    shown = contents[:12]
    return f"`{shown.decode()}`" if shown.isascii() and shown.decode().isprintable() else shown.hex(" ")


def _span(frames: int, rate: int, offset: float, duration: float | None) -> tuple[int, int]:
    """Returns the first frame of a piece, and the number of frames; `UnreadableError` if the file ends before."""
    start = round(offset * rate)
    if start >= frames:
        lasts = f"lasts {frames / rate:.6g} s, so nothing lies after its `offset` of {offset:g} s" if frames else "has no samples"
        raise UnreadableError(lasts)
    return start, frames - start if duration is None else min(frames - start, max(1, round(duration * rate)))


def _check_whole(name: str, contents: Any) -> None:
    """Raises `UnreadableError` if a file ends before the size that it tells. libsndfile would read what is there."""

    def number(at: int, form: str) -> int:
        return int(struct.unpack_from(form, contents[at : at + 8].ljust(8, b"\0"))[0])

    promised = 0
    if name == "AIFF":
        promised = 8 + number(4, ">I")
    elif name == "RF64" and contents[12:16] == b"ds64":
        promised = 8 + number(20, "<Q")
    elif name == "W64":
        promised = number(16, "<Q")
    elif name == "AU":
        promised = number(4, ">I") + number(8, ">I")
    elif name == "SPHERE":
        found = dict(re.findall(rb"(\w+) -i (\d+)", contents[:_SPHERE]))
        sizes = [int(found.get(key, 0)) for key in (b"sample_count", b"channel_count", b"sample_n_bytes")]
        promised = _SPHERE + sizes[0] * sizes[1] * sizes[2] if sizes[0] else 0
    elif name in ("Opus", "Ogg Vorbis"):
        end = contents[-_PAGE:]
        page = end[max(0, end.rfind(b"OggS\0")) :].ljust(27, b"\1")
        promised = len(contents) - len(page) + 27 + page[26] + sum(page[27 : 27 + page[26]])  # the segments, and their sizes
    if len(contents) < promised < _UNWRITTEN:
        raise UnreadableError(f"is cut short: it tells that it has {promised:,} bytes, and has {len(contents):,}")


def _counts_frames(contents: Any) -> bool:
    """Checks that the first frame of an MP3 holds the number of frames; without it, a decoder estimates it."""
    tags = contents[:10]
    at = 10 + sum((byte & 0x7F) << 7 * (3 - i) for i, byte in enumerate(tags[6:10])) if tags[:3] == b"ID3" else 0
    return re.search(rb"Xing|Info|VBRI", contents[at : at + 256]) is not None


@contextmanager
def _by_soundfile(source: bytes | str, name: str) -> Iterator[Any]:
    """Opens the bytes of a sound file, or the file at a path, by soundfile."""
    if find_spec("soundfile") is None:
        article = "an" if name[0] in "AO" else "a"
        raise UnreadableError(f"is {article} {name} file of a form that soundfile reads, which is not installed: {INSTALL}")
    import soundfile

    if isinstance(source, str):
        with soundfile.SoundFile(source) as file:
            yield file
    elif not hasattr(os, "memfd_create"):
        with soundfile.SoundFile(io.BytesIO(source)) as file:
            yield file
    else:
        # libsndfile reads a file without a call of Python for each read.
        number = os.memfd_create("sound", os.MFD_CLOEXEC)
        try:
            with os.fdopen(os.dup(number), "wb") as stream:
                stream.write(source)
            os.lseek(number, 0, os.SEEK_SET)
            with soundfile.SoundFile(number, closefd=False) as file:
                yield file
        finally:
            os.close(number)


def _read(file: Any, name: str, offset: float, duration: float | None, *, counted: bool = True) -> bytes:
    """Reads a piece of an opened file as a WAV of float32; `UnreadableError` if fewer frames can be decoded than the file has, as far as
    those are `counted`."""
    rate, channels = file.samplerate, file.channels
    start, count = _span(file.frames, rate, offset, duration)
    skipped = 0
    if name == "MP3" or not file.seekable():  # after a seek, a decoder of MP3 gives other values
        skipped = start
    elif start:
        file.seek(start)
    is_known = file.frames < _NEVER  # else it is a stream, whose length was not known when its header was written
    wanted, parts, have = skipped + count, list[Any](), 0
    while have < wanted:
        if 4 * channels * ((wanted if is_known else have) - skipped) > _LARGEST:
            raise UnreadableError(_TOO_LONG)
        part = file.read(wanted if is_known else min(wanted - have, _AT_ONCE), dtype="float32", always_2d=True)
        parts.append(part)
        have += len(part)
        if is_known or not len(part):
            break
    if have <= skipped or (have < wanted and is_known and counted):
        raise UnreadableError(f"is cut short: {have - skipped:,} of {count:,} frames can be decoded")
    samples = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return encode_wav(samples[skipped:], rate)
