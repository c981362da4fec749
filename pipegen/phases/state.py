"""The state of a run: a few lines of JSON that say what has been handed over, for which spec and which data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipegen.errors import StateError
from pipegen.spec.spec_hash import explain_difference, known_hashes, meaning

if TYPE_CHECKING:
    from pipegen.spec.models import PipelineSpec

VERSION = 1
_KEYS = ("epoch", "step", "examples", "spec_hash", "data", "spec")


def make_state(spec: PipelineSpec, spec_hash: str, fingerprint: str, epoch: int, step: int) -> dict[str, Any]:
    """The state after `step` batches of `epoch`.

    `examples` counts in global examples, so that a run may go on with another batch size.
    """
    return {
        "pipegen_state": VERSION,
        "epoch": epoch,
        "step": step,
        "examples": step * spec.batch.size,
        "spec_hash": spec_hash,
        "data": fingerprint,
        "spec": meaning(spec),
    }


def position_from(state: Mapping[str, Any], spec: PipelineSpec, spec_hash: str, fingerprint: str, steps: int) -> tuple[int, int]:
    """The epoch and the step to go on with.

    Raises:
        StateError: When the state does not fit.
    """
    if not isinstance(state, Mapping):
        raise StateError(f"a state is the map that `pipe.state()` gives, got {type(state).__name__}")
    if state.get("pipegen_state") != VERSION:
        raise StateError(f"this is no pipegen state of version {VERSION}: {', '.join(map(str, state)) or 'it is empty'}")
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise StateError(f"the state is not whole: it lacks {', '.join(missing)}")
    if state["data"] != fingerprint:
        how = "the arrays hold other values" if spec.source.has_rows() else "files were added, removed, renamed or changed in size"
        raise StateError(f"the data is not what the state was saved with: {how}")
    for key in ("epoch", "step", "examples"):
        if not isinstance(state[key], int) or isinstance(state[key], bool) or state[key] < 0:
            raise StateError(f"`{key}` of the state is {state[key]!r}, which is no count")
    epoch, step = state["epoch"], state["step"]
    if state["spec_hash"] not in (spec_hash, *known_hashes(spec)):
        batch = _only_batch_size(state, spec)
        if batch is None:
            lines = "\n".join(f"  {line}" for line in explain_difference(state["spec"], meaning(spec)))
            raise StateError(f"the spec is not the one that the state was saved with:\n{lines}")
        epoch, step = _convert(epoch, int(state["examples"]), batch, spec, steps)
    if step > steps:
        raise StateError(f"the state is at step {step} of an epoch that has {steps} steps")
    return epoch, step


def _only_batch_size(state: Mapping[str, Any], spec: PipelineSpec) -> int | None:
    """The saved batch size, when nothing else differs."""
    size = state["spec"].get("batch", {}).get("size")
    if spec.stages:
        return None  # each has a batch of its own, and so have its epochs
    if not isinstance(size, int) or size < 1:
        return None
    as_saved = spec.model_copy(update={"batch": spec.batch.model_copy(update={"size": size})})
    return size if state["spec_hash"] in known_hashes(as_saved) else None


def _convert(epoch: int, examples: int, saved_batch: int, spec: PipelineSpec, steps: int) -> tuple[int, int]:
    """The position in batches of the new size."""
    size = spec.batch.size
    if spec.epoch != "pass" and spec.order is not None:
        raise StateError(
            f"with `order`, an epoch of {spec.epoch.steps} steps has other examples for each batch size; "
            f"the state was saved with batches of {saved_batch}, not {size}"
        )
    if spec.epoch != "pass":
        examples += epoch * spec.epoch.steps * saved_batch
        epoch = 0
    if examples % size:
        raise StateError(
            f"the state is {examples} examples into the epoch, which is no whole number of batches of {size}; "
            f"it was saved with batches of {saved_batch}"
        )
    step = examples // size
    return (epoch + step // steps, step % steps) if spec.epoch != "pass" else (epoch, step)
