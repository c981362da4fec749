"""Takes a spec from stage to stage, all before TensorFlow: `load`, `bind` to its data, and, once it is fitted, `compile_spec`."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.arguments import got, is_path, values_by_name
from pipegen.data.shares import window_bytes
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics, Severity, write
from pipegen.diagnostics.fixes import suppressed
from pipegen.errors import OpError, SpecError
from pipegen.memory import ram_budget
from pipegen.ops.families.references import references_of
from pipegen.phases.machine import machine
from pipegen.phases.service import service_findings
from pipegen.phases.specs import BoundSpec, CompiledSpec, Inspection, Spec
from pipegen.plan.check import Checked, check, check_draft, check_stages, possible_types
from pipegen.plan.fitting_plans import with_given
from pipegen.plan.lanes import first_view
from pipegen.plan.nodes import Cache, Shuffle
from pipegen.plan.recipe import step_path
from pipegen.spec.allowed import CHECKED, NOTHING, Allowed
from pipegen.spec.extends import through_chain
from pipegen.spec.load import load as load_spec
from pipegen.spec.stages import of_stage
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.passes import Compiled
    from pipegen.phases.specs import FittedSpec
    from pipegen.plan.nodes import Node, Plan
    from pipegen.spec.bases.packages import GitFile
    from pipegen.spec.load import Loaded
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


def inspect(
    source: str | Path | Mapping[str, Any],
    *,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    overrides_from: str = "overrides=",
    runtime: Mapping[str, object] | None = None,
    text: str | bytes | None = None,
    git: Callable[[GitFile, int], bytes] | None = None,
    allowed: Allowed = NOTHING,
) -> Inspection:
    """Loads and checks a spec as `load` does, without touching its data; it raises nothing for a wrong spec.

    Findings call the `overrides` what `overrides_from` says: `overrides=` or `--set`. `text` is that of the spec, when it does not come
    from the file that `source` names; `git` gives the texts of bases from git, instead of the nearest lock; `allowed` is what the caller
    allows it.
    """
    given: dict[str, Any] = {"params": params or {}, "overrides": overrides or {}, "overrides_from": overrides_from}
    loaded = load_spec(source, **given, runtime=runtime, text=text, git=git, allowed=allowed)
    looked = _look(loaded)
    diagnostics, stages = looked.diagnostics, []
    for number, stage in enumerate(loaded.stages):
        stages.append(_look(stage))
        diagnostics.extend(of_stage(stages[-1].diagnostics.items, diagnostics.items, number, stage.locate))
    diagnostics.extend(check_stages(loaded.spec, looked.plans, [stage.plans for stage in stages], loaded.locate.label))
    return Inspection(loaded, looked.plans, looked.compiled, _without_ignored(diagnostics, loaded), tuple(stages))


def _look(loaded: Loaded) -> Inspection:
    """Checks what was loaded, less its stages; the findings are as they come."""
    diagnostics = Diagnostics()
    diagnostics.extend(loaded.diagnostics.items)
    plans: dict[str, Plan] = {}
    compiled: dict[str, Compiled] = {}
    if loaded.spec is not None:
        checked = check(loaded.spec, loaded.locate.label)
        plans = checked.plans
        diagnostics.extend(checked.diagnostics.items)
        if not diagnostics.has_errors:
            # What cannot be compiled fails here, and not once the data is there.
            compiled = {split: optimise(loaded.spec, plan) for split, plan in plans.items()}
    elif loaded.draft is not None:
        diagnostics.extend(check_draft(loaded.draft, loaded.locate.label))
    return Inspection(loaded, plans, compiled, diagnostics)


def _without_ignored(diagnostics: Diagnostics, loaded: Loaded) -> Diagnostics:
    """Less what a `# pipegen: ignore[CODE]` silences; in shared bases, with the way that leads there."""
    kept, unused = suppressed(diagnostics.items, loaded.locate.files.texts)
    result = Diagnostics()
    result.extend(through_chain([*kept, *unused], loaded.locate.files))
    return result


def load(
    source: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    *,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    runtime: Mapping[str, object] | None = None,
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
    allowed: Allowed = NOTHING,
) -> Spec:
    """Loads and checks a spec. It reads no data and does not import TensorFlow.

    Args:
        source: A path to a spec, or a map with its sections.
        params: Values for declared params, before the environment and the defaults.
        overrides: Values for anything by its path: `{"batch.size": 64, "transforms.random_flip.axis": "both"}`; a param of that name
            comes first.
        runtime: Laid over the runtime section.
        allow_write: Folders that the spec may name files to write in, besides its own and the working directory.
        allow_env: Variables of the environment that it may use for anything, although their names are those of secrets, or although
            they are sent to a server that it names.
        allowed: The same, for calls from within pipegen.

    Raises:
        SpecError: With every finding, when there are errors.
        TypeError: For an argument of another kind.
        ValueError: For what cannot be allowed.
    """
    _check_arguments(source, params, overrides, runtime)
    allowed = allowed | Allowed.by(allow_write, allow_env)
    earlier = source if isinstance(source, Spec) else None
    if isinstance(source, Spec):
        if not params and not overrides and not runtime:
            return source
        # Its values were checked, and where they came from is no longer known of a map.
        allowed = allowed | (source.loaded.allowed if source.loaded.file is not None else CHECKED)
        source = source.loaded.file if source.loaded.file is not None else source.loaded.raw
    path = source if isinstance(source, (Mapping, str)) else Path(source)
    found = inspect(path, params=params, overrides=overrides, runtime=runtime, allowed=allowed)
    spec = found.spec
    if spec is None:
        raise SpecError(found.diagnostics.sorted())
    return spec if earlier is None else replace(spec, model=with_given(spec.model, earlier.model))


def _check_arguments(source: object, params: object, overrides: object, runtime: object) -> None:
    if not isinstance(source, (Spec, Mapping)) and not is_path(source):
        wanted = "a spec is a path, a map with its sections, or a `pipegen.Spec`"
        raise TypeError(f'{wanted}, such as "flowers.pipegen.yaml", got {got(source)}')
    values_by_name("params", params, '{"size": 192}')
    values_by_name("overrides", overrides, '{"batch.size": 64}')
    values_by_name("runtime", runtime, '{"cache": "memory"}')


def collect_data(
    spec: Spec, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None, *, late_files: bool = False
) -> Manifest:
    """Lists the data of a spec and assigns it to its splits.

    Args:
        spec: The spec.
        progress: Called with the number of files seen so far, now and then.
        data: The arrays of a source that takes them from Python.
        late_files: Keep records whose file does not exist, which is an error when it is read.

    Returns:
        The manifest. Its findings are those that no comment of the spec ignores.

    Raises:
        SpecError: When the data does not fit the spec.
    """
    from pipegen.data.collect import collect

    given: dict[str, Any] = {"locate": spec.loaded.locate.label, "base": spec.loaded.base, "progress": progress}
    collected = collect(spec.model, **given, data=data, late_files=late_files)
    if collected.manifest is None:
        if collected.assigned is not None:
            collected.diagnostics.extend(findings_with_data(spec, collected.assigned))
        raise SpecError(collected.diagnostics.sorted())
    kept, _ = suppressed(collected.manifest.findings, spec.loaded.texts)
    return replace(collected.manifest, findings=tuple(through_chain(kept, spec.loaded.locate.files)))


def findings_with_data(spec: Spec, manifest: Manifest) -> list[Diagnostic]:
    """Returns the errors that show once the classes are known, and of arrays also shapes, dtypes and values."""
    return [d for d in _check_with(spec, manifest).diagnostics if d.severity is Severity.ERROR]


def _check_with(spec: Spec, manifest: Manifest) -> Checked:
    return check(spec.model, spec.loaded.locate.label, classes=len(manifest.class_names) or None, record=manifest.record)


def bind(spec: Spec, manifest: Manifest) -> BoundSpec:
    """Binds a spec to its data: the classes are known now, and of arrays also shapes, dtypes and values.

    Raises:
        SpecError: When an encoding does not fit the classes, a step the arrays, or the data the workers that are to read it.
    """
    model = spec.model
    require_references(spec)
    types, plans = possible_types(model, len(manifest.class_names) or None, manifest.record), spec.plans
    if model is not spec.loaded.spec or types != possible_types(model):  # of types the data often says no more than the spec
        checked = _check_with(spec, manifest)
        if checked.diagnostics.has_errors:
            raise SpecError(checked.diagnostics.sorted())
        plans = checked.plans
    unserved = [*service_findings(spec, manifest, plans)] if model.runtime.service is not None else []
    if unserved:
        raise SpecError(unserved)
    return BoundSpec(spec, manifest, _in_files(plans, manifest))


def require_references(spec: Spec) -> None:
    """Looks whether there are the images that steps take from files beside the spec.

    Raises:
        SpecError: `PG401`.
    """
    findings = []
    for number, step in references_of(spec.model.transforms):
        try:
            step.require_references()
        except OpError as error:
            where = (*step_path(number, spec.model.transforms[number]), error.field or "")
            findings.append(make(error.code, error.message, spec.loaded.locate.label(where), help=error.help or ()))
    if findings:
        raise SpecError(findings)


def of_first_view(bound: BoundSpec) -> BoundSpec:
    """A bound spec as an example's first view has it."""
    model, locate = bound.spec.model, bound.spec.loaded.locate.label
    if model.views == 1:
        return bound
    known = possible_types(model, len(bound.manifest.class_names) or None, bound.manifest.record)
    return bind(replace(bound.spec, model=first_view(model, locate, known[0])[0]), bound.manifest)


def _in_files(plans: dict[str, Plan], manifest: Manifest) -> dict[str, Plan]:
    """Lets shuffles go by file, or by what files are read by, where records lie many in one and have windows or no access of their own.

    In a mix each part has an order of its own, which the backend takes from the part's records.
    """
    from pipegen.data.mix import MixedManifest  # here, as NumPy comes with it

    if isinstance(manifest, MixedManifest):
        return plans

    def by_block(node: Node, split: str) -> Node:
        reader = manifest.listing.reader(split)
        alone = reader.at_once == 1
        if not isinstance(node, Shuffle) or (alone and (node.order == "global" or manifest.listing.shards is None)):
            return node
        return replace(node, order="window", window_bytes=window_bytes(node.window_bytes, manifest, split), blocks=reader.called)

    def in_files(split: str, plan: Plan) -> Plan:
        if plan.buckets:  # whose records lie in files of their own
            return plan
        nodes = [by_block(node, split) for node in plan.nodes]
        return plan if all(map(operator.is_, nodes, plan.nodes)) else plan.with_nodes(nodes)

    return {split: in_files(split, plan) for split, plan in plans.items()}


def compile_spec(fitted: FittedSpec) -> CompiledSpec:
    """Compiles a fitted spec: every split's plan through the passes. The caches of all splits share the RAM budget, and the disk.

    Raises:
        SpecError: `PG410` where they do not fit the budget, `PG416` and `PG417` where the disk cannot have them.
    """
    from pipegen.cache.folder import claim_disk  # here, as the passes below: what is only looked at needs neither

    model, manifest, locate = fitted.spec.model, fitted.manifest, fitted.spec.loaded.locate.label
    splits = compile_plans(fitted.spec, manifest, fitted.plans)
    claim_disk(model, {split: done.plan for split, done in splits.items()}, manifest, locate)
    return CompiledSpec(fitted.spec, manifest, fitted.plans, fitted.learned, splits)


def compile_plans(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> dict[str, Compiled]:
    """Runs every split's plan through the passes. The caches of all splits share the RAM budget.

    Raises:
        SpecError: `PG410` where they do not fit it.
    """
    from pipegen.data.sampling import examples_of_epoch

    model, locate = spec.model, spec.loaded.locate.label
    left, prefers = ram_budget(model.runtime), spec.tuned.cache if spec.tuned is not None else None
    splits: dict[str, Compiled] = {}
    for split, plan in plans.items():
        count, size = manifest.num_examples(split), manifest.mean_bytes(split) or None
        visits = examples_of_epoch(model, manifest, split)
        splits[split] = optimise(model, plan, num_examples=count, ram_budget=left, file_bytes=size, prefers=prefers, visits=visits)
        left -= claim_cache(model, splits[split].plan, count, left, locate)
    return splits


def optimise(
    spec: PipelineSpec,
    plan: Plan,
    *,
    num_examples: int | None = None,
    ram_budget: int | None = None,
    file_bytes: float | None = None,
    cache: bool = True,
    prefers: str | None = None,
    visits: int | None = None,
) -> Compiled:
    """Run every pass over a plan.

    Args:
        spec: The spec.
        plan: The plainest plan of a split.
        num_examples: Examples in the split, where the data is known.
        ram_budget: Bytes that caches may take.
        file_bytes: The mean size of a stored record, where the data is known.
        cache: Whether a cache may be placed: it serves nothing that is read once. It holds images of one size, and never those of buckets.
        prefers: Which cache `auto` prefers, since it was found to be fast; see `PassContext`.
        visits: Examples in an epoch, where it is sampled and has not each once.
    """
    from pipegen.passes import PASSES, PassContext, run_passes  # here, since what is wrong already needs no passes

    replaces = spec.errors.skip is not None and plan.split == "train"
    served = spec.runtime.service is not None and plan.split == "train"  # whose batches workers make, which have no cache of ours
    runtime = spec.runtime if cache and not plan.buckets and not served else spec.runtime.model_copy(update={"cache": "none"})
    if visits is None:
        visits = num_examples
    epoch = visits if spec.epoch == "pass" or plan.split != "train" else spec.epoch.steps * plan.batch.size
    known = machine().factors
    given = runtime, num_examples, ram_budget, replaces, file_bytes, epoch, known, prefers
    return run_passes(plan, PASSES, PassContext(*given, spec.source.canvases()))


def claim_cache(spec: PipelineSpec, plan: Plan, num_examples: int, budget: int, locate: Locate) -> int:
    """The bytes that an optimised plan's memory cache will take of what is left of the budget.

    Raises:
        SpecError: `PG410`.
    """
    from pipegen.plan.cost import example_bytes

    node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
    if node is None or not node.kind.in_memory:
        return 0
    need = example_bytes(node.out) * num_examples
    if need > budget and spec.runtime.cache == "memory":
        message = f"caching split `{plan.split}` in memory needs {format_bytes(need)}, and the RAM budget has {format_bytes(budget)} left"
        help_ = (write("auto", "value", "use {}, which caches what fits, or raise `ram_budget`", shown="cache: auto"),)
        raise SpecError([make("PG410", message, locate(("runtime", "cache")), help=help_)])
    return need
