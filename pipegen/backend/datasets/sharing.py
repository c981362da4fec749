"""Detects uses of distribution strategies that would silently train on other data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pipegen.errors import StateError
from pipegen.frozen import dataclass

_BUILDS = ("tensorflow.python.distribute.input_lib", "_create_cloned_datasets_from_dataset")
_SHARE_AGAIN = {
    _BUILDS: "`strategy.experimental_distribute_dataset`",
    ("keras.src.distribution.distribution_lib", "distribute_dataset"): "Keras' `auto_shard_dataset`",
}
"""Functions that shard a dataset among processes. A dataset is not told; it finds them on the call stack."""
_FIT = ("keras.src.backend.tensorflow.trainer", "fit")
_BUILD_MODEL = ("keras.src.backend.tensorflow.trainer", "_maybe_symbolic_build")
_AHEAD = 8
"""Steps that a strategy may read ahead of training: four were seen, with 2 and with 3 replicas."""


@dataclass(frozen=True)
class ShareCheck:
    """The share and the steps of a dataset, checked when another dataset is derived from it.

    Attributes:
        share: The share of each batch, and the number of shares.
        steps: Batches of an epoch of training, which is over once its last batch is read; 0 for other splits.
    """

    share: tuple[int, int]
    steps: int = 0

    def check(self) -> None:
        """Checks that the calling functions may derive a dataset.

        Raises:
            RuntimeError: If they would shard a share again: every process would train on a part of its share, and the rest would be lost.
            StateError: If a strategy would read a whole epoch ahead, so that `fit` skips the first one.
        """
        if self.share[1] == 1 and not 0 < self.steps <= _AHEAD:
            return
        frames = list(_frames())
        for frame in frames:
            who = _SHARE_AGAIN.get(_name(frame))
            if who is not None and self.share[1] > 1 and _among_processes(frame):
                raise RuntimeError(
                    f"{who} would shard these batches among the processes, but they are share {self.share[0]} of {self.share[1]} already: "
                    "use `pipe.distribute(strategy)`, or with Keras on JAX `DataParallel(auto_shard_dataset=False)`, or give each process "
                    "whole batches with `runtime: {shard: none}`"
                )
        distributes = any(_name(frame) == _BUILDS for frame in frames)
        fit = next((frame for frame in frames if _name(frame) == _FIT), None)
        if distributes and fit is not None and 0 < self.steps <= _AHEAD and not _counted(fit.f_locals):
            raise StateError(
                f"a distribution strategy may read all {self.steps} steps of an epoch ahead, and `fit` would then skip the first epoch: "
                "pass it `pipe.distribute(strategy)`, or add `pipe.callback()` to `callbacks`, which sets the epoch"
            )


def builds_model() -> bool:
    """Checks for Keras on the call stack, taking a batch only for its shapes before `fit` or `evaluate` begin."""
    return any(_name(frame) == _BUILD_MODEL for frame in _frames())


def fits() -> bool:
    """Checks for Keras' `fit` on the call stack."""
    return any(_name(frame) == _FIT for frame in _frames())


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> tuple[str, str]:
    return frame.f_globals.get("__name__", ""), frame.f_code.co_name


def _among_processes(frame: FrameType) -> bool:
    """Checks that a function of `_SHARE_AGAIN` shards among processes, not among the devices of one."""
    names = frame.f_locals
    if "input_context" in names:
        return bool(getattr(names["input_context"], "num_input_pipelines", 1) > 1)
    distribution = names.get("self")
    return bool(getattr(distribution, "_is_multi_process", False) and getattr(distribution, "auto_shard_dataset", True))


def _counted(names: dict[str, Any]) -> bool:
    """Checks for `pipe.callback()`, which sets the epoch, among the callbacks of `fit`."""
    given = names.get("callbacks")
    listed = getattr(given, "callbacks", None) or (given if isinstance(given, (list, tuple)) else [given])
    return any(getattr(type(one), "_pipegen_counts_epochs", False) for one in listed)
