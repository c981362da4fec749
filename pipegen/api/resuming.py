"""Offers what a `Pipeline` has for going on where a run stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.phases.state import make_state, position_from
from pipegen.untraced import untraced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.backend.datasets.engine import Engine
    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Spec


@untraced
class Resumes:
    """Tells where the training split stands, and goes on there."""

    spec: Spec
    _manifest: Manifest
    _engine: Engine

    if TYPE_CHECKING:

        def steps(self, split: str) -> int: ...

        def _require(self, split: str) -> None: ...

        def _position(self, split: str, epoch: int, step: int) -> tuple[int, int]: ...

    def state(self) -> dict[str, Any]:
        """Returns where the training split stands, as plain JSON: what has been handed over, and for which spec and data."""
        self._require("train")
        epoch, step = self._engine.train_progress().position()
        return self._state_at(epoch, step)

    def _state_at(self, epoch: int, step: int) -> dict[str, Any]:
        return make_state(self.spec.model, self.spec.hash, self._manifest.split_fingerprint, epoch, step)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Lets the training split go on where a state was taken.

        Raises:
            StateError: When the spec or the data differs; it says in words what does.
        """
        self.seek(*self._position_of(state))

    def _position_of(self, state: Mapping[str, Any]) -> tuple[int, int]:
        return position_from(state, self.spec.model, self.spec.hash, self._manifest.split_fingerprint, self.steps("train"))

    def seek(self, epoch: int, step: int = 0) -> None:
        """Lets the training split go on at a step of an epoch: the next iterator over `.train` starts there.

        Args:
            epoch: The epoch, from 0.
            step: Its first step; as many as an epoch has stand for the start of the next one.

        Raises:
            ValueError: For an unknown epoch or step.
        """
        epoch, step = self._position("train", epoch, step)
        self._engine.train_progress().seek(epoch, step)
