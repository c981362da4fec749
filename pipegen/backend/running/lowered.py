"""The parts of a compiled plan as functions of TensorFlow, for code that builds its own datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.kernels.lower import apply_element, apply_stage
from pipegen.backend.process.traced_functions import plain
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import Run, with_rows
from pipegen.diagnostics.suggest import closest
from pipegen.ops.stage import Stage
from pipegen.physical import nodes as p
from pipegen.plan.nodes import Kernel, Plan
from pipegen.private.functions import untraced

Function = Callable[[Features], Features]
FORM = p.FIXED.bare()  # the form of `Lowered`


def stage_names(plan: Plan) -> list[tuple[str, Stage]]:
    """Lists the stages of a plan in order, each with a unique name: that of its step, or of its class if it does several."""
    found: dict[str, Stage] = {}
    for stage in plan.stages():
        steps = [ref.step for ref in stage.uses()]
        own = getattr(steps[0], "id", None) or steps[0].op if len(steps) == 1 else p.node_name(stage)
        base = own if stage.feature == "image" else f"{stage.feature}.{own}"
        found[next(name for name in (base, *(f"{base}#{i}" for i in range(2, len(found) + 3))) if name not in found)] = stage
    return list(found.items())


@untraced
class Lowered:
    """The parts of one split's compiled plan, each a function of TensorFlow that `Dataset.map` can call.

    They take and return a map of features by name, such as `image` and `label`, of one example or, after the batch, `(n, ...)`, with the
    features of the index: `@record`, `@draws`, `@epoch`, `@slot` and `@weight`. `lowered["resize"]` is the stage of that name.

    Attributes:
        steps: Steps in an epoch.
    """

    def __init__(self, executor: Executor) -> None:
        self._x = executor
        plan = executor.physical(FORM)
        run, functions = Run(executor, plan), plan.functions
        self._index = run.function(next(f for f in functions if isinstance(f, p.Index)))
        own = next((f for f in functions if isinstance(f, p.SliceOwnRows)), None)
        self._own: Function = run.function(own) if own is not None else dict
        self._stages: dict[str, Function] = {}
        whole = {id(stage) for node in executor.plan.nodes if isinstance(node, Kernel) for stage in node.stages}
        for name, stage in stage_names(executor.plan):
            self._stages[name] = plain(partial(self._apply, apply_stage if id(stage) in whole else apply_element, stage))
        self._rows = next((f.rows for f in functions if isinstance(f, p.SetBatchSize)), None)
        self.steps = executor.steps

    def index(self, epoch: int | tf.Tensor, step: int | tf.Tensor) -> Features:
        """Computes the records and draws of a step: `@record` int64 `(n,)`, `@draws` float64 `(n, draws)`, and so on."""
        found = self._index(tf.cast(epoch, tf.int64), tf.cast(step, tf.int64))
        return found if self._rows is None else with_rows(found, self._rows)

    def read(self, features: Features) -> Features:
        """Reads the stored features of an example by its `@record`; for rows of arrays, also of a batch."""
        return features | self._x.tensors.read(features["@record"], self._x.plan.read)

    def own(self, features: Features) -> Features:
        """Drops the examples that were added to a batch to complete its groups of combined examples."""
        return self._own(features)

    def __getitem__(self, name: str) -> Function:
        if name not in self._stages:
            near = closest(name, list(self._stages))
            raise KeyError(f"unknown stage {name!r}; {f'did you mean {near!r}?' if near else ', '.join(self._stages)}")
        return self._stages[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages)

    @staticmethod
    def _apply(apply: Callable[[Stage, Features], None], stage: Stage, features: Features) -> Features:
        done = dict(features)
        apply(stage, done)
        return done
