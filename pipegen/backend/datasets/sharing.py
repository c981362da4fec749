"""Notices that somebody is about to distribute batches in a way that would train on other data, without an error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pipegen.errors import StateError

_BUILDS = ("tensorflow.python.distribute.input_lib", "_create_cloned_datasets_from_dataset")
_SHARE_AGAIN = {
    _BUILDS: "`strategy.experimental_distribute_dataset`",
    ("keras.src.distribution.distribution_lib", "distribute_dataset"): "Keras' `auto_shard_dataset`",
}
"""What shares a dataset among processes: nothing tells a dataset of it, but these functions build on it."""
_FIT = ("keras.src.backend.tensorflow.trainer", "fit")
_BUILD_MODEL = ("keras.src.backend.tensorflow.trainer", "_maybe_symbolic_build")
_AHEAD = 8
"""Steps that a strategy may read before the first is trained on: four were seen, with 2 and with 3 replicas."""


@dataclass(frozen=True)
class Handed:
    """Says what is handed over, for whoever builds on it.

    Attributes:
        share: Which share of each batch, and of how many.
        steps: Of training, the batches of an epoch, which is over when its last batch was read; of other splits 0.
    """

    share: tuple[int, int]
    steps: int = 0

    def check(self) -> None:
        """Checks that what is called now may build on it.

        Raises:
            RuntimeError: Where it would share a share again: every process would train on a part of its part, and the rest of each batch on
                none.
            StateError: Where a strategy would read a whole epoch ahead, and `fit` would skip the first one.
        """
        if self.share[1] == 1 and not 0 < self.steps <= _AHEAD:
            return
        frames = list(_frames())
        for frame in frames:
            who = _SHARE_AGAIN.get(_name(frame))
            if who is not None and self.share[1] > 1 and _among_processes(frame):
                raise RuntimeError(
                    f"{who} would share these batches among the processes, and they are share {self.share[0]} of {self.share[1]} already: "
                    "use `pipe.distribute(strategy)`, or with Keras on JAX `DataParallel(auto_shard_dataset=False)`; or give each process "
                    "whole batches by `runtime: {shard: none}`"
                )
        distributes = any(_name(frame) == _BUILDS for frame in frames)
        fit = next((frame for frame in frames if _name(frame) == _FIT), None)
        if distributes and fit is not None and 0 < self.steps <= _AHEAD and not _counted(fit.f_locals):
            raise StateError(
                f"a distribution strategy reads ahead, which can be all {self.steps} steps of an epoch, and `fit` would skip the first "
                "one: give it `pipe.distribute(strategy)`, or add `pipe.callback()` to `callbacks`, which says which epoch it is"
            )


def builds_model() -> bool:
    """Returns whether Keras asks for a batch only to see its shapes, before `fit` or `evaluate` begin."""
    return any(_name(frame) == _BUILD_MODEL for frame in _frames())


def fits() -> bool:
    """Returns whether Keras' `fit` asks."""
    return any(_name(frame) == _FIT for frame in _frames())


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _name(frame: FrameType) -> tuple[str, str]:
    return frame.f_globals.get("__name__", ""), frame.f_code.co_name


def _among_processes(frame: FrameType) -> bool:
    """Returns whether a function of `_SHARE_AGAIN` shares among processes, and not among the devices of one."""
    names = frame.f_locals
    if "input_context" in names:
        return bool(getattr(names["input_context"], "num_input_pipelines", 1) > 1)
    distribution = names.get("self")
    return bool(getattr(distribution, "_is_multi_process", False) and getattr(distribution, "auto_shard_dataset", True))


def _counted(names: dict[str, Any]) -> bool:
    """Returns whether `fit` has a callback of ours, which says which epoch it is."""
    given = names.get("callbacks")
    listed = getattr(given, "callbacks", None) or (given if isinstance(given, (list, tuple)) else [given])
    return any(getattr(type(one), "_pipegen_counts_epochs", False) for one in listed)
