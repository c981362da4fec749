"""A spec at each stage on the way to its datasets: loaded, bound to its data, fitted, compiled. Each stage holds its plans, built once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipegen.phases.machine import machine
from pipegen.spec.models import ALWAYS
from pipegen.spec.spec_hash import spec_hash
from pipegen.terminal import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostics
    from pipegen.ops.arguments.learned import Statistics
    from pipegen.ops.transform import Transform
    from pipegen.passes import Compiled
    from pipegen.phases.machine import Tuned
    from pipegen.plan.nodes import Plan
    from pipegen.spec.load import Loaded
    from pipegen.spec.models import PipelineSpec


@dataclass(frozen=True)
class Inspection:
    """Holds what `inspect` found: the spec where it could be loaded, and every finding.

    Each split that has a plan has its plainest in `plans`, and the same after every pass in `compiled`, which is empty where anything is an
    error. `stages` has the same of each stage of training, where it was looked at.
    """

    loaded: Loaded
    plans: dict[str, Plan]
    compiled: dict[str, Compiled]
    diagnostics: Diagnostics
    stages: tuple[Inspection, ...] = ()

    @property
    def spec(self) -> Spec | None:
        """Returns the spec, or `None` where anything is an error."""
        if self.loaded.spec is None or self.diagnostics.has_errors:
            return None
        stages = tuple(Spec(s.loaded.spec, s.loaded, s.plans, s.diagnostics, s.compiled) for s in self.stages if s.loaded.spec is not None)
        return Spec(self.loaded.spec, self.loaded, self.plans, self.diagnostics, self.compiled, stages=stages)


@dataclass(frozen=True)
class Spec:
    """Holds a spec that was loaded and found right.

    Attributes:
        model: The sections, with every default filled in.
        loaded: The same with the place that each value came from.
        plans: The plainest plan of each split.
        warnings: What is legal but unwise.
        compiled: Those plans after every pass, as far as that goes without data.
        tuned: What `pipegen tune` found, where the sections have it in place of `auto`.
        stages: The spec as it is in each stage of training; their warnings are among these.
    """

    model: PipelineSpec
    loaded: Loaded
    plans: dict[str, Plan]
    warnings: Diagnostics
    compiled: dict[str, Compiled]
    tuned: Tuned | None = None
    stages: tuple[Spec, ...] = ()

    @property
    def hash(self) -> str:
        """Identifies the meaning: 64 hexadecimal digits, unmoved by `runtime`, names and paths."""
        return spec_hash(self.model)

    def alone(self) -> Spec:
        """Returns a stage as a spec of its own, for epochs without end: to look at, and to measure."""
        model = self.model.model_copy()
        model._stretch = ALWAYS
        return replace(self, model=model)

    def where(self, path: tuple[str | int, ...]) -> str:
        """Returns the place of a key path: `file:line:column`, or the path in words."""
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
    """Returns the steps of a spec as lines of YAML, with the arguments that were given."""
    from pipegen.ops.stage import step_kwargs
    from pipegen.spec.runtime_fix import to_yaml

    def arguments(step: Transform) -> str:
        given = step_kwargs(step)
        written = to_yaml(given, default_flow_style=True, width=10_000).strip()
        return f": {written}" if given else ""

    return [f"- {step.op}{arguments(step)}" for step in model.transforms]


@dataclass(frozen=True)
class BoundSpec:
    """Holds a spec whose data is listed and fits it; `bind` makes it. Its plans have what the data says of their types."""

    spec: Spec
    manifest: Manifest
    plans: dict[str, Plan]


@dataclass(frozen=True, slots=True)
class Learned:
    """Holds what one step takes from one feature.

    Attributes:
        step: Which of the spec's steps.
        feature: The feature.
        numbers: What it learned.
        examples: How many examples they come from.
        file: Where they are kept, or `None` where they cannot be.
        measured: Whether that was done now, rather than found there.
        persistable: Whether they may be kept: not where they depend on Python code that can change unnoticed.
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
        """Says where the numbers come from."""
        kept = f", kept in {self.file}" if self.file is not None else ""
        if not self.persistable:
            kept = ", and not kept: a Python function without a `version` comes before"
        return f"measured on {self.examples:,} examples of split train{kept}" if self.measured else f"read from {self.file}"


@dataclass(frozen=True)
class FittedSpec(BoundSpec):
    """Holds a bound spec whose steps have what they take from the training split, which is `learned`; `fit` makes it."""

    learned: tuple[Learned, ...]


@dataclass(frozen=True)
class CompiledSpec(FittedSpec):
    """Holds a fitted spec with the plan that runs for each split, and what each pass did to it; `compile_spec` makes it."""

    splits: dict[str, Compiled]


def tuned_key(spec: Spec) -> str:
    """Returns what an answer of `pipegen tune` is kept by: the meaning of a spec and its `runtime` section, which was there when it ran."""
    return hashlib.sha256(f"{spec.hash}\n{spec.model.runtime.model_dump_json()}".encode()).hexdigest()


def with_tuned(spec: Spec, examples: int) -> Spec:
    """Returns a spec with what `pipegen tune` found for it on this machine, where it says `auto` and has about as many examples."""
    found = machine().tuned.get(tuned_key(spec))
    if found is None or not found.suits(examples):
        return spec
    runtime = spec.model.runtime
    settings = {name: value for name, value in found.settings.items() if getattr(runtime, name) == "auto"}
    if not settings:
        return spec
    kept: dict[str, Any] = {name: settings.get(name) for name in found.settings}
    plain = {name: value for name, value in settings.items() if name != "cache"}  # which is a preference: it has to fit, too
    model = spec.model.model_copy(update={"runtime": runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=replace(found, **kept))


def untuned(spec: Spec) -> Spec:
    """Returns a spec as it was before `with_tuned`: another machine has other answers."""
    if spec.tuned is None:
        return spec
    plain = {name: "auto" for name in spec.tuned.settings if name != "cache"}
    model = spec.model.model_copy(update={"runtime": spec.model.runtime.model_copy(update=plain)})
    return replace(spec, model=model, tuned=None)
