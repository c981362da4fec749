"""The stages of a training: `pipe.stages`, and the pipeline whose training split goes through them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from pipegen.api.pipeline import Pipeline
from pipegen.arguments import file_or_folder, whole
from pipegen.data.sampling import examples_of_epoch
from pipegen.data.sides import in_buckets
from pipegen.lazy import untraced
from pipegen.physical.decide import extent_of
from pipegen.physical.extent import Position

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from pipegen.backend.datasets.callback import StageCallback
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.phases.specs import CompiledSpec, Spec
    from pipegen.physical.extent import Extent
    from pipegen.spec.models import PipelineSpec


class Timeline:
    """Counts the epochs of all stages, and the batches in them.

    Args:
        epochs: How many epochs each stage has.
        steps: How many batches an epoch of each has.
    """

    def __init__(self, epochs: list[int], steps: list[int]) -> None:
        self.steps = steps
        self.firsts = [0, *accumulate(epochs)]
        self._before = [0, *accumulate(n * per for n, per in zip(epochs, steps, strict=True))]

    @property
    def end(self) -> int:
        """Returns the epochs of all stages together."""
        return self.firsts[-1]

    def stage(self, epoch: int) -> int:
        """Returns the number of the stage that an epoch is in; one behind the end is in the last."""
        return min(bisect_right(self.firsts, epoch) - 1, len(self.steps) - 1)

    def of_sizes(self, extents: Sequence[Extent], sizes: Sequence[int]) -> Timeline:
        """Returns the same with batches of other sizes, of the epochs of each stage."""
        steps = [replace(extent, batch=size).steps for extent, size in zip(extents, sizes, strict=True)]
        return Timeline([end - begin for begin, end in pairwise(self.firsts)], steps)

    def batches(self, epoch: int, step: int) -> int:
        """Counts the batches before a position."""
        number = self.stage(epoch)
        return self._before[number] + (epoch - self.firsts[number]) * self.steps[number] + step

    def at(self, batches: int) -> tuple[int, int]:
        """Returns the epoch and the step that follow so many batches."""
        number = min(bisect_right(self._before, batches) - 1, len(self.steps) - 1)
        epoch, step = divmod(batches - self._before[number], max(self.steps[number], 1))
        return self.firsts[number] + epoch, step


@untraced
class Stage(Pipeline):
    """Runs a spec as it is in one stage of training: with the stage's params and its batch.

    Its training split has the stage's epochs, counted over all stages. The position is that of the whole training: an iterator over
    `.train` goes on there, and begins at the stage's first epoch where the training has not come so far.

    Attributes:
        index: The number of the stage, from 0.
    """

    def __init__(self, compiled: CompiledSpec, of: StagedPipeline, index: int) -> None:
        super().__init__(compiled, of._rebuild, of._shared)
        self.index = index
        self._of = of

    @property
    def epochs(self) -> int:
        """Returns the epoch that the stage ends before, counted over all stages: what Keras' `fit` calls `epochs`."""
        return self._of.timeline.firsts[self.index + 1]

    @property
    def initial_epoch(self) -> int:
        """Returns the epoch that `fit` begins with: the stage's first one, or where the training is; of a finished stage, its end."""
        return min(max(self._of.timeline.firsts[self.index], self._of.position[0]), self.epochs)

    @property
    def finished(self) -> bool:
        """Returns whether the training is past this stage."""
        return self.initial_epoch == self.epochs

    def __reduce__(self) -> tuple[Callable[..., Pipeline], tuple[Any, ...]]:
        return _stage_of, (self._rebuild, self._of.spec, self.index)

    def __getitem__(self, split: str) -> PipelineDataset:
        self._of.release(self.index)
        return super().__getitem__(split)

    def __repr__(self) -> str:
        first = self._of.timeline.firsts[self.index]
        return f"Stage {self.index}, epochs {first} to {self.epochs - 1}, of {super().__repr__()}"

    def _release(self) -> None:
        """Lets go of what the datasets of this stage hold; it is made anew if they are asked for."""
        from pipegen.backend.datasets.engine import Engine

        if self._engine.executors():
            self._engine = Engine(self._compiled, {s: done.plan for s, done in self._compiled.splits.items()}, self._of._shared)

    # The position is that of the whole training.

    def state(self) -> dict[str, Any]:
        return self._of.state()

    def _extent_at(self, epoch: int) -> Extent:
        return self._of._extent_at(epoch)

    def _state_at(self, at: Position) -> dict[str, Any]:
        return self._of._state_at(at)

    def _position_of(self, state: Mapping[str, Any]) -> Position:
        return self._of._position_of(state)

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        self._of.seek(epoch, step, origin=origin, shift=shift)

    def _seek(self, at: Position) -> None:
        self._of._seek(at)

    def callback(self, directory: str | os.PathLike[str] | None = None, *, save_freq: str | int = "epoch") -> StageCallback:
        """Makes the Keras callback for `fit` over this stage; see `Pipeline.callback`.

        Keras' `BackupAndRestore` removes its folder at the end of each `fit`. This callback, behind it and with the same folder, keeps
        there the weights that a stage has ended with, until the last one ends: a process that is killed between two stages goes on there.
        """
        from pipegen.backend.datasets.callback import StageCallback

        at = None if directory is None else file_or_folder("directory", directory, "checkpoints/")
        return StageCallback(self._of, self, at, save_freq)


def _stage_of(rebuild: Callable[[Spec], Pipeline], spec: Spec, index: int) -> Pipeline:
    return rebuild(spec).stages[index]


@untraced
class StagedPipeline(Pipeline):
    """Runs a spec with stages: `.train` is that of the first unfinished one, and everything else goes by the spec as it is written."""

    def __init__(self, compiled: CompiledSpec, rebuild: Callable[[Spec], Pipeline], stages: tuple[CompiledSpec, ...]) -> None:
        from pipegen.backend.datasets.engine import Shared

        self._shared = Shared()
        super().__init__(compiled, rebuild, self._shared)
        models = [stage.spec.model for stage in stages]
        self.extents = tuple(self._extent_of(model, stage) for model, stage in zip(models, stages, strict=True))
        self.timeline = Timeline([stage.epochs for stage in self.spec.model.stages], [extent.steps for extent in self.extents])
        self._stages = tuple(Stage(stage, self, index) for index, stage in enumerate(stages))

    def _extent_of(self, model: PipelineSpec, stage: CompiledSpec) -> Extent:
        examples, buckets = examples_of_epoch(model, self._manifest, "train"), in_buckets(model, self._manifest, "train")
        return extent_of(model, stage.plans["train"], examples, buckets=() if buckets is None else buckets.counts)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self._stages

    @property
    def position(self) -> Position:
        """Returns what comes next."""
        return self._shared.progress.position()

    @property
    def current(self) -> Stage:
        """Returns the first unfinished stage; once all are finished, the last one."""
        return self._stages[self.timeline.stage(self.position[0])]

    def release(self, before: int) -> None:
        """Lets finished stages before one go, with their caches."""
        for stage in self._stages[:before]:
            if stage.finished:
                stage._release()

    def _at(self, split: str, epoch: int | None = None) -> Pipeline:
        self._require(split)
        if split != "train":
            return self
        return self.current if epoch is None else self._stages[self.timeline.stage(whole("epoch", epoch))]

    def __getitem__(self, split: str) -> PipelineDataset:
        return super().__getitem__(split) if split != "train" else self.current[split]

    # Resuming

    def state(self) -> dict[str, Any]:
        return self._state_at(self.position)

    def _extent_at(self, epoch: int) -> Extent:
        return self.extents[self.timeline.stage(epoch)]

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        epoch, step, origin, shift = whole("epoch", epoch, 0), whole("step", step, 0), whole("origin", origin), whole("shift", shift)
        most = self._extent_at(epoch).steps_from(origin)
        if step > most or (epoch, step) > (self.timeline.end, 0):
            raise ValueError(
                f"epoch {epoch}, step {step} is not in the stages: they have {self.timeline.end} epochs, and one there {most} steps"
            )
        at = self._extent_at(epoch).counted(epoch, step, origin, shift)
        self._seek(self.position if self.position[:2] == at[:2] and not origin and not shift else at)

    def _seek(self, at: Position) -> None:
        if at.origin:
            self._stages[self.timeline.stage(at.epoch)]._engine.check_last("train", at)
        self._shared.progress.seek(self._extent_at(at.epoch).settled(at))

    def callback(self, directory: str | os.PathLike[str] | None = None, *, save_freq: str | int = "epoch") -> StageCallback:
        """Makes the Keras callback for `fit` over whichever stage; see `Stage.callback`."""
        from pipegen.backend.datasets.callback import StageCallback

        at = None if directory is None else file_or_folder("directory", directory, "checkpoints/")
        return StageCallback(self, None, at, save_freq)
