"""Takes a spec through its phases without TensorFlow: `load`, `bind` to its data and, once it is fitted, `compile_spec`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.arguments import got, is_path, values_by_name
from pipegen.data.named_files import finding_of
from pipegen.data.shares import window_bytes
from pipegen.data.split_checks import WITH_DATA
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Diagnostics, Severity, write
from pipegen.diagnostics.fixes import suppressed
from pipegen.errors import OpError, SpecError
from pipegen.memory import ram_budget
from pipegen.ops.families.references import with_files
from pipegen.passes import PASSES, Compiled, PassContext, run_passes
from pipegen.phases.machine_settings import machine
from pipegen.phases.specs import BoundSpec, CompiledSpec, FittedSpec, Inspection, Spec
from pipegen.phases.user_functions import service_findings
from pipegen.plan.check import Checked, check, check_draft, check_stages, possible_types
from pipegen.plan.cost import example_bytes
from pipegen.plan.evaluation_plans import with_given
from pipegen.plan.lanes import first_view
from pipegen.plan.nodes import Cache, Plan, Shuffle
from pipegen.plan.recipe import step_path
from pipegen.spec.allowed import CHECKED, NOTHING, Allowed
from pipegen.spec.extends import through_chain
from pipegen.spec.load import Loaded, of_stage
from pipegen.spec.load import load as load_spec
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.spec.shared_bases import GitFile
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


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
    """Loads and checks a spec like `load`, without touching its data, and collects errors instead of raising them.

    Findings call the overrides `overrides_from`, such as `--set`. `text` is that of the spec, unless it comes from the file `source`. `git`
    reads the texts of bases from git; by default they come from the nearest lock.
    """
    given: dict[str, Any] = {"params": params or {}, "overrides": overrides or {}, "overrides_from": overrides_from}
    loaded = load_spec(source, **given, runtime=runtime, text=text, git=git, allowed=allowed)
    whole = _check_loaded(loaded)
    diagnostics, stages = whole.diagnostics, []
    for number, stage in enumerate(loaded.stages):
        stages.append(_check_loaded(stage))
        diagnostics.extend(of_stage(stages[-1].diagnostics.items, diagnostics.items, number, stage.locate))
    diagnostics.extend(check_stages(loaded.spec, whole.plans, [stage.plans for stage in stages], loaded.locate.label))
    kept, unused = suppressed(diagnostics.items, loaded.locate.files.texts)
    shown = Diagnostics()
    shown.extend(through_chain([*kept, *unused], loaded.locate.files))
    return Inspection(loaded, whole.plans, whole.compiled, shown, tuple(stages))


def _check_loaded(loaded: Loaded) -> Inspection:
    """Checks a loaded spec without its stages; findings are unsorted and include ignored ones."""
    diagnostics = Diagnostics()
    diagnostics.extend(loaded.diagnostics.items)
    plans: dict[str, Plan] = {}
    compiled: dict[str, Compiled] = {}
    if loaded.spec is not None:
        checked = check(loaded.spec, loaded.locate.label)
        plans = checked.plans
        diagnostics.extend(checked.diagnostics.items)
        if not diagnostics.has_errors:
            # Compiled already, so that errors of passes show without data.
            compiled = {split: optimise(loaded.spec, plan) for split, plan in plans.items()}
    elif loaded.draft is not None:
        diagnostics.extend(check_draft(loaded.draft, loaded.locate.label))
    return Inspection(loaded, plans, compiled, diagnostics)


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
        overrides: Values for any key by its path: `{"batch.size": 64, "transforms.random_flip.axis": "both"}`; a param of that name
            comes first.
        runtime: Overrides of the runtime section.
        allow_write: Folders that the spec may name files to write in, besides its own and the working directory.
        allow_env: Environment variables that the spec may use for anything, even if their names look like secrets, or if they are
            sent to a server that it names.
        allowed: The same, for calls within pipegen.

    Raises:
        SpecError: With every finding, if any is an error.
        TypeError: For an argument of another type.
        ValueError: For an invalid value of `allow_write` or `allow_env`.
    """
    if not isinstance(source, (Spec, Mapping)) and not is_path(source):
        wanted = "a spec is a path, a map with its sections, or a `pipegen.Spec`"
        raise TypeError(f'{wanted}, such as "flowers.pipegen.yaml", got {got(source)}')
    values_by_name("params", params, '{"size": 192}')
    values_by_name("overrides", overrides, '{"batch.size": 64}')
    values_by_name("runtime", runtime, '{"cache": "memory"}')
    allowed = allowed | Allowed.by(allow_write, allow_env)
    earlier = source if isinstance(source, Spec) else None
    if isinstance(source, Spec):
        if not params and not overrides and not runtime:
            return source
        # Its values were checked. For a map, their origins are unknown now, so no check is repeated.
        allowed = allowed | (source.loaded.allowed if source.loaded.file is not None else CHECKED)
        source = source.loaded.file if source.loaded.file is not None else source.loaded.raw
    path = source if isinstance(source, (Mapping, str)) else Path(source)
    spec = inspect(path, params=params, overrides=overrides, runtime=runtime, allowed=allowed).require()
    return spec if earlier is None else replace(spec, model=with_given(spec.model, earlier.model))


def collect_data(
    spec: Spec, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None, *, late_files: bool = False
) -> Manifest:
    """Lists the data of a spec and assigns it to its splits; drops findings that a comment of the spec ignores.

    `progress` is called with the number of files seen so far, now and then. `data` are the arrays of a source that takes them from Python.
    With `late_files`, records whose file does not exist stay, and reading them is an error later. Raises `SpecError` if the data does not
    fit the spec."""
    from pipegen.data.collect import collect

    given: dict[str, Any] = {"locate": spec.loaded.locate.label, "base": spec.loaded.base, "progress": progress}
    collected = collect(spec.model, **given, data=data, late_files=late_files)
    if collected.manifest is None:
        if collected.assigned is not None:
            collected.diagnostics.extend(findings_with_data(spec, collected.assigned))
        raise SpecError(collected.diagnostics.sorted())
    kept, _ = suppressed([*collected.manifest.findings, *warnings_with_data(spec, collected.manifest)], spec.loaded.texts)
    return replace(collected.manifest, findings=tuple(through_chain(kept, spec.loaded.locate.files)))


def findings_with_data(spec: Spec, manifest: Manifest) -> list[Diagnostic]:
    """Finds errors that need the data: its classes, and the shapes, dtypes and values of arrays."""
    return [d for d in _check_with(spec, manifest).diagnostics if d.severity is Severity.ERROR]


def warnings_with_data(spec: Spec, manifest: Manifest) -> list[Diagnostic]:
    """Finds what only the types of the data show, and is no error, such as missing values that nothing fills."""
    types = possible_types(spec.model, None, manifest.record)[0]
    records = types.values() if isinstance(types, Mapping) else (types,)
    if not any(t.missing for record in records for _, t in record.items()):
        return []
    return [d for d in _check_with(spec, manifest).diagnostics if d.code in WITH_DATA]


def _check_with(spec: Spec, manifest: Manifest) -> Checked:
    return check(spec.model, spec.loaded.locate.label, classes=len(manifest.class_names) or None, record=manifest.record)


def bind(spec: Spec, manifest: Manifest) -> BoundSpec:
    """Binds a spec to its data, which adds classes, and shapes, dtypes and values of arrays, to its types. Raises `SpecError` if an
    encoding does not fit the classes, a step does not fit the arrays, or workers cannot read the data."""
    model = spec.model
    require_files(spec)
    types, plans = possible_types(model, len(manifest.class_names) or None, manifest.record), spec.plans
    if model is not spec.loaded.spec or types != possible_types(model):  # often the data adds nothing to the types
        checked = _check_with(spec, manifest)
        if checked.diagnostics.has_errors:
            raise SpecError(checked.diagnostics.sorted())
        plans = checked.plans
    unserved = [*service_findings(spec, manifest, plans)]
    if unserved:
        raise SpecError(unserved)
    return BoundSpec(spec, manifest, _in_files(plans, manifest))


def require_files(spec: Spec) -> None:
    """Checks that the files that steps draw exist; raises `PG401`."""
    findings = []
    for number, step in with_files(spec.model.transforms):
        try:
            step.require_files()
        except OpError as error:
            where = (*step_path(number, spec.model.transforms[number]), error.field or "")
            findings.append(finding_of(error, spec.loaded.locate.label(where)))
    if findings:
        raise SpecError(findings)


def of_first_view(bound: BoundSpec) -> BoundSpec:
    """Reduces a bound spec to the first view of each example."""
    model, locate = bound.spec.model, bound.spec.loaded.locate.label
    if model.views == 1:
        return bound
    known = possible_types(model, len(bound.manifest.class_names) or None, bound.manifest.record)
    return bind(replace(bound.spec, model=first_view(model, locate, known[0])[0]), bound.manifest)


def _in_files(plans: dict[str, Plan], manifest: Manifest) -> dict[str, Plan]:
    """Makes shuffles go by file, or by block of a file, if records are shuffled in windows or cannot be read one by one.

    In a mix each part has an order of its own, which the backend takes from the part's records.
    """
    from pipegen.data.mixed_manifest import MixedManifest  # imports NumPy

    if isinstance(manifest, MixedManifest):
        return plans

    def in_files(split: str, plan: Plan) -> Plan:
        listing, nodes = manifest.own(split).listing, list(plan.nodes)
        reader = listing.reader(split)
        for i, node in enumerate(nodes):
            alone = reader.at_once == 1
            if isinstance(node, Shuffle) and not (alone and (node.order == "global" or listing.shards is None)):
                size = window_bytes(node.window_bytes, manifest, split)
                nodes[i] = replace(node, order="window", window_bytes=size, blocks=reader.called)
        return plan.with_nodes(nodes) if any(map(operator.is_not, nodes, plan.nodes)) else plan

    return {split: plan if plan.buckets else in_files(split, plan) for split, plan in plans.items()}  # buckets have single files


def compile_spec(fitted: FittedSpec) -> CompiledSpec:
    """Compiles a fitted spec: runs every split's plan through the passes. The caches of all splits share the RAM budget, and the disk.
    Raises `SpecError`: `PG410` if they do not fit the budget, `PG416` and `PG417` if the disk cannot hold them."""
    from pipegen.cache.folder import claim_disk  # not needed to inspect a spec

    model, manifest, locate = fitted.spec.model, fitted.manifest, fitted.spec.loaded.locate.label
    splits = compile_plans(fitted.spec, manifest, fitted.plans)
    claim_disk(model, {split: done.plan for split, done in splits.items()}, manifest, locate)
    return CompiledSpec(fitted.spec, manifest, fitted.plans, fitted.learned, splits)


def compile_plans(spec: Spec, manifest: Manifest, plans: Mapping[str, Plan]) -> dict[str, Compiled]:
    """Runs every split's plan through the passes. The caches of all splits share the RAM budget. Raises `SpecError`: `PG410` if they do not
    fit it."""
    from pipegen.data.sampling import examples_of_epoch

    model, locate = spec.model, spec.loaded.locate.label
    left, prefers = ram_budget(model.runtime), spec.tuned.cache if spec.tuned is not None else None
    splits: dict[str, Compiled] = {}
    for split, plan in plans.items():
        count, size = manifest.num_examples(split), manifest.mean_bytes(split)
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
    """Runs every pass over the plainest plan of a split.

    If the data is known, `num_examples` are those in the split, `visits` those in a sampled epoch, and `file_bytes` is the mean size of a
    stored record. Caches may take `ram_budget` bytes; `prefers` is the kind that `auto` prefers, since `tune` found it fast. Without
    `cache` there is none: it is useless if each record is read once. Buckets never have one: it holds examples of one size.
    """
    replaces = spec.errors.skip is not None and plan.split == "train"
    served = spec.runtime.service is not None and plan.split == "train"  # workers have no access to our caches
    runtime = spec.runtime if cache and not plan.buckets and not served else spec.runtime.model_copy(update={"cache": "none"})
    if visits is None:
        visits = num_examples
    epoch = visits if spec.epoch == "pass" or plan.split != "train" else spec.epoch.steps * plan.batch.size
    known = machine().factors
    given = runtime, num_examples, ram_budget, replaces, file_bytes, epoch, known, prefers
    return run_passes(plan, PASSES, PassContext(*given, spec.source.canvases()))


def read_once(spec: PipelineSpec, plan: Plan, manifest: Manifest) -> Plan:
    """Runs every pass over the plainest plan of a split whose data is known, without a cache."""
    count, size = manifest.num_examples(plan.split), manifest.mean_bytes(plan.split)
    return optimise(spec, plan, num_examples=count, file_bytes=size, cache=False).plan


def claim_cache(spec: PipelineSpec, plan: Plan, num_examples: int, budget: int, locate: Locate) -> int:
    """Computes the bytes that an optimised plan's memory cache will take of the rest of the budget; raises `PG410`."""
    node = next((n for n in plan.nodes if isinstance(n, Cache)), None)
    if node is None or not node.kind.in_memory:
        return 0
    need = example_bytes(node.out) * num_examples
    if need > budget and spec.runtime.cache == "memory":
        message = f"caching split `{plan.split}` in memory needs {format_bytes(need)}, and the RAM budget has {format_bytes(budget)} left"
        help_ = (write("auto", "value", "use {}, which caches what fits, or raise `ram_budget`", shown="cache: auto"),)
        raise SpecError([make("PG410", message, locate(("runtime", "cache")), help=help_)])
    return need
