"""Pictures and values of a few examples behind each node and stage of a plan."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.features import Features
from pipegen.backend.index.order import Found
from pipegen.backend.kernels.lower import apply_element, apply_stage
from pipegen.backend.running.execute import Executor
from pipegen.ops.families.combining import GROUP
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.kinds.base import ExampleClass, kind_of
from pipegen.ops.lowering.python_calls import reason
from pipegen.plan import stages as s
from pipegen.plan.nodes import Batch, Element, Emit, Index, Kernel, Node, Plan, Read
from pipegen.spec.models import received
from pipegen.spec.units import format_bytes
from pipegen.types import FeatureType, valid_name
from pipegen.views.drawn import picture_of
from pipegen.views.plan_page import Seen, Shown

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_SIDE = 208  # longer side of a picture in pixels: twice its size on the page, for high-resolution screens
_SHOWN = 6  # number of examples of a batch to show
_MOST_VALUES = 8  # maximal number of values of a feature to show


def shown_along(engine: Engine, split: str) -> Shown:
    """Runs the first examples of a split's first epoch along its plan, and shows them behind each node and each stage.

    The combined group is complete, so that examples are combined as in training. If one of them cannot be read, there are no pictures.
    """
    executor = engine.executor(split)
    plan = executor.plan
    keys, n = engine.manifest.keys(split), len(executor.records)
    slots = tf.range(min(GROUP, n), dtype=tf.int64)
    if executor.buckets is not None:  # examples of one bucket, on its plan
        slots = executor.order.every_slot()[:GROUP]
        slots = tf.boolean_mask(slots, executor.order.bucket_of(slots) == executor.order.bucket_of(slots[:1]))
        plan = plan.buckets[int(executor.order.bucket_of(slots[:1])[0])]
    found = executor.order.found(0, slots)
    names = [keys[i] for i in found.record.numpy().tolist()]
    run = _Run(executor, plan, engine.manifest.class_names, names)
    try:
        return run.along(slots, found)
    except (tf.errors.OpError, ValueError, OSError) as error:
        return Shown(f"No pictures: one of the first examples cannot be read ({reason(error)}).")


class _Run:
    """A run of a few examples through the nodes of a plan."""

    def __init__(self, executor: Executor, plan: Plan, classes: tuple[str, ...], names: list[str]) -> None:
        self.x, self.plan, self.classes, self.names = executor, plan, classes, names
        self.shown = min(_SHOWN, len(names), self.plan.batch.size)
        self.first: set[str] = set()  # features that are channels-first at the current node

    def along(self, slots: tf.Tensor, found: Found) -> Shown:
        draws = self.x.draws(self.x.tensors, *found, calendar=tf.zeros_like(slots), group=self.x.order.group(slots))
        known = {"@epoch": tf.zeros_like(slots), "@slot": slots, "@record": found.record, "@draws": draws}
        known |= {"@weight": tf.ones_like(slots, tf.float32), "@member": self.x.order.member(slots)}
        rows: list[Features] = [{name: value[i] for name, value in known.items()} for i in range(len(self.names))]
        batch: Features | None = None
        edges, stages = [], []
        for node in self.plan.nodes:
            if isinstance(node, Batch):
                batch = {name: tf.stack([row[name] for row in rows]) for name in rows[0]}
            stages.append(self._stages(node, rows, batch))  # runs the node
            several = rows[:1] if batch is None else [{k: v[i] for k, v in batch.items()} for i in range(self.shown)]
            taken = received(node.output) if isinstance(node, Emit) else [*node.out]
            types = [(name, t) for name, t in node.out.items() if name in taken and several and name in several[0]]
            edges.append({name: self._seen(name, t, several) for name, t in types})
            if isinstance(node, Index):
                edges[-1] = {"examples": Seen((), ", ".join(self.names[: self.shown]) + ", …")}
        more = f", and behind the batch also those of the next {self.shown - 1}" if self.shown > 1 else ""
        caption = f"The pictures are those of the first example of epoch 0, {self.names[0]}{more}."
        return Shown(caption, tuple(edges), tuple(stages))

    def _stages(self, node: Node, rows: list[Features], batch: Features | None) -> tuple[Seen | None, ...]:
        """Runs a node; returns what each of its stages makes of the first example."""
        if isinstance(node, Read):
            if batch is not None:
                batch |= self.x.tensors.read(batch["@record"], node.out)
            for row in rows if batch is None else ():
                self.x.element(node, row)
        seen: list[Seen | None] = []
        for stage in node.stages if isinstance(node, (Element, Kernel)) else ():
            if batch is not None:
                apply_stage(stage, batch)
            for row in rows if batch is None else ():
                apply_element(stage, row)
            self.first |= {stage.feature} if isinstance(stage, s.ChannelsFirst) else set()
            t, one = node.out.get(stage.feature), rows[0] if batch is None else {name: value[0] for name, value in batch.items()}
            pictured = t is not None and kind_of(t).pixels is not None and stage.feature in one
            seen.append(self._seen(stage.feature, t.with_(interval=None), [one]) if pictured and t is not None else None)
        return tuple(seen)

    def _seen(self, name: str, t: FeatureType, rows: list[Features]) -> Seen:
        """Draws a feature of some examples, or writes its values."""
        pixels = kind_of(t).pixels
        if t.encoded and pixels is not None:
            held = format_bytes(len(rows[0][name].numpy()))
            stage = next(st for st in self.plan.stages() if isinstance(st, Decodes) and st.feature == name)
            files = [np.asarray(stage.decode.step.decode(row[name], None)) for row in rows]
            return Seen(tuple(_file(pixels.shown(array, self.plan.read[name])) for array in files), f"a file of {held}")
        if pixels is not None:
            arrays = [row[name].numpy() for row in rows]
            last = [np.moveaxis(array, 0, -1) if name in self.first else array for array in arrays]
            span = f"{arrays[0].min():.4g} to {arrays[0].max():.4g}" if arrays[0].size else ""
            return Seen(tuple(_file(pixels.shown(array, t)) for array in last), span)
        valid = valid_name(t.beside or name)
        values = [row[name].numpy() if valid not in row else row[name].numpy()[row[valid].numpy()] for row in rows]
        return Seen((), "; ".join(self._value_text(value, t) for value in values))

    def _value_text(self, value: Any, t: FeatureType) -> str:
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if kind_of(t).has(ExampleClass) and np.ndim(value) == 0 and self.classes and 0 <= int(value) < len(self.classes):
            return f"{int(value)} ({self.classes[int(value)]})"
        if kind_of(t).has(ExampleClass) and np.ndim(value) == 1 and len(value) == len(self.classes):
            there = np.flatnonzero(value)
            return ", ".join(f"{value[i]:g} at {i} ({self.classes[i]})" for i in there[:3]) + (", …" if len(there) > 3 else "") or "none"
        flat = np.asarray(value).reshape(-1)
        shown = ", ".join(f"{v:g}" if flat.dtype.kind in "fiu" else str(v) for v in flat[:_MOST_VALUES])
        if np.ndim(value) == 0:
            return shown
        return f"[{shown}{', …' if len(flat) > _MOST_VALUES else ''}]"


def _file(image: Array) -> bytes:
    """Encodes a small picture of an image, uint8 `(height, width, channels)`: WebP, or PNG if Pillow lacks WebP."""
    shown, held = picture_of(image, _SIDE), io.BytesIO()
    try:
        shown.save(held, "WEBP", quality=82)
    except (KeyError, OSError):
        held = io.BytesIO()
        shown.save(held, "PNG")
    return held.getvalue()
