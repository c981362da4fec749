"""Sound files as samples: WAV in the graph with the bits of libsndfile, other formats by soundfile, and what is said of damage."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
import tensorflow as tf
from sound_files import LIBRARY, RATE, decoded, encoded, noise, tone, with_chunk, with_sizes

from pipegen.ops.lowering.graphs import made_for
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.lowering.sounds import decode_sound, encode_wav, piece, piece_of_file, read_by_library, sound_format, stored_sound

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf

SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ALAW", "ULAW")
CUT = {"offset": 0.3125, "duration": 0.05}
"""Frames 5000 to 5799 of a file at 16 kHz."""


def read(content: bytes, rate: int = RATE, channels: int = 1, **cut: Any) -> Any:
    return decode_sound(tf.constant(content), rate, channels, **cut).numpy()


def refused(content: bytes, rate: int = RATE, channels: int = 1, **cut: Any) -> str:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        read(content, rate, channels, **cut)
    return str(caught.value.message)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("format", ["WAV", "WAVEX"])
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_wav_in_the_graph_has_the_bits_of_libsndfile_whole_and_in_part(subtype: str, format: str) -> None:
    for channels in (1, 2, 6):
        graph = tf.function(lambda content, n=channels: decode_sound(content, RATE, n), autograph=False)
        part = tf.function(lambda content, n=channels: decode_sound(content, RATE, n, **CUT), autograph=False)
        for frames in (1, 8001):
            content = encoded(noise(frames, channels), format=format, subtype=subtype)
            assert read_by_library(content[:64]) is None, "no library reads it"
            due = decoded(content)
            assert len(due) == frames
            np.testing.assert_array_equal(graph(tf.constant(content)), due)
            if frames > 1:
                np.testing.assert_array_equal(part(tf.constant(content)), due[5000:5800])


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF, 0x80000000])
def test_a_stream_that_did_not_know_its_size_is_read_to_its_end(size: int) -> None:
    whole = encoded(noise(4000))
    for riff in (None, 0, 0xFFFFFFFF):
        content = with_sizes(whole, riff=riff, data=size)
        np.testing.assert_array_equal(read(content), decoded(whole))
        np.testing.assert_array_equal(read(content), decoded(content))
        assert piece(content) == piece(whole)


@pytest.mark.parametrize("riff", [0, 8, 36])
def test_a_recorder_that_never_closed_its_file_leaves_sizes_of_0(riff: int) -> None:
    whole = encoded(noise(4000))
    content = with_sizes(whole, riff=riff, data=0)
    np.testing.assert_array_equal(read(content), decoded(whole))
    assert piece(content) == piece(whole)


def test_chunks_before_the_samples_are_skipped_even_of_odd_length() -> None:
    whole = encoded(noise(1000, 2), subtype="PCM_24")
    for chunk in (b"", b"x", b"RIFF data fmt ", bytes(4095)):
        content = with_chunk(with_chunk(whole, b"LIST", chunk), b"bext", chunk)
        np.testing.assert_array_equal(read(content, channels=2), decoded(content))
        assert piece(content) == piece(whole)
    behind = whole + b"LIST\x02\0\0\0ab"
    np.testing.assert_array_equal(read(behind, channels=2), decoded(whole))


@pytest.mark.parametrize("name", LIBRARY)
def test_other_formats_have_the_samples_of_soundfile_whole_and_in_part(name: str, tmp_path: Path) -> None:
    format, subtype = LIBRARY[name]
    content = encoded(np.concatenate([tone(8000), tone(8000, hertz=700)], 1)[: 8000 - 1], format=format, subtype=subtype)
    assert sound_format(content[:64]) == name
    assert read_by_library(content[:64]) == name
    due = decoded(content)
    np.testing.assert_array_equal(read(content, channels=2), due)
    start, count = round(0.25 * RATE), round(0.1 * RATE)
    np.testing.assert_array_equal(read(content, channels=2, offset=0.25, duration=0.1), due[start : start + count])
    (tmp_path / "sound").write_bytes(content)
    assert piece_of_file(str(tmp_path / "sound"), 0.25, 0.1) == encode_wav(due[start : start + count], RATE)
    assert stored_sound(str(tmp_path / "sound"))[:2] == (RATE, 2)


@pytest.mark.parametrize("form", [("WAV", "IMA_ADPCM"), ("WAV", "MS_ADPCM"), ("WAV", "GSM610")])
def test_rare_forms_of_wav_are_read_by_soundfile(form: tuple[str, str]) -> None:
    content = encoded(tone(8000), format=form[0], subtype=form[1])
    assert read_by_library(content[:64]) == "WAV of another form than PCM, floats, A-law and mu-law"
    np.testing.assert_array_equal(read(content), decoded(content))


def test_big_endian_wav_is_read_by_soundfile() -> None:
    stream_content = encoded(noise(500))
    swapped = b"RIFX" + b"".join(
        [
            (len(stream_content) - 8).to_bytes(4, "big"),
            b"WAVEfmt ",
            (16).to_bytes(4, "big"),
            b"".join(v.to_bytes(n, "big") for v, n in ((1, 2), (1, 2), (RATE, 4), (2 * RATE, 4), (2, 2), (16, 2))),
            b"data",
            (1000).to_bytes(4, "big"),
            np.frombuffer(stream_content[44:], "<i2").astype(">i2").tobytes(),
        ]
    )
    np.testing.assert_array_equal(read(swapped), decoded(stream_content))


def test_without_a_file_in_memory_the_library_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(tone(4000), format="FLAC")
    with_descriptor = piece(content)
    monkeypatch.delattr("os.memfd_create")
    assert piece(content) == with_descriptor


def test_channels_are_mixed_copied_or_refused() -> None:
    one, two, six = (encoded(noise(500, n, seed=n)) for n in (1, 2, 6))
    np.testing.assert_allclose(read(two), decoded(two).mean(1, keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(read(six), decoded(six).mean(1, keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(read(one, channels=2), np.repeat(decoded(one), 2, 1))
    assert "has 6 channels, but `channels: 2` is wanted; `channels: 1` takes their mean" in refused(six, channels=2)


def test_a_piece_ends_with_the_file_and_begins_within_it() -> None:
    content = encoded(noise(1600))
    due = decoded(content)
    np.testing.assert_array_equal(read(content, offset=0.05, duration=10.0), due[800:])
    np.testing.assert_array_equal(read(content, duration=1e-9), due[:1])
    assert "lasts 0.1 s, so nothing lies after its `offset` of 0.1 s" in refused(content, offset=0.1)
    flac = encoded(noise(1600), format="FLAC")
    assert "lasts 0.1 s, so nothing lies after its `offset` of 2 s" in refused(flac, offset=2.0)


WAV = encoded(noise(2000))
DAMAGED = {
    "empty": (b"", "is empty"),
    "text": (b"hello, this is a text", "is not a sound file (WAV, FLAC, Ogg Vorbis"),
    "text shown": (b"hello, this is a text", "it begins with `hello, this `"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(50), "it begins with 89 50 4e 47"),
    "cut": (WAV[:-1000], "is cut short: its header promises 4,000 bytes of samples, and it has 3,000"),
    "cut in the header": (WAV[:40], "is a WAV without samples: it ends before a `data` chunk"),
    "cut after the magic": (WAV[:12], "is a WAV without samples: it ends before a `data` chunk"),
    "no samples": (WAV[:44], "is cut short"),
    "no samples, as told": (with_sizes(WAV[:44], riff=36, data=0), "is a WAV without samples"),
    "no form": (WAV[:12] + WAV[36:], "it has no `fmt ` chunk before its samples"),
    "no channels": (WAV[:22] + b"\0\0" + WAV[24:], "is damaged"),
    "no rate": (WAV[:24] + bytes(4) + WAV[28:], "is damaged"),
    "not numbers": (encoded(noise(100), subtype="FLOAT")[:-4] + b"\0\0\xc0\x7f", "holds samples that are not finite numbers"),
    "rate of 1": (WAV[:24] + b"\1\0\0\0" + WAV[28:], "has a rate of 1 Hz, which cannot be resampled to 16000"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named(name: str) -> None:
    content, says = DAMAGED[name]
    assert says in refused(content)


def test_a_request_speaks_of_sounds() -> None:
    with made_for("file"):
        text = {name: refused(DAMAGED[name][0]) for name in ("text", "not numbers")}
    assert "[a sound of the request is not a whole WAV" in text["text"]
    assert "[a sound of the request holds samples" in text["not numbers"]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_file_of_another_format_that_is_cut_short_is_refused(name: str) -> None:
    format, subtype = LIBRARY[name]
    content = encoded(noise(40000, 2), format=format, subtype=subtype)
    for length in (0, 3, 30, len(content) // 3, len(content) // 2, len(content) - 700):
        said = refused(content[:length], channels=2)
        assert any(word in said for word in ("is empty", "is cut short", "is damaged", "is not a sound file")), said


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(noise(100), format="FLAC")
    monkeypatch.setitem(sys.modules, "soundfile", None)
    monkeypatch.setattr("pipegen.ops.lowering.sounds.find_spec", lambda name: None)
    with pytest.raises(UnreadableError, match=r"is a FLAC file .* soundfile reads, which is not installed: pip install 'pipegen\[audio\]'"):
        piece(content)


def test_samples_are_written_as_they_are() -> None:
    samples = (noise(300, 2) * 3).astype(np.float32)
    np.testing.assert_array_equal(decoded(encode_wav(samples, 8000)), samples)
    np.testing.assert_array_equal(read(encode_wav(samples, 8000), rate=8000, channels=2), samples)
    assert soundfile.info(io.BytesIO(encode_wav(samples, 8000))).samplerate == 8000


def test_a_saved_graph_reads_wav_and_says_what_it_lacks(tmp_path: Path) -> None:
    module = tf.Module()
    with made_for("file"):
        read_wav = tf.function(
            lambda content: decode_sound(content, RATE, 1), input_signature=[tf.TensorSpec([], tf.string)], autograph=False
        )
        module.read = read_wav.get_concrete_function()
        tf.saved_model.save(module, str(tmp_path))
    saved = tf.saved_model.load(str(tmp_path)).read
    for content in (encoded(noise(500)), encoded(noise(500, 2), 8000, subtype="PCM_24"), encoded(noise(500), 44100, subtype="ULAW")):
        np.testing.assert_array_equal(saved(tf.constant(content)), read(content))
    with pytest.raises(tf.errors.InvalidArgumentError, match="other files can be read only by Python"):
        saved(tf.constant(encoded(noise(500), format="FLAC")))
