"""The work of preparing, a shard at a time, by the spec's own plan; any process with the spec and the data can write a shard.

A shard counts once the file that describes it exists, which is written last. So after a kill or a power cut, complete shards stay, and
others are written again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.features import Features
from pipegen.backend.process.devices import untuned
from pipegen.backend.process.traced_functions import plain_map
from pipegen.cache.store import key_of, plain
from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, InternalError, SpecError
from pipegen.files import whole_file, whole_files, write_whole
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import MoveEach
from pipegen.ops.kinds.base import ExampleClass, Geometry, Indices, ItemClass, Levels, PixelValues, TimestepClass, having, kind_of, turns
from pipegen.ops.lowering.python_calls import reason
from pipegen.ops.lowering.resizing import side_size
from pipegen.ops.registry import transforms
from pipegen.ops.sources.prepared import PAGE, SHARDS, Pixels, Shard, checksum, shard_files
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.step_bases import ElementTransform
from pipegen.phases.compilation import bind, collect_data, of_first_view
from pipegen.phases.specs import FittedSpec, Spec
from pipegen.phases.user_functions import allowed_modules, with_functions
from pipegen.plan.nodes import Element, Plan
from pipegen.plan.stages import Apply, Turn
from pipegen.preparing.cut import Cut, NoCutError, changed_files, check_shrinking, find_cut, single
from pipegen.preparing.options import OF_RECORDS, QUALITY, Options
from pipegen.preparing.shard_formats import SHARD_FORMATS, Record, ShardFormat
from pipegen.terminal import log
from pipegen.types import ElementType, FeatureType, valid_name

if TYPE_CHECKING:
    Compute = Callable[[tf.Tensor], Features]
    """From the number of a record in its split to its stored values."""


class Computation:
    """The computation of the stored values of one split by the stages of its plainest plan before the cut, where an example has a type."""

    def __init__(self, engine: Engine, plan: Plan, stages: tuple[Stage, ...], type_: ElementType, options: Options) -> None:
        self._executor = engine.executor_of(plan, plan.split)
        self._read = plan.reader
        self._stages, self._type, self._options = stages, type_, options
        self._draws = plan.index.num_draws
        self.threads = self._executor.setting.threads
        self.locate = self._executor.records.locate

    def examples(self, first: int, count: int, pixels: dict[str, Pixels]) -> tf.data.Dataset:
        """Computes `count` examples from `first` on: `NAME` is a row of bytes or an encoded file, and `@size.NAME` its height and width;
        for a ragged feature, `NAME` has the items without padding, and `@count.NAME` their number."""
        side, homes = self._options.shorter_side, [name for name, t in self._type.items() if kind_of(t).ragged and t.beside is None]

        def stored(record: tf.Tensor) -> Features:
            read = self._stored(record)
            done = self._plain(read)
            found = {name: done[name] for name in (*self._type, *map(valid_name, homes))}
            found |= {} if side is None else self._shrunk(done, side)
            # Ragged features lose their padding.
            there = {home: found.pop(valid_name(home)) for home in homes}
            found |= {n: tf.boolean_mask(found[n], there[t.beside or n]) for n, t in self._type.items() if kind_of(t).ragged}
            found |= {f"@count.{home}": tf.math.count_nonzero(own) for home, own in there.items()}
            for name, how in pixels.items():
                image, samples = found[name], kind_of(self._type[name]).samples
                if samples is not None:
                    found[f"@length.{name}"] = tf.shape(image, tf.int64)[0]
                    found[name] = samples.pack(image, self._type[name])
                    continue
                if how.form != "files":
                    found[f"@size.{name}"] = tf.shape(image)[:2]
                if self._options.keeps_files and kind_of(self._type[name]).has(Levels):
                    # The image was decoded all the same, to find damaged files.
                    found[name] = read[name]
                    continue
                found[name] = _row(image, how.canvas) if how.form == "rows" else _encoded(image, self._type[name], self._options)
            return found

        return self._map(first, count, stored)

    def sizes(self, first: int, count: int) -> tf.data.Dataset:
        """Computes the height and width of images before the cut, int32 `(2,)` each; reads only the headers of files if that suffices."""
        pictured = having(self._type, PixelValues)
        stages = [stage for stage in self._stages if stage.feature in pictured]
        decodes = {stage.feature: stage.ref.step for stage in stages if isinstance(stage, Decode) and stage.like is None}
        alone = len(stages) == len(decodes) == len(pictured)

        def measured(record: tf.Tensor) -> Features:
            if alone:
                stored = self._stored(record)
                sizes = {name: decodes[name].stored_size(stored[name]) for name in pictured}
            else:
                done = self._plain(self._stored(record))
                sizes = {name: tf.shape(done[name])[:2] for name in pictured}
            return {name: tf.ensure_shape(size, [2]) for name, size in sizes.items()}

        return self._map(first, count, measured)

    def _map(self, first: int, count: int, function: Compute) -> tf.data.Dataset:
        # Only a few examples are prefetched, so that memory does not grow with the data.
        records = tf.data.Dataset.range(first, first + count)
        return plain_map(records, function, self.threads).prefetch(self.threads).with_options(untuned())

    def _stored(self, record: tf.Tensor) -> Features:
        return self._executor.compute([self._read])({"@record": record, "@draws": tf.zeros([self._draws], tf.float64)})

    def _plain(self, read: Features) -> Features:
        return self._executor.compute([Element(ElementType(()), self._stages)])(read)

    def _shrunk(self, done: Features, side: int) -> Features:
        """Shrinks images to a shorter side of at most `side` pixels, with the features aligned with them."""
        found: Features = {}
        for image in having(self._type, PixelValues):
            x = self._type[image]
            turning = [Turn(image, (_use(side, x),))] if turns(x) else []
            stages: list[Stage] = [*turning, Apply(image, _use(side, x).of(ElementTransform))]
            size, before = tf.shape(done[image])[:2], {image: done[image], "@draws": done["@draws"]}
            for name, t in self._type.items() if x.of is None else ():  # the items on the image move with it
                if kind_of(t).has(Geometry) and t.of == image:
                    use, riders = (_use(side, x),), self._type.riders(name)
                    stages.append(MoveEach(name, t.kind, use, (None, None), (None, None), t.details, riders, t.beside))
            touched = dict.fromkeys(name for stage in stages for name in stage.touches())
            before |= {name: done[name] for name in touched} | {f"@size/{stage.feature}": size for stage in stages[1:]}

            def small(before: Features = before, touched: Iterable[str] = touched) -> list[tf.Tensor]:
                return [tf.identity(before[name]) for name in touched]

            def shrunk(before: Features = before, touched: Iterable[str] = touched, stages: Sequence[Stage] = stages) -> list[tf.Tensor]:
                after = self._executor.compute([Element(ElementType(()), tuple(stages))])(before)
                return [after[name] for name in touched]

            values = tf.cond(tf.reduce_min(size) > side, shrunk, small)
            found |= dict(zip(touched, values, strict=True))
        return found


def _use(side: int, x: FeatureType) -> StepRef:
    """Makes a use of the step that shrinks images to a shorter side."""
    given: dict[str, Any] = {"shorter_side": side, "antialias": True}
    return StepRef(transforms()["resize"](**given).on(x), "resize", (), 0, gated=False)


def _row(image: tf.Tensor, canvas: tuple[int, ...]) -> tf.Tensor:
    """Puts an image into the upper left corner of a canvas, as bytes."""
    height, width = tf.unstack(tf.shape(image)[:2])
    whole = tf.pad(image, [[0, canvas[0] - height], [0, canvas[1] - width], [0, 0]])
    if image.dtype != tf.uint8:
        whole = tf.bitcast(whole, tf.uint8)
    return tf.reshape(whole, [-1])


def _encoded(image: tf.Tensor, x: FeatureType, options: Options) -> tf.Tensor:
    """Encodes an image as JPEG, or losslessly as PNG if JPEG cannot hold it, such as a mask."""
    if not options.lossy or kind_of(x).has(Indices) or image.dtype != tf.uint8 or image.shape[-1] not in (1, 3):
        return tf.io.encode_png(image)
    return tf.io.encode_jpeg(image, quality=options.quality, chroma_downsampling=True, optimize_size=True)


SHARD_BYTES = 1 << 27  # the approximate bytes of a shard
_LARGEST_SHARD = 1 << 30
_LEAVE_OUT = "list it in `errors: {exclude: FILE}`, which `pipegen validate SPEC --data=all --write-exclude FILE` writes"
_ENCODE = (
    "leave `--encoding` out: images are encoded as JPEG then",
    "or use `--encoding png`, which is lossless; or `--at` with a step before those that change the images",
)
_SCALED = (
    "with `decode: {scaled: never}` in the spec, the store is equal to it, bit for bit",
    "or store less on purpose: `--shorter-side 256` shrinks the images first, which changes the results",
)
_ENCODABLE = ("uint8", "uint16")
_SIDE = 8  # the sides of a canvas for images of several sizes are multiples of this, so that rows are aligned
_TRIED = 32  # examples of each split by which the size of encoded files is estimated


class Work:
    """The work of preparing the data of a spec in a folder. Raises `SpecError`: `PG572` if nothing can be prepared, `PG576` and `PG577`
    if not with these options."""

    def __init__(self, fitted: FittedSpec, folder: Path, options: Options) -> None:
        self.fitted, self.folder, self.options = fitted, folder, options
        self.model, self.manifest = fitted.spec.model, fitted.manifest
        self._at = fitted.spec.loaded.locate.label(("transforms",))
        plans: Mapping[str, Plan] = of_first_view(fitted).plans  # with the steps that all views share
        try:
            self.cut: Cut = find_cut(self.model, plans, options.at)
        except NoCutError as error:
            raise SpecError([make("PG572", str(error), self._at, help=(error.help,))]) from None
        plans = single(plans)
        self.pictured = having(self.cut.type, PixelValues)
        self.contents = [*self.pictured, *(name for name, t in self.cut.type.items() if kind_of(t).packed)]  # what the shards have
        self.options = options = self._with_encoding(plans)
        engine = Engine(fitted, plans)
        self._computations = {
            split: Computation(engine, plan, self.cut.stages[split], self.cut.type, options) for split, plan in plans.items()
        }
        self._left_out: set[str] = set()
        check_shrinking(fitted.spec, plans, self.cut, options)

    def _with_encoding(self, plans: Mapping[str, Plan]) -> Options:
        """Sets the encoding of images: the original files if the steps before the cut do not change them, else JPEG."""
        options, of_records = self.options, self.options.format in OF_RECORDS
        if not self.pictured:
            return self._without_images()
        for name, t in self.cut.type.items():
            if options.format != "raw" and kind_of(t).pixels and (t.dtype not in _ENCODABLE or t.shape[2] not in (1, 3, 4)):
                what = f"`{name}` has {t.shape[2]} channels of {t.dtype}, and an image file has 1, 3 or 4 of whole numbers of 8 or 16 bits"
                raise SpecError([make("PG572", what, self._at, help=("use `--format raw`, or `--at` with an earlier step",))])
        changed = changed_files(options, self.model, plans, self.cut) if of_records else None
        if of_records and options.keeps_files and changed is not None:
            raise SpecError([make("PG577", changed, self._at, help=_ENCODE)])
        if of_records and options.encoding is not None:
            return options
        keeps = of_records and changed is None and options.quality == QUALITY
        return replace(options, encoding="original" if keeps else "jpeg")

    def _without_images(self) -> Options:
        """Returns the options of a store without images, which has no loss; those that only images have are errors."""
        options = self.options
        if options.shorter_side is not None:
            raise SpecError([make("PG576", "`--shorter-side` shrinks images, and the spec has none", self._at, help=("leave it out",))])
        if options.encoding == "original" and self.contents:
            plural = kind_of(self.cut.type[self.contents[0]]).plural
            why = f"`{self.contents[0]}`: a store has {plural} as they are decoded"
            raise SpecError([make("PG577", why, self._at, help=("leave `--encoding` out",))])
        return replace(options, encoding="png", quality=QUALITY)

    @property
    def done_steps(self) -> int:
        """Number of steps whose results are stored: 0 for original files."""
        return 0 if self.options.keeps_files else self.cut.steps

    @property
    def reordered(self) -> bool:
        """Training on the store has another order, since windows count stored bytes, and blocks are those of the source."""
        if "train" not in self.manifest.splits or self.model.shuffle == "none":
            return False
        return self.model.shuffle != "global" or self.manifest.listing.reader("train").at_once > 1

    @cached_property
    def key(self) -> str:
        """Hash of all that decides the bytes of the store."""
        stages = [stage for own in self.cut.stages.values() for stage in own]
        splits = {split: self.manifest.num_examples(split) for split in self.manifest.splits}
        more = {"dealt": self.manifest.split_fingerprint, "splits": splits, "cut": self.cut.steps, "of": self.fitted.spec.hash}
        return key_of(self.model, self.manifest.fingerprint, stages, options=plain(self.options), shard=SHARD_BYTES, **more)

    def measure(self, progress: Callable[[int], None]) -> None:
        """Measures the images if that is needed, and keeps their largest sizes; raises `PG573` for files that the spec decodes smaller."""
        if not self._needs_sizes or self._sizes_file.exists():
            return
        least, side, done, scaled = self.cut.least, self.options.shorter_side, 0, ""
        most = {name: [0, 0] for name in self.pictured}
        for split, computation in self._computations.items():
            for record, sizes in self._run(split, 0, self.manifest.num_examples(split), None):
                for name in self.pictured:
                    height, width = (int(of) for of in sizes[name])
                    if least is not None and height >= 2 * least[0] and width >= 2 * least[1]:
                        scaled = scaled or computation.locate(record)
                    if side is not None and min(height, width) > side:
                        height, width = side_size(height, width, side)
                    most[name] = [max(most[name][0], height), max(most[name][1], width)]
                done += 1
                progress(done)
        if scaled and not self.options.changes():
            said = f"the spec decodes large JPEGs, such as {scaled}, at a fraction of their size"
            raise SpecError([make("PG573", f"{said}, which depends on the steps after the cut", self._at, help=_SCALED)])
        write_whole(self._sizes_file, json.dumps(most))

    def forget(self) -> None:
        """Removes the sizes that were measured for other work."""
        self._sizes_file.unlink(missing_ok=True)

    @property
    def _needs_sizes(self) -> bool:
        """Images have to be measured, for a canvas that holds the largest, or because the spec may decode one at a fraction."""
        known = all(None not in self.cut.type[name].shape for name in self.pictured) and self.options.shorter_side is None
        whole = not self.options.changes() and not self.options.keeps_files
        return (self.options.format == "raw" and not known) or (self.cut.least is not None and whole)

    @property
    def _sizes_file(self) -> Path:
        return self.folder / SHARDS / "sizes.json"

    @cached_property
    def pixels(self) -> dict[str, Pixels]:
        """The form of the pixels of each feature, after `measure`."""
        if self.options.format != "raw":
            return dict.fromkeys(self.contents, Pixels("records" if self.options.format in OF_RECORDS else "files"))
        most = json.loads(self._sizes_file.read_text()) if self._needs_sizes else {}
        found = dict.fromkeys(self.contents, Pixels("files"))
        for name in self.pictured:
            t = self.cut.type[name]
            sides = t.shape[:2]
            if None in sides or self.options.shorter_side is not None:
                sides = tuple(-(-side // _SIDE) * _SIDE for side in most[name])
            found[name] = Pixels("rows", t.dtype, (int(sides[0] or 0), int(sides[1] or 0), int(t.shape[2] or 0)))
        return found

    @cached_property
    def format(self) -> ShardFormat:
        """The format of the shards, after `measure`."""
        listing, labels = self.manifest.listing, having(self.cut.type, ExampleClass, ItemClass, TimestepClass)
        classes = {name: tuple(names) for name, names in listing.classes.items() if name in labels}
        label = listing.label if listing.label in labels else None
        return SHARD_FORMATS[self.options.format](self.cut.type, self.pixels, classes, label)

    @cached_property
    def rows(self) -> int:
        """Rows of a full shard: whole pages of every feature stored as rows."""
        row = max((own.row for own in self.pixels.values()), default=0)
        if not row:
            return max(1, SHARD_BYTES // max(1, int(self.manifest.mean_bytes()) or 1))
        unit = math.lcm(*(PAGE // math.gcd(PAGE, own.row) for own in self.pixels.values()))
        return max(1, min(SHARD_BYTES // (unit * row), max(1, _LARGEST_SHARD // (unit * row)))) * unit

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """Every shard, before it is written."""
        counts = {split: self.manifest.num_examples(split) for split in self.manifest.splits}
        firsts = ((split, n, first) for split, n in counts.items() for first in range(0, n, self.rows))
        return tuple(Shard(split, first, min(self.rows, n - first)) for split, n, first in firsts)

    @cached_property
    def files(self) -> list[dict[str, Path]]:
        """The files of each shard, by what they hold."""
        return shard_files(self.folder, self.shards, self.pixels, self.format.suffix)

    def done(self, number: int) -> Shard | None:
        """Reads the description of a complete shard; `None` for others."""
        try:
            shard = Shard(**json.loads(self.about_shard(number).read_text()))
            whole = all(os.stat(file).st_size == shard.bytes[held] for held, file in self.files[number].items())
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return shard if whole and self.columns_file(number).exists() else None

    def columns_file(self, number: int) -> Path:
        """The path of a shard's columns: its values beside pixels."""
        return self.folder / SHARDS / f"{number:05d}.npz"

    def about_shard(self, number: int) -> Path:
        """The path of a shard's description, which is written last."""
        return self.folder / SHARDS / f"{number:05d}.json"

    def write(self, number: int, progress: Callable[[int], None] = lambda _done: None) -> None:
        """Writes one shard, unless it is complete. Several processes may write the same one, with equal bytes."""
        if self.done(number) is not None:
            return
        shard = self.shards[number]
        columns: dict[str, list[Any]] = {}
        left = set(range(shard.first, shard.first + shard.count))
        with whole_files(self.files[number], self.folder / SHARDS) as fresh:
            with self.format.writing(fresh) as put:
                for record in self.records(shard.split, shard.first, shard.count):
                    left.discard(record.number)
                    places = self.format.add(record, put)
                    for name, value in (self._beside(record.values) | places).items():
                        columns.setdefault(name, []).append(value)
                    progress(record.number + 1 - shard.first)
            sums = {held: checksum(file) for held, file in fresh.items()}
            sizes = {held: file.stat().st_size for held, file in fresh.items()}
        with whole_file(self.columns_file(number)) as stream:
            np.savez(stream, **{name: self._column(name, values) for name, values in columns.items()})
        shard = Shard(shard.split, shard.first, shard.count - len(left), tuple(sorted(left)), sums, sizes)
        write_whole(self.about_shard(number), json.dumps(asdict(shard)))

    def _beside(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Selects the values of a record beside its pixels; sizes only of pixels on a canvas."""
        sized = {f"@size.{name}" for name, own in self.pixels.items() if own.form != "rows"}
        return {name: value for name, value in values.items() if name not in self.pixels and name not in sized}

    def _column(self, name: str, values: Sequence[Any]) -> Any:
        """Makes a column of a shard: a row for each record, or the concatenated items of all records."""
        t = self.cut.type.get(name)
        if not values:
            return np.zeros(0)
        return np.concatenate(values) if t is not None and kind_of(t).ragged else np.stack(values)

    def same(self, number: int, count: int) -> bool:
        """Compares the first examples of a shard with those computed now, bit for bit."""
        shard, columns = self.shards[number], cast("dict[str, list[Any]]", {})

        def computed() -> Iterator[Record]:
            for record in islice(self.records(shard.split, shard.first, shard.count), count):
                for name, value in self._beside(record.values).items():
                    columns.setdefault(name, []).append(value)
                yield record

        if not self.format.same(self.files[number], computed()):
            return False
        with np.load(self.columns_file(number), allow_pickle=False) as stored:
            wanted = {name: self._column(name, values) for name, values in columns.items()}
            return all(values.tobytes() == stored[name][: len(values)].tobytes() for name, values in wanted.items())

    def records(self, split: str, first: int, count: int) -> Iterator[Record]:
        """Computes the stored values of some examples."""
        names = self._names[split]
        for number, values in self._run(split, first, count, self.pixels):
            yield Record(number, names[number], values)

    @cached_property
    def _names(self) -> dict[str, Sequence[str]]:
        return {split: self.manifest.keys(split) for split in self.manifest.splits}

    def _run(self, split: str, first: int, count: int, pixels: dict[str, Pixels] | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the numbers of examples in their split, and their stored values; without `pixels`, the sizes of their images."""
        computation = self._computations[split]
        made = computation.sizes(first, count) if pixels is None else computation.examples(first, count, pixels)
        iterator = made.as_numpy_iterator()
        for record in range(first, first + count):
            try:
                example = next(iterator)
            except StopIteration:
                raise InternalError(f"the examples of {split} end before record {record}") from None
            except Exception as error:  # TensorFlow raises many types for a damaged file
                log.debug("%s", error)
                # Without the place in TensorFlow's graph.
                where, why = computation.locate(record), reason(error).rpartition("Iterator::Root::Prefetch::ParallelMapV2: ")[2]
                if split != "train" or self.model.errors.skip is None:
                    raise DataError(f"cannot prepare {where}: {why}; {_LEAVE_OUT}") from None
                if where not in self._left_out:
                    log.warning("%s is left out: %s", where, why)
                    self._left_out.add(where)
                continue
            yield record, example

    def expected_bytes(self) -> int:
        """Estimates the bytes of the missing shards; those of encoded files from a few examples."""
        missing = [shard for number, shard in enumerate(self.shards) if self.done(number) is None]
        rows = [own.row for own in self.pixels.values()]
        if (rows and all(rows)) or not missing:
            return sum(rows) * sum(shard.count for shard in missing)
        total = 0.0
        for split in {shard.split for shard in missing}:
            left = sum(shard.count for shard in missing if shard.split == split)
            tried = [self.format.num_bytes(record) for record in self.records(split, 0, min(left, _TRIED))]
            total += left * sum(tried) / max(1, len(tried))
        return int(1.1 * total)


def listed(spec: Spec, allow_code: Iterable[str], data: Mapping[str, object] | None = None) -> FittedSpec:
    """Lists the data of a spec; for the arguments see `pipegen.prepare`."""
    loaded = with_functions(spec, allowed_modules(allow_code))
    bound = bind(loaded, collect_data(loaded, None, data))
    return FittedSpec(loaded, bound.manifest, bound.plans, ())
