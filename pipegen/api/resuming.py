"""Offers what a `Pipeline` has for going on where a run stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.arguments import whole
from pipegen.phases.state import make_state, position_from
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Spec
    from pipegen.physical.extent import Extent
    from pipegen.physical.position import Position


@untraced
class Resumes:
    """Tells where the training split stands, and goes on there."""

    spec: Spec
    _manifest: Manifest
    _engine: Engine

    if TYPE_CHECKING:

        def _require(self, split: str) -> None: ...

        def _at(self, split: str, epoch: int | None = None) -> Resumes: ...

    def _position(self, split: str, epoch: int, step: int, origin: int = 0, shift: int = 0) -> Position:
        self._require(split)
        epoch, step, origin, shift = whole("epoch", epoch), whole("step", step), whole("origin", origin), whole("shift", shift)
        extent = self._engine.executor(split).order
        steps = extent.steps_from(origin)
        if not 0 <= step <= steps or epoch < 0:
            raise ValueError(f"epoch {epoch}, step {step} is not in split {split!r}, whose epochs have {steps} steps")
        return extent.counted(epoch, step, origin, shift)

    def _from(self, split: str, at: Position, shard: tuple[int, int] | None = None, *, sends: bool = False) -> PipelineDataset:
        """Returns what is left of an epoch of a split; what `sends` leaves the last kernels to a device."""
        return self._at(split, at.epoch)._engine.fixed(split, at, shard, None, sends=sends)

    def state(self) -> dict[str, Any]:
        """Returns where the training split stands, as plain JSON: what has been handed over, and for which spec and data.

        A run may go on from it with batches of another size, and on another number of hosts. The rest of the epoch is then cut into batches
        of that size: `origin` is the slot of the epoch that its step 0 begins at, or would, and the next epoch begins at slot 0. With
        `epoch: {steps: N}`, `shift` is how many places later a batch stands in the order than if all before it had been of this size.
        """
        self._require("train")
        return self._state_at(self._engine.train_progress().position())

    def _extent_at(self, epoch: int) -> Extent:
        """Returns the epochs of the training split, of which the number of one is given."""
        self._require("train")
        return self._engine.executor("train").order

    def _state_at(self, at: Position) -> dict[str, Any]:
        return make_state(self.spec.model, self.spec.hash, self._manifest.split_fingerprint, self._extent_at(at.epoch), at)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Lets the training split go on where a state was taken, be it with batches of another size or on another number of hosts.

        Raises:
            StateError: When the spec, but for the size of batches, or the data differs; it says in words what does.
            SpecError: `PG412` where what is left of the epoch gives some host fewer steps than others.
        """
        self._seek(self._position_of(state))

    def _position_of(self, state: Mapping[str, Any]) -> Position:
        self._require("train")
        model, fingerprint = self.spec.model, self._manifest.split_fingerprint
        return position_from(state, model, self.spec.hash, fingerprint, self._extent_at)

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        """Lets the training split go on at a step of an epoch: the next iterator over `.train` starts there.

        Args:
            epoch: The epoch, from 0.
            step: Its first step; as many as an epoch has stand for the start of the next one.
            origin: The slot of the epoch that its step 0 begins at, where it was begun with batches of another size: see `state`.
            shift: With `epoch: {steps: N}`, how many places later in the order it stands for that reason: see `state`.

        Raises:
            ValueError: For an unknown epoch or step.
        """
        at, now = self._position("train", epoch, step, origin, shift), self._engine.train_progress().position()
        # Where the training stands there already, it goes on as it would have done.
        self._seek(now if now[:2] == at[:2] and not origin and not shift else at)

    def _seek(self, at: Position) -> None:
        self._engine.check_last("train", at)
        self._engine.train_progress().seek(at)
