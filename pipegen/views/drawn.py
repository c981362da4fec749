"""Turns the draws of a batch into the words of the spec: for each example the numbers of its random steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from pipegen.backend.index import mixing
from pipegen.backend.index.order import START
from pipegen.backend.index.uses import acts, own_draws, step_of
from pipegen.ops.base import Transform
from pipegen.ops.families.mixing import MixingTransform
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan import stages as s
from pipegen.plan.nodes import Element, Kernel, Read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipegen.backend.features import Features
    from pipegen.backend.running.execute import Executor
    from pipegen.plan.nodes import Plan
    from pipegen.plan.stages import Stage, StepRef
    from pipegen.types import FeatureType

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Shape = tuple[int | tf.Tensor, int | tf.Tensor, int]


class DrawnParameters:
    """Names the drawn parameters of the examples of one split.

    Args:
        executor: Draws, and runs the steps before one whose numbers depend on a size that only the file tells.
        plain: The plainest plan of the split, in which every step stands alone.
        keys: The name of each record, for the partners of examples that are mixed.
    """

    def __init__(self, executor: Executor, plain: Plan, keys: Sequence[str]) -> None:
        self._x = executor
        self._plain = plain
        self._keys = keys
        ids = {ref.id for stage in plain.stages() for use in stage.uses() for ref in _decided_by(use)}
        self._draws = tuple(ref for ref in plain.index.draws if ref.id in ids)
        """Less those of steps on an image that the model does not receive."""
        self._uses = {ref.id: _uses(plain, ref) for ref in self._draws}

    def rows(self, batch: dict[str, Array], wanted: Sequence[int]) -> list[Row]:
        """For each example of a batch, its parameters by name: `STEP.applied` where a step leaves some examples alone, and
        `STEP.PARAMETER` where it acts. Those of rows that are not wanted are left empty.

        Args:
            batch: `@epoch`, `@slot`, `@record` and `@draws`, of one epoch.
            wanted: The rows.
        """
        found: list[Row] = [{} for _ in batch["@record"]]
        draws, asked = tf.constant(batch["@draws"]), np.isin(np.arange(len(found)), wanted)
        for ref in self._draws:
            active = asked
            if ref.conditional:
                active = acts(ref, draws).numpy() & asked
                for i in wanted:
                    found[i][f"{ref.id}.applied"] = bool(active[i])
            for name, values in self._named(ref, draws, batch, active).items():
                for row, value, act in zip(found, values, active, strict=True):
                    plain = _plain(value)
                    if act and plain is not None:
                        row[f"{ref.id}.{name}"] = plain
        return found

    def _named(self, ref: StepRef, draws: tf.Tensor, batch: dict[str, Array], active: Array) -> dict[str, Sequence[Any]]:
        u, step = own_draws(ref, draws), step_of(ref, draws)
        uses = self._uses[ref.id]
        found: dict[str, Sequence[Any]] = {}
        if not uses or type(step).drawn_on is Transform.drawn_on:  # a policy, whose parts stand in the plan; or no matter of size
            return {name: value.numpy() for name, value in step.drawn(u).items()}
        alike = len({use[2].shape for use in uses}) == 1
        for node, stage, x in uses[:1] if alike else uses:
            sizes = self._sizes(node, stage, x, batch, active)
            found |= {("" if alike else f"{stage.feature}.") + name: value.numpy() for name, value in step.drawn_on(u, sizes).items()}
        if isinstance(step, MixingTransform):
            mixed = np.asarray(found["own_share"]) < 1 if "own_share" in found else step.acts(u).numpy()
            partners = zip(self._partners(step.rank(u), ref.of(MixingTransform), batch), mixed, strict=True)
            found["partner"] = [keys if takes else None for keys, takes in partners]
        return found

    def _sizes(self, node: int, stage: Stage, x: FeatureType, batch: dict[str, Array], active: Array) -> Shape:
        """The size of the images that enter a stage; int32 `(n,)` each where it is another for each example."""
        if isinstance(stage, s.Compose) and None not in stage.canvas:
            return stage.canvas[0], stage.canvas[1], x.channels or 0
        if x.height is not None and x.width is not None:
            return x.height, x.width, x.channels or 0
        several = zip(batch["@record"], batch["@draws"], active, strict=True)
        found = [self._size_of(node, stage, record, draws) if act else (1 << 15, 1 << 15) for record, draws, act in several]
        heights, widths = (tf.constant(sides, tf.int32) for sides in zip(*found, strict=True))
        return heights, widths, x.channels or 0

    def _size_of(self, node: int, stage: Stage, record: int, draws: Array) -> tuple[int, int]:
        """The size of one image where a stage gets it: the steps before are run once more."""
        features: Features = {"@record": tf.constant(record, tf.int64), "@draws": tf.constant(draws)}
        for before in self._plain.nodes[:node]:
            if isinstance(before, (Read, Element)):
                self._x.element(before, features)
        value = features[stage.feature]
        if isinstance(stage, s.DecodeWindow):
            value = stage.decode.step.decode(value, None)
        return int(value.shape[0]), int(value.shape[1])

    def _partners(self, rank: tf.Tensor, ref: StepRef[MixingTransform], batch: dict[str, Array]) -> list[str | list[str]]:
        """The record whose picture each example has taken its part of, or a list of several."""
        order, slots, records = self._x.order, batch["@slot"], batch["@record"]
        own = slice(0, len(slots))
        if self._x.wide is not None:  # the batch begins inside a group, whose other members are not at hand
            epoch = int(batch["@epoch"][0])
            step = order.step_at(epoch, tf.constant(slots[:1], tf.int64))[0]
            slots = mixing.widened(order, step, self._x.wide, START, epoch)[0].numpy()
            first = int(np.searchsorted(slots, batch["@slot"][0]))
            own = slice(first, first + len(records))
            found = order.found(epoch, tf.constant(slots))
            draws = self._x.draws(self._x.tensors, *found, calendar=tf.zeros_like(found.cycle) + epoch)
            ranks = ref.step.rank(own_draws(ref, draws)).numpy()
            ranks[own], known = rank.numpy(), found.record.numpy()
            known[own] = records
            rank, records = tf.constant(ranks), known
        first = mixing.partners(rank, order.member(tf.constant(slots, tf.int64)))
        named = [[self._keys[records[i]] for i in row] for row in mixing.partners_of(first, ref.step.others).numpy()[own]]
        return [row[0] if ref.step.others == 1 else row for row in named]


def _decided_by(use: StepRef) -> Iterator[StepRef]:
    """A use of a step, the policy that it is a part of, and so on."""
    ref: StepRef | None = use
    while ref is not None:
        yield ref
        ref = ref.choice.policy if ref.choice is not None else None


def _uses(plain: Plan, ref: StepRef) -> list[tuple[int, Stage, FeatureType]]:
    """Returns where a step stands in the plan: the node, the stage, and the type that enters it; once for each image that it moves."""
    found = []
    before = plain.nodes[0].out
    levels = any(kind_of(t).levels for _, t in plain.read.items())
    for number, node in enumerate(plain.nodes):
        for stage in node.stages if isinstance(node, (Element, Kernel)) else ():
            x = before[stage.feature]
            if (
                kind_of(x).pictured
                and kind_of(x).levels == levels
                and any(use.id == ref.id and use.step is ref.step for use in stage.uses())
            ):
                found.append((number, stage, x))
        before = node.out
    return found


def _plain(value: Any) -> Any:
    """A number, a truth value, a word or a list of numbers as JSON has them; `None` for an amount that is not there."""
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(plain, bytes):
        return plain.decode()
    return None if isinstance(plain, float) and math.isnan(plain) else plain
