"""Protocols of a `Pipeline`, for its batches and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import tensorflow as tf

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.data.manifest import Manifest
    from pipegen.phases.specs import Spec
    from pipegen.phases.state import Timeline
    from pipegen.physical.extent import Extent, Position


class Owner(Protocol):
    """A pipeline, as returned by `pipegen.build`; `Pipeline` documents the members."""

    spec: Spec
    _manifest: Manifest
    _engine: Engine

    @property
    def train(self) -> PipelineDataset: ...

    @property
    def spec_hash(self) -> str: ...

    @property
    def class_names(self) -> tuple[str, ...]: ...

    @property
    def element_spec(self) -> Any: ...

    def __getitem__(self, split: str) -> PipelineDataset: ...

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, split: object) -> bool: ...

    def steps(self, split: str) -> int: ...

    def num_examples(self, split: str) -> int: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any]) -> None: ...

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None: ...

    def distribute(self, strategy: tf.distribute.Strategy, split: str = "train") -> Any: ...

    def _require(self, split: str) -> None: ...

    def _at(self, split: str, epoch: int | None = None) -> Owner: ...

    def _position(self, split: str, epoch: int, step: int, origin: int = 0, shift: int = 0) -> Position: ...

    def _from(self, split: str, at: Position, shard: tuple[int, int] | None = None, *, sends: bool = False) -> PipelineDataset: ...

    def _seek(self, at: Position) -> None: ...

    def _extent_at(self, epoch: int) -> Extent: ...

    def _state_at(self, at: Position) -> dict[str, Any]: ...

    def _position_of(self, state: Mapping[str, Any]) -> Position: ...


class OwnerInStage(Owner, Protocol):
    """A pipeline in one stage of a training."""

    index: int

    @property
    def epochs(self) -> int: ...


class OwnerOfStages(Owner, Protocol):
    """A pipeline whose training has stages."""

    @property
    def timeline(self) -> Timeline: ...

    @property
    def current(self) -> OwnerInStage: ...

    @property
    def stages(self) -> Sequence[OwnerInStage]: ...
