"""`build`: from a spec to its `Pipeline`. TensorFlow is imported when a pipeline is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.api.fitting import fit
from pipegen.api.pipeline import Pipeline, StagedPipeline
from pipegen.arguments import called_with_count
from pipegen.data.shares import unequal_parts
from pipegen.data.split_checks import WITHOUT_DATA
from pipegen.diagnostics.diagnostic import Severity
from pipegen.diagnostics.fixes import suppressed
from pipegen.lazy import uncollected
from pipegen.phases.compilation import bind, collect_data, compile_spec, load
from pipegen.phases.hosts import share_line
from pipegen.phases.memory_budget import memory_findings
from pipegen.phases.specs import CompiledSpec, Spec, untuned, with_tuned
from pipegen.phases.user_functions import allowed_modules, with_functions
from pipegen.terminal import log

if TYPE_CHECKING:
    from pipegen.api.lock import LockCheck
    from pipegen.data.manifest import Manifest


def build(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    *,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    runtime: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_code: Sequence[str] = (),
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
    locked: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Pipeline:
    """Compiles a spec into a running pipeline.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        params: Values for declared params: `{"size": 192}`.
        overrides: Values for anything by its path: `{"batch.size": 64, "transforms.random_flip.axis": "both"}`.
        runtime: Keys that replace those of the runtime section: `{"cache": "memory"}`. They change how it runs, never what the model sees.
        data: For the source `arrays`, its arrays by name: `{"image": x, "label": y}`; under `by_split`, such a map for each split.
        allow_code: Modules whose functions the spec may call, such as `["my_pkg"]`; a package includes its submodules.
        allow_write: Folders, besides its own and the working directory, where the spec may write files.
        allow_env: Environment variables that the spec may use anywhere, secrets included.
        locked: Refuse to build what differs from the nearest `pipegen.lock`: in meaning, data, code or learned numbers.
        progress: Called now and then with the number of files listed so far, then with the number of images a step was fitted on.

    Returns:
        The pipeline: `model.fit(pipe.train, validation_data=pipe.validation)`.

    Raises:
        SpecError: With every finding, when the spec or its data is wrong. Warnings are logged.
        TypeError: For an argument of the wrong type.
    """
    called_with_count(progress)
    allowed = allowed_modules(allow_code)
    # A pipeline's spec carries the settings tuned for the machine that it ran on.
    given = Path(spec) if isinstance(spec, str) else untuned(spec) if isinstance(spec, Spec) else spec
    with uncollected():  # the first spec imports the modules of every step
        loaded = load(given, params=params, overrides=overrides, runtime=runtime, allow_write=allow_write, allow_env=allow_env)
    check = None
    if locked:
        from pipegen.api.lock import LockCheck  # most builds have no lock

        check = LockCheck.of(loaded)
    loaded = with_functions(loaded, allowed)
    if loaded.stages:
        loaded = replace(loaded, stages=tuple(with_functions(stage, allowed) for stage in loaded.stages))
    again = partial(build, data=data, allow_code=tuple(allow_code))
    return _built(loaded, collect_data(loaded, progress, data), again, progress, check)


def build_by_place(
    spec: Mapping[str, Any] | Spec,
    *,
    runtime: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    late_files: bool = False,
) -> Pipeline:
    """Compiles a spec so that the draws of an example depend on its place in the listing, not on its name.

    Two pipelines over equally many examples then draw alike, such as one over photographs and one over their masks. With `late_files`,
    a missing file of a table is an error when it is read, not before.
    """
    loaded = with_functions(load(spec, runtime=runtime), ())
    manifest = replace(collect_data(loaded, None, data, late_files=late_files), by_place=True)
    return _built(loaded, manifest, partial(build_by_place, data=data, late_files=late_files), None, None)


def _built(
    spec: Spec, manifest: Manifest, again: Callable[[Spec], Pipeline], progress: Callable[[int], None] | None, check: LockCheck | None
) -> Pipeline:
    if check is not None:
        check.data(manifest)
    if share := share_line(spec.model.runtime):
        log.warning("%s", share)
    from pipegen.data.collect import in_stage, warning_lines  # imports NumPy

    for line in warning_lines(manifest):
        log.warning("%s", line)
    whole = _compiled(spec, manifest, progress, check)
    stages: tuple[CompiledSpec, ...] = ()
    if spec.stages:
        stages = tuple(_compiled(stage, in_stage(spec.model, stage.model, manifest)[0], progress) for stage in spec.stages)
    memory = (suppressed(memory_findings(each.spec, each.manifest, each.splits), each.spec.loaded.texts)[0] for each in (whole, *stages))
    for line in dict.fromkeys(f"{d.code} {d.span or 'the spec'}: {d.message}: {d.help[0]}" for found in memory for d in found):
        log.warning("%s", line)
    pipe = StagedPipeline(whole, again, stages) if stages else Pipeline(whole, again)
    _warn_of_parts(pipe, manifest)
    return pipe


def _warn_of_parts(pipe: Pipeline, manifest: Manifest) -> None:
    """Warns if hosts, or replicas of the current strategy, take unequal parts of a batch."""
    import tensorflow as tf

    from pipegen.data.sampling import examples_of_epoch

    if "train" not in pipe:
        return
    model, locate, hosts = pipe.spec.model, pipe.spec.loaded.locate.label, pipe._engine.shard[1]
    given = [(hosts, "hosts")] if hosts > 1 else []
    if tf.distribute.has_strategy():
        strategy = tf.distribute.get_strategy()
        given = [(strategy.num_replicas_in_sync, f"replicas of {type(strategy).__name__}")]
    for one in [stage.spec.model for stage in pipe.stages] or [model]:
        examples = examples_of_epoch(one, manifest, "train")
        for finding in [finding for count, who in given for finding in unequal_parts(one, "train", examples, count, who, locate)]:
            log.warning("%s %s: %s: %s", finding.code, finding.span or "the spec", finding.message, ", ".join(finding.help))


def _compiled(spec: Spec, manifest: Manifest, progress: Callable[[int], None] | None, check: LockCheck | None = None) -> CompiledSpec:
    main = "train" if "train" in spec.plans else next(iter(spec.plans))
    spec = with_tuned(spec, manifest.num_examples(main))
    for warning in spec.warnings:
        if warning.severity is Severity.WARNING and warning.code not in WITHOUT_DATA:
            log.warning("%s %s: %s", warning.code, warning.span or "the spec", warning.message)
    with uncollected():
        bound = bind(spec, manifest)
    fitted = fit(bound, progress)
    if check is not None:
        check.numbers(fitted)
    with uncollected():
        return compile_spec(fitted)
