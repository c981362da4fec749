"""Computes the stored values of examples, by the spec's own plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.devices import untuned
from pipegen.backend.process.traced_functions import plain_map
from pipegen.backend.running.damaged_record import explain_failure
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import MoveEach
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.registry import transforms
from pipegen.ops.stage import StepRef
from pipegen.ops.step_bases import ElementTransform
from pipegen.plan.nodes import Element, Read
from pipegen.plan.stages import Apply
from pipegen.types import ElementType, valid_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.features import Features
    from pipegen.ops.sources.prepared_store.layout import Pixels
    from pipegen.ops.stage import Stage
    from pipegen.plan.nodes import Plan
    from pipegen.preparing.options import Options
    from pipegen.types import FeatureType

    Compute = Callable[[tf.Tensor], Features]
    """From the number of a record in its split to its stored values."""


class Computation:
    """The computation of the stored values of one split by the stages of its plainest plan before the cut, where an example has a type."""

    def __init__(self, engine: Engine, plan: Plan, stages: tuple[Stage, ...], type_: ElementType, options: Options) -> None:
        self._executor = engine.executor_of(plan, plan.split)
        self._read = next(node for node in plan.nodes if isinstance(node, Read))
        self._stages, self._type, self._options = stages, type_, options
        self._draws = plan.index.num_draws
        self.threads = self._executor.setting.threads
        self.explain = partial(explain_failure, self._executor)
        self.locate = self._executor.records.locate

    def examples(self, first: int, count: int, pixels: dict[str, Pixels]) -> tf.data.Dataset:
        """Computes `count` examples from `first` on: `NAME` is a row of bytes or an encoded file, and `@size.NAME` its height and width;
        for a ragged feature, `NAME` has the items without padding, and `@count.NAME` their number."""

        def stored(record: tf.Tensor) -> Features:
            read = self._stored(record)
            found = self._computed(read)
            found |= self._items(found)
            for name, how in pixels.items():
                image = found[name]
                if how.form != "files":
                    found[f"@size.{name}"] = tf.shape(image)[:2]
                if self._options.keeps_files and kind_of(self._type[name]).levels:
                    # The image was decoded all the same, to find damaged files.
                    found[name] = read[name]
                    continue
                found[name] = _row(image, how.canvas) if how.form == "rows" else _encoded(image, self._type[name], self._options)
            return found

        return self._map(first, count, stored)

    def sizes(self, first: int, count: int) -> tf.data.Dataset:
        """Computes the height and width of images before the cut, int32 `(2,)` each; reads only the headers of files if that suffices."""
        pictured = [name for name, t in self._type.items() if kind_of(t).pictured]
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
        """Reads a record."""
        return self._executor.compute([self._read])({"@record": record, "@draws": tf.zeros([self._draws], tf.float64)})

    def _plain(self, read: Features) -> Features:
        return self._executor.compute([Element(ElementType(()), self._stages)])(read)

    def _computed(self, read: Features) -> Features:
        """Computes the features of an example at the cut, and the masks of valid items."""
        done = self._plain(read)
        names = [*self._type, *(valid_name(name) for name in _homes(self._type))]
        side = self._options.shorter_side
        return {name: done[name] for name in names} | ({} if side is None else self._shrunk(done, side))

    def _items(self, found: Features) -> Features:
        """Removes the padding of ragged features, and counts their items."""
        there = {home: found.pop(valid_name(home)) for home in _homes(self._type)}
        items = {name: tf.boolean_mask(found[name], there[t.beside or name]) for name, t in self._type.items() if kind_of(t).ragged}
        return items | {f"@count.{home}": tf.math.count_nonzero(own) for home, own in there.items()}

    def _shrunk(self, done: Features, side: int) -> Features:
        """Shrinks images to a shorter side of at most `side` pixels, with the features aligned with them."""
        found: Features = {}
        for image, x in self._type.items():
            if not kind_of(x).pictured:
                continue
            stages: list[Stage] = [Apply(image, _use(side, x).of(ElementTransform))]
            size, before = tf.shape(done[image])[:2], {image: done[image], "@draws": done["@draws"]}
            stages += self._moving(image, side) if x.of is None else []
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

    def _moving(self, image: str, side: int) -> list[Stage]:
        """Makes the stages that move the items on an image as it is shrunk."""
        found: list[Stage] = []
        for name, t in self._type.items():
            if kind_of(t).needs_image and kind_of(t).ragged and t.of == image:
                use, riders = (_use(side, self._type[image]),), self._type.riders(name)
                found.append(MoveEach(name, t.kind, use, (None, None), (None, None), t.details, riders, t.beside))
        return found


def _homes(type_: ElementType) -> tuple[str, ...]:
    """The ragged features that do not belong to another one: they have the masks of valid items."""
    return tuple(name for name, t in type_.items() if kind_of(t).ragged and t.beside is None)


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
    if not options.lossy or kind_of(x).categorical or image.dtype != tf.uint8 or image.shape[-1] not in (1, 3):
        return tf.io.encode_png(image)
    return tf.io.encode_jpeg(image, quality=options.quality, chroma_downsampling=True, optimize_size=True)
