"""The state of a run: a few lines of JSON that say what has been handed over, for which spec and which data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import StateError
from pipegen.spec.bucketing import bucketed
from pipegen.spec.spec_hash import explain_difference, known_hashes, meaning

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.physical.extent import Extent
    from pipegen.physical.position import Position
    from pipegen.spec.models import PipelineSpec

VERSION = 1
_KEYS = ("epoch", "step", "examples", "spec_hash", "data", "spec")


def make_state(spec: PipelineSpec, spec_hash: str, fingerprint: str, extent: Extent, at: Position) -> dict[str, Any]:
    """Describes a position: what has been handed over of its epoch, and of which spec and data.

    `examples` is the slot of the epoch that comes next, so that a run may go on with another batch size. For `origin` and `shift` see
    `Position`.
    """
    return {
        "pipegen_state": VERSION,
        "epoch": at.epoch,
        "step": at.step,
        "origin": at.origin,
        "shift": at.shift,
        "examples": extent.slot(at),
        "spec_hash": spec_hash,
        "data": fingerprint,
        "spec": meaning(spec),
    }


def position_from(
    state: Mapping[str, Any], spec: PipelineSpec, spec_hash: str, fingerprint: str, extent_at: Callable[[int], Extent]
) -> Position:
    """Returns where to go on.

    Args:
        state: What `make_state` gave, perhaps of a spec with other batch sizes, or of a version that knew no `origin`.
        spec: The spec.
        spec_hash: Its hash.
        fingerprint: Identifies the data.
        extent_at: Gives the epochs of the training split, by the number of one of them.

    Raises:
        StateError: When the state does not fit.
    """
    _check_form(state)
    if state["data"] != fingerprint:
        how = "the arrays hold other values" if spec.source.has_rows() else "files were added, removed, renamed or changed in size"
        raise StateError(f"the data is not what the state was saved with: {how}")
    epoch, step, slot = state["epoch"], state["step"], state["examples"]
    saved = spec
    if state["spec_hash"] not in (spec_hash, *known_hashes(spec)):
        saved = _with_saved_batches(state, spec)
        # Where it means the same all the same, an older version hashed it in another way.
        if state["spec_hash"] not in known_hashes(saved) and explain_difference(state["spec"], meaning(saved)):
            lines = "\n".join(f"  {line}" for line in explain_difference(state["spec"], meaning(spec)))
            raise StateError(f"the spec is not the one that the state was saved with:\n{lines}")
    extent = extent_at(epoch)
    size = _batch_at(saved, epoch)
    slot = state.get("origin", 0) + step * size if size == extent.batch else slot
    if size != extent.batch and slot and bucketed(spec, "train"):
        following = "" if spec.epoch != "pass" else f"; or begin the next epoch with it: `pipe.seek({epoch + 1})`"
        raise StateError(
            f"with `buckets`, an epoch has other batches for each batch size: one that was begun with batches of {size} ends with them, "
            f"and not with {extent.batch}{following}"
        )
    if size != extent.batch and slot and spec.epoch != "pass" and spec.order is not None:
        raise StateError(
            f"with `order`, an epoch of {spec.epoch.steps} steps has other examples for each batch size: one that was begun with batches "
            f"of {size} ends with them, and not with {extent.batch}"
        )
    steps = replace(extent, batch=size).steps
    if step > steps:
        raise StateError(f"the state is at step {step} of an epoch that has {steps} steps")
    if extent.epoch_steps is None and not 0 <= slot - step * size < size:
        raise StateError(f"the state is at step {step} of its epoch and behind {slot} examples of it, in batches of {size}")
    return extent.position(epoch, step, slot, _examples_before(saved, epoch) + state.get("shift", 0) - (slot - step * size))


def _check_form(state: Any) -> None:
    """Checks that a state is whole.

    Raises:
        StateError: Where it is not.
    """
    if not isinstance(state, Mapping):
        raise StateError(f"a state is the map that `pipe.state()` gives, got {type(state).__name__}")
    if state.get("pipegen_state") != VERSION:
        raise StateError(f"this is no pipegen state of version {VERSION}: {', '.join(map(str, state)) or 'it is empty'}")
    missing = [key for key in _KEYS if key not in state]
    if missing:
        raise StateError(f"the state is not whole: it lacks {', '.join(missing)}")
    for key in ("epoch", "step", "examples"):
        if not isinstance(state[key], int) or isinstance(state[key], bool) or state[key] < 0:
            raise StateError(f"`{key}` of the state is {state[key]!r}, which is no count")
    for key in ("origin", "shift"):
        if not isinstance(state.get(key, 0), int):
            raise StateError(f"`{key}` of the state is {state[key]!r}, which is no number of places")


def _with_saved_batches(state: Mapping[str, Any], spec: PipelineSpec) -> PipelineSpec:
    """Returns the spec with the batch sizes that a state was saved with, as far as it tells them."""
    said = state["spec"] if isinstance(state["spec"], Mapping) else {}

    def sized(model: PipelineSpec, of: Any, usual: int) -> PipelineSpec:
        size = of.get("batch", {}).get("size", usual) if isinstance(of, Mapping) and isinstance(of.get("batch", {}), Mapping) else usual
        size = size if isinstance(size, int) and size > 0 else usual
        return model.model_copy(update={"batch": model.batch.model_copy(update={"size": size})})

    found = sized(spec, said, spec.batch.size)
    of_stages = said.get("stages", {})
    if not found.stages or not isinstance(of_stages, Mapping):
        return found
    stages = []
    for number, stage in enumerate(found.stages):
        copied = stage.model_copy()
        copied._resolved = sized(stage.resolved, of_stages.get(str(number), {}), found.batch.size)
        stages.append(copied)
    return found.model_copy(update={"stages": stages})


def saved_sizes(state: Mapping[str, Any], spec: PipelineSpec) -> tuple[int, ...]:
    """Returns the batch size of each stage that a state was saved with; without stages, the one that there is."""
    saved = _with_saved_batches(state, spec)
    return tuple(stage.resolved.batch.size for stage in saved.stages) or (saved.batch.size,)


def _batch_at(spec: PipelineSpec, epoch: int) -> int:
    """Returns the batch size of an epoch."""
    end = 0
    for stage in spec.stages:
        end += stage.epochs
        if epoch < end:
            return stage.resolved.batch.size
    return (spec.stages[-1].resolved if spec.stages else spec).batch.size


def _examples_before(spec: PipelineSpec, epoch: int) -> int:
    """Counts the examples of all epochs before one that each have a number of steps."""
    found, first = 0, 0
    for stage in spec.stages:
        model, epochs = stage.resolved, min(stage.epochs, max(epoch - first, 0))
        found += 0 if model.epoch == "pass" else epochs * model.epoch.steps * model.batch.size
        first += stage.epochs
    model = spec.stages[-1].resolved if spec.stages else spec
    return found + (0 if model.epoch == "pass" else max(epoch - first, 0) * model.epoch.steps * model.batch.size)
