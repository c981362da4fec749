"""The formats of shards: `SHARD_FORMATS` by the names of `--format`."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf

from pipegen.frozen import dataclass
from pipegen.ops.families.decoder import HEAD, format_of
from pipegen.ops.kinds.base import ExampleClass, ItemClass, Levels, Samples, kind_of, several_labels
from pipegen.ops.sources.prepared import ARRAY_RECORD, ENCODED, RECORDS, Pixels
from pipegen.ops.sources.stores.base import needs
from pipegen.types import FLOATING, ElementType

_ENDINGS = {"JPEG": "jpg", "TIFF": "tif", "PPM, PGM or PBM": "ppm", "JPEG XL": "jxl"}
"""File extensions of formats, if they are not the format's name."""


@dataclass(frozen=True)
class Record:
    """The stored values of one example, its number in its split, and its name in the original data.

    The value `NAME` is a row of bytes, an encoded file, or numbers; `@size.NAME` height and width of an image.
    """

    number: int
    name: str
    values: Mapping[str, Any]


class Part(NamedTuple):
    """Contents that are written at once: the name of their file or member, and the offsets of encoded files in them by feature."""

    name: str
    content: bytes | memoryview
    images: Mapping[str, int]


class ShardFormat:
    """A format of shards, for examples of a type, with the form of the pixels of each feature, the names of the classes of each label, and
    the label that gives the data its classes."""

    suffix: ClassVar[str] = ""  # the suffix of files of whole records; "" if each feature has files of its own
    around: ClassVar[int] = 0  # bytes of a part beside its contents
    block: ClassVar[int] = 1  # the contents of a part take a multiple of this

    def __init__(self, type_: ElementType, pixels: Mapping[str, Pixels], classes: Mapping[str, tuple[str, ...]], label: str | None) -> None:
        self.type, self.pixels, self.classes, self.label = type_, pixels, classes, label

    @classmethod
    def check(cls) -> None:
        """Raises `MissingLibrary` if the library of the format is not installed."""

    def parts(self, record: Record) -> Iterator[Part]:
        """Yields the contents of a record, in order."""
        raise NotImplementedError

    def writing(self, files: Mapping[str, Path]) -> AbstractContextManager[Callable[[Part], int]]:
        """Opens the files of a shard for a function that writes a part, and returns the offset of its contents; they are complete when the
        context ends."""
        raise NotImplementedError

    def reading(self, files: Mapping[str, Path]) -> AbstractContextManager[Callable[[Part], bytes | None]]:
        """Opens the files of a shard for a function that reads the next contents, where a part was written; `None` after the last."""
        raise NotImplementedError

    def add(self, record: Record, put: Callable[[Part], int]) -> dict[str, tuple[int, int]]:
        """Writes a record by `put`, the function of `writing`; returns the offsets and lengths of its encoded files: `@place.NAME`."""
        places: dict[str, tuple[int, int]] = {}
        for part in self.parts(record):
            at = put(part)
            places |= {f"@place.{name}": (at + offset, len(record.values[name])) for name, offset in part.images.items()}
        return places

    def ending(self, name: str, content: bytes) -> str:
        """Finds the file extension of an encoded file of a feature."""
        samples = kind_of(self.type[name]).samples
        return samples.suffix if samples is not None else picture_format(content)

    def sizes(self, record: Record, name: str) -> dict[str, int]:
        """Returns the height and width of an image in pixels, or the rate in Hz and the frames of a sound."""
        t = self.type[name]
        if kind_of(t).samples is not None:
            return {**kind_of(t).arguments_of(t), "frames": int(record.values[f"@length.{name}"])}
        height, width = (int(side) for side in record.values[f"@size.{name}"])
        return {"height": height, "width": width}

    def class_indices(self, name: str, value: Any) -> list[int]:
        """Lists the classes of an example: all of a multi-label, or one for each item or time step."""
        if several_labels(self.type[name]):
            return [int(i) for i in value.nonzero()[0]]
        return [int(i) for i in np.ravel(value)]

    def class_texts(self, name: str, value: Any) -> list[str]:
        """Lists the names of these classes; none of a label that the example lacks, -1."""
        return [self.classes[name][i] for i in self.class_indices(name, value) if i >= 0] if name in self.classes else []

    def num_bytes(self, record: Record) -> int:
        """Counts the bytes of a record in its files."""
        return sum(self.around + -(-len(part.content) // self.block) * self.block for part in self.parts(record))

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        """Compares the first records of a shard with these, bit for bit."""
        with self.reading(files) as read:
            return all(read(part) == part.content for record in records for part in self.parts(record))


def picture_format(content: bytes) -> str:
    """Finds the file extension of an encoded image by its first bytes."""
    if content.startswith(b"\x89PNG"):
        return "png"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    named = format_of(content[:HEAD]) or "JPEG"
    return _ENDINGS.get(named, named.lower())


_OBJECT = "image/object/"
_FORMATS = {"jpg": b"jpeg"}  # values of `image/format`, if they are not the file extension


def _texts(values: list[bytes]) -> tf.train.Feature:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _numbers(values: np.ndarray[Any, Any]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _integers(values: list[Any]) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


class _MessageFormat(ShardFormat):
    """A format of a `tf.train.Example` for each record."""

    def message_of(self, record: Record) -> bytes:
        """Serialises a record as a `tf.train.Example`.

        An image has `NAME/encoded`, `NAME/format`, `NAME/height`, `NAME/width` and `NAME/channels`; a sound `NAME/rate` and `NAME/frames`
        in place of the sides. The label `label` of an `image` has
        `image/class/label` and `image/class/text`, any other label `NAME` and `NAME/text`. Numbers have `NAME`, and the record's own name
        is `image/filename`. Items are concatenated in `NAME`, in pixels; `boxes` on an `image`, with their `labels` and `crowd`, also have
        the keys that detectors read.
        """
        features: dict[str, tf.train.Feature] = {}
        for name, t in self.type.items():
            value = record.values[name]
            if name in self.pixels:
                form = self.ending(name, value)
                features[f"{name}{ENCODED}"] = _texts([value])
                features[f"{name}/format"] = _texts([_FORMATS.get(form, form.encode())])
                features |= {f"{name}/{what}": _integers([number]) for what, number in self.sizes(record, name).items()}
                features[f"{name}/channels"] = _integers([t.shape[-1] if t.shape else t.file_channels])
            elif kind_of(t).has(ExampleClass, ItemClass):
                key, text = name, f"{name}/text"
                if name == "label" and "image" in self.pixels:
                    key, text = "image/class/label", "image/class/text"
                features[key] = _integers(self.class_indices(name, value))
                features[text] = _texts([one.encode() for one in self.class_texts(name, value)])
            elif t.dtype in FLOATING:
                features[name] = _numbers(value.ravel())
            else:
                features[name] = _integers(value.ravel().tolist())
        features |= self._of_detectors(record)
        features[f"{'image/' * ('image' in self.pixels)}filename"] = _texts([record.name.encode("utf-8", "surrogateescape")])
        example = tf.train.Example(features=tf.train.Features(feature=features))
        return bytes(example.SerializeToString(deterministic=True))

    def _of_detectors(self, record: Record) -> dict[str, tf.train.Feature]:
        """Makes the keys of boxes for detectors of TensorFlow's models: edges relative to the image, classes counted from 1."""
        t = self.type.get("boxes")
        if t is None or (t.kind, t.of) != ("boxes", "image") or "image" not in self.pixels:
            return {}
        height, width = (float(side) for side in record.values["@size.image"])
        edges = record.values["boxes"] / np.array([width, height, width, height], np.float32)
        found = {f"{_OBJECT}bbox/{name}": _numbers(edges[:, i]) for i, name in enumerate(("xmin", "ymin", "xmax", "ymax"))}
        riders = [name for name in ("labels", "crowd") if name in self.type and self.type[name].beside == "boxes"]
        if "labels" in riders and "labels" in self.classes:
            found[f"{_OBJECT}class/label"] = _integers([1 + i for i in self.class_indices("labels", record.values["labels"])])
            found[f"{_OBJECT}class/text"] = _texts([one.encode() for one in self.class_texts("labels", record.values["labels"])])
        if "crowd" in riders and record.values["crowd"].ndim == 1:
            found[f"{_OBJECT}is_crowd"] = _integers([int(one) for one in record.values["crowd"]])
        return found


class TFRecordFormat(_MessageFormat):
    """Messages in TFRecord files, with TensorFlow's checksums; an offset follows from the lengths of the messages before."""

    suffix: ClassVar[str] = ".tfrecord"
    _head, _tail = 12, 4  # bytes before a message (its length, with a checksum) and after it (its own checksum)
    around: ClassVar[int] = _head + _tail

    def parts(self, record: Record) -> Iterator[Part]:
        message = self.message_of(record)
        yield Part("", message, {name: message.index(record.values[name]) for name in self.pixels})

    @contextmanager
    def writing(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], int]]:
        begin = self._head
        try:
            with tf.io.TFRecordWriter(str(files[RECORDS])) as stream:

                def write(part: Part) -> int:
                    nonlocal begin
                    stream.write(part.content)
                    at, begin = begin, begin + len(part.content) + self.around
                    return at

                yield write
        except tf.errors.OpError as error:
            raise OSError(error.message) from None

    @contextmanager
    def reading(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], bytes | None]]:
        stored = tf.data.TFRecordDataset(str(files[RECORDS])).as_numpy_iterator()
        yield lambda _part: next(stored, None)


class ArrayRecordFormat(_MessageFormat):
    """Messages in ArrayRecord files; images in them have an offset of 0, since they are not read by offset."""

    suffix: ClassVar[str] = ARRAY_RECORD
    around: ClassVar[int] = 128  # approximately: the header of a record's chunk, and its entry in the index
    _options = "group_size:1,uncompressed"  # records can be read one by one; compression would not make encoded images smaller

    @classmethod
    def check(cls) -> None:
        with needs("`array_record`", "array-record"):
            import array_record.python.array_record_module  # noqa: F401

    def parts(self, record: Record) -> Iterator[Part]:
        yield Part("", self.message_of(record), dict.fromkeys(self.pixels, 0))

    @contextmanager
    def writing(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], int]]:
        from array_record.python.array_record_module import ArrayRecordWriter

        try:
            stream = ArrayRecordWriter(str(files[RECORDS]), self._options)
            yield lambda part: stream.write(part.content) or 0
            stream.close()
        except RuntimeError as error:  # the library's error for failures of the system
            raise OSError(str(error).splitlines()[0]) from None

    @contextmanager
    def reading(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], bytes | None]]:
        from pipegen.ops.sources.array_record import ArrayRecords

        with closing(ArrayRecords(str(files[RECORDS]))) as stored:
            messages = (bytes(stored.read(("",), np.array([row]))[0][0]) for row in range(stored.rows))
            yield lambda _part: next(messages, None)


class PixelFilesFormat(ShardFormat):
    """Pixels in files that are mapped into memory, one for each feature."""

    def parts(self, record: Record) -> Iterator[Part]:
        for name, pixels in self.pixels.items():
            content = record.values[name]
            whole = content if isinstance(content, bytes) else np.ascontiguousarray(content).data
            yield Part(name, whole, {name: 0} if pixels.form == "files" else {})

    @contextmanager
    def writing(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], int]]:
        with ExitStack() as stack:
            streams = {name: stack.enter_context(open(file, "wb")) for name, file in files.items()}

            def write(part: Part) -> int:
                at = streams[part.name].tell()
                streams[part.name].write(part.content)
                return at

            yield write

    @contextmanager
    def reading(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], bytes | None]]:
        with ExitStack() as stack:
            streams = {name: stack.enter_context(open(file, "rb")) for name, file in files.items()}
            yield lambda part: streams[part.name].read(len(part.content))


class WebDatasetFormat(ShardFormat):
    """Members of tar files, record by record; their headers have no times or owners, so that all runs write the same bytes."""

    suffix: ClassVar[str] = ".tar"
    around: ClassVar[int] = tarfile.BLOCKSIZE
    block: ClassVar[int] = tarfile.BLOCKSIZE

    @contextmanager
    def writing(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], int]]:
        with tarfile.open(files[RECORDS], "w", format=tarfile.USTAR_FORMAT) as archive:

            def write(part: Part) -> int:
                about, at = tarfile.TarInfo(part.name), archive.offset + self.around  # the contents come after the header
                about.size, about.mode = len(part.content), 0o644
                archive.addfile(about, io.BytesIO(part.content))
                return at

            yield write

    @contextmanager
    def reading(self, files: Mapping[str, Path]) -> Iterator[Callable[[Part], bytes | None]]:
        with tarfile.open(files[RECORDS]) as archive:

            def read(part: Part) -> bytes | None:
                about = archive.next()
                stream = archive.extractfile(about) if about is not None and about.name == part.name else None
                return stream.read() if stream is not None else None

            yield read

    def parts(self, record: Record) -> Iterator[Part]:
        stem, picture = f"{record.number:08d}", next((name for name in self.pixels if kind_of(self.type[name]).has(Levels, Samples)), None)
        texts: dict[str, Any] = {"filename": record.name}
        for name, t in self.type.items():
            value = record.values[name]
            if name in self.pixels:
                ending = self.ending(name, value)
                yield Part(f"{stem}.{ending}" if name == picture else f"{stem}.{name}.{ending}", value, {name: 0})
                texts |= self.sizes(record, name) if name == picture else {}
            elif kind_of(t).has(ExampleClass):
                indices, names = self.class_indices(name, value), self.class_texts(name, value)
                if several_labels(t):
                    texts |= {name: indices, f"{name}_text": names}
                    continue
                yield Part(f"{stem}.cls" if name == self.label else f"{stem}.{name}.cls", str(indices[0]).encode(), {})
                texts |= {name: indices[0]} | ({f"{name}_text": names[0]} if names else {})
            else:
                names = self.class_texts(name, value)
                texts |= {f"{name}_text": names} if name in self.classes else {}
                content = io.BytesIO()
                np.save(content, value, allow_pickle=False)
                yield Part(f"{stem}.{name}.npy", content.getvalue(), {})
        yield Part(f"{stem}.json", json.dumps(texts, sort_keys=True).encode(), {})


SHARD_FORMATS: dict[str, type[ShardFormat]] = {
    "raw": PixelFilesFormat,
    "jpeg": PixelFilesFormat,
    "tfrecord": TFRecordFormat,
    "webdataset": WebDatasetFormat,
    "array_record": ArrayRecordFormat,
}
