"""Notices that somebody is about to share out batches that are a share already."""

from __future__ import annotations

import sys
from types import FrameType

_SHARE_AGAIN = {
    ("tensorflow.python.distribute.input_lib", "_create_cloned_datasets_from_dataset"): "`strategy.experimental_distribute_dataset`",
    ("keras.src.distribution.distribution_lib", "distribute_dataset"): "Keras' `auto_shard_dataset`",
}
"""What shares a dataset among processes: nothing tells a dataset of it, but these functions build on it."""


def refuse_second_share(share: tuple[int, int]) -> None:
    """Raises where what is called now would share batches again, of which this process has its share.

    Every process would train on a part of its part, and the rest of each batch on none, without an error.

    Raises:
        RuntimeError: With what to do instead.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        who = _SHARE_AGAIN.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name))
        if who is not None and _among_processes(frame):
            raise RuntimeError(
                f"{who} would share these batches among the processes, and they are share {share[0]} of {share[1]} already: "
                "use `pipe.distribute(strategy)`, or with Keras on JAX `DataParallel(auto_shard_dataset=False)`; or give each process "
                "whole batches by `runtime: {shard: none}`"
            )
        frame = frame.f_back


def _among_processes(frame: FrameType) -> bool:
    """Returns whether a function of `_SHARE_AGAIN` shares among processes, and not among the devices of one."""
    names = frame.f_locals
    if "input_context" in names:
        return bool(getattr(names["input_context"], "num_input_pipelines", 1) > 1)
    distribution = names.get("self")
    return bool(getattr(distribution, "_is_multi_process", False) and getattr(distribution, "auto_shard_dataset", True))
