"""A spec in each phase on the way to its datasets: loaded, bound to its data, fitted, compiled. Each has its plans, built once."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.ops.transform import Transform
from pipegen.phases.machine_settings import Tuned, machine
from pipegen.plan.nodes import Plan
from pipegen.spec.models import ALWAYS, PipelineSpec
from pipegen.spec.spec_hash import spec_hash
from pipegen.terminal import one_line

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.ops.arguments.learned import Statistics
    from pipegen.passes import Compiled
    from pipegen.spec.load import Loaded


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect`: the spec, if it could be loaded, and every finding; the same for each stage of training.

    `plans` has the plainest plan of each split that has one, `compiled` the same plans after every pass; it is empty after an error.
    """

    loaded: Loaded
    plans: dict[str, Plan]
    compiled: dict[str, Compiled]
    diagnostics: Diagnostics
    stages: tuple[Inspection, ...] = ()

    @property
    def spec(self) -> Spec | None:
        """The spec, or `None` after an error."""
        if self.loaded.spec is None or self.diagnostics.has_errors:
            return None
        stages = tuple(Spec(s.loaded.spec, s.loaded, s.plans, s.diagnostics, s.compiled) for s in self.stages if s.loaded.spec is not None)
        return Spec(self.loaded.spec, self.loaded, self.plans, self.diagnostics, self.compiled, stages=stages)

    def require(self) -> Spec:
        """The spec; raises `SpecError` with every finding, after an error."""
        if (spec := self.spec) is None:
            raise SpecError(self.diagnostics.sorted())
        return spec


@dataclass(frozen=True)
class Spec:
    """A loaded spec without errors."""

    model: PipelineSpec  # the sections, with every default filled in
    loaded: Loaded  # the sections with the origin of each value
    plans: dict[str, Plan]  # the plainest plan of each split
    warnings: Diagnostics  # findings that are not errors
    compiled: dict[str, Compiled]  # the plans after every pass, as far as that goes without data
    tuned: Tuned | None = None  # the settings of `pipegen tune` that replace `auto` in the sections
    stages: tuple[Spec, ...] = ()  # the resolved spec of each stage of training; `warnings` includes theirs

    @property
    def hash(self) -> str:
        """Hash of the meaning: 64 hexadecimal digits that do not depend on `runtime`, names and paths."""
        return spec_hash(self.model)

    def alone(self) -> Spec:
        """Makes a stage a spec of its own, without end, to inspect or measure it."""
        model = self.model.model_copy()
        model._stretch = ALWAYS
        return replace(self, model=model)

    def where(self, path: tuple[str | int, ...]) -> str:
        """Formats the place of a key path: `file:line:column`, or the path itself."""
        label = self.loaded.locate.label(path, key=True)
        return str(label.span) if label.span is not None else label.path

    def __repr__(self) -> str:
        steps = ", ".join(s.op for s in self.model.transforms)
        splits = ", ".join(self.model.split_names())
        return one_line(f"Spec({self.model.name or 'unnamed'}: {self.model.source.op} → {steps or 'no steps'}; splits {splits})")

    def _repr_html_(self) -> str:
        from pipegen.page import box, notebook_table, preformatted

        facts = [("source", self.model.source.op), ("splits", ", ".join(self.model.split_names()))]
        facts += [(str(warning.severity.value), f"{warning.code} {warning.message}") for warning in self.warnings.sorted()]
        steps = step_texts(self.model)
        return box(
            f"Spec {self.model.name or 'unnamed'}",
            self.hash[:12],
            notebook_table((), facts),
            preformatted("\n".join(steps)) if steps else "",
        )


def step_texts(model: PipelineSpec) -> list[str]:
    """Formats the steps of a spec as lines of YAML, with the arguments that were given."""
    from pipegen.ops.stage import step_kwargs
    from pipegen.spec.runtime_fix import to_yaml

    def arguments(step: Transform) -> str:
        given = step_kwargs(step)
        written = to_yaml(given, default_flow_style=True, width=10_000).strip()
        return f": {written}" if given else ""

    return [f"- {step.op}{arguments(step)}" for step in model.transforms]


@dataclass(frozen=True)
class BoundSpec:
    """A spec with its listed data, made by `bind`. Its plans have the types of the data."""

    spec: Spec
    manifest: Manifest
    plans: dict[str, Plan]


@dataclass(frozen=True, slots=True)
class Learned:
    """The statistics of one feature that a step, given by its number, has learned from `examples`; `file` keeps them.

    They are `measured` now, or read from the file. They are `persistable` if they do not depend on Python code that can change unnoticed.
    """

    step: int
    feature: str
    numbers: Statistics
    examples: int
    file: Path | None
    measured: bool
    persistable: bool = True

    @property
    def origin(self) -> str:
        """The origin of the numbers, in words."""
        kept = f", kept in {self.file}" if self.file is not None else ""
        if not self.persistable:
            kept = ", and not kept: a Python function without a `version` comes before"
        return f"measured on {self.examples:,} examples of split train{kept}" if self.measured else f"read from {self.file}"


@dataclass(frozen=True)
class FittedSpec(BoundSpec):
    """A bound spec whose steps have learned from the training split (`learned`), made by `fit`."""

    learned: tuple[Learned, ...]


@dataclass(frozen=True)
class CompiledSpec(FittedSpec):
    """A fitted spec with the final plan of each split, and a record of its passes, made by `compile_spec`."""

    splits: dict[str, Compiled]


def tuned_key(spec: Spec) -> str:
    """Hashes the meaning of a spec and its `runtime` section: the key of the settings that `pipegen tune` finds."""
    return hashlib.sha256(f"{spec.hash}\n{spec.model.runtime.model_dump_json()}".encode()).hexdigest()


def with_tuned(spec: Spec, examples: int) -> Spec:
    """Replaces `auto` by the settings that `pipegen tune` stored, if they were measured on about as many examples."""
    found = machine().tuned.get(tuned_key(spec))
    if found is None or not found.suits(examples):
        return spec
    runtime = spec.model.runtime
    settings = {name: value for name, value in found.settings.items() if getattr(runtime, name) == "auto"}
    if not settings:
        return spec
    kept: dict[str, Any] = {name: settings.get(name) for name in found.settings}
    plain = {name: value for name, value in settings.items() if name != "cache"}  # a preference only: the cache has to fit
    model = spec.model.model_copy(update={"runtime": runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=replace(found, **kept))


def untuned(spec: Spec) -> Spec:
    """Undoes `with_tuned`, for another machine."""
    if spec.tuned is None:
        return spec
    plain = {name: "auto" for name in spec.tuned.settings if name != "cache"}
    model = spec.model.model_copy(update={"runtime": spec.model.runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=None)
