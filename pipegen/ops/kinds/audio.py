"""Sound: samples of one rate, in files or arrays, and the spectra that steps make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError, PartError
from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.ops.families.decoder import SoundDecoder
from pipegen.ops.fields.columns import Column, Place
from pipegen.ops.fields.notes import count
from pipegen.ops.fields.numbers import as_array
from pipegen.ops.kinds.base import FeatureKind, Samples
from pipegen.types import FeatureType, Interval

_SECONDS = 3  # of a sound of unknown length, for estimates
FULL_SCALE = Interval(-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Sound:
    """The rate of samples in Hz. For spectra also the distance of their steps in samples, and what the numbers are."""

    rate: int
    hop: float | None = None
    holds: Literal["samples", "magnitudes", "powers", "logarithms", "coefficients"] = "samples"


class SoundSamples(Samples):
    """Samples, float32 `(frames, channels)`, from -1 to 1 as they are stored; or spectra, `(steps, bands, channels)`."""

    suffix = "wav"
    file = "a sound file"
    listed = "sounds"
    packed = True
    also = ", or an array of samples"

    def fits(self, held: Any) -> bool:
        return held.numeric and len(held.shape) in (1, 2)

    def of_array(self, x: FeatureType, dtype: str, shape: tuple[int | None, ...]) -> FeatureType:
        return x.with_(dtype="float32", shape=(shape[0], shape[1] or 1), uniform=True, interval=None)

    def pack(self, value: tf.Tensor, x: FeatureType) -> tf.Tensor:
        from pipegen.ops.lowering.sounds import pack_wav

        return pack_wav(value, sound_of(x).rate)

    def pack_list(self, name: str, values: tf.Tensor, feature: Any) -> tf.Tensor:
        from pipegen.ops.lowering.sounds import pack_list

        return pack_list(name, values, feature.rate, feature.channels or 1)

    def lists(self, held: Any) -> bool:
        from pipegen.ops.lowering.sounds import LISTED

        return held.dtype in LISTED and len(held.shape) == 1

    def file_of_list(self, values: Sequence[Any], feature: Any) -> bytes:
        from pipegen.ops.lowering.sounds import wav_of_list

        return wav_of_list(values, feature.rate, feature.channels or 1)

    def assumed_length(self, x: FeatureType) -> int:
        return max(1, round(_SECONDS * sound_of(x).rate / (sound_of(x).hop or 1)))

    def shown(self, value: Any, x: FeatureType) -> Any:
        from pipegen.ops.lowering.pictures import spectrum, waveform

        if value.ndim == 2:
            return waveform(value)
        return spectrum(value, {"powers": 10.0, "magnitudes": 20.0}.get(sound_of(x).holds, 0.0))

    def ending(self, x: FeatureType) -> str:
        return self.suffix if len(x.shape) == 2 else super().suffix

    def encode(self, value: Any, x: FeatureType, form: Literal["png", "jpeg"], quality: int) -> bytes:
        if value.ndim != 2:  # spectra
            return super().encode(value, x, form, quality)
        from pipegen.ops.lowering.sounds import encode_wav

        return encode_wav(value, sound_of(x).rate)


class Audio(FeatureKind):
    """Sound, as float32: samples of one rate, by channel."""

    name = "audio"
    plural = "sounds"
    arguments = ("root", "ending", "rate", "channels", "offset", "duration")
    storage = "encoded"
    samples = SoundSamples()
    details = Sound

    def check(self, name: str, feature: Any) -> None:
        if feature.rate is None:
            help_ = write("rate: 16000", "arguments", "such as {}; files of another rate are resampled")
            raise PartError(f"`{name}` needs its `rate`, in Hz", name, help=help_)
        if feature.offset and not hasattr(feature, "duration"):
            raise PartError(f"`offset` is for sound in files, and `{name}` is an array", name, "offset")

    def stored_type(self, feature: Any) -> FeatureType:
        return FeatureType(self.name, "string", (), file_channels=feature.channels, details=self.details_of(feature))

    def decoder(self, feature: Any) -> SoundDecoder:
        part = getattr(feature, "offset", None), getattr(feature, "duration", None)
        offset, duration = (None, None) if str in map(type, part) else part  # of a part by columns, nothing else is stored
        return SoundDecoder(rate=feature.rate, channels=feature.channels or 1, offset=offset or 0.0, duration=duration)

    def details_of(self, feature: Any) -> Sound:
        return Sound(feature.rate)

    def array_types(self, feature: Any) -> tuple[FeatureType, ...]:
        shape = (None, feature.channels or 1)
        each = (FULL_SCALE, None)
        return tuple(FeatureType(self.name, "float32", shape, i, uniform=True, details=self.details_of(feature)) for i in each)

    def read_array(self, name: str, feature: Any, given: Any, place: Place) -> Column:
        array = as_array(name, given)
        if array.ndim == 2:
            array = array[..., None]
        if array.ndim != 3:
            raise OpError("PG204", f"the sounds of `{name}` need the shape (n, frames) or (n, frames, channels), not {array.shape}")
        if not array.size:
            raise OpError("PG402", f"the array `{name}` has no {'samples' if len(array) else 'rows'}")
        channels = array.shape[2]
        if channels != (feature.channels or 1):
            few = channels <= 16
            help_ = write(f"channels: {channels}", "arguments") if few else "the shape is (n, frames, channels): channels come last"
            raise OpError("PG419", f"the sounds of `{name}` have {count(channels, 'channel')}", field="channels", help=help_)
        values = _scaled(name, array)
        high = max(float(values.max()), -float(values.min()))
        if not np.isfinite(high) or not np.isfinite(values).all():
            row = int(np.argmax(~np.isfinite(values).reshape(len(values), -1).all(1)))
            help_ = "NaN or infinity in a sound would ruin the training"
            raise OpError("PG419", f"{place(row)} holds samples that are not finite numbers", help=help_)
        x = self.array_types(feature)[0 if high <= 1 else 1]
        return Column(values, x.with_(shape=values.shape[1:]))

    def arguments_of(self, x: FeatureType) -> dict[str, Any]:
        return {"rate": sound_of(x).rate}


def _scaled(name: str, array: Any) -> Any:
    """Returns samples as float32; integers of 8, 16 or 32 bits are divided by their full scale, as files of them are."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f":
        with np.errstate(all="ignore"):  # overflow becomes infinite, which is reported with its row
            return array.astype(np.float32, copy=False)
    if kind == "i" and size in (2, 4):
        return array.astype(np.float32) * np.float32(2.0 ** (1 - 8 * size))
    if kind == "u" and size == 1:
        return (array.astype(np.float32) - 128) * np.float32(2.0**-7)
    raise OpError("PG419", f"the sounds of `{name}` are {array.dtype}", help="samples must be floats, int16, int32, or uint8 around 128")


def sound_of(x: FeatureType) -> Sound:
    """Returns the rate and the hop of a sound's type."""
    return x.details  # type: ignore[return-value]
