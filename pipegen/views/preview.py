"""Contact sheets: originals beside augmented versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont

from pipegen.backend.datasets.engine import Engine
from pipegen.backend.features import Features
from pipegen.backend.index.combined_groups import group_of
from pipegen.backend.kernels.lower import apply_element, apply_stage
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import Run
from pipegen.data.rounding import spread
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.families.item_stages import Enter, EnterSound, Express, Measure
from pipegen.ops.kinds.audio import sound_of
from pipegen.ops.kinds.base import Indices, Levels, Samples, Timeline, having, kind_of
from pipegen.ops.lowering.pictures import levels
from pipegen.physical.decide import decide, last_combining
from pipegen.physical.nodes import SHOWN
from pipegen.plan.nodes import Element, Kernel, Plan
from pipegen.types import ElementType, FeatureType
from pipegen.views.drawn import finishes, forks_of, picture_of, varies, views_of

_GAP, _CAPTION, _MARGIN = 6, 18, 12
_MOST_PIXELS = 2**28
_INK, _PAPER, _FAINT = (28, 28, 30), (250, 250, 250), (120, 120, 124)


def contact_sheet(
    engine: Engine, split: str, *, rows: int, draws: int, first_epoch: int, cell: int, progress: Callable[[int], None]
) -> Image.Image:
    """Draws originals and augmented versions, a row for each, with class names; for the arguments and the errors see `Pipeline.preview`.

    Without random steps, there is one version of each.
    """
    executor = engine.executor(split)
    feature = next(iter((*having(executor.plan.read, Levels), *having(executor.plan.read, Samples))), None)
    if feature is None:
        raise ValueError("a sheet shows images or sounds, but the model receives none")
    views = views_of(executor.plan, feature)
    epochs = [first_epoch + k for k in range(draws if varies(split, executor.plan) else 1)]
    columns = [(epoch, view) for epoch in epochs for view in views]
    records = spread(engine.manifest.num_examples(split), rows)
    if len(records) * (len(columns) + 1) * cell**2 > _MOST_PIXELS:
        size = f"{len(records)} × {len(columns) + 1} pictures of {cell} pixels"
        raise ValueError(f"a sheet of {size} is too large: reduce `rows`, `draws` or `cell`")
    own = engine.manifest.listing.classes
    classes = {view: called for name, called in own.items() for view in (name, *views_of(executor.plan, name))}
    labels, keys, names = engine.manifest.labels(split), engine.manifest.keys(split), engine.manifest.class_names
    captions = [keys[r] if labels is None else f"{names[labels[r]]}: {keys[r].rsplit('/', 1)[-1]}" for r in records]
    drawn: list[list[Image.Image]] = []
    for i, record in enumerate(records):
        try:
            versions = [_shown(executor, record, epoch, view, classes) for epoch, view in [(None, feature), *columns]]
            drawn.append([picture_of(version, cell, enlarges=True) for version in versions])
        except tf.errors.OpError as error:
            if executor.damage.quarantine is None:
                raise engine.problem(split, record, first_epoch, error) from None
            drawn.append([])
            captions[i] += " cannot be read, and is skipped"
        progress(i + 1)
    heads = [f"epoch {epoch}" + (f", {view.removeprefix(feature)[1:]}" if view != feature else "") for epoch, view in columns]
    return _lay_out(drawn, captions, heads, cell)


def _shown(
    executor: Executor, record: int, epoch: int | None, feature: str, classes: Mapping[str, tuple[str, ...]]
) -> np.ndarray[Any, Any]:
    """Draws one version of an image, or the original without an epoch, with its masks and boxes: uint8 `(height, width, channels)`.

    `classes` has the class names of items, by feature.
    """
    plan = executor.plan_of(record)
    types = plan.read if epoch is None else _types(plan, feature)

    def of(name: str) -> np.ndarray[Any, Any]:
        return original(executor, record, name) if epoch is None else render_example(executor, record, epoch, name)

    def seconds() -> float:
        if epoch is None:
            values, x = _decoded(executor, record, feature), types[feature]
        else:
            values, x = _computed(executor, record, epoch, feature)[feature], plan.emit.out.get(feature) or types[feature]
        own = sound_of(x)
        return float(values.shape[0] * (own.hop or 1) / own.rate)

    image = of(feature)
    overlays = {name: own for name, t in types.items() if (own := kind_of(t).overlay) is not None and t.of == feature}
    for name, overlay in overlays.items():
        names: list[str] = []  # of the class of each item, if another feature has it
        rider = next((rider for rider in types.riders(name) if types[rider].classes is not None), None)
        if rider is not None:
            known = classes.get(rider, ())
            names = [known[i] if i < len(known) else str(i) for i in of(rider).tolist()]
        items = of(name) / max(seconds(), 1e-9) if isinstance(overlay, Timeline) else of(name)
        image = overlay.draw(image, items, types[name], names)
    return image


def original(executor: Executor, record: int, feature: str) -> np.ndarray[Any, Any]:
    """Draws the decoded image, mask or sound of a record: uint8 `(height, width, channels)`, before any other step; or reads its items."""
    type_ = executor.nodes_of(record)[0].out
    if kind_of(type_[feature]).ragged:
        read = executor.tensors.read(tf.constant(record, tf.int64), type_)
        home = type_[feature].beside or feature
        sound = type_[home].of if kind_of(type_[home]).has(Timeline) else None
        read |= {sound: _decoded(executor, record, sound)} if sound is not None else {}
        return _visible(_entered(executor.plan_of(record), home, read), feature, type_)
    values = _decoded(executor, record, feature)
    if not type_[feature].encoded or values.dtype.kind == "f":
        return _drawn(np.asarray(values), type_[feature])
    return np.asarray(values)


def _decoded(executor: Executor, record: int, feature: str) -> Any:
    """Reads the pixels or samples of a record as they are stored, or decodes their file."""
    nodes = executor.nodes_of(record)
    read = executor.tensors.read(tf.constant(record, tf.int64), nodes[0].out)
    if not nodes[0].out[feature].encoded:
        return read[feature].numpy()
    stages = (st for node in nodes if isinstance(node, Element) for st in node.stages)
    stage = next(st for st in stages if isinstance(st, Decodes) and st.feature in _views(executor.plan_of(record), feature))
    return np.asarray(stage.decode.step.decode(read[feature], None))


def _views(plan: Plan, feature: str) -> tuple[str, ...]:
    """A feature, and its views."""
    return (feature, *views_of(plan, feature))


def _entered(plan: Plan, feature: str, read: Features) -> Features:
    """Converts the items of a record as for the steps."""
    view = {fork.feature: fork.names[0] for fork in forks_of(plan) if fork.names}
    own = view.get(feature, feature)
    features = {**read, **{first: read[name] for name, first in view.items() if name in read}}
    for stage in (*plan.part_stages(), *plan.stages()):
        if isinstance(stage, (Measure, Enter, EnterSound)) and own in (stage.feature, *stage.touches()):
            apply_element(stage, features)
    return {**features, **{name: features[first] for name, first in view.items() if first in features}}


def render_example(executor: Executor, record: int, epoch: int, feature: str) -> np.ndarray[Any, Any]:
    """Computes an augmented version, uint8 `(height, width, channels)`, or items, without the closing arithmetic steps."""
    return _visible(_computed(executor, record, epoch, feature), feature, _types(executor.plan_of(record), feature))


def _computed(executor: Executor, record: int, epoch: int, feature: str) -> Features:
    """Computes the features of one example, without the closing arithmetic steps."""
    plan = executor.plan_of(record)
    features, row = _batch_with(executor, plan, record, epoch)
    own = {feature, *(fork.feature for fork in forks_of(plan) if feature in fork.names)}
    every = [st for n in plan.nodes if isinstance(n, Kernel) for st in n.stages]
    own |= {name for st in every if st.feature in own for name in st.needs()}
    kernel_stages = [st for st in every if own & {*st.touches()}]
    while kernel_stages and (finishes(kernel_stages[-1]) or isinstance(kernel_stages[-1], Express)):
        kernel_stages.pop()
    for stage in kernel_stages:
        apply_stage(stage, features)
    return {name: value[row] for name, value in features.items()}


def _types(plan: Plan, feature: str) -> ElementType:
    """Types of the stored features or, if the feature is a view, of the output."""
    return plan.read if feature in plan.read else plan.emit.out


def _visible(features: Features, feature: str, type_: ElementType) -> np.ndarray[Any, Any]:
    """Extracts what can be shown of one example's feature: levels of an image, classes of a mask, a drawn sound, or the real items."""
    if kind_of(type_[feature]).ragged:
        return np.asarray(features[feature][features[type_.valid(feature)]])
    return _drawn(features[feature].numpy(), type_[feature])


def _drawn(value: np.ndarray[Any, Any], x: FeatureType) -> np.ndarray[Any, Any]:
    """Draws an image's levels, a mask's classes, or a sound; leaves a dense map as it is."""
    kind = kind_of(x)
    drawn: np.ndarray[Any, Any] = value
    if kind.has(Levels, Indices):
        drawn = levels(value)
    elif kind.samples is not None:
        drawn = kind.samples.shown(value, x)
    return drawn


def _batch_with(executor: Executor, plan: Plan, record: int, epoch: int) -> tuple[Features, int]:
    """Computes the input of the kernels: the record alone or, if examples are combined, its combined group; and its row."""
    combines, shares = last_combining(plan.nodes) is not None, executor.draws.shares
    records, cycles, row, group = group_of(executor.order, epoch, record) if combines or shares else ([record], [epoch], 0, 0)
    if not combines:
        records, cycles, row = [record], [cycles[row]], 0
    numbers = (epoch, group) if shares else ()
    compute = Run(executor, decide(plan, SHOWN, executor.setting)).one()
    rows: list[Features] = []
    for place, at in enumerate(zip(records, cycles, strict=True)):
        try:
            rows.append(compute(*(tf.constant(number, tf.int64) for number in (*at, *numbers))))
        except tf.errors.OpError:  # a damaged partner is reported in its own row
            if place == row:
                raise
            row -= place < row
    return {name: tf.stack([r[name] for r in rows]) for name in rows[0]}, row


def _lay_out(rows: list[list[Image.Image]], names: list[str], drawn: list[str], cell: int) -> Image.Image:
    font = ImageFont.load_default(size=13)
    heads = ["original", *drawn]
    columns = len(heads)
    width = 2 * _MARGIN + columns * cell + (columns - 1) * _GAP + _GAP
    height = 2 * _MARGIN + _CAPTION + len(rows) * (cell + _CAPTION + _GAP)
    sheet = Image.new("RGB", (width, height), _PAPER)
    pen = ImageDraw.Draw(sheet)
    for column, head in enumerate(heads):
        pen.text((_left(column, cell), _MARGIN), head, fill=_FAINT, font=font)
    for row, (pictures, name) in enumerate(zip(rows, names, strict=True)):
        top = _MARGIN + _CAPTION + row * (cell + _CAPTION + _GAP)
        shown = name
        while len(shown) > 4 and font.getlength(shown) > width - 2 * _MARGIN:
            shown = shown[:-2] + "…"
        pen.text((_left(0, cell), top), shown, fill=_INK, font=font)
        for column, picture in enumerate(pictures):
            x = _left(column, cell) + (cell - picture.width) // 2
            sheet.paste(picture, (x, top + _CAPTION + (cell - picture.height) // 2))
    return sheet


def _left(column: int, cell: int) -> int:
    """Left edge of a column; the originals have a wider gap to the draws."""
    return _MARGIN + column * (cell + _GAP) + (_GAP if column else 0)
