"""Steps that draw one of some sound files for each example: noise, or the impulse responses of rooms."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.families.references import FilesTransform, digest, identity
from pipegen.ops.families.sounds import SoundTransform
from pipegen.ops.lowering.graphs import made_once
from pipegen.ops.lowering.windows import Whole, pick

MOST_HOURS = 4  # of all files of a step: in memory they are float32


class Held(NamedTuple):
    """Sounds in memory: samples one after another, float32 `(total, channels)`, and the first frame and the number of frames of each, int32
    `(count,)`; and the frames of the longest."""

    samples: tf.Tensor
    first: tf.Tensor
    frames: tf.Tensor
    longest: int


class SoundFilesTransform(FilesTransform, SoundTransform):
    """A step that can draw one of some sound files for each example."""

    place = "files"
    endings = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".snd", ".w64", ".rf64", ".sph"})
    noun = "sound file"
    such_as = "noises/*.wav"

    files: Annotated[str, Field(min_length=1)] | None = None
    """Sound files, relative to the spec's file: a file, a folder (every sound in it), or a pattern such as `noises/*.wav`. At most 1,000
    files of 4 hours in total, which are kept in memory at the rate of the sound; other formats than WAV need `pipegen[audio]`."""

    def require_files(self) -> None:
        super().require_files()
        seconds = sum(frames / rate for rate, _, frames in map(self._stored, self.paths()))
        if seconds > MOST_HOURS * 3600:
            message = f"the files of `{self.op}` last {seconds / 3600:.1f} hours in total, and at most {MOST_HOURS} fit in memory"
            raise OpError("PG401", message, field=self.place, help="name fewer files, or shorter parts of them")

    def require_file(self, path: Path) -> None:
        self._stored(path)

    def _stored(self, path: Path) -> tuple[int, int, int]:
        """The rate, the channels and the frames of a file; `OpError` `PG401` if it cannot be read."""
        from pipegen.ops.lowering.library import UnreadableError  # not every spec needs it
        from pipegen.ops.lowering.sounds import describe, stored_sound

        try:
            return stored_sound(str(path))
        except UnreadableError as error:
            said = str(error)
        except OSError as error:
            said = f"cannot be read: {error.strerror}"
        except Exception as error:  # of soundfile
            said = describe(error)
        raise OpError("PG401", f"the file `{path.name}` of `{self.op}` {said}", field=self.place)

    def held(self, channels: int, prepared: Callable[[tf.Tensor], tf.Tensor] = lambda sound: sound) -> Held:
        """Returns all files at the rate of the sound, `prepared`, which keeps `(frames, channels)`. They are read at the first call in a
        process. A file of another number of channels becomes the mean of its channels in each."""
        from pipegen.ops.lowering.sounds import decode_sound  # not every spec needs it

        paths, rate = self.paths(), self._rate
        stored = [self._stored(path) for path in paths]
        lengths = [-(-frames * rate // own) for own, _, frames in stored]
        alike = [own in (1, channels) for _, own, _ in stored]

        def sound(number: tf.Tensor) -> tf.Tensor:
            contents = tf.io.read_file(tf.gather(tf.constant(list(map(str, paths))), number))
            found = tf.cond(
                tf.gather(tf.constant(alike), number),
                lambda: decode_sound(contents, rate, channels),
                lambda: tf.tile(decode_sound(contents, rate, 1), [1, channels]),
            )
            length = tf.gather(tf.constant(lengths), number)  # an MP3 may tell a few frames more or less than it has
            cut = tf.ensure_shape(found, [None, channels])[:length]
            return prepared(tf.pad(cut, [[0, length - tf.shape(cut)[0]], [0, 0]]))

        def read() -> tf.Tensor:
            array = tf.TensorArray(tf.float32, len(paths), infer_shape=False, element_shape=[None, channels])
            steps = tf.while_loop(
                lambda number, _: number < len(paths), lambda number, own: (number + 1, own.write(number, sound(number))), (0, array)
            )
            return steps[1].concat()

        told = [self.op, str(rate), str(channels), *(digest(*identity(path)) for path in paths)]
        name = hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]
        samples = made_once(f"pipegen_sounds_{name}", tf.float32, read, [sum(lengths), channels])
        return Held(samples, tf.constant(np.cumsum([0, *lengths[:-1]]), tf.int32), tf.constant(lengths, tf.int32), max(lengths))


def drawn_parts(held: Held, number: tf.Tensor, u: tf.Tensor, frames: Whole) -> tf.Tensor:
    """Cuts a part out of a sound for each example: float32 `(n, frames, channels)`.

    `number` is that of the sound, int32 `(n,)`. The part begins anywhere where it fits, by `u`, float64 `(n,)` in [0, 1); a shorter sound
    is repeated from any of its frames on.
    """
    first, length = tf.gather(held.first, number), tf.gather(held.frames, number)
    offset = pick(u, tf.where(length > frames, length - frames, length - 1))
    places = first[:, None] + tf.math.floormod(offset[:, None] + tf.range(frames)[None, :], length[:, None])
    return tf.gather(held.samples, places)


def whole_sounds(held: Held, number: tf.Tensor) -> tf.Tensor:
    """Returns the sound of each example, and silence behind it: float32 `(n, frames, channels)`, with the frames of the longest sound."""
    first, length = tf.gather(held.first, number)[:, None], tf.gather(held.frames, number)[:, None]
    place = tf.range(held.longest)[None, :]
    found = tf.gather(held.samples, first + tf.minimum(place, length - 1))
    return tf.where((place < length)[..., None], found, tf.zeros_like(found))
