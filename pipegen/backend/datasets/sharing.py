"""Detects uses of distribution strategies that would silently train on other data."""

from __future__ import annotations

from pipegen.errors import StateError
from pipegen.frozen import dataclass
from pipegen.private import keras, tensorflow
from pipegen.private.callers import callers

_AHEAD = 8  # steps that a strategy may read ahead of training: four were seen, with 2 and with 3 replicas


@dataclass(frozen=True)
class ShareCheck:
    """The share and the steps of a dataset, checked when another dataset is derived from it."""

    share: tuple[int, int]  # the share of each batch, and the number of shares
    steps: int = 0  # batches of an epoch of training, which is over once its last batch is read; 0 for other splits

    def check(self) -> None:
        """Checks that the calling functions may derive a dataset. Raises `RuntimeError` if they would shard a share again: every process
        would train on a part of its share, and the rest would be lost; `StateError` if a strategy would read a whole epoch ahead, so that
        `fit` skips the first one."""
        if self.share[1] == 1 and not 0 < self.steps <= _AHEAD:
            return
        found = list(callers())
        for caller in found if self.share[1] > 1 else ():
            by_strategy = tensorflow.shards_dataset(caller)
            if by_strategy or keras.shards_dataset(caller):
                who = "`strategy.experimental_distribute_dataset`" if by_strategy else "Keras' `auto_shard_dataset`"
                raise RuntimeError(
                    f"{who} would shard these batches among the processes, but they are share {self.share[0]} of {self.share[1]} already: "
                    "use `pipe.distribute(strategy)`, or with Keras on JAX `DataParallel(auto_shard_dataset=False)`, or give each process "
                    "whole batches with `runtime: {shard: none}`"
                )
        fits = next((given for given in map(keras.callbacks_of_fit, found) if given is not None), None)
        if fits is None or not 0 < self.steps <= _AHEAD or not any(map(tensorflow.distributes_dataset, found)):
            return
        if not any(getattr(type(one), "_pipegen_counts_epochs", False) for one in fits):  # of `pipe.callback()`
            raise StateError(
                f"a distribution strategy may read all {self.steps} steps of an epoch ahead, and `fit` would then skip the first epoch: "
                "pass it `pipe.distribute(strategy)`, or add `pipe.callback()` to `callbacks`, which sets the epoch"
            )
