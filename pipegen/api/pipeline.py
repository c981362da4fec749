"""The façade: the `Pipeline` that `pipegen.build` gives. TensorFlow is imported when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from pipegen.api.frameworks import Feeds
from pipegen.api.predicting import Predicts
from pipegen.api.resuming import Resumes
from pipegen.api.serving import Serves, leaves_steps
from pipegen.api.written import WrittenDown
from pipegen.arguments import called_with_count, file_or_folder, got, share, text, whole
from pipegen.data.split_names import meant_split
from pipegen.diagnostics.foreign import member
from pipegen.physical.position import FIRST
from pipegen.terminal import visible
from pipegen.untraced import untraced

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    import keras
    import numpy as np
    from PIL import Image

    from pipegen.api.stages import Stage
    from pipegen.backend.datasets.callback import ResumeCallback
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.datasets.shared import Shared
    from pipegen.backend.service.ordering import Fed
    from pipegen.notebook import Explanation
    from pipegen.phases.specs import CompiledSpec, Spec
    from pipegen.plan.nodes import Plan
    from pipegen.views.export import Exported


LIVE: WeakSet[Pipeline] = WeakSet()
"""The pipelines of this process that somebody holds."""


@untraced
class Pipeline(Feeds, Predicts, Resumes, Serves, WrittenDown):
    """Runs a compiled spec on its data. `pipegen.build` makes it."""

    def __init__(self, compiled: CompiledSpec, rebuild: Callable[[Spec], Pipeline], shared: Shared | None = None) -> None:
        from pipegen.backend.datasets.engine import Engine

        self.spec = compiled.spec
        self._rebuild = rebuild
        self._manifest = compiled.manifest
        self._plans = compiled.plans
        self._compiled = compiled
        LIVE.add(self)
        self._engine = Engine(compiled, {split: done.plan for split, done in compiled.splits.items()}, shared)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Returns the stages of training, each a pipeline of its own; none where the spec has no `stages`.

        `for stage in pipe.stages: model.fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs)`.
        """
        return ()

    @property
    def _main(self) -> Plan:
        """The plan of the training split, or without one of the first."""
        return self._plans["train" if "train" in self._plans else next(iter(self._plans))]

    def _require(self, split: str) -> None:
        if not isinstance(split, str):
            raise TypeError(f"a split is named by text, such as {self._main.split!r}, got {got(split)}; {', '.join(self._plans)} are there")
        if split not in self._plans:
            raise KeyError(f"there is no split {split!r}{meant_split(split, self._plans)}")

    def _at(self, split: str, epoch: int | None = None) -> Pipeline:
        """Returns what has a split at an epoch, or now: the pipeline itself; where training has stages, for its split one of these."""
        self._require(split)
        return self

    if not TYPE_CHECKING:  # a type checker that sees it takes every attribute for one that is there

        def __getattr__(self, name: str) -> Any:
            """Says which splits there are, where code asks for one by a name that is no attribute, such as `pipe.val`."""
            plans = self.__dict__.get("_plans")
            if plans is None or name.startswith("_"):
                raise AttributeError(f"'Pipeline' object has no attribute {name!r}", name=name, obj=self)
            meant = member(name) or meant_split(name, self._plans)
            raise AttributeError(f"a pipeline has no attribute {name!r}{meant}", name=name, obj=self)

    # Datasets

    @property
    def train(self) -> PipelineDataset:
        """Returns the training split. An iteration over it counts as an epoch when its last batch has been handed over.

        The iterators of a distribution strategy read a few batches ahead, which can be a whole epoch of few steps: give
        `fit` the `callback` there, which says which epoch it is.
        """
        return self["train"]

    @property
    def validation(self) -> PipelineDataset:
        """Returns the validation split: complete and in source order."""
        return self["validation"]

    @property
    def test(self) -> PipelineDataset:
        """Returns the test split: complete and in source order."""
        return self["test"]

    def __getitem__(self, split: str) -> PipelineDataset:
        self._require(split)
        return self._engine.dataset(split)

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def __reduce__(self) -> tuple[Callable[..., Pipeline], tuple[Spec]]:
        """A copy, or a pickle read elsewhere, is built from the spec, the arrays and the permissions that it had, and starts anew."""
        return self._rebuild, (self.spec,)

    def __contains__(self, split: object) -> bool:
        return isinstance(split, str) and split in self._plans

    @property
    def splits(self) -> tuple[str, ...]:
        """Returns the names of the splits, in the order that the spec names them."""
        return tuple(self._plans)

    def dataset(
        self,
        split: str,
        *,
        epoch: int = 0,
        step: int = 0,
        origin: int = 0,
        shift: int = 0,
        shard: tuple[int, int] | None = None,
        device: str | None = None,
        stages: Literal["all", "element"] = "all",
    ) -> PipelineDataset:
        """Returns one epoch of a split from one step on. It holds no state, so that strategies, services and evaluation can use it.

        Args:
            split: The split.
            epoch: Which epoch, from 0; it decides the order and the draws of the training split.
            step: The first step.
            origin: The slot of the epoch that its step 0 begins at, where it was begun with batches of another size: see `state`.
            shift: With `epoch: {steps: N}`, how many places later in the order it stands for that reason: see `state`.
            shard: `(index, count)`: which share of each global batch, in place of the spec's.
            device: Prefetch to this device, such as `GPU:0`; `auto` is the first accelerator. By default that of
                `runtime: {prefetch: {device: …}}`; `none` leaves the batches where they are, as distribution strategies need it.
            stages: `all`, or `element` for a model that holds `pipe.layer()`: what that does is left out. Nothing is cached then.

        Raises:
            ValueError: For an unknown epoch, step, share or device.
            SpecError: With `stages="element"`, where random steps stand among those of the layer.
        """
        pipe = self._at(split, epoch)
        at = pipe._position(split, epoch, step, origin, shift)
        sent = pipe._engine.device(split, None if device is None else text("device", device, "GPU:0"))
        given = split, at, share(shard), sent
        return pipe._before_layer(*given) if leaves_steps(stages) else pipe._engine.fixed(*given)

    def peek(self, split: str = "train", n: int = 1) -> Any:
        """Returns the next `n` examples of a split as NumPy arrays, and moves nothing."""
        from pipegen.views.peek import peek

        pipe = self._at(split)
        at = pipe._engine.train_progress().position() if split == "train" else FIRST
        return peek(pipe._engine.executor(split), lambda at: self._from(split, at), at, whole("n", n, 1))

    def preview(
        self,
        split: str = "train",
        *,
        rows: int = 6,
        draws: int = 5,
        epoch: int = 0,
        cell: int = 144,
        progress: Callable[[int], None] | None = None,
    ) -> Image.Image:
        """Draws a contact sheet: originals beside several augmented draws, with class names.

        Args:
            split: The split.
            rows: How many originals, spread over the split.
            draws: Augmented versions of each, from as many epochs.
            epoch: The epoch of the first version.
            cell: The longer side of each picture, in pixels.
            progress: Called with how many rows are drawn.
        """
        from pipegen.views.preview import contact_sheet

        engine = self._at(split, epoch)._engine
        called_with_count("progress", progress)
        rows, draws, cell = (whole(name, value, 1) for name, value in (("rows", rows), ("draws", draws), ("cell", cell)))
        return contact_sheet(engine, split, rows=rows, draws=draws, first_epoch=whole("epoch", epoch, 0), cell=cell, progress=progress)

    def export(
        self,
        folder: str | os.PathLike[str],
        split: str = "train",
        *,
        examples: int | None = 32,
        draws: int = 1,
        epoch: int = 0,
        form: Literal["png", "jpeg"] = "png",
        quality: int = 95,
        prefix: str = "",
        overwrite: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Exported:
        """Writes augmented examples as image files, and a table of what was drawn for each.

        Args:
            folder: Where to; it is made, and must be empty unless `overwrite` says otherwise. The table is its `metadata.jsonl`.
            split: The split.
            examples: How many, in the order of the first epoch; `None` for each epoch as training sees it: a last batch that
                `remainder: drop` leaves out is not written, and `left_out` of the result counts it.
            draws: Versions of each, from as many epochs.
            epoch: The first of them.
            form: `png` or `jpeg`.
            quality: Of a JPEG, 1 to 100.
            prefix: What file names begin with.
            overwrite: Take a folder that is not empty, and replace files of the same names.
            progress: Called with how many examples are written.
        """
        from pipegen.views.export import Wanted, export

        pipe = self._at(split, epoch)
        called_with_count("progress", progress)
        count = None if examples is None else whole("examples", examples, 1)
        draws, epoch, quality = whole("draws", draws, 1), whole("epoch", epoch, 0), whole("quality", quality, 1, 100)
        at = file_or_folder("folder", folder, "augmented/")
        wanted = Wanted(at, count, draws, epoch, form, quality, text("prefix", prefix, "rose-"), overwrite)
        return export(pipe._engine, pipe._plans[split], wanted, progress)

    # What is known about the data

    def files(self, split: str) -> Sequence[str]:
        """Returns the files of a split in source order, the order of `predict` outside training; for rows, their numbers as text.

        With `batch.buckets`, those of one bucket come behind those of another, as `predict` sees them.
        """
        self._require(split)
        files, order = self._manifest.files(split), self._order(split)
        files = files if order is None else files.take(order)
        return files if self._manifest.listing.shards is not None else tuple(files)

    def labels(self, split: str) -> np.ndarray[Any, Any] | None:
        """Returns the class index of each example of a split, int64, in the order of `files`, or `None` without labels."""
        self._require(split)
        labels, order = self._manifest.labels(split), self._order(split)
        return labels if labels is None or order is None else labels[order]

    def _order(self, split: str) -> np.ndarray[Any, Any] | None:
        """Returns the places of a split's examples in the listing as its batches have them; `None` where that is the listing's order."""
        from pipegen.data.buckets import stored_order

        return stored_order(self.spec.model, self._manifest, split)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Returns the classes in the order of their indices."""
        return self._manifest.class_names

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        self._require(split)
        return self._manifest.num_examples(split)

    def steps(self, split: str) -> int:
        """Counts the batches in an epoch of a split; serves `steps_per_epoch` where a dataset's length is unknown.

        Where training has stages, an epoch of its split is one of the current stage.
        """
        return self._at(split)._engine.executor(split).steps

    def fed(self) -> Fed:
        """Counts the batches of the training split that workers of the tf.data service made, and those made here beside them.

        All are 0 without `runtime.service`. Batches are taken ahead, so that some may not have been handed over yet. Where training has
        stages, they are those of the current one.
        """
        from pipegen.backend.service.ordering import Fed

        return self._at("train")._engine.fed() if "train" in self else Fed()

    @property
    def class_weights(self) -> dict[int, float] | None:
        """Returns balanced weights of the training classes, for `fit(class_weight=)`: examples / (classes × examples of the class).

        Where `sampling` repeats examples, they count as often as they are seen: of balanced classes, each weighs 1.
        """
        from pipegen.data.sampling.choice import class_weights

        return class_weights(self.spec.model, self._manifest) if "train" in self._plans else None

    @property
    def element_spec(self) -> Any:
        """Returns the shapes and dtypes of a training batch; without a training split, of the first split's."""
        return self[self._main.split].element_spec

    @property
    def spec_hash(self) -> str:
        """Identifies the meaning of the spec; see also `fingerprint`."""
        return self.spec.hash

    @property
    def fingerprint(self) -> str:
        """Identifies the data wherever it is mounted: files by relative names and sizes, arrays by what they hold."""
        return self._manifest.fingerprint

    def callback(self, directory: str | os.PathLike[str] | None = None, *, save_freq: str | int = "epoch") -> ResumeCallback:
        """Makes a Keras callback that starts the pipeline with the epoch of `fit`, or where restored weights are.

        Put it behind the callback that saves the model, such as `BackupAndRestore(directory, double_checkpoint=True)`, which keeps the
        weights before the latest ones: where those cannot be read, since a process was killed while it wrote them, the run goes on from
        the ones before. See `docs/resuming.md`. To Keras' logs of each epoch it adds `wait_share`, the
        share of the training steps' time that was spent waiting for data, and `examples_per_second`; a distribution strategy hides both.

        Args:
            directory: The folder of the checkpoints, such as `BackupAndRestore`'s, for the record of the run; without it nothing is kept.
            save_freq: Without effect: the position comes with the weights.
        """
        from pipegen.backend.datasets.callback import ResumeCallback

        return ResumeCallback(self, None if directory is None else file_or_folder("directory", directory, "checkpoints/"), save_freq)

    # Talking about itself

    def check(self, model: keras.Model, stages: Literal["all", "element"] = "all") -> str:
        """Compares the batches with a Keras model's inputs, ranges of values, output units, activation and loss.

        Returns one line that says what fits. A loss that padded batches would dilute is a warning, and so are images that nothing
        scales; both are in the line. Images that the model scales once more are a mismatch.

        With `stages="element"`, the batches are those of `dataset(split, stages="element")`, for a model that holds `pipe.layer()`.

        Raises:
            ModelMismatchError: Listing everything that does not fit. `TypeError` for anything but a Keras model.
        """
        from pipegen.views.model_check import check, targets_of

        split, element = self._main.split, leaves_steps(stages)
        given = self._before_layer(split, FIRST, None, None).element_spec if element else self.element_spec
        wrong = self._layer_mismatches(model, split, element=element)
        padded = [s for s in self if self.spec.model.batch.remainder_for(s) == "pad" and self._ends_in_repeats(s)]
        out = None if element else self._main.out
        return check(model, given, self._main.emit.output, targets_of(self._main), wrong, padded, out)

    def _ends_in_repeats(self, split: str) -> bool:
        """Returns whether the last batch of a split, were it padded, would have examples of weight 0."""
        extent = self._at(split)._engine.executor(split).order
        return bool(extent.pads and extent.num_examples % extent.batch)

    def explain(
        self, split: str | None = None, *, passes: bool = False, all: bool = False, before: bool = False, physical: bool = False
    ) -> Explanation:
        """Shows the compiled plan of a split, with the types on its edges, and its most expensive stages, as a text.

        Args:
            split: The split; by default the training split, with `all` every split.
            passes: Also show what each pass did, and why.
            all: Show every split, every pass, and the cost of every stage.
            before: Also show the plan as written, before any pass.
            physical: Show what runs instead: each operation of the dataset, and what it calls; with `all` in every form.
        """
        from pipegen.physical.decide import decide_forms
        from pipegen.views.summary import explained

        main = self._main.split if split is None else split
        pipe = self._at(main)
        chosen = list(pipe._plans) if all and split is None else [main]
        compiled = {s: pipe._compiled.splits[s] for s in chosen}
        executors = [pipe._engine.executor(s) for s in chosen] if physical else []
        runs = {x.plan.split: decide_forms(x.plan, x.setting, every=all) for x in executors} or None
        return explained(pipe, compiled, pipe._manifest, passes=passes or all, whole=all, before=before, physical=runs)

    def _repr_html_(self) -> str:
        from pipegen.views.summary import summary_html

        return summary_html(self, self._main)

    def __repr__(self) -> str:
        from pipegen.views.summary import summary

        return visible(summary(self, self._main))
